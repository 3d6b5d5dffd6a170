//! Scaled dimensions: values along `K/32` that stand for blocks of 32 elements of K, in memories, arithmetic,
//! loops, products and reductions, under every schedule. The reference of each is a plain loop.

use groundswell::prelude::*;
use groundswell_testing::exact_case::{Case, number, open, tensor, zeros};

/// Sizes of M and K: whole tiles, whole blocks, and neither.
const SHAPES: [[usize; 2]; 20] = [
    [16, 64],
    [32, 128],
    [48, 256],
    [16, 32],
    [16, 96],
    [1, 1],
    [1, 31],
    [3, 33],
    [5, 63],
    [7, 65],
    [16, 100],
    [17, 127],
    [20, 129],
    [33, 200],
    [2, 257],
    [40, 320],
    [31, 30],
    [64, 95],
    [15, 192],
    [19, 161],
];

const SCHEDULES: [Schedule; 4] = [Schedule::None, Schedule::Prefetch, Schedule::FourStage, Schedule::Modulo];

/// How K is spread.
#[derive(Copy, Clone, Debug)]
enum Spread {
    Workgroups,
    Waves,
    Whole,
}

fn constraints(spread: Spread) -> Vec<Constraint> {
    let [m, k] = symbols(["M", "K"]);
    let of_k = match spread {
        Spread::Workgroups => vec![workgroup(k, 64, 1)],
        Spread::Waves => vec![workgroup(k, 128, 1), wave(k, 64)],
        Spread::Whole => vec![],
    };
    [workgroup(m, 16, 0)].into_iter().chain(of_k).collect()
}

/// A scale that is read is multiplied with the elements of its block; one that is computed first goes through
/// LDS; the scales themselves are written, too.
#[test]
fn elements_are_scaled_by_block() {
    let [dm, dk] = symbols(["M", "K"]);
    for by in [2, 32] {
        for (at, [m, k]) in SHAPES.into_iter().enumerate() {
            for spread in [Spread::Workgroups, Spread::Waves, Spread::Whole] {
                let blocks = dk.scaled(by);
                let kernel = Kernel::trace("scaled", |w| {
                    w.distribute(constraints(spread));
                    let x = w.memory("x", [dm, dk], Global, F32);
                    let s = w.memory("s", [dm, blocks], Global, F32);
                    let doubled = w.memory("doubled", [dm, blocks], Global, F32);
                    let y = w.memory("y", [dm, dk], Global, F32);
                    let (x, scale) = (w.read(x), w.read(s));
                    let computed = scale * 2;
                    w.write(computed, doubled);
                    w.write(x * scale + computed.broadcast([dm, dk]), y);
                })
                .expect("well-formed");
                let count = k.div_ceil(by as usize);
                let shapes = [[m, k], [m, count], [m, count], [m, k]];
                let inputs = shapes.iter().enumerate().map(|(at, shape)| match at {
                    0 | 1 => tensor(F32, shape),
                    _ => zeros(F32, shape),
                });
                let title = format!("{spread:?} by {by} {m}x{k}");
                let mut case = Case::plain(title, kernel, &[("M", m), ("K", k)], inputs.collect());
                if !matches!(spread, Spread::Whole) {
                    case.dynamic = open(at);
                }
                case.expected = (0..m * k)
                    .map(|at| {
                        let scale = number(at / k * count + at % k / by as usize);
                        number(at) * scale + scale * 2.0
                    })
                    .collect();
                case.check();
            }
        }
    }
}

/// What a kernel leaves along a scaled dimension: in loops, with waves, sizes and places.
#[test]
fn values_along_scaled_dimensions_are_written() {
    let [dm, dk] = symbols(["M", "K"]);
    let blocks = dk.scaled(32);
    for (at, [m, k]) in SHAPES.into_iter().enumerate() {
        let kernel = Kernel::trace("written", |w| {
            w.distribute([workgroup(dm, 16, 0), tile(dk, 64)]);
            let s = w.memory("s", [dm, blocks], Global, F32);
            let t = w.memory("t", [dm, blocks], Global, F32);
            w.iterate(dk, [], |w, []| {
                let place = w.self_index(blocks).cast(F32);
                w.write(w.read(s) * 3 + place * w.size(blocks).cast(F32), t);
                []
            });
        })
        .expect("well-formed");
        let count = k.div_ceil(32);
        let inputs = vec![tensor(F32, &[m, count]), zeros(F32, &[m, count])];
        let mut case = Case::plain(format!("written {m}x{k}"), kernel, &[("M", m), ("K", k)], inputs);
        case.dynamic = open(at);
        case.expected = (0..m * count).map(|at| number(at) * 3.0 + (at % count * count) as f64).collect();
        case.check();
    }
}

/// Loops over K take their part of K/32: scales from memories and scales that are computed, with the sums of
/// the scales themselves.
#[test]
fn loops_take_their_blocks() {
    let [dm, dk] = symbols(["M", "K"]);
    let blocks = dk.scaled(32);
    for schedule in SCHEDULES {
        for (at, [m, k]) in SHAPES.into_iter().enumerate() {
            let kernel = Kernel::trace("loops", |w| {
                w.distribute([workgroup(dm, 16, 0), tile(dk, 64)]);
                let x = w.memory("x", [dm, dk], if at % 3 == 0 { Shared } else { Global }, F32);
                let s = w.memory("s", [dm, blocks], if at % 3 == 1 { Shared } else { Global }, F32);
                let y = w.memory("y", [dm], Global, F32);
                let zero = w.register([dm], F32, 0.0);
                let [sum, scales] = w.iterate(dk, [zero, zero], |w, [sum, scales]| {
                    let scale = w.read(s);
                    let products = w.read(x) * scale;
                    let products = if at % 2 == 0 { products } else { products * (scale + 1) };
                    [sum + products.sum(dk), scales + scale.sum(blocks)]
                });
                w.write(sum + scales * 1000, y);
            })
            .expect("well-formed");
            let count = k.div_ceil(32);
            let inputs = vec![tensor(F32, &[m, k]), tensor(F32, &[m, count]), zeros(F32, &[m])];
            let title = format!("{schedule:?} {m}x{k}");
            let mut case = Case::plain(title, kernel, &[("M", m), ("K", k)], inputs);
            case.schedule = schedule.clone();
            case.dynamic = open(at);
            case.expected = (0..m)
                .map(|row| {
                    let scale = |block: usize| number(row * count + block);
                    let scaled = |at: usize| number(row * k + at) * scale(at / 32);
                    let further = |column: usize| if at % 2 == 0 { 1.0 } else { scale(column / 32) + 1.0 };
                    let sum: f64 = (0..k).map(|column| scaled(column) * further(column)).sum();
                    sum + 1000.0 * (0..count).map(scale).sum::<f64>()
                })
                .collect();
            case.check();
        }
    }
}

/// A product whose factors are scaled by block before they are multiplied, as in microscaling formats.
#[test]
fn factors_of_products_are_scaled() {
    let [dm, dn, dk] = symbols(["M", "N", "K"]);
    let blocks = dk.scaled(32);
    for schedule in SCHEDULES {
        for (at, [m, k]) in SHAPES.into_iter().enumerate() {
            let n = 16 + at;
            let kernel = Kernel::trace("product", |w| {
                w.distribute([workgroup(dm, 32, 0), workgroup(dn, 32, 1), tile(dk, 64), wave(dm, 16)]);
                w.mma_type(Mma::F32_16x16x16_F16);
                let a = w.memory("a", [dm, dk], Shared, F16);
                let a_scale = w.memory("a_scale", [dm, blocks], Global, F16);
                let b = w.memory("b", [dn, dk], Shared, F16);
                let c = w.memory("c", [dm, dn], Global, F32);
                let zero = w.register([dm, dn], F32, 0.0);
                let [sum] = w.iterate(dk, [zero], |w, [sum]| {
                    let scaled = w.read(a) * w.read(a_scale);
                    [w.mma(scaled, w.read(b), sum)]
                });
                w.write(sum, c);
            })
            .expect("well-formed");
            let count = k.div_ceil(32);
            let shapes = [[m, k], [m, count], [n, k]];
            let mut inputs: Vec<Tensor> = shapes.iter().map(|shape| tensor(F16, shape)).collect();
            inputs.push(zeros(F32, &[m, n]));
            let title = format!("product {schedule:?} {m}x{n}x{k}");
            let mut case = Case::plain(title, kernel, &[("M", m), ("N", n), ("K", k)], inputs);
            case.schedule = schedule.clone();
            case.dynamic = open(at);
            let scaled = |i: usize, at: usize| number(i * k + at) * number(i * count + at / 32);
            let element = |i: usize, j: usize| (0..k).map(|at| scaled(i, at) * number(j * k + at)).sum();
            case.expected = (0..m * n).map(|at| element(at / n, at % n)).collect();
            case.check();
        }
    }
}

/// Kernels are clean in check mode, on five seeds.
#[test]
fn repetition_is_clean_on_five_seeds() {
    let [dm, dk] = symbols(["M", "K"]);
    for seed in 1..=5 {
        for [m, k] in [[16usize, 64usize], [5, 100], [20, 161]] {
            let kernel = Kernel::trace("checked", |w| {
                w.distribute([workgroup(dm, 8, 0), tile(dk, 64), wave(dm, 4)]);
                let x = w.memory("x", [dm, dk], Shared, F32);
                let s = w.memory("s", [dm, dk.scaled(16)], Global, F32);
                let y = w.memory("y", [dm], Global, F32);
                let zero = w.register([dm], F32, 0.0);
                let [sum] = w.iterate(dk, [zero], |w, [sum]| {
                    let scale = w.read(s);
                    [sum + (w.read(x) * scale * (scale + 1)).sum(dk)]
                });
                w.write(sum, y);
            })
            .expect("well-formed");
            let count = k.div_ceil(16);
            let inputs = vec![tensor(F32, &[m, k]), tensor(F32, &[m, count]), zeros(F32, &[m])];
            let mut case = Case::plain(format!("seed {seed} {m}x{k}"), kernel, &[("M", m), ("K", k)], inputs);
            case.schedule = Schedule::Prefetch;
            case.expected = (0..m)
                .map(|row| {
                    let scale = |at: usize| number(row * count + at / 16);
                    (0..k).map(|at| number(row * k + at) * scale(at) * (scale(at) + 1.0)).sum()
                })
                .collect();
            case.check_in_order(Some(seed));
        }
    }
}

/// The size of a scaled dimension is that of its base, and numbers have no blocks.
#[test]
fn scaled_dimensions_have_no_size_of_their_own() {
    let [m, k] = symbols(["M", "K"]);
    let copy = |blocks: Symbol| {
        Kernel::trace("copy", |w| {
            w.distribute([workgroup(m, 16, 0)]);
            let [s, t] = ["s", "t"].map(|name| w.memory(name, [m, blocks], Global, F32));
            w.write(w.read(s), t);
        })
    };
    let kernel = copy(k.scaled(32)).expect("well-formed");
    let options = Options::new(Target::GFX942).set(m, 16).set(k, 64);
    let fault = kernel.compile(&options.clone().set("K/32", 2)).expect_err("has two sizes");
    assert_eq!(fault.message, "K/32 has no size of its own");
    assert_eq!(fault.help.as_deref(), Some("it follows K: choose the size of K"));
    kernel.compile(&options).expect("K has a size");
    let fault = copy(Symbol::from(64).scaled(32)).map(drop).expect_err("64 is a number");
    assert_eq!(fault.message, "64/32 is no dimension: 64 is a number");
}

/// The number of blocks stands in coordinates as a size, whether the size of K is known or left open.
#[test]
fn the_number_of_blocks_stands_in_coordinates() {
    let [m, k, r] = symbols(["M", "K", "R"]);
    let last_first = || {
        let traced = Kernel::trace("last_first", |w| {
            w.distribute([workgroup(m, 16, 0)]);
            let s = w.memory("s", [m, k.scaled(32)], Global, F32);
            let t = w.memory("t", [m, r], Global, F32);
            let count = SymExpr::from(k.scaled(32));
            w.write(w.read_at(s, [m.into(), count - 1 - r], [m, r]), t);
        });
        traced.expect("well-formed")
    };
    for (at, [m, k]) in SHAPES.into_iter().enumerate() {
        let count = k.div_ceil(32);
        let s = tensor(F32, &[m, count]);
        let rows = s.to_f64();
        let sizes = [("M", m), ("K", k), ("R", 11)];
        let inputs = vec![s, zeros(F32, &[m, 11])];
        let mut case = Case::plain(format!("last first {m}x{k}"), last_first(), &sizes, inputs);
        case.dynamic = open(at);
        case.expected = (0..m * 11)
            .map(|at| (count - 1).checked_sub(at % 11).map_or(0.0, |block| rows[at / 11 * count + block]))
            .collect();
        case.check();
    }
}
