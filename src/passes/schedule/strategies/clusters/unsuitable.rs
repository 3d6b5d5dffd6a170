//! Why a loop does not run in clusters.

use thiserror::Error;

use super::super::refusal::waves;
use crate::ir::nodes::Bug;
use crate::passes::schedule::apply::copies::TooLarge;

/// Why a loop does not run in clusters.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub(super) enum NotClustered {
    /// The kernel is broken.
    #[error(transparent)]
    Broken(#[from] Bug),
    /// No two waves of a workgroup meet on a SIMD.
    #[error("a workgroup has {}: clusters take two for each SIMD, or a multiple of that", waves(*.0))]
    Waves(u32),
    /// There are not several products with arithmetic between them.
    #[error("the loop has no {0}: clusters are for chains of products with arithmetic between them")]
    NoChain(&'static str),
    /// Something that has no place in a cluster.
    #[error("the loop holds {0}")]
    Others(&'static str),
    /// What a product reads was computed by another wave in the same iteration.
    #[error("waves exchange values between its operations: {0}")]
    RoundTrip(String),
    /// What the next iteration needs is there only after it.
    #[error("an iteration would need what the one before it has not computed yet")]
    Carried,
    /// The copies of the tiles do not fit.
    #[error(transparent)]
    Lds(#[from] TooLarge),
}
