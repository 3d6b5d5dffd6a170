//! `groundswell disasm`: a code object as text that `asm` takes.

use groundswell::codegen::assembler::disassemble;
use groundswell::codegen::isa::Arch;
use groundswell::codegen::object::{Kernel, ObjectFile};
use serde_json::{Value, json};

use super::arguments::Disasm;
use super::failure::Failure;
use super::listing;
use super::outcome::Outcome;

/// The verb.
pub fn disasm(arguments: &Disasm) -> Result<Outcome, Failure> {
    let path = &arguments.file;
    let bytes = std::fs::read(path).map_err(|error| Failure::file("read", path, &error))?;
    let object = ObjectFile::parse(&bytes).map_err(|error| Failure::file("disassemble", path, &error))?;
    let listing = disassemble(&bytes).map_err(|error| Failure::file("disassemble", path, &error))?;
    let name = path.file_name().map(|name| name.to_string_lossy().replace(char::is_control, " "));
    let mut text = format!("// {}: {} code object\n", name.unwrap_or_default(), object.target);
    for note in &listing.notes {
        text.push_str(&format!("// {note}\n"));
    }
    text.push_str(&listing.text);
    let kernels: Vec<Value> = object
        .kernels
        .iter()
        .map(|kernel| {
            let words = kernel.code.as_chunks::<4>().0.iter();
            let code: Vec<u32> = words.map(|&word| u32::from_le_bytes(word)).collect();
            json(kernel, &code, object.target.arch)
        })
        .collect();
    Ok(Outcome::done(
        text,
        json!({
            "target": object.target.name, "kernels": kernels, "text": listing.text, "notes": listing.notes,
        }),
    ))
}

fn json(kernel: &Kernel, code: &[u32], arch: Arch) -> Value {
    let lines = listing::lines(code, arch);
    let unknown = lines.iter().filter(|line| !line.known).count();
    let instructions: Vec<Value> =
        lines.iter().map(|line| json!({ "offset": line.offset, "text": line.text })).collect();
    let metadata = kernel.metadata.as_ref().map(|m| {
        json!({
            "vgprs": m.vgpr_count, "agprs": m.agpr_count, "sgprs": m.sgpr_count,
            "lds_bytes": m.group_segment_fixed_size, "scratch_bytes": m.private_segment_fixed_size,
            "kernarg_bytes": m.kernarg_segment_size,
        })
    });
    json!({
        "name": kernel.name,
        "code_bytes": kernel.code.len(),
        "metadata": metadata,
        "unknown": unknown,
        "instructions": instructions,
    })
}
