//! Executing one wave: the loop over steps, and one file per unit.
//!
//! Every instruction is complete before the next. Of instructions that access memory, `memory` selects the
//! function, `address` computes the addresses of the lanes, and `footprint` says which bytes they are about
//! to touch; a test over every memory row of every chip compares execution with footprints.

// Lanes are indices: several arrays are walked in step, together with bits of masks.
#![allow(clippy::needless_range_loop)]

mod address;
mod adjust;
mod atomic;
mod bytes;
mod compare;
mod control;
mod convert;
mod division;
mod dot;
mod dpp;
mod exchange;
mod extent;
mod fast;
mod footprint;
mod format;
mod formatted;
mod grid;
mod hardware;
mod host;
mod lanes;
mod lds;
mod lds_forms;
mod memory;
mod mfma;
mod moves;
mod multiply;
mod operands;
mod packed;
mod private;
mod rounded;
mod salu;
mod saturating;
mod scaled;
mod sdwa;
mod single;
mod smem;
mod special;
mod to_lds;
mod transfer;
mod valu;
mod vector;
mod vmem;
mod widen;
mod widened;

use crate::codegen::isa::{Half, Meaning};

use super::error::{FaultKind, Stopped};
use super::memory::MemoryView;
use super::program::{Action, NOWHERE, Program, Step};
use super::wave::{Progress, Wave};
use compare::Writes;
use packed::Mixed;
use scaled::Seed;

pub(super) use dpp::lanes as dpp_lanes;
pub(super) use exchange::{permuted, swizzled};
pub(super) use fast::Fast;
pub(super) use footprint::{Footprint, MemorySpace, footprints};
pub(super) use hardware::{GPR_INDEX, VSKIP, hardware_id, writes_mode};
pub(super) use lds::Lds;
pub(super) use moves::swapped_rows;
pub(super) use private::{SCRATCH_OF_WAVES, WAVE_OFFSET, private_descriptor};
pub(super) use scaled::kept_bits;
pub(super) use sdwa::{extract as sdwa_extract, insert as sdwa_insert};
pub(super) use transfer::{merge_loaded, store_value};
pub(super) use widened::WidenedCache;

/// What all waves of a workgroup share.
pub(super) struct ExecutionContext<'a> {
    /// The code.
    pub program: &'a Program,
    /// Global memory.
    pub memory: &'a MemoryView<'a>,
    /// LDS.
    pub lds: &'a mut Lds,
    /// Widened matrix sources A and B.
    pub caches: &'a mut [WidenedCache; 2],
    /// Instructions that a wave may execute.
    pub budget: u64,
}

/// Runs the wave until it waits at a barrier or ends. After a fault the wave's `pc` is that of the faulting
/// step.
pub(super) fn run(w: &mut Wave, context: &mut ExecutionContext<'_>) -> Result<(), Stopped> {
    while w.progress == Progress::Running {
        step(w, context)?;
    }
    Ok(())
}

/// Executes the next instruction of a running wave, and moves on to the one after it. After a fault `pc` has
/// not moved.
#[inline(always)]
pub(super) fn step(w: &mut Wave, context: &mut ExecutionContext<'_>) -> Result<(), Stopped> {
    let program = context.program;
    let Some(step) = program.steps.get(w.pc) else {
        let end = program.steps.last().map_or(0, |s| s.offset + s.bytes);
        return Err(Stopped::wave(FaultKind::ProgramCounter { target: end.into() }));
    };
    if w.executed >= context.budget {
        return Err(Stopped::wave(FaultKind::Budget(context.budget)));
    }
    w.executed += 1;
    w.counts.count(step.class);
    let next = one(w, context, step)?;
    w.pc = next.unwrap_or(w.pc + 1);
    Ok(())
}

/// Executes one step, whether or not it is the wave's next; returns where to go on if that is not the step
/// after it.
#[inline(always)]
pub(super) fn one(
    w: &mut Wave,
    context: &mut ExecutionContext<'_>,
    step: &Step,
) -> Result<Option<usize>, Stopped> {
    match step.action {
        Action::Do(meaning) => execute(w, context, step, meaning),
        Action::Adjusted(meaning) => adjust::run(w, context, step, meaning),
        Action::Undecodable => Err(Stopped::wave(FaultKind::Undecodable)),
        Action::Unsupported(what) => Err(Stopped::wave(FaultKind::Unsupported(what))),
    }
}

/// Index of the step at a device address.
fn jump(program: &Program, address: u64) -> Result<Option<usize>, Stopped> {
    let target = address.wrapping_sub(program.address) as i64;
    let step = program.find(target).ok_or_else(|| Stopped::wave(FaultKind::ProgramCounter { target }))?;
    Ok(Some(step as usize))
}

/// Executes one step; returns where to go on if that is not the next step.
fn execute(
    w: &mut Wave,
    context: &mut ExecutionContext<'_>,
    s: &Step,
    meaning: Meaning,
) -> Result<Option<usize>, Stopped> {
    use Meaning::*;
    let next_address = context.program.address + u64::from(s.offset + s.bytes);
    match meaning {
        Mfma(shape, a, b, d) => {
            mfma::execute(w, context.caches, context.program.arch, s, shape, [a, b, d])?;
        }
        SparseMfma(shape, a, b, d) => {
            mfma::sparse(w, context.caches, context.program.arch, s, shape, [a, b, d])?;
        }
        FormattedMfma(shape) => mfma::formatted(w, context.caches, s, shape)?,
        Vector(..) if s.fast.usable(w) => host::fast(w, s, s.fast),
        Vector(calc, element) => vector::calculate(w, s, calc, element)?,
        Packed(calc, element) => host::packed(w, s, calc, element)?,
        PackedMove => packed::packed_move(w, s),
        Convert(to, from) => convert::convert(w, s, context.program.arch, to, from)?,
        ConvertByte(byte) => convert::convert_byte(w, s, byte),
        ConvertRound(calc) => convert::convert_round(w, s, calc),
        ConvertOffset => convert::convert_offset(w, s),
        ConvertNormalized(to, _) => convert::convert_normalized(w, s, to),
        PackConvertNormalized(to, from) => convert::pack_normalized(w, s, to, from),
        ConvertToByte => convert::convert_to_byte(w, s),
        ConvertStochastic(to, _) => convert::convert_stochastic(w, s, context.program.arch, to)?,
        ConvertScaled(to, from) => scaled::convert(w, s, context.program.arch, (to, from), Seed::None)?,
        ConvertScaledStochastic(to, from) => {
            scaled::convert(w, s, context.program.arch, (to, from), Seed::Source1)?;
        }
        PackConvert(to, from) => convert::pack_convert(w, s, context.program.arch, to, from)?,
        PackConvertNearest(to, _) => convert::pack_nearest(w, s, to),
        SaturateBytes => bytes::saturate_bytes(w, s),
        ShiftPackBytes(element) => bytes::shift_pack(w, s, element)?,
        Pack(_) => convert::pack(w, s),
        Compare(condition, element) => host::compare(w, s, condition, element, Writes::Mask)?,
        CompareExec(condition, element) => host::compare(w, s, condition, element, Writes::MaskAndExec)?,
        CompareClass(element) => compare::class(w, s, element, Writes::Mask)?,
        CompareClassExec(element) => compare::class(w, s, element, Writes::MaskAndExec)?,
        DivScale(element) => division::scale(w, s, element)?,
        FmaMix(crate::codegen::isa::Element::F16) => packed::fma_mix(w, s, Mixed::Half(Half::Low)),
        FmaMix(_) => packed::fma_mix(w, s, Mixed::Single),
        FmaMixHigh => packed::fma_mix(w, s, Mixed::Half(Half::High)),
        Dot(element) => dot::dot(w, s, element)?,
        VectorNop | ReadFirstLane | ReadLane | WriteLane | Swap | SwapRows(_) | SelectLane | CarryOut(_)
        | CarryInOut(_) | MulAddWide(_) | MulAddMixed(_) | MaskedBitCount(_) => host::moves(w, s, meaning)?,
        // A clock that ticks once per instruction of the wave.
        ReadTime | ReadRealTime => w.set_scalar_wide(s.operands[0], w.executed),
        Branch(condition) => {
            if salu::taken(w, condition) {
                if s.target == NOWHERE {
                    let target = i64::from(s.offset + s.bytes) + i64::from(s.imm as i16) * 4;
                    return Err(Stopped::wave(FaultKind::ProgramCounter { target }));
                }
                return Ok(Some(s.target as usize));
            }
        }
        GetPc => w.set_scalar_wide(s.operands[0], next_address),
        SetPc => return jump(context.program, w.scalar_wide(s.operands[0])),
        SwapPc => {
            let target = jump(context.program, w.scalar_wide(s.operands[1]))?;
            w.set_scalar_wide(s.operands[0], next_address);
            return Ok(target);
        }
        Call => {
            w.set_scalar_wide(s.operands[0], next_address);
            let target = next_address.wrapping_add_signed(i64::from(s.imm as i16) * 4);
            return jump(context.program, target);
        }
        Fork | ForkIf => {
            let mask = w.scalar_wide(s.operands[0]);
            let target = match meaning {
                Fork => w.scalar_wide(s.operands[1]),
                _ => next_address.wrapping_add_signed(i64::from(s.imm as i16) * 4),
            };
            return control::fork(w, context.program, mask, target, next_address);
        }
        JoinFork => {
            let before = w.scalar(s.operands[0]);
            return control::join(w, context.program, before);
        }
        MoveFromRelative(_) | MoveToRelative(_) | SetGprIndex | SetGprIndexOn | SetGprIndexMode
        | SetGprIndexOff | SetVskip => control::execute(w, s, meaning),
        GetHardwareRegister => hardware::get(w, s, context.program, context.lds.bytes()),
        SetHardwareRegister => hardware::set(w, s),
        Barrier => w.progress = Progress::AtBarrier,
        // A wave that waits comes back to the instruction.
        GlobalBarrier if let Some(rendezvous) = context.memory.rendezvous() => {
            if !grid::opens(w, s, rendezvous) {
                return Ok(Some(w.pc));
            }
        }
        EndProgram | EndProgramSaved => w.progress = Progress::Ended,
        // A wave that is marked as killed ends.
        SetKill if s.imm & 1 != 0 => w.progress = Progress::Ended,
        ReturnFromException => {
            return Err(Stopped::wave(FaultKind::Unsupported("returning from a trap handler")));
        }
        Trap => return Err(Stopped::wave(FaultKind::Trap(s.imm & 0xff))),
        SetHalt if s.imm & 1 != 0 => return Err(Stopped::wave(FaultKind::Unsupported("halting a wave"))),
        // Nothing is in flight when an instruction executes, caches are coherent, and yielding to other waves
        // has no effect.
        Wait | Nop | Sleep | SetPriority | SendMessage | SetHalt | SetKill | Wakeup | PerformanceCounters
        | TraceData | InvalidateCode | LdsNop | ProbeAddress | Export | Interpolate | ScreenPartition => {}
        ScalarCacheInvalidate
        | ScalarCacheDiscard(_)
        | ScalarCacheWriteBack
        | CacheWriteBack
        | CacheInvalidate => {}
        Scalar(..) | ScalarMoveIf(_) | ScalarSelect(_) | ScalarShiftAdd(_) | ScalarPack(..)
        | ScalarCompare(..) | ScalarBitCompare(_) | ScalarBitSet(..) | SaveExec(_) | WriteExec(_)
        | MoveImmediate | MoveImmediateIf | CompareImmediate(..) | AddImmediate | MulImmediate => {
            salu::execute(w, s, meaning)?;
        }
        _ => memory::execute(w, context, s, meaning)?,
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
