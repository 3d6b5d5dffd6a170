//! Typed access to the lanes of sources and results, with the VOP3 modifiers applied, and the loops over
//! lanes.

use crate::codegen::isa::{Modifiers, Omod};

use super::super::error::{FaultKind, Stopped};
use super::super::numerics::{flush, from_f16, to_f16};
use super::super::program::Step;
use super::super::wave::{LANES, Wave};

/// The fault of a vector instruction that has no loop here.
#[cold]
pub(super) fn unsupported() -> Stopped {
    Stopped::wave(FaultKind::Unsupported("this vector operation"))
}

/// A type that vector instructions compute in.
pub(super) trait Lane: Copy {
    /// Operand `index` of the step, whose source number for the modifiers is `source`.
    fn read(w: &Wave, step: &Step, index: usize, source: u32) -> [Self; LANES];
    /// Writes the result of the step to the active lanes.
    fn write(w: &mut Wave, step: &Step, values: [Self; LANES]);
}

/// True if the step may have to change what it reads or writes: the fast path of all others tests one word.
#[inline(always)]
fn modified(w: &Wave, step: &Step) -> bool {
    step.modifiers != Modifiers::new() || w.mode & 0x30 != 0x30
}

/// Bit `bit` of a modifier mask.
#[inline(always)]
fn has(mask: u32, bit: u32) -> bool {
    mask >> bit & 1 != 0
}

impl Lane for u32 {
    #[inline(always)]
    fn read(w: &Wave, step: &Step, index: usize, _: u32) -> [u32; LANES] {
        w.lanes(step.operands[index])
    }

    #[inline(always)]
    fn write(w: &mut Wave, step: &Step, values: [u32; LANES]) {
        w.set_lanes(step.operands[0], &values);
    }
}

impl Lane for i32 {
    #[inline(always)]
    fn read(w: &Wave, step: &Step, index: usize, _: u32) -> [i32; LANES] {
        w.lanes(step.operands[index]).map(|v| v as i32)
    }

    #[inline(always)]
    fn write(w: &mut Wave, step: &Step, values: [i32; LANES]) {
        w.set_lanes(step.operands[0], &values.map(|v| v as u32));
    }
}

impl Lane for u64 {
    #[inline(always)]
    fn read(w: &Wave, step: &Step, index: usize, _: u32) -> [u64; LANES] {
        w.lanes_wide(step.operands[index])
    }

    #[inline(always)]
    fn write(w: &mut Wave, step: &Step, values: [u64; LANES]) {
        w.set_lanes_wide(step.operands[0], &values);
    }
}

impl Lane for i64 {
    #[inline(always)]
    fn read(w: &Wave, step: &Step, index: usize, _: u32) -> [i64; LANES] {
        w.lanes_wide(step.operands[index]).map(|v| v as i64)
    }

    #[inline(always)]
    fn write(w: &mut Wave, step: &Step, values: [i64; LANES]) {
        w.set_lanes_wide(step.operands[0], &values.map(|v| v as u64));
    }
}

impl Lane for f32 {
    #[inline(always)]
    fn read(w: &Wave, step: &Step, index: usize, source: u32) -> [f32; LANES] {
        let mut values = w.lanes(step.operands[index]).map(f32::from_bits);
        if modified(w, step) {
            modify_f32(w, step, source, &mut values);
        }
        values
    }

    #[inline(always)]
    fn write(w: &mut Wave, step: &Step, mut values: [f32; LANES]) {
        if modified(w, step) {
            finish_f32(w, step, &mut values);
        }
        w.set_lanes(step.operands[0], &values.map(f32::to_bits));
    }
}

#[inline(never)]
fn modify_f32(w: &Wave, step: &Step, source: u32, values: &mut [f32; LANES]) {
    if w.flushes_sources() {
        *values = values.map(flush);
    }
    if has(step.modifiers.get_abs(), source) {
        *values = values.map(f32::abs);
    }
    if has(step.modifiers.get_neg(), source) {
        *values = values.map(|v| f32::from_bits(v.to_bits() ^ 1 << 31));
    }
}

#[inline(never)]
fn finish_f32(w: &Wave, step: &Step, values: &mut [f32; LANES]) {
    if let Some(factor) = output_factor(w, step, w.flushes_results()) {
        // Minus zero becomes zero.
        *values = values.map(|v| v * factor as f32 + 0.0);
    }
    if step.modifiers.has_clamp() {
        let nan = w.clamps_nan();
        *values = values.map(|v| clamp(v, nan));
    }
    if w.flushes_results() {
        *values = values.map(flush);
    }
}

/// Factor of the output modifier. It works only where denormal results are flushed and IEEE mode is off
/// (CDNA3 ISA guide, "Output modifiers").
#[inline(always)]
fn output_factor(w: &Wave, step: &Step, flushes: bool) -> Option<f64> {
    let factor = match step.modifiers.get_omod() {
        Omod::None => return None,
        Omod::Mul2 => 2.0,
        Omod::Mul4 => 4.0,
        Omod::Div2 => 0.5,
    };
    (flushes && !w.is_ieee()).then_some(factor)
}

/// Clamp to [0, 1]; NaN becomes zero where DX10_CLAMP says so.
#[inline(always)]
pub(super) fn clamp(value: f32, clamps_nan: bool) -> f32 {
    if value.is_nan() && clamps_nan { 0.0 } else { value.clamp(0.0, 1.0) }
}

/// The same as [`modified`] for f64.
#[inline(always)]
fn modified_wide(w: &Wave, step: &Step) -> bool {
    step.modifiers != Modifiers::new() || w.mode & 0xc0 != 0xc0
}

/// f64 denormals to zeros of the same sign.
#[inline(always)]
fn flush_wide(value: f64) -> f64 {
    if value.abs() < f64::MIN_POSITIVE { 0.0f64.copysign(value) } else { value }
}

impl Lane for f64 {
    #[inline(always)]
    fn read(w: &Wave, step: &Step, index: usize, source: u32) -> [f64; LANES] {
        let mut values = w.lanes_wide(step.operands[index]).map(f64::from_bits);
        if modified_wide(w, step) {
            modify_f64(w, step, source, &mut values);
        }
        values
    }

    #[inline(always)]
    fn write(w: &mut Wave, step: &Step, mut values: [f64; LANES]) {
        if modified_wide(w, step) {
            finish_f64(w, step, &mut values);
        }
        w.set_lanes_wide(step.operands[0], &values.map(f64::to_bits));
    }
}

#[inline(never)]
fn modify_f64(w: &Wave, step: &Step, source: u32, values: &mut [f64; LANES]) {
    if w.flushes_wide_sources() {
        *values = values.map(flush_wide);
    }
    if has(step.modifiers.get_abs(), source) {
        *values = values.map(f64::abs);
    }
    if has(step.modifiers.get_neg(), source) {
        *values = values.map(|v| -v);
    }
}

#[inline(never)]
fn finish_f64(w: &Wave, step: &Step, values: &mut [f64; LANES]) {
    if let Some(factor) = output_factor(w, step, w.flushes_wide_results()) {
        *values = values.map(|v| v * factor + 0.0);
    }
    if step.modifiers.has_clamp() {
        let nan = w.clamps_nan();
        *values = values.map(|v| if v.is_nan() && nan { 0.0 } else { v.clamp(0.0, 1.0) });
    }
    if w.flushes_wide_results() {
        *values = values.map(flush_wide);
    }
}

/// An f16, held as the f32 of the same value. Results are rounded when they are written; for sums, products,
/// quotients and square roots that is the same as rounding once.
#[derive(Copy, Clone)]
pub(super) struct F16(pub f32);

impl Lane for F16 {
    #[inline(always)]
    fn read(w: &Wave, step: &Step, index: usize, source: u32) -> [F16; LANES] {
        let bits = u16::read_half(w, step, index, source);
        let (abs, neg) = (has(step.modifiers.get_abs(), source), has(step.modifiers.get_neg(), source));
        let clear = if abs { 0x7fff } else { 0xffff };
        let flip = if neg { 0x8000 } else { 0 };
        let bits = if w.flushes_wide_sources() { bits.map(flush_f16) } else { bits };
        bits.map(|v| F16(from_f16(v & clear ^ flip)))
    }

    #[inline(always)]
    fn write(w: &mut Wave, step: &Step, values: [F16; LANES]) {
        let bits = if step.modifiers != Modifiers::new() || w.mode & (0xc0 | FP16_OVERFLOW) != 0xc0 {
            finish_f16(w, step, &values)
        } else {
            values.map(|v| to_f16(v.0))
        };
        write_half(w, step, bits);
    }
}

/// MODE's FP16_OVFL: finite f16 results that overflow become the largest number, and so do those of
/// conversions to 8-bit floats (CDNA3 ISA guide, "Mode register").
pub(super) const FP16_OVERFLOW: u32 = 1 << 23;

/// Bits of an f16, denormals as zeros of the same sign.
#[inline(always)]
pub(super) fn flush_f16(bits: u32) -> u32 {
    if bits & 0x7c00 == 0 { bits & 0x8000 } else { bits }
}

/// Bits of f16 results after modifiers and MODE have been applied.
#[inline(never)]
pub(super) fn finish_f16(w: &Wave, step: &Step, values: &[F16; LANES]) -> [u32; LANES] {
    let factor = output_factor(w, step, w.flushes_wide_results());
    let (clamps, nan) = (step.modifiers.has_clamp(), w.clamps_nan());
    let (flushes, saturates) = (w.flushes_wide_results(), w.mode & FP16_OVERFLOW != 0);
    values.map(|F16(value)| {
        let value = factor.map_or(value, |f| from_f16(to_f16(value)) * f as f32 + 0.0);
        let value = if clamps { clamp(value, nan) } else { value };
        let bits = to_f16(value);
        let bits = if saturates && bits & 0x7fff == 0x7c00 && value.is_finite() { bits - 1 } else { bits };
        if flushes { flush_f16(bits) } else { bits }
    })
}

/// Reading one half of a register.
pub(super) trait ReadHalf {
    /// Half of a source that op_sel names, in the low bits.
    fn read_half(w: &Wave, step: &Step, index: usize, source: u32) -> [u32; LANES];
}

impl ReadHalf for u16 {
    #[inline(always)]
    fn read_half(w: &Wave, step: &Step, index: usize, source: u32) -> [u32; LANES] {
        let shift = if has(step.modifiers.get_op_sel(), source) { 16 } else { 0 };
        w.lanes(step.operands[index]).map(|v| v >> shift & 0xffff)
    }
}

/// Writes 16-bit results to the half that op_sel names. On GFX9 the other half becomes zero, except for the
/// instructions with op_sel in VOP3 (CDNA4 ISA guide, V_MAD_F16 against V_MAD_LEGACY_F16).
pub(super) fn write_half(w: &mut Wave, step: &Step, values: [u32; LANES]) {
    let keeps = step.keeps_other_half;
    let shift = if has(step.modifiers.get_op_sel(), 3) { 16 } else { 0 };
    let values = if keeps || shift != 0 {
        let old = w.lanes(step.operands[0]);
        std::array::from_fn(|l| old[l] & !(0xffff << shift) | (values[l] & 0xffff) << shift)
    } else {
        values.map(|v| v & 0xffff)
    };
    w.set_lanes(step.operands[0], &values);
}

impl Lane for u16 {
    #[inline(always)]
    fn read(w: &Wave, step: &Step, index: usize, source: u32) -> [u16; LANES] {
        u16::read_half(w, step, index, source).map(|v| v as u16)
    }

    #[inline(always)]
    fn write(w: &mut Wave, step: &Step, values: [u16; LANES]) {
        write_half(w, step, values.map(u32::from));
    }
}

impl Lane for i16 {
    #[inline(always)]
    fn read(w: &Wave, step: &Step, index: usize, source: u32) -> [i16; LANES] {
        u16::read_half(w, step, index, source).map(|v| v as i16)
    }

    #[inline(always)]
    fn write(w: &mut Wave, step: &Step, values: [i16; LANES]) {
        write_half(w, step, values.map(|v| u32::from(v as u16)));
    }
}

/// Result := f(a), lane by lane.
#[inline(always)]
pub(super) fn map1<A: Lane, R: Lane>(w: &mut Wave, step: &Step, f: impl Fn(A) -> R) {
    let a = A::read(w, step, 1, 0);
    R::write(w, step, a.map(f));
}

/// Result := f(a, b), lane by lane.
#[inline(always)]
pub(super) fn map2<A: Lane, B: Lane, R: Lane>(w: &mut Wave, step: &Step, f: impl Fn(A, B) -> R) {
    let (a, b) = (A::read(w, step, 1, 0), B::read(w, step, 2, 1));
    R::write(w, step, std::array::from_fn(|l| f(a[l], b[l])));
}

/// Result := f(a, b, c), lane by lane; without a third source c is the old result.
#[inline(always)]
pub(super) fn map3<A: Lane, B: Lane, C: Lane, R: Lane>(w: &mut Wave, step: &Step, f: impl Fn(A, B, C) -> R) {
    let (a, b) = (A::read(w, step, 1, 0), B::read(w, step, 2, 1));
    let c = C::read(w, step, if step.accumulates { 0 } else { 3 }, 2);
    R::write(w, step, std::array::from_fn(|l| f(a[l], b[l], c[l])));
}

/// One bit per lane: f(a, b).
#[inline(always)]
pub(super) fn mask2<A: Lane, B: Lane>(w: &Wave, step: &Step, f: impl Fn(A, B) -> bool) -> u64 {
    let (a, b) = (A::read(w, step, 1, 0), B::read(w, step, 2, 1));
    // 32 at a time, which are bits of elements as wide as a lane.
    let half = |first: usize| {
        let mut mask = 0u32;
        for l in 0..LANES / 2 {
            mask |= u32::from(f(a[first + l], b[first + l])) << l;
        }
        u64::from(mask)
    };
    half(0) | half(LANES / 2) << 32
}
