//! Integer vector instructions with the clamp bit: results saturate to the range of their type.

use crate::codegen::isa::{Calc, Element};

use super::super::program::Step;
use super::super::wave::Wave;
use super::lanes::{Lane, map2, map3};

/// A type whose sums and products are far from overflowing an i128.
trait Integer: Lane {
    const LEAST: i128;
    const LARGEST: i128;
    fn wide(self) -> i128;
    /// From a value in range.
    fn narrow(value: i128) -> Self;
}

macro_rules! integers {
    ($($type:ident)*) => {$(
        impl Integer for $type {
            const LEAST: i128 = $type::MIN as i128;
            const LARGEST: i128 = $type::MAX as i128;
            fn wide(self) -> i128 {
                self.into()
            }
            fn narrow(value: i128) -> $type {
                value as $type
            }
        }
    )*};
}

integers! { u16 i16 u32 i32 }

fn clamped<T: Integer>(value: i128) -> T {
    T::narrow(value.clamp(T::LEAST, T::LARGEST))
}

/// Executes an operation whose result saturates (CDNA4 ISA guide, "Supports saturation"); false for all
/// others, on which the clamp bit has no effect.
pub(super) fn calculate(w: &mut Wave, s: &Step, calc: Calc, element: Element) -> bool {
    match element {
        Element::U16 => typed::<u16>(w, s, calc),
        Element::I16 => typed::<i16>(w, s, calc),
        Element::I32 => typed::<i32>(w, s, calc),
        Element::U32 => calc != Calc::Mul && typed::<u32>(w, s, calc),
        Element::I24 => narrow_factors::<i32>(w, s, calc, |v| i128::from((v << 8) as i32 >> 8)),
        Element::U24 => narrow_factors::<u32>(w, s, calc, |v| i128::from(v & 0xff_ffff)),
        _ => false,
    }
}

fn typed<T: Integer>(w: &mut Wave, s: &Step, calc: Calc) -> bool {
    match calc {
        Calc::Add => map2(w, s, |a: T, b: T| clamped::<T>(a.wide() + b.wide())),
        Calc::Sub => map2(w, s, |a: T, b: T| clamped::<T>(a.wide() - b.wide())),
        Calc::SubRev => map2(w, s, |a: T, b: T| clamped::<T>(b.wide() - a.wide())),
        Calc::Mul => map2(w, s, |a: T, b: T| clamped::<T>(a.wide() * b.wide())),
        Calc::MulAdd => map3(w, s, |a: T, b: T, c: T| clamped::<T>(a.wide() * b.wide() + c.wide())),
        _ => return false,
    }
    true
}

fn narrow_factors<T: Integer>(w: &mut Wave, s: &Step, calc: Calc, factor: fn(u32) -> i128) -> bool {
    match calc {
        Calc::Mul => map2(w, s, |a: u32, b: u32| clamped::<T>(factor(a) * factor(b))),
        Calc::MulAdd => map3(w, s, |a: u32, b: u32, c: T| clamped::<T>(factor(a) * factor(b) + c.wide())),
        _ => return false,
    }
    true
}
