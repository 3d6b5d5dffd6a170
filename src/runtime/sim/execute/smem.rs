//! Scalar memory.

use crate::codegen::isa::Meaning;

use super::super::error::{Access, FaultKind, Stopped};
use super::super::memory::View;
use super::super::program::{Place, Step};
use super::super::wave::Wave;

/// First byte and number of bytes that a scalar load reads; what lies behind a buffer's end is not read (CDNA3 ISA guide,
/// "Scalar memory instructions").
pub(super) fn range(w: &Wave, s: &Step, meaning: Meaning) -> (u64, u32) {
    let base = s.operands[1];
    let offset = offset(w, s);
    match meaning {
        // The two low bits of the address are ignored.
        Meaning::ScalarLoad(count) => (w.scalar_wide(base).wrapping_add(offset) & !3, 4 * u32::from(count)),
        Meaning::ScalarBufferLoad(count) => {
            let stride = u64::from(w.scalar(base.offset(1)) >> 16 & 0x3fff);
            let records = u64::from(w.scalar(base.offset(2)));
            let size = if stride == 0 { records } else { records * stride };
            let offset = offset & !3;
            let inside = (size.saturating_sub(offset) / 4).min(count.into());
            let start = w.scalar_wide(base) & 0xffff_ffff_ffff;
            (start.wrapping_add(offset) & !3, 4 * inside as u32)
        }
        _ => (0, 0),
    }
}

/// Loads `count` dwords; those out of range are zero.
pub(super) fn load(
    w: &mut Wave,
    memory: &View<'_>,
    s: &Step,
    meaning: Meaning,
    count: u8,
) -> Result<(), Stopped> {
    let (address, bytes) = range(w, s, meaning);
    let result = s.operands[0];
    for index in (bytes / 4) as usize..count.into() {
        w.set_scalar(result.offset(index), 0);
    }
    if bytes == 0 {
        return Ok(());
    }
    let found = memory.find(&mut w.hint, address, bytes.into());
    let (allocation, offset) =
        found.ok_or_else(|| Stopped::wave(FaultKind::Memory { access: Access::Load, address, bytes }))?;
    for index in 0..bytes / 4 {
        w.set_scalar(result.offset(index as usize), allocation.load(offset + 4 * u64::from(index), 4));
    }
    Ok(())
}

fn offset(w: &Wave, s: &Step) -> u64 {
    let register = if s.operands[2] == Place::None { 0 } else { w.scalar(s.operands[2]) };
    i64::from(s.imm as i32).wrapping_add(register.into()) as u64
}
