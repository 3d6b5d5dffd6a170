//! Logs in builds without the compiler, whose tensors they are: kernels that log cannot be launched.

use super::device::Device;
use super::executable::{Executable, Parameter};
use crate::ir::diagnostic::{Diagnostic, Kind};
use crate::ir::expr::Symbol;

/// What a kernel has logged: nothing, here.
#[derive(Clone, Debug)]
pub enum LoggedTensor {}

/// The logs of a launch.
pub(super) struct LaunchLogs;

impl LaunchLogs {
    pub(super) fn new(
        executable: &Executable,
        _: &Device,
        _: &dyn Fn(Symbol) -> Option<i64>,
    ) -> Result<LaunchLogs, Diagnostic> {
        match executable.parameters().iter().any(|parameter| matches!(parameter, Parameter::Log { .. })) {
            true => {
                let text = format!("`{}` logs values, which this build does not read", executable.name());
                Err(Diagnostic::new(Kind::Unsupported, text)
                    .help("build with the feature `compiler`, or compile the kernel without logs"))
            }
            false => Ok(LaunchLogs),
        }
    }

    pub(super) fn addresses(&self) -> impl Iterator<Item = u64> {
        std::iter::empty()
    }

    pub(super) fn read(self) -> Result<Vec<LoggedTensor>, Diagnostic> {
        Ok(Vec::new())
    }
}
