//! Why a loop does not run quadrant by quadrant.

use thiserror::Error;

use super::super::unsuitable::Unsuitable;
use crate::ir::nodes::Bug;
use crate::passes::schedule::strategies::products::OtherLoop;

/// Why a loop does not run quadrant by quadrant.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub(super) enum NotInQuadrants {
    /// The kernel is broken.
    #[error(transparent)]
    Broken(Bug),
    /// Its waves cannot take turns at all.
    #[error(transparent)]
    Turns(Unsuitable),
    /// A factor or the product does not fall into two equal parts.
    #[error(
        "the {0} factor of a wave's tile is not two equal halves that are multiplied one after the other"
    )]
    Halves(&'static str),
    /// Even with shared registers there are too few.
    #[error("a wave would need about {needed} vector registers, and has {available}: use smaller tiles")]
    Registers {
        /// Registers of values.
        needed: u32,
        /// Registers that values may take.
        available: u32,
    },
}

impl From<Bug> for NotInQuadrants {
    fn from(bug: Bug) -> NotInQuadrants {
        NotInQuadrants::Broken(bug)
    }
}

impl From<Unsuitable> for NotInQuadrants {
    fn from(why: Unsuitable) -> NotInQuadrants {
        if let Unsuitable::Other(OtherLoop::Broken(bug)) = why {
            NotInQuadrants::Broken(bug)
        } else {
            NotInQuadrants::Turns(why)
        }
    }
}

impl From<OtherLoop> for NotInQuadrants {
    fn from(why: OtherLoop) -> NotInQuadrants {
        Unsuitable::from(why).into()
    }
}
