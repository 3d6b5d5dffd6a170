//! Scalar memory.

use super::super::error::{Access, FaultKind, Stopped};
use super::super::memory::View;
use super::super::program::{Place, Step};
use super::super::wave::Wave;

/// Loads `count` dwords through a pair of SGPRs.
pub(super) fn load(w: &mut Wave, memory: &View<'_>, s: &Step, count: u8) -> Result<(), Stopped> {
    let base = w.scalar_wide(s.operands[1]);
    let address = base.wrapping_add(offset(w, s));
    dwords(w, memory, s.operands[0], address, count.into())
}

/// Loads `count` dwords through a buffer descriptor; what lies behind its end is zero (CDNA3 ISA guide, "Scalar memory
/// instructions").
pub(super) fn buffer_load(w: &mut Wave, memory: &View<'_>, s: &Step, count: u8) -> Result<(), Stopped> {
    let place = s.operands[1];
    let base = w.scalar_wide(place) & 0xffff_ffff_ffff;
    let stride = u64::from(w.scalar(place.offset(1)) >> 16 & 0x3fff);
    let records = u64::from(w.scalar(place.offset(2)));
    let size = if stride == 0 { records } else { records * stride };
    let offset = offset(w, s) & !3;
    let inside = (size.saturating_sub(offset) / 4).min(count.into());
    for index in inside..u64::from(count) {
        w.set_scalar(s.operands[0].offset(index as usize), 0);
    }
    dwords(w, memory, s.operands[0], base.wrapping_add(offset), inside as usize)
}

fn offset(w: &Wave, s: &Step) -> u64 {
    let register = if s.operands[2] == Place::None { 0 } else { w.scalar(s.operands[2]) };
    i64::from(s.imm as i32).wrapping_add(register.into()) as u64
}

fn dwords(w: &mut Wave, memory: &View<'_>, result: Place, address: u64, count: usize) -> Result<(), Stopped> {
    if count == 0 {
        return Ok(());
    }
    // The two low bits of the address are ignored.
    let (address, bytes) = (address & !3, 4 * count as u32);
    let found = memory.find(&mut w.hint, address, bytes.into());
    let (allocation, offset) =
        found.ok_or_else(|| Stopped::wave(FaultKind::Memory { access: Access::Load, address, bytes }))?;
    for index in 0..count {
        w.set_scalar(result.offset(index), allocation.load(offset + 4 * index as u64, 4));
    }
    Ok(())
}
