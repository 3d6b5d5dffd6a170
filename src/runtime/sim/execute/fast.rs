//! The fast path for frequent lane-wise operations of 32 bits.
//!
//! Which operation a step is follows from the step alone, so it is determined when code is decoded: a row of
//! the table below, no modifiers, a vector register as the result. Sources are read in place, one result row
//! is on the stack, and all operations share one function with a small frame. [`valu`](super::valu) computes
//! the same for everything else (a test compares the two); there the frame alone, which is touched page by
//! page, costs more than 64 additions.

use crate::codegen::isa::{Calc, Element, Meaning, Modifiers};

use super::super::program::{OperandPlace, Step};
use super::super::wave::{LANES, VectorRow, Wave};

/// Bits of the MODE register that must have the value [`USUAL`]: the round mode and the denormals of f32,
/// relative addressing of VGPRs, skipping of vector instructions.
const MODE: u32 = 0x1800_0033;
/// To nearest even, denormals kept, neither of the others.
const USUAL: u32 = 0x30;

macro_rules! operations {
    ($($name:ident = $calc:pat, $elements:pat => |$($source:ident),+| $result:expr;)*) => {
        /// An operation that has a fast path.
        #[derive(Copy, Clone, PartialEq, Eq, Debug)]
        pub(in super::super) enum Fast {
            /// None: the general path.
            None,
            $($name,)*
        }

        /// Operation of a row of the table.
        fn operation(calc: Calc, element: Element) -> Fast {
            use Calc::*;
            use Element::*;
            match (calc, element) {
                $(($calc, $elements) => Fast::$name,)*
                _ => Fast::None,
            }
        }

        /// Result of an operation.
        #[inline(always)]
        fn compute(fast: Fast, sources: [&VectorRow; 3], out: &mut VectorRow) {
            let [a, b, c] = sources;
            match fast {
                Fast::None => {}
                $(Fast::$name => {
                    operations!(@loop out, a, b, c, |$($source),+| $result);
                })*
            }
        }
    };
    (@loop $out:ident, $a:ident, $b:ident, $c:ident, |$x:ident| $result:expr) => {
        for l in 0..LANES {
            let $x = $a[l];
            $out[l] = $result;
        }
    };
    (@loop $out:ident, $a:ident, $b:ident, $c:ident, |$x:ident, $y:ident| $result:expr) => {
        for l in 0..LANES {
            let ($x, $y) = ($a[l], $b[l]);
            $out[l] = $result;
        }
    };
    (@loop $out:ident, $a:ident, $b:ident, $c:ident, |$x:ident, $y:ident, $z:ident| $result:expr) => {
        for l in 0..LANES {
            let ($x, $y, $z) = ($a[l], $b[l], $c[l]);
            $out[l] = $result;
        }
    };
}

/// f32 of these bits.
#[inline(always)]
fn f(bits: u32) -> f32 {
    f32::from_bits(bits)
}

operations! {
    AddF32 = Add, F32 => |a, b| (f(a) + f(b)).to_bits();
    SubF32 = Sub, F32 => |a, b| (f(a) - f(b)).to_bits();
    SubRevF32 = SubRev, F32 => |a, b| (f(b) - f(a)).to_bits();
    MulF32 = Mul, F32 => |a, b| (f(a) * f(b)).to_bits();
    FmaF32 = Fma, F32 => |a, b, c| f(a).mul_add(f(b), f(c)).to_bits();
    Move = Mov, B32 | U32 | I32 => |a| a;
    Not = Calc::Not, B32 | U32 | I32 => |a| !a;
    And = Calc::And, B32 | U32 | I32 => |a, b| a & b;
    Or = Calc::Or, B32 | U32 | I32 => |a, b| a | b;
    Xor = Calc::Xor, B32 | U32 | I32 => |a, b| a ^ b;
    AndOr = Calc::AndOr, B32 | U32 | I32 => |a, b, c| a & b | c;
    Or3 = Calc::Or3, B32 | U32 | I32 => |a, b, c| a | b | c;
    BitFieldInsert = Calc::BitFieldInsert, B32 | U32 | I32 => |a, b, c| a & b | !a & c;
    Add = Calc::Add, U32 | I32 => |a, b| a.wrapping_add(b);
    Sub = Calc::Sub, U32 | I32 => |a, b| a.wrapping_sub(b);
    SubRev = Calc::SubRev, U32 | I32 => |a, b| b.wrapping_sub(a);
    Add3 = Calc::Add3, U32 | I32 => |a, b, c| a.wrapping_add(b).wrapping_add(c);
    Mul = Calc::Mul, U32 | I32 => |a, b| a.wrapping_mul(b);
    MulU24 = Calc::Mul, U24 => |a, b| (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff);
    MulAddU24 = MulAdd, U24 => |a, b, c| (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff).wrapping_add(c);
    MinI32 = Min, I32 => |a, b| (a as i32).min(b as i32) as u32;
    MaxI32 = Max, I32 => |a, b| (a as i32).max(b as i32) as u32;
    MinU32 = Min, U32 => |a, b| a.min(b);
    MaxU32 = Max, U32 => |a, b| a.max(b);
    ShiftLeft = ShiftLeftRev, B32 | U32 | I32 => |a, b| b << (a & 31);
    ShiftRightI32 = ShiftRightRev, I32 => |a, b| ((b as i32) >> (a & 31)) as u32;
    ShiftRight = ShiftRightRev, B32 | U32 => |a, b| b >> (a & 31);
    ShiftLeftAdd = Calc::ShiftLeftAdd, B32 | U32 | I32 => |a, b, c| (a << (b & 31)).wrapping_add(c);
    AddShiftLeft = Calc::AddShiftLeft, B32 | U32 | I32 => |a, b, c| a.wrapping_add(b) << (c & 31);
    ShiftLeftOr = Calc::ShiftLeftOr, B32 | U32 | I32 => |a, b, c| a << (b & 31) | c;
    BitFieldExtract = Calc::BitFieldExtract, B32 | U32 => |a, b, c| a >> (b & 31) & ((1u32 << (c & 31)) - 1);
}

impl Fast {
    /// The fast path of a step, if there is one.
    pub(crate) fn of(step: &Step, meaning: Meaning) -> Fast {
        match meaning {
            Meaning::Vector(calc, element)
                if step.modifiers == Modifiers::new() && step.operands[0].row().is_some() =>
            {
                operation(calc, element)
            }
            _ => Fast::None,
        }
    }

    /// True if the fast path may be used now.
    #[inline(always)]
    pub(crate) fn usable(self, w: &Wave) -> bool {
        self != Fast::None && w.mode & MODE == USUAL
    }
}

/// Executes a step (called through [`host`](super::host)).
#[inline(always)]
pub(super) fn vector(w: &mut Wave, s: &Step, fast: Fast) {
    let (splat_a, splat_b, splat_c): (VectorRow, VectorRow, VectorRow);
    let constant = |place: OperandPlace| [w.scalar(place); LANES];
    let a = match s.operands[1] {
        OperandPlace::Row(n) => &w.rows[usize::from(n)],
        place => {
            splat_a = constant(place);
            &splat_a
        }
    };
    let b = match s.operands[2] {
        OperandPlace::Row(n) => &w.rows[usize::from(n)],
        // An operation of one source.
        OperandPlace::None => a,
        place => {
            splat_b = constant(place);
            &splat_b
        }
    };
    let c = match s.operands[if s.accumulates { 0 } else { 3 }] {
        OperandPlace::Row(n) => &w.rows[usize::from(n)],
        OperandPlace::None => a,
        place => {
            splat_c = constant(place);
            &splat_c
        }
    };
    let mut out = [0; LANES];
    compute(fast, [a, b, c], &mut out);
    w.set_lanes(s.operands[0], &out);
}
