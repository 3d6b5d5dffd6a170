//! What passes find out stands with the representation ([`crate::ir::facts`]); here is what a compilation is
//! asked for.

use bevy_ecs::prelude::*;

use super::options::Options;
pub use crate::ir::facts::*;

/// The options of this compilation. On the kernel entity.
#[derive(Component, Clone, Debug)]
pub struct Settings(pub Options);
