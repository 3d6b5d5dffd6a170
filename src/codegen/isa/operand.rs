//! Operands of machine instructions: one number space for registers, constants and markers.
//!
//! The hardware numbers every source operand in nine bits: SGPRs, special registers, inline constants and
//! VGPRs (CDNA3 ISA guide, section "Scalar operands" and "Vector operands"). We keep that numbering and
//! append the accumulation VGPRs after it, so that a physical operand is simply a number. Virtual registers,
//! which exist before register allocation, carry the top bit.

use cranelift_entity::entity_impl;

/// The number of a virtual register in its body.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct VReg(u32);
entity_impl!(VReg, "%");

/// One operand of an [`Inst`](super::Inst): nothing, a physical location or constant in the hardware's number
/// space, or a (part of a) virtual register. How many 32-bit registers it covers is not part of it: the
/// instruction's row says so.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operand(u32);

const VIRTUAL: u32 = 1 << 31;

impl Operand {
    /// No operand.
    pub const NONE: Operand = Operand(VIRTUAL - 1);
    /// Low half of VCC, or the whole pair where the row wants 64 bits.
    pub const VCC: Operand = Operand(106);
    /// M0.
    pub const M0: Operand = Operand(124);
    /// Low half of EXEC, or the whole pair where the row wants 64 bits.
    pub const EXEC: Operand = Operand(126);
    /// VCCZ as a data source.
    pub const VCCZ: Operand = Operand(251);
    /// EXECZ as a data source.
    pub const EXECZ: Operand = Operand(252);
    /// SCC as a data source.
    pub const SCC: Operand = Operand(253);
    /// A dword of LDS at M0 as a data source, which all lanes share.
    pub const LDS_DIRECT: Operand = Operand(254);
    /// A 32-bit literal, held in [`Inst::imm`](super::Inst::imm).
    pub const LITERAL: Operand = Operand(255);
    /// Inline constant zero.
    pub const ZERO: Operand = Operand(128);
    /// Number of the first VGPR.
    pub(crate) const FIRST_VGPR: u32 = 256;
    /// Number of the first accumulation VGPR.
    pub(crate) const FIRST_AGPR: u32 = 512;
    /// First number after the last accumulation VGPR.
    pub(crate) const END: u32 = 768;

    /// The physical operand of the given number (0 to 767).
    pub const fn physical(number: u32) -> Operand {
        assert!(number < Self::END);
        Operand(number)
    }

    /// SGPR `n` (0 to 101; larger numbers are the special scalar registers).
    pub const fn sgpr(n: u32) -> Operand {
        assert!(n < 128);
        Operand(n)
    }

    /// VGPR `n` (0 to 255).
    pub const fn vgpr(n: u32) -> Operand {
        assert!(n < 256);
        Operand(Self::FIRST_VGPR + n)
    }

    /// Accumulation VGPR `n` (0 to 255).
    pub const fn agpr(n: u32) -> Operand {
        assert!(n < 256);
        Operand(Self::FIRST_AGPR + n)
    }

    /// Registers from number `first` on of a virtual register (whose number is below 2^22; `first` below
    /// 256).
    pub const fn virtual_register(register: VReg, first: u32) -> Operand {
        assert!(register.0 < 1 << 22 && first < 256);
        Operand(VIRTUAL | register.0 << 8 | first)
    }

    /// The inline constant for an integer, if there is one (-16 to 64).
    pub const fn inline_integer(value: i32) -> Option<Operand> {
        match value {
            0..=64 => Some(Operand(128 + value as u32)),
            -16..=-1 => Some(Operand((192 - value) as u32)),
            _ => None,
        }
    }

    /// The inline constant for the bits of an f32, if there is one (0.5, 1, 2, 4, their negatives, 1/(2 pi)).
    pub(crate) fn inline_float(bits: u32) -> Option<Operand> {
        const VALUES: [f32; 8] = [0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0];
        if bits == 0x3e22_f983 {
            return Some(Operand(248));
        }
        VALUES.iter().position(|v| v.to_bits() == bits).map(|i| Operand(240 + i as u32))
    }

    /// The inline constant for the f64 whose high half is `bits` and whose low half is zero, if there is one.
    pub(super) fn inline_high_half(bits: u32) -> Option<Operand> {
        let value = f64::from_bits(u64::from(bits) << 32);
        // Their values are those of f32 constants; a value that f32 would round is not one of them.
        let single = (f64::from(value as f32) == value).then_some(value as f32)?;
        Self::inline_float(single.to_bits()).filter(|_| value != 0.0)
    }

    /// The operand that stands for the 32 bits `bits` in a 32-bit source: inline if possible, else
    /// [`Self::LITERAL`].
    pub fn constant(bits: u32) -> Operand {
        Self::inline_integer(bits as i32).or_else(|| Self::inline_float(bits)).unwrap_or(Self::LITERAL)
    }

    /// True for [`Self::NONE`].
    pub const fn is_none(self) -> bool {
        self.0 == Self::NONE.0
    }

    /// True for a virtual register.
    pub const fn is_virtual(self) -> bool {
        self.0 & VIRTUAL != 0
    }

    /// Virtual register and first register inside it.
    pub const fn as_virtual(self) -> Option<(VReg, u32)> {
        if self.is_virtual() { Some((VReg(self.0 >> 8 & 0x3f_ffff), self.0 & 0xff)) } else { None }
    }

    /// Number in the hardware's operand space, for a physical operand.
    pub const fn number(self) -> Option<u32> {
        if self.0 < Self::END { Some(self.0) } else { None }
    }

    /// True for an SGPR or special scalar register (VCC, M0, EXEC).
    pub(crate) const fn is_scalar_register(self) -> bool {
        self.0 < 128
    }

    /// VGPR number, for a VGPR.
    pub(crate) const fn as_vgpr(self) -> Option<u32> {
        if self.0 >= Self::FIRST_VGPR && self.0 < Self::FIRST_AGPR {
            Some(self.0 - Self::FIRST_VGPR)
        } else {
            None
        }
    }

    /// AGPR number, for an accumulation VGPR.
    pub const fn as_agpr(self) -> Option<u32> {
        if self.0 >= Self::FIRST_AGPR && self.0 < Self::END { Some(self.0 - Self::FIRST_AGPR) } else { None }
    }

    /// True for inline constants, literals and the SCC/VCCZ/EXECZ markers, which register allocation ignores.
    pub const fn is_constant(self) -> bool {
        self.0 >= 128 && self.0 < 256
    }

    /// The operand `by` registers further on, inside the same register or tuple.
    pub const fn offset(self, by: u32) -> Operand {
        Operand(self.0 + by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operand_shows_itself_by_its_name() {
        for (operand, name) in [
            (Operand::sgpr(7), "s7"),
            (Operand::vgpr(255), "v255"),
            (Operand::agpr(0), "a0"),
            (Operand::VCC, "vcc_lo"),
            (Operand::physical(127), "exec_hi"),
            (Operand::M0, "m0"),
            (Operand::sgpr(108), "ttmp0"),
            (Operand::physical(193), "-1"),
            (Operand::physical(242), "1.0"),
            (Operand::physical(235), "src_shared_base"),
            (Operand::SCC, "src_scc"),
            (Operand::LITERAL, "a literal"),
            (Operand::NONE, "-"),
            (Operand::virtual_register(VReg::from_u32(3), 1), "%3.1"),
        ] {
            assert_eq!(format!("{operand:?}"), name);
        }
    }
}
