//! Registers in all their spellings: `v1`, `v[1]`, `v[0:3]`, `[v0,v1]`, `vcc`, `src_shared_base`.

use super::super::Operand;
use super::cursor::StatementCursor;
use super::error::{InstructionFault, LineError};
use super::expression::{self, ExpressionPlace, SymbolValues};

/// Registers that follow each other.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct RegisterSequence {
    /// The first.
    pub first: Operand,
    /// How many; none for those that are as wide as the operand needs.
    pub count: Option<u32>,
}

/// A file of numbered registers: prefix, number of the first, how many.
const FILES: [(&str, u32, u32); 5] = [
    ("ttmp", 108, 16),
    ("acc", Operand::FIRST_AGPR, 256),
    ("v", Operand::FIRST_VGPR, 256),
    ("s", 0, 102),
    ("a", Operand::FIRST_AGPR, 256),
];

/// Registers with names: number, and how many 32-bit registers it is (0: as many as needed).
const NAMED: [(&str, u32, u32); 31] = [
    ("vcc", 106, 2),
    ("vcc_lo", 106, 1),
    ("vcc_hi", 107, 1),
    ("exec", 126, 2),
    ("exec_lo", 126, 1),
    ("exec_hi", 127, 1),
    ("m0", 124, 1),
    ("flat_scratch", 102, 2),
    ("flat_scratch_lo", 102, 1),
    ("flat_scratch_hi", 103, 1),
    ("xnack_mask", 104, 2),
    ("xnack_mask_lo", 104, 1),
    ("xnack_mask_hi", 105, 1),
    ("src_shared_base", 235, 0),
    ("shared_base", 235, 0),
    ("src_shared_limit", 236, 0),
    ("shared_limit", 236, 0),
    ("src_private_base", 237, 0),
    ("private_base", 237, 0),
    ("src_private_limit", 238, 0),
    ("private_limit", 238, 0),
    ("src_pops_exiting_wave_id", 239, 0),
    ("pops_exiting_wave_id", 239, 0),
    ("src_vccz", 251, 0),
    ("vccz", 251, 0),
    ("src_execz", 252, 0),
    ("execz", 252, 0),
    ("src_scc", 253, 0),
    ("scc", 253, 0),
    ("src_lds_direct", 254, 0),
    ("lds_direct", 254, 0),
];

/// True if a register comes next.
pub(super) fn is_next(cursor: &StatementCursor) -> bool {
    match cursor.name() {
        Some(name) => named(name).is_some() || numbered(name).is_some() || is_bracketed(cursor, name),
        None => cursor.peek() == Some(b'['),
    }
}

fn named(name: &str) -> Option<RegisterSequence> {
    let (_, number, count) = NAMED.iter().find(|(known, ..)| *known == name)?;
    Some(RegisterSequence { first: Operand::physical(*number), count: (*count > 0).then_some(*count) })
}

/// `v7`: its file and number, which may be too large.
fn numbered(name: &str) -> Option<((u32, u32), u32)> {
    let (digits, start, count) =
        FILES.iter().find_map(|(prefix, start, count)| Some((name.strip_prefix(prefix)?, *start, *count)))?;
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    // A number with more digits than any register's is not one.
    plain.then(|| ((start, count), digits.parse().unwrap_or(u32::MAX)))
}

/// `v[` and so on.
fn is_bracketed(cursor: &StatementCursor, name: &str) -> bool {
    FILES.iter().any(|(prefix, ..)| *prefix == name) && cursor.is_call(name, b'[')
}

/// Reads registers, of which the caller has seen the beginning.
pub(super) fn parse(
    cursor: &mut StatementCursor,
    symbols: &dyn SymbolValues,
) -> Result<RegisterSequence, LineError> {
    if cursor.peek() == Some(b'[') {
        return list(cursor, symbols);
    }
    let start = *cursor;
    let Some(name) = cursor.take_name() else { return Err(cursor.expected("a register")) };
    if let Some(registers) = named(name) {
        return Ok(registers);
    }
    if let Some((file, number)) = numbered(name) {
        return of_file(file, number.into(), number.into()).ok_or_else(|| missing(&start, cursor));
    }
    let file = FILES.iter().find(|(prefix, ..)| *prefix == name).filter(|_| cursor.peek() == Some(b'['));
    let Some(&(_, first, count)) = file else { return Err(start.expected("a register")) };
    cursor.advance(1);
    let low = index(cursor, symbols)?;
    let high = if cursor.eat(":") { index(cursor, symbols)? } else { low };
    cursor.expect("]")?;
    of_file((first, count), low, high).ok_or_else(|| missing(&start, cursor))
}

fn missing(start: &StatementCursor, end: &StatementCursor) -> LineError {
    let length = end.at() - start.at();
    start.fault(InstructionFault::Register { text: start.rest()[..length].trim_end().to_owned() })
}

fn index(cursor: &mut StatementCursor, symbols: &dyn SymbolValues) -> Result<i64, LineError> {
    let start = *cursor;
    let expression = expression::parse(cursor, ExpressionPlace::Plain)?;
    expression.number(symbols).map_err(|fault| start.fault(fault))
}

/// The most registers of an operand.
const MOST: i64 = 32;

fn of_file((start, count): (u32, u32), low: i64, high: i64) -> Option<RegisterSequence> {
    if low < 0 || high < low || high >= count.into() || high - low >= MOST {
        return None;
    }
    Some(RegisterSequence {
        first: Operand::physical(start + low as u32),
        count: Some((high - low) as u32 + 1),
    })
}

/// `[v0,v1]`
fn list(cursor: &mut StatementCursor, symbols: &dyn SymbolValues) -> Result<RegisterSequence, LineError> {
    cursor.advance(1);
    let mut all: Option<RegisterSequence> = None;
    loop {
        let start = *cursor;
        if cursor.peek() == Some(b'[') || !is_next(cursor) {
            return Err(cursor.expected("a register"));
        }
        let one = parse(cursor, symbols)?;
        let Some(1) = one.count else { return Err(start.expected("a single register")) };
        let joined = match all {
            None => Some(one),
            Some(RegisterSequence { first, count }) => {
                let count = count.unwrap_or(0);
                let next = first.number().map(|number| number + count);
                (one.first.number() == next && i64::from(count) < MOST)
                    .then_some(RegisterSequence { first, count: Some(count + 1) })
            }
        };
        all = Some(joined.ok_or_else(|| start.fault(InstructionFault::Gap))?);
        if !cursor.eat(",") {
            break;
        }
    }
    cursor.expect("]")?;
    all.ok_or_else(|| cursor.expected("a register"))
}
