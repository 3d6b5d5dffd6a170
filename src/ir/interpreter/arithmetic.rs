//! What one element-wise operation does to one dtype. f16 and bf16 compute in f32 and round once; integers wrap.

use super::tensor::Data;
use crate::float16::{bf16, f16};
use crate::ir::node::{BinaryOp, Predicate, UnaryOp};
use crate::ir::types::DType;

/// A fault in words, for the caller to anchor.
pub(super) type Refusal = String;

fn unary_f32(op: UnaryOp, x: f32) -> f32 {
    match op {
        UnaryOp::Neg => -x,
        UnaryOp::Abs => x.abs(),
        // Through f64, so that the f32 result is the nearest one but for the rarest ties.
        UnaryOp::Exp => f64::from(x).exp() as f32,
        UnaryOp::Exp2 => f64::from(x).exp2() as f32,
        UnaryOp::Log2 => f64::from(x).log2() as f32,
        UnaryOp::Sqrt => x.sqrt(),
        UnaryOp::Reciprocal => 1.0 / x,
        UnaryOp::Tanh => f64::from(x).tanh() as f32,
    }
}

fn binary_f32(op: BinaryOp, x: f32, y: f32) -> f32 {
    match op {
        BinaryOp::Add => x + y,
        BinaryOp::Sub => x - y,
        BinaryOp::Mul => x * y,
        BinaryOp::Div => x / y,
        BinaryOp::Min | BinaryOp::Max if x.is_nan() => y,
        BinaryOp::Min | BinaryOp::Max if y.is_nan() => x,
        // The total order of numbers puts -0 below +0.
        BinaryOp::Min => std::cmp::min_by(x, y, f32::total_cmp),
        BinaryOp::Max => std::cmp::max_by(x, y, f32::total_cmp),
    }
}

fn compare<T: PartialOrd>(predicate: Predicate, x: T, y: T) -> bool {
    match predicate {
        Predicate::Eq => x == y,
        Predicate::Ne => x != y,
        Predicate::Lt => x < y,
        Predicate::Le => x <= y,
        Predicate::Gt => x > y,
        Predicate::Ge => x >= y,
    }
}

/// `None` for what integers lack.
macro_rules! integer_arithmetic {
    ($unary:ident, $binary:ident, $type:ty) => {
        fn $unary(op: UnaryOp) -> Option<fn($type) -> $type> {
            match op {
                UnaryOp::Neg => Some(<$type>::wrapping_neg),
                UnaryOp::Abs => Some(<$type>::wrapping_abs),
                UnaryOp::Exp
                | UnaryOp::Exp2
                | UnaryOp::Log2
                | UnaryOp::Sqrt
                | UnaryOp::Reciprocal
                | UnaryOp::Tanh => None,
            }
        }

        fn $binary(op: BinaryOp, x: $type, y: $type) -> $type {
            match op {
                BinaryOp::Add => x.wrapping_add(y),
                BinaryOp::Sub => x.wrapping_sub(y),
                BinaryOp::Mul => x.wrapping_mul(y),
                BinaryOp::Div if y == 0 => 0,
                BinaryOp::Div => x.wrapping_div(y),
                BinaryOp::Min => x.min(y),
                BinaryOp::Max => x.max(y),
            }
        }
    };
}

integer_arithmetic!(unary_i32, binary_i32, i32);
integer_arithmetic!(unary_i8, binary_i8, i8);

fn zip<T: Copy, U>(x: &[T], y: &[T], f: impl Fn(T, T) -> U) -> Vec<U> {
    x.iter().zip(y).map(|(&x, &y)| f(x, y)).collect()
}

/// One operand, per element.
pub(super) fn unary(op: UnaryOp, x: &Data) -> Result<Data, Refusal> {
    let refusal = || format!("{} is not defined for {}", name(UnaryOp::NAMES, op), x.dtype());
    Ok(match x {
        Data::F32(v) => Data::F32(v.iter().map(|&x| unary_f32(op, x)).collect()),
        Data::F16(v) => Data::F16(v.iter().map(|&x| f16::from_f32(unary_f32(op, x.to_f32()))).collect()),
        Data::Bf16(v) => Data::Bf16(v.iter().map(|&x| bf16::from_f32(unary_f32(op, x.to_f32()))).collect()),
        Data::I32(v) => Data::I32(v.iter().copied().map(unary_i32(op).ok_or_else(refusal)?).collect()),
        Data::I8(v) => Data::I8(v.iter().copied().map(unary_i8(op).ok_or_else(refusal)?).collect()),
        Data::I1(_) => return Err(refusal()),
    })
}

/// Two operands of one length, per pair.
pub(super) fn binary(op: BinaryOp, x: &Data, y: &Data) -> Result<Data, Refusal> {
    Ok(match (x, y) {
        (Data::F32(x), Data::F32(y)) => Data::F32(zip(x, y, |x, y| binary_f32(op, x, y))),
        (Data::F16(x), Data::F16(y)) => {
            Data::F16(zip(x, y, |x, y| f16::from_f32(binary_f32(op, x.to_f32(), y.to_f32()))))
        }
        (Data::Bf16(x), Data::Bf16(y)) => {
            Data::Bf16(zip(x, y, |x, y| bf16::from_f32(binary_f32(op, x.to_f32(), y.to_f32()))))
        }
        (Data::I32(x), Data::I32(y)) => Data::I32(zip(x, y, |x, y| binary_i32(op, x, y))),
        (Data::I8(x), Data::I8(y)) => Data::I8(zip(x, y, |x, y| binary_i8(op, x, y))),
        (x, y) => return Err(mismatch(name(BinaryOp::NAMES, op), x, y)),
    })
}

/// Comparison of two operands of one length, per pair.
pub(super) fn comparison(predicate: Predicate, x: &Data, y: &Data) -> Result<Data, Refusal> {
    Ok(Data::I1(match (x, y) {
        (Data::F32(x), Data::F32(y)) => zip(x, y, |x, y| compare(predicate, x, y)),
        (Data::F16(x), Data::F16(y)) => zip(x, y, |x, y| compare(predicate, x, y)),
        (Data::Bf16(x), Data::Bf16(y)) => zip(x, y, |x, y| compare(predicate, x, y)),
        (Data::I32(x), Data::I32(y)) => zip(x, y, |x, y| compare(predicate, x, y)),
        (Data::I8(x), Data::I8(y)) => zip(x, y, |x, y| compare(predicate, x, y)),
        (x, y) => return Err(mismatch(name(Predicate::NAMES, predicate), x, y)),
    }))
}

/// `yes` where the condition holds, `no` elsewhere; three operands of one length.
pub(super) fn select(condition: &Data, yes: &Data, no: &Data) -> Result<Data, Refusal> {
    fn pick<T: Copy>(condition: &[bool], yes: &[T], no: &[T]) -> Vec<T> {
        condition.iter().zip(yes.iter().zip(no)).map(|(&c, (&y, &n))| if c { y } else { n }).collect()
    }
    let Data::I1(c) = condition else {
        return Err(format!("the condition of select is {}, not i1", condition.dtype()));
    };
    Ok(match (yes, no) {
        (Data::F32(y), Data::F32(n)) => Data::F32(pick(c, y, n)),
        (Data::F16(y), Data::F16(n)) => Data::F16(pick(c, y, n)),
        (Data::Bf16(y), Data::Bf16(n)) => Data::Bf16(pick(c, y, n)),
        (Data::I32(y), Data::I32(n)) => Data::I32(pick(c, y, n)),
        (Data::I8(y), Data::I8(n)) => Data::I8(pick(c, y, n)),
        (Data::I1(y), Data::I1(n)) => Data::I1(pick(c, y, n)),
        (y, n) => return Err(mismatch("select", y, n)),
    })
}

/// Numeric conversion. Floats to integers truncate and saturate, NaN gives 0; integers to narrower ones wrap; everything
/// else is exact or rounds to nearest even, and f16 and bf16 are reached through f32.
pub(super) fn cast(x: &Data, to: DType) -> Result<Data, Refusal> {
    if to == DType::I1 {
        return Err(format!("{} cannot be cast to i1", x.dtype()));
    }
    Ok(match x {
        Data::F32(v) => from_floats(v.iter().copied(), to),
        Data::F16(v) => from_floats(v.iter().map(|x| x.to_f32()), to),
        Data::Bf16(v) => from_floats(v.iter().map(|x| x.to_f32()), to),
        Data::I32(v) => from_integers(v.iter().copied(), to),
        Data::I8(v) => from_integers(v.iter().map(|&x| i32::from(x)), to),
        Data::I1(v) => from_integers(v.iter().map(|&x| i32::from(x)), to),
    })
}

fn from_floats(values: impl Iterator<Item = f32>, to: DType) -> Data {
    match to {
        DType::F32 => Data::F32(values.collect()),
        DType::F16 => Data::F16(values.map(f16::from_f32).collect()),
        DType::Bf16 => Data::Bf16(values.map(bf16::from_f32).collect()),
        DType::I32 => Data::I32(values.map(|x| x as i32).collect()),
        DType::I8 => Data::I8(values.map(|x| x as i8).collect()),
        DType::I1 => Data::I1(values.map(|x| x != 0.0).collect()),
    }
}

fn from_integers(values: impl Iterator<Item = i32>, to: DType) -> Data {
    match to {
        DType::I32 => Data::I32(values.collect()),
        DType::I8 => Data::I8(values.map(|x| x as i8).collect()),
        _ => from_floats(values.map(|x| x as f32), to),
    }
}

fn mismatch(what: &str, x: &Data, y: &Data) -> Refusal {
    if x.dtype() == y.dtype() {
        format!("{what} is not defined for {}", x.dtype())
    } else {
        format!("{what} of {} and {}: its operands must have one dtype", x.dtype(), y.dtype())
    }
}

fn name<T: PartialEq>(names: &[(T, &'static str)], op: T) -> &'static str {
    names.iter().find(|row| row.0 == op).map_or("?", |row| row.1)
}
