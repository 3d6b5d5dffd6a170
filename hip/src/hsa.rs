//! The part of HSA's runtime that programs ask which chip HIP's device is: Mojo finds the agent at the bus
//! address that HIP names, and takes the name of its instruction set for the target of its code.
//!
//! HIP lies on top of HSA in AMD's software; here nothing does, so the two answer from the same settings. It
//! is a library of its own (`libhsa-runtime64.so`), in which nothing of HIP is running. There is one agent,
//! the device. Numbers are those of hsa.h and hsa_ext_amd.h (HSA Runtime 1.2, ROCr 5.2).

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use groundswell::simulator::time::{DeviceModel, DeviceParameter};
use groundswell::target::TargetId;

use crate::ffi::Out;
use crate::properties::DeviceFacts;
use crate::runtime::Settings;

/// `hsa_status_t`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(i32)]
enum Status {
    Success = 0,
    Error = 0x1000,
    InvalidArgument = 0x1001,
    InvalidAgent = 0x1004,
    NotInitialized = 0x100b,
    InvalidIsa = 0x100f,
}

/// `hsa_agent_t` and `hsa_isa_t`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Handle {
    handle: u64,
}

/// The device, and its instruction set.
const THE_ONLY_ONE: Handle = Handle { handle: 1 };

/// A function of the caller, which is given each of several things and the caller's data; what is not 0 ends
/// it and is passed on.
type Visitor = extern "C" fn(Handle, *mut c_void) -> c_int;

/// How often `hsa_init` was called, less the calls of `hsa_shut_down`.
static USERS: AtomicU32 = AtomicU32::new(0);

/// Where the device says that it is: segment, bus, device and function, which agree with HIP's bus address.
const PLACE: [u32; 4] = [0; 4];

/// Makes a call while the runtime is in use.
fn in_use(call: impl FnOnce() -> Result<(), Status>) -> c_int {
    let result = if USERS.load(Relaxed) == 0 { Err(Status::NotInitialized) } else { call() };
    result.err().unwrap_or(Status::Success) as c_int
}

/// The chip that the settings say, in the mode that they say. HIP's device is the same one, but where nothing
/// names it and the program brings code for another.
fn chip() -> Result<TargetId, Status> {
    let settings = Settings::read(|name| std::env::var(name).ok()).map_err(|reason| {
        eprintln!("groundswell: {reason}");
        Status::Error
    })?;
    Ok(settings.chip(|| None))
}

/// Text with room for `size` bytes, the rest of which is zero.
fn padded(text: &str, size: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = text.bytes().take(size - 1).collect();
    bytes.resize(size, 0);
    bytes
}

/// What an attribute of the agent is (`hsa_agent_info_t`, `hsa_amd_agent_info_t`), as it lies in memory.
fn agent_info(chip: TargetId, attribute: u32) -> Option<Vec<u8>> {
    let target = chip.target();
    let model = DeviceModel::nearest(target);
    let number = |value: u32| Some(value.to_le_bytes().to_vec());
    let [segment, bus, device, function] = PLACE;
    match attribute {
        // Names of the chip, of who makes it, and of the product.
        0 => Some(padded(target.name, 64)),
        1 => Some(padded("AMD", 64)),
        0xa009 => Some(padded(&DeviceFacts::new(chip, 0).name(), 64)),
        // It runs kernels, with 64-bit addresses, in the base profile.
        2 | 3 => number(1),
        4 => number(0),
        6 => number(target.wave_size),
        8 => number(target.max_workgroup_size),
        // The node, and that it is a GPU.
        16 => number(0),
        17 => number(1),
        19 => Some(THE_ONLY_ONE.handle.to_le_bytes().to_vec()),
        0xa002 => number(model.get(DeviceParameter::ComputeUnits) as u32),
        0xa003 => number(model.get(DeviceParameter::Clock) as u32),
        0xa006 => number(bus << 8 | device << 3 | function),
        0xa00b => number(target.simds_per_compute_unit),
        0xa00f => number(segment),
        _ => None,
    }
}

/// What an attribute of the instruction set is (`hsa_isa_info_t`).
fn isa_info(chip: TargetId, attribute: u32) -> Option<Vec<u8>> {
    let name = chip.with_triple();
    match attribute {
        // Its name has a zero at its end that the length counts (ROCr, isa.cpp).
        0 => Some((name.len() as u32 + 1).to_le_bytes().to_vec()),
        1 => Some(padded(&name, name.len() + 1)),
        _ => None,
    }
}

fn put(value: Out<u8>, bytes: Option<Vec<u8>>) -> Result<(), Status> {
    value.put_all(&bytes.ok_or(Status::InvalidArgument)?).map_err(|_| Status::InvalidArgument)
}

/// `hsa_init`.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_init() -> c_int {
    match chip() {
        Ok(_) => {
            USERS.fetch_add(1, Relaxed);
            Status::Success as c_int
        }
        Err(status) => status as c_int,
    }
}

/// `hsa_shut_down`.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_shut_down() -> c_int {
    match USERS.try_update(Relaxed, Relaxed, |users| users.checked_sub(1)) {
        Ok(_) => Status::Success as c_int,
        Err(_) => Status::NotInitialized as c_int,
    }
}

/// `hsa_iterate_agents`.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_iterate_agents(visit: Option<Visitor>, data: *mut c_void) -> c_int {
    match (in_use(|| Ok(())), visit) {
        (0, Some(visit)) => visit(THE_ONLY_ONE, data),
        (0, None) => Status::InvalidArgument as c_int,
        (status, _) => status,
    }
}

/// `hsa_agent_get_info`.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_agent_get_info(agent: Handle, attribute: u32, value: Out<u8>) -> c_int {
    in_use(|| match agent {
        THE_ONLY_ONE => put(value, agent_info(chip()?, attribute)),
        _ => Err(Status::InvalidAgent),
    })
}

/// `hsa_agent_iterate_isas`.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_agent_iterate_isas(agent: Handle, visit: Option<Visitor>, data: *mut c_void) -> c_int {
    match agent {
        THE_ONLY_ONE => hsa_iterate_agents(visit, data),
        _ => in_use(|| Err(Status::InvalidAgent)),
    }
}

/// `hsa_isa_get_info_alt`.
#[unsafe(no_mangle)]
pub extern "C" fn hsa_isa_get_info_alt(isa: Handle, attribute: u32, value: Out<u8>) -> c_int {
    in_use(|| match isa {
        THE_ONLY_ONE => put(value, isa_info(chip()?, attribute)),
        _ => Err(Status::InvalidIsa),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(chip: TargetId, attribute: u32) -> u32 {
        let bytes = agent_info(chip, attribute).expect("it is known");
        u32::from_le_bytes(bytes.try_into().expect("it is a number"))
    }

    #[test]
    fn the_agent_lies_where_hip_says_that_its_device_is() {
        let chip = "gfx942".parse().expect("it is one");
        let (segment, place) = (number(chip, 0xa00f), number(chip, 0xa006));
        let id = format!("{segment:04x}:{:02x}:{:02x}.{:x}", place >> 8, place >> 3 & 31, place & 7);
        assert_eq!(id, crate::devices::BUS_ID);
    }

    #[test]
    fn names_are_those_of_the_chip_and_end_with_a_zero() {
        let chip: TargetId = "gfx90a:sramecc+:xnack-".parse().expect("it is one");
        let name = isa_info(chip, 1).expect("it is known");
        assert_eq!(name, b"amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-\0");
        assert_eq!(isa_info(chip, 0), Some((name.len() as u32).to_le_bytes().to_vec()));
        let name = agent_info(chip, 0).expect("it is known");
        assert!(name.len() == 64 && name.starts_with(b"gfx90a\0"));
        assert_eq!((number(chip, 17), number(chip, 6)), (1, 64));
        assert_eq!((agent_info(chip, 9999), isa_info(chip, 9999)), (None, None));
    }
}
