//! Faults of ready kernels belong to the line of the author who asked for the kernel, not to its source here.

use std::panic::Location as Caller;

use crate::prelude::*;

/// The kernel, or its fault, with the caller's line in place of all others.
pub(super) fn asked_at(
    caller: &'static Caller<'static>,
    kernel: Result<Kernel, Diagnostic>,
) -> Result<Kernel, Diagnostic> {
    let asked = Some(Location::from(caller));
    match kernel {
        Ok(kernel) => Ok(kernel.told_at(asked)),
        Err(fault) => Err(fault.at(asked)),
    }
}
