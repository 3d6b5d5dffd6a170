//! One operand of an instruction: a register, a number, an address, with its signs.

use super::super::{Operand, OperandClass};
use super::cursor::StatementCursor;
use super::error::{InstructionFault, LineError};
use super::expression::{self, Expression, ExpressionPlace, Variant};
use super::immediate::Number;
use super::register::{self, RegisterSequence};
use super::{ParseContext, Surroundings};

/// An operand before its row is taken into account.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum OperandValue {
    /// Registers, virtual ones too.
    Registers(RegisterSequence),
    /// A number.
    Number(Number),
    /// A number that is not known yet.
    Address(Expression, Option<Variant>),
    /// `off`
    Off,
}

/// An operand with its signs.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct SignedOperand {
    pub value: OperandValue,
    pub negate: bool,
    pub absolute: bool,
    pub extend: bool,
}

/// The operands that a class accepts, in words.
pub(super) const fn wanted(class: OperandClass) -> &'static str {
    use OperandClass::*;
    match class {
        Sgpr => "SGPRs",
        ScalarDst | ScalarRegister => "a scalar register",
        ScalarSource => "a scalar register or a number",
        ScalarInline => "a scalar register or an inline constant",
        Mask => "an SGPR pair or `vcc`",
        MaskSource => "an SGPR pair, `vcc` or an inline constant",
        Vgpr | ImageAddress(_) => "a VGPR",
        Agpr => "an accumulation VGPR",
        VgprOrAgpr | MatrixFormatted | ImageData => "a VGPR or an accumulation VGPR",
        MatrixC => "a VGPR, an accumulation VGPR or an inline constant",
        VectorSource => "a register or a number",
        VectorInline => "a register or an inline constant",
        BufferAddress | ScratchAddress | Exported => "a VGPR or `off`",
        GlobalAddress => "a VGPR pair, or a VGPR before a scalar base",
        ScalarBase => "SGPRs or `off`",
        ScalarOffset => "a scalar register or a number",
        Literal => "a number",
    }
}

/// Reads an operand.
pub(super) fn parse(
    cursor: &mut StatementCursor,
    context: &mut ParseContext,
) -> Result<SignedOperand, LineError> {
    let mut source =
        SignedOperand { value: OperandValue::Off, negate: false, absolute: false, extend: false };
    if cursor.is_call("sext", b'(') {
        cursor.take_name();
        cursor.expect("(")?;
        source.extend = true;
        source.value = value(cursor, context, ExpressionPlace::Plain)?;
        cursor.expect(")")?;
        return Ok(source);
    }
    let minus = cursor.peek() == Some(b'-') && {
        let mut next = *cursor;
        next.advance(1);
        if next.peek() == Some(b'-') {
            return Err(next.expected("a number, or `neg(..)` around it"));
        }
        next.peek() == Some(b'|')
            || next.peek() == Some(b'%')
            || next.is_call("abs", b'(')
            || register::is_next(&next)
    };
    if minus {
        cursor.advance(1);
    }
    let negates = !minus && cursor.is_call("neg", b'(');
    if negates {
        cursor.take_name();
        cursor.expect("(")?;
    }
    source.negate = minus || negates;
    if cursor.is_call("abs", b'(') {
        cursor.take_name();
        cursor.expect("(")?;
        source.value = value(cursor, context, ExpressionPlace::Plain)?;
        cursor.expect(")")?;
        source.absolute = true;
    } else if cursor.eat("|") {
        source.value = value(cursor, context, ExpressionPlace::BetweenBars)?;
        cursor.expect("|")?;
        source.absolute = true;
    } else {
        source.value = value(cursor, context, ExpressionPlace::Plain)?;
    }
    if negates {
        cursor.expect(")")?;
    }
    Ok(source)
}

fn value(
    cursor: &mut StatementCursor,
    context: &mut ParseContext,
    place: ExpressionPlace,
) -> Result<OperandValue, LineError> {
    if cursor.eat_name("off") {
        return Ok(OperandValue::Off);
    }
    if cursor.peek() == Some(b'%')
        && let Some(registers) = context.registers.as_deref_mut()
    {
        let (first, count, length) =
            registers(cursor.rest()).map_err(|message| cursor.fault(InstructionFault::Other(message)))?;
        cursor.advance(length);
        return Ok(OperandValue::Registers(RegisterSequence { first, count: Some(count) }));
    }
    if register::is_next(cursor) {
        return Ok(OperandValue::Registers(register::parse(cursor, context.symbols)?));
    }
    number(cursor, context, place)
}

/// A number or an address.
fn number(
    cursor: &mut StatementCursor,
    context: &ParseContext,
    place: ExpressionPlace,
) -> Result<OperandValue, LineError> {
    let mut digits = *cursor;
    let negative = digits.eat("-");
    if let Some(length) = expression::float_length(digits.rest()) {
        let text = &digits.rest()[..length];
        let unread = || digits.fault(InstructionFault::Number { text: text.to_owned() });
        let value = expression::float(text).ok_or_else(unread)?;
        digits.advance(length);
        *cursor = digits;
        return Ok(OperandValue::Number(Number::Float(if negative { -value } else { value })));
    }
    let start = *cursor;
    let (expression, variant) = expression::parse_address(cursor, place)?;
    if variant.is_some() {
        return Ok(OperandValue::Address(expression, variant));
    }
    match expression.number(context.symbols) {
        Ok(number) => Ok(OperandValue::Number(Number::Integer(number))),
        Err(InstructionFault::Symbol { .. } | InstructionFault::NotConstant)
            if context.surroundings == Surroundings::File =>
        {
            Ok(OperandValue::Address(expression, None))
        }
        Err(fault) => Err(start.fault(fault)),
    }
}

/// Operand classes in which an operand may be missing.
pub(super) const fn may_be_off(class: OperandClass) -> bool {
    use OperandClass::*;
    matches!(class, BufferAddress | ScratchAddress | Exported | ScalarBase)
}

impl SignedOperand {
    /// A plain operand.
    pub(super) fn is_plain(&self) -> bool {
        !(self.negate || self.absolute || self.extend)
    }

    /// The number of registers that the text gives.
    pub(super) fn width(&self) -> Option<u32> {
        match self.value {
            // Registers that the instruction finds constants in have any width.
            OperandValue::Registers(RegisterSequence { first, count })
                if first.is_virtual() || !first.is_constant() =>
            {
                count
            }
            _ => None,
        }
    }
}

/// Stands for an address until its number is known.
pub(super) const PLACEHOLDER: Operand = Operand::LITERAL;
