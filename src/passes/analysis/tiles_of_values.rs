//! Tiles of shared memories whose rows stand where values say: a token's slot in a page, or its place in an
//! order. They go through LDS as other tiles do if the workgroup can load them together, each lane whole
//! pieces of a row: the elements of a row lie side by side, and the values can be made again for the row that
//! a lane loads, which is another one than that of its factor.

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

use super::memory_strides::in_memory_order;
use crate::ir::expr::{SymExpr, SymNode, SymOp, Symbol};
use crate::ir::mapping::{Mapping, is_value};
use crate::ir::memory_layout::Strides;
use crate::ir::node::*;
use crate::ir::nodes::Bug;
use crate::ir::op::LayoutRule;
use crate::passes::facts::Geometry;

/// The most nodes that are made again for a value.
const MOST_NODES: u32 = 32;

/// A node as whoever asks sees it.
pub(in crate::passes) struct SeenNode<'a> {
    pub(in crate::passes) op: Op,
    pub(in crate::passes) operands: &'a [Entity],
    pub(in crate::passes) ty: &'a ValueType,
    pub(in crate::passes) is_volatile: bool,
}

impl SeenNode<'_> {
    /// Those of its operands that are values: the last one of an access is its memory.
    pub(in crate::passes) fn values(&self) -> &[Entity] {
        &self.operands[..self.operands.len() - usize::from(self.op.is_access())]
    }
}

/// True for a read at such places that the workgroup can load together.
///
/// # Errors
/// A node lacks what nodes have.
pub(in crate::passes) fn is_tile_of_rows<'a>(
    read: &SeenNode<'a>,
    (mapping, strides): (&Mapping, Option<&Strides>),
    geometry: &Geometry,
    see: &impl Fn(Entity) -> Result<SeenNode<'a>, Bug>,
) -> Result<bool, Bug> {
    let Some(&inner) = read.ty.dims.last() else { return Ok(false) };
    let along = geometry.dim(inner).symbol;
    let is_along = in_memory_order(mapping, strides).last().is_some_and(|last| steps_along(last, along));
    if read.is_volatile || !is_along || geometry.workgroup_tile(&read.ty.dims).is_none() {
        return Ok(false);
    }
    let mut has_places = false;
    for &value in read.values() {
        let dims = &see(value)?.ty.dims;
        if dims.contains(&inner) || !is_made_again(value, see, &mut { MOST_NODES })? {
            return Ok(false);
        }
        has_places |= geometry.workgroup_tile(dims).is_some_and(|tile| tile.iter().any(|&rows| rows > 1));
    }
    // A tile whose rows all have the same place, as the matrix of a block's expert, is read as fast by each
    // wave: grouped products took 12 to 18 % longer through LDS (time mode, gfx942).
    Ok(has_places)
}

/// True if a coordinate is that along a dimension and a sum that neither this nor values have a part in.
fn steps_along(coordinate: &SymExpr, along: Symbol) -> bool {
    let is_beside = |other: &SymExpr| {
        let mut beside = true;
        let other = Mapping(SmallVec::from_elem(other.clone(), 1));
        other.visit(&mut |symbol| beside &= symbol != along && !is_value(symbol));
        beside
    };
    match coordinate.node() {
        SymNode::Symbol(symbol) => *symbol == along,
        SymNode::Operation(SymOp::Add, a, b) => {
            steps_along(a, along) && is_beside(b) || steps_along(b, along) && is_beside(a)
        }
        SymNode::Operation(..) | SymNode::Int(_) | SymNode::TooDeep => false,
    }
}

/// True if a value can be made again in any layout: of constants and places, of what is computed element by
/// element, and of reads that give the same twice.
fn is_made_again<'a>(
    value: Entity,
    see: &impl Fn(Entity) -> Result<SeenNode<'a>, Bug>,
    left: &mut u32,
) -> Result<bool, Bug> {
    let seen = see(value)?;
    if seen.ty.dims.is_empty() {
        return Ok(true);
    }
    let is_kind = match seen.op.layout_rule() {
        LayoutRule::OfUsers | LayoutRule::WithOperands => true,
        LayoutRule::WithValues(_) => seen.op.loads() && !seen.is_volatile,
        LayoutRule::Own => seen.op == Op::Rearrange,
        LayoutRule::None
        | LayoutRule::OfInstruction
        | LayoutRule::Along(_)
        | LayoutRule::Carries
        | LayoutRule::Carried(_) => false,
    };
    if !is_kind || *left == 0 {
        return Ok(false);
    }
    *left -= 1;
    for &operand in seen.values() {
        if !is_made_again(operand, see, left)? {
            return Ok(false);
        }
    }
    Ok(true)
}
