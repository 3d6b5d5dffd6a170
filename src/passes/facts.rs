//! Facts that passes find out belong to the representation ([`crate::ir::facts`]); this module has the
//! options of a compilation.

use bevy_ecs::prelude::*;

use super::options::Options;
pub(crate) use crate::ir::facts::*;

/// The options of this compilation. On the kernel entity.
#[derive(Component, Clone, Debug)]
pub(crate) struct Settings(pub Options);
