//! The simulator: runs any AMDHSA code object, knows nothing of the IR.
//!
//! Three modes: *run* executes the bytes of a code object, fast, and every instruction is complete before the
//! next one starts; *check* (`check`) executes the same in an adversarial order and reports what is wrong;
//! *time* (`time`) says how long a launch takes, and why.
//!
//! Code is decoded once (`program`), workgroups run in parallel (`dispatch`), lanes are loops over arrays of
//! 64 that the compiler vectorises (`execute`).
//!
//! All modes have one decoder, one executor, one state per wave (`wave`) and one start of a launch
//! (`start`). Private memory belongs to the wave; all waves see theirs through one window of device
//! addresses, which the private segment's buffer descriptor and scalar memory use.
//!
//! ```
//! use groundswell::target::Target;
//! use groundswell::simulator::Simulator;
//! let mut device = Simulator::new(Target::GFX942);
//! let buffer = device.alloc(4)?;
//! device.write(buffer, &[1, 2, 3, 4])?;
//! assert_eq!(device.read(buffer, 4)?, [1, 2, 3, 4]);
//! assert!(device.load(b"not a code object").is_err());
//! # Ok::<(), groundswell::simulator::SimError>(())
//! ```

mod check;
mod dispatch;
mod error;
mod exact;
mod execute;
mod formats;
mod kernarg;
mod launch_config;
mod lazy_copy;
mod memory;
mod module;
mod numerics;
mod powers;
mod program;
mod progress;
mod random;
mod register_bits;
mod rounds;
mod start;
mod stats;
pub mod time;
mod turns;
mod wave;
mod wave_order;
mod words;

use std::marker::PhantomData;
use std::ops::Deref;

use crate::codegen::target::{Target, TargetId};

pub use crate::codegen::rules::Erratum;
pub use check::{
    AdviceReader, CauseKey, CheckOptions, CheckReport, Finding, FindingCause, FindingKind, FindingSource,
    Lanes, Memory, MorePlaces, Site, Touch, TouchedBytes, Unordered, Use, WaitCounter,
};
pub use error::{Fault, FaultKind, MemoryAccess, SimError};
pub use launch_config::{LaunchConfig, Limits};
pub use module::{LoadedVariable, Module};
pub use progress::{LaunchProgress, Overrun};
pub use stats::LaunchStats;
pub use wave_order::WaveOrder;

/// A device with a copy of another one's memory ([`Simulator::copy`]).
#[derive(Debug)]
pub struct SimulatorCopy<'a> {
    copy: Simulator,
    /// Memory that both share goes only after the copy.
    of: PhantomData<&'a Simulator>,
}

impl Deref for SimulatorCopy<'_> {
    type Target = Simulator;

    fn deref(&self) -> &Simulator {
        &self.copy
    }
}

/// A simulated device.
#[derive(Debug)]
pub struct Simulator {
    target: TargetId,
    memory: memory::DeviceMemory,
}

impl Simulator {
    /// A device with empty memory: of a [`Target`], which runs objects for any mode of it, or of a
    /// [`TargetId`], which runs those that a chip in these modes does. For a generic target it is its oldest
    /// chip.
    pub fn new(target: impl Into<TargetId>) -> Simulator {
        Simulator { target: target.into().chip(), memory: memory::DeviceMemory::new() }
    }

    /// The chip it stands for.
    pub fn target(&self) -> Target {
        self.target.target()
    }

    /// Allocates zeroed device memory; returns its address, a multiple of 256.
    pub fn alloc(&mut self, bytes: u64) -> Result<u64, SimError> {
        self.memory.allocate(bytes)
    }

    /// Gives an allocation back.
    pub fn free(&mut self, address: u64) -> Result<(), SimError> {
        self.memory.free(address)
    }

    /// Makes memory of the host a part of the device's, at its own address, until [`free`](Self::free) is
    /// called with that address. Kernels and the host then see the same bytes, and check mode takes all of
    /// them for written.
    ///
    /// # Errors
    /// The address is not a multiple of 4, or the device has memory there already.
    ///
    /// # Safety
    /// The bytes, rounded up to whole words, are mapped, readable and writable until they are given back or
    /// the simulator is dropped, and meanwhile nothing holds a Rust reference to them. What the host writes
    /// while a kernel runs may or may not be seen by it, as on hardware.
    #[allow(unsafe_code)]
    pub unsafe fn lend(&mut self, address: *mut u8, bytes: u64) -> Result<(), SimError> {
        // SAFETY: the caller vouches for it.
        unsafe { self.memory.lend(address, bytes, bytes) }
    }

    /// The same for memory that ends within its last page. Of its `room` bytes those after the first `bytes`
    /// belong to nobody, and no hardware stops a kernel that accesses them: run mode forgives it and says so
    /// ([`LaunchStats::past_end`]), check mode reports it.
    ///
    /// # Errors
    /// As [`lend`](Self::lend).
    ///
    /// # Safety
    /// As [`lend`](Self::lend), for all of the room.
    #[allow(unsafe_code)]
    pub unsafe fn lend_in_pages(&mut self, address: *mut u8, bytes: u64, room: u64) -> Result<(), SimError> {
        // SAFETY: the caller vouches for it.
        unsafe { self.memory.lend(address, bytes, room) }
    }

    /// Nothing of the allocation that starts there counts as written any more: check mode reports who reads
    /// it. Its bytes stay what they are.
    ///
    /// # Errors
    /// No allocation starts there.
    pub fn forget_contents(&self, address: u64) -> Result<(), SimError> {
        self.memory.forget_contents(address)
    }

    /// A device with a copy of this one's memory at the same addresses, on which modules of this one can be
    /// launched without leaving anything here. Memory that the host has [lent](Self::lend) is copied page by
    /// page as it is used, so the copy costs what is used of it; where `shares` names it by its address, it
    /// belongs to both.
    ///
    /// # Errors
    /// The host has no memory for it.
    pub fn copy(&self, shares: impl Fn(u64) -> bool) -> Result<SimulatorCopy<'_>, SimError> {
        let copy = Simulator { target: self.target, memory: self.memory.copy(shares)? };
        Ok(SimulatorCopy { copy, of: PhantomData })
    }

    /// Start and size of the allocation that an address lies in.
    pub fn allocation_of(&self, address: u64) -> Option<(u64, u64)> {
        self.memory.allocation_of(address)
    }

    /// Copies bytes to the device. They must fit into one allocation.
    pub fn write(&self, address: u64, data: &[u8]) -> Result<(), SimError> {
        self.memory.write(address, data)
    }

    /// Copies bytes from the device. They must lie in one allocation.
    pub fn read(&self, address: u64, bytes: usize) -> Result<Vec<u8>, SimError> {
        // Checked before the host makes room for them.
        self.memory.host_range(address, bytes as u64)?;
        let mut data = vec![0; bytes];
        self.memory.read(address, &mut data)?;
        Ok(data)
    }

    /// Copies bytes from the device to where the host wants them. They must lie in one allocation.
    pub fn read_into(&self, address: u64, data: &mut [u8]) -> Result<(), SimError> {
        self.memory.read(address, data)
    }

    /// True if all of `bytes` bytes from `address` on have been written: by the host, or by a kernel in check
    /// mode with data that are defined.
    pub fn is_written(&self, address: u64, bytes: u64) -> bool {
        self.memory.is_written(address, bytes)
    }

    /// Loads a code object.
    pub fn load(&mut self, code_object: &[u8]) -> Result<Module, SimError> {
        Module::load(&mut self.memory, self.target, code_object)
    }

    /// Takes a code object out of memory.
    pub fn unload(&mut self, module: Module) -> Result<(), SimError> {
        self.memory.free(module.address)
    }

    /// Runs a kernel to its end. `kernarg` are the bytes of its explicit arguments as the kernel argument
    /// segment holds them; arguments that the metadata asks the runtime for are filled in.
    pub fn launch(
        &self,
        module: &Module,
        kernel: &str,
        config: LaunchConfig,
        kernarg: &[u8],
    ) -> Result<LaunchStats, SimError> {
        dispatch::launch(&self.memory, self.target(), module, kernel, config, kernarg)
    }

    /// Runs a kernel to its end like [`launch`](Self::launch), in an order that the seed decides, and reports
    /// what it does that hardware need not tolerate.
    pub fn check(
        &self,
        module: &Module,
        kernel: &str,
        config: LaunchConfig,
        kernarg: &[u8],
        options: &CheckOptions,
    ) -> Result<CheckReport, SimError> {
        check::check(&self.memory, self.target(), module, kernel, (config, kernarg), options)
    }

    /// Estimates how long a launch takes on a device: simulates one compute unit clock by clock, see
    /// [`time`].
    pub fn time(
        &self,
        module: &Module,
        kernel: &str,
        config: LaunchConfig,
        kernarg: &[u8],
        options: &time::TimeOptions,
    ) -> Result<time::TimeReport, SimError> {
        time::time(&self.memory, self.target(), module, kernel, (config, kernarg), options)
    }
}
