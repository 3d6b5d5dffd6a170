//! Tiles that gfx950's reads of LDS turn: products whose factors lie across the summed dimension give what
//! the interpreter gives in run and check mode, their tiles are written wide or loaded straight to LDS, and
//! such accesses have no bank conflicts.

use groundswell::check::against_interpreter;
use groundswell::compile::{Verify, compile_uncached};
use groundswell::internals::with_workspace;
use groundswell::kernels::{Conv2d, Form, Gemm, ImageLayout, Waves};
use groundswell::prelude::*;
use groundswell::text::Detail;
use groundswell_testing::judged::{assert_right, verified};
use groundswell_testing::oracle::{Workspace, assert_equivalent};
use groundswell_testing::schedules::OF_PRODUCTS as SCHEDULES;

const TARGET: Target = Target::GFX950;

/// Dtypes of factors, the reads that turn them, and writes of single elements.
const DTYPES: [(DType, &str, &str); 5] = [
    (F16, "ds_read_b64_tr_b16", "ds_write_b16"),
    (Bf16, "ds_read_b64_tr_b16", "ds_write_b16"),
    (I8, "ds_read_b64_tr_b8", "ds_write_b8"),
    (F8E4M3Fn, "ds_read_b64_tr_b8", "ds_write_b8"),
    (F8E5M2, "ds_read_b64_tr_b8", "ds_write_b8"),
];

/// Forms, and how many of their factors are turned.
const FORMS: [(Form, usize); 4] = [(Form::ABt, 0), (Form::AB, 1), (Form::AtB, 2), (Form::AtBt, 1)];

/// M, N and K: aligned, ragged, single and odd.
const SHAPES: [[i64; 3]; 20] = [
    [1, 1, 1],
    [32, 32, 32],
    [64, 64, 64],
    [33, 50, 40],
    [17, 70, 96],
    [1, 64, 100],
    [64, 1, 33],
    [5, 5, 5],
    [16, 48, 128],
    [100, 31, 7],
    [31, 33, 31],
    [65, 65, 65],
    [2, 130, 20],
    [128, 32, 16],
    [40, 40, 200],
    [130, 140, 300],
    [63, 64, 65],
    [80, 16, 48],
    [256, 256, 256],
    [70, 90, 1],
];

struct Case<'a> {
    kernel: &'a Kernel,
    options: Options,
    values: Vec<(&'static str, i64)>,
    title: String,
}

impl Case<'_> {
    /// Compiles, runs and checks.
    fn hold(&self, seed: u64) -> Executable {
        let Case { kernel, options, values, title } = self;
        let executable = verified(kernel, options);
        let value = |symbol: Symbol| values.iter().find(|value| value.0 == symbol.name()).map(|v| v.1);
        let device = Device::simulator(TARGET);
        let ran = against_interpreter(kernel, &executable, &device, &value, seed)
            .unwrap_or_else(|fault| panic!("{title}: {fault}"));
        assert!(ran.comparison.ok, "{title}: {:?}", ran.comparison);
        assert_right(kernel, &executable, &value, seed, title);
        executable
    }
}

/// A product of tiles, with some sizes open.
fn case<'a>(kernel: &'a Kernel, shape: [i64; 3], tile: [i64; 3], open: bool, title: String) -> Case<'a> {
    let names = ["M", "N", "K", "BLOCK_M", "BLOCK_N", "BLOCK_K"];
    let values: Vec<_> = names.into_iter().zip(shape.into_iter().chain(tile)).collect();
    let options = values.iter().fold(Options::new(TARGET), |options, &(name, value)| match open {
        true if name.len() == 1 => options.dynamic(name),
        _ => options.set(name, value),
    });
    Case { kernel, options, values, title }
}

/// Reads of LDS of an executable that turn what they load.
fn turned(executable: &Executable) -> usize {
    executable.report().lds_accesses.iter().filter(|access| access.kind == "transposing read").count()
}

#[test]
fn every_form_and_dtype_on_twenty_shapes() {
    for (at, shape) in SHAPES.into_iter().enumerate() {
        for (of_dtype, (dtype, read, _)) in DTYPES.into_iter().enumerate() {
            let (form, factors) = FORMS[(at + of_dtype) % 4];
            let kernel = Gemm::any_shape().inputs(dtype).form(form).kernel().expect("a kernel");
            let depth = if dtype.bytes() == 1 { 128 } else { 32 };
            let title = format!("{form:?} {dtype} {shape:?}");
            let mut case = case(&kernel, shape, [64, 64, depth], at % 3 == 0, title);
            case.options = case.options.schedule(SCHEDULES[(at + of_dtype) % 4].clone());
            let executable = case.hold(at as u64);
            assert_eq!(executable.assembly().expect("text").contains(read), factors > 0, "{}", case.title);
            assert_eq!(turned(&executable) > 0, factors > 0, "{}", case.title);
            let lines = executable.report().lines();
            let said = lines.iter().find(|line| line.0 == "turned").map_or("", |line| &line.1[..]);
            assert_eq!(said.contains(" by reads of LDS: "), factors > 0, "{}: {lines:?}", case.title);
        }
    }
}

/// A part of a tensor that the workgroup chooses comes through LDS as the whole does.
#[test]
fn tiles_at_coordinates_that_a_workgroup_has_in_common_are_turned() {
    let kernel = Kernel::trace("parts", |w| {
        let [parts, m, n, k] = symbols(["PARTS", "M", "N", "K"]);
        let [block_m, block_n, block_k] = symbols(["BLOCK_M", "BLOCK_N", "BLOCK_K"]);
        w.distribute([workgroup(m, block_m, 0), workgroup(n, block_n, 1), tile(k, block_k)]);
        w.mma_type(MatrixShape::M16x16);
        let a = w.memory("a", [parts, k, m], Shared, F16);
        let b = w.memory("b", [n, k], Shared, F16);
        let part = w.workgroup_id(1);
        let zero = w.register([m, n], F32, 0.0);
        let [sum] =
            w.iterate(k, [zero], |w, [sum]| [w.mma(w.read_at(a, (part, k, m), [k, m]), w.read(b), sum)]);
        w.write(sum, w.memory("c", [m, n], Global, F32));
    });
    let kernel = kernel.expect("a kernel");
    for (at, shape) in SHAPES.into_iter().enumerate() {
        let mut case = case(&kernel, shape, [64, 64, 32], at % 3 == 0, format!("parts {shape:?}"));
        case.values.push(("PARTS", 3));
        case.options = case.options.set("PARTS", 3).schedule(SCHEDULES[at % 4].clone());
        assert!(turned(&case.hold(at as u64)) > 0, "{}", case.title);
    }
}

/// Tiles, waves and instructions as products on the chip have them, through registers and straight to LDS.
#[test]
fn tiles_lie_in_lds_without_conflicts() {
    let space = Workspace::with_zig();
    let tiles = [
        ([128, 128, 64], Waves::new(2, 2)),
        ([256, 256, 64], Waves::new(2, 4)),
        ([64, 128, 128], Waves::new(2, 4)),
        ([64, 64, 64], Waves::new(1, 1)),
        ([32, 32, 128], Waves::new(2, 2)),
    ];
    for (at, (tile, waves)) in tiles.into_iter().enumerate() {
        for (of_dtype, (dtype, read, single)) in DTYPES.into_iter().enumerate() {
            for shape in MatrixShape::ALL {
                let [m, n, k] = tile;
                let edge = i64::from(shape.edge());
                let deepest = match (dtype.bytes(), dtype == I8, edge) {
                    (2, _, _) => 32,
                    (_, true, _) => 64,
                    _ => 128,
                };
                if k < deepest || m / i64::from(waves.m) < edge || n / i64::from(waves.n) < edge {
                    continue;
                }
                for loads in [GlobalToShared::Off, GlobalToShared::Fitting] {
                    let (form, factors) = FORMS[1 + (at + of_dtype) % 3];
                    let gemm = Gemm::any_shape().inputs(dtype).form(form).matrix(shape).waves(waves);
                    let kernel = gemm.kernel().expect("a kernel");
                    let title = format!("{form:?} {dtype} {shape} {tile:?} {waves:?} {loads:?}");
                    let mut case = case(&kernel, [m, n, 3 * k], tile, false, title);
                    let schedule = SCHEDULES[(at + of_dtype) % SCHEDULES.len()].clone();
                    case.options = case.options.schedule(schedule).global_to_shared(loads);
                    let title = &case.title;
                    let executable = case.hold(at as u64);
                    let (text, report) = (executable.assembly().expect("text"), executable.report());
                    assert!(text.contains(read) && !text.contains(single), "{title}: {text}");
                    assert!(turned(&executable) >= factors, "{title}: {:?}", report.lds_accesses);
                    // Plain reads, and writes of the same factor, are those of one that is not turned.
                    let accesses = &report.lds_accesses;
                    let is_plain = |what: &str| {
                        accesses.iter().any(|access| access.kind == "read" && access.what == what)
                    };
                    for access in accesses.iter().filter(|access| !is_plain(&access.what)) {
                        assert_eq!(access.conflict_degree, 1, "{title}: {access:?}");
                    }
                    if let Some(space) = space.as_ref().filter(|_| at == 0) {
                        assert_equivalent(executable.object(), &space.assemble(TARGET, &text));
                    }
                }
            }
        }
    }
}

/// Images whose channels come first, and results that are narrower than a register.
#[test]
fn other_kernels_have_them_as_well() {
    let images = Conv2d::new().layout(ImageLayout::Nchw).inputs(F16).kernel().expect("a kernel");
    let values = groundswell::kernels::find("conv2d_nchw").expect("a kernel").values(&|_| None);
    let options =
        values.iter().fold(Options::new(TARGET), |options, &(name, value)| options.set(name, value));
    Case { kernel: &images, options, values, title: "conv2d_nchw".to_owned() }.hold(3);
    for output in [F16, Bf16, F32] {
        let gemm = Gemm::any_shape().form(Form::AtB).output(output).bias().relu().batched();
        let kernel = gemm.kernel().expect("a kernel");
        let mut case = case(&kernel, [100, 70, 90], [64, 64, 32], false, format!("{output}"));
        case.values.push(("B", 3));
        case.options = case.options.set("B", 3);
        assert!(turned(&case.hold(5)) >= 2, "{output}");
    }
}

/// Other chips have no such reads.
#[test]
fn a_text_with_them_is_compiled_for_gfx950_alone() {
    let kernel = Gemm::any_shape().form(Form::AtB).kernel().expect("a kernel");
    let case = case(&kernel, [64, 64, 64], [64, 64, 32], false, String::new());
    let text = with_workspace(|workspace| {
        workspace.load(&kernel, &case.options);
        workspace.run(Some("distribute_loads"), Verify::Off, &mut Vec::new()).expect("a product");
        workspace.text(Detail::Stage)
    });
    assert!(text.contains("!transposing(M*4)") && text.contains("!transposing(N*4)"), "{text}");
    let compiled = |text: &str, target: Target| {
        let kernel = Kernel::parse(text, "product.gsw").expect("a text");
        compile_uncached(&kernel, &case.options.clone().for_target(target), Verify::Off)
    };
    compiled(&text, TARGET).expect("as the kernel");
    let fault = compiled(&text, Target::GFX942).expect_err("no such read").to_string();
    assert!(fault.contains("gfx942 has no reads of LDS that turn") && fault.contains("gfx950"), "{fault}");
    // What no read turns is refused.
    for (wrong, why) in [
        ("!transposing(M*3)", "elements that no read of LDS turns"),
        ("!transposing(M*8)", "elements that no read of LDS turns"),
        ("!transposing(K*4)", "a layout that no read of LDS gives"),
    ] {
        let text = text.replace("!transposing(M*4)", wrong);
        let faults = match Kernel::parse(&text, "product.gsw") {
            Ok(kernel) => vec![compile_uncached(&kernel, &case.options, Verify::Off).expect_err(wrong)],
            Err(faults) => faults.into_iter().collect(),
        };
        assert!(faults.iter().any(|fault| fault.to_string().contains(why)), "{wrong}: {faults:?}");
    }
}
