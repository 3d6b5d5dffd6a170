//! One operand of an instruction: a register, a number, an address, with its signs.

use super::super::{Operand, OperandClass};
use super::cursor::Cursor;
use super::error::{Fault, ParseError};
use super::expression::{self, Expression, Place, Variant};
use super::immediate::Number;
use super::register::{self, Registers};
use super::{Context, Surroundings};

/// An operand before its row is taken into account.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Value {
    /// Registers, virtual ones too.
    Registers(Registers),
    /// A number.
    Number(Number),
    /// A number that is not known yet.
    Address(Expression, Option<Variant>),
    /// `off`
    Off,
}

/// An operand with its signs.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Source {
    pub value: Value,
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
        Vgpr => "a VGPR",
        Agpr => "an accumulation VGPR",
        VgprOrAgpr | MatrixFormatted => "a VGPR or an accumulation VGPR",
        MatrixC => "a VGPR, an accumulation VGPR or an inline constant",
        VectorSource => "a register or a number",
        VectorInline => "a register or an inline constant",
        BufferAddress | ScratchAddress => "a VGPR or `off`",
        GlobalAddress => "a VGPR pair, or a VGPR before a scalar base",
        ScalarBase => "SGPRs or `off`",
        ScalarOffset => "a scalar register or a number",
        Literal => "a number",
    }
}

/// Reads an operand.
pub(super) fn parse(cursor: &mut Cursor, context: &mut Context) -> Result<Source, ParseError> {
    let mut source = Source { value: Value::Off, negate: false, absolute: false, extend: false };
    if cursor.is_call("sext", b'(') {
        cursor.take_name();
        cursor.expect("(")?;
        source.extend = true;
        source.value = value(cursor, context, Place::Plain)?;
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
        source.value = value(cursor, context, Place::Plain)?;
        cursor.expect(")")?;
        source.absolute = true;
    } else if cursor.eat("|") {
        source.value = value(cursor, context, Place::BetweenBars)?;
        cursor.expect("|")?;
        source.absolute = true;
    } else {
        source.value = value(cursor, context, Place::Plain)?;
    }
    if negates {
        cursor.expect(")")?;
    }
    Ok(source)
}

fn value(cursor: &mut Cursor, context: &mut Context, place: Place) -> Result<Value, ParseError> {
    if cursor.eat_name("off") {
        return Ok(Value::Off);
    }
    if cursor.peek() == Some(b'%')
        && let Some(registers) = context.registers.as_deref_mut()
    {
        let (first, count, length) =
            registers(cursor.rest()).map_err(|message| cursor.fault(Fault::Other(message)))?;
        cursor.advance(length);
        return Ok(Value::Registers(Registers { first, count: Some(count) }));
    }
    if register::is_next(cursor) {
        return Ok(Value::Registers(register::parse(cursor, context.symbols)?));
    }
    number(cursor, context, place)
}

/// A number or an address.
fn number(cursor: &mut Cursor, context: &Context, place: Place) -> Result<Value, ParseError> {
    let mut digits = *cursor;
    let negative = digits.eat("-");
    if let Some(length) = expression::float_length(digits.rest()) {
        let text = &digits.rest()[..length];
        let unread = || digits.fault(Fault::Number { text: text.to_owned() });
        let value = expression::float(text).ok_or_else(unread)?;
        digits.advance(length);
        *cursor = digits;
        return Ok(Value::Number(Number::Float(if negative { -value } else { value })));
    }
    let start = *cursor;
    let (expression, variant) = expression::parse_address(cursor, place)?;
    if variant.is_some() {
        return Ok(Value::Address(expression, variant));
    }
    match expression.number(context.symbols) {
        Ok(number) => Ok(Value::Number(Number::Integer(number))),
        Err(Fault::Symbol { .. } | Fault::NotConstant) if context.surroundings == Surroundings::File => {
            Ok(Value::Address(expression, None))
        }
        Err(fault) => Err(start.fault(fault)),
    }
}

/// Operand classes in which an operand may be missing.
pub(super) const fn may_be_off(class: OperandClass) -> bool {
    matches!(class, OperandClass::BufferAddress | OperandClass::ScratchAddress | OperandClass::ScalarBase)
}

impl Source {
    /// A plain operand.
    pub(super) fn is_plain(&self) -> bool {
        !(self.negate || self.absolute || self.extend)
    }

    /// The number of registers that the text gives.
    pub(super) fn width(&self) -> Option<u32> {
        match self.value {
            // Registers that the instruction finds constants in have any width.
            Value::Registers(Registers { first, count }) if first.is_virtual() || !first.is_constant() => {
                count
            }
            _ => None,
        }
    }
}

/// Stands for an address until its number is known.
pub(super) const PLACEHOLDER: Operand = Operand::LITERAL;
