//! Sections as they grow.

use crate::codegen::isa::parse::{ExpressionValue, InstructionFault};

pub(super) const WRITE: u64 = 1;
pub(super) const ALLOC: u64 = 2;
pub(super) const EXECUTE: u64 = 4;
pub(super) const MERGE: u64 = 16;
pub(super) const STRINGS: u64 = 32;

/// A section.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub name: String,
    /// `sh_flags`
    pub flags: u64,
    /// `sh_entsize`
    pub entry_size: u64,
    pub align: u64,
    data: Vec<u8>,
    /// Zeros after `data` that take no memory; 0 in sections that need their bytes.
    zeros: usize,
    /// Its type is `@nobits`, and all of it is zero.
    is_nobits: bool,
}

/// Flags of sections that need not be given: name, flags.
const KNOWN: [(&str, u64); 5] = [
    (".text", ALLOC | EXECUTE),
    (".rodata", ALLOC),
    (".data", ALLOC | WRITE),
    (".bss", ALLOC | WRITE),
    (".debug", 0),
];

/// Flags as `.section` writes them.
pub(super) const LETTERS: [(char, u64); 5] =
    [('a', ALLOC), ('w', WRITE), ('x', EXECUTE), ('M', MERGE), ('S', STRINGS)];

/// All of them, and where the next byte goes.
#[derive(Debug)]
pub(super) struct Sections {
    pub all: Vec<Section>,
    /// Bytes in memory of all of them, and how many there may be.
    used: usize,
    most: usize,
    current: usize,
    previous: usize,
    stack: Vec<(usize, usize)>,
}

/// The most bytes of all sections of a text that is shorter. What a text writes out takes more bytes there
/// than in its sections, so that a longer one may have as many as it is long.
const MOST_BYTES: usize = 1 << 26;
/// The most zeros of a section that are not in the file: more than the memory of any chip.
const MOST_ZEROS: usize = 1 << 40;
/// The most sections, and the most that can be remembered for coming back.
const MOST_SECTIONS: usize = 1000;

/// Flags that a name implies.
pub(super) fn flags_of(name: &str) -> u64 {
    KNOWN.iter().find(|(parent, _)| is_under(name, parent)).map_or(0, |(_, flags)| *flags)
}

fn is_under(name: &str, parent: &str) -> bool {
    name.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

impl Section {
    fn new(name: &str, flags: u64) -> Section {
        let align = if flags & EXECUTE != 0 { 4 } else { 1 };
        let is_nobits = is_under(name, ".bss");
        Section { name: name.to_owned(), flags, entry_size: 0, align, data: Vec::new(), zeros: 0, is_nobits }
    }

    /// Its bytes, in memory or not.
    pub(super) fn len(&self) -> usize {
        self.data.len() + self.zeros
    }

    /// True if a file has no bytes of it.
    pub(super) fn is_zero(&self) -> bool {
        self.is_nobits
    }

    /// Bytes that are in memory, which are all unless the section [is zero](Section::is_zero).
    pub(super) fn data_mut(&mut self) -> &mut Vec<u8> {
        &mut self.data
    }

    /// True for sections that the loader can put addresses into: loaded ones that are written to.
    pub(super) fn takes_addresses(&self) -> bool {
        self.is_loaded() && self.flags & WRITE != 0
    }

    /// True for sections that are loaded.
    pub(super) fn is_loaded(&self) -> bool {
        self.flags & ALLOC != 0
    }
}

impl Sections {
    /// Those of a text of this many bytes before it is read.
    pub(super) fn new(text: usize) -> Sections {
        let all = vec![Section::new(".text", flags_of(".text"))];
        let most = text.max(MOST_BYTES);
        Sections { all, used: 0, most, current: 0, previous: 0, stack: Vec::new() }
    }

    /// The fault of a text that asks for more bytes.
    pub(super) fn too_many_bytes(&self) -> InstructionFault {
        let most = self.most >> 20;
        InstructionFault::Other(format!("the sections of a text hold {most} MiB at most together"))
    }

    /// The section that is being filled.
    pub(super) fn current(&self) -> &Section {
        &self.all[self.current]
    }

    /// The same, to change.
    pub(super) fn current_mut(&mut self) -> &mut Section {
        &mut self.all[self.current]
    }

    /// Its number.
    pub(super) fn index(&self) -> u32 {
        self.current as u32
    }

    /// Where the next byte goes.
    pub(super) fn here(&self) -> ExpressionValue {
        ExpressionValue { section: Some(self.index()), offset: self.current().len() as i64 }
    }

    /// Goes on in the section with that name, which is made if it is new. The flags given have to agree with
    /// those given before.
    pub(super) fn switch(&mut self, name: &str, told: Option<(u64, u64)>) -> Result<(), InstructionFault> {
        let found = self.all.iter().position(|section| section.name == name);
        let index = match found {
            Some(index) => {
                let section = &self.all[index];
                let agrees = told.is_none_or(|told| told == (section.flags, section.entry_size));
                if !agrees {
                    return Err(InstructionFault::Other(format!("section `{name}` had other flags before")));
                }
                index
            }
            None if self.all.len() == MOST_SECTIONS => {
                return Err(InstructionFault::Other(format!("a text has {MOST_SECTIONS} sections at most")));
            }
            None => {
                let (flags, entry_size) = told.unwrap_or((flags_of(name), 0));
                self.all.push(Section { entry_size, ..Section::new(name, flags) });
                self.all.len() - 1
            }
        };
        self.previous = std::mem::replace(&mut self.current, index);
        Ok(())
    }

    /// Goes back to the section before the last switch.
    pub(super) fn switch_back(&mut self) {
        std::mem::swap(&mut self.current, &mut self.previous);
    }

    /// Remembers where to come back to.
    pub(super) fn push(&mut self) -> Result<(), InstructionFault> {
        if self.stack.len() == MOST_SECTIONS {
            return Err(InstructionFault::Other(format!(
                "`.pushsection` nests {MOST_SECTIONS} deep at most"
            )));
        }
        self.stack.push((self.current, self.previous));
        Ok(())
    }

    /// Comes back to it.
    pub(super) fn pop(&mut self) -> bool {
        match self.stack.pop() {
            Some((current, previous)) => {
                (self.current, self.previous) = (current, previous);
                true
            }
            None => false,
        }
    }

    /// Appends bytes.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), InstructionFault> {
        if self.current().is_nobits {
            return self.fill(bytes, bytes.len());
        }
        self.reserve(bytes.len())?;
        self.current_mut().data.extend_from_slice(bytes);
        Ok(())
    }

    /// The type of the current section: one that has other bytes than zeros stays as it is.
    pub(super) fn set_nobits(&mut self, is_nobits: bool) -> Result<(), InstructionFault> {
        if !is_nobits {
            return self.hold(self.current);
        }
        let section = self.current_mut();
        section.is_nobits = section.data.iter().all(|&byte| byte == 0);
        Ok(())
    }

    /// Gives a section its bytes, because something else than zeros is or will be among them.
    pub(super) fn hold(&mut self, index: usize) -> Result<(), InstructionFault> {
        self.reserve(self.all[index].zeros)?;
        let section = &mut self.all[index];
        let size = section.len();
        section.data.resize(size, 0);
        (section.zeros, section.is_nobits) = (0, false);
        Ok(())
    }

    /// Repeats a pattern until this many bytes are filled; the last one may be cut off.
    pub(super) fn fill(&mut self, pattern: &[u8], bytes: usize) -> Result<(), InstructionFault> {
        let section = &mut self.all[self.current];
        let is_zero = section.is_nobits && pattern.iter().all(|&byte| byte == 0);
        if is_zero && section.takes_addresses() {
            if bytes > MOST_ZEROS - section.zeros {
                let most = MOST_ZEROS >> 30;
                let fault = format!("a section has {most} GiB of zeros at most that are not in the file");
                return Err(InstructionFault::Other(fault));
            }
            section.zeros += bytes;
            return Ok(());
        }
        if !is_zero {
            self.hold(self.current)?;
        }
        self.reserve(bytes)?;
        self.current_mut().data.extend(pattern.iter().cycle().take(bytes));
        Ok(())
    }

    fn reserve(&mut self, bytes: usize) -> Result<(), InstructionFault> {
        if bytes > self.most - self.used {
            return Err(self.too_many_bytes());
        }
        self.used += bytes;
        Ok(())
    }
}
