//! `groundswell asm`: assembler text to a code object.

use std::sync::Arc;

use groundswell::assembler::{AssemblerOptions, Note, assemble, assemble_in};
use groundswell::diagnostic::Location;
use groundswell::object::ObjectFile;
use groundswell::prelude::Diagnostic;
use serde_json::{Value, json};

use super::arguments::{Asm, target_named};
use super::failure::Failure;
use super::outcome::VerbOutcome;
use super::outputs::Files;
use super::snippet::NamedText;
use super::{inputs, standard_input};

/// The verb.
pub fn asm(arguments: &Asm, files: &mut Files) -> Result<VerbOutcome, Failure> {
    let path = &arguments.file;
    files.reads(path)?;
    let output = files.writes(&arguments.output)?;
    let target = arguments.target.as_deref().map(target_named).transpose()?;
    let text = inputs::read_text(path, inputs::ASSEMBLY)?;
    let name: Arc<str> = path.display().to_string().into();
    let options = AssemblerOptions { target };
    let assembled = match path.parent() {
        Some(folder) if !standard_input::is_named(path) => assemble_in(folder, &text, options),
        _ => assemble(&text, options),
    };
    let assembled = assembled.map_err(|faults| {
        let place = |line: usize, column: usize| {
            Some(Location { file: name.clone(), line: line as u32, column: column as u32 })
        };
        let diagnostics = faults
            .0
            .iter()
            .map(|fault| Diagnostic::invalid(fault.fault.to_string()).at(place(fault.line, fault.column)));
        Failure::of_source(diagnostics, NamedText { file: name.clone(), text: text.as_str().into() })
    })?;
    output.write(&assembled.object)?;
    let read = ObjectFile::parse(&assembled.object);
    let object = read.map_err(|error| Failure::file("read back", &arguments.output, &error))?;
    let kernels: Vec<&str> = object.kernels.iter().map(|kernel| kernel.name).collect();
    let mut shown = String::new();
    for Note { line, message } in &assembled.notes {
        shown.push_str(&format!("{name}:{line}: note: {message}\n"));
    }
    let (id, bytes) = (assembled.target, assembled.object.len());
    shown.push_str(&format!("{}: {bytes} bytes for {id}", output.name()));
    shown.push_str(&match kernels.len() {
        0 => ", without kernels\n".to_owned(),
        _ => format!(", kernels {}\n", kernels.join(", ")),
    });
    let notes: Vec<Value> =
        assembled.notes.iter().map(|note| json!({ "line": note.line, "message": note.message })).collect();
    let target = id.to_string();
    Ok(VerbOutcome::done(
        shown,
        json!({ "output": output.name(), "target": target, "bytes": bytes, "kernels": kernels, "notes": notes }),
    ))
}
