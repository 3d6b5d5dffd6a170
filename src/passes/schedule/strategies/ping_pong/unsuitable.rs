//! Why a loop gets no ping-pong.

use thiserror::Error;

use super::super::products::OtherLoop;
use super::super::refusal::waves;
use crate::ir::nodes::Bug;
use crate::ir::types::DType;
use crate::passes::schedule::apply::copies::TooLarge;

/// Why a loop gets no ping-pong.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub(crate) enum Unsuitable {
    /// It is not a loop of this kind, or the kernel is broken.
    #[error(transparent)]
    Other(#[from] OtherLoop),
    /// No two waves of a workgroup meet on a SIMD.
    #[error("a workgroup has {}: ping-pong takes two for each of the four SIMDs, or four", waves(*.0))]
    Waves(u32),
    /// Only one of the schedules moves scales.
    #[error("products with scales take turns only where whole tiles are loaded straight into LDS")]
    ScalesBesideHalves,
    /// Loads straight into LDS need two copies of a buffer, whose addresses the vector ALU adds.
    #[error(
        "products of {0} run on the vector ALU, which addresses of loads straight into LDS would wait for"
    )]
    VectorAlu(DType),
    /// The tiles, or two copies of those that are loaded straight into LDS, do not fit.
    #[error(transparent)]
    Lds(#[from] TooLarge),
    /// Taking turns costs more than it hides.
    #[error("taking turns would need about {turns} clocks per iteration, and prefetching alone {together}")]
    NoGain {
        /// Clocks of an iteration with ping-pong.
        turns: u32,
        /// Clocks of an iteration without.
        together: u32,
    },
}

impl From<Bug> for Unsuitable {
    fn from(bug: Bug) -> Unsuitable {
        Unsuitable::Other(bug.into())
    }
}
