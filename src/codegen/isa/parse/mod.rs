//! Assembler text to instructions: the reverse of the printer, in LLVM's syntax with all its variants.
//!
//! Everything is read off the instruction's row: which operands in which order (`operand`, `register`), how
//! numbers become constants (`immediate`), which modifiers (`modifier`), and the immediates with an inner
//! structure (`fields`). A mnemonic finds its row in `mnemonic`. The result is checked by the same rules as
//! any other instruction, so whatever is returned has an encoding.

pub(in crate::codegen) mod cursor;
mod error;
pub(in crate::codegen) mod expression;
mod fields;
mod immediate;
mod mnemonic;
mod modifier;
mod operand;
mod register;

pub(crate) use error::InstructionFault;
pub use error::LineError;
pub(crate) use expression::{Binary, Expression, ExpressionValue, NoSymbols, SymbolValues, Variant};

use super::buffer_format::BufferFormat;
use super::encode::{encode, encoding, fits_short};
use super::layout::Encoding;
use super::spec::OperandKinds;
use super::verify::{OperandError, check, takes_width};
use super::{
    Arch, Element, Field, Format, Inst, MAX_OPERANDS, Meaning, Modifiers, Opcode, Operand, OperandClass, Role,
};
use cursor::StatementCursor;
use expression::ExpressionPlace;
use immediate::Number;
use mnemonic::{Hints, MnemonicForm};
use modifier::Tail;
use operand::SignedOperand;

/// An instruction, and the part of it that depends on symbols.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParsedInstruction {
    /// The instruction; its immediate is 0 in place of the reference.
    pub inst: Inst,
    /// The expression that the immediate depends on.
    pub reference: Option<Reference>,
}

/// A place in an instruction that depends on symbols.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reference {
    /// Where it is in the instruction.
    pub slot: Slot,
    /// The expression.
    pub expression: Expression,
    /// Column of the expression, from 1.
    pub column: usize,
}

impl Reference {
    /// The name of the label, if the expression is only a label.
    pub fn label(&self) -> Option<&str> {
        match &self.expression {
            Expression::Symbol(name) => Some(name),
            _ => None,
        }
    }
}

/// Where in an instruction a reference is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Slot {
    /// simm16 of a branch: the distance from the next instruction, in words.
    Branch,
    /// The literal.
    Literal(Option<Variant>),
}

/// Reads a register that is not one of the hardware's, after a `%`: the operand, how many registers, the
/// length of its text.
pub(in crate::codegen) type ReadRegister<'a> = dyn FnMut(&str) -> Result<(Operand, u32, usize), String> + 'a;

/// The context of an instruction.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(in crate::codegen) enum Surroundings {
    /// Alone: something that is not a number is a fault, except for the target of a branch.
    Alone,
    /// In a file: unknown symbols are addresses.
    File,
    /// In a machine body, which may be for any chip and may break the rules of operands.
    Body,
}

/// The context in which an instruction is read.
pub(in crate::codegen) struct ParseContext<'a> {
    /// The chip; in a body, the one whose names are used.
    pub arch: Arch,
    /// Symbols that are known numbers.
    pub symbols: &'a dyn SymbolValues,
    /// The context.
    pub surroundings: Surroundings,
    /// Reader of virtual registers.
    pub registers: Option<&'a mut ReadRegister<'a>>,
}

/// Reads one instruction as `arch` spells it. Branch targets may be names; every other number is known.
///
/// # Errors
/// The first fault and its column.
///
/// # Example
/// ```
/// use groundswell::isa::{Arch, parse_inst};
/// let parsed = parse_inst("v_add_f32 v0, -|v1|, v2 clamp", Arch::Gfx942)?;
/// assert_eq!(parsed.inst.to_string(), "v_add_f32_e64 v0, -|v1|, v2 clamp");
/// let error = parse_inst("v_add_f32 v0, v1", Arch::Gfx942).unwrap_err();
/// assert_eq!(error.to_string(), "column 17: expected a register or a number, found the end of the line");
/// # Ok::<(), groundswell::isa::LineError>(())
/// ```
pub fn parse_inst(text: &str, arch: Arch) -> Result<ParsedInstruction, LineError> {
    let surroundings = Surroundings::Alone;
    let mut context = ParseContext { arch, symbols: &NoSymbols, surroundings, registers: None };
    parse_statement(&mut StatementCursor::new(text), &mut context)
}

/// Reads the instruction in the rest of a statement.
pub(in crate::codegen) fn parse_statement(
    cursor: &mut StatementCursor,
    context: &mut ParseContext,
) -> Result<ParsedInstruction, LineError> {
    let start = *cursor;
    let name = cursor.take_name().ok_or_else(|| cursor.expected("an instruction"))?;
    let is_body = context.surroundings == Surroundings::Body;
    let found = mnemonic::find(name, (!is_body).then_some(context.arch), || Hints::of(cursor.rest()));
    let (op, form) = found.map_err(|fault| start.fault(fault))?;
    if is_body {
        context.arch = op.spelling();
    }
    let statement =
        Statement { start, op, form, inst: Inst::new(op, &[]), reference: None, places: Default::default() };
    statement.parse(cursor, context)
}

/// Where each operand is in the text, and what was read there.
type OperandPlaces = [Option<(usize, SignedOperand)>; MAX_OPERANDS];

struct Statement<'a> {
    start: StatementCursor<'a>,
    op: Opcode,
    form: MnemonicForm,
    inst: Inst,
    reference: Option<Reference>,
    places: OperandPlaces,
}

impl Statement<'_> {
    fn parse(
        mut self,
        cursor: &mut StatementCursor,
        context: &mut ParseContext,
    ) -> Result<ParsedInstruction, LineError> {
        let info = self.op.info();
        let mut tail_imm = None;
        let mut long = false;
        if info.format == Format::Exp {
            self.inst.imm = fields::export_target(cursor)?;
        }
        match info.format {
            Format::Sopp => self.program_control(cursor, context)?,
            Format::Sopk => self.immediate_form(cursor, context)?,
            _ => {
                self.operands(cursor, context)?;
                if info.meaning == Meaning::SetGprIndexOn {
                    cursor.eat(",");
                    self.inst.imm = fields::gpr_index(cursor, context.symbols)?;
                }
                if is_interpolation(info.format) && info.operands.len() < 3 {
                    self.attribute(cursor)?;
                }
                let mut tail = Tail::new(&self.inst, context);
                tail.parse(cursor)?;
                self.inst.modifiers = tail.modifiers;
                self.inst.imm = tail.imm;
                if info.format == Format::Exp {
                    self.compress_export();
                }
                long = tail.has_neutral_omod && info.format.has_e64();
                tail_imm = Some((tail.dpp(), tail.sdwa(), tail.default_sdwa().to_imm()));
            }
        }
        if !cursor.is_at_end() {
            return Err(cursor.expected("the end of the line"));
        }
        if long && self.form == MnemonicForm::Any {
            self.form = MnemonicForm::Long;
        }
        let (dpp, sdwa, plain_sdwa) = tail_imm.unwrap_or_default();
        self.take_form(dpp, sdwa, plain_sdwa, context.surroundings)?;
        self.signs(context.arch)?;
        self.widths()?;
        if context.surroundings != Surroundings::Body {
            self.finish(context.arch)?;
        }
        Ok(ParsedInstruction { inst: self.inst, reference: self.reference })
    }

    fn mnemonic(&self) -> &'static str {
        self.op.mnemonic()
    }

    /// Parameter and attribute of an interpolation.
    fn attribute(&mut self, cursor: &mut StatementCursor) -> Result<(), LineError> {
        if self.op.info().operands.len() == 1 {
            cursor.eat(",");
            let parameter = fields::parameter(cursor)?;
            match self.op.info().format {
                Format::Vintrp => self.inst.modifiers = Modifiers::new().parameter(parameter),
                _ => self.inst.imm = parameter << 8,
            }
        }
        cursor.eat(",");
        self.inst.imm |= fields::attribute(cursor)?;
        Ok(())
    }

    /// A compressed export says each of its two registers twice.
    fn compress_export(&mut self) {
        if self.inst.modifiers.get_export_flags() & 1 != 0 {
            let [first, _, second, ..] = self.inst.operands;
            self.inst.operands[..4].copy_from_slice(&[first, second, Operand::NONE, Operand::NONE]);
        }
    }

    /// SOPP.
    fn program_control(
        &mut self,
        cursor: &mut StatementCursor,
        context: &ParseContext,
    ) -> Result<(), LineError> {
        let info = self.op.info();
        let symbols = context.symbols;
        self.inst.imm = match info.meaning {
            _ if !info.takes_immediate() => 0,
            Meaning::Branch(_) => return self.branch(cursor, context),
            Meaning::EndProgram if cursor.is_at_end() => 0,
            Meaning::Wait => fields::waits(cursor, symbols)?,
            Meaning::SendMessage => fields::message(cursor, symbols)?,
            Meaning::SetGprIndexMode => fields::gpr_index(cursor, symbols)?,
            _ => fields::half_word(cursor, symbols)?,
        };
        Ok(())
    }

    /// A number of words, or a label.
    fn branch(&mut self, cursor: &mut StatementCursor, context: &ParseContext) -> Result<(), LineError> {
        let start = *cursor;
        let expression = expression::parse(cursor, ExpressionPlace::Plain)?;
        match expression.number(context.symbols) {
            Ok(number) if (-0x8000..=0xffff).contains(&number) => self.inst.imm = number as u32 & 0xffff,
            Ok(found) => {
                let what = "the distance of a branch";
                return Err(start.fault(InstructionFault::Range { what, low: -0x8000, high: 0xffff, found }));
            }
            Err(InstructionFault::Division) => return Err(start.fault(InstructionFault::Division)),
            Err(_) => {
                let column = start.fault(InstructionFault::NotConstant).column;
                self.reference = Some(Reference { slot: Slot::Branch, expression, column });
            }
        }
        Ok(())
    }

    /// SOPK.
    fn immediate_form(
        &mut self,
        cursor: &mut StatementCursor,
        context: &mut ParseContext,
    ) -> Result<(), LineError> {
        let (arch, symbols) = (context.arch, context.symbols);
        let meaning = self.op.info().meaning;
        if meaning == Meaning::SetHardwareRegister {
            let hwreg = fields::hwreg(cursor, symbols, arch)?;
            cursor.eat(",");
            self.operands(cursor, context)?;
            match self.op {
                Opcode::SSetregImm32B32 => self.inst.modifiers = Modifiers::new().hwreg(hwreg),
                _ => self.inst.imm = hwreg,
            }
            return Ok(());
        }
        self.operands(cursor, context)?;
        cursor.eat(",");
        match meaning {
            Meaning::Call | Meaning::ForkIf => self.branch(cursor, context)?,
            Meaning::GetHardwareRegister => self.inst.imm = fields::hwreg(cursor, symbols, arch)?,
            _ => self.inst.imm = fields::half_word(cursor, symbols)?,
        }
        Ok(())
    }

    fn operands(
        &mut self,
        cursor: &mut StatementCursor,
        context: &mut ParseContext,
    ) -> Result<(), LineError> {
        if self.op.info().meaning == Meaning::ProbeAddress {
            let probe = fields::number(cursor, context.symbols, "the probe", (0, 0x7f))?;
            self.inst.modifiers = Modifiers::new().probe(probe as u32);
            cursor.eat(",");
        }
        for (index, spec) in self.op.info().operands.iter().enumerate() {
            if index > 0 {
                cursor.eat(",");
            }
            if is_interpolation(self.op.info().format) && spec.field == Field::Src2 {
                self.attribute(cursor)?;
                cursor.eat(",");
            }
            if self.is_implied(index, cursor, context) {
                self.inst.operands[index] = Operand::VCC;
                continue;
            }
            if cursor.is_at_end() {
                return Err(cursor.expected(operand::wanted(spec.class)));
            }
            let is_format_near = self.op.info().format == Format::Mtbuf && spec.field == Field::Offset;
            let mut format = None;
            if is_format_near {
                format = fields::formats(cursor, context.symbols)?;
            }
            let start = *cursor;
            let source = operand::parse(cursor, context).map_err(|error| match error.fault {
                InstructionFault::Expected { found, .. }
                    if error.column == start.fault(InstructionFault::TooLong).column =>
                {
                    start.fault(InstructionFault::Expected { what: operand::wanted(spec.class), found })
                }
                _ => error,
            })?;
            self.operand(index, &source, &start, cursor)?;
            self.places[index] = Some((start.at(), source));
            if is_format_near && format.is_none() {
                cursor.eat(",");
                format = fields::format(cursor, context.symbols)?;
            }
            if let Some(format) = format {
                let flip = format.to_bits() ^ BufferFormat::USUAL.to_bits();
                self.inst.modifiers = self.inst.modifiers.format_flip(flip);
            }
        }
        Ok(())
    }

    /// True for VCC where the text may leave it away: as the result of a comparison, and as the mask at the
    /// end of a short encoding (LLVM, VOPCInstructions.td and VOP2Instructions.td, `InstAlias`).
    fn is_implied(&self, index: usize, cursor: &StatementCursor, context: &ParseContext) -> bool {
        if context.surroundings == Surroundings::Body {
            return false;
        }
        match self.op.info().operands[index].class {
            OperandClass::Mask if index == 0 => {
                let may_be_short = matches!(self.form, MnemonicForm::Any | MnemonicForm::Short);
                may_be_short && commas(cursor.rest()) + 2 == self.op.info().operands.len()
            }
            OperandClass::MaskSource => self.form == MnemonicForm::Short && cursor.is_at_end(),
            _ => false,
        }
    }

    /// Kind of data of an operand, as far as numbers are concerned; literals in fixed places are of the
    /// result's kind. To LLVM's assembler sources of V_FMA_MIX* are halves, whatever op_sel_hi says
    /// (VOP3PInstructions.td).
    fn element(&self, index: usize) -> Element {
        let info = self.op.info();
        let of = if info.format == Format::Vop2K { 0 } else { index };
        let spec = &info.operands[of];
        match info.meaning {
            Meaning::FmaMix(_) | Meaning::FmaMixHigh if spec.role == Role::Use => Element::F16,
            _ => info.constant_element(spec),
        }
    }

    /// Puts an operand into the instruction.
    fn operand(
        &mut self,
        index: usize,
        source: &SignedOperand,
        start: &StatementCursor,
        end: &StatementCursor,
    ) -> Result<(), LineError> {
        let spec = &self.op.info().operands[index];
        let misplaced = || {
            let text = start.rest()[..end.at() - start.at()].trim_end_matches([' ', '\t', ',']);
            start.fault(InstructionFault::Expected {
                what: operand::wanted(spec.class),
                found: Some(text.to_owned()),
            })
        };
        let mut literal = None;
        let operand = match &source.value {
            operand::OperandValue::Off if operand::may_be_off(spec.class) => Operand::NONE,
            operand::OperandValue::Off => return Err(misplaced()),
            operand::OperandValue::Registers(registers) => registers.first,
            operand::OperandValue::Number(number) if spec.class == OperandClass::ScalarOffset => {
                let immediate::Number::Integer(offset) = *number else { return Err(misplaced()) };
                let (low, high) = modifier::offset_range(self.op.info()).unwrap_or((0, 0));
                if !(low..=high).contains(&offset) {
                    let what = "the offset";
                    return Err(start.fault(InstructionFault::Range { what, low, high, found: offset }));
                }
                self.inst.imm = offset as u32;
                Operand::NONE
            }
            operand::OperandValue::Number(number) => {
                let constant = immediate::constant(*number, self.element(index), spec.class);
                let (operand, bits) = constant.map_err(|fault| start.fault(fault))?;
                literal = bits;
                operand
            }
            operand::OperandValue::Address(expression, variant) => {
                if self.reference.is_some() || self.inst.operands.contains(&Operand::LITERAL) {
                    return Err(start.fault(InstructionFault::TwoLiterals));
                }
                let column = start.fault(InstructionFault::NotConstant).column;
                let slot = Slot::Literal(*variant);
                self.reference = Some(Reference { slot, expression: expression.clone(), column });
                operand::PLACEHOLDER
            }
        };
        if !operand.is_virtual() && !OperandKinds::of(operand).inside(spec.class.kinds()) {
            return Err(misplaced());
        }
        if let Some(bits) = literal {
            let another = self.inst.operands.contains(&Operand::LITERAL)
                && (self.inst.imm != bits || self.reference.is_some());
            if another {
                return Err(start.fault(InstructionFault::TwoLiterals));
            }
            self.inst.imm = bits;
        }
        self.inst.operands[index] = operand;
        Ok(())
    }

    /// The modifiers with the signs that are written at sources.
    fn with_signs(&self) -> Modifiers {
        let (info, mut m) = (self.op.info(), self.inst.modifiers);
        for (source, spec) in self.places.iter().zip(info.operands) {
            let Some((_, source)) = source else { continue };
            let bit = spec.field.source_bit();
            let set = |wanted: bool| if wanted { bit } else { 0 };
            if !source.is_plain() && info.format.has_signs() {
                m = m.neg(m.get_neg() | set(source.negate)).abs(m.get_abs() | set(source.absolute));
                m = m.sign_extend(m.get_sign_extend() | set(source.extend));
            }
        }
        m
    }

    /// The encoding that the suffix or the modifiers ask for.
    fn take_form(
        &mut self,
        dpp: Option<u32>,
        sdwa: Option<u32>,
        plain_sdwa: u32,
        surroundings: Surroundings,
    ) -> Result<(), LineError> {
        let info = self.op.info();
        let start = self.start;
        let fault = |form| start.fault(InstructionFault::Form { mnemonic: info.mnemonic, form });
        let sources = || self.places.iter().flatten().map(|(_, source)| source);
        let extends = sources().any(|source| source.extend);
        let form = match self.form {
            MnemonicForm::Any if dpp.is_some() => MnemonicForm::Dpp,
            MnemonicForm::Any if sdwa.is_some() || extends => MnemonicForm::Sdwa,
            form => form,
        };
        let wrong = dpp.is_some() && form != MnemonicForm::Dpp
            || (sdwa.is_some() || extends) && form != MnemonicForm::Sdwa;
        let mut m = self.with_signs();
        match form {
            _ if wrong => return Err(fault(suffix(form, dpp.is_some()))),
            MnemonicForm::Any | MnemonicForm::Short if self.absorb_signs(&mut m)? => {}
            MnemonicForm::Any => {}
            MnemonicForm::Short => {
                let long = info.format.has_e64() && {
                    let inst = self.inst.modifiers(m);
                    encoding(&inst, info) != Encoding::of(info.format)
                };
                if long || (info.format.is_vop() && is_long_only(info.format)) {
                    return Err(fault("_e32"));
                }
            }
            MnemonicForm::Long if info.format.has_e64() => {
                // In a body it is not known yet which registers it will have.
                if surroundings == Surroundings::Body || fits_short(&self.inst.modifiers(m), info) {
                    m = m.e64();
                }
            }
            MnemonicForm::Long if is_long_only(info.format) => {}
            MnemonicForm::Long => return Err(fault("_e64")),
            MnemonicForm::Dpp => {
                let imm = dpp.filter(|_| !info.dpp_modifiers.is_empty()).ok_or_else(|| fault("_dpp"))?;
                self.inst.imm = imm;
                m = m.dpp();
            }
            MnemonicForm::Sdwa if info.sdwa_modifiers.is_empty() => return Err(fault("_sdwa")),
            MnemonicForm::Sdwa => {
                self.inst.imm = sdwa.unwrap_or(plain_sdwa);
                m = m.sdwa();
            }
        }
        self.inst.modifiers = m;
        Ok(())
    }

    /// The short encoding has no signs, but a number in it can have its own. True if that made the
    /// instruction fit.
    fn absorb_signs(&mut self, m: &mut Modifiers) -> Result<bool, LineError> {
        let info = self.op.info();
        if !info.format.has_e64() {
            return Ok(false);
        }
        let signed = |index: usize| match &self.places[index] {
            Some((at, source @ SignedOperand { value: operand::OperandValue::Number(number), .. }))
                if info.operands[index].field == Field::Src0 && !source.is_plain() =>
            {
                // The sign of a 64-bit integer is not in the half that a literal holds (LLVM,
                // `isLiteralImm`).
                let is_half = matches!(number, Number::Integer(_)) && self.element(index) == Element::F64;
                (!is_half).then_some((*at, *number, source.negate, source.absolute))
            }
            _ => None,
        };
        let found = (0..info.operands.len()).find_map(|index| Some((index, signed(index)?)));
        let Some((index, (at, number, negate, absolute))) = found else { return Ok(false) };
        let without = m.neg(m.get_neg() & !1).abs(m.get_abs() & !1);
        if info.modifiers.get_neg() & 1 == 0 || !fits_short(&self.inst.modifiers(without), info) {
            return Ok(false);
        }
        let (element, class) = (self.element(index), info.operands[index].class);
        let constant = immediate::constant(number.with_signs(element, negate, absolute), element, class);
        let (operand, bits) = constant.map_err(|fault| self.start.fault_at(at, fault))?;
        self.inst.operands[index] = operand;
        self.inst.imm = bits.unwrap_or(self.inst.imm);
        if let Some((_, source)) = &mut self.places[index] {
            (source.negate, source.absolute) = (false, false);
        }
        *m = without;
        Ok(true)
    }

    /// Checks that signs are where the instruction has them.
    fn signs(&self, arch: Arch) -> Result<(), LineError> {
        let info = self.op.info();
        let mut allowed = info.modifiers_on(arch, self.inst.modifiers);
        if !info.format.has_signs() {
            allowed = Modifiers::new();
        }
        for (place, spec) in self.places.iter().zip(info.operands) {
            let Some((at, source)) = place else { continue };
            let bit = spec.field.source_bit();
            let missing = |mask: u32| bit == 0 || mask & bit == 0;
            let sign = match () {
                () if source.negate && missing(allowed.get_neg()) => "the negation",
                () if source.absolute && missing(allowed.get_abs()) => "the absolute value",
                () if source.extend && missing(allowed.get_sign_extend()) => "the sign extension",
                () => continue,
            };
            return Err(self.start.fault_at(*at, InstructionFault::Sign { mnemonic: self.mnemonic(), sign }));
        }
        Ok(())
    }

    /// Checks that operands have as many registers as they need, and addresses where modifiers ask for them.
    fn widths(&mut self) -> Result<(), LineError> {
        let modifiers = self.inst.modifiers;
        for (index, place) in self.places.iter().enumerate() {
            let Some((at, source)) = place else { continue };
            if self.op.info().operands[index].class == OperandClass::BufferAddress {
                let wants = modifiers.wants_buffer_address();
                let what = match (wants, source.value == operand::OperandValue::Off) {
                    (true, true) => Some("a VGPR because of `offen` or `idxen`"),
                    (false, false) => Some("`off`, or `offen` or `idxen` after it"),
                    _ => None,
                };
                if let Some(what) = what {
                    return Err(self.start.expected_at(*at, what));
                }
            }
            // The address of an image has as many registers as the text gives it, if it can have them.
            let spec = &self.op.info().operands[index];
            if let (OperandClass::ImageAddress(_), Some(found)) = (spec.class, source.width())
                && u8::try_from(found).is_ok_and(|found| takes_width(spec, found))
            {
                self.inst.imm = found - u32::from(spec.width);
            }
            let wanted = u32::from(self.inst.width(index));
            if let Some(found) = source.width().filter(|&found| found != wanted) {
                let fault = InstructionFault::Width { mnemonic: self.mnemonic(), found, wanted };
                return Err(self.start.fault_at(*at, fault));
            }
        }
        Ok(())
    }

    /// The rules that every instruction obeys.
    fn finish(&self, arch: Arch) -> Result<(), LineError> {
        check(&self.inst, arch).map_err(|error| {
            let index = match error {
                OperandError::Literal { .. } => {
                    self.inst.operands.iter().position(|&o| o == Operand::LITERAL)
                }
                _ => index_of(&error),
            };
            let place = index.and_then(|index| self.places.get(index)?.as_ref());
            let at = place.map_or(self.start.at(), |(at, _)| *at);
            self.start.fault_at(at, error.into())
        })?;
        let mut words = Vec::with_capacity(4);
        encode(&self.inst, arch, &mut words).map_err(|error| self.start.fault(error.into()))
    }
}

/// Commas outside of brackets and parentheses.
fn commas(text: &str) -> usize {
    let mut depth = 0i32;
    let mut count = 0;
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b',' if depth == 0 => count += 1,
            _ => {}
        }
    }
    count
}

/// Formats that always have 64 bits.
const fn is_long_only(format: Format) -> bool {
    use Format::*;
    matches!(format, Vop3 | Vop3Sel | Vop3b | Vop3p | Vop3pMix | Mai | MaiScaled)
        || format.is_long_interpolation()
}

/// Formats with an attribute between or after their operands.
const fn is_interpolation(format: Format) -> bool {
    matches!(format, Format::Vintrp) || format.is_long_interpolation()
}

const fn suffix(form: MnemonicForm, is_dpp: bool) -> &'static str {
    match form {
        MnemonicForm::Short => "_e32",
        MnemonicForm::Long => "_e64",
        _ if is_dpp => "_dpp",
        _ => "_sdwa",
    }
}

/// The operand that an error is about.
fn index_of(error: &OperandError) -> Option<usize> {
    use OperandError::*;
    match error {
        Class { index, .. }
        | TooMany { index, .. }
        | Alignment { index, .. }
        | Range { index, .. }
        | File { index, .. } => Some(*index),
        _ => None,
    }
}
