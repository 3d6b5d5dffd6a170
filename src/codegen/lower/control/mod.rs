//! Regions of a kernel: the walk over their nodes, loops, branches, and what they hand on.
//!
//! - `prologue`: arguments and what the hardware sets
//! - `uses`: how often values are used
//! - `regions`: the nodes of a region
//! - `loops`: loops and pipelines
//! - `under_condition`: regions under a condition
//! - `persistent`: the loop over tiles of workgroups that share the grid
//! - `carried`: values that regions carry; `carried_moves`: their moves at the end of a trip

mod carried;
mod carried_moves;
mod loops;
mod persistent;
mod prologue;
mod regions;
mod under_condition;
mod uses;

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use self::persistent::OpenTiles;
use super::lowered::Lowered;
use super::operations::OperationLayer;
use super::values::places::ValuePlace;
use crate::ir::diagnostic::Diagnostic;
use crate::ir::node_map::NodeMap;

/// Writes the regions of a kernel.
pub(crate) struct ControlLayer<'a> {
    operations: OperationLayer<'a>,
    /// Places of the values that finished loops carried, by expanded loop.
    results: NodeMap<SmallVec<[ValuePlace; 4]>>,
    /// The loop over tiles of workgroups that share the grid.
    tiles: Option<OpenTiles>,
}

layer!(ControlLayer, operations: OperationLayer);

impl<'a> ControlLayer<'a> {
    #[inline]
    pub(super) fn new(operations: OperationLayer<'a>) -> ControlLayer<'a> {
        ControlLayer { operations, results: NodeMap::default(), tiles: None }
    }

    /// Writes the kernel at `root`, whose arguments at the beginning are in SGPRs as far as they fit into
    /// `user_sgprs`.
    ///
    /// # Errors
    /// Kernels that the target or this back end cannot compile.
    pub(super) fn kernel(
        mut self,
        root: Entity,
        arguments: &[Entity],
        user_sgprs: u32,
    ) -> Result<Lowered, Diagnostic> {
        self.count_uses(root)?;
        self.prologue(arguments, user_sgprs)?;
        self.region(root)?;
        self.close_tiles();
        self.emitter.finish();
        Ok(std::mem::take(&mut self.emitter.out))
    }
}
