//! Conversions between number formats.

use crate::codegen::isa::{Arch, Calc, Element, Element::*};

use super::super::error::Stopped;
use super::super::exact::{Overflow, Rounding};
use super::super::formats::{self, FloatFormat};
use super::super::numerics::{Float, from_bf16, from_small, to_f16_toward_zero};
use super::super::program::Step;
use super::super::wave::{LANES, VectorRow, Wave};
use super::lanes::{F16 as Half, FP16_OVERFLOW, Lane, ReadHalf, flush_f16, map1, map3, unsupported};
use super::rounded::{self, ROUND_16, ROUND_32};

/// Executes a conversion. Conversions to integers truncate, saturate, and turn NaN into zero, as Rust's do.
/// Those between floats give a quiet NaN for a signalling one, as all arithmetic does (CDNA3 ISA guide,
/// "IEEE_MODE"; LLVM, SITargetLowering::isCanonicalized).
pub(super) fn convert(w: &mut Wave, s: &Step, arch: Arch, to: Element, from: Element) -> Result<(), Stopped> {
    if w.mode & (ROUND_32 | ROUND_16) != 0 && rounded::convert(w, s, to, from) {
        return Ok(());
    }
    match (to, from) {
        (I32, F64) => map1(w, s, |a: f64| a as i32),
        (U32, F64) => map1(w, s, |a: f64| a as u32),
        (I32, F32) => map1(w, s, |a: f32| a as i32),
        (U32, F32) => map1(w, s, |a: f32| a as u32),
        (I16, F16) => map1(w, s, |a: Half| a.0 as i16),
        (U16, F16) => map1(w, s, |a: Half| a.0 as u16),
        (F64, I32) => map1(w, s, |a: i32| f64::from(a)),
        (F64, U32) => map1(w, s, |a: u32| f64::from(a)),
        (F64, F32) => map1(w, s, |a: f32| f64::from(a)),
        (F32, I32) => map1(w, s, |a: i32| a as f32),
        (F32, U32) => map1(w, s, |a: u32| a as f32),
        (F32, F64) => map1(w, s, |a: f64| a as f32),
        (F32, F16) => map1(w, s, |a: Half| a.0.quiet()),
        (F16, F32) => map1(w, s, Half),
        (F16, U16) => map1(w, s, |a: u16| Half(a.into())),
        (F16, I16) => map1(w, s, |a: i16| Half(a.into())),
        (F32, Bf16) => {
            let (abs, neg) = (s.modifiers.get_abs() & 1 != 0, s.modifiers.get_neg() & 1 != 0);
            let values = u16::read_half(w, s, 1, 0).map(|v| {
                let value = if abs { from_bf16(v).abs() } else { from_bf16(v) };
                (if neg { -value } else { value }).quiet()
            });
            f32::write(w, s, values);
        }
        (F32 | F32x2, Fp8 | Bf8) => {
            let format = FloatFormat::of(from, arch).ok_or_else(unsupported)?;
            let source = w.lanes(s.operands[1]);
            f32::write(w, s, source.map(|v| from_small(format, v)));
            if to == F32x2 {
                let mut second = s.clone();
                second.operands[0] = s.operands[0].offset(1);
                f32::write(w, &second, source.map(|v| from_small(format, v >> 8)));
            }
        }
        _ => return Err(unsupported()),
    }
    Ok(())
}

/// Executes V_CVT_F32_UBYTEn.
pub(super) fn convert_byte(w: &mut Wave, s: &Step, byte: u8) {
    let shift = 8 * u32::from(byte & 3);
    map1(w, s, |a: u32| (a >> shift & 0xff) as f32);
}

/// Executes V_CVT_RPI_I32_F32 (half up) and V_CVT_FLR_I32_F32.
pub(super) fn convert_round(w: &mut Wave, s: &Step, calc: Calc) {
    let offset = if calc == Calc::Ceil { 0.5 } else { 0.0 };
    map1(w, s, |a: f32| (f64::from(a) + offset).floor() as i32);
}

/// Executes V_CVT_OFF_F32_I4.
pub(super) fn convert_offset(w: &mut Wave, s: &Step) {
    map1(w, s, |a: u32| ((a << 28) as i32 >> 28) as f32 / 16.0);
}

/// A fraction of one as a 16-bit integer, to nearest even.
fn normalized(to: Element, value: f32) -> u32 {
    let value = f64::from(value);
    match to {
        I16 => (value.clamp(-1.0, 1.0) * 32767.0).round_ties_even() as i16 as u16 as u32,
        _ => (value.clamp(0.0, 1.0) * 65535.0).round_ties_even() as u32,
    }
}

/// Executes V_CVT_NORM_*.
pub(super) fn convert_normalized(w: &mut Wave, s: &Step, to: Element) {
    map1(w, s, |a: Half| normalized(to, a.0) as u16);
}

/// Executes V_CVT_PKNORM_*.
pub(super) fn pack_normalized(w: &mut Wave, s: &Step, to: Element, from: Element) {
    let [a, b] = [(1, 0), (2, 1)].map(|(index, source)| match from {
        F16 => Half::read(w, s, index, source).map(|v| v.0),
        _ => f32::read(w, s, index, source),
    });
    let values = std::array::from_fn(|l| normalized(to, a[l]) | normalized(to, b[l]) << 16);
    w.set_lanes(s.operands[0], &values);
}

/// Executes V_CVT_PK_U8_F32 and V_CVT_PKACCUM_U8_F32.
pub(super) fn convert_to_byte(w: &mut Wave, s: &Step) {
    map3(w, s, |a: f32, b: u32, c: u32| {
        let shift = 8 * (b & 3);
        c & !(0xff << shift) | u32::from(a as u8) << shift
    });
}

/// What an overflow of a conversion to a narrow float gives.
fn overflow(w: &Wave) -> Overflow {
    if w.mode & FP16_OVERFLOW != 0 { Overflow::Saturates } else { Overflow::Special }
}

/// Writes some bits of the result; the others stay.
fn write_bits(w: &mut Wave, s: &Step, shift: u32, bits: u32, values: &VectorRow) {
    let mask = ((1u32 << bits) - 1) << shift;
    let old = w.lanes(s.operands[0]);
    let merged = std::array::from_fn(|l| old[l] & !mask | values[l] << shift & mask);
    w.set_lanes(s.operands[0], &merged);
}

/// Executes a conversion of two values that packs the results.
pub(super) fn pack_convert(
    w: &mut Wave,
    s: &Step,
    arch: Arch,
    to: Element,
    from: Element,
) -> Result<(), Stopped> {
    let pack = |low: u32, high: u32| low & 0xffff | high << 16;
    let values: VectorRow = match (to, from) {
        (F16, F32) => {
            let (a, b) = (f32::read(w, s, 1, 0), f32::read(w, s, 2, 1));
            let flushes = w.flushes_wide_results();
            let narrow = |v: f32| {
                let bits = to_f16_toward_zero(v);
                if flushes { flush_f16(bits) } else { bits }
            };
            std::array::from_fn(|l| pack(narrow(a[l]), narrow(b[l])))
        }
        (U16, U32) => {
            let (a, b) = (u32::read(w, s, 1, 0), u32::read(w, s, 2, 1));
            std::array::from_fn(|l| pack(a[l].min(0xffff), b[l].min(0xffff)))
        }
        (I16, I32) => {
            let (a, b) = (i32::read(w, s, 1, 0), i32::read(w, s, 2, 1));
            let narrow = |v: i32| v.clamp(i16::MIN.into(), i16::MAX.into()) as u32;
            std::array::from_fn(|l| pack(narrow(a[l]), narrow(b[l])))
        }
        (Fp8 | Bf8, F32) => {
            let values = narrowed(w, s, FloatFormat::of(to, arch).ok_or_else(unsupported)?);
            let shift = if s.modifiers.get_op_sel() & 8 != 0 { 16 } else { 0 };
            write_bits(w, s, shift, 16, &std::array::from_fn(|l| values[0][l] | values[1][l] << 8));
            return Ok(());
        }
        _ => return Err(unsupported()),
    };
    w.set_lanes(s.operands[0], &values);
    Ok(())
}

/// Both f32 sources in a format, rounded to nearest even.
fn narrowed(w: &Wave, s: &Step, format: &FloatFormat) -> [VectorRow; 2] {
    let overflow = overflow(w);
    [(1, 0), (2, 1)].map(|(index, source)| {
        f32::read(w, s, index, source)
            .map(|v| format.encode(v.into(), 0, Rounding::NearestEven, overflow) as u32)
    })
}

/// Executes V_CVT_PK_F16_F32 and V_CVT_PK_BF16_F32.
pub(super) fn pack_nearest(w: &mut Wave, s: &Step, to: Element) {
    let format = if to == F16 { &formats::F16 } else { &formats::BF16 };
    let [a, b] = narrowed(w, s, format);
    w.set_lanes(s.operands[0], &std::array::from_fn(|l| a[l] | b[l] << 16));
}

/// Executes V_CVT_SR_*: op_sel names the byte or the half of the register that is written.
pub(super) fn convert_stochastic(w: &mut Wave, s: &Step, arch: Arch, to: Element) -> Result<(), Stopped> {
    let format = FloatFormat::of(to, arch).ok_or_else(unsupported)?;
    let (values, random, overflow) = (f32::read(w, s, 1, 0), w.lanes(s.operands[2]), overflow(w));
    let bits = std::array::from_fn(|l| {
        format.encode(values[l].into(), 0, Rounding::Stochastic(random[l]), overflow) as u32
    });
    let place = s.modifiers.get_op_sel() >> 2;
    let shift = if format.bits() == 8 { 8 * place } else { 8 * (place & 2) };
    write_bits(w, s, shift, format.bits(), &bits);
    Ok(())
}

/// Executes V_PACK_B32_F16.
pub(super) fn pack(w: &mut Wave, s: &Step) {
    let [a, b]: [[u32; LANES]; 2] = [(1, 0), (2, 1)].map(|(index, source)| {
        let clear = if s.modifiers.get_abs() >> source & 1 != 0 { 0x7fff } else { 0xffff };
        let flip = if s.modifiers.get_neg() >> source & 1 != 0 { 0x8000 } else { 0 };
        u16::read_half(w, s, index, source).map(|v| v & clear ^ flip)
    });
    w.set_lanes(s.operands[0], &std::array::from_fn(|l| a[l] | b[l] << 16));
}
