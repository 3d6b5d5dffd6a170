//! Immediates with an inner structure: wait counts, hardware registers, messages, lane swizzles, index modes.

use super::super::buffer_format::BufferFormat;
use super::super::fields::{
    CHANNELS, EXPORT_TARGETS, GPR_INDEX_OPERANDS, HARDWARE_REGISTERS, MESSAGES, MESSAGES_WITH_OPERATION,
    OPERATIONS, PARAMETERS, SINGLE_EXPORT_TARGETS, WaitCounts,
};
use super::super::{Arch, Arches};
use super::cursor::StatementCursor;
use super::error::{InstructionFault, LineError};
use super::expression::{self, ExpressionPlace, SymbolValues};

/// A number that goes from `low` to `high`.
pub(super) fn number(
    cursor: &mut StatementCursor,
    symbols: &dyn SymbolValues,
    what: &'static str,
    (low, high): (i64, i64),
) -> Result<i64, LineError> {
    let start = *cursor;
    let expression = expression::parse(cursor, ExpressionPlace::Plain)?;
    let found = expression.number(symbols).map_err(|fault| start.fault(fault))?;
    if (low..=high).contains(&found) {
        Ok(found)
    } else {
        Err(start.fault(InstructionFault::Range { what, low, high, found }))
    }
}

/// A half-word, as a signed number or not.
pub(super) fn half_word(cursor: &mut StatementCursor, symbols: &dyn SymbolValues) -> Result<u32, LineError> {
    Ok(number(cursor, symbols, "the immediate", (-0x8000, 0xffff))? as u32 & 0xffff)
}

/// One of `values`; the result is its index.
pub(super) fn choice(
    cursor: &mut StatementCursor,
    symbols: &dyn SymbolValues,
    what: &'static str,
    values: &[i64],
) -> Result<usize, LineError> {
    let start = *cursor;
    let found = number(cursor, symbols, what, (i64::MIN, i64::MAX))?;
    values
        .iter()
        .position(|&value| value == found)
        .ok_or_else(|| start.fault(InstructionFault::Choice { what, found }))
}

/// `dfmt:4, nfmt:7` before the scalar offset of a typed buffer instruction; none if neither is there.
pub(super) fn formats(
    cursor: &mut StatementCursor,
    symbols: &dyn SymbolValues,
) -> Result<Option<BufferFormat>, LineError> {
    let (mut format, mut seen) = (BufferFormat::USUAL, [false; 2]);
    while let Some(which) = ["dfmt", "nfmt"].iter().position(|name| cursor.is_call(name, b':')) {
        if std::mem::replace(&mut seen[which], true) {
            let name = ["dfmt", "nfmt"][which].to_owned();
            return Err(cursor.fault(InstructionFault::Twice { name }));
        }
        cursor.take_name();
        cursor.expect(":")?;
        format = match which {
            0 => format.with_data(number(cursor, symbols, "the data format", (0, 15))? as u32),
            _ => format.with_number(number(cursor, symbols, "the number format", (0, 7))? as u32),
        };
        cursor.eat(",");
    }
    Ok((seen != [false; 2]).then_some(format))
}

/// `format:7` or `format:[BUF_DATA_FORMAT_32,BUF_NUM_FORMAT_FLOAT]` after it, in any order; one of the two is
/// enough.
pub(super) fn format(
    cursor: &mut StatementCursor,
    symbols: &dyn SymbolValues,
) -> Result<Option<BufferFormat>, LineError> {
    if !cursor.is_call("format", b':') {
        return Ok(None);
    }
    cursor.take_name();
    cursor.expect(":")?;
    if !cursor.eat("[") {
        let bits = number(cursor, symbols, "the format", (0, 0x7f))?;
        return Ok(Some(BufferFormat::from_bits(bits as u32)));
    }
    let (mut data, mut numbers) = (None, None);
    loop {
        let name = cursor.name().unwrap_or("");
        let (as_data, as_numbers) =
            (BufferFormat::data_from_name(name), BufferFormat::number_from_name(name));
        match (as_data, as_numbers) {
            (Some(_), _) if data.is_none() => data = as_data,
            (_, Some(_)) if numbers.is_none() => numbers = as_numbers,
            _ => return Err(cursor.expected("the name of a data format or of a number format")),
        }
        cursor.take_name();
        if !cursor.eat(",") {
            break;
        }
    }
    cursor.expect("]")?;
    let usual = BufferFormat::USUAL;
    let format = usual.with_data(data.unwrap_or(usual.data()));
    Ok(Some(format.with_number(numbers.unwrap_or(usual.number()))))
}

/// Counters of `s_waitcnt` and their largest counts.
const COUNTERS: [(&str, u8); 3] = [("vmcnt", 63), ("expcnt", 7), ("lgkmcnt", 15)];

/// `vmcnt(0) & lgkmcnt(1)`, or a number.
pub(super) fn waits(cursor: &mut StatementCursor, symbols: &dyn SymbolValues) -> Result<u32, LineError> {
    let is_call = cursor.name().is_some_and(|name| cursor.is_call(name, b'('));
    if !is_call {
        return half_word(cursor, symbols);
    }
    let mut counts = WaitCounts::NONE;
    while !cursor.is_at_end() {
        let start = *cursor;
        let name = cursor.take_name().ok_or_else(|| cursor.expected("a counter"))?;
        let (plain, saturates) = name.strip_suffix("_sat").map_or((name, false), |plain| (plain, true));
        let known = COUNTERS.iter().find(|(known, _)| *known == plain);
        let Some((_, most)) = known else {
            return Err(start.fault(InstructionFault::Name { what: "counter", name: name.to_owned() }));
        };
        cursor.expect("(")?;
        let highest = if saturates { i64::MAX } else { (*most).into() };
        let count = number(cursor, symbols, "the count", (0, highest))?.min((*most).into()) as u8;
        cursor.expect(")")?;
        match plain {
            "vmcnt" => counts.vm = count,
            "expcnt" => counts.exp = count,
            _ => counts.lgkm = count,
        }
        if (cursor.eat("&") || cursor.eat(",")) && cursor.is_at_end() {
            return Err(cursor.expected("a counter"));
        }
    }
    Ok(counts.to_imm())
}

/// `hwreg(HW_REG_MODE, 0, 4)`, `{id: 1, offset: 0, size: 4}`, or a number.
pub(super) fn hwreg(
    cursor: &mut StatementCursor,
    symbols: &dyn SymbolValues,
    arch: Arch,
) -> Result<u32, LineError> {
    const OFFSET: (i64, i64) = (0, 31);
    const SIZE: (i64, i64) = (1, 32);
    let (mut id, mut offset, mut size) = (0, 0, 32);
    if cursor.eat("{") {
        while !cursor.eat("}") {
            let start = *cursor;
            let name = cursor.take_name().ok_or_else(|| cursor.expected("`id`, `offset` or `size`"))?;
            cursor.expect(":")?;
            match name {
                "id" => id = hardware_register(cursor, symbols, arch)?,
                "offset" => offset = number(cursor, symbols, "the first bit", OFFSET)?,
                "size" => size = number(cursor, symbols, "the number of bits", SIZE)?,
                _ => return Err(start.expected("`id`, `offset` or `size`")),
            }
            if !cursor.eat(",") && cursor.peek() != Some(b'}') {
                return Err(cursor.expected("`}`"));
            }
        }
    } else if cursor.is_call("hwreg", b'(') {
        cursor.take_name();
        cursor.expect("(")?;
        id = hardware_register(cursor, symbols, arch)?;
        if cursor.eat(",") {
            offset = number(cursor, symbols, "the first bit", OFFSET)?;
            cursor.expect(",")?;
            size = number(cursor, symbols, "the number of bits", SIZE)?;
        }
        cursor.expect(")")?;
    } else {
        return half_word(cursor, symbols);
    }
    Ok((id | offset << 6 | (size - 1) << 11) as u32)
}

/// Name or number.
fn hardware_register(
    cursor: &mut StatementCursor,
    symbols: &dyn SymbolValues,
    arch: Arch,
) -> Result<i64, LineError> {
    let start = *cursor;
    let Some(name) = cursor.name().filter(|name| name.starts_with("HW_REG_")) else {
        return number(cursor, symbols, "the hardware register", (0, 63));
    };
    cursor.advance(name.len());
    let mut others = Arches::NONE;
    for (id, _, arches) in HARDWARE_REGISTERS.iter().filter(|(_, known, _)| *known == name) {
        if arches.contains(arch) {
            return Ok((*id).into());
        }
        others = others.union(*arches);
    }
    let name = name.to_owned();
    Err(start.fault(match others == Arches::NONE {
        true => InstructionFault::Name { what: "hardware register", name },
        false => InstructionFault::Arch { name, arch, arches: others },
    }))
}

/// `sendmsg(MSG_INTERRUPT)`, `sendmsg(2, 1, 0)`, or a number.
pub(super) fn message(cursor: &mut StatementCursor, symbols: &dyn SymbolValues) -> Result<u32, LineError> {
    if !cursor.is_call("sendmsg", b'(') {
        return half_word(cursor, symbols);
    }
    cursor.take_name();
    cursor.expect("(")?;
    let start = *cursor;
    let id = match cursor.name().filter(|name| name.starts_with("MSG_")) {
        Some(name) => {
            cursor.advance(name.len());
            let unknown = || start.fault(InstructionFault::Name { what: "message", name: name.to_owned() });
            let mut known = MESSAGES.iter().chain(&MESSAGES_WITH_OPERATION);
            known.find(|(_, known)| *known == name).ok_or_else(unknown)?.0
        }
        None => number(cursor, symbols, "the message", (0, 15))? as u32,
    };
    let (mut operation, mut stream) = (0, 0);
    if cursor.eat(",") {
        operation = message_operation(cursor, symbols, id)?;
        if cursor.eat(",") {
            stream = number(cursor, symbols, "the stream", (0, 3))? as u32;
        }
    }
    cursor.expect(")")?;
    Ok(id | operation << 4 | stream << 8)
}

fn message_operation(
    cursor: &mut StatementCursor,
    symbols: &dyn SymbolValues,
    id: u32,
) -> Result<u32, LineError> {
    let start = *cursor;
    let Some(name) = cursor.name().filter(|name| name.contains("_OP_")) else {
        return Ok(number(cursor, symbols, "the operation", (0, 7))? as u32);
    };
    cursor.advance(name.len());
    match OPERATIONS.iter().find(|(message, _, known)| (*message, *known) == (id, name)) {
        Some((_, operation, _)) => Ok(*operation),
        None => {
            Err(start
                .fault(InstructionFault::Name { what: "operation of the message", name: name.to_owned() }))
        }
    }
}

/// `mrt0`, `pos3`, `null`
pub(super) fn export_target(cursor: &mut StatementCursor) -> Result<u32, LineError> {
    let start = *cursor;
    let name = cursor.take_name().unwrap_or("");
    let numbered = || {
        EXPORT_TARGETS.iter().find_map(|(known, first, count)| {
            let number: u32 = name.strip_prefix(known)?.parse().ok()?;
            (number < *count).then_some(first + number)
        })
    };
    let single = SINGLE_EXPORT_TARGETS.iter().find(|(known, _)| *known == name).map(|(_, target)| *target);
    single.or_else(numbered).ok_or_else(|| start.expected("a target like `mrt0`, `pos0` or `param0`"))
}

/// `p10`
pub(super) fn parameter(cursor: &mut StatementCursor) -> Result<u32, LineError> {
    let start = *cursor;
    let name = cursor.take_name().unwrap_or("");
    let found = PARAMETERS.iter().position(|known| *known == name);
    Ok(found.ok_or_else(|| start.expected("`p10`, `p20` or `p0`"))? as u32)
}

/// `attr3.w`: attribute and channel. LLVM takes one more attribute than there are.
pub(super) fn attribute(cursor: &mut StatementCursor) -> Result<u32, LineError> {
    let start = *cursor;
    let wanted = || start.expected("an attribute like `attr0.x`");
    let (number, channel) =
        cursor.take_name().and_then(|name| name.strip_prefix("attr")?.split_once('.')).ok_or_else(wanted)?;
    let number: u32 = number.parse().ok().filter(|&number| number <= 32).ok_or_else(wanted)?;
    let channel = CHANNELS.iter().position(|known| known.to_string() == channel).ok_or_else(wanted)?;
    Ok(number << 2 | channel as u32)
}

/// `gpr_idx(SRC0,DST)`, or a number.
pub(super) fn gpr_index(cursor: &mut StatementCursor, symbols: &dyn SymbolValues) -> Result<u32, LineError> {
    if !cursor.is_call("gpr_idx", b'(') {
        return Ok(number(cursor, symbols, "the index mode", (0, 15))? as u32);
    }
    cursor.take_name();
    cursor.expect("(")?;
    let mut mode = 0;
    while !cursor.eat(")") {
        let start = *cursor;
        let name = cursor.take_name().ok_or_else(|| cursor.expected("`SRC0`, `SRC1`, `SRC2` or `DST`"))?;
        let bit = GPR_INDEX_OPERANDS.iter().position(|known| *known == name);
        let bit = bit.ok_or_else(|| start.expected("`SRC0`, `SRC1`, `SRC2` or `DST`"))?;
        if mode >> bit & 1 != 0 {
            return Err(start.fault(InstructionFault::Twice { name: name.to_owned() }));
        }
        mode |= 1 << bit;
        if !cursor.eat(",") && cursor.peek() != Some(b')') {
            return Err(cursor.expected("`)`"));
        }
    }
    Ok(mode)
}

/// `swizzle(QUAD_PERM,0,1,2,3)` and its like, after `offset:`.
pub(super) fn swizzle(cursor: &mut StatementCursor, symbols: &dyn SymbolValues) -> Result<u32, LineError> {
    cursor.take_name();
    cursor.expect("(")?;
    let start = *cursor;
    let mode = cursor.take_name().ok_or_else(|| cursor.expected("a swizzle mode"))?;
    let mut argument = |what, range| -> Result<u32, LineError> {
        cursor.expect(",")?;
        Ok(number(cursor, symbols, what, range)? as u32)
    };
    const GROUPS: [u32; 5] = [2, 4, 8, 16, 32];
    let offset = match mode {
        "QUAD_PERM" => {
            let mut lanes = 0x8000;
            for index in 0..4 {
                lanes |= argument("the lane", (0, 3))? << (2 * index);
            }
            lanes
        }
        "BROADCAST" => {
            let size = group(argument("the group size", (2, 32))?, &GROUPS, &start)?;
            let lane = argument("the lane", (0, i64::from(size) - 1))?;
            (0x20 - size) | lane << 5
        }
        "SWAP" => 0x1f | group(argument("the group size", (1, 16))?, &[1, 2, 4, 8, 16], &start)? << 10,
        "REVERSE" => 0x1f | (group(argument("the group size", (2, 32))?, &GROUPS, &start)? - 1) << 10,
        "BITMASK_PERM" => {
            cursor.expect(",")?;
            bit_mask(cursor)?
        }
        _ => return Err(start.fault(InstructionFault::Name { what: "swizzle mode", name: mode.to_owned() })),
    };
    cursor.expect(")")?;
    Ok(offset)
}

fn group(size: u32, sizes: &[u32], start: &StatementCursor) -> Result<u32, LineError> {
    match sizes.contains(&size) {
        true => Ok(size),
        false => Err(start.fault(InstructionFault::Choice { what: "the group size", found: size.into() })),
    }
}

/// Five letters, the highest bit first: each says what becomes of a bit of the lane number.
fn bit_mask(cursor: &mut StatementCursor) -> Result<u32, LineError> {
    const WANTED: &str = "five of `0`, `1`, `p` and `i` between quotes";
    let start = *cursor;
    let text = cursor.take_quoted().filter(|text| text.len() == 5).ok_or_else(|| start.expected(WANTED))?;
    let (mut and, mut or, mut xor) = (0, 0, 0);
    for letter in text.bytes() {
        (and, or, xor) = (and << 1, or << 1, xor << 1);
        match letter {
            b'0' => {}
            b'1' => or |= 1,
            b'p' => and |= 1,
            b'i' => (and, xor) = (and | 1, xor | 1),
            _ => return Err(start.expected(WANTED)),
        }
    }
    Ok(and | or << 5 | xor << 10)
}
