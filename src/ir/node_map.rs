//! Sets of nodes, and values for nodes, found by entity index in constant time.

use std::ops::{Index, IndexMut};

use bevy_ecs::prelude::*;
use smallvec::SmallVec;

/// A value for each of many nodes, by entity index: what a pass keeps beside the nodes and does not need
/// afterwards. Where only some nodes have a value, or their order matters, a [`NodeMap`] is the better table.
#[derive(Clone, Debug)]
pub(crate) struct Side<T>(SmallVec<[T; 64]>);

impl<T: Clone> Side<T> {
    /// A table with the same value for all of these nodes.
    pub(crate) fn of(nodes: &[Entity], value: T) -> Side<T> {
        Side(SmallVec::from_elem(value, size_for(nodes)))
    }

    /// Makes it a table with the same value for all of these nodes, and keeps the memory.
    pub(crate) fn refill(&mut self, nodes: &[Entity], value: T) {
        self.0.clear();
        self.0.resize(size_for(nodes), value);
    }

    /// The value of a node, if the table is as large.
    pub(crate) fn get(&self, node: Entity) -> Option<&T> {
        self.0.get(node.index_u32() as usize)
    }
}

/// Entries of a table by entity index that holds these nodes.
fn size_for(nodes: &[Entity]) -> usize {
    nodes.iter().map(|node| node.index_u32() as usize + 1).max().unwrap_or(0)
}

/// A node that was not there when the table was made is a fault of the pass, as an index out of range is.
impl<T> Index<Entity> for Side<T> {
    type Output = T;

    fn index(&self, node: Entity) -> &T {
        &self.0[node.index_u32() as usize]
    }
}

impl<T> IndexMut<Entity> for Side<T> {
    fn index_mut(&mut self, node: Entity) -> &mut T {
        &mut self.0[node.index_u32() as usize]
    }
}

/// A set of nodes: a bit for each entity index.
#[derive(Clone, Default, Debug)]
pub(crate) struct NodeSet(SmallVec<[u64; 8]>);

impl NodeSet {
    /// Puts a node in.
    pub(crate) fn insert(&mut self, node: Entity) {
        let (word, bit) = place(node);
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= bit;
    }

    /// Takes a node out.
    pub(crate) fn remove(&mut self, node: Entity) {
        let (word, bit) = place(node);
        if let Some(word) = self.0.get_mut(word) {
            *word &= !bit;
        }
    }

    /// True if the node is in it.
    pub(crate) fn contains(&self, node: Entity) -> bool {
        let (word, bit) = place(node);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }
}

impl FromIterator<Entity> for NodeSet {
    fn from_iter<I: IntoIterator<Item = Entity>>(nodes: I) -> NodeSet {
        let mut set = NodeSet::default();
        nodes.into_iter().for_each(|node| set.insert(node));
        set
    }
}

fn place(node: Entity) -> (usize, u64) {
    let index = node.index_u32() as usize;
    (index / 64, 1 << (index % 64))
}

/// The number of entries up to which they are searched in order: most maps of most kernels stay that small,
/// and then allocate nothing.
const FEW: usize = 8;

/// Values of nodes in the order in which they were entered. The end of the list can be dropped, as at the end
/// of a scope.
#[derive(Debug)]
pub(crate) struct NodeMap<T> {
    entries: SmallVec<[(Entity, T); FEW]>,
    /// Positions of the entries by entity index. A position is out of date if it holds another node or none.
    /// Empty until there are more than [`FEW`] entries.
    slots: Vec<u32>,
}

impl<T> Default for NodeMap<T> {
    fn default() -> NodeMap<T> {
        NodeMap { entries: SmallVec::new(), slots: Vec::new() }
    }
}

impl<T> NodeMap<T> {
    fn position(&self, node: Entity) -> Option<usize> {
        if self.slots.is_empty() {
            return self.entries.iter().position(|entry| entry.0 == node);
        }
        let slot = *self.slots.get(node.index_u32() as usize)? as usize;
        self.entries.get(slot).is_some_and(|entry| entry.0 == node).then_some(slot)
    }

    /// The value of a node.
    pub(crate) fn get(&self, node: Entity) -> Option<&T> {
        self.position(node).map(|at| &self.entries[at].1)
    }

    /// The value of a node, to be changed.
    pub(crate) fn get_mut(&mut self, node: Entity) -> Option<&mut T> {
        self.position(node).map(|at| &mut self.entries[at].1)
    }

    /// Enters the value of a node, or replaces the one that it has.
    pub(crate) fn insert(&mut self, node: Entity, value: T) {
        if let Some(known) = self.get_mut(node) {
            *known = value;
            return;
        }
        self.entries.push((node, value));
        match self.entries.len() {
            0..=FEW if self.slots.is_empty() => {}
            count if self.slots.is_empty() => (0..count).for_each(|at| self.note_position(at)),
            count => self.note_position(count - 1),
        }
    }

    fn note_position(&mut self, at: usize) {
        let index = self.entries[at].0.index_u32() as usize;
        if index >= self.slots.len() {
            self.slots.resize(index + 1, u32::MAX);
        }
        self.slots[index] = at as u32;
    }

    /// All values and their nodes, in the order in which they were entered.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (Entity, &T)> {
        self.entries.iter().map(|(node, value)| (*node, value))
    }

    /// How many nodes have a value.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if none has one.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Drops all but the first `len` values.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.entries.truncate(len);
    }
}

impl NodeMap<u32> {
    /// Counts a node once more.
    pub(crate) fn count(&mut self, node: Entity) {
        match self.get_mut(node) {
            Some(count) => *count += 1,
            None => self.insert(node, 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_are_found_alike() {
        let mut world = World::new();
        let nodes: Vec<Entity> = (0..3 * FEW).map(|_| world.spawn_empty().id()).collect();
        let mut map = NodeMap::default();
        for (count, &node) in nodes.iter().enumerate() {
            map.insert(node, count);
            map.insert(nodes[0], 0);
            for (number, &node) in nodes.iter().enumerate() {
                assert_eq!(map.get(node), (number <= count).then_some(&number), "{number} of {count}");
            }
        }
        for left in (0..nodes.len()).rev() {
            map.truncate(left);
            assert_eq!(map.iter().map(|(node, _)| node).collect::<Vec<_>>(), nodes[..left]);
            assert_eq!(map.get(nodes[left]), None);
        }
    }

    #[test]
    fn dropped_values_are_not_found_again() {
        let mut world = World::new();
        let nodes: Vec<Entity> = (0..200).map(|_| world.spawn_empty().id()).collect();
        let mut map = NodeMap::default();
        nodes.iter().enumerate().for_each(|(number, &node)| map.insert(node, number));
        map.truncate(100);
        assert_eq!((map.get(nodes[99]), map.get(nodes[100])), (Some(&99), None));
        map.insert(nodes[150], 7);
        map.insert(nodes[3], 8);
        assert_eq!((map.get(nodes[100]), map.get(nodes[150]), map.get(nodes[3])), (None, Some(&7), Some(&8)));
        assert_eq!(map.len(), 101);
    }

    #[test]
    fn a_side_table_holds_a_value_for_each_node() {
        let mut world = World::new();
        let nodes: Vec<Entity> = (0..100).map(|_| world.spawn_empty().id()).collect();
        let mut side = Side::of(&nodes, 7);
        side[nodes[99]] = 8;
        assert_eq!((side[nodes[0]], side[nodes[98]], side[nodes[99]]), (7, 7, 8));
    }

    #[test]
    fn a_set_holds_what_was_put_in() {
        let mut world = World::new();
        let nodes: Vec<Entity> = (0..1000).map(|_| world.spawn_empty().id()).collect();
        let mut set: NodeSet = nodes.iter().copied().step_by(3).collect();
        set.remove(nodes[3]);
        for (number, &node) in nodes.iter().enumerate() {
            assert_eq!(set.contains(node), number % 3 == 0 && number != 3, "{number}");
        }
    }
}
