//! Devices.

use std::ffi::{c_char, c_int};

use groundswell::prelude::Device;

use crate::failure::{object, status, text};
use crate::text::{free, object_of, text_of};

/// A device: a GPU, or the simulator.
pub struct GroundswellDevice {
    pub(crate) device: Device,
}

/// Opens a device: `sim`, `sim:gfx950`, `hip`, `hip:1`, `auto`. With NULL the one that `GROUNDSWELL_DEVICE`
/// names, or else the first GPU, or else the simulator.
///
/// # Safety
/// `name` ends with a zero byte, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_device_open(name: *const c_char) -> *mut GroundswellDevice {
    object(|| {
        let device = match name.is_null() {
            true => Device::open()?,
            // SAFETY: as the caller says.
            false => Device::named(unsafe { text_of(name, "the name") }?)?,
        };
        Ok(GroundswellDevice { device })
    })
}

/// One line about a device for people; free it with `groundswell_string_free`.
///
/// # Safety
/// `device` is a device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_device_name(device: *const GroundswellDevice) -> *mut c_char {
    // SAFETY: as the caller says.
    text(|| Ok(unsafe { object_of(device, "the device") }?.device.name()))
}

/// The target to compile for, as `groundswell_options_new` takes it; free it with `groundswell_string_free`.
///
/// # Safety
/// `device` is a device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_device_target(device: *const GroundswellDevice) -> *mut c_char {
    // SAFETY: as the caller says.
    text(|| Ok(unsafe { object_of(device, "the device") }?.device.target().name.to_owned()))
}

/// Whether a device is the simulator: 1 if it is, 0 if not.
///
/// # Safety
/// `device` is a device, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_device_is_simulator(device: *const GroundswellDevice) -> c_int {
    // SAFETY: as the caller says.
    unsafe { device.as_ref() }.map_or(0, |own| c_int::from(own.device.is_simulator()))
}

/// Waits until everything that was enqueued has happened.
///
/// # Safety
/// `device` is a device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_device_synchronize(device: *const GroundswellDevice) -> c_int {
    // SAFETY: as the caller says.
    status(|| Ok(unsafe { object_of(device, "the device") }?.device.synchronize()?))
}

/// Frees a device; buffers on it keep what they need.
///
/// # Safety
/// `device` is a device that is freed once, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_device_free(device: *mut GroundswellDevice) {
    // SAFETY: as the caller says.
    unsafe { free(device) };
}
