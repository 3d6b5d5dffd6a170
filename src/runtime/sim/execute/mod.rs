//! Executing one wave: the loop over steps, and one file per unit.

// Lanes are indices: several arrays are walked in step, and bits of masks beside them.
#![allow(clippy::needless_range_loop)]

mod address;
mod atomic;
mod compare;
mod convert;
mod division;
mod footprint;
mod host;
mod lanes;
mod lds;
mod mfma;
mod multiply;
mod packed;
mod salu;
mod smem;
mod transfer;
mod valu;
mod vmem;

use crate::codegen::isa::{Format, Half, Meaning};

use super::error::{FaultKind, Stopped};
use super::memory::View;
use super::program::{Action, NOWHERE, Program, Step};
use super::wave::{Progress, Wave};
use compare::Writes;
use packed::Mixed;
use vmem::Returns;

pub(super) use footprint::{Footprint, Space, footprints};
pub(super) use lds::Lds;
pub(super) use mfma::Cache;
pub(super) use salu::check_mode;

/// What all waves of a workgroup share.
pub(super) struct Context<'a> {
    /// The code.
    pub program: &'a Program,
    /// Global memory.
    pub memory: &'a View<'a>,
    /// LDS.
    pub lds: &'a mut Lds,
    /// Widened matrix sources A and B.
    pub caches: &'a mut [Cache; 2],
    /// Instructions that a wave may execute.
    pub budget: u64,
}

/// Runs the wave until it waits at a barrier or ends. After a fault the wave's `pc` is that of the faulting step.
pub(super) fn run(w: &mut Wave, context: &mut Context<'_>) -> Result<(), Stopped> {
    while w.progress == Progress::Running {
        step(w, context)?;
    }
    Ok(())
}

/// Executes the instruction that a running wave stands at, and moves on to the next. After a fault `pc` has not moved.
#[inline(always)]
pub(super) fn step(w: &mut Wave, context: &mut Context<'_>) -> Result<(), Stopped> {
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
    match step.action {
        Action::Do(meaning) => {
            let next = execute(w, context, step, meaning)?;
            w.pc = next.unwrap_or(w.pc + 1);
        }
        Action::Undecodable => return Err(Stopped::wave(FaultKind::Undecodable)),
        Action::Unsupported(what) => return Err(Stopped::wave(FaultKind::Unsupported(what))),
    }
    Ok(())
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
    context: &mut Context<'_>,
    s: &Step,
    meaning: Meaning,
) -> Result<Option<usize>, Stopped> {
    use Meaning::*;
    let next_address = context.program.address + u64::from(s.offset + s.bytes);
    match meaning {
        Mfma(shape, a, b, d) => mfma::execute(w, context.caches, s, shape, [a, b, d])?,
        Vector(calc, element) => host::calculate(w, s, calc, element)?,
        Packed(calc, element) => packed::packed(w, s, calc, element)?,
        PackedMove => packed::packed_move(w, s),
        Convert(to, from) => convert::convert(w, s, to, from)?,
        ConvertByte(byte) => convert::convert_byte(w, s, byte),
        PackConvert(to, from) => convert::pack_convert(w, s, to, from)?,
        Pack(_) => convert::pack(w, s),
        Compare(condition, element) => compare::compare(w, s, condition, element, Writes::Mask)?,
        CompareExec(condition, element) => compare::compare(w, s, condition, element, Writes::MaskAndExec)?,
        CompareClass(element) => compare::class(w, s, element)?,
        DivScale(element) => division::scale(w, s, element)?,
        FmaMix(crate::codegen::isa::Element::F16) => packed::fma_mix(w, s, Mixed::Half(Half::Low)),
        FmaMix(_) => packed::fma_mix(w, s, Mixed::Single),
        FmaMixHigh => packed::fma_mix(w, s, Mixed::Half(Half::High)),
        Dot(element) => packed::dot(w, s, element)?,
        VectorNop | ReadFirstLane | ReadLane | WriteLane | Swap | SelectLane | CarryOut(_)
        | CarryInOut(_) | MulAddWide(_) | MaskedBitCount(_) => valu::move_or_carry(w, s, meaning)?,
        Load(kind) if s.format == Format::Ds => {
            let addresses = lds::addresses(w, s, 1, s.imm);
            lds::load(w, context.lds, s, kind, &addresses)?;
        }
        Store(kind) if s.format == Format::Ds => {
            let addresses = lds::addresses(w, s, 0, s.imm);
            lds::store(w, context.lds, s, 1, kind, &addresses)?;
        }
        Atomic(calc, element) if s.format == Format::Ds => {
            let addresses = lds::addresses(w, s, 0, s.imm);
            if let Some(data) = s.operands[1].row() {
                lds::atomic(w, context.lds, (calc, element), data, None, &addresses)?;
            }
        }
        AtomicReturn(calc, element) if s.format == Format::Ds => {
            let addresses = lds::addresses(w, s, 1, s.imm);
            if let Some(data) = s.operands[2].row() {
                lds::atomic(w, context.lds, (calc, element), data, s.operands[0].row(), &addresses)?;
            }
        }
        LoadTwo(dwords, scale) => lds::load_two(w, context.lds, s, dwords, scale)?,
        StoreTwo(dwords, scale) => lds::store_two(w, context.lds, s, dwords, scale)?,
        LaneSwizzle => lds::swizzle(w, s)?,
        LanePermute(direction) => lds::permute(w, s, direction),
        Load(kind) => vmem::load(w, context.memory, context.lds, s, kind)?,
        Store(kind) => vmem::store(w, context.memory, context.lds, s, kind)?,
        LoadToLds(kind) => vmem::load_to_lds(w, context.memory, context.lds, s, kind)?,
        Atomic(calc, element) => {
            vmem::atomic(w, context.memory, context.lds, s, (calc, element), Returns::Nothing)?;
        }
        AtomicReturn(calc, element) => {
            vmem::atomic(w, context.memory, context.lds, s, (calc, element), Returns::Former)?;
        }
        ScalarLoad(count) | ScalarBufferLoad(count) => smem::load(w, context.memory, s, meaning, count)?,
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
        Barrier => w.progress = Progress::AtBarrier,
        EndProgram => w.progress = Progress::Ended,
        Trap => return Err(Stopped::wave(FaultKind::Trap(s.imm & 0xff))),
        SetHalt if s.imm & 1 != 0 => return Err(Stopped::wave(FaultKind::Unsupported("halting a wave"))),
        // Nothing is in flight when an instruction executes, caches are coherent, and there is nobody to be polite to.
        Wait
        | Nop
        | Sleep
        | SetPriority
        | SendMessage
        | SetHalt
        | InvalidateCode
        | ScalarCacheInvalidate
        | ScalarCacheWriteBack
        | CacheWriteBack
        | CacheInvalidate => {}
        Scalar(..) | ScalarMoveIf(_) | ScalarSelect(_) | ScalarShiftAdd(_) | ScalarPack(..)
        | ScalarCompare(..) | ScalarBitCompare(_) | SaveExec(_) | MoveImmediate | MoveImmediateIf
        | CompareImmediate(..) | AddImmediate | MulImmediate | GetHardwareRegister | SetHardwareRegister => {
            salu::execute(w, s, meaning)?;
        }
        _ => return Err(Stopped::wave(FaultKind::Unsupported("this instruction"))),
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
