//! A list that usually has very few elements, in little memory.

use std::fmt;
use std::ops::Deref;

/// A list of up to `N` elements without an allocation, or of any number with one. Derefs to a slice.
#[derive(Clone)]
pub struct SmallList<T, const N: usize>(Repr<T, N>);

#[derive(Clone)]
enum Repr<T, const N: usize> {
    Empty,
    /// The elements after the first `count` have no meaning.
    Inline {
        count: u8,
        elements: [T; N],
    },
    #[expect(clippy::box_collection, reason = "a vector would make every list larger")]
    Several(Box<Vec<T>>),
}

impl<T: Copy, const N: usize> SmallList<T, N> {
    /// Returns a list of one element.
    pub(crate) fn of(element: T) -> Self {
        Self(Repr::Inline { count: 1, elements: [element; N] })
    }

    /// Appends an element.
    pub(crate) fn push(&mut self, element: T) {
        match &mut self.0 {
            Repr::Empty => *self = Self::of(element),
            Repr::Inline { count, elements } => match elements.get_mut(usize::from(*count)) {
                Some(slot) => {
                    *slot = element;
                    *count += 1;
                }
                None => {
                    let elements = elements.iter().copied().chain([element]).collect();
                    self.0 = Repr::Several(Box::new(elements));
                }
            },
            Repr::Several(elements) => elements.push(element),
        }
    }
}

impl<T, const N: usize> Default for SmallList<T, N> {
    fn default() -> Self {
        Self(Repr::Empty)
    }
}

impl<T, const N: usize> Deref for SmallList<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.0 {
            Repr::Empty => &[],
            Repr::Inline { count, elements } => &elements[..usize::from(*count)],
            Repr::Several(elements) => elements,
        }
    }
}

impl<'l, T, const N: usize> IntoIterator for &'l SmallList<T, N> {
    type Item = &'l T;
    type IntoIter = std::slice::Iter<'l, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: PartialEq, const N: usize> PartialEq for SmallList<T, N> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Eq, const N: usize> Eq for SmallList<T, N> {}

impl<T: fmt::Debug, const N: usize> fmt::Debug for SmallList<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::EntryIndex;
    use crate::tool_call::ResultPosition;

    #[test]
    fn a_small_list_keeps_the_order_of_its_elements() {
        let mut list: SmallList<u32, 2> = SmallList::default();
        let mut expected = Vec::new();
        for number in 0..4 {
            assert_eq!(*list, *expected);
            list.push(number);
            expected.push(number);
        }
        assert_eq!(list.clone(), list);
        assert_ne!(list, SmallList::of(0));
        assert_eq!(format!("{list:?}"), "[0, 1, 2, 3]");
        let sizes = (size_of::<SmallList<EntryIndex, 3>>(), size_of::<SmallList<ResultPosition, 1>>());
        assert_eq!(sizes, (16, 16));
    }
}
