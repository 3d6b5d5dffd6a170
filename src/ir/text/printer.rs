//! What the printer keeps, and how it writes values and dimensions.
#![expect(clippy::disallowed_types, reason = "looked up, never iterated")]

use std::fmt::Write;

use bevy_ecs::prelude::{Entity, World};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Detail;
use super::symbolic::write_symbol;
use crate::ir::kernel::DimTable;
use crate::ir::layout::Dim;
use crate::ir::memory_layout::Strides;
use crate::ir::node::*;
use crate::ir::node_map::NodeMap;
use crate::ir::types::DType;

/// The definitions of a loop: carried values as the body sees them and as they leave the loop; `None` for one
/// that has no node.
#[derive(Default)]
pub(super) struct Carried {
    pub(super) args: SmallVec<[Option<Entity>; 4]>,
    pub(super) results: SmallVec<[Option<Entity>; 4]>,
}

pub(super) struct Printer<'w> {
    pub(super) world: &'w World,
    pub(super) root: Entity,
    pub(super) detail: Detail,
    /// The pass after which the kernel stands.
    pub(super) stage: Option<&'w str>,
    pub(super) names: FxHashMap<Entity, u32>,
    /// By loop; only looked up.
    pub(super) carried: FxHashMap<Entity, Carried>,
    /// Numbers of the logical nodes of an expanded kernel.
    pub(super) logical: NodeMap<u32>,
    pub(super) out: String,
    pub(super) depth: usize,
}

impl<'w> Printer<'w> {
    pub(super) fn op(&self, node: Entity) -> Option<Op> {
        self.world.get::<Op>(node).copied()
    }

    pub(super) fn body(&self, node: Entity) -> &'w [Entity] {
        self.world.get::<Body>(node).map_or(&[], |body| &body.0)
    }

    pub(super) fn operands(&self, node: Entity) -> &'w [Entity] {
        self.world.get::<Operands>(node).map_or(&[], |operands| &operands.0)
    }

    pub(super) fn write(&mut self, arguments: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.out.write_fmt(arguments);
    }

    pub(super) fn values(&mut self, nodes: &[Entity]) {
        for (at, &node) in nodes.iter().enumerate() {
            self.out.push_str(if at == 0 { "" } else { ", " });
            self.value(node);
        }
    }

    pub(super) fn value(&mut self, node: Entity) {
        match (self.names.get(&node).copied(), self.world.get::<Name>(node)) {
            (Some(number), _) => self.write(format_args!("%{number}")),
            (None, Some(name)) => self.out.push_str(&name.0),
            (None, None) => self.out.push_str("%?"),
        }
    }

    pub(super) fn dim(&mut self, dim: Dim) {
        let dims = self.world.get::<DimTable>(self.root);
        write_symbol(&mut self.out, dims.map_or("?", |dims| dims.name(dim)));
    }

    pub(super) fn shape(&mut self, dims: &[Dim]) {
        self.out.push('[');
        for (at, &dim) in dims.iter().enumerate() {
            self.out.push_str(if at == 0 { "" } else { ", " });
            self.dim(dim);
        }
        self.out.push(']');
    }

    /// ` strides [HP * WP, WP, 1]`.
    pub(super) fn strides(&mut self, strides: &Strides) {
        self.out.push_str(" strides [");
        for (at, factors) in strides.0.iter().enumerate() {
            self.out.push_str(if at == 0 { "" } else { ", " });
            for (at, &factor) in factors.iter().enumerate() {
                self.out.push_str(if at == 0 { "" } else { " * " });
                self.dim(factor);
            }
            self.out.push_str(if factors.is_empty() { "1" } else { "" });
        }
        self.out.push(']');
    }

    /// A constant of a dtype; in a text with attributes, as the parser makes it.
    pub(super) fn constant(&mut self, constant: Constant, dtype: Option<DType>) {
        let constant = match constant {
            Constant::Integer(value) if self.stage.is_some() => {
                dtype.map_or(constant, |dtype| Constant::Integer(value).read_as(dtype))
            }
            constant => constant,
        };
        write_constant(&mut self.out, constant);
    }
}

/// A constant, exactly. The form decides the kind: a float always has a point, an exponent or a name.
pub(super) fn write_constant(out: &mut String, constant: Constant) {
    // Writing to a string cannot fail.
    let _ = match constant {
        Constant::Integer(value) => write!(out, "{value}"),
        Constant::Float(value) if value.is_nan() && value.to_bits() == f64::NAN.to_bits() => {
            write!(out, "nan")
        }
        Constant::Float(value) if value.is_nan() => write!(out, "nan({:#018x})", value.to_bits()),
        Constant::Float(value) => write!(out, "{value:?}"),
    };
}
