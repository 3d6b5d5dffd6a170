//! Code objects: what the runtime loads. A writer for our own, a reader for anybody's, and the assembler text of both.
//!
//! [`KernelInfo`] is all that an object says about a kernel beside its code. From it come the kernel descriptor
//! ([`descriptor`]), the metadata ([`metadata`]), the object ([`write`]) and the text around an assembly listing
//! ([`assembly`]); [`ObjectFile`] reads objects back. Code object version 5, because older runtimes load it and version 6
//! adds nothing for these targets.

pub mod assembly;
pub mod descriptor;
mod elf;
pub mod metadata;
mod msgpack;
mod read;
pub mod resources;

pub use descriptor::{Field, InitialSgprs, KernelDescriptor};
pub use elf::{KernelCode, WriteError, write};
pub use metadata::{Access, ArgumentInfo, ArgumentKind, KernelMetadata, WorkgroupSize};
pub use read::{FeatureSetting, Kernel, ObjectError, ObjectFile, Relocation, RelocationKind, Segment};
pub use resources::{
    DenormMode, FloatMode, Fp16Overflow, KernelResources, ResourceError, RoundMode, WorkitemIds,
};

/// All that an object says about a kernel beside its code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelInfo {
    /// Name of the function, and the name that HIP finds it by.
    pub name: String,
    /// What it needs from the hardware.
    pub resources: KernelResources,
    /// Its arguments in order.
    pub arguments: Vec<ArgumentInfo>,
    /// The workgroups that it may be launched with.
    pub workgroup_size: WorkgroupSize,
}
