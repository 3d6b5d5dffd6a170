//! What the device is, in the layouts that programs ask in: attributes by number, and the structure of
//! properties, which has one layout in HIP 5 and another from HIP 6 on.

use std::ffi::c_int;

use groundswell::simulator::time::{DeviceModel, DeviceParameter};
use groundswell::target::TargetId;

use crate::error::{HipResult, invalid};

/// Facts about the simulated device that programs ask for.
#[derive(Copy, Clone, Debug)]
pub(crate) struct DeviceFacts {
    target: TargetId,
    model: &'static DeviceModel,
    memory: u64,
}

/// The capability that AMD's runtime answers for a chip (docs of HIP, `hipDeviceProp_t`): gfx906, gfx908 and
/// gfx90a are 9.0.
fn capability(target: TargetId) -> [c_int; 2] {
    match target.target().name {
        "gfx942" => [9, 4],
        "gfx950" => [9, 5],
        _ => [9, 0],
    }
}

const MOST_GRID: [c_int; 3] = [i32::MAX, 65_536, 65_536];
/// Rate of `s_memrealtime`, kHz (LLVM, "User Guide for AMDGPU Backend", "wall_clock64").
const WALL_CLOCK: c_int = 100_000;

impl DeviceFacts {
    pub(crate) fn new(target: TargetId, memory: u64) -> DeviceFacts {
        DeviceFacts { target, model: DeviceModel::nearest(target.target()), memory }
    }

    fn parameter(&self, parameter: DeviceParameter) -> c_int {
        self.model.get(parameter) as c_int
    }

    /// The name that a person reads.
    pub(crate) fn name(&self) -> String {
        format!("Groundswell simulator of {}", self.target.target().name)
    }

    fn units(&self) -> c_int {
        self.parameter(DeviceParameter::ComputeUnits)
    }

    /// kHz.
    fn clock(&self) -> c_int {
        self.parameter(DeviceParameter::Clock) * 1000
    }

    fn l2(&self) -> c_int {
        self.parameter(DeviceParameter::L2Bytes)
    }

    fn block(&self) -> c_int {
        self.target.target().max_workgroup_size as c_int
    }

    fn lds(&self) -> c_int {
        self.target.target().max_lds_per_workgroup as c_int
    }

    /// Work-items that a compute unit holds.
    pub(crate) fn items_per_unit(&self) -> c_int {
        let target = self.target.target();
        (target.max_waves_per_simd * target.simds_per_compute_unit * target.wave_size) as c_int
    }

    /// 32-bit registers of a compute unit.
    fn registers(&self) -> c_int {
        let target = self.target.target();
        (target.vgpr_file * target.simds_per_compute_unit * target.wave_size) as c_int
    }

    /// An attribute, by HIP's number (`hipDeviceAttribute_t`, the same from HIP 5.2 on).
    ///
    /// # Errors
    /// HIP has none of that number, or this library does not know it.
    pub(crate) fn attribute(&self, number: c_int) -> HipResult<c_int> {
        let block = self.block();
        Ok(match number {
            // The device maps memory of the host, runs kernels beside copies, has managed memory that the
            // host may use at any time, cooperative launches, stream priorities, unified addresses, one size
            // of wave, memory pools, mappings, and can register memory of the host.
            3 | 4 | 8 | 9 | 10 | 12 | 24 | 80 | 85 | 88 | 89 | 90 => 1,
            // ECC, compute mode, preemption, cooperative launches on several devices, integration, boards,
            // time limits, pageable memory, TCC, memory that is shared between processes: none of it.
            0 | 6 | 7 | 11 | 13 | 14 | 15 | 16 | 17 | 18 | 62 | 65 | 66 | 82 | 91 => 0,
            2 => 1,
            5 => self.clock(),
            19 => self.l2(),
            23 => capability(self.target)[0],
            61 => capability(self.target)[1],
            25 => self.target.target().barriers_per_compute_unit as c_int,
            26..=28 => block,
            29..=31 => MOST_GRID[(number - 29) as usize],
            55 | 56 => block,
            57 => self.items_per_unit(),
            58 => i32::MAX,
            59 => 8192,
            60 => self.clock(),
            63 | 10_015 => self.units(),
            67..=69 => 0,
            71 | 72 => self.registers(),
            73 => 0,
            74 | 75 => self.lds(),
            76 | 10_002 => self.target.target().lds_bytes as c_int,
            77 => 1,
            81 | 83 => 256,
            84 => i32::try_from(self.memory).unwrap_or(i32::MAX),
            87 => self.target.target().wave_size as c_int,
            10_000 | 10_017 => WALL_CLOCK,
            10_011 | 10_014 => 1,
            10_012 => 0,
            10_018 => self.parameter(DeviceParameter::Dies),
            _ => return Err(invalid(format!("attribute {number} of a device is not known"))),
        })
    }
}

/// A field of the structure of properties: its size, and what it says.
enum Field {
    Text(usize, String),
    /// `size_t`.
    Size(u64),
    /// `int`.
    Int(c_int),
    /// Several `int`s.
    Ints(Vec<c_int>),
    /// Bytes of zero, at a multiple of the number after them.
    Zero(usize, usize),
}

impl Field {
    /// Appends it where C would put it.
    fn append(&self, bytes: &mut Vec<u8>) {
        let mut align = |to: usize| bytes.resize(bytes.len().next_multiple_of(to), 0);
        match self {
            Field::Text(size, text) => {
                let end = bytes.len() + size;
                bytes.extend(text.bytes().take(size - 1));
                bytes.resize(end, 0);
            }
            Field::Size(value) => {
                align(8);
                bytes.extend(value.to_le_bytes());
            }
            Field::Int(value) => {
                align(4);
                bytes.extend(value.to_le_bytes());
            }
            Field::Ints(values) => {
                align(4);
                values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
            }
            Field::Zero(size, alignment) => {
                align(*alignment);
                bytes.resize(bytes.len() + size, 0);
            }
        }
    }
}

/// Lays fields out as C does; the structure ends at a multiple of 8.
fn lay_out(fields: &[Field]) -> Vec<u8> {
    let mut bytes = Vec::new();
    fields.iter().for_each(|field| field.append(&mut bytes));
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

/// All features of `hipDeviceArch_t` but surfaces and dynamic parallelism.
const FEATURES: c_int = 0b0_1010_1111_1111_1111;

impl DeviceFacts {
    /// `hipDeviceProp_t` of HIP 5, in the order of its declaration (hip_runtime_api.h of 5.2).
    pub(crate) fn properties_of_5(&self) -> Vec<u8> {
        use Field::{Int, Ints, Size, Text, Zero};
        let block = self.block();
        lay_out(&[
            Text(256, self.name()),
            Size(self.memory),
            Size(self.lds() as u64),
            Int(self.registers()),
            Int(self.target.target().wave_size as c_int),
            Int(block),
            Ints(vec![block; 3]),
            Ints(MOST_GRID.to_vec()),
            // Clocks of the units and of memory, and the width of its bus.
            Ints(vec![self.clock(), self.clock(), 8192]),
            Size(i32::MAX as u64),
            Ints(capability(self.target).to_vec()),
            Ints(vec![self.units(), self.l2(), self.items_per_unit()]),
            // Compute mode, the clock of instructions, features, kernels at the same time.
            Ints(vec![0, WALL_CLOCK, FEATURES, 1]),
            // Its place on the bus.
            Ints(vec![0; 3]),
            Size(self.target.target().lds_bytes.into()),
            // No board with several of them; maps memory of the host.
            Ints(vec![0, 1]),
            // The number of the chip, as far as it has digits only.
            Int(self.target.target().name.trim_start_matches("gfx").parse().unwrap_or(0)),
            Text(256, self.target.to_string()),
            // Integrated, cooperative launches of two kinds: on one device.
            Ints(vec![0, 1, 0]),
            // Textures.
            Ints(vec![0; 7]),
            // Registers that flush.
            Zero(16, 8),
            Size(i32::MAX as u64),
            Size(256),
            Size(256),
            // Time limits, ECC, TCC, cooperative launches that differ, large bar, revision.
            Ints(vec![0; 9]),
            // Managed memory, used by the host as it lies there, at the same time.
            Ints(vec![1, 1, 1, 0, 0]),
        ])
    }

    /// `hipDeviceProp_t` from HIP 6 on (`R0600`), likewise.
    pub(crate) fn properties_of_6(&self) -> Vec<u8> {
        use Field::{Int, Ints, Size, Text, Zero};
        let block = self.block();
        lay_out(&[
            Text(256, self.name()),
            // UUID, LUID and its mask.
            Zero(16 + 8, 1),
            Int(0),
            Size(self.memory),
            Size(self.lds() as u64),
            Int(self.registers()),
            Int(self.target.target().wave_size as c_int),
            Size(i32::MAX as u64),
            Int(block),
            Ints(vec![block; 3]),
            Ints(MOST_GRID.to_vec()),
            Int(self.clock()),
            Size(i32::MAX as u64),
            Ints(capability(self.target).to_vec()),
            Size(256),
            Size(256),
            // Copies beside kernels.
            Ints(vec![1, self.units()]),
            // Time limits, integrated, maps memory of the host, compute mode.
            Ints(vec![0, 0, 1, 0]),
            // Textures and surfaces.
            Ints(vec![0; 40]),
            Size(256),
            // Kernels at the same time, ECC, the place on the bus, TCC, engines for copies, unified
            // addresses.
            Ints(vec![1, 0, 0, 0, 0, 0, 1, 1]),
            Ints(vec![self.clock(), 8192, self.l2(), 0, self.items_per_unit()]),
            // Stream priorities, caches of globals and locals.
            Ints(vec![1, 1, 1]),
            Size(self.target.target().lds_bytes.into()),
            Ints(vec![self.registers(), 1]),
            // Boards of several, atomics of the host, ratio of precisions, pageable memory, concurrent use of
            // managed memory, preemption, registered pointers, cooperative launches of two kinds.
            Ints(vec![0, 0, 0, 2, 0, 1, 0, 1, 1, 0]),
            Size(self.lds() as u64),
            // Page tables of the host, direct use of managed memory, blocks of a unit, access policy.
            Ints(vec![0, 1, self.target.target().barriers_per_compute_unit as c_int, 0]),
            Size(0),
            // Memory of the host can be registered, and there are pools; the others of the twelve after it
            // and what is reserved are not there.
            Int(1),
            Ints(vec![0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]),
            Ints(vec![0; 63 + 32]),
            Text(256, self.target.to_string()),
            Size(self.target.target().lds_bytes.into()),
            Ints(vec![WALL_CLOCK, FEATURES]),
            Zero(16, 8),
            // Cooperative launches that differ, large bar, revision.
            Ints(vec![0; 6]),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use groundswell::target::Target;

    fn int(bytes: &[u8], at: usize) -> i32 {
        i32::from_le_bytes(*bytes[at..].first_chunk().expect("inside"))
    }

    fn text(bytes: &[u8], at: usize) -> String {
        bytes[at..].iter().take_while(|&&byte| byte != 0).map(|&byte| byte as char).collect()
    }

    /// Offsets that compilers give the fields of HIP's headers.
    #[test]
    fn fields_lie_where_headers_have_them() {
        let id: TargetId = "gfx90a:sramecc+:xnack-".parse().expect("it is one");
        let facts = DeviceFacts::new(id, 1 << 35);
        let old = facts.properties_of_5();
        assert_eq!((old.len(), text(&old, 396)), (792, "gfx90a:sramecc+:xnack-".to_owned()));
        assert_eq!((int(&old, 276), int(&old, 280), int(&old, 336), int(&old, 344)), (64, 1024, 104, 2048));
        assert_eq!((int(&old, 328), int(&old, 332), int(&old, 388), int(&old, 772)), (9, 0, 1, 1));
        let new = facts.properties_of_6();
        assert_eq!((new.len(), text(&new, 1160)), (1472, "gfx90a:sramecc+:xnack-".to_owned()));
        assert_eq!((int(&new, 308), int(&new, 320), int(&new, 388)), (64, 1024, 104));
        assert_eq!((int(&new, 616), int(&new, 1416)), (8 << 20, 65_536));
        assert_eq!(u64::from_le_bytes(*new[288..].first_chunk().expect("inside")), 1 << 35);
    }

    #[test]
    fn attributes_agree_with_properties() {
        for target in Target::ALL {
            let facts = DeviceFacts::new(target.into(), 1 << 35);
            let (old, new) = (facts.properties_of_5(), facts.properties_of_6());
            for (attribute, in_old, in_new) in [(63, 336, 388), (87, 276, 308), (56, 280, 320), (5, 308, 348)]
            {
                let value = facts.attribute(attribute).expect("it is known");
                assert_eq!([value; 2], [int(&old, in_old), int(&new, in_new)], "{attribute}");
            }
        }
        assert!(DeviceFacts::new(Target::GFX942.into(), 0).attribute(9998).is_err());
    }
}
