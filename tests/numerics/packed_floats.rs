//! Arithmetic of f32 on two elements at once: results against plain loops, and where it is used.

use groundswell::compile::listing;
use groundswell::prelude::*;
use groundswell_testing::exact_case::{Case, number, of_numbers, tensor, zeros};
use groundswell_testing::judged::verified;

/// Even and odd numbers of elements for each lane, and more than the tensor has.
const SHAPES: [[usize; 2]; 20] = [
    [1, 1],
    [1, 2],
    [1, 3],
    [2, 64],
    [3, 65],
    [16, 128],
    [17, 127],
    [5, 191],
    [4, 192],
    [7, 200],
    [1, 256],
    [9, 257],
    [33, 255],
    [2, 320],
    [6, 383],
    [40, 100],
    [3, 448],
    [8, 512],
    [5, 511],
    [11, 77],
];

/// How many instructions have a mnemonic, whatever its encoding.
fn count(executable: &Executable, mnemonic: &str) -> usize {
    let text = listing(executable.code(), executable.target().arch).expect("decodes");
    let first = |line: &str| line.split_whitespace().next().is_some_and(|word| word.starts_with(mnemonic));
    text.lines().filter(|line| first(line)).count()
}

/// Both orders of differences, negatives, a scalar, constants that instructions have room for and others,
/// rows and columns that are repeated, and sources that are used twice.
#[test]
fn neighbours_are_computed_together() {
    let [dm, dn] = symbols(["M", "N"]);
    for (at, [m, n]) in SHAPES.into_iter().enumerate() {
        for dtype in [F32, F16, Bf16] {
            let kernel = Kernel::trace("packed", |w| {
                w.distribute([workgroup(dm, 4, 0)]);
                let scale = w.scalar("scale", F32);
                let x = w.memory("x", [dm, dn], Global, dtype);
                let row = w.memory("row", [dm], Global, F32);
                let column = w.memory("column", [dn], Global, F32);
                let y = w.memory("y", [dm, dn], Global, F32);
                let (x, row, column) = (w.read(x).cast(F32), w.read(row), w.read(column));
                let a = x * scale - row;
                let b = 1.0 - x * 3.0;
                let c = (-a).fma(column.broadcast([dm, dn]), b);
                w.write(c * c - (x + 0.5) * 10.0 + (column - x), y);
            })
            .expect("well-formed");
            let expected = (0..m * n).map(|at| {
                let (x, row, column) = (number(at), number(at / n), number(at % n));
                let (a, b) = (x * 3.0 - row, 1.0 - x * 3.0);
                let c = -a * column + b;
                c * c - (x + 0.5) * 10.0 + (column - x)
            });
            Case {
                name: format!("{dtype} {m}x{n}"),
                kernel,
                sizes: vec![("M", m as i64), ("N", n as i64)],
                dynamic: if at % 2 == 0 { vec!["M"] } else { Vec::new() },
                schedule: Schedule::None,
                inputs: vec![
                    of_numbers(F32, &[], &[3.0]),
                    tensor(dtype, &[m, n]),
                    tensor(F32, &[m]),
                    tensor(F32, &[n]),
                    zeros(F32, &[m, n]),
                ],
                expected: expected.collect(),
            }
            .check();
        }
    }
}

/// Four elements for each lane take two instructions, and the constants are made once.
#[test]
fn one_instruction_computes_two_elements() {
    let text = "kernel k {
  workgroup M, 4, 0
  workgroup N, 256, 1
  wave M, 1
  x = memory [M, N] global f32
  y = memory [M, N] global f32
  %x = read x
  %p = mul %x, 3.7
  %s = add %p, 1.0
  %d = sub %s, %x
  %f = fma %d, %x, %s
  write %f, y
}";
    let kernel = Kernel::parse(text, "k.gsw").expect("well-formed");
    let options = Options::new(Target::GFX942).set("M", 64).set("N", 1024);
    let executable = verified(&kernel, &options);
    for (mnemonic, expected) in [
        ("v_pk_mul_f32", 2),
        ("v_pk_add_f32", 4),
        ("v_pk_fma_f32", 2),
        ("v_mul_f32", 0),
        ("v_add_f32", 0),
        ("v_sub_f32", 0),
        ("v_fma_f32", 0),
        ("s_mov_b64", 1),
    ] {
        assert_eq!(count(&executable, mnemonic), expected, "{mnemonic}");
    }
}

/// Nothing else runs beside a packed instruction: loops with products have none.
#[test]
fn products_are_not_held_up() {
    let text = "kernel k {
  workgroup M, 64, 0
  workgroup N, 64, 1
  tile K, 32
  mma f32_16x16x16_f16
  a = memory [M, K] global f32
  b = memory [N, K] global f16
  c = memory [M, N] global f32
  %zero = register [M, N] f32 0.0
  %sum = iterate K (%acc = %zero) {
    %x = read a
    %twice = mul %x, 3.0
    %h = cast %twice f16
    %y = read b
    %next = mma %h, %y, %acc
    yield %next
  }
  %scaled = mul %sum, 0.3
  write %scaled, c
}";
    let kernel = Kernel::parse(text, "k.gsw").expect("well-formed");
    let options = Options::new(Target::GFX942).set("M", 64).set("N", 64).set("K", 128);
    let executable = verified(&kernel, &options);
    let text = listing(executable.code(), executable.target().arch).expect("decodes");
    let first_packed = text.find("v_pk_mul_f32").expect("the results are scaled in pairs");
    let last_product = text.rfind("v_mfma").expect("there are products");
    assert!(last_product < first_packed, "packed arithmetic beside products");
    assert!(count(&executable, "v_mul_f32") > 0, "the loop multiplies element by element");
}
