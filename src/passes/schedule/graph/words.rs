//! Descriptions of nodes in words, for faults and listings.

use bevy_ecs::prelude::*;

use crate::ir::diagnostic::{Diagnostic, Kind, Location};
use crate::ir::kernel::{DimTable, Locations};
use crate::ir::node::{Name, *};
use crate::ir::nodes;
use crate::ir::op::OpClass;
use crate::passes::facts::LdsBuffer;
use crate::passes::loops::expand::Expansion;

/// A fault of this compiler.
pub(crate) fn bug(text: &str) -> Diagnostic {
    Diagnostic::new(Kind::Bug, text)
}

/// Where the author wrote a node.
pub(crate) fn place(world: &World, root: Entity, node: Entity) -> Option<Location> {
    world.get::<Locations>(root)?.get(nodes::node(world, node).ok()?.origin.0)
}

/// A node in words: `the LDS write "read_a" (replica 2)`.
pub fn describe(world: &World, root: Entity, node: Entity) -> String {
    format!("{} (replica {})", describe_operation(world, root, node), Expansion::at(world, node).replica)
}

/// The operation of a node and where the author wrote it: `the LDS write at gemm.gsw:23:5`.
pub(crate) fn describe_at(world: &World, root: Entity, node: Entity) -> String {
    let what = describe_operation(world, root, node);
    match place(world, root, node) {
        Some(at) => format!("{what} at {at}"),
        None => what,
    }
}

/// The operation of a node, whichever of its replicas that is: `the LDS write "read_a"`.
pub(crate) fn describe_operation(world: &World, root: Entity, node: Entity) -> String {
    let seen = nodes::node(world, node).ok();
    let memory = seen.as_ref().and_then(|seen| seen.memory().ok());
    let shared = memory.is_some_and(|m| world.get::<LdsBuffer>(m).is_some());
    let name = memory.and_then(|m| world.get::<Name>(m)).map(|n| format!(" of {}", n.0)).unwrap_or_default();
    let what = match seen.map(|seen| *seen.op) {
        Some(Op::Read) if shared => "LDS read".to_owned(),
        Some(Op::Write) if shared => "LDS write".to_owned(),
        Some(Op::Read) => format!("global read{name}"),
        Some(Op::Write) => format!("global write{name}"),
        Some(Op::GlobalToShared) => "load to LDS".to_owned(),
        Some(op) if op.is_product() => "matrix product".to_owned(),
        Some(op) if op.row().class == OpClass::Region => match op.walks() {
            Some(dim) => format!("loop over {}", world.get::<DimTable>(root).map_or("?", |d| d.name(dim))),
            None => op.in_words().to_owned(),
        },
        Some(Op::Barrier) => "shared memory barrier".to_owned(),
        Some(Op::Control(control)) => control.word().to_owned(),
        Some(Op::IterArg(_)) => "carried value".to_owned(),
        Some(Op::Rearrange) => "layout conversion".to_owned(),
        Some(op) => crate::ir::schedule::NodeType::of(op).map_or("operation", |t| t.name()).to_owned(),
        None => "operation".to_owned(),
    };
    let logical = Expansion::at(world, node).logical;
    match world.get::<Tag>(logical).or_else(|| world.get::<Tag>(node)) {
        Some(tag) => format!("the {what} \"{}\"", tag.0),
        None => format!("the {what}"),
    }
}
