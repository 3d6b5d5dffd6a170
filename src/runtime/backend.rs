//! What a device does, whichever it is: a GPU (`gpu`) or the simulator (`simulated`).

use std::sync::Arc;
#[cfg(feature = "compiler")]
use std::sync::Mutex;

use super::executable::Executable;
use super::hip::{HipDevice, HipStream};
#[cfg(feature = "compiler")]
use super::sim::{LaunchStats, Limits, Simulator, WaveOrder};
use crate::ir::diagnostic::Diagnostic;

/// What is counted of a launch; without the simulator, nothing.
#[derive(Default)]
pub(super) struct LaunchCounts {
    #[cfg(feature = "compiler")]
    pub(super) stats: LaunchStats,
}

/// What is launched.
pub(super) struct LaunchRequest<'a> {
    pub(super) executable: &'a Executable,
    /// Workgroups along each axis.
    pub(super) grid: [u32; 3],
    /// Where the simulator stops.
    #[cfg(feature = "compiler")]
    pub(super) limits: Limits,
    /// The order of the waves of a workgroup on the simulator.
    #[cfg(feature = "compiler")]
    pub(super) order: WaveOrder,
}

/// A device as the runtime sees it. Addresses are those of the device.
pub(super) trait Backend: Send + Sync {
    /// One line for people.
    fn name(&self) -> String;

    fn allocate(&self, bytes: u64) -> Result<u64, Diagnostic>;

    /// Gives memory back that nothing uses any more.
    fn free(&self, address: u64, bytes: u64);

    /// Memory of somebody else is no longer the device's.
    fn give_back(&self, _address: u64, _bytes: u64) {}

    fn write(&self, address: u64, data: &[u8]) -> Result<(), Diagnostic>;

    fn read(&self, address: u64, data: &mut [u8]) -> Result<(), Diagnostic>;

    /// Gives memory of freed buffers back that is kept for new ones.
    fn trim(&self) -> Result<(), Diagnostic> {
        Ok(())
    }

    /// Bytes of memory that are left, if it is known.
    fn free_memory(&self) -> Result<Option<u64>, Diagnostic> {
        Ok(None)
    }

    /// Waits until everything that was enqueued has happened.
    fn synchronize(&self) -> Result<(), Diagnostic> {
        Ok(())
    }

    /// Launches and waits.
    fn run(&self, request: &LaunchRequest, kernarg: &mut [u8]) -> Result<LaunchCounts, Diagnostic>;

    /// Enqueues a launch on a stream, or on the default one.
    fn enqueue(
        &self,
        request: &LaunchRequest,
        kernarg: &mut [u8],
        stream: Option<&HipStream>,
    ) -> Result<(), Diagnostic>;

    /// The GPU, if it is one.
    fn hip(&self) -> Option<&Arc<HipDevice>> {
        None
    }

    /// The simulator, if it is that.
    #[cfg(feature = "compiler")]
    fn simulator(&self) -> Option<&Mutex<Simulator>> {
        None
    }
}
