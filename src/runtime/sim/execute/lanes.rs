//! Typed access to the lanes of sources and results, with the VOP3 modifiers applied, and the loops over lanes.

use crate::codegen::isa::{Modifiers, Omod};

use super::super::numerics::{flush, from_f16, to_f16};
use super::super::program::Step;
use super::super::wave::{LANES, Wave};

/// A type that vector instructions compute in.
pub(super) trait Lane: Copy {
    /// Operand `index` of the step, which is source number `source` to the modifiers.
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
    // The output modifier works only where denormal results are flushed and IEEE mode is off (CDNA3 ISA guide, "Output
    // modifiers").
    if w.flushes_results() && w.mode & 0x200 == 0 {
        let factor = scale(step.modifiers.get_omod());
        *values = values.map(|v| v * factor as f32);
    }
    if step.modifiers.has_clamp() {
        let nan = if w.clamps_nan() { 0.0 } else { f32::NAN };
        *values = values.map(|v| if v.is_nan() { nan } else { v.clamp(0.0, 1.0) });
    }
    if w.flushes_results() {
        *values = values.map(flush);
    }
}

fn scale(omod: Omod) -> f64 {
    match omod {
        Omod::None => 1.0,
        Omod::Mul2 => 2.0,
        Omod::Mul4 => 4.0,
        Omod::Div2 => 0.5,
    }
}

impl Lane for f64 {
    #[inline(always)]
    fn read(w: &Wave, step: &Step, index: usize, source: u32) -> [f64; LANES] {
        let values = w.lanes_wide(step.operands[index]).map(f64::from_bits);
        let (abs, neg) = (has(step.modifiers.get_abs(), source), has(step.modifiers.get_neg(), source));
        values.map(|v| {
            let v = if abs { v.abs() } else { v };
            if neg { -v } else { v }
        })
    }

    #[inline(always)]
    fn write(w: &mut Wave, step: &Step, values: [f64; LANES]) {
        let (clamp, nan) = (step.modifiers.has_clamp(), if w.clamps_nan() { 0.0 } else { f64::NAN });
        let clamped = |v: f64| if v.is_nan() { nan } else { v.clamp(0.0, 1.0) };
        w.set_lanes_wide(step.operands[0], &values.map(|v| if clamp { clamped(v) } else { v }.to_bits()));
    }
}

/// An f16, held as the f32 of the same value. Results are rounded when they are written; for sums, products, quotients and
/// square roots that is the same as rounding once.
#[derive(Copy, Clone)]
pub(super) struct F16(pub f32);

impl Lane for F16 {
    #[inline(always)]
    fn read(w: &Wave, step: &Step, index: usize, source: u32) -> [F16; LANES] {
        let bits = u16::read_half(w, step, index, source);
        let (abs, neg) = (has(step.modifiers.get_abs(), source), has(step.modifiers.get_neg(), source));
        let clear = if abs { 0x7fff } else { 0xffff };
        let flip = if neg { 0x8000 } else { 0 };
        bits.map(|v| F16(from_f16(v & clear ^ flip)))
    }

    #[inline(always)]
    fn write(w: &mut Wave, step: &Step, values: [F16; LANES]) {
        let (clamp, nan) = (step.modifiers.has_clamp(), if w.clamps_nan() { 0.0 } else { f32::NAN });
        let clamped = |v: f32| if v.is_nan() { nan } else { v.clamp(0.0, 1.0) };
        write_half(w, step, values.map(|v| to_f16(if clamp { clamped(v.0) } else { v.0 })));
    }
}

/// Reading one half of a register.
trait Halves {
    fn read_half(w: &Wave, step: &Step, index: usize, source: u32) -> [u32; LANES];
}

impl Halves for u16 {
    #[inline(always)]
    fn read_half(w: &Wave, step: &Step, index: usize, source: u32) -> [u32; LANES] {
        let shift = if has(step.modifiers.get_op_sel(), source) { 16 } else { 0 };
        w.lanes(step.operands[index]).map(|v| v >> shift & 0xffff)
    }
}

/// Writes 16-bit results to the half that op_sel names. On GFX9 the other half becomes zero, except for the instructions
/// with op_sel in VOP3 (LLVM, GCNSubtarget::zeroesHigh16BitsOfDest), of which the table has `v_fma_f16`.
fn write_half(w: &mut Wave, step: &Step, values: [u32; LANES]) {
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
    let mut mask = 0;
    for l in 0..LANES {
        mask |= u64::from(f(a[l], b[l])) << l;
    }
    mask
}
