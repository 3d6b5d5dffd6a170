//! Devices: where kernels run. A GPU through HIP and the built-in simulator are one type.

use std::sync::{Arc, Mutex};

use super::executable::Executable;
use super::hip::{self, HipDevice, HipStream};
use super::sim::time::{TimeOptions, TimeReport};
use super::sim::{CheckOptions, CheckReport, LaunchConfig, LaunchStats, Limits, Module, SimError, Simulator};
use crate::codegen::object::ObjectFile;
use crate::codegen::target::{Target, TargetId};
use crate::ir::diagnostic::{Diagnostic, Kind, Location};

/// The variable that says which device [`Device::open`] takes, in the words of [`Device::named`].
const DEVICE_VARIABLE: &str = "GROUNDSWELL_DEVICE";

/// A device that runs executables. Cheap to clone; all clones are one device.
#[derive(Clone)]
pub struct Device {
    pub(super) shared: Arc<SharedDevice>,
    /// The limits of launches that start from this clone.
    limits: Limits,
}

pub(super) struct SharedDevice {
    target: TargetId,
    pub(super) backend: Backend,
    /// Why it is this one.
    why: String,
}

/// What a device is.
pub(super) enum Backend {
    Simulator(Mutex<Simulator>),
    Hip(Arc<HipDevice>),
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
                Err(error) => {
                    Ok(Device::simulator(Target::USUAL).because(format!("no GPU: {}", error.message)))
                }
            },
            None if name == "sim" => Ok(Device::simulator(Target::USUAL)),
            None if name == "hip" => Device::gpu(0),
            Some(("sim", chip)) => match chip.parse::<TargetId>() {
                Ok(target) => Ok(Device::simulator(target)),
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
        let backend = Backend::Hip(Arc::new(device));
        Ok(Device { shared: Arc::new(SharedDevice { target, backend, why }), limits: Limits::default() })
    }

    /// The built-in simulator of a target, in any modes or in those of a target id; for a generic target that
    /// of its oldest chip.
    pub fn simulator(target: impl Into<TargetId>) -> Device {
        let target = target.into().chip();
        let backend = Backend::Simulator(Mutex::new(Simulator::new(target)));
        let why = "the simulator was asked for".to_owned();
        Device { shared: Arc::new(SharedDevice { target, backend, why }), limits: Limits::default() }
    }

    /// The same with another reason; only for a device that nobody else has yet.
    fn because(mut self, why: String) -> Device {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.why = why;
        }
        self
    }

    /// The same device; launches that start from the returned clone are stopped at these limits. A GPU knows
    /// no limits.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// use groundswell::simulator::Limits;
    /// use std::time::Duration;
    /// let limits = Limits { instructions: 1_000_000, time: Some(Duration::from_secs(5)) };
    /// let device = Device::simulator(Target::USUAL).with_limits(limits);
    /// # let _ = device;
    /// ```
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Device {
        self.limits = limits;
        self
    }

    /// Display name.
    pub fn name(&self) -> String {
        match &self.shared.backend {
            Backend::Simulator(_) => format!("simulator of {}", self.shared.target),
            Backend::Hip(device) => device.describe(),
        }
    }

    /// Why it is this device.
    pub fn why(&self) -> &str {
        &self.shared.why
    }

    /// Whether it is the simulator.
    pub fn is_simulator(&self) -> bool {
        matches!(self.shared.backend, Backend::Simulator(_))
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
        match &self.shared.backend {
            Backend::Simulator(_) => None,
            Backend::Hip(device) => Some(device.ordinal()),
        }
    }

    /// Gives memory of freed buffers back that is kept for new ones.
    ///
    /// # Errors
    /// The device is lost.
    pub fn trim(&self) -> Result<(), Diagnostic> {
        match &self.shared.backend {
            Backend::Simulator(_) => Ok(()),
            Backend::Hip(device) => device.trim(),
        }
    }

    /// Bytes of memory that are left, if the device says so.
    ///
    /// # Errors
    /// The device is lost.
    pub fn free_memory(&self) -> Result<Option<u64>, Diagnostic> {
        match &self.shared.backend {
            Backend::Simulator(_) => Ok(None),
            Backend::Hip(device) => device.free_memory().map(Some),
        }
    }

    /// Waits until everything that was enqueued has happened.
    ///
    /// # Errors
    /// A kernel has failed.
    pub fn synchronize(&self) -> Result<(), Diagnostic> {
        match &self.shared.backend {
            Backend::Simulator(_) => Ok(()),
            Backend::Hip(device) => device.synchronize(),
        }
    }

    pub(super) fn run(
        &self,
        executable: &Executable,
        grid: [u32; 3],
        kernarg: &mut [u8],
    ) -> Result<LaunchStats, Diagnostic> {
        match &self.shared.backend {
            Backend::Simulator(_) => {
                let config = self.config(executable, grid);
                self.with_module(executable, |simulator, module| {
                    simulator.launch(module, executable.name(), config, kernarg)
                })
            }
            Backend::Hip(device) => {
                device.enqueue(executable, grid, kernarg, None)?;
                device.synchronize()?;
                Ok(LaunchStats::default())
            }
        }
    }

    /// Enqueues a launch on a stream; the simulator runs it at once.
    pub(super) fn enqueue(
        &self,
        executable: &Executable,
        grid: [u32; 3],
        kernarg: &mut [u8],
        stream: Option<&HipStream>,
    ) -> Result<(), Diagnostic> {
        match &self.shared.backend {
            Backend::Simulator(_) => self.run(executable, grid, kernarg).map(drop),
            Backend::Hip(device) => device.enqueue(executable, grid, kernarg, stream),
        }
    }

    pub(super) fn check(
        &self,
        executable: &Executable,
        grid: [u32; 3],
        kernarg: &[u8],
        options: &CheckOptions,
    ) -> Result<CheckReport, Diagnostic> {
        let config = self.config(executable, grid);
        self.with_module(executable, |simulator, module| {
            simulator.check(module, executable.name(), config, kernarg, options)
        })
    }

    pub(super) fn time(
        &self,
        executable: &Executable,
        grid: [u32; 3],
        kernarg: &[u8],
        options: &TimeOptions,
    ) -> Result<TimeReport, Diagnostic> {
        let config = self.config(executable, grid);
        self.with_module(executable, |simulator, module| {
            simulator.time(module, executable.name(), config, kernarg, options)
        })
    }

    fn config(&self, executable: &Executable, grid: [u32; 3]) -> LaunchConfig {
        LaunchConfig::new(grid, executable.block()).limits(self.limits)
    }

    /// Loads the executable's object for as long as `f` takes. A fault of a wave names the author's line.
    fn with_module<R>(
        &self,
        executable: &Executable,
        f: impl FnOnce(&Simulator, &Module) -> Result<R, SimError>,
    ) -> Result<R, Diagnostic> {
        let result = self.with_simulator(|simulator| {
            let module = simulator.load(executable.object())?;
            let result = f(simulator, &module);
            let unloaded = simulator.unload(module);
            match result {
                Ok(result) => unloaded.map(|()| Ok(result)),
                Err(error) => Ok(Err(error)),
            }
        })?;
        result.map_err(|error| diagnostic_of(&error).at(author_line(executable, &error)))
    }

    /// Calls the simulator.
    ///
    /// # Errors
    /// The device is a GPU, or the simulator's own.
    pub(super) fn with_simulator<R>(
        &self,
        f: impl FnOnce(&mut Simulator) -> Result<R, SimError>,
    ) -> Result<R, Diagnostic> {
        let Backend::Simulator(simulator) = &self.shared.backend else {
            let text = format!("{} neither checks nor times kernels", self.name());
            return Err(
                Diagnostic::new(Kind::Unsupported, text).help("the simulator does: `Device::simulator`")
            );
        };
        let mut simulator = simulator
            .lock()
            .map_err(|_| Diagnostic::new(Kind::Bug, "the simulator panicked in another thread"))?;
        f(&mut simulator).map_err(|error| diagnostic_of(&error))
    }
}

/// The names of devices, for messages.
const NAMES: &str = "devices are auto, sim, sim:gfx942 and other chips, hip, hip:1";

/// Device memory, wherever the device is.
impl Device {
    pub(super) fn allocate_memory(&self, bytes: u64) -> Result<u64, Diagnostic> {
        match &self.shared.backend {
            Backend::Simulator(_) => self.with_simulator(|simulator| simulator.alloc(bytes)),
            Backend::Hip(device) => device.allocate(bytes),
        }
    }

    /// Gives memory back that nothing uses any more.
    pub(super) fn free_memory_at(&self, address: u64, bytes: u64) {
        match &self.shared.backend {
            // A failure here cannot be handled, and the memory is not used again either way.
            Backend::Simulator(_) => drop(self.with_simulator(|simulator| simulator.free(address))),
            Backend::Hip(device) => device.free(address, bytes),
        }
    }

    /// Memory of somebody else is no longer the device's.
    pub(super) fn give_back(&self, address: u64, bytes: u64) {
        match &self.shared.backend {
            // A failure here cannot be handled. No bytes were never lent.
            Backend::Simulator(_) if bytes > 0 => {
                drop(self.with_simulator(|simulator| simulator.free(address)))
            }
            Backend::Simulator(_) | Backend::Hip(_) => {}
        }
    }

    pub(super) fn write_memory(&self, address: u64, data: &[u8]) -> Result<(), Diagnostic> {
        match &self.shared.backend {
            Backend::Simulator(_) => self.with_simulator(|simulator| simulator.write(address, data)),
            Backend::Hip(device) => device.write(address, data),
        }
    }

    pub(super) fn read_memory(&self, address: u64, data: &mut [u8]) -> Result<(), Diagnostic> {
        match &self.shared.backend {
            Backend::Simulator(_) => self.with_simulator(|simulator| simulator.read_into(address, data)),
            Backend::Hip(device) => device.read(address, data),
        }
    }
}

fn diagnostic_of(error: &SimError) -> Diagnostic {
    let fault = Diagnostic::invalid(error.to_string());
    error.help().into_iter().fold(fault, Diagnostic::help)
}

/// Where the instruction at which a wave stopped was written, if the object says it.
fn author_line(executable: &Executable, error: &SimError) -> Option<Location> {
    let SimError::Fault(fault) = error else { return None };
    let object = ObjectFile::parse(executable.object()).ok()?;
    let line = object.line_of(fault.address)?;
    Some(Location { file: line.file.into(), line: line.line, column: line.column })
}
