//! `groundswell disasm`: a code object as text that `asm` takes, or a list of those in a program. Objects can
//! be large, and their texts are twenty times as large: both forms go to standard output while they are made.

use std::cell::Cell;
use std::io::{self, BufWriter, Write};

use groundswell::assembler::Disassembly;
use groundswell::isa::Arch;
use groundswell::object::{DeviceCode, ObjectFile, ObjectKernel};
use groundswell::prelude::Diagnostic;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Value, json};

use super::arguments::Disasm;
use super::failure::Failure;
use super::host_code::{HostListing, ObjectChoice};
use super::inputs::DeviceFile;
use super::outcome::VerbOutcome;
use super::outputs::{Files, OutputFile, to_standard_output};
use super::{inputs, listing};

/// The verb.
pub fn disasm(arguments: &Disasm, files: &mut Files) -> Result<VerbOutcome, Failure> {
    let path = &arguments.file;
    files.reads(path)?;
    let output = arguments.output.as_deref().map(|output| files.writes(output)).transpose()?;
    let choice = ObjectChoice {
        target: arguments.target.as_deref(),
        kernel: arguments.kernel.as_deref(),
        number: arguments.object,
    };
    let input = inputs::read_device_file(path)?;
    if let DeviceFile::Host(bytes) = &input
        && choice.is_open()
    {
        return list(&HostListing::new(path, DeviceCode::find(bytes)), output.as_ref());
    }
    let bytes = inputs::object_of(&input, path, choice)?;
    let bytes = &*bytes;
    let object = ObjectFile::parse(bytes).map_err(|error| Failure::file("disassemble", path, &error))?;
    if let Some(kernel) = choice.kernel.filter(|kernel| object.kernel(kernel).is_none()) {
        let text = format!("{} has no kernel `{kernel}`", path.display());
        return Err(Failure::usage(Diagnostic::invalid(text)));
    }
    let listing = Disassembly::new(bytes).map_err(|error| Failure::file("disassemble", path, &error))?;
    let text = |out: &mut dyn Write| {
        let mut out = BufWriter::new(out);
        let name = path.file_name().map(|name| name.to_string_lossy().replace(char::is_control, " "));
        writeln!(out, "// {}: {} code object", name.unwrap_or_default(), object.target)?;
        for note in listing.notes() {
            writeln!(out, "// {note}")?;
        }
        write!(out, "{listing}")?;
        out.flush()
    };
    match (&output, arguments.json) {
        (Some(output), _) => output.write_with(text)?,
        (None, false) => to_standard_output(text)
            .map_err(|error: io::Error| Failure::unwritable(&"standard output", &error))?,
        (None, true) => {}
    }
    if arguments.json {
        let written = to_standard_output(|out| {
            let mut out = BufWriter::new(out);
            serde_json::to_writer(&mut out, &WrittenObject { object: &object, listing: &listing })?;
            out.write_all(b"\n")?;
            out.flush()
        });
        written.map_err(|error: io::Error| Failure::unwritable(&"standard output", &error))?;
    }
    Ok(VerbOutcome::written())
}

/// Shows the list of the device code in a file of the host.
fn list(listing: &HostListing<'_>, output: Option<&OutputFile>) -> Result<VerbOutcome, Failure> {
    let text = listing.text();
    let shown = match output {
        Some(output) => {
            output.write(text.as_bytes())?;
            String::new()
        }
        None => text,
    };
    Ok(VerbOutcome::done(shown, listing.json()))
}

/// The object for scripts.
struct WrittenObject<'a> {
    object: &'a ObjectFile<'a>,
    listing: &'a Disassembly<'a>,
}

impl Serialize for WrittenObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let arch = self.object.target.arch;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("target", self.object.target.name)?;
        map.serialize_entry("kernels", &Kernels(&self.object.kernels, arch))?;
        map.serialize_entry("text", &Shown(self.listing))?;
        map.serialize_entry("notes", self.listing.notes())?;
        map.end()
    }
}

/// An object as its text, which is never in memory as a whole.
struct Shown<'a>(&'a Disassembly<'a>);

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self.0)
    }
}

struct Kernels<'a>(&'a [ObjectKernel<'a>], Arch);

impl Serialize for Kernels<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|kernel| OneKernel(kernel, self.1)))
    }
}

struct OneKernel<'a>(&'a ObjectKernel<'a>, Arch);

impl Serialize for OneKernel<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let OneKernel(kernel, arch) = *self;
        let metadata = kernel.metadata.as_ref().map(|m| {
            json!({
                "vgprs": m.vgpr_count, "agprs": m.agpr_count, "sgprs": m.sgpr_count,
                "lds_bytes": m.group_segment_fixed_size, "scratch_bytes": m.private_segment_fixed_size,
                "kernarg_bytes": m.kernarg_segment_size,
            })
        });
        let words = kernel.code.as_chunks::<4>().0.iter();
        let code: Vec<u32> = words.map(|&word| u32::from_le_bytes(word)).collect();
        let unknown = Cell::new(0u64);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", kernel.name)?;
        map.serialize_entry("code_bytes", &kernel.code.len())?;
        map.serialize_entry("metadata", &metadata.unwrap_or(Value::Null))?;
        map.serialize_entry("instructions", &Instructions { code: &code, arch, unknown: &unknown })?;
        // Known once all of them were seen.
        map.serialize_entry("unknown", &unknown.get())?;
        map.end()
    }
}

struct Instructions<'a> {
    code: &'a [u32],
    arch: Arch,
    unknown: &'a Cell<u64>,
}

impl Serialize for Instructions<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(None)?;
        for line in listing::lines(self.code, self.arch) {
            self.unknown.set(self.unknown.get() + u64::from(!line.known));
            sequence.serialize_element(&json!({ "offset": line.offset, "text": line.text }))?;
        }
        sequence.end()
    }
}
