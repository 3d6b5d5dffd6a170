//! Devices: where kernels run. A GPU through HIP and the built-in simulator are one type.

use std::sync::Arc;

use super::backend::{Backend, LaunchCounts, LaunchRequest};
use super::hip::{self, HipDevice, HipStream};
#[cfg(feature = "compiler")]
use super::sim::{Limits, WaveOrder};
use crate::codegen::target::{Target, TargetId};
use crate::ir::diagnostic::{Diagnostic, Kind};

/// The variable that says which device [`Device::open`] takes, in the words of [`Device::named`].
const DEVICE_VARIABLE: &str = "GROUNDSWELL_DEVICE";

/// A device that runs executables. Cheap to clone; all clones are one device.
#[derive(Clone)]
pub struct Device {
    pub(super) shared: Arc<SharedDevice>,
    /// The limits of launches that start from this clone.
    #[cfg(feature = "compiler")]
    pub(super) limits: Limits,
    /// The order of the waves of their workgroups.
    #[cfg(feature = "compiler")]
    pub(super) order: WaveOrder,
}

pub(super) struct SharedDevice {
    target: TargetId,
    pub(super) backend: Box<dyn Backend>,
    /// Why it is this one.
    why: String,
}

/// A GPU that HIP finds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GpuInfo {
    /// What [`Device::named`] takes it by: `hip:0`.
    pub id: String,
    /// The name of the product.
    pub name: String,
    /// The chip with the modes that it is in.
    pub target: TargetId,
    /// Bytes of device memory.
    pub memory: u64,
    /// Compute units.
    pub compute_units: u32,
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Device({})", self.name())
    }
}

impl Device {
    /// A real GPU if there is one, else the simulator; [`why`](Self::why) says which and for what reason. The
    /// environment variable `GROUNDSWELL_DEVICE` chooses instead, in the words of [`named`](Self::named).
    ///
    /// # Errors
    /// The variable names a device that is not there.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// let device = Device::open()?;
    /// println!("{}: {}", device.name(), device.why());
    /// # Ok::<(), Diagnostic>(())
    /// ```
    pub fn open() -> Result<Device, Diagnostic> {
        match std::env::var(DEVICE_VARIABLE) {
            Ok(name) if !name.is_empty() => Device::named(&name)
                .map(|device| device.because(format!("{DEVICE_VARIABLE} is `{name}`")))
                .map_err(|error| error.note(format!("{DEVICE_VARIABLE} asks for `{name}`"), None)),
            _ => Device::named("auto"),
        }
    }

    /// The device of that name: `auto` (a GPU if there is one, else the simulator), `sim` or `sim:gfx950`
    /// (the simulator, of a chip), `hip` or `hip:1` (a GPU).
    ///
    /// # Errors
    /// The name is none of these, or there is no such GPU.
    pub fn named(name: &str) -> Result<Device, Diagnostic> {
        let number = |text: &str| text.parse::<usize>().ok();
        match name.split_once(':') {
            None if name == "auto" => match Device::gpu(0) {
                Ok(device) => Ok(device.because("it is the first GPU".to_owned())),
                Err(error) => without_gpu(error),
            },
            None if name == "sim" => simulated(Target::USUAL.into()),
            None if name == "hip" => Device::gpu(0),
            Some(("sim", chip)) => match chip.parse::<TargetId>() {
                Ok(target) => simulated(target),
                Err(error) => Err(Diagnostic::invalid(error.to_string()).help(NAMES)),
            },
            Some(("hip", ordinal)) if number(ordinal).is_some() => {
                Device::gpu(number(ordinal).unwrap_or_default())
            }
            _ => Err(Diagnostic::invalid(format!("`{name}` is not a device")).help(NAMES)),
        }
    }

    /// The GPUs that HIP finds, of chips that code can be made for.
    ///
    /// # Errors
    /// There is no HIP, or it finds none; with what can be done about it.
    pub fn gpus() -> Result<Vec<GpuInfo>, Diagnostic> {
        let info = |device: &HipDevice| GpuInfo {
            id: format!("hip:{}", device.ordinal()),
            name: device.name.clone(),
            target: device.target,
            memory: device.memory,
            compute_units: device.compute_units,
        };
        Ok(hip::devices()?.iter().map(info).collect())
    }

    /// A GPU, by its number among those of [`gpus`](Self::gpus).
    ///
    /// # Errors
    /// There is none of that number.
    pub fn gpu(number: usize) -> Result<Device, Diagnostic> {
        let devices = hip::devices()?;
        let count = devices.len();
        let Some(device) = devices.into_iter().nth(number) else {
            let text = format!("there is no GPU {number}; HIP finds {count}");
            return Err(Diagnostic::new(Kind::Unsupported, text).help("`Device::gpus` lists them"));
        };
        let (target, why) = (device.target, device.describe());
        Ok(Device::of(target, Box::new(Arc::new(device)), why))
    }

    pub(super) fn of(target: TargetId, backend: Box<dyn Backend>, why: String) -> Device {
        Device {
            shared: Arc::new(SharedDevice { target, backend, why }),
            #[cfg(feature = "compiler")]
            limits: Limits::default(),
            #[cfg(feature = "compiler")]
            order: WaveOrder::default(),
        }
    }

    /// The same with another reason; only for a device that nobody else has yet.
    fn because(mut self, why: String) -> Device {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.why = why;
        }
        self
    }

    /// Display name.
    pub fn name(&self) -> String {
        self.shared.backend.name()
    }

    /// Why it is this device.
    pub fn why(&self) -> &str {
        &self.shared.why
    }

    /// Whether it is the simulator.
    pub fn is_simulator(&self) -> bool {
        self.shared.backend.hip().is_none()
    }

    /// The target that executables must be compiled for.
    pub fn target(&self) -> Target {
        self.shared.target.target()
    }

    /// The same with the modes that it is in, as far as they are known.
    pub fn target_id(&self) -> TargetId {
        self.shared.target
    }

    /// HIP's number of a GPU; nothing of the simulator.
    pub(super) fn hip_ordinal(&self) -> Option<i32> {
        self.shared.backend.hip().map(|device| device.ordinal())
    }

    /// Gives memory of freed buffers back that is kept for new ones.
    ///
    /// # Errors
    /// The device is lost.
    pub fn trim(&self) -> Result<(), Diagnostic> {
        self.shared.backend.trim()
    }

    /// Bytes of memory that are left, if the device says so.
    ///
    /// # Errors
    /// The device is lost.
    pub fn free_memory(&self) -> Result<Option<u64>, Diagnostic> {
        self.shared.backend.free_memory()
    }

    /// Waits until everything that was enqueued has happened.
    ///
    /// # Errors
    /// A kernel has failed.
    pub fn synchronize(&self) -> Result<(), Diagnostic> {
        self.shared.backend.synchronize()
    }

    pub(super) fn run(
        &self,
        request: &LaunchRequest,
        kernarg: &mut [u8],
    ) -> Result<LaunchCounts, Diagnostic> {
        self.shared.backend.run(request, kernarg)
    }

    /// Enqueues a launch on a stream; the simulator runs it at once.
    pub(super) fn enqueue(
        &self,
        request: &LaunchRequest,
        kernarg: &mut [u8],
        stream: Option<&HipStream>,
    ) -> Result<(), Diagnostic> {
        self.shared.backend.enqueue(request, kernarg, stream)
    }
}

/// The names of devices, for messages.
const NAMES: &str = "devices are auto, sim, sim:gfx942 and other chips, hip, hip:1";

#[cfg(feature = "compiler")]
fn simulated(target: TargetId) -> Result<Device, Diagnostic> {
    Ok(Device::simulator(target))
}

#[cfg(not(feature = "compiler"))]
fn simulated(_: TargetId) -> Result<Device, Diagnostic> {
    let text = "this build has no simulator";
    Err(Diagnostic::new(Kind::Unsupported, text)
        .help("build with the feature `compiler`, or name a GPU: `hip`"))
}

/// The device of machines without a GPU.
#[cfg(feature = "compiler")]
fn without_gpu(error: Diagnostic) -> Result<Device, Diagnostic> {
    Ok(Device::simulator(Target::USUAL).because(format!("no GPU: {}", error.message)))
}

#[cfg(not(feature = "compiler"))]
fn without_gpu(error: Diagnostic) -> Result<Device, Diagnostic> {
    Err(error.note("this build has no simulator, which the feature `compiler` brings", None))
}
