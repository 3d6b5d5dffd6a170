//! Kernels that compile with every pass verified, and launches in check mode, compared with the interpreter.

use std::fmt::Display;

use groundswell::check::with_findings;
use groundswell::compile::{Verify, compile_uncached};
use groundswell::prelude::*;

/// Compiles a kernel that must compile; what every pass leaves is verified.
#[track_caller]
pub fn verified(kernel: &Kernel, options: &Options) -> Executable {
    match compile_uncached(kernel, options, Verify::AfterEachPass) {
        Ok(executable) => executable,
        Err(fault) => panic!("{options:?}\n{kernel}\n{fault}"),
    }
}

/// With random arguments of this seed, on a simulated device of its target, check mode finds nothing in an
/// executable, and the results are those of the interpreter.
pub fn assert_right(
    kernel: &Kernel,
    executable: &Executable,
    value: &dyn Fn(Symbol) -> Option<i64>,
    seed: u64,
    title: impl Display,
) {
    let device = Device::simulator(executable.target());
    let (report, comparison) = with_findings(kernel, executable, &device, value, seed)
        .unwrap_or_else(|fault| panic!("{title}: {fault}"));
    assert!(report.is_clean(), "{title}, seed {seed}: {report}");
    assert!(comparison.ok, "{title}, seed {seed}: {comparison:?}");
}
