//! Names of a loop's nodes that are the same in every compilation of a kernel with the same options.
//!
//! In `read_shared.3.5.0` the parts are the kind of node, the number of its logical node in the order of the
//! body, its replica, and the part of its operands that it takes. Tags play no role: they are the author's,
//! and have no effect on the code. `join.2` is a junction.
#![expect(clippy::disallowed_types, reason = "looked up, never iterated")]

use bevy_ecs::prelude::*;
use rustc_hash::FxHashMap;

use super::dependence_graph::NodeId;
use super::dependences::{BodyNode, LoopGraph};
use super::resources::Class;
use crate::ir::node::Op;
use cranelift_entity::PrimaryMap;

/// The keys of all nodes of a graph.
pub(crate) fn keys(found: &LoopGraph) -> PrimaryMap<NodeId, String> {
    let mut logical_numbers: FxHashMap<Entity, usize> = FxHashMap::default();
    let mut seen: FxHashMap<String, u32> = FxHashMap::default();
    let mut keys = PrimaryMap::default();
    for (&BodyNode { op, expansion, .. }, node) in found.nodes.values().zip(found.graph.nodes().values()) {
        let next = logical_numbers.len();
        let logical = *logical_numbers.entry(expansion.logical).or_insert(next);
        let word = word(op, node.class);
        let mut key = format!("{word}.{logical}.{}.{}", expansion.replica, expansion.slice);
        let times = seen.entry(key.clone()).or_insert(0);
        *times += 1;
        if *times > 1 {
            key = format!("{key}.{times}");
        }
        keys.push(key);
    }
    keys.extend((0..found.junctions().len()).map(|junction| format!("join.{junction}")));
    keys
}

/// The logical nodes of a graph with the beginnings of their nodes' keys, in the order of the body.
pub(crate) fn logical_names(found: &LoopGraph) -> Vec<(Entity, String)> {
    let mut names: Vec<(Entity, String)> = Vec::new();
    let mut seen: FxHashMap<Entity, ()> = FxHashMap::default();
    for (&BodyNode { op, expansion, .. }, node) in found.nodes.values().zip(found.graph.nodes().values()) {
        if seen.insert(expansion.logical, ()).is_none() {
            names.push((expansion.logical, format!("{}.{}", word(op, node.class), names.len())));
        }
    }
    names
}

/// The kind of a node, in one word.
fn word(op: Op, class: Class) -> &'static str {
    match (class, op) {
        (Class::Free, Op::IterArg(_)) => "carried",
        (Class::Free, Op::Register(_)) => "constant",
        (Class::Free, Op::Barrier) => "barrier",
        (Class::Free, Op::Control(_)) => "control",
        _ => class.name(),
    }
}
