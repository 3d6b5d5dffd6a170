//! Bad input: whatever cannot work gets a diagnostic with the author's line where there is one, the reason
//! and a way out, and nothing panics, whatever the sizes and tiles are.

use groundswell::compile::Verify;
use groundswell::compile::compile_uncached;
use groundswell::diagnostic::Kind;
use groundswell::prelude::*;
use groundswell_testing::judged::verified;
use proptest::prelude::*;

/// Tiles and sizes of a GEMM; `None` leaves a symbol unbound.
#[derive(Clone, Debug)]
struct Shape {
    mma: Mma,
    input: DType,
    output: DType,
    sizes: [Option<i64>; 3],
    block: [Option<i64>; 3],
    wave: [Option<i64>; 2],
}

const GOOD: Shape = Shape {
    mma: Mma::F32_16x16x16_F16,
    input: F16,
    output: F32,
    sizes: [Some(128), Some(128), Some(128)],
    block: [Some(64), Some(64), Some(32)],
    wave: [Some(32), Some(32)],
};

/// Lines of [`gemm`] that diagnostics point to.
struct Lines {
    distribute: u32,
    wave: u32,
    a: u32,
    c: u32,
    iterate: u32,
    read: u32,
    mma: u32,
    write: u32,
}

fn gemm(shape: &Shape) -> (Kernel, Lines) {
    let [m, n, k] = symbols(["M", "N", "K"]);
    let [bm, bn, bk, wm, wn] = symbols(["BLOCK_M", "BLOCK_N", "BLOCK_K", "WAVE_M", "WAVE_N"]);
    let mut lines = Lines { distribute: 0, wave: 0, a: 0, c: 0, iterate: 0, read: 0, mma: 0, write: 0 };
    let kernel = Kernel::trace("gemm", |w| {
        lines.distribute = line!() + 1;
        w.distribute([workgroup(m, bm, 0), workgroup(n, bn, 1), tile(k, bk)]);
        lines.wave = line!() + 1;
        w.distribute([wave(m, wm), wave(n, wn)]);
        w.mma_type(shape.mma);
        lines.a = line!() + 1;
        let a = w.memory("a", [m, k], Shared, shape.input);
        let b = w.memory("b", [n, k], Shared, shape.input);
        lines.c = line!() + 1;
        let c = w.memory("c", [m, n], Global, shape.output);
        let zero = w.register([m, n], shape.mma.accumulator(), 0.0);
        lines.iterate = line!() + 1;
        let [sum] = w.iterate(k, [zero], |w, [sum]| {
            lines.read = line!() + 1;
            let (a, b) = (w.read(a), w.read(b));
            lines.mma = line!() + 1;
            [w.mma(a, b, sum)]
        });
        lines.write = line!() + 1;
        w.write(sum, c);
    })
    .unwrap();
    (kernel, lines)
}

fn options(shape: &Shape) -> Options {
    let names = ["M", "N", "K", "BLOCK_M", "BLOCK_N", "BLOCK_K", "WAVE_M", "WAVE_N"];
    let values = shape.sizes.iter().chain(&shape.block).chain(&shape.wave);
    symbols(names).into_iter().zip(values).fold(Options::new(Target::GFX942), |options, (symbol, value)| {
        match value {
            Some(value) => options.set(symbol, *value),
            None => options,
        }
    })
}

fn compile(kernel: &Kernel, options: &Options) -> Result<Executable, Diagnostic> {
    compile_uncached(kernel, options, Verify::AfterEachPass)
}

/// The diagnostic of a GEMM of this shape.
fn refused(shape: &Shape) -> (Diagnostic, Lines) {
    let (kernel, lines) = gemm(shape);
    let error = compile(&kernel, &options(shape)).expect_err("this cannot be compiled");
    (error, lines)
}

/// That a diagnostic has this kind, this line of this file, these words in its message or notes, and a way
/// out.
#[track_caller]
fn assert_says(error: &Diagnostic, kind: Kind, line: impl Into<Option<u32>>, words: &[&str]) {
    let text = error.to_string();
    assert_eq!(error.kind, kind, "{text}");
    match (line.into(), &error.location) {
        (Some(line), Some(location)) => {
            assert_eq!((&*location.file, location.line), (file!(), line), "{text}");
            assert!(location.column > 0, "{text}");
        }
        (None, None) => {}
        (expected, _) => panic!("expected line {expected:?}\n{text}"),
    }
    for word in words {
        assert!(text.contains(word), "{word:?} is not in\n{text}");
    }
    assert!(error.help.as_ref().is_some_and(|help| !help.is_empty()), "no way out in\n{text}");
}

#[test]
fn the_good_shape_compiles() {
    let (kernel, _) = gemm(&GOOD);
    compile(&kernel, &options(&GOOD)).unwrap();
}

#[test]
fn a_wave_tile_that_is_no_multiple_of_the_matrix_instruction() {
    let (error, lines) =
        refused(&Shape { block: [Some(48), Some(64), Some(32)], wave: [Some(24), Some(32)], ..GOOD });
    let words = [
        "a wave covers 24 elements of M",
        "not a multiple of the 16 of F32_16x16x16_F16",
        "larger tile of M",
    ];
    assert_says(&error, Kind::Invalid, lines.mma, &words);
    let (error, lines) = refused(&Shape { block: [Some(64), Some(64), Some(24)], ..GOOD });
    assert_says(&error, Kind::Invalid, lines.mma, &["a wave covers 24 elements of K"]);
}

#[test]
fn a_workgroup_tile_that_is_no_multiple_of_the_wave_tile() {
    let (error, lines) = refused(&Shape { wave: [Some(48), Some(32)], ..GOOD });
    let words = ["the workgroup tile of M (64) is not a multiple of its wave tile (48)"];
    assert_says(&error, Kind::Invalid, lines.wave, &words);
}

#[test]
fn more_lds_than_a_workgroup_has() {
    let shape = Shape { block: [Some(256), Some(256), Some(128)], wave: [Some(64), Some(64)], ..GOOD };
    let (error, lines) = refused(&shape);
    assert_says(
        &error,
        Kind::Limit,
        lines.read,
        &["131072 bytes of LDS", "65536", "takes 65536 bytes", "smaller tiles"],
    );
}

#[test]
fn more_registers_than_a_wave_has() {
    let shape = Shape { block: [Some(256), Some(256), Some(32)], wave: [Some(256), Some(256)], ..GOOD };
    let (kernel, _) = gemm(&shape);
    let error = compile(&kernel, &options(&shape).deny(Deny::Spills)).unwrap_err();
    assert_eq!(error.kind, Kind::Denied, "{error}");
    assert!(error.location.as_ref().is_some_and(|l| &*l.file == file!()), "{error}");
    assert!(error.message.contains("the kernel spills"), "{error}");
    assert!(error.message.contains("bytes of scratch per work-item"), "{error}");
    let note = &error.notes.first().expect("the peak is named").0;
    assert!(note.contains("VGPRs are alive at this operation, and there are 512"), "{note}");
    assert!(error.help.as_ref().is_some_and(|help| help.contains("smaller wave tiles")), "{error:?}");
}

#[test]
fn more_waves_than_a_workgroup_has() {
    let shape = Shape { block: [Some(128), Some(128), Some(32)], wave: [Some(16), Some(32)], ..GOOD };
    let (error, lines) = refused(&shape);
    assert_says(
        &error,
        Kind::Limit,
        lines.wave,
        &["8 x 4 x 1 = 32 waves", "at most 16 waves", "larger wave tiles"],
    );
}

#[test]
fn sizes_of_zero_and_below() {
    let (error, lines) = refused(&Shape { sizes: [Some(128), Some(128), Some(0)], ..GOOD });
    assert_says(&error, Kind::Invalid, lines.a, &["K = 0 is not a size", "1 to 2147483647 elements"]);
    let (error, lines) = refused(&Shape { sizes: [Some(128), Some(-5), Some(64)], ..GOOD });
    assert_says(&error, Kind::Invalid, lines.a + 1, &["N = -5 is not a size"]);
    let (error, _) = refused(&Shape { sizes: [Some(1 << 31), Some(1), Some(1)], ..GOOD });
    assert!(error.message.contains("M = 2147483648 is not a size"), "{error}");
}

#[test]
fn tiles_of_zero_and_below_and_beyond() {
    for (value, words) in [(0, "is 0"), (-16, "is -16"), (1 << 21, "is 2097152")] {
        let (error, lines) = refused(&Shape { block: [Some(value), Some(64), Some(32)], ..GOOD });
        assert_says(&error, Kind::Invalid, lines.distribute, &["the workgroup tile of M", words]);
        let (error, lines) = refused(&Shape { block: [Some(64), Some(64), Some(value)], ..GOOD });
        assert_says(&error, Kind::Invalid, lines.distribute, &["the loop tile of K", words]);
        let (error, lines) = refused(&Shape { wave: [Some(value), Some(32)], ..GOOD });
        assert_says(&error, Kind::Invalid, lines.wave, &["the wave tile of M", words]);
    }
}

#[test]
fn the_largest_tiles_are_refused_before_they_are_expanded() {
    let large = Some(1 << 20);
    let (error, _) = refused(&Shape { block: [large; 3], wave: [large; 2], ..GOOD });
    assert!(matches!(error.kind, Kind::Limit | Kind::Invalid), "{error}");
    assert!(error.location.is_some() && error.help.is_some(), "{error}");
    let [m, n] = symbols(["M", "N"]);
    for columns in [64, 128] {
        let mut line = 0;
        let kernel = Kernel::trace("copy", |w| {
            w.distribute([workgroup(m, 1 << 20, 0), workgroup(n, columns, 1)]);
            let a = w.memory("a", [m, n], Global, F32);
            let b = w.memory("b", [m, n], Global, F32);
            line = line!() + 1;
            let x = w.read(a);
            w.write(x, b);
        });
        let error =
            compile(&kernel.unwrap(), &Options::new(Target::GFX942).set(m, 64).set(n, 64)).unwrap_err();
        assert_says(&error, Kind::Limit, line, &["take more than 65536 operations", "smaller tiles"]);
    }
}

#[test]
fn a_memory_whose_offsets_are_beyond_64_bits() {
    let [m, n, k] = symbols(["M", "N", "K"]);
    let mut line = 0;
    let kernel = Kernel::trace("copy", |w| {
        w.distribute([workgroup(m, 1, 0), workgroup(n, 1, 1), workgroup(k, 64, 2)]);
        let a = w.memory("a", [m, n, k], Global, F32);
        let b = w.memory("b", [m, n, k], Global, F32);
        line = line!() + 1;
        let x = w.read(a);
        w.write(x, b);
    })
    .unwrap();
    let size = i64::from(i32::MAX);
    let options = Options::new(Target::GFX942).set(m, size).set(n, size).set(k, size);
    let error = compile(&kernel, &options).unwrap_err();
    assert_says(&error, Kind::Limit, line, &["a memory is too large", "smaller sizes"]);
}

/// Their branches go by way of islands: one for a loop of 273,244 bytes, and several for the longest. Code of
/// LLVM's assembler is the same: `llvm_kernels.rs`.
#[test]
fn branches_go_around_loops_of_any_length() {
    loops_of_any_length(|options, depth| options.set("K", depth));
}

#[test]
fn branches_go_around_loops_of_any_length_and_open_sizes() {
    loops_of_any_length(|options, _| options.dynamic("K"));
}

/// Loops that take up to three islands, where `size` binds their depth or leaves it open.
fn loops_of_any_length(size: impl Fn(Options, u32) -> Options) {
    let [m, n, k] = symbols(["M", "N", "K"]);
    let kernel = long_loop([m, n, k]).unwrap();
    let device = Device::simulator(Target::GFX942);
    // An odd factor: the loop over what is left is not unrolled and short.
    for (factor, islands) in [(5, 0), (301, 1), (501, 3)] {
        let schedule = WaveSchedule::trace("unrolled", |s| s.unroll(s.get_node_by_tag("k_loop"), factor));
        let options = Options::new(Target::GFX942).set(m, 64).set(n, 64).wave_schedule(&schedule.unwrap());
        let depth = 64 * (factor + 3);
        let executable = verified(&kernel, &size(options, depth));
        let bytes = executable.report().code_bytes;
        assert!(i64::from(bytes) > islands * 131_068, "{factor}: {bytes} bytes");
        let ones = device.upload(&vec![f16::ONE; 64 * depth as usize]).unwrap();
        let c = device.upload(&[0f32; 64 * 64]).unwrap();
        let launch = device.launch(&executable).buffer(&ones).buffer(&ones).buffer(&c);
        let launch = if executable.parameters().len() > 3 { launch.set(k, depth) } else { launch };
        launch.run().unwrap_or_else(|error| panic!("{factor}: {error}"));
        let sums = c.download::<f32>().unwrap();
        assert!(sums.iter().all(|&sum| sum == depth as f32), "{factor}: {:?}", &sums[..4]);
    }
}

/// A product with a loop that schedules unroll.
fn long_loop([m, n, k]: [Symbol; 3]) -> Result<Kernel, Diagnostic> {
    Kernel::trace("gemm", |w| {
        w.distribute([workgroup(m, 64, 0), workgroup(n, 64, 1), tile(k, 64)]);
        w.mma_type(Mma::F32_16x16x16_F16);
        let (a, b) = (w.memory("a", [m, k], Shared, F16), w.memory("b", [n, k], Shared, F16));
        let c = w.memory("c", [m, n], Global, F32);
        let zero = w.register([m, n], F32, 0.0);
        let [sum] = w.iterate(k, [zero], |w, [sum]| {
            let (a, b) = (w.read(a), w.read(b));
            [w.mma(a, b, sum)]
        });
        w.write(sum.tag_loop("k_loop"), c);
    })
}

/// A network that cannot be compiled is refused before anything is made of it.
#[test]
fn sorts_of_too_many_rows_are_refused_at_once() {
    let text = "kernel k {\n  workgroup M, 4, 0\n  a = memory [M, N, P] global i32\n  b = memory [M, N, P] global i32\n  \
                %x = read a\n  %y = argsort %x over N\n  write %y, b\n}\n";
    let kernel = Kernel::parse(text, "sorts.gsw").unwrap();
    for (n, p) in [(257, 5), (1000, 3)] {
        let options = Options::new(Target::GFX942).set("M", 4).set("N", n).set("P", p);
        let start = std::time::Instant::now();
        let error = compile(&kernel, &options).unwrap_err();
        assert_eq!(error.kind, Kind::Limit, "{error}");
        let text = error.to_string();
        for word in ["`argsort` along N", "rows in each wave", "fewer rows", "sorts.gsw:6"] {
            assert!(text.contains(word), "{word:?} is not in\n{text}");
        }
        assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    }
    let options = Options::new(Target::GFX942).set("M", 4).set("N", 257).set("P", 1);
    compile(&kernel, &options).expect("few rows");
}

#[test]
fn every_limit_of_registers_compiles_or_is_refused() {
    let (kernel, _) = gemm(&GOOD);
    let mut refused = 0;
    for limit in (0..20).chain([63, 64, 65, 511, 512, u32::MAX]) {
        if let Err(error) = compile(&kernel, &options(&GOOD).max_vgprs(limit)) {
            assert!(is_helpful(&error) && error.kind == Kind::Denied, "{limit}: {error}");
            assert_eq!(refused, limit, "a larger limit does what a smaller one did");
            refused += 1;
        }
    }
    assert!(refused > 4, "{refused}");
}

#[test]
fn symbols_without_a_value() {
    let (error, lines) = refused(&Shape { sizes: [None, Some(128), Some(128)], ..GOOD });
    assert_says(&error, Kind::Invalid, lines.a, &["the dimension M has no size", "set(M, ..)", "dynamic(M)"]);
    let (error, lines) = refused(&Shape { block: [Some(64), None, Some(32)], ..GOOD });
    let words = ["the workgroup tile of N depends on BLOCK_N, which has no value", "set(BLOCK_N, ..)"];
    assert_says(&error, Kind::Invalid, lines.distribute, &words);
}

#[test]
fn symbols_with_two_values() {
    let (kernel, lines) = gemm(&GOOD);
    let [m, block_m] = symbols(["M", "BLOCK_M"]);
    let error = compile(&kernel, &options(&GOOD).set(m, 64)).unwrap_err();
    assert_says(
        &error,
        Kind::Invalid,
        lines.a,
        &["M is bound twice, to 128 and to 64", "bind each symbol once"],
    );
    let error = compile(&kernel, &options(&GOOD).set(block_m, 32)).unwrap_err();
    assert_says(&error, Kind::Invalid, None, &["BLOCK_M is bound twice, to 64 and to 32"]);
    let error = compile(&kernel, &options(&GOOD).dynamic(m)).unwrap_err();
    assert_says(&error, Kind::Invalid, lines.a, &["M is bound to 128 and declared dynamic", "leave it open"]);
    compile(&kernel, &options(&GOOD).set(m, 128)).expect("the same value twice is no contradiction");
}

#[test]
fn tile_sizes_that_are_dynamic() {
    let (kernel, lines) = gemm(&GOOD);
    let [block_k] = symbols(["BLOCK_K"]);
    let options = options(&Shape { block: [Some(64), Some(64), None], ..GOOD }).dynamic(block_k);
    let error = compile(&kernel, &options).unwrap_err();
    let words = ["the loop tile of K depends on BLOCK_K", "only sizes of dimensions can be left open"];
    assert_says(&error, Kind::Invalid, lines.distribute, &words);
}

#[test]
fn dtypes_that_do_not_fit() {
    let (error, lines) = refused(&Shape { input: Bf16, ..GOOD });
    assert_says(
        &error,
        Kind::Invalid,
        lines.mma,
        &["F32_16x16x16_F16 multiplies f16 into f32", "the operands are bf16"],
    );
    let (error, lines) = refused(&Shape { output: F16, ..GOOD });
    assert_says(
        &error,
        Kind::Invalid,
        lines.write,
        &["[M, N] f32 is written to a memory [M, N] f16", "cast the value"],
    );
    let (error, lines) = refused(&Shape { mma: Mma::I32_16x16x32_I8, input: F32, output: I32, ..GOOD });
    let words = ["[M, K] f32, [N, K] f32 and [M, N] i32", "no matrix instruction multiplies f32 into i32"];
    assert_says(&error, Kind::Invalid, lines.mma, &words);
}

#[test]
fn conditions_in_places_that_cannot_hold_them() {
    let [m, n, k] = symbols(["M", "N", "K"]);
    let options = Options::new(Target::GFX942).set(m, 64).set(n, 64).set(k, 64);
    let kernel = |body: &mut dyn FnMut(&Tracer, Value)| {
        let kernel = Kernel::trace("conditions", |w| {
            w.distribute([workgroup(m, 16, 0), workgroup(n, 64, 1)]);
            let a = w.memory("a", [m, n], Global, F32);
            let b = w.memory("b", [m, n], Global, F32);
            let x = w.read(a);
            body(w, x);
            w.write(x, b);
        });
        compile(&kernel.unwrap(), &options).unwrap_err()
    };
    let mut line = 0;
    // This one is not a kernel, neither for the compiler nor for the interpreter.
    let declared = Kernel::trace("declared", |w| {
        line = line!() + 1;
        let always = w.register([m, n], DType::I1, 1.0);
        w.select(always, 1.0, 2.0);
    });
    let error = declared.expect_err("i1 is declared");
    assert_says(&error, Kind::Invalid, line, &["a register is declared i1", "compare something"]);
    let text = "kernel k {\n  workgroup M, 64, 0\n  %l = allocate [M] i1\n}";
    let fault = Kernel::parse(text, "k.gsw").expect_err("i1 has no bytes").to_string();
    assert!(fault.contains("an LDS buffer is declared i1"), "{fault}");
    assert!(fault.contains(":3:21"), "{fault}");
    let error = kernel(&mut |_, x| {
        line = line!() + 1;
        let _ = x.cast(DType::I1);
    });
    assert_says(
        &error,
        Kind::Invalid,
        line,
        &["`cast` does not turn [M, N] f32 into i1", "compare with zero"],
    );
    let error = kernel(&mut |w, x| {
        let condition = x.less(0.0);
        w.distribute([tile(k, 16)]);
        line = line!() + 1;
        w.iterate(k, [condition], |_, [condition]| [condition]);
    });
    assert_says(
        &error,
        Kind::Invalid,
        line,
        &["a loop carries [M, N] i1", "`select` makes one of a condition"],
    );
    let error = kernel(&mut |w, x| {
        line = line!() + 1;
        w.select(x, x, x);
    });
    assert_says(
        &error,
        Kind::Invalid,
        line,
        &["the condition of select is [M, N] f32", "compare it with something"],
    );
    let error = kernel(&mut |_, x| {
        line = line!() + 1;
        let _ = x.cast(I32) + x;
    });
    assert_says(&error, Kind::Invalid, line, &["operands are [M, N] i32 and [M, N] f32", "equal dtypes"]);
    let error = kernel(&mut |_, x| {
        line = line!() + 1;
        let _ = x.cast(I32).sqrt();
    });
    assert_says(&error, Kind::Invalid, line, &["`sqrt` does not take [M, N] i32", "floating dtype"]);
    let error = kernel(&mut |_, x| {
        line = line!() + 1;
        let _ = x.cast(I32) + 0.5;
    });
    assert_says(&error, Kind::Invalid, line, &["the constant 0.5 meets [M, N] i32", "floating dtype"]);
}

#[test]
fn constraints_that_are_missing_or_contradict() {
    let [m, n, k] = symbols(["M", "N", "K"]);
    let sizes = Options::new(Target::GFX942).set(m, 64).set(n, 64).set(k, 64);
    let copy = |constraints: Vec<Constraint>| {
        let kernel = Kernel::trace("copy", |w| {
            w.distribute(constraints);
            let a = w.memory("a", [m, n], Global, F32);
            let b = w.memory("b", [m, n], Global, F32);
            let x = w.read(a);
            w.write(x, b);
        })
        .unwrap();
        let error = compile(&kernel, &sizes).unwrap_err();
        assert!(error.location.as_ref().is_some_and(|l| &*l.file == file!()), "{error}");
        assert!(error.help.is_some(), "{error}");
        error.to_string()
    };
    let text = copy(vec![workgroup(m, 16, 0), workgroup(n, 64, 0)]);
    assert!(text.contains("N and M are both spread over grid axis 0"), "{text}");
    assert_eq!(text.matches(file!()).count(), 2, "both constraints are shown\n{text}");
    let text = copy(vec![workgroup(m, 16, 0), workgroup(n, 64, 5)]);
    assert!(text.contains("grid axis 5 does not exist"), "{text}");
    let text = copy(vec![workgroup(m, 16, 0), workgroup(m, 32, 1), workgroup(n, 64, 2)]);
    assert!(text.contains("M has two constraints of one kind"), "{text}");
    let text = copy(vec![workgroup(m, 16, 0), workgroup(n, 64, 1), tile(k, 32)]);
    assert!(text.contains("K has a loop tile, but no memory or loop has this dimension"), "{text}");
    let text = copy(vec![workgroup(m, 16, 0), workgroup(n, 64, 1), assume_divisible(m, 48)]);
    assert!(text.contains("M = 64 is not a multiple of 48"), "{text}");
    let text = copy(vec![workgroup(m, 16, 0), workgroup(n, 64, 1), assume_divisible(m, 0)]);
    assert!(text.contains("0"), "{text}");
    let text = copy(vec![workgroup(m, 16, 0), workgroup(n, 64, 1), assume_at_least(m, 65)]);
    assert!(text.contains("M = 64 is below 65"), "{text}");
    let text = copy(vec![workgroup(m, 3, 0), workgroup(n, 50, 1)]);
    assert!(text.contains("M=3 N=50 cannot be spread over 64 lanes"), "{text}");
}

#[test]
fn loops_without_a_tile_and_products_without_an_instruction() {
    let [m, n, k] = symbols(["M", "N", "K"]);
    let sizes = Options::new(Target::GFX942).set(m, 64).set(n, 64).set(k, 64);
    let mut lines = (0, 0);
    let mut kernel = |tiled: bool, mma: Option<Mma>| {
        Kernel::trace("gemm", |w| {
            w.distribute([workgroup(m, 64, 0), workgroup(n, 64, 1)]);
            w.distribute(tiled.then(|| tile(k, 32)));
            w.distribute(mma.map(|mma| Constraint::MmaType(mma.into())));
            let a = w.memory("a", [m, k], Shared, F16);
            let b = w.memory("b", [n, k], Shared, F16);
            let c = w.memory("c", [m, n], Global, F32);
            let zero = w.register([m, n], F32, 0.0);
            lines.0 = line!() + 1;
            let [sum] = w.iterate(k, [zero], |w, [sum]| {
                let (a, b) = (w.read(a), w.read(b));
                lines.1 = line!() + 1;
                [w.mma(a, b, sum)]
            });
            w.write(sum, c);
        })
        .unwrap()
    };
    let untiled = kernel(false, Some(Mma::F32_16x16x16_F16));
    let unnamed = kernel(true, None);
    let error = compile(&untiled, &sizes).unwrap_err();
    assert_says(&error, Kind::Invalid, lines.0, &["the loop over K has no tile size", "tile(K"]);
    let error = compile(&unnamed, &sizes).unwrap_err();
    assert_says(&error, Kind::Invalid, lines.1, &["this mma has no matrix instruction", "mma_type"]);
}

#[test]
fn a_shared_memory_that_is_written() {
    let [m, n] = symbols(["M", "N"]);
    let (mut declared, mut written) = (0, 0);
    let kernel = Kernel::trace("write_shared", |w| {
        w.distribute([workgroup(m, 16, 0), workgroup(n, 64, 1)]);
        let a = w.memory("a", [m, n], Global, F32);
        declared = line!() + 1;
        let b = w.memory("b", [m, n], Shared, F32);
        let x = w.read(a);
        written = line!() + 1;
        w.write(x, b);
    })
    .unwrap();
    let error = compile(&kernel, &Options::new(Target::GFX942).set(m, 16).set(n, 64)).unwrap_err();
    assert_says(
        &error,
        Kind::Invalid,
        written,
        &["`b` is shared and written", &format!("{}:{declared}:", file!())],
    );
}

#[test]
fn what_the_options_deny() {
    let (kernel, _) = gemm(&GOOD);
    let error = compile(&kernel, &options(&GOOD).max_vgprs(4)).unwrap_err();
    assert_eq!(error.kind, Kind::Denied, "{error}");
    let text = error.to_string();
    assert!(text.contains("vector registers, and the options allow 4"), "{text}");
    assert!(error.help.as_ref().is_some_and(|help| help.contains("max_vgprs")), "{error:?}");
    assert!(error.location.as_ref().is_some_and(|l| &*l.file == file!()), "{error}");
    let denied = options(&GOOD).deny(Deny::BankConflicts).deny(Deny::Spills);
    compile(&kernel, &denied).expect("the good shape has neither conflicts nor spills");
}

/// Under a limit that the accumulators alone exceed: without a word of the author the kernel spills and says
/// so in its report, denied it is an error that names the peak.
#[test]
fn spills_are_reported_and_can_be_denied() {
    let (kernel, _) = gemm(&GOOD);
    let free = compile(&kernel, &options(&GOOD)).unwrap();
    assert_eq!(free.report().spills, None);
    let limit = (free.report().vgprs + free.report().agprs) / 2;
    let tight = options(&GOOD).max_vgprs(limit);
    let executable = compile(&kernel, &tight).unwrap();
    let report = executable.report();
    let spills = report.spills.as_ref().expect("half of the registers are not enough");
    assert!(spills.counts.to_scratch > 0 && report.scratch_bytes >= 4, "{report:?}");
    assert!(report.vgprs + report.agprs <= limit, "{report:?}");
    assert!(spills.peak > limit, "{spills}");
    assert!(spills.location.as_ref().is_some_and(|l| &*l.file == file!()), "{spills}");
    let error = compile(&kernel, &tight.deny(Deny::Spills)).unwrap_err();
    assert_eq!(error.kind, Kind::Denied, "{error}");
    let wanted = format!(
        "the kernel spills {} vector registers to {} bytes of scratch per work-item",
        spills.counts.to_scratch, report.scratch_bytes
    );
    assert_eq!(error.message, wanted);
    assert_eq!(error.location, spills.location);
    let note = format!("{} VGPRs are alive at this operation, and there are {limit}", spills.peak);
    assert!(error.notes.iter().any(|(text, _)| *text == note), "{error:?}");
    let help = error.help.as_deref().unwrap_or_default();
    assert!(help.contains("smaller wave tiles") && help.contains("raise max_vgprs"), "{help}");
}

/// Both matrices are read along their rows and laid in LDS along their columns, which are 32 bytes long: no
/// arrangement makes the writes of single bytes free of conflicts.
#[test]
fn bank_conflicts_that_are_denied_are_named() {
    let transposed = groundswell_testing::kernels::Gemm {
        mma: Mma::F32_32x32x16_F8E4M3FNUZ,
        lhs: groundswell_testing::kernels::Order::KFirst,
        rhs: groundswell_testing::kernels::Order::KFirst,
        block: [128, 128, 32],
        waves: [2, 2],
        ..groundswell_testing::kernels::PLAIN
    };
    let case = groundswell_testing::kernels::gemm("transposed", &transposed);
    let executable = compile(&case.kernel, &case.options).unwrap();
    let worst = executable.report().lds_accesses.iter().map(|a| a.conflict_degree).max();
    assert!(worst > Some(1), "an arrangement without conflicts was found: deny them on another kernel");
    let error = compile(&case.kernel, &case.options.deny(Deny::BankConflicts)).unwrap_err();
    assert_eq!(error.kind, Kind::Denied, "{error}");
    assert!(error.message.contains("bank conflicts of degree"), "{error}");
    let place = error.location.as_ref().expect("an LDS access has a line");
    assert!(place.file.ends_with("kernels.rs"), "{error}");
    assert!(error.help.is_some(), "{error}");
}

#[test]
fn mistakes_while_tracing() {
    let [m, n] = symbols(["M", "N"]);
    let here = line!() + 1;
    let error = Kernel::trace("two words", |_| {}).unwrap_err();
    assert_says(&error, Kind::Invalid, here, &["`two words` is not a kernel name"]);
    let mut line = 0;
    let mut stolen = None;
    Kernel::trace("thief", |w| stolen = Some(w.register([m, n], F32, 0.0))).unwrap();
    let error = Kernel::trace("fence", |w| {
        let b = w.memory("b", [m, n], Global, F32);
        line = line!() + 1;
        w.write(stolen.unwrap(), b);
    })
    .unwrap_err();
    assert_says(&error, Kind::Invalid, line, &["a value of another kernel"]);
    let error = Kernel::trace("fraction", |w| {
        line = line!() + 1;
        w.register([m, n], I32, 0.5);
    })
    .unwrap_err();
    assert_eq!((error.kind, error.location.as_ref().map(|l| l.line)), (Kind::Invalid, Some(line)), "{error}");
    assert!(error.message.contains("0.5 is not a value of i32") && error.help.is_some(), "{error}");
}

#[test]
fn texts_with_errors_name_their_lines() {
    let text = "kernel broken {\n  a = memory [M] global f32\n  %x = red a\n  write %x, nowhere\n}\n";
    let faults = Kernel::parse(text, "broken.gsw").err().unwrap();
    let places: Vec<_> = faults.iter().map(|f| f.location.as_ref().map(|l| (&*l.file, l.line))).collect();
    assert_eq!(places[0], Some(("broken.gsw", 3)), "{:?}", faults[0]);
    assert!(faults[0].message.contains("there is no operation `red`"), "{}", faults[0]);
    assert_eq!(faults[0].help.as_deref(), Some("did you mean `read`?"));
    assert!(places.contains(&Some(("broken.gsw", 4))), "{places:?}");
}

#[test]
fn texts_that_cannot_be_compiled_name_their_lines() {
    let text = "kernel copy {\n  workgroup M, 16, 0\n  workgroup N, 0, 1\n  a = memory [M, N] global f32\n\
                \n  b = memory [M, N] global f32\n  %x = read a\n  write %x, b\n}\n";
    let kernel = Kernel::parse(text, "copy.gsw").unwrap();
    let [m, n] = symbols(["M", "N"]);
    let error = compile(&kernel, &Options::new(Target::GFX942).set(m, 16).set(n, 64)).unwrap_err();
    let location = error.location.as_ref().unwrap();
    assert_eq!((&*location.file, location.line), ("copy.gsw", 3), "{error}");
    assert!(error.message.contains("the workgroup tile of N is 0"), "{error}");
}

/// A copy of 16 x 64 tiles whose rows are given at launch.
fn dynamic_copy() -> (Executable, [Symbol; 2]) {
    let [m, n] = symbols(["M", "N"]);
    let kernel = Kernel::trace("copy", |w| {
        w.distribute([
            workgroup(m, 16, 0),
            workgroup(n, 64, 1),
            assume_divisible(m, 4),
            assume_at_least(m, 8),
        ]);
        let a = w.memory("a", [m, n], Global, F32);
        let b = w.memory("b", [m, n], Global, F32);
        let x = w.read(a);
        w.write(x, b);
    })
    .unwrap();
    let executable = compile(&kernel, &Options::new(Target::GFX942).dynamic(m).set(n, 64)).unwrap();
    (executable, [m, n])
}

#[test]
fn launches_with_wrong_arguments() {
    let (executable, [m, n]) = dynamic_copy();
    let device = Device::open().unwrap();
    let right = device.upload(&[1f32; 16 * 64]).unwrap();
    let small = device.upload(&[1f32; 15 * 64]).unwrap();
    let halves = device.upload(&[f16::ONE; 32 * 64]).unwrap();
    let elsewhere = Device::open().unwrap().upload(&[1f32; 16 * 64]).unwrap();
    let launch = || device.launch(&executable);
    let both = || launch().buffer(&right).buffer(&right);
    for (launch, words) in [
        (launch().buffer(&right).set(m, 16), ["no argument for `b`", "one buffer for each memory"]),
        (both().buffer(&right).set(m, 16), ["`copy` got 3 buffers, too many", "one buffer for each memory"]),
        (
            launch().buffer(&right).buffer(&small).set(m, 16),
            ["`b` is 16 x 64 f32 and needs 4096 bytes", "has 3840"],
        ),
        (
            launch().buffer(&halves).buffer(&right).set(m, 16),
            ["`a` is f32, and the buffer holds f16", "dtype"],
        ),
        (
            launch().buffer(&elsewhere).buffer(&right).set(m, 16),
            ["`a` is on another device", "upload to the device"],
        ),
        (both(), ["no value for M", "set M"]),
        (both().set(m, 0), ["M >= 8, and M = 0", "drop the assumption"]),
        (both().set(m, -4), ["M = -4 is not a size", "0 to 2147483647"]),
        (both().set(m, 1i64 << 40), ["M = 1099511627776 is not a size", "0 to 2147483647"]),
        (both().set(m, 18), ["4 divides M, and M = 18", "drop the assumption"]),
        (both().set(m, 4), ["M >= 8, and M = 4", "drop the assumption"]),
        (both().set(m, 16).set(m, 16), ["M is set twice", "once"]),
        (both().set(m, 16).set(n, 64), ["no dynamic symbol N", "left dynamic"]),
    ] {
        let error = launch.run().unwrap_err();
        assert_eq!(error.kind, Kind::Invalid, "{error}");
        for word in words {
            assert!(error.to_string().contains(word), "{word:?} is not in\n{error}");
        }
        assert!(error.help.is_some(), "{error}");
    }
    both().set(m, 16).run().expect("the right arguments");
    let error = right.download::<f16>().unwrap_err();
    assert!(error.message.contains("the buffer holds f32, not f16") && error.help.is_some(), "{error}");
    let error = right.write_bytes(&[0; 16 * 64 * 4 + 1]).unwrap_err();
    assert!(error.message.contains("do not fit") && error.help.is_some(), "{error}");
}

/// Tiles and sizes around everything that is special, most of them nonsense.
fn extent() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![
        6 => prop::sample::select(vec![16, 32, 64, 128, 256]).prop_map(Some),
        2 => (0i64..300).prop_map(Some),
        1 => prop::sample::select(vec![-1, 0, 1, i64::MIN, i64::MAX, 1 << 20, 1 << 31, (1 << 31) - 1]).prop_map(Some),
        1 => Just(None),
    ]
}

fn shape() -> impl Strategy<Value = Shape> {
    let mma = prop::sample::select(Mma::all().collect::<Vec<_>>());
    let dtype = || prop::sample::select(vec![F32, F16, Bf16, I32, I8]);
    (
        (mma, any::<bool>(), dtype(), dtype()),
        prop::array::uniform3(extent()),
        prop::array::uniform3(extent()),
        prop::array::uniform2(extent()),
    )
        .prop_map(|((mma, fits, input, output), sizes, block, wave)| {
            let (input, output) = if fits { (mma.input(), mma.accumulator()) } else { (input, output) };
            Shape { mma, input, output, sizes, block, wave }
        })
}

/// An error that is the author's to mend: not ours, with a way out.
fn is_helpful(error: &Diagnostic) -> bool {
    error.kind != Kind::Bug && error.help.is_some()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 64, failure_persistence: None, ..Default::default() })]

    #[test]
    fn gemms_of_any_shape_compile_or_are_refused(shape in shape(), dynamic in any::<[bool; 3]>()) {
        let (kernel, _) = gemm(&shape);
        let mut options = options(&shape);
        for (symbol, dynamic) in symbols(["M", "N", "K"]).into_iter().zip(dynamic) {
            if dynamic && options.value(symbol).is_none() {
                options = options.dynamic(symbol);
            }
        }
        if let Err(error) = compile(&kernel, &options) {
            prop_assert!(is_helpful(&error), "{shape:?}\n{error}");
        }
    }

    #[test]
    fn copies_of_any_shape_compile_or_are_refused(
        sizes in prop::array::uniform2(extent()),
        block in prop::array::uniform2(extent()),
        wave_tile in prop::array::uniform2(extent()),
        dtype in prop::sample::select(vec![F32, F16, Bf16, I32, I8]),
        dynamic in any::<bool>(),
    ) {
        let [m, n] = symbols(["M", "N"]);
        let kernel = Kernel::trace("copy", |w| {
            w.distribute([workgroup(m, block[0].unwrap_or(16), 0), workgroup(n, block[1].unwrap_or(64), 1)]);
            w.distribute(wave_tile[0].map(|tile| wave(m, tile)));
            w.distribute(wave_tile[1].map(|tile| wave(n, tile)));
            let a = w.memory("a", [m, n], Global, dtype);
            let b = w.memory("b", [m, n], Global, dtype);
            let x = w.read(a);
            w.write(x, b);
        }).unwrap();
        let mut options = Options::new(Target::GFX942).set(n, sizes[1].unwrap_or(100));
        options = if dynamic { options.dynamic(m) } else { options.set(m, sizes[0].unwrap_or(100)) };
        if let Err(error) = compile(&kernel, &options) {
            prop_assert!(is_helpful(&error), "sizes {sizes:?} block {block:?} wave {wave_tile:?} {dtype}\n{error}");
        }
    }
}
