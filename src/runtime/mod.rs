//! Running kernels: compilation and its cache, devices, buffers, launches, and the simulator.
pub mod compile;
pub mod executable;
pub mod report;
pub mod sim;
