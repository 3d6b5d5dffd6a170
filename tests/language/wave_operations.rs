//! How one says what Wave says: each row of that table of docs/language.md, in Rust and as text, makes the
//! same kernel, and the kernel computes what a plain loop computes, on aligned and ragged shapes, static and
//! dynamic, checked in several orders.

use groundswell_testing::judged::verified;
use groundswell_testing::places::root;
use std::collections::BTreeMap;

use groundswell::prelude::*;
use groundswell::simulator::CheckOptions;
use groundswell_testing::exact_case::{number, of_numbers, zeros};

const PAGE: &str = include_str!("../../docs/language.md");

/// Inputs of every row: `x` and `y` are f32, `i` and `j` i32, of `[M, N]`; `h` is i16, of `[M, N2]`.
struct Numbers {
    columns: usize,
}

impl Numbers {
    fn at(&self, seed: usize, row: usize, column: usize) -> f64 {
        number(row * self.columns + column + seed * 31)
    }

    fn x(&self, row: usize, column: usize) -> f64 {
        self.at(1, row, column) * 0.75
    }

    /// Never zero.
    fn y(&self, row: usize, column: usize) -> f64 {
        self.at(2, row, column).abs() + 0.5
    }

    fn i(&self, row: usize, column: usize) -> i64 {
        self.at(3, row, column) as i64 * 1001
    }

    /// Never zero, and of both signs.
    fn j(&self, row: usize, column: usize) -> i64 {
        let number = self.at(4, row, column) as i64;
        if number == 0 { -3 } else { number }
    }

    fn h(&self, row: usize, half: usize) -> i64 {
        self.at(5, row, half) as i64 * 4097
    }

    fn row(&self, row: usize) -> impl Iterator<Item = f64> + '_ {
        (0..self.columns).map(move |column| self.x(row, column))
    }
}

/// One row: what Wave calls it, the result's dtype and dimensions, and both ways to say it.
struct Row {
    wave: &'static str,
    dtype: DType,
    shape: &'static str,
    rust: &'static str,
    traced: fn(&Tracer, [Value; 5]) -> Value,
    text: &'static [&'static str],
    expected: fn(&Numbers, &[usize]) -> f64,
}

macro_rules! rows {
    (($w:ident $x:ident $y:ident $i:ident $j:ident $h:ident
      [$m:ident $n:ident $p:ident $q:ident $b:ident $t:ident $s:ident])
     $($wave:literal $dtype:ident $shape:literal { $rust:expr } [$($text:literal)*] $expected:expr;)*) => {
        const ROWS: &[Row] = &[$(Row {
            wave: $wave,
            dtype: $dtype,
            shape: $shape,
            rust: stringify!($rust),
            #[allow(unused_variables, reason = "a row uses some of them")]
            traced: |$w, [$x, $y, $i, $j, $h]| {
                let [$m, $n, $p, $q, $b, $t, $s] = symbols(["M", "N", "P", "Q", "B", "T", "S"]);
                $rust
            },
            text: &[$($text),*],
            expected: $expected,
        }),*];
    };
}

rows! { (w x y i j h [m n p q b t s])
    "`register`" F32 "M, N" { w.register([m, n], F32, 1.5) }
        ["%r = register [M, N] f32 1.5"] |_, _| 1.5;
    "`register` of an expression" I32 "M, N" { w.register_of([m, n], I32, n / 2 + 1) }
        ["%r = register [M, N] i32 (N // 2 + 1)"] |d, _| (d.columns / 2 + 1) as f64;
    "`scalar`" I32 "M" { w.register_of([], I32, n * 2).broadcast([m]) }
        ["%s = register [] i32 (N * 2)" "%r = broadcast %s [M]"] |d, _| (d.columns * 2) as f64;
    "`self_index`" I32 "N" { w.self_index(n) } ["%r = self_index N"] |_, at| at[0] as f64;
    "`apply_expr`" I32 "M, N" { w.apply_expr(Coordinate::from(i) * 2 + n) } ["%r = apply_expr %i * 2 + N"]
        |d, at| (d.i(at[0], at[1]) * 2 + d.columns as i64) as f64;
    "`set_symbol`" F32 "M, N" { { w.set_symbol(s, w.size(n)); x.at((m, s - 1 - n), [m, n]) } }
        ["%size = size N" "set_symbol S, %size" "%r = read %x at [M, S - 1 - N] as [M, N]"]
        |d, at| d.x(at[0], d.columns - 1 - at[1]);
    "`+ - * /`" F32 "M, N" { x + y } ["%r = add %x, %y"] |d, at| d.x(at[0], at[1]) + d.y(at[0], at[1]);
    "`//` of integers" I32 "M, N" { i.floor_div(j) } ["%r = floor_div %i, %j"]
        |d, at| (d.i(at[0], at[1]) as f64 / d.j(at[0], at[1]) as f64).floor();
    "`%` of integers, floored like `//`" I32 "M, N" { i % j } ["%r = rem %i, %j"]
        |d, at| {
            let (i, j) = (d.i(at[0], at[1]) as f64, d.j(at[0], at[1]) as f64);
            i - (i / j).floor() * j
        };
    "`%` of integers, with the sign of the dividend" I32 "M, N" { i - i / j * j }
        ["%quotient = div %i, %j" "%whole = mul %quotient, %j" "%r = sub %i, %whole"]
        |d, at| (d.i(at[0], at[1]) % d.j(at[0], at[1])) as f64;
    "`&`, or `xor`" I32 "M, N" { i & j } ["%r = and %i, %j"] |d, at| (d.i(at[0], at[1]) & d.j(at[0], at[1])) as f64;
    "`~`" I32 "M, N" { !i } ["%r = not %i"] |d, at| !d.i(at[0], at[1]) as f64;
    "`maximum`, `minimum`" F32 "M, N" { x.maximum(y) } ["%r = max %x, %y"]
        |d, at| d.x(at[0], at[1]).max(d.y(at[0], at[1]));
    "`powf`, `atan2`" F32 "M, N" { y.pow(x) } ["%r = pow %y, %x"] |d, at| d.y(at[0], at[1]).powf(d.x(at[0], at[1]));
    "`remf`" F32 "M, N" { (-(x / y).trunc()).fma(y, x) }
        ["%quotient = div %x, %y" "%whole = trunc %quotient" "%less = neg %whole" "%r = fma %less, %y, %x"]
        |d, at| d.x(at[0], at[1]) % d.y(at[0], at[1]);
    "`abs`, `exp`, .. of one operand" F32 "M, N" { x.exp() } ["%r = exp %x"] |d, at| d.x(at[0], at[1]).exp();
    "`round`, `roundeven`" F32 "M, N" { x.round_even() } ["%r = round_even %x"]
        |d, at| d.x(at[0], at[1]).round_ties_even();
    "`softsign` with a cap of 30" F32 "M, N" { x / (x.abs() / 30.0 + 1.0) }
        ["%size = abs %x" "%part = div %size, 30.0" "%more = add %part, 1.0" "%r = div %x, %more"]
        |d, at| d.x(at[0], at[1]) / (1.0 + d.x(at[0], at[1]).abs() / 30.0);
    "`tanh_approx`" F32 "M, N" { x.tanh() } ["%r = tanh %x"] |d, at| d.x(at[0], at[1]).tanh();
    "comparisons, `select`" F32 "M, N" { w.select(x.less(y), x, y) }
        ["%less = compare lt %x, %y" "%r = select %less, %x, %y"]
        |d, at| d.x(at[0], at[1]).min(d.y(at[0], at[1]));
    "`cast`" I32 "M, N" { x.cast(I32) } ["%r = cast %x i32"] |d, at| d.x(at[0], at[1]).trunc();
    "`bitcast`" I32 "M, N" { x.bitcast(I32) } ["%r = bitcast %x i32"]
        |d, at| f64::from((d.x(at[0], at[1]) as f32).to_bits() as i32);
    "`bitcast` to a narrower dtype, `B` = 4 `N`" I8 "M, B"
        { (i.at((m, b / 4), [m, b]) >> w.apply_expr(Coordinate::from(w.self_index(b)) % 4 * 8)).cast(I8) }
        ["%word = read %i at [M, B // 4] as [M, B]" "%place = self_index B" "%bits = apply_expr %place % 4 * 8"
         "%moved = shift_right %word, %bits" "%r = cast %moved i8"]
        |d, at| f64::from((d.i(at[0], at[1] / 4) >> (at[1] % 4 * 8)) as i8);
    "`bitcast` to a wider dtype, of `[M, 2 N]`" I32 "M, N"
        { (h.at((m, n * 2), [m, n]).cast(I32) & 65535) + (h.at((m, n * 2 + 1), [m, n]).cast(I32) << 16) }
        ["%low = read %h at [M, N * 2] as [M, N]" "%wide = cast %low i32" "%half = and %wide, 65535"
         "%high = read %h at [M, N * 2 + 1] as [M, N]" "%upper = cast %high i32" "%moved = shift_left %upper, 16"
         "%r = add %half, %moved"]
        |d, at| f64::from(((d.h(at[0], at[1] * 2) & 65535) + (d.h(at[0], at[1] * 2 + 1) << 16)) as i32);
    "`broadcast`" F32 "M, N" { x.max(n).broadcast([m, n]) } ["%most = reduce_max %x over N" "%r = broadcast %most [M, N]"]
        |d, at| d.row(at[0]).fold(f64::MIN, f64::max);
    "`permute`" F32 "N, M" { x.broadcast([n, m]) } ["%r = broadcast %x [N, M]"] |d, at| d.x(at[1], at[0]);
    "`reshape`" F32 "M, P, Q" { x.at((m, Coordinate::from(w.size(q)) * p + q), [m, p, q]) }
        ["%size = size Q" "%r = read %x at [M, %size * P + Q] as [M, P, Q]"]
        |d, at| d.x(at[0], at[1] * 4 + at[2]);
    "`extract`" F32 "M" { x.at((m, 2), [m]) } ["%r = read %x at [M, 2] as [M]"] |d, at| d.x(at[0], 2);
    "`extract_slice`" F32 "M, T" { x.at((m, t * 3 + 1), [m, t]) } ["%r = read %x at [M, T * 3 + 1] as [M, T]"]
        |d, at| d.x(at[0], at[1] * 3 + 1);
    "`shuffle` by XOR" F32 "M, N" { x.at((m, w.self_index(n) ^ 1), [m, n]) }
        ["%place = self_index N" "%other = xor %place, 1" "%r = read %x at [M, %other] as [M, N]"]
        |d, at| d.x(at[0], at[1] ^ 1);
    "`shuffle` DOWN, UP" F32 "M, N" { x.at((m, n + 1), [m, n]) } ["%r = read %x at [M, N + 1] as [M, N]"]
        |d, at| if at[1] + 1 < d.columns { d.x(at[0], at[1] + 1) } else { 0.0 };
    "`shuffle` by index" F32 "M, N" { x.at((m, w.select(j.less(0), 0, j)), [m, n]) }
        ["%negative = compare lt %j, 0" "%zero = constant 0" "%place = select %negative, %zero, %j"
         "%r = read %x at [M, %place] as [M, N]"]
        |d, at| {
            let place = d.j(at[0], at[1]).max(0) as usize;
            if place < d.columns { d.x(at[0], place) } else { 0.0 }
        };
    "`sum`, `max`, `min`, `block` or not" F32 "M" { x.sum(n) } ["%r = reduce_sum %x over N"] |d, at| d.row(at[0]).sum();
    "`cumsum`" F32 "M, N" { x.cumsum(n) } ["%r = cumsum %x over N"] |d, at| d.row(at[0]).take(at[1] + 1).sum();
    "`topk`" F32 "M" { x.topk(n, 2)[1].value } ["%most, %place, %r, %place2 = topk %x over N"]
        |d, at| {
            let mut row: Vec<f64> = d.row(at[0]).collect();
            row.sort_by(f64::total_cmp);
            row[row.len() - 2]
        };
    "place of the largest element" I32 "M" { x.argmax(n) } ["%r = argmax %x over N"]
        |d, at| {
            let most = d.row(at[0]).fold(f64::MIN, f64::max);
            d.row(at[0]).position(|x| x == most).unwrap() as f64
        };
    "of the smallest one" I32 "M" { x.argmin(n) } ["%r = argmin %x over N"]
        |d, at| {
            let least = d.row(at[0]).fold(f64::MAX, f64::min);
            d.row(at[0]).position(|x| x == least).unwrap() as f64
        };
    "any, all" I32 "M" { w.select(x.greater(y).any(n), w.size(n), 0) }
        ["%greater = compare gt %x, %y" "%any = any %greater over N" "%size = size N" "%zero = constant 0"
         "%r = select %any, %size, %zero"]
        |d, at| {
            let any = (0..d.columns).any(|column| d.x(at[0], column) > d.y(at[0], column));
            if any { d.columns as f64 } else { 0.0 }
        };
    "mean" F32 "M" { x.mean(n) } ["%r = mean %x over N"] |d, at| d.row(at[0]).sum::<f64>() / d.columns as f64;
}

/// Whether a row needs all of N in one workgroup.
fn takes_rows(row: &Row) -> bool {
    row.text.iter().any(|line| line.contains(" over N") || line.contains("read %"))
}

/// The kernel of a row around `body`, which gives the result.
fn framed(row: &Row, body: &str) -> String {
    format!(
        "kernel row {{
  workgroup M, 4, 0{}
  x = memory [M, N] global f32
  y = memory [M, N] global f32
  i = memory [M, N] global i32
  j = memory [M, N] global i32
  h = memory [M, N2] global i16
  out = memory [{}] global {}
  %x = read x
  %y = read y
  %i = read i
  %j = read j
  %h = read h
  {body}
  write %r, out
}}
",
        if takes_rows(row) { "" } else { "\n  workgroup N, 64, 1" },
        row.shape,
        row.dtype.name()
    )
}

fn traced(row: &Row) -> Kernel {
    let [m, n, n2] = symbols(["M", "N", "N2"]);
    let kernel = Kernel::trace("row", |w| {
        w.distribute([workgroup(m, 4, 0)]);
        if !takes_rows(row) {
            w.distribute([workgroup(n, 64, 1)]);
        }
        let [x, y] = ["x", "y"].map(|name| w.memory(name, [m, n], Global, F32));
        let [i, j] = ["i", "j"].map(|name| w.memory(name, [m, n], Global, I32));
        let h = w.memory("h", [m, n2], Global, I16);
        let dims: Vec<Symbol> = row.shape.split(", ").map(Symbol::new).collect();
        let out = match dims[..] {
            [a] => w.memory("out", [a], Global, row.dtype),
            [a, b] => w.memory("out", [a, b], Global, row.dtype),
            [a, b, c] => w.memory("out", [a, b, c], Global, row.dtype),
            _ => unreachable!("a row of other dimensions"),
        };
        let values = [x, y, i, j, h].map(|memory| w.read(memory));
        w.write((row.traced)(w, values), out);
    });
    kernel.unwrap_or_else(|fault| panic!("{}: {fault}", row.wave))
}

#[test]
fn what_wave_says_is_computed() {
    for (number, row) in ROWS.iter().enumerate() {
        let text = framed(row, &row.text.join("\n  "));
        let kernel = Kernel::parse(&text, row.wave).unwrap_or_else(|faults| panic!("{}: {faults}", row.wave));
        assert_eq!(traced(row).to_string(), kernel.to_string(), "{}", row.wave);
        for (rows, parts, dynamic) in [(8, 16, false), (5, 3, false), (13, 17, true), (1, 1, true)] {
            launched(row, &kernel, [rows, parts], dynamic, number as u64 % 5 + 1);
        }
        (1..=5).for_each(|seed| launched(row, &kernel, [6, 5], seed % 2 == 0, seed));
    }
}

fn launched(row: &Row, kernel: &Kernel, [rows, parts]: [usize; 2], dynamic: bool, seed: u64) {
    let columns = parts * 4;
    let numbers = Numbers { columns };
    let sizes = BTreeMap::from([
        ("M", rows),
        ("N", columns),
        ("N2", columns * 2),
        ("P", parts),
        ("Q", 4),
        ("B", columns * 4),
        ("T", (columns - 1).div_ceil(3)),
    ]);
    let value = |symbol: Symbol| sizes.get(symbol.name()).map(|&size| size as i64);
    let mut options = Options::new(Target::GFX942);
    for (&name, &size) in &sizes {
        options = if dynamic && name == "M" { options.dynamic(name) } else { options.set(name, size as i64) };
    }
    let all = |width: usize, element: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
        (0..rows * width).map(|at| element(at / width, at % width)).collect()
    };
    let shape = [rows, columns];
    let out: Vec<usize> = row.shape.split(", ").map(|name| sizes[name]).collect();
    let inputs = [
        of_numbers(F32, &shape, &all(columns, &|r, c| numbers.x(r, c))),
        of_numbers(F32, &shape, &all(columns, &|r, c| numbers.y(r, c))),
        of_numbers(I32, &shape, &all(columns, &|r, c| numbers.i(r, c) as f64)),
        of_numbers(I32, &shape, &all(columns, &|r, c| numbers.j(r, c) as f64)),
        Tensor::from_slice(
            &[rows, columns * 2],
            &all(columns * 2, &|r, c| numbers.h(r, c) as f64).iter().map(|&h| h as i16).collect::<Vec<_>>(),
        )
        .expect("the shape holds the numbers"),
        zeros(row.dtype, &out),
    ];
    let mut expected = Vec::new();
    for number in 0..out.iter().product() {
        let mut rest = number;
        let mut at = vec![0; out.len()];
        for (place, &size) in at.iter_mut().zip(&out).rev() {
            (*place, rest) = (rest % size, rest / size);
        }
        expected.push((row.expected)(&numbers, &at));
    }
    let name = format!("{}: {sizes:?}, {dynamic}, {seed}", row.wave);
    let meant = Interpreter::run(kernel, &value, &inputs).unwrap_or_else(|fault| panic!("{name}: {fault}"));
    equal(&name, &meant[5].to_f64(), &expected);
    let executable = verified(kernel, &options);
    let device = Device::simulator(Target::GFX942);
    let buffers: Vec<Buffer> = inputs.iter().map(|t| device.upload_tensor(t).expect("fits")).collect();
    let mut launch = buffers.iter().fold(device.launch(&executable), |launch, buffer| launch.buffer(buffer));
    if dynamic {
        launch = launch.set("M", rows as i64);
    }
    let report = launch.check(&CheckOptions { seed }).unwrap_or_else(|fault| panic!("{name}: {fault}"));
    assert!(report.findings.is_empty(), "{name}: {}", report.findings[0]);
    let bytes = buffers[5].read_bytes().expect("readable");
    let got = Tensor::from_bytes(&out, row.dtype, &bytes).expect("whole").to_f64();
    equal(&name, &got, &expected);
}

fn equal(name: &str, got: &[f64], expected: &[f64]) {
    assert_eq!(got.len(), expected.len(), "{name}");
    for (at, (&got, &expected)) in got.iter().zip(expected).enumerate() {
        let close = (got - expected).abs() <= 2e-6 * expected.abs().max(1.0);
        assert!(close, "{name}: {got} at {at}, should be {expected}");
    }
}

/// The table of the page has the rows that are tested, and no others.
#[test]
fn the_table_of_the_page_is_what_is_tested() {
    let mut table = String::from("\n| Wave | Rust | text |\n| --- | --- | --- |\n");
    for row in ROWS {
        let rust = row.rust.split_whitespace().collect::<Vec<_>>().join(" ");
        let rust = rust.strip_prefix("{ ").and_then(|inner| inner.strip_suffix(" }")).unwrap_or(&rust);
        let text: Vec<String> = row.text.iter().map(|line| format!("`{line}`")).collect();
        table += &format!("| {} | `{rust}` | {} |\n", row.wave, text.join("<br>"));
    }
    table.push('\n');
    let begin = "<!-- what Wave says: written by tests/language/wave_operations.rs -->";
    let (before, rest) = PAGE.split_once(begin).unwrap();
    let (found, after) = rest.split_once("<!-- end -->").unwrap();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(root().join("docs/language.md"), format!("{before}{begin}{table}<!-- end -->{after}"))
            .unwrap();
    } else {
        assert_eq!(found, table, "set BLESS=1 to write the table");
    }
}

/// What Wave says by constraints that take no part in the grid: heads of queries share one of keys, and the
/// place along a dimension is a function of the workgroup's.
#[test]
fn dimensions_go_with_workgroups_of_others() {
    let heads = "kernel grouped_heads {
      workgroup M, 16, 0
      workgroup HEAD, 1, 1
      q = memory [HEAD, M, D] global f32
      k = memory [GROUP, D] global f32
      out = memory [HEAD, M] global f32
      %q = read q
      %k = read k at [HEAD // 4, D] as [HEAD, D]
      %p = mul %q, %k
      %s = reduce_sum %p over D
      write %s, out
    }";
    let experts = "kernel experts {
      workgroup M, 16, 0
      workgroup D, 64, 1
      experts = memory [TILES] global i32
      w = memory [GROUP, D] global f32
      x = memory [M, D] global f32
      out = memory [M, D] global f32
      %expert = read experts at [M // 16] as [M]
      %w = read w at [%expert, D] as [M, D]
      %x = read x
      %y = mul %x, %w
      write %y, out
    }";
    for (rows, depth, dynamic) in [(16, 64, vec![]), (20, 24, vec!["M"]), (33, 64, vec!["M"]), (1, 8, vec![])]
    {
        let at = |seed: usize, number: usize| groundswell_testing::exact_case::number(number + seed * 17);
        let of = |seed: usize, shape: &[usize]| {
            let all: Vec<f64> = (0..shape.iter().product()).map(|number| at(seed, number)).collect();
            of_numbers(F32, shape, &all)
        };
        let sum = |number: usize| {
            let (head, row) = (number / rows, number % rows);
            let products =
                (0..depth).map(|d| at(1, (head * rows + row) * depth + d) * at(2, head / 4 * depth + d));
            products.sum()
        };
        let sizes = vec![("M", rows as i64), ("D", depth as i64), ("HEAD", 8), ("GROUP", 2)];
        let case = |text: &str, sizes: Vec<(&'static str, i64)>, inputs, expected| {
            groundswell_testing::exact_case::Case {
                name: format!("{rows} x {depth}, {dynamic:?} dynamic"),
                kernel: Kernel::parse(text, "test.gsw").unwrap_or_else(|faults| panic!("{faults}")),
                sizes,
                dynamic: dynamic.clone(),
                schedule: Schedule::None,
                inputs,
                expected,
            }
        };
        let inputs = vec![of(1, &[8, rows, depth]), of(2, &[2, depth]), zeros(F32, &[8, rows])];
        let of_heads = case(heads, sizes, inputs, (0..8 * rows).map(sum).collect());
        let tiles = rows.div_ceil(16);
        let table: Vec<f64> = (0..tiles).map(|tile| (tile + 1) as f64 % 2.0).collect();
        let inputs = vec![
            of_numbers(I32, &[tiles], &table),
            of(2, &[2, depth]),
            of(3, &[rows, depth]),
            zeros(F32, &[rows, depth]),
        ];
        let scaled = |number: usize| {
            at(2, table[number / depth / 16] as usize * depth + number % depth) * at(3, number)
        };
        let sizes = vec![("M", rows as i64), ("D", depth as i64), ("TILES", tiles as i64), ("GROUP", 2)];
        let of_experts = case(experts, sizes, inputs, (0..rows * depth).map(scaled).collect());
        for seed in [None, Some(1), Some(2), Some(3), Some(4), Some(5)] {
            of_heads.check_in_order(seed);
            of_experts.check_in_order(seed);
        }
    }
}
