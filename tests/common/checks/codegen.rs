//! Readers of machine code: instruction words, code objects, machine text.

use groundswell::assembler::{AssemblerOptions, assemble, disassemble};
use groundswell::internals::machine::check::{check_hazards, check_operands, check_waits};
use groundswell::internals::machine::hazards::HazardResolver;
use groundswell::internals::machine::waits::{LdsLoads, WaitInserter};
use groundswell::internals::machine::{MachineBody, MachineInst, text};
use groundswell::isa::{Arch, EncodeError, decode, encode, write_inst};
use groundswell::object::{ContainerKind, DeviceCode, ObjectFile};
use groundswell::simulator::Simulator;
use groundswell::target::Target;

/// Bytes taken for instruction words: what decodes prints, and encodes to words that decode to the same
/// instruction. The first byte says for which chip.
pub fn decoder(data: &[u8]) -> Result<(), String> {
    let Some((&chip, data)) = data.split_first() else { return Ok(()) };
    let arch = Arch::ALL[usize::from(chip) % Arch::ALL.len()];
    let words: Vec<u32> = data.as_chunks::<4>().0.iter().map(|&bytes| u32::from_le_bytes(bytes)).collect();
    let mut at = 0;
    while at < words.len() {
        let Ok((inst, length)) = decode(&words[at..], arch) else {
            at += 1;
            continue;
        };
        let mut printed = String::new();
        write_inst(&mut printed, &inst, arch, None).map_err(|e| format!("{inst:?} does not print: {e}"))?;
        let mut encoded = Vec::new();
        let from = &words[at..at + length];
        at += length;
        match encode(&inst, arch, &mut encoded) {
            Ok(()) => {}
            // LLVM does the same: its disassembler shows negative offsets of scalar buffer loads, its
            // assembler refuses them.
            Err(EncodeError::Immediate { op, .. }) if op.info().has_buffer_descriptor() => {
                continue;
            }
            Err(error) => return Err(format!("{printed} of {from:x?} does not encode: {error}")),
        }
        match decode(&encoded, arch) {
            Ok((again, _)) if again == inst => {}
            other => {
                return Err(format!("{printed} of {from:x?} encodes as {encoded:x?}, which is {other:?}"));
            }
        }
    }
    Ok(())
}

/// Bytes taken for a code object: it is read and loaded or refused.
pub fn object(data: &[u8]) -> Result<(), String> {
    let read = ObjectFile::parse(data);
    if let Ok(file) = &read {
        for kernel in &file.kernels {
            if file.kernel(kernel.name).is_none() {
                return Err(format!("no kernel {}", kernel.name));
            }
            let _ = file.bytes_at(kernel.entry);
            let _ = file.line_of(kernel.entry);
        }
        if let Ok(listing) = disassemble(data) {
            // An object can hold more than its text; then there is a fault.
            let _ = assemble(&listing.text, AssemblerOptions::default());
        }
    }
    device_code(data)?;
    let mut simulator = Simulator::new(Target::GFX942);
    let is_bundle = matches!(ContainerKind::of(data), Some(kind) if kind != ContainerKind::Object);
    match (simulator.load(data), read) {
        (Ok(_), Err(error)) if !is_bundle => Err(format!("loaded what cannot be read: {error}")),
        (Ok(module), _) => simulator.unload(module).map_err(|e| e.to_string()),
        (Err(_), _) => Ok(()),
    }
}

/// Bytes taken for a file of the host: what is found inside lies apart, and is read or refused.
fn device_code(data: &[u8]) -> Result<(), String> {
    let code = DeviceCode::find(data);
    let (mut unpacker, mut end) = (code.unpacker(), 0);
    for container in &code.containers {
        if container.offset < end
            || data[container.offset..].get(..container.bytes.len()) != Some(container.bytes)
        {
            return Err(format!("a container at {:#x}, after one that ends at {end:#x}", container.offset));
        }
        end = container.offset + container.bytes.len();
        let Ok(contents) = unpacker.open(container) else { continue };
        for object in container.objects(&contents).into_iter().flatten() {
            let names = object.kernels().map_or(0, |names| names.iter().map(|name| name.len()).sum());
            if names > contents.len() {
                return Err(format!("{names} bytes of names in {} bytes", contents.len()));
            }
        }
    }
    Ok(())
}

/// Bytes taken for machine text: what is read prints as something that reads back as the same, and survives
/// the passes.
pub fn machine(data: &[u8]) -> Result<(), String> {
    let Ok(body) = text::parse(&String::from_utf8_lossy(data)) else { return Ok(()) };
    let printed = text::print(&body);
    let again = text::parse(&printed).map_err(|e| format!("{printed}\n{e}"))?;
    let twice = text::print(&again);
    if twice != printed {
        return Err(format!("printed:\n{printed}\nread and printed again:\n{twice}"));
    }
    passes(&body)
}

/// Bodies longer than this take the verifier too long.
const LONGEST_BODY: usize = 64;

/// Code that a chip could run satisfies the verifier after the passes for waits and hazards.
fn passes(body: &MachineBody) -> Result<(), String> {
    let is_virtual = |i: &MachineInst| i.inst.operands.iter().any(|operand| operand.is_virtual());
    if body.insts.len() > LONGEST_BODY || body.insts.values().any(is_virtual) {
        return Ok(());
    }
    for arch in Arch::ALL.into_iter().filter(|&arch| check_operands(body, arch).is_empty()) {
        let mut after = body.clone();
        WaitInserter::new(arch).insert(&mut after);
        HazardResolver::new(arch).resolve(&mut after);
        let mut faults = check_waits(body, &after, arch, LdsLoads::Anywhere);
        faults.extend(check_hazards(&after, arch));
        if let Some(fault) = faults.first() {
            return Err(format!("{arch}: {fault}\n{}", text::print(&after)));
        }
    }
    Ok(())
}
