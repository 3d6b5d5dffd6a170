//! Floating-point operations apart from arithmetic: parts of numbers, sine and cosine, cube maps, argument
//! reduction.

use crate::codegen::isa::Calc;

use super::super::numerics::exponent_f64;
use super::super::powers::load_exponent;

/// Mantissa in [0.5, 1) and exponent; for zero, infinities and NaN the value itself and 0 (CDNA4 ISA guide,
/// V_FREXP_MANT_F64, which documents that for all but zero).
pub(super) fn frexp(value: f64) -> (f64, i32) {
    if value == 0.0 || !value.is_finite() {
        return (value, 0);
    }
    let normal = if exponent_f64(value) == 0 { value * 2.0f64.powi(64) } else { value };
    let exponent = exponent_f64(normal) - 1022;
    let denormal = if exponent_f64(value) == 0 { 64 } else { 0 };
    (load_exponent(normal, -exponent), exponent - denormal)
}

/// The sine and cosine of infinities and NaN (CDNA4 ISA guide, V_SIN_F32).
const NOT_A_NUMBER: f32 = f32::from_bits(0xffc0_0000);

/// The rest of a number of revolutions after the nearest quarter, in radians, and the quarter.
fn quarters(revolutions: f32) -> (f64, i32) {
    let turn = f64::from(revolutions - revolutions.trunc());
    let quarter = (turn * 4.0).round();
    ((turn - quarter / 4.0) * std::f64::consts::TAU, quarter as i32)
}

/// Sine of a number of revolutions.
pub(super) fn sine(a: f32) -> f32 {
    if a == 0.0 {
        return a;
    }
    if !a.is_finite() {
        return NOT_A_NUMBER;
    }
    let (rest, quarter) = quarters(a);
    let value = match quarter & 3 {
        0 => rest.sin(),
        1 => rest.cos(),
        2 => -rest.sin(),
        _ => -rest.cos(),
    };
    // A whole number of half revolutions gives plus zero.
    value as f32 + 0.0
}

/// Cosine of a number of revolutions.
pub(super) fn cosine(a: f32) -> f32 {
    if !a.is_finite() {
        return NOT_A_NUMBER;
    }
    let (rest, quarter) = quarters(a);
    let value = match quarter & 3 {
        0 => rest.cos(),
        1 => -rest.sin(),
        2 => -rest.cos(),
        _ => rest.sin(),
    };
    value as f32 + 0.0
}

/// Fraction above the next lower integer, below one.
#[inline(always)]
pub(super) fn fract(a: f32, below_one: f32) -> f32 {
    let fraction = a - a.floor();
    if fraction > below_one { below_one } else { fraction }
}

/// The cube map instructions (CDNA4 ISA guide, V_CUBEID_F32 and following).
pub(super) fn cube(calc: Calc, x: f32, y: f32, z: f32) -> f32 {
    let minus = |v: f32| f32::from_bits(v.to_bits() ^ 1 << 31);
    let (face, s, t, axis) = if z.abs() >= x.abs() && z.abs() >= y.abs() {
        (4.0, if z < 0.0 { minus(x) } else { x }, minus(y), z)
    } else if y.abs() >= x.abs() {
        (2.0, x, if y < 0.0 { minus(z) } else { z }, y)
    } else {
        (0.0, if x < 0.0 { z } else { minus(z) }, minus(y), x)
    };
    match calc {
        Calc::CubeId => face + if axis < 0.0 { 1.0 } else { 0.0 },
        Calc::CubeSc => s,
        Calc::CubeTc => t,
        _ => axis * 2.0,
    }
}

/// 1201 bits after the point of 2 / pi, the first on top.
const TWO_OVER_PI: [u64; 19] = [
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_0000,
];

/// Bits of 2 / pi that the instruction knows.
const KNOWN: u32 = 1201;

/// V_TRIG_PREOP_F64 (CDNA4 ISA guide): 53 bits of 2 / pi from segment `segment`, counted from the place that
/// the exponent of `a` asks for, at their own place; scaled by 2^-128 where that would be too small.
pub(super) fn trig_preop(a: f64, segment: u32) -> f64 {
    let field = exponent_f64(a);
    let shift = (segment & 31) * 53 + (field - 1077).max(0) as u32;
    let mut bits = 0u64;
    for index in shift..shift + 53 {
        let bit = if index < KNOWN { TWO_OVER_PI[index as usize / 64] >> (63 - index % 64) & 1 } else { 0 };
        bits = bits << 1 | bit;
    }
    let scale = -53 - shift as i32 + if field >= 1968 { 128 } else { 0 };
    load_exponent(bits as f64, scale)
}

/// Next state of V_PRNG_B32's shift register.
pub(super) fn next_random(state: u32) -> u32 {
    state << 1 ^ if state >> 31 != 0 { 197 } else { 0 }
}
