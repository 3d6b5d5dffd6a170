//! Kernels of many forms, written with the prelude: GEMMs by a description of what varies, copies, and
//! element-wise kernels.

use groundswell::prelude::*;

/// A kernel and the options to compile it with.
pub struct Case {
    /// What it is, for messages.
    pub name: String,
    /// The kernel.
    pub kernel: Kernel,
    /// Its options.
    pub options: Options,
}

/// Size of a dimension.
#[derive(Copy, Clone, Debug)]
pub enum Extent {
    /// Bound at compile time.
    Static(i64),
    /// Given at launch.
    Dynamic,
}

/// How an input of a GEMM lies in memory.
#[derive(Copy, Clone, Debug)]
pub enum Order {
    /// The contracted dimension last.
    KLast,
    /// The contracted dimension before the other.
    KFirst,
}

/// What happens to the accumulators before they are written; given the dims of the result.
pub type Epilogue = fn(&Tracer, Value, [Symbol; 2]) -> Value;

/// What varies between GEMMs.
#[derive(Clone)]
pub struct Gemm {
    pub mma: Mma,
    pub lhs: Order,
    pub rhs: Order,
    pub space: AddressSpace,
    /// M, N, K.
    pub sizes: [Extent; 3],
    /// Workgroup tile of M and N, loop tile of K.
    pub block: [i64; 3],
    /// Waves along M and N.
    pub waves: [i64; 2],
    pub output: DType,
    pub epilogue: Epilogue,
}

/// Everything divides, one wave, f16 into f32, C = A Bᵀ through LDS.
pub const PLAIN: Gemm = Gemm {
    mma: Mma::F32_16x16x16_F16,
    lhs: Order::KLast,
    rhs: Order::KLast,
    space: Shared,
    sizes: [Extent::Static(128), Extent::Static(128), Extent::Static(128)],
    block: [64, 64, 32],
    waves: [2, 2],
    output: F32,
    epilogue: |_, sum, _| sum,
};

/// Factor number `at` of a product.
fn memory_of(w: &Tracer, at: usize, row: Symbol, k: Symbol, gemm: &Gemm) -> MemoryRef {
    let dims = match [gemm.lhs, gemm.rhs][at] {
        Order::KLast => [row, k],
        Order::KFirst => [k, row],
    };
    w.memory(["a", "b"][at], dims, gemm.space, gemm.mma.inputs()[at])
}

/// Binds M, N, K or leaves them open.
fn sizes(mut options: Options, symbols: [Symbol; 3], extents: [Extent; 3]) -> Options {
    for (symbol, extent) in symbols.into_iter().zip(extents) {
        options = match extent {
            Extent::Static(size) => options.set(symbol, size),
            Extent::Dynamic => options.dynamic(symbol),
        };
    }
    options
}

/// A GEMM and its options.
pub fn gemm(name: &str, gemm: &Gemm) -> Case {
    let [m, n, k] = symbols(["M", "N", "K"]);
    let [block_m, block_n, block_k, wave_m, wave_n] =
        symbols(["BLOCK_M", "BLOCK_N", "BLOCK_K", "WAVE_M", "WAVE_N"]);
    let kernel = Kernel::trace("gemm", |w| {
        w.distribute([workgroup(m, block_m, 0), workgroup(n, block_n, 1), tile(k, block_k)]);
        w.distribute([wave(m, wave_m), wave(n, wave_n)]);
        w.mma_type(gemm.mma);
        let a = memory_of(w, 0, m, k, gemm);
        let b = memory_of(w, 1, n, k, gemm);
        let c = w.memory("c", [m, n], Global, gemm.output);
        let zero = w.register([m, n], gemm.mma.accumulator(), 0.0);
        let [sum] = w.iterate(k, [zero], |w, [sum]| {
            let (a, b) = (w.read(a), w.read(b));
            [w.mma(a, b, sum)]
        });
        let result = (gemm.epilogue)(w, sum, [m, n]);
        w.write(result, c);
    })
    .unwrap();
    let [bm, bn, bk] = gemm.block;
    let options = sizes(Options::new(Target::GFX942), [m, n, k], gemm.sizes)
        .set(block_m, bm)
        .set(block_n, bn)
        .set(block_k, bk)
        .set(wave_m, bm / gemm.waves[0])
        .set(wave_n, bn / gemm.waves[1]);
    Case { name: name.to_owned(), kernel, options }
}

/// One GEMM per batch, the batch along the third grid axis.
pub fn batched_gemm(name: &str, mma: Mma) -> Case {
    let [batch, m, n, k] = symbols(["B", "M", "N", "K"]);
    let kernel = Kernel::trace("batched_gemm", |w| {
        w.distribute([workgroup(m, 64, 0), workgroup(n, 64, 1), workgroup(batch, 1, 2), tile(k, 32)]);
        w.distribute([wave(m, 32), wave(n, 32)]);
        w.mma_type(mma);
        let a = w.memory("a", [batch, m, k], Shared, mma.input());
        let b = w.memory("b", [batch, n, k], Shared, mma.input());
        let c = w.memory("c", [batch, m, n], Global, mma.accumulator());
        let zero = w.register([batch, m, n], mma.accumulator(), 0.0);
        let [sum] = w.iterate(k, [zero], |w, [sum]| {
            let (a, b) = (w.read(a), w.read(b));
            [w.mma(a, b, sum)]
        });
        w.write(sum, c);
    })
    .unwrap();
    let options = Options::new(Target::GFX942).set(batch, 3).set(m, 128).set(n, 100).dynamic(k);
    Case { name: name.to_owned(), kernel, options }
}

/// `to = cast(f(from))` over an M x N matrix.
pub fn elementwise(
    name: &str,
    [from, to]: [DType; 2],
    extents: [Extent; 2],
    f: fn(&Tracer, Value) -> Value,
) -> Case {
    let [m, n] = symbols(["M", "N"]);
    let kernel = Kernel::trace("elementwise", |w| {
        w.distribute([workgroup(m, 16, 0), workgroup(n, 64, 1), wave(m, 16), wave(n, 32)]);
        let source = w.memory("source", [m, n], Global, from);
        let target = w.memory("target", [m, n], Global, to);
        let value = w.read(source);
        let value = f(w, value);
        let value = if from == to { value } else { value.cast(to) };
        w.write(value, target);
    })
    .unwrap();
    let [rows, columns] = extents;
    let options = sizes(Options::new(Target::GFX942), [m, n, m], [rows, columns, rows]);
    Case { name: name.to_owned(), kernel, options }
}

/// Epilogues over float accumulators: together every element-wise operation, comparison and cast.
const FLOAT_EPILOGUES: &[(&str, DType, Epilogue)] = &[
    ("scale", F32, |_, x, _| x * 0.5),
    ("bias", F32, |w, x, [_, n]| {
        let bias = w.memory("bias", [n], Global, F32);
        let bias = w.read(bias);
        x + bias
    }),
    ("relu", F16, |_, x, _| x.maximum(0.0).cast(F16)),
    ("residual", Bf16, |w, x, [m, n]| {
        let residual = w.memory("residual", [m, n], Global, Bf16);
        let residual = w.read(residual).cast(F32);
        (x + residual).cast(Bf16)
    }),
    ("arithmetic", F32, |_, x, _| (-x.abs() - 3.0).minimum(7.5) / (x * x + 1.0)),
    ("transcendental", F32, |_, x, _| x.exp2().log2().sqrt().reciprocal()),
    ("select", F32, |w, x, _| {
        let positive = x.greater(0.0);
        w.select(positive, x, x * 0.125)
    }),
    ("compare", F32, |w, x, _| {
        let mut result = x;
        for condition in
            [x.equal(1.0), x.not_equal(2.0), x.less(3.0), x.less_equal(4.0), x.greater_equal(5.0)]
        {
            result = w.select(condition, result + 1.0, result);
        }
        result
    }),
    ("indicator", F32, |_, x, _| x.less(1.0).cast(F32)),
    ("to_integer", I32, |_, x, _| x.cast(I32)),
    ("to_byte", I8, |_, x, _| x.cast(I8)),
];

/// The same over integer accumulators.
const INTEGER_EPILOGUES: &[(&str, DType, Epilogue)] = &[
    ("relu", I32, |_, x, _| x.maximum(0)),
    ("arithmetic", I32, |_, x, _| (-x.abs() - 3).minimum(1000) * x / 7),
    ("select", I32, |w, x, _| {
        let even = x.equal(0);
        w.select(even, x + 1, x)
    }),
    ("quantize", I8, |_, x, _| (x.cast(F32) * 0.05).cast(I8)),
];

/// GEMMs of all matrix instructions, shapes, memory orders, tiles and epilogues.
pub fn gemms() -> Vec<Case> {
    use Extent::{Dynamic, Static};
    let mut all = Vec::new();
    for mma in Mma::all().filter(|&mma| Target::GFX942.matrix_instruction(mma).is_some()) {
        let base = Gemm { mma, output: mma.accumulator(), ..PLAIN };
        all.push(gemm(&format!("gemm {mma}"), &base));
        let unaligned = [Static(100), Static(65), Static(47)];
        all.push(gemm(&format!("gemm {mma} unaligned"), &Gemm { sizes: unaligned, ..base.clone() }));
        all.push(gemm(&format!("gemm {mma} dynamic"), &Gemm { sizes: [Dynamic; 3], ..base.clone() }));
        all.push(gemm(&format!("gemm {mma} from global memory"), &Gemm { space: Global, ..base }));
    }
    for (lhs, rhs) in
        [(Order::KLast, Order::KFirst), (Order::KFirst, Order::KLast), (Order::KFirst, Order::KFirst)]
    {
        for sizes in [PLAIN.sizes, [Static(100), Static(65), Static(47)], [Dynamic; 3]] {
            let form = Gemm { lhs, rhs, sizes, ..PLAIN };
            all.push(gemm(&format!("gemm with a {lhs:?} and b {rhs:?}, {sizes:?}"), &form));
        }
    }
    for (block, waves) in [
        ([16, 16, 16], [1, 1]),
        ([32, 32, 16], [1, 1]),
        ([64, 64, 32], [4, 2]),
        ([128, 128, 32], [2, 2]),
        ([128, 256, 64], [2, 4]),
        // Wave tiles of 128 x 128: the accumulators are in AGPRs.
        ([256, 256, 32], [2, 2]),
    ] {
        let tiled = Gemm { block, waves, sizes: [Static(512), Dynamic, Static(200)], ..PLAIN };
        all.push(gemm(&format!("gemm with tiles {block:?} and waves {waves:?}"), &tiled));
    }
    for &(name, output, epilogue) in FLOAT_EPILOGUES {
        let finished = Gemm { output, epilogue, sizes: [Static(128), Static(100), Static(64)], ..PLAIN };
        all.push(gemm(&format!("gemm with epilogue {name}"), &finished));
    }
    for &(name, output, epilogue) in INTEGER_EPILOGUES {
        let finished = Gemm { mma: Mma::I32_16x16x32_I8, output, epilogue, ..PLAIN };
        all.push(gemm(&format!("i8 gemm with epilogue {name}"), &finished));
    }
    all.push(batched_gemm("batched gemm", Mma::F32_16x16x16_F16));
    all.push(batched_gemm("batched i8 gemm", Mma::I32_32x32x16_I8));
    all
}

/// Copies and element-wise kernels of all dtypes.
pub fn elementwise_kernels() -> Vec<Case> {
    use Extent::{Dynamic, Static};
    let mut all = Vec::new();
    for dtype in [F32, F16, Bf16, I32, I8] {
        for extents in [[Static(64), Static(128)], [Static(17), Static(33)], [Dynamic, Dynamic]] {
            all.push(elementwise(&format!("copy {dtype} {extents:?}"), [dtype; 2], extents, |_, x| x));
        }
        for to in [F32, F16, Bf16, I32, I8].into_iter().filter(|&to| to != dtype) {
            let name = format!("cast {dtype} to {to}");
            all.push(elementwise(&name, [dtype, to], [Static(64), Static(64)], |_, x| x));
        }
        let name = format!("arithmetic in {dtype}");
        all.push(elementwise(&name, [dtype; 2], [Static(60), Dynamic], |w, x| {
            let y = (x.abs() + x) * x - x.minimum(x / (x + x));
            let condition = y.less(x);
            w.select(condition, -y, y.maximum(x))
        }));
    }
    for dtype in [F32, F16, Bf16] {
        let name = format!("functions in {dtype}");
        all.push(elementwise(&name, [dtype; 2], [Static(60), Static(64)], |_, x| {
            x.exp2().log2().sqrt().reciprocal()
        }));
    }
    all
}

/// All of them.
pub fn all() -> Vec<Case> {
    let mut all = gemms();
    all.extend(elementwise_kernels());
    all
}
