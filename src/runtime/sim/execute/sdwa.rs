//! SDWA: parts of registers as sources and result (CDNA3 ISA guide, "SDWA").

use crate::codegen::isa::{Field, Meaning, OpInfo, Sdwa, Select, Unused};

use super::super::error::{FaultKind, Stopped};
use super::super::program::Step;
use super::super::wave::Wave;
use super::operands::{position, scratch};
use super::{ExecutionContext, execute};

/// First bit and number of bits of a part.
fn range(select: Select) -> (u32, u32) {
    match select {
        Select::Byte0 => (0, 8),
        Select::Byte1 => (8, 8),
        Select::Byte2 => (16, 8),
        Select::Byte3 => (24, 8),
        Select::Word0 => (0, 16),
        Select::Word1 => (16, 16),
        Select::Dword => (0, 32),
    }
}

/// The part in the low bits, with its sign or zeros above.
pub(in super::super) fn extract(value: u32, select: Select, signed: bool) -> u32 {
    let (first, bits) = range(select);
    let top = value << (32 - bits - first);
    if signed { (top as i32 >> (32 - bits)) as u32 } else { top >> (32 - bits) }
}

/// The low bits of a result at the place of the part, in a register that held `old`. A sign goes upwards
/// only.
pub(in super::super) fn insert(old: u32, result: u32, sdwa: Sdwa) -> u32 {
    let (first, bits) = range(sdwa.dst);
    let mask = u32::MAX >> (32 - bits);
    match sdwa.unused {
        Unused::Pad => (result & mask) << first,
        Unused::SignExtend => (((result << (32 - bits)) as i32 >> (32 - bits)) as u32) << first,
        Unused::Preserve => old & !(mask << first) | (result & mask) << first,
    }
}

/// Executes the step on parts.
pub(super) fn run(
    w: &mut Wave,
    context: &mut ExecutionContext<'_>,
    mut s: Step,
    info: &OpInfo,
    meaning: Meaning,
) -> Result<Option<usize>, Stopped> {
    let sdwa = Sdwa::from_imm(s.imm).ok_or_else(|| Stopped::wave(FaultKind::Undecodable))?;
    for (number, field) in [Field::Src0, Field::Src1].into_iter().enumerate() {
        let Some(index) = position(info, field) else { continue };
        let (select, signed) = (sdwa.sources[number], s.modifiers.get_sign_extend() >> number & 1 != 0);
        let place = scratch(w, number);
        let values = w.lanes(s.operands[index]).map(|v| extract(v, select, signed));
        if let Some(row) = place.row() {
            w.rows[row] = values;
        }
        s.operands[index] = place;
    }
    let result = position(info, Field::Dst).filter(|&index| s.operands[index].row().is_some());
    let Some(index) = result.filter(|_| sdwa.dst != Select::Dword) else {
        return execute(w, context, &s, meaning);
    };
    let destination = s.operands[index];
    s.operands[index] = scratch(w, 2);
    let next = execute(w, context, &s, meaning)?;
    let (old, part) = (w.lanes(destination), w.lanes(s.operands[index]));
    w.set_lanes(destination, &std::array::from_fn(|l| insert(old[l], part[l], sdwa)));
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_out_and_go_back() {
        assert_eq!(extract(0x8899_aabb, Select::Byte2, false), 0x99);
        assert_eq!(extract(0x8899_aabb, Select::Byte3, true), 0xffff_ff88);
        assert_eq!(extract(0x8899_aabb, Select::Word1, true), 0xffff_8899);
        assert_eq!(extract(0x8899_aabb, Select::Dword, true), 0x8899_aabb);
        let into = |dst, unused| insert(0x1122_3344, 0xffff_ff81, Sdwa { dst, unused, ..Sdwa::default() });
        assert_eq!(into(Select::Byte1, Unused::Pad), 0x0000_8100);
        assert_eq!(into(Select::Byte1, Unused::SignExtend), 0xffff_8100);
        assert_eq!(into(Select::Byte1, Unused::Preserve), 0x1122_8144);
        assert_eq!(into(Select::Word1, Unused::Preserve), 0xff81_3344);
        assert_eq!(into(Select::Byte3, Unused::Pad), 0x8100_0000);
    }
}
