//! What this crate needs of the numbers and tables of `cranelift-entity` that they do not have themselves.

use std::ops::Range;

use cranelift_entity::packed_option::{PackedOption, ReservedValue};
use cranelift_entity::{EntityRef, PrimaryMap};

/// Numbers that have neighbours.
pub trait Neighbours: EntityRef {
    /// The one after it.
    #[inline]
    fn next(self) -> Self {
        Self::new(self.index() + 1)
    }

    /// The one before it, if it is not the first.
    #[inline]
    fn before(self) -> Option<Self> {
        self.index().checked_sub(1).map(Self::new)
    }
}

impl<K: EntityRef> Neighbours for K {}

/// Tables of which stretches are looked at, and ends dropped.
pub(crate) trait Stretches<K, V> {
    /// The elements of a range of numbers.
    fn range(&self, range: Range<K>) -> &[V];

    /// The elements of a range of numbers, to be changed.
    fn range_mut(&mut self, range: Range<K>) -> &mut [V];

    /// Drops the elements from `end` on.
    fn truncate(&mut self, end: K);
}

impl<K: EntityRef, V> Stretches<K, V> for PrimaryMap<K, V> {
    #[inline]
    fn range(&self, range: Range<K>) -> &[V] {
        &self.as_values_slice()[range.start.index()..range.end.index()]
    }

    #[inline]
    fn range_mut(&mut self, range: Range<K>) -> &mut [V] {
        &mut self.values_mut().into_slice()[range.start.index()..range.end.index()]
    }

    #[inline]
    fn truncate(&mut self, end: K) {
        let mut elements = Vec::from(std::mem::take(self));
        elements.truncate(end.index());
        *self = elements.into();
    }
}

/// Tables that lead from one element to the next.
pub(crate) trait Links<K: ReservedValue, V> {
    /// The element of a number, if there is a number.
    fn at(&self, id: PackedOption<K>) -> Option<&V>;

    /// The element of a number, to be changed, if there is a number.
    fn at_mut(&mut self, id: PackedOption<K>) -> Option<&mut V>;
}

impl<K: EntityRef + ReservedValue, V> Links<K, V> for PrimaryMap<K, V> {
    #[inline]
    fn at(&self, id: PackedOption<K>) -> Option<&V> {
        self.get(id.expand()?)
    }

    #[inline]
    fn at_mut(&mut self, id: PackedOption<K>) -> Option<&mut V> {
        self.get_mut(id.expand()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number for the tests.
    #[derive(Copy, Clone, PartialEq, Eq)]
    struct Row(u32);
    cranelift_entity::entity_impl!(Row, "row");

    #[test]
    fn stretches_and_ends_are_those_of_the_numbers() {
        let mut rows: PrimaryMap<Row, char> = ['a', 'b', 'c'].into_iter().collect();
        let [a, b, c] = [0, 1, 2].map(Row);
        assert_eq!((a.next(), c.before(), a.before()), (b, Some(b), None));
        rows.range_mut(a..b).fill('d');
        rows.truncate(c);
        assert_eq!(rows.range(a..rows.next_key()), ['d', 'b']);
    }

    #[test]
    fn no_number_leads_to_no_element() {
        let mut rows: PrimaryMap<Row, char> = ['a'].into_iter().collect();
        assert_eq!((rows.at(Row(0).into()), rows.at(None.into())), (Some(&'a'), None));
        assert_eq!(rows.at_mut(Row(0).into()), Some(&mut 'a'));
        assert_eq!(rows.at_mut(None.into()), None);
    }
}
