//! A kernel as the writer of objects takes it.

use super::KernelInfo;
use super::lines::SourceLines;

/// A kernel and its machine code.
#[derive(Copy, Clone, Debug)]
pub struct KernelCode<'a> {
    /// What the object says about it.
    pub info: &'a KernelInfo,
    /// Its instructions; the first is the entry.
    pub code: &'a [u8],
    /// Where its author wrote them. An object has debug sections if at least one of its kernels has this.
    pub lines: Option<&'a SourceLines>,
}
