//! The walk over the lines of a text.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::conditions::{self, Conditions};
use super::directives::{self, DirectiveEffect};
use super::error::{AssemblerError, MOST_FAULTS, other};
use super::fixups::{Fixup, FixupKind};
use super::input::SourceInput;
use super::kernel::KernelBlock;
use super::macros::{Macro, MacroSyntax};
use super::metadata;
use super::sections::Sections;
use super::source::Comments;
use super::symbols::{NumberSymbols, Symbols};
use crate::codegen::isa::parse::cursor::StatementCursor;
use crate::codegen::isa::parse::{Expression, InstructionFault, ParseContext, Surroundings, parse_statement};
use crate::codegen::isa::{Inst, LineError, Slot, encode};
use crate::codegen::target::{ObjectVersion, TargetId};

/// What the caller knows in addition to the text.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct AssemblerOptions {
    /// The chip, if the text does not say it itself. If both do, they have to agree.
    pub target: Option<TargetId>,
}

/// A remark that is not a fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// Line, from 1.
    pub line: usize,
    /// The remark.
    pub message: String,
}

pub(super) struct TextAssembler {
    options: AssemblerOptions,
    pub target: Option<TargetId>,
    pub version: Option<ObjectVersion>,
    pub sections: Sections,
    pub symbols: Symbols,
    pub fixups: Vec<Fixup>,
    pub metadata: MetadataBlocks,
    pub kernels: DescribedKernels,
    pub notes: Vec<Note>,
    pub faults: Vec<AssemblerError>,
    pub source: ReadSource,
    pub macros: KnownMacros,
}

/// The metadata blocks of a text.
pub(super) struct MetadataBlocks {
    /// Their message packs.
    pub packs: Vec<Vec<u8>>,
    /// The line in which the last one begins.
    pub line: usize,
    /// Lines of a block that is open, and the number of the first.
    open: Option<(usize, Vec<String>)>,
}

/// The kernels of a text.
#[derive(Default)]
pub(super) struct DescribedKernels {
    /// A descriptor block that is open.
    open: Option<KernelBlock>,
    /// Kernels that have a descriptor.
    pub names: Vec<String>,
    /// The same, for looking up.
    described: BTreeSet<String>,
}

/// A text while it is read.
pub(super) struct ReadSource {
    /// The folder of the main file, in which other files are looked for; none for a text alone.
    pub folder: Option<PathBuf>,
    pub input: SourceInput,
    pub conditions: Conditions,
    pub comments: Comments,
    pub line: usize,
}

/// The macros of a text.
#[derive(Default)]
pub(super) struct KnownMacros {
    pub known: BTreeMap<String, Macro>,
    pub syntax: MacroSyntax,
    /// How many were expanded.
    pub expanded: usize,
}

impl TextAssembler {
    fn new(text: &str, folder: Option<&Path>, options: AssemblerOptions) -> TextAssembler {
        let mut symbols = Symbols::default();
        for name in [NEXT_VGPR, NEXT_SGPR] {
            // They are not labels, so they can be set.
            let _ = symbols.set(name, Expression::Number(0), None, 0);
        }
        symbols.section(".text", 0);
        TextAssembler {
            target: options.target,
            options,
            version: None,
            sections: Sections::new(text.len()),
            symbols,
            fixups: Vec::new(),
            metadata: MetadataBlocks { packs: Vec::new(), line: 1, open: None },
            kernels: DescribedKernels::default(),
            notes: Vec::new(),
            faults: Vec::new(),
            source: ReadSource {
                folder: folder.map(Path::to_owned),
                input: SourceInput::new(text),
                conditions: Conditions::default(),
                comments: Comments::default(),
                line: 0,
            },
            macros: KnownMacros::default(),
        }
    }

    /// Walks over all lines of a text, or until it has too many faults.
    pub(super) fn read(text: &str, folder: Option<&Path>, options: AssemblerOptions) -> TextAssembler {
        let mut assembler = TextAssembler::new(text, folder, options);
        if let Some(target) = options.target {
            assembler.set_target(target);
        }
        while let Some(line) = assembler.source.input.next() {
            assembler.source.line = assembler.source.input.line();
            if assembler.faults.len() >= MOST_FAULTS {
                break;
            }
            assembler.raw_line(line.as_str());
        }
        assembler.end();
        assembler
    }

    fn raw_line(&mut self, line: &str) {
        if let Some((first, lines)) = &mut self.metadata.open {
            if line.trim() != ".end_amdgpu_metadata" {
                lines.push(line.to_owned());
                return;
            }
            let (first, lines) = (*first, std::mem::take(lines));
            self.metadata.open = None;
            self.metadata.line = first - 1;
            match metadata::to_message_pack(&lines, self.target) {
                Ok(bytes) => self.metadata.packs.push(bytes),
                Err((at, fault)) => self.faults.push(AssemblerError::new(first + at, 1, fault)),
            }
            return;
        }
        let line = self.source.comments.strip(line).into_owned();
        if let Err(error) = self.statement(&mut StatementCursor::new(&line)) {
            self.faults.push(match self.source.input.expansion() {
                None => AssemblerError::at(self.source.line, error),
                // The columns of a line that has come of another one say nothing about that one.
                Some(expansion) => {
                    let (fault, name) = (error.fault, &expansion.name);
                    let fault = other(format!("{fault} (in `{}`, a line of `{name}`)", line.trim()));
                    AssemblerError::new(self.source.line, 1, fault)
                }
            });
        }
    }

    /// What is still open when the text ends, and what it lacks.
    fn end(&mut self) {
        let mut end =
            |fault: &str| self.faults.push(AssemblerError::new(self.source.line.max(1), 1, other(fault)));
        if self.source.comments.is_open() {
            end("the text ends inside a comment");
        }
        if self.metadata.open.is_some() {
            end("`.amdgpu_metadata` without `.end_amdgpu_metadata`");
        }
        if self.kernels.open.is_some() {
            end("`.amdhsa_kernel` without `.end_amdhsa_kernel`");
        }
        if self.source.conditions.open() > 0 {
            end("`.if` without `.endif`");
        }
        if self.target.is_none() && self.faults.is_empty() {
            self.faults.push(AssemblerError::new(1, 1, no_target()));
        }
    }

    /// Labels, then a directive or an instruction.
    fn statement(&mut self, cursor: &mut StatementCursor) -> Result<(), LineError> {
        if self.kernels.open.is_some() && !cursor.is_at_end() {
            return self.kernel_line(cursor);
        }
        loop {
            if let Some(directive) = cursor.name().and_then(conditions::find) {
                let start = *cursor;
                cursor.take_name();
                return self.condition(directive, &start, cursor);
            }
            if self.source.conditions.are_ignoring() {
                return Ok(());
            }
            let Some((name, after)) = label(cursor) else { break };
            let here = self.sections.here();
            let defined = self.symbols.label(&name, here, self.source.line);
            defined.map_err(|fault| cursor.fault(fault))?;
            *cursor = after;
        }
        let Some(name) = cursor.name() else {
            return if cursor.is_at_end() {
                Ok(())
            } else {
                Err(cursor.expected("a label, a directive or an instruction"))
            };
        };
        let mut after = *cursor;
        after.take_name();
        if after.peek() == Some(b'=') && !after.rest().starts_with("==") {
            let name = name.to_owned();
            *cursor = after;
            cursor.advance(1);
            return self.set(&name, cursor);
        }
        if let Some(called) = self.macros.known.get(name).cloned() {
            *cursor = after;
            return self.call(&called, cursor);
        }
        if name.starts_with('.') {
            let start = *cursor;
            *cursor = after;
            return self.directive(name, &start, cursor);
        }
        self.instruction(cursor)
    }

    fn instruction(&mut self, cursor: &mut StatementCursor) -> Result<(), LineError> {
        let target = self.target.ok_or_else(|| cursor.fault(no_target()))?;
        let (arch, start) = (target.arch, *cursor);
        let numbers = NumberSymbols(&self.symbols);
        let surroundings = Surroundings::File;
        let mut context = ParseContext { arch, symbols: &numbers, surroundings, registers: None };
        let parsed = parse_statement(cursor, &mut context)?;
        if !target.executes(parsed.inst.op) {
            let mnemonic = parsed.inst.op.mnemonic();
            return Err(start
                .fault(other(format!("{target} has no `{mnemonic}`, which is not the same on its chips"))));
        }
        let mut words = Vec::with_capacity(4);
        encode(&parsed.inst, arch, &mut words).map_err(|error| start.fault(error.into()))?;
        if let Some(reference) = parsed.reference {
            let (kind, offset) = match reference.slot {
                Slot::Branch => (FixupKind::Branch, 0),
                Slot::Literal(variant) => (FixupKind::Literal(variant), 4 * (words.len() - 1)),
            };
            let column = reference.column;
            let expression = self.symbols.fix_locals(reference.expression);
            let expression = expression.map_err(|fault| LineError { column, fault })?;
            self.fixup(kind, expression, offset, column);
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.sections.append(&bytes).map_err(|fault| start.fault(fault))?;
        self.count_registers(&parsed.inst);
        Ok(())
    }

    /// LLVM's symbols for the number of registers so far, which descriptors may ask for.
    fn count_registers(&mut self, inst: &Inst) {
        for (index, operand) in inst.operands.iter().enumerate().take(inst.op.info().operands.len()) {
            let width = i64::from(inst.width(index));
            let (name, first) = match (operand.as_vgpr(), operand.number()) {
                (Some(number), _) => (NEXT_VGPR, number),
                (None, Some(number @ 0..=101)) => (NEXT_SGPR, number),
                _ => continue,
            };
            let next = i64::from(first) + width;
            if self.symbols.number(name).unwrap_or(0) < next {
                // It is not a label, so it can be set.
                let _ = self.symbols.set(name, Expression::Number(next), None, self.source.line);
            }
        }
    }

    fn directive(
        &mut self,
        name: &str,
        start: &StatementCursor,
        cursor: &mut StatementCursor,
    ) -> Result<(), LineError> {
        let unknown = || start.fault(other(format!("`{name}` is not a known directive")));
        match directives::find(name).ok_or_else(unknown)? {
            DirectiveEffect::Sections(directive) => self.section_directive(directive, start, cursor)?,
            DirectiveEffect::Symbols(directive) => self.symbol_directive(directive, cursor)?,
            DirectiveEffect::Data(directive) => self.data_directive(directive, cursor)?,
            DirectiveEffect::Target => self.target(cursor)?,
            DirectiveEffect::Version => self.object_version(cursor)?,
            DirectiveEffect::Kernel => {
                let name = symbol_name(cursor)?;
                let target = self.target.ok_or_else(|| start.fault(no_target()))?;
                if self.kernels.described.contains(&name) {
                    return Err(start.fault(other(format!("`{name}` has a descriptor already"))));
                }
                self.kernels.open = Some(KernelBlock::new(name, target));
            }
            DirectiveEffect::Metadata => {
                self.metadata.open = Some((self.source.line + 1, Vec::new()));
            }
            DirectiveEffect::Include => return self.include(cursor),
            DirectiveEffect::Macro => return self.define(start, cursor),
            DirectiveEffect::Macros(syntax) => self.macros.syntax = syntax,
            DirectiveEffect::PurgeMacro => self.purge(cursor)?,
            DirectiveEffect::ExitMacro => self.exit(start)?,
            DirectiveEffect::Repeat(what) => return self.repeat(name, what, start, cursor),
            DirectiveEffect::Message(kind) => return self.message(name, kind, start, cursor),
            DirectiveEffect::End => while self.source.input.next().is_some() {},
            DirectiveEffect::Ignored => {
                let message = format!("`{name}` has no effect");
                if !self.notes.iter().any(|note| note.message == message) {
                    self.notes.push(Note { line: self.source.line, message });
                }
                return Ok(());
            }
        }
        end(cursor)
    }

    /// `.amdhsa_code_object_version 6`
    fn object_version(&mut self, cursor: &mut StatementCursor) -> Result<(), LineError> {
        let at = *cursor;
        let takes_older = self.target.is_none_or(|target| target.generic.is_none());
        self.version = Some(match self.number(cursor, i64::MIN, i64::MAX)? {
            4 if takes_older => ObjectVersion::V4,
            5 if takes_older => ObjectVersion::V5,
            6 => ObjectVersion::V6,
            found => {
                return Err(at.fault(InstructionFault::Choice { what: "the code object version", found }));
            }
        });
        Ok(())
    }

    /// `.amdgcn_target "amdgcn-amd-amdhsa--gfx942:xnack-"`
    fn target(&mut self, cursor: &mut StatementCursor) -> Result<(), LineError> {
        let start = *cursor;
        let text = cursor.take_quoted().ok_or_else(|| start.expected("a target in quotes"))?;
        let id = TargetId::after_triple(text);
        let id = id.ok_or_else(|| start.expected("a target that begins with `amdgcn-amd-amdhsa--`"))?;
        let id: TargetId = id.parse().map_err(|error| start.fault(other(format!("{error}"))))?;
        let earlier = self.options.target.or(self.target);
        if let Some(earlier) = earlier {
            // A target without modes takes those of the text.
            let plain = TargetId::from(earlier.target());
            if earlier != id && (earlier != plain || earlier.target() != id.target()) {
                return Err(start.fault(other(format!("the target is {id} here and {earlier} before"))));
            }
        }
        self.set_target(id);
        self.options.target = Some(id);
        Ok(())
    }

    /// Takes a target, and sets LLVM's symbols for the parts of its name.
    fn set_target(&mut self, id: TargetId) {
        self.target = Some(id);
        for (name, part) in GENERATION.into_iter().zip(name_parts(id.name)) {
            // They are not labels, so they can be set.
            let _ = self.symbols.set(name, Expression::Number(part), None, self.source.line);
        }
    }

    fn kernel_line(&mut self, cursor: &mut StatementCursor) -> Result<(), LineError> {
        let Some(mut block) = self.kernels.open.take() else { return Ok(()) };
        let start = *cursor;
        let name = cursor.take_name().ok_or_else(|| start.expected("an `.amdhsa_` directive"))?;
        if name == ".end_amdhsa_kernel" {
            end(cursor)?;
            return self.kernel_end(block, &start);
        }
        let read = self.kernel_directive(&mut block, name, &start, cursor);
        self.kernels.open = Some(block);
        read?;
        end(cursor)
    }

    fn kernel_directive(
        &mut self,
        block: &mut KernelBlock,
        name: &str,
        start: &StatementCursor,
        cursor: &mut StatementCursor,
    ) -> Result<(), LineError> {
        block.check(name).map_err(|fault| start.fault(fault))?;
        let at = *cursor;
        let value = self.number(cursor, i64::MIN, i64::MAX)?;
        block.set(name, value).map_err(|fault| at.fault(fault))
    }

    fn kernel_end(&mut self, block: KernelBlock, start: &StatementCursor) -> Result<(), LineError> {
        let descriptor = block.descriptor().map_err(|fault| start.fault(fault))?;
        let name = block.name;
        let symbol = format!("{name}.kd");
        let here = self.sections.here();
        self.symbols.label(&symbol, here, self.source.line).map_err(|fault| start.fault(fault))?;
        self.symbols.describe(&name, &symbol, self.source.line);
        self.fixup(
            FixupKind::Entry,
            Expression::Symbol(name.clone()),
            0,
            start.fault(InstructionFault::NotConstant).column,
        );
        self.sections.append(&descriptor.to_bytes()).map_err(|fault| start.fault(fault))?;
        self.kernels.described.insert(name.clone());
        self.kernels.names.push(name);
        Ok(())
    }
}

const NEXT_VGPR: &str = ".amdgcn.next_free_vgpr";
const NEXT_SGPR: &str = ".amdgcn.next_free_sgpr";
/// LLVM's symbols for the instruction set, in the order in which the chip's name has them.
const GENERATION: [&str; 3] =
    [".amdgcn.gfx_generation_number", ".amdgcn.gfx_generation_minor", ".amdgcn.gfx_generation_stepping"];

/// Generation, minor number and stepping of a chip: `gfx90a` is 9, 0, 10. Of a generic processor the
/// generation and the minor number are in its name.
fn name_parts(name: &str) -> [i64; 3] {
    let digits = name.trim_start_matches("gfx").chars().filter_map(|c| c.to_digit(16)).map(i64::from);
    let mut parts = [0; 3];
    let is_generic = name.contains('-');
    for (part, digit) in parts.iter_mut().zip(digits.take(if is_generic { 2 } else { 3 })) {
        *part = digit;
    }
    parts
}

fn no_target() -> InstructionFault {
    other("no target: neither `.amdgcn_target` before this nor the caller says which chip it is for")
}

/// A label and the rest of the line after its colon.
fn label<'a>(cursor: &StatementCursor<'a>) -> Option<(String, StatementCursor<'a>)> {
    let mut after = *cursor;
    let digits = cursor.rest().bytes().take_while(u8::is_ascii_digit).count();
    let name = if digits > 0 {
        after.advance(digits);
        cursor.rest()[..digits].to_owned()
    } else if cursor.peek() == Some(b'"') {
        after.take_quoted().filter(|name| is_name(name))?.to_owned()
    } else {
        after.take_name()?.to_owned()
    };
    (after.eat(":") && name != ".").then_some((name, after))
}

/// The name of a symbol, in quotes or not.
pub(super) fn symbol_name(cursor: &mut StatementCursor) -> Result<String, LineError> {
    let quoted = cursor.take_quoted();
    let name = match quoted {
        Some(name) => Some(name).filter(|name| is_name(name)),
        None => cursor.take_name().filter(|name| *name != "."),
    };
    name.map(str::to_owned).ok_or_else(|| cursor.expected("the name of a symbol"))
}

/// True for names that can be in a table of names.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(char::is_control)
}

pub(super) fn end(cursor: &StatementCursor) -> Result<(), LineError> {
    if cursor.is_at_end() { Ok(()) } else { Err(cursor.expected("the end of the line")) }
}
