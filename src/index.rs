//! Dense tables whose index has a type of its own, so that the number of a block cannot be taken for that of
//! a register, and no use of one needs a cast.
//!
//! [`define_id!`] makes a type of numbers, [`IndexVec`] is a vector that only those of one type lead into,
//! and [`Packed`] is one of them or none, in four bytes.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut, Range};

/// The number of an element of one kind of table, from 0 on.
pub trait Id: Copy + Eq + Ord + Debug {
    /// Number `index`; at most 2^32 - 2.
    fn new(index: usize) -> Self;

    /// The number as one of the standard library's.
    fn index(self) -> usize;
}

/// Makes a type of numbers, shown as a prefix and the number.
macro_rules! define_id {
    ($(#[$doc:meta])* $visibility:vis struct $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        $visibility struct $name(u32);

        #[allow(dead_code, reason = "not every kind of number needs all of them")]
        impl $name {
            /// Number `number`.
            $visibility const fn from_u32(number: u32) -> $name {
                $name(number)
            }

            /// The number.
            $visibility const fn as_u32(self) -> u32 {
                self.0
            }

            /// The one after it.
            $visibility const fn next(self) -> $name {
                $name(self.0 + 1)
            }

            /// The one before it, if it is not the first.
            $visibility const fn before(self) -> Option<$name> {
                match self.0.checked_sub(1) {
                    Some(number) => Some($name(number)),
                    None => None,
                }
            }
        }

        impl $crate::index::Id for $name {
            #[inline]
            fn new(index: usize) -> $name {
                debug_assert!(index < u32::MAX as usize);
                $name(index as u32)
            }

            #[inline]
            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}
pub(crate) use define_id;

/// The numbers of a range in order.
pub(crate) fn ids<I: Id>(range: Range<I>) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator {
    (range.start.index()..range.end.index()).map(I::new)
}

/// A vector whose elements are found by numbers of type `I`.
#[derive(Clone, PartialEq, Eq)]
pub struct IndexVec<I, T> {
    elements: Vec<T>,
    ids: PhantomData<fn() -> I>,
}

impl<I: Id, T> IndexVec<I, T> {
    /// Appends an element; its number.
    #[inline]
    pub fn push(&mut self, element: T) -> I {
        let id = self.next_id();
        self.elements.push(element);
        id
    }

    /// Removes the last element.
    pub fn pop(&mut self) -> Option<T> {
        self.elements.pop()
    }

    /// The number that the next element will have: one more than the last.
    #[inline]
    pub fn next_id(&self) -> I {
        I::new(self.elements.len())
    }

    /// How many elements there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// Makes room for so many more elements, so that the list is not moved for them one doubling after the
    /// other.
    pub fn reserve(&mut self, more: usize) {
        self.elements.reserve(more);
    }

    /// Drops all elements and keeps the memory.
    pub fn clear(&mut self) {
        self.elements.clear();
    }

    /// Drops the elements from `end` on.
    pub fn truncate(&mut self, end: I) {
        self.elements.truncate(end.index());
    }

    /// Appends copies of `element`, or drops elements, until the next number is `end`.
    pub fn resize(&mut self, end: I, element: T)
    where
        T: Clone,
    {
        self.elements.resize(end.index(), element);
    }

    /// Makes every element a copy of `element`, up to `end`.
    pub(crate) fn refill(&mut self, end: I, element: T)
    where
        T: Clone,
    {
        self.elements.clear();
        self.elements.resize(end.index(), element);
    }

    /// Keeps the elements for whose numbers `keep` is true, and gives them new ones.
    pub fn retain(&mut self, keep: impl Fn(I) -> bool) {
        let mut index = 0;
        self.elements.retain(|_| {
            index += 1;
            keep(I::new(index - 1))
        });
    }

    /// The element of a number.
    #[inline]
    pub fn get(&self, id: I) -> Option<&T> {
        self.elements.get(id.index())
    }

    /// The element of a number, to be changed.
    #[inline]
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.elements.get_mut(id.index())
    }

    /// The last element.
    pub fn last(&self) -> Option<&T> {
        self.elements.last()
    }

    /// The last element, to be changed.
    pub fn last_mut(&mut self) -> Option<&mut T> {
        self.elements.last_mut()
    }

    /// The element of a number, if there is a number.
    #[inline]
    pub fn at(&self, id: Packed<I>) -> Option<&T> {
        self.elements.get(id.0 as usize)
    }

    /// The element of a number, to be changed, if there is a number.
    #[inline]
    pub(crate) fn at_mut(&mut self, id: Packed<I>) -> Option<&mut T> {
        self.elements.get_mut(id.0 as usize)
    }

    /// All numbers.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + use<I, T> {
        (0..self.elements.len()).map(I::new)
    }

    /// All elements with their numbers.
    pub fn enumerated(&self) -> impl DoubleEndedIterator<Item = (I, &T)> + ExactSizeIterator {
        self.elements.iter().enumerate().map(|(index, element)| (I::new(index), element))
    }

    /// All elements with their numbers, to be changed.
    pub fn enumerated_mut(&mut self) -> impl DoubleEndedIterator<Item = (I, &mut T)> + ExactSizeIterator {
        self.elements.iter_mut().enumerate().map(|(index, element)| (I::new(index), element))
    }

    /// The number of the first element for which `is` is true.
    pub fn position(&self, is: impl FnMut(&T) -> bool) -> Option<I> {
        self.elements.iter().position(is).map(I::new)
    }

    /// All elements.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.elements.iter()
    }

    /// All elements, to be changed.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.elements.iter_mut()
    }

    /// All elements as the standard library's slice.
    pub fn as_slice(&self) -> &[T] {
        &self.elements
    }
}

impl<I, T> Default for IndexVec<I, T> {
    fn default() -> IndexVec<I, T> {
        IndexVec { elements: Vec::new(), ids: PhantomData }
    }
}

impl<I, T: Debug> Debug for IndexVec<I, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.elements.fmt(f)
    }
}

impl<I, T> From<Vec<T>> for IndexVec<I, T> {
    fn from(elements: Vec<T>) -> IndexVec<I, T> {
        IndexVec { elements, ids: PhantomData }
    }
}

impl<I, T> FromIterator<T> for IndexVec<I, T> {
    fn from_iter<E: IntoIterator<Item = T>>(elements: E) -> IndexVec<I, T> {
        Vec::from_iter(elements).into()
    }
}

impl<I, T> Extend<T> for IndexVec<I, T> {
    fn extend<E: IntoIterator<Item = T>>(&mut self, elements: E) {
        self.elements.extend(elements);
    }
}

impl<'a, I, T> IntoIterator for &'a IndexVec<I, T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.elements.iter()
    }
}

impl<'a, I, T> IntoIterator for &'a mut IndexVec<I, T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.elements.iter_mut()
    }
}

impl<I: Id, T> Index<I> for IndexVec<I, T> {
    type Output = T;

    #[inline]
    fn index(&self, id: I) -> &T {
        &self.elements[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IndexVec<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.elements[id.index()]
    }
}

impl<I: Id, T> Index<Range<I>> for IndexVec<I, T> {
    type Output = [T];

    #[inline]
    fn index(&self, range: Range<I>) -> &[T] {
        &self.elements[range.start.index()..range.end.index()]
    }
}

impl<I: Id, T> IndexMut<Range<I>> for IndexVec<I, T> {
    #[inline]
    fn index_mut(&mut self, range: Range<I>) -> &mut [T] {
        &mut self.elements[range.start.index()..range.end.index()]
    }
}

/// A number or none, as large as a number.
pub struct Packed<I>(u32, PhantomData<fn() -> I>);

impl<I: Id> Packed<I> {
    /// None.
    pub const NONE: Packed<I> = Packed(u32::MAX, PhantomData);

    /// True for none.
    #[inline]
    pub fn is_none(self) -> bool {
        self.0 == u32::MAX
    }

    /// The number, if there is one.
    #[inline]
    pub fn get(self) -> Option<I> {
        (!self.is_none()).then(|| I::new(self.0 as usize))
    }
}

impl<I: Id> From<I> for Packed<I> {
    #[inline]
    fn from(id: I) -> Packed<I> {
        Packed(id.index() as u32, PhantomData)
    }
}

impl<I> Copy for Packed<I> {}

impl<I> Clone for Packed<I> {
    fn clone(&self) -> Packed<I> {
        *self
    }
}

impl<I> PartialEq for Packed<I> {
    fn eq(&self, other: &Packed<I>) -> bool {
        self.0 == other.0
    }
}

impl<I> Eq for Packed<I> {}

impl<I: Id> Debug for Packed<I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    define_id! {
        /// A number for the tests.
        struct Row, "row"
    }

    #[test]
    fn elements_are_found_by_the_numbers_that_pushing_gave() {
        let mut rows: IndexVec<Row, char> = IndexVec::default();
        let (a, b) = (rows.push('a'), rows.push('b'));
        rows[a] = 'c';
        assert_eq!((rows[a], rows.get(b), rows.get(rows.next_id())), ('c', Some(&'b'), None));
        assert_eq!(rows.ids().collect::<Vec<_>>(), [a, b]);
        assert_eq!(&rows[a..rows.next_id()], ['c', 'b']);
        assert_eq!(ids(a..b.next()).rev().collect::<Vec<_>>(), [b, a]);
        assert_eq!(format!("{b}, {b:?}"), "row1, row1");
    }

    #[test]
    fn a_packed_number_is_as_large_as_a_number() {
        assert_eq!(size_of::<Packed<Row>>(), size_of::<Row>());
        let mut rows: IndexVec<Row, char> = vec!['a'].into();
        let first = Packed::from(Row::new(0));
        assert_eq!((first.get(), rows.at(first)), (Some(Row::new(0)), Some(&'a')));
        assert_eq!((Packed::<Row>::NONE.get(), rows.at_mut(Packed::NONE)), (None, None));
    }
}
