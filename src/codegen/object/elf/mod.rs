//! The ELF writer: kernels in, the bytes of a code object out.
//!
//! A *loadable* object (`loadable`) is what runtimes take: everything is resolved, so there are no
//! relocations. A *relocatable* one (`relocatable`) is what a linker takes to make a loadable one of several.
//! Both consist of the same parts, which are made here; the file around them is an `image`. Numbers: the
//! generic ELF specification, and LLVM's "User Guide for AMDGPU Backend", section "ELF Code Object".

mod assembled;
mod image;
mod loadable;
mod relocatable;

use std::borrow::Cow;

pub(in crate::codegen) use assembled::{
    AddressRelocation, Assembly, AssemblySection, AssemblySymbol, PlacedFile, SymbolHome,
};

use super::KernelInfo;
use super::descriptor::KernelDescriptor;
use super::kernel_code::KernelCode;
use super::metadata::{KernelMetadata, to_message_pack};
use super::resources::ResourceError;
use crate::codegen::target::{ObjectVersion, Target, TargetId};
use image::{ALLOC, EXECUTE, SectionHeader, SectionKind};
use smallvec::SmallVec;
use thiserror::Error;

/// What kind of object is written.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default, serde::Serialize, serde::Deserialize)]
pub enum ObjectForm {
    /// For runtimes to load (`ET_DYN`).
    #[default]
    Loadable,
    /// For a linker, which makes one loadable object of several (`ET_REL`): `ld.lld -shared`.
    Relocatable,
}

/// How an object is written.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
pub struct ObjectOptions {
    /// The chip and the modes that it is for.
    pub target: TargetId,
    /// Version of the format.
    pub version: ObjectVersion,
    /// Who it is for.
    pub form: ObjectForm,
}

impl<T: Into<TargetId>> From<T> for ObjectOptions {
    /// A loadable object of the target's usual version.
    fn from(target: T) -> ObjectOptions {
        let target = target.into();
        ObjectOptions { target, version: target.target().object_version(), form: ObjectForm::default() }
    }
}

/// Why kernels cannot become an object.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum WriteError {
    /// A name that is not a valid symbol for assemblers and linkers.
    #[error(
        "kernel name {name:?} is not a symbol: letters, digits, `_`, `.` and `$` may follow a letter or `_`"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// Two kernels of one name.
    #[error("two kernels are named {name:?}")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// The target lacks something that the kernel needs.
    #[error("kernel {name:?}: {source}")]
    Resources {
        /// The kernel.
        name: String,
        /// What it lacks.
        source: ResourceError,
    },
    /// A workgroup that is empty or larger than the target's.
    #[error("kernel {name:?}: workgroups of {size} work-items, {target} has 1 to {limit}", limit = target.max_workgroup_size)]
    WorkgroupSize {
        /// The kernel.
        name: String,
        /// Work-items of its workgroups.
        size: u32,
        /// The target.
        target: Target,
    },
    /// The debug sections could not be written.
    #[error("debug sections: {reason}")]
    Lines {
        /// Why.
        reason: String,
    },
}

/// Checks a kernel and derives its descriptor.
pub(super) fn describe(target: TargetId, info: &KernelInfo) -> Result<KernelDescriptor, WriteError> {
    let name = || info.name.clone();
    let first = info.name.bytes().next();
    if !first.is_some_and(|c| c.is_ascii_alphabetic() || c == b'_')
        || !info.name.bytes().all(|c| c.is_ascii_alphanumeric() || b"_.$".contains(&c))
    {
        return Err(WriteError::Name { name: name() });
    }
    let size = info.workgroup_size.max();
    if size == 0 || size > target.max_workgroup_size {
        return Err(WriteError::WorkgroupSize { name: name(), size, target: *target });
    }
    KernelDescriptor::new(target, &info.resources)
        .map_err(|source| WriteError::Resources { name: name(), source })
}

/// Checks that no two kernels share a name, and that no kernel's function has the name of another's
/// descriptor.
pub(super) fn check_names<'a>(infos: impl Iterator<Item = &'a KernelInfo>) -> Result<(), WriteError> {
    let mut names: SmallVec<[&str; 8]> = infos.map(|info| info.name.as_str()).collect();
    names.sort_unstable();
    let twice = names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
    let is_descriptor =
        |name: &&str| name.strip_suffix(".kd").is_some_and(|kernel| names.binary_search(&kernel).is_ok());
    match twice.or_else(|| names.iter().copied().find(is_descriptor)) {
        None => Ok(()),
        Some(name) => Err(WriteError::Duplicate { name: name.to_owned() }),
    }
}

/// Kernels begin at multiples of this.
const KERNEL_ALIGN: u64 = 256;

/// Instruction fetch runs ahead of the program counter: LLVM ends the code of CDNA targets with 16 cache
/// lines of `s_nop 0` after the current one (`AMDGPUTargetELFStreamer::EmitCodeEnd`).
const FETCH_LINE: u64 = 64;
pub(super) const FETCH_PADDING: u64 = 16 * FETCH_LINE;
const S_NOP: [u8; 4] = 0xbf80_0000u32.to_le_bytes();

/// The bytes of a code object with these kernels. Equal input gives equal bytes.
///
/// # Errors
/// A name that is not a symbol or occurs twice, or a kernel that needs more than the target has.
pub fn write(options: impl Into<ObjectOptions>, kernels: &[KernelCode<'_>]) -> Result<Vec<u8>, WriteError> {
    let options = options.into();
    let parts = ObjectParts::new(options, kernels)?;
    let written = match options.form {
        ObjectForm::Loadable => loadable::write(parts),
        ObjectForm::Relocatable => relocatable::write(parts),
    };
    written.map_err(|error| WriteError::Lines { reason: error.to_string() })
}

/// The parts of both forms of an object.
struct ObjectParts<'a> {
    options: ObjectOptions,
    kernels: &'a [KernelCode<'a>],
    descriptors: SmallVec<[KernelDescriptor; 1]>,
    note: Vec<u8>,
    text: Vec<u8>,
    /// Where each kernel begins in the text.
    offsets: SmallVec<[u64; 1]>,
    /// The string table: for each kernel the name of its function and of its descriptor.
    strings: Vec<u8>,
}

impl<'a> ObjectParts<'a> {
    fn new(options: ObjectOptions, kernels: &'a [KernelCode<'a>]) -> Result<ObjectParts<'a>, WriteError> {
        check_names(kernels.iter().map(|kernel| kernel.info))?;
        let target = options.target;
        let mut descriptors = SmallVec::with_capacity(kernels.len());
        let mut metadata: SmallVec<[KernelMetadata; 1]> = SmallVec::with_capacity(kernels.len());
        let mut strings =
            Vec::with_capacity(1 + kernels.iter().map(|k| 2 * k.info.name.len() + 5).sum::<usize>());
        strings.push(0);
        for kernel in kernels {
            descriptors.push(describe(target, kernel.info)?);
            metadata.push(KernelMetadata::new(target, kernel.info));
            for suffix in ["\0", ".kd\0"] {
                strings.extend_from_slice(kernel.info.name.as_bytes());
                strings.extend_from_slice(suffix.as_bytes());
            }
        }
        let note = note(target, &metadata);
        let (text, offsets) = text(kernels);
        Ok(ObjectParts { options, kernels, descriptors, note, text, offsets, strings })
    }

    /// Approximate number of bytes of all parts.
    fn size(&self) -> usize {
        self.note.len()
            + self.text.len()
            + self.kernels.len() * super::descriptor::DESCRIPTOR_SIZE
            + 2 * self.strings.len()
    }

    /// True if one of the kernels has lines.
    fn has_lines(&self) -> bool {
        self.kernels.iter().any(|kernel| kernel.lines.is_some())
    }

    fn header(&self, e_type: u16) -> image::Header {
        let abi_version = self.options.version.abi_version();
        image::Header { abi_version, e_type, e_flags: self.options.target.elf_flags() }
    }

    /// Offsets of the names of each kernel's function and descriptor in the string table.
    fn names(&self) -> impl Iterator<Item = (u32, u32)> {
        self.kernels.iter().scan(1, |next, kernel| {
            let function = *next;
            let descriptor = function + kernel.info.name.len() as u32 + 1;
            *next = descriptor + kernel.info.name.len() as u32 + 4;
            Some((function, descriptor))
        })
    }
}

// Sections that both forms have.
const NOTE: SectionHeader = SectionHeader::bytes(".note", SectionKind::Note, ALLOC, 4);
const RODATA: SectionHeader = SectionHeader::bytes(".rodata", SectionKind::ProgBits, ALLOC, 64);
const TEXT: SectionHeader =
    SectionHeader::bytes(".text", SectionKind::ProgBits, ALLOC | EXECUTE, KERNEL_ALIGN);
const SYMTAB: SectionHeader = SectionHeader {
    name: Cow::Borrowed(".symtab"),
    kind: SectionKind::SymTab,
    flags: 0,
    align: 8,
    entry_size: image::SYMBOL_SIZE,
};
const STRTAB: SectionHeader = SectionHeader::bytes(".strtab", SectionKind::StrTab, 0, 1);

/// A debug section; those of strings may be merged by a linker.
fn debug_section(id: gimli::SectionId) -> SectionHeader {
    let (flags, entry_size) = match id {
        gimli::SectionId::DebugStr | gimli::SectionId::DebugLineStr => (image::MERGE | image::STRINGS, 1),
        _ => (0, 0),
    };
    SectionHeader { name: Cow::Borrowed(id.name()), kind: SectionKind::ProgBits, flags, align: 1, entry_size }
}

const OWNER: &[u8; 8] = b"AMDGPU\0\0";
/// Sizes, type and owner in front of the description.
const NOTE_HEADER: usize = 12 + OWNER.len();

/// The metadata note of these kernels.
fn note(target: TargetId, metadata: &[KernelMetadata]) -> Vec<u8> {
    complete_note(to_message_pack(&[0; NOTE_HEADER], target, metadata))
}

/// The metadata note with this description.
fn note_of(description: &[u8]) -> Vec<u8> {
    complete_note([&[0; NOTE_HEADER], description].concat())
}

/// Fills the header in and pads the description to four bytes.
fn complete_note(mut note: Vec<u8>) -> Vec<u8> {
    const NT_AMDGPU_METADATA: u32 = 32;
    let description = (note.len() - NOTE_HEADER) as u32;
    for (place, number) in [OWNER.len() as u32 - 1, description, NT_AMDGPU_METADATA].into_iter().enumerate() {
        note[4 * place..][..4].copy_from_slice(&number.to_le_bytes());
    }
    note[NOTE_HEADER - OWNER.len()..NOTE_HEADER].copy_from_slice(OWNER);
    note.resize(note.len().next_multiple_of(4), 0);
    note
}

/// The code of all kernels, each at its alignment, with `s_nop` between them and after the last; and where
/// each begins.
fn text(kernels: &[KernelCode<'_>]) -> (Vec<u8>, SmallVec<[u64; 1]>) {
    let size: usize = kernels.iter().map(|k| k.code.len() + KERNEL_ALIGN as usize).sum();
    let mut text = Vec::with_capacity(size + (FETCH_LINE + FETCH_PADDING) as usize);
    let fill = |text: &mut Vec<u8>, align: u64, more: u64| {
        let start = text.len();
        let end = start.next_multiple_of(align as usize) + more as usize;
        text.extend((start..end).map(|at| S_NOP[at % S_NOP.len()]));
    };
    let mut offsets = SmallVec::with_capacity(kernels.len());
    for kernel in kernels {
        fill(&mut text, KERNEL_ALIGN, 0);
        offsets.push(text.len() as u64);
        text.extend_from_slice(kernel.code);
    }
    fill(&mut text, FETCH_LINE, FETCH_PADDING);
    (text, offsets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::object::{KernelResources, WorkgroupSize};

    fn named(name: &str) -> KernelInfo {
        KernelInfo {
            name: name.into(),
            resources: KernelResources::default(),
            arguments: [].into(),
            workgroup_size: WorkgroupSize::AtMost(64),
        }
    }

    fn attempt(infos: &[KernelInfo]) -> Result<Vec<u8>, WriteError> {
        let kernels: Vec<_> =
            infos.iter().map(|info| KernelCode { info, code: &[0; 8], lines: None }).collect();
        write(Target::GFX942, &kernels)
    }

    #[test]
    fn bad_names_and_sizes_are_refused() {
        for name in ["", "1x", "a b", "a\0", "gemm-1", ".L", "é"] {
            assert_eq!(attempt(&[named(name)]), Err(WriteError::Name { name: name.into() }));
        }
        let twice = attempt(&[named("a"), named("b"), named("a")]);
        assert_eq!(twice, Err(WriteError::Duplicate { name: "a".into() }));
        let clash = attempt(&[named("a"), named("a.kd")]);
        assert_eq!(clash, Err(WriteError::Duplicate { name: "a.kd".into() }));
        for workgroup_size in [WorkgroupSize::AtMost(0), WorkgroupSize::Exactly([u32::MAX; 3])] {
            let refused = attempt(&[KernelInfo { workgroup_size, ..named("a") }]);
            assert!(matches!(refused, Err(WriteError::WorkgroupSize { .. })));
        }
        let mut greedy = named("a");
        greedy.resources.vgprs = 300;
        let message = attempt(&[greedy]).unwrap_err().to_string();
        assert_eq!(message, "kernel \"a\": gfx942 kernels have at most 256 VGPRs, 300 wanted");
    }

    #[test]
    fn equal_input_gives_equal_bytes() {
        let infos = [named("a"), named("b")];
        assert_eq!(attempt(&infos), attempt(&infos));
    }

    #[test]
    fn text_is_aligned_and_padded_with_nops() {
        let (a, b) = (named("a"), named("b"));
        let a = KernelCode { info: &a, code: &[1; 4], lines: None };
        let b = KernelCode { info: &b, code: &[2; 68], lines: None };
        let (text, offsets) = text(&[a, b]);
        assert_eq!(offsets[..], [0, 256]);
        assert_eq!(text.len(), 256 + 128 + 1024);
        assert_eq!(text[256..324], [2; 68]);
        assert!(text[4..256].chunks(4).chain(text[324..].chunks(4)).all(|word| word == S_NOP));
    }
}
