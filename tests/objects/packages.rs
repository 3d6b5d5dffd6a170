//! Packages of kernels: built for several chips, read, launched; what the sources beside them say.

use std::fs;

use groundswell::kernels::{Gemm, Waves, copy};
use groundswell::package::{KernelPackage, PackageBuilder};
use groundswell::prelude::*;
use groundswell::report::Report;
use groundswell_testing::places::Directory;

const TARGETS: [Target; 3] = [Target::GFX90A, Target::GFX942, Target::GFX950];

/// y = alpha * x + y over M rows of N, all open.
fn saxpy() -> (Kernel, Options) {
    let kernel = Kernel::parse(
        "kernel saxpy {
           workgroup M, 4, 0
           workgroup N, 64, 1
           wave M, 4
           x = memory [M, N] global f32
           y = memory [M, N] global f32
           alpha = scalar f32
           %x = read x
           %y = read y
           %scaled = mul %x, alpha
           %sum = add %scaled, %y
           write %sum, y
         }",
        "saxpy.gsw",
    )
    .expect("a valid kernel");
    (kernel, Options::new(Target::GFX942).dynamic("M").dynamic("N"))
}

fn small_copy() -> (Kernel, Options) {
    let sizes = [("M", 10), ("N", 64), ("BLOCK_M", 4), ("BLOCK_N", 64)];
    let options = sizes.iter().fold(Options::new(Target::GFX942), |o, &(name, size)| o.set(name, size));
    (copy(F32, Waves::new(1, 1)).expect("a valid kernel"), options)
}

fn builder() -> PackageBuilder {
    let (saxpy, open) = saxpy();
    let (copy, fixed) = small_copy();
    let gemm = Gemm::new(64, 64, 32);
    let builder = PackageBuilder::new(TARGETS.map(Into::into));
    let builder = builder.kernel("saxpy", &saxpy, &open).expect("it compiles");
    let builder = builder.kernel("copy_words", &copy, &fixed).expect("it compiles");
    builder
        .kernel("gemm_f16", &gemm.kernel().expect("a valid kernel"), &gemm.options(Target::GFX942))
        .expect("it compiles")
}

#[test]
fn what_is_built_runs_on_every_chip_that_it_was_built_for() {
    let builder = builder();
    let bytes = builder.package().expect("it can be written");
    assert_eq!(
        bytes,
        self::builder().package().expect("it can be written"),
        "the same kernels, the same bytes"
    );
    let package = KernelPackage::read(bytes).expect("it is sound");
    let names: Vec<&str> = package.kernels().iter().map(|kernel| kernel.name()).collect();
    assert_eq!(names, ["saxpy", "copy_words", "gemm_f16"]);
    for target in TARGETS {
        let device = Device::simulator(target);
        let saxpy = package.executable("saxpy", &device).expect("it was built for it");
        assert_eq!(saxpy.target(), target);
        let x: Vec<f32> = (0..7 * 100).map(|at| at as f32).collect();
        let (a, b) = (device.upload(&x).expect("room"), device.upload(&vec![1f32; 700]).expect("room"));
        device
            .launch(saxpy)
            .buffer(&a)
            .buffer(&b)
            .scalar(2f32)
            .set("M", 7)
            .set("N", 100)
            .run()
            .expect("it runs");
        let expected: Vec<f32> = x.iter().map(|x| 2.0 * x + 1.0).collect();
        assert_eq!(b.download::<f32>().expect("it is f32"), expected, "{target}");
        // What compiling here gives, in everything.
        let (kernel, options) = self::saxpy();
        let compiled = kernel.compile(&options.for_target(target)).expect("it compiles");
        let report = Report { phases: Vec::new(), ..compiled.report().clone() };
        assert_eq!((saxpy.object(), saxpy.report()), (compiled.object(), &report));
        assert_eq!(
            saxpy.assembly().expect("it can be listed"),
            compiled.assembly().expect("it can be listed")
        );
    }
}

#[test]
fn damaged_packages_and_missing_kernels_are_errors() {
    let bytes = builder().package().expect("it can be written");
    for at in (0..bytes.len()).step_by(501) {
        let mut changed = bytes.clone();
        changed[at] ^= 4;
        let error = KernelPackage::read(changed).expect_err("it is damaged");
        assert!(error.message.contains("damaged") && error.help.is_some(), "{at}: {error}");
        assert!(KernelPackage::read(bytes[..at].to_vec()).is_err(), "{at}");
    }
    // Forged with a right checksum: other contents or errors, and no panics.
    for at in (32..bytes.len()).step_by(97) {
        let mut forged = bytes.clone();
        forged[at] ^= 1 << (at % 8);
        let sum = xxhash_rust::xxh3::xxh3_128(&forged[32..]).to_le_bytes();
        forged[16..32].copy_from_slice(&sum);
        let Ok(package) = KernelPackage::read(forged) else { continue };
        for kernel in package.kernels() {
            let _ = kernel
                .for_target(Target::GFX942.into())
                .map(|executable| executable.grid(&|_| Some(64)).is_ok());
        }
    }
    let package = KernelPackage::read(bytes).expect("it is sound");
    let device = Device::simulator(Target::GFX942);
    let error = package.executable("saxby", &device).expect_err("no kernel");
    assert!(error.help.as_deref().is_some_and(|help| help.contains("saxpy")), "{error:?}");
    let error = package.executable("softmax", &device).expect_err("no kernel");
    assert!(error.help.as_deref().is_some_and(|help| help.contains("copy_words")), "{error:?}");
    let error = package.executable("saxpy", &Device::simulator(Target::GFX906)).expect_err("no code");
    assert!(error.message.contains("gfx90a, gfx942, gfx950") && error.message.contains("gfx906"), "{error}");
}

#[test]
fn what_cannot_be_a_package_is_refused() {
    let (kernel, options) = small_copy();
    let targets = || TARGETS.map(Into::into);
    for name in ["", "Copy", "copy words", "2copy", "fn", "where", "namespace", "package", "copy-it", "größe"]
    {
        let error =
            PackageBuilder::new(targets()).kernel(name, &kernel, &options).expect_err("no identifier");
        assert!(error.message.contains("cannot be the name"), "{name}: {error}");
    }
    let builder = PackageBuilder::new(targets()).kernel("copy", &kernel, &options).expect("it compiles");
    assert!(
        builder.clone().kernel("copy", &kernel, &options).is_err_and(|e| e.message.contains("two kernels"))
    );
    for other in ["copy_grid", "copy_launch", "copy_arguments"] {
        let both = builder.clone().kernel(other, &kernel, &options);
        assert!(both.is_err_and(|e| e.message.contains("functions of one name")), "{other}");
    }
    assert!(PackageBuilder::new([]).write(std::path::Path::new("nowhere"), "kernels").is_err());
    assert!(PackageBuilder::new([]).kernel("copy", &kernel, &options).is_err());
    let twice = [Target::GFX942, Target::GFX942].map(Into::into);
    assert!(PackageBuilder::new(twice).kernel("copy", &kernel, &options).is_err());
    let directory = Directory::new("packages-refused");
    assert!(PackageBuilder::new(targets()).write(&directory.0, "kernels").is_err(), "no kernel");
    assert!(builder.write(&directory.0, "Kernels").is_err_and(|e| e.message.contains("name of a package")));
    let file = directory.file("file");
    fs::write(&file, b"").expect("it can be written");
    let error = builder.write(std::path::Path::new(&file), "kernels").expect_err("it is no directory");
    assert!(error.message.contains("cannot write") && error.help.is_some(), "{error}");
    // A matrix instruction that a chip lacks is an error of that chip.
    let gemm = Gemm::new(64, 64, 32).matrix(Mma::F32_16x16x32_F16);
    let built = PackageBuilder::new(targets()).kernel(
        "gemm",
        &gemm.kernel().expect("a valid kernel"),
        &gemm.options(Target::GFX950),
    );
    assert!(built.is_err_and(|error| error.message.contains("gfx9")));
}

/// The function of the Rust module computes the grid that a launch has; here its text is compared with what
/// is known of the kernel, and `hip/tests/shipped.rs` compiles it.
#[test]
fn sources_name_arguments_and_geometry() {
    let builder = builder();
    let module = builder.rust_module("kernels.gswpack");
    for part in [
        "pub fn saxpy<'a>(\n    device: &'a Device,\n    x: TensorView<'a, f32, 2>,\n    y: TensorView<'a, f32, 2>,\n    alpha: f32,\n) -> Result<Launch<'a>, Diagnostic> {",
        "let size_m = x.shape()[0];",
        "y.expect(\"y\", [(\"M\", Some(size_m)), (\"N\", Some(size_n))])?;",
        "pub const SAXPY_BLOCK: [u32; 3] = [64, 1, 1];",
        "pub const fn saxpy_grid(size_m: i64, size_n: i64) -> [i64; 3] {",
        "(\"10\", Some(10))",
    ] {
        assert!(module.contains(part), "{part}\n{module}");
    }
    let header = builder.c_header("kernels");
    for part in [
        "typedef struct saxpy_arguments {\n    const void *x; /* f32 [M, N] */\n    void *y; /* f32 [M, N] */\n    float alpha;\n    int32_t size_m; /* the size M */",
        "GROUNDSWELL_ASSERT(offsetof(saxpy_arguments, alpha) == 16",
        "static inline hipError_t saxpy_launch(",
    ] {
        assert!(header.contains(part), "{part}\n{header}");
    }
}

/// Which arguments may be one tensor is known to who launches a kernel of a package, in each language.
#[test]
fn packages_know_what_may_be_in_place() {
    let text = |to: &str| {
        format!(
            "kernel k {{\n  workgroup M, 16, 0\n  workgroup N, 16, 1\n  x = memory [M, N] global f32\n  \
             y = memory [{to}] global f32\n  %x = read x\n  write %x, y\n}}\n"
        )
    };
    let options = Options::new(Target::GFX942).dynamic("M").set("N", 64);
    let builder = [("same", "M, N"), ("turned", "N, M")].into_iter().fold(
        PackageBuilder::new([Target::GFX942.into()]),
        |builder, (name, to)| {
            let kernel = Kernel::parse(&text(to), "k.gsw").expect("well-formed");
            builder.kernel(name, &kernel, &options).expect("it compiles")
        },
    );
    let package = KernelPackage::read(builder.package().expect("it can be written")).expect("it can be read");
    let device = Device::simulator(Target::GFX942);
    let both = device.upload(&[0f32; 64 * 64]).expect("memory");
    let run = |name: &str| {
        let executable = package.executable(name, &device).expect("it is there");
        device.launch(executable).buffer(&both).buffer(&both).set("M", 64).run().map(drop)
    };
    assert_eq!(run("same"), Ok(()));
    assert!(run("turned").is_err_and(|error| error.message.contains("share memory")));
    let header = builder.c_header("kernels");
    for part in [
        "if (arguments.x != arguments.y && groundswell_share(arguments.x, 4u * (uint64_t)arguments.size_m * 64, \
         arguments.y,",
        "if (groundswell_share(arguments.x,",
        "const int empty = arguments->size_m == 0;",
        "return hipSuccess;",
    ] {
        assert!(header.contains(part), "{part}\n{header}");
    }
}
