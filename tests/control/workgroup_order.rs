//! Grids of up to five axes, and orders of workgroups: every tile is taken once, on shapes that no tile
//! divides, static and dynamic. The reference of each kernel is a plain loop; what cannot be right is refused
//! at the author's line.

use groundswell::compile::{Verify, compile_uncached};
use groundswell::prelude::*;
use groundswell_testing::exact_case::{Case, number, tensor, zeros};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const NAMES: [&str; 5] = ["V", "W", "X", "Y", "Z"];

/// `out[v, w, ..] = 2 in[v, w, ..] + w`, with dimension `d` along grid axis `axes[d]`.
fn doubled(axes: &[u32], tiles: &[i64], orders: Vec<Constraint>) -> Kernel {
    let dims: Vec<Symbol> = NAMES.iter().map(|&name| Symbol::new(name)).collect();
    Kernel::trace("doubled", |w| {
        w.distribute(
            dims.iter().zip(axes).zip(tiles).map(|((&dim, &axis), &tile)| workgroup(dim, tile, axis)),
        );
        w.distribute(orders);
        let dims = &dims[..axes.len()];
        let [x, y] = ["x", "y"].map(|name| match *dims {
            [a] => w.memory(name, [a], Global, F32),
            [a, b] => w.memory(name, [a, b], Global, F32),
            [a, b, c] => w.memory(name, [a, b, c], Global, F32),
            [a, b, c, d] => w.memory(name, [a, b, c, d], Global, F32),
            [a, b, c, d, e] => w.memory(name, [a, b, c, d, e], Global, F32),
            _ => unreachable!("one to five dimensions"),
        });
        let last = dims[dims.len() - 1];
        w.write(w.read(x) * 2.0 + w.self_index(last).cast(F32), y);
    })
    .unwrap_or_else(|fault| panic!("{fault}"))
}

fn case(name: String, kernel: Kernel, sizes: &[usize], dynamic: &[usize]) -> Case {
    let last = *sizes.last().expect("a dimension");
    let count = sizes.iter().product::<usize>();
    Case {
        name,
        kernel,
        sizes: NAMES.iter().zip(sizes).map(|(&name, &size)| (name, size as i64)).collect(),
        dynamic: dynamic.iter().map(|&dim| NAMES[dim]).collect(),
        schedule: Schedule::None,
        inputs: vec![tensor(F32, sizes), zeros(F32, sizes)],
        expected: (0..count).map(|at| 2.0 * number(at) + (at % last) as f64).collect(),
    }
}

fn random_orders(random: &mut StdRng, is_static: bool) -> Vec<Constraint> {
    let mut orders = Vec::new();
    let mut most = 4;
    for _ in 0..random.random_range(0..3) {
        if random.random_bool(0.3) {
            orders.push(cached_order());
        }
        // Places that count backwards need no known grid.
        orders.push(match random.random_range(0..if is_static { most } else { most.min(3) }) {
            0 => grouped_order(random.random_range(1..5)),
            1 => xcd_order(random.random_range(1..9)),
            2 => reorder(0, grid_size(0) - 1 - workgroup_id(0)),
            _ => reorder(0, (workgroup_id(0) + 3 * workgroup_id(1) + 1) % grid_size(0)),
        });
        // Expressions that follow one another are one order, with one expression for each axis.
        if matches!(orders.last(), Some(Constraint::Reorder(Reordering::Place { .. }))) {
            most = 2;
        }
    }
    if is_static && most == 4 && random.random_bool(0.3) {
        orders.push(reorder(0, (workgroup_id(0) + workgroup_id(1)) % grid_size(0)));
        orders.push(reorder(1, grid_size(1) - workgroup_id(1) - 1));
    }
    orders
}

#[test]
fn every_tile_is_taken_once() {
    let mut random = StdRng::seed_from_u64(0x9d1);
    for number in 0..64 {
        let count = random.random_range(1..=5);
        let mut axes: Vec<u32> = (0..5).collect();
        for at in (1..5).rev() {
            axes.swap(at, random.random_range(0..=at));
        }
        axes.truncate(count);
        let sizes: Vec<usize> =
            (0..count).map(|_| random.random_range(1..=[0, 300, 40, 9, 6, 5][count])).collect();
        let tiles: Vec<i64> =
            sizes.iter().map(|&size| 1 << random.random_range(0..=(size.ilog2() / 2 + 1))).collect();
        let dynamic: Vec<usize> = (0..count).filter(|_| random.random_bool(0.25)).collect();
        let orders = random_orders(&mut random, dynamic.is_empty());
        let name =
            format!("{number}: {sizes:?} by {tiles:?} along {axes:?}, {dynamic:?} dynamic, {orders:?}");
        let kernel = doubled(&axes, &tiles, orders);
        // Kernels after the passes read back, and mean the same.
        let case = case(name.clone(), kernel, &sizes, &dynamic);
        case.check();
        if number % 8 == 0 {
            case.check_stages(Target::GFX942);
        }
    }
}

#[test]
fn products_may_be_reordered() {
    let [m, n, k] = symbols(["M", "N", "K"]);
    let groups = |rows| vec![xcd_order(8), grouped_order(rows)];
    let orders = [
        (vec![], groups(2)),
        (vec![], groups(3)),
        (vec!["M", "N"], groups(2)),
        (vec![], vec![cached_order()]),
        (vec!["M", "N"], vec![cached_order()]),
    ];
    for (dynamic, order) in orders {
        let kernel = Kernel::trace("gemm", |w| {
            w.distribute([workgroup(m, 32, 0), workgroup(n, 32, 1), tile(k, 32), wave(m, 16)]);
            w.distribute(order);
            w.mma_type(Mma::F32_16x16x16_F16);
            let a = w.memory("a", [m, k], Shared, F16);
            let b = w.memory("b", [n, k], Shared, F16);
            let c = w.memory("c", [m, n], Global, F32);
            let zero = w.register([m, n], F32, 0.0);
            let [sum] = w.iterate(k, [zero], |w, [sum]| [w.mma(w.read(a), w.read(b), sum)]);
            w.write(sum, c);
        })
        .expect("a kernel");
        let [rows, columns, depth] = [150, 100, 70];
        let [a, b] = [tensor(F16, &[rows, depth]), tensor(F16, &[columns, depth])];
        let (x, y) = (a.to_f64(), b.to_f64());
        let product =
            |i: usize, j: usize| (0..depth).map(|k| x[i * depth + k] * y[j * depth + k]).sum::<f64>();
        let expected = (0..rows * columns).map(|at| product(at / columns, at % columns)).collect();
        for schedule in [Schedule::None, Schedule::Prefetch] {
            let case = Case {
                name: format!("gemm, {dynamic:?} dynamic, {schedule:?}"),
                kernel: Kernel::parse(&kernel.to_string(), "gemm.gsw").expect("reads back"),
                sizes: vec![("M", rows as i64), ("N", columns as i64), ("K", depth as i64)],
                dynamic: dynamic.clone(),
                schedule,
                inputs: vec![a.clone(), b.clone(), zeros(F32, &[rows, columns])],
                expected: Vec::clone(&expected),
            };
            case.check_in_order(Some(7));
        }
    }
}

fn refused(orders: Vec<Constraint>, sizes: [i64; 2]) -> String {
    let kernel = doubled(&[0, 1], &[16, 16], orders);
    let options =
        sizes.iter().zip(NAMES).fold(Options::new(Target::GFX942), |options, (&size, name)| match size {
            0 => options.dynamic(name),
            _ => options.set(name, size),
        });
    let fault = compile_uncached(&kernel, &options, Verify::AfterEachPass).expect_err("is refused");
    assert!(fault.location.is_some() && fault.help.is_some(), "{fault}");
    fault.to_string()
}

#[test]
fn orders_that_cannot_be_are_refused() {
    let twice = refused(vec![reorder(0, workgroup_id(0) / 2)], [64, 64]);
    assert!(twice.contains("workgroups [0, 0, 0] and [1, 0, 0] both take the tile at [0, 0, 0]"), "{twice}");
    let outside = refused(vec![reorder(0, workgroup_id(0) + 1)], [64, 64]);
    assert!(outside.contains("workgroup [3, 0, 0] takes the tile at [4, 0, 0]"), "{outside}");
    let zero = refused(vec![grouped_order(0)], [64, 64]);
    assert!(zero.contains("an order of workgroups with 0 of them"), "{zero}");
    let by_zero = refused(vec![reorder(0, workgroup_id(0) % workgroup_id(1))], [64, 64]);
    assert!(by_zero.contains("cannot be computed"), "{by_zero}");
    let open = refused(vec![reorder(0, (workgroup_id(0) + 1) % grid_size(0))], [0, 64]);
    assert!(open.contains("it cannot be checked"), "{open}");
    assert!(open.contains("or grid_size(axis) - 1 - workgroup_id(axis)"), "{open}");
    let unknown = refused(vec![reorder(0, workgroup_id(0) * Symbol::new("Q"))], [64, 64]);
    assert!(unknown.contains("depends on Q, which is not known"), "{unknown}");
    let axis = refused(vec![reorder(4, workgroup_id(0))], [64, 64]);
    assert!(axis.contains("grid axis 4 is reordered, and nothing is spread over it"), "{axis}");
    let again = refused(vec![reorder(0, workgroup_id(0)), reorder(0, workgroup_id(0))], [64, 64]);
    assert!(again.contains("grid axis 0 is reordered twice"), "{again}");
    let kernel = doubled(&[0, 3], &[16, 16], vec![wave(Symbol::new("W"), 8)]);
    let options = Options::new(Target::GFX942).set("V", 64).set("W", 64);
    let waves =
        compile_uncached(&kernel, &options, Verify::AfterEachPass).expect_err("is refused").to_string();
    assert!(waves.contains("W has a wave tile and lies along grid axis 3"), "{waves}");
    let text = "kernel k {\n  reorder 5, workgroup_0\n}\n";
    let fault = Kernel::parse(text, "k.gsw").expect_err("there is no axis 5").to_string();
    assert!(fault.contains("a grid has the axes 0 to 4") && fault.contains("k.gsw:2:11"), "{fault}");
}
