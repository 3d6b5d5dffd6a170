//! Scalar memory.
//!
//! Addresses are multiples of four: the two low bits of their parts are ignored. Bytes past a buffer's end
//! are not accessed (CDNA3 ISA guide, "Scalar memory instructions").

use crate::codegen::isa::Meaning;

use super::super::error::{FaultKind, MemoryAccess, Stopped};
use super::super::memory::MemoryView;
use super::super::program::{OperandPlace, Step};
use super::super::wave::Wave;
use super::atomic::AtomicOperation;
use super::private;
use super::vmem;

/// What a scalar memory instruction touches.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct ScalarRange {
    /// Which way.
    pub access: MemoryAccess,
    /// First byte.
    pub address: u64,
    /// Dwords of the instruction.
    pub dwords: u8,
    /// Those of them that are in range.
    pub inside: u8,
}

/// How the address is made.
enum Addressing {
    Plain,
    Buffer,
    Scratch,
}

/// The access that `s` would make; none if it does not access scalar memory.
pub(super) fn range(w: &Wave, s: &Step, meaning: Meaning) -> Option<ScalarRange> {
    use Addressing::*;
    use Meaning::*;
    let (access, dwords, addressing) = match meaning {
        ScalarLoad(count) => (MemoryAccess::Load, count, Plain),
        ScalarBufferLoad(count) => (MemoryAccess::Load, count, Buffer),
        ScalarScratchLoad(count) => (MemoryAccess::Load, count, Scratch),
        ScalarStore(count) => (MemoryAccess::Store, count, Plain),
        ScalarBufferStore(count) => (MemoryAccess::Store, count, Buffer),
        ScalarScratchStore(count) => (MemoryAccess::Store, count, Scratch),
        ScalarAtomic(_, element) => (MemoryAccess::Atomic, element.registers(), Plain),
        ScalarBufferAtomic(_, element) => (MemoryAccess::Atomic, element.registers(), Buffer),
        _ => return None,
    };
    let base = s.operands[1];
    let register = if s.operands[2] == OperandPlace::None { 0 } else { u64::from(w.scalar(s.operands[2])) };
    let immediate = i64::from(s.imm as i32) as u64;
    let (address, inside) = match addressing {
        Plain => (w.scalar_wide(base).wrapping_add(immediate).wrapping_add(register), dwords),
        // The register counts bytes of one lane (Vega ISA guide, "Scalar memory addressing").
        Scratch => (w.scalar_wide(base).wrapping_add(immediate).wrapping_add(register * 64), dwords),
        Buffer => {
            let stride = u64::from(w.scalar(base.offset(1)) >> 16 & 0x3fff);
            let records = u64::from(w.scalar(base.offset(2)));
            let size = if stride == 0 { records } else { records * stride };
            let offset = immediate.wrapping_add(register) & !3;
            let inside = (size.saturating_sub(offset) / 4).min(dwords.into()) as u8;
            // Atomics are in range as a whole or not at all.
            let inside = if access == MemoryAccess::Atomic && inside < dwords { 0 } else { inside };
            ((w.scalar_wide(base) & 0xffff_ffff_ffff).wrapping_add(offset), inside)
        }
    };
    Some(ScalarRange { access, address: address & !3, dwords, inside })
}

#[cold]
fn outside(range: &ScalarRange) -> Stopped {
    let ScalarRange { access, address, inside, .. } = *range;
    Stopped::wave(FaultKind::Memory { access, address, bytes: 4 * u32::from(inside) })
}

/// Loads; dwords that are out of range are zero.
pub(super) fn load(w: &mut Wave, memory: &MemoryView<'_>, s: &Step, meaning: Meaning) -> Result<(), Stopped> {
    let Some(range) = range(w, s, meaning) else { return Ok(()) };
    let result = s.operands[0];
    for index in range.inside.into()..usize::from(range.dwords) {
        w.set_scalar(result.offset(index), 0);
    }
    if range.inside == 0 {
        return Ok(());
    }
    let inside = usize::from(range.inside);
    if private::through_window(range.address).is_some() {
        for index in 0..inside {
            let value = match private::through_window(range.address + 4 * index as u64) {
                Some((lane, byte)) => private::load(w, lane, byte, 4)?,
                None => return Err(outside(&range)),
            };
            w.set_scalar(result.offset(index), value);
        }
        return Ok(());
    }
    let found = memory.find(&mut w.hint, range.address, 4 * inside as u64);
    let (allocation, offset) = found.ok_or_else(|| outside(&range))?;
    for index in 0..inside {
        w.set_scalar(result.offset(index), allocation.load(offset + 4 * index as u64, 4));
    }
    Ok(())
}

/// Stores; dwords that are out of range are dropped.
pub(super) fn store(
    w: &mut Wave,
    memory: &MemoryView<'_>,
    s: &Step,
    meaning: Meaning,
) -> Result<(), Stopped> {
    let Some(range) = range(w, s, meaning).filter(|range| range.inside > 0) else { return Ok(()) };
    let data = s.operands[0];
    if private::through_window(range.address).is_some() {
        for index in 0..usize::from(range.inside) {
            let value = w.scalar(data.offset(index));
            match private::through_window(range.address + 4 * index as u64) {
                Some((lane, byte)) => private::store(w, lane, byte, 4, value)?,
                None => return Err(outside(&range)),
            }
        }
        return Ok(());
    }
    let found = memory.find(&mut w.hint, range.address, 4 * u64::from(range.inside));
    let (allocation, offset) = found.ok_or_else(|| outside(&range))?;
    for index in 0..usize::from(range.inside) {
        allocation.store(offset + 4 * index as u64, 4, w.scalar(data.offset(index)));
    }
    Ok(())
}

/// Atomic operation; glc asks for the former value, which takes the place of the first data.
pub(super) fn atomic(
    w: &mut Wave,
    memory: &MemoryView<'_>,
    s: &Step,
    meaning: Meaning,
    operation: AtomicOperation,
) -> Result<(), Stopped> {
    let Some(range) = range(w, s, meaning) else { return Ok(()) };
    let width = usize::from(range.dwords);
    let operand = |w: &Wave, first: usize| {
        let high = if width == 2 { u64::from(w.scalar(s.operands[0].offset(first + 1))) << 32 } else { 0 };
        u64::from(w.scalar(s.operands[0].offset(first))) | high
    };
    let second = if operation.0 == crate::codegen::isa::Calc::CompareSwap { width } else { 0 };
    let operands = [operand(w, 0), operand(w, second)];
    let old = if range.inside == 0 {
        0
    } else if range.address % (4 * width as u64) != 0 {
        return Err(Stopped::wave(FaultKind::Misaligned { address: range.address }));
    } else if let Some((lane, byte)) = private::through_window(range.address) {
        if width == 2 {
            return Err(Stopped::wave(FaultKind::Unsupported("64-bit scalar atomics on scratch")));
        }
        vmem::update_private(w, lane, byte, operation, operands)?
    } else {
        vmem::update(memory, &mut w.hint, range.address, operation, operands)?
    };
    if s.modifiers.has_sc0() {
        for dword in 0..width {
            w.set_scalar(s.operands[0].offset(dword), (old >> (32 * dword)) as u32);
        }
    }
    Ok(())
}
