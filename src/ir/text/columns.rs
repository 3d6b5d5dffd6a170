//! What passes add to nodes and how it reads: one row per component. Here are the rows for components of the representation itself;
//! passes bring rows for their own components to [`print_with`](super::print_with).

use std::fmt::Write;

use bevy_ecs::prelude::{Entity, World};

use super::symbolic::write_symbol;
use crate::ir::kernel::DimTable;
use crate::ir::layout::{Dim, Source};
use crate::ir::node::{Op, Placement, ValueType};

/// A node in its kernel.
#[derive(Copy, Clone)]
pub struct Place<'w> {
    /// The kernel's world.
    pub world: &'w World,
    /// The kernel entity.
    pub root: Entity,
    /// The node, or the kernel entity for facts about the whole kernel.
    pub node: Entity,
}

/// Where a fact stands.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Position {
    /// At the end of the node's line: for short facts that many nodes have.
    Behind,
    /// On lines of their own below the node's line (below the constraints for facts about the kernel).
    Below,
}

/// One kind of fact about nodes.
pub struct Column {
    /// What it is called in listings.
    pub name: &'static str,
    /// Where it stands.
    pub position: Position,
    /// Appends the fact, or nothing if there is none for the node. Every line of it becomes a comment.
    pub print: fn(Place<'_>, &mut String),
}

impl Place<'_> {
    /// Appends the name of a dimension.
    pub fn write_dim(self, dim: Dim, out: &mut String) {
        write_symbol(out, self.world.get::<DimTable>(self.root).map_or("?", |dims| dims.name(dim)));
    }
}

/// The columns of the representation itself, in the order in which they are printed.
pub const COLUMNS: &[Column] = &[
    Column { name: "type", position: Position::Behind, print: value_type },
    Column { name: "placement", position: Position::Below, print: placement },
];

/// Types that the node's own text does not show.
fn value_type(place: Place<'_>, out: &mut String) {
    let Some(ty) = place.world.get::<ValueType>(place.node) else { return };
    let shown = matches!(
        place.world.get::<Op>(place.node),
        Some(Op::Memory | Op::Scalar | Op::Allocate | Op::Register(_))
    );
    let Some(dtype) = ty.dtype.filter(|_| !shown) else { return };
    out.push('[');
    for (at, &dim) in ty.dims.iter().enumerate() {
        out.push_str(if at == 0 { "" } else { ", " });
        place.write_dim(dim, out);
    }
    // Writing to a string cannot fail.
    let _ = write!(out, "] {dtype}");
}

/// `lane M*16:1 K*4:4, register K*4:1`: by source, extents and strides of the dimensions; `_*2` holds the same twice.
fn placement(place: Place<'_>, out: &mut String) {
    let Some(Placement(layout)) = place.world.get::<Placement>(place.node) else { return };
    for source in Source::ALL {
        for (at, mode) in layout.of_source(source).enumerate() {
            if at == 0 {
                out.push_str(if out.is_empty() { "" } else { ", " });
                out.push_str(source.name());
            }
            out.push(' ');
            // Writing to a string cannot fail.
            let _ = match mode.dim {
                Some(dim) => {
                    place.write_dim(dim, out);
                    write!(out, "*{}:{}", mode.extent, mode.stride)
                }
                None => write!(out, "_*{}", mode.extent),
            };
        }
    }
}
