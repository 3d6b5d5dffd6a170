//! A kernel of a package while it is written.

use crate::runtime::executable::Executable;

/// A kernel of a package with an executable for each target.
#[derive(Clone, Debug)]
pub(super) struct BuiltKernel {
    /// Its name in the package, which is that of its functions.
    pub(super) name: String,
    /// For each target; there is one at least.
    pub(super) executables: Vec<Executable>,
}

impl BuiltKernel {
    /// The executable of the first target: all have the same arguments and the same launch.
    pub(super) fn first(&self) -> &Executable {
        &self.executables[0]
    }
}
