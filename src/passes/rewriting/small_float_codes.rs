//! Casts between codes of 4-bit and 6-bit floats, which are i32 elements whose lowest bits count, and floats:
//! arithmetic on bits.
//!
//! An element is read from the word of its first bit and that of its last one (`DType::packing` says where).
//! On a chip that converts narrow floats with a scale (`TargetInfo::has_scaled_conversions`, gfx950), casts
//! are `Op::Decode` and `Op::Encode` in place of this arithmetic, with a scale of one; a byte of two f4e2m1
//! is decoded as it is read (`CodeForm::Bytes`), so that its halves are not taken apart. `multiply_scales`
//! makes the same operation of a factor and its scales. `Value::unpack_f4e2m1` and `pack_f4e2m1` are
//! bitcasts between bytes and elements, so that there is one decoding and one encoding.

use bevy_ecs::prelude::*;

use super::node_maker::NodeMaker;
use crate::ir::node::*;
use crate::ir::types::DType;
use crate::passes::PassResult;
use crate::passes::kernel_editor::KernelEditor;
use crate::small_float::SmallFormat;

/// Makes a node another one, whose result are codes.
pub(super) fn become_codes(
    editor: &mut KernelEditor<'_>,
    node: Entity,
    op: Op,
    operands: &[Entity],
) -> PassResult {
    editor.fact_mut::<ValueType>(node, "a node without type")?.dtype = Some(DType::I32);
    editor.turn_into(node, op, operands);
    Ok(())
}

/// Codes as f32, which is exact.
pub(super) fn decoded(maker: &mut NodeMaker<'_, '_>, codes: Entity, format: SmallFormat) -> Entity {
    let sign_bit = format.bits() - 1;
    // With exponent and fraction in their places the number is off by a power of two.
    let magnitude = maker.with(BinaryOp::And, codes, (1 << sign_bit) - 1, DType::I32);
    let in_place = maker.with(BinaryOp::ShiftLeft, magnitude, i64::from(23 - format.fraction), DType::I32);
    let small = maker.converted(Conversion::Bitcast, in_place, DType::F32);
    let power = 2f64.powi(127 - format.bias() as i32);
    let number = maker.with(BinaryOp::Mul, small, power, DType::F32);
    let bits = maker.converted(Conversion::Bitcast, number, DType::I32);
    let sign = maker.with(BinaryOp::And, codes, 1 << sign_bit, DType::I32);
    let sign = maker.with(BinaryOp::ShiftLeft, sign, i64::from(31 - sign_bit), DType::I32);
    let signed = maker.binary(BinaryOp::Or, bits, sign, DType::I32);
    maker.converted(Conversion::Bitcast, signed, DType::F32)
}

/// The magnitudes and the signs of the codes that are nearest to the numbers of a value, in i32.
pub(super) fn encoded(
    maker: &mut NodeMaker<'_, '_>,
    (value, dtype): (Entity, Option<DType>),
    format: SmallFormat,
) -> [Entity; 2] {
    match dtype {
        Some(DType::F32) => encoded_of(maker, value, &SINGLE, format),
        Some(DType::F64) => {
            let parts = encoded_of(maker, value, &DOUBLE, format);
            parts.map(|part| maker.converted(Conversion::Cast, part, DType::I32))
        }
        _ => {
            let wide = maker.converted(Conversion::Cast, value, DType::F32);
            encoded_of(maker, wide, &SINGLE, format)
        }
    }
}

/// A float that codes are made from.
struct WideFloat {
    dtype: DType,
    /// The integer of its size.
    bits: DType,
    /// Bits of its fraction.
    fraction: u32,
    /// The bias of its exponent.
    bias: i64,
}

const SINGLE: WideFloat = WideFloat { dtype: DType::F32, bits: DType::I32, fraction: 23, bias: 127 };
const DOUBLE: WideFloat = WideFloat { dtype: DType::F64, bits: DType::I64, fraction: 52, bias: 1023 };

fn encoded_of(
    maker: &mut NodeMaker<'_, '_>,
    value: Entity,
    of: &WideFloat,
    format: SmallFormat,
) -> [Entity; 2] {
    let &WideFloat { dtype, bits, fraction, bias } = of;
    let (small_bias, sign_bit) = (i64::from(format.bias()), format.bits() - 1);
    let largest = f64::from(format.largest());
    let magnitude = maker.made(Op::Unary(UnaryOp::Abs), &[value], dtype);
    // Of a NaN and a number the minimum is the number.
    let magnitude = maker.with(BinaryOp::Min, magnitude, largest, dtype);
    let own = maker.converted(Conversion::Bitcast, magnitude, bits);
    // Numbers below the least normal one are as far apart as those above it.
    let normal = maker.with(BinaryOp::Max, own, (bias + 1 - small_bias) << fraction, bits);
    let exponent = maker.with(BinaryOp::And, normal, !0 << fraction, bits);
    // The sum with a number so much larger is rounded where the code has its last bit, which is then the last
    // bit of the sum.
    let dropped = fraction - format.fraction;
    let larger = maker.with(BinaryOp::Add, exponent, i64::from(dropped) << fraction, bits);
    let larger = maker.converted(Conversion::Bitcast, larger, dtype);
    let sum = maker.binary(BinaryOp::Add, magnitude, larger, dtype);
    let steps = maker.converted(Conversion::Bitcast, sum, bits);
    // Each exponent has as many codes, beginning with the least normal number's; the wide bias and one is a
    // multiple of all codes.
    let exponents = maker.with(BinaryOp::ShiftRight, exponent, i64::from(dropped), bits);
    let code = maker.binary(BinaryOp::Add, steps, exponents, bits);
    let code = maker.with(BinaryOp::Add, code, small_bias << format.fraction, bits);
    let code = maker.with(BinaryOp::And, code, (1 << sign_bit) - 1, bits);
    // The sign of a NaN is nobody's: arithmetic makes NaNs of either.
    let signed = maker.with(BinaryOp::Min, value, largest, dtype);
    let own = maker.converted(Conversion::Bitcast, signed, bits);
    let sign = maker.with(BinaryOp::ShiftRight, own, i64::from(bits.bits() - 1 - sign_bit), bits);
    [code, maker.with(BinaryOp::And, sign, 1 << sign_bit, bits)]
}

/// The word of elements of so many bits, each shifted to its place.
pub(super) fn joined_word(
    maker: &mut NodeMaker<'_, '_>,
    shifts: &[Entity],
    bits: i64,
    element: impl Fn(&mut NodeMaker<'_, '_>, i64) -> Entity,
) -> Entity {
    let first = element(maker, 0);
    // Two halves of a byte.
    let Some((&before, after)) = shifts.split_first() else {
        let high = element(maker, 1);
        let low = maker.with(BinaryOp::And, first, 15, DType::I32);
        let high = maker.with(BinaryOp::ShiftLeft, high, 4, DType::I32);
        return maker.binary(BinaryOp::Or, low, high, DType::I32);
    };
    let mask = (1 << bits) - 1;
    let word = maker.with(BinaryOp::And, first, mask, DType::I32);
    let mut word = maker.binary(BinaryOp::ShiftRight, word, before, DType::I32);
    for (at, &shift) in (1..).zip(after) {
        let next = element(maker, at);
        let next = maker.with(BinaryOp::And, next, mask, DType::I32);
        let next = maker.binary(BinaryOp::ShiftLeft, next, shift, DType::I32);
        word = maker.binary(BinaryOp::Or, word, next, DType::I32);
    }
    word
}
