//! Kernels of this crate for check mode, of every kind and small enough to be launched thousands of times.

use groundswell::internals::schedules::{BarrierRole, barriers_of};
use groundswell::kernels::{
    Form, Gemm, ScaleOrder, Waves, block_float_gemm, column_sum, copy, softmax, transpose,
};
use groundswell::prelude::*;
use groundswell::report::LdsAccessReport;
use groundswell::target::Feature;

use crate::checked::Checked;
use crate::kernels::{Case, elementwise_kernels};

/// A compiled kernel and the sizes of its launch.
pub struct Ours {
    pub name: String,
    pub executable: Executable,
    /// What the barriers are for of loops whose waves do not run in step.
    pub barriers: Vec<Vec<BarrierRole>>,
    sizes: Vec<(Symbol, i64)>,
}

impl Ours {
    fn new(
        target: Target,
        name: &str,
        kernel: &Kernel,
        sizes: &[(&str, i64)],
        adjust: impl Fn(Options) -> Options,
    ) -> Ours {
        let mut sizes: Vec<_> = sizes.iter().map(|&(name, value)| (Symbol::new(name), value)).collect();
        // What the options say stays as it is.
        let mut options = adjust(Options::new(target));
        for (symbol, size) in &mut sizes {
            match options.value(*symbol) {
                Some(value) => *size = value,
                None if options.dynamic_symbols().contains(symbol) => {}
                None => options = options.set(*symbol, *size),
            }
        }
        let executable = kernel.compile(&options).unwrap_or_else(|error| panic!("{name}: {error}"));
        let barriers = barriers_of(kernel, &options).unwrap_or_else(|error| panic!("{name}: {error}"));
        Ours { name: name.to_owned(), executable, barriers, sizes }
    }

    /// Makes sure that the waves take turns, and load both factors straight into LDS.
    fn takes_turns(&self) {
        let report = self.executable.report();
        assert_eq!(
            (report.schedule_applied, report.direct_loads),
            (Schedule::PingPong.name(), 2),
            "{}: {report}",
            self.name
        );
    }

    /// Makes sure that its waves take turns quadrant by quadrant.
    fn has_quadrants(&self) {
        let report = self.executable.report();
        assert_eq!(report.schedule_applied, Schedule::Quadrants.name(), "{}: {report}", self.name);
    }

    /// Waves of a workgroup.
    pub fn waves(&self) -> u32 {
        self.executable.block().iter().product::<u32>() / 64
    }

    /// Its launch with an object that is its own or a changed one.
    pub fn checked(&self, object: &[u8]) -> Checked {
        let value = |symbol: Symbol| self.sizes.iter().find(|(s, _)| *s == symbol).map(|(_, value)| *value);
        Checked::executable(&self.executable, object, &value)
    }
}

fn gemm(
    target: Target,
    name: &str,
    gemm: &Gemm,
    shape: [i64; 3],
    tile: [i64; 3],
    adjust: impl Fn(Options) -> Options,
) -> Ours {
    let names = ["M", "N", "K", "BLOCK_M", "BLOCK_N", "BLOCK_K"];
    let sizes: Vec<_> = names.into_iter().zip(shape.into_iter().chain(tile)).chain([("B", 2)]).collect();
    let sizes = if name.contains("batched") { &sizes[..] } else { &sizes[..6] };
    Ours::new(target, name, &gemm.kernel().expect("a kernel"), sizes, adjust)
}

/// All of them for a chip.
pub fn ours(target: Target) -> Vec<Ours> {
    let mut all = Vec::new();
    for dtype in [F32, F16, Bf16, I8] {
        let sizes = [("M", 33), ("N", 129), ("BLOCK_M", 4), ("BLOCK_N", 64)];
        let kernel = copy(dtype, Waves::new(2, 1)).expect("a kernel");
        all.push(Ours::new(target, &format!("copy {dtype}"), &kernel, &sizes, |o| o));
    }
    let (even, ragged, tile) = ([64, 64, 96], [33, 50, 75], [32, 32, 32]);
    let finished = || Gemm::any_shape().scale(0.5).bias().relu().residual();
    let dynamic = |o: Options| o.dynamic(Symbol::new("K"));
    let aligned = [(F16, "gemm"), (I8, "gemm of i8"), (F32, "gemm of f32"), (Bf16, "gemm of bf16")];
    for (dtype, name) in aligned {
        all.push(gemm(target, name, &Gemm::any_shape().inputs(dtype), even, tile, |o| o));
    }
    let cut = [(F16, "ragged gemm"), (I8, "ragged gemm of i8")];
    for (dtype, name) in cut {
        all.push(gemm(target, name, &Gemm::any_shape().inputs(dtype), ragged, tile, |o| o));
    }
    all.push(gemm(target, "gemm with epilogue", &finished(), even, tile, |o| o));
    all.push(gemm(target, "ragged gemm with epilogue", &finished(), ragged, tile, |o| o));
    all.push(gemm(target, "gemm with dynamic K", &Gemm::any_shape(), [64, 32, 75], tile, dynamic));
    all.push(gemm(target, "gemm of one wave", &Gemm::any_shape().waves(Waves::new(1, 1)), even, tile, |o| o));
    all.push(gemm(
        target,
        "gemm of eight waves",
        &Gemm::any_shape().waves(Waves::new(4, 2)),
        even,
        [64, 32, 32],
        |o| o,
    ));
    all.push(gemm(target, "gemm with deep tiles", &Gemm::any_shape(), [64, 64, 128], [64, 64, 64], |o| o));
    let large = Gemm::any_shape().matrix(MatrixShape::M32x32);
    all.push(gemm(target, "gemm of 32 x 32", &large, even, [64, 64, 32], |o| o));
    for (form, name) in [(Form::AB, "gemm A B"), (Form::AtB, "gemm Aᵀ B")] {
        all.push(gemm(target, name, &Gemm::any_shape().form(form), ragged, tile, |o| o));
    }
    // Values that move across lanes, by way of LDS, and between waves.
    let rows = [("M", 5), ("N", 200), ("BLOCK_M", 4), ("WAVE_M", 4), ("WAVE_N", 64)];
    all.push(Ours::new(target, "softmax", &softmax(F16).expect("a kernel"), &rows, |o| o));
    let columns = [("M", 70), ("N", 33), ("BLOCK_M", 64), ("BLOCK_N", 32), ("WAVE_M", 16)];
    all.push(Ours::new(target, "sums of columns", &column_sum(F16).expect("a kernel"), &columns, |o| o));
    let turned = [("M", 33), ("N", 70), ("BLOCK_M", 32), ("BLOCK_N", 32)];
    let kernel = transpose(F16, Waves::new(2, 2)).expect("a kernel");
    all.push(Ours::new(target, "transpose", &kernel, &turned, |o| o));
    all.push(gemm(target, "batched gemm", &Gemm::any_shape().batched(), ragged, tile, |o| o));
    all.push(gemm(target, "spilling gemm", &Gemm::any_shape(), [60, 50, 90], [64, 64, 32], |o| {
        o.max_vgprs(24)
    }));
    let wide = Gemm::any_shape().waves(Waves::new(1, 1));
    all.push(gemm(target, "gemm with AGPRs", &wide, [128, 128, 64], [128, 128, 32], |o| o));
    if target.has(Feature::KernargPreload) {
        all.push(gemm(target, "gemm with preloaded arguments", &finished(), even, tile, |o| {
            o.kernarg_preload(KernargPreload::Fitting)
        }));
    }
    let direct = |o: Options| o.global_to_shared(GlobalToShared::Fitting);
    all.push(gemm(target, "gemm with loads to LDS", &Gemm::any_shape(), even, tile, |o| {
        direct(o).schedule(Schedule::Prefetch)
    }));
    let alone = Gemm::any_shape().waves(Waves::new(1, 1));
    all.push(gemm(target, "ragged gemm of one wave with loads to LDS", &alone, [33, 50, 76], tile, direct));
    // Waves that take turns quadrant by quadrant: with one copy of the tiles, and on gfx950 with two. A wave
    // of gfx908 has too few registers that are not accumulators.
    if target != Target::GFX908 {
        let waves = Gemm::any_shape().waves(Waves::new(2, 4));
        let (shape, tile) = ([128, 256, 320], [128, 256, 64]);
        let quadrants =
            gemm(target, "gemm by quadrants", &waves, shape, tile, |o| o.schedule(Schedule::Quadrants));
        quadrants.has_quadrants();
        all.push(quadrants);
    }
    if target == Target::GFX950 {
        // Waves that take turns, and loads that are under way across their barriers. LDS has room for five
        // and four copies of the factors' tiles, or for three and two.
        let turns = Gemm::any_shape().waves(Waves::new(2, 4));
        let few = ("gemm in turns with loads to LDS", [128, 128, 896], [128, 128, 64]);
        for (name, shape, tile) in [few, ("gemm in turns with three copies", [128, 128, 896], [128; 3])] {
            let in_turns = gemm(target, name, &turns, shape, tile, |o| o.schedule(Schedule::PingPong));
            in_turns.takes_turns();
            all.push(in_turns);
        }
        let turned = |of: &Ours| {
            let accesses = &of.executable.report().lds_accesses;
            accesses.iter().any(|access| access.kind == LdsAccessReport::TRANSPOSING_READ)
        };
        assert!(all.iter().filter(|of| turned(of)).count() >= 2, "no reads that turn tiles");
    }
    let xnack = TargetId::from(target).with_xnack(FeatureSetting::On).expect("all of them have it");
    all.push(gemm(target, "gemm with retries", &finished(), ragged, tile, |_| Options::new(xnack)));
    all.push(gemm(
        target,
        "spilling gemm with retries",
        &Gemm::any_shape(),
        [60, 50, 90],
        [64, 64, 32],
        |_| Options::new(xnack).max_vgprs(24),
    ));
    let wanted =
        ["cast f16 to i8", "cast f32 to f16", "arithmetic in f32", "arithmetic in i32", "functions in f32"];
    let chosen = |case: &Case| wanted.contains(&case.name.as_str());
    for Case { name, kernel, options } in elementwise_kernels().into_iter().filter(chosen) {
        all.push(Ours::new(target, &name, &kernel, &[("M", 60), ("N", 64)], |o| {
            let sizes = ["M", "N", "BLOCK_M", "BLOCK_N"].map(Symbol::new);
            let known = sizes.into_iter().filter_map(|size| Some((size, options.value(size)?)));
            let o = known.fold(o, |o, (symbol, size)| o.set(symbol, size));
            options.dynamic_symbols().iter().fold(o, |o, &symbol| o.dynamic(symbol))
        }));
    }
    all
}

/// Products of block floats, for every way in which tiles and scales move.
pub fn block_floats(target: Target) -> Vec<Ours> {
    let (even, ragged, tile) = ([64, 64, 512], [33, 50, 456], [32, 32, 128]);
    let of = |name: &str, dtype, (shape, waves): (MatrixShape, Waves), sizes: [[i64; 3]; 2], schedule| {
        let kernel = block_float_gemm([dtype; 2], ScaleOrder::Rows, shape.into(), waves).expect("a kernel");
        let names = ["M", "N", "K", "BLOCK_M", "BLOCK_N", "BLOCK_K"];
        let sizes: Vec<_> = names.into_iter().zip(sizes.into_iter().flatten()).collect();
        Ours::new(target, name, &kernel, &sizes, |o: Options| o.schedule(Schedule::clone(schedule)))
    };
    let (small, large) = (MatrixShape::M16x16, MatrixShape::M32x32);
    let [alone, four, eight] = [Waves::new(1, 1), Waves::new(2, 2), Waves::new(4, 2)];
    let [none, prefetch] = [&Schedule::None, &Schedule::Prefetch];
    let ping_pong = &Schedule::PingPong;
    let in_turns = [
        of("mxfp4 in turns", F4E2M1, (small, eight), [[64, 64, 4096], [64, 64, 512]], ping_pong),
        of("mxfp8 in turns", F8E4M3Fn, (small, eight), [[64, 64, 2048], [64, 64, 256]], ping_pong),
    ];
    in_turns.iter().for_each(Ours::takes_turns);
    let others = [
        of("mxfp4", F4E2M1, (small, four), [even, tile], none),
        of("ragged mxfp4", F4E2M1, (small, four), [ragged, tile], none),
        of("mxfp4 with prefetching", F4E2M1, (small, four), [even, tile], prefetch),
        of("mxfp4 of 32 x 32", F4E2M1, (large, four), [even, [64, 64, 128]], prefetch),
        of("mxfp4 with four stages", F4E2M1, (small, alone), [even, tile], &Schedule::FourStage),
        of("mxfp4 by interval", F4E2M1, (small, four), [even, tile], &Schedule::Modulo),
        of("mxfp8", F8E4M3Fn, (small, four), [even, tile], prefetch),
        of("ragged mxfp8", F8E5M2, (large, four), [ragged, [64, 64, 128]], none),
    ];
    others.into_iter().chain(in_turns).collect()
}
