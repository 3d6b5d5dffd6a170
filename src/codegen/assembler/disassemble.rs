//! From an object to the text that gives it back.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use super::image::{ImageSection, ImageSymbol, ObjectImage};
use super::labels::{Labels, NumberSet};
use super::listing::{self, CodeLine, Distance, LineContent, Texts};
use super::sections::{ALLOC, EXECUTE, LETTERS, MERGE, STRINGS, WRITE};
use super::{kernel, metadata, strings};
use crate::codegen::object::descriptor::DESCRIPTOR_SIZE;
use crate::codegen::object::{ArgumentKind, ObjectError, ObjectFile, ObjectKernel, RelocationKind};
use crate::codegen::target::{ObjectVersion, TargetId};

/// The text of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listing {
    /// A text for [`assemble`](super::assemble()), with offsets and encodings as comments.
    pub text: String,
    /// The parts of the object that are not in the text.
    pub notes: Vec<String>,
}

/// Why an object has no text.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DisassembleError {
    /// It is not an object that can be loaded.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// Its sections or symbols cannot be read.
    #[error("sections and symbols: {0}")]
    Tables(String),
}

/// The complete text of any loadable object. For a large object it is better to write the text piece by
/// piece: see [`Disassembly`].
///
/// # Errors
/// The bytes are not such an object.
pub fn disassemble(bytes: &[u8]) -> Result<Listing, DisassembleError> {
    let disassembly = Disassembly::new(bytes)?;
    Ok(Listing { text: disassembly.to_string(), notes: disassembly.notes })
}

/// An object whose text is made while it is written: `Display` is the text of [`Listing`]. Only the tables of
/// the object and three bits for each byte of code are in memory; instructions are decoded once to find
/// labels, and again to be written.
///
/// # Example
/// ```
/// use groundswell::assembler::{AssemblerOptions, Disassembly, assemble};
/// use std::io::Write;
/// let text = ".amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"\ns_branch x\nx: s_endpgm\n";
/// let object = assemble(text, AssemblerOptions::default())?.object;
/// let disassembly = Disassembly::new(&object).expect("it is an object");
/// let mut file = Vec::new();
/// write!(file, "{disassembly}").expect("memory takes it");
/// assert!(String::from_utf8_lossy(&file).contains("s_branch x"));
/// # Ok::<(), groundswell::assembler::Faults>(())
/// ```
#[derive(Debug)]
pub struct Disassembly<'a> {
    target: TargetId,
    image: ObjectImage<'a>,
    object: ObjectFile<'a>,
    /// Places in the image of sections, by their number.
    places: BTreeMap<usize, usize>,
    /// By name.
    kernels: BTreeMap<&'a str, usize>,
    /// Places in the image of the first symbol of each name.
    named: BTreeMap<&'a str, usize>,
    /// By the section's place in the image, like everything that follows.
    marks: Vec<Marks>,
    labels: Vec<Labels>,
    distances: Vec<Vec<Distance>>,
    /// Addresses in data by offset: what they are of, as section and offset.
    addresses: Vec<BTreeMap<usize, (usize, usize)>>,
    /// Kernels whose descriptors become blocks of directives, by the name of the descriptor's symbol.
    descriptors: BTreeMap<&'a str, usize>,
    /// A block for each note whose text gives it back.
    metadata: Vec<String>,
    notes: Vec<String>,
}

/// Symbols of a section by offset: their places in the image.
type Marks = BTreeMap<usize, Vec<usize>>;

impl<'a> Disassembly<'a> {
    /// Reads the tables of an object, and finds what its code refers to.
    ///
    /// # Errors
    /// The bytes are not a loadable object.
    pub fn new(bytes: &'a [u8]) -> Result<Disassembly<'a>, DisassembleError> {
        let object = ObjectFile::parse(bytes)?;
        let image = ObjectImage::read(bytes).map_err(|error| DisassembleError::Tables(error.to_string()))?;
        let target = TargetId::from(object.target);
        let modes = target.with_xnack(object.xnack).and_then(|target| target.with_sramecc(object.sramecc));
        let places =
            image.sections.iter().enumerate().map(|(place, section)| (section.index, place)).collect();
        let codes = image.sections.iter().filter(|section| section.flags & EXECUTE != 0).count();
        let labels = image.sections.iter().enumerate().map(|(place, section)| {
            let prefix = if codes > 1 { format!("{place}_") } else { String::new() };
            Labels::new(prefix, format!("{place}_"), section.size)
        });
        let mut disassembly = Disassembly {
            target: modes.unwrap_or(target),
            labels: labels.collect(),
            distances: vec![Vec::new(); image.sections.len()],
            addresses: vec![BTreeMap::new(); image.sections.len()],
            kernels: object.kernels.iter().enumerate().map(|(place, kernel)| (kernel.name, place)).collect(),
            named: BTreeMap::new(),
            marks: Vec::new(),
            descriptors: BTreeMap::new(),
            metadata: Vec::new(),
            notes: Vec::new(),
            places,
            image,
            object,
        };
        for (place, symbol) in disassembly.image.symbols.iter().enumerate() {
            disassembly.named.entry(symbol.name).or_insert(place);
        }
        disassembly.marks = disassembly.marks();
        for place in 0..disassembly.image.sections.len() {
            disassembly.find_labels(place);
        }
        disassembly.find_addresses();
        disassembly.descriptors = disassembly.descriptors();
        disassembly.metadata =
            disassembly.image.metadata.iter().filter_map(|note| metadata::to_yaml(note)).collect();
        disassembly.notes = disassembly.find_notes();
        Ok(disassembly)
    }

    /// The parts of the object that are not in the text.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    fn marks(&self) -> Vec<Marks> {
        let mut all = vec![Marks::new(); self.image.sections.len()];
        for (at, symbol) in self.image.symbols.iter().enumerate() {
            let Some((place, section)) = self.home(symbol) else { continue };
            let offset =
                symbol.value.checked_sub(section.address).and_then(|offset| usize::try_from(offset).ok());
            if let Some(offset) = offset.filter(|&offset| offset <= section.size) {
                all[place].entry(offset).or_default().push(at);
            }
        }
        all
    }

    /// The section of a symbol, and its place.
    fn home(&self, symbol: &ImageSymbol) -> Option<(usize, &ImageSection<'a>)> {
        let place = *self.places.get(&symbol.section?)?;
        Some((place, &self.image.sections[place]))
    }

    /// The code of a section, line by line.
    fn lines(&self, place: usize) -> impl Iterator<Item = CodeLine> {
        let boundaries = self.marks[place].keys().copied();
        listing::lines(self.image.sections[place].data, boundaries, self.target.arch)
    }

    /// Gives labels to the places that the code of a section refers to.
    fn find_labels(&mut self, place: usize) {
        let section = &self.image.sections[place];
        if section.flags & EXECUTE == 0 {
            return;
        }
        let (arch, data, address) = (self.target.arch, section.data, section.address);
        let (mut starts, mut targets) = (NumberSet::default(), NumberSet::default());
        let mut distances = Vec::new();
        let mut texts = Texts::default();
        let mut before: [Option<CodeLine>; 2] = [None, None];
        for line in self.lines(place) {
            starts.insert(line.offset, data.len());
            if let LineContent::Inst(inst) = &line.content
                && let Some(target) =
                    listing::target(inst, line.offset).filter(|&target| target <= data.len())
                && texts.faithful(inst, &data[line.offset..line.offset + line.bytes], arch).is_some()
            {
                targets.insert(target, data.len());
            }
            if let [Some(first), Some(second)] = &before {
                distances.extend(listing::distances([first, second, &line]).into_iter().flatten());
            }
            let [_, second] = before;
            before = [second, Some(line)];
        }
        starts.insert(data.len(), data.len());
        let mut target = targets.next(0);
        while let Some(offset) = target {
            if starts.contains(offset) && !self.marks[place].contains_key(&offset) {
                self.labels[place].branched_to(offset);
            }
            target = targets.next(offset + 1);
        }
        distances
            .retain(|distance| self.label_at(address.wrapping_add_signed(distance.target), &starts, place));
        self.distances[place] = distances;
    }

    /// Gives labels to the places whose addresses are in writable data, where a loader puts them.
    fn find_addresses(&mut self) {
        let mut found = Vec::new();
        let relocations = self.object.relocations.iter();
        for relocation in relocations.filter(|relocation| relocation.kind == RelocationKind::Full64) {
            let (Some((place, offset)), Some(target)) =
                (self.place(relocation.address), self.place(relocation.value))
            else {
                continue;
            };
            let section = &self.image.sections[place];
            let bytes = section.data.get(offset..offset + ADDRESS);
            let is_data = section.flags & (WRITE | EXECUTE) == WRITE && !section.is_nobits;
            let is_code = self.image.sections[target.0].flags & EXECUTE != 0;
            let has_name = !is_code || self.marks[target.0].contains_key(&target.1);
            if is_data && has_name && bytes == Some(&[0; ADDRESS][..]) {
                found.push((place, offset, target));
            }
        }
        for &(_, _, (place, offset)) in &found {
            if !self.marks[place].contains_key(&offset) {
                self.labels[place].measured_to(offset);
            }
        }
        for (place, offset, target) in found {
            let (inside, end) = (offset + 1, offset + ADDRESS);
            let is_whole = self.marks[place].range(inside..end).next().is_none()
                && self.labels[place].next(inside).is_none_or(|label| label >= end)
                && self.addresses[place]
                    .range(..end)
                    .next_back()
                    .is_none_or(|(&at, _)| at + ADDRESS <= offset);
            if is_whole {
                self.addresses[place].insert(offset, target);
            }
        }
    }

    /// True if there is a label at an address, or one can be put there.
    fn label_at(&mut self, address: u64, starts: &NumberSet, code: usize) -> bool {
        let Some((place, offset)) = self.place(address) else { return false };
        let section = &self.image.sections[place];
        let is_marked = self.marks[place].contains_key(&offset);
        if section.flags & EXECUTE != 0 && !(place == code && starts.contains(offset)) {
            return is_marked;
        }
        if !is_marked {
            self.labels[place].measured_to(offset);
        }
        true
    }

    /// Section and offset of an address in loaded memory. The end of data counts if nothing begins there:
    /// code measures how long its strings are.
    fn place(&self, address: u64) -> Option<(usize, usize)> {
        let find = |is_inside: fn(&ImageSection, usize) -> bool| {
            self.image.sections.iter().enumerate().find_map(|(place, section)| {
                let offset = usize::try_from(address.checked_sub(section.address)?).ok()?;
                (section.flags & ALLOC != 0 && is_inside(section, offset)).then_some((place, offset))
            })
        };
        find(|section, offset| offset < section.size)
            .or_else(|| find(|section, offset| section.flags & EXECUTE == 0 && offset == section.size))
    }

    /// The descriptors that can be blocks: whole ones among data, one at a place, without a label inside, and
    /// with directives that give back the bytes.
    fn descriptors(&self) -> BTreeMap<&'a str, usize> {
        let mut found = BTreeMap::new();
        for (place, section) in self.image.sections.iter().enumerate() {
            if section.flags & EXECUTE != 0 {
                continue;
            }
            let marks = &self.marks[place];
            for (&offset, symbols) in marks {
                let (inside, end) = (offset + 1, offset + DESCRIPTOR_SIZE);
                let is_whole = end <= section.data.len()
                    && marks.range(inside..end).next().is_none()
                    && self.labels[place].next(inside).is_none_or(|label| label >= end);
                let mut kernels = symbols.iter().filter(|_| is_whole).filter_map(|&symbol| {
                    let symbol = &self.image.symbols[symbol];
                    let kernel = *self.kernels.get(symbol.name.strip_suffix(".kd")?)?;
                    let function = self.function_of(&self.object.kernels[kernel])?;
                    self.is_block(symbol, function, &self.object.kernels[kernel])
                        .then_some((symbol.name, kernel))
                });
                found.extend(kernels.next());
            }
        }
        found
    }

    /// True if a block of directives makes this symbol and the bytes at it. Binding and visibility are those
    /// of the kernel where the block stands; what the kernel has otherwise is said after it.
    fn is_block(&self, symbol: &ImageSymbol, function: &ImageSymbol, kernel: &ObjectKernel) -> bool {
        kernel.descriptor_address == symbol.value
            && function.value == kernel.entry
            && (symbol.kind, symbol.size) == (1, DESCRIPTOR_SIZE as u64)
            && kernel::round_trip(&kernel.descriptor, self.target) == Some(kernel.descriptor)
    }

    /// The kernel of a symbol that a block makes.
    fn descriptor_of(&self, symbol: &ImageSymbol) -> Option<&ObjectKernel<'a>> {
        let kernel = &self.object.kernels[*self.descriptors.get(symbol.name)?];
        (kernel.descriptor_address == symbol.value).then_some(kernel)
    }

    /// The symbol of a kernel's code.
    fn function_of(&self, kernel: &ObjectKernel) -> Option<&ImageSymbol<'a>> {
        self.named.get(kernel.name).map(|&place| &self.image.symbols[place])
    }

    /// The descriptor of a kernel that a block makes.
    fn block_of(&self, function: &ImageSymbol) -> Option<&ImageSymbol<'a>> {
        self.kernels.get(function.name)?;
        let symbol = &self.image.symbols[*self.named.get(&*format!("{}.kd", function.name))?];
        self.descriptor_of(symbol).map(|_| symbol)
    }

    /// The name of the code that a descriptor leads to, if no block makes the descriptor.
    fn entry_of(&self, symbol: &ImageSymbol) -> Option<String> {
        let kernel = *self.kernels.get(symbol.name.strip_suffix(".kd")?)?;
        let kernel = &self.object.kernels[kernel];
        let (place, offset) =
            self.place(kernel.entry).filter(|_| kernel.descriptor_address == symbol.value)?;
        self.name_of(place, offset)
    }

    /// The name of a place that has one.
    fn name_of(&self, place: usize, offset: usize) -> Option<String> {
        let symbol = self.marks[place].get(&offset).and_then(|symbols| symbols.first());
        symbol
            .map(|&symbol| quoted(&self.image.symbols[symbol].label))
            .or_else(|| self.labels[place].name(offset))
    }

    /// The version that a text can ask for.
    fn version(&self) -> Option<ObjectVersion> {
        [ObjectVersion::V4, ObjectVersion::V5, ObjectVersion::V6]
            .into_iter()
            .find(|version| version.abi_version() == self.object.abi_version)
    }

    fn find_notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.version().is_none() {
            let found = self.object.abi_version;
            notes.push(format!("the object has ABI version {found}, which is older than version 4"));
        }
        let told = self.addresses.iter().map(BTreeMap::len).sum::<usize>();
        if self.object.relocations.len() > told {
            let count = self.object.relocations.len() - told;
            notes.push(format!("{count} relocations are not part of the text"));
        }
        for symbol in &self.image.symbols {
            if self.home(symbol).is_some_and(|(_, section)| is_outside(symbol, section)) {
                notes.push(format!("`{}` lies outside its section", symbol.name));
            }
            if symbol.label != symbol.name {
                let (name, label) = (symbol.name, &symbol.label);
                notes.push(format!("one of the symbols `{name}` is `{label}` in the text"));
            }
        }
        if self.metadata.len() < self.image.metadata.len() {
            notes.push("the metadata holds what its text cannot".to_owned());
        }
        notes
    }
}

fn is_outside(symbol: &ImageSymbol, section: &ImageSection) -> bool {
    symbol.value.wrapping_sub(section.address) > section.size as u64
}

impl fmt::Display for Disassembly<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        DisassemblyWriter { of: self, out: f, texts: Texts::default(), line: String::new() }.write()
    }
}

/// Writes the text of an object.
struct DisassemblyWriter<'w, 'a, 'f> {
    of: &'w Disassembly<'a>,
    out: &'w mut fmt::Formatter<'f>,
    texts: Texts,
    /// The text of a line before its comment; the memory is reused.
    line: String,
}

impl DisassemblyWriter<'_, '_, '_> {
    fn write(mut self) -> fmt::Result {
        let of = self.of;
        self.header()?;
        self.symbols()?;
        let rank = |section: &ImageSection| match section.flags {
            flags if flags & EXECUTE != 0 => 0,
            flags if flags & ALLOC == 0 => 3,
            flags if flags & WRITE != 0 => 2,
            _ => 1,
        };
        for wanted in 0..4 {
            for (place, section) in of.image.sections.iter().enumerate() {
                if rank(section) != wanted || section.size == 0 && of.marks[place].is_empty() {
                    continue;
                }
                self.section_line(section)?;
                match section.flags & EXECUTE != 0 {
                    _ if section.is_nobits => self.zeros(place, section)?,
                    true => self.code(place, section)?,
                    false => self.data(place, section)?,
                }
            }
        }
        of.metadata.iter().try_for_each(|text| write!(self.out, "\n{text}"))
    }

    fn header(&mut self) -> fmt::Result {
        writeln!(self.out, ".amdgcn_target \"{}\"", self.of.target.with_triple())?;
        let number = self.of.version().unwrap_or(self.of.target.object_version()).number();
        writeln!(self.out, ".amdhsa_code_object_version {number}")
    }

    /// The object's information about its symbols, in the order of its table.
    fn symbols(&mut self) -> fmt::Result {
        self.out.write_char('\n')?;
        let of = self.of;
        for symbol in &of.image.symbols {
            match of.home(symbol) {
                Some((_, section)) if !is_outside(symbol, section) && of.descriptor_of(symbol).is_none() => {
                    let others_see = of.block_of(symbol).unwrap_or(symbol);
                    self.attributes(symbol, others_see)?;
                }
                None if symbol.section.is_none() && symbol.binding != 0 => {
                    self.attributes(symbol, symbol)?;
                    writeln!(self.out, ".set {}, {:#x}", quoted(&symbol.label), symbol.value)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Of a kernel whose descriptor is a block, binding and visibility are those of the descriptor.
    fn attributes(&mut self, symbol: &ImageSymbol, others_see: &ImageSymbol) -> fmt::Result {
        let (name, out) = (quoted(&symbol.label), &mut *self.out);
        match others_see.binding {
            1 => writeln!(out, ".globl {name}")?,
            2 => writeln!(out, ".weak {name}")?,
            _ => {}
        }
        visibility(out, &name, others_see.visibility)?;
        match symbol.kind {
            1 => writeln!(out, ".type {name},@object")?,
            2 => writeln!(out, ".type {name},@function")?,
            _ => {}
        }
        match symbol.size {
            0 => Ok(()),
            size => writeln!(out, ".size {name}, {size}"),
        }
    }

    /// What a kernel has otherwise than its descriptor, whose block stands before this. The block makes a
    /// kernel protected.
    fn own_attributes(&mut self, kernel: &ObjectKernel, descriptor: &ImageSymbol) -> fmt::Result {
        let Some(function) = self.of.function_of(kernel) else { return Ok(()) };
        let (name, out) = (quoted(&function.label), &mut *self.out);
        if function.binding != descriptor.binding {
            match function.binding {
                0 => writeln!(out, ".local {name}")?,
                1 => writeln!(out, ".globl {name}")?,
                _ => writeln!(out, ".weak {name}")?,
            }
        }
        let given = if descriptor.visibility == 0 { PROTECTED } else { descriptor.visibility };
        if function.visibility == given { Ok(()) } else { visibility(out, &name, function.visibility) }
    }

    fn section_line(&mut self, section: &ImageSection) -> fmt::Result {
        let out = &mut *self.out;
        out.write_char('\n')?;
        let letters: String =
            LETTERS.iter().filter(|(_, flag)| section.flags & flag != 0).map(|(letter, _)| letter).collect();
        let is_merged = section.flags & MERGE != 0;
        let plain = matches!(section.name, ".text" | ".rodata") && section.entry_size == 0 && !is_merged;
        let kind = if section.is_nobits { "nobits" } else { "progbits" };
        if plain {
            writeln!(out, "{}", section.name)?;
        } else if section.entry_size > 0 || is_merged {
            // A linker that has merged strings of several sizes says none; a text has to say one.
            let size = section.entry_size.max(1);
            writeln!(out, ".section {},\"{letters}\",@{kind},{size}", quoted(section.name))?;
        } else {
            writeln!(out, ".section {},\"{letters}\",@{kind}", quoted(section.name))?;
        }
        let usual = if section.flags & EXECUTE != 0 { 4 } else { 1 };
        match section.align > usual {
            true => writeln!(out, ".p2align {}", section.align.trailing_zeros()),
            false => Ok(()),
        }
    }

    /// Labels at an offset.
    fn labels(&mut self, place: usize, offset: usize) -> fmt::Result {
        let of = self.of;
        for &symbol in of.marks[place].get(&offset).into_iter().flatten() {
            let symbol = &of.image.symbols[symbol];
            if of.descriptor_of(symbol).is_some() {
                continue;
            }
            if let Some(&kernel) = of.kernels.get(symbol.name).filter(|_| symbol.kind == 2) {
                self.out.write_str(&facts(&of.object.kernels[kernel]))?;
            }
            writeln!(self.out, "{}:", quoted(&symbol.label))?;
        }
        match of.labels[place].name(offset) {
            Some(label) => writeln!(self.out, "{label}:"),
            None => Ok(()),
        }
    }

    fn has_labels(&self, place: usize, offset: usize) -> bool {
        self.of.labels[place].contains(offset) || self.of.marks[place].contains_key(&offset)
    }

    fn code(&mut self, place: usize, section: &ImageSection) -> fmt::Result {
        let of = self.of;
        let bytes = |line: &CodeLine| &section.data[line.offset..line.offset + line.bytes];
        let mut distances = of.distances[place].iter().peekable();
        let mut lines = of.lines(place).peekable();
        while let Some(line) = lines.next() {
            if self.has_labels(place, line.offset) {
                self.labels(place, line.offset)?;
            }
            let distance = distances.next_if(|distance| distance.offset == line.offset);
            let is_whole = self.line(place, section, &line, distance);
            // How many of the next lines are the same word, without a label between them.
            let mut run = 1;
            while is_whole
                && let Some(same) = lines.peek()
                && bytes(same) == bytes(&line)
                && !self.has_labels(place, same.offset)
            {
                lines.next();
                run += 1;
            }
            if run >= SHORTEST_RUN {
                let word = u32::from_le_bytes(*bytes(&line).first_chunk().unwrap_or(&[0; 4]));
                self.line.clear();
                let _ = write!(self.line, "    .fill {run}, 4, {word:#010x}");
                self.commented(line.offset, &[])?;
                continue;
            }
            for at in 0..run {
                self.commented(line.offset + at * line.bytes, bytes(&line))?;
            }
        }
        self.labels(place, section.size)
    }

    /// Puts the text of a line into `line`; returns whether it is one word that means the same wherever it
    /// stands.
    fn line(
        &mut self,
        place: usize,
        section: &ImageSection,
        line: &CodeLine,
        distance: Option<&Distance>,
    ) -> bool {
        let (of, arch) = (self.of, self.of.target.arch);
        let bytes = &section.data[line.offset..line.offset + line.bytes];
        self.line.clear();
        self.line.push_str("    ");
        let mut is_branch = false;
        match (&line.content, distance) {
            (LineContent::Inst(inst), Some(distance)) => {
                let target = of.place(section.address.wrapping_add_signed(distance.target));
                let name = target.and_then(|(place, offset)| of.name_of(place, offset));
                let text = listing::with_symbol(inst, arch, &name.unwrap_or_default(), distance.is_high);
                self.line.push_str(&text);
            }
            (LineContent::Inst(inst), None) => match self.texts.faithful(inst, bytes, arch) {
                Some(text) => {
                    let target = listing::target(inst, line.offset);
                    is_branch = target.is_some();
                    match target.and_then(|target| of.name_of(place, target)) {
                        Some(label) => self.line.push_str(&listing::text(inst, arch, Some(&label))),
                        None => self.line.push_str(text),
                    }
                }
                None => {
                    push_words(&mut self.line, bytes);
                    let _ = write!(self.line, "    ; {}", listing::text(inst, arch, None));
                }
            },
            (LineContent::Word, _) => push_words(&mut self.line, bytes),
            (LineContent::Bytes, _) => push_bytes(&mut self.line, bytes),
        }
        bytes.len() == 4 && !is_branch
    }

    /// The line with its offset and encoding after it.
    fn commented(&mut self, offset: usize, bytes: &[u8]) -> fmt::Result {
        const COLUMN: usize = 64;
        write!(self.out, "{:COLUMN$} // {offset:06x}", self.line)?;
        let words = bytes.as_chunks::<4>().0.iter().map(|&word| u32::from_le_bytes(word));
        for (index, word) in words.enumerate() {
            write!(self.out, "{}{word:08x}", if index == 0 { ": " } else { " " })?;
        }
        self.out.write_char('\n')
    }

    fn data(&mut self, place: usize, section: &ImageSection) -> fmt::Result {
        let of = self.of;
        let (marks, labels, end) = (&of.marks[place], &of.labels[place], section.data.len());
        let addresses = &of.addresses[place];
        let mut at = 0;
        loop {
            self.labels(place, at)?;
            if at == end {
                return Ok(());
            }
            let mark = marks.range(at + 1..).next().map(|(&offset, _)| offset);
            let address = addresses.range(at + 1..).next().map(|(&offset, _)| offset);
            let next = mark.into_iter().chain(labels.next(at + 1)).chain(address).min().unwrap_or(end);
            let symbols = marks.get(&at).into_iter().flatten().map(|&symbol| &of.image.symbols[symbol]);
            let mut blocks = symbols.clone().filter_map(|symbol| Some((symbol, of.descriptor_of(symbol)?)));
            if let Some((symbol, kernel)) = blocks.next() {
                self.line.clear();
                kernel::write(&mut self.line, &quoted(kernel.name), &kernel.descriptor, of.target);
                self.out.write_str(&self.line)?;
                self.own_attributes(kernel, symbol)?;
                // Nothing is reported inside of it.
                at += DESCRIPTOR_SIZE;
            } else if let Some(entry) = symbols.clone().find_map(|symbol| of.entry_of(symbol))
                && next >= at + ENTRY_END
            {
                // Where the code lies is another distance in another layout.
                let start = ENTRY_END - size_of::<u64>();
                self.bytes(&section.data[at..at + start], at, false)?;
                writeln!(self.out, "    .quad {entry}@rel64+{start}")?;
                at += ENTRY_END;
            } else if let Some(name) = addresses.get(&at).and_then(|&(place, at)| of.name_of(place, at)) {
                writeln!(self.out, "    .quad {name}")?;
                at += ADDRESS;
            } else {
                self.bytes(&section.data[at..next], at, section.flags & STRINGS != 0)?;
                at = next;
            }
        }
    }

    /// A section whose bytes are not in the file.
    fn zeros(&mut self, place: usize, section: &ImageSection) -> fmt::Result {
        let of = self.of;
        let mut at = 0;
        loop {
            self.labels(place, at)?;
            if at == section.size {
                return Ok(());
            }
            let mark = of.marks[place].range(at + 1..).next().map(|(&offset, _)| offset);
            let next = mark.into_iter().chain(of.labels[place].next(at + 1)).min().unwrap_or(section.size);
            self.line.clear();
            let _ = write!(self.line, "    .zero {}", next - at);
            self.commented(at, &[])?;
            at = next;
        }
    }

    fn bytes(&mut self, bytes: &[u8], start: usize, are_strings: bool) -> fmt::Result {
        const PER_LINE: usize = 16;
        if are_strings {
            for string in bytes.split_inclusive(|&byte| byte == 0) {
                let (directive, string) = match string.strip_suffix(b"\0") {
                    Some(string) => ("    .asciz ", string),
                    None => ("    .ascii ", string),
                };
                self.line.clear();
                self.line.push_str(directive);
                strings::write(&mut self.line, string);
                writeln!(self.out, "{}", self.line)?;
            }
            return Ok(());
        }
        let mut at = 0;
        while at < bytes.len() {
            self.line.clear();
            self.line.push_str("    ");
            let zeros = bytes[at..].iter().take_while(|&&byte| byte == 0).count();
            if zeros >= 2 * PER_LINE {
                let _ = write!(self.line, ".zero {zeros}");
                self.commented(start + at, &[])?;
                at += zeros;
                continue;
            }
            let piece = &bytes[at..bytes.len().min(at + PER_LINE)];
            let (words, rest) = piece.split_at(piece.len() / 4 * 4);
            if !words.is_empty() {
                push_words(&mut self.line, words);
                self.commented(start + at, &[])?;
            }
            if !rest.is_empty() {
                self.line.clear();
                self.line.push_str("    ");
                push_bytes(&mut self.line, rest);
                self.commented(start + at + words.len(), &[])?;
            }
            at += piece.len();
        }
        Ok(())
    }
}

/// The directive for a visibility that is not the usual one.
fn visibility(out: &mut fmt::Formatter<'_>, name: &str, visibility: u8) -> fmt::Result {
    match visibility {
        1 => writeln!(out, ".internal {name}"),
        2 => writeln!(out, ".hidden {name}"),
        PROTECTED => writeln!(out, ".protected {name}"),
        _ => Ok(()),
    }
}

/// `STV_PROTECTED`
const PROTECTED: u8 = 3;

/// Bytes of an address.
const ADDRESS: usize = size_of::<u64>();

/// Where the distance from a descriptor to its code ends.
const ENTRY_END: usize = 24;

// Writing to a string cannot fail, here and above.

fn push_words(out: &mut String, bytes: &[u8]) {
    for (index, &word) in bytes.as_chunks::<4>().0.iter().enumerate() {
        let _ = write!(out, "{}{:#010x}", if index == 0 { ".long " } else { ", " }, u32::from_le_bytes(word));
    }
}

fn push_bytes(out: &mut String, bytes: &[u8]) {
    for (index, byte) in bytes.iter().enumerate() {
        let _ = write!(out, "{}{byte:#04x}", if index == 0 { ".byte " } else { ", " });
    }
}

/// From this number of equal lines on they become one.
const SHORTEST_RUN: usize = 8;

/// A name in the form that the text needs.
fn quoted(name: &str) -> String {
    let first = name.bytes().next();
    let is_plain = first.is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'.' | b'$'))
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$'));
    if is_plain { name.to_owned() } else { format!("\"{name}\"") }
}

/// The metadata of a kernel, as comments.
fn facts(kernel: &ObjectKernel) -> String {
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
        // The arguments that the runtime fills in are many, and the same for every kernel.
        if !matches!(argument.kind, ArgumentKind::Other(_)) {
            let (offset, size, kind) = (argument.offset, argument.size, argument.kind.name());
            let name = argument.name.replace(|c: char| c.is_control(), " ");
            let _ = writeln!(text, "; argument at {offset:3}, {size} bytes: {kind} {name}");
        }
    }
    text
}
