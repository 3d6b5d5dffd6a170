//! Scalar ALU.

use crate::codegen::isa::{BranchCondition, Calc, Condition, Element, Half, Meaning, Opcode};

use super::super::error::{FaultKind, Stopped};
use super::super::program::{OperandPlace, Step};
use super::super::wave::{EXEC, VCC, Wave};

/// Executes one scalar ALU instruction.
pub(super) fn execute(w: &mut Wave, step: &Step, meaning: Meaning) -> Result<(), Stopped> {
    let [d, a, b, ..] = step.operands;
    match meaning {
        Meaning::Scalar(calc, element) => return scalar(w, step, calc, element),
        Meaning::ScalarMoveIf(_) | Meaning::MoveImmediateIf if !w.scc => {}
        Meaning::ScalarMoveIf(Element::B64) => w.set_scalar_wide(d, w.scalar_wide(a)),
        Meaning::ScalarMoveIf(_) => w.set_scalar(d, w.scalar(a)),
        Meaning::ScalarSelect(Element::B64) => w.set_scalar_wide(d, w.scalar_wide(if w.scc { a } else { b })),
        Meaning::ScalarSelect(_) => w.set_scalar(d, w.scalar(if w.scc { a } else { b })),
        Meaning::ScalarShiftAdd(n) => {
            let sum = (u64::from(w.scalar(a)) << n) + u64::from(w.scalar(b));
            w.set_scalar(d, sum as u32);
            w.scc = sum >> 32 != 0;
        }
        Meaning::ScalarPack(low, high) => {
            let half = |value: u32, half| if half == Half::High { value >> 16 } else { value & 0xffff };
            w.set_scalar(d, half(w.scalar(a), low) | half(w.scalar(b), high) << 16);
        }
        // Comparisons have no result operand: the first source comes first.
        Meaning::ScalarCompare(condition, element) => w.scc = compare(w, condition, element, d, a),
        Meaning::ScalarBitCompare(bit) => {
            let is_wide = matches!(step.op, Some(Opcode::SBitcmp0B64 | Opcode::SBitcmp1B64));
            let (value, last) = if is_wide { (w.scalar_wide(d), 63) } else { (w.scalar(d).into(), 31) };
            w.scc = value >> (w.scalar(a) & last) & 1 == u64::from(bit);
        }
        Meaning::ScalarBitSet(bit, element) => {
            let value = w.scalar_wide(d);
            let mask = 1 << (w.scalar(a) & if element == Element::B64 { 63 } else { 31 });
            let value = if bit == 0 { value & !mask } else { value | mask };
            match element {
                Element::B64 => w.set_scalar_wide(d, value),
                _ => w.set_scalar(d, value as u32),
            }
        }
        Meaning::SaveExec(calc) | Meaning::WriteExec(calc) => {
            let exec = w.exec();
            let result = combined(calc, w.scalar_wide(a), exec)?;
            w.set_scalar_wide(d, if meaning == Meaning::WriteExec(calc) { result } else { exec });
            w.set_pair(EXEC, result);
            w.scc = result != 0;
        }
        Meaning::MoveImmediate | Meaning::MoveImmediateIf => w.set_scalar(d, extended(step)),
        Meaning::CompareImmediate(condition, element) => {
            let (value, imm) = (w.scalar(d), extended(step));
            w.scc = match element {
                Element::I32 => holds(condition, (value as i32).cmp(&(imm as i32))),
                _ => holds(condition, value.cmp(&(imm & 0xffff))),
            };
        }
        Meaning::AddImmediate => {
            let (sum, overflow) = (w.scalar(d) as i32).overflowing_add(extended(step) as i32);
            w.set_scalar(d, sum as u32);
            w.scc = overflow;
        }
        Meaning::MulImmediate => w.set_scalar(d, w.scalar(d).wrapping_mul(extended(step))),
        _ => return Err(unsupported()),
    }
    Ok(())
}

/// A source combined with EXEC.
fn combined(calc: Calc, value: u64, exec: u64) -> Result<u64, Stopped> {
    Ok(match calc {
        Calc::NotAnd => !value & exec,
        Calc::NotOr => !value | exec,
        Calc::And => value & exec,
        Calc::Or => value | exec,
        Calc::Xor => value ^ exec,
        Calc::AndNot => value & !exec,
        Calc::OrNot => value | !exec,
        Calc::Nand => !(value & exec),
        Calc::Nor => !(value | exec),
        Calc::Xnor => !(value ^ exec),
        _ => return Err(unsupported()),
    })
}

#[cold]
fn unsupported() -> Stopped {
    Stopped::wave(FaultKind::Unsupported("this scalar operation"))
}

fn extended(step: &Step) -> u32 {
    i32::from(step.imm as i16) as u32
}

/// True if a branch is taken.
pub(super) fn taken(w: &Wave, condition: BranchCondition) -> bool {
    match condition {
        BranchCondition::Always => true,
        BranchCondition::Scc0 => !w.scc,
        BranchCondition::Scc1 => w.scc,
        BranchCondition::VccZero => w.pair(VCC) == 0,
        BranchCondition::VccNotZero => w.pair(VCC) != 0,
        BranchCondition::ExecZero => w.exec() == 0,
        BranchCondition::ExecNotZero => w.exec() != 0,
        // No debugger is attached.
        BranchCondition::DebugSystem
        | BranchCondition::DebugUser
        | BranchCondition::DebugEither
        | BranchCondition::DebugBoth => false,
    }
}

fn holds(condition: Condition, order: std::cmp::Ordering) -> bool {
    match condition {
        Condition::Lt => order.is_lt(),
        Condition::Eq => order.is_eq(),
        Condition::Le => order.is_le(),
        Condition::Gt => order.is_gt(),
        Condition::Ne => order.is_ne(),
        Condition::Ge => order.is_ge(),
        Condition::True => true,
        _ => false,
    }
}

fn compare(w: &Wave, condition: Condition, element: Element, a: OperandPlace, b: OperandPlace) -> bool {
    match element {
        Element::I32 => holds(condition, (w.scalar(a) as i32).cmp(&(w.scalar(b) as i32))),
        Element::U64 => holds(condition, w.scalar_wide(a).cmp(&w.scalar_wide(b))),
        _ => holds(condition, w.scalar(a).cmp(&w.scalar(b))),
    }
}

fn scalar(w: &mut Wave, step: &Step, calc: Calc, element: Element) -> Result<(), Stopped> {
    use Element::*;
    let [d, a, b, ..] = step.operands;
    if matches!(element, B64 | U64 | I64) {
        return scalar_wide(w, step, calc, element);
    }
    let (x, y) = (w.scalar(a), w.scalar(b));
    let (sx, sy) = (x as i32, y as i32);
    // Result, and SCC where the operation writes it.
    let bits = |value: u32| (value, Some(value != 0));
    let plain = |value: u32| (value, None);
    let (value, scc) = match (calc, element) {
        (Calc::Mov, _) => plain(x),
        (Calc::Not, _) => bits(!x),
        (Calc::And, _) => bits(x & y),
        (Calc::Or, _) => bits(x | y),
        (Calc::Xor, _) => bits(x ^ y),
        (Calc::AndNot, _) => bits(x & !y),
        (Calc::OrNot, _) => bits(x | !y),
        (Calc::Nand, _) => bits(!(x & y)),
        (Calc::Nor, _) => bits(!(x | y)),
        (Calc::Xnor, _) => bits(!(x ^ y)),
        (Calc::ReverseBits, _) => plain(x.reverse_bits()),
        (Calc::CountOnes, _) => bits(x.count_ones()),
        (Calc::CountZeros, _) => bits(x.count_zeros()),
        (Calc::WholeQuad, _) => bits(whole_quads(x.into()) as u32),
        (Calc::QuadMask, _) => bits(quad_mask(x.into()) as u32),
        (Calc::BitReplicate, _) => {
            w.set_scalar_wide(d, replicate(x));
            return Ok(());
        }
        (Calc::FirstZeroFromLow | Calc::FirstOneFromLow | Calc::FirstOneFromHigh, _) => {
            plain(find_bit(x, calc, element))
        }
        (Calc::SignExtend, I8) => plain(i32::from(x as i8) as u32),
        (Calc::SignExtend, _) => plain(i32::from(x as i16) as u32),
        (Calc::Abs, _) => bits(sx.wrapping_abs() as u32),
        (Calc::AbsDiff, _) => bits(sx.wrapping_sub(sy).wrapping_abs() as u32),
        (Calc::Add, I32) => (x.wrapping_add(y), Some(sx.checked_add(sy).is_none())),
        (Calc::Sub, I32) => (x.wrapping_sub(y), Some(sx.checked_sub(sy).is_none())),
        (Calc::Add, _) => (x.wrapping_add(y), Some(x.checked_add(y).is_none())),
        (Calc::Sub, _) => (x.wrapping_sub(y), Some(x < y)),
        (Calc::AddCarry, _) => {
            let sum = u64::from(x) + u64::from(y) + u64::from(w.scc);
            (sum as u32, Some(sum >> 32 != 0))
        }
        (Calc::SubBorrow, _) => {
            let borrow = u32::from(w.scc);
            (x.wrapping_sub(y).wrapping_sub(borrow), Some(u64::from(x) < u64::from(y) + u64::from(borrow)))
        }
        (Calc::Mul, _) => plain(x.wrapping_mul(y)),
        (Calc::MulHigh, I32) => plain(((i64::from(sx) * i64::from(sy)) >> 32) as u32),
        (Calc::MulHigh, _) => plain(((u64::from(x) * u64::from(y)) >> 32) as u32),
        (Calc::Min, I32) => (sx.min(sy) as u32, Some(sx < sy)),
        (Calc::Min, _) => (x.min(y), Some(x < y)),
        (Calc::Max, I32) => (sx.max(sy) as u32, Some(sx > sy)),
        (Calc::Max, _) => (x.max(y), Some(x > y)),
        (Calc::ShiftLeft, _) => bits(x << (y & 31)),
        (Calc::ShiftRight, I32) => bits((sx >> (y & 31)) as u32),
        (Calc::ShiftRight, _) => bits(x >> (y & 31)),
        (Calc::BitFieldMask, _) => plain(((1u32 << (x & 31)) - 1) << (y & 31)),
        (Calc::BitFieldExtract, _) => bits(extract_field(x, y, element)),
        _ => return Err(unsupported()),
    };
    w.set_scalar(d, value);
    if let Some(scc) = scc {
        w.scc = scc;
    }
    Ok(())
}

/// The place of the first bit of one kind.
fn find_bit(x: u32, calc: Calc, element: Element) -> u32 {
    let unless = |none: bool, place: u32| if none { u32::MAX } else { place };
    match calc {
        Calc::FirstZeroFromLow => unless(x == u32::MAX, x.trailing_ones()),
        Calc::FirstOneFromLow => unless(x == 0, x.trailing_zeros()),
        _ if element == Element::I32 => leading_sign(x as i32),
        _ => unless(x == 0, x.leading_zeros()),
    }
}

/// S_BFE_U32 and S_BFE_I32: a field of bits, whose offset and width stand in `y`.
fn extract_field(x: u32, y: u32, element: Element) -> u32 {
    let (offset, width) = (y & 31, y >> 16 & 0x7f);
    if width == 0 {
        return 0;
    }
    if element != Element::I32 {
        return (u64::from(x) >> offset & ((1u64 << width.min(32)) - 1)) as u32;
    }
    // A field that reaches beyond bit 31 has the sign bit of the source at its top.
    let unused = 64 - width.clamp(1, 32);
    ((i64::from(x as i32) >> offset) << unused >> unused) as u32
}

fn scalar_wide(w: &mut Wave, step: &Step, calc: Calc, element: Element) -> Result<(), Stopped> {
    let [d, a, b, ..] = step.operands;
    let x = w.scalar_wide(a);
    let bits = |value: u64| (value, Some(value != 0));
    let plain = |value: u64| (value, None);
    let (value, scc) = match calc {
        Calc::Mov => plain(x),
        Calc::Not => bits(!x),
        Calc::And => bits(x & w.scalar_wide(b)),
        Calc::Or => bits(x | w.scalar_wide(b)),
        Calc::Xor => bits(x ^ w.scalar_wide(b)),
        Calc::AndNot => bits(x & !w.scalar_wide(b)),
        Calc::OrNot => bits(x | !w.scalar_wide(b)),
        Calc::Nand => bits(!(x & w.scalar_wide(b))),
        Calc::Nor => bits(!(x | w.scalar_wide(b))),
        Calc::Xnor => bits(!(x ^ w.scalar_wide(b))),
        Calc::WholeQuad => bits(whole_quads(x)),
        Calc::QuadMask => bits(quad_mask(x)),
        Calc::ReverseBits => plain(x.reverse_bits()),
        Calc::CountOnes
        | Calc::CountZeros
        | Calc::FirstOneFromLow
        | Calc::FirstZeroFromLow
        | Calc::FirstOneFromHigh => {
            count_wide(w, d, x, calc, element);
            return Ok(());
        }
        Calc::ShiftLeft => bits(x << (w.scalar(b) & 63)),
        Calc::ShiftRight if element == Element::I64 => bits((x as i64 >> (w.scalar(b) & 63)) as u64),
        Calc::ShiftRight => bits(x >> (w.scalar(b) & 63)),
        Calc::BitFieldMask => plain(((1u64 << (w.scalar(a) & 63)) - 1) << (w.scalar(b) & 63)),
        Calc::BitFieldExtract => {
            let (offset, width) = (w.scalar(b) & 63, w.scalar(b) >> 16 & 0x7f);
            let unused = 64 - width.clamp(1, 64);
            let field = if element == Element::I64 {
                ((x as i64 >> offset) << unused >> unused) as u64
            } else {
                x >> offset << unused >> unused
            };
            bits(if width == 0 { 0 } else { field })
        }
        _ => return Err(unsupported()),
    };
    w.set_scalar_wide(d, value);
    if let Some(scc) = scc {
        w.scc = scc;
    }
    Ok(())
}

/// Counts bits of 64, or finds one of them.
fn count_wide(w: &mut Wave, d: OperandPlace, x: u64, calc: Calc, element: Element) {
    let unless = |none: bool, place: u32| if none { u32::MAX } else { place };
    let value = match calc {
        Calc::CountOnes => x.count_ones(),
        Calc::CountZeros => x.count_zeros(),
        Calc::FirstZeroFromLow => unless(x == u64::MAX, x.trailing_ones()),
        Calc::FirstOneFromLow => unless(x == 0, x.trailing_zeros()),
        _ if element == Element::I64 => {
            let same = if x as i64 >= 0 { x.leading_zeros() } else { x.leading_ones() };
            unless(same == 64, same)
        }
        _ => unless(x == 0, x.leading_zeros()),
    };
    w.set_scalar(d, value);
    match calc {
        Calc::CountOnes | Calc::CountZeros => w.scc = value != 0,
        _ => {}
    }
}

/// The lowest bit of each group of four: any was one.
fn any_of_quads(x: u64) -> u64 {
    (x | x >> 1 | x >> 2 | x >> 3) & 0x1111_1111_1111_1111
}

fn whole_quads(x: u64) -> u64 {
    any_of_quads(x) * 15
}

fn quad_mask(x: u64) -> u64 {
    let any = any_of_quads(x);
    (0..16).fold(0, |mask, quad| mask | (any >> (4 * quad) & 1) << quad)
}

/// Every bit twice.
fn replicate(x: u32) -> u64 {
    (0..32).fold(0, |all, bit| all | (u64::from(x >> bit & 1) * 3) << (2 * bit))
}

/// Leading bits equal to the sign bit, or -1 if all bits are.
pub(super) fn leading_sign(value: i32) -> u32 {
    let same = if value < 0 { value.leading_ones() } else { value.leading_zeros() };
    if same == 32 { u32::MAX } else { same }
}
