//! Sets of registers of a wave as bits.

/// Registers as bits, by operand number: scalar registers, SCC (253), VGPRs from 256 on, AGPRs from 512 on.
pub(super) type RegisterBits = [u64; 12];

/// SCC among the operand numbers.
pub(super) const SCC: u32 = 253;
/// First VGPR among the operand numbers.
pub(super) const FIRST_VECTOR: u32 = 256;

/// True if the two have a register in common.
#[inline(always)]
pub(super) fn meet(a: &RegisterBits, b: &RegisterBits) -> bool {
    let mut any = 0;
    for (a, b) in a.iter().zip(b) {
        any |= a & b;
    }
    any != 0
}

/// Adds registers `first` to `end - 1`.
pub(super) fn insert(bits: &mut RegisterBits, first: u32, end: u32) {
    for number in first..end.min(768) {
        bits[number as usize / 64] |= 1 << (number % 64);
    }
}
