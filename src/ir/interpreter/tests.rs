//! Kernels traced with the builder against plain loops written out here.

use crate::float16::{bf16, f16};

use super::*;
use crate::ir::builder::{Tracer, Value as Traced};
use crate::ir::constraint::tile;
use crate::ir::expr::symbols;
use crate::ir::op::OpRow;
use crate::ir::types::AddressSpace::{Global, Shared};
use crate::ir::types::DType::{Bf16, F16, F32, I1, I8, I32};

fn sizes<'a>(table: &'a [(&'a str, i64)]) -> impl Fn(Symbol) -> Option<i64> + 'a {
    |symbol| table.iter().find(|row| row.0 == symbol.name()).map(|row| row.1)
}

fn run(kernel: &Kernel, table: &[(&str, i64)], inputs: &[Tensor]) -> Vec<Tensor> {
    Interpreter::run(kernel, &sizes(table), inputs).unwrap_or_else(|fault| panic!("{fault}"))
}

fn fault(kernel: &Kernel, table: &[(&str, i64)], inputs: &[Tensor]) -> Diagnostic {
    Interpreter::run(kernel, &sizes(table), inputs).expect_err("the kernel or its inputs are wrong")
}

/// `c[m, n] = sum over k of a[m, k] * b[n, k]` in a loop over K in tiles of BLOCK_K.
fn gemm(inputs: DType, sums: DType) -> Kernel {
    let [m, n, k, block] = symbols(["M", "N", "K", "BLOCK_K"]);
    Kernel::trace("gemm", |w: &Tracer| {
        w.distribute([tile(k, block)]);
        let a = w.memory("a", [m, k], Shared, inputs);
        let b = w.memory("b", [n, k], Shared, inputs);
        let c = w.memory("c", [m, n], Global, sums);
        let zero = w.register([m, n], sums, 0.0);
        let acc = w.iterate(k, [zero], |w, [acc]| {
            let (a, b) = (w.read(a), w.read(b));
            [w.mma(a, b, acc)]
        });
        w.write(acc[0], c);
    })
    .expect("gemm traces")
}

#[test]
fn gemm_over_ragged_tiles_equals_naive_loops() {
    let (m, n) = (5, 7);
    for dtype in [F16, Bf16, F32] {
        let kernel = gemm(dtype, F32);
        for (k, block) in [(0, 4), (1, 4), (4, 4), (13, 4), (13, 1), (13, 16)] {
            let a = Tensor::random(&[m, k], dtype, 1).unwrap();
            let b = Tensor::random(&[n, k], dtype, 2).unwrap();
            let c = Tensor::zeros(&[m, n], F32).unwrap();
            let table = [("M", m as i64), ("N", n as i64), ("K", k as i64), ("BLOCK_K", block)];
            let after = run(&kernel, &table, &[a.clone(), b.clone(), c]);
            let (x, y) = (a.to_f64(), b.to_f64());
            let mut expected = Vec::new();
            for row in 0..m {
                for column in 0..n {
                    expected.push((0..k).map(|i| x[row * k + i] * y[column * k + i]).sum::<f64>());
                }
            }
            assert_eq!(after[2].to_f64(), expected, "{dtype}, K = {k}, tiles of {block}");
            assert_eq!((&after[0], &after[1]), (&a, &b), "inputs stay");
        }
    }
}

#[test]
fn i8_products_add_up_in_wrapping_i32() {
    let kernel = gemm(I8, I32);
    let a = Tensor::random(&[3, 21], I8, 7).unwrap();
    let b = Tensor::random(&[4, 21], I8, 8).unwrap();
    let table = [("M", 3), ("N", 4), ("K", 21), ("BLOCK_K", 8)];
    let after = run(&kernel, &table, &[a.clone(), b.clone(), Tensor::zeros(&[3, 4], I32).unwrap()]);
    let (x, y) = (a.as_slice::<i8>().unwrap(), b.as_slice::<i8>().unwrap());
    let expected: Vec<i32> = (0..12)
        .map(|at| (0..21).map(|i| i32::from(x[at / 4 * 21 + i]) * i32::from(y[at % 4 * 21 + i])).sum())
        .collect();
    assert_eq!(after[2].as_slice::<i32>().unwrap(), expected);

    let [m, n, k] = symbols(["M", "N", "K"]);
    let top = Kernel::trace("top", |w| {
        let a = w.memory("a", [m, k], Global, I8);
        let c = w.memory("c", [m, n], Global, I32);
        let one = w.register([n, k], I8, 1.0);
        let (x, acc) = (w.read(a), w.read(c));
        let sum = w.mma(x, one, acc);
        w.write(sum, c);
    })
    .unwrap();
    let inputs =
        [Tensor::from_slice(&[1, 1], &[2i8]).unwrap(), Tensor::from_slice(&[1, 1], &[i32::MAX]).unwrap()];
    let after = run(&top, &[("M", 1), ("N", 1), ("K", 1)], &inputs);
    assert_eq!(after[1].as_slice::<i32>(), Some(&[i32::MIN + 1][..]));
}

#[test]
fn sums_are_added_one_by_one_in_the_order_of_k() {
    let kernel = gemm(F32, F32);
    // 2^24 + 1 + 1 stays 2^24 in f32, 1 + 1 + 2^24 does not.
    for (row, expected) in [([16777216.0f32, 1.0, 1.0], 16777216.0), ([1.0, 1.0, 16777216.0], 16777218.0)] {
        let a = Tensor::from_slice(&[1, 3], &row).unwrap();
        let b = Tensor::from_slice(&[1, 3], &[1.0f32; 3]).unwrap();
        let c = Tensor::zeros(&[1, 1], F32).unwrap();
        let after = run(&kernel, &[("M", 1), ("N", 1), ("K", 3), ("BLOCK_K", 2)], &[a, b, c]);
        assert_eq!(after[2].to_f64(), [expected]);
    }
}

#[test]
fn batches_of_an_mma_are_separate() {
    let [b, m, n, k] = symbols(["B", "M", "N", "K"]);
    let kernel = Kernel::trace("batched", |w| {
        let lhs = w.memory("lhs", [b, m, k], Global, F32);
        let rhs = w.memory("rhs", [b, n, k], Global, F32);
        let out = w.memory("out", [b, m, n], Global, F32);
        let (x, y, acc) = (w.read(lhs), w.read(rhs), w.read(out));
        let sum = w.mma(x, y, acc);
        w.write(sum, out);
    })
    .unwrap();
    let lhs = Tensor::from_slice(&[2, 1, 2], &[1.0f32, 2.0, 3.0, 4.0]).unwrap();
    let rhs = Tensor::from_slice(&[2, 2, 2], &[1.0f32, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 0.0]).unwrap();
    let out = Tensor::from_slice(&[2, 1, 2], &[100.0f32; 4]).unwrap();
    let after = run(&kernel, &[("B", 2), ("M", 1), ("N", 2), ("K", 2)], &[lhs, rhs, out]);
    assert_eq!(after[2].to_f64(), [101.0, 102.0, 107.0, 106.0]);
}

/// Runs `f` on two vectors of one dtype and gives the vector of results.
fn on_pairs(
    x: &Tensor,
    y: &Tensor,
    result: DType,
    f: impl FnOnce(&Tracer, Traced, Traced) -> Traced,
) -> Tensor {
    let [n] = symbols(["N"]);
    let kernel = Kernel::trace("pairs", |w| {
        let a = w.memory("a", [n], Global, x.dtype());
        let b = w.memory("b", [n], Global, y.dtype());
        let c = w.memory("c", [n], Global, result);
        let (a, b) = (w.read(a), w.read(b));
        let out = f(w, a, b);
        w.write(out, c);
    })
    .expect("the kernel traces");
    let count = x.shape()[0];
    let zeros = Tensor::zeros(&[count], result).unwrap();
    run(&kernel, &[("N", count as i64)], &[x.clone(), y.clone(), zeros]).remove(2)
}

/// The operation of a row on vectors.
fn of_row(row: &OpRow, operands: &[&Tensor]) -> Tensor {
    let names: Vec<String> = (0..operands.len()).map(|at| format!("a{at}")).collect();
    let dtype = operands[0].dtype();
    let memories: String = names
        .iter()
        .map(|name| format!("  {name} = memory [N] global {dtype}\n  %{name} = read {name}\n"))
        .collect();
    let values = names.iter().map(|name| format!("%{name}")).collect::<Vec<_>>().join(", ");
    let text = format!(
        "kernel k {{\n{memories}  c = memory [N] global {dtype}\n  %y = {} {values}\n  write %y, c\n}}\n",
        row.word
    );
    let kernel = Kernel::parse(&text, "k").expect("it parses");
    let count = operands[0].shape()[0];
    let mut tensors: Vec<Tensor> = operands.iter().map(|&t| t.clone()).collect();
    tensors.push(Tensor::zeros(&[count], dtype).unwrap());
    run(&kernel, &[("N", count as i64)], &tensors).remove(operands.len())
}

fn binary(op: BinaryOp, x: &Tensor, y: &Tensor) -> Tensor {
    of_row(op.row(), &[x, y])
}

fn unary(op: UnaryOp, x: &Tensor) -> Tensor {
    of_row(op.row(), &[x])
}

/// Comparison of two vectors, as i32: select cannot be written as i1.
fn compared(predicate: Predicate, x: &Tensor, y: &Tensor) -> Vec<i32> {
    let out = on_pairs(x, y, I32, |w, x, y| {
        let holds = match predicate {
            Predicate::Eq => x.equal(y),
            Predicate::Ne => x.not_equal(y),
            Predicate::Lt => x.less(y),
            Predicate::Le => x.less_equal(y),
            Predicate::Gt => x.greater(y),
            Predicate::Ge => x.greater_equal(y),
        };
        let (yes, no) = (w.register([], I32, 1.0), w.register([], I32, 0.0));
        w.select(holds, yes, no)
    });
    out.as_slice::<i32>().unwrap().to_vec()
}

fn bits(t: &Tensor) -> Vec<u8> {
    t.to_bytes()
}

const FLOATS: [f32; 12] =
    [0.0, -0.0, 1.0, -1.5, 0.1, 3.0, 1e-3, 6.0e4, -6.0e4, f32::INFINITY, f32::NEG_INFINITY, 0.3333];

/// All pairs of the special floats, rounded by `f`.
fn float_pairs(f: impl Fn(f32) -> f32) -> (Vec<f32>, Vec<f32>) {
    FLOATS.iter().flat_map(|&x| FLOATS.map(|y| (f(x), f(y)))).unzip()
}

#[test]
fn float_arithmetic_rounds_the_f32_result_once() {
    let direct = |op, x: f32, y: f32| match op {
        BinaryOp::Add => x + y,
        BinaryOp::Sub => x - y,
        BinaryOp::Mul => x * y,
        BinaryOp::Div => x / y,
        BinaryOp::Min if x == 0.0 && y == 0.0 => {
            if x.is_sign_negative() {
                x
            } else {
                y
            }
        }
        BinaryOp::Max if x == 0.0 && y == 0.0 => {
            if x.is_sign_negative() {
                y
            } else {
                x
            }
        }
        BinaryOp::Min => {
            if x < y {
                x
            } else {
                y
            }
        }
        BinaryOp::Max => {
            if x > y {
                x
            } else {
                y
            }
        }
        BinaryOp::Pow => f64::from(x).powf(y.into()) as f32,
        BinaryOp::Atan2 => f64::from(x).atan2(y.into()) as f32,
        op => unreachable!("{op:?} has no floats"),
    };
    for &op in BinaryOp::ALL.iter().filter(|op| op.row().operands.admit(F32)) {
        let name = op.row().word;
        let (x, y) = float_pairs(|x| x);
        let expected: Vec<f32> = x.iter().zip(&y).map(|(&x, &y)| direct(op, x, y)).collect();
        let n = [x.len()];
        let tensors = [x, y, expected].map(|v| Tensor::from_slice(&n, &v).unwrap());
        assert_eq!(bits(&binary(op, &tensors[0], &tensors[1])), bits(&tensors[2]), "{name} f32");

        let (x, y) = float_pairs(|x| f16::from_f32(x).to_f32());
        let expected: Vec<f32> = x.iter().zip(&y).map(|(&x, &y)| direct(op, x, y)).collect();
        let tensors = [x, y, expected].map(|v| {
            Tensor::from_slice(&n, &v.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>()).unwrap()
        });
        assert_eq!(bits(&binary(op, &tensors[0], &tensors[1])), bits(&tensors[2]), "{name} f16");

        let (x, y) = float_pairs(|x| bf16::from_f32(x).to_f32());
        let expected: Vec<f32> = x.iter().zip(&y).map(|(&x, &y)| direct(op, x, y)).collect();
        let tensors = [x, y, expected].map(|v| {
            Tensor::from_slice(&n, &v.iter().map(|&x| bf16::from_f32(x)).collect::<Vec<_>>()).unwrap()
        });
        assert_eq!(bits(&binary(op, &tensors[0], &tensors[1])), bits(&tensors[2]), "{name} bf16");
    }
}

#[test]
fn unary_float_arithmetic_is_that_of_f32_rounded_once() {
    let n = [FLOATS.len()];
    // Those that Rust does not have are in tests/numerics/functions.rs.
    let others = [UnaryOp::Erf, UnaryOp::Sigmoid, UnaryOp::Silu, UnaryOp::Gelu, UnaryOp::GeluTanh];
    let of_rust = |op: &&UnaryOp| op.row().operands.admit(F32) && !others.contains(op);
    for &op in UnaryOp::ALL.iter().filter(of_rust) {
        let name = op.row().word;
        let direct = |x: f32| match op {
            UnaryOp::Neg => -x,
            UnaryOp::Abs => x.abs(),
            UnaryOp::Exp => (x as f64).exp() as f32,
            UnaryOp::Exp2 => (x as f64).exp2() as f32,
            UnaryOp::Log2 => (x as f64).log2() as f32,
            UnaryOp::Sqrt => (x as f64).sqrt() as f32,
            UnaryOp::Reciprocal => 1.0 / x,
            UnaryOp::Tanh => (x as f64).tanh() as f32,
            UnaryOp::Floor => x.floor(),
            UnaryOp::Ceil => x.ceil(),
            UnaryOp::Trunc => x.trunc(),
            UnaryOp::RoundEven => x.round_ties_even(),
            UnaryOp::Round => x.round(),
            UnaryOp::Rsqrt => (1.0 / (x as f64).sqrt()) as f32,
            UnaryOp::Cbrt => (x as f64).cbrt() as f32,
            UnaryOp::Log => (x as f64).ln() as f32,
            UnaryOp::Log10 => (x as f64).log10() as f32,
            UnaryOp::Log1p => (x as f64).ln_1p() as f32,
            UnaryOp::Expm1 => (x as f64).exp_m1() as f32,
            UnaryOp::Sin => (x as f64).sin() as f32,
            UnaryOp::Cos => (x as f64).cos() as f32,
            UnaryOp::Sinh => (x as f64).sinh() as f32,
            UnaryOp::Cosh => (x as f64).cosh() as f32,
            op => unreachable!("{op:?} is not one of Rust's"),
        };
        let same =
            |x: Vec<f64>, y: Vec<f64>| x.iter().zip(&y).all(|(x, y)| x == y || x.is_nan() && y.is_nan());
        let x = Tensor::from_slice(&n, &FLOATS).unwrap();
        let expected = Tensor::from_slice(&n, &FLOATS.map(direct)).unwrap();
        assert!(same(unary(op, &x).to_f64(), expected.to_f64()), "{name} f32");
        let x = FLOATS.map(f16::from_f32);
        let expected = Tensor::from_slice(&n, &x.map(|x| f16::from_f32(direct(x.to_f32())))).unwrap();
        let x = Tensor::from_slice(&n, &x).unwrap();
        assert!(same(unary(op, &x).to_f64(), expected.to_f64()), "{name} f16");
        let x = FLOATS.map(bf16::from_f32);
        let expected = Tensor::from_slice(&n, &x.map(|x| bf16::from_f32(direct(x.to_f32())))).unwrap();
        let x = Tensor::from_slice(&n, &x).unwrap();
        assert!(same(unary(op, &x).to_f64(), expected.to_f64()), "{name} bf16");
    }
    let powers = Tensor::from_slice(&[3], &[8.0f32, 0.5, 1024.0]).unwrap();
    assert_eq!(unary(UnaryOp::Log2, &powers).to_f64(), [3.0, -1.0, 10.0]);
    assert_eq!(unary(UnaryOp::Exp2, &unary(UnaryOp::Log2, &powers)), powers);
}

#[test]
fn integers_wrap_truncate_and_divide_by_zero_to_zero() {
    let x = Tensor::from_slice(&[6], &[i32::MAX, i32::MIN, -7, 7, 5, -3]).unwrap();
    let y = Tensor::from_slice(&[6], &[1, -1, 2, -2, 0, -4]).unwrap();
    let rows: [(BinaryOp, [i32; 6]); 13] = [
        (BinaryOp::Add, [i32::MIN, i32::MAX, -5, 5, 5, -7]),
        (BinaryOp::Sub, [i32::MAX - 1, i32::MIN + 1, -9, 9, 5, 1]),
        (BinaryOp::Mul, [i32::MAX, i32::MIN, -14, -14, 0, 12]),
        (BinaryOp::Div, [i32::MAX, i32::MIN, -3, -3, 0, 0]),
        (BinaryOp::Min, [1, i32::MIN, -7, -2, 0, -4]),
        (BinaryOp::Max, [i32::MAX, -1, 2, 7, 5, -3]),
        (BinaryOp::FloorDiv, [i32::MAX, i32::MIN, -4, -4, 0, 0]),
        (BinaryOp::Rem, [0, 0, 1, -1, 5, -3]),
        (BinaryOp::And, [1, i32::MIN, 0, 6, 0, -4]),
        (BinaryOp::Or, [i32::MAX, -1, -5, -1, 5, -3]),
        (BinaryOp::Xor, [i32::MAX - 1, i32::MAX, -5, -7, 5, 1]),
        (BinaryOp::ShiftLeft, [-2, 0, -28, -1 << 31 | 1 << 30, 5, -3 << 28]),
        (BinaryOp::ShiftRight, [i32::MAX >> 1, -1, -2, 0, 5, -1]),
    ];
    for (op, expected) in rows {
        assert_eq!(binary(op, &x, &y).as_slice::<i32>().unwrap(), expected, "{op:?}");
    }
    assert_eq!(unary(UnaryOp::Neg, &x).as_slice::<i32>().unwrap(), [-i32::MAX, i32::MIN, 7, -7, -5, 3]);
    assert_eq!(unary(UnaryOp::Abs, &x).as_slice::<i32>().unwrap(), [i32::MAX, i32::MIN, 7, 7, 5, 3]);

    let x = Tensor::from_slice(&[4], &[127i8, -128, -7, 100]).unwrap();
    let y = Tensor::from_slice(&[4], &[1i8, -1, 2, 0]).unwrap();
    let rows: [(BinaryOp, [i8; 4]); 13] = [
        (BinaryOp::Add, [-128, 127, -5, 100]),
        (BinaryOp::Sub, [126, -127, -9, 100]),
        (BinaryOp::Mul, [127, -128, -14, 0]),
        (BinaryOp::Div, [127, -128, -3, 0]),
        (BinaryOp::Min, [1, -128, -7, 0]),
        (BinaryOp::Max, [127, -1, 2, 100]),
        (BinaryOp::FloorDiv, [127, -128, -4, 0]),
        (BinaryOp::Rem, [0, 0, 1, 100]),
        (BinaryOp::And, [1, -128, 0, 0]),
        (BinaryOp::Or, [127, -1, -5, 100]),
        (BinaryOp::Xor, [126, 127, -5, 100]),
        (BinaryOp::ShiftLeft, [-2, 0, -28, 100]),
        (BinaryOp::ShiftRight, [63, -1, -2, 100]),
    ];
    for (op, expected) in rows {
        assert_eq!(binary(op, &x, &y).as_slice::<i8>().unwrap(), expected, "{op:?}");
    }
    assert_eq!(unary(UnaryOp::Neg, &x).as_slice::<i8>().unwrap(), [-127, -128, 7, -100]);
    assert_eq!(unary(UnaryOp::Not, &x).as_slice::<i8>().unwrap(), [-128, 127, 6, -101]);
    assert_eq!(unary(UnaryOp::Abs, &x).as_slice::<i8>().unwrap(), [127, -128, 7, 100]);
}

#[test]
fn nan_loses_in_min_and_max_and_is_unordered() {
    let x = Tensor::from_slice(&[4], &[f32::NAN, 2.0, -0.0, 0.0]).unwrap();
    let y = Tensor::from_slice(&[4], &[1.0, f32::NAN, 0.0, -0.0]).unwrap();
    let least = Tensor::from_slice(&[4], &[1.0f32, 2.0, -0.0, -0.0]).unwrap();
    let most = Tensor::from_slice(&[4], &[1.0f32, 2.0, 0.0, 0.0]).unwrap();
    assert_eq!(bits(&binary(BinaryOp::Min, &x, &y)), bits(&least));
    assert_eq!(bits(&binary(BinaryOp::Max, &x, &y)), bits(&most));
    for (predicate, expected) in [
        (Predicate::Eq, [0, 0, 1, 1]),
        (Predicate::Ne, [1, 1, 0, 0]),
        (Predicate::Lt, [0, 0, 0, 0]),
        (Predicate::Le, [0, 0, 1, 1]),
        (Predicate::Gt, [0, 0, 0, 0]),
        (Predicate::Ge, [0, 0, 1, 1]),
    ] {
        assert_eq!(compared(predicate, &x, &y), expected, "{predicate:?}");
    }
}

#[test]
fn comparisons_hold_as_in_mathematics_for_every_dtype() {
    for dtype in [F32, F16, Bf16, I32, I8] {
        let constants = |v: [i64; 3]| {
            let x = Tensor::from_slice(&[3], &v.map(|x| x as i32)).unwrap();
            if dtype == I32 { x } else { on_pairs(&x, &x, dtype, |_, x, _| x.cast(dtype)) }
        };
        let (x, y) = (constants([-3, 4, 9]), constants([2, 4, -9]));
        for (predicate, expected) in [
            (Predicate::Eq, [0, 1, 0]),
            (Predicate::Ne, [1, 0, 1]),
            (Predicate::Lt, [1, 0, 0]),
            (Predicate::Le, [1, 1, 0]),
            (Predicate::Gt, [0, 0, 1]),
            (Predicate::Ge, [0, 1, 1]),
        ] {
            assert_eq!(compared(predicate, &x, &y), expected, "{predicate:?} {dtype}");
        }
    }
}

#[test]
fn casts_truncate_saturate_wrap_and_round_to_even() {
    let cast = |x: &Tensor, to| on_pairs(x, x, to, |_, x, _| x.cast(to));
    let x =
        Tensor::from_slice(&[7], &[1.9f32, -1.9, f32::NAN, 1e20, f32::NEG_INFINITY, 200.5, 2049.0]).unwrap();
    assert_eq!(cast(&x, I32).as_slice::<i32>().unwrap(), [1, -1, 0, i32::MAX, i32::MIN, 200, 2049]);
    assert_eq!(cast(&x, I8).as_slice::<i8>().unwrap(), [1, -1, 0, 127, -128, 127, 127]);
    assert_eq!(cast(&x, F16).as_slice::<f16>().unwrap()[6].to_f32(), 2048.0, "a tie goes to the even one");
    assert_eq!(cast(&x, Bf16).as_slice::<bf16>().unwrap()[5].to_f32(), 200.0);
    let x = Tensor::from_slice(&[4], &[300i32, -129, 16777217, i32::MIN]).unwrap();
    assert_eq!(cast(&x, I8).as_slice::<i8>().unwrap(), [44, 127, 1, 0]);
    assert_eq!(cast(&x, F32).as_slice::<f32>().unwrap(), [300.0, -129.0, 16777216.0, -2147483648.0]);
    assert_eq!(cast(&x, F16).as_slice::<f16>().unwrap()[2], f16::INFINITY);
    let x = Tensor::from_slice(&[2], &[-5i8, 127]).unwrap();
    assert_eq!(cast(&x, I32).as_slice::<i32>().unwrap(), [-5, 127]);
    assert_eq!(cast(&cast(&x, Bf16), I8), x);
    let from_i1 = on_pairs(&x, &x, F32, |_, x, _| x.greater(0).cast(F32));
    assert_eq!(from_i1.to_f64(), [0.0, 1.0]);
}

#[test]
fn operands_broadcast_by_dims_in_any_order_and_numbers_take_the_dtype() {
    let [m, n] = symbols(["M", "N"]);
    let kernel = Kernel::trace("broadcast", |w| {
        let row = w.memory("row", [n], Global, F16);
        let column = w.memory("column", [m], Global, F16);
        let whole = w.memory("whole", [m, n], Global, F16);
        let turned = w.memory("turned", [n, m], Global, F16);
        let (r, c, x, t) = (w.read(row), w.read(column), w.read(whole), w.read(turned));
        let sum = (r + x) * 2 + c * 0.5;
        w.write(sum, whole);
        let x = w.read(whole);
        w.write(x - t, turned);
    })
    .unwrap();
    let half = |v: &[f32]| v.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>();
    let inputs = [
        Tensor::from_slice(&[3], &half(&[1.0, 2.0, 3.0])).unwrap(),
        Tensor::from_slice(&[2], &half(&[10.0, 20.0])).unwrap(),
        Tensor::from_slice(&[2, 3], &half(&[0.0, 0.0, 0.0, 100.0, 100.0, 100.0])).unwrap(),
        Tensor::from_slice(&[3, 2], &half(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])).unwrap(),
    ];
    let after = run(&kernel, &[("M", 2), ("N", 3)], &inputs);
    assert_eq!(after[2].to_f64(), [7.0, 9.0, 11.0, 212.0, 214.0, 216.0]);
    assert_eq!(after[3].to_f64(), [6.0, 210.0, 6.0, 210.0, 6.0, 210.0], "whole - turned, written transposed");
}

/// Per row of K: `b[m, k] = a[m, k] + 1`, counting iterations and adding up the slices.
fn looping() -> Kernel {
    let [m, k] = symbols(["M", "K"]);
    Kernel::trace("looping", |w| {
        w.distribute([tile(k, 4)]);
        let a = w.memory("a", [m, k], Global, I32);
        let b = w.memory("b", [m, k], Global, I32);
        let count = w.memory("count", [m], Global, I32);
        let last = w.memory("last", [m], Global, I32);
        let (zero, minus) = (w.register([m], I32, 0.0), w.register([m], I32, -1.0));
        let [trips, previous] = w.iterate(k, [zero, minus], |w, [trips, _]| {
            let x = w.read(a);
            let one = w.register([m, k], I32, 1.0);
            w.write(x + one, b);
            [trips + 1, trips]
        });
        w.write(trips, count);
        w.write(previous, last);
    })
    .expect("the kernel traces")
}

#[test]
fn loops_run_once_per_tile_and_carry_their_values() {
    for (k, trips) in [(0, 0), (1, 1), (4, 1), (5, 2), (11, 3)] {
        let a = Tensor::random(&[3, k], I32, 5).unwrap();
        let untouched = Tensor::zeros(&[3], I32).unwrap();
        let inputs = [a.clone(), Tensor::zeros(&[3, k], I32).unwrap(), untouched.clone(), untouched];
        let after = run(&looping(), &[("M", 3), ("K", k as i64)], &inputs);
        let expected: Vec<i32> = a.as_slice::<i32>().unwrap().iter().map(|x| x.wrapping_add(1)).collect();
        assert_eq!(after[1].as_slice::<i32>().unwrap(), expected, "K = {k}");
        assert_eq!(after[2].as_slice::<i32>().unwrap(), [trips; 3], "K = {k}");
        assert_eq!(after[3].as_slice::<i32>().unwrap(), [trips - 1; 3], "K = {k}");
    }
}

#[test]
fn what_fills_the_last_tile_takes_no_part_in_products() {
    let [m, n, k] = symbols(["M", "N", "K"]);
    let kernel = Kernel::trace("padded", |w| {
        w.distribute([tile(k, 4)]);
        let a = w.memory("a", [m, k], Global, F32);
        let c = w.memory("c", [m, n], Global, F32);
        let d = w.memory("d", [m, n], Global, F32);
        let zero = w.register([m, n], F32, 0.0);
        let [plain, shifted] = w.iterate(k, [zero, zero], |w, [plain, shifted]| {
            let one = w.register([n, k], F32, 1.0);
            let x = w.read(a);
            [w.mma(x, one, plain), w.mma(x + 1.0, one, shifted)]
        });
        w.write(plain, c);
        w.write(shifted, d);
    })
    .unwrap();
    let inputs = [
        Tensor::from_slice(&[1, 5], &[1.0f32, 2.0, 3.0, 4.0, 5.0]).unwrap(),
        Tensor::zeros(&[1, 1], F32).unwrap(),
        Tensor::zeros(&[1, 1], F32).unwrap(),
    ];
    let after = run(&kernel, &[("M", 1), ("N", 1), ("K", 5)], &inputs);
    assert_eq!(after[1].to_f64(), [15.0]);
    assert_eq!(after[2].to_f64(), [15.0 + 5.0], "five elements exist");
}

#[test]
fn nested_loops_slice_both_dims() {
    let [m, n] = symbols(["M", "N"]);
    let kernel = Kernel::trace("nested", |w| {
        w.distribute([tile(m, 2), tile(n, symbols(["BLOCK"])[0] / 2)]);
        let a = w.memory("a", [m, n], Global, I32);
        let b = w.memory("b", [n, m], Global, I32);
        let _ = w.iterate(m, [], |w, []| {
            let _ = w.iterate(n, [], |w, []| {
                let x = w.read(a);
                w.write(x * 2, b);
                []
            });
            []
        });
    })
    .unwrap();
    let a = Tensor::from_slice(&[3, 4], &(0..12).collect::<Vec<i32>>()).unwrap();
    let after = run(&kernel, &[("M", 3), ("N", 4), ("BLOCK", 6)], &[a, Tensor::zeros(&[4, 3], I32).unwrap()]);
    assert_eq!(after[1].as_slice::<i32>().unwrap(), [0, 8, 16, 2, 10, 18, 4, 12, 20, 6, 14, 22]);
}

#[test]
fn wrong_sizes_and_inputs_are_faults_at_the_memory() {
    let kernel = gemm(F16, F32);
    let inputs = |m, n, k| {
        [Tensor::zeros(&[m, k], F16), Tensor::zeros(&[n, k], F16), Tensor::zeros(&[m, n], F32)]
            .map(Result::unwrap)
    };
    let good = inputs(2, 2, 2);
    let table = |m, block| [("M", m), ("N", 2), ("K", 2), ("BLOCK_K", block)];
    let check = |fault: Diagnostic, message: &str, located: bool| {
        assert_eq!(fault.message, message);
        assert_eq!(fault.location.is_some_and(|l| l.file.ends_with("tests.rs")), located, "{message}");
    };
    check(fault(&kernel, &table(2, 0), &good), "the tile size of K is 0", true);
    check(fault(&kernel, &table(-1, 2), &good), "M is -1: a size cannot be negative", true);
    check(fault(&kernel, &[("M", 2), ("N", 2)], &good), "K has no size", true);
    check(
        fault(&kernel, &table(i64::MAX, 2), &good),
        "M is 9223372036854775807: more than 268435456 elements",
        true,
    );
    assert_eq!(fault(&kernel, &table(i64::MAX, 2), &good).kind, Kind::Limit);
    check(
        fault(&kernel, &table(2, 2), &good[..2]),
        "kernel `gemm` has 3 memories, but 2 tensors are given",
        false,
    );
    let text = "memory `a` is f16[3, 2], but its tensor is f16[2, 2]";
    check(fault(&kernel, &table(3, 2), &good), text, true);
    let mut swapped = good.clone();
    swapped.swap(1, 2);
    let text = "memory `b` is f16[2, 2], but its tensor is f32[2, 2]";
    check(fault(&kernel, &table(2, 2), &swapped), text, true);
    let unbound = fault(&kernel, &[("M", 2), ("N", 2), ("K", 2)], &good);
    assert!(unbound.message.starts_with("the tile size of K has no value: "), "{unbound}");
}

#[test]
fn a_tensor_beyond_the_limit_is_a_fault() {
    let [m, n] = symbols(["M", "N"]);
    let kernel = Kernel::trace("large", |w| {
        let a = w.memory("a", [m], Global, F32);
        let b = w.memory("b", [n], Global, F32);
        let (x, y) = (w.read(a), w.register([m, n], F32, 0.0));
        let sum = y + x;
        w.write(sum, b);
    })
    .unwrap();
    let inputs = [Tensor::zeros(&[65536], F32).unwrap(), Tensor::zeros(&[65536], F32).unwrap()];
    let fault = fault(&kernel, &[("M", 65536), ("N", 65536)], &inputs);
    assert_eq!(fault.kind, Kind::Limit);
    assert_eq!(fault.message, "a tensor of shape [65536, 65536] has more than 268435456 elements");
    assert!(Tensor::zeros(&[usize::MAX, 2], F32).is_err());
}

/// The fault of a kernel over `a: f32[M, K]` and `b: i32[M, N]`, all sizes 2 and tiles of K 2.
fn fault_of<R>(body: impl FnOnce(&Tracer, Traced, Traced, [Symbol; 3]) -> R) -> String {
    let [m, n, k] = symbols(["M", "N", "K"]);
    let kernel = Kernel::trace("faulty", |w| {
        w.distribute([tile(k, 2)]);
        let a = w.memory("a", [m, k], Global, F32);
        let b = w.memory("b", [m, n], Global, I32);
        let (x, y) = (w.read(a), w.read(b));
        body(w, x, y, [m, n, k]);
    })
    .expect("the kernel traces");
    let inputs = [Tensor::zeros(&[2, 2], F32).unwrap(), Tensor::zeros(&[2, 2], I32).unwrap()];
    let fault = fault(&kernel, &[("M", 2), ("N", 2), ("K", 2)], &inputs);
    assert!(fault.location.is_some(), "{fault}");
    assert_eq!(fault.kind, Kind::Invalid, "{fault}");
    fault.message
}

#[test]
fn kernels_whose_types_disagree_are_faults_at_the_node() {
    let cases: Vec<(String, &str)> = vec![
        (fault_of(|_, x, y, _| x + y.cast(F32)), "values with dims [M, N] and [M, K] do not fit together"),
        (fault_of(|_, x, _, _| x + x.cast(I32)), "add of f32 and i32: its operands must have one dtype"),
        (fault_of(|_, _, y, _| y.sqrt()), "sqrt is not defined for i32"),
        (fault_of(|_, _, y, _| y + 0.5), "0.5 is not a value of i32"),
        (fault_of(|_, x, _, _| x.cast(I1)), "f32 cannot be cast to i1"),
        (fault_of(|w, x, _, _| w.select(x, x, x)), "the condition of select is f32, not i1"),
        (fault_of(|w, x, y, _| w.mma(x, x, y)), "mma of [M, K] and [M, K] into [M, N]"),
        (
            fault_of(|w, x, y, [_, n, k]| {
                let rhs = w.register([n, k], F32, 0.0);
                w.mma(x, rhs, y);
            }),
            "mma of f32 and f32 into i32: it multiplies two floats of one dtype, or two 8-bit ones of a chip, \
             into f32, two f64 into f64, or two i8 into i32",
        ),
        (
            fault_of(|w, x, _, [.., k]| {
                w.iterate(k, [], |_, []| {
                    let _ = x + 1.0;
                    []
                })
            }),
            "a value with all of K is used inside the loop over K",
        ),
        (
            fault_of(|w, x, _, [.., k]| w.iterate(k, [x], |_, [x]| [x])),
            "carried value 0 has the dim K that its loop iterates over",
        ),
        (
            fault_of(|w, _, y, [.., k]| w.iterate(k, [y], |_, [y]| [y.cast(F32)])),
            "carried value 0 starts as i32[M, N] and continues as f32[M, N]",
        ),
        (
            fault_of(|w, _, y, [_, n, _]| w.iterate(n, [y], |_, [y]| [y])),
            "there is a loop over N, but N has no tile size",
        ),
        (
            fault_of(|w, _, _, [.., k]| {
                w.iterate(k, [], |w, []| {
                    w.iterate(k, [], |_, []| []);
                    []
                })
            }),
            "a loop over K is inside a loop over K",
        ),
    ];
    for (message, expected) in cases {
        assert_eq!(message, expected);
    }
}

/// Such a kernel is refused where it is traced.
#[test]
fn memories_are_declared_before_loops() {
    let [m, k] = symbols(["M", "K"]);
    let kernel = Kernel::trace("faulty", |w| {
        w.distribute([tile(k, 2)]);
        w.iterate(k, [], |w, []| {
            w.memory("late", [m], Global, F32);
            []
        });
    });
    let fault = kernel.expect_err("a memory in a loop");
    assert_eq!(fault.message, "memory `late` is declared inside a loop");
}

#[test]
fn a_written_value_has_the_type_of_the_memory() {
    let [m, n] = symbols(["M", "N"]);
    let kernel = Kernel::trace("write", |w| {
        let a = w.memory("a", [m], Global, F32);
        let b = w.memory("b", [m, n], Global, F32);
        let x = w.read(a);
        w.write(x, b);
    })
    .unwrap();
    let inputs = [Tensor::zeros(&[2], F32).unwrap(), Tensor::zeros(&[2, 2], F32).unwrap()];
    let fault = fault(&kernel, &[("M", 2), ("N", 2)], &inputs);
    assert_eq!(fault.message, "a value f32[M] cannot be written to a memory f32[M, N]");
}

#[test]
fn tensors_keep_their_promises() {
    for dtype in [F32, F16, Bf16, I32, I8, I1] {
        let x = Tensor::random(&[3, 5], dtype, 9).unwrap();
        assert_eq!((x.shape(), x.dtype(), x.data().len()), (&[3, 5][..], dtype, 15));
        assert_eq!(x, Tensor::random(&[3, 5], dtype, 9).unwrap(), "one seed, one tensor");
        assert_ne!(x, Tensor::random(&[3, 5], dtype, 10).unwrap());
        assert_eq!(x.to_bytes().len(), 15 * dtype.bytes() as usize);
        assert_eq!(Tensor::from_bytes(&[3, 5], dtype, &x.to_bytes()), Ok(x));
        assert!(Tensor::from_bytes(&[3, 5], dtype, &[0; 7]).is_err());
    }
    assert!(Tensor::from_slice(&[2, 2], &[1.0f32; 3]).is_err());
    assert_eq!(
        Tensor::splat(&[], I8, Constant::Integer(300)).map_err(|f| f.message),
        Err("300 is not a value of i8".into())
    );
    let sixteenths = Tensor::random(&[1000], F16, 3).unwrap().to_f64();
    assert!(sixteenths.iter().all(|x| (x * 16.0).fract() == 0.0 && x.abs() <= 1.0));
    assert!(sixteenths.contains(&-1.0) && sixteenths.contains(&1.0) && sixteenths.contains(&0.0));
}
