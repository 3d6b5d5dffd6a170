//! Memories of which 32-bit offsets do not reach every element: accesses at coordinates that are expressions
//! have addresses of 64 bits where that is known, in whatever order their dimensions lie, and launches refuse
//! what they find out too late.

use groundswell::diagnostic::Kind;
use groundswell::prelude::*;
use groundswell_testing::judged::assert_right;

/// Columns that lie apart, read in an order of their own.
const COLUMNS: &str = "kernel columns {
  workgroup M, 64, 0
  workgroup T, 16, 1
  a = memory [M, N] global f32 strides [1, LDA]
  b = memory [M, T] global f32
  %x = read a at [M, T * 5 % 6] as [M, T]
  write %x, b
}";

/// The same written.
const WRITTEN: &str = "kernel written {
  workgroup M, 64, 0
  x = memory [M, T] global f32
  a = memory [M, N] global f32 strides [1, LDA]
  %x = read x
  write %x, a at [M, 5 - T]
}";

/// Rows of the only matrix of a batch.
const BATCH_OF_ONE: &str = "kernel batch {
  workgroup T, 32, 0
  workgroup N, 64, 1
  a = memory [B, M, N] global f32 strides [SB, LDA, 1]
  b = memory [T, N] global f32
  %t = self_index T
  %x = read a at [0, %t, N] as [T, N]
  write %x, b
}";

/// Rows whose last bytes lie around 2 GiB.
const ROWS: &str = "kernel rows {
  a = memory [M, N] global f32 strides [LDA, 1]
  b = memory [M, N] global f32
  %x = read a at [M, N] as [M, N]
  write %x, b
}";

/// Rows that are chosen, of a matrix with one of them.
const ONE_ROW: &str = "kernel one_row {
  workgroup N, 64, 0
  a = memory [M, N] global f32 strides [LDA, 1]
  b = memory [T, N] global f32
  %t = self_index T
  %x = read a at [%t, N] as [T, N]
  write %x, b
}";

type Sizes<'a> = &'a [(&'a str, i64)];

fn parsed(text: &str) -> Kernel {
    Kernel::parse(text, "far.gsw").unwrap_or_else(|faults| panic!("{faults}"))
}

fn options(sizes: Sizes<'_>) -> Options {
    sizes.iter().fold(Options::new(Target::GFX942), |options, &(name, size)| options.set(name, size))
}

/// The same with the distance of rows left open.
fn open_options(sizes: Sizes<'_>) -> Options {
    let others: Vec<(&str, i64)> = sizes.iter().copied().filter(|size| size.0 != "LDA").collect();
    options(&others).dynamic("LDA")
}

#[test]
fn elements_beyond_32_bit_offsets_are_reached_or_refused_in_any_order_of_dimensions() {
    let cases: [(&str, Sizes<'_>); 4] = [
        (COLUMNS, &[("M", 64), ("N", 6), ("LDA", 1 << 27), ("T", 20)]),
        (WRITTEN, &[("M", 64), ("N", 6), ("LDA", 1 << 28), ("T", 6)]),
        (BATCH_OF_ONE, &[("B", 1), ("M", 6), ("N", 64), ("SB", 1), ("LDA", 1 << 27), ("T", 6)]),
        (ROWS, &[("M", 2), ("N", 64), ("LDA", 536_870_848)]),
    ];
    for (text, sizes) in cases {
        let known = parsed(text).compile(&options(sizes)).unwrap_or_else(|fault| panic!("{text}\n{fault}"));
        assert!(known.assembly().expect("text").contains("v_mad_i64_i32"), "{text}");
        // What is open until the launch is refused there.
        let refused = parsed(text).compile(&open_options(sizes)).and_then(|executable| {
            executable
                .grid(&|symbol| sizes.iter().find(|size| Symbol::new(size.0) == symbol).map(|size| size.1))
        });
        assert_eq!(refused.expect_err(text).kind, Kind::Limit, "{text}");
    }
}

/// Rows that are chosen, written and read.
const SCATTERED: &str = "kernel scattered {
  workgroup T, 4, 0
  ASSUMED
  x = memory [T, N] global ELEMENT
  rows = memory [T] global i32
  a = memory [M, N] global ELEMENT
  %i = read rows
  %x = read x
  write %x, a at [%i, N]
}";

const GATHERED: &str = "kernel gathered {
  workgroup T, 4, 0
  ASSUMED
  a = memory [M, N] global ELEMENT
  rows = memory [T] global i32
  y = memory [T, N] global ELEMENT
  %i = read rows
  %x = read a at [%i, N] as [T, N]
  write %x, y
}";

/// What is written at rows around 2 and 4 GiB, and at the last one, is read there and nowhere else; rows that
/// do not exist are not written, and read as zeros.
#[test]
fn rows_of_large_memories_are_written_and_read_where_they_are() {
    for (element, columns, dtype) in
        [("f16", 64i64, DType::F16), ("f32", 3, DType::F32), ("i8", 64, DType::I8)]
    {
        let row_bytes = columns * i64::from(dtype.bytes());
        let rows = (5i64 << 30) / row_bytes;
        let at_2_gib = i32::try_from((2i64 << 30) / row_bytes).expect("fits");
        let last = i32::try_from(rows).expect("fits") - 1;
        let written =
            [0, 1, at_2_gib - 1, at_2_gib, at_2_gib + 1, 2 * at_2_gib, last, -1, i32::MIN, last + 1];
        let read = [2, 1, at_2_gib - 1, at_2_gib, at_2_gib + 1, 2 * at_2_gib, last, -1, i32::MAX, last + 1];
        let shown = |at: usize| (1..7).contains(&at);
        for target in Target::ALL {
            for is_open in [false, true] {
                let compiled = |text: &str| {
                    let assumed = if is_open { "assume M >= 1000000000" } else { "" };
                    let assumed = assumed.replace("1000000000", &(rows / 2).to_string());
                    let text = text.replace("ELEMENT", element).replace("ASSUMED", &assumed);
                    let options = Options::new(target).set("N", columns).set("T", read.len() as i64);
                    let options = if is_open { options.dynamic("M") } else { options.set("M", rows) };
                    parsed(&text).compile(&options).unwrap_or_else(|fault| panic!("{text}\n{fault}"))
                };
                let device = Device::simulator(target);
                let memory = device.allocate((rows * row_bytes) as u64).expect("addresses");
                let x = Tensor::random(&[written.len(), columns as usize], dtype, 3).expect("fits");
                let (x, y) =
                    (device.upload_tensor(&x).expect("fits"), device.upload_tensor(&x).expect("fits"));
                let [to, from] = [written, read].map(|rows| device.upload(&rows).expect("fits"));
                let [scattered, gathered] = [SCATTERED, GATHERED].map(compiled);
                let launch = device.launch(&scattered).buffer(&x).buffer(&to).buffer(&memory);
                if is_open { launch.set("M", rows) } else { launch }.run().expect("writes");
                let launch = device.launch(&gathered).buffer(&memory).buffer(&from).buffer(&y);
                if is_open { launch.set("M", rows) } else { launch }.run().expect("reads");
                let [x, y] = [x, y].map(|buffer| buffer.read_bytes().expect("readable"));
                for (at, (x, y)) in x.chunks(row_bytes as usize).zip(y.chunks(row_bytes as usize)).enumerate()
                {
                    let is_right = if shown(at) { x == y } else { y.iter().all(|&byte| byte == 0) };
                    assert!(is_right, "{element} on {target}, open {is_open}: row {at}");
                }
            }
        }
    }
}

/// Columns that lie 512 MiB apart: what one kernel writes the other one reads, in its own order.
#[test]
fn columns_that_lie_far_apart_are_written_and_read() {
    let sizes = [("M", 64), ("N", 6), ("LDA", 1 << 27), ("T", 6)];
    let [written, columns] =
        [WRITTEN, COLUMNS].map(|text| parsed(text).compile(&options(&sizes)).expect("compiles"));
    let device = Device::simulator(Target::GFX942);
    let memory = device.allocate((64 + 5 * (1 << 27)) * 4).expect("addresses");
    let x = Tensor::random(&[64, 6], DType::F32, 4).expect("fits");
    let [of_x, b] = [&x, &x].map(|tensor| device.upload_tensor(tensor).expect("fits"));
    device.launch(&written).buffer(&of_x).buffer(&memory).run().expect("writes");
    device.launch(&columns).buffer(&memory).buffer(&b).run().expect("reads");
    let read = Tensor::from_bytes(&[64, 6], DType::F32, &b.read_bytes().expect("readable")).expect("whole");
    let (x, read) = (x.to_f64(), read.to_f64());
    for (m, t) in (0..64).flat_map(|m| (0..6).map(move |t| (m, t))) {
        assert_eq!(read[m * 6 + t], x[m * 6 + 5 - t * 5 % 6], "row {m}, column {t}");
    }
}

/// Rows of odd numbers of bytes have no larger unit than one.
#[test]
fn memories_beyond_the_units_of_their_rows_are_refused() {
    let text = GATHERED.replace("ELEMENT", "i8").replace("ASSUMED", "");
    let compiled = |rows| {
        let options = Options::new(Target::GFX942).set("N", 5).set("T", 8).set("M", rows);
        parsed(&text).compile(&options)
    };
    compiled((1 << 31) / 5 - 1).expect("within 2 GiB");
    let fault = compiled((1i64 << 31) / 5 + 1).expect_err("beyond them");
    assert_eq!(fault.kind, Kind::Limit, "{fault}");
}

#[test]
fn elements_within_32_bit_offsets_are_right_whatever_the_strides() {
    let cases: [(&str, Sizes<'_>); 4] = [
        (COLUMNS, &[("M", 64), ("N", 6), ("LDA", 100_000), ("T", 20)]),
        (WRITTEN, &[("M", 64), ("N", 6), ("LDA", 100_000), ("T", 6)]),
        (BATCH_OF_ONE, &[("B", 1), ("M", 6), ("N", 64), ("SB", 1), ("LDA", 100_000), ("T", 6)]),
        // The only row may have any distance from the next one.
        (ONE_ROW, &[("M", 1), ("N", 64), ("LDA", 2_000_000_000), ("T", 3)]),
    ];
    for (text, sizes) in cases {
        let kernel = parsed(text);
        for options in [options(sizes), open_options(sizes)] {
            let executable = kernel.compile(&options).unwrap_or_else(|fault| panic!("{text}\n{fault}"));
            let value =
                |symbol: Symbol| sizes.iter().find(|size| Symbol::new(size.0) == symbol).map(|size| size.1);
            assert_right(&kernel, &executable, &value, 1, text);
        }
    }
}
