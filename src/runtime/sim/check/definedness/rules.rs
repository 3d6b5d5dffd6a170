//! The rules of definedness, as data: the effect of undefined source bits on a result.
//!
//! Every operation has its rule in [`CALCULATIONS`] or is [`DefinednessRule::Whole`], every meaning its
//! [`DefinednessMethod`]. Rules are about one value per source; the operands decide which bits of which
//! registers that is (`slices`).

use crate::codegen::isa::{Calc, Element, Half, Meaning};

use super::known::{KnownBits, low_bits};

/// The effect of undefined bits of sources a, b and c on a result.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum DefinednessRule {
    /// All of the result depends on every bit: the rule of every operation without another one.
    Whole,
    /// Every bit of the result depends on the source bits at the same position, by the truth table.
    Bits(u8),
    /// The same bits in another order.
    Reverse,
    /// `a + b`
    Add,
    /// `a - b`
    Subtract,
    /// `b - a`
    SubtractReversed,
    /// `a + b + c`
    AddThree,
    /// `(a ^ b) + c`
    XorAdd,
    /// `(a << b) + c`
    ShiftAdd,
    /// `(a + b) << c`
    AddShift,
    /// `(a << b) | c`
    ShiftOr,
    /// Low half of `a * b`.
    Multiply,
    /// High half of `a * b`.
    MultiplyHigh,
    /// `a * b + c`
    MultiplyAdd,
    /// `a << b`
    ShiftLeft,
    /// `b << a`
    ShiftLeftReversed,
    /// `a >> b`
    ShiftRight,
    /// `b >> a`
    ShiftRightReversed,
    /// `c` bits of `a`, starting with bit `b`.
    Field,
    /// Bits of `a`; the high half of `b` has their number, the low half the first one.
    PackedField,
    /// As many ones as `a` says, shifted up by `b`.
    FieldMask,
    /// `{a, b} >> c * unit`
    Align(u32),
    /// Bytes of `{a, b}` that the bytes of `c` select.
    SelectBytes,
    /// The lowest bits of `a`, sign-extended.
    SignExtend,
}

/// Truth tables of [`DefinednessRule::Bits`]: bit `4a + 2b + c` is the result.
mod table {
    pub(super) const A: u8 = 0b1111_0000;
    pub(super) const B: u8 = 0b1100_1100;
    pub(super) const C: u8 = 0b1010_1010;
}

/// The operations that are more precise than [`DefinednessRule::Whole`], for integers.
pub(super) static CALCULATIONS: &[(Calc, DefinednessRule)] = &{
    use Calc::*;
    use table::{A, B, C};
    [
        (Mov, DefinednessRule::Bits(A)),
        (Not, DefinednessRule::Bits(!A)),
        (And, DefinednessRule::Bits(A & B)),
        (Or, DefinednessRule::Bits(A | B)),
        (Xor, DefinednessRule::Bits(A ^ B)),
        (AndNot, DefinednessRule::Bits(A & !B)),
        (OrNot, DefinednessRule::Bits(A | !B)),
        (NotAnd, DefinednessRule::Bits(!A & B)),
        (NotOr, DefinednessRule::Bits(!A | B)),
        (Nand, DefinednessRule::Bits(!(A & B))),
        (Nor, DefinednessRule::Bits(!(A | B))),
        (Xnor, DefinednessRule::Bits(!(A ^ B))),
        (AndOr, DefinednessRule::Bits(A & B | C)),
        (Or3, DefinednessRule::Bits(A | B | C)),
        (BitFieldInsert, DefinednessRule::Bits(A & B | !A & C)),
        (XorAdd, DefinednessRule::XorAdd),
        (ReverseBits, DefinednessRule::Reverse),
        (SignExtend, DefinednessRule::SignExtend),
        (Add, DefinednessRule::Add),
        (Sub, DefinednessRule::Subtract),
        (SubRev, DefinednessRule::SubtractReversed),
        (Add3, DefinednessRule::AddThree),
        (Mul, DefinednessRule::Multiply),
        (MulHigh, DefinednessRule::MultiplyHigh),
        (MulAdd, DefinednessRule::MultiplyAdd),
        (ShiftLeft, DefinednessRule::ShiftLeft),
        (ShiftRight, DefinednessRule::ShiftRight),
        (ShiftLeftRev, DefinednessRule::ShiftLeftReversed),
        (ShiftRightRev, DefinednessRule::ShiftRightReversed),
        (ShiftLeftAdd, DefinednessRule::ShiftAdd),
        (AddShiftLeft, DefinednessRule::AddShift),
        (ShiftLeftOr, DefinednessRule::ShiftOr),
        (BitFieldMask, DefinednessRule::FieldMask),
        (AlignBit, DefinednessRule::Align(1)),
        (AlignByte, DefinednessRule::Align(8)),
        (PermuteBytes, DefinednessRule::SelectBytes),
    ]
};

/// Rule of an operation on elements of a type; `bitop3` is the truth table of [`Calc::BitOperation3`].
pub(super) fn of(calc: Calc, element: Element, is_scalar: bool, bitop3: u32) -> DefinednessRule {
    if element.is_float() {
        return DefinednessRule::Whole;
    }
    match calc {
        Calc::BitOperation3 => DefinednessRule::Bits(bitop3 as u8),
        Calc::BitFieldExtract if is_scalar => DefinednessRule::PackedField,
        Calc::BitFieldExtract => DefinednessRule::Field,
        _ => CALCULATIONS
            .iter()
            .find(|(known, _)| *known == calc)
            .map_or(DefinednessRule::Whole, |(_, rule)| *rule),
    }
}

/// Width in bits of the elements of an integer operation.
pub(super) fn width(element: Element) -> u32 {
    match element {
        Element::U8 | Element::I8 => 8,
        Element::B16 | Element::U16 | Element::I16 | Element::I16x2 => 16,
        _ => 32 * u32::from(element.registers()),
    }
}

/// The kind of integers that an operation works on.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct IntegerKind {
    pub element: Element,
    /// Width of sources and of the result.
    pub width: u32,
}

impl IntegerKind {
    pub(super) fn of(element: Element) -> IntegerKind {
        IntegerKind { element, width: width(element) }
    }

    /// The kind for whole registers, whichever part of them the operation uses.
    pub(super) fn in_registers(element: Element) -> IntegerKind {
        IntegerKind { element, width: 32 * u32::from(element.registers()) }
    }

    fn is_signed(self) -> bool {
        matches!(self.element, Element::I16 | Element::I24 | Element::I32 | Element::I64)
    }

    /// A factor as the operation uses it, of 64 bits.
    fn factor(self, k: KnownBits) -> KnownBits {
        match self.element {
            Element::U24 => k.masked(low_bits(24)),
            Element::I24 => k.sign_extended(24),
            _ if self.is_signed() => k.sign_extended(width(self.element)),
            _ => k,
        }
    }
}

impl DefinednessRule {
    /// The result for one set of sources, in the lowest bits; `names` as in [`KnownBits::bit_by_bit`].
    pub(super) fn apply(self, kind: IntegerKind, sources: [KnownBits; 3], names: [usize; 3]) -> KnownBits {
        let [a, b, c] = sources;
        let (zero, used) = (KnownBits::new(0), u64::from(kind.width) - 1);
        let left = |k: KnownBits, by: KnownBits| k.moved(by, used, |bits, n| bits << n);
        let right = |k: KnownBits, by: KnownBits| match kind.is_signed() {
            true => k.sign_extended(kind.width).moved(by, used, |bits, n| (bits as i64 >> n) as u64),
            false => k.moved(by, used, |bits, n| bits >> n),
        };
        let result = match self {
            DefinednessRule::Whole => KnownBits::of_all(0, &sources),
            DefinednessRule::Bits(table) => KnownBits::bit_by_bit(table, sources, names),
            DefinednessRule::Reverse => {
                let reverse = |bits: u64| bits.reverse_bits() >> (64 - kind.width);
                KnownBits { value: reverse(a.value), undefined: reverse(a.undefined) }
            }
            DefinednessRule::Add => a.plus(b, zero),
            DefinednessRule::Subtract => a.minus(b, zero),
            DefinednessRule::SubtractReversed => b.minus(a, zero),
            DefinednessRule::AddThree => a.plus(b, zero).masked(low_bits(kind.width)).plus(c, zero),
            DefinednessRule::XorAdd => {
                KnownBits::bit_by_bit(table::A ^ table::B, sources, names).plus(c, zero)
            }
            // The 64-bit form shifts by at most four (CDNA4 ISA guide, V_LSHL_ADD_U64).
            DefinednessRule::ShiftAdd if kind.width == 64 => {
                let shift = |bits: u64, n: u32| bits << if n > 4 { 0 } else { n };
                a.moved(b, 7, shift).plus(c, zero)
            }
            DefinednessRule::ShiftAdd => left(a, b).masked(low_bits(kind.width)).plus(c, zero),
            DefinednessRule::AddShift => left(a.plus(b, zero).masked(low_bits(kind.width)), c),
            DefinednessRule::ShiftOr => {
                KnownBits::bit_by_bit(table::A | table::B, [left(a, b), c, zero], [0, 1, 2])
            }
            DefinednessRule::Multiply => kind.factor(a).times(kind.factor(b)),
            DefinednessRule::MultiplyHigh => kind.factor(a).times(kind.factor(b)).without_lowest(32),
            DefinednessRule::MultiplyAdd => {
                kind.factor(a).times(kind.factor(b)).masked(low_bits(kind.width)).plus(c, zero)
            }
            DefinednessRule::ShiftLeft => left(a, b),
            DefinednessRule::ShiftLeftReversed => left(b, a),
            DefinednessRule::ShiftRight => right(a, b),
            DefinednessRule::ShiftRightReversed => right(b, a),
            DefinednessRule::Field => self.field(kind, a, b.masked(31), c.masked(31)),
            DefinednessRule::PackedField => {
                self.field(kind, a, b.masked(used), b.without_lowest(16).masked(0x7f))
            }
            DefinednessRule::FieldMask => KnownBits::of_all(0, &[a.masked(used), b.masked(used)]),
            DefinednessRule::Align(unit) => {
                let join = |high: u64, low: u64| high << 32 | low & low_bits(32);
                let both =
                    KnownBits { value: join(a.value, b.value), undefined: join(a.undefined, b.undefined) };
                both.moved(c, u64::from(31 / unit), |bits, n| bits >> (n * unit))
            }
            DefinednessRule::SelectBytes => select_bytes(a, b, c),
            DefinednessRule::SignExtend => a.sign_extended(width(kind.element)),
        };
        result.masked(low_bits(kind.width))
    }

    /// `count` bits of `a` from bit `first` on, with their sign above if the type has one.
    fn field(self, kind: IntegerKind, a: KnownBits, first: KnownBits, count: KnownBits) -> KnownBits {
        if first.undefined | count.undefined != 0 {
            return KnownBits::of_all(0, &[first, count]);
        }
        // A field that extends beyond the source has its sign, or zeros, at the top.
        let a = if kind.is_signed() { a.sign_extended(kind.width) } else { a };
        let moved = |bits: u64| (bits as i64 >> first.value) as u64;
        let moved = match kind.is_signed() {
            true => KnownBits { value: moved(a.value), undefined: moved(a.undefined) },
            false => KnownBits { value: a.value >> first.value, undefined: a.undefined >> first.value },
        };
        match count.value.min(kind.width.into()) as u32 {
            0 => KnownBits::new(0),
            count if kind.is_signed() => moved.sign_extended(count),
            count => moved.masked(low_bits(count)),
        }
    }
}

/// V_PERM_B32: selectors 0 to 7 take a byte, 8 to 11 the sign of a half, the others a constant.
fn select_bytes(a: KnownBits, b: KnownBits, c: KnownBits) -> KnownBits {
    let mut result = KnownBits::new(0);
    let source = |bits: (u64, u64)| bits.0 << 32 | bits.1 & low_bits(32);
    let undefined = source((a.undefined, b.undefined));
    for place in 0..4 {
        let selector = c.value >> (8 * place) & 0xff;
        let bits = match selector {
            _ if c.undefined >> (8 * place) & 0xff != 0 => 0xff,
            0..=7 => undefined >> (8 * selector) & 0xff,
            8..=11 => (undefined >> (16 * (selector - 8) + 15) & 1) * 0xff,
            _ => 0,
        };
        result.undefined |= bits << (8 * place);
    }
    result
}

/// How the instructions of a meaning treat definedness.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum DefinednessMethod {
    /// By rule, value by value: vector operations.
    Values,
    /// By rule: scalar operations.
    Scalars,
    /// All written bits depend on all bits that are read, lane by lane.
    Lanes,
    /// A mask with a bit per lane, and the other result if there is one.
    Mask,
    /// Sums with carries per lane.
    Carries,
    /// A selection by a mask.
    Selection,
    /// Values move between lanes or between registers.
    Moves,
    /// Matrix multiplication: values meet across lanes.
    Matrix,
    /// Decides about control flow, modes or registers.
    Decides,
    /// Memory: judged where it is issued (`access`).
    Memory,
    /// Reads nothing but constants and the state of the hardware, or writes no register.
    Defined,
}

/// The way of every meaning. The match is complete, so a new meaning needs a way of its own.
pub(super) fn way(meaning: Meaning) -> DefinednessMethod {
    use Meaning::*;
    match meaning {
        // Four sums of 32 bits.
        Vector(Calc::MaskedQuadSumAbsDiff, Element::U32) => DefinednessMethod::Lanes,
        Vector(..) | Packed(..) | PackedMove | Pack(_) | MulAddMixed(_) | FmaMix(_) | FmaMixHigh
        | Interpolate | ScreenPartition | MaskedBitCount(_) => DefinednessMethod::Values,
        Convert(..) | ConvertRound(_) | ConvertOffset | ConvertToByte | ConvertByte(_) | PackConvert(..)
        | SaturateBytes | ShiftPackBytes(_) => DefinednessMethod::Values,
        ConvertNormalized(..)
        | PackConvertNormalized(..)
        | ConvertStochastic(..)
        | PackConvertNearest(..) => DefinednessMethod::Values,
        ConvertScaled(..) | ConvertScaledStochastic(..) | Dot(_) => DefinednessMethod::Lanes,
        Compare(..) | CompareExec(..) | CompareClass(_) | CompareClassExec(_) | DivScale(_) => {
            DefinednessMethod::Mask
        }
        CarryOut(_) | CarryInOut(_) | MulAddWide(_) => DefinednessMethod::Carries,
        SelectLane => DefinednessMethod::Selection,
        ReadFirstLane | ReadLane | WriteLane | Swap | SwapRows(_) => DefinednessMethod::Moves,
        Mfma(..) | SparseMfma(..) | FormattedMfma(_) => DefinednessMethod::Matrix,
        Scalar(..) | ScalarMoveIf(_) | ScalarSelect(_) | ScalarShiftAdd(_) | ScalarPack(..)
        | ScalarCompare(..) | ScalarBitCompare(_) | SaveExec(_) | WriteExec(_) | ScalarBitSet(..)
        | MoveImmediateIf | CompareImmediate(..) | AddImmediate | MulImmediate | MoveFromRelative(_)
        | MoveToRelative(_) => DefinednessMethod::Scalars,
        SetGprIndex | SetGprIndexOn | SetVskip | SetHardwareRegister | Fork | ForkIf | JoinFork | SetPc
        | SwapPc | ReturnFromException | Branch(_) => DefinednessMethod::Decides,
        SendMessage | TraceData | SetGprIndexMode | SetGprIndexOff | MoveImmediate | GetHardwareRegister
        | GetPc | Call | Nop | EndProgram | EndProgramSaved | Barrier | Wait | Sleep | Wakeup | SetKill
        | PerformanceCounters | SetPriority | Trap | SetHalt | InvalidateCode | VectorNop
        | CacheWriteBack | CacheInvalidate | LdsNop | ProbeAddress | Export => DefinednessMethod::Defined,
        ScalarLoad(_) | ScalarBufferLoad(_) | ScalarScratchLoad(_) | ScalarStore(_)
        | ScalarBufferStore(_) | ScalarAtomic(..) | ScalarCacheWriteBack | ReadTime | ReadRealTime => {
            DefinednessMethod::Memory
        }
        ScalarScratchStore(_) | ScalarBufferAtomic(..) | ScalarCacheDiscard(_) | ScalarCacheInvalidate => {
            DefinednessMethod::Memory
        }
        Load(_) | LoadFormat(_) | LoadFormatHalf(_) | LoadFormatHigh | StoreFormat(_)
        | StoreFormatHalf(_) | StoreFormatHigh | LoadTransposed(..) | Store(_) | LoadTwo(..)
        | StoreTwo(..) | LoadFormatToLds | LoadToLds(_) | StoreFromLds(_) | StoreFromLdsToMemory => {
            DefinednessMethod::Memory
        }
        Atomic(..) | AtomicReturn(..) | AtomicFromLds(..) | ExchangeTwo(..) | ConditionalExchange
        | LoadAtLane | StoreAtLane | LaneSwizzle | LanePermute(_) | CountLanes(_) | GlobalWaveSync
        | GlobalBarrier => DefinednessMethod::Memory,
        ImageLoad | ImageLoadPacked | ImageStore | ImageStorePacked | ImageAtomic(..) | ImageSample
        | ImageGather | ImageQuery => DefinednessMethod::Memory,
    }
}

/// First bit of a half.
pub(super) fn half_shift(half: Half) -> u32 {
    if half == Half::High { 16 } else { 0 }
}

/// Bits of a small float.
pub(super) fn width_of_float(element: Element) -> u32 {
    if matches!(element, Element::Fp8 | Element::Bf8) { 8 } else { 16 }
}
