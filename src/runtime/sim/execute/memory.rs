//! Dispatch by meaning, for all instructions that access memory or use the LDS hardware.

use crate::codegen::isa::{Format, Meaning};

use super::super::error::{FaultKind, Stopped};
use super::super::program::Step;
use super::super::wave::Wave;
use super::atomic::AtomicRegisters;
use super::formatted::{self, Packing};
use super::vmem::{self, Returns};
use super::{ExecutionContext, exchange, lds, lds_forms, private, smem, to_lds};

/// Executes one memory instruction.
pub(super) fn execute(
    w: &mut Wave,
    context: &mut ExecutionContext<'_>,
    s: &Step,
    meaning: Meaning,
) -> Result<(), Stopped> {
    use Meaning::*;
    if s.format == Format::Ds {
        return shared(w, context, s, meaning);
    }
    if matches!(s.format, Format::Scratch | Format::ScratchLds) {
        private::check_flat_scratch(w, context.program.arch)?;
    }
    let ExecutionContext { memory, lds, .. } = context;
    match meaning {
        Load(kind) => vmem::load(w, memory, lds, s, kind),
        Store(kind) => vmem::store(w, memory, lds, s, kind),
        Atomic(calc, element) => vmem::atomic(w, memory, lds, s, (calc, element), Returns::Nothing),
        AtomicReturn(calc, element) => vmem::atomic(w, memory, lds, s, (calc, element), Returns::Former),
        LoadFormat(count) => formatted::load(w, memory, s, (count, Packing::Full)),
        LoadFormatHalf(count) => formatted::load(w, memory, s, (count, Packing::Halves)),
        LoadFormatHigh => formatted::load(w, memory, s, (1, Packing::High)),
        StoreFormat(count) => formatted::store(w, memory, s, (count, Packing::Full)),
        StoreFormatHalf(count) => formatted::store(w, memory, s, (count, Packing::Halves)),
        StoreFormatHigh => formatted::store(w, memory, s, (1, Packing::High)),
        LoadToLds(kind) => to_lds::load(w, memory, lds, s, kind),
        LoadFormatToLds => formatted::load_to_lds(w, memory, lds, s),
        StoreFromLdsToMemory => to_lds::store(w, memory, lds, s),
        ScalarLoad(_) | ScalarBufferLoad(_) | ScalarScratchLoad(_) => smem::load(w, memory, s, meaning),
        ScalarStore(_) | ScalarBufferStore(_) | ScalarScratchStore(_) => smem::store(w, memory, s, meaning),
        ScalarAtomic(calc, element) | ScalarBufferAtomic(calc, element) => {
            smem::atomic(w, memory, s, meaning, (calc, element))
        }
        GlobalWaveSync | GlobalBarrier => Err(Stopped::wave(FaultKind::Unsupported("global wave sync"))),
        _ => Err(Stopped::wave(FaultKind::Unsupported("this instruction"))),
    }
}

/// Executes one DS instruction.
fn shared(
    w: &mut Wave,
    context: &mut ExecutionContext<'_>,
    s: &Step,
    meaning: Meaning,
) -> Result<(), Stopped> {
    use Meaning::*;
    let lds = &mut *context.lds;
    match meaning {
        Load(kind) => {
            let addresses = lds::addresses(w, s, 1, s.imm);
            lds::load(w, lds, s, kind, &addresses)
        }
        Store(kind) => {
            let addresses = lds::addresses(w, s, 0, s.imm);
            lds::store(w, lds, s, 1, kind, &addresses)
        }
        Atomic(calc, element) => {
            let Some(data) = s.operands[1].row() else { return Ok(()) };
            let registers =
                AtomicRegisters { data, second: s.operands[2].row().unwrap_or(data), result: None };
            let addresses = lds::addresses(w, s, 0, s.imm);
            lds::atomic(w, lds, (calc, element), registers, &addresses)
        }
        AtomicReturn(calc, element) => {
            let Some(data) = s.operands[2].row() else { return Ok(()) };
            let second = s.operands[3].row().unwrap_or(data);
            let registers = AtomicRegisters { data, second, result: s.operands[0].row() };
            let addresses = lds::addresses(w, s, 1, s.imm);
            lds::atomic(w, lds, (calc, element), registers, &addresses)
        }
        LoadTwo(dwords, scale) => lds::load_two(w, lds, s, dwords, scale),
        StoreTwo(dwords, scale) => lds::store_two(w, lds, s, dwords, scale),
        ExchangeTwo(dwords, scale) => lds::exchange_two(w, lds, s, dwords, scale),
        AtomicFromLds(calc, element) => lds_forms::atomic_from_lds(w, lds, s, (calc, element)),
        StoreFromLds(dwords) => lds_forms::store_from_lds(w, lds, s, dwords),
        ConditionalExchange => lds_forms::conditional_exchange(w, lds, s),
        LoadAtLane => lds_forms::load_at_lane(w, lds, s),
        StoreAtLane => lds_forms::store_at_lane(w, lds, s),
        CountLanes(calc) => lds_forms::count_lanes(w, lds, s, calc),
        LoadTransposed(bits, registers) => lds_forms::load_transposed(w, lds, s, bits, registers),
        LaneSwizzle => {
            exchange::swizzle(w, s);
            Ok(())
        }
        LanePermute(direction) => {
            exchange::permute(w, s, direction);
            Ok(())
        }
        _ => Err(Stopped::wave(FaultKind::Unsupported("this LDS instruction"))),
    }
}
