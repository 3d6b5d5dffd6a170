//! Exact sums and products of floats, and rounding them once: in any direction, to any of the chips' formats.
//!
//! This is the slow path of [`numerics`](super::numerics): integers in place of the host's floats. It serves
//! round modes other than to nearest even, and the small formats.

use super::formats::{FloatFormat, Top};

/// How a value between two values of a format is rounded.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Rounding {
    /// To the nearer one; halfway between, to the even one.
    NearestEven,
    /// Towards plus infinity.
    Up,
    /// Towards minus infinity.
    Down,
    /// Towards zero.
    Zero,
    /// Away from zero with a probability that grows with the rest: if the rest and the topmost of these
    /// random bits carry together. As many bits take part as the mantissa of an f32 has more than the format
    /// (CDNA3 ISA guide, V_CVT_SR_FP8_F32).
    Stochastic(u32),
}

impl Rounding {
    /// From a field of FP_ROUND (CDNA3 ISA guide, "Mode register").
    pub(super) fn from_mode(field: u32) -> Rounding {
        [Rounding::NearestEven, Rounding::Up, Rounding::Down, Rounding::Zero][field as usize & 3]
    }
}

/// What a finite value beyond the largest of the format becomes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Overflow {
    /// Infinity, or NaN in a format without one, where the direction of rounding asks for it.
    Special,
    /// The largest number.
    Saturates,
}

/// A finite number: `mantissa * 2^exponent`, the mantissa below 2^126.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Exact {
    negative: bool,
    mantissa: u128,
    exponent: i32,
}

/// The most bits of a mantissa.
const BITS: i32 = 126;

impl Exact {
    /// A finite f64 (and with it every finite value of the other formats).
    pub(super) fn of(value: f64) -> Exact {
        let (bits, fraction) = (value.to_bits(), value.to_bits() & ((1 << 52) - 1));
        let field = (bits >> 52 & 0x7ff) as i32;
        let mantissa = if field == 0 { fraction } else { fraction | 1 << 52 };
        Exact { negative: value.is_sign_negative(), mantissa: mantissa.into(), exponent: field.max(1) - 1075 }
    }

    /// The same times a power of two.
    pub(super) fn scaled(mut self, power: i32) -> Exact {
        self.exponent += power;
        self
    }

    /// Product of two numbers that came from [`of`](Self::of).
    pub(super) fn times(self, other: Exact) -> Exact {
        Exact {
            negative: self.negative != other.negative,
            mantissa: self.mantissa * other.mantissa,
            exponent: self.exponent + other.exponent,
        }
    }

    /// Exponent of the leading bit.
    fn top(self) -> i32 {
        127 - self.mantissa.leading_zeros() as i32 + self.exponent
    }

    /// The sum. It is exact, except for a part that is so far below the rest that it can only break ties.
    /// `rounding` decides the sign of an exact zero.
    pub(super) fn plus(self, other: Exact, rounding: Rounding) -> Exact {
        if self.mantissa == 0 || other.mantissa == 0 {
            let mut sum = if self.mantissa == 0 { other } else { self };
            if sum.mantissa == 0 && self.negative != other.negative {
                sum.negative = rounding == Rounding::Down;
            }
            return sum;
        }
        let (high, low) = if self.top() >= other.top() { (self, other) } else { (other, self) };
        // Two bits are left for the carry of the sum.
        let up = high.mantissa.leading_zeros() as i32 - (128 - BITS) - 1;
        let (a, exponent) = (high.mantissa << up, high.exponent - up);
        let distance = exponent - low.exponent;
        let b = match distance {
            ..=0 => low.mantissa << -distance,
            1..=127 => {
                let lost = low.mantissa & ((1 << distance) - 1) != 0;
                low.mantissa >> distance | u128::from(lost)
            }
            _ => 1,
        };
        if high.negative == low.negative {
            return Exact { negative: high.negative, mantissa: a + b, exponent };
        }
        let negative = match a.cmp(&b) {
            std::cmp::Ordering::Equal => rounding == Rounding::Down,
            std::cmp::Ordering::Greater => high.negative,
            std::cmp::Ordering::Less => low.negative,
        };
        Exact { negative, mantissa: a.abs_diff(b), exponent }
    }

    /// Bits of the number in a format.
    pub(super) fn round(self, format: &FloatFormat, rounding: Rounding, overflow: Overflow) -> u64 {
        if self.mantissa == 0 {
            return format.zero(self.negative);
        }
        let fraction_bits = format.mantissa_bits as i32;
        let field = (self.top() + format.bias).max(1);
        // Exponent of a unit in the last place.
        let unit = field - format.bias - fraction_bits;
        let shift = unit - self.exponent;
        let (kept, rest) = match shift {
            ..=0 => (self.mantissa << -shift, None),
            1..=127 => (self.mantissa >> shift, Some((self.mantissa & ((1 << shift) - 1), shift as u32))),
            // Far below half a unit.
            _ => (0, Some((1, 127))),
        };
        let up = rest.is_some_and(|(rest, shift)| self.rounds_up(kept, rest, shift, format, rounding));
        // A carry out of the mantissa goes into the exponent, where it belongs.
        let magnitude = kept as u64 + u64::from(up) + ((field as u64 - 1) << fraction_bits);
        let largest = format.largest();
        if magnitude <= largest {
            return if magnitude == 0 {
                format.zero(self.negative)
            } else {
                format.sign(self.negative) | magnitude
            };
        }
        let inward = match rounding {
            Rounding::Up => self.negative,
            Rounding::Down => !self.negative,
            Rounding::Zero => true,
            Rounding::NearestEven | Rounding::Stochastic(_) => false,
        };
        if overflow == Overflow::Saturates || inward || format.top == Top::Finite {
            format.sign(self.negative) | largest
        } else {
            format.infinity(self.negative)
        }
    }

    /// True if `rest`, of this many bits below the kept ones, increases the magnitude.
    fn rounds_up(self, kept: u128, rest: u128, bits: u32, format: &FloatFormat, rounding: Rounding) -> bool {
        match rounding {
            Rounding::NearestEven => {
                let half = 1u128 << (bits - 1);
                rest > half || rest == half && kept & 1 != 0
            }
            Rounding::Up => rest != 0 && !self.negative,
            Rounding::Down => rest != 0 && self.negative,
            Rounding::Zero => false,
            Rounding::Stochastic(random) => {
                let taking_part = 23 - format.mantissa_bits.min(22);
                let rest = if bits > taking_part {
                    rest >> (bits - taking_part)
                } else {
                    rest << (taking_part - bits)
                };
                rest as u64 + u64::from(random >> (32 - taking_part)) >= 1 << taking_part
            }
        }
    }
}

impl FloatFormat {
    /// Bits of a value in this format, rounded once, after it was multiplied by a power of two.
    pub(super) fn encode(&self, value: f64, power: i32, rounding: Rounding, overflow: Overflow) -> u64 {
        let negative = value.is_sign_negative();
        if value.is_nan() {
            self.nan(negative)
        } else if value.is_infinite() {
            self.infinity(negative)
        } else {
            Exact::of(value).scaled(power).round(self, rounding, overflow)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::formats::{F16, F32, F64};
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    const NEAREST: (Rounding, Overflow) = (Rounding::NearestEven, Overflow::Special);

    fn f64_of(exact: Exact) -> f64 {
        f64::from_bits(exact.round(&F64, NEAREST.0, NEAREST.1))
    }

    /// Finite numbers with exponents close enough to one another to interact.
    fn numbers(rng: &mut StdRng) -> [f64; 3] {
        std::array::from_fn(|_| {
            let (mantissa, sign) =
                (rng.random::<u64>() >> 12 & !0 << rng.random_range(0..50), rng.random_range(0..2u64));
            f64::from_bits(sign << 63 | rng.random_range(960u64..1090) << 52 | mantissa)
        })
    }

    #[test]
    fn to_nearest_agrees_with_the_host() {
        let mut rng = StdRng::seed_from_u64(3);
        for _ in 0..20_000 {
            let [a, b, c] = numbers(&mut rng);
            let (x, y, z) = (Exact::of(a), Exact::of(b), Exact::of(c));
            assert_eq!(f64_of(x.plus(y, NEAREST.0)), a + b);
            assert_eq!(f64_of(x.times(y)), a * b);
            assert_eq!(
                f64_of(x.times(y).plus(z, NEAREST.0)).to_bits(),
                a.mul_add(b, c).to_bits(),
                "{a} {b} {c}"
            );
            assert_eq!(x.round(&F32, NEAREST.0, NEAREST.1) as u32, (a as f32).to_bits());
            assert_eq!(x.round(&F16, NEAREST.0, NEAREST.1) as u16, half::f16::from_f64(a).to_bits(), "{a:e}");
        }
    }

    #[test]
    fn denormals_and_the_ends_of_the_range() {
        let tiny = Exact::of(f64::from_bits(1));
        assert_eq!(f64_of(tiny), f64::from_bits(1));
        assert_eq!(f64_of(tiny.scaled(-1)), 0.0);
        assert_eq!(tiny.scaled(-1).round(&F64, Rounding::Up, NEAREST.1), 1);
        assert_eq!(tiny.scaled(-300).round(&F64, Rounding::Up, NEAREST.1), 1);
        assert_eq!(Exact::of(-1e-40).round(&F32, Rounding::Zero, NEAREST.1) as u32, (-1e-40f32).to_bits());
        assert_eq!(Exact::of(1e300).round(&F32, NEAREST.0, NEAREST.1) as u32, f32::INFINITY.to_bits());
        assert_eq!(Exact::of(1e300).round(&F32, Rounding::Zero, NEAREST.1) as u32, f32::MAX.to_bits());
        assert_eq!(Exact::of(-1e300).round(&F32, Rounding::Up, NEAREST.1) as u32, f32::MIN.to_bits());
        assert_eq!(Exact::of(1e300).round(&F16, NEAREST.0, Overflow::Saturates), 0x7bff);
    }

    #[test]
    fn directions_enclose_the_exact_value() {
        let mut rng = StdRng::seed_from_u64(4);
        for _ in 0..5_000 {
            let [a, b, _] = numbers(&mut rng);
            let product = Exact::of(a).times(Exact::of(b));
            let round = |rounding| f64::from_bits(product.round(&F64, rounding, NEAREST.1));
            let (down, up, zero) = (round(Rounding::Down), round(Rounding::Up), round(Rounding::Zero));
            // The residue a * b - p is exact with a fused multiply-add.
            assert!(a.mul_add(b, -down) >= 0.0 && a.mul_add(b, -up) <= 0.0);
            assert!(down == up || down.next_up() == up);
            assert_eq!(zero, if a * b < 0.0 { up } else { down });
        }
    }

    #[test]
    fn exact_zeros_have_the_sign_of_the_direction() {
        let sum = |rounding| Exact::of(1.0).plus(Exact::of(-1.0), rounding).round(&F64, rounding, NEAREST.1);
        assert_eq!(sum(Rounding::NearestEven), 0);
        assert_eq!(sum(Rounding::Down), 1 << 63);
        let zeros =
            |rounding| Exact::of(0.0).plus(Exact::of(-0.0), rounding).round(&F64, rounding, NEAREST.1);
        assert_eq!((zeros(Rounding::Up), zeros(Rounding::Down)), (0, 1 << 63));
    }
}
