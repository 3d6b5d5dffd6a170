//! The numbers that some nodes have in a table, found by entity.

use bevy_ecs::prelude::*;

use cranelift_entity::EntityRef;
use cranelift_entity::packed_option::{PackedOption, ReservedValue};

/// Numbers of type `I` of some nodes, by entity index.
pub(crate) struct EntityNumbers<I: ReservedValue>(Vec<PackedOption<I>>);

impl<I: EntityRef + ReservedValue> EntityNumbers<I> {
    /// A table in which these nodes, and no others, can get numbers.
    pub(crate) fn of(nodes: impl Iterator<Item = Entity>) -> EntityNumbers<I> {
        let size = nodes.map(|node| node.index_u32() as usize + 1).max().unwrap_or(0);
        EntityNumbers(vec![PackedOption::default(); size])
    }

    /// A table that numbers these nodes in their order, from 0 on.
    pub(crate) fn in_order(nodes: impl Iterator<Item = Entity> + Clone) -> EntityNumbers<I> {
        let mut numbers = EntityNumbers::of(nodes.clone());
        nodes.enumerate().for_each(|(at, node)| numbers.insert(node, I::new(at)));
        numbers
    }

    /// Gives a node of the table its number.
    pub(crate) fn insert(&mut self, node: Entity, number: I) {
        self.0[node.index_u32() as usize] = number.into();
    }

    /// The number of a node, if it has one.
    pub(crate) fn get(&self, node: Entity) -> Option<I> {
        self.0.get(node.index_u32() as usize)?.expand()
    }
}
