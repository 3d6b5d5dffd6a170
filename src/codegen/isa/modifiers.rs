//! Modifiers: the part of assembler text after the operands, packed into 32 bits.
//!
//! The meaning of the bits depends on the format of the instruction; all-zero is always the meaning of
//! assembler text without modifiers. Constructors are chained: `Modifiers::new().neg(0b01).clamp()`.

/// The modifiers of one [`Inst`](super::Inst).
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Modifiers(u32);

/// A range of bits inside [`Modifiers`].
struct ModifierBits {
    low: u32,
    width: u32,
}

const fn bits(low: u32, width: u32) -> ModifierBits {
    ModifierBits { low, width }
}

// VOP3 and VOP3P share places as they do in the hardware: abs is neg_hi, neg is neg_lo.
const ABS: ModifierBits = bits(0, 3);
const NEG: ModifierBits = bits(3, 3);
const OP_SEL: ModifierBits = bits(6, 4);
const CLAMP: ModifierBits = bits(10, 1);
const OMOD: ModifierBits = bits(11, 2);
const OP_SEL_HI_FLIP: ModifierBits = bits(13, 3);
const E64: ModifierBits = bits(16, 1);
const DPP: ModifierBits = bits(17, 1);
const SDWA: ModifierBits = bits(18, 1);
const SIGN_EXTEND: ModifierBits = bits(19, 2);
const BITOP3: ModifierBits = bits(21, 8);
// MFMA.
const CBSZ: ModifierBits = bits(0, 3);
const ABID: ModifierBits = bits(3, 4);
const BLGP: ModifierBits = bits(7, 3);
const SCALE_SELECT: ModifierBits = bits(10, 4);
// Memory.
const SC0: ModifierBits = bits(0, 1);
const SC1: ModifierBits = bits(1, 1);
const NT: ModifierBits = bits(2, 1);
const OFFEN: ModifierBits = bits(3, 1);
const IDXEN: ModifierBits = bits(4, 1);
const GDS: ModifierBits = bits(5, 1);
const TFE: ModifierBits = bits(6, 1);
const FORMAT_FLIP: ModifierBits = bits(7, 7);
// Images, beside the bits of other memory instructions.
const DMASK: ModifierBits = bits(10, 4);
const UNORM: ModifierBits = bits(14, 1);
const A16: ModifierBits = bits(15, 1);
const LWE: ModifierBits = bits(19, 1);
const DA: ModifierBits = bits(20, 1);
const D16: ModifierBits = bits(21, 1);
// Graphics.
const EXPORT_FLAGS: ModifierBits = bits(0, 3);
const PARAMETER: ModifierBits = bits(3, 8);
// Scalar memory.
const ZERO_OFFSET: ModifierBits = bits(14, 1);
const PROBE: ModifierBits = bits(19, 7);
// s_setreg_imm32_b32, whose imm is the literal.
const HWREG: ModifierBits = bits(0, 16);

/// Output modifier of a float VOP3 instruction.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Omod {
    /// Unchanged.
    #[default]
    None,
    /// Times two.
    Mul2,
    /// Times four.
    Mul4,
    /// Half.
    Div2,
}

impl Omod {
    /// The modifier of two bits, as every encoding has them.
    pub(super) const fn from_bits(bits: u32) -> Omod {
        match bits & 3 {
            0 => Omod::None,
            1 => Omod::Mul2,
            2 => Omod::Mul4,
            _ => Omod::Div2,
        }
    }
}

macro_rules! masks {
    ($($(#[$doc:meta])* $set:ident $get:ident $bits:ident;)*) => {
        $(
            $(#[$doc])*
            #[must_use]
            pub const fn $set(self, mask: u32) -> Modifiers {
                self.put($bits, mask)
            }

            #[doc = concat!("What [`", stringify!($set), "`](Self::", stringify!($set), ") has set.")]
            pub const fn $get(self) -> u32 {
                self.get($bits)
            }
        )*
    };
}

macro_rules! flags {
    ($($(#[$doc:meta])* $set:ident $get:ident $bits:ident;)*) => {
        $(
            $(#[$doc])*
            #[must_use]
            pub const fn $set(self) -> Modifiers {
                self.put($bits, 1)
            }

            #[doc = concat!("True after [`", stringify!($set), "`](Self::", stringify!($set), ").")]
            pub const fn $get(self) -> bool {
                self.get($bits) != 0
            }
        )*
    };
}

impl Modifiers {
    /// None at all.
    pub const fn new() -> Modifiers {
        Modifiers(0)
    }

    const fn get(self, bits: ModifierBits) -> u32 {
        self.0 >> bits.low & ((1 << bits.width) - 1)
    }

    const fn put(self, bits: ModifierBits, value: u32) -> Modifiers {
        let mask = (1 << bits.width) - 1;
        Modifiers(self.0 & !(mask << bits.low) | (value & mask) << bits.low)
    }

    /// True for the forms that have a second word after the short encoding: DPP and SDWA.
    #[inline]
    pub const fn has_second_word(self) -> bool {
        self.0 & (1 << DPP.low | 1 << SDWA.low) != 0
    }

    /// True if one of those is set that can change what an instruction does to its operands: DPP, SDWA, the
    /// part of the result of VOP3, and what a scalar or an image atomic returns.
    #[inline]
    pub(crate) const fn may_change_roles(self) -> bool {
        self.0 & (1 << DPP.low | 1 << SDWA.low | 0b1000 << OP_SEL.low | 1 << SC0.low) != 0
    }

    /// True when nothing is set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    masks! {
        /// VOP3: absolute value of sources, one bit per source.
        abs get_abs ABS;
        /// VOP3: negated sources, one bit per source.
        neg get_neg NEG;
        /// VOP3P: negated high halves of sources, one bit per source.
        neg_hi get_neg_hi ABS;
        /// VOP3P: negated low halves of sources, one bit per source.
        neg_lo get_neg_lo NEG;
        /// VOP3, VOP3P: sources whose high half is taken (for the low result), one bit per source; VOP3: bit
        /// 3 writes the high half. Interpolations of 16 bits: bit 0 takes the high half of the attribute.
        op_sel get_op_sel OP_SEL;
        /// op_sel_hi as the difference from the row's default, which is all ones for packed instructions and
        /// zero for `v_fma_mix*`: for packed ones a set bit makes the high result take the *low* half of that
        /// source, for `v_fma_mix*` a set bit makes that source an f16.
        op_sel_hi_flip get_op_sel_hi_flip OP_SEL_HI_FLIP;
        /// MFMA: broadcast control of A.
        cbsz get_cbsz CBSZ;
        /// MFMA: block of A to broadcast.
        abid get_abid ABID;
        /// MFMA: lane group pattern of B; for F64 the negation of A, B and C, one bit each.
        blgp get_blgp BLGP;
        /// Scaled MFMA: byte of the scales that is taken: bits 1:0 for A's, bits 3:2 for B's.
        scale_select get_scale_select SCALE_SELECT;
        /// SDWA: sign-extended sources, one bit per source.
        sign_extend get_sign_extend SIGN_EXTEND;
        /// `v_bitop3_*`: the truth table.
        bitop3 get_bitop3 BITOP3;
        /// MTBUF: data format (four bits) and number format as the difference from the usual one, which is 1.
        format_flip get_format_flip FORMAT_FLIP;
        /// Images: which components, one bit each.
        dmask get_dmask DMASK;
        /// Exports: compressed, done, valid mask, one bit each.
        export_flags get_export_flags EXPORT_FLAGS;
        /// `v_interp_mov_f32`: which parameter.
        parameter get_parameter PARAMETER;
        /// `s_atc_probe`: what is asked for.
        probe get_probe PROBE;
        /// `s_setreg_imm32_b32`: the hwreg half-word, as the literal takes the place of the immediate.
        hwreg get_hwreg HWREG;
    }

    flags! {
        /// SMEM: an offset of zero is there beside the register.
        zero_offset has_zero_offset ZERO_OFFSET;
        /// VOP3, VOP3P: clamps the result.
        clamp has_clamp CLAMP;
        /// VOP1, VOP2, VOPC: takes the 64-bit encoding although the 32-bit one could express the instruction.
        e64 has_e64 E64;
        /// VOP1, VOP2: first source from another lane; the immediate is a [`Dpp`](super::Dpp).
        dpp has_dpp DPP;
        /// VOP1, VOP2, VOPC: parts of registers; the immediate is an [`Sdwa`](super::Sdwa).
        sdwa has_sdwa SDWA;
        /// Vector memory: scope bit 0 (for atomics: return the old value, which is a row of its own). SMEM:
        /// glc.
        sc0 has_sc0 SC0;
        /// Vector memory: scope bit 1.
        sc1 has_sc1 SC1;
        /// Vector memory: non-temporal.
        nt has_nt NT;
        /// MUBUF: vaddr has an offset.
        offen has_offen OFFEN;
        /// MUBUF: vaddr has an index.
        idxen has_idxen IDXEN;
        /// DS: global data share in place of LDS.
        gds has_gds GDS;
        /// MUBUF loads and images up to gfx908: a status follows the data, in a register more.
        tfe has_tfe TFE;
        /// Images: coordinates are not fractions of the size.
        unorm has_unorm UNORM;
        /// Images: the address is of 16-bit numbers.
        a16 has_a16 A16;
        /// Images: warns of levels of detail that are not there.
        lwe has_lwe LWE;
        /// Images: an array of images.
        da has_da DA;
        /// Images: components have 16 bits, two in a register.
        d16 has_d16 D16;
    }

    /// VOP3: output modifier.
    #[must_use]
    pub const fn omod(self, omod: Omod) -> Modifiers {
        self.put(OMOD, omod as u32)
    }

    /// What [`omod`](Self::omod) has set.
    pub(crate) const fn get_omod(self) -> Omod {
        Omod::from_bits(self.get(OMOD))
    }

    /// True for a buffer instruction that takes an offset or an index from vaddr, which is there only then.
    pub(super) const fn wants_buffer_address(self) -> bool {
        self.has_offen() || self.has_idxen()
    }

    /// The same without the request for the long encoding.
    #[must_use]
    pub const fn without_e64(self) -> Modifiers {
        self.put(E64, 0)
    }

    /// The same without these bits.
    #[must_use]
    pub const fn without(self, other: Modifiers) -> Modifiers {
        Modifiers(self.0 & !other.0)
    }

    /// The bits of both.
    #[must_use]
    pub const fn union(self, other: Modifiers) -> Modifiers {
        Modifiers(self.0 | other.0)
    }

    /// True if every bit that is set here is set in `all` too.
    pub const fn within(self, all: Modifiers) -> bool {
        self.0 & !all.0 == 0
    }
}
