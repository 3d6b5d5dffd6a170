//! Kernels that ship: the sources of a package are compiled by rustc and clang, without the compiler of
//! kernels, and what they launch through HIP gives the right results.

// As part of its folder, this module has its helpers elsewhere.
mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use common::folder;
use groundswell::kernels::Gemm;
use groundswell::package::PackageBuilder;
use groundswell::prelude::*;
use groundswell_testing::skipped;

/// The most bytes of a launcher, stripped.
const MOST_BYTES: u64 = 3 << 19;

/// The most crates that it builds, itself and the library among them.
const MOST_CRATES: usize = 40;

fn package() -> PackageBuilder {
    let saxpy = "kernel saxpy {\n  workgroup M, 4, 0\n  workgroup N, 64, 1\n  wave M, 4\n  x = memory [M, N] global \
                 f32\n  y = memory [M, N] global f32\n  alpha = scalar f32\n  %x = read x\n  %y = read y\n  %scaled = \
                 mul %x, alpha\n  %sum = add %scaled, %y\n  write %sum, y\n}";
    let saxpy = Kernel::parse(saxpy, "saxpy.gsw").expect("a valid kernel");
    let open = Options::new(Target::GFX942).dynamic("M").dynamic("N");
    // Names that mean something in Rust, in C, or to the sources themselves.
    let odd = "kernel odd {\n  workgroup GRID, 4, 0\n  workgroup grid, 64, 1\n  wave GRID, 4\n  launch = memory [GRID, \
               grid] global f32\n  void = memory [GRID, grid] global f32\n  size_grid = scalar f32\n  %x = read \
               launch\n  %y = mul %x, size_grid\n  write %y, void\n}";
    let odd = Kernel::parse(odd, "odd.gsw").expect("a valid kernel");
    let odd_sizes = Options::new(Target::GFX942).dynamic("GRID").dynamic("grid");
    // What a tile of it spans depends on two sizes that are open.
    let spaced = "kernel spaced {\n  workgroup M, 64, 0\n  wave M, 64\n  x = memory [M] global f32 strides [LDA]\n  y = \
                  memory [M] global f32\n  %x = read x\n  write %x, y\n}";
    let spaced = Kernel::parse(spaced, "spaced.gsw").expect("a valid kernel");
    let spaced_sizes = Options::new(Target::GFX942).dynamic("M").dynamic("LDA");
    let gemm = Gemm::any_shape();
    let sizes = [("BLOCK_M", 64), ("BLOCK_N", 64), ("BLOCK_K", 32)];
    let options = sizes.iter().fold(Options::new(Target::GFX942), |o, &(name, size)| o.set(name, size));
    let options = ["M", "N", "K"].iter().fold(options, |o, &name| o.dynamic(name));
    PackageBuilder::new([Target::GFX90A, Target::GFX942].map(Into::into))
        .kernel("saxpy", &saxpy, &open)
        .and_then(|builder| builder.kernel("odd", &odd, &odd_sizes))
        .and_then(|builder| builder.kernel("spaced", &spaced, &spaced_sizes))
        .and_then(|builder| builder.kernel("gemm", &gemm.kernel()?, &options))
        .expect("they compile")
}

/// A folder of this test with the package's files.
fn built(name: &str) -> PathBuf {
    let directory = folder().join(name);
    package().write(&directory, "kernels").expect("it can be written");
    directory
}

const MAIN: &str = r#"
mod kernels { include!("../kernels.rs"); }

use groundswell::device::{Device, f16};

// What is known when this is compiled.
const _: () = assert!(kernels::SAXPY_BLOCK[0] == 64 && kernels::saxpy_grid(9, 65)[0] == 3);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::open()?;
    println!("{}", device.name());
    let x: Vec<f32> = (0..900).map(|at| at as f32).collect();
    let (a, b) = (device.upload(&x)?, device.upload(&vec![1f32; 900])?);
    let (a, b) = (a.view::<f32, 2>([9, 100])?, b.view::<f32, 2>([9, 100])?);
    kernels::saxpy(&device, a, b, 2.0)?.run()?;
    let sum = b.buffer().download::<f32>()?;
    assert!(sum.iter().zip(&x).all(|(sum, x)| *sum == 2.0 * x + 1.0));

    let (m, n, k) = (70u32, 33u32, 50u32);
    let half = |count: u32| vec![f16::ONE; count as usize];
    let (a, b) = (device.upload(&half(m * k))?, device.upload(&half(n * k))?);
    let c = device.upload(&vec![0f32; (m * n) as usize])?;
    let stream = device.stream()?;
    kernels::gemm(&device, a.view([m, k])?, b.view([n, k])?, c.view([m, n])?)?.enqueue(&stream)?;
    stream.synchronize()?;
    assert!(c.download::<f32>()?.iter().all(|&sum| sum == k as f32));

    let (a, b) = (device.upload(&x)?, device.upload(&vec![0f32; 900])?);
    kernels::odd(&device, a.view([9, 100])?, b.view([9, 100])?, 3.0)?.run()?;
    assert!(b.download::<f32>()?.iter().zip(&x).all(|(y, x)| *y == 3.0 * x));

    let (a, b) = (device.upload(&half(m * k))?, device.upload(&half(n * k))?);
    let wrong = kernels::gemm(&device, a.view([m, k])?, b.view([k, n])?, c.view([m, n])?);
    println!("{}", wrong.err().expect("the shapes do not go together").message);
    Ok(())
}
"#;

#[test]
fn a_launcher_without_the_compiler_is_small_and_quick_to_build() {
    let directory = built("launcher");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("it is there");
    let manifest = format!(
        "[package]\nname = \"launcher\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\ngroundswell = {{ path = \
         {root:?}, default-features = false, features = [\"runtime\"] }}\n\n[profile.release]\nstrip = \
         true\n\n[workspace]\n"
    );
    fs::create_dir_all(directory.join("src")).expect("the target directory can be written");
    fs::write(directory.join("Cargo.toml"), manifest).expect("the target directory can be written");
    fs::write(directory.join("src/main.rs"), MAIN).expect("the target directory can be written");
    // The versions that this crate is tested with.
    fs::copy(root.join("Cargo.lock"), directory.join("Cargo.lock")).expect("it is there");
    let target = directory.join("target");
    let _ = fs::remove_dir_all(&target);
    let cargo = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO"))
            .args(arguments)
            .arg("--offline")
            .current_dir(&directory)
            .env("CARGO_TARGET_DIR", &target)
            .env_remove("CARGO_PROFILE_RELEASE_INCREMENTAL")
            .output()
            .expect("cargo runs the tests, so it is there");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let begin = Instant::now();
    cargo(&["build", "--release"]);
    println!("the launcher was built in {:.1} s", begin.elapsed().as_secs_f64());
    let tree = cargo(&["tree", "--edges", "normal,build", "--prefix", "none", "--no-dedupe"]);
    let mut crates: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    crates.sort_unstable();
    crates.dedup();
    assert!(crates.len() < MOST_CRATES, "{crates:#?}");
    assert!(!crates.contains(&"bevy_ecs"));
    let program = target.join("release/launcher");
    let bytes = fs::metadata(&program).expect("it was built").len();
    println!("the launcher has {bytes} bytes and {} crates", crates.len());
    assert!(bytes < MOST_BYTES, "{bytes} bytes");

    for chip in ["gfx90a", "gfx942"] {
        let output = Command::new(&program)
            .env("GROUNDSWELL_HIP_LIBRARY", env!("CARGO_BIN_EXE_amdhip64-6"))
            .env("GROUNDSWELL_HIP_TARGET", chip)
            .output()
            .expect("it was built");
        let [text, errors] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        assert!(output.status.success(), "{text}{errors}");
        assert!(text.contains(chip) && text.contains("dimension 1 (K) of `b` is 33, and K is 50"), "{text}");
    }
    // A chip that the package is not for, and no GPU at all.
    let run = |library: &str, chip: &str| {
        let output = Command::new(&program)
            .env("GROUNDSWELL_HIP_LIBRARY", library)
            .env("GROUNDSWELL_HIP_TARGET", chip)
            .output()
            .expect("it was built");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let errors = run(env!("CARGO_BIN_EXE_amdhip64-6"), "gfx908");
    assert!(errors.contains("was built for gfx90a, gfx942"), "{errors}");
    let errors = run("/nowhere/libamdhip64.so.6", "gfx942");
    assert!(errors.contains("/nowhere/libamdhip64.so.6"), "{errors}");
}

const C_MAIN: &str = r#"
#define __HIP_PLATFORM_AMD__
#include "kernels.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call) do { hipError_t error = (call); if (error != hipSuccess) { \
    printf("%s: %s\n", #call, hipGetErrorName(error)); exit(1); } } while (0)

int main(int count, char **arguments)
{
    hipModule_t module;
    hipFunction_t function;
    float host[900], *x, *y;
    (void)count;
    CHECK(hipModuleLoad(&module, arguments[1]));
    CHECK(hipModuleGetFunction(&function, module, "saxpy"));
    CHECK(hipMalloc((void **)&x, sizeof(host)));
    CHECK(hipMalloc((void **)&y, sizeof(host)));
    for (int at = 0; at < 900; ++at)
        host[at] = (float)at;
    CHECK(hipMemcpy(x, host, sizeof(host), hipMemcpyHostToDevice));
    CHECK(hipMemcpy(y, host, sizeof(host), hipMemcpyHostToDevice));
    saxpy_arguments both = {x, y, 2.0f, 9, 100};
    CHECK(saxpy_launch(function, NULL, both));
    CHECK(hipMemcpy(host, y, sizeof(host), hipMemcpyDeviceToHost));
    for (int at = 0; at < 900; ++at)
        if (host[at] != 3.0f * (float)at) {
            printf("%d: %f\n", at, host[at]);
            return 1;
        }
    /* More bytes than 64 bits count. */
    uint32_t grid[3];
    spaced_arguments far, near;
    memset(&far, 0, sizeof(far));
    near = far;
    far.size_m = far.size_lda = 2147483647;
    near.size_m = near.size_lda = 1000;
    if (spaced_grid(&far, grid) || !spaced_grid(&near, grid) || grid[0] != 16) {
        printf("grids of spaced\n");
        return 1;
    }
    CHECK(hipModuleGetFunction(&function, module, "odd"));
    odd_arguments odd = {x, y, 3.0f, 9, 100};
    CHECK(odd_launch(function, NULL, odd));
    CHECK(hipMemcpy(host, y, sizeof(host), hipMemcpyDeviceToHost));
    for (int at = 0; at < 900; ++at)
        if (host[at] != 3.0f * (float)at)
            return 3;
    CHECK(hipModuleGetFunction(&function, module, "saxpy"));
    both.size_m = 0;
    if (saxpy_launch(function, NULL, both) != hipSuccess)
        return 2;
    CHECK(hipModuleUnload(module));
    printf("good\n");
    return 0;
}
"#;

#[test]
fn the_header_serves_c_and_cpp() {
    skipped::begin();
    let directory = built("header");
    if !Path::new("/usr/include/hip/hip_runtime_api.h").is_file()
        || Command::new("clang-19").arg("--version").output().is_err()
    {
        return skipped::note("clang-19 and libamdhip64-dev");
    }
    for (file, compiler, standard) in
        [("main.c", "clang-19", "-std=c11"), ("main.cpp", "clang++-19", "-std=c++17")]
    {
        fs::write(directory.join(file), C_MAIN).expect("the target directory can be written");
        let program = directory.join(file).with_extension(standard.trim_start_matches("-std="));
        let output = Command::new(compiler)
            .args([
                standard,
                "-O1",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-Wno-deprecated-pragma",
                "-isystem",
                "/usr/include",
            ])
            .arg(directory.join(file))
            .arg("-o")
            .arg(&program)
            .arg("-lamdhip64")
            .output()
            .expect("it was found");
        assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
        for chip in ["gfx90a", "gfx942"] {
            let output = Command::new(&program)
                .arg(directory.join("kernels.co"))
                .env("LD_LIBRARY_PATH", folder().join("libraries"))
                .env("GROUNDSWELL_HIP_TARGET", chip)
                .output()
                .expect("it was built");
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains("good"), "{file} on {chip}: {text}");
        }
    }
}
