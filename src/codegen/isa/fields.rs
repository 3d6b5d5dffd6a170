//! Text of immediates that have an inner structure: wait counts, hardware registers, messages, lane swizzles.

use std::fmt::{self, Write};

use crate::codegen::arch::{Arch, Arches};

/// simm16 of `s_waitcnt`: vmcnt in bits 3:0 and 15:14, expcnt in 6:4, lgkmcnt in 11:8 (CDNA3 ISA guide,
/// "S_WAITCNT").
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct WaitCounts {
    /// Vector memory operations that may be outstanding, up to 63.
    pub vm: u8,
    /// Exports that may be outstanding, up to 7.
    pub exp: u8,
    /// Scalar memory and LDS operations and messages that may be outstanding, up to 15.
    pub lgkm: u8,
}

impl WaitCounts {
    /// Waits for nothing.
    pub const NONE: WaitCounts = WaitCounts { vm: 63, exp: 7, lgkm: 15 };

    /// The immediate; counts beyond the maximum wait for nothing, like the maximum itself.
    pub const fn to_imm(self) -> u32 {
        let vm = if self.vm > 63 { 63 } else { self.vm as u32 };
        let exp = if self.exp > 7 { 7 } else { self.exp as u32 };
        let lgkm = if self.lgkm > 15 { 15 } else { self.lgkm as u32 };
        vm & 0xf | exp << 4 | lgkm << 8 | (vm >> 4) << 14
    }

    /// The counts in an immediate.
    pub const fn from_imm(imm: u32) -> WaitCounts {
        WaitCounts {
            vm: (imm & 0xf | (imm >> 14 & 0x3) << 4) as u8,
            exp: (imm >> 4 & 0x7) as u8,
            lgkm: (imm >> 8 & 0xf) as u8,
        }
    }
}

/// Only the counts that wait for something are written; all of them if none does.
pub(super) fn write_waitcnt(f: &mut dyn Write, imm: u32) -> fmt::Result {
    let (counts, none) = (WaitCounts::from_imm(imm), WaitCounts::NONE);
    let all = counts == none;
    if all || counts.vm != none.vm {
        write!(f, " vmcnt({})", counts.vm)?;
    }
    if all || counts.exp != none.exp {
        write!(f, " expcnt({})", counts.exp)?;
    }
    if all || counts.lgkm != none.lgkm {
        write!(f, " lgkmcnt({})", counts.lgkm)?;
    }
    Ok(())
}

/// Names of hardware registers.
pub(super) const HARDWARE_REGISTERS: [(u32, &str, Arches); 17] = [
    (1, "HW_REG_MODE", Arches::ALL),
    (2, "HW_REG_STATUS", Arches::ALL),
    (3, "HW_REG_TRAPSTS", Arches::ALL),
    (4, "HW_REG_HW_ID", Arches::ALL),
    (5, "HW_REG_GPR_ALLOC", Arches::ALL),
    (6, "HW_REG_LDS_ALLOC", Arches::ALL),
    (7, "HW_REG_IB_STS", Arches::ALL),
    (15, "HW_REG_SH_MEM_BASES", Arches::ALL),
    (16, "HW_REG_TBA_LO", Arches::ALL),
    (17, "HW_REG_TBA_HI", Arches::ALL),
    (18, "HW_REG_TMA_LO", Arches::ALL),
    (19, "HW_REG_TMA_HI", Arches::ALL),
    (20, "HW_REG_XCC_ID", Arches::FROM_GFX942),
    (21, "HW_REG_SQ_PERF_SNAPSHOT_DATA", Arches::FROM_GFX942),
    (22, "HW_REG_SQ_PERF_SNAPSHOT_DATA1", Arches::FROM_GFX942),
    (23, "HW_REG_SQ_PERF_SNAPSHOT_PC_LO", Arches::FROM_GFX942),
    (24, "HW_REG_SQ_PERF_SNAPSHOT_PC_HI", Arches::FROM_GFX942),
];

/// Register in bits 5:0, first bit in 10:6, number of bits minus one in 15:11.
pub(super) fn write_hwreg(f: &mut dyn Write, imm: u32, arch: Arch) -> fmt::Result {
    let (id, offset, size) = (imm & 0x3f, imm >> 6 & 0x1f, (imm >> 11 & 0x1f) + 1);
    f.write_str("hwreg(")?;
    match HARDWARE_REGISTERS.iter().find(|(number, _, arches)| *number == id && arches.contains(arch)) {
        Some((_, name, _)) => f.write_str(name)?,
        None => write!(f, "{id}")?,
    }
    if (offset, size) != (0, 32) {
        write!(f, ", {offset}, {size}")?;
    }
    f.write_char(')')
}

/// Messages without operation.
pub(super) const MESSAGES: [(u32, &str); 8] = [
    (1, "MSG_INTERRUPT"),
    (4, "MSG_SAVEWAVE"),
    (5, "MSG_STALL_WAVE_GEN"),
    (6, "MSG_HALT_WAVES"),
    (7, "MSG_ORDERED_PS_DONE"),
    (8, "MSG_EARLY_PRIM_DEALLOC"),
    (9, "MSG_GS_ALLOC_REQ"),
    (10, "MSG_GET_DOORBELL"),
];

/// Number of the system message.
pub(super) const SYSTEM_MESSAGE: u32 = 15;
/// Messages with an operation; compute kernels have no use for them.
pub(super) const MESSAGES_WITH_OPERATION: [(u32, &str); 3] =
    [(2, "MSG_GS"), (3, "MSG_GS_DONE"), (SYSTEM_MESSAGE, "MSG_SYSMSG")];

/// Message, operation and its name (LLVM, AMDGPUOperandSyntax, "msg").
pub(super) const OPERATIONS: [(u32, u32, &str); 10] = [
    (2, 1, "GS_OP_CUT"),
    (2, 2, "GS_OP_EMIT"),
    (2, 3, "GS_OP_EMIT_CUT"),
    (3, 0, "GS_OP_NOP"),
    (3, 1, "GS_OP_CUT"),
    (3, 2, "GS_OP_EMIT"),
    (3, 3, "GS_OP_EMIT_CUT"),
    (SYSTEM_MESSAGE, 1, "SYSMSG_OP_ECC_ERR_INTERRUPT"),
    (SYSTEM_MESSAGE, 2, "SYSMSG_OP_REG_RD"),
    (SYSTEM_MESSAGE, 4, "SYSMSG_OP_TTRACE_PC"),
];

fn message_with_operation(id: u32) -> Option<&'static str> {
    MESSAGES_WITH_OPERATION.iter().find(|(known, _)| *known == id).map(|(_, name)| *name)
}

/// Operations on a stream of vertices.
fn has_stream(id: u32, operation: u32) -> bool {
    id != SYSTEM_MESSAGE && operation != 0
}

/// Message in bits 3:0, operation in 6:4, stream in 9:8. Like LLVM, a message with a name is printed by it
/// whatever the other bits are.
pub(super) fn write_message(f: &mut dyn Write, imm: u32) -> fmt::Result {
    let (id, operation, stream) = (imm & 0xf, imm >> 4 & 0x7, imm >> 8 & 0x3);
    if let Some((_, name)) = MESSAGES.iter().find(|(number, _)| (*number, 0, 0) == (id, operation, stream)) {
        return write!(f, " sendmsg({name})");
    }
    let named = OPERATIONS.iter().find(|of| (of.0, of.1) == (id, operation));
    let may_be_named = stream == 0 || has_stream(id, operation);
    if let (Some(message), Some((.., name)), true) = (message_with_operation(id), named, may_be_named) {
        write!(f, " sendmsg({message}, {name}")?;
        return if has_stream(id, operation) { write!(f, ", {stream})") } else { f.write_char(')') };
    }
    match imm & !0x37f {
        0 => write!(f, " sendmsg({id}, {operation}, {stream})"),
        _ => write!(f, " {imm}"),
    }
}

/// Offset of `ds_swizzle_b32`: four lane numbers if bit 15 is set, else and-, or- and xor-mask of five bits
/// each (LLVM, AMDGPUOperandSyntax, "swizzle").
pub(super) fn write_swizzle(f: &mut dyn Write, imm: u32) -> fmt::Result {
    if imm >> 8 == 0x80 {
        let lane = |index: u32| imm >> (2 * index) & 3;
        return write!(f, " offset:swizzle(QUAD_PERM,{},{},{},{})", lane(0), lane(1), lane(2), lane(3));
    }
    if imm >> 15 != 0 {
        return write!(f, " offset:{imm}");
    }
    let (and, or, xor) = (imm & 0x1f, imm >> 5 & 0x1f, imm >> 10 & 0x1f);
    if and == 0x1f && or == 0 && xor.is_power_of_two() {
        return write!(f, " offset:swizzle(SWAP,{xor})");
    }
    if and == 0x1f && or == 0 && xor > 1 && (xor + 1).is_power_of_two() {
        return write!(f, " offset:swizzle(REVERSE,{})", xor + 1);
    }
    let group = 0x20 - and;
    if group > 1 && group.is_power_of_two() && or < group && xor == 0 {
        return write!(f, " offset:swizzle(BROADCAST,{group},{or})");
    }
    f.write_str(" offset:swizzle(BITMASK_PERM,\"")?;
    for bit in (0..5).rev() {
        let (and, or, xor) = (and >> bit & 1, or >> bit & 1, xor >> bit & 1);
        // What a 0 and a 1 in this bit of the lane number become.
        let (zero, one) = (or ^ xor, (and | or) ^ xor);
        f.write_char(match (zero, one) {
            (0, 0) => '0',
            (1, 1) => '1',
            (0, _) => 'p',
            _ => 'i',
        })?;
    }
    f.write_str("\")")
}

/// Parameters of `v_interp_mov_f32`.
pub(super) const PARAMETERS: [&str; 3] = ["p10", "p20", "p0"];
/// Channels of an attribute.
pub(super) const CHANNELS: [char; 4] = ['x', 'y', 'z', 'w'];

/// Targets of exports that are numbered: name, first, how many (LLVM, AMDGPUBaseInfo.cpp, `getTgtName`).
pub(super) const EXPORT_TARGETS: [(&str, u32, u32); 3] = [("mrt", 0, 8), ("pos", 12, 4), ("param", 32, 32)];
/// The others.
pub(super) const SINGLE_EXPORT_TARGETS: [(&str, u32); 2] = [("mrtz", 8), ("null", 9)];

/// Target of an export.
pub(super) fn write_export_target(f: &mut dyn Write, target: u32) -> fmt::Result {
    if let Some((name, _)) = SINGLE_EXPORT_TARGETS.iter().find(|(_, number)| *number == target) {
        return f.write_str(name);
    }
    let found = EXPORT_TARGETS.iter().find(|(_, first, count)| (*first..first + count).contains(&target));
    match found {
        Some((name, first, _)) => write!(f, "{name}{}", target - first),
        None => write!(f, "invalid_target_{target}"),
    }
}

/// Operands that are indexed relative to M0, by bit of the mode.
pub(super) const GPR_INDEX_OPERANDS: [&str; 4] = ["SRC0", "SRC1", "SRC2", "DST"];

/// Mode of relative VGPR addressing.
pub(super) fn write_gpr_index(f: &mut dyn Write, mode: u32) -> fmt::Result {
    f.write_str("gpr_idx(")?;
    let mut separator = "";
    for (bit, name) in GPR_INDEX_OPERANDS.iter().enumerate() {
        if mode >> bit & 1 != 0 {
            write!(f, "{separator}{name}")?;
            separator = ",";
        }
    }
    f.write_char(')')
}
