//! Launches: arguments one after the other, then the run.

use std::ffi::{c_char, c_int};

use groundswell::device::{Buffer, Device, Launch, ScalarValue};
use groundswell::prelude::{Executable, Symbol};
use groundswell::simulator::CheckOptions;
use groundswell::simulator::time::TimeOptions;
use groundswell::target::DeviceModel;

use crate::buffer::GroundswellBuffer;
use crate::device::GroundswellDevice;
use crate::executable::GroundswellExecutable;
use crate::failure::{Failure, object, status, text};
use crate::text::{changed, free, object_of, text_of};

/// A launch that is being put together; it may run several times.
pub struct GroundswellLaunch {
    device: Device,
    executable: Executable,
    buffers: Vec<Buffer>,
    scalars: Vec<ScalarValue>,
    sizes: Vec<(Symbol, i64)>,
}

impl GroundswellLaunch {
    fn scalar(&mut self, value: impl Into<ScalarValue>) -> Result<(), Failure> {
        self.scalars.push(value.into());
        Ok(())
    }

    fn launch(&self) -> Launch<'_> {
        let launch = self.device.launch(&self.executable);
        let launch = self.buffers.iter().fold(launch, Launch::buffer);
        let launch = self.scalars.iter().fold(launch, |launch, &scalar| launch.scalar(scalar));
        self.sizes.iter().fold(launch, |launch, &(symbol, size)| launch.set(symbol, size))
    }
}

/// A launch of an executable on a device. Both, and buffers that are added, are kept as long as it lives.
///
/// # Safety
/// `device` is a device, and `executable` is an executable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_launch_new(
    device: *const GroundswellDevice,
    executable: *const GroundswellExecutable,
) -> *mut GroundswellLaunch {
    object(|| {
        // SAFETY: as the caller says.
        let (device, executable) =
            unsafe { (object_of(device, "the device")?, object_of(executable, "the executable")?) };
        Ok(GroundswellLaunch {
            device: device.device.clone(),
            executable: executable.executable.clone(),
            buffers: Vec::new(),
            scalars: Vec::new(),
            sizes: Vec::new(),
        })
    })
}

/// Adds to a launch.
unsafe fn add(
    launch: *mut GroundswellLaunch,
    body: impl FnOnce(&mut GroundswellLaunch) -> Result<(), Failure>,
) -> c_int {
    status(|| {
        // SAFETY: as the caller says.
        body(unsafe { changed(launch, "the launch") }?)
    })
}

/// Adds the next buffer, in the order in which the kernel declares its memories.
///
/// # Safety
/// `launch` is a launch that nobody else uses meanwhile, and `buffer` is a buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_launch_buffer(
    launch: *mut GroundswellLaunch,
    buffer: *const GroundswellBuffer,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        add(launch, |own| {
            own.buffers.push(object_of(buffer, "the buffer")?.buffer.clone());
            Ok(())
        })
    }
}

/// Adds the next scalar, of f32, in the order in which the kernel declares its scalars.
///
/// # Safety
/// `launch` is a launch that nobody else uses meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_launch_f32(launch: *mut GroundswellLaunch, value: f32) -> c_int {
    // SAFETY: as the caller says.
    unsafe { add(launch, |own| own.scalar(value)) }
}

/// Adds the next scalar, of f64, in the order in which the kernel declares its scalars.
///
/// # Safety
/// `launch` is a launch that nobody else uses meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_launch_f64(launch: *mut GroundswellLaunch, value: f64) -> c_int {
    // SAFETY: as the caller says.
    unsafe { add(launch, |own| own.scalar(value)) }
}

/// Adds the next scalar, of i32, in the order in which the kernel declares its scalars.
///
/// # Safety
/// `launch` is a launch that nobody else uses meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_launch_i32(launch: *mut GroundswellLaunch, value: i32) -> c_int {
    // SAFETY: as the caller says.
    unsafe { add(launch, |own| own.scalar(value)) }
}

/// Adds the next scalar, of i64, in the order in which the kernel declares its scalars.
///
/// # Safety
/// `launch` is a launch that nobody else uses meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_launch_i64(launch: *mut GroundswellLaunch, value: i64) -> c_int {
    // SAFETY: as the caller says.
    unsafe { add(launch, |own| own.scalar(value)) }
}

/// Gives a symbol that was left open its value.
///
/// # Safety
/// `launch` is a launch that nobody else uses meanwhile, and `symbol` ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_launch_set(
    launch: *mut GroundswellLaunch,
    symbol: *const c_char,
    value: i64,
) -> c_int {
    // SAFETY: as the caller says.
    unsafe {
        add(launch, |own| {
            own.sizes.push((Symbol::new(text_of(symbol, "the symbol")?), value));
            Ok(())
        })
    }
}

/// Checks the arguments, runs the kernel and waits for its end.
///
/// # Safety
/// `launch` is a launch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_launch_run(launch: *const GroundswellLaunch) -> c_int {
    // SAFETY: as the caller says.
    status(|| Ok(unsafe { object_of(launch, "the launch") }?.launch().run().map(drop)?))
}

/// Runs the kernel on the simulator with every step judged, in an order of waves that the seed decides: races,
/// missing waits, accesses out of bounds. The report is JSON, whose `findings` are empty if all is well; free
/// it with `groundswell_string_free`.
///
/// # Safety
/// `launch` is a launch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_launch_check(
    launch: *const GroundswellLaunch,
    seed: u64,
) -> *mut c_char {
    text(|| {
        // SAFETY: as the caller says.
        let own = unsafe { object_of(launch, "the launch") }?;
        let report = own.launch().check(&CheckOptions { seed })?;
        serde_json::to_string(&report).map_err(|error| Failure::from(error.to_string()))
    })
}

/// Estimates on the simulator how long the launch takes on a chip. The report is JSON; free it with
/// `groundswell_string_free`.
///
/// # Safety
/// `launch` is a launch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_launch_time(launch: *const GroundswellLaunch) -> *mut c_char {
    text(|| {
        // SAFETY: as the caller says.
        let own = unsafe { object_of(launch, "the launch") }?;
        let target = own.device.target();
        let device = DeviceModel::of(target).ok_or_else(|| {
            let known = DeviceModel::ALL.map(|device| format!("{} ({})", device.name, device.target));
            Failure::from(format!("no chip with {target} is timed; timed are {}", known.join(", ")))
        })?;
        let report = own.launch().time(&TimeOptions::new(device))?;
        serde_json::to_string(&report).map_err(|error| Failure::from(error.to_string()))
    })
}

/// Frees a launch.
///
/// # Safety
/// `launch` is a launch that is freed once, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn groundswell_launch_free(launch: *mut GroundswellLaunch) {
    // SAFETY: as the caller says.
    unsafe { free(launch) };
}
