//! The operations that obey MODE's round modes, where those are not "to nearest even": computed exactly and
//! rounded once.

use crate::codegen::isa::{Calc, Element};

use super::super::exact::{Exact, Overflow, Rounding};
use super::super::formats::{self, FloatFormat};
use super::super::numerics::flush;
use super::super::program::Step;
use super::super::wave::{VCC, Wave};
use super::lanes::{F16, FP16_OVERFLOW, Lane, map1, map2, map3};

/// Bits of MODE that change how f32 results are rounded.
pub(super) const ROUND_32: u32 = 0b11;
/// The same for f64.
pub(super) const ROUND_64: u32 = 0b1100;
/// The same for f16.
pub(super) const ROUND_16: u32 = ROUND_64 | FP16_OVERFLOW;

/// Where a result goes: a format and the way there.
#[derive(Copy, Clone)]
pub(super) struct Rounder {
    format: &'static FloatFormat,
    rounding: Rounding,
    overflow: Overflow,
}

impl Rounder {
    /// As MODE says for that type.
    pub(super) fn new(w: &Wave, element: Element) -> Rounder {
        let (format, field) = match element {
            Element::F16 => (&formats::F16, w.mode >> 2),
            Element::F64 => (&formats::F64, w.mode >> 2),
            _ => (&formats::F32, w.mode),
        };
        let saturates = element == Element::F16 && w.mode & FP16_OVERFLOW != 0;
        let overflow = if saturates { Overflow::Saturates } else { Overflow::Special };
        Rounder { format, rounding: Rounding::from_mode(field), overflow }
    }

    /// The value as the format holds it.
    pub(super) fn round(&self, value: f64) -> f64 {
        if value.is_finite() { self.finish(Exact::of(value)) } else { value }
    }

    fn finish(&self, value: Exact) -> f64 {
        self.format.decode(value.round(self.format, self.rounding, self.overflow))
    }

    fn sum(&self, a: f64, b: f64) -> f64 {
        if !a.is_finite() || !b.is_finite() {
            return a + b;
        }
        self.finish(Exact::of(a).plus(Exact::of(b), self.rounding))
    }

    fn product(&self, a: f64, b: f64) -> f64 {
        if !a.is_finite() || !b.is_finite() {
            return a * b;
        }
        self.finish(Exact::of(a).times(Exact::of(b)))
    }

    /// `a * b + c`, rounded once.
    pub(super) fn fused(&self, a: f64, b: f64, c: f64) -> f64 {
        if !a.is_finite() || !b.is_finite() || !c.is_finite() {
            return a.mul_add(b, c);
        }
        self.finish(Exact::of(a).times(Exact::of(b)).plus(Exact::of(c), self.rounding))
    }

    /// `value * 2^power`, rounded once.
    fn scale(&self, value: f64, power: i32) -> f64 {
        // A larger power turns every value into zero or infinity.
        let power = power.clamp(-3300, 3300);
        if value.is_finite() { self.finish(Exact::of(value).scaled(power)) } else { value }
    }

    /// The operation, if it is one that rounds: sums and products.
    pub(super) fn arithmetic(self, calc: Calc) -> Option<impl Fn(f64, f64, f64) -> f64> {
        use Calc::*;
        let rounds = matches!(calc, Add | Sub | SubRev | Mul | MulLegacy | MulAdd | MulAddLegacy | Fma);
        rounds.then_some(move |a: f64, b: f64, c: f64| {
            let vanishes = matches!(calc, MulLegacy | MulAddLegacy) && (a == 0.0 || b == 0.0);
            match calc {
                Add => self.sum(a, b),
                Sub => self.sum(a, -b),
                SubRev => self.sum(b, -a),
                Fma => self.fused(a, b, c),
                MulAddLegacy if vanishes => self.sum(0.0, c),
                MulAdd | MulAddLegacy => self.sum(self.product(a, b), c),
                _ if vanishes => 0.0,
                _ => self.product(a, b),
            }
        })
    }
}

/// A float type of the vector unit, as f64.
trait Real: Lane {
    fn wide(self) -> f64;
    /// From a value that the type holds.
    fn narrow(value: f64) -> Self;
}

impl Real for f32 {
    fn wide(self) -> f64 {
        self.into()
    }
    fn narrow(value: f64) -> f32 {
        value as f32
    }
}

impl Real for f64 {
    fn wide(self) -> f64 {
        self
    }
    fn narrow(value: f64) -> f64 {
        value
    }
}

impl Real for F16 {
    fn wide(self) -> f64 {
        self.0.into()
    }
    fn narrow(value: f64) -> F16 {
        F16(value as f32)
    }
}

/// Executes one `Vector` instruction if its result is rounded; returns whether it did.
#[cold]
pub(super) fn calculate(w: &mut Wave, s: &Step, calc: Calc, element: Element) -> bool {
    let rounder = Rounder::new(w, element);
    match element {
        Element::F16 => typed::<F16, i16>(w, s, calc, rounder),
        Element::F64 => typed::<f64, i32>(w, s, calc, rounder),
        _ => typed::<f32, i32>(w, s, calc, rounder),
    }
}

fn typed<T: Real, P: Lane + Into<i32>>(w: &mut Wave, s: &Step, calc: Calc, rounder: Rounder) -> bool {
    if let Some(f) = rounder.arithmetic(calc) {
        let two_sources = matches!(calc, Calc::Add | Calc::Sub | Calc::SubRev | Calc::Mul | Calc::MulLegacy);
        if two_sources {
            map2(w, s, |a: T, b: T| T::narrow(f(a.wide(), b.wide(), 0.0)));
        } else {
            map3(w, s, |a: T, b: T, c: T| T::narrow(f(a.wide(), b.wide(), c.wide())));
        }
        return true;
    }
    match calc {
        Calc::LoadExponent => map2(w, s, |a: T, b: P| T::narrow(rounder.scale(a.wide(), b.into()))),
        Calc::Fract => {
            let below_one =
                rounder.format.decode(rounder.format.encode(1.0, 0, Rounding::Zero, rounder.overflow) - 1);
            map1(w, s, |a: T| {
                let fraction = rounder.sum(a.wide(), -a.wide().floor());
                T::narrow(if fraction > below_one { below_one } else { fraction })
            });
        }
        Calc::DivFmas => {
            let scaled = w.pair(VCC);
            let (a, b, c) = (T::read(w, s, 1, 0), T::read(w, s, 2, 1), T::read(w, s, 3, 2));
            let values = std::array::from_fn(|l| {
                let (a, b, c) = (a[l].wide(), b[l].wide(), c[l].wide());
                if scaled >> l & 1 == 0 || !a.is_finite() || !b.is_finite() || !c.is_finite() {
                    return T::narrow(rounder.fused(a, b, c));
                }
                let power = super::division::rescaling(rounder.format, c);
                let sum = Exact::of(a).times(Exact::of(b)).plus(Exact::of(c), rounder.rounding);
                T::narrow(rounder.finish(sum.scaled(power)))
            });
            T::write(w, s, values);
        }
        _ => return false,
    }
    true
}

/// Executes a conversion to a float type if it rounds; returns whether it did.
#[cold]
pub(super) fn convert(w: &mut Wave, s: &Step, to: Element, from: Element) -> bool {
    let rounder = Rounder::new(w, to);
    let single = |value: f64| rounder.round(value) as f32;
    match (to, from) {
        (Element::F32, Element::F64) => map1(w, s, |a: f64| single(a)),
        (Element::F32, Element::I32) => map1(w, s, |a: i32| single(a.into())),
        (Element::F32, Element::U32) => map1(w, s, |a: u32| single(a.into())),
        (Element::F16, Element::F32) => map1(w, s, |a: f32| F16(single(a.into()))),
        (Element::F16, Element::I16) => map1(w, s, |a: i16| F16(single(a.into()))),
        (Element::F16, Element::U16) => map1(w, s, |a: u16| F16(single(a.into()))),
        _ => return false,
    }
    true
}

/// The multiply-add instructions that are not fused: f32 and f16 denormals count as zero wherever they
/// appear, whatever MODE says (LLVM, SIISelLowering.cpp, isFMADLegal; CDNA4 ISA guide, V_MAD_F16).
pub(super) fn multiply_add(w: &mut Wave, s: &Step, calc: Calc, element: Element) {
    let rounder = Rounder::new(w, element);
    let least = if element == Element::F16 { 2.0f32.powi(-14) } else { f32::MIN_POSITIVE };
    let small = |v: f32| if v.abs() < least { 0.0f32.copysign(v) } else { v };
    let step = |a: f32, b: f32, c: f32| -> f32 {
        let (a, b, c) = (small(a), small(b), small(c));
        let vanishes = calc == Calc::MulAddLegacy && (a == 0.0 || b == 0.0);
        let product = if vanishes { 0.0 } else { rounder.product(a.into(), b.into()) };
        small(rounder.sum(small(product as f32).into(), c.into()) as f32)
    };
    if element == Element::F16 {
        map3(w, s, |a: F16, b: F16, c: F16| F16(step(a.0, b.0, c.0)));
    } else if w.mode & ROUND_32 == 0 {
        map3(w, s, |a: f32, b: f32, c: f32| {
            let (a, b, c) = (flush(a), flush(b), flush(c));
            let vanishes = calc == Calc::MulAddLegacy && (a == 0.0 || b == 0.0);
            flush(flush(if vanishes { 0.0 } else { a * b }) + c)
        });
    } else {
        map3(w, s, step);
    }
}
