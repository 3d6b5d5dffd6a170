//! `groundswell disasm`: what is in a code object.

use std::fmt::Write;

use groundswell::codegen::isa::Arch;
use groundswell::codegen::object::{ArgumentKind, Kernel, ObjectFile};
use serde_json::{Value, json};

use super::arguments::Disasm;
use super::failure::Failure;
use super::listing;
use super::outcome::Outcome;
use super::terminal::{Style, paint};

/// The verb.
pub fn disasm(arguments: &Disasm) -> Result<Outcome, Failure> {
    let path = &arguments.file;
    let bytes = std::fs::read(path).map_err(|error| Failure::file("read", path, &error))?;
    let object = ObjectFile::parse(&bytes).map_err(|error| Failure::file("disassemble", path, &error))?;
    let mut text = format!("{}: {} code object\n", path.display(), object.target);
    let mut kernels = Vec::new();
    for kernel in &object.kernels {
        let code: Vec<u32> =
            kernel.code.as_chunks::<4>().0.iter().map(|&word| u32::from_le_bytes(word)).collect();
        let _ = writeln!(text, "\n{}", paint(Style::Bold, &format!("{}:", kernel.name)));
        text.push_str(&facts(kernel));
        text.push_str(&listing::text(&code, object.target.arch));
        kernels.push(json(kernel, &code, object.target.arch));
    }
    Ok(Outcome::done(text, json!({ "target": object.target.name, "kernels": kernels })))
}

/// What the metadata says, as comments.
fn facts(kernel: &Kernel) -> String {
    let mut text = String::new();
    let Some(metadata) = &kernel.metadata else { return text };
    let _ = writeln!(
        text,
        "; {} VGPRs ({} of them AGPRs), {} SGPRs, {} bytes of LDS, {} bytes of scratch, {} bytes of kernel arguments",
        metadata.vgpr_count,
        metadata.agpr_count,
        metadata.sgpr_count,
        metadata.group_segment_fixed_size,
        metadata.private_segment_fixed_size,
        metadata.kernarg_segment_size
    );
    for argument in metadata.arguments.iter() {
        // What the runtime fills in is many and the same for every kernel.
        if !matches!(argument.kind, ArgumentKind::Other(_)) {
            let (offset, size, kind) = (argument.offset, argument.size, argument.kind.name());
            let _ = writeln!(text, "; argument at {offset:3}, {size} bytes: {kind} {}", argument.name);
        }
    }
    text
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
