//! Kernels that cannot be made.

use groundswell::prelude::*;

/// Asserts that a kernel is refused at a line of the tests of refusals, with a text and a way out.
#[track_caller]
pub fn refused(kernel: Result<Kernel, Diagnostic>, text: &str, help: &str) {
    let told = kernel.expect_err("it cannot be made");
    assert!(told.location.as_ref().is_some_and(|at| at.to_string().contains("refusals.rs")), "{told}");
    let told = told.to_string();
    assert!(told.contains(text) && told.contains(help), "{told}");
}
