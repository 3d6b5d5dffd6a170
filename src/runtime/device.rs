//! Devices: where kernels run. Today that is the built-in simulator; a GPU through HIP will be the same type.

use std::sync::{Arc, Mutex};

use super::executable::Executable;
use super::sim::time::{TimeOptions, TimeReport};
use super::sim::{CheckOptions, CheckReport, LaunchConfig, LaunchStats, Limits, Module, SimError, Simulator};
use crate::codegen::object::ObjectFile;
use crate::codegen::target::{Target, TargetId};
use crate::ir::diagnostic::{Diagnostic, Kind, Location};

/// A device that runs executables. Cheap to clone; all clones are one device.
#[derive(Clone)]
pub struct Device {
    pub(super) shared: Arc<SharedDevice>,
    /// The limits of launches that start from this clone.
    limits: Limits,
}

pub(super) struct SharedDevice {
    target: TargetId,
    pub(super) simulator: Mutex<Simulator>,
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Device({})", self.name())
    }
}

impl Device {
    /// A real GPU if there is one, else the simulator. (No GPU support yet: always the simulator.)
    pub fn open() -> Result<Device, Diagnostic> {
        Ok(Device::simulator(Target::USUAL))
    }

    /// The built-in simulator of a target, in any modes or in those of a target id; for a generic target that
    /// of its oldest chip.
    pub fn simulator(target: impl Into<TargetId>) -> Device {
        let target = target.into().chip();
        let shared = Arc::new(SharedDevice { target, simulator: Mutex::new(Simulator::new(target)) });
        Device { shared, limits: Limits::default() }
    }

    /// The same device; launches that start from the returned clone are stopped at these limits.
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
        format!("simulator of {}", self.shared.target)
    }

    /// The target that executables must be compiled for.
    pub fn target(&self) -> Target {
        self.shared.target.target()
    }

    /// The same with the modes that it is in, as far as they are known.
    pub fn target_id(&self) -> TargetId {
        self.shared.target
    }

    pub(super) fn run(
        &self,
        executable: &Executable,
        grid: [u32; 3],
        kernarg: &[u8],
    ) -> Result<LaunchStats, Diagnostic> {
        let config = self.config(executable, grid);
        self.with_module(executable, |simulator, module| {
            simulator.launch(module, executable.name(), config, kernarg)
        })
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

    pub(super) fn with_simulator<R>(
        &self,
        f: impl FnOnce(&mut Simulator) -> Result<R, SimError>,
    ) -> Result<R, Diagnostic> {
        let mut simulator = self
            .shared
            .simulator
            .lock()
            .map_err(|_| Diagnostic::new(Kind::Bug, "the simulator panicked in another thread"))?;
        f(&mut simulator).map_err(|error| diagnostic_of(&error))
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
