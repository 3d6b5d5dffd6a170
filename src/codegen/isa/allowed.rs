//! Which modifiers a row allows, derived from its other columns.
//!
//! The rules are those of LLVM's assembler for gfx942: float sources can be negated, float results scaled,
//! and so on.

use super::meaning::{Calc, Element, Meaning};
use super::modifiers::Modifiers;
use super::spec::{Field, Format, OpInfo, OperandClass, Role};
use crate::codegen::arch::Arch;

/// Number of sources and which of them are floats; whether any operand is a float.
struct SourceCounts {
    mask: u32,
    floats: u32,
    any_float: bool,
    has_sdst: bool,
}

const fn sources(info: &OpInfo) -> SourceCounts {
    let mut found = SourceCounts { mask: 0, floats: 0, any_float: false, has_sdst: false };
    let mut i = 0;
    while i < info.operands.len() {
        let spec = &info.operands[i];
        let float = spec.element.is_float();
        let bit = spec.field.source_bit();
        found.any_float |= float;
        found.has_sdst |= matches!(spec.field, Field::Sdst);
        if !matches!(spec.class, OperandClass::MaskSource) {
            found.mask |= bit;
            if float {
                found.floats |= bit;
            }
        }
        i += 1;
    }
    found
}

/// Integer instructions that can saturate.
const fn integer_clamp(meaning: Meaning) -> bool {
    use Meaning::*;
    matches!(
        meaning,
        Vector(Calc::Add | Calc::Sub | Calc::SubRev, Element::U16 | Element::U32)
            | Vector(Calc::Mul | Calc::MulAdd, Element::I24 | Element::U24)
            | Vector(Calc::Add | Calc::Sub, Element::I32)
            | Vector(Calc::MulAdd, Element::U16 | Element::I16)
            | Vector(
                Calc::SumAbsDiff
                    | Calc::SumAbsDiffHigh
                    | Calc::MaskedSumAbsDiff
                    | Calc::QuadSumAbsDiff
                    | Calc::MaskedQuadSumAbsDiff,
                _
            )
            | CarryOut(_)
            | CarryInOut(_)
            | MulAddWide(_)
    )
}

const fn vop3(info: &OpInfo) -> Modifiers {
    let sources = sources(info);
    let mut all = Modifiers::new();
    if info.format.has_e64() {
        all = all.e64();
    }
    if matches!(info.format, Format::Vop1Swap) {
        return all.op_sel(0b11);
    }
    if matches!(info.meaning, Meaning::SelectLane) {
        return all.neg(0b11).abs(0b11);
    }
    all = all.neg(sources.floats);
    // The long form with a scalar result has its number where the absolute values would be.
    if !sources.has_sdst {
        all = all.abs(sources.floats);
    }
    if matches!(info.meaning, Meaning::CompareClass(_) | Meaning::CompareClassExec(_)) {
        return all;
    }
    let selects = matches!(info.format, Format::Vop3Sel);
    if matches!(info.format, Format::VintrpHalf) {
        all = all.op_sel(0b1).clamp();
        return if matches!(info.operands[0].element, Element::F32) {
            all.omod(super::Omod::Div2)
        } else {
            all
        };
    }
    if selects {
        all = all.op_sel(if info.op_sel_bits() == 4 { 0b1111 } else { 0b1011 });
    }
    match info.meaning {
        Meaning::Vector(Calc::BitOperation3, _) => return all.bitop3(0xff),
        Meaning::ConvertStochastic(Element::Fp8 | Element::Bf8, _) => return all.op_sel(0b1100),
        Meaning::ConvertStochastic(..) => return all.op_sel(0b1000),
        Meaning::ShiftPackBytes(_) | Meaning::ConvertScaled(..) | Meaning::ConvertScaledStochastic(..) => {
            return all;
        }
        Meaning::PackConvert(Element::Fp8 | Element::Bf8, _) => return all.op_sel(0b1000),
        _ => {}
    }
    if sources.any_float || selects || integer_clamp(info.meaning) {
        all = all.clamp();
    }
    let to_integers = matches!(
        info.meaning,
        Meaning::Pack(_)
            | Meaning::ConvertToByte
            | Meaning::ConvertRound(_)
            | Meaning::PackConvertNormalized(..)
            | Meaning::Vector(Calc::FrexpExponent, Element::F32)
    );
    if sources.any_float && !matches!(info.format, Format::Vopc) && !to_integers {
        all = all.omod(super::Omod::Div2);
    }
    all
}

const fn packed(info: &OpInfo) -> Modifiers {
    let mask = sources(info).mask;
    let negatable = Modifiers::new().clamp().neg_lo(mask).neg_hi(mask);
    match info.meaning {
        Meaning::Vector(Calc::Mov, _) => Modifiers::new(),
        _ => negatable.op_sel(mask).op_sel_hi_flip(mask),
    }
}

/// Signs of the first two sources in a form with a second word: floats are negated or made absolute, integers
/// extended.
const fn signs(info: &OpInfo) -> (u32, u32) {
    if matches!(info.meaning, Meaning::SelectLane) {
        return (0b11, 0);
    }
    let sources = sources(info);
    (sources.floats & 0b11, sources.mask & !sources.floats & 0b11)
}

/// Every modifier bit that may be set in the DPP form, which VOP1 and VOP2 with a VOP3 form have.
pub(super) const fn dpp(info: &OpInfo) -> Modifiers {
    if !matches!(info.format, Format::Vop1 | Format::Vop2) {
        return Modifiers::new();
    }
    let (floats, _) = signs(info);
    Modifiers::new().dpp().neg(floats).abs(floats)
}

/// Every modifier bit that may be set in the SDWA form, which VOP1, VOP2 and VOPC on 32 bits have, tied
/// results excepted.
pub(super) const fn sdwa(info: &OpInfo) -> Modifiers {
    let from_fp8 = info.converts_from_fp8();
    let wide = info.is_wide() && !from_fp8;
    if !info.format.has_e64()
        || matches!(info.format, Format::Vop1Swap)
        || wide
        || matches!(info.operands[0].role, Role::DefUse)
    {
        return Modifiers::new();
    }
    let (floats, integers) = signs(info);
    let all = Modifiers::new().sdwa().neg(floats).abs(floats);
    let all = if from_fp8 { all } else { all.sign_extend(integers) };
    if info.format.is_comparison() {
        return all;
    }
    if info.operands[0].element.is_float() { all.clamp().omod(super::Omod::Div2) } else { all.clamp() }
}

/// Every modifier bit that may be set on an instruction of this row beside these forms.
pub(super) const fn plain(info: &OpInfo) -> Modifiers {
    let none = Modifiers::new();
    let cache = none.sc1().nt();
    match info.format {
        format if format.is_vop3() => vop3(info),
        Format::Vop3p | Format::Vop3pMix => packed(info),
        Format::Mai if matches!(info.meaning, Meaning::FormattedMfma(_)) => none.cbsz(0b111).blgp(0b111),
        Format::Mai if matches!(info.meaning, Meaning::SparseMfma(..)) => none.cbsz(0b111).abid(0b1111),
        Format::Mai => none.cbsz(0b111).abid(0b1111).blgp(0b111),
        Format::MaiScaled => none.cbsz(0b111).blgp(0b111).scale_select(0b1111),
        Format::Ds if matches!(info.meaning, Meaning::LanePermute(_) | Meaning::LdsNop) => none,
        Format::Ds => none.gds(),
        Format::Smem if !info.operands.is_empty() => match info.meaning {
            Meaning::ReadTime | Meaning::ReadRealTime => none,
            Meaning::ScalarCacheDiscard(_) => none.zero_offset(),
            Meaning::ProbeAddress => none.zero_offset().probe(0x7f),
            _ => none.sc0().zero_offset(),
        },
        Format::Mubuf if matches!(info.meaning, Meaning::Atomic(..)) => cache.offen().idxen(),
        Format::Mubuf if info.may_load() => cache.sc0().offen().idxen().tfe(),
        Format::Mtbuf => cache.sc0().offen().idxen().format_flip(0x7f),
        Format::MubufLds if matches!(info.meaning, Meaning::StoreFromLdsToMemory) => cache.sc0(),
        Format::Mubuf | Format::MubufLds => cache.sc0().offen().idxen(),
        // Atomics that return have sc0 always: it is what makes them so.
        Format::MubufRtn => cache.offen().idxen(),
        Format::MubufBare if info.arches.contains(Arch::USUAL) => none.sc0().sc1(),
        Format::MubufBare => none,
        Format::Flat | Format::Global | Format::Scratch if !matches!(info.meaning, Meaning::Atomic(..)) => {
            cache.sc0()
        }
        Format::GlobalLds | Format::ScratchLds => cache.sc0(),
        Format::Mimg => {
            use Meaning::{ImageGather, ImageLoad, ImageSample, ImageStore};
            let all = cache.sc0().dmask(0xf).unorm().a16().tfe().lwe().da();
            match info.meaning {
                ImageLoad | ImageStore | ImageSample | ImageGather => all.d16(),
                _ => all,
            }
        }
        Format::Exp => none.export_flags(0b111),
        Format::Vintrp if info.operands.len() == 1 => none.parameter(0xff),
        Format::Flat | Format::FlatRtn | Format::Global | Format::GlobalRtn => cache,
        Format::Sopk if matches!(info.operands, [only] if matches!(only.class, OperandClass::Literal)) => {
            none.hwreg(0xffff)
        }
        _ => none,
    }
}
