//! Ready kernels that move data or convolve images, against plain loops: whole tiles and ragged ones, static
//! and dynamic sizes. The interpreter and the machine code have to give what the loop gives, check mode has
//! to find nothing, and the text of each kernel reads back as itself. All numbers are small integers.

use groundswell::kernels::{Choices, Waves, gather, list, transpose};
use groundswell::prelude::*;
use groundswell_testing::exact_case::{Case, of_numbers, ones, tensor};

/// Check mode with this order of execution.
const SEED: u64 = 7;

/// Instructions of an executable whose name begins with `prefix`.
fn count(executable: &Executable, prefix: &str) -> usize {
    let listing = executable.assembly().expect("a listing");
    listing.lines().filter(|line| line.trim_start().starts_with(prefix)).count()
}

#[test]
fn the_text_of_every_ready_kernel_reads_back_as_itself() {
    for entry in list() {
        let text = entry.kernel(&Choices::default()).expect("the defaults fit").to_string();
        let again = Kernel::parse(&text, "again.gsw").unwrap_or_else(|e| panic!("{}: {e}", entry.name));
        assert_eq!(again.to_string(), text);
    }
}

#[test]
fn transpose_equals_a_loop() {
    let shapes =
        [[64, 64], [128, 192], [65, 66], [1, 1], [1, 100], [100, 1], [77, 130], [16, 8], [63, 200], [8, 64]];
    for (number, [m, n]) in shapes.into_iter().enumerate() {
        for (variant, dtype) in [F32, F16, Bf16, I8].into_iter().enumerate() {
            let kernel = transpose(dtype, Waves::new(2, 2)).expect("the options fit");
            let a = tensor(dtype, &[m, n]);
            let numbers = a.to_f64();
            let mut expected = vec![0.0; m * n];
            for i in 0..m {
                for j in 0..n {
                    expected[j * m + i] = numbers[i * n + j];
                }
            }
            let dynamic: &[&str] = if (number + variant) % 2 == 0 { &[] } else { &["M", "N"] };
            let executable = Case {
                name: format!("transpose {m}x{n} {dtype} dynamic {dynamic:?}"),
                kernel,
                schedule: Schedule::None,
                sizes: vec![("M", m as i64), ("N", n as i64), ("BLOCK_M", 64), ("BLOCK_N", 64)],
                dynamic: dynamic.to_vec(),
                inputs: vec![a, ones(dtype, &[n, m])],
                expected,
            }
            .check_in_order(Some(SEED));
            if m % 64 == 0 && n % 64 == 0 && dynamic.is_empty() {
                // 256 lanes with 16 bytes each.
                let wide = 64 * 64 * dtype.bytes() as usize / (256 * 16);
                for (prefix, expected) in [
                    ("buffer_load_dwordx4", wide),
                    ("buffer_load", wide),
                    ("buffer_store_dwordx4", wide),
                    ("buffer_store", wide),
                ] {
                    assert_eq!(count(&executable, prefix), expected, "{prefix} of {dtype}");
                }
            }
        }
    }
}

#[test]
fn gather_equals_a_loop() {
    let shapes =
        [[16, 256, 40], [33, 75, 9], [5, 130, 64], [64, 8, 100], [1, 1, 1], [17, 513, 3], [48, 64, 1000]];
    for (number, [m, n, rows]) in shapes.into_iter().enumerate() {
        for (variant, dtype) in [F32, F16, Bf16, I8].into_iter().enumerate() {
            let kernel = gather(dtype, Waves::new(4, 1)).expect("the options fit");
            let table = tensor(dtype, &[rows, n]);
            let numbers = table.to_f64();
            // Some of them are outside, on either side.
            let mut ids: Vec<f64> = (0..m).map(|i| ((i * 29) % (rows + 4)) as f64 - 2.0).collect();
            if let [first, .., last] = &mut ids[..] {
                (*first, *last) = (f64::from(i32::MIN), f64::from(i32::MAX));
            }
            let of = |i: usize, j: usize| match (0.0..rows as f64).contains(&ids[i]) {
                true => numbers[ids[i] as usize * n + j],
                false => 0.0,
            };
            let expected = (0..m * n).map(|at| of(at / n, at % n)).collect();
            let dynamic: &[&str] = match (number + variant) % 3 {
                0 => &[],
                1 => &["M", "N", "ROWS"],
                _ => &["ROWS"],
            };
            Case {
                name: format!("gather {m}x{n} of {rows} {dtype} dynamic {dynamic:?}"),
                kernel,
                schedule: Schedule::None,
                sizes: vec![
                    ("M", m as i64),
                    ("N", n as i64),
                    ("ROWS", rows as i64),
                    ("BLOCK_M", 16),
                    ("BLOCK_N", 256),
                ],
                dynamic: dynamic.to_vec(),
                inputs: vec![table, of_numbers(I32, &[m], &ids), ones(dtype, &[m, n])],
                expected,
            }
            .check_in_order(Some(SEED));
        }
    }
}
