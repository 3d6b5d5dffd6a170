//! A GPU of HIP as a device.

use std::sync::Arc;

use super::backend::{Backend, LaunchCounts, LaunchRequest};
use super::hip::{HipDevice, HipStream};
use crate::ir::diagnostic::Diagnostic;

impl Backend for Arc<HipDevice> {
    fn name(&self) -> String {
        self.describe()
    }

    fn allocate(&self, bytes: u64) -> Result<u64, Diagnostic> {
        HipDevice::allocate(self, bytes)
    }

    fn free(&self, address: u64, bytes: u64) {
        HipDevice::free(self, address, bytes);
    }

    fn write(&self, address: u64, data: &[u8]) -> Result<(), Diagnostic> {
        HipDevice::write(self, address, data)
    }

    fn read(&self, address: u64, data: &mut [u8]) -> Result<(), Diagnostic> {
        HipDevice::read(self, address, data)
    }

    fn trim(&self) -> Result<(), Diagnostic> {
        HipDevice::trim(self)
    }

    fn free_memory(&self) -> Result<Option<u64>, Diagnostic> {
        HipDevice::free_memory(self).map(Some)
    }

    fn synchronize(&self) -> Result<(), Diagnostic> {
        HipDevice::synchronize(self)
    }

    fn run(&self, request: &LaunchRequest, kernarg: &mut [u8]) -> Result<LaunchCounts, Diagnostic> {
        Backend::enqueue(self, request, kernarg, None)?;
        HipDevice::synchronize(self)?;
        Ok(LaunchCounts::default())
    }

    fn enqueue(
        &self,
        request: &LaunchRequest,
        kernarg: &mut [u8],
        stream: Option<&HipStream>,
    ) -> Result<(), Diagnostic> {
        HipDevice::enqueue(self, request.executable, request.grid, kernarg, stream)
    }

    fn hip(&self) -> Option<&Arc<HipDevice>> {
        Some(self)
    }
}
