//! Memories with strides: parts of larger tensors, against plain loops over the bytes of their buffers. The
//! interpreter and the machine code have to give what the loop gives, in run mode and in check mode, and what
//! lies between the elements has to stay as it was.

use groundswell::compile::Parameter;
use groundswell::kernels::{Form, Gemm, Waves, copy_strided};
use groundswell::prelude::*;
use groundswell::simulator::CheckOptions;
use groundswell_testing::exact_case::{number, of_numbers};
use groundswell_testing::judged::verified;
use groundswell_testing::matrix_shapes::SHAPES;
use groundswell_testing::meaning;

/// Names and numbers of symbols.
type Sizes<'a> = &'a [(&'a str, i64)];

/// A tensor argument: its elements row after row, and its strides.
struct Argument {
    tensor: Tensor,
    strides: Vec<usize>,
}

impl Argument {
    fn new(dtype: DType, shape: &[usize], strides: &[usize]) -> Argument {
        let numbers: Vec<f64> = (0..shape.iter().product()).map(number).collect();
        Argument { tensor: of_numbers(dtype, shape, &numbers), strides: strides.to_vec() }
    }

    /// The bytes of a buffer that holds it and nothing beyond its last element.
    fn bytes(&self, tensor: &Tensor) -> Vec<u8> {
        let width = tensor.dtype().bytes() as usize;
        let mut bytes = vec![];
        for (at, element) in tensor.to_bytes().chunks(width).enumerate() {
            let (mut rest, mut place) = (at, 0);
            for (&size, &stride) in tensor.shape().iter().zip(&self.strides).rev() {
                place += rest % size * stride;
                rest /= size;
            }
            while bytes.len() < (place + 1) * width {
                // A pattern that shows where something is written, and no NaN of any type.
                bytes.push(0x35 ^ (bytes.len() as u8 & 3));
            }
            bytes[place * width..][..width].copy_from_slice(element);
        }
        bytes
    }
}

/// Runs, checks with `seeds`, and compares the last argument with `expected`. `sizes` are those that are
/// bound; `open` those that the launch gives.
fn holds(
    name: &str,
    kernel: &Kernel,
    schedule: Schedule,
    (sizes, open): (Sizes<'_>, Sizes<'_>),
    arguments: &[Argument],
    expected: &[f64],
    seeds: &[u64],
) -> Executable {
    let text = kernel.to_string();
    let again = Kernel::parse(&text, "again.gsw").unwrap_or_else(|e| panic!("{name}: {e}\n{text}"));
    assert_eq!(again.to_string(), text, "{name}");
    let value = |symbol: Symbol| {
        sizes.iter().chain(open).find(|(name, _)| *name == symbol.name()).map(|&(_, size)| size)
    };
    let mut options = Options::new(Target::GFX942).schedule(schedule);
    for &(symbol, size) in sizes {
        options = options.set(symbol, size);
    }
    for &(symbol, _) in open {
        options = options.dynamic(symbol);
    }
    let inputs: Vec<Tensor> = arguments.iter().map(|argument| argument.tensor.clone()).collect();
    let after = Interpreter::run(kernel, &value, &inputs).unwrap_or_else(|e| panic!("{name}: {e}\n{text}"));
    assert_eq!(after.last().unwrap().to_f64(), expected, "{name}: the interpreter");
    let executable = verified(kernel, &options);
    if !seeds.is_empty() {
        meaning::compare(kernel, &options, &value).unwrap_or_else(|e| panic!("{name}: {e}"));
        meaning::reads_back(name, kernel, &options);
    }
    let last = arguments.last().unwrap();
    let result = of_numbers(last.tensor.dtype(), last.tensor.shape(), expected);
    for seed in [None].into_iter().chain(seeds.iter().copied().map(Some)) {
        let device = Device::simulator(Target::GFX942);
        let buffers: Vec<Buffer> = arguments
            .iter()
            .map(|argument| {
                let bytes = argument.bytes(&argument.tensor);
                let buffer = device.allocate(bytes.len() as u64).unwrap();
                buffer.write_bytes(&bytes).unwrap();
                buffer
            })
            .collect();
        let launch = buffers.iter().fold(device.launch(&executable), |launch, buffer| launch.buffer(buffer));
        let known = |symbol: &str| {
            let is = |p: &Parameter| matches!(p, Parameter::Symbol { symbol: s, .. } if s.name() == symbol);
            executable.parameters().iter().any(is)
        };
        let set = open.iter().filter(|(symbol, _)| known(symbol));
        let launch = set.fold(launch, |launch, &(symbol, size)| launch.set(symbol, size));
        match seed {
            None => drop(launch.run().unwrap_or_else(|e| panic!("{name}: {e}"))),
            Some(seed) => {
                let report = launch.check(&CheckOptions { seed }).unwrap_or_else(|e| panic!("{name}: {e}"));
                assert!(report.findings.is_empty(), "{name}: {report}");
            }
        }
        let found = buffers.last().unwrap().read_bytes().unwrap();
        let wrong = found.iter().zip(last.bytes(&result)).position(|(&a, b)| a != b);
        assert!(wrong.is_none(), "{name} {seed:?}: byte {} differs\n{text}", wrong.unwrap());
        for (argument, buffer) in arguments[..arguments.len() - 1].iter().zip(&buffers) {
            assert!(buffer.read_bytes().unwrap() == argument.bytes(&argument.tensor), "{name}: an input");
        }
    }
    executable
}

const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];

/// Sizes that are bound, and those left open: `open` says which.
fn split<'a>(sizes: &[(&'a str, i64)], open: &[&str]) -> [Vec<(&'a str, i64)>; 2] {
    let (bound, open) = sizes.iter().partition(|(name, _)| !open.contains(name));
    [bound, open]
}

#[test]
fn copies_of_parts_equal_a_loop() {
    // Rows, columns, and what the rows of both are longer.
    let shapes = [
        [16, 256, 0, 0],
        [16, 256, 8, 16],
        [17, 256, 1, 0],
        [32, 100, 4, 28],
        [5, 70, 2, 2],
        [5, 70, 58, 3],
        [1, 1, 0, 0],
        [1, 1, 7, 7],
        [40, 1, 1, 9],
        [1, 300, 0, 5],
        [33, 257, 3, 255],
        [64, 64, 64, 192],
        [2, 2, 2, 6],
        [3, 5, 3, 0],
        [17, 33, 7, 31],
        [100, 3, 1, 5],
        [4, 128, 0, 128],
        [15, 31, 1, 33],
        [33, 65, 63, 0],
        [7, 77, 3, 51],
    ];
    let dtypes = [F32, F16, I8, Bf16, I32, F64, I64];
    for (at, [m, n, more_a, more_b]) in shapes.into_iter().enumerate() {
        for variant in 0..3 {
            let dtype = dtypes[(at + variant) % dtypes.len()];
            let (lda, ldb) = (n + more_a, n + more_b);
            let open: &[&str] = [&[][..], &["LDA", "LDB"], &["M", "N", "LDA", "LDB"]][variant];
            let divides = |by: usize| lda % by == 0 && ldb % by == 0;
            let multiple = [8, 4, 2].into_iter().find(|&by| divides(by)).unwrap_or(1);
            let name = format!("copy {m}x{n} {dtype} from {lda} to {ldb}, {open:?} open, {multiple}");
            let kernel = copy_strided(dtype, Waves::new(2, 1), multiple as u32).unwrap();
            let sizes = [("M", m), ("N", n), ("LDA", lda), ("LDB", ldb), ("BLOCK_M", 16), ("BLOCK_N", 128)];
            let [sizes, open] = split(&sizes.map(|(name, size)| (name, size as i64)), open);
            let a = Argument::new(dtype, &[m, n], &[lda, 1]);
            let expected = a.tensor.to_f64();
            let mut b = Argument::new(dtype, &[m, n], &[ldb, 1]);
            b.tensor = of_numbers(dtype, &[m, n], &vec![1.0; m * n]);
            let seeds: &[u64] = if at % 6 == variant { &SEEDS } else { &[] };
            holds(&name, &kernel, Schedule::None, (&sizes, &open), &[a, b], &expected, seeds);
        }
    }
}

/// The instructions of an executable whose names begin with `prefix`.
fn count(executable: &Executable, prefix: &str) -> usize {
    executable.assembly().unwrap().lines().filter(|line| line.trim_start().starts_with(prefix)).count()
}

#[test]
fn accesses_are_wide_where_rows_begin_at_dwords() {
    let options = || {
        let bound = Options::new(Target::GFX942).set("M", 64).set("N", 256).set("BLOCK_M", 16);
        bound.set("BLOCK_N", 256)
    };
    let open = || options().dynamic("LDA").dynamic("LDB");
    let compile = |dtype, multiple, options: &Options| {
        copy_strided(dtype, Waves::new(4, 1), multiple).unwrap().compile(options)
    };
    for (dtype, multiple) in [(F32, 1), (F16, 2), (F16, 8), (I8, 4)] {
        let wide = compile(dtype, multiple, &open().deny(Deny::SplitAccesses)).unwrap();
        assert!(count(&wide, "buffer_load_dwordx4") > 0, "{dtype} {multiple}");
        assert_eq!(count(&wide, "buffer_load"), count(&wide, "buffer_load_dwordx4"), "{dtype} {multiple}");
        assert!(wide.report().split_accesses.is_empty());
    }
    for (dtype, multiple) in [(F16, 1), (I8, 2), (I8, 1), (Bf16, 3)] {
        let split = compile(dtype, multiple, &open()).unwrap();
        assert_eq!(count(&split, "buffer_load_dwordx4"), 0, "{dtype} {multiple}");
        let accesses = &split.report().split_accesses;
        assert_eq!(accesses.len(), 2, "{dtype} {multiple}");
        assert!(accesses.iter().all(|access| access.why.starts_with("strides and sizes")), "{accesses:?}");
        let refused = compile(dtype, multiple, &open().deny(Deny::SplitAccesses)).unwrap_err();
        assert!(refused.location.is_some(), "{refused}");
    }
    // Numbers need no assumption.
    let known = compile(F16, 1, &options().set("LDA", 300).set("LDB", 258)).unwrap();
    assert!(known.report().split_accesses.is_empty());
    let odd = compile(F16, 1, &options().set("LDA", 301).set("LDB", 258)).unwrap();
    assert_eq!(odd.report().split_accesses.len(), 1);
}

/// A product with leading dimensions; `more` says how much longer the rows of A, B and C are, and the
/// matrices of a batch.
fn product(
    name: &str,
    gemm: &Gemm,
    form: Form,
    [batch, m, n, k]: [usize; 4],
    more: [usize; 4],
    open: &[&str],
    seeds: &[u64],
) -> Executable {
    let (a_shape, b_shape) = match form {
        Form::ABt => ([m, k], [n, k]),
        Form::AB => ([m, k], [k, n]),
        Form::AtB => ([k, m], [k, n]),
        Form::AtBt => ([k, m], [n, k]),
    };
    let shapes = [a_shape, b_shape, [m, n]];
    let mut sizes = vec![("M", m), ("N", n), ("K", k), ("BLOCK_M", 32), ("BLOCK_N", 32), ("BLOCK_K", 32)];
    let names = [["LDA", "STRIDE_A"], ["LDB", "STRIDE_B"], ["LDC", "STRIDE_C"]];
    let mut arguments = vec![];
    for (at, [rows, columns]) in shapes.into_iter().enumerate() {
        let leading = columns + more[at];
        sizes.push((names[at][0], leading));
        let dtype = if at == 2 { F32 } else { F16 };
        arguments.push(match batch {
            0 => Argument::new(dtype, &[rows, columns], &[leading, 1]),
            _ => {
                let stride = leading * rows + more[3];
                sizes.push((names[at][1], stride));
                Argument::new(dtype, &[batch, rows, columns], &[stride, leading, 1])
            }
        });
    }
    if batch > 0 {
        sizes.push(("B", batch));
    }
    let (a, b) = (arguments[0].tensor.to_f64(), arguments[1].tensor.to_f64());
    let mut expected = vec![];
    for which in 0..batch.max(1) {
        for i in 0..m {
            for j in 0..n {
                let of_a = |l| {
                    if a_shape == [m, k] && matches!(form, Form::ABt | Form::AB) {
                        i * k + l
                    } else {
                        l * m + i
                    }
                };
                let of_b = |l| if matches!(form, Form::ABt | Form::AtBt) { j * k + l } else { l * n + j };
                let term = |l| a[which * m * k + of_a(l)] * b[which * n * k + of_b(l)];
                expected.push((0..k).map(term).sum());
            }
        }
    }
    let sizes: Vec<(&str, i64)> = sizes.into_iter().map(|(name, size)| (name, size as i64)).collect();
    let [sizes, open] = split(&sizes, open);
    let schedule = if k > 64 { Schedule::Prefetch } else { Schedule::None };
    holds(name, &gemm.kernel().unwrap(), schedule, (&sizes, &open), &arguments, &expected, seeds)
}

#[test]
fn products_of_parts_equal_a_loop() {
    let cases: [([usize; 4], [usize; 4]); 12] = [
        ([0, 32, 32, 32], [0, 0, 0, 0]),
        ([0, 32, 32, 64], [8, 16, 4, 0]),
        ([0, 33, 31, 40], [8, 24, 2, 0]),
        ([0, 65, 70, 100], [4, 28, 10, 0]),
        ([0, 20, 48, 33], [1, 7, 3, 0]),
        ([0, 1, 1, 1], [0, 5, 1, 0]),
        ([0, 64, 32, 128], [128, 64, 32, 0]),
        ([2, 32, 32, 32], [0, 0, 0, 0]),
        ([2, 33, 20, 40], [8, 8, 4, 32]),
        ([3, 16, 40, 64], [2, 2, 2, 2]),
        ([2, 32, 33, 30], [1, 3, 5, 7]),
        ([1, 40, 32, 70], [10, 26, 0, 0]),
    ];
    let forms = [Form::ABt, Form::AB, Form::AtB, Form::AtBt];
    let opens: [&[&str]; 3] = [
        &[],
        &["LDA", "LDB", "LDC"],
        &["M", "N", "K", "LDA", "LDB", "LDC", "STRIDE_A", "STRIDE_B", "STRIDE_C"],
    ];
    for (at, (shape, more)) in cases.into_iter().enumerate() {
        for variant in 0..2 {
            let (form, open) = (forms[(at + 2 * variant) % 4], opens[(at + variant) % 3]);
            let gemm = Gemm::any_shape().form(form).leading_dimensions(1);
            let gemm = if shape[0] > 0 { gemm.batched() } else { gemm };
            let open: Vec<&str> =
                open.iter().copied().filter(|name| shape[0] > 0 || !name.starts_with("STRIDE")).collect();
            let name = format!("{form:?} {shape:?} {more:?} {open:?}");
            let seeds: &[u64] = if at % 6 == 2 && variant == 1 { &SEEDS } else { &[] };
            product(&name, &gemm, form, shape, more, &open, seeds);
        }
    }
}

#[test]
fn products_with_known_multiples_have_the_loop_of_whole_matrices() {
    let options = |options: Options| options.schedule(Schedule::Prefetch);
    let gemm = Gemm::new(128, 128, 256).tile(64, 64, 32);
    let plain = gemm.kernel().unwrap().compile(&options(gemm.options(Target::GFX942))).unwrap();
    let strided = gemm.clone().leading_dimensions(8);
    let open = options(strided.options(Target::GFX942)).dynamic("LDA").dynamic("LDB").dynamic("LDC");
    let strided = strided.kernel().unwrap().compile(&open.deny(Deny::SplitAccesses)).unwrap();
    for prefix in ["buffer_load_dwordx4", "buffer_load", "buffer_store", "ds_", "v_mfma"] {
        assert_eq!(count(&strided, prefix), count(&plain, prefix), "{prefix}");
    }
}

/// Text kernels on parts of larger tensors: every kind of access.
#[test]
fn every_access_of_a_part_equals_a_loop() {
    let head = "kernel part {\n workgroup M, 16, 0\n workgroup N, 64, 1\n";
    let all = |m: usize, n: usize, f: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
        (0..m * n).map(|at| f(at / n, at % n)).collect()
    };
    for (at, [m, n]) in SHAPES.into_iter().enumerate() {
        let (lda, ldb) = (n + [0, 2, 1, 71, 2][at % 5], n + [0, 26, 3, 1, 1][at % 5]);
        for open in [&[][..], &["LDA", "LDB"], &["M", "N", "LDA", "LDB"]] {
            let seeds: &[u64] = if at == 1 && open.len() == 2 { &SEEDS } else { &[] };
            let bound = [("M", m), ("N", n), ("LDA", lda), ("LDB", ldb)].map(|(s, v)| (s, v as i64));
            let [sizes, open] = split(&bound, open);
            let sizes = (&sizes[..], &open[..]);
            let check = |name: &str, body: &str, arguments: &[Argument], expected: &[f64]| {
                let text = format!("{head}{body}}}\n");
                let kernel = Kernel::parse(&text, name).unwrap_or_else(|e| panic!("{text}{e}"));
                let name = format!("{name} {m}x{n} {lda} {ldb} {open:?}");
                holds(&name, &kernel, Schedule::None, sizes, arguments, expected, seeds);
            };
            // Updated in place: what lies after the rows belongs to somebody else.
            let b = || Argument::new(F16, &[m, n], &[ldb, 1]);
            let old = b().tensor.to_f64();
            let body = "b = memory [M, N] global f16 strides [LDB, 1]\n %x = read b\n %y = mul %x, 2.0\n write %y, b\n";
            let doubled = all(m, n, &|i, j| 2.0 * old[i * n + j]);
            check("update", body, &[b()], &doubled);
            // By way of LDS.
            let a = || Argument::new(F16, &[m, n], &[lda, 1]);
            let from = a().tensor.to_f64();
            let body = "a = memory [M, N] shared f16 strides [LDA, 1]\n\
                        b = memory [M, N] global f16 strides [LDB, 1]\n %x = read a\n write %x, b\n";
            check("shared", body, &[a(), b()], &from);
            // Rows moved by one, with zeros where there is none.
            let body = "a = memory [M, N] global f16 strides [LDA, 1]\n\
                        b = memory [M, N] global f16 strides [LDB, 1]\n %x = read a at [M + 1, N] as [M, N]\n\
                        write %x, b\n";
            let moved = all(m, n, &|i, j| if i + 1 < m { from[(i + 1) * n + j] } else { 0.0 });
            check("mapped", body, &[a(), b()], &moved);
            // Columns moved by one: the neighbour of the last one is not in the row.
            let body = "a = memory [M, N] global f16 strides [LDA, 1]\n\
                        b = memory [M, N] global f16 strides [LDB, 1]\n %x = read a at [M, N + 1] as [M, N]\n\
                        write %x, b\n";
            let moved = all(m, n, &|i, j| if j + 1 < n { from[i * n + j + 1] } else { 0.0 });
            check("columns", body, &[a(), b()], &moved);
            // Rows written from the last to the first.
            let body = "a = memory [M, N] global f16 strides [LDA, 1]\n\
                        b = memory [M, N] global f16 strides [LDB, 1]\n %x = read a\n\
                        write %x, b at [19 - M, N]\n";
            let turned =
                all(m, n, &|i, j| if i < 20 && 19 - i < m { from[(19 - i) * n + j] } else { old[i * n + j] });
            check("written", body, &[a(), b()], &turned);
            // Sums of rows into a column of a matrix.
            let a = || Argument::new(I32, &[m, n], &[lda, 1]);
            let c = || Argument::new(I32, &[m, n], &[ldb, 1]);
            let (from, old) = (a().tensor.to_f64(), c().tensor.to_f64());
            let body = "a = memory [M, N] global i32 strides [LDA, 1]\n\
                        c = memory [M, N] global i32 strides [LDB, 1]\n %x = read a\n\
                        %old = atomic_add %x, c\n";
            check("atomic", body, &[a(), c()], &all(m, n, &|i, j| old[i * n + j] + from[i * n + j]));
            let body = "a = memory [M, N] global i32 strides [LDA, 1]\n\
                        c = memory [M, N] global i32 strides [LDB, 1]\n %x = read a\n\
                        %old = atomic_add %x, c at [M, 0]\n";
            let sums = all(m, n, &|i, j| {
                let sum: f64 = (0..n).map(|l| from[i * n + l]).sum();
                old[i * n + j] + if j == 0 { sum } else { 0.0 }
            });
            check("sums", body, &[a(), c()], &sums);
        }
    }
}

/// Four dimensions, of which the middle ones lie in a larger tensor.
#[test]
fn parts_of_tensors_equal_a_loop() {
    let [b, h, m, n] = symbols(["B", "H", "M", "N"]);
    let (hp, np) = (Symbol::new("HP"), Symbol::new("NP"));
    for (at, [batch, heads, rows, columns, hp_size, np_size]) in
        [[2, 3, 16, 64, 3, 64], [2, 3, 17, 60, 4, 64], [1, 2, 5, 33, 7, 35], [3, 1, 20, 64, 2, 66]]
            .into_iter()
            .enumerate()
    {
        for open in [&[][..], &["HP", "NP"], &["B", "M", "N", "HP", "NP"]] {
            let kernel = Kernel::trace("part", |w| {
                w.distribute([workgroup(b, 1, 2), workgroup(m, 16, 0), workgroup(n, 64, 1)]);
                // The rows of all heads of a batch lie one after the other, in the order [B, M, H, N].
                let layout = MemoryLayout::physical([b, m, hp, np]);
                let x = w.memory_in("x", [b, m, h, n], &layout, Global, F16);
                let y = w.memory("y", [b, m, h, n], Global, F16);
                w.write(w.read(x) + 1.0, y);
            })
            .unwrap();
            let shape = [batch, rows, heads, columns];
            let x = Argument::new(F16, &shape, &[rows * hp_size * np_size, hp_size * np_size, np_size, 1]);
            let expected: Vec<f64> = x.tensor.to_f64().iter().map(|x| x + 1.0).collect();
            let y = Argument::new(F16, &shape, &[rows * heads * columns, heads * columns, columns, 1]);
            let sizes =
                [("B", batch), ("M", rows), ("H", heads), ("N", columns), ("HP", hp_size), ("NP", np_size)];
            let [sizes, open] = split(&sizes.map(|(s, v)| (s, v as i64)), open);
            let seeds: &[u64] = if at == 1 && open.len() == 2 { &SEEDS } else { &[] };
            let name = format!("{shape:?} in {hp_size} x {np_size}, {open:?}");
            holds(&name, &kernel, Schedule::None, (&sizes, &open), &[x, y], &expected, seeds);
        }
    }
}

#[test]
fn launches_with_too_small_buffers_or_rows_that_overlap_are_refused() {
    let options = Options::new(Target::GFX942).set("M", 4).set("N", 10).set("BLOCK_M", 16).set("BLOCK_N", 64);
    let kernel = copy_strided(F32, Waves::new(1, 1), 2).unwrap();
    let executable = kernel.compile(&options.clone().dynamic("LDA").dynamic("LDB")).unwrap();
    let device = Device::simulator(Target::GFX942);
    let refused = |lda: i64, ldb: i64, elements: [usize; 2]| {
        let [a, b] = elements.map(|count| device.upload(&vec![0f32; count]).unwrap());
        let launch = device.launch(&executable).buffer(&a).buffer(&b).set("LDA", lda).set("LDB", ldb);
        launch.run().map(|_| ()).map_err(|fault| fault.message)
    };
    assert_eq!(refused(10, 12, [40, 46]), Ok(()));
    let fault = refused(10, 12, [40, 45]).unwrap_err();
    assert_eq!(fault, "`b` is 4 x 10 f32 with strides and needs 184 bytes, but its buffer has 180");
    let fault = refused(10, 8, [40, 100]).unwrap_err();
    assert_eq!(fault, "dimension 0 of `b` has a stride of 8 elements, and those of one coordinate take 10");
    let fault = refused(11, 12, [100, 100]).unwrap_err();
    assert_eq!(fault, "the kernel assumes that 2 divides LDA, and LDA = 11");
    // Numbers that are known are refused when the kernel is compiled, where the memory is declared.
    let fault = kernel.compile(&options.set("LDA", 8).dynamic("LDB")).unwrap_err();
    assert!(fault.message.starts_with("M of `a` has a stride of 8 elements"), "{fault}");
    assert!(fault.location.is_some());
}

/// Along a dimension of one element nothing is multiplied by the stride: it may be any number, also one with
/// which lanes beyond the row would be at elements of the row. They store another number than those inside.
#[test]
fn strides_of_single_rows_may_be_any_number() {
    let [m, n, lda] = symbols(["M", "N", "LDA"]);
    let kernel = Kernel::trace("single_row", |w| {
        w.distribute([workgroup(m, 16, 0), workgroup(n, 64, 1), wave(m, 16), wave(n, 64)]);
        let a = w.memory_in("a", [m, n], &MemoryLayout::strides([lda]), Global, F32);
        let out = w.memory_in("out", [m, n], &MemoryLayout::strides([lda]), Global, F32);
        let row = w.self_index(m).cast(F32);
        w.write(w.read(a) + row, out);
    })
    .unwrap();
    let values: Vec<f32> = (0..200u8).map(f32::from).collect();
    for target in Target::ALL {
        let device = Device::simulator(target);
        for (columns, stride) in [(64i64, 0i64), (64, 2), (200, 1), (200, 16), (200, 199), (50, 1000)] {
            for open in [&[][..], &["LDA"], &["M", "LDA"], &["M", "N", "LDA"]] {
                let sizes = [("M", 1), ("N", columns), ("LDA", stride)];
                let options = Options::new(target);
                let options =
                    sizes.iter().fold(options, |options, &(name, size)| match open.contains(&name) {
                        true => options.dynamic(name),
                        false => options.set(name, size),
                    });
                let executable = match kernel.compile(&options) {
                    // A size that is known is at least 1.
                    Err(fault) if stride == 0 && open.is_empty() => {
                        assert!(fault.message.contains("LDA"), "{fault}");
                        continue;
                    }
                    compiled => compiled.unwrap(),
                };
                let a = device.upload(&values).unwrap();
                let out = device.upload(&[-1f32; 200]).unwrap();
                let launch = device.launch(&executable).buffer(&a).buffer(&out);
                let set = sizes.iter().filter(|size| open.contains(&size.0));
                let launch = set.fold(launch, |launch, &(name, size)| launch.set(name, size));
                launch
                    .run()
                    .unwrap_or_else(|fault| panic!("{target}, {columns} by {stride}, {open:?}: {fault}"));
                let found = out.download::<f32>().unwrap();
                let inside = columns as usize;
                assert_eq!(found[..inside], values[..inside], "{target}, {columns} by {stride}, {open:?}");
                assert_eq!(found[inside..], vec![-1f32; 200 - inside][..], "{target}, {columns}, {open:?}");
            }
        }
    }
}

/// Columns that lie side by side, and elements that lie apart along every dimension.
#[test]
fn strides_in_any_order_equal_a_loop() {
    let shapes = [
        [16, 64, 0, 0],
        [20, 70, 4, 1],
        [33, 50, 1, 2],
        [7, 129, 9, 0],
        [64, 16, 8, 3],
        [1, 1, 0, 0],
        [1, 100, 3, 1],
        [50, 1, 2, 2],
    ];
    for (at, [m, n, more_a, more_b]) in shapes.into_iter().enumerate() {
        for (variant, open) in [&[][..], &["LDA", "LDB"], &["M", "N", "LDA", "LDB"]].into_iter().enumerate() {
            let dtype = [F32, F16, I8, F64, I32, Bf16][(at + variant) % 6];
            let (lda, ldb) = (m + more_a, 2 * n + more_b);
            let seeds: &[u64] = if (at + variant) % 4 == 1 { &SEEDS } else { &[] };
            let bound = [("M", m), ("N", n), ("LDA", lda), ("LDB", ldb)].map(|(s, v)| (s, v as i64));
            let [sizes, open] = split(&bound, open);
            let sizes = (&sizes[..], &open[..]);
            let a = || Argument::new(dtype, &[m, n], &[1, lda]);
            let mut b = Argument::new(dtype, &[m, n], &[ldb, 2]);
            b.tensor = of_numbers(dtype, &[m, n], &vec![1.0; m * n]);
            let head = "kernel part {\n workgroup M, 16, 0\n workgroup N, 32, 1\n";
            let copied = format!(
                "{head} a = memory [M, N] global {dtype} strides [1, LDA]\n b = memory [M, N] global {dtype} \
                 strides [LDB, 2]\n %x = read a\n write %x, b\n}}\n"
            );
            let kernel = Kernel::parse(&copied, "copied.gsw").expect("well-formed");
            let expected = a().tensor.to_f64();
            let name = format!("{m}x{n} {dtype} {lda} {ldb} {open:?}");
            holds(&name, &kernel, Schedule::None, sizes, &[a(), b], &expected, seeds);
            // Along another dimension than the first and the last, and with coordinates.
            let turned = format!(
                "{head} a = memory [M, N] global {dtype} strides [1, LDA]\n b = memory [N, M, 1] global {dtype} \
                 strides [2 * M, 1, M]\n %x = read a at [M, N] as [N, M]\n %y = add %x, %x\n \
                 write %y, b at [N, M, 0]\n}}\n"
            );
            let kernel = Kernel::parse(&turned, "turned.gsw").expect("well-formed");
            let mut b = Argument::new(dtype, &[n, m, 1], &[2 * m, 1, m]);
            b.tensor = of_numbers(dtype, &[n, m, 1], &vec![1.0; m * n]);
            let expected: Vec<f64> =
                (0..m * n).map(|at| 2.0 * a().tensor.to_f64()[at % m * n + at / m]).collect();
            let bound: Vec<_> = sizes.0.iter().copied().filter(|size| size.0 != "LDB").collect();
            let open: Vec<_> = sizes.1.iter().copied().filter(|size| size.0 != "LDB").collect();
            holds(&name, &kernel, Schedule::None, (&bound, &open), &[a(), b], &expected, seeds);
        }
    }
}

#[test]
fn updates_and_products_of_columns_equal_a_loop() {
    for (at, [m, n, k]) in [[32, 32, 32], [33, 40, 70], [64, 20, 100], [1, 1, 1]].into_iter().enumerate() {
        let [lda, ldc] = [m + at, m + 3 * at];
        let bound = [("M", m), ("N", n), ("K", k), ("LDA", lda), ("LDC", ldc)].map(|(s, v)| (s, v as i64));
        let open: &[&str] = if at % 2 == 1 { &["M", "N", "K", "LDA", "LDC"] } else { &[] };
        let [sizes, open] = split(&bound, open);
        let text = "kernel product {\n workgroup M, 32, 0\n workgroup N, 32, 1\n tile K, 32\n \
                    mma f32_16x16x16_f16\n a = memory [M, K] shared f16 strides [1, LDA]\n \
                    b = memory [N, K] shared f16\n c = memory [M, N] global f32 strides [1, LDC]\n \
                    %zero = register [M, N] f32 0.0\n %sum = iterate K (%acc = %zero) {\n %x = read a\n \
                    %y = read b\n %next = mma %x, %y, %acc\n yield %next\n }\n write %sum, c\n}\n";
        let kernel = Kernel::parse(text, "product.gsw").expect("well-formed");
        let [a, b] = [Argument::new(F16, &[m, k], &[1, lda]), Argument::new(F16, &[n, k], &[k, 1])];
        let c = Argument::new(F32, &[m, n], &[1, ldc]);
        let (x, y) = (a.tensor.to_f64(), b.tensor.to_f64());
        let term = |i: usize, j: usize, l: usize| x[i * k + l] * y[j * k + l];
        let expected: Vec<f64> = (0..m * n).map(|at| (0..k).map(|l| term(at / n, at % n, l)).sum()).collect();
        let schedule = if k > 64 { Schedule::Prefetch } else { Schedule::None };
        let seeds: &[u64] = if at < 2 { &SEEDS } else { &[] };
        holds(
            &format!("product {m}x{n}x{k}"),
            &kernel,
            schedule,
            (&sizes, &open),
            &[a, b, c],
            &expected,
            seeds,
        );
        let text = "kernel sums {\n workgroup M, 32, 0\n workgroup N, 32, 1\n \
                    a = memory [M, N] global i32 strides [1, LDA]\n c = memory [M, N] global i32 \
                    strides [1, LDC]\n %x = read a\n %y = atomic_add %x, c\n}\n";
        let kernel = Kernel::parse(text, "sums.gsw").expect("well-formed");
        let [a, c] = [lda, ldc].map(|leading| Argument::new(I32, &[m, n], &[1, leading]));
        let expected: Vec<f64> = a.tensor.to_f64().iter().map(|x| 2.0 * x).collect();
        let without_k = |sizes: &[(&'static str, i64)]| -> Vec<(&'static str, i64)> {
            sizes.iter().copied().filter(|size| size.0 != "K").collect()
        };
        let (sizes, open) = (without_k(&sizes), without_k(&open));
        holds(&format!("sums {m}x{n}"), &kernel, Schedule::None, (&sizes, &open), &[a, c], &expected, seeds);
    }
}

#[test]
fn accesses_are_wide_along_the_dimension_whose_stride_is_one() {
    let [m, n, lda] = symbols(["M", "N", "LDA"]);
    let copy = |layout: MemoryLayout| {
        let traced = Kernel::trace("columns", |w| {
            w.distribute([workgroup(m, 64, 0), workgroup(n, 16, 1), assume_divisible(lda, 8)]);
            let a = w.memory_in("a", [m, n], &layout, Global, F16);
            let b = w.memory_in("b", [m, n], &layout, Global, F16);
            w.write(w.read(a), b);
        });
        traced.expect("well-formed")
    };
    let options = Options::new(Target::GFX942).set(m, 128).set(n, 64).dynamic(lda);
    let columns = copy(MemoryLayout::strides([1.into(), lda]));
    let wide = columns.compile(&options.clone().deny(Deny::SplitAccesses)).expect("wide accesses");
    assert_eq!(count(&wide, "buffer_load_dwordx4"), count(&wide, "buffer_load"));
    assert_eq!(count(&wide, "buffer_store_dwordx4"), count(&wide, "buffer_store"));
    assert_eq!(count(&wide, "ds_"), 0);
    let apart = copy(MemoryLayout::strides([lda, 2.into()]));
    assert_eq!(apart.compile(&options).expect("split accesses").report().split_accesses.len(), 2);
    let refused = apart.compile(&options.deny(Deny::SplitAccesses)).unwrap_err();
    assert!(refused.location.is_some(), "{refused}");
    // Rows that are longer than what lies between their elements.
    let launched = |lda: i64| {
        let options = Options::new(Target::GFX942).set(m, 128).set(n, 64).dynamic("LDA");
        let executable = columns.compile(&options).expect("well-formed");
        let device = Device::simulator(Target::GFX942);
        let [a, b] = [0; 2].map(|_| device.allocate(1 << 16).expect("small"));
        device.launch(&executable).buffer(&a).buffer(&b).set("LDA", lda).run().map(drop)
    };
    assert!(launched(128).is_ok());
    assert!(launched(120).unwrap_err().message.contains("a stride of 120 elements"));
}
