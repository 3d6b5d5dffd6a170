//! Why a loop's operations are not interleaved.

use thiserror::Error;

use super::super::products::OtherLoop;
use crate::passes::schedule::apply::copies::TooLarge;

/// Why a loop's operations are not interleaved.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub(super) enum NotInterleaved {
    /// It is not a loop of this kind, or the kernel is broken.
    #[error(transparent)]
    Other(#[from] OtherLoop),
    /// The product has more operands than the schedule has places for.
    #[error("products with scales are not interleaved")]
    Scales,
    /// No place is left between the matrix instructions of a half for the reads of the other one.
    #[error(
        "{reads} reads of LDS do not fit between the {products} matrix instructions of half an iteration"
    )]
    Few {
        /// Reads of a half.
        reads: u32,
        /// Matrix instructions of a half.
        products: u32,
    },
    /// Reads do not fall into the halves of the product.
    #[error("the first half of the product along its summed dimension reads what comes with the second half")]
    Halves,
    /// Both halves of a tile and the next one on its way are in registers.
    #[error("a wave would need about {needed} vector registers, and has {available}: use smaller tiles")]
    Registers {
        /// Registers of values.
        needed: u32,
        /// Registers that values may take.
        available: u32,
    },
    /// The tiles, or two copies of those that are loaded straight into LDS, do not fit.
    #[error(transparent)]
    Lds(#[from] TooLarge),
}
