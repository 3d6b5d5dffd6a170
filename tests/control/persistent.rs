//! Kernels whose workgroups share the tiles of a grid: fewer workgroups than tiles, as many, and more, with
//! orders, loops over parts, all schedules, static and dynamic sizes. The reference of each is a plain loop.

use groundswell::prelude::*;
use groundswell_testing::exact_case::{Case, tensor, zeros};
use groundswell_testing::schedules::GENERAL as SCHEDULES;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

#[test]
fn products_of_workgroups_that_take_several_tiles() {
    let [m, n, k] = symbols(["M", "N", "K"]);
    let mut random = StdRng::seed_from_u64(0x9e51);
    for number in 0..40 {
        let aligned = random.random_bool(0.25);
        let mut size = |most: usize| match aligned {
            true => 32 * random.random_range(1..=most / 32),
            false => random.random_range(1..=most),
        };
        let [rows, columns, depth] = [size(130), size(100), size(100)];
        let workgroups = [1, 2, 3, 5, 100][number % 5];
        let order = match random.random_range(0..4) {
            0 => vec![xcd_order(3), grouped_order(2)],
            1 => vec![grouped_order(2)],
            _ => vec![],
        };
        let space = if random.random_bool(0.7) { Shared } else { Global };
        let causal = random.random_bool(0.3);
        let schedule = SCHEDULES[(number / 5) % SCHEDULES.len()].clone();
        let dynamic: Vec<&str> = ["M", "N", "K"].into_iter().filter(|_| random.random_bool(0.3)).collect();
        let name = format!(
            "{number}: {rows} x {columns} x {depth}, {workgroups} workgroups, {order:?}, {dynamic:?}, {schedule:?}"
        );
        let kernel = Kernel::trace("product", |w| {
            w.distribute([workgroup(m, 32, 0), workgroup(n, 32, 1), tile(k, 16), wave(m, 16), wave(n, 16)]);
            w.distribute([persistent(workgroups)]);
            w.distribute(order);
            if causal {
                w.distribute([iterations(k, 0, workgroup_id(0) + 1)]);
            }
            w.mma_type(Mma::F32_16x16x16_F16);
            let [a, b] = [w.memory("a", [m, k], space, F16), w.memory("b", [n, k], space, F16)];
            let c = w.memory("c", [m, n], Global, F32);
            let one = w.register([m, n], F32, 1.0);
            let [sum] = w.iterate(k, [one], |w, [sum]| [w.mma(w.read(a), w.read(b), sum)]);
            w.write(sum, c);
        });
        let [a, b] = [tensor(F16, &[rows, depth]), tensor(F16, &[columns, depth])];
        let (x, y) = (a.to_f64(), b.to_f64());
        let element = |at: usize| {
            let (i, j) = (at / columns, at % columns);
            let depth_of_row = if causal { depth.min((i / 32 + 1) * 16) } else { depth };
            1.0 + (0..depth_of_row).map(|k| x[i * depth + k] * y[j * depth + k]).sum::<f64>()
        };
        let case = Case {
            kernel: kernel.unwrap_or_else(|fault| panic!("{name}: {fault}")),
            name,
            sizes: vec![("M", rows as i64), ("N", columns as i64), ("K", depth as i64)],
            dynamic,
            schedule,
            inputs: vec![a, b, zeros(F32, &[rows, columns])],
            expected: (0..rows * columns).map(element).collect(),
        };
        let executable = case.check_in_order(None);
        let value = |symbol: Symbol| case.sizes.iter().find(|s| s.0 == symbol.name()).map(|s| s.1);
        let tiles = (rows.div_ceil(32) * columns.div_ceil(32)) as u32;
        let grid = executable.grid(&value).expect("a grid");
        assert_eq!(grid, [tiles.min(workgroups as u32), 1, 1], "{}", case.name);
        let seeds = if number % 8 == 0 { 1..=5 } else { number as u64..=number as u64 };
        seeds.for_each(|seed| drop(case.check_in_order(Some(seed))));
    }
}

/// Reductions that waves share through LDS, rows on the third axis of five, and conditions of the tile.
#[test]
fn other_kernels_that_share_their_tiles() {
    let [b, m, k] = symbols(["B", "M", "K"]);
    for (number, workgroups) in [1, 2, 3, 4, 7, 50].into_iter().cycle().take(20).enumerate() {
        let (batches, rows, columns) = (1 + number % 3, 1 + number * 5 % 23, 1 + number * 37 % 140);
        let kernel = Kernel::trace("rows", |w| {
            w.distribute([workgroup(b, 1, 4), workgroup(m, 4, 2), persistent(workgroups), wave(k, 64)]);
            let a = w.memory("a", [b, m, k], Global, F32);
            let sums = w.memory("sums", [b, m], Global, F32);
            let sum = w.read(a).sum(k);
            let late = w.workgroup_id(2).greater_equal(w.workgroup_id(4) + 1);
            let [sum] = w.conditional(late, [sum], |_, [sum]| [sum + sum]);
            w.write(sum, sums);
        });
        let a = tensor(F32, &[batches, rows, columns]);
        let values = a.to_f64();
        let row = |at: usize| {
            let sum: f64 = values[at * columns..][..columns].iter().sum();
            if at % rows / 4 > at / rows { 2.0 * sum } else { sum }
        };
        let name = format!("{number}: {batches} x {rows} x {columns}, {workgroups} workgroups");
        let case = Case {
            kernel: kernel.unwrap_or_else(|fault| panic!("{name}: {fault}")),
            name,
            sizes: vec![("B", batches as i64), ("M", rows as i64), ("K", columns as i64)],
            dynamic: if number % 2 == 0 { vec!["M"] } else { vec!["B", "M"] },
            schedule: Schedule::None,
            inputs: vec![a, zeros(F32, &[batches, rows])],
            expected: (0..batches * rows).map(row).collect(),
        };
        case.check_in_order(None);
        let seeds = if number % 8 == 0 { 1..=5 } else { number as u64..=number as u64 };
        seeds.for_each(|seed| drop(case.check_in_order(Some(seed))));
    }
}
