//! What one element-wise operation does to one dtype. Floats narrower than f32 compute in f32 and round
//! once; integers wrap.

use std::borrow::Cow;

use super::special;
use super::tensor::{Data, bits_of, data_of};
use crate::float8::{f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0};
use crate::float16::{bf16, f16};
use crate::ir::constant::Constant;
use crate::ir::node::{BinaryOp, Conversion, Predicate, TernaryOp, UnaryOp};
use crate::ir::types::DType;
use crate::small_float::{f4e2m1, f6e2m3, f6e3m2};

/// A fault in words, for the caller to anchor.
pub(super) type ArithmeticFault = String;

/// What a unary operation does to an element; `None` for dtypes that its row does not admit.
struct UnaryMeaning {
    float: Option<fn(f32) -> f32>,
    f64: Option<fn(f64) -> f64>,
    i64: Option<fn(i64) -> i64>,
    i32: Option<fn(i32) -> i32>,
    i16: Option<fn(i16) -> i16>,
    i8: Option<fn(i8) -> i8>,
    i1: Option<fn(bool) -> bool>,
}

/// The meaning of a function that integers and f64 lack.
const fn of_floats(float: fn(f32) -> f32) -> UnaryMeaning {
    UnaryMeaning { float: Some(float), f64: None, i64: None, i32: None, i16: None, i8: None, i1: None }
}

/// The meaning of an operation that integers lack.
const fn of_all_floats(float: fn(f32) -> f32, f64: fn(f64) -> f64) -> UnaryMeaning {
    UnaryMeaning { f64: Some(f64), ..of_floats(float) }
}

/// The meaning of an operation whose integer versions differ only in width.
macro_rules! of_signed {
    ($float:expr, $f64:expr, |$x:ident| $integer:expr) => {
        UnaryMeaning {
            float: Some($float),
            f64: Some($f64),
            i64: Some(|$x| $integer),
            i32: Some(|$x| $integer),
            i16: Some(|$x| $integer),
            i8: Some(|$x| $integer),
            i1: None,
        }
    };
}

/// Functions go through f64, so that the f32 result is the nearest one except for very rare ties.
fn unary_meaning(op: UnaryOp) -> UnaryMeaning {
    match op {
        UnaryOp::Neg => of_signed!(|x| -x, |x| -x, |x| x.wrapping_neg()),
        UnaryOp::Abs => of_signed!(f32::abs, f64::abs, |x| x.wrapping_abs()),
        UnaryOp::Exp => of_floats(|x| f64::from(x).exp() as f32),
        UnaryOp::Exp2 => of_floats(|x| f64::from(x).exp2() as f32),
        UnaryOp::Log2 => of_floats(|x| f64::from(x).log2() as f32),
        UnaryOp::Sqrt => of_all_floats(f32::sqrt, f64::sqrt),
        UnaryOp::Reciprocal => of_all_floats(|x| 1.0 / x, |x| 1.0 / x),
        UnaryOp::Tanh => of_floats(|x| f64::from(x).tanh() as f32),
        UnaryOp::Floor => of_all_floats(f32::floor, f64::floor),
        UnaryOp::Ceil => of_all_floats(f32::ceil, f64::ceil),
        UnaryOp::Trunc => of_all_floats(f32::trunc, f64::trunc),
        UnaryOp::RoundEven => of_all_floats(f32::round_ties_even, f64::round_ties_even),
        UnaryOp::Round => of_all_floats(f32::round, f64::round),
        UnaryOp::Rsqrt => of_floats(|x| (1.0 / f64::from(x).sqrt()) as f32),
        UnaryOp::Cbrt => of_floats(|x| f64::from(x).cbrt() as f32),
        UnaryOp::Log => of_floats(|x| f64::from(x).ln() as f32),
        UnaryOp::Log10 => of_floats(|x| f64::from(x).log10() as f32),
        UnaryOp::Log1p => of_floats(|x| f64::from(x).ln_1p() as f32),
        UnaryOp::Expm1 => of_floats(|x| f64::from(x).exp_m1() as f32),
        UnaryOp::Sin => of_floats(|x| f64::from(x).sin() as f32),
        UnaryOp::Cos => of_floats(|x| f64::from(x).cos() as f32),
        UnaryOp::Sinh => of_floats(|x| f64::from(x).sinh() as f32),
        UnaryOp::Cosh => of_floats(|x| f64::from(x).cosh() as f32),
        UnaryOp::Erf => of_floats(|x| special::erf(f64::from(x)) as f32),
        UnaryOp::Sigmoid => of_floats(|x| special::sigmoid(f64::from(x)) as f32),
        UnaryOp::Silu => {
            of_floats(|x| special::weighted(f64::from(x), special::sigmoid(f64::from(x))) as f32)
        }
        UnaryOp::Gelu => of_floats(|x| special::gelu(f64::from(x)) as f32),
        UnaryOp::GeluTanh => of_floats(|x| special::gelu_tanh(f64::from(x)) as f32),
        UnaryOp::Not => {
            UnaryMeaning { float: None, f64: None, i1: Some(|x| !x), ..of_signed!(|x| x, |x| x, |x| !x) }
        }
    }
}

/// The meaning of an operation that only floats have.
const fn of_float_pairs(float: fn(f32, f32) -> f32) -> BinaryMeaning {
    BinaryMeaning { float: Some(float), f64: None, i64: None, i32: None, i16: None, i8: None, i1: None }
}

/// What a binary operation does to a pair of elements; `None` for dtypes that its row does not admit.
struct BinaryMeaning {
    float: Option<fn(f32, f32) -> f32>,
    f64: Option<fn(f64, f64) -> f64>,
    i64: Option<fn(i64, i64) -> i64>,
    i32: Option<fn(i32, i32) -> i32>,
    i16: Option<fn(i16, i16) -> i16>,
    i8: Option<fn(i8, i8) -> i8>,
    i1: Option<fn(bool, bool) -> bool>,
}

/// The meaning of an operation whose integer versions differ only in width.
macro_rules! of_numbers {
    ($float:expr, $f64:expr, |$x:ident, $y:ident| $integer:expr) => {
        BinaryMeaning { float: Some($float), f64: Some($f64), ..of_integers!(|$x, $y| $integer) }
    };
}

/// The meaning of an operation that floats and conditions lack.
macro_rules! of_integers {
    (|$x:ident, $y:ident| $integer:expr) => {
        BinaryMeaning {
            float: None,
            f64: None,
            i64: Some(|$x, $y| $integer),
            i32: Some(|$x, $y| $integer),
            i16: Some(|$x, $y| $integer),
            i8: Some(|$x, $y| $integer),
            i1: None,
        }
    };
}

/// The meaning of an operation on bits.
macro_rules! of_bits {
    (|$x:ident, $y:ident| $bits:expr) => {
        BinaryMeaning { i1: Some(|$x, $y| $bits), ..of_integers!(|$x, $y| $bits) }
    };
}

/// Quotient rounded down, of integers of any width.
macro_rules! floored {
    ($x:ident, $y:ident) => {
        if $y == 0 {
            0
        } else {
            let towards_zero = $x.wrapping_div($y);
            let above = $x.wrapping_rem($y) != 0 && ($x < 0) != ($y < 0);
            if above { towards_zero - 1 } else { towards_zero }
        }
    };
}

fn binary_meaning(op: BinaryOp) -> BinaryMeaning {
    match op {
        BinaryOp::Add => of_numbers!(|x, y| x + y, |x, y| x + y, |x, y| x.wrapping_add(y)),
        BinaryOp::Sub => of_numbers!(|x, y| x - y, |x, y| x - y, |x, y| x.wrapping_sub(y)),
        BinaryOp::Mul => of_numbers!(|x, y| x * y, |x, y| x * y, |x, y| x.wrapping_mul(y)),
        BinaryOp::Div => {
            of_numbers!(|x, y| x / y, |x, y| x / y, |x, y| if y == 0 { 0 } else { x.wrapping_div(y) })
        }
        // In the total order of numbers -0 is below +0.
        BinaryOp::Min => {
            of_numbers!(|x, y| number_of(x, y, lesser), |x, y| number_of(x, y, lesser_f64), |x, y| x.min(y))
        }
        BinaryOp::Max => {
            of_numbers!(|x, y| number_of(x, y, greater), |x, y| number_of(x, y, greater_f64), |x, y| x.max(y))
        }
        BinaryOp::FloorDiv => of_integers!(|x, y| floored!(x, y)),
        BinaryOp::Rem => of_integers!(|x, y| x.wrapping_sub(floored!(x, y).wrapping_mul(y))),
        BinaryOp::Pow => of_float_pairs(|x, y| f64::from(x).powf(y.into()) as f32),
        BinaryOp::Atan2 => of_float_pairs(|y, x| f64::from(y).atan2(x.into()) as f32),
        BinaryOp::And => of_bits!(|x, y| x & y),
        BinaryOp::Or => of_bits!(|x, y| x | y),
        BinaryOp::Xor => of_bits!(|x, y| x ^ y),
        BinaryOp::ShiftLeft => of_integers!(|x, y| x.wrapping_shl(y as u32)),
        BinaryOp::ShiftRight => of_integers!(|x, y| x.wrapping_shr(y as u32)),
    }
}

/// The other operand where one of the two is NaN, which has no order even beside itself.
pub(super) fn number_of<T: PartialOrd + Copy>(x: T, y: T, choose: fn(T, T) -> T) -> T {
    match (x.partial_cmp(&x), y.partial_cmp(&y)) {
        (None, _) => y,
        (_, None) => x,
        _ => choose(x, y),
    }
}

pub(super) fn lesser(x: f32, y: f32) -> f32 {
    std::cmp::min_by(x, y, f32::total_cmp)
}

pub(super) fn greater(x: f32, y: f32) -> f32 {
    std::cmp::max_by(x, y, f32::total_cmp)
}

pub(super) fn lesser_f64(x: f64, y: f64) -> f64 {
    std::cmp::min_by(x, y, f64::total_cmp)
}

pub(super) fn greater_f64(x: f64, y: f64) -> f64 {
    std::cmp::max_by(x, y, f64::total_cmp)
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

fn zip<T: Copy, U>(x: &[T], y: &[T], f: impl Fn(T, T) -> U) -> Vec<U> {
    x.iter().zip(y).map(|(&x, &y)| f(x, y)).collect()
}

/// The elements of floats as f32, which holds all of them; `None` for f64, integers and conditions.
pub(super) fn widened(x: &Data) -> Option<Cow<'_, [f32]>> {
    Some(match x {
        Data::F32(v) => Cow::Borrowed(v),
        Data::F16(v) => v.iter().map(|x| x.to_f32()).collect(),
        Data::Bf16(v) => v.iter().map(|x| x.to_f32()).collect(),
        Data::F8E4M3Fnuz(v) => v.iter().map(|x| x.to_f32()).collect(),
        Data::F8E5M2Fnuz(v) => v.iter().map(|x| x.to_f32()).collect(),
        Data::F8E4M3Fn(v) => v.iter().map(|x| x.to_f32()).collect(),
        Data::F8E5M2(v) => v.iter().map(|x| x.to_f32()).collect(),
        Data::F8E8M0(v) => v.iter().map(|x| x.to_f32()).collect(),
        Data::F4E2M1(v) => v.iter().map(|x| x.to_f32()).collect(),
        Data::F6E2M3(v) => v.iter().map(|x| x.to_f32()).collect(),
        Data::F6E3M2(v) => v.iter().map(|x| x.to_f32()).collect(),
        Data::F64(_) | Data::I64(_) | Data::I32(_) | Data::I16(_) | Data::I8(_) | Data::I1(_) => return None,
    })
}

/// One operand, element by element.
pub(super) fn unary(op: UnaryOp, x: &Data) -> Result<Data, ArithmeticFault> {
    let refusal = || format!("{} is not defined for {}", op.row().word, x.dtype());
    let UnaryMeaning { float, f64, i64, i32, i16, i8, i1 } = unary_meaning(op);
    Ok(match (x, widened(x)) {
        (_, Some(wide)) => from_floats(wide.iter().copied().map(float.ok_or_else(refusal)?), x.dtype()),
        (Data::F64(v), _) => Data::F64(v.iter().copied().map(f64.ok_or_else(refusal)?).collect()),
        (Data::I64(v), _) => Data::I64(v.iter().copied().map(i64.ok_or_else(refusal)?).collect()),
        (Data::I32(v), _) => Data::I32(v.iter().copied().map(i32.ok_or_else(refusal)?).collect()),
        (Data::I16(v), _) => Data::I16(v.iter().copied().map(i16.ok_or_else(refusal)?).collect()),
        (Data::I8(v), _) => Data::I8(v.iter().copied().map(i8.ok_or_else(refusal)?).collect()),
        (Data::I1(v), _) => Data::I1(v.iter().copied().map(i1.ok_or_else(refusal)?).collect()),
        _ => return Err(refusal()),
    })
}

/// Two operands of the same length, element by element.
pub(super) fn binary(op: BinaryOp, x: &Data, y: &Data) -> Result<Data, ArithmeticFault> {
    let refusal = || mismatch(op.row().word, x, y);
    let BinaryMeaning { float, f64, i64, i32, i16, i8, i1 } = binary_meaning(op);
    if x.dtype() != y.dtype() {
        return Err(refusal());
    }
    Ok(match (x, y, widened(x).zip(widened(y))) {
        (_, _, Some((a, b))) => {
            let float = float.ok_or_else(refusal)?;
            from_floats(a.iter().zip(b.iter()).map(|(&a, &b)| float(a, b)), x.dtype())
        }
        (Data::F64(x), Data::F64(y), _) => Data::F64(zip(x, y, f64.ok_or_else(refusal)?)),
        (Data::I64(x), Data::I64(y), _) => Data::I64(zip(x, y, i64.ok_or_else(refusal)?)),
        (Data::I32(x), Data::I32(y), _) => Data::I32(zip(x, y, i32.ok_or_else(refusal)?)),
        (Data::I16(x), Data::I16(y), _) => Data::I16(zip(x, y, i16.ok_or_else(refusal)?)),
        (Data::I8(x), Data::I8(y), _) => Data::I8(zip(x, y, i8.ok_or_else(refusal)?)),
        (Data::I1(x), Data::I1(y), _) => Data::I1(zip(x, y, i1.ok_or_else(refusal)?)),
        _ => return Err(refusal()),
    })
}

/// The product of two f16 is exact in f64. So that the sum is as good as exact, too, when it is rounded to
/// f16, its last bit is set where it is not: the error of a sum of two numbers is found by Knuth's algorithm.
fn fma_of_halves(x: f16, y: f16, z: f16) -> f16 {
    let (product, z) = (x.to_f64() * y.to_f64(), z.to_f64());
    let sum = product + z;
    let of_z = sum - product;
    let error = (product - (sum - of_z)) + (z - of_z);
    let is_exact = error == 0.0 || !sum.is_finite() || sum.to_bits() & 1 == 1;
    let odd = match is_exact {
        true => sum.to_bits(),
        false if (error > 0.0) == (sum > 0.0) => sum.to_bits() + 1,
        false => sum.to_bits() - 1,
    };
    f16::from_f64(f64::from_bits(odd))
}

/// What a ternary operation does to three elements: of f16 and f64, and of other floats as f32.
struct TernaryMeaning {
    float: fn(f32, f32, f32) -> f32,
    f16: fn(f16, f16, f16) -> f16,
    f64: fn(f64, f64, f64) -> f64,
}

fn ternary_meaning(op: TernaryOp) -> TernaryMeaning {
    match op {
        TernaryOp::Fma => TernaryMeaning { float: f32::mul_add, f16: fma_of_halves, f64: f64::mul_add },
    }
}

/// Three operands of the same length, element by element.
pub(super) fn ternary(op: TernaryOp, x: &Data, y: &Data, z: &Data) -> Result<Data, ArithmeticFault> {
    let of = ternary_meaning(op);
    if let (Data::F16(x), Data::F16(y), Data::F16(z)) = (x, y, z) {
        let results = x.iter().zip(y).zip(z).map(|((&x, &y), &z)| (of.f16)(x, y, z));
        return Ok(Data::F16(results.collect()));
    }
    if let (Data::F64(x), Data::F64(y), Data::F64(z)) = (x, y, z) {
        let results = x.iter().zip(y).zip(z).map(|((&x, &y), &z)| (of.f64)(x, y, z));
        return Ok(Data::F64(results.collect()));
    }
    let differs = [y, z].into_iter().find(|other| other.dtype() != x.dtype()).unwrap_or(y);
    let (Some(a), Some(b), Some(c), true) =
        (widened(x), widened(y), widened(z), differs.dtype() == x.dtype())
    else {
        return Err(mismatch(op.row().word, x, differs));
    };
    let results = a.iter().zip(b.iter()).zip(c.iter()).map(|((&a, &b), &c)| (of.float)(a, b, c));
    Ok(from_floats(results, x.dtype()))
}

/// Comparison of two operands of the same length, element by element.
pub(super) fn comparison(predicate: Predicate, x: &Data, y: &Data) -> Result<Data, ArithmeticFault> {
    if x.dtype() != y.dtype() {
        return Err(mismatch(predicate.word(), x, y));
    }
    Ok(Data::I1(match (x, y, widened(x).zip(widened(y))) {
        (_, _, Some((x, y))) => zip(&x, &y, |x, y| compare(predicate, x, y)),
        (Data::F64(x), Data::F64(y), _) => zip(x, y, |x, y| compare(predicate, x, y)),
        (Data::I64(x), Data::I64(y), _) => zip(x, y, |x, y| compare(predicate, x, y)),
        (Data::I32(x), Data::I32(y), _) => zip(x, y, |x, y| compare(predicate, x, y)),
        (Data::I16(x), Data::I16(y), _) => zip(x, y, |x, y| compare(predicate, x, y)),
        (Data::I8(x), Data::I8(y), _) => zip(x, y, |x, y| compare(predicate, x, y)),
        (x, y, _) => return Err(mismatch(predicate.word(), x, y)),
    }))
}

/// `yes` where the condition holds, `no` elsewhere; three operands of the same length.
pub(super) fn select(condition: &Data, yes: &Data, no: &Data) -> Result<Data, ArithmeticFault> {
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
        (Data::F64(y), Data::F64(n)) => Data::F64(pick(c, y, n)),
        (Data::I64(y), Data::I64(n)) => Data::I64(pick(c, y, n)),
        (Data::I32(y), Data::I32(n)) => Data::I32(pick(c, y, n)),
        (Data::I16(y), Data::I16(n)) => Data::I16(pick(c, y, n)),
        (Data::I8(y), Data::I8(n)) => Data::I8(pick(c, y, n)),
        (Data::F8E4M3Fnuz(y), Data::F8E4M3Fnuz(n)) => Data::F8E4M3Fnuz(pick(c, y, n)),
        (Data::F8E5M2Fnuz(y), Data::F8E5M2Fnuz(n)) => Data::F8E5M2Fnuz(pick(c, y, n)),
        (Data::F8E4M3Fn(y), Data::F8E4M3Fn(n)) => Data::F8E4M3Fn(pick(c, y, n)),
        (Data::F8E5M2(y), Data::F8E5M2(n)) => Data::F8E5M2(pick(c, y, n)),
        (Data::F8E8M0(y), Data::F8E8M0(n)) => Data::F8E8M0(pick(c, y, n)),
        (Data::F4E2M1(y), Data::F4E2M1(n)) => Data::F4E2M1(pick(c, y, n)),
        (Data::F6E2M3(y), Data::F6E2M3(n)) => Data::F6E2M3(pick(c, y, n)),
        (Data::F6E3M2(y), Data::F6E3M2(n)) => Data::F6E3M2(pick(c, y, n)),
        (Data::I1(_), Data::I1(_)) => {
            return Err("select takes numbers, and these are conditions".to_owned());
        }
        (y, n) => return Err(mismatch("select", y, n)),
    })
}

/// A change of dtype.
pub(super) fn convert(op: Conversion, x: &Data, to: DType) -> Result<Data, ArithmeticFault> {
    match op {
        Conversion::Cast => cast(x, to),
        Conversion::Bitcast => bitcast(x, to),
    }
}

/// The same bits as elements of a dtype of the same size.
fn bitcast(x: &Data, to: DType) -> Result<Data, ArithmeticFault> {
    if to == DType::I1 || x.dtype() == DType::I1 || x.dtype().bits() != to.bits() {
        return Err(format!("{} has other bits than {to}", x.dtype()));
    }
    Ok(data_of(to, &bits_of(x)))
}

/// Numeric conversion. Floats to integers truncate and saturate, NaN gives 0; integers to narrower ones wrap;
/// everything else is exact or rounds to nearest even. Floats round once; integers reach floats narrower than
/// f32 through f32.
fn cast(x: &Data, to: DType) -> Result<Data, ArithmeticFault> {
    if to == DType::I1 {
        return Err(format!("{} cannot be cast to i1", x.dtype()));
    }
    Ok(match (x, widened(x)) {
        (_, Some(wide)) => from_floats(wide.iter().copied(), to),
        (Data::F64(v), _) => from_doubles(v, to)?,
        (Data::I64(v), _) => from_long_integers(v, to),
        (Data::I32(v), _) => from_integers(v.iter().copied(), to),
        (Data::I16(v), _) => from_integers(v.iter().map(|&x| i32::from(x)), to),
        (Data::I8(v), _) => from_integers(v.iter().map(|&x| i32::from(x)), to),
        (Data::I1(v), _) => from_integers(v.iter().map(|&x| i32::from(x)), to),
        _ => return Err(format!("{} cannot be cast", x.dtype())),
    })
}

fn from_floats(values: impl Iterator<Item = f32>, to: DType) -> Data {
    match to {
        DType::F32 => Data::F32(values.collect()),
        DType::F16 => Data::F16(values.map(f16::from_f32).collect()),
        DType::Bf16 => Data::Bf16(values.map(bf16::from_f32).collect()),
        DType::F64 => Data::F64(values.map(f64::from).collect()),
        DType::I64 => Data::I64(values.map(|x| x as i64).collect()),
        DType::I32 => Data::I32(values.map(|x| x as i32).collect()),
        DType::I16 => Data::I16(values.map(|x| x as i16).collect()),
        DType::I8 => Data::I8(values.map(|x| x as i8).collect()),
        DType::I1 => Data::I1(values.map(|x| x != 0.0).collect()),
        DType::F8E4M3Fnuz => Data::F8E4M3Fnuz(values.map(f8e4m3fnuz::from_f32).collect()),
        DType::F8E5M2Fnuz => Data::F8E5M2Fnuz(values.map(f8e5m2fnuz::from_f32).collect()),
        DType::F8E4M3Fn => Data::F8E4M3Fn(values.map(f8e4m3fn::from_f32).collect()),
        DType::F8E5M2 => Data::F8E5M2(values.map(f8e5m2::from_f32).collect()),
        DType::F8E8M0 => Data::F8E8M0(values.map(f8e8m0::from_f32).collect()),
        DType::F4E2M1 => Data::F4E2M1(values.map(f4e2m1::from_f32).collect()),
        DType::F6E2M3 => Data::F6E2M3(values.map(f6e2m3::from_f32).collect()),
        DType::F6E3M2 => Data::F6E3M2(values.map(f6e3m2::from_f32).collect()),
    }
}

fn from_integers(values: impl Iterator<Item = i32>, to: DType) -> Data {
    match to {
        DType::F64 => Data::F64(values.map(f64::from).collect()),
        DType::I64 => Data::I64(values.map(i64::from).collect()),
        DType::I32 => Data::I32(values.collect()),
        DType::I16 => Data::I16(values.map(|x| x as i16).collect()),
        DType::I8 => Data::I8(values.map(|x| x as i8).collect()),
        _ => from_floats(values.map(|x| x as f32), to),
    }
}

fn from_doubles(values: &[f64], to: DType) -> Result<Data, ArithmeticFault> {
    Ok(match to {
        DType::F64 => Data::F64(values.to_vec()),
        DType::I64 => Data::I64(values.iter().map(|&x| x as i64).collect()),
        DType::I32 => Data::I32(values.iter().map(|&x| x as i32).collect()),
        DType::I16 => Data::I16(values.iter().map(|&x| x as i16).collect()),
        DType::I8 => Data::I8(values.iter().map(|&x| x as i8).collect()),
        _ => {
            let bits = values.iter().map(|&x| Constant::Float(x).bits(to)).collect::<Result<Vec<_>, _>>();
            data_of(to, &bits.map_err(|fault| fault.message)?)
        }
    })
}

fn from_long_integers(values: &[i64], to: DType) -> Data {
    match to {
        DType::I64 => Data::I64(values.to_vec()),
        DType::F64 => Data::F64(values.iter().map(|&x| x as f64).collect()),
        DType::I32 | DType::I16 | DType::I8 => from_integers(values.iter().map(|&x| x as i32), to),
        _ => from_floats(values.iter().map(|&x| x as f32), to),
    }
}

fn mismatch(what: &str, x: &Data, y: &Data) -> ArithmeticFault {
    if x.dtype() == y.dtype() {
        format!("{what} is not defined for {}", x.dtype())
    } else {
        format!("{what} of {} and {}: its operands must have one dtype", x.dtype(), y.dtype())
    }
}
