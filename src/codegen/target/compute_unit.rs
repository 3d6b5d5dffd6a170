//! Properties that the compute units of all chips here share, as constants: code that counts millions of
//! lines divides by them.

/// Clk between two issue turns of a SIMD: the value of [`Parameter::Turn`](super::DeviceParameter::Turn) for
/// every device. H, rocprofiler-compute documentation, "Scheduler".
pub(crate) const TURN: u64 = 4;

/// SIMDs: the value of [`TargetInfo::simds_per_compute_unit`](super::TargetInfo::simds_per_compute_unit) for
/// every target. H, CDNA white papers.
pub(crate) const SIMDS: usize = 4;

/// SIMDs in the order in which they get waves. M, published thread traces of gfx950.
pub(crate) const WAVE_ORDER: [usize; SIMDS] = [0, 2, 1, 3];

/// Pairs of SIMDs, each with a port of its own to LDS. H, rocprofiler-compute documentation; measured by
/// PYHIP.
pub(crate) const LDS_PORTS: u32 = 2;

/// The pair of each SIMD: SIMD 0 goes with 2, and 1 with 3. M, AMD hardware staff quoted in
/// ROCm/gfx950-gluon-tutorials, gemm/inter_wave.
pub(crate) const LDS_PAIR: [usize; SIMDS] = [0, 1, 0, 1];

/// Bytes of a line of the instruction cache. H, CDNA white papers.
pub(crate) const CODE_LINE: u64 = 64;

/// Bytes of a line of the scalar cache. H, CDNA white papers.
pub(crate) const SCALAR_LINE: u64 = 64;

/// Bytes of a line of L2 and of the Infinity Cache. H, CDNA white papers.
pub(crate) const SHARED_LINE: u64 = 128;

/// Ways of L2 and of the Infinity Cache. H, CDNA 3 white paper; assumed of the other chips, and of the scalar
/// cache.
pub(crate) const SHARED_WAYS: u64 = 16;

#[cfg(test)]
mod tests {
    use super::super::{DeviceModel, DeviceParameter, Target};
    use super::*;

    #[test]
    fn what_is_common_is_what_every_table_says() {
        assert!(DeviceModel::ALL.iter().all(|device| device.count(DeviceParameter::Turn) == TURN));
        assert!(Target::ALL.iter().all(|target| target.simds_per_compute_unit as usize == SIMDS));
    }
}
