//! 4-bit and 6-bit floats as dtypes: memories that hold several in a unit, values that are moved, cast and
//! computed with, and products of them. The reference of each is a list of the numbers and plain loops.

use groundswell::prelude::*;
use groundswell_testing::exact_case::{Case, of_numbers, ones, open, zeros};
use groundswell_testing::small_float::{F4, SMALL_FLOATS, SmallFloat};

/// How K is spread: over workgroups, over waves too, or not at all.
fn spreads() -> [Vec<Constraint>; 3] {
    let [m, k] = symbols(["M", "K"]);
    let of_k = [vec![workgroup(k, 64, 1)], vec![workgroup(k, 128, 1), wave(k, 64)], vec![]];
    of_k.map(|of_k| [workgroup(m, 16, 0)].into_iter().chain(of_k).collect())
}

/// Chips without and with instructions that convert codes.
const CHIPS: [Target; 2] = [Target::GFX942, Target::GFX950];

/// Each second case in check mode, in an order of its own.
fn check(case: &Case, at: usize) {
    for target in CHIPS {
        case.check_on(target, at.is_multiple_of(2).then_some(at as u64));
    }
}

/// A kernel from `a` of one dtype to `b` of another, of dimensions M and K, for all shapes and spreads.
fn for_all_shapes(
    (small, name): (SmallFloat, &str),
    [from, to]: [DType; 2],
    a: &dyn Fn(usize) -> f64,
    kernel: &dyn for<'w> Fn(&'w Tracer, Value) -> Value,
    expected: &dyn Fn([usize; 2], [usize; 2]) -> f64,
) {
    let [dm, dk] = symbols(["M", "K"]);
    for (at, shape @ [m, k]) in small.shapes().enumerate() {
        for (number, spread) in spreads().into_iter().enumerate() {
            let is_whole = number == 2;
            let kernel = Kernel::trace(name, |w| {
                w.distribute(spread);
                let source = w.memory("a", [dm, dk], Global, from);
                let target = w.memory("b", [dm, dk], Global, to);
                w.write(kernel(w, w.read(source)), target);
            })
            .expect("well-formed");
            let all: Vec<f64> = (0..m * k).map(a).collect();
            let inputs = vec![of_numbers(from, &shape, &all), ones(to, &shape)];
            let mut case =
                Case::plain(format!("{name} {m}x{k} {number}"), kernel, &[("M", m), ("K", k)], inputs);
            if !is_whole {
                case.dynamic = open(at);
            }
            case.expected = (0..m * k).map(|at| expected([at / k, at % k], shape)).collect();
            check(&case, at);
        }
    }
}

#[test]
fn memories_hold_two_numbers_in_a_byte() {
    let tensor = of_numbers(F4E2M1, &[2, 3], &[0.5, 1.0, 1.5, -0.5, -6.0, -0.0]);
    assert_eq!(tensor.to_bytes(), [0x21, 0x03, 0xf9, 0x08]);
    assert_eq!(Tensor::from_bytes(&[2, 3], F4E2M1, &tensor.to_bytes()), Ok(tensor));
    let fault = Tensor::from_bytes(&[2, 3], F4E2M1, &[0; 3]).expect_err("too few");
    assert_eq!(fault.help.as_deref(), Some("they take 4 bytes"));
    for shape in [&[7, 5][..], &[3, 2, 4], &[5], &[1, 600_001], &[3, 0]] {
        let tensor = Tensor::random(shape, F4E2M1, 3).expect("small");
        let bytes = tensor.to_bytes();
        assert_eq!(Tensor::from_bytes(shape, F4E2M1, &bytes), Ok(tensor.clone()), "{shape:?}");
        let buffer = Device::simulator(Target::GFX942).upload_tensor(&tensor).expect("fits");
        assert_eq!(buffer.read_bytes(), Ok(bytes), "{shape:?}");
    }
}

#[test]
fn codes_are_read_and_written() {
    SMALL_FLOATS.into_iter().for_each(codes_are_read_and_written_of);
}

fn codes_are_read_and_written_of(small: SmallFloat) {
    for_all_shapes(
        (small, "copy"),
        [small.dtype; 2],
        &|at| small.number(at),
        &|_, x| x,
        &|[i, j], [_, k]| small.number(i * k + j),
    );
}

#[test]
fn numbers_are_widened() {
    SMALL_FLOATS.into_iter().for_each(numbers_are_widened_of);
}

fn numbers_are_widened_of(small: SmallFloat) {
    for to in [F32, F16, Bf16, F64, F8E4M3Fnuz, I32] {
        let expected = |at: usize| if to == I32 { small.number(at).trunc() } else { small.number(at) };
        let widened = |[i, j]: [usize; 2], [_, k]: [usize; 2]| expected(i * k + j) + 0.0;
        for_all_shapes(
            (small, "widen"),
            [small.dtype, to],
            &|at| small.number(at),
            &|_, x| x.cast(to),
            &widened,
        );
    }
}

#[test]
fn numbers_are_narrowed() {
    SMALL_FLOATS.into_iter().for_each(numbers_are_narrowed_of);
}

fn numbers_are_narrowed_of(small: SmallFloat) {
    let wide = |at: usize| (at * 37 % 255) as f64 * 0.125 - 15.875;
    for from in [F32, F16, Bf16, F64, I32, I64, I8] {
        let given = |at: usize| if from.is_float() { wide(at) } else { wide(at).trunc() };
        let expected = |[i, j]: [usize; 2], [_, k]: [usize; 2]| small.nearest(given(i * k + j));
        for_all_shapes(
            (small, "narrow"),
            [from, small.dtype],
            &given,
            &|_, x| x.cast(small.dtype),
            &expected,
        );
    }
}

/// All f16 and bf16 numbers, NaNs and infinities among them, and f32 and f64 numbers around the middles.
#[test]
fn casts_round_once() {
    SMALL_FLOATS.into_iter().for_each(casts_round_once_of);
}

fn casts_round_once_of(small: SmallFloat) {
    let [m, k] = symbols(["M", "K"]);
    let all = |number: fn(u16) -> f64| (0..=u16::MAX).map(number).collect::<Vec<f64>>();
    let between =
        |code: u8| [small.number_of(code), (small.number_of(code) + small.number_of(code + 1)) / 2.0];
    let inner = (0..).take_while(|&code| small.number_of(code) < small.largest).flat_map(between);
    let outer = [small.largest, small.largest * 1.0625, small.largest * 1.25, 1e-40];
    let middles: Vec<f32> = inner.chain(outer).map(|x| x as f32).chain([f32::MAX, f32::INFINITY]).collect();
    let near = |x: f32| [x, x.next_up(), x.next_down(), -x, -x.next_up(), -x.next_down()].map(f64::from);
    let singles: Vec<f64> = middles.iter().copied().flat_map(near).collect();
    let near = |x: f32| {
        let x = f64::from(x);
        [x, x.next_up(), x.next_down(), -x, -x.next_up(), -x.next_down()]
    };
    let doubles: Vec<f64> = middles.into_iter().flat_map(near).chain([1e300, f64::NAN]).collect();
    let inputs = [
        (F16, all(|bits| f16::from_bits(bits).to_f64())),
        (Bf16, all(|bits| bf16::from_bits(bits).to_f64())),
        (F32, singles),
        (F64, doubles),
    ];
    for (dtype, numbers) in inputs {
        let shape = [1, numbers.len()];
        let kernel = Kernel::trace("round", |w| {
            w.distribute([workgroup(m, 1, 0), workgroup(k, 256, 1)]);
            let a = w.memory("a", [m, k], Global, dtype);
            let b = w.memory("b", [m, k], Global, small.dtype);
            w.write(w.read(a).cast(small.dtype), b);
        });
        let inputs = vec![of_numbers(dtype, &shape, &numbers), zeros(small.dtype, &shape)];
        let sizes = [("M", 1), ("K", numbers.len())];
        let mut case = Case::plain(format!("all of {dtype}"), kernel.expect("well-formed"), &sizes, inputs);
        case.expected = numbers.iter().map(|&x| small.nearest(x)).collect();
        check(&case, 0);
        let signs = |numbers: &[f64]| numbers.iter().map(|x| x.is_sign_negative()).collect::<Vec<_>>();
        let interpreted = Interpreter::run(
            &case.kernel,
            &|symbol| Some(if symbol == m { 1 } else { shape[1] as i64 }),
            &case.inputs,
        );
        assert_eq!(signs(&interpreted.expect("runs")[1].to_f64()), signs(&case.expected), "{dtype}");
    }
}

/// What moves values does not look at them; arithmetic is that of f32, rounded once.
#[test]
fn values_are_moved_and_computed_with() {
    SMALL_FLOATS.into_iter().for_each(values_are_moved_and_computed_with_of);
}

fn values_are_moved_and_computed_with_of(small: SmallFloat) {
    let k = Symbol::new("K");
    let at = |[i, j]: [usize; 2], [_, k]: [usize; 2]| small.number(i * k + j);
    let chosen = |w: &Tracer, x: Value| {
        let three = w.register([Symbol::new("M"), k], small.dtype, 3.0);
        w.select(x.less(1.5), x, three)
    };
    let expected = |place, shape| Some(at(place, shape)).filter(|&x| x < 1.5).unwrap_or(3.0);
    for_all_shapes((small, "select"), [small.dtype; 2], &|at| small.number(at), &chosen, &expected);
    let sum = |_: &Tracer, x: Value| x * x + 0.5;
    let expected = |place, shape| small.nearest(small.nearest(at(place, shape).powi(2)) + 0.5);
    for_all_shapes((small, "arithmetic"), [small.dtype; 2], &|at| small.number(at), &sum, &expected);
    let negated = |_: &Tracer, x: Value| -x;
    for_all_shapes((small, "negate"), [small.dtype; 2], &|at| small.number(at), &negated, &|place, shape| {
        -at(place, shape)
    });
    let again = |_: &Tracer, x: Value| match small {
        F4 => x.bitcast(I8).bitcast(F4E2M1).cast(F4E2M1),
        _ => x.cast(F16).cast(small.dtype),
    };
    for_all_shapes((small, "again"), [small.dtype; 2], &|at| small.number(at), &again, &at);
}

/// Values that are read at coordinates, reduced, sorted and kept in LDS: K belongs to a workgroup as a whole.
#[test]
fn rows_are_folded_and_turned() {
    SMALL_FLOATS.into_iter().for_each(rows_are_folded_and_turned_of);
}

fn rows_are_folded_and_turned_of(small: SmallFloat) {
    let [dm, dk] = symbols(["M", "K"]);
    for (at, [m, k]) in small.shapes().enumerate() {
        let kernel = Kernel::trace("rows", |w| {
            w.distribute([workgroup(dm, 8, 0)]);
            let a = w.memory("a", [dm, dk], Global, small.dtype);
            let b = w.memory("b", [dm, dk], Global, F32);
            let x = w.read(a);
            let last = Coordinate::from(w.size(dk)) - 1;
            let turned = x.at((dm, last - dk), [dm, dk]);
            let kept = w.allocate([dm, dk], small.dtype);
            w.write(turned, kept);
            let before = w.read_at(kept, (dm, dk - 1), [dm, dk]);
            let least = x.min(dk).broadcast([dm, dk]);
            let sum = x.cast(F32).sum(dk);
            w.write(before.cast(F32) * 1000.0 + least.cast(F32) * 100.0 + sum, b);
        })
        .expect("well-formed");
        let inputs = vec![small.numbers(&[m, k]), ones(F32, &[m, k])];
        let mut case = Case::plain(format!("rows {m}x{k}"), kernel, &[("M", m), ("K", k)], inputs);
        if at % 2 == 1 {
            case.dynamic = vec!["M"];
        }
        let row = |i: usize| (0..k).map(move |j| small.number(i * k + j));
        let element = |i: usize, j: usize| {
            let before = if j == 0 { 0.0 } else { small.number(i * k + k - j) };
            before * 1000.0 + row(i).fold(f64::INFINITY, f64::min) * 100.0 + row(i).sum::<f64>()
        };
        case.expected = (0..m * k).map(|at| element(at / k, at % k)).collect();
        check(&case, at);
        // Sorting in a network: rows that fit into a wave's registers.
        if k <= 128 && at % 3 == 0 {
            let sorted = Kernel::trace("sorted", |w| {
                w.distribute([workgroup(dm, 4, 0)]);
                let [a, b] = ["a", "b"].map(|name| w.memory(name, [dm, dk], Global, small.dtype));
                w.write(w.read(a).sort(dk), b);
            });
            let inputs = vec![small.numbers(&[m, k]), ones(small.dtype, &[m, k])];
            let sizes = [("M", m), ("K", k)];
            let mut case =
                Case::plain(format!("sorted {m}x{k}"), sorted.expect("well-formed"), &sizes, inputs);
            case.expected = (0..m)
                .flat_map(|i| {
                    let mut row: Vec<f64> = row(i).collect();
                    row.sort_by(f64::total_cmp);
                    row
                })
                .collect();
            check(&case, 0);
        }
    }
}

/// Elements of a table by rows, shifted, strided, reversed and by a place of each element: whichever half of
/// a byte they are in.
#[test]
fn elements_are_gathered() {
    SMALL_FLOATS.into_iter().for_each(elements_are_gathered_of);
}

fn elements_are_gathered_of(small: SmallFloat) {
    let [dm, dk, rows, columns] = symbols(["M", "K", "ROWS", "COLUMNS"]);
    for (at, [m, k]) in small.shapes().enumerate() {
        let columns_count = k + at % 3;
        let place = |i: usize, j: usize| (i * 5 + j * 3) % columns_count;
        for way in 0..5 {
            let kernel = Kernel::trace("gather", |w| {
                w.distribute([workgroup(dm, 16, 0), workgroup(dk, 64, 1)]);
                let table = w.memory("table", [rows, columns], Global, small.dtype);
                let ids = w.memory("ids", [dm], Global, I32);
                let places = w.memory("places", [dm, dk], Global, I32);
                let out = w.memory("out", [dm, dk], Global, F16);
                let row = Coordinate::from(w.read(ids));
                let column = match way {
                    0 => Coordinate::from(dk),
                    1 => (dk + 1).into(),
                    2 => Coordinate::from(dk * 3 - 2),
                    3 => Coordinate::from(w.size(columns)) - 1 - dk,
                    _ => w.read(places).into(),
                };
                w.write(w.read_at(table, (row, column), [dm, dk]).cast(F16), out);
            })
            .expect("well-formed");
            let id = |i: usize| (i * 2 + 1) % 7;
            let ids: Vec<f64> = (0..m).map(|i| id(i) as f64).collect();
            let places: Vec<f64> = (0..m * k).map(|at| place(at / k, at % k) as f64).collect();
            let inputs = vec![
                small.numbers(&[7, columns_count]),
                of_numbers(I32, &[m], &ids),
                of_numbers(I32, &[m, k], &places),
                ones(F16, &[m, k]),
            ];
            let sizes = [("M", m), ("K", k), ("ROWS", 7), ("COLUMNS", columns_count)];
            let mut case = Case::plain(format!("gather {way} {m}x{k}"), kernel, &sizes, inputs);
            case.dynamic = if at % 2 == 0 { open(at) } else { vec!["M", "K", "COLUMNS"] };
            let element = |i: usize, j: usize| {
                let column = match way {
                    0 => j as i64,
                    1 => j as i64 + 1,
                    2 => j as i64 * 3 - 2,
                    3 => columns_count as i64 - 1 - j as i64,
                    _ => place(i, j) as i64,
                };
                let inside = (0..columns_count as i64).contains(&column);
                if inside { small.number(id(i) * columns_count + column as usize) } else { 0.0 }
            };
            case.expected = (0..m * k).map(|at| element(at / k, at % k)).collect();
            check(&case, at);
        }
    }
}

/// A byte that is repeated for both of its elements stays as it is loaded.
#[test]
fn repeated_bytes_are_not_taken_apart() {
    let [m, k] = symbols(["M", "K"]);
    let kernel = Kernel::trace("bytes", |w| {
        w.distribute([workgroup(m, 4, 0), workgroup(k, 512, 1)]);
        let a = w.memory("a", [m, k], Global, F4E2M1);
        let b = w.memory("b", [m, k], Global, F32);
        w.write(w.read(a).cast(F32), b);
    })
    .expect("well-formed");
    for target in CHIPS {
        let executable = kernel.compile(&Options::new(target).set(m, 64).set(k, 4096)).expect("compiles");
        let text = executable.assembly().expect("a listing");
        assert!(text.contains("v_perm_b32") && !text.contains("v_lshl_or_b32"), "{text}");
    }
}

/// Neighbours that share bytes are loaded together, where rows are certainly whole words.
#[test]
fn reads_are_wide() {
    let [m, k] = symbols(["M", "K"]);
    let kernel = Kernel::trace("wide", |w| {
        w.distribute([workgroup(m, 16, 0), workgroup(k, 256, 1), assume_divisible(k, 8)]);
        let a = w.memory("a", [m, k], Global, F4E2M1);
        let scales = w.memory("scales", [m, k.scaled(32)], Global, F16);
        let b = w.memory("b", [m, k], Global, F16);
        w.write(w.read(a).cast(F16) * w.read(scales), b);
    })
    .expect("well-formed");
    let options = Options::new(Target::GFX942).set(m, 64).deny(Deny::SplitAccesses);
    for options in [options.clone().set(k, 1024), options.dynamic(k)] {
        kernel.compile(&options).expect("nothing is split");
    }
}

/// Loops and conditionals carry values; what a loop over K reads and writes is its part.
#[test]
fn regions_carry_values() {
    SMALL_FLOATS.into_iter().for_each(regions_carry_values_of);
}

fn regions_carry_values_of(small: SmallFloat) {
    let [dm, dk] = symbols(["M", "K"]);
    for (at, [m, k]) in small.shapes().enumerate() {
        let kernel = Kernel::trace("carried", |w| {
            w.distribute([workgroup(dm, 16, 0), tile(dk, 32)]);
            let a = w.memory("a", [dm, dk], Global, small.dtype);
            let b = w.memory("b", [dm, dk], Global, small.dtype);
            let most = w.memory("most", [dm], Global, F32);
            let least = w.register([dm], small.dtype, -small.largest);
            let [found] = w.iterate(dk, [least], |w, [found]| {
                let x = w.read(a);
                w.write(x, b);
                let own = x.max(dk);
                let first = w.iteration(dk).less(2);
                w.conditional(first, [found], |w, [found]| [w.select(own.greater(found), own, found)])
            });
            w.write(found.cast(F32), most);
        })
        .expect("well-formed");
        let inputs = vec![small.numbers(&[m, k]), ones(small.dtype, &[m, k]), ones(F32, &[m])];
        let mut case = Case::plain(format!("carried {m}x{k}"), kernel, &[("M", m), ("K", k)], inputs);
        case.dynamic = open(at);
        let row = |i: usize| (0..k.min(64)).map(move |j| small.number(i * k + j));
        case.expected = (0..m).map(|i| row(i).fold(-small.largest, f64::max)).collect();
        check(&case, at);
    }
}

/// A product of 4-bit factors with a scale for each 32 elements, under every schedule.
/// Where a lane has single elements of a tile, a loop widens the half of a byte that the place in its
/// iteration says, whatever the tile and the schedule.
#[test]
fn single_elements_are_widened_in_loops() {
    let schedules = [Schedule::None, Schedule::Prefetch, Schedule::Modulo, Schedule::FourStage];
    for (at, (tile, k)) in [(64, 256), (64, 130), (32, 64), (2, 7), (4, 5), (16, 96)].into_iter().enumerate()
    {
        for (number, space) in ["global", "shared"].into_iter().enumerate() {
            let text = format!(
                "kernel rows {{
  workgroup M, 4, 0
  wave M, 1
  tile K, {tile}
  a = memory [M, K] {space} f4e2m1
  sums = memory [M] global f32
  %zero = register [M] f32 0.0
  %sum = iterate K (%acc = %zero) {{
    %x = read a
    %y = cast %x f32
    %part = reduce_sum %y over K
    %next = add %acc, %part
    yield %next
  }}
  write %sum, sums
}}"
            );
            let m = 5;
            let number_of = |at: usize| F4.number_of((at * 7 % 16) as u8);
            let numbers: Vec<f64> = (0..m * k).map(number_of).collect();
            let mut case = Case::plain(
                format!("rows of {k} in tiles of {tile}, {space}"),
                Kernel::parse(&text, "rows.gsw").expect("well-formed"),
                &[("M", m), ("K", k)],
                vec![of_numbers(F4E2M1, &[m, k], &numbers), zeros(F32, &[m])],
            );
            case.expected = numbers.chunks(k).map(|row| row.iter().sum()).collect();
            case.schedule = schedules[(at + number) % schedules.len()].clone();
            if at % 2 == 1 {
                case.dynamic = vec!["K"];
            }
            check(&case, 2 * at);
        }
    }
}

#[test]
fn products_have_packed_factors() {
    SMALL_FLOATS.into_iter().for_each(products_have_packed_factors_of);
}

fn products_have_packed_factors_of(small: SmallFloat) {
    let [dm, dn, dk] = symbols(["M", "N", "K"]);
    let blocks = dk.scaled(32);
    let numbers = |shape: &[usize]| {
        let all: Vec<f64> = (0..shape.iter().product()).map(|at| small.modest(at)).collect();
        of_numbers(small.dtype, shape, &all)
    };
    for schedule in [Schedule::None, Schedule::Prefetch, Schedule::FourStage, Schedule::Modulo] {
        for (at, [m, k]) in small.shapes().enumerate() {
            let n = 16 + at;
            let space = if at % 2 == 0 { Global } else { Shared };
            let kernel = Kernel::trace("product", |w| {
                w.distribute([workgroup(dm, 32, 0), workgroup(dn, 32, 1), tile(dk, 64), wave(dm, 16)]);
                w.mma_type(Mma::F32_16x16x16_F16);
                let a = w.memory("a", [dm, dk], space, small.dtype);
                let scales = w.memory("scales", [dm, blocks], Global, F8E8M0);
                let b = w.memory("b", [dn, dk], Shared, small.dtype);
                let c = w.memory("c", [dm, dn], Global, F32);
                let zero = w.register([dm, dn], F32, 0.0);
                let [sum] = w.iterate(dk, [zero], |w, [sum]| {
                    let scaled = w.read(a).cast(F16) * w.read(scales).cast(F16);
                    [w.mma(scaled, w.read(b).cast(F16), sum)]
                });
                w.write(sum, c);
            })
            .expect("well-formed");
            let count = k.div_ceil(32);
            let scale = |at: usize| [0.5, 1.0, 2.0, 4.0][at % 4];
            let scales: Vec<f8e8m0> = (0..m * count).map(|at| f8e8m0::from_f64(scale(at))).collect();
            let inputs = vec![
                numbers(&[m, k]),
                Tensor::from_slice(&[m, count], &scales).expect("fits"),
                numbers(&[n, k]),
                zeros(F32, &[m, n]),
            ];
            let title = format!("product {schedule:?} {m}x{n}x{k}");
            let mut case = Case::plain(title, kernel, &[("M", m), ("N", n), ("K", k)], inputs);
            case.schedule = schedule.clone();
            case.dynamic = open(at);
            let scaled = |i: usize, at: usize| small.modest(i * k + at) * scale(i * count + at / 32);
            let element =
                |i: usize, j: usize| (0..k).map(|at| scaled(i, at) * small.modest(j * k + at)).sum();
            case.expected = (0..m * n).map(|at| element(at / n, at % n)).collect();
            check(&case, 0);
        }
    }
}
