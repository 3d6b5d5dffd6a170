//! Loops that run some of the iterations that their tiles give: ranges of sizes, of the grid and of the
//! workgroup, on shapes that no tile divides, static and dynamic, with all schedules. The reference of each
//! is a plain loop; loops without iterations return their initial values.

use groundswell::compile::{Verify, compile_uncached};
use groundswell::prelude::*;
use groundswell_testing::exact_case::{Case, number, of_numbers, tensor, zeros};
use groundswell_testing::meaning;
use groundswell_testing::schedules::GENERAL as SCHEDULES;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// One end of a range: its expression, and its value for a workgroup at `[x, y]` of a grid, and sizes.
type End = (&'static str, fn() -> SymExpr, fn([i64; 2], [i64; 2], i64) -> i64);

fn k() -> Symbol {
    Symbol::new("K")
}

const ENDS: [End; 9] = [
    ("0", || 0i64.into(), |_, _, _| 0),
    ("1", || 1i64.into(), |_, _, _| 1),
    ("3", || 3i64.into(), |_, _, _| 3),
    ("x", || workgroup_id(0), |[x, _], _, _| x),
    ("x + 1 - 2 y", || workgroup_id(0) + 1 - workgroup_id(1) * 2, |[x, y], _, _| x + 1 - 2 * y),
    ("grid - x", || grid_size(0) - workgroup_id(0), |[x, _], [gx, _], _| gx - x),
    ("grid", || grid_size(0), |_, [gx, _], _| gx),
    ("K / 40 + y", || k() / 40 + workgroup_id(1), |[_, y], _, k| k / 40 + y),
    ("100", || 100i64.into(), |_, _, _| 100),
];

const TILE: i64 = 16;
const BLOCK: [i64; 2] = [32, 32];

/// The elements of K over which the workgroup at a place sums.
fn range(ends: [usize; 2], place: [i64; 2], grid: [i64; 2], k: i64) -> std::ops::Range<usize> {
    let total = (k + TILE - 1) / TILE;
    let [first, count] = ends.map(|end| ENDS[end].2(place, grid, k));
    let end = (first + count).clamp(0, total);
    let first = first.clamp(0, total);
    (first * TILE).min(k) as usize..(end.max(first) * TILE).min(k) as usize
}

fn product(ends: [usize; 2], orders: Vec<Constraint>, space: AddressSpace) -> Result<Kernel, Diagnostic> {
    let range = iterations(k(), ENDS[ends[0]].1(), ENDS[ends[1]].1());
    product_over([range].into_iter().chain(orders), &[], space)
}

/// A product whose sums begin at one, over the iterations that constraints say, with scalars that these may
/// name.
fn product_over(
    constraints: impl IntoIterator<Item = Constraint>,
    scalars: &[&'static str],
    space: AddressSpace,
) -> Result<Kernel, Diagnostic> {
    let [m, n] = symbols(["M", "N"]);
    Kernel::trace("part_of_product", |w| {
        w.distribute([workgroup(m, BLOCK[0], 0), workgroup(n, BLOCK[1], 1), tile(k(), TILE), wave(m, 16)]);
        w.distribute(constraints);
        w.mma_type(Mma::F32_16x16x16_F16);
        for &scalar in scalars {
            w.scalar(scalar, I32);
        }
        let a = w.memory("a", [m, k()], space, F16);
        let b = w.memory("b", [n, k()], space, F16);
        let c = w.memory("c", [m, n], Global, F32);
        let one = w.register([m, n], F32, 1.0);
        let [sum] = w.iterate(k(), [one], |w, [sum]| [w.mma(w.read(a), w.read(b), sum)]);
        w.write(sum, c);
    })
}

/// The text of every stage compiles to the object of the case.
fn reads_back(case: &Case) {
    meaning::reads_back(&case.name, &case.kernel, &case.options(Target::GFX942));
}

#[test]
fn products_over_parts_of_a_dimension() {
    let mut random = StdRng::seed_from_u64(0x17e7);
    for number in 0..40 {
        let sizes = [random.random_range(1..=100), random.random_range(1..=70), random.random_range(1..=150)];
        let ends = [random.random_range(0..ENDS.len()), random.random_range(0..ENDS.len())];
        let dynamic: Vec<&str> = ["M", "N", "K"].into_iter().filter(|_| random.random_bool(0.3)).collect();
        let order = match random.random_range(0..4) {
            0 => vec![xcd_order(3), grouped_order(2)],
            1 if dynamic.is_empty() => vec![reorder(0, grid_size(0) - 1 - workgroup_id(0))],
            _ => vec![],
        };
        let space = if random.random_bool(0.5) { Shared } else { Global };
        let schedule = SCHEDULES[number % SCHEDULES.len()].clone();
        let name = format!(
            "{number}: {sizes:?} from {} for {}, {dynamic:?} dynamic, {order:?}, {schedule:?}",
            ENDS[ends[0]].0, ENDS[ends[1]].0
        );
        let kernel = product(ends, order, space).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        let [m, n, depth] = sizes.map(|size| size as usize);
        let [a, b] = [tensor(F16, &[m, depth]), tensor(F16, &[n, depth])];
        let (x, y) = (a.to_f64(), b.to_f64());
        let grid = [0, 1].map(|axis| (sizes[axis] + BLOCK[axis] - 1) / BLOCK[axis]);
        let element = |at: usize| {
            let (i, j) = (at / n, at % n);
            let place = [i as i64 / BLOCK[0], j as i64 / BLOCK[1]];
            let part = range(ends, place, grid, sizes[2]);
            1.0 + part.map(|k| x[i * depth + k] * y[j * depth + k]).sum::<f64>()
        };
        let case = Case {
            name: name.clone(),
            kernel,
            sizes: vec![("M", sizes[0]), ("N", sizes[1]), ("K", sizes[2])],
            dynamic,
            schedule: schedule.clone(),
            inputs: vec![a, b, zeros(F32, &[m, n])],
            expected: (0..m * n).map(element).collect(),
        };
        case.check();
        if number % 8 == 0 {
            case.check_stages(Target::GFX942);
        }
    }
}

/// Kernels count in 32 bits. What does not fit is an error of the compilation or, if it is up to an open
/// size, of the launch, and never another range.
#[test]
fn iterations_that_leave_32_bits() {
    let m = Symbol::new("M");
    let kernel = Kernel::trace("far", |w| {
        w.distribute([workgroup(m, 16, 0), tile(k(), 16), iterations(k(), k() * k() * workgroup_id(0), 2)]);
        let [a, sums] = [w.memory("a", [m, k()], Global, F32), w.memory("sums", [m], Global, F32)];
        let zero = w.register([m], F32, 0.0);
        let [sum] = w.iterate(k(), [zero], |w, [sum]| [sum + w.read(a).sum(k())]);
        w.write(sum, sums);
    });
    let kernel = kernel.expect("a kernel");
    let options = Options::new(Target::GFX942).set(m, 40);
    kernel.compile(&options.clone().set("K", 30_000)).expect("fits");
    let fault = kernel.compile(&options.clone().set("K", 40_000)).expect_err("does not fit");
    assert!(fault.message.contains("32-bit"), "{fault}");
    let executable = kernel.compile(&options.dynamic("K")).expect("may fit");
    for (size, fits) in [(100, true), (30_000, true), (40_000, false), (i64::from(i32::MAX), false)] {
        let grid = executable.grid(&|symbol: Symbol| (symbol.name() == "K").then_some(size));
        assert_eq!(grid.is_ok(), fits, "{size}: {grid:?}");
    }
}

/// Sums below the diagonal, where a workgroup has no iteration of a tile that lies above it.
#[test]
fn a_causal_loop_ends_at_the_diagonal() {
    for (rows, columns, dynamic) in [(100, 100, vec![]), (70, 33, vec!["M"]), (33, 90, vec!["M", "K"])] {
        let m = Symbol::new("M");
        let kernel = Kernel::trace("below", |w| {
            w.distribute([workgroup(m, 16, 0), tile(k(), 16), iterations(k(), 0, workgroup_id(0) + 1)]);
            let [a, sums] = [w.memory("a", [m, k()], Global, F32), w.memory("sums", [m], Global, F32)];
            let zero = w.register([m], F32, 0.0);
            let [sum] = w.iterate(k(), [zero], |w, [sum]| {
                let row = w.self_index(m).broadcast([m, k()]);
                [sum + w.select(w.self_index(k()).less_equal(row), w.read(a), 0.0).sum(k())]
            });
            w.write(sum, sums);
        })
        .expect("a kernel");
        let below = |row: usize| (0..columns.min(row + 1)).map(|column| number(row * columns + column)).sum();
        for schedule in SCHEDULES {
            let case = Case {
                name: format!("{rows} x {columns}, {dynamic:?} dynamic, {schedule:?}"),
                kernel: Kernel::parse(&kernel.to_string(), "below.gsw").expect("reads back"),
                sizes: vec![("M", rows as i64), ("K", columns as i64)],
                dynamic: dynamic.clone(),
                schedule,
                inputs: vec![tensor(F32, &[rows, columns]), zeros(F32, &[rows])],
                expected: (0..rows).map(below).collect(),
            };
            case.check_in_order(Some(5));
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let fault = |constraints: Vec<Constraint>, has_m: bool| {
        let m = Symbol::new("M");
        let kernel = Kernel::trace("refused", |w| {
            w.distribute([workgroup(m, 16, 0), tile(k(), 16)]);
            w.distribute(constraints);
            let a = w.memory("a", [m, k()], Global, F32);
            let one = w.register([m], F32, 0.0);
            let [sum] = w.iterate(k(), [one], |w, [sum]| [sum + w.read(a).sum(k())]);
            w.write(sum, w.memory("sums", [m], Global, F32));
            if !has_m {
                let ones = w.register([k()], F32, 1.0);
                w.write(ones, w.memory("ones", [k()], Global, F32));
            }
        });
        let options = Options::new(Target::GFX942).set("M", 64).set("K", 64);
        let fault = match kernel {
            Ok(kernel) => compile_uncached(&kernel, &options, Verify::AfterEachPass).expect_err("is refused"),
            Err(fault) => fault,
        };
        assert!(fault.location.is_some() && fault.help.is_some(), "{fault}");
        fault.to_string()
    };
    let shared = fault(vec![iterations(k(), 0, workgroup_id(0))], false);
    assert!(shared.contains("every workgroup along M would write its own value to `ones`"), "{shared}");
    let twice = fault(vec![iterations(k(), 0, 1), iterations(k(), 0, 2)], true);
    assert!(twice.contains("the iterations of loops over K are chosen twice"), "{twice}");
    let other = fault(vec![iterations(Symbol::new("M"), 0, 1)], true);
    assert!(other.contains("M has no loop tile"), "{other}");
    let unknown = fault(vec![iterations(k(), 0, Symbol::new("Q"))], true);
    assert!(unknown.contains("depends on Q, which has no value"), "{unknown}");
    let zero = fault(vec![iterations(k(), 0, k() / (k() - k()))], true);
    assert!(zero.contains("division by zero"), "{zero}");
}

/// Scalars say where a loop begins and how many tiles it takes, also where there are none.
#[test]
fn scalars_choose_iterations() {
    let kernel = |space| {
        let [start, count] = ["start", "count"].map(|name| SymExpr::from(Symbol::new(name)));
        product_over([iterations(k(), start, count)], &["start", "count"], space).expect("a kernel")
    };
    assert!(kernel(Global).symbols().iter().all(|symbol| ["M", "N", "K"].contains(&symbol.name())));
    let mut random = StdRng::seed_from_u64(0x5ca1);
    let most = [(1 << 30) - 1, -(1 << 30)];
    for number in 0..40 {
        let sizes = [random.random_range(1..=80), random.random_range(1..=40), random.random_range(1..=150)];
        let mut scalars: [i64; 2] = [random.random_range(-2..=6), random.random_range(-3..=12)];
        if number % 10 == 9 {
            scalars[1] = most[number / 10 % 2];
        }
        let [start, count] = scalars;
        let dynamic: Vec<&str> = ["M", "N", "K"].into_iter().filter(|_| random.random_bool(0.3)).collect();
        let schedule = SCHEDULES[number % SCHEDULES.len()].clone();
        let space = if random.random_bool(0.7) { Shared } else { Global };
        let [rows, columns, depth] = sizes.map(|size| size as usize);
        let [a, b] = [tensor(F16, &[rows, depth]), tensor(F16, &[columns, depth])];
        let (x, y) = (a.to_f64(), b.to_f64());
        let element = |at: usize| {
            let (i, j) = (at / columns, at % columns);
            let total = (sizes[2] + TILE - 1) / TILE;
            let first = start;
            let end = (first + count).clamp(0, total);
            let first = first.clamp(0, total);
            let part = (first * TILE).min(sizes[2]) as usize..(end.max(first) * TILE).min(sizes[2]) as usize;
            1.0 + part.map(|k| x[i * depth + k] * y[j * depth + k]).sum::<f64>()
        };
        let case = Case {
            name: format!("{number}: {sizes:?} from {start} for {count}, {dynamic:?} dynamic, {schedule:?}"),
            kernel: kernel(space),
            sizes: vec![("M", sizes[0]), ("N", sizes[1]), ("K", sizes[2])],
            dynamic,
            schedule,
            inputs: vec![
                Tensor::scalar(start as i32),
                Tensor::scalar(count as i32),
                a,
                b,
                zeros(F32, &[rows, columns]),
            ],
            expected: (0..rows * columns).map(element).collect(),
        };
        case.check();
        case.check_in_order(Some(number as u64 % 5 + 1));
        if number % 8 == 0 {
            reads_back(&case);
        }
    }
}

/// A scalar beyond what fits is an error of the launch, and never another range.
#[test]
fn scalars_beyond_the_range_are_refused_at_launch() {
    let m = Symbol::new("M");
    let kernel = Kernel::trace("part", |w| {
        let count = w.scalar("count", I32);
        w.distribute([workgroup(m, 16, 0), tile(k(), 16), iterations(k(), 0, Symbol::new("count"))]);
        let [a, sums] = [w.memory("a", [m, k()], Global, F32), w.memory("sums", [m], Global, F32)];
        let zero = w.register([m], F32, 0.0);
        let [sum] = w.iterate(k(), [zero], |w, [sum]| [sum + w.read(a).sum(k())]);
        w.write(sum + count.cast(F32), sums);
    });
    let options = Options::new(Target::GFX942).set(m, 20).set("K", 40);
    let executable = kernel.expect("a kernel").compile(&options).expect("compiles");
    let device = Device::simulator(Target::GFX942);
    let [a, sums] =
        [device.upload(&[1.0f32; 800]).expect("fits"), device.upload(&[0.0f32; 20]).expect("fits")];
    let launch = |count: i32| device.launch(&executable).scalar(count).buffer(&a).buffer(&sums).run();
    launch(2).expect("runs");
    assert_eq!(sums.download::<f32>().expect("readable"), [34.0; 20]);
    for count in [1 << 30, i32::MIN] {
        let fault = launch(count).expect_err("is refused");
        assert!(fault.message.contains("`count` chooses iterations") && fault.help.is_some(), "{fault}");
    }
}

/// A loop inside of another takes as many tiles as the other has run.
#[test]
fn outer_loops_choose_iterations() {
    let [m, j] = symbols(["M", "J"]);
    let traced = |first: SymExpr, count: SymExpr| {
        let kernel = Kernel::trace("triangle", |w| {
            w.distribute([workgroup(m, 16, 0), tile(j, 8), tile(k(), 16), iterations(k(), first, count)]);
            let [a, b] = [w.memory("a", [m, k()], Global, F32), w.memory("b", [m, j], Global, F32)];
            let sums = w.memory("sums", [m], Global, F32);
            let zero = w.register([m], F32, 0.0);
            let [total] = w.iterate(j, [zero], |w, [total]| {
                let one = w.register([m], F32, 1.0);
                let [inner] = w.iterate(k(), [one], |w, [sum]| [sum + w.read(a).sum(k())]);
                [total + inner * w.read(b).sum(j)]
            });
            w.write(total, sums);
        });
        kernel.expect("a kernel")
    };
    let of_j = || iteration_of(j);
    /// First iteration and count of an outer iteration.
    type Range = fn(i64) -> (i64, i64);
    let cases: [(SymExpr, SymExpr, Range); 3] = [
        (0i64.into(), of_j() + 1, |j| (0, j + 1)),
        (of_j(), 2i64.into(), |j| (j, 2)),
        (3 - of_j(), of_j() % 3, |j| (3 - j, j % 3)),
    ];
    let sizes: [(usize, usize, usize); 6] =
        [(16, 16, 16), (20, 33, 70), (5, 8, 100), (33, 7, 15), (17, 50, 64), (40, 64, 33)];
    for (number, (first, count, range)) in cases.into_iter().enumerate() {
        let kernel = traced(first, count).to_string();
        for (at, (rows, outer, depth)) in sizes.into_iter().enumerate() {
            for (turn, schedule) in SCHEDULES.into_iter().enumerate() {
                let dynamic = match (at + turn) % 3 {
                    0 => vec![],
                    1 => vec!["K"],
                    _ => vec!["J", "K"],
                };
                let element = |i: usize| {
                    let mut total = 0.0;
                    for jt in 0..outer.div_ceil(8) {
                        let (first, count) = range(jt as i64);
                        let tiles = (depth as i64 + 15) / 16;
                        let first = first.clamp(0, tiles);
                        let end = (range(jt as i64).0 + count).clamp(0, tiles).max(first);
                        let part = (first as usize * 16).min(depth)..(end as usize * 16).min(depth);
                        let inner = 1.0 + part.map(|k| self::number(i * depth + k)).sum::<f64>();
                        let columns = jt * 8..((jt + 1) * 8).min(outer);
                        total += inner * columns.map(|j| self::number(i * outer + j)).sum::<f64>();
                    }
                    total
                };
                let case = Case {
                    name: format!("{number}: {rows} x {outer} x {depth}, {dynamic:?} dynamic, {schedule:?}"),
                    kernel: Kernel::parse(&kernel, "triangle.gsw").expect("reads back"),
                    sizes: vec![("M", rows as i64), ("J", outer as i64), ("K", depth as i64)],
                    dynamic,
                    schedule,
                    inputs: vec![
                        tensor(F32, &[rows, depth]),
                        tensor(F32, &[rows, outer]),
                        zeros(F32, &[rows]),
                    ],
                    expected: (0..rows).map(element).collect(),
                };
                case.check_in_order(None);
                case.check_in_order(Some(turn as u64 + 1));
            }
        }
    }
}

/// Every so manieth tile, from a first one on, static and open, with all schedules.
#[test]
fn loops_take_every_so_manieth_tile() {
    let mut random = StdRng::seed_from_u64(0x57e9);
    let first_and_count: [[usize; 2]; 5] = [[0, 8], [1, 6], [3, 8], [5, 7], [4, 8]];
    for number in 0..50 {
        let sizes = [random.random_range(1..=80), random.random_range(1..=70), random.random_range(1..=300)];
        let ends = first_and_count[number % first_and_count.len()];
        let (start, step) = (random.random_range(-4..=3i64), [2, 3, 5][number % 3]);
        let is_scalar = number % 4 == 0;
        let dynamic: Vec<&str> = ["M", "N", "K"].into_iter().filter(|_| random.random_bool(0.3)).collect();
        let space = if random.random_bool(0.7) { Shared } else { Global };
        let first = if is_scalar { Symbol::new("start").into() } else { ENDS[ends[0]].1() };
        let range = iterations_by(k(), first, ENDS[ends[1]].1(), step);
        let kernel = product_over([range], &["start"], space);
        let [rows, columns, depth] = sizes.map(|size: i64| size as usize);
        let [a, b] = [tensor(F16, &[rows, depth]), tensor(F16, &[columns, depth])];
        let (x, y) = (a.to_f64(), b.to_f64());
        let grid = [0, 1].map(|axis| (sizes[axis] + BLOCK[axis] - 1) / BLOCK[axis]);
        let element = |at: usize| {
            let (i, j) = (at / columns, at % columns);
            let place = [i as i64 / BLOCK[0], j as i64 / BLOCK[1]];
            let [first, count] = ends.map(|end| ENDS[end].2(place, grid, sizes[2]));
            let first = if is_scalar { start } else { first };
            let tiles = (0..(sizes[2] + TILE - 1) / TILE)
                .filter(|&tile| tile >= first && tile < first + count && (tile - first) % step == 0);
            let part = tiles.flat_map(|tile| tile * TILE..((tile + 1) * TILE).min(sizes[2]));
            1.0 + part.map(|k| x[i * depth + k as usize] * y[j * depth + k as usize]).sum::<f64>()
        };
        let case = Case {
            name: format!("{number}: {sizes:?} {ends:?} from {start} by {step}, {dynamic:?} open"),
            kernel: kernel.expect("a kernel"),
            sizes: vec![("M", sizes[0]), ("N", sizes[1]), ("K", sizes[2])],
            dynamic,
            schedule: SCHEDULES[number % SCHEDULES.len()].clone(),
            inputs: vec![Tensor::scalar(start as i32), a, b, zeros(F32, &[rows, columns])],
            expected: (0..rows * columns).map(element).collect(),
        };
        case.check_in_order(Some(number as u64 % 5 + 1));
        if number % 8 == 0 {
            reads_back(&case);
        }
    }
}

/// Places, numbers of iterations and loops inside follow the tiles that a loop with a step takes; accesses at
/// coordinates too.
#[test]
fn places_follow_the_tiles_of_a_step() {
    let [m, j] = symbols(["M", "J"]);
    let shapes: [(usize, usize, usize); 7] =
        [(16, 16, 16), (20, 33, 70), (5, 8, 100), (33, 7, 15), (17, 50, 64), (40, 64, 33), (1, 1, 1)];
    for (at, (rows, outer, depth)) in shapes.into_iter().enumerate() {
        for (turn, schedule) in SCHEDULES.into_iter().enumerate() {
            let (first, step) = ([1, 0, 2][(at + turn) % 3], [2, 3][turn % 2]);
            let kernel = Kernel::trace("places", |w| {
                w.distribute([workgroup(m, 16, 0), tile(j, 8), tile(k(), 16)]);
                w.distribute([
                    iterations_by(j, first, 100, step),
                    iterations_by(k(), 0, iteration_of(j) + 1, 2),
                ]);
                let a = w.memory("a", [k(), m], Global, F32);
                let sums = w.memory("sums", [m], Global, F32);
                let zero = w.register([m], F32, 0.0);
                let [sum] = w.iterate(j, [zero], |w, [sum]| {
                    let number = w.iteration(j).cast(F32);
                    let [part] = w.iterate(k(), [zero], |w, [part]| {
                        let place = w.self_index(k()).cast(F32) * w.read_at(a, [k(), m], [m, k()]);
                        [part + place.sum(k()) + w.iteration(k()).cast(F32)]
                    });
                    [sum + part + (w.self_index(j).cast(F32)).sum(j) + number]
                });
                w.write(sum, sums);
            });
            let element = |i: usize| {
                let mut total = 0.0;
                for jt in (first as usize..outer.div_ceil(8)).step_by(step as usize) {
                    for kt in (0..depth.div_ceil(16).min(jt + 1)).step_by(2) {
                        let places = kt * 16..(kt * 16 + 16).min(depth);
                        total += places.map(|k| k as f64 * number(k * rows + i)).sum::<f64>() + kt as f64;
                    }
                    total += (jt * 8..(jt * 8 + 8).min(outer)).sum::<usize>() as f64 + jt as f64;
                }
                total
            };
            let case = Case {
                name: format!("{rows} x {outer} x {depth} from {first} by {step}, {schedule:?}"),
                kernel: kernel.expect("a kernel"),
                sizes: vec![("M", rows as i64), ("J", outer as i64), ("K", depth as i64)],
                dynamic: [vec![], vec!["K"], vec!["J", "K"]][(at + turn) % 3].clone(),
                schedule,
                inputs: vec![tensor(F32, &[depth, rows]), zeros(F32, &[rows])],
                expected: (0..rows).map(element).collect(),
            };
            case.check_in_order(None);
            case.check_in_order(Some(turn as u64 + 1));
        }
    }
}

/// Each sequence has a table's entry for its first tile and for the number of its tiles, some of which do not
/// exist: loops with all schedules, by steps or not.
#[test]
fn tables_choose_iterations() {
    let [b, m, n, first, count] = symbols(["B", "M", "N", "FIRST", "COUNT"]);
    let mut random = StdRng::seed_from_u64(0x7ab1e);
    for number in 0..40 {
        let sizes = [1, 1, 1, 1].map(|least| random.random_range(least..=70usize));
        let [rows, columns, depth, sequences] = [sizes[0], sizes[1], sizes[2] * 3, sizes[3] % 5 + 1];
        let step = [1, 2, 1, 3][number % 4];
        let dynamic: Vec<&str> =
            ["B", "M", "N", "K"].into_iter().filter(|_| random.random_bool(0.3)).collect();
        let space = if random.random_bool(0.7) { Shared } else { Global };
        let kernel = Kernel::trace("sequences", |w| {
            w.distribute([workgroup(m, 32, 0), workgroup(n, 32, 1), workgroup(b, 1, 2), wave(m, 16)]);
            w.distribute([tile(k(), TILE), iterations_by(k(), first, count, step)]);
            w.mma_type(Mma::F32_16x16x16_F16);
            let [firsts, counts] = ["firsts", "counts"].map(|name| w.memory(name, [b], Global, I32));
            let rows = w.memory("rows", [m, k()], space, F16);
            let columns = w.memory("columns", [n, k()], space, F16);
            let sums = w.memory("sums", [b, m, n], Global, F32);
            let sequence = w.workgroup_id(2);
            w.set_symbol(first, w.read_at(firsts, [sequence], []));
            w.set_symbol(count, w.read_at(counts, [sequence], []) + 1);
            let one = w.register([m, n], F32, 1.0);
            let [sum] = w.iterate(k(), [one], |w, [sum]| [w.mma(w.read(rows), w.read(columns), sum)]);
            w.write(sum.broadcast([b, m, n]), sums);
        });
        let mut numbers =
            || (0..sequences).map(|_| f64::from(random.random_range(-3..=9))).collect::<Vec<_>>();
        let [firsts, mut counts] = [numbers(), numbers()];
        if number % 7 == 3 {
            counts[0] = [f64::from(i32::MIN), f64::from(i32::MAX - 1)][number / 7 % 2];
        }
        let [x, y] = [tensor(F16, &[rows, depth]), tensor(F16, &[columns, depth])];
        let (left, right) = (x.to_f64(), y.to_f64());
        let element = |at: usize| {
            let (of, i, j) = (at / (rows * columns), at / columns % rows, at % columns);
            let (first, count) = (firsts[of] as i64, counts[of] as i64 + 1);
            let tiles = (0..(depth as i64 + TILE - 1) / TILE)
                .filter(|&tile| tile >= first && tile - first < count && (tile - first) % step == 0);
            let part = tiles.flat_map(|tile| tile * TILE..((tile + 1) * TILE).min(depth as i64));
            1.0 + part.map(|k| left[i * depth + k as usize] * right[j * depth + k as usize]).sum::<f64>()
        };
        let case = Case {
            name: format!(
                "{number}: {rows} x {columns} x {depth} of {firsts:?} for {counts:?} by {step}, {dynamic:?} open"
            ),
            kernel: kernel.expect("a kernel"),
            sizes: [("B", sequences), ("M", rows), ("N", columns), ("K", depth)]
                .map(|(name, size)| (name, size as i64))
                .into(),
            dynamic,
            schedule: SCHEDULES[number % SCHEDULES.len()].clone(),
            inputs: vec![
                of_numbers(I32, &[sequences], &firsts),
                of_numbers(I32, &[sequences], &counts),
                x,
                y,
                zeros(F32, &[sequences, rows, columns]),
            ],
            expected: (0..sequences * rows * columns).map(element).collect(),
        };
        case.check_in_order(Some(number as u64 % 5 + 1));
        if number % 8 == 0 {
            reads_back(&case);
        }
    }
}

/// The count of a loop inside of another one, or of one under a condition, is read anew in each iteration.
#[test]
fn loops_around_read_the_counts() {
    let [m, j, count] = symbols(["M", "J", "COUNT"]);
    let shapes: [(usize, usize, usize); 7] =
        [(16, 16, 16), (20, 33, 70), (5, 8, 100), (33, 7, 15), (17, 50, 64), (40, 64, 33), (1, 1, 1)];
    for (at, (rows, outer, depth)) in shapes.into_iter().enumerate() {
        for (turn, schedule) in SCHEDULES.into_iter().enumerate() {
            let kernel = Kernel::trace("counted", |w| {
                w.distribute([workgroup(m, 16, 0), tile(j, 1), tile(k(), 16), iterations(k(), 0, count)]);
                let counts = w.memory("counts", [j], Global, I32);
                let a = w.memory("a", [m, k()], Global, F32);
                let sums = w.memory("sums", [m], Global, F32);
                let zero = w.register([m], F32, 0.0);
                let [sum] = w.iterate(j, [zero], |w, [sum]| {
                    let tiles = w.read_at(counts, [w.iteration(j)], []);
                    w.conditional(tiles.not_equal(3), [sum], |w, [sum]| {
                        w.set_symbol(count, tiles * 2);
                        let [part] = w.iterate(k(), [zero], |w, [part]| [part + w.read(a).sum(k())]);
                        [sum + part + 1.0]
                    })
                });
                w.write(sum, sums);
            });
            let tiles = |j: usize| (j * 5 + 2) % 6;
            let element = |i: usize| {
                let of =
                    |j: usize| (0..(tiles(j) * 32).min(depth)).map(|k| number(i * depth + k)).sum::<f64>();
                (0..outer).filter(|&j| tiles(j) != 3).map(|j| of(j) + 1.0).sum()
            };
            let case = Case {
                name: format!("{rows} x {outer} x {depth}, {schedule:?}"),
                kernel: kernel.expect("a kernel"),
                sizes: vec![("M", rows as i64), ("J", outer as i64), ("K", depth as i64)],
                dynamic: [vec![], vec!["K"], vec!["J", "K"]][(at + turn) % 3].clone(),
                schedule,
                inputs: vec![
                    of_numbers(I32, &[outer], &(0..outer).map(|j| tiles(j) as f64).collect::<Vec<_>>()),
                    tensor(F32, &[rows, depth]),
                    zeros(F32, &[rows]),
                ],
                expected: (0..rows).map(element).collect(),
            };
            case.check_in_order(None);
            case.check_in_order(Some(turn as u64 + 1));
        }
    }
}
