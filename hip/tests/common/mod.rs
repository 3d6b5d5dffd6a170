//! HIP programs of `programs/`, compiled by clang with AMD's headers and device libraries, and run with our
//! library in place of AMD's.

// Each test binary uses a part.
#![allow(dead_code)]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use groundswell_testing::skipped;
use serde_json::Value;

/// Where Debian has the bitcode of AMD's device libraries.
const BITCODE: &str = "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode";

/// The chips that programs are compiled for.
pub const TARGETS: [&str; 2] = ["gfx90a", "gfx942"];

/// Files that tests share, kept from run to run.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hip");
        let libraries = folder.join("libraries");
        fs::create_dir_all(&libraries).expect("the target directory can be written");
        for (file, name) in [
            (env!("CARGO_BIN_EXE_amdhip64-5"), "libamdhip64.so.5"),
            (env!("CARGO_BIN_EXE_amdhip64-6"), "libamdhip64.so.6"),
            (env!("CARGO_BIN_EXE_amdhip64-7"), "libamdhip64.so.7"),
        ] {
            link(Path::new(file), &libraries.join(name));
        }
        let bitcode = folder.join("bitcode");
        fs::create_dir_all(&bitcode).expect("the target directory can be written");
        for entry in fs::read_dir(BITCODE).into_iter().flatten().flatten() {
            link(&entry.path(), &bitcode.join(entry.file_name()));
        }
        // Debian's libraries are older than the name gfx942; gfx940 had the same instructions.
        link(&Path::new(BITCODE).join("oclc_isa_version_940.bc"), &bitcode.join("oclc_isa_version_942.bc"));
        folder
    })
}

fn link(file: &Path, name: &Path) {
    // Test binaries run one after the other, so whoever finds a link leaves it as it is.
    if fs::read_link(name).ok().as_deref() != Some(file) {
        let _ = fs::remove_file(name);
        symlink(file, name).expect("the target directory can be written");
    }
}

/// Whether programs can be compiled here; that tests are skipped is noted.
fn has_tools() -> bool {
    skipped::begin();
    let missing = [
        ("clang-19", Command::new("clang++-19").arg("--version").output().is_ok()),
        ("libamdhip64-dev", Path::new("/usr/include/hip/hip_runtime.h").is_file()),
        ("rocm-device-libs", Path::new(BITCODE).join("ockl.bc").is_file()),
    ];
    match missing.iter().find(|(_, found)| !found) {
        Some((tool, _)) => {
            skipped::note(tool);
            false
        }
        None => true,
    }
}

/// A program of `programs/` for a chip; nothing if it cannot be compiled here. What was compiled before from
/// the same files is taken again.
pub fn program(name: &str, target: &str, arguments: &[&str]) -> Option<PathBuf> {
    if !has_tools() {
        return None;
    }
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let source = sources.join(name).with_extension("hip");
    let level = arguments.iter().find(|argument| argument.starts_with("-O")).unwrap_or(&"");
    let output = folder().join(format!("{name}{level}.{target}"));
    let changed = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    let newest = [source.clone(), sources.join("check.hpp"), sources.join("primitives.hpp")]
        .iter()
        .map(|path| changed(path))
        .max()
        .flatten();
    if changed(&output) > newest {
        return Some(output);
    }
    let partial = folder().join(format!("{name}{level}.{target}.{}", std::process::id()));
    let result = Command::new("clang++-19")
        .args([
            "-x",
            "hip",
            "-std=c++17",
            "-O2",
            "-munsafe-fp-atomics",
            "-Wno-unused-result",
            "-Wno-unused-value",
        ])
        .args([&format!("--offload-arch={target}"), "--rocm-path=/usr"])
        .arg(format!("--rocm-device-lib-path={}", folder().join("bitcode").display()))
        .args(arguments)
        .arg(&source)
        .arg("-o")
        .arg(&partial)
        .output()
        .expect("clang was found");
    assert!(result.status.success(), "{name}: {}", String::from_utf8_lossy(&result.stderr));
    fs::rename(&partial, &output).expect("both are in one folder");
    Some(output)
}

/// What a program is linked with.
pub const LINKED: &[&str] = &["-lamdhip64", "-lpthread"];

/// How a program ended.
pub struct Ended {
    pub output: Output,
    /// What the library reports.
    pub report: Value,
}

impl Ended {
    /// What it printed.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    /// What went to standard error.
    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// The texts of a list of the report.
    pub fn list(&self, key: &str) -> Vec<String> {
        let text = |value: &Value| value.as_str().or(value["text"].as_str()).unwrap_or_default().to_owned();
        self.report[key].as_array().into_iter().flatten().map(text).collect()
    }
}

/// Runs a program on the simulator of a chip.
pub fn run(program: &Path, target: &str, mode: &str, arguments: &[&OsStr]) -> Ended {
    run_with(program, target, mode, arguments, &[])
}

/// The same with more variables in its environment.
pub fn run_with(
    program: &Path,
    target: &str,
    mode: &str,
    arguments: &[&OsStr],
    variables: &[(&str, &str)],
) -> Ended {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Relaxed);
    let reports = folder().join(format!("reports-{}-{count}", std::process::id()));
    fs::create_dir_all(&reports).expect("the target directory can be written");
    let output = Command::new(program)
        .args(arguments)
        .env("LD_LIBRARY_PATH", folder().join("libraries"))
        .env("GROUNDSWELL_HIP_TARGET", target)
        .env("GROUNDSWELL_HIP_MODE", mode)
        .env("GROUNDSWELL_HIP_REPORT", &reports)
        .env_remove("GROUNDSWELL_HIP_LOG")
        .env_remove("HSA_XNACK")
        .envs(variables.iter().copied())
        .output()
        .expect("it was compiled just now");
    let report = fs::read_dir(&reports).into_iter().flatten().flatten().next();
    let report = report.and_then(|entry| serde_json::from_slice(&fs::read(entry.path()).ok()?).ok());
    fs::remove_dir_all(&reports).expect("it was made above");
    Ended { output, report: report.unwrap_or_default() }
}
