//! Logs in builds without the compiler, whose tensors they are: kernels that log cannot be launched.

use super::device::Device;
use super::executable::{Executable, Parameter};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::Symbol;

pub use NoLoggedTensor as LoggedTensor;
pub(super) use NoLogs as LaunchLogs;

/// What a kernel has logged: nothing, here.
#[derive(Clone, Debug)]
pub enum NoLoggedTensor {}

/// The logs of a launch.
pub(super) struct NoLogs;

impl NoLogs {
    pub(super) fn new(
        executable: &Executable,
        _: &Device,
        _: &dyn Fn(Symbol) -> Option<i64>,
    ) -> Result<NoLogs, Diagnostic> {
        match executable.parameters().iter().any(|parameter| matches!(parameter, Parameter::Log { .. })) {
            true => {
                let text = format!("`{}` logs values, which this build does not read", executable.name());
                Err(Diagnostic::new(Kind::Unsupported, text)
                    .help("build with the feature `compiler`, or compile the kernel without logs"))
            }
            false => Ok(NoLogs),
        }
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = u64> {
        std::iter::empty()
    }

    pub(super) fn read(self) -> Result<Vec<NoLoggedTensor>, Diagnostic> {
        Ok(Vec::new())
    }
}
