//! A set of names of models.

use std::collections::BTreeSet;
use std::ops::AddAssign;
use std::sync::Arc;

/// Names of models, in order: the first [`ModelNames::MAX`] of those that were added.
///
/// Most sets of a session are empty or have one name, and take little memory then: a log may have very many
/// calls, each with a set. Sums share the names with their parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ModelNames(Names);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum Names {
    #[default]
    None,
    One(Arc<str>),
    /// At least two.
    Many(BTreeSet<Arc<str>>),
}

impl ModelNames {
    /// The maximum number of names. If a set has as many, there may have been others.
    pub const MAX: usize = 64;

    /// Adds a name.
    pub fn insert(&mut self, name: &str) {
        self.insert_with(name, || name.into());
    }

    fn insert_with(&mut self, name: &str, share: impl FnOnce() -> Arc<str>) {
        match &mut self.0 {
            Names::None => self.0 = Names::One(share()),
            Names::One(first) if **first == *name => {}
            Names::One(first) => self.0 = Names::Many(BTreeSet::from([Arc::clone(first), share()])),
            Names::Many(names) => {
                let is_wanted = names.len() < Self::MAX || names.last().is_some_and(|last| *name < **last);
                if is_wanted && !names.contains(name) {
                    names.insert(share());
                    if names.len() > Self::MAX {
                        names.pop_last();
                    }
                }
            }
        }
    }

    /// Returns the number of names.
    pub fn len(&self) -> usize {
        match &self.0 {
            Names::None => 0,
            Names::One(_) => 1,
            Names::Many(names) => names.len(),
        }
    }

    /// Whether there is no name.
    pub fn is_empty(&self) -> bool {
        self.0 == Names::None
    }

    /// Iterates over the names in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.shared().map(|name| &**name)
    }

    fn shared(&self) -> impl Iterator<Item = &Arc<str>> {
        let (one, many) = match &self.0 {
            Names::None => (None, None),
            Names::One(name) => (Some(name), None),
            Names::Many(names) => (None, Some(names)),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }
}

impl AddAssign<&Self> for ModelNames {
    fn add_assign(&mut self, other: &Self) {
        other.shared().for_each(|name| self.insert_with(name, || Arc::clone(name)));
    }
}

impl<T: AsRef<str>> FromIterator<T> for ModelNames {
    fn from_iter<I: IntoIterator<Item = T>>(names: I) -> Self {
        let mut set = Self::default();
        names.into_iter().for_each(|name| set.insert(name.as_ref()));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::ModelNames;

    #[test]
    fn names_are_sorted_and_counted_once() {
        for (inserted, expected) in [
            (&[][..], &[][..]),
            (&["b"], &["b"]),
            (&["b", "b"], &["b"]),
            (&["b", "a"], &["a", "b"]),
            (&["b", "a", "c", "a", "b"], &["a", "b", "c"]),
        ] {
            let names: ModelNames = inserted.iter().collect();
            assert_eq!(names.iter().collect::<Vec<_>>(), expected, "{inserted:?}");
            assert_eq!((names.len(), names.is_empty()), (expected.len(), expected.is_empty()));
        }
    }

    #[test]
    fn a_sum_has_the_names_of_both() {
        let sets = [&[][..], &["b"], &["a", "b"], &["a", "c", "d"]];
        for left in sets {
            for right in sets {
                let mut sum: ModelNames = left.iter().collect();
                sum += &right.iter().collect();
                assert_eq!(sum, left.iter().chain(right).collect(), "{left:?} {right:?}");
            }
        }
    }

    #[test]
    fn a_set_of_very_many_names_has_the_first_ones_in_any_order() {
        let names: Vec<String> = (0..1000).map(|idx| format!("m{idx:03}")).collect();
        let (first, last): (ModelNames, ModelNames) =
            (names[..500].iter().collect(), names[500..].iter().rev().collect());
        for (left, right) in [(&first, &last), (&last, &first)] {
            let mut sum = left.clone();
            sum += right;
            assert!(sum.iter().eq(&names[..ModelNames::MAX]), "{:?}", sum.iter().next());
        }
    }
}
