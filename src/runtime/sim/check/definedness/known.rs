//! A value of which some bits are undefined, and what arithmetic makes of it.
//!
//! Every function is sound: whatever the undefined bits of its operands are, the bits that it calls defined
//! are those of the result's `value`. Sums are also exact (Valgrind computes them in the same way: carries
//! grow with the operands, so a carry is known if it is the same for the smallest and for the largest
//! operands).

use crate::codegen::isa::Condition;

/// A value of up to 64 bits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct KnownBits {
    /// Its value, including the undefined bits.
    pub value: u64,
    /// Its undefined bits.
    pub undefined: u64,
}

/// The lowest `width` bits.
pub(super) const fn low_bits(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

/// The lowest bit of `bits` and all above it.
const fn upward(bits: u64) -> u64 {
    bits | bits.wrapping_neg()
}

impl KnownBits {
    /// A defined value.
    pub(super) const fn new(value: u64) -> KnownBits {
        KnownBits { value, undefined: 0 }
    }

    /// A value without defined bits.
    pub(super) const fn nothing(value: u64) -> KnownBits {
        KnownBits { value, undefined: u64::MAX }
    }

    /// A result that depends on all bits of its sources.
    pub(super) fn of_all(value: u64, sources: &[KnownBits]) -> KnownBits {
        if sources.iter().any(|source| source.undefined != 0) {
            KnownBits::nothing(value)
        } else {
            KnownBits::new(value)
        }
    }

    /// Some of its bits; the others are zero.
    pub(super) fn masked(self, bits: u64) -> KnownBits {
        KnownBits { value: self.value & bits, undefined: self.undefined & bits }
    }

    /// Its bits from number `count` on.
    pub(super) fn without_lowest(self, count: u32) -> KnownBits {
        KnownBits { value: self.value >> count, undefined: self.undefined >> count }
    }

    /// Its lowest `width` bits, sign-extended.
    pub(super) fn sign_extended(self, width: u32) -> KnownBits {
        let unused = 64 - width;
        let extend = |bits: u64| ((bits << unused) as i64 >> unused) as u64;
        KnownBits { value: extend(self.value), undefined: extend(self.undefined) }
    }

    /// The least value that it may have, unsigned.
    pub(super) fn least(self) -> u64 {
        self.value & !self.undefined
    }

    /// The largest value that it may have, unsigned.
    pub(super) fn largest(self) -> u64 {
        self.value | self.undefined
    }

    /// `self + other + carry`, including the carries of all bits; 64 bits.
    pub(super) fn plus(self, other: KnownBits, carry: KnownBits) -> KnownBits {
        let sum = |a: u64, b: u64, c: u64| a.wrapping_add(b).wrapping_add(c);
        let least = sum(self.least(), other.least(), carry.least());
        let largest = sum(self.largest(), other.largest(), carry.largest());
        KnownBits {
            value: sum(self.value, other.value, carry.value),
            undefined: self.undefined | other.undefined | carry.undefined | least ^ largest,
        }
    }

    /// `self - other - borrow`.
    pub(super) fn minus(self, other: KnownBits, borrow: KnownBits) -> KnownBits {
        let difference = |a: u64, b: u64, c: u64| a.wrapping_sub(b).wrapping_sub(c);
        let least = difference(self.least(), other.largest(), borrow.largest());
        let largest = difference(self.largest(), other.least(), borrow.least());
        KnownBits {
            value: difference(self.value, other.value, borrow.value),
            undefined: self.undefined | other.undefined | borrow.undefined | least ^ largest,
        }
    }

    /// The low 64 bits of a product: an undefined bit of one factor matters from its own position upwards,
    /// plus the number of trailing zeros of the other factor.
    pub(super) fn times(self, other: KnownBits) -> KnownBits {
        let first = |moved: KnownBits, by: KnownBits| {
            moved.undefined.trailing_zeros() + (by.value | by.undefined).trailing_zeros()
        };
        let from = match (self.undefined, other.undefined) {
            (0, 0) => 64,
            (0, _) => first(other, self),
            (_, 0) => first(self, other),
            _ => first(self, other).min(first(other, self)),
        };
        let value = self.value.wrapping_mul(other.value);
        KnownBits { value, undefined: if from >= 64 { 0 } else { upward(1 << from) } }
    }

    /// Shifted by an amount of which only `used` bits count; `shift` moves bits, and knows what moves in.
    pub(super) fn moved(self, amount: KnownBits, used: u64, shift: impl Fn(u64, u32) -> u64) -> KnownBits {
        let amount = amount.masked(used);
        let by = amount.value as u32;
        match amount.undefined {
            0 => KnownBits { value: shift(self.value, by), undefined: shift(self.undefined, by) },
            // There is nothing to shift but zeros (or copies of a sign that is zero).
            _ if self.value | self.undefined == 0 => KnownBits::new(0),
            _ => KnownBits::nothing(shift(self.value, by)),
        }
    }

    /// A function of the bits in the same place of three values: bit `4a + 2b + c` of `table` is its result.
    /// Sources with the same number in `names` are the same value.
    pub(super) fn bit_by_bit(table: u8, sources: [KnownBits; 3], names: [usize; 3]) -> KnownBits {
        let (mut one, mut zero, mut value) = (0, 0, 0);
        for row in 0..8u32 {
            let bit = |source: usize| row >> (2 - source) & 1;
            if (0..3).any(|source| bit(source) != bit(names[source])) {
                continue;
            }
            let (mut possible, mut actual) = (u64::MAX, u64::MAX);
            for (number, source) in sources.iter().enumerate() {
                let side = if bit(number) != 0 { source.value } else { !source.value };
                possible &= side | source.undefined;
                actual &= side;
            }
            if table >> row & 1 != 0 {
                one |= possible;
                value |= actual;
            } else {
                zero |= possible;
            }
        }
        KnownBits { value, undefined: one & zero }
    }

    /// Whether the result of a comparison of integers of `width` bits is known.
    pub(super) fn is_comparison_known(
        self,
        other: KnownBits,
        condition: Condition,
        width: u32,
        signed: bool,
    ) -> bool {
        use Condition::{Eq, False, Ge, Gt, Le, Lt, Ne, True};
        let flip = if signed { 1 << (width - 1) } else { 0 };
        let flipped = |k: KnownBits| KnownBits { value: k.value ^ flip, ..k }.masked(low_bits(width));
        let (a, b) = (flipped(self), flipped(other));
        if a.undefined | b.undefined == 0 {
            return true;
        }
        match condition {
            False | True => true,
            Eq | Ne => (a.value ^ b.value) & !a.undefined & !b.undefined != 0,
            Lt | Ge => a.largest() < b.least() || a.least() >= b.largest(),
            Gt | Le => b.largest() < a.least() || b.least() >= a.largest(),
            _ => false,
        }
    }

    /// Whether bit `width` of the exact sum with `carry` is known.
    pub(super) fn is_carry_known(self, other: KnownBits, carry: KnownBits, width: u32) -> bool {
        let out = |a: u64, b: u64, c: u64| (u128::from(a) + u128::from(b) + u128::from(c)) >> width;
        out(self.least(), other.least(), carry.least())
            == out(self.largest(), other.largest(), carry.largest())
    }

    /// Whether it is known if `self - other - borrow` is below zero.
    pub(super) fn is_borrow_known(self, other: KnownBits, borrow: KnownBits) -> bool {
        let below = |a: u64, b: u64, c: u64| u128::from(a) < u128::from(b) + u128::from(c);
        below(self.least(), other.largest(), borrow.largest())
            == below(self.largest(), other.least(), borrow.least())
    }
}
