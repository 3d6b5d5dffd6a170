//! What is known of the elements of a value beyond the end of a dimension, and what element-wise operations
//! make of it.

use smallvec::{SmallVec, smallvec};

use crate::ir::constant::Constant;
use crate::ir::interpreter::constants::{self, ConstantElement};
use crate::ir::node::*;
use crate::ir::types::DType;

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Padding {
    /// One number, by its bits.
    Known(u64),
    /// Zero, of either sign.
    Zero,
    /// Numbers that are not infinite.
    Finite,
    /// Anything, also infinities and NaN.
    Anything,
}

/// Functions that are not exact are off by less than this makes infinite in any dtype.
const MODERATE: f64 = 1e4;

impl Padding {
    /// What is true of every element of a dtype: integers, and floats of 4 and 6 bits, are finite.
    pub(super) fn of_dtype(dtype: DType) -> Padding {
        match dtype.is_float() && dtype.packing().is_none() {
            true => Padding::Anything,
            false => Padding::Finite,
        }
    }

    pub(super) fn is_zero(self, dtype: DType) -> bool {
        match self {
            Padding::Known(bits) => constants::number((bits, dtype)) == Some(0.0),
            Padding::Zero => true,
            Padding::Finite | Padding::Anything => false,
        }
    }

    pub(super) fn is_finite(self, dtype: DType) -> bool {
        match self {
            Padding::Known(bits) => constants::number((bits, dtype)).is_some_and(f64::is_finite),
            Padding::Zero | Padding::Finite => true,
            Padding::Anything => false,
        }
    }

    /// The numbers that it can be, if these are few.
    fn candidates(self, dtype: DType) -> Option<SmallVec<[u64; 2]>> {
        match self {
            Padding::Known(bits) => Some(smallvec![bits]),
            Padding::Zero if dtype.is_float() => {
                [0.0, -0.0].into_iter().map(|zero| Constant::Float(zero).bits(dtype).ok()).collect()
            }
            Padding::Zero => Some(smallvec![0]),
            Padding::Finite | Padding::Anything => None,
        }
    }

    /// What is true of both.
    fn joined(self, other: Padding, dtype: DType) -> Padding {
        let both = |is: fn(Padding, DType) -> bool| is(self, dtype) && is(other, dtype);
        if self == other {
            self
        } else if both(Padding::is_zero) {
            Padding::Zero
        } else if both(Padding::is_finite) {
            Padding::Finite
        } else {
            Padding::of_dtype(dtype)
        }
    }
}

/// What an element-wise operation makes of its operands, as elements of `to`.
pub(super) fn made(op: Op, operands: &[(Padding, DType)], to: DType) -> Padding {
    if let Some(known) = of_candidates(op, operands, to) {
        return known;
    }
    let finite = |at: usize| operands.get(at).is_some_and(|&(padding, dtype)| padding.is_finite(dtype));
    let zero = |at: usize| operands.get(at).is_some_and(|&(padding, dtype)| padding.is_zero(dtype));
    let zero_product = (zero(0) && finite(1)) || (finite(0) && zero(1));
    let is_known = |at: usize, wanted: u64| {
        operands.get(at).is_some_and(|&(padding, _)| padding == Padding::Known(wanted))
    };
    let is = |holds: bool, padding: Padding| if holds { padding } else { Padding::of_dtype(to) };
    if let Op::Binary(op) = op {
        match (op, to) {
            (BinaryOp::Mul, _) => is(zero_product, Padding::Zero),
            (BinaryOp::Add | BinaryOp::Sub, _) => is(zero_product, Padding::Finite),
            (BinaryOp::Min | BinaryOp::Max, _) => is(finite(0) && finite(1), Padding::Finite),
            (BinaryOp::And, _) => is(is_known(0, 0) || is_known(1, 0), Padding::Known(0)),
            (BinaryOp::Or, DType::I1) => is(is_known(0, 1) || is_known(1, 1), Padding::Known(1)),
            // Nothing is known of others but their dtype.
            _ => Padding::of_dtype(to),
        }
    } else if let Op::Ternary(TernaryOp::Fma) = op {
        match zero(2) {
            true => is(zero_product, Padding::Zero),
            false => is(zero_product && finite(2), Padding::Finite),
        }
    } else if let Op::Unary(op) = op {
        is(finite(0) && BOUNDED.contains(&op), Padding::Finite)
    } else if let Op::Convert(Conversion::Cast) = op {
        let holds = |&(_, from): &(Padding, DType)| Some(largest(from)? <= largest(to)?);
        is(finite(0) && operands.first().and_then(holds) == Some(true), Padding::Finite)
    } else if let Op::Select = op {
        match operands {
            [(Padding::Known(0), _), _, (no, _)] => *no,
            [(Padding::Known(_), _), (yes, _), _] => *yes,
            [_, (yes, _), (no, _)] => yes.joined(*no, to),
            _ => Padding::of_dtype(to),
        }
    } else {
        Padding::of_dtype(to)
    }
}

/// Functions that are finite where their operand is.
const BOUNDED: [UnaryOp; 12] = [
    UnaryOp::Neg,
    UnaryOp::Abs,
    UnaryOp::Floor,
    UnaryOp::Ceil,
    UnaryOp::Trunc,
    UnaryOp::RoundEven,
    UnaryOp::Round,
    UnaryOp::Tanh,
    UnaryOp::Sin,
    UnaryOp::Cos,
    UnaryOp::Erf,
    UnaryOp::Sigmoid,
];

/// What an operation makes of operands that can be few numbers: the interpreter tells it of each.
fn of_candidates(op: Op, operands: &[(Padding, DType)], to: DType) -> Option<Padding> {
    let mut cases: SmallVec<[SmallVec<[ConstantElement; 3]>; 4]> = smallvec![SmallVec::new()];
    for &(padding, dtype) in operands {
        let candidates = padding.candidates(dtype)?;
        let with = |case: &SmallVec<[ConstantElement; 3]>| {
            let case = case.clone();
            candidates.clone().into_iter().map(move |bits| {
                let mut longer = case.clone();
                longer.push((bits, dtype));
                longer
            })
        };
        cases = cases.iter().flat_map(with).collect();
    }
    let made = cases.iter().map(|case| constants::element(op, case, to));
    let made: SmallVec<[u64; 8]> = made.collect::<Option<_>>()?;
    let numbers: Option<SmallVec<[f64; 8]>> =
        made.iter().map(|&bits| constants::number((bits, to))).collect();
    let numbers = numbers?;
    let first = *made.first()?;
    let is_exact = op.row().exactness.is_of(to);
    Some(if is_exact && made.iter().all(|&bits| bits == first) {
        Padding::Known(first)
    } else if is_exact && numbers.iter().all(|&number| number == 0.0) {
        Padding::Zero
    } else if numbers
        .iter()
        .all(|number| if is_exact { number.is_finite() } else { number.abs() <= MODERATE })
    {
        Padding::Finite
    } else {
        Padding::of_dtype(to)
    })
}

/// The largest number of a dtype, roughly; nothing of one that has no zero.
fn largest(dtype: DType) -> Option<f64> {
    Some(match dtype {
        DType::I1 | DType::F4E2M1 | DType::F6E2M3 | DType::F6E3M2 => 28.0,
        DType::I8 => 128.0,
        DType::F8E4M3Fnuz => 240.0,
        DType::F8E4M3Fn => 448.0,
        DType::I16 => 32768.0,
        DType::F8E5M2 | DType::F8E5M2Fnuz => 57344.0,
        DType::F16 => 65504.0,
        DType::I32 => 2f64.powi(31),
        DType::I64 => 2f64.powi(63),
        DType::Bf16 => 3.39e38,
        DType::F32 => 3.40e38,
        DType::F64 => f64::MAX,
        DType::F8E8M0 => return None,
    })
}
