//! The columns of the instruction table: formats, operand rules, units, counters, implicit registers.

use super::Generation;
use super::meaning::{Calc, Effect, Element, Meaning};
use super::modifiers::Modifiers;
use super::operand::Operand;
use crate::codegen::arch::{Arch, Arches};

/// Encoding of an instruction, and how its assembler text is put together (CDNA3 ISA guide, "Microcode
/// formats").
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Format {
    /// Scalar, one source.
    Sop1,
    /// Scalar, two sources.
    Sop2,
    /// Scalar comparison.
    Sopc,
    /// Scalar with a 16-bit immediate.
    Sopk,
    /// Program control.
    Sopp,
    /// Scalar memory.
    Smem,
    /// Vector, one source; may take the VOP3 encoding.
    Vop1,
    /// Vector, one source, without VOP3 form.
    Vop1Only,
    /// Vector, exchanges lanes of two registers; the VOP3 form has the modifiers `bound_ctrl` and `fi`.
    Vop1Swap,
    /// Vector, two sources; may take the VOP3 encoding.
    Vop2,
    /// Vector, two sources, without VOP3 form.
    Vop2Only,
    /// Vector, two sources and a literal that is always there.
    Vop2K,
    /// Vector comparison; may take the VOP3 encoding.
    Vopc,
    /// Vector, up to three sources.
    Vop3,
    /// Vector, up to three sources, of which op_sel selects halves.
    Vop3Sel,
    /// Vector, up to three sources and a scalar result.
    Vop3b,
    /// Packed: op_sel_hi is all ones by default.
    Vop3p,
    /// Mixed width: VOP3P whose op_sel_hi is zero by default, and whose neg_hi is an absolute value.
    Vop3pMix,
    /// Matrix.
    Mai,
    /// Matrix with block scales: an instruction that loads the scales and a matrix instruction in 16 bytes.
    MaiScaled,
    /// LDS.
    Ds,
    /// Buffer.
    Mubuf,
    /// Buffer load to LDS.
    MubufLds,
    /// Buffer atomic that returns the old value.
    MubufRtn,
    /// Buffer encoding without operands.
    MubufBare,
    /// Typed buffer: the format of the data is part of the instruction.
    Mtbuf,
    /// Flat address.
    Flat,
    /// Global address.
    Global,
    /// Global atomic that returns the old value.
    GlobalRtn,
    /// Global load to LDS that a bit of the encoding marks (up to gfx90a; later ones have their own opcodes).
    GlobalLds,
    /// Scratch address.
    Scratch,
    /// Scratch load to LDS, marked in the same way.
    ScratchLds,
    /// Flat atomic that returns the old value.
    FlatRtn,
    /// Export: up to four registers to a target.
    Exp,
    /// Interpolation of a vertex attribute.
    Vintrp,
    /// The long form of one, with signs and output modifiers.
    VintrpLong,
    /// Interpolation with results or attributes of 16 bits, which are in one half of what is interpolated.
    VintrpHalf,
    /// Global wave sync: DS encoding with the bit for the global data share always set.
    Gws,
    /// Image.
    Mimg,
}

impl Format {
    /// True for VOP1, VOP2 and VOPC rows that have a VOP3 form too (printed with the suffix `_e64`).
    pub(crate) const fn has_e64(self) -> bool {
        matches!(self, Format::Vop1 | Format::Vop1Swap | Format::Vop2 | Format::Vopc)
    }

    /// True for every vector ALU format, matrix ones included.
    pub const fn is_vop(self) -> bool {
        use Format::*;
        matches!(
            self,
            Vop1 | Vop1Only
                | Vop1Swap
                | Vop2
                | Vop2Only
                | Vop2K
                | Vopc
                | Vop3
                | Vop3Sel
                | Vop3b
                | Vop3p
                | Vop3pMix
                | Mai
                | MaiScaled
                | VintrpLong
                | VintrpHalf
        )
    }

    /// True for interpolations in the encoding of VOP3.
    pub(super) const fn is_long_interpolation(self) -> bool {
        matches!(self, Format::VintrpLong | Format::VintrpHalf)
    }

    /// True for the formats that are VOP3 or have a VOP3 form with op_sel.
    pub const fn is_vop3(self) -> bool {
        matches!(
            self,
            Format::Vop1
                | Format::Vop1Swap
                | Format::Vop2
                | Format::Vopc
                | Format::Vop3
                | Format::Vop3Sel
                | Format::Vop3b
                | Format::VintrpLong
                | Format::VintrpHalf
        )
    }

    /// True for the forms whose operands can have signs before them in assembler text.
    pub(super) const fn has_signs(self) -> bool {
        self.is_vop3() || matches!(self, Format::Vop3pMix)
    }

    /// True for vector atomics that return the old value.
    pub(super) const fn returns(self) -> bool {
        matches!(self, Format::MubufRtn | Format::GlobalRtn | Format::FlatRtn)
    }

    /// True for loads to LDS that a bit of the encoding tells from others.
    pub(super) const fn is_to_lds(self) -> bool {
        matches!(self, Format::MubufLds | Format::GlobalLds | Format::ScratchLds)
    }

    /// True for comparisons, whose result is a mask.
    pub(crate) const fn is_comparison(self) -> bool {
        matches!(self, Format::Vopc)
    }

    /// True for LDS and global data share.
    pub(crate) const fn is_ds(self) -> bool {
        matches!(self, Format::Ds | Format::Gws)
    }

    /// True for every MUBUF form, and for MTBUF, which differs from them in the format alone.
    pub const fn is_mubuf(self) -> bool {
        use Format::*;
        matches!(self, Mubuf | MubufLds | MubufRtn | MubufBare | Mtbuf)
    }

    /// True for flat, global and scratch forms.
    pub const fn is_flat(self) -> bool {
        use Format::*;
        matches!(self, Flat | FlatRtn | Global | GlobalRtn | GlobalLds | Scratch | ScratchLds)
    }
}

/// Bits of the encoding that hold an operand.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Field {
    /// Result: SDST, VDST, SDATA; the SGPR pair of a VOPC comparison (VCC in the short form).
    Dst,
    /// Scalar result of VOP3b (VCC in VOP2).
    Sdst,
    /// SSRC0, SRC0.
    Src0,
    /// SSRC1, SRC1, VSRC1.
    Src1,
    /// SRC2 (VCC in VOP2).
    Src2,
    /// Vector address.
    Addr,
    /// First data of a memory instruction.
    Data0,
    /// Second data of a DS instruction.
    Data1,
    /// SBASE, SRSRC.
    Base,
    /// SOFFSET, SADDR.
    Offset,
    /// The 32-bit literal itself.
    Literal,
    /// Scale of A in a scaled matrix instruction.
    ScaleA,
    /// Scale of B in a scaled matrix instruction.
    ScaleB,
    /// SSAMP.
    Sampler,
}

impl Field {
    /// Bit of a source in the masks of its modifiers; 0 for operands that are not a source of a vector
    /// instruction.
    pub(super) const fn source_bit(self) -> u32 {
        match self {
            Field::Src0 => 1,
            Field::Src1 => 2,
            Field::Src2 => 4,
            _ => 0,
        }
    }
}

/// Whether an operand is read, written or both.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// Written.
    Def,
    /// Read.
    Use,
    /// Read and written (or written in part): source and result are tied.
    DefUse,
}

/// The operands that are allowed in a place.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum OperandClass {
    /// SGPRs and VCC (results of scalar loads, addresses, descriptors).
    Sgpr,
    /// SGPRs, VCC, M0, EXEC (results of scalar instructions).
    ScalarDst,
    /// Scalar registers, inline constants, and a literal.
    ScalarSource,
    /// Scalar registers.
    ScalarRegister,
    /// Scalar registers and inline constants.
    ScalarInline,
    /// An SGPR pair or VCC that holds one bit per lane.
    Mask,
    /// The same in a source that may be constant too.
    MaskSource,
    /// VGPRs.
    Vgpr,
    /// Accumulation VGPRs.
    Agpr,
    /// VGPRs or accumulation VGPRs (data of memory instructions, A and B of matrix instructions).
    VgprOrAgpr,
    /// VGPRs or accumulation VGPRs, the same file as the first operand, or an inline constant (C of matrix
    /// instructions).
    MatrixC,
    /// The same for A and B whose number of registers follows from their formats, which are modifiers: cbsz
    /// for A, blgp for B.
    MatrixFormatted,
    /// VGPRs, scalar registers, inline constants, and in the 32-bit encodings a literal.
    VectorSource,
    /// VGPRs, scalar registers, inline constants.
    VectorInline,
    /// Address of a buffer instruction: none, one VGPR, or two when both offset and index are there.
    BufferAddress,
    /// Address of a global instruction: a VGPR pair, or one VGPR beside a scalar base.
    GlobalAddress,
    /// Address of a scratch instruction: one VGPR or none.
    ScratchAddress,
    /// A VGPR that is exported, or none.
    Exported,
    /// Address of an image instruction: from as many VGPRs as the row says to this many.
    ImageAddress(u8),
    /// Data of an image instruction, VGPRs or accumulation VGPRs, whose number follows from modifiers.
    ImageData,
    /// Scalar base of a global or scratch instruction, or none.
    ScalarBase,
    /// Scalar offset of a scalar load, or none.
    ScalarOffset,
    /// A 32-bit literal.
    Literal,
}

/// A set of kinds of operands.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct OperandKinds(u8);

impl OperandKinds {
    const NONE: u8 = 1;
    const SCALAR: u8 = 2;
    const INLINE: u8 = 4;
    const LITERAL: u8 = 8;
    const VGPR: u8 = 16;
    const AGPR: u8 = 32;
    const LDS: u8 = 64;
    /// Registers that have numbers among the constants.
    const SPECIAL: u8 = 128;
    const CONSTANT: u8 = Self::INLINE | Self::SPECIAL;

    /// The kind of a physical operand as a set; empty for a virtual register and for numbers without a
    /// meaning.
    #[inline]
    pub(super) const fn of(operand: Operand) -> OperandKinds {
        // A table, because this is asked for every operand of every instruction that is encoded.
        const OF_NUMBER: [OperandKinds; Operand::END as usize] = {
            let mut kinds = [OperandKinds(0); Operand::END as usize];
            let mut number = 0;
            while number < kinds.len() {
                kinds[number] = OperandKinds::of_number(number);
                number += 1;
            }
            kinds
        };
        match operand.number() {
            Some(number) => OF_NUMBER[number as usize],
            None if operand.is_none() => OperandKinds(Self::NONE),
            None => OperandKinds(0),
        }
    }

    const fn of_number(number: usize) -> OperandKinds {
        OperandKinds(match number {
            254 => Self::LDS,
            255 => Self::LITERAL,
            0..=124 | 126 | 127 => Self::SCALAR,
            128..=208 | 240..=248 => Self::INLINE,
            235..=239 | 251..=253 => Self::SPECIAL,
            256..512 => Self::VGPR,
            512.. => Self::AGPR,
            _ => 0,
        })
    }

    /// True if this (not empty) set is inside `other`.
    #[inline]
    pub(super) const fn inside(self, other: OperandKinds) -> bool {
        self.0 != 0 && self.0 & other.0 == self.0
    }
}

impl OperandClass {
    /// True for the data of a memory instruction or a matrix, in either register file.
    #[inline]
    pub(crate) const fn is_vgpr_or_agpr(self) -> bool {
        matches!(self, OperandClass::VgprOrAgpr | OperandClass::ImageData)
    }

    /// Kinds of operands that are allowed there.
    #[inline]
    pub(super) const fn kinds(self) -> OperandKinds {
        use OperandClass::*;
        OperandKinds(match self {
            Sgpr | ScalarDst | Mask => OperandKinds::SCALAR,
            ScalarRegister => OperandKinds::SCALAR | OperandKinds::SPECIAL,
            ScalarSource => OperandKinds::SCALAR | OperandKinds::CONSTANT | OperandKinds::LITERAL,
            ScalarInline | MaskSource => OperandKinds::SCALAR | OperandKinds::CONSTANT,
            Vgpr => OperandKinds::VGPR,
            Agpr => OperandKinds::AGPR,
            VgprOrAgpr | MatrixFormatted | ImageData => OperandKinds::VGPR | OperandKinds::AGPR,
            MatrixC => OperandKinds::VGPR | OperandKinds::AGPR | OperandKinds::CONSTANT,
            VectorSource => {
                let constants = OperandKinds::CONSTANT | OperandKinds::LITERAL;
                OperandKinds::VGPR | OperandKinds::SCALAR | constants | OperandKinds::LDS
            }
            VectorInline => OperandKinds::VGPR | OperandKinds::SCALAR | OperandKinds::CONSTANT,
            BufferAddress | ScratchAddress | Exported => OperandKinds::NONE | OperandKinds::VGPR,
            GlobalAddress | ImageAddress(_) => OperandKinds::VGPR,
            ScalarBase | ScalarOffset => OperandKinds::NONE | OperandKinds::SCALAR,
            Literal => OperandKinds::LITERAL,
        })
    }

    /// True if it takes VGPRs or AGPRs.
    #[inline]
    pub(super) const fn is_vector(self) -> bool {
        self.kinds().0 & (OperandKinds::VGPR | OperandKinds::AGPR) != 0
    }
}

/// Rule for one operand of a row.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct OperandSpec {
    /// Read, written or both.
    pub role: Role,
    /// The operands that are allowed there.
    pub class: OperandClass,
    /// Where it is encoded.
    pub field: Field,
    /// Number of 32-bit registers. See [`Inst::width`](super::Inst::width) for addresses, which vary.
    pub width: u8,
    /// Kind of data; decides how an inline constant expands.
    pub element: Element,
}

/// Unit that executes the instruction.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Unit {
    /// Scalar ALU.
    Salu,
    /// Scalar memory.
    Smem,
    /// Vector ALU.
    Valu,
    /// Transcendental unit beside the vector ALU.
    Trans,
    /// Matrix unit, with the number of passes (four cycles each).
    Mfma(u8),
    /// LDS.
    Lds,
    /// Vector memory.
    Vmem,
    /// Vector memory through a flat address: LDS or memory.
    Flat,
    /// Control flow.
    Branch,
    /// Workgroup barrier.
    Barrier,
    /// Wait for counters.
    Wait,
    /// Idle cycles.
    Nop,
    /// Messages, priorities and the like.
    Other,
}

/// Which wait counter an instruction increments.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Counter {
    /// None: the result is available when the next instruction issues, apart from hazards.
    None,
    /// vmcnt.
    Vm,
    /// lgkmcnt.
    Lgkm,
    /// Both (flat).
    VmAndLgkm,
}

/// A set of registers that an instruction touches without naming them.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Implicit(u8);

impl Implicit {
    /// Empty.
    pub const NONE: Implicit = Implicit(0);
    /// Scalar condition code.
    pub const SCC: Implicit = Implicit(1);
    /// VCC.
    pub const VCC: Implicit = Implicit(2);
    /// EXEC.
    pub const EXEC: Implicit = Implicit(4);
    /// M0.
    pub const M0: Implicit = Implicit(8);

    /// Union.
    pub const fn with(self, other: Implicit) -> Implicit {
        Implicit(self.0 | other.0)
    }

    /// True if all of `other` is in the set.
    pub const fn contains(self, other: Implicit) -> bool {
        self.0 & other.0 == other.0
    }
}

/// One row of the table.
#[derive(Debug)]
pub struct OpInfo {
    /// Mnemonic without encoding suffix.
    pub mnemonic: &'static str,
    /// What some chips call it.
    pub alias: Option<(&'static str, Arches)>,
    /// The chips that have it.
    pub arches: Arches,
    /// Encoding.
    pub format: Format,
    /// Opcode bits of the (short) encoding.
    pub code: u16,
    /// Operands in assembler order.
    pub operands: &'static [OperandSpec],
    /// Executing unit.
    pub unit: Unit,
    /// Passes of a matrix instruction on some chips, where they differ from the unit's.
    pub other_passes: Option<(u8, Arches)>,
    /// Wait counter.
    pub counter: Counter,
    /// Registers read without being operands.
    pub reads: Implicit,
    /// Registers written without being operands.
    pub writes: Implicit,
    /// Every modifier bit that an instruction of the row may have beside the DPP and SDWA forms.
    pub modifiers: Modifiers,
    /// The same of its DPP form; empty if there is none.
    pub dpp_modifiers: Modifiers,
    /// The same of its SDWA form; empty if there is none.
    pub sdwa_modifiers: Modifiers,
    /// Its meaning.
    pub meaning: Meaning,
}

impl OpInfo {
    /// Kind of data that a constant in the place of an operand has: that of the operand, but the exponent of
    /// V_LDEXP_F16 has the constants of an f16 (LLVM, VOP2Instructions.td).
    pub(crate) fn constant_element(&self, spec: &OperandSpec) -> Element {
        match (self.meaning, spec.field) {
            (Meaning::Vector(Calc::LoadExponent, Element::F16), Field::Src1) => Element::F16,
            _ => spec.element,
        }
    }

    /// Passes of four cycles of a matrix instruction on `arch`; 0 for others. Formats may change them
    /// ([`Inst::passes`](super::Inst::passes)).
    pub const fn passes(&self, arch: Arch) -> u8 {
        match (self.unit, self.other_passes) {
            (Unit::Mfma(_), Some((other, arches))) if arches.contains(arch) => other,
            (Unit::Mfma(passes), _) => passes,
            _ => 0,
        }
    }

    /// The same of an instruction with such modifiers: mixed formats without an 8-bit one take half the
    /// passes (CDNA4 ISA guide, table "MFMA pass counts").
    pub const fn passes_with(&self, arch: Arch, modifiers: Modifiers) -> u8 {
        let eight_bit = modifiers.get_cbsz() < 2 || modifiers.get_blgp() < 2;
        match self.meaning {
            Meaning::FormattedMfma(_) if !eight_bit => self.passes(arch) / 2,
            _ => self.passes(arch),
        }
    }

    /// Mnemonic without encoding suffix as `arch` spells it.
    pub fn mnemonic_on(&self, arch: Arch) -> &'static str {
        match self.alias {
            Some((name, arches)) if arches.contains(arch) => name,
            _ => self.mnemonic,
        }
    }

    /// Every modifier bit that an instruction of the row in the form of `modifiers` may have on `arch`.
    #[inline]
    pub fn modifiers_on(&self, arch: Arch, modifiers: Modifiers) -> Modifiers {
        if modifiers.has_second_word() {
            return if modifiers.has_dpp() { self.dpp_modifiers } else { self.sdwa_modifiers };
        }
        const SC1: Modifiers = Modifiers::new().sc1();
        const GDS: Modifiers = Modifiers::new().gds();
        const TFE: Modifiers = Modifiers::new().tfe();
        const HALVES: Modifiers = Modifiers::new().op_sel(0b111).op_sel_hi_flip(0b111);
        let is_image = matches!(self.format, Format::Mimg);
        let is_memory = self.format.is_mubuf() || self.format.is_flat() || is_image;
        match (arch.generation(), self.meaning) {
            (Generation::Gcn5 | Generation::Cdna1, _) if is_memory => self.modifiers.without(SC1),
            // Float atomics have no such bit on gfx90a (LLVM, FLATInstructions.td).
            (Generation::Cdna2, Meaning::Atomic(_, element) | Meaning::AtomicReturn(_, element))
                if is_memory && element.is_float() =>
            {
                self.modifiers.without(SC1)
            }
            (Generation::Cdna2 | Generation::Cdna3 | Generation::Cdna4, _) if self.format.is_ds() => {
                self.modifiers.without(GDS)
            }
            // The register file is in its place from gfx90a on.
            _ if self.format.is_mubuf() || is_image => self.modifiers.without(TFE),
            // LLVM, `validateOpSel`: on gfx942 and gfx950 dot products take their halves as they are.
            (Generation::Cdna3 | Generation::Cdna4, Meaning::Dot(_)) if self.format == Format::Vop3p => {
                self.modifiers.without(HALVES)
            }
            _ => self.modifiers,
        }
    }

    /// True if the SDWA form says which part of the result is written: comparisons and conversions of 8-bit
    /// floats write all of it.
    pub fn selects_result(&self) -> bool {
        !self.format.is_comparison() && !self.converts_from_fp8()
    }

    /// True for conversions of 8-bit floats.
    pub(super) const fn converts_from_fp8(&self) -> bool {
        matches!(self.meaning, Meaning::Convert(_, Element::Fp8 | Element::Bf8))
    }

    /// True if an operand takes two registers or more of vector data.
    pub const fn is_wide(&self) -> bool {
        let mut i = 0;
        while i < self.operands.len() {
            if matches!(self.operands[i].field, Field::Dst | Field::Src0 | Field::Src1)
                && self.operands[i].width > 1
                && !matches!(self.operands[i].class, OperandClass::Mask)
            {
                return true;
            }
            i += 1;
        }
        false
    }

    /// How many bits op_sel has in assembler text; the last is the result's unless it selects a byte, with
    /// two bits.
    pub(super) const fn op_sel_bits(&self) -> u32 {
        use Element::{Bf8, Fp4, Fp8};
        match self.meaning {
            Meaning::ConvertStochastic(Fp8 | Bf8, _)
            | Meaning::ConvertScaled(Fp4, _)
            | Meaning::ConvertScaledStochastic(..) => 4,
            _ => self.operands.len() as u32,
        }
    }

    /// True for LDS instructions with two offsets of a byte each.
    pub(super) const fn has_two_offsets(&self) -> bool {
        matches!(self.meaning, Meaning::LoadTwo(..) | Meaning::StoreTwo(..) | Meaning::ExchangeTwo(..))
    }

    /// Sources of the 32-bit encoding.
    pub(super) fn short_sources(&self) -> usize {
        self.operands.iter().filter(|spec| matches!(spec.field, Field::Src0 | Field::Src1)).count()
    }

    /// Index of the operand that is source and result at once, if the row has one.
    pub fn tied(&self) -> Option<usize> {
        self.operands.iter().position(|o| o.role == Role::DefUse)
    }

    /// True for instructions that read memory or LDS (atomics too).
    pub(crate) const fn may_load(&self) -> bool {
        !matches!(self.meaning.effect(), Effect::None | Effect::Store)
    }

    /// True for instructions that write memory or LDS (atomics too).
    pub(crate) const fn may_store(&self) -> bool {
        !matches!(self.meaning.effect(), Effect::None | Effect::Load)
    }

    /// True if the immediate of an instruction has a meaning other than as a literal.
    pub const fn takes_immediate(&self) -> bool {
        use Meaning::*;
        match self.format {
            Format::Sopp => !matches!(
                self.meaning,
                Barrier | InvalidateCode | Wakeup | TraceData | EndProgramSaved | SetGprIndexOff
            ),
            Format::Sopk | Format::Gws | Format::Exp => true,
            Format::Vintrp | Format::VintrpLong | Format::VintrpHalf => true,
            Format::Sopc => matches!(self.meaning, SetGprIndexOn),
            Format::Smem => self.scalar_offset().is_some(),
            Format::Ds => !matches!(self.meaning, LdsNop),
            Format::MubufBare => false,
            _ => self.format.is_mubuf() || self.format.is_flat(),
        }
    }

    /// Index of the scalar offset of a scalar memory instruction.
    pub(super) const fn scalar_offset(&self) -> Option<usize> {
        let mut i = 0;
        while i < self.operands.len() {
            if matches!(self.operands[i].class, OperandClass::ScalarOffset) {
                return Some(i);
            }
            i += 1;
        }
        None
    }

    /// True for scalar memory instructions through a buffer descriptor, whose offsets are never negative.
    pub const fn has_buffer_descriptor(&self) -> bool {
        use Meaning::*;
        matches!(self.meaning, ScalarBufferLoad(_) | ScalarBufferStore(_) | ScalarBufferAtomic(..))
            || matches!(self.meaning, ProbeAddress) && self.operands[0].width == 4
    }

    /// True for atomics of the scalar unit.
    pub(crate) const fn is_scalar_atomic(&self) -> bool {
        matches!(self.meaning, Meaning::ScalarAtomic(..) | Meaning::ScalarBufferAtomic(..))
    }

    /// True for atomics that return the former value in their data if a modifier asks for it.
    pub(crate) const fn returns_if_asked(&self) -> bool {
        self.is_scalar_atomic() || matches!(self.meaning, Meaning::ImageAtomic(..))
    }

    /// True for loads whose data goes to LDS.
    pub(crate) const fn may_store_to_lds(&self) -> bool {
        matches!(self.meaning.effect(), Effect::LoadToLds)
    }
}
