//! Numbers as operands: inline constants where the operand's kind of data has one, otherwise literals.
//!
//! The rules are those of LLVM's assembler (`AMDGPUOperand::isInlinableImm`, `isLiteralImm`,
//! `addLiteralImmOperand`). A float becomes one of the operand's kind; an integer is the operand's bits.

use crate::float16::{bf16, f16};

use super::super::meaning::Element;
use super::super::{Operand, OperandClass};
use super::error::InstructionFault;

/// A number as the text writes it.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) enum Number {
    Integer(i64),
    Float(f64),
}

impl Number {
    /// The number with the signs before it, as the bits of an operand.
    pub(super) fn with_signs(self, element: Element, negate: bool, absolute: bool) -> Number {
        match self {
            Number::Float(value) => {
                let value = if absolute { value.abs() } else { value };
                Number::Float(if negate { -value } else { value })
            }
            Number::Integer(value) => {
                let bits = ConstantKind::of(element).bits();
                let sign = 1 << (bits - 1);
                let value = if absolute { value & !sign } else { value };
                let value = if negate { value ^ sign } else { value };
                Number::Integer(value & ((1 << bits) - 1))
            }
        }
    }

    fn text(self) -> String {
        match self {
            Number::Integer(number) => number.to_string(),
            Number::Float(number) => format!("{number:?}"),
        }
    }
}

/// The operand for a number, and the literal if it is one.
pub(super) type ConstantOperand = (Operand, Option<u32>);

/// Kinds of data, as far as constants are concerned.
#[derive(Copy, Clone, PartialEq, Eq)]
enum ConstantKind {
    Bits16,
    F16,
    Bf16,
    /// Two 16-bit integers.
    Pair16,
    /// Two halves.
    PairF16,
    PairBf16,
    Bits32,
    Bits64,
    F64,
}

impl ConstantKind {
    const fn of(element: Element) -> ConstantKind {
        use Element::*;
        match element {
            B16 | U16 | I16 => ConstantKind::Bits16,
            F16 => ConstantKind::F16,
            Bf16 => ConstantKind::Bf16,
            I16x2 => ConstantKind::Pair16,
            F16x2 => ConstantKind::PairF16,
            Bf16x2 => ConstantKind::PairBf16,
            B64 | U64 | I64 => ConstantKind::Bits64,
            F64 => ConstantKind::F64,
            _ => ConstantKind::Bits32,
        }
    }

    const fn bits(self) -> u32 {
        match self {
            ConstantKind::Bits16 | ConstantKind::F16 | ConstantKind::Bf16 => 16,
            _ => 32,
        }
    }
}

/// Values of the inline floats in the order of their numbers, the last one apart: 1/(2 pi) has bits of its
/// own.
const FLOATS: [f64; 8] = [0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0];
/// Number of the first.
const FIRST: u32 = 240;
/// 1/(2 pi) as f16, bf16, f32 and f64 (LLVM, `isInlinableLiteral64` and its like).
const INVERSE_2PI: (u64, u64, u64, u64) = (0x3118, 0x3e22, 0x3e22_f983, 0x3fc4_5f30_6dc9_c882);

fn inline_float(bits: u64, as_bits: impl Fn(f64) -> u64, inverse: u64) -> Option<Operand> {
    if bits == inverse {
        return Some(Operand::physical(FIRST + 8));
    }
    let index = FLOATS.iter().position(|&value| as_bits(value) == bits)?;
    Some(Operand::physical(FIRST + index as u32))
}

fn inline_half(bits: u64) -> Option<Operand> {
    inline_float(bits, |value| f16::from_f64(value).to_bits().into(), INVERSE_2PI.0)
}

fn inline_brain(bits: u64) -> Option<Operand> {
    inline_float(bits, |value| bf16::from_f64(value).to_bits().into(), INVERSE_2PI.1)
}

fn inline_single(bits: u64) -> Option<Operand> {
    inline_float(bits, |value| (value as f32).to_bits().into(), INVERSE_2PI.2)
}

fn inline_double(bits: u64) -> Option<Operand> {
    inline_float(bits, f64::to_bits, INVERSE_2PI.3)
}

fn inline_integer(value: i64) -> Option<Operand> {
    i32::try_from(value).ok().and_then(Operand::inline_integer)
}

/// True if `value` fits in this many bits, signed or not.
fn fits(value: i64, bits: u32) -> bool {
    (-1i64 << (bits - 1)..1 << bits).contains(&value)
}

/// The low bits of a value as a signed number.
fn signed(value: i64, bits: u32) -> i64 {
    value << (64 - bits) >> (64 - bits)
}

/// The operand for a number.
pub(super) fn constant(
    number: Number,
    element: Element,
    class: OperandClass,
) -> Result<ConstantOperand, InstructionFault> {
    let kind = ConstantKind::of(element);
    let unfit = |bits| InstructionFault::Fit { text: number.text(), bits };
    let inline = match number {
        _ if class == OperandClass::Literal => None,
        Number::Integer(value) => inline_bits(value, kind),
        Number::Float(value) => match kind {
            ConstantKind::Bits64 | ConstantKind::F64 => inline_bits(value.to_bits() as i64, kind),
            // The bits of an inline half are a literal, the float is not.
            ConstantKind::Bits16 => {
                let bits = float_bits(value, kind);
                inline_integer(signed(bits.into(), 16)).or_else(|| inline_half(bits.into()))
            }
            // Rounded to so few bits, 1/(2 pi) would not be the inline one.
            ConstantKind::Bf16 | ConstantKind::PairBf16 => inline_single((value as f32).to_bits().into()),
            _ => inline_bits(float_bits(value, kind).into(), kind),
        },
    };
    if let Some(operand) = inline {
        return Ok((operand, None));
    }
    let bits = match number {
        Number::Integer(value) => {
            if !fits(value, kind.bits()) {
                return Err(unfit(kind.bits()));
            }
            let bits = value as u32 & (u32::MAX >> (32 - kind.bits()));
            // It is the high half of a double, which may be inline after all where a literal could be.
            let may_be_half = kind == ConstantKind::F64 && class != OperandClass::MatrixC;
            let double = inline_double(u64::from(bits) << 32).filter(|_| may_be_half);
            if let Some(operand) = double {
                return Ok((operand, None));
            }
            bits
        }
        Number::Float(value) => match kind {
            ConstantKind::Bits64 => return Err(unfit(64)),
            ConstantKind::F64 => (value.to_bits() >> 32) as u32,
            _ if overflows(value, kind) => return Err(unfit(kind.bits())),
            _ => float_bits(value, kind),
        },
    };
    Ok((Operand::LITERAL, Some(bits)))
}

fn inline_bits(value: i64, kind: ConstantKind) -> Option<Operand> {
    match kind {
        ConstantKind::Bits64 | ConstantKind::F64 => {
            inline_integer(value).or_else(|| inline_double(value as u64))
        }
        _ if !fits(value, kind.bits()) => None,
        ConstantKind::Bits16 => inline_integer(value),
        ConstantKind::F16 => inline_integer(signed(value, 16)).or_else(|| inline_half(value as u64 & 0xffff)),
        ConstantKind::Bf16 => {
            inline_integer(signed(value, 16)).or_else(|| inline_brain(value as u64 & 0xffff))
        }
        ConstantKind::PairF16 => inline_integer(signed(value, 32)).or_else(|| inline_half(value as u64)),
        ConstantKind::PairBf16 => inline_integer(signed(value, 32)).or_else(|| inline_brain(value as u64)),
        // Two integers take a float of 32 bits (LLVM, `isLiteralImm`).
        ConstantKind::Bits32 | ConstantKind::Pair16 => {
            inline_integer(signed(value, 32)).or_else(|| inline_single(value as u64 & 0xffff_ffff))
        }
    }
}

/// A float's bits in the operand.
fn float_bits(value: f64, kind: ConstantKind) -> u32 {
    match kind {
        ConstantKind::Bits16 | ConstantKind::F16 | ConstantKind::PairF16 => {
            f16::from_f64(value).to_bits().into()
        }
        ConstantKind::Bf16 | ConstantKind::PairBf16 => bf16::from_f64(value).to_bits().into(),
        _ => (value as f32).to_bits(),
    }
}

/// True for a float that becomes infinite or loses everything.
fn overflows(value: f64, kind: ConstantKind) -> bool {
    let became = match kind {
        ConstantKind::Bits16 | ConstantKind::F16 | ConstantKind::PairF16 => f16::from_f64(value).to_f64(),
        ConstantKind::Bf16 | ConstantKind::PairBf16 => bf16::from_f64(value).to_f64(),
        _ => f64::from(value as f32),
    };
    let smallest = match kind {
        ConstantKind::Bits16 | ConstantKind::F16 | ConstantKind::PairF16 => f16::MIN_POSITIVE.to_f64(),
        ConstantKind::Bf16 | ConstantKind::PairBf16 => bf16::MIN_POSITIVE.to_f64(),
        _ => f64::from(f32::MIN_POSITIVE),
    };
    value.is_finite() && (became.is_infinite() || (became != value && became.abs() < smallest))
}
