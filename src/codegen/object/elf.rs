//! The ELF writer: kernels in, the bytes of a loadable code object out.
//!
//! The file is laid out once, front to back, from a table of sections. Two segments are loaded: everything that is
//! read (headers, note, symbols, descriptors), and the code on a page of its own. Kernels are in both symbol tables because
//! the HSA loader walks `.symtab` and HIP walks `.dynsym`. Everything is resolved here, so there are no relocations.
//! Numbers: the generic ELF specification, and LLVM's "User Guide for AMDGPU Backend", section "ELF Code Object".

use super::KernelInfo;
use super::descriptor::{DESCRIPTOR_SIZE, KernelDescriptor};
use super::metadata::{KernelMetadata, to_message_pack};
use super::resources::ResourceError;
use crate::codegen::target::Target;
use smallvec::SmallVec;
use thiserror::Error;

/// A kernel and its machine code.
#[derive(Copy, Clone, Debug)]
pub struct KernelCode<'a> {
    /// What the object says about it.
    pub info: &'a KernelInfo,
    /// Its instructions; the first is the entry.
    pub code: &'a [u8],
}

/// Why kernels cannot become an object.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum WriteError {
    /// A name that assemblers and linkers cannot take as a symbol.
    #[error(
        "kernel name {name:?} is no symbol: letters, digits, `_`, `.` and `$` may follow a letter or `_`"
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
    /// The target has not what the kernel needs.
    #[error("kernel {name:?}: {source}")]
    Resources {
        /// The kernel.
        name: String,
        /// What there is too little of.
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
}

/// Checks a kernel and derives its descriptor.
pub(super) fn describe(target: Target, info: &KernelInfo) -> Result<KernelDescriptor, WriteError> {
    let name = || info.name.clone();
    let first = info.name.bytes().next();
    if !first.is_some_and(|c| c.is_ascii_alphabetic() || c == b'_')
        || !info.name.bytes().all(|c| c.is_ascii_alphanumeric() || b"_.$".contains(&c))
    {
        return Err(WriteError::Name { name: name() });
    }
    let size = info.workgroup_size.max();
    if size == 0 || size > target.max_workgroup_size {
        return Err(WriteError::WorkgroupSize { name: name(), size, target });
    }
    KernelDescriptor::new(target, &info.resources)
        .map_err(|source| WriteError::Resources { name: name(), source })
}

/// That no two kernels share a name, nor one kernel's function another's descriptor.
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

const HEADER_SIZE: u64 = 64;
const PROGRAM_HEADER_SIZE: u64 = 56;
const PROGRAM_HEADERS: u64 = 4;
const SYMBOL_SIZE: u64 = 24;
const PAGE: u64 = 0x1000;
const KERNEL_ALIGN: u64 = 256;

/// Instruction fetch runs ahead of the program counter: LLVM ends the code of these targets with 16 cache lines of
/// `s_nop 0` behind the current one (`AMDGPUTargetELFStreamer::EmitCodeEnd`).
const FETCH_LINE: u64 = 64;
pub(super) const FETCH_PADDING: u64 = 16 * FETCH_LINE;
const S_NOP: [u8; 4] = 0xbf80_0000u32.to_le_bytes();

/// A section as far as it does not depend on the kernels. Field names are those of the section header.
struct Section {
    name: &'static str,
    kind: u32,
    flags: u64,
    link: Index,
    info: u32,
    align: u64,
    entry_size: u64,
}

/// Sections in the order of the file and of the header table.
#[derive(Copy, Clone)]
enum Index {
    Null,
    Note,
    DynSym,
    Hash,
    DynStr,
    Dynamic,
    RoData,
    Text,
    SymTab,
    StrTab,
    ShStrTab,
}

const ALLOC: u64 = 2;
const EXECUTE: u64 = 4;

#[rustfmt::skip]
const SECTIONS: [Section; 11] = [
    Section { name: "",          kind: 0,  flags: 0,               link: Index::Null,   info: 0, align: 0,            entry_size: 0 },
    Section { name: ".note",     kind: 7,  flags: ALLOC,           link: Index::Null,   info: 0, align: 4,            entry_size: 0 },
    Section { name: ".dynsym",   kind: 11, flags: ALLOC,           link: Index::DynStr, info: 1, align: 8,            entry_size: SYMBOL_SIZE },
    Section { name: ".hash",     kind: 5,  flags: ALLOC,           link: Index::DynSym, info: 0, align: 4,            entry_size: 4 },
    Section { name: ".dynstr",   kind: 3,  flags: ALLOC,           link: Index::Null,   info: 0, align: 1,            entry_size: 0 },
    Section { name: ".dynamic",  kind: 6,  flags: ALLOC,           link: Index::DynStr, info: 0, align: 8,            entry_size: 16 },
    Section { name: ".rodata",   kind: 1,  flags: ALLOC,           link: Index::Null,   info: 0, align: 64,           entry_size: 0 },
    Section { name: ".text",     kind: 1,  flags: ALLOC | EXECUTE, link: Index::Null,   info: 0, align: KERNEL_ALIGN, entry_size: 0 },
    Section { name: ".symtab",   kind: 2,  flags: 0,               link: Index::StrTab, info: 1, align: 8,            entry_size: SYMBOL_SIZE },
    Section { name: ".strtab",   kind: 3,  flags: 0,               link: Index::Null,   info: 0, align: 1,            entry_size: 0 },
    Section { name: ".shstrtab", kind: 3,  flags: 0,               link: Index::Null,   info: 0, align: 1,            entry_size: 0 },
];

/// Where a section lies.
#[derive(Copy, Clone, Default)]
struct Place {
    offset: u64,
    address: u64,
    size: u64,
}

/// The bytes of a loadable code object with these kernels. Equal input gives equal bytes.
pub fn write(target: Target, kernels: &[KernelCode<'_>]) -> Result<Vec<u8>, WriteError> {
    check_names(kernels.iter().map(|kernel| kernel.info))?;
    let mut descriptors: SmallVec<[KernelDescriptor; 1]> = SmallVec::with_capacity(kernels.len());
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
    let note = note(&to_message_pack(target, &metadata));
    let text = text(kernels);
    let mut section_names = Vec::with_capacity(SECTIONS.iter().map(|s| s.name.len() + 1).sum());
    SECTIONS.iter().for_each(|s| section_names.extend(s.name.bytes().chain([0])));
    let symbol_count = 1 + 2 * kernels.len() as u64;

    let symbols_size = symbol_count as usize * SYMBOL_SIZE as usize;
    let hash_size = (2 + 1 + symbol_count as usize) * 4;
    let rodata_size = kernels.len() * DESCRIPTOR_SIZE;
    #[rustfmt::skip]
    let sizes: [usize; SECTIONS.len()] = [
        0, note.len(), symbols_size, hash_size, strings.len(), DYNAMIC_ENTRIES * 16, rodata_size, text.len(),
        symbols_size, strings.len(), section_names.len(),
    ];
    let mut places = [Place::default(); SECTIONS.len()];
    let mut end = HEADER_SIZE + PROGRAM_HEADERS * PROGRAM_HEADER_SIZE;
    for (index, section) in SECTIONS.iter().enumerate().skip(1) {
        let offset = end.next_multiple_of(section.align);
        let address = match section.flags {
            0 => 0,
            flags if flags & EXECUTE != 0 => offset + PAGE,
            _ => offset,
        };
        places[index] = Place { offset, address, size: sizes[index] as u64 };
        end = offset + places[index].size;
    }
    let place = |index: Index| places[index as usize];
    let section_headers = end.next_multiple_of(8);

    let (rodata, code) = (place(Index::RoData), place(Index::Text));
    let mut code_offset = 0;
    let mut symbols = Symbols::new(symbol_count);
    for (index, (kernel, descriptor)) in kernels.iter().zip(&mut descriptors).enumerate() {
        let entry = code.address + code_offset;
        let address = rodata.address + (index * DESCRIPTOR_SIZE) as u64;
        descriptor.entry_byte_offset = entry as i64 - address as i64;
        let name_size = kernel.info.name.len() as u32 + 1;
        symbols.push(FUNCTION, Index::Text, entry, kernel.code.len() as u64, name_size);
        symbols.push(OBJECT, Index::RoData, address, DESCRIPTOR_SIZE as u64, name_size + 3);
        code_offset = (code_offset + kernel.code.len() as u64).next_multiple_of(KERNEL_ALIGN);
    }

    let mut out = Output(Vec::with_capacity((section_headers + SECTIONS.len() as u64 * 64) as usize));
    out.header(target, section_headers);
    let loaded = Place { offset: 0, address: 0, size: rodata.offset + rodata.size };
    out.program_header(LOAD, READ, loaded, PAGE);
    out.program_header(LOAD, READ | RUN, code, PAGE);
    out.program_header(DYNAMIC, READ, place(Index::Dynamic), 8);
    out.program_header(NOTE, READ, place(Index::Note), 4);
    out.section(place(Index::Note), &note);
    out.section(place(Index::DynSym), &symbols.bytes);
    out.pad(place(Index::Hash).offset);
    out.hash(symbol_count as u32);
    out.section(place(Index::DynStr), &strings);
    out.pad(place(Index::Dynamic).offset);
    out.dynamic(place(Index::Hash), place(Index::DynSym), place(Index::DynStr));
    out.pad(rodata.offset);
    for descriptor in &descriptors {
        out.bytes(&descriptor.to_bytes());
    }
    out.section(code, &text);
    out.section(place(Index::SymTab), &symbols.bytes);
    out.section(place(Index::StrTab), &strings);
    out.section(place(Index::ShStrTab), &section_names);
    out.pad(section_headers);
    let mut name = 0;
    for (section, place) in SECTIONS.iter().zip(places) {
        out.section_header(section, name, place);
        name += section.name.len() as u32 + 1;
    }
    Ok(out.0)
}

/// The metadata note: sizes, type, owner, description; the description padded to four bytes.
fn note(description: &[u8]) -> Vec<u8> {
    const NT_AMDGPU_METADATA: u32 = 32;
    const OWNER: &[u8; 8] = b"AMDGPU\0\0";
    let mut note = Vec::with_capacity(20 + description.len() + 3);
    for number in [OWNER.len() as u32 - 1, description.len() as u32, NT_AMDGPU_METADATA] {
        note.extend_from_slice(&number.to_le_bytes());
    }
    note.extend_from_slice(OWNER);
    note.extend_from_slice(description);
    note.resize(note.len().next_multiple_of(4), 0);
    note
}

/// The code of all kernels, each at its alignment, with `s_nop` between them and behind the last.
fn text(kernels: &[KernelCode<'_>]) -> Vec<u8> {
    let size: usize = kernels.iter().map(|k| k.code.len() + KERNEL_ALIGN as usize).sum();
    let mut text = Vec::with_capacity(size + (FETCH_LINE + FETCH_PADDING) as usize);
    let fill = |text: &mut Vec<u8>, align: u64, more: u64| {
        let start = text.len();
        let end = start.next_multiple_of(align as usize) + more as usize;
        text.extend((start..end).map(|at| S_NOP[at % S_NOP.len()]));
    };
    for kernel in kernels {
        fill(&mut text, KERNEL_ALIGN, 0);
        text.extend_from_slice(kernel.code);
    }
    fill(&mut text, FETCH_LINE, FETCH_PADDING);
    text
}

const FUNCTION: u8 = 2;
const OBJECT: u8 = 1;

/// A symbol table, which names its symbols by the order of the string table.
struct Symbols {
    bytes: Vec<u8>,
    name: u32,
}

impl Symbols {
    fn new(count: u64) -> Symbols {
        let mut bytes = Vec::with_capacity((count * SYMBOL_SIZE) as usize);
        bytes.resize(SYMBOL_SIZE as usize, 0);
        Symbols { bytes, name: 1 }
    }

    fn push(&mut self, kind: u8, section: Index, address: u64, size: u64, name_size: u32) {
        const GLOBAL: u8 = 1;
        const PROTECTED: u8 = 3;
        self.bytes.extend_from_slice(&self.name.to_le_bytes());
        self.bytes.extend_from_slice(&[(GLOBAL << 4) | kind, PROTECTED]);
        self.bytes.extend_from_slice(&(section as u16).to_le_bytes());
        self.bytes.extend_from_slice(&address.to_le_bytes());
        self.bytes.extend_from_slice(&size.to_le_bytes());
        self.name += name_size;
    }
}

const LOAD: u32 = 1;
const DYNAMIC: u32 = 2;
const NOTE: u32 = 4;
const RUN: u32 = 1;
const READ: u32 = 4;
const DYNAMIC_ENTRIES: usize = 6;

/// The file so far.
struct Output(Vec<u8>);

impl Output {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn u16(&mut self, values: &[u16]) {
        values.iter().for_each(|value| self.bytes(&value.to_le_bytes()));
    }

    fn u32(&mut self, values: &[u32]) {
        values.iter().for_each(|value| self.bytes(&value.to_le_bytes()));
    }

    fn u64(&mut self, values: &[u64]) {
        values.iter().for_each(|value| self.bytes(&value.to_le_bytes()));
    }

    fn pad(&mut self, offset: u64) {
        debug_assert!(self.0.len() as u64 <= offset);
        self.0.resize(offset as usize, 0);
    }

    fn section(&mut self, place: Place, bytes: &[u8]) {
        self.pad(place.offset);
        self.bytes(bytes);
    }

    fn header(&mut self, target: Target, section_headers: u64) {
        const CLASS_64: u8 = 2;
        const LITTLE_ENDIAN: u8 = 1;
        const VERSION: u8 = 1;
        const OSABI_AMDGPU_HSA: u8 = 64;
        const CODE_OBJECT_V5: u8 = 3;
        const ET_DYN: u16 = 3;
        const EM_AMDGPU: u16 = 224;
        self.bytes(b"\x7fELF");
        self.bytes(&[
            CLASS_64,
            LITTLE_ENDIAN,
            VERSION,
            OSABI_AMDGPU_HSA,
            CODE_OBJECT_V5,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
        ]);
        self.u16(&[ET_DYN, EM_AMDGPU]);
        self.u32(&[VERSION.into()]);
        self.u64(&[0, HEADER_SIZE, section_headers]);
        self.u32(&[target.elf_flags()]);
        self.u16(&[HEADER_SIZE as u16, PROGRAM_HEADER_SIZE as u16, PROGRAM_HEADERS as u16]);
        self.u16(&[64, SECTIONS.len() as u16, Index::ShStrTab as u16]);
    }

    fn program_header(&mut self, kind: u32, flags: u32, place: Place, align: u64) {
        self.u32(&[kind, flags]);
        self.u64(&[place.offset, place.address, place.address, place.size, place.size, align]);
    }

    fn section_header(&mut self, section: &Section, name: u32, place: Place) {
        self.u32(&[name, section.kind]);
        self.u64(&[section.flags, place.address, place.offset, place.size]);
        self.u32(&[section.link as u32, section.info]);
        self.u64(&[section.align, section.entry_size]);
    }

    /// A hash table of one bucket: all symbols behind each other, so no hash is ever computed.
    fn hash(&mut self, symbols: u32) {
        let next = |index: u32| if index + 1 < symbols { index + 1 } else { 0 };
        self.u32(&[1, symbols, next(0), 0]);
        (1..symbols).for_each(|index| self.u32(&[next(index)]));
    }

    fn dynamic(&mut self, hash: Place, symbols: Place, strings: Place) {
        const HASH: u64 = 4;
        const STRTAB: u64 = 5;
        const SYMTAB: u64 = 6;
        const STRSZ: u64 = 10;
        const SYMENT: u64 = 11;
        self.u64(&[HASH, hash.address, SYMTAB, symbols.address, SYMENT, SYMBOL_SIZE]);
        self.u64(&[STRTAB, strings.address, STRSZ, strings.size, 0, 0]);
    }
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
        let kernels: Vec<_> = infos.iter().map(|info| KernelCode { info, code: &[0; 8] }).collect();
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
        let text = text(&[KernelCode { info: &a, code: &[1; 4] }, KernelCode { info: &b, code: &[2; 68] }]);
        assert_eq!(text.len(), 256 + 128 + 1024);
        assert_eq!(text[256..324], [2; 68]);
        assert!(text[4..256].chunks(4).chain(text[324..].chunks(4)).all(|word| word == S_NOP));
    }
}
