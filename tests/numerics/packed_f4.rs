//! Packed 4-bit floats: every byte, and every f16 number, against a table and a search through it.

use groundswell::prelude::*;
use groundswell_testing::exact_case::{Case, of_numbers, zeros};
use groundswell_testing::small_float::{F4, SHAPES};

fn unpacking(of_k: &[Constraint]) -> Kernel {
    let [m, k] = symbols(["M", "K"]);
    Kernel::trace("unpacking", |w| {
        w.distribute([workgroup(m, 16, 0)].into_iter().chain(of_k.iter().cloned()));
        let packed = w.memory("packed", [m, k.scaled(2)], Global, I8);
        let y = w.memory("y", [m, k], Global, F32);
        w.write(w.read(packed).unpack_f4e2m1([m, k]), y);
    })
    .expect("well-formed")
}

fn packing(of_k: &[Constraint], dtype: DType) -> Kernel {
    let [m, k] = symbols(["M", "K"]);
    Kernel::trace("packing", |w| {
        w.distribute([workgroup(m, 16, 0)].into_iter().chain(of_k.iter().cloned()));
        let x = w.memory("x", [m, k], Global, dtype);
        let packed = w.memory("packed", [m, k.scaled(2)], Global, I8);
        w.write(w.read(x).pack_f4e2m1([m, k]), packed);
    })
    .expect("well-formed")
}

/// The bytes of rows of `k` codes.
fn bytes(codes: &[u8], k: usize) -> Vec<f64> {
    let rows = codes.chunks(k).flat_map(|row| row.chunks(2));
    rows.map(|pair| f64::from((pair[0] | pair.get(1).map_or(0, |high| high << 4)) as i8)).collect()
}

#[test]
fn bytes_are_two_numbers_each() {
    let k = Symbol::new("K");
    for (at, [m, size]) in SHAPES.into_iter().enumerate() {
        for of_k in [vec![workgroup(k, 64, 1)], vec![]] {
            let codes: Vec<u8> = (0..m * size).map(|at| (at * 7 + at / 16 * 5) as u8 & 15).collect();
            let inputs =
                vec![of_numbers(I8, &[m, size.div_ceil(2)], &bytes(&codes, size)), zeros(F32, &[m, size])];
            let mut case = Case::plain(
                format!("unpacked {m}x{size}"),
                unpacking(&of_k),
                &[("M", m), ("K", size)],
                inputs,
            );
            if at % 2 == 1 && !of_k.is_empty() {
                case.dynamic = vec!["M", "K"];
            }
            case.expected = codes.iter().map(|&code| F4.number_of(code)).collect();
            case.check_in_order(Some(at as u64 % 5));
        }
    }
}

#[test]
fn numbers_become_the_nearest_codes() {
    let k = Symbol::new("K");
    for (at, [m, size]) in SHAPES.into_iter().enumerate() {
        for of_k in [vec![workgroup(k, 64, 1)], vec![]] {
            let numbers: Vec<f64> = (0..m * size).map(|at| (at % 67) as f64 * 0.25 - 8.25).collect();
            let codes: Vec<u8> = numbers.iter().map(|&x| F4.nearest_code(x)).collect();
            let inputs = vec![of_numbers(F32, &[m, size], &numbers), zeros(I8, &[m, size.div_ceil(2)])];
            let mut case = Case::plain(
                format!("packed {m}x{size}"),
                packing(&of_k, F32),
                &[("M", m), ("K", size)],
                inputs,
            );
            if at % 2 == 1 && !of_k.is_empty() {
                case.dynamic = vec!["M", "K"];
            }
            case.expected = bytes(&codes, size);
            case.check_in_order(Some(at as u64 % 5));
        }
    }
}

/// All f16 numbers, NaNs and infinities among them, and f32 numbers around the middles.
#[test]
fn all_half_numbers_and_the_middles_are_rounded_once() {
    let k = Symbol::new("K");
    let halves: Vec<f64> = (0..=u16::MAX).map(|bits| f64::from(f16::from_bits(bits).to_f32())).collect();
    let middles = [0.0, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 6.0, 7.0, 1e-40, f32::MAX, f32::INFINITY];
    let near = |x: f32| [x, x.next_up(), x.next_down(), -x, -x.next_up(), -x.next_down()].map(f64::from);
    let singles: Vec<f64> = middles.into_iter().flat_map(near).collect();
    for (dtype, numbers) in [(F16, halves), (F32, singles)] {
        let shape = [1, numbers.len()];
        let codes: Vec<u8> = numbers.iter().map(|&x| F4.nearest_code(x)).collect();
        let inputs = vec![of_numbers(dtype, &shape, &numbers), zeros(I8, &[1, numbers.len().div_ceil(2)])];
        let kernel = packing(&[workgroup(k, 64, 1)], dtype);
        let sizes = [("M", shape[0]), ("K", shape[1])];
        let mut case = Case::plain(format!("all of {dtype}"), kernel, &sizes, inputs);
        case.expected = bytes(&codes, numbers.len());
        case.check();
    }
}
