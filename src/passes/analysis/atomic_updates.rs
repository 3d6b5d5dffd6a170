//! Atomic updates in passes: which dtypes there are instructions for.

use crate::ir::diagnostic::Diagnostic;
use crate::ir::node::*;
use crate::ir::types::{AddressSpace, DType};

/// Checks the values of an update of a memory, or of a buffer in LDS.
///
/// # Errors
/// Two values of different types, or a dtype for which there is no instruction.
pub(super) fn judge(
    op: AtomicOp,
    values: &[&ValueType],
    space: AddressSpace,
    show: &dyn Fn(&ValueType) -> String,
) -> Result<(), Diagnostic> {
    let Some((&value, others)) = values.split_first() else {
        return Err(Diagnostic::bug("an update without value"));
    };
    if let Some(&other) = others.iter().find(|other| **other != value) {
        let text = format!("an update by values {} and {}", show(value), show(other));
        return Err(
            Diagnostic::invalid(text).help("give both one dtype and the same dimensions, in one order")
        );
    }
    let Some(dtype) = value.dtype.filter(|&dtype| !op.admits(dtype, space)) else { return Ok(()) };
    let text = format!("`{}` does not take {}", op.row().word, show(value));
    let known: Vec<DType> = op.dtypes(space).collect();
    let known = listed(&known);
    let help = match (space, dtype) {
        (AddressSpace::Global, _) if op.admits(dtype, AddressSpace::Shared) => format!(
            "the chip updates {dtype} in LDS alone: collect in an LDS buffer (`allocate`) what a \
             workgroup has, or cast the value and the memory to one of {known}"
        ),
        _ => format!(
            "there are instructions for {known}: cast or bitcast the value, and declare the memory so"
        ),
    };
    Err(Diagnostic::invalid(text).help(help))
}

/// `i32, i64 and f64`.
fn listed(dtypes: &[DType]) -> String {
    let names: Vec<&str> = dtypes.iter().map(|dtype| dtype.name()).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    }
}
