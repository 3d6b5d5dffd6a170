//! The built-in simulator as a device, and what only it can do: check and time launches.

use std::sync::Mutex;

use super::backend::{Backend, LaunchCounts, LaunchRequest};
use super::device::Device;
use super::executable::Executable;
use super::hip::HipStream;
use super::sim::time::{TimeOptions, TimeReport};
use super::sim::{CheckOptions, CheckReport, LaunchConfig, Limits, Module, SimError, Simulator, WaveOrder};
use crate::codegen::object::ObjectFile;
use crate::codegen::target::TargetId;
use crate::ir::diagnostic::{Diagnostic, Kind, Location};

/// The simulator of a chip.
struct SimulatedDevice {
    target: TargetId,
    simulator: Mutex<Simulator>,
}

impl Device {
    /// The built-in simulator of a target, in any modes or in those of a target id; for a generic target that
    /// of its oldest chip.
    pub fn simulator(target: impl Into<TargetId>) -> Device {
        let target = target.into().chip();
        let simulator = Mutex::new(Simulator::new(target));
        let backend = Box::new(SimulatedDevice { target, simulator });
        Device::of(target, backend, "the simulator was asked for".to_owned())
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

    /// The same device; launches that start from the returned clone let the waves of a workgroup go on in
    /// this order. What comes of a kernel without races does not depend on it. A GPU has an order of its own.
    ///
    /// # Example
    /// ```
    /// use groundswell::prelude::*;
    /// use groundswell::simulator::WaveOrder;
    /// let device = Device::simulator(Target::USUAL).with_order(WaveOrder::LastToFirst);
    /// # let _ = device;
    /// ```
    #[must_use]
    pub fn with_order(mut self, order: WaveOrder) -> Device {
        self.order = order;
        self
    }

    pub(super) fn check(
        &self,
        request: &LaunchRequest,
        kernarg: &[u8],
        options: &CheckOptions,
    ) -> Result<CheckReport, Diagnostic> {
        let executable = request.executable;
        with_module(self.simulated()?, executable, |simulator, module| {
            simulator.check(module, executable.name(), config(request), kernarg, options)
        })
    }

    pub(super) fn time(
        &self,
        request: &LaunchRequest,
        kernarg: &[u8],
        options: &TimeOptions,
    ) -> Result<TimeReport, Diagnostic> {
        let executable = request.executable;
        with_module(self.simulated()?, executable, |simulator, module| {
            simulator.time(module, executable.name(), config(request), kernarg, options)
        })
    }

    /// Calls the simulator.
    ///
    /// # Errors
    /// The device is a GPU, or the simulator's own.
    pub(super) fn with_simulator<R>(
        &self,
        f: impl FnOnce(&mut Simulator) -> Result<R, SimError>,
    ) -> Result<R, Diagnostic> {
        call(self.simulated()?, f)
    }

    /// The simulator.
    ///
    /// # Errors
    /// The device is a GPU.
    fn simulated(&self) -> Result<&Mutex<Simulator>, Diagnostic> {
        self.shared.backend.simulator().ok_or_else(|| {
            let text = format!("{} neither checks nor times kernels", self.name());
            Diagnostic::new(Kind::Unsupported, text).help("the simulator does: `Device::simulator`")
        })
    }
}

fn config(request: &LaunchRequest) -> LaunchConfig {
    LaunchConfig::new(request.grid, request.executable.block()).limits(request.limits).order(request.order)
}

/// Loads the executable's object for as long as `f` takes. A fault of a wave names the author's line.
fn with_module<R>(
    simulator: &Mutex<Simulator>,
    executable: &Executable,
    f: impl FnOnce(&Simulator, &Module) -> Result<R, SimError>,
) -> Result<R, Diagnostic> {
    let result = call(simulator, |simulator| {
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

fn call<R>(
    simulator: &Mutex<Simulator>,
    f: impl FnOnce(&mut Simulator) -> Result<R, SimError>,
) -> Result<R, Diagnostic> {
    let mut simulator = simulator
        .lock()
        .map_err(|_| Diagnostic::new(Kind::Bug, "the simulator panicked in another thread"))?;
    f(&mut simulator).map_err(|error| diagnostic_of(&error))
}

impl Backend for SimulatedDevice {
    fn name(&self) -> String {
        format!("simulator of {}", self.target)
    }

    fn allocate(&self, bytes: u64) -> Result<u64, Diagnostic> {
        call(&self.simulator, |simulator| simulator.alloc(bytes))
    }

    fn free(&self, address: u64, _: u64) {
        // A failure here cannot be handled, and the memory is not used again either way.
        drop(call(&self.simulator, |simulator| simulator.free(address)));
    }

    fn give_back(&self, address: u64, bytes: u64) {
        // No bytes were never lent.
        if bytes > 0 {
            self.free(address, bytes);
        }
    }

    fn write(&self, address: u64, data: &[u8]) -> Result<(), Diagnostic> {
        call(&self.simulator, |simulator| simulator.write(address, data))
    }

    fn read(&self, address: u64, data: &mut [u8]) -> Result<(), Diagnostic> {
        call(&self.simulator, |simulator| simulator.read_into(address, data))
    }

    fn run(&self, request: &LaunchRequest, kernarg: &mut [u8]) -> Result<LaunchCounts, Diagnostic> {
        let executable = request.executable;
        let stats = with_module(&self.simulator, executable, |simulator, module| {
            simulator.launch(module, executable.name(), config(request), kernarg)
        })?;
        Ok(LaunchCounts { stats })
    }

    fn enqueue(
        &self,
        request: &LaunchRequest,
        kernarg: &mut [u8],
        _: Option<&HipStream>,
    ) -> Result<(), Diagnostic> {
        self.run(request, kernarg).map(drop)
    }

    fn simulator(&self) -> Option<&Mutex<Simulator>> {
        Some(&self.simulator)
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
