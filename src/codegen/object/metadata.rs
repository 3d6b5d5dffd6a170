//! The metadata note: what HIP and profilers know about a kernel (name, arguments, sizes).
//!
//! One walk decides what is written; it feeds the MessagePack of the object and the YAML of assembler text.
//! Keys are sorted, as LLVM writes them. The reader takes the keys that it knows and ignores others. Source:
//! LLVM's "User Guide for AMDGPU Backend", sections "Code Object V3 Metadata" to "Code Object V5 Metadata".

use super::KernelInfo;
use super::msgpack::{self, Malformed, MessagePackValue};
use crate::codegen::target::TargetId;
use std::fmt::Write;
use std::sync::Arc;

/// One argument of a kernel.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct ArgumentInfo {
    /// Name, empty if it has none.
    pub name: String,
    /// Size in bytes.
    pub size: u32,
    /// Offset in the kernarg segment.
    pub offset: u32,
    /// How it is passed.
    pub kind: ArgumentKind,
    /// What the kernel does to the memory that a pointer points to.
    pub access: Option<Access>,
}

/// How an argument is passed.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum ArgumentKind {
    /// The value itself.
    ByValue,
    /// A pointer to global memory.
    GlobalBuffer,
    /// Anything else, by its name in the metadata: `hidden_block_count_x` and other values that the runtime
    /// fills in, images, LDS pointers.
    Other(String),
}

impl ArgumentKind {
    /// Its name in the metadata.
    pub fn name(&self) -> &str {
        match self {
            ArgumentKind::ByValue => "by_value",
            ArgumentKind::GlobalBuffer => "global_buffer",
            ArgumentKind::Other(name) => name,
        }
    }

    fn from_name(name: &str) -> ArgumentKind {
        match name {
            "by_value" => ArgumentKind::ByValue,
            "global_buffer" => ArgumentKind::GlobalBuffer,
            _ => ArgumentKind::Other(name.to_owned()),
        }
    }
}

/// What a kernel does to the memory that a pointer points to.
#[derive(Copy, Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs)]
pub enum Access {
    ReadOnly,
    WriteOnly,
    ReadWrite,
}

impl Access {
    const ALL: [Access; 3] = [Access::ReadOnly, Access::WriteOnly, Access::ReadWrite];

    /// Its name in the metadata.
    pub const fn name(self) -> &'static str {
        match self {
            Access::ReadOnly => "read_only",
            Access::WriteOnly => "write_only",
            Access::ReadWrite => "read_write",
        }
    }
}

/// The workgroups that a kernel may be launched with.
#[derive(Copy, Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum WorkgroupSize {
    /// This shape only.
    Exactly([u32; 3]),
    /// Any shape of at most so many work-items.
    AtMost(u32),
}

impl WorkgroupSize {
    /// Most work-items of a workgroup.
    pub fn max(self) -> u32 {
        match self {
            WorkgroupSize::Exactly(shape) => shape.into_iter().fold(1, u32::saturating_mul),
            WorkgroupSize::AtMost(size) => size,
        }
    }
}

/// A kernel's entry in the metadata.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelMetadata {
    /// Name of the function.
    pub name: String,
    /// Name of the descriptor's symbol.
    pub symbol: String,
    /// Arguments, including those that the runtime fills in.
    pub arguments: Arc<[ArgumentInfo]>,
    /// Static LDS of a workgroup.
    pub group_segment_fixed_size: u32,
    /// Alignment of the kernarg segment.
    pub kernarg_segment_align: u32,
    /// Size of the kernarg segment.
    pub kernarg_segment_size: u32,
    /// Scratch of a work-item.
    pub private_segment_fixed_size: u32,
    /// Lanes of a wave.
    pub wavefront_size: u32,
    /// SGPRs of a wave, reserved ones included.
    pub sgpr_count: u32,
    /// VGPRs of a wave: of the unified file, AGPRs included, or of the larger one of two files.
    pub vgpr_count: u32,
    /// AGPRs of a wave.
    pub agpr_count: u32,
    /// The workgroups that it may be launched with.
    pub workgroup_size: WorkgroupSize,
}

impl KernelMetadata {
    /// The entry of one of our kernels.
    pub fn new(target: impl Into<TargetId>, info: &KernelInfo) -> KernelMetadata {
        let target = target.into();
        KernelMetadata {
            name: info.name.clone(),
            symbol: format!("{}.kd", info.name),
            arguments: info.arguments.clone(),
            group_segment_fixed_size: info.resources.lds_bytes,
            kernarg_segment_align: kernarg_align(&info.arguments),
            kernarg_segment_size: info.resources.kernarg_bytes,
            private_segment_fixed_size: info.resources.scratch_bytes,
            wavefront_size: target.wave_size,
            sgpr_count: info.resources.total_sgprs(target),
            vgpr_count: info.resources.total_vgprs(target),
            agpr_count: info.resources.agprs,
            workgroup_size: info.workgroup_size,
        }
    }
}

/// Alignment of the segment: the strictest of its arguments, each aligned to its size, and at least that of a
/// dword.
fn kernarg_align(arguments: &[ArgumentInfo]) -> u32 {
    let align = |argument: &ArgumentInfo| 1 << argument.size.max(1).trailing_zeros().min(4);
    arguments.iter().map(align).fold(4, u32::max)
}

/// The MessagePack description of the note, after `prefix`.
pub(super) fn to_message_pack(prefix: &[u8], target: TargetId, kernels: &[KernelMetadata]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(prefix.len() + 512 * (kernels.len() + 1));
    bytes.extend_from_slice(prefix);
    emit(&mut bytes, target, kernels);
    bytes
}

/// The `.amdgpu_metadata` block of assembler text.
pub(crate) fn to_yaml(target: impl Into<TargetId>, kernels: &[KernelMetadata]) -> String {
    let mut sink = Yaml { text: String::from(".amdgpu_metadata\n---"), levels: Vec::new() };
    emit(&mut sink, target.into(), kernels);
    sink.text.push_str("\n...\n.end_amdgpu_metadata\n");
    sink.text
}

/// The output of metadata. A value is a number, a text, or an array or map with as many elements as it says,
/// followed by `end`; in a map each element is a key and a value.
trait Sink {
    fn number(&mut self, value: u32);
    fn text(&mut self, value: &str);
    fn array(&mut self, length: usize);
    fn map(&mut self, length: usize);
    fn key(&mut self, key: &'static str);
    fn end(&mut self);
}

/// A value of one of the metadata's maps.
enum MetadataItem<'a> {
    Number(u32),
    Text(&'a str),
    Numbers(&'a [u32]),
    Arguments(&'a [ArgumentInfo]),
    Kernels(&'a [KernelMetadata]),
}

fn emit(sink: &mut impl Sink, target: TargetId, kernels: &[KernelMetadata]) {
    // Of the metadata: code object versions 5 and 6 have the same.
    const VERSION: [u32; 2] = [1, 2];
    emit_map(
        sink,
        &[
            ("amdhsa.kernels", Some(MetadataItem::Kernels(kernels))),
            ("amdhsa.target", Some(MetadataItem::Text(&target.with_triple()))),
            ("amdhsa.version", Some(MetadataItem::Numbers(&VERSION))),
        ],
    );
}

fn emit_kernel(sink: &mut impl Sink, kernel: &KernelMetadata) {
    let arguments = Some(MetadataItem::Arguments(&kernel.arguments)).filter(|_| !kernel.arguments.is_empty());
    let shape = match &kernel.workgroup_size {
        WorkgroupSize::Exactly(shape) => Some(MetadataItem::Numbers(shape)),
        WorkgroupSize::AtMost(_) => None,
    };
    emit_map(
        sink,
        &[
            (".agpr_count", Some(MetadataItem::Number(kernel.agpr_count))),
            (".args", arguments),
            (".group_segment_fixed_size", Some(MetadataItem::Number(kernel.group_segment_fixed_size))),
            (".kernarg_segment_align", Some(MetadataItem::Number(kernel.kernarg_segment_align))),
            (".kernarg_segment_size", Some(MetadataItem::Number(kernel.kernarg_segment_size))),
            (".max_flat_workgroup_size", Some(MetadataItem::Number(kernel.workgroup_size.max()))),
            (".name", Some(MetadataItem::Text(&kernel.name))),
            (".private_segment_fixed_size", Some(MetadataItem::Number(kernel.private_segment_fixed_size))),
            (".reqd_workgroup_size", shape),
            (".sgpr_count", Some(MetadataItem::Number(kernel.sgpr_count))),
            (".symbol", Some(MetadataItem::Text(&kernel.symbol))),
            (".vgpr_count", Some(MetadataItem::Number(kernel.vgpr_count))),
            (".wavefront_size", Some(MetadataItem::Number(kernel.wavefront_size))),
        ],
    );
}

fn emit_argument(sink: &mut impl Sink, argument: &ArgumentInfo) {
    let address_space = match argument.kind {
        ArgumentKind::GlobalBuffer => Some(MetadataItem::Text("global")),
        ArgumentKind::ByValue | ArgumentKind::Other(_) => None,
    };
    emit_map(
        sink,
        &[
            (".actual_access", argument.access.map(|access| MetadataItem::Text(access.name()))),
            (".address_space", address_space),
            (".name", Some(MetadataItem::Text(&argument.name)).filter(|_| !argument.name.is_empty())),
            (".offset", Some(MetadataItem::Number(argument.offset))),
            (".size", Some(MetadataItem::Number(argument.size))),
            (".value_kind", Some(MetadataItem::Text(argument.kind.name()))),
        ],
    );
}

/// Writes the entries that have a value; they are listed in the order of their keys.
fn emit_map(sink: &mut impl Sink, entries: &[(&'static str, Option<MetadataItem>)]) {
    debug_assert!(entries.is_sorted_by_key(|(key, _)| key));
    let present = entries.iter().filter_map(|(key, item)| Some((key, item.as_ref()?)));
    sink.map(present.clone().count());
    for (key, item) in present {
        sink.key(key);
        match item {
            MetadataItem::Number(number) => sink.number(*number),
            MetadataItem::Text(text) => sink.text(text),
            MetadataItem::Numbers(numbers) => emit_array(sink, numbers, |sink, number| sink.number(*number)),
            MetadataItem::Arguments(arguments) => emit_array(sink, arguments, emit_argument),
            MetadataItem::Kernels(kernels) => emit_array(sink, kernels, emit_kernel),
        }
    }
    sink.end();
}

fn emit_array<S: Sink, T>(sink: &mut S, elements: &[T], emit: impl Fn(&mut S, &T)) {
    sink.array(elements.len());
    elements.iter().for_each(|element| emit(sink, element));
    sink.end();
}

/// MessagePack.
impl Sink for Vec<u8> {
    fn number(&mut self, value: u32) {
        msgpack::write_unsigned(self, value.into());
    }

    fn text(&mut self, value: &str) {
        msgpack::write_text(self, value);
    }

    fn array(&mut self, length: usize) {
        msgpack::write_array(self, length);
    }

    fn map(&mut self, length: usize) {
        msgpack::write_map(self, length);
    }

    fn key(&mut self, key: &'static str) {
        self.text(key);
    }

    fn end(&mut self) {}
}

struct Yaml {
    text: String,
    levels: Vec<YamlLevel>,
}

/// An open array or map of the YAML text: its indentation, and whether the next key still belongs on the line
/// of the dash that opened it.
struct YamlLevel {
    is_array: bool,
    indent: usize,
    on_dash_line: bool,
}

impl Yaml {
    /// Starts a scalar: after its key, or after a dash of its own.
    fn lead(&mut self) {
        match self.levels.last() {
            Some(level) if level.is_array => {
                let indent = level.indent;
                self.start_line(indent, "- ");
            }
            _ => self.text.push(' '),
        }
    }

    fn start_line(&mut self, indent: usize, lead: &str) {
        // Writing to a string cannot fail.
        let _ = write!(self.text, "\n{:indent$}{lead}", "");
    }
}

impl Sink for Yaml {
    fn number(&mut self, value: u32) {
        self.lead();
        let _ = write!(self.text, "{value}");
    }

    fn text(&mut self, value: &str) {
        self.lead();
        // The tag keeps LLVM from taking `inf`, `true` or `12` for anything but a string.
        self.text.push_str("!str \"");
        for c in value.chars() {
            let _ = match c {
                '"' | '\\' => write!(self.text, "\\{c}"),
                '\0'..='\x1f' | '\x7f' => write!(self.text, "\\x{:02x}", u32::from(c)),
                _ => write!(self.text, "{c}"),
            };
        }
        self.text.push('"');
    }

    fn array(&mut self, length: usize) {
        if length == 0 {
            self.text.push_str(" []");
        }
        let indent = self.levels.last().map_or(0, |level| level.indent + 2);
        self.levels.push(YamlLevel { is_array: true, indent, on_dash_line: false });
    }

    fn map(&mut self, _length: usize) {
        let parent = self.levels.last().map(|level| level.indent);
        if let Some(indent) = parent {
            self.start_line(indent, "- ");
        }
        let indent = parent.map_or(0, |indent| indent + 2);
        self.levels.push(YamlLevel { is_array: false, indent, on_dash_line: parent.is_some() });
    }

    fn key(&mut self, key: &'static str) {
        let on_dash_line =
            self.levels.last_mut().is_some_and(|level| std::mem::take(&mut level.on_dash_line));
        if !on_dash_line {
            let indent = self.levels.last().map_or(0, |level| level.indent);
            self.start_line(indent, "");
        }
        let _ = write!(self.text, "{key}:");
    }

    fn end(&mut self) {
        self.levels.pop();
    }
}

/// What is wrong with metadata.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum BadMetadata {
    /// The bytes are not MessagePack.
    Malformed(Malformed),
    /// A key is missing or its value has the wrong type.
    Key(&'static str),
}

/// The kernels of a note's description.
pub(super) fn from_message_pack(bytes: &[u8]) -> Result<Vec<KernelMetadata>, BadMetadata> {
    let root = MessagePackValue::parse(bytes).map_err(BadMetadata::Malformed)?;
    let Some(MessagePackValue::Array(kernels)) = root.get("amdhsa.kernels") else {
        return Err(BadMetadata::Key("amdhsa.kernels"));
    };
    kernels.iter().map(kernel_from).collect()
}

fn kernel_from(map: &MessagePackValue) -> Result<KernelMetadata, BadMetadata> {
    let arguments = match map.get(".args") {
        None => [].into(),
        Some(MessagePackValue::Array(arguments)) => {
            arguments.iter().map(argument_from).collect::<Result<_, _>>()?
        }
        Some(_) => return Err(BadMetadata::Key(".args")),
    };
    // Zeros also mean "no requirement".
    let required = map.get(".reqd_workgroup_size").map(shape_from).transpose()?;
    let workgroup_size = match required.filter(|shape| *shape != [0; 3]) {
        None => WorkgroupSize::AtMost(number(map, ".max_flat_workgroup_size")?),
        Some(shape) => WorkgroupSize::Exactly(shape),
    };
    Ok(KernelMetadata {
        name: text(map, ".name")?,
        symbol: text(map, ".symbol")?,
        arguments,
        group_segment_fixed_size: number(map, ".group_segment_fixed_size")?,
        kernarg_segment_align: number(map, ".kernarg_segment_align")?,
        kernarg_segment_size: number(map, ".kernarg_segment_size")?,
        private_segment_fixed_size: number(map, ".private_segment_fixed_size")?,
        wavefront_size: number(map, ".wavefront_size")?,
        sgpr_count: number(map, ".sgpr_count")?,
        vgpr_count: number(map, ".vgpr_count")?,
        agpr_count: if map.get(".agpr_count").is_some() { number(map, ".agpr_count")? } else { 0 },
        workgroup_size,
    })
}

fn argument_from(map: &MessagePackValue) -> Result<ArgumentInfo, BadMetadata> {
    let access = map.get(".actual_access").or_else(|| map.get(".access"));
    Ok(ArgumentInfo {
        name: if map.get(".name").is_some() { text(map, ".name")? } else { String::new() },
        size: number(map, ".size")?,
        offset: number(map, ".offset")?,
        kind: ArgumentKind::from_name(&text(map, ".value_kind")?),
        access: Access::ALL.into_iter().find(|known| access == Some(&MessagePackValue::Text(known.name()))),
    })
}

fn shape_from(value: &MessagePackValue) -> Result<[u32; 3], BadMetadata> {
    let bad = BadMetadata::Key(".reqd_workgroup_size");
    let MessagePackValue::Array(elements) = value else { return Err(bad) };
    let [MessagePackValue::Integer(x), MessagePackValue::Integer(y), MessagePackValue::Integer(z)] =
        elements[..]
    else {
        return Err(bad);
    };
    match [x, y, z].map(u32::try_from) {
        [Ok(x), Ok(y), Ok(z)] => Ok([x, y, z]),
        _ => Err(bad),
    }
}

fn number(map: &MessagePackValue, key: &'static str) -> Result<u32, BadMetadata> {
    match map.get(key) {
        Some(MessagePackValue::Integer(value)) => u32::try_from(*value).map_err(|_| BadMetadata::Key(key)),
        _ => Err(BadMetadata::Key(key)),
    }
}

fn text(map: &MessagePackValue, key: &'static str) -> Result<String, BadMetadata> {
    match map.get(key) {
        Some(MessagePackValue::Text(value)) => Ok((*value).to_owned()),
        _ => Err(BadMetadata::Key(key)),
    }
}
