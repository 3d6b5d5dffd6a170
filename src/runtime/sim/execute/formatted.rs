//! Buffer loads and stores that convert between the buffer's format and registers.
//!
//! An access is in range as a whole or not at all (Vega ISA guide, "Range checking").

use super::super::error::{FaultKind, Stopped};
use super::super::memory::MemoryView;
use super::super::program::Step;
use super::super::wave::Wave;
use super::address::{OperandRoles, Targets, lds_roles, load_roles, targets};
use super::format::ElementFormat;
use super::lds::Lds;
use super::lds_forms::own_addresses;
use super::single;
use super::to_lds;
use crate::codegen::isa::{self, Format};

/// How registers hold components.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Packing {
    /// One each.
    Full,
    /// Two in each, the first in the low half.
    Halves,
    /// One, in the high half.
    High,
}

/// Format and addresses of a formatted access.
pub(super) fn place(w: &Wave, s: &Step, roles: &OperandRoles) -> Result<(ElementFormat, Targets), Stopped> {
    let word = w.scalar(s.operands[roles.base].offset(3));
    let unknown = || Stopped::wave(FaultKind::Unsupported("this format of a buffer"));
    let format = match s.format {
        Format::Mtbuf => {
            let bits = s.modifiers.get_format_flip() ^ isa::BufferFormat::USUAL.to_bits();
            ElementFormat::of_instruction(isa::BufferFormat::from_bits(bits))
        }
        _ => ElementFormat::new(word),
    };
    let format = format.ok_or_else(unknown)?;
    let (count, bytes) = format.pieces();
    Ok((format, targets(w, s, roles, count, bytes)?.whole(count)))
}

/// Loads `count` components.
pub(super) fn load(
    w: &mut Wave,
    memory: &MemoryView<'_>,
    s: &Step,
    (count, packing): (u8, Packing),
) -> Result<(), Stopped> {
    let Some(first) = s.operands[0].row() else { return Ok(()) };
    let (format, targets) = place(w, s, &load_roles(s.format))?;
    let (_, bytes) = format.pieces();
    w.each_lane(|w, l| {
        let pieces = single::gather(w, memory, &targets, l, bytes)?;
        let values = if targets.valid[l] == 0 { [0; 4] } else { format.load(pieces) };
        match packing {
            Packing::Full => (0..count.into()).for_each(|i| w.rows[first + i][l] = values[i]),
            Packing::Halves => {
                let half = |i: usize| if i < count.into() { format.narrow(values[i]) } else { 0 };
                for register in 0..usize::from(count).div_ceil(2) {
                    w.rows[first + register][l] = half(2 * register) | half(2 * register + 1) << 16;
                }
            }
            Packing::High => {
                let kept = if s.keeps_other_half { w.rows[first][l] & 0xffff } else { 0 };
                w.rows[first][l] = kept | format.narrow(values[0]) << 16;
            }
        }
        Ok(())
    })
}

/// Stores `count` components; others of the format become zero.
pub(super) fn store(
    w: &mut Wave,
    memory: &MemoryView<'_>,
    s: &Step,
    (count, packing): (u8, Packing),
) -> Result<(), Stopped> {
    let Some(first) = s.operands[0].row() else { return Ok(()) };
    let (format, targets) = place(w, s, &load_roles(s.format))?;
    let (_, bytes) = format.pieces();
    w.each_lane(|w, l| {
        let mut values = [0; 4];
        for (i, value) in values.iter_mut().enumerate().take(count.into()) {
            *value = match packing {
                Packing::Full => w.rows[first + i][l],
                Packing::Halves => format.widen(w.rows[first + i / 2][l] >> (16 * (i % 2))),
                Packing::High => format.widen(w.rows[first][l] >> 16),
            };
        }
        single::scatter(w, memory, &targets, l, bytes, format.store(values))
    })
}

/// Loads one component to LDS.
pub(super) fn load_to_lds(
    w: &mut Wave,
    memory: &MemoryView<'_>,
    lds: &mut Lds,
    s: &Step,
) -> Result<(), Stopped> {
    let (format, targets) = place(w, s, &lds_roles())?;
    let (_, bytes) = format.pieces();
    let places = own_addresses(w, s, 4);
    w.each_lane(|w, l| {
        let pieces = single::gather(w, memory, &targets, l, bytes)?;
        let value = if targets.valid[l] == 0 { 0 } else { format.load(pieces)[0] };
        to_lds::put(lds, l, places[l], &[value])
    })
}
