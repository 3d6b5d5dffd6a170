//! Why a loop gets no ping-pong.

use thiserror::Error;

use crate::ir::nodes::Bug;
use crate::ir::types::DType;
use crate::passes::schedule::apply::copies::TooLarge;

/// Why a loop gets no ping-pong.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub(crate) enum Unsuitable {
    /// The kernel is broken.
    #[error(transparent)]
    Broken(#[from] Bug),
    /// No two waves of a workgroup meet on a SIMD.
    #[error("a workgroup has {0} waves: ping-pong takes two for each of the four SIMDs, or four")]
    Waves(u32),
    /// Nothing to compute.
    #[error("the loop has no matrix product over its dimension")]
    NoProduct,
    /// More than one.
    #[error("the loop has more than one matrix product")]
    SeveralProducts,
    /// Factors do not come through LDS.
    #[error("the {0} factor of the product is not loaded through LDS")]
    NotThroughLds(&'static str),
    /// One of the two is loaded straight into LDS.
    #[error("one factor of the product is loaded straight into LDS and the other is not")]
    DifferentWays,
    /// Scales do not go the way that the schedules have for them.
    #[error("the scales of the product do not go through registers into LDS")]
    Scales,
    /// Only one of the schedules moves scales.
    #[error("products with scales take turns only where whole tiles are loaded straight into LDS")]
    ScalesBesideHalves,
    /// Both factors are the same.
    #[error("both factors of the product are one")]
    OneFactor,
    /// Loads straight into LDS need two copies of a buffer, whose addresses the vector ALU adds.
    #[error(
        "products of {0} run on the vector ALU, which addresses of loads straight into LDS would wait for"
    )]
    VectorAlu(DType),
    /// Something that belongs to no cluster.
    #[error("the loop holds {0} beside loads and the product")]
    Others(&'static str),
    /// Matrix instructions that cannot be cut in two.
    #[error("a tile has {0} steps along the loop's dimension, which are not two equal parts")]
    Steps(u32),
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
