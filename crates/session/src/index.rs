//! Typed positions: one index type per kind of element, so that an entry cannot be looked up as a call.

use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::ops::{Index, IndexMut, Range};

/// A position in an [`IndexVec`]. Converted from and to a plain number explicitly.
pub trait IndexType: Copy + Ord + Hash + fmt::Debug {
    /// Returns the index of the element at `position`, counted from 0.
    ///
    /// # Panics
    ///
    /// If `position` is 2³² − 1 or more.
    fn from_position(position: usize) -> Self;

    /// Returns the position, counted from 0.
    fn position(self) -> usize;
}

macro_rules! index_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        // The position plus one, so that an `Option` of an index needs no additional space.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(NonZeroU32);

        impl $name {
            /// The index of the first element.
            pub const FIRST: Self = Self(NonZeroU32::MIN);

            /// Returns the index of the element at `position`, counted from 0.
            ///
            /// # Panics
            ///
            /// If `position` is 2³² − 1 or more.
            pub fn from_position(position: usize) -> Self {
                let number = u32::try_from(position).ok().and_then(|number| number.checked_add(1));
                Self(number.and_then(NonZeroU32::new).expect("a position less than 2³² − 1"))
            }

            /// Returns the position, counted from 0.
            pub fn position(self) -> usize {
                self.0.get() as usize - 1
            }

            /// Returns the next index.
            pub fn next(self) -> Self {
                Self::from_position(self.position() + 1)
            }

            /// Returns the previous index. `None` for the first one.
            pub fn previous(self) -> Option<Self> {
                self.position().checked_sub(1).map(Self::from_position)
            }
        }

        impl IndexType for $name {
            fn from_position(position: usize) -> Self {
                Self::from_position(position)
            }

            fn position(self) -> usize {
                self.position()
            }
        }

        /// Formats the position, counted from 0.
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.position(), f)
            }
        }
    };
}

index_type! {
    /// The position of an entry in [`Session::entries`](crate::Session::entries).
    EntryIndex
}

index_type! {
    /// The position of a tool call in [`Session::tool_calls`](crate::Session::tool_calls).
    CallIndex
}

index_type! {
    /// The position of a reply in [`Session::replies`](crate::Session::replies).
    ReplyIndex
}

index_type! {
    /// The position of a sub-agent in [`SessionFamily::agents`](crate::SessionFamily::agents).
    AgentIndex
}

index_type! {
    /// The position of a turn in [`Session::turns`](crate::Session::turns), or in a list of selected turns.
    TurnIndex
}

/// Iteration over a range of indexes.
pub trait IndexRange<I> {
    /// Returns the indexes in the range, in order.
    fn indices(self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + Clone;
}

impl<I: IndexType> IndexRange<I> for Range<I> {
    fn indices(self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + Clone {
        (self.start.position()..self.end.position()).map(I::from_position)
    }
}

/// A vector with elements that are looked up by a typed index.
pub struct IndexVec<I, T> {
    elements: Vec<T>,
    index: PhantomData<fn(I) -> I>,
}

impl<I: IndexType, T> IndexVec<I, T> {
    /// Returns an empty vector.
    pub const fn new() -> Self {
        Self { elements: Vec::new(), index: PhantomData }
    }

    /// Returns a vector of `count` copies of `element`.
    pub fn filled(element: T, count: usize) -> Self
    where
        T: Clone,
    {
        vec![element; count].into()
    }

    /// Reserves memory for exactly `count` more elements.
    pub fn reserve_exact(&mut self, count: usize) {
        self.elements.reserve_exact(count);
    }

    /// Releases unused capacity.
    pub fn shrink_to_fit(&mut self) {
        self.elements.shrink_to_fit();
    }

    /// Appends an element and returns its index.
    pub fn push(&mut self, element: T) -> I {
        let index = self.end();
        self.elements.push(element);
        index
    }

    /// Moves all elements of `other` to the end.
    pub fn append(&mut self, other: &mut Self) {
        self.elements.append(&mut other.elements);
    }

    /// Changes the number of elements to `count`. New ones are made by `element`.
    pub fn resize_with(&mut self, count: usize, element: impl FnMut() -> T) {
        self.elements.resize_with(count, element);
    }

    /// Removes all elements.
    pub fn clear(&mut self) {
        self.elements.clear();
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// Returns the index after the last element: the one that the next pushed element will have.
    pub fn end(&self) -> I {
        I::from_position(self.elements.len())
    }

    /// Returns the indexes of all elements, in order.
    pub fn indices(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + Clone + use<I, T> {
        (0..self.elements.len()).map(I::from_position)
    }

    /// Returns the elements, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.elements.iter()
    }

    /// Returns mutable references to the elements, in order.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.elements.iter_mut()
    }

    /// Returns the elements with their indexes, in order.
    pub fn enumerated(&self) -> impl DoubleEndedIterator<Item = (I, &T)> + ExactSizeIterator + Clone {
        self.elements.iter().enumerate().map(|(position, element)| (I::from_position(position), element))
    }

    /// Returns mutable references to the elements with their indexes, in order.
    pub fn enumerated_mut(&mut self) -> impl DoubleEndedIterator<Item = (I, &mut T)> + ExactSizeIterator {
        self.elements.iter_mut().enumerate().map(|(position, element)| (I::from_position(position), element))
    }

    /// Returns the index of the first element for which `predicate` is false. The elements must be
    /// partitioned by it: see [`slice::partition_point`].
    pub fn partition_point(&self, predicate: impl FnMut(&T) -> bool) -> I {
        I::from_position(self.elements.partition_point(predicate))
    }

    /// Returns the element at an index. `None` past the end.
    pub fn get(&self, index: I) -> Option<&T> {
        self.elements.get(index.position())
    }

    /// Returns the first element.
    pub fn first(&self) -> Option<&T> {
        self.elements.first()
    }

    /// Returns the last element.
    pub fn last(&self) -> Option<&T> {
        self.elements.last()
    }

    /// Returns the index of the last element.
    pub fn last_index(&self) -> Option<I> {
        self.elements.len().checked_sub(1).map(I::from_position)
    }

    /// Returns the index of the first element that satisfies `predicate`.
    pub fn find_index(&self, predicate: impl FnMut(&T) -> bool) -> Option<I> {
        self.elements.iter().position(predicate).map(I::from_position)
    }

    /// Returns the index of the last element that satisfies `predicate`.
    pub fn rfind_index(&self, predicate: impl FnMut(&T) -> bool) -> Option<I> {
        self.elements.iter().rposition(predicate).map(I::from_position)
    }

    /// Returns the elements as a slice, without their index type.
    pub fn as_slice(&self) -> &[T] {
        &self.elements
    }

    /// Returns the elements as a vector, without their index type.
    pub fn into_vec(self) -> Vec<T> {
        self.elements
    }
}

impl<I, T> From<Vec<T>> for IndexVec<I, T> {
    fn from(elements: Vec<T>) -> Self {
        Self { elements, index: PhantomData }
    }
}

impl<I, T> FromIterator<T> for IndexVec<I, T> {
    fn from_iter<E: IntoIterator<Item = T>>(elements: E) -> Self {
        Vec::from_iter(elements).into()
    }
}

impl<I, T> Extend<T> for IndexVec<I, T> {
    fn extend<E: IntoIterator<Item = T>>(&mut self, elements: E) {
        self.elements.extend(elements);
    }
}

impl<I, T> IntoIterator for IndexVec<I, T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.elements.into_iter()
    }
}

impl<'v, I, T> IntoIterator for &'v IndexVec<I, T> {
    type Item = &'v T;
    type IntoIter = std::slice::Iter<'v, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.elements.iter()
    }
}

impl<I: IndexType, T> Index<I> for IndexVec<I, T> {
    type Output = T;

    fn index(&self, index: I) -> &T {
        &self.elements[index.position()]
    }
}

impl<I: IndexType, T> IndexMut<I> for IndexVec<I, T> {
    fn index_mut(&mut self, index: I) -> &mut T {
        &mut self.elements[index.position()]
    }
}

impl<I: IndexType, T> Index<Range<I>> for IndexVec<I, T> {
    type Output = [T];

    fn index(&self, range: Range<I>) -> &[T] {
        &self.elements[range.start.position()..range.end.position()]
    }
}

impl<I, T> Default for IndexVec<I, T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<I, T: Clone> Clone for IndexVec<I, T> {
    fn clone(&self) -> Self {
        self.elements.clone().into()
    }
}

impl<I, T: PartialEq> PartialEq for IndexVec<I, T> {
    fn eq(&self, other: &Self) -> bool {
        self.elements == other.elements
    }
}

impl<I, T: Eq> Eq for IndexVec<I, T> {}

impl<I, T: fmt::Debug> fmt::Debug for IndexVec<I, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.elements.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_is_the_position_and_its_option_needs_no_space() {
        assert_eq!(EntryIndex::from_position(0), EntryIndex::FIRST);
        assert_eq!(EntryIndex::FIRST.next().position(), 1);
        assert_eq!(EntryIndex::FIRST.previous(), None);
        assert_eq!(format!("{:?}", EntryIndex::from_position(41)), "41");
        assert_eq!(size_of::<Option<EntryIndex>>(), 4);
    }

    #[test]
    fn vector_is_indexed_by_its_own_type() {
        let mut names: IndexVec<EntryIndex, &str> = IndexVec::new();
        let (a, b) = (names.push("a"), names.push("b"));
        assert_eq!((names[a], names[b], names.get(names.end())), ("a", "b", None));
        assert_eq!(names[a..names.end()], ["a", "b"]);
        assert_eq!((a..names.end()).indices().rev().collect::<Vec<_>>(), [b, a]);
        assert_eq!(names.enumerated().map(|(index, _)| index).collect::<Vec<_>>(), [a, b]);
    }
}
