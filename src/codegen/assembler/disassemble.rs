//! From an object to the text that gives it back.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::rc::Rc;

use super::image::{Image, Section, Symbol};
use super::listing::{self, Content, Line};
use super::sections::{ALLOC, EXECUTE, LETTERS, STRINGS, WRITE};
use super::{kernel, metadata, strings};
use crate::codegen::object::descriptor::DESCRIPTOR_SIZE;
use crate::codegen::object::{ArgumentKind, Kernel, ObjectError, ObjectFile};
use crate::codegen::target::{ObjectVersion, TargetId};

/// The text of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listing {
    /// What [`assemble`](super::assemble()) takes, with offsets and encodings as comments.
    pub text: String,
    /// What of the object is not in the text.
    pub notes: Vec<String>,
}

/// Why an object has no text.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DisassembleError {
    /// It is no object that can be loaded.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// Its sections or symbols cannot be read.
    #[error("sections and symbols: {0}")]
    Tables(String),
}

/// The text of any loadable object.
///
/// # Errors
/// The bytes are no such object.
pub fn disassemble(bytes: &[u8]) -> Result<Listing, DisassembleError> {
    let object = ObjectFile::parse(bytes)?;
    let image = Image::read(bytes).map_err(|error| DisassembleError::Tables(error.to_string()))?;
    let target = TargetId::from(object.target);
    let modes = target.with_xnack(object.xnack).and_then(|target| target.with_sramecc(object.sramecc));
    let writer = Writer {
        target: modes.unwrap_or(target),
        image: &image,
        object: &object,
        kernels: object.kernels.iter().map(|kernel| (kernel.name, kernel)).collect(),
        marks: marks(&image),
        labels: BTreeMap::new(),
        descriptors: BTreeMap::new(),
        out: String::new(),
        notes: Vec::new(),
    };
    Ok(writer.write())
}

struct Writer<'a> {
    target: TargetId,
    image: &'a Image<'a>,
    object: &'a ObjectFile<'a>,
    /// By name.
    kernels: BTreeMap<&'a str, &'a Kernel<'a>>,
    /// By the section's place in the image.
    marks: Vec<Rc<Marks<'a>>>,
    /// Labels that no symbol of the object is: by section (its place in the image) and offset.
    labels: BTreeMap<(usize, usize), String>,
    /// Kernels whose descriptors become blocks of directives, by the name of the descriptor's symbol.
    descriptors: BTreeMap<&'a str, &'a Kernel<'a>>,
    out: String,
    notes: Vec<String>,
}

/// Symbols of a section by offset.
type Marks<'a> = BTreeMap<usize, Vec<&'a Symbol<'a>>>;

fn marks<'a>(image: &'a Image<'a>) -> Vec<Rc<Marks<'a>>> {
    let places: BTreeMap<usize, usize> =
        image.sections.iter().enumerate().map(|(place, section)| (section.index, place)).collect();
    let mut all = vec![Marks::new(); image.sections.len()];
    for symbol in &image.symbols {
        let Some(&place) = symbol.section.and_then(|index| places.get(&index)) else { continue };
        let section = &image.sections[place];
        let offset = symbol.value.checked_sub(section.address).and_then(|at| usize::try_from(at).ok());
        if let Some(offset) = offset.filter(|&offset| offset <= section.data.len()) {
            all[place].entry(offset).or_default().push(symbol);
        }
    }
    all.into_iter().map(Rc::new).collect()
}

/// Code of a section that was decoded.
struct Code {
    lines: Vec<Line>,
    distances: BTreeMap<usize, listing::Distance>,
}

impl<'a> Writer<'a> {
    fn write(mut self) -> Listing {
        let codes = self.decode();
        self.descriptors = self.descriptors();
        self.header();
        self.symbols();
        let rank = |section: &Section| match section.flags {
            flags if flags & EXECUTE != 0 => 0,
            flags if flags & ALLOC == 0 => 3,
            flags if flags & WRITE != 0 => 2,
            _ => 1,
        };
        for wanted in 0..4 {
            for (index, section) in self.image.sections.iter().enumerate() {
                if rank(section) != wanted || section.data.is_empty() && self.marks(index).is_empty() {
                    continue;
                }
                self.section_line(section);
                match &codes[index] {
                    Some(code) => self.code(index, section, code),
                    None => self.data(index, section),
                }
            }
        }
        match self.image.metadata.map(metadata::to_yaml) {
            Some(Some(text)) => {
                self.out.push('\n');
                self.out.push_str(&text);
            }
            Some(None) => self.notes.push("the metadata holds what its text cannot".to_owned()),
            None => {}
        }
        Listing { text: self.out, notes: self.notes }
    }

    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    /// Decodes all code and gives labels to what it refers to.
    fn decode(&mut self) -> Vec<Option<Code>> {
        let arch = self.target.arch;
        let many_codes =
            self.image.sections.iter().filter(|section| section.flags & EXECUTE != 0).count() > 1;
        let mut codes = Vec::new();
        for (index, section) in self.image.sections.iter().enumerate() {
            if section.flags & EXECUTE == 0 {
                codes.push(None);
                continue;
            }
            let boundaries: BTreeSet<usize> = self.marks(index).keys().copied().collect();
            let lines = listing::lines(section.data, &boundaries, arch);
            let starts: BTreeSet<usize> = lines.iter().map(|line| line.offset).collect();
            for target in lines.iter().filter_map(listing::target) {
                if (starts.contains(&target) || target == section.data.len()) && !boundaries.contains(&target)
                {
                    let number = if many_codes { format!("{index}_") } else { String::new() };
                    self.labels.insert((index, target), format!(".L{number}{target:04x}"));
                }
            }
            let mut distances = listing::distances(&lines);
            distances.retain(|_, distance| {
                let address = section.address.wrapping_add_signed(distance.target);
                self.label_at(address, &starts, index)
            });
            codes.push(Some(Code { lines, distances }));
        }
        codes
    }

    /// True if there is, or now is, a label at an address.
    fn label_at(&mut self, address: u64, starts: &BTreeSet<usize>, code: usize) -> bool {
        let Some((index, offset)) = self.place(address) else { return false };
        let section = &self.image.sections[index];
        if section.flags & EXECUTE != 0 && !(index == code && starts.contains(&offset)) {
            return self.marks(index).contains_key(&offset);
        }
        if !self.marks(index).contains_key(&offset) {
            let name = format!(".L{index}_{offset:04x}");
            self.labels.entry((index, offset)).or_insert(name);
        }
        true
    }

    /// Section and offset of an address that is loaded.
    fn place(&self, address: u64) -> Option<(usize, usize)> {
        self.image.sections.iter().enumerate().find_map(|(index, section)| {
            let offset = usize::try_from(address.checked_sub(section.address)?).ok()?;
            (section.flags & ALLOC != 0 && offset < section.data.len()).then_some((index, offset))
        })
    }

    /// Symbols of a section by offset.
    fn marks(&self, index: usize) -> Rc<Marks<'a>> {
        self.marks[index].clone()
    }

    /// The descriptors that can be blocks: whole ones among data, one at a place, nothing that needs a label inside, and
    /// directives that give the bytes back.
    fn descriptors(&self) -> BTreeMap<&'a str, &'a Kernel<'a>> {
        let mut functions = BTreeMap::new();
        for symbol in &self.image.symbols {
            functions.entry(symbol.name).or_insert(symbol);
        }
        let mut found = BTreeMap::new();
        for (index, section) in self.image.sections.iter().enumerate() {
            if section.flags & EXECUTE != 0 {
                continue;
            }
            let marks = self.marks(index);
            for (&offset, symbols) in marks.iter() {
                let (inside, end) = (offset + 1, offset + DESCRIPTOR_SIZE);
                let is_whole = end <= section.data.len()
                    && marks.range(inside..end).next().is_none()
                    && self.labels.range((index, inside)..(index, end)).next().is_none();
                let mut kernels = symbols.iter().filter(|_| is_whole).filter_map(|symbol| {
                    let kernel = self.kernels.get(symbol.name.strip_suffix(".kd")?)?;
                    let function = functions.get(kernel.name)?;
                    self.is_block(symbol, function, kernel).then_some((symbol.name, *kernel))
                });
                found.extend(kernels.next());
            }
        }
        found
    }

    /// True if a block of directives makes this symbol and the bytes at it.
    fn is_block(&self, symbol: &Symbol, function: &Symbol, kernel: &Kernel) -> bool {
        kernel.descriptor_address == symbol.value
            && function.value == kernel.entry
            && (function.binding, function.visibility) == (symbol.binding, symbol.visibility)
            && (symbol.kind, symbol.size) == (1, DESCRIPTOR_SIZE as u64)
            && kernel::round_trip(&kernel.descriptor, self.target) == Some(kernel.descriptor)
    }

    fn header(&mut self) {
        let id = self.target.with_triple();
        self.line(&format!(".amdgcn_target \"{id}\""));
        let version = [ObjectVersion::V5, ObjectVersion::V6]
            .into_iter()
            .find(|version| version.abi_version() == self.object.abi_version);
        let number = version.unwrap_or_default().number();
        self.line(&format!(".amdhsa_code_object_version {number}"));
        if version.is_none() {
            let found = self.object.abi_version;
            self.notes.push(format!("the object has ABI version {found}, which is older than version 5"));
        }
        if !self.object.relocations.is_empty() {
            let count = self.object.relocations.len();
            self.notes.push(format!("{count} relocations are not part of the text"));
        }
    }

    /// What the object says of its symbols, in the order of its table.
    fn symbols(&mut self) {
        self.out.push('\n');
        for symbol in &self.image.symbols {
            let home = self.image.sections.iter().find(|section| symbol.section == Some(section.index));
            let Some(section) = home else {
                if symbol.section.is_none() && symbol.binding != 0 {
                    let name = quoted(symbol.name);
                    self.attributes(symbol);
                    self.line(&format!(".set {name}, {:#x}", symbol.value));
                }
                continue;
            };
            let offset = symbol.value.wrapping_sub(section.address);
            if offset > section.data.len() as u64 {
                self.notes.push(format!("`{}` lies outside its section", symbol.name));
            } else if self.descriptor_of(symbol).is_none() {
                self.attributes(symbol);
            }
        }
    }

    fn attributes(&mut self, symbol: &Symbol) {
        let name = quoted(symbol.name);
        match symbol.binding {
            1 => self.line(&format!(".globl {name}")),
            2 => self.line(&format!(".weak {name}")),
            _ => {}
        }
        match symbol.visibility {
            1 => self.line(&format!(".internal {name}")),
            2 => self.line(&format!(".hidden {name}")),
            3 => self.line(&format!(".protected {name}")),
            _ => {}
        }
        match symbol.kind {
            1 => self.line(&format!(".type {name},@object")),
            2 => self.line(&format!(".type {name},@function")),
            _ => {}
        }
        if symbol.size > 0 {
            self.line(&format!(".size {name}, {}", symbol.size));
        }
    }

    /// The kernel of a symbol that a block makes.
    fn descriptor_of(&self, symbol: &Symbol) -> Option<&'a Kernel<'a>> {
        let kernel = self.descriptors.get(symbol.name)?;
        (kernel.descriptor_address == symbol.value).then_some(*kernel)
    }

    fn section_line(&mut self, section: &Section) {
        self.out.push('\n');
        let letters: String =
            LETTERS.iter().filter(|(_, flag)| section.flags & flag != 0).map(|(letter, _)| letter).collect();
        let plain = matches!(section.name, ".text" | ".rodata") && section.entry_size == 0;
        if plain {
            self.line(section.name);
        } else if section.entry_size > 0 {
            let size = section.entry_size;
            self.line(&format!(".section {},\"{letters}\",@progbits,{size}", quoted(section.name)));
        } else {
            self.line(&format!(".section {},\"{letters}\",@progbits", quoted(section.name)));
        }
        let usual = if section.flags & EXECUTE != 0 { 4 } else { 1 };
        if section.align > usual {
            self.line(&format!(".p2align {}", section.align.trailing_zeros()));
        }
    }

    /// Labels at an offset.
    fn labels(&mut self, index: usize, offset: usize, marks: &BTreeMap<usize, Vec<&Symbol>>) {
        for symbol in marks.get(&offset).into_iter().flatten() {
            if self.descriptor_of(symbol).is_some() {
                continue;
            }
            if let Some(kernel) = self.kernels.get(symbol.name).filter(|_| symbol.kind == 2) {
                let facts = facts(kernel);
                self.out.push_str(&facts);
            }
            self.line(&format!("{}:", quoted(symbol.name)));
        }
        if let Some(label) = self.labels.get(&(index, offset)).cloned() {
            self.line(&format!("{label}:"));
        }
    }

    /// A name for a place that has one.
    fn name_of(&self, index: usize, offset: usize, marks: &BTreeMap<usize, Vec<&Symbol>>) -> Option<String> {
        let symbol = marks.get(&offset).and_then(|symbols| symbols.first());
        symbol.map(|symbol| quoted(symbol.name)).or_else(|| self.labels.get(&(index, offset)).cloned())
    }

    fn code(&mut self, index: usize, section: &Section, code: &Code) {
        let marks = self.marks(index);
        let arch = self.target.arch;
        let mut at = 0;
        while at < code.lines.len() {
            let line = &code.lines[at];
            self.labels(index, line.offset, &marks);
            let run = self.run(index, &code.lines[at..], section, &marks);
            let bytes = &section.data[line.offset..line.offset + line.bytes];
            if run >= SHORTEST_RUN {
                let word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                let text = format!("    .fill {run}, 4, {word:#010x}");
                self.commented(&text, line.offset, &[]);
                at += run;
                continue;
            }
            let distance = code.distances.get(&at);
            let text = match &line.content {
                Content::Inst(inst) | Content::Words(Some(inst)) if distance.is_some() => {
                    let (target, is_high) =
                        distance.map_or((0, false), |found| (found.target, found.is_high));
                    let place = self.place(section.address.wrapping_add_signed(target));
                    let name = place.and_then(|(at, offset)| self.name_of(at, offset, &self.marks(at)));
                    listing::with_symbol(inst, arch, &name.unwrap_or_default(), is_high)
                }
                Content::Inst(inst) => {
                    let label = listing::target(line).and_then(|to| self.name_of(index, to, &marks));
                    listing::text(inst, arch, label.as_deref())
                }
                Content::Words(inst) => {
                    let words = bytes.as_chunks::<4>().0.iter();
                    let all: Vec<String> =
                        words.map(|&word| format!("{:#010x}", u32::from_le_bytes(word))).collect();
                    let meaning = inst.map(|inst| format!("    ; {}", listing::text(&inst, arch, None)));
                    format!(".long {}{}", all.join(", "), meaning.unwrap_or_default())
                }
                Content::Bytes => {
                    let all: Vec<String> = bytes.iter().map(|byte| format!("{byte:#04x}")).collect();
                    format!(".byte {}", all.join(", "))
                }
            };
            self.commented(&format!("    {text}"), line.offset, bytes);
            at += 1;
        }
        self.labels(index, section.data.len(), &marks);
    }

    /// How many lines from here are the same word, without a label between them.
    fn run(
        &self,
        index: usize,
        lines: &[Line],
        section: &Section,
        marks: &BTreeMap<usize, Vec<&Symbol>>,
    ) -> usize {
        let bytes = |line: &Line| &section.data[line.offset..line.offset + line.bytes];
        let first = &lines[0];
        if first.bytes != 4 || listing::target(first).is_some() {
            return 0;
        }
        let others = lines[1..].iter().take_while(|line| {
            bytes(line) == bytes(first)
                && !marks.contains_key(&line.offset)
                && !self.labels.contains_key(&(index, line.offset))
        });
        1 + others.count()
    }

    /// A line with its offset and encoding behind.
    fn commented(&mut self, text: &str, offset: usize, bytes: &[u8]) {
        const COLUMN: usize = 64;
        // Writing to a string cannot fail.
        let _ = write!(self.out, "{text:COLUMN$} // {offset:06x}");
        let words = bytes.as_chunks::<4>().0.iter().map(|&word| u32::from_le_bytes(word));
        for (index, word) in words.enumerate() {
            let _ = write!(self.out, "{}{word:08x}", if index == 0 { ": " } else { " " });
        }
        self.out.push('\n');
    }

    fn data(&mut self, index: usize, section: &Section) {
        let marks = self.marks(index);
        let own = self.labels.keys().filter(|(at, _)| *at == index).map(|(_, offset)| *offset);
        let mut stops: BTreeSet<usize> = marks.keys().copied().chain(own).collect();
        stops.insert(section.data.len());
        let mut at = 0;
        loop {
            self.labels(index, at, &marks);
            let Some(&next) = stops.range(at + 1..).next() else { break };
            let descriptor =
                marks.get(&at).into_iter().flatten().find_map(|symbol| self.descriptor_of(symbol));
            if let Some(kernel) = descriptor {
                kernel::write(&mut self.out, &quoted(kernel.name), &kernel.descriptor, self.target);
                // Nothing stops inside.
                at += DESCRIPTOR_SIZE;
            } else {
                self.bytes(&section.data[at..next], at, section.flags & STRINGS != 0);
                at = next;
            }
        }
    }

    fn bytes(&mut self, bytes: &[u8], start: usize, are_strings: bool) {
        const PER_LINE: usize = 16;
        if are_strings {
            for string in bytes.split_inclusive(|&byte| byte == 0) {
                let (directive, string) = match string.strip_suffix(b"\0") {
                    Some(string) => ("    .asciz ", string),
                    None => ("    .ascii ", string),
                };
                self.out.push_str(directive);
                strings::write(&mut self.out, string);
                self.out.push('\n');
            }
            return;
        }
        let mut at = 0;
        while at < bytes.len() {
            let zeros = bytes[at..].iter().take_while(|&&byte| byte == 0).count();
            if zeros >= 2 * PER_LINE {
                self.commented(&format!("    .zero {zeros}"), start + at, &[]);
                at += zeros;
                continue;
            }
            let piece = &bytes[at..bytes.len().min(at + PER_LINE)];
            let (words, rest) = piece.as_chunks::<4>();
            if !words.is_empty() {
                let all: Vec<String> =
                    words.iter().map(|&word| format!("{:#010x}", u32::from_le_bytes(word))).collect();
                self.commented(&format!("    .long {}", all.join(", ")), start + at, &[]);
            }
            if !rest.is_empty() {
                let all: Vec<String> = rest.iter().map(|byte| format!("{byte:#04x}")).collect();
                self.commented(&format!("    .byte {}", all.join(", ")), start + at + 4 * words.len(), &[]);
            }
            at += piece.len();
        }
    }
}

/// Lines that are the same from this number on become one.
const SHORTEST_RUN: usize = 8;

/// A name as it can stand in the text.
fn quoted(name: &str) -> String {
    let first = name.bytes().next();
    let is_plain = first.is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'.' | b'$'))
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$'));
    if is_plain { name.to_owned() } else { format!("\"{name}\"") }
}

/// What the metadata says of a kernel, as comments.
fn facts(kernel: &Kernel) -> String {
    let mut text = String::new();
    let Some(metadata) = &kernel.metadata else { return text };
    // Writing to a string cannot fail.
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
            let name = argument.name.replace(|c: char| c.is_control(), " ");
            let _ = writeln!(text, "; argument at {offset:3}, {size} bytes: {kind} {name}");
        }
    }
    text
}
