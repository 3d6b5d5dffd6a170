//! Vector instructions beyond arithmetic on one value per lane: carries, selects, and moves between lanes and
//! registers.

use crate::codegen::isa::{Calc, Element, Half, Meaning};

use super::super::error::Stopped;
use super::super::program::{OperandPlace, Step};
use super::super::wave::{LANES, VectorRow, Wave, select};
use super::lanes::{map3, unsupported};

/// Executes one of the vector instructions that are not lane-wise arithmetic.
#[inline(always)]
pub(super) fn execute(w: &mut Wave, s: &Step, meaning: Meaning) -> Result<(), Stopped> {
    let [d, a, b, c, carry_in, _] = s.operands;
    match meaning {
        Meaning::VectorNop => {}
        Meaning::ReadFirstLane => {
            let lane = if w.exec() == 0 { 0 } else { w.exec().trailing_zeros() as usize };
            let value = w.lanes(a)[lane];
            w.set_scalar(d, value);
        }
        Meaning::ReadLane => {
            let value = w.lanes(a)[w.scalar(b) as usize % LANES];
            w.set_scalar(d, value);
        }
        Meaning::WriteLane => {
            let (value, lane) = (w.scalar(a), w.scalar(b) as usize % LANES);
            if let Some(row) = d.row() {
                w.rows[row][lane] = value;
            }
        }
        Meaning::Swap => {
            let (x, y) = (w.lanes(d), w.lanes(a));
            w.set_lanes(d, &y);
            w.set_lanes(a, &x);
        }
        Meaning::SelectLane => {
            let (no, yes, mask) = (signed(w, s, a, 0), signed(w, s, b, 1), w.scalar_wide(c));
            w.set_lanes(d, &select(mask, &yes, &no));
        }
        Meaning::CarryOut(calc) => carry(w, s, calc, b, c, 0)?,
        Meaning::CarryInOut(calc) => carry(w, s, calc, b, c, w.scalar_wide(carry_in))?,
        Meaning::MulAddWide(element) => multiply_add_wide(w, s, element),
        Meaning::MaskedBitCount(half) => {
            let (mask, base) = (w.lanes(a), w.lanes(b));
            let below = |l: usize| match half {
                Half::Low => ((1u64 << l.min(32)) - 1) as u32,
                Half::High => ((1u64 << l.saturating_sub(32)) - 1) as u32,
            };
            let values = std::array::from_fn(|l| (mask[l] & below(l)).count_ones().wrapping_add(base[l]));
            w.set_lanes(d, &values);
        }
        Meaning::SwapRows(lanes) => swap_rows(w, s, lanes.into()),
        Meaning::MulAddMixed(element) => multiply_add_mixed(w, s, element),
        _ => return Err(unsupported()),
    }
    Ok(())
}

/// V_PERMLANE16_SWAP and V_PERMLANE32_SWAP: odd rows of the destination and even rows of the source change
/// places. Lanes that are off are not written. In place of what they would give, a lane gets their value if
/// the modifier `fi` is set, 0 if `bound_ctrl` is set, and otherwise keeps its own.
fn swap_rows(w: &mut Wave, s: &Step, row: usize) {
    let [d, a, ..] = s.operands;
    let (to_first, to_second) = swapped_rows(s, w.exec(), row, &w.lanes(d), &w.lanes(a));
    w.set_lanes(d, &to_first);
    w.set_lanes(a, &to_second);
}

/// The contents of both registers afterwards.
pub(in super::super) fn swapped_rows(
    s: &Step,
    exec: u64,
    row: usize,
    first: &VectorRow,
    second: &VectorRow,
) -> (VectorRow, VectorRow) {
    let (fetches_inactive, bound) = (s.modifiers.get_op_sel() & 1 != 0, s.modifiers.get_op_sel() & 2 != 0);
    let take = |own: u32, other: u32, lane: usize| match (exec >> lane & 1 != 0 || fetches_inactive, bound) {
        (true, _) => other,
        (false, true) => 0,
        (false, false) => own,
    };
    let is_odd = |l: usize| l / row % 2 == 1;
    let to_first =
        std::array::from_fn(|l| if is_odd(l) { take(first[l], second[l - row], l - row) } else { first[l] });
    let to_second =
        std::array::from_fn(|l| if is_odd(l) { second[l] } else { take(second[l], first[l + row], l + row) });
    (to_first, to_second)
}

/// V_MAD_U64_U32 and V_MAD_I64_I32: 32-bit factors and a 64-bit sum with carries, which saturates with clamp.
#[inline(always)]
fn multiply_add_wide(w: &mut Wave, s: &Step, element: Element) {
    let [d, carry_out, a, b, c, _] = s.operands;
    let (x, y, z) = (w.lanes(a), w.lanes(b), w.lanes_wide(c));
    let mut carries = 0;
    let (clamps, is_signed) = (s.modifiers.has_clamp(), element == Element::I32);
    let values = std::array::from_fn(|l| {
        let product = match is_signed {
            true => (i64::from(x[l] as i32) * i64::from(y[l] as i32)) as u64,
            false => u64::from(x[l]) * u64::from(y[l]),
        };
        let (sum, unsigned) = product.overflowing_add(z[l]);
        let overflow = match is_signed {
            true => (product as i64).overflowing_add(z[l] as i64).1,
            false => unsigned,
        };
        carries |= u64::from(overflow) << l;
        match (clamps && overflow, is_signed) {
            (false, _) => sum,
            (true, true) if (z[l] as i64) < 0 => i64::MIN as u64,
            (true, true) => i64::MAX as u64,
            (true, false) => u64::MAX,
        }
    });
    w.set_lanes_wide(d, &values);
    w.set_scalar_wide(carry_out, carries & w.exec());
}

/// V_MAD_U32_U16 and V_MAD_I32_I16: 16-bit factors and a 32-bit sum, which saturates with clamp.
fn multiply_add_mixed(w: &mut Wave, s: &Step, element: Element) {
    let clamps = s.modifiers.has_clamp();
    if element == Element::I16 {
        map3(w, s, |a: i16, b: i16, c: i32| {
            let product = i32::from(a) * i32::from(b);
            if clamps { product.saturating_add(c) } else { product.wrapping_add(c) }
        });
    } else {
        map3(w, s, |a: u16, b: u16, c: u32| {
            let product = u32::from(a) * u32::from(b);
            if clamps { product.saturating_add(c) } else { product.wrapping_add(c) }
        });
    }
}

/// A 32-bit source whose sign the modifiers may change.
#[inline(always)]
fn signed(w: &Wave, s: &Step, place: OperandPlace, source: u32) -> [u32; LANES] {
    let clear = if s.modifiers.get_abs() >> source & 1 != 0 { 0x7fff_ffff } else { u32::MAX };
    let flip = if s.modifiers.get_neg() >> source & 1 != 0 { 0x8000_0000 } else { 0 };
    let mut values = w.lanes(place);
    values.iter_mut().for_each(|value| *value = *value & clear ^ flip);
    values
}

/// Sum or difference with a carry per lane in and out; inactive lanes carry nothing out.
#[inline(always)]
fn carry(
    w: &mut Wave,
    s: &Step,
    calc: Calc,
    a: OperandPlace,
    b: OperandPlace,
    carries: u64,
) -> Result<(), Stopped> {
    let (x, y) = (w.lanes(a), w.lanes(b));
    let (x, y) = if calc == Calc::SubRev { (y, x) } else { (x, y) };
    let adds = match calc {
        Calc::Add => true,
        Calc::Sub | Calc::SubRev => false,
        _ => return Err(unsupported()),
    };
    let (mut values, mut over) = ([0; LANES], [0; LANES]);
    for l in 0..LANES {
        let carry = (carries >> l & 1) as u32;
        // At most one of the two steps goes past the end.
        let ((sum, first), (difference, second)) = (x[l].overflowing_add(y[l]), x[l].overflowing_sub(y[l]));
        let (result, over_first) = if adds { (sum, first) } else { (difference, second) };
        let ((sum, first), (difference, second)) =
            (result.overflowing_add(carry), result.overflowing_sub(carry));
        let (result, over_second) = if adds { (sum, first) } else { (difference, second) };
        (values[l], over[l]) = (result, u32::from(over_first | over_second));
    }
    if s.modifiers.has_clamp() {
        let limit = if adds { u32::MAX } else { 0 };
        values = std::array::from_fn(|l| if over[l] != 0 { limit } else { values[l] });
    }
    let out = (0..LANES).fold(0, |out, l| out | u64::from(over[l]) << l);
    w.set_lanes(s.operands[0], &values);
    w.set_scalar_wide(s.operands[1], out & w.exec());
    Ok(())
}
