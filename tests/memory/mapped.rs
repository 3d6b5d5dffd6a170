//! Mapped accesses: transposed, shifted, strided and reversed views, gather, scatter, and convolution as a
//! matrix product, on shapes that no tile divides, static and dynamic. The reference of each is a plain loop;
//! the interpreter, the passes and the machine code have to agree with it, and check mode has to find
//! nothing. All numbers are small integers, so every sum is exact.

use groundswell::compile::{Verify, compile_uncached};
use groundswell::prelude::*;
use groundswell_testing::exact_case::{Case, of_numbers, tensor, zeros};
use groundswell_testing::judged::{assert_right, verified};

/// An access that moves elements of `[M, N]` without arithmetic.
fn moved(
    name: &str,
    dtype: DType,
    [m, n]: [usize; 2],
    (dynamic, further): (&[&'static str], &[(&'static str, i64)]),
    (shape, names): (Vec<usize>, Vec<Symbol>),
    at: impl Fn(Symbol, Symbol) -> Vec<SymExpr>,
    source: impl Fn(i64, i64) -> Vec<i64>,
) {
    let [dm, dn] = symbols(["M", "N"]);
    let inside = |at: &[i64]| at.iter().zip(&shape).all(|(&at, &size)| (0..size as i64).contains(&at));
    let index = |at: &[i64]| at.iter().zip(&shape).fold(0, |index, (&at, &size)| index * size + at as usize);
    let mut sizes = vec![("M", m as i64), ("N", n as i64)];
    sizes.extend_from_slice(further);
    for (&name, &size) in names.iter().zip(&shape) {
        if sizes.iter().all(|s| s.0 != name.name()) {
            sizes.push((name.name(), size as i64));
        }
    }
    for write in [false, true] {
        let kernel = Kernel::trace("moved", |w| {
            w.distribute([workgroup(dm, 16, 0), workgroup(dn, 64, 1), wave(dm, 8), wave(dn, 64)]);
            let memory = |name: &str, own: bool| match (own, &names[..]) {
                (true, &[a]) => w.memory(name, [a], Global, dtype),
                (true, &[a, b]) => w.memory(name, [a, b], Global, dtype),
                (true, &[a, b, c]) => w.memory(name, [a, b, c], Global, dtype),
                (true, &[a, b, c, d]) => w.memory(name, [a, b, c, d], Global, dtype),
                _ => w.memory(name, [dm, dn], Global, dtype),
            };
            if write {
                let (x, y) = (memory("x", false), memory("y", true));
                w.write_at(w.read(x), y, at(dm, dn));
            } else {
                let (x, y) = (memory("x", true), memory("y", false));
                w.write(w.read_at(x, at(dm, dn), [dm, dn]), y);
            }
        })
        .unwrap_or_else(|e| panic!("{name}: {e}"));
        let (from, to) = if write { (vec![m, n], shape.clone()) } else { (shape.clone(), vec![m, n]) };
        let input = tensor(dtype, &from);
        let numbers = input.to_f64();
        let mut expected = vec![0.0; to.iter().product()];
        for i in 0..m {
            for j in 0..n {
                let place = source(i as i64, j as i64);
                if inside(&place) {
                    match write {
                        true => expected[index(&place)] = numbers[i * n + j],
                        false => expected[i * n + j] = numbers[index(&place)],
                    }
                }
            }
        }
        let case = Case {
            name: format!(
                "{name} of {dtype}, {m} x {n}, {} {dynamic:?}",
                if write { "write" } else { "read" }
            ),
            kernel,
            sizes: sizes.clone(),
            dynamic: dynamic.to_vec(),
            schedule: Schedule::None,
            inputs: vec![input, zeros(dtype, &to)],
            expected,
        };
        case.check();
    }
}

const SHAPES: [[usize; 2]; 5] = [[16, 64], [33, 75], [7, 128], [64, 1], [1, 66]];

#[test]
fn views_of_matrices_are_moved_exactly() {
    let [a, b, c, d, last, hop] = symbols(["A", "B", "C", "D", "LAST", "HOP"]);
    let [dm, dn] = symbols(["M", "N"]);
    for (number, [m, n]) in SHAPES.into_iter().enumerate() {
        let dtype = [F32, F16, I8, I32, F16][number];
        let columns = n as i64;
        let open: &[&'static str] = &["M", "N"];
        for dynamic in [&[], open] {
            let transposed = |m: Symbol, n: Symbol| vec![n.into(), m.into()];
            moved(
                "transposed",
                dtype,
                [m, n],
                (dynamic, &[]),
                (vec![n, m], vec![dn, dm]),
                transposed,
                |i, j| vec![j, i],
            );
            let shifted = |m: Symbol, n: Symbol| vec![m - 1, n + 2];
            moved("shifted", dtype, [m, n], (dynamic, &[]), (vec![m, n], vec![dm, dn]), shifted, |i, j| {
                vec![i - 1, j + 2]
            });
            let further = [("LAST", columns - 1)];
            let reversed = |m: Symbol, n: Symbol| vec![m.into(), last - n];
            moved(
                "reversed",
                dtype,
                [m, n],
                (dynamic, &further),
                (vec![m, n], vec![dm, dn]),
                reversed,
                |i, j| vec![i, columns - 1 - j],
            );
            let further = [("HOP", columns + 3)];
            let flat = |m: Symbol, n: Symbol| vec![m * hop + n];
            moved(
                "rows apart",
                dtype,
                [m, n],
                (dynamic, &further),
                (vec![m * (n + 3)], vec![a]),
                flat,
                |i, j| vec![i * (columns + 3) + j],
            );
            let blocked = |m: Symbol, n: Symbol| vec![n / 4, m / 3, m % 3, n % 4];
            let shape = vec![n.div_ceil(4), m.div_ceil(3), 3, 4];
            moved("blocked", dtype, [m, n], (dynamic, &[]), (shape, vec![a, b, c, d]), blocked, |i, j| {
                vec![j / 4, i / 3, i % 3, j % 4]
            });
        }
        // A size that is open is a divisor.
        let divided = |m: Symbol, n: Symbol| vec![m.into(), n / b, n % b];
        let shape = vec![m, n.div_ceil(5), 5];
        moved("divided", dtype, [m, n], (&["M", "N", "B"], &[]), (shape, vec![dm, a, b]), divided, |i, j| {
            vec![i, j / 5, j % 5]
        });
        let negative = |m: Symbol, n: Symbol| vec![m.into(), (n - 7) / 2 + 4, (n - 7) % 2];
        let shape = vec![m, n / 2 + 2, 2];
        moved("halved", dtype, [m, n], (&[], &[]), (shape, vec![dm, a, c]), negative, |i, j| {
            vec![i, (j - 7).div_euclid(2) + 4, (j - 7).rem_euclid(2)]
        });
    }
}

#[test]
fn rows_and_elements_are_gathered_and_scattered_by_tables() {
    let [m, n, rows] = symbols(["M", "N", "ROWS"]);
    for (count, width, table) in [(16, 64, 40), (33, 75, 9), (5, 130, 64), (64, 8, 100)] {
        for (dtype, dynamic) in [(F32, vec![]), (F16, vec!["M", "N", "ROWS"]), (I8, vec!["ROWS"])] {
            let kernel = Kernel::trace("gather", |w| {
                w.distribute([workgroup(m, 16, 0), workgroup(n, 64, 1)]);
                let from = w.memory("table", [rows, n], Global, dtype);
                let ids = w.memory("ids", [m], Global, I32);
                let out = w.memory("out", [m, n], Global, dtype);
                w.write(w.read_at(from, (w.read(ids), n), [m, n]), out);
            })
            .expect("a kernel");
            let sizes = vec![("M", count as i64), ("N", width as i64), ("ROWS", table as i64)];
            // Some of them are outside, on either side.
            let ids: Vec<f64> = (0..count).map(|i| ((i * 29) % (table + 4)) as f64 - 2.0).collect();
            let data = tensor(dtype, &[table, width]);
            let numbers = data.to_f64();
            let of = |i: usize, j: usize| {
                let row = ids[i];
                if row < 0.0 || row >= table as f64 { 0.0 } else { numbers[row as usize * width + j] }
            };
            let expected = (0..count * width).map(|at| of(at / width, at % width)).collect();
            let inputs = vec![data, of_numbers(I32, &[count], &ids), zeros(dtype, &[count, width])];
            let (name, schedule) = (format!("gather {count} x {width} of {table} {dtype}"), Schedule::None);
            Case { name, kernel, sizes: sizes.clone(), dynamic: dynamic.clone(), schedule, inputs, expected }
                .check();

            let kernel = Kernel::trace("scatter", |w| {
                w.distribute([workgroup(m, 16, 0), workgroup(n, 64, 1)]);
                let from = w.memory("x", [m, n], Global, dtype);
                let ids = w.memory("ids", [m], Global, I32);
                let out = w.memory("table", [rows, n], Global, dtype);
                // Every other row, from the second one on.
                w.write_at(w.read(from), out, (Coordinate::from(w.read(ids)) * 2 + 1, n));
            })
            .expect("a kernel");
            let ids: Vec<f64> = (0..count).map(|i| i as f64 - 1.0).collect();
            let data = tensor(dtype, &[count, width]);
            let numbers = data.to_f64();
            let mut expected = vec![0.0; table * width];
            for i in 0..count {
                let row = ids[i] * 2.0 + 1.0;
                for j in 0..width {
                    if row >= 0.0 && row < table as f64 {
                        expected[row as usize * width + j] = numbers[i * width + j];
                    }
                }
            }
            let inputs = vec![data, of_numbers(I32, &[count], &ids), zeros(dtype, &[table, width])];
            let (name, schedule) = (format!("scatter {count} x {width} to {table} {dtype}"), Schedule::None);
            Case { name, kernel, sizes, dynamic, schedule, inputs, expected }.check();
        }
    }
}

#[test]
fn a_table_can_say_where_each_element_is() {
    let [m, n, size] = symbols(["M", "N", "SIZE"]);
    for (count, width) in [(16, 64), (21, 90)] {
        let kernel = Kernel::trace("picked", |w| {
            w.distribute([workgroup(m, 16, 0), workgroup(n, 64, 1)]);
            let step = w.scalar("step", I32);
            let from = w.memory("x", [size], Global, F32);
            let ids = w.memory("ids", [m, n], Global, I32);
            let columns = w.memory("columns", [n], Global, I32);
            let out = w.memory("out", [m, n], Global, F32);
            let at = Coordinate::from(w.read(ids)) * step + w.read(columns) + m % 2;
            w.write(w.read_at(from, [at], [m, n]), out);
        })
        .expect("a kernel");
        let text = kernel.to_string();
        assert!(text.contains("read x at [%0 * step + %1 + M % 2] as [M, N]"), "{text}");
        let ids: Vec<f64> = (0..count * width).map(|at| (at % 41) as f64).collect();
        let columns: Vec<f64> = (0..width).map(|at| at as f64 - 3.0).collect();
        let data = tensor(F32, &[150]);
        let numbers = data.to_f64();
        let of = |at: usize| {
            let place = ids[at] * 2.0 + columns[at % width] + (at / width % 2) as f64;
            if (0.0..150.0).contains(&place) { numbers[place as usize] } else { 0.0 }
        };
        let expected: Vec<f64> = (0..count * width).map(of).collect();
        let value = |s: Symbol| {
            Some(if s == m {
                count
            } else if s == n {
                width
            } else {
                150
            } as i64)
        };
        let inputs = vec![
            of_numbers(I32, &[], &[2.0]),
            data,
            of_numbers(I32, &[count, width], &ids),
            of_numbers(I32, &[width], &columns),
            zeros(F32, &[count, width]),
        ];
        let after = Interpreter::run(&kernel, &value, &inputs).expect("it runs");
        assert_eq!(after[4].to_f64(), expected);
        let options = Options::new(Target::GFX942).set(m, count).set(n, width).set(size, 150);
        let executable = verified(&kernel, &options);
        let device = Device::simulator(Target::GFX942);
        let buffers: Vec<Buffer> =
            inputs[1..].iter().map(|t| device.upload_tensor(t).expect("fits")).collect();
        let launch = device.launch(&executable).scalar(2i32);
        let launch = buffers.iter().fold(launch, |launch, buffer| launch.buffer(buffer));
        launch.run().expect("it runs");
        let bytes = buffers[3].read_bytes().expect("readable");
        let got = Tensor::from_bytes(&[count, width], F32, &bytes).expect("whole");
        assert_eq!(got.to_f64(), expected);
    }
}

/// A convolution of images `[n, h, w, c]` with `nf` filters `[kh, kw, c]`.
#[derive(Copy, Clone, Debug)]
struct Convolution {
    n: usize,
    image: [usize; 2],
    c: usize,
    nf: usize,
    filter: [usize; 2],
    stride: usize,
    padding: usize,
    dilation: usize,
    /// Channels first, of images and outputs.
    nchw: bool,
}

impl Convolution {
    fn output(&self) -> [usize; 2] {
        [0, 1].map(|i| {
            (self.image[i] + 2 * self.padding - self.dilation * (self.filter[i] - 1) - 1) / self.stride + 1
        })
    }

    /// As a product of matrices: a row for each pixel of the output, and K = (kh, kw, c).
    fn kernel(&self, space: AddressSpace) -> Kernel {
        let [n, h, w_, c, nf, m, k] = symbols(["N", "H", "W", "C", "NF", "M", "K"]);
        let [ho, wo, kw, stride, pad, dilation] = symbols(["HO", "WO", "KW", "STRIDE", "PAD", "DILATION"]);
        Kernel::trace("conv", |w| {
            w.distribute([workgroup(m, 64, 0), workgroup(nf, 64, 1), tile(k, 32), wave(m, 32), wave(nf, 32)]);
            w.mma_type(Mma::F32_16x16x16_F16);
            let image = m / (ho * wo);
            let row = m / wo % ho * stride - pad + k / (kw * c) * dilation;
            let column = m % wo * stride - pad + k / c % kw * dilation;
            let channel = k % c;
            let (shape, at) = match self.nchw {
                true => ([n, c, h, w_], [image, channel, row, column]),
                false => ([n, h, w_, c], [image, row, column, channel]),
            };
            let x = w.memory("x", shape, space, F16);
            let filters = w.memory("filters", [nf, k], space, F16);
            let out = match self.nchw {
                true => w.memory("y", [n, nf, ho, wo], Global, F32),
                false => w.memory("y", [n, ho, wo, nf], Global, F32),
            };
            let zero = w.register([m, nf], F32, 0.0);
            let [sum] =
                w.iterate(k, [zero], |w, [sum]| [w.mma(w.read_at(x, at, [m, k]), w.read(filters), sum)]);
            let (image, row, column) = (m / (ho * wo), m / wo % ho, m % wo);
            match self.nchw {
                true => w.write_at(sum, out, (image, nf, row, column)),
                false => w.write_at(sum, out, (image, row, column, nf)),
            }
        })
        .expect("a convolution")
    }

    fn case(&self, space: AddressSpace, dynamic: &[&'static str], schedule: Schedule) -> Case {
        let Convolution { n, image: [h, w], c, nf, filter: [kh, kw], stride, padding, dilation, nchw } =
            *self;
        let [ho, wo] = self.output();
        let (m, k) = (n * ho * wo, kh * kw * c);
        let sizes = [
            ("N", n),
            ("H", h),
            ("W", w),
            ("C", c),
            ("NF", nf),
            ("M", m),
            ("K", k),
            ("HO", ho),
            ("WO", wo),
            ("KW", kw),
            ("STRIDE", stride),
            ("PAD", padding),
            ("DILATION", dilation),
        ];
        let order = |[i, y, x, z]: [usize; 4], [h, w, c]: [usize; 3]| match nchw {
            true => ((i * c + z) * h + y) * w + x,
            false => ((i * h + y) * w + x) * c + z,
        };
        let (shape, out) = match nchw {
            true => ([n, c, h, w], [n, nf, ho, wo]),
            false => ([n, h, w, c], [n, ho, wo, nf]),
        };
        let (images, filters) = (tensor(F16, &shape), tensor(F16, &[nf, k]));
        let (pixels, weights) = (images.to_f64(), filters.to_f64());
        let mut expected = vec![0.0; m * nf];
        for i in 0..n {
            for (y, x, f) in (0..ho * wo * nf).map(|at| (at / nf / wo, at / nf % wo, at % nf)) {
                let mut sum = 0.0;
                for (ky, kx) in (0..kh * kw).map(|at| (at / kw, at % kw)) {
                    let row = (y * stride + ky * dilation) as i64 - padding as i64;
                    let column = (x * stride + kx * dilation) as i64 - padding as i64;
                    if !(0..h as i64).contains(&row) || !(0..w as i64).contains(&column) {
                        continue;
                    }
                    for z in 0..c {
                        let pixel = pixels[order([i, row as usize, column as usize, z], [h, w, c])];
                        sum += pixel * weights[f * k + (ky * kw + kx) * c + z];
                    }
                }
                expected[order([i, y, x, f], [ho, wo, nf])] = sum;
            }
        }
        Case {
            name: format!("{self:?} {} {dynamic:?} {schedule:?}", space.name()),
            kernel: self.kernel(space),
            sizes: sizes.into_iter().map(|(name, size)| (name, size as i64)).collect(),
            dynamic: dynamic.to_vec(),
            schedule,
            inputs: vec![images, filters, zeros(F32, &out)],
            expected,
        }
    }
}

/// Padding, strides, dilations, filters and channels that a tile of K holds, that hold it, and neither.
fn convolutions(nchw: bool) -> Vec<Convolution> {
    let mut all = Vec::new();
    for (image, c, filter) in [
        ([6, 6], 64, [3, 3]),
        ([5, 7], 32, [3, 3]),
        ([6, 11], 8, [3, 2]),
        ([9, 5], 24, [1, 3]),
        ([8, 8], 3, [5, 5]),
        ([5, 6], 40, [1, 1]),
    ] {
        for (stride, padding, dilation) in [(1, 0, 1), (1, 1, 1), (2, 1, 1), (1, 2, 2)] {
            let reach = |i: usize| dilation * (filter[i] - 1) + 1;
            let number = all.len();
            let (n, nf) = ([1, 2, 3][number % 3], [64, 33, 80][number % 3]);
            if (0..2).all(|i| image[i] + 2 * padding >= reach(i)) {
                all.push(Convolution { n, image, c, nf, filter, stride, padding, dilation, nchw });
            }
        }
    }
    all
}

#[test]
fn convolutions_are_matrix_products_of_mapped_reads() {
    for nchw in [false, true] {
        for (number, convolution) in convolutions(nchw).into_iter().enumerate() {
            // Half of the shapes with either order of dimensions.
            if number % 2 != usize::from(nchw) {
                continue;
            }
            let (space, schedule) = match number % 4 {
                0 => (Shared, Schedule::None),
                1 => (Shared, Schedule::Prefetch),
                2 => (Global, Schedule::None),
                _ => (Shared, Schedule::Modulo),
            };
            let dynamic: &[&'static str] = match number % 3 {
                0 => &[],
                1 => &["M", "N", "HO", "WO", "H", "W"],
                _ => &["K"],
            };
            convolution.case(space, dynamic, schedule).check();
        }
    }
}

/// A split access says what keeps it from being wider, and an access with masks along which dimensions.
#[test]
fn splits_and_masks_have_reasons() {
    let [m, n, len] = symbols(["M", "N", "LEN"]);
    type Place<'a> = &'a dyn Fn() -> [SymExpr; 2];
    let report = |dtype, at: Place<'_>, [rows, columns]: [i64; 2]| {
        let kernel = Kernel::trace("placed", |w| {
            w.distribute([workgroup(m, 16, 0), workgroup(n, 64, 1)]);
            let [x, y] = ["x", "y"].map(|name| w.memory(name, [m, n], Global, dtype));
            w.write(w.read_at(x, at(), [m, n]).tag("placed"), y);
        });
        let options = Options::new(Target::GFX942).set(m, rows).set(n, columns);
        compile_uncached(&kernel.expect("well-formed"), &options, Verify::Off).expect("it compiles")
    };
    let row = || SymExpr::from(m);
    let thirds = || [row(), SymExpr::from(n) / 3 * 3];
    let next = || [row(), SymExpr::from(n) + 1];
    let back = || [row(), SymExpr::from(n) - 2];
    let cases: [(DType, Place<'_>, &str); 3] = [
        (F32, &thirds, "more are not certainly neighbours in memory"),
        (F16, &next, "more do not certainly start at a whole dword"),
        (F32, &back, "of more some may be outside of the memory while others are inside"),
    ];
    for (dtype, at, why) in cases {
        let executable = report(dtype, at, [64, 192]);
        let [access] = &executable.report().split_accesses[..] else { panic!("{}", executable.report()) };
        assert_eq!(access.why, why);
        assert!(executable.report().to_string().contains(why), "{}", executable.report());
    }
    // The shifted ones can be outside by their coordinates; the read by thirds cannot.
    let masked = |executable: &Executable| {
        let accesses = executable.report().masked_accesses.iter();
        accesses.map(|access| (access.kind, access.dims.join(", "))).collect::<Vec<_>>()
    };
    assert_eq!(masked(&report(F32, &thirds, [64, 192])), []);
    assert_eq!(masked(&report(F32, &back, [64, 192])), [("read", "N (by its coordinates)".to_owned())]);
    let plain = || [row(), SymExpr::from(n)];
    let ragged = masked(&report(F32, &plain, [60, 200]));
    assert!(
        ragged.contains(&("write", "M (60 in tiles of 16), N (200 in tiles of 64)".to_owned())),
        "{ragged:?}"
    );
    // Elements by a table of their own have a coordinate each.
    let kernel = Kernel::trace("elements", |w| {
        w.distribute([workgroup(m, 16, 0), workgroup(n, 64, 1)]);
        let table = w.memory("table", [len], Global, F32);
        let ids = w.memory("ids", [m, n], Global, I32);
        let y = w.memory("y", [m, n], Global, F32);
        w.write(w.read_at(table, (w.read(ids),), [m, n]), y);
    });
    let options = Options::new(Target::GFX942).set(m, 64).set(n, 192).set(len, 100);
    let executable =
        compile_uncached(&kernel.expect("well-formed"), &options, Verify::Off).expect("it compiles");
    let [access] = &executable.report().split_accesses[..] else { panic!("{}", executable.report()) };
    assert_eq!(access.why, "each has a coordinate that is a value of its own");
    assert_eq!(masked(&executable), [("read", "LEN (by its coordinates)".to_owned())]);
}

/// An access whose neighbours are not certain says so in the report, and can be refused.
#[test]
fn split_accesses_are_reported_and_can_be_denied() {
    let [m, n] = symbols(["M", "N"]);
    let compiled = |shift: i64, options: Options| {
        let kernel = Kernel::trace("shifted", |w| {
            w.distribute([workgroup(m, 16, 0), workgroup(n, 64, 1)]);
            let x = w.memory("x", [m, n], Global, F32);
            let y = w.memory("y", [m, n], Global, F32);
            w.write(w.read_at(x, [m.into(), SymExpr::from(n) / 3 * 3 + shift], [m, n]).tag("shifted"), y);
        });
        compile_uncached(
            &kernel.expect("well-formed"),
            &options.set(m, 64).set(n, 192),
            Verify::AfterEachPass,
        )
    };
    let options = || Options::new(Target::GFX942);
    let split = compiled(0, options()).expect("it compiles");
    let [access] = &split.report().split_accesses[..] else { panic!("{:?}", split.report().split_accesses) };
    assert_eq!((access.kind, &*access.what), ("read", "shifted"));
    assert!(access.elements < access.possible, "{access:?}");
    assert!(split.report().to_string().contains("read of shifted"), "{}", split.report());
    let denied = compiled(0, options().deny(Deny::SplitAccesses)).map(drop);
    let text = denied.expect_err("it is split").to_string();
    assert!(text.contains("of the read of shifted moves 1 of 4 elements"), "{text}");
    assert!(text.contains("tests/memory/mapped.rs"), "{text}");
    // As wide as a plain read.
    let kernel = Kernel::trace("whole", |w| {
        w.distribute([workgroup(m, 16, 0), workgroup(n, 64, 1)]);
        let [x, y] = ["x", "y"].map(|name| w.memory(name, [m, n], Global, F32));
        w.write(w.read_at(x, [m, n], [m, n]), y);
    });
    let options = options().deny(Deny::SplitAccesses).set(m, 64).set(n, 192);
    let whole = compile_uncached(&kernel.expect("well-formed"), &options, Verify::AfterEachPass);
    assert!(whole.expect("it is wide").report().split_accesses.is_empty());
}

/// A read of a shared memory by sums of a table does not go through LDS: the report says so, and it can be
/// refused.
#[test]
fn reads_of_shared_memories_past_lds_are_reported_and_can_be_denied() {
    let [m, n, rows, parts] = symbols(["M", "N", "ROWS", "PARTS"]);
    let compiled = |by_table: bool, options: Options| {
        let kernel = Kernel::trace("paged", |w| {
            w.distribute([workgroup(m, 16, 0), workgroup(n, 64, 1)]);
            let x = w.memory("x", [rows, n], Shared, F32);
            let table = w.memory("table", [m, parts], Global, I32);
            let y = w.memory("y", [m, n], Global, F32);
            let row = w.read(table).sum(parts);
            let read = match by_table {
                true => w.read_at(x, (row, n), [m, n]),
                false => w.read_at(x, [m, n], [m, n]) * row.cast(F32),
            };
            w.write(read.tag("pages"), y);
        });
        let options = options.set(m, 64).set(n, 64).set(rows, 64).set(parts, 4);
        compile_uncached(&kernel.expect("well-formed"), &options, Verify::AfterEachPass)
    };
    let options = || Options::new(Target::GFX942);
    let paged = compiled(true, options()).expect("it compiles");
    let [read] = &paged.report().unshared_reads[..] else { panic!("{:?}", paged.report().unshared_reads) };
    assert_eq!((&*read.what, &*read.memory), ("pages", "x"));
    assert!(paged.report().to_string().contains("read of pages"), "{}", paged.report());
    let text =
        compiled(true, options().deny(Deny::UnsharedReads)).map(drop).expect_err("past LDS").to_string();
    assert!(text.contains("the read of pages does not go through LDS, and `x` is shared"), "{text}");
    assert!(
        text.contains("coordinates are made of values") && text.contains("tests/memory/mapped.rs"),
        "{text}"
    );
    let shared = compiled(false, options().deny(Deny::UnsharedReads)).expect("it goes through LDS");
    assert!(shared.report().unshared_reads.is_empty() && shared.report().lds_bytes > 0);
}

/// Values that the workgroup has in common are no reason to read past LDS: a page of each iteration, and an
/// offset that is read before the loop.
#[test]
fn reads_at_places_that_the_workgroup_has_in_common_go_through_lds() {
    let [m, n, k, pages, count, rows] = symbols(["M", "N", "K", "PAGES", "COUNT", "ROWS"]);
    let kernel = Kernel::trace("paged", |w| {
        w.distribute([workgroup(m, 64, 0), tile(k, 32), wave(m, 32)]);
        w.mma_type(MatrixShape::M16x16);
        let a = w.memory("a", [pages, m, 32u32.into()], Shared, F16);
        let b = w.memory("b", [rows, k], Shared, F16);
        let table = w.memory("table", [count], Global, I32);
        let c = w.memory("c", [m, n], Global, F32);
        let first = w.read_at(table, [0], []);
        let zero = w.register([m, n], F32, 0.0);
        let [sum] = w.iterate(k, [zero], |w, [sum]| {
            let page = w.read_at(table, [w.iteration(k)], []);
            let left = w.read_at(a, (page, m, k % 32), [m, k]);
            let right = w.read_at(b, (Coordinate::from(first) + n, k), [n, k]);
            [w.mma(left, right, sum)]
        });
        w.write(sum, c);
    });
    let kernel = kernel.expect("well-formed");
    let sizes = [("M", 100), ("N", 32), ("K", 200), ("PAGES", 9), ("COUNT", 7), ("ROWS", 50)];
    let value = |symbol: Symbol| sizes.iter().find(|size| size.0 == symbol.name()).map(|size| size.1);
    for schedule in [Schedule::None, Schedule::Prefetch, Schedule::Modulo, Schedule::Automatic] {
        for open in [&[][..], &["M", "K"]] {
            for target in [Target::GFX942, Target::GFX950] {
                let options = Options::new(target).schedule(schedule.clone()).deny(Deny::UnsharedReads);
                let options =
                    sizes.iter().fold(options, |options, &(name, size)| match open.contains(&name) {
                        true => options.dynamic(name),
                        false => options.set(name, size),
                    });
                let executable = verified(&kernel, &options);
                assert!(executable.report().lds_bytes > 0);
                assert_right(&kernel, &executable, &value, 3, format!("{schedule:?} {open:?} {target}"));
            }
        }
    }
}
