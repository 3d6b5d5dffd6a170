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
    let info = inst.op.info();
    let spec = |operand: usize| &info.operands[operand];
    let mut sources = [None; 3];
    let reads = (0..info.operands.len())
        .filter(|&n| matches!(spec(n).field, Field::Src0 | Field::Src1 | Field::Src2 | Field::Literal));
    for (source, operand) in sources.iter_mut().zip(reads) {
        *source = Some(operand);
    }
    if step.accumulates && matches!(meaning, Meaning::Vector(..) | Meaning::Packed(..)) {
        sources[2] = Some(0);
    }
    let it = ValueOperands { inst, step, sources };
    match it.two(meaning) {
        Some(two) => two.into(),
        None => smallvec![it.one(meaning)],
    }
}

const UNIT: IntegerKind = IntegerKind { element: Element::B32, width: 32 };

/// Bits of the first register of the result.
fn part(shift: u32, bits: u32) -> BitSlice {
    BitSlice { operand: 0, register: 0, shift, bits }
}

/// A register of the result.
fn word(register: usize) -> BitSlice {
    BitSlice { operand: 0, register, shift: 0, bits: 32 }
}

impl ValuePiece {
    /// A value of which every bit depends on all bits of its sources.
    fn of_all(to: BitSlice, from: [Option<BitSlice>; 3]) -> ValuePiece {
        ValuePiece { to, from, rule: DefinednessRule::Whole, kind: UNIT, keeps: false }
    }
}

impl ValueOperands<'_> {
    /// The place of a result of the row's type, and whether the rest of its register is kept.
    fn result(&self, meaning: Meaning) -> (BitSlice, bool) {
        let spec = &self.inst.op.info().operands[0];
        let high = self.step.modifiers.get_op_sel() & 8 != 0;
        match is_half(spec.element) || matches!(meaning, Meaning::ShiftPackBytes(_)) {
            true => (part(if high { 16 } else { 0 }, 16), self.step.keeps_other_half || high),
            false => (whole(0, spec, self.inst), false),
        }
    }

    /// The rule of a calculation. Clamping looks at all bits, and a changed sign is not followed.
    fn rule(&self, calc: Calc, element: Element) -> DefinednessRule {
        let m = self.step.modifiers;
        match m.has_clamp() || m.get_neg_lo() | m.get_neg_hi() != 0 {
            true => DefinednessRule::Whole,
            false => rules::of(calc, element, false, m.get_bitop3()),
        }
    }

    /// The value of an instruction that computes one.
    fn one(&self, meaning: Meaning) -> ValuePiece {
        use Meaning::*;
        let m = self.step.modifiers;
        let (to, keeps) = self.result(meaning);
        let of_all = |from: [Option<BitSlice>; 3]| ValuePiece { keeps, ..ValuePiece::of_all(to, from) };
        let kept = |to: BitSlice, from| ValuePiece { keeps: true, ..ValuePiece::of_all(to, from) };
        match meaning {
            Vector(calc, element) => {
                let (rule, kind) = (self.rule(calc, element), IntegerKind::of(element));
                ValuePiece { rule, kind, ..of_all(self.all()) }
            }
            MulAddMixed(element) => {
                let rule = if m.has_clamp() { DefinednessRule::Whole } else { DefinednessRule::MultiplyAdd };
                ValuePiece { rule, kind: IntegerKind { element, width: 32 }, ..of_all(self.all()) }
            }
            ConvertStochastic(to, _) => {
                let (bits, place) = (rules::width_of_float(to), m.get_op_sel() >> 2);
                let shift = if bits == 8 { 8 * place } else { 8 * (place & 2) };
                kept(part(shift, bits), self.all())
            }
            FmaMix(Element::F16) | FmaMixHigh => {
                let shift = if meaning == FmaMixHigh { 16 } else { 0 };
                kept(part(shift, 16), [0, 1, 2].map(|number| self.mixed(number)))
            }
            FmaMix(_) => of_all([0, 1, 2].map(|number| self.mixed(number))),
            ConvertByte(byte) => {
                let shift = 8 * u32::from(byte & 3);
                let from = self.source(0);
                let from = from.map(|source| BitSlice { shift: source.shift + shift, bits: 8, ..source });
                of_all([from, None, None])
            }
            ConvertOffset => {
                let from = self.source(0).map(|source| BitSlice { bits: 4, ..source });
                of_all([from, None, None])
            }
            // The rest depends on all bits of its sources.
            _ => of_all(self.all()),
        }
    }

    /// The values of an instruction that computes two, the lower one first.
    fn two(&self, meaning: Meaning) -> Option<[ValuePiece; 2]> {
        use Meaning::*;
        let sides = [Half::Low, Half::High];
        Some(match meaning {
            Packed(calc, Element::F32) => sides.map(|side| {
                let from = [0, 1, 2].map(|number| self.packed_word(number, side));
                let rule = self.rule(calc, Element::F32);
                ValuePiece { rule, ..ValuePiece::of_all(word(usize::from(side == Half::High)), from) }
            }),
            Packed(calc, element) => sides.map(|side| {
                let from = [0, 1, 2].map(|number| self.packed_half(number, side));
                let (rule, kind) = (self.rule(calc, element), IntegerKind::of(element));
                let piece = ValuePiece::of_all(part(half_shift(side), 16), from);
                ValuePiece { rule, kind, keeps: true, ..piece }
            }),
            PackedMove => [0, 1].map(|number| {
                let from = [self.packed_word(number, Half::Low), None, None];
                let rule = self.rule(Calc::Mov, Element::B32);
                ValuePiece { rule, ..ValuePiece::of_all(word(number), from) }
            }),
            Pack(_)
            | PackConvert(Element::F16 | Element::U16 | Element::I16, _)
            | PackConvertNearest(..)
            | PackConvertNormalized(..) => self.joined(0, 16),
            PackConvert(..) => self.joined(if self.step.modifiers.get_op_sel() & 8 != 0 { 16 } else { 0 }, 8),
            Convert(Element::F32x2, _) => [0u32, 1].map(|number| {
                let from = self.source(0);
                let from = from.map(|source| BitSlice { shift: source.shift + 8 * number, ..source });
                ValuePiece::of_all(word(number as usize), [from, None, None])
            }),
            SaturateBytes => [0u32, 1].map(|number| {
                let from = self.source(0).map(|source| BitSlice { shift: 16 * number, bits: 16, ..source });
                let piece = ValuePiece::of_all(part(8 * number, 8), [from, None, None]);
                ValuePiece { keeps: number == 1, ..piece }
            }),
            ShiftPackBytes(_) => {
                let (to, keeps) = self.result(meaning);
                let amount = self.source(2).map(|source| BitSlice { bits: 5, ..source });
                [0u32, 1].map(|number| {
                    let to = BitSlice { shift: to.shift + 8 * number, bits: 8, ..to };
                    let piece = ValuePiece::of_all(to, [self.source(number as usize), amount, None]);
                    ValuePiece { keeps: keeps || number == 1, ..piece }
                })
            }
            _ => return None,
        })
    }

    /// Two sources that come to lie one after the other, each in this many bits.
    fn joined(&self, shift: u32, bits: u32) -> [ValuePiece; 2] {
        [0u32, 1].map(|number| {
            let from = [self.source(number as usize), None, None];
            let piece = ValuePiece::of_all(part(shift + bits * number, bits), from);
            ValuePiece { keeps: true, ..piece }
        })
    }
}
