//! Code objects: the files that the runtime loads. A writer for our own, a reader for all, and the assembler
//! text of both.
//!
//! [`KernelInfo`] is everything that an object says about a kernel except its code. From it come the kernel
//! descriptor ([`KernelDescriptor`]), the metadata ([`KernelMetadata`]), the object ([`write()`]) and the
//! text around an assembly listing ([`assembly`]); [`ObjectFile`] reads objects back. [`write_bundle`] puts
//! objects for several chips into one file. Code object version 5
//! is the default, because older runtimes load it and version 6 adds nothing for these targets.

use std::sync::Arc;

use crate::codegen::target::{Occupancy, TargetId};

pub mod assembly;
mod bundle;
#[cfg(feature = "compression")]
mod compressed;
mod debug_sections;
pub(crate) mod descriptor;
mod elf;
mod extent;
mod host_file;
mod kernel_code;
mod line_map;
mod lines;
pub(crate) mod metadata;
pub(super) mod msgpack;
mod read;
pub(crate) mod resources;

#[cfg(not(feature = "compression"))]
pub use bundle::decompress_bundle;
pub use bundle::{BundleEntry, BundleError, object_for, read_bundle, write_bundle};
#[cfg(feature = "compression")]
pub use compressed::{compress_bundle, decompress_bundle};
pub use descriptor::{DescriptorField, InitialSgprs, KernelDescriptor};
pub(super) use elf::{AddressRelocation, Assembly, AssemblySection, AssemblySymbol, PlacedFile, SymbolHome};
pub use elf::{ObjectForm, ObjectOptions, WriteError, write};
pub use extent::ContainerKind;
pub use host_file::{DeviceCode, DeviceContainer, DeviceObject, HostFault, Unpacker};
pub use kernel_code::KernelCode;
pub use line_map::{LineMap, SourceLine};
pub use lines::{LineRow, SourceLines, SourcePlace};
pub use metadata::{Access, ArgumentInfo, ArgumentKind, KernelMetadata, WorkgroupSize};
pub(super) use msgpack::MessagePackValue;
pub use read::{
    MAX_OBJECT_BYTES, ObjectError, ObjectFile, ObjectKernel, ObjectVariable, Relocation, RelocationKind,
    Segment,
};
pub use resources::{
    DenormMode, FloatMode, Fp16Overflow, KernelResources, ResourceError, RoundMode, WorkitemIds,
};

/// Everything that an object says about a kernel except its code.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct KernelInfo {
    /// Name of the function, and the name that HIP finds it by.
    pub name: String,
    /// The hardware resources that it needs.
    pub resources: KernelResources,
    /// Its arguments in order.
    pub arguments: Arc<[ArgumentInfo]>,
    /// The workgroups that it may be launched with.
    pub workgroup_size: WorkgroupSize,
}

impl KernelInfo {
    /// How much of the kernel a compute unit holds when its workgroups are of the largest size.
    pub fn occupancy(&self, target: impl Into<TargetId>) -> Occupancy {
        let target = target.into();
        let waves_per_workgroup = self.workgroup_size.max().div_ceil(target.wave_size);
        let (vgprs, sgprs) = (self.resources.total_vgprs(target), self.resources.total_sgprs(target));
        target.occupancy(vgprs, sgprs, self.resources.lds_bytes, waves_per_workgroup)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::target::{OccupancyLimit, Target};

    #[test]
    fn occupancy_counts_agprs_and_whole_workgroups() {
        let resources =
            KernelResources { vgprs: 126, agprs: 64, lds_bytes: 1024, ..KernelResources::default() };
        let workgroup_size = WorkgroupSize::Exactly([256, 1, 1]);
        let info = KernelInfo { name: "gemm".into(), resources, arguments: [].into(), workgroup_size };
        let occupancy = info.occupancy(Target::GFX942);
        assert_eq!((occupancy.workgroups_per_compute_unit, occupancy.waves_per_simd), (2, 2));
        assert_eq!(occupancy.limited_by, OccupancyLimit::Vgprs);
    }
}
