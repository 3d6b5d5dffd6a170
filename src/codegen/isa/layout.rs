//! Where the bits are: the microcode formats as named bit ranges, shared by encoder and decoder.
//!
//! Source: CDNA3 ISA guide, chapter "Microcode formats".

use super::spec::{Field, Format};

/// A range of bits of the (up to 64-bit) encoding. `scale` drops low bits of aligned register numbers.
#[derive(Copy, Clone)]
pub(super) struct BitRange {
    pub low: u32,
    pub width: u32,
    pub scale: u32,
}

pub(super) const fn range(low: u32, width: u32) -> BitRange {
    BitRange { low, width, scale: 0 }
}

const fn scaled(low: u32, width: u32, scale: u32) -> BitRange {
    BitRange { low, width, scale }
}

impl BitRange {
    /// No bits: the operand is implied.
    pub(super) const ABSENT: BitRange = range(0, 0);

    /// True for a range of no bits.
    pub(super) const fn is_absent(self) -> bool {
        self.width == 0
    }

    /// The value in place, or nothing if it does not fit.
    #[inline]
    pub(super) const fn place(self, value: u32) -> Option<u64> {
        let (placed, fits) = self.placed(value);
        if fits { Some(placed) } else { None }
    }

    /// The value in place, and whether it fits.
    #[inline]
    pub(super) const fn placed(self, value: u32) -> (u64, bool) {
        let stored = value >> self.scale;
        ((stored as u64) << self.low, (stored >> self.width == 0) & (stored << self.scale == value))
    }

    /// The value in `word`.
    #[inline]
    pub(super) const fn read(self, word: u64) -> u32 {
        ((word >> self.low & ((1 << self.width) - 1)) as u32) << self.scale
    }

    /// The numbers that fit, from the smallest to the largest.
    pub(super) const fn numbers(self) -> (i64, i64) {
        (0, (1 << self.width) - 1)
    }

    /// The same of signed numbers.
    pub(super) const fn signed_numbers(self) -> (i64, i64) {
        (-(1 << (self.width - 1)), (1 << (self.width - 1)) - 1)
    }

    /// The value in `word` as a signed number.
    #[inline]
    pub(super) const fn read_signed(self, word: u64) -> u32 {
        let unused = 32 - self.width;
        ((self.read(word) << unused) as i32 >> unused) as u32
    }
}

/// The distinct encodings; several [`Format`]s may share one.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Encoding {
    Sop1,
    Sop2,
    Sopc,
    Sopk,
    Sopp,
    Smem,
    Vop1,
    Vop2,
    Vopc,
    Vop3a,
    Vop3b,
    Vop3p,
    Mai,
    Ds,
    Mubuf,
    Mtbuf,
    Flat,
    MaiScaled,
    Exp,
    Vintrp,
    Mimg,
}

impl Encoding {
    /// The (short) encoding of a format.
    pub(super) const fn of(format: Format) -> Encoding {
        match format {
            Format::Sop1 => Encoding::Sop1,
            Format::Sop2 => Encoding::Sop2,
            Format::Sopc => Encoding::Sopc,
            Format::Sopk => Encoding::Sopk,
            Format::Sopp => Encoding::Sopp,
            Format::Smem => Encoding::Smem,
            Format::Vop1 | Format::Vop1Only | Format::Vop1Swap => Encoding::Vop1,
            Format::Vop2 | Format::Vop2Only | Format::Vop2K => Encoding::Vop2,
            Format::Vopc => Encoding::Vopc,
            Format::Vop3 | Format::Vop3Sel | Format::VintrpLong | Format::VintrpHalf => Encoding::Vop3a,
            Format::Vop3b => Encoding::Vop3b,
            Format::Vop3p | Format::Vop3pMix => Encoding::Vop3p,
            Format::Mai => Encoding::Mai,
            Format::MaiScaled => Encoding::MaiScaled,
            Format::Exp => Encoding::Exp,
            Format::Vintrp => Encoding::Vintrp,
            Format::Mimg => Encoding::Mimg,
            Format::Ds | Format::Gws => Encoding::Ds,
            Format::Mubuf | Format::MubufLds | Format::MubufRtn | Format::MubufBare => Encoding::Mubuf,
            Format::Mtbuf => Encoding::Mtbuf,
            Format::Flat
            | Format::FlatRtn
            | Format::Global
            | Format::GlobalRtn
            | Format::GlobalLds
            | Format::Scratch
            | Format::ScratchLds => Encoding::Flat,
        }
    }

    /// Its bits.
    #[inline]
    pub(super) fn layout(self) -> &'static EncodingLayout {
        &LAYOUTS[self as usize]
    }
}

/// Offset of the opcodes of VOP1, VOP2 and VOPC rows inside VOP3.
pub(super) const fn long_opcode(format: Format, code: u16) -> u16 {
    match format {
        Format::Vop2 => code + 0x100,
        Format::Vop1 | Format::Vop1Swap => code + 0x140,
        _ => code,
    }
}

/// One encoding: its fixed bits, its opcode and its operand fields.
pub(super) struct EncodingLayout {
    /// Fixed bits.
    pub fixed: u64,
    /// Size without a literal.
    pub bytes: u32,
    /// Opcode.
    pub opcode: BitRange,
    /// By [`Field`].
    pub fields: [BitRange; FIELDS],
}

const FIELDS: usize = Field::Sampler as usize + 1;

impl EncodingLayout {
    const fn new(bytes: u32, fixed: u64, opcode: BitRange) -> EncodingLayout {
        EncodingLayout { fixed, bytes, opcode, fields: [BitRange::ABSENT; FIELDS] }
    }

    const fn with(mut self, field: Field, range: BitRange) -> EncodingLayout {
        self.fields[field as usize] = range;
        self
    }

    /// Where a field is.
    #[inline]
    pub(super) fn field(&self, field: Field) -> BitRange {
        self.fields[field as usize]
    }
}

const fn vop3(fixed: u64, opcode: BitRange) -> EncodingLayout {
    EncodingLayout::new(8, fixed, opcode)
        .with(Field::Dst, range(0, 8))
        .with(Field::Src0, range(32, 9))
        .with(Field::Src1, range(41, 9))
        .with(Field::Src2, range(50, 9))
}

/// Number of encodings.
pub(super) const ENCODINGS: usize = Encoding::Mimg as usize + 1;

/// In the order of [`Encoding`].
static LAYOUTS: [EncodingLayout; ENCODINGS] = [
    // SOP1
    EncodingLayout::new(4, 0x17d << 23, range(8, 8))
        .with(Field::Dst, range(16, 7))
        .with(Field::Src0, range(0, 8)),
    // SOP2
    EncodingLayout::new(4, 0x2 << 30, range(23, 7))
        .with(Field::Dst, range(16, 7))
        .with(Field::Src0, range(0, 8))
        .with(Field::Src1, range(8, 8)),
    // SOPC
    EncodingLayout::new(4, 0x17e << 23, range(16, 7))
        .with(Field::Src0, range(0, 8))
        .with(Field::Src1, range(8, 8)),
    // SOPK
    EncodingLayout::new(4, 0xb << 28, range(23, 5)).with(Field::Dst, range(16, 7)),
    // SOPP
    EncodingLayout::new(4, 0x17f << 23, range(16, 7)),
    // SMEM
    EncodingLayout::new(8, 0x30 << 26, range(18, 8))
        .with(Field::Dst, range(6, 7))
        .with(Field::Base, scaled(0, 6, 1))
        .with(Field::Offset, range(57, 7)),
    // VOP1
    EncodingLayout::new(4, 0x3f << 25, range(9, 8))
        .with(Field::Dst, range(17, 8))
        .with(Field::Src0, range(0, 9)),
    // VOP2
    EncodingLayout::new(4, 0, range(25, 6))
        .with(Field::Dst, range(17, 8))
        .with(Field::Src0, range(0, 9))
        .with(Field::Src1, range(9, 8)),
    // VOPC
    EncodingLayout::new(4, 0x3e << 25, range(17, 8))
        .with(Field::Src0, range(0, 9))
        .with(Field::Src1, range(9, 8)),
    // VOP3a
    vop3(0x34 << 26, range(16, 10)),
    // VOP3b
    vop3(0x34 << 26, range(16, 10)).with(Field::Sdst, range(8, 7)),
    // VOP3P
    vop3(0x1a7 << 23, range(16, 7)),
    // MAI
    vop3(0x1a7 << 23, range(16, 7)),
    // DS
    EncodingLayout::new(8, 0x36 << 26, range(17, 8))
        .with(Field::Addr, range(32, 8))
        .with(Field::Data0, range(40, 8))
        .with(Field::Data1, range(48, 8))
        .with(Field::Dst, range(56, 8)),
    // MUBUF
    EncodingLayout::new(8, 0x38 << 26, range(18, 7))
        .with(Field::Addr, range(32, 8))
        .with(Field::Data0, range(40, 8))
        .with(Field::Base, scaled(48, 5, 2))
        .with(Field::Offset, range(56, 8)),
    // MTBUF
    EncodingLayout::new(8, 0x3a << 26, range(15, 4))
        .with(Field::Addr, range(32, 8))
        .with(Field::Data0, range(40, 8))
        .with(Field::Base, scaled(48, 5, 2))
        .with(Field::Offset, range(56, 8)),
    // FLAT
    EncodingLayout::new(8, 0x37 << 26, range(18, 7))
        .with(Field::Addr, range(32, 8))
        .with(Field::Data0, range(40, 8))
        .with(Field::Offset, range(48, 7))
        .with(Field::Dst, range(56, 8)),
    // MAI with scales: the second half of 16 bytes
    EncodingLayout { bytes: 16, ..vop3(0x1a7 << 23, range(16, 7)) },
    // EXP
    EncodingLayout::new(8, 0x31 << 26, BitRange::ABSENT)
        .with(Field::Addr, range(32, 8))
        .with(Field::Data0, range(40, 8))
        .with(Field::Data1, range(48, 8))
        .with(Field::Dst, range(56, 8)),
    // VINTRP
    EncodingLayout::new(4, 0x35 << 26, range(16, 2))
        .with(Field::Dst, range(18, 8))
        .with(Field::Src0, range(0, 8)),
    // MIMG
    EncodingLayout::new(8, 0x3c << 26, range(18, 7))
        .with(Field::Addr, range(32, 8))
        .with(Field::Data0, range(40, 8))
        .with(Field::Base, scaled(48, 5, 2))
        .with(Field::Sampler, scaled(53, 5, 2)),
];

/// SOPK, SOPP.
pub(super) const SIMM16: BitRange = range(0, 16);

/// `s_set_gpr_idx_on` has its mode where the second source would be.
pub(super) const GPR_INDEX_MODE: BitRange = range(8, 4);

/// Ranges of EXP and VINTRP (Vega ISA guide, "EXP" and "VINTRP").
pub(super) mod graphics {
    use super::{BitRange, range};

    /// Which registers are exported.
    pub(crate) const ENABLED: BitRange = range(0, 4);
    pub(crate) const TARGET: BitRange = range(4, 6);
    /// Compressed, done, valid mask.
    pub(crate) const EXPORT_FLAGS: BitRange = range(10, 3);
    /// Attribute and channel.
    pub(crate) const ATTRIBUTE: BitRange = range(8, 8);
    /// Which parameter `v_interp_mov_f32` takes.
    pub(crate) const PARAMETER: BitRange = range(0, 8);
    /// The same in the encoding of VOP3: attribute, channel, half of the attribute, parameter.
    pub(crate) const LONG_ATTRIBUTE: BitRange = range(32, 6);
    pub(crate) const LONG_CHANNEL: BitRange = range(38, 2);
    pub(crate) const LONG_HIGH: BitRange = range(40, 1);
    pub(crate) const LONG_PARAMETER: BitRange = range(41, 9);
}

/// Ranges of VOP3, VOP3P and MAI other than those of the operands.
pub(super) mod vop {
    use super::{BitRange, range};

    pub(crate) const ABS: BitRange = range(8, 3);
    pub(crate) const OP_SEL: BitRange = range(11, 4);
    pub(crate) const CLAMP: BitRange = range(15, 1);
    pub(crate) const OMOD: BitRange = range(59, 2);
    pub(crate) const NEG: BitRange = range(61, 3);
    pub(crate) const PACKED_OP_SEL: BitRange = range(11, 3);
    pub(crate) const OP_SEL_HI_2: BitRange = range(14, 1);
    pub(crate) const OP_SEL_HI_01: BitRange = range(59, 2);
    pub(crate) const CBSZ: BitRange = range(8, 3);
    pub(crate) const ABID: BitRange = range(11, 4);
    pub(crate) const ACC_CD: BitRange = range(15, 1);
    pub(crate) const ACC_A: BitRange = range(59, 1);
    pub(crate) const ACC_B: BitRange = range(60, 1);
    pub(crate) const BLGP: BitRange = range(61, 3);

    /// Fixed bits and opcode (0x2c) of the half that loads the scales of a matrix instruction (CDNA4 ISA
    /// guide, "V_MFMA_LD_SCALE_B32").
    pub(crate) const LOAD_SCALES: u64 = 0x1a7 << 23 | LOAD_SCALES_OPCODE << 16;
    pub(crate) const LOAD_SCALES_OPCODE: u64 = 0x2c;
    pub(crate) const SCALE_A: BitRange = range(32, 9);
    pub(crate) const SCALE_B: BitRange = range(41, 9);

    /// Which byte of each scale: low bits in op_sel, high bits in op_sel_hi.
    pub(crate) const fn op_sel_of_scales(select: u32) -> u64 {
        let (a, b) = ((select & 0b11) as u64, (select >> 2) as u64);
        (a & 1) << 11 | (b & 1) << 12 | (a >> 1) << 59 | (b >> 1) << 60
    }

    /// The inverse.
    pub(crate) const fn scale_select(word: u64) -> u32 {
        let (a, b) = (word >> 11 & 1 | (word >> 59 & 1) << 1, word >> 12 & 1 | (word >> 60 & 1) << 1);
        (a | b << 2) as u32
    }
}

/// Ranges of memory formats other than those of the operands.
pub(super) mod memory {
    use super::{BitRange, range};

    pub(crate) const SMEM_OFFSET: BitRange = range(32, 21);
    /// Buffer loads take no negative offsets.
    pub(crate) const SMEM_BUFFER_OFFSET: BitRange = range(32, 20);
    pub(crate) const SMEM_SGPR_ENABLE: BitRange = range(14, 1);
    pub(crate) const SMEM_GLC: BitRange = range(16, 1);
    pub(crate) const SMEM_IMM: BitRange = range(17, 1);
    pub(crate) const DS_OFFSET: BitRange = range(0, 16);
    pub(crate) const DS_ACC: BitRange = range(25, 1);
    pub(crate) const DS_GDS: BitRange = range(16, 1);
    pub(crate) const MUBUF_OFFSET: BitRange = range(0, 12);
    pub(crate) const MUBUF_OFFEN: BitRange = range(12, 1);
    pub(crate) const MUBUF_IDXEN: BitRange = range(13, 1);
    pub(crate) const MUBUF_SC0: BitRange = range(14, 1);
    pub(crate) const MUBUF_SC1: BitRange = range(15, 1);
    pub(crate) const MUBUF_LDS: BitRange = range(16, 1);
    pub(crate) const MUBUF_NT: BitRange = range(17, 1);
    /// Data format, then number format.
    pub(crate) const MTBUF_FORMAT: BitRange = range(19, 7);
    pub(crate) const MTBUF_SC1: BitRange = range(53, 1);
    pub(crate) const MTBUF_NT: BitRange = range(54, 1);
    /// MUBUF up to gfx908, where later chips have the register file.
    pub(crate) const TFE: BitRange = range(55, 1);
    pub(crate) const FLAT_OFFSET: BitRange = range(0, 12);
    pub(crate) const GLOBAL_OFFSET: BitRange = range(0, 13);
    /// Scratch on chips with both addresses at once: the vector address is there.
    pub(crate) const SCRATCH_VADDR: BitRange = range(13, 1);
    /// Up to gfx90a: the data goes to LDS.
    pub(crate) const FLAT_LDS: BitRange = range(13, 1);
    pub(crate) const SEGMENT: BitRange = range(14, 2);
    pub(crate) const FLAT_SC0: BitRange = range(16, 1);
    pub(crate) const FLAT_NT: BitRange = range(17, 1);
    pub(crate) const FLAT_SC1: BitRange = range(25, 1);
    /// MUBUF and FLAT.
    pub(crate) const ACC: BitRange = range(55, 1);
    /// MIMG: scope bit 1, gfx90a alone.
    pub(crate) const IMAGE_SC1: BitRange = range(7, 1);
    pub(crate) const IMAGE_DMASK: BitRange = range(8, 4);
    pub(crate) const IMAGE_UNORM: BitRange = range(12, 1);
    pub(crate) const IMAGE_SC0: BitRange = range(13, 1);
    pub(crate) const IMAGE_DA: BitRange = range(14, 1);
    pub(crate) const IMAGE_A16: BitRange = range(15, 1);
    /// Up to gfx908; on gfx90a the register file is there.
    pub(crate) const IMAGE_TFE: BitRange = range(16, 1);
    pub(crate) const IMAGE_ACC: BitRange = range(16, 1);
    pub(crate) const IMAGE_LWE: BitRange = range(17, 1);
    pub(crate) const IMAGE_NT: BitRange = range(25, 1);
    pub(crate) const IMAGE_D16: BitRange = range(63, 1);
    /// Number in SADDR that means "no scalar base".
    pub(crate) const NO_BASE: u32 = 0x7f;
}

/// Number in the segment field of FLAT.
pub(super) const fn segment(format: Format) -> u32 {
    match format {
        Format::Scratch | Format::ScratchLds => 1,
        Format::Global | Format::GlobalRtn | Format::GlobalLds => 2,
        _ => 0,
    }
}
