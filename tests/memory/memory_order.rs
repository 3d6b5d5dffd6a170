//! Global memory that waves of a workgroup both read and write: a barrier stands wherever one wave's access
//! has to come before another's, and nowhere else. Check mode executes several orders; the reference of each
//! kernel is a plain loop.

use groundswell::prelude::*;
use groundswell_testing::exact_case::{Case, number, tensor, zeros};

fn case(name: &str, text: &str, sizes: &[(&'static str, usize)], inputs: Vec<Tensor>) -> Case {
    Case::plain(name.to_owned(), Kernel::parse(text, name).expect("well-formed"), sizes, inputs)
}

/// Barriers in the machine code, after all orders of execution have given what is expected.
fn barriers(case: &Case) -> u32 {
    let executables = [None, Some(1), Some(2), Some(3)].map(|seed| case.check_in_order(seed));
    executables[0].report().barriers
}

#[test]
fn waves_write_after_all_have_read() {
    let text = "kernel a {
        wave N, 16
        a = memory [M] global f32
        b = memory [M, N] global f32
        %x = read a
        %s = reduce_sum %x over M
        %d = sub %x, 100.0
        write %d, a
        %y = read b
        %z = reduce_max %y over N
        %t = add %z, %s
        %zz = broadcast %t [M, N]
        write %zz, b
    }";
    let (m, n) = (64, 64);
    let sum: f64 = (0..m).map(number).sum();
    let row = |i: usize| (0..n).map(|j| number(i * n + j)).fold(f64::MIN, f64::max) + sum;
    let inputs = vec![tensor(F32, &[m]), tensor(F32, &[m, n])];
    let mut case = case("copies", text, &[("M", m), ("N", n)], inputs);
    case.expected = (0..m * n).map(|at| row(at / n)).collect();
    assert!(barriers(&case) >= 1);
}

#[test]
fn waves_read_what_others_have_written() {
    let text = "kernel turned {
        wave N, 16
        a = memory [N] global i32
        b = memory [N] global i32
        %i = self_index N
        %x = mul %i, 3
        write %x, a
        %y = read a at [N_last - N] as [N]
        write %y, b
    }"
    .replace("N_last", "63");
    let mut case = case("written", &text, &[("N", 64)], vec![zeros(I32, &[64]), zeros(I32, &[64])]);
    case.expected = (0..64).map(|at| f64::from(3 * (63 - at))).collect();
    assert!(barriers(&case) >= 1);
}

#[test]
fn waves_take_turns_in_loops() {
    let text = "kernel again {
        wave N, 16
        tile K, 1
        a = memory [N] global i32
        b = memory [N, K] global i32
        %none = register [] i32 0
        %r = iterate K (%carried = %none) {
          %x = read a at [(N + 16) % 64] as [N]
          %y = add %x, 1
          write %y, a
          %o = broadcast %y [N, K]
          write %o, b
          yield %carried
        }
    }";
    let (n, k) = (64, 5);
    let mut state: Vec<f64> = (0..n).map(number).collect();
    let mut expected = vec![0.0; n * k];
    for step in 0..k {
        state = (0..n).map(|at| state[(at + 16) % n] + 1.0).collect();
        (0..n).for_each(|at| expected[at * k + step] = state[at]);
    }
    for schedule in [Schedule::None, Schedule::Prefetch, Schedule::Modulo] {
        let inputs = vec![tensor(I32, &[n]), zeros(I32, &[n, k])];
        let mut case = case("loop", text, &[("N", n), ("K", k)], inputs);
        case.schedule = schedule;
        case.expected.clone_from(&expected);
        assert!(barriers(&case) >= 2);
    }
}

#[test]
fn elements_of_one_wave_need_no_barrier() {
    let text = "kernel own {
        workgroup M, 4, 0
        wave N, 64
        a = memory [M, N] global f32
        %x = read a
        %y = mul %x, 2.0
        write %y, a
        %z = read a
        %w = add %z, 1.0
        write %w, a
    }";
    let (m, n) = (6, 200);
    let mut case = case("own", text, &[("M", m), ("N", n)], vec![tensor(F32, &[m, n])]);
    case.expected = (0..m * n).map(|at| number(at) * 2.0 + 1.0).collect();
    assert_eq!(barriers(&case), 0);
}
