//! The code of an executable as the compiler knows it.

use super::report::Report;
use crate::codegen::object::{KernelInfo, ObjectOptions, SourceLines};

/// The code of an executable, and what the compiler says of it.
#[derive(Debug)]
pub(super) struct CompiledCode {
    pub(super) format: ObjectOptions,
    pub(super) lines: Option<SourceLines>,
    pub(super) info: KernelInfo,
    pub(super) words: Vec<u32>,
    pub(super) report: Report,
}
