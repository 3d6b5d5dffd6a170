//! The reader of code objects, ours and other compilers': target, kernels, loadable segments, relocations.
//!
//! It reads what a loader reads: segments from the program headers, kernels from the `.kd` symbols of
//! `.symtab` (or of `.dynsym` where the object was stripped), and what the runtime may know of them from the
//! metadata note. Any bytes give an object or an error.

use super::descriptor::{DESCRIPTOR_SIZE, KernelDescriptor};
use super::line_map::{LineMap, LineSections, SourceLine};
use super::metadata::{BadMetadata, KernelMetadata, from_message_pack};
use super::msgpack::Malformed;
use crate::codegen::target::{FeatureSetting, Target, TargetId};
use object::LittleEndian;
use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader, Rela, SectionHeader, SectionTable, Sym, SymbolTable};
use std::collections::BTreeMap;
use thiserror::Error;

type ElfHeader = FileHeader64<LittleEndian>;
const LE: LittleEndian = LittleEndian;

/// The most bytes that the program accepts as an object. Nothing here depends on it: reading takes little
/// more memory than the bytes.
pub const MAX_OBJECT_BYTES: usize = 256 << 20;

/// A parsed code object; it borrows from the bytes that it was parsed from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectFile<'a> {
    /// The chip it is for.
    pub target: Target,
    /// `EI_ABIVERSION`: 2 for code object version 4, 3 for 5, 4 for 6.
    pub abi_version: u8,
    /// The XNACK mode it runs in.
    pub xnack: FeatureSetting,
    /// The SRAM-ECC mode it runs in.
    pub sramecc: FeatureSetting,
    /// Kernels in the order of the symbol table.
    pub kernels: Vec<ObjectKernel<'a>>,
    /// Variables of the device that the object names, in the order of the symbol table.
    pub variables: Vec<ObjectVariable<'a>>,
    /// What is loaded, in the order of the program headers.
    pub segments: Vec<Segment<'a>>,
    /// What the loader has to patch.
    pub relocations: Vec<Relocation>,
    lines: LineSections<'a>,
}

/// A kernel of an object. Addresses are those of the file, before loading.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectKernel<'a> {
    /// Name of its function.
    pub name: &'a str,
    /// Its descriptor.
    pub descriptor: KernelDescriptor,
    /// Where the descriptor lies.
    pub descriptor_address: u64,
    /// Address of its first instruction.
    pub entry: u64,
    /// Its code from the entry to the end of its function, or of the segment if no symbol says where the
    /// function ends.
    pub code: &'a [u8],
    /// Its metadata, if there is any.
    pub metadata: Option<KernelMetadata>,
}

/// A variable of the device.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ObjectVariable<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its address in the file, before loading.
    pub address: u64,
    /// Its size in bytes.
    pub bytes: u64,
}

/// A part of the file that is loaded.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Segment<'a> {
    /// The address, relative to the load address.
    pub address: u64,
    /// The bytes.
    pub bytes: &'a [u8],
    /// The size of its memory; the part after `bytes` is zero.
    pub memory_size: u64,
    /// The kernel may write to it.
    pub writable: bool,
    /// It holds code.
    pub executable: bool,
}

/// A place that depends on the load address.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Relocation {
    /// The place, before loading.
    pub address: u64,
    /// The value that is written there.
    pub kind: RelocationKind,
    /// Symbol plus addend, before loading: the load address has to be added.
    pub value: u64,
}

/// What part of an address a relocation writes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum RelocationKind {
    /// Low 32 bits.
    Low32,
    /// High 32 bits.
    High32,
    /// All 64 bits.
    Full64,
}

/// The fault of a code object.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[allow(missing_docs)]
pub enum ObjectError {
    /// A table of the file is out of its bounds or inconsistent.
    #[error("{what}: {reason}")]
    Elf { what: &'static str, reason: String },
    /// An ELF file, but not an AMDGPU code object for HSA that can be loaded.
    #[error(
        "not a loadable AMDGPU HSA code object: {field} at offset {offset:#x} is {found}, not {expected}"
    )]
    Kind { field: &'static str, offset: u64, found: u64, expected: u64 },
    /// An unknown chip.
    #[error("code object for an unknown target: machine {machine:#x} in e_flags at offset 0x30")]
    Target { machine: u32 },
    /// A segment that leaves the address space or is smaller in memory than in the file.
    #[error(
        "segment {index}: {memory_size:#x} bytes of memory for {file_size:#x} bytes of file at {address:#x}"
    )]
    Segment { index: usize, address: u64, file_size: u64, memory_size: u64 },
    /// A symbol name that is not text.
    #[error("name of symbol {index} is not UTF-8")]
    SymbolName { index: usize },
    /// Two kernels of one name.
    #[error("two kernels are named {name:?}")]
    Duplicate { name: String },
    /// An address that is not in the file.
    #[error("{what} of kernel {kernel:?} at address {address:#x} is in no segment of the file")]
    Address { kernel: String, what: &'static str, address: u64 },
    /// A reserved bit of a descriptor.
    #[error("descriptor of kernel {kernel:?} sets a reserved bit in byte {offset}")]
    Descriptor { kernel: String, offset: usize },
    /// The metadata note is not MessagePack.
    #[error("metadata at file offset {offset:#x}: {what}")]
    Metadata { offset: usize, what: &'static str },
    /// The metadata note lacks something.
    #[error("metadata: {key} is missing or not of its type")]
    MetadataKey { key: &'static str },
    /// A relocation that the loader does not know.
    #[error("relocation of type {kind} at address {address:#x}")]
    Relocation { kind: u32, address: u64 },
}

/// Names the table in which the parser found a fault.
fn in_table(what: &'static str) -> impl Fn(object::read::Error) -> ObjectError {
    move |error| ObjectError::Elf { what, reason: error.to_string() }
}

impl<'a> ObjectFile<'a> {
    /// Reads an object.
    pub fn parse(data: &'a [u8]) -> Result<ObjectFile<'a>, ObjectError> {
        let header = ElfHeader::parse(data).map_err(in_table("ELF header"))?;
        let target = check_header(header)?;
        let flags = header.e_flags(LE).0;
        let segments = segments(header, data)?;
        let sections = header.sections(LE, data).map_err(in_table("section headers"))?;
        let metadata = metadata(header, &sections, data)?;
        let symbols = symbols(&sections, data)?;
        Ok(ObjectFile {
            target,
            abi_version: header.e_ident.abi_version,
            xnack: FeatureSetting::from_bits(flags >> 8),
            sramecc: FeatureSetting::from_bits(flags >> 10),
            kernels: kernels(&symbols, data, &segments, metadata)?,
            variables: symbols.variables,
            relocations: relocations(&sections, data)?,
            lines: line_sections(&sections, data),
            segments,
        })
    }

    /// The chip with the modes that the object is for; a mode that the chip does not have is ignored.
    pub fn target_id(&self) -> TargetId {
        let id = TargetId::from(self.target);
        let id = id.with_xnack(self.xnack).unwrap_or(id);
        id.with_sramecc(self.sramecc).unwrap_or(id)
    }

    /// The kernel of that name.
    pub fn kernel(&self, name: &str) -> Option<&ObjectKernel<'a>> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    /// The author's lines of the code, as far as the object says.
    pub fn lines(&self) -> LineMap<'a> {
        LineMap::new(self.lines)
    }

    /// Where the code at an address was written. For many addresses keep [`ObjectFile::lines`].
    pub fn line_of(&self, address: u64) -> Option<SourceLine<'a>> {
        self.lines().line_of(address)
    }

    /// The bytes of the file from an address to the end of its segment.
    pub fn bytes_at(&self, address: u64) -> Option<&'a [u8]> {
        bytes_at(&self.segments, address)
    }
}

/// The names of the kernels of an object for any chip, in the order of the symbol table.
pub(super) fn kernel_names(data: &[u8]) -> Result<Vec<&str>, ObjectError> {
    let header = ElfHeader::parse(data).map_err(in_table("ELF header"))?;
    let sections = header.sections(LE, data).map_err(in_table("section headers"))?;
    let mut told = Told::of("kernel names", data);
    let descriptors = symbols(&sections, data)?.descriptors.into_iter();
    descriptors.map(|(name, _)| told.add(name.len()).map(|()| name)).collect()
}

fn check_header(header: &ElfHeader) -> Result<Target, ObjectError> {
    let expect = |field, offset, found: u64, expected: u64| match found == expected {
        true => Ok(()),
        false => Err(ObjectError::Kind { field, offset, found, expected }),
    };
    let ident = header.e_ident;
    expect("EI_CLASS", 4, ident.class.0.into(), elf::ELFCLASS64.0.into())?;
    expect("EI_DATA", 5, ident.data.0.into(), elf::ELFDATA2LSB.0.into())?;
    expect("EI_OSABI", 7, ident.os_abi.0.into(), 64)?;
    expect("e_type", 16, header.e_type(LE).0.into(), elf::ET_DYN.0.into())?;
    expect("e_machine", 18, header.e_machine(LE).0.into(), elf::EM_AMDGPU.0.into())?;
    let flags = header.e_flags(LE).0;
    let machine = flags & 0xff;
    let target = Target::from_elf_machine(machine).ok_or(ObjectError::Target { machine })?;
    if let Some(generic) = target.generic {
        // A newer one may rely on something else.
        expect("generic version", 0x33, (flags >> 24).into(), generic.version.into())?;
    }
    Ok(target)
}

/// How much of the file is referred to. Several entries of a table may name the same bytes; everything made
/// from them stays in proportion to the file only if together they name no more than it has.
struct Told {
    what: &'static str,
    bytes: usize,
    most: usize,
}

impl Told {
    fn of(what: &'static str, data: &[u8]) -> Told {
        Told { what, bytes: 0, most: data.len() }
    }

    fn add(&mut self, bytes: usize) -> Result<(), ObjectError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.most {
            let reason = "together more bytes than the file".to_owned();
            return Err(ObjectError::Elf { what: self.what, reason });
        }
        Ok(())
    }
}

fn segments<'a>(header: &ElfHeader, data: &'a [u8]) -> Result<Vec<Segment<'a>>, ObjectError> {
    let headers = header.program_headers(LE, data).map_err(in_table("program headers"))?;
    let mut segments = Vec::new();
    let mut told = Told::of("segments", data);
    for (index, header) in headers.iter().enumerate().filter(|(_, h)| h.p_type(LE) == elf::PT_LOAD) {
        let (address, file_size, memory_size) = (header.p_vaddr(LE), header.p_filesz(LE), header.p_memsz(LE));
        if memory_size < file_size || address.checked_add(memory_size).is_none() {
            return Err(ObjectError::Segment { index, address, file_size, memory_size });
        }
        let bytes = header.data(LE, data).map_err(|()| ObjectError::Elf {
            what: "program headers",
            reason: format!("segment {index} is not inside the file"),
        })?;
        told.add(bytes.len())?;
        let flags = header.p_flags(LE).0;
        segments.push(Segment {
            address,
            bytes,
            memory_size,
            writable: flags & elf::PF_W.0 != 0,
            executable: flags & elf::PF_X.0 != 0,
        });
    }
    Ok(segments)
}

fn bytes_at<'a>(segments: &[Segment<'a>], address: u64) -> Option<&'a [u8]> {
    segments.iter().find_map(|segment| {
        let offset = usize::try_from(address.checked_sub(segment.address)?).ok()?;
        segment.bytes.get(offset..).filter(|rest| !rest.is_empty())
    })
}

/// The same, or nothing at the end of a segment: a kernel that cannot be reached, as those of rocPRIM for
/// other chips, has no code, and may be the last one.
fn code_at<'a>(segments: &[Segment<'a>], address: u64) -> Option<&'a [u8]> {
    bytes_at(segments, address).or_else(|| {
        let ends = |segment: &&Segment<'a>| {
            segment.executable && segment.bytes.len() as u64 == address.wrapping_sub(segment.address)
        };
        segments.iter().find(ends).map(|segment| &segment.bytes[segment.bytes.len()..])
    })
}

/// Debug sections that exist and are not compressed. They are not loaded, so a faulty one is not an error.
fn line_sections<'a>(sections: &SectionTable<'a, ElfHeader>, data: &'a [u8]) -> LineSections<'a> {
    let bytes = |name: &str| {
        let (_, section) = sections.section_by_name(LE, name.as_bytes())?;
        let plain = section.sh_flags(LE).0 & elf::SHF_COMPRESSED.0 == 0;
        section.data(LE, data).ok().filter(|_| plain)
    };
    LineSections {
        lines: bytes(".debug_line").unwrap_or_default(),
        line_strings: bytes(".debug_line_str").unwrap_or_default(),
        strings: bytes(".debug_str").unwrap_or_default(),
    }
}

fn symbol_table<'a>(
    sections: &SectionTable<'a, ElfHeader>,
    data: &'a [u8],
    kind: elf::SectionType,
) -> Result<SymbolTable<'a, ElfHeader>, ObjectError> {
    sections.symbols(LE, data, kind).map_err(in_table("symbol table"))
}

/// What the symbol table names, by what it is.
struct ObjectSymbols<'a> {
    /// Names of kernels, and where their descriptors lie.
    descriptors: Vec<(&'a str, u64)>,
    /// Addresses and sizes of functions.
    functions: BTreeMap<&'a str, (u64, u64)>,
    variables: Vec<ObjectVariable<'a>>,
}

fn symbols<'a>(
    sections: &SectionTable<'a, ElfHeader>,
    data: &'a [u8],
) -> Result<ObjectSymbols<'a>, ObjectError> {
    let mut table = symbol_table(sections, data, elf::SHT_SYMTAB)?;
    if table.is_empty() {
        table = symbol_table(sections, data, elf::SHT_DYNSYM)?;
    }
    let mut symbols =
        ObjectSymbols { descriptors: Vec::new(), functions: BTreeMap::new(), variables: Vec::new() };
    for (index, symbol) in table.enumerate() {
        let name = table.symbol_name(LE, symbol).map_err(in_table("symbol names"))?;
        let name = std::str::from_utf8(name).map_err(|_| ObjectError::SymbolName { index: index.0 })?;
        let (address, bytes) = (symbol.st_value(LE), symbol.st_size(LE));
        match (symbol.st_type(), name.strip_suffix(".kd")) {
            (elf::STT_OBJECT, Some(kernel)) if bytes == DESCRIPTOR_SIZE as u64 => {
                symbols.descriptors.push((kernel, address));
            }
            (elf::STT_OBJECT, None) if symbol.st_shndx(LE) != elf::SHN_UNDEF => {
                symbols.variables.push(ObjectVariable { name, address, bytes });
            }
            // A size of zero is an unknown one.
            (elf::STT_FUNC, _) if bytes > 0 => {
                symbols.functions.insert(name, (address, bytes));
            }
            _ => {}
        }
    }
    Ok(symbols)
}

fn kernels<'a>(
    symbols: &ObjectSymbols<'a>,
    data: &'a [u8],
    segments: &[Segment<'a>],
    metadata: Vec<KernelMetadata>,
) -> Result<Vec<ObjectKernel<'a>>, ObjectError> {
    let mut metadata: BTreeMap<String, KernelMetadata> =
        metadata.into_iter().map(|kernel| (kernel.symbol.clone(), kernel)).collect();
    let mut names = std::collections::BTreeSet::new();
    let mut kernels = Vec::with_capacity(symbols.descriptors.len());
    let mut told = Told::of("kernel names", data);
    for &(name, descriptor_address) in &symbols.descriptors {
        told.add(name.len())?;
        if !names.insert(name) {
            return Err(ObjectError::Duplicate { name: name.to_owned() });
        }
        let outside = |what, address| ObjectError::Address { kernel: name.to_owned(), what, address };
        let descriptor = bytes_at(segments, descriptor_address)
            .and_then(|bytes| bytes.first_chunk())
            .ok_or_else(|| outside("descriptor", descriptor_address))?;
        let descriptor = KernelDescriptor::from_bytes(descriptor)
            .map_err(|offset| ObjectError::Descriptor { kernel: name.to_owned(), offset })?;
        let entry = descriptor_address.wrapping_add_signed(descriptor.entry_byte_offset);
        let rest = code_at(segments, entry).ok_or_else(|| outside("entry", entry))?;
        let code = match symbols.functions.get(name) {
            Some((address, size)) if *address == entry => usize::try_from(*size)
                .ok()
                .and_then(|size| rest.get(..size))
                .ok_or_else(|| outside("end", entry.wrapping_add(*size)))?,
            _ => rest,
        };
        let metadata = metadata.remove(&format!("{name}.kd"));
        kernels.push(ObjectKernel { name, descriptor, descriptor_address, entry, code, metadata });
    }
    Ok(kernels)
}

/// The kernels of the metadata notes, which are looked up in note segments first, then in note sections. A
/// linker puts the notes of its inputs after each other; together they are the metadata, as HIP reads it
/// (comgr, `mergeNoteRecords`).
fn metadata<'a>(
    header: &ElfHeader,
    sections: &SectionTable<'a, ElfHeader>,
    data: &'a [u8],
) -> Result<Vec<KernelMetadata>, ObjectError> {
    let fault = in_table("notes");
    let mut iterators = Vec::new();
    for segment in header.program_headers(LE, data).map_err(in_table("program headers"))? {
        iterators.extend(segment.notes(LE, data).map_err(&fault)?);
    }
    for section in sections.iter() {
        iterators.extend(section.notes(LE, data).map_err(&fault)?);
    }
    for mut notes in iterators {
        let mut kernels = Vec::new();
        let mut found = false;
        while let Some(note) = notes.next().map_err(&fault)? {
            if note.name() == b"AMDGPU" && note.n_type(LE).0 == 32 {
                let start = note.desc().as_ptr() as usize - data.as_ptr() as usize;
                found = true;
                kernels.extend(from_message_pack(note.desc()).map_err(|bad| match bad {
                    BadMetadata::Malformed(Malformed { offset, what }) => {
                        ObjectError::Metadata { offset: start + offset, what }
                    }
                    BadMetadata::Key(key) => ObjectError::MetadataKey { key },
                })?);
            }
        }
        if found {
            return Ok(kernels);
        }
    }
    Ok(Vec::new())
}

/// Numbers of the relocation types: the User Guide's table "AMDGPU ELF Relocation Records".
fn relocations<'a>(
    sections: &SectionTable<'a, ElfHeader>,
    data: &'a [u8],
) -> Result<Vec<Relocation>, ObjectError> {
    let mut relocations = Vec::new();
    let mut told = Told::of("relocations", data);
    for section in sections.iter().filter(|section| section.sh_flags(LE).0 & elf::SHF_ALLOC.0 != 0) {
        let Some((entries, table)) = section.rela(LE, data).map_err(in_table("relocations"))? else {
            continue;
        };
        told.add(size_of_val(entries))?;
        let symbols = match table.0 {
            0 => SymbolTable::default(),
            _ => sections.symbol_table_by_index(LE, data, table).map_err(in_table("symbol table"))?,
        };
        for entry in entries {
            let address = entry.r_offset(LE);
            let kind = match entry.r_type(LE, false).0 {
                1 | 6 => RelocationKind::Low32,
                2 => RelocationKind::High32,
                3 | 13 => RelocationKind::Full64,
                kind => return Err(ObjectError::Relocation { kind, address }),
            };
            let symbol = match entry.symbol(LE, false) {
                None => 0,
                Some(index) => symbols.symbol(index).map_err(in_table("relocations"))?.st_value(LE),
            };
            let value = symbol.wrapping_add_signed(entry.r_addend(LE));
            relocations.push(Relocation { address, kind, value });
        }
    }
    Ok(relocations)
}
