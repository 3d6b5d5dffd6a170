//! What passes add to nodes and how it reads: one row per component. A pass that adds a component adds its row here.

use std::fmt::Write;

use bevy_ecs::prelude::*;

use super::symbolic::write_symbol;
use crate::ir::kernel::DimTable;
use crate::ir::node::{Op, ValueType};

/// A node in its kernel.
#[derive(Copy, Clone)]
pub struct Place<'w> {
    /// The kernel's world.
    pub world: &'w World,
    /// The kernel entity.
    pub root: Entity,
    /// The node.
    pub node: Entity,
}

/// One kind of fact about nodes.
pub struct Column {
    /// What it is called in listings.
    pub name: &'static str,
    /// Appends the fact on one line, or nothing if there is none for the node.
    pub print: fn(Place<'_>, &mut String),
}

/// All columns, in the order in which they are printed.
pub const COLUMNS: &[Column] = &[Column { name: "type", print: value_type }];

/// Types that the node's own text does not show.
fn value_type(place: Place<'_>, out: &mut String) {
    let Some(ty) = place.world.get::<ValueType>(place.node) else { return };
    let shown = matches!(place.world.get::<Op>(place.node), Some(Op::Memory | Op::Allocate | Op::Register(_)));
    let Some(dtype) = ty.dtype.filter(|_| !shown) else { return };
    out.push('[');
    for (at, &dim) in ty.dims.iter().enumerate() {
        out.push_str(if at == 0 { "" } else { ", " });
        write_symbol(out, place.world.get::<DimTable>(place.root).map_or("?", |dims| dims.name(dim)));
    }
    // Writing to a string cannot fail.
    let _ = write!(out, "] {dtype}");
}
