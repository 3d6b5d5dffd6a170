//! How the facts that passes find read in listings: one row per component. A pass that adds a component adds its row here.

use std::fmt::Write;

use bevy_ecs::prelude::Component;

use super::expand::{Arguments, Base, ExpandedCount, Expansion};
use super::facts::{
    BankConflicts, Bounds, DimGeometry, Expressions, Geometry, LdsBuffer, LdsBytes, Remainder,
};
use crate::ir::expr::Expr;
use crate::ir::layout::Dim;
use crate::ir::node::{Name, Op, Tag, Trip, Unrolled};
use crate::ir::text::{Column, Place, Position};

/// All columns of passes, in the order in which they are printed.
pub const COLUMNS: &[Column] = &[
    Column { name: "geometry", position: Position::Below, print: geometry },
    Column { name: "lds", position: Position::Below, print: lds_bytes },
    Column { name: "arguments", position: Position::Below, print: arguments },
    Column { name: "expanded", position: Position::Below, print: expanded_count },
    Column { name: "trip", position: Position::Behind, print: trip },
    Column { name: "bounds", position: Position::Below, print: bounds },
    Column { name: "buffer", position: Position::Below, print: buffer },
    Column { name: "bank conflicts", position: Position::Below, print: bank_conflicts },
    Column { name: "from", position: Position::Behind, print: expansion },
];

fn fact<'w, C: Component>(place: Place<'w>) -> Option<&'w C> {
    place.world.get::<C>(place.node)
}

/// Appends to a string, which cannot fail.
macro_rules! put {
    ($out:expr, $($argument:tt)*) => {
        let _ = write!($out, $($argument)*);
    };
}

fn write_expr(place: Place<'_>, expr: Expr, out: &mut String) {
    match place.world.get::<Expressions>(place.root) {
        Some(expressions) => {
            put!(out, "{}", expressions.0.display(expr));
        }
        None => out.push('?'),
    }
}

fn write_dims(place: Place<'_>, dims: &[Dim], out: &mut String) {
    for (at, &dim) in dims.iter().enumerate() {
        out.push_str(if at == 0 { "" } else { " " });
        place.write_dim(dim, out);
    }
}

/// One line per dimension, then one for the whole.
fn geometry(place: Place<'_>, out: &mut String) {
    let Some(geometry) = fact::<Geometry>(place).filter(|g| !g.dims.is_empty()) else { return };
    for (at, dim) in geometry.dims.iter().enumerate() {
        place.write_dim(Dim(at as u8), out);
        dim_geometry(place, dim, out);
        out.push('\n');
    }
    out.push_str("grid ");
    for (axis, &count) in geometry.grid.iter().enumerate() {
        out.push_str(if axis == 0 { "" } else { " x " });
        write_expr(place, count, out);
    }
    let [x, y, z] = geometry.waves;
    put!(out, ", waves {x} x {y} x {z}");
    if let Some(mma) = geometry.mma {
        put!(out, ", mma {}", mma.name().to_ascii_lowercase());
    }
    for (at, symbol) in geometry.dynamic.iter().enumerate() {
        put!(out, "{}{symbol}", if at == 0 { ", dynamic " } else { " " });
    }
}

fn dim_geometry(place: Place<'_>, dim: &DimGeometry, out: &mut String) {
    out.push_str(" = ");
    match dim.static_size {
        Some(size) => {
            put!(out, "{size}");
        }
        None => write_expr(place, dim.size, out),
    }
    if let Some((axis, tile)) = dim.workgroup {
        put!(out, ", {tile} per workgroup on axis {axis}");
    }
    if let Some(tile) = dim.wave {
        put!(out, ", {tile} per wave");
    }
    if let Some(tile) = dim.tiling {
        put!(out, ", {tile} per iteration");
    }
}

fn lds_bytes(place: Place<'_>, out: &mut String) {
    if let Some(LdsBytes(bytes)) = fact(place) {
        put!(out, "{bytes} bytes");
    }
}

fn arguments(place: Place<'_>, out: &mut String) {
    let Some(Arguments(memories)) = fact(place) else { return };
    for (at, &memory) in memories.iter().enumerate() {
        let name = place.world.get::<Name>(memory).map_or("?", |n| &n.0);
        put!(out, "{}{name}", if at == 0 { "" } else { ", " });
    }
}

fn expanded_count(place: Place<'_>, out: &mut String) {
    if let Some(ExpandedCount(count)) = fact(place) {
        put!(out, "{count} nodes");
    }
}

/// `0 .. ceildiv(K, 32)`, in tiles.
fn trip(place: Place<'_>, out: &mut String) {
    let Some(&Trip { start, end }) = fact(place) else { return };
    write_expr(place, start, out);
    out.push_str(" .. ");
    write_expr(place, end, out);
    if let Some(Unrolled(per_pass)) = fact(place) {
        put!(out, " by {per_pass}");
    }
    if fact::<Remainder>(place).is_some() {
        out.push_str(" (remainder)");
    }
}

fn bounds(place: Place<'_>, out: &mut String) {
    let Some(bounds) = fact::<Bounds>(place) else { return };
    for (what, dims) in [("leaves ", &bounds.leaves), ("masks ", &bounds.masks)] {
        if !dims.is_empty() {
            out.push_str(what);
            write_dims(place, dims, out);
            out.push_str(", ");
        }
    }
    put!(out, "granule {}", bounds.granule);
}

/// Dimensions slowest first, then how rows are stored and where.
fn buffer(place: Place<'_>, out: &mut String) {
    let Some(buffer) = fact::<LdsBuffer>(place) else { return };
    for (&dim, extent) in buffer.dims.iter().zip(&buffer.extents) {
        place.write_dim(dim, out);
        put!(out, "*{extent} ");
    }
    let row = buffer.extents.last().map_or(0, |e| e.saturating_mul(buffer.element_bytes));
    put!(out, "of {} bytes, pitch {}", buffer.element_bytes, buffer.pitch);
    if buffer.pitch > row {
        put!(out, " ({} padding)", buffer.pitch - row);
    }
    if let Some(swizzle) = buffer.swizzle {
        put!(out, ", swizzle of {} bytes, {} phases by {} rows", swizzle.unit, swizzle.phases, swizzle.group);
    }
    put!(out, ", {} bytes", buffer.bytes);
    if buffer.copies > 1 {
        put!(out, " x {}", buffer.copies);
    }
    put!(out, " at {}", buffer.offset);
}

fn bank_conflicts(place: Place<'_>, out: &mut String) {
    match fact(place) {
        Some(BankConflicts(1)) => out.push_str("none"),
        Some(BankConflicts(degree)) => {
            put!(out, "degree {degree}");
        }
        None => {}
    }
}

/// The replica, and for `mma` the first of the register elements that it multiplies; with the tag of the logical node.
fn expansion(place: Place<'_>, out: &mut String) {
    let Some(expansion) = fact::<Expansion>(place) else { return };
    if let Some(tag) = place.world.get::<Tag>(expansion.logical) {
        put!(out, "{} ", tag.0.escape_default());
    }
    put!(out, "replica {}", expansion.replica);
    if matches!(fact::<Op>(place), Some(Op::Mma(_))) {
        put!(out, " slice {}", expansion.slice);
    }
    let ahead = expansion.iteration.ahead;
    let _ = match expansion.iteration.base {
        Base::Written => Ok(()),
        Base::Start => write!(out, " iteration {ahead}"),
        Base::Pass => write!(out, " iteration pass + {ahead}"),
        Base::End => write!(out, " iteration end + {ahead}"),
    };
}
