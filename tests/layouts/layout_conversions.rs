//! Values that operations need spread over the lanes in different ways: what compiles equals the interpreter,
//! after every pass and on the simulator, with no finding.

use groundswell::prelude::*;
use groundswell::report::{ConversionReport, ConversionWay};
use groundswell_testing::exact_case::{Case, of_numbers, zeros};
use groundswell_testing::judged::{assert_right, verified};
use groundswell_testing::meaning;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

/// Compiles a kernel for some sizes, and compares it with the interpreter after every pass and when it runs.
fn judge(kernel: &Kernel, sizes: &[(Symbol, i64)]) -> Executable {
    let value = |symbol: Symbol| sizes.iter().find(|size| size.0 == symbol).map(|size| size.1);
    let options =
        sizes.iter().fold(Options::new(Target::GFX942), |options, &(symbol, size)| options.set(symbol, size));
    let name = format!("{} {sizes:?}", kernel.name());
    let executable = verified(kernel, &options);
    for seed in 0..2 {
        assert_right(kernel, &executable, &value, seed, &name);
    }
    meaning::compare(kernel, &options, &value).unwrap_or_else(|fault| panic!("{name}: {fault}"));
    executable
}

/// Instructions of an executable whose name begins with `prefix`.
fn count(executable: &Executable, prefix: &str) -> usize {
    let listing = executable.assembly().unwrap();
    listing.lines().filter(|line| line.trim_start().starts_with(prefix)).count()
}

#[test]
fn transposes_load_and_store_wide() {
    let [m, n] = symbols(["M", "N"]);
    for dtype in [F32, F16, I8] {
        let kernel = Kernel::trace("transpose", |w| {
            w.distribute([workgroup(m, 64, 0), workgroup(n, 64, 1), wave(m, 16)]);
            let a = w.memory("a", [m, n], Global, dtype);
            let b = w.memory("b", [n, m], Global, dtype);
            w.write(w.read(a), b);
        })
        .unwrap();
        for sizes in [[64, 64], [128, 192], [65, 66], [1, 100], [100, 1], [77, 130]] {
            let executable = judge(&kernel, &[(m, sizes[0]), (n, sizes[1])]);
            if dtype == F16 && sizes == [128, 192] {
                assert_eq!(count(&executable, "buffer_load_dwordx4"), 2);
                assert_eq!(count(&executable, "buffer_store_dwordx4"), 2);
            }
        }
    }
}

#[test]
fn products_of_products() {
    let [m, k, d, n] = symbols(["M", "K", "D", "N"]);
    let chained = Kernel::trace("chained", |w| {
        w.distribute([workgroup(m, 32, 0), tile(k, 16)]);
        w.mma_type(Mma::F32_16x16x16_F16);
        let q = w.memory("q", [m, d], Global, F16);
        let keys = w.memory("k", [k, d], Global, F16);
        let v = w.memory("v", [n, k], Global, F16);
        let o = w.memory("o", [m, n], Global, F32);
        let zero = w.register([m, n], F32, 0.0);
        let [out] = w.iterate(k, [zero], |w, [sum]| {
            let scores = w.mma(w.read(q), w.read(keys), w.register([m, k], F32, 0.0));
            [w.mma(scores.cast(F16), w.read(v), sum)]
        });
        w.write(out, o);
    })
    .unwrap();
    for sizes in [[32, 16, 16, 16], [64, 48, 32, 32], [60, 70, 32, 16], [1, 1, 16, 16]] {
        let executable = judge(&chained, &[(m, sizes[0]), (k, sizes[1]), (d, sizes[2]), (n, sizes[3])]);
        let [scores] = &executable.report().conversions[..] else { panic!("{}", executable.report()) };
        assert_eq!(scores.way, ConversionWay::AcrossLanes);
        assert_eq!((scores.vector_instructions, scores.lds_instructions), (16, 4));
        assert_eq!(scores.from, "registers 4 of M; replicas 2 of M by 16; lanes 16 of K, 4 of M by 4");
        assert_eq!(scores.to, "registers 4 of K; replicas 2 of M by 16; lanes 16 of M, 4 of K by 4");
        assert!(scores.location.as_ref().is_some_and(|at| at.file.ends_with("layout_conversions.rs")));
        assert!(
            scores.user.starts_with("mma at ") && scores.user.contains("layout_conversions.rs:"),
            "{scores}"
        );
        assert_eq!(executable.report().lds_bytes, 0);
        assert!(count(&executable, "ds_bpermute_b32") >= 4 && count(&executable, "v_mov_b32_dpp") >= 8);
    }
}

#[test]
fn two_matrix_instructions_on_one_value() {
    let [m, n, k] = symbols(["M", "N", "K"]);
    for shared in [Shared, Global] {
        let kernel = Kernel::trace("mixed", |w| {
            w.distribute([workgroup(m, 32, 0), workgroup(n, 32, 1), tile(k, 16)]);
            let a = w.memory("a", [m, k], shared, F16);
            let b = w.memory("b", [n, k], shared, F16);
            let c = w.memory("c", [m, n], Global, F32);
            let zero = w.register([m, n], F32, 0.0);
            let [sum] = w.iterate(k, [zero], |w, [sum]| {
                let (a, b) = (w.read(a), w.read(b));
                let half = w.mma_with(Mma::F32_16x16x16_F16, a, b, sum);
                [w.mma_with(Mma::F32_32x32x8_F16, a, b, half)]
            });
            w.write(sum, c);
        })
        .unwrap();
        for sizes in [[32, 32, 32], [64, 32, 48], [33, 70, 40]] {
            let executable = judge(&kernel, &[(m, sizes[0]), (n, sizes[1]), (k, sizes[2])]);
            let ways = ways(&executable);
            let across = ways.iter().filter(|&&way| way == ConversionWay::AcrossLanes).count();
            assert_eq!((across, ways.len() - across), (2, 2), "{}", executable.report());
        }
    }
}

#[test]
fn rows_of_a_product_are_folded_and_divide_it() {
    let [m, n, k] = symbols(["M", "N", "K"]);
    let kernel = Kernel::trace("normalised", |w| {
        w.distribute([workgroup(m, 32, 0), tile(k, 16), wave(m, 16)]);
        w.mma_type(Mma::F32_16x16x16_F16);
        let a = w.memory("a", [m, k], Shared, F16);
        let b = w.memory("b", [n, k], Shared, F16);
        let c = w.memory("c", [m, n], Global, F32);
        let rows = w.memory("rows", [m], Global, F32);
        let zero = w.register([m, n], F32, 0.0);
        let [sum] = w.iterate(k, [zero], |w, [sum]| [w.mma(w.read(a), w.read(b), sum)]);
        let most = sum.max(n);
        w.write(most, rows);
        w.write((sum - most).exp2(), c);
    })
    .unwrap();
    for sizes in [[32, 32, 16], [64, 16, 48], [40, 20, 33]] {
        judge(&kernel, &[(m, sizes[0]), (n, sizes[1]), (k, sizes[2])]);
    }
}

#[test]
fn carried_values_and_their_successors_in_two_layouts() {
    let [m, n, k] = symbols(["M", "N", "K"]);
    // The product is carried beside a value that a store wants in another layout.
    let kernel = Kernel::trace("carried", |w| {
        w.distribute([workgroup(m, 32, 0), workgroup(n, 64, 1), tile(k, 16)]);
        let a = w.memory("a", [m, k], Global, F16);
        let b = w.memory("b", [n, k], Global, F16);
        let x = w.memory("x", [n, m], Global, F16);
        let c = w.memory("c", [n, m], Global, F16);
        let zero = w.register([m, n], F32, 0.0);
        let [sum, last] = w.iterate(k, [zero, zero], |w, [sum, before]| {
            let next = w.mma_with(Mma::F32_32x32x8_F16, w.read(a), w.read(b), sum);
            [next, sum.maximum(before)]
        });
        let x = w.read(x).cast(F32);
        w.write((sum - last + x).cast(F16), c);
    })
    .unwrap();
    for sizes in [[32, 64, 32], [64, 64, 48], [33, 70, 40]] {
        judge(&kernel, &[(m, sizes[0]), (n, sizes[1]), (k, sizes[2])]);
    }
}

/// How the values of a kernel get to other layouts.
fn ways(executable: &Executable) -> Vec<ConversionWay> {
    executable.report().conversions.iter().map(|conversion| conversion.way).collect()
}

#[test]
fn small_tiles_are_turned() {
    let [m, n] = symbols(["M", "N"]);
    for dtype in [F64, F32, I32, F16, I8] {
        for [rows, columns] in [[8, 8], [16, 16], [4, 16], [16, 32], [32, 32]] {
            let kernel = Kernel::trace("turned", |w| {
                w.distribute([workgroup(m, rows, 0), workgroup(n, columns, 1)]);
                let a = w.memory("a", [m, n], Global, dtype);
                let b = w.memory("b", [n, m], Global, dtype);
                w.write(w.read(a), b);
            })
            .unwrap();
            for sizes in [[64, 64], [35, 50]] {
                judge(&kernel, &[(m, sizes[0]), (n, sizes[1])]);
            }
        }
    }
}

#[test]
fn a_product_is_stored_folded_and_multiplied() {
    let [m, n, k, d] = symbols(["M", "N", "K", "D"]);
    for (mma, waves) in [(Mma::F32_16x16x16_F16, 1), (Mma::F32_16x16x16_F16, 2), (Mma::F32_32x32x8_F16, 1)] {
        let kernel = Kernel::trace("three_readers", |w| {
            w.distribute([workgroup(m, 32 * waves, 0), tile(k, 16), wave(m, 32)]);
            w.mma_type(mma);
            let a = w.memory("a", [m, k], Global, F16);
            let b = w.memory("b", [n, k], Global, F16);
            let v = w.memory("v", [d, n], Global, F16);
            let halves = w.memory("halves", [m, n], Global, F16);
            let rows = w.memory("rows", [m], Global, F32);
            let out = w.memory("out", [m, d], Global, F32);
            let zero = w.register([m, n], F32, 0.0);
            let [sum] = w.iterate(k, [zero], |w, [sum]| [w.mma(w.read(a), w.read(b), sum)]);
            w.write(sum.sum(n), rows);
            let half = sum.cast(F16);
            w.write(half, halves);
            w.write(w.mma(half, w.read(v), w.register([m, d], F32, 0.0)), out);
        })
        .unwrap();
        for sizes in [[64, 32, 32, 32], [64, 64, 16, 32], [50, 32, 40, 64]] {
            let executable = judge(&kernel, &[(m, sizes[0]), (n, sizes[1]), (k, sizes[2]), (d, sizes[3])]);
            // The waves keep their elements, so that none waits for another one, whichever way is taken.
            let converted = &executable.report().conversions;
            assert!(!converted.is_empty() && executable.report().barriers == 0);
        }
    }
}

/// A product whose result, in a narrower dtype, is a factor of the next one: of lhs or rhs, and the other one
/// read from LDS or not, with the summed dimension innermost or not.
#[derive(Copy, Clone, Debug)]
struct Chain {
    shape: MatrixShape,
    dtype: DType,
    sum: DType,
    space: AddressSpace,
    is_turned: bool,
    is_left: bool,
}

impl Chain {
    fn kernel(self, [m, n, d, e]: [Symbol; 4]) -> Kernel {
        let Chain { shape, dtype, sum, space, is_turned, is_left } = self;
        let kernel = Kernel::trace("chain", |w| {
            w.distribute([workgroup(m, 64, 0), tile(n, 64), wave(m, 32)]);
            w.mma_type(shape);
            let q = w.memory("q", [m, d], Global, dtype);
            let keys = w.memory("keys", [n, d], Shared, dtype);
            let v = w.memory("v", if is_turned { [n, e] } else { [e, n] }, space, dtype);
            let dims = if is_left { [m, e] } else { [e, m] };
            let zero = w.register(dims, sum, 0.0);
            let q = w.read(q);
            let [out] = w.iterate(n, [zero], |w, [before]| {
                let scores = w.mma(w.read(keys), q, w.register([n, m], sum, 0.0)).cast(dtype);
                [if is_left { w.mma(scores, w.read(v), before) } else { w.mma(w.read(v), scores, before) }]
            });
            w.write(out, w.memory("o", dims, Global, sum));
        });
        kernel.unwrap_or_else(|fault| panic!("{self:?}: {fault}"))
    }
}

/// Which k a lane holds is free: the second product takes the rows that lanes hold of the first one's result,
/// and its other factor is read accordingly.
#[test]
fn results_of_products_are_multiplied_where_they_are() {
    let symbols = symbols(["M", "N", "D", "E"]);
    let [m, n, d, e] = symbols;
    let all = [Target::GFX90A, Target::GFX942, Target::GFX950];
    let dtypes =
        [(F16, F32, &all[..]), (Bf16, F32, &all), (F32, F32, &all), (I8, I32, &all), (F64, F64, &all)];
    let of_eight_bits = [(F8E4M3Fnuz, F32, &all[1..2]), (F8E5M2, F32, &all[2..])];
    let mut seed = 0;
    for (dtype, sum, targets) in dtypes.into_iter().chain(of_eight_bits) {
        for (number, &target) in targets.iter().enumerate() {
            for at in 0..16 {
                let [is_turned, is_left, is_shared, is_large] = [1, 2, 4, 8].map(|bit| at & bit != 0);
                let shape = if is_large { MatrixShape::M32x32 } else { MatrixShape::M16x16 };
                let space = if is_shared { Shared } else { Global };
                if dtype == F64 && is_large {
                    continue;
                }
                let chain = Chain { shape, dtype, sum, space, is_turned, is_left };
                let kernel = chain.kernel(symbols);
                let sizes = [[64, 128, 32, 32], [50, 100, 64, 32], [64, 64, 32, 64]][(at + number) % 3];
                let sizes = [(m, sizes[0]), (n, sizes[1]), (d, sizes[2]), (e, sizes[3])];
                let options =
                    sizes.iter().fold(Options::new(target), |o, &(symbol, size)| o.set(symbol, size));
                let title = format!("{target} {chain:?} {sizes:?}");
                let executable = verified(&kernel, &options);
                let report = executable.report();
                // Reads of four elements of 8 bits, and loads of four of 16 bits from global memory, may cost
                // more than a conversion.
                let is_narrow = dtype.bits() == 8 || !is_shared && !is_turned;
                // Lanes turn in their registers what they read of a global factor that lies across.
                let is_turned_read =
                    |c: &ConversionReport| is_turned && !is_shared && c.way == ConversionWay::Renamed;
                let costs = |c: &ConversionReport| {
                    c.vector_instructions + c.lds_instructions > 0 && !is_turned_read(c)
                };
                assert!(is_narrow || !report.conversions.iter().any(costs), "{title}: {report}");
                let value = |symbol: Symbol| sizes.iter().find(|size| size.0 == symbol).map(|size| size.1);
                assert_right(&kernel, &executable, &value, seed, &title);
                if seed % 8 == 0 {
                    meaning::compare(&kernel, &options, &value)
                        .unwrap_or_else(|fault| panic!("{title}: {fault}"));
                }
                seed += 1;
            }
        }
    }
}

/// A kernel whose elements lie as one placement says, and then as another does.
fn moved(dtype: DType, one: &str, other: &str) -> String {
    format!(
        "kernel moved after assign_layouts {{
  workgroup M, 16, 0
  facts
    !geometry(dim M(16, axis 0, workgroup 16), dim N(32), grid (1) (1) (1), waves 1 1 1)
  a = memory [M, N] global {dtype}
  b = memory [M, N] global {dtype}
  %0 = read a !type([M, N] {dtype})
    {one}
  %1 = rearrange %0 !type([M, N] {dtype})
    {other}
  write %1, b
    {other}
}}"
    )
}

/// Elements in registers, replicas and lanes of a wave as someone wants them, and then as someone else does:
/// whatever bits of their places these are, each element arrives.
#[test]
fn any_layout_of_a_wave_becomes_any_other() {
    let mut rng = StdRng::seed_from_u64(11);
    for case in 0..120 {
        let dtype = [I8, F16, F32, F64][case % 4];
        let mut placement = || {
            let mut digits: Vec<String> = (0..4).map(|bit| format!("M*2:{}", 1 << bit)).collect();
            digits.extend((0..5).map(|bit| format!("N*2:{}", 1 << bit)));
            digits.shuffle(&mut rng);
            // Some lanes may hold copies.
            let lanes = rng.random_range(4..=6);
            let registers = rng.random_range(0..=2);
            let replicas = digits.split_off(lanes + registers);
            let registers = digits.split_off(lanes);
            digits.extend(std::iter::repeat_n("_*2".to_string(), 6 - lanes));
            let mut sources = vec![format!("lane {}", digits.join(" "))];
            for (name, digits) in [("register", registers), ("replica", replicas)] {
                if !digits.is_empty() {
                    sources.push(format!("{name} {}", digits.join(" ")));
                }
            }
            format!("!placement({})", sources.join(", "))
        };
        let (one, other) = (placement(), placement());
        let text = moved(dtype, &one, &other);
        for target in [Target::GFX942, Target::GFX950] {
            arrives(target, &text, case as u64);
        }
    }
}

/// Compiles a text that moves a tensor of 16 x 32 elements, and compares where they are afterwards.
fn arrives(target: Target, text: &str, seed: u64) -> Executable {
    let kernel = Kernel::parse(text, "moved.gsw").unwrap_or_else(|faults| panic!("{text}: {faults:?}"));
    let [m, n] = symbols(["M", "N"]);
    let options = Options::new(target).set(m, 16).set(n, 32);
    let executable = verified(&kernel, &options);
    let value = |symbol: Symbol| Some(if symbol == m { 16 } else { 32 });
    assert_right(&kernel, &executable, &value, seed, format_args!("{text} for {target}"));
    executable
}

/// Rows of 16 or 32 lanes and a digit of whole registers, of one piece or of several, change places by an
/// instruction that exchanges rows, where the chip has one.
#[test]
fn rows_of_lanes_change_places_with_registers() {
    for dtype in [F64, F32, F16, I8] {
        let bytes = i64::from(dtype.bytes());
        for lane in [4, 5] {
            for slot in 0..3 {
                let mut lanes = ["N*2:1", "N*2:2", "N*2:4", "N*2:8", "N*2:16", "M*2:1"];
                let mut slots = ["M*2:2", "M*2:4", "M*2:8"];
                let place = |lanes: &[&str], [low, high, replica]: [&str; 3]| {
                    format!("!placement(lane {}, register {low} {high}, replica {replica})", lanes.join(" "))
                };
                let one = place(&lanes, slots);
                std::mem::swap(&mut lanes[lane], &mut slots[slot]);
                let text = moved(dtype, &one, &place(&lanes, slots));
                arrives(Target::GFX942, &text, 1);
                let executable = arrives(Target::GFX950, &text, 1);
                let whole = slot == 2 || bytes << slot >= 4;
                let name = if lane == 4 { "v_permlane16_swap" } else { "v_permlane32_swap" };
                assert_eq!(count(&executable, name) > 0, whole, "{text}: {}", executable.assembly().unwrap());
                assert_eq!(count(&executable, "ds_") == 0, whole, "{text}");
            }
        }
    }
}

/// No swizzle of LDS moves a part of an element: rows of a few elements of every size are turned on their way
/// through it.
#[test]
fn rows_of_a_few_elements_are_turned() {
    for dtype in [F64, I64, F32, F16, I8] {
        let text = format!(
            "kernel scanned {{
  workgroup M, 64, 0
  x = memory [K, N, M] global {dtype}
  y = memory [M, N, K] global {dtype}
  %x = read x
  %sums = cumsum %x over N
  write %sums, y
}}"
        );
        for [m, n, k] in [[1, 5, 2], [1, 1, 1], [3, 8, 4], [70, 2, 2]] {
            let number = |at: usize| (at % 3) as f64;
            let sum = |at: usize| {
                let (row, column, place) = (at / (n * k), at / k % n, at % k);
                (0..=column).map(|earlier| number(place * n * m + earlier * m + row)).sum::<f64>()
            };
            let numbers: Vec<f64> = (0..m * n * k).map(number).collect();
            Case {
                name: format!("{m} x {n} x {k} of {dtype}"),
                kernel: Kernel::parse(&text, "scanned.gsw").expect("well-formed"),
                sizes: vec![("M", m as i64), ("N", n as i64), ("K", k as i64)],
                dynamic: Vec::new(),
                schedule: Schedule::None,
                inputs: vec![of_numbers(dtype, &[k, n, m], &numbers), zeros(dtype, &[m, n, k])],
                expected: (0..m * n * k).map(sum).collect(),
            }
            .check();
        }
    }
}

/// Halves of elements of 64 bits that come from other lanes are side by side where something is computed of
/// them.
#[test]
fn wide_elements_of_other_lanes_are_computed_with() {
    for (m, k) in [(1, 7), (3, 17), (5, 64), (2, 65), (4, 130)] {
        let text = "kernel wide {
  x = memory [K] global i64
  y = memory [M, K] global i64
  %x = read x
  %sums = cumsum %x over K
  %rows = broadcast %sums [M, K]
  %twice = add %rows, %x
  write %twice, y
}";
        let number = |at: usize| (at * 7 % 13) as f64 - 6.0;
        let sum = |at: usize| (0..=at).map(number).sum::<f64>();
        Case {
            name: format!("{m}x{k}"),
            kernel: Kernel::parse(text, "wide.gsw").expect("well-formed"),
            sizes: vec![("M", m as i64), ("K", k as i64)],
            dynamic: Vec::new(),
            schedule: Schedule::None,
            inputs: vec![of_numbers(I64, &[k], &(0..k).map(number).collect::<Vec<_>>()), zeros(I64, &[m, k])],
            expected: (0..m * k).map(|at| sum(at % k) + number(at % k)).collect(),
        }
        .check();
    }
}

/// A product that adds to another one's sum keeps its layout, however the factors of both lie in memory: in a
/// loop the sum would be converted twice in each iteration.
#[test]
fn sums_of_several_products_have_one_layout() {
    let names = symbols(["M", "N", "K", "L"]);
    let [m, n, k, l] = names;
    let sizes = [70, 130, 96, 40];
    let value = |symbol: Symbol| names.iter().position(|&name| name == symbol).map(|at| sizes[at]);
    for (turned, together) in
        [[false, true], [true, false], [true, true]].into_iter().zip([false, true, false])
    {
        let kernel = Kernel::trace("sums", |w| {
            let waves = [wave(m, 32), wave(n, 64)];
            w.distribute([workgroup(m, 64, 0), workgroup(n, 128, 1), tile(k, 32), tile(l, 32)]);
            w.distribute(waves);
            w.mma_type(MatrixShape::M16x16);
            let a = w.memory("a", [m, k], Shared, F16);
            let d = w.memory("d", [m, l], Shared, F16);
            let right = |name, along, turned| match turned {
                true => w.memory(name, [along, n], Shared, F16),
                false => w.memory(name, [n, along], Shared, F16),
            };
            let e = right("e", if together { k } else { l }, turned[1]);
            let b = right("b", k, turned[0]);
            let c = w.memory("c", [m, n], Global, F32);
            let zero = w.register([m, n], F32, 0.0);
            let sum = match together {
                true => {
                    let [both] = w.iterate(k, [zero], |w, [sum]| {
                        let first = w.mma(w.read(a), w.read(b), sum);
                        [w.mma(w.read(a), w.read(e), first)]
                    });
                    both
                }
                false => {
                    let [first] = w.iterate(k, [zero], |w, [sum]| [w.mma(w.read(a), w.read(b), sum)]);
                    let [both] = w.iterate(l, [first * 0.5], |w, [sum]| [w.mma(w.read(d), w.read(e), sum)]);
                    both
                }
            };
            w.write(sum, c);
        });
        let kernel = kernel.expect("well-formed");
        for target in Target::ALL {
            let options =
                names.iter().zip(sizes).fold(Options::new(target), |o, (&name, size)| o.set(name, size));
            let case = format!("{target}, {turned:?}, {together}");
            let executable = verified(&kernel, &options);
            let conversions = &executable.report().conversions;
            assert!(conversions.iter().all(|c| c.way == ConversionWay::Renamed), "{case}: {conversions:?}");
            assert_right(&kernel, &executable, &value, 3, &case);
        }
    }
}
