//! Why a loop is not one product of factors that it loads through LDS.

use thiserror::Error;

use crate::ir::nodes::Bug;

/// Why a loop is not one product of factors that it loads through LDS.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub(crate) enum OtherLoop {
    /// The kernel is broken.
    #[error(transparent)]
    Broken(#[from] Bug),
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
    /// Both factors are the same.
    #[error("both factors of the product are one")]
    OneFactor,
    /// Something that belongs to no cluster.
    #[error("the loop holds {0} beside loads and the product")]
    Others(&'static str),
    /// Matrix instructions that cannot be cut in two.
    #[error("a tile has {0} steps along the loop's dimension, which are not two equal parts")]
    Steps(u32),
}
