//! Which bits of which registers an operation on values reads and writes: halves that op_sel names, bytes,
//! pairs.

use smallvec::{SmallVec, smallvec};

use crate::codegen::isa::{Calc, Element, Field, Half, Inst, Meaning, OperandSpec};

use super::super::super::program::Step;
use super::rules::{self, DefinednessRule, IntegerKind, half_shift};

/// Bits of an operand.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct BitSlice {
    /// Operand of the instruction.
    pub operand: usize,
    /// Register of the operand.
    pub register: usize,
    /// First bit in that register.
    pub shift: u32,
    /// Number of bits; beyond 32 they continue in the next register.
    pub bits: u32,
}

/// One value that an instruction computes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct ValuePiece {
    pub to: BitSlice,
    pub from: [Option<BitSlice>; 3],
    pub rule: DefinednessRule,
    pub kind: IntegerKind,
    /// Bits of the result register outside the piece are kept; otherwise they become zero.
    pub keeps: bool,
}

pub(super) type ValuePieces = SmallVec<[ValuePiece; 2]>;

fn whole(operand: usize, spec: &OperandSpec, inst: &Inst) -> BitSlice {
    let bits = 32 * u32::from(inst.width(operand).min(spec.width));
    BitSlice { operand, register: 0, shift: 0, bits: bits.min(64) }
}

fn is_half(element: Element) -> bool {
    matches!(element, Element::B16 | Element::U16 | Element::I16 | Element::F16 | Element::Bf16)
}

/// An instruction and its operands that are values.
struct ValueOperands<'a> {
    inst: &'a Inst,
    step: &'a Step,
    /// First, second and third source; the third may be the result.
    sources: [Option<usize>; 3],
}

impl ValueOperands<'_> {
    fn has(mask: u32, bit: usize) -> bool {
        mask >> bit & 1 != 0
    }

    /// A source of the row's type: a whole register or pair, or the half that op_sel names.
    fn source(&self, number: usize) -> Option<BitSlice> {
        let operand = self.sources[number]?;
        let spec = &self.inst.op.info().operands[operand];
        let plain = whole(operand, spec, self.inst);
        let high = ValueOperands::has(self.step.modifiers.get_op_sel(), number);
        Some(match spec.element {
            element if is_half(element) => BitSlice { shift: if high { 16 } else { 0 }, bits: 16, ..plain },
            Element::Fp8 | Element::Bf8 => BitSlice { bits: 8, ..plain },
            _ => plain,
        })
    }

    /// The half of a packed source for one side of the result.
    fn packed_half(&self, number: usize, side: Half) -> Option<BitSlice> {
        let operand = self.sources[number]?;
        let shift = if self.packed_high(number, side) { 16 } else { 0 };
        Some(BitSlice { operand, register: 0, shift, bits: 16 })
    }

    /// The register of a packed pair for one side of the result.
    fn packed_word(&self, number: usize, side: Half) -> Option<BitSlice> {
        let operand = self.sources[number]?;
        let register = usize::from(self.packed_high(number, side));
        Some(BitSlice { operand, register, shift: 0, bits: 32 })
    }

    fn packed_high(&self, number: usize, side: Half) -> bool {
        match side {
            Half::Low => ValueOperands::has(self.step.modifiers.get_op_sel(), number),
            Half::High => !ValueOperands::has(self.step.modifiers.get_op_sel_hi_flip(), number),
        }
    }

    /// A source of mixed width: an f32, or the half that op_sel names.
    fn mixed(&self, number: usize) -> Option<BitSlice> {
        let operand = self.sources[number]?;
        let m = self.step.modifiers;
        let high = ValueOperands::has(m.get_op_sel(), number);
        Some(match ValueOperands::has(m.get_op_sel_hi_flip(), number) {
            true => BitSlice { operand, register: 0, shift: if high { 16 } else { 0 }, bits: 16 },
            false => BitSlice { operand, register: 0, shift: 0, bits: 32 },
        })
    }

    fn all(&self) -> [Option<BitSlice>; 3] {
        [0, 1, 2].map(|number| self.source(number))
    }
}

/// The values that an instruction of [`rules::DefinednessMethod::Values`] computes.
pub(super) fn pieces(inst: &Inst, step: &Step, meaning: Meaning) -> ValuePieces {
    use Meaning::*;
    let info = inst.op.info();
    let spec = |operand: usize| &info.operands[operand];
    let mut sources = [None; 3];
    let reads = (0..info.operands.len())
        .filter(|&n| matches!(spec(n).field, Field::Src0 | Field::Src1 | Field::Src2 | Field::Literal));
    for (source, operand) in sources.iter_mut().zip(reads) {
        *source = Some(operand);
    }
    if step.accumulates && matches!(meaning, Vector(..) | Packed(..)) {
        sources[2] = Some(0);
    }
    let it = ValueOperands { inst, step, sources };
    let m = step.modifiers;
    let unit = IntegerKind::of(Element::B32);
    let word = |register: usize| BitSlice { operand: 0, register, shift: 0, bits: 32 };
    let part = |shift: u32, bits: u32| BitSlice { operand: 0, register: 0, shift, bits };
    let piece = |to: BitSlice, from: [Option<BitSlice>; 3], rule: DefinednessRule, kind: IntegerKind| {
        ValuePiece { to, from, rule, kind, keeps: false }
    };
    // The place of a result of the row's type.
    let plain = || {
        let to = whole(0, spec(0), inst);
        let high = m.get_op_sel() & 8 != 0;
        match is_half(spec(0).element) || matches!(meaning, ShiftPackBytes(_)) {
            true => (part(if high { 16 } else { 0 }, 16), step.keeps_other_half || high),
            false => (to, false),
        }
    };
    let one = |from: [Option<BitSlice>; 3], rule: DefinednessRule, kind: IntegerKind| -> ValuePieces {
        let (to, keeps) = plain();
        smallvec![ValuePiece { keeps, ..piece(to, from, rule, kind) }]
    };
    // Clamping looks at all bits, and a changed sign is not followed.
    let signs = m.get_neg_lo() | m.get_neg_hi();
    let arithmetic = |calc: Calc, element: Element| match m.has_clamp() || signs != 0 {
        true => DefinednessRule::Whole,
        false => rules::of(calc, element, false, m.get_bitop3()),
    };
    match meaning {
        Vector(calc, element) => one(it.all(), arithmetic(calc, element), IntegerKind::of(element)),
        MulAddMixed(element) => {
            let rule = if m.has_clamp() { DefinednessRule::Whole } else { DefinednessRule::MultiplyAdd };
            one(it.all(), rule, IntegerKind { element, width: 32 })
        }
        Packed(calc, Element::F32) => [Half::Low, Half::High]
            .map(|side| {
                let from = [0, 1, 2].map(|number| it.packed_word(number, side));
                piece(word(usize::from(side == Half::High)), from, arithmetic(calc, Element::F32), unit)
            })
            .into(),
        Packed(calc, element) => [Half::Low, Half::High]
            .map(|side| {
                let from = [0, 1, 2].map(|number| it.packed_half(number, side));
                let rule = arithmetic(calc, element);
                ValuePiece {
                    keeps: true,
                    ..piece(part(half_shift(side), 16), from, rule, IntegerKind::of(element))
                }
            })
            .into(),
        PackedMove => [0, 1]
            .map(|number| {
                let from = [it.packed_word(number, Half::Low), None, None];
                piece(word(number), from, arithmetic(Calc::Mov, Element::B32), unit)
            })
            .into(),
        Pack(_)
        | PackConvert(Element::F16 | Element::U16 | Element::I16, _)
        | PackConvertNearest(..)
        | PackConvertNormalized(..) => [(0, 0), (1, 16)]
            .map(|(number, shift)| {
                let from = [it.source(number), None, None];
                ValuePiece { keeps: true, ..piece(part(shift, 16), from, DefinednessRule::Whole, unit) }
            })
            .into(),
        PackConvert(..) => {
            let shift = if m.get_op_sel() & 8 != 0 { 16 } else { 0 };
            [(0, shift), (1, shift + 8)]
                .map(|(number, shift)| {
                    let from = [it.source(number), None, None];
                    ValuePiece { keeps: true, ..piece(part(shift, 8), from, DefinednessRule::Whole, unit) }
                })
                .into()
        }
        ConvertStochastic(to, _) => {
            let (bits, place) = (rules::width_of_float(to), m.get_op_sel() >> 2);
            let shift = if bits == 8 { 8 * place } else { 8 * (place & 2) };
            smallvec![ValuePiece {
                keeps: true,
                ..piece(part(shift, bits), it.all(), DefinednessRule::Whole, unit)
            }]
        }
        FmaMix(Element::F16) | FmaMixHigh => {
            let shift = if meaning == FmaMixHigh { 16 } else { 0 };
            let from = [0, 1, 2].map(|number| it.mixed(number));
            smallvec![ValuePiece {
                keeps: true,
                ..piece(part(shift, 16), from, DefinednessRule::Whole, unit)
            }]
        }
        FmaMix(_) => one([0, 1, 2].map(|number| it.mixed(number)), DefinednessRule::Whole, unit),
        ConvertByte(byte) => {
            let shift = 8 * u32::from(byte & 3);
            let from = it.source(0).map(|source| BitSlice { shift: source.shift + shift, bits: 8, ..source });
            one([from, None, None], DefinednessRule::Whole, unit)
        }
        ConvertOffset => {
            let from = it.source(0).map(|source| BitSlice { bits: 4, ..source });
            one([from, None, None], DefinednessRule::Whole, unit)
        }
        Convert(Element::F32x2, _) => [0u32, 1]
            .map(|number| {
                let from = it.source(0).map(|source| BitSlice { shift: source.shift + 8 * number, ..source });
                piece(word(number as usize), [from, None, None], DefinednessRule::Whole, unit)
            })
            .into(),
        SaturateBytes => [0u32, 1]
            .map(|number| {
                let from = it.source(0).map(|source| BitSlice { shift: 16 * number, bits: 16, ..source });
                ValuePiece {
                    keeps: number == 1,
                    ..piece(part(8 * number, 8), [from, None, None], DefinednessRule::Whole, unit)
                }
            })
            .into(),
        ShiftPackBytes(_) => {
            let (to, keeps) = plain();
            [0u32, 1]
                .map(|number| {
                    let to = BitSlice { shift: to.shift + 8 * number, bits: 8, ..to };
                    let amount = it.source(2).map(|source| BitSlice { bits: 5, ..source });
                    let from = [it.source(number as usize), amount, None];
                    ValuePiece {
                        keeps: keeps || number == 1,
                        ..piece(to, from, DefinednessRule::Whole, unit)
                    }
                })
                .into()
        }
        // The rest depends on all bits of its sources.
        _ => one(it.all(), DefinednessRule::Whole, unit),
    }
}
