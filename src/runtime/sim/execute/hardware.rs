//! Hardware registers that `s_getreg` and `s_setreg` name (CDNA4 ISA guide, "Access instructions", and the
//! tables of the registers' fields in "Kernel State").

use super::super::program::{OperandPlace, Program, Step};
use super::super::wave::{PRIVATE_APERTURE, SHARED_APERTURE, VCC, Wave};

/// Numbers of the registers.
const MODE: u32 = 1;
const STATUS: u32 = 2;
const TRAPSTS: u32 = 3;
const HW_ID: u32 = 4;
const GPR_ALLOC: u32 = 5;
const LDS_ALLOC: u32 = 6;
const SH_MEM_BASES: u32 = 15;

/// Bits of MODE that change which instructions execute and on which registers.
pub(in super::super) const GPR_INDEX: u32 = 1 << 27;
/// See [`GPR_INDEX`].
pub(in super::super) const VSKIP: u32 = 1 << 28;
/// Position of MODE's conditional branch stack pointer.
pub(super) const BRANCH_STACK: u32 = 29;

/// A field of a hardware register.
struct HardwareField {
    register: u32,
    offset: u32,
    mask: u32,
}

impl HardwareField {
    fn of(imm: u32) -> HardwareField {
        let size = (imm >> 11 & 0x1f) + 1;
        HardwareField { register: imm & 0x3f, offset: imm >> 6 & 0x1f, mask: ((1u64 << size) - 1) as u32 }
    }
}

/// True if `s_setreg` with this half-word writes any of these bits of MODE.
pub(in super::super) fn writes_mode(imm: u32, bits: u32) -> bool {
    let field = HardwareField::of(imm);
    field.register == MODE && field.mask << field.offset & bits != 0
}

/// HW_ID of a wave of a workgroup: slot and SIMD as if waves were assigned to the four SIMDs of one compute
/// unit in turn.
pub(in super::super) fn hardware_id(wave: usize) -> u32 {
    (wave / 4 % 16) as u32 | ((wave % 4) as u32) << 4
}

/// STATUS of a running wave.
fn status(w: &Wave) -> u32 {
    const VALID: u32 = 1 << 16;
    let flags = [(w.scc, 0), (w.exec() == 0, 9), (w.pair(VCC) == 0, 10)];
    flags.iter().fold(VALID, |all, &(flag, bit)| all | u32::from(flag) << bit)
}

/// GPR_ALLOC: all registers start at the first one.
fn registers(program: &Program) -> u32 {
    const SGPR_SIZE: u32 = 6 << 24;
    let (vgprs, agprs) = program.registers();
    let fours = |count: usize| count.max(1).div_ceil(4) as u32;
    if program.arch.has_unified_registers() {
        SGPR_SIZE | fours(vgprs) << 12 | (fours(vgprs) + agprs.div_ceil(4) as u32 - 1) << 6
    } else {
        SGPR_SIZE | (fours(vgprs) - 1) << 8
    }
}

/// Executes `s_getreg`. Registers that describe what is not simulated (trap handlers, counters in flight,
/// other dies) are zero.
pub(super) fn get(w: &mut Wave, s: &Step, program: &Program, lds_bytes: u32) {
    let field = HardwareField::of(s.imm);
    let value = match field.register {
        MODE => w.mode,
        STATUS => status(w),
        TRAPSTS => w.trap_status,
        HW_ID => w.hardware_id,
        GPR_ALLOC => registers(program),
        LDS_ALLOC => lds_bytes.div_ceil(256) << 12,
        SH_MEM_BASES => SHARED_APERTURE & 0xffff_0000 | PRIVATE_APERTURE >> 16,
        _ => 0,
    };
    w.set_scalar(s.operands[0], value >> field.offset & field.mask);
}

/// Executes `s_setreg`. Writes to registers that can only be read do nothing.
pub(super) fn set(w: &mut Wave, s: &Step) {
    let value = s.operands[0];
    let imm = if matches!(value, OperandPlace::Low(_)) { s.modifiers.get_hwreg() } else { s.imm };
    let field = HardwareField::of(imm);
    let (mask, bits) = (field.mask << field.offset, w.scalar(value) << field.offset);
    match field.register {
        MODE => w.mode = w.mode & !mask | bits & mask,
        TRAPSTS => w.trap_status = w.trap_status & !mask | bits & mask,
        _ => {}
    }
}
