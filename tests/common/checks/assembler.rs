//! The assembler: lines as instructions, the whole as a file.

use crate::instructions::has_inline_float_of_16_bits;
use groundswell::assembler::{AssemblerOptions, assemble, disassemble};
use groundswell::isa::{Arch, Inst, Opcode, encode, parse_inst, write_inst};
use groundswell::target::Target;

/// Objects that are disassembled.
const MOST_BYTES: usize = 1 << 16;

/// Bytes taken for assembler text, the first for the chip. Instructions that are read print as something that
/// reads back as the same bytes; objects that are made have a text that makes an object of the same text.
pub fn assembler(data: &[u8]) -> Result<(), String> {
    let Some((&first, text)) = data.split_first() else { return Ok(()) };
    let text = String::from_utf8_lossy(text);
    let index = usize::from(first) % Arch::ALL.len();
    for line in text.lines() {
        instruction(line, Arch::ALL[index])?;
    }
    let options = AssemblerOptions { target: Some(Target::ALL[index].into()) };
    let object = match assemble(&text, options) {
        Ok(assembled) => assembled.object,
        Err(faults) if faults.0.is_empty() => return Err("refused without a fault".to_owned()),
        Err(_) => return Ok(()),
    };
    // Directives can ask for much; the text of it says no more than that of a little.
    if object.len() > MOST_BYTES {
        return Ok(());
    }
    let listed = |object: &[u8]| {
        disassemble(object).map_err(|error| format!("{text}\nmade what is no object: {error}"))
    };
    let listing = listed(&object)?;
    let again = assemble(&listing.text, AssemblerOptions::default())
        .map_err(|faults| format!("{text}\ndisassembled:\n{}\n{faults}", listing.text))?;
    let twice = listed(&again.object)?;
    match twice.text == listing.text {
        true => Ok(()),
        false => Err(format!("disassembled:\n{}\nand again:\n{}", listing.text, twice.text)),
    }
}

fn instruction(line: &str, arch: Arch) -> Result<(), String> {
    let Ok(parsed) = parse_inst(line, arch) else { return Ok(()) };
    if parsed.reference.is_some() || !is_readable(&parsed.inst) {
        return Ok(());
    }
    let words = |inst| {
        let mut words = Vec::new();
        encode(inst, arch, &mut words).map(|()| words).map_err(|error| format!("{line}: {error}"))
    };
    let before = words(&parsed.inst)?;
    let mut printed = String::new();
    write_inst(&mut printed, &parsed.inst, arch, None).map_err(|error| format!("{line}: {error}"))?;
    let again =
        parse_inst(&printed, arch).map_err(|error| format!("{line}\nprints as {printed}: {error}"))?;
    let after = words(&again.inst)?;
    match before == after {
        true => Ok(()),
        false => Err(format!("{line} is {before:08x?}, printed as {printed} it is {after:08x?}")),
    }
}

/// Inline floats in 16-bit integer sources print as their bits, which are a literal when read, and bits of
/// `s_waitcnt` that mean nothing are not printed: both as in LLVM.
fn is_readable(inst: &Inst) -> bool {
    const MEANT_BY_WAITCNT: u32 = 0xcf7f;
    let has_idle_bits = inst.op == Opcode::SWaitcnt && inst.imm & 0xffff & !MEANT_BY_WAITCNT != 0;
    !has_inline_float_of_16_bits(inst) && !has_idle_bits
}
