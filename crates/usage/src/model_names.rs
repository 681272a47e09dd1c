//! A set of names of models.

use std::collections::BTreeSet;
use std::ops::AddAssign;

/// Names of models, in order. Most sets of a session are empty or have one name, and take little memory then:
/// a log may have very many calls, each with a set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ModelNames(Names);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum Names {
    #[default]
    None,
    One(Box<str>),
    /// At least two.
    Many(BTreeSet<Box<str>>),
}

impl ModelNames {
    /// Adds a name.
    pub fn insert(&mut self, name: &str) {
        match &mut self.0 {
            Names::None => self.0 = Names::One(name.into()),
            Names::One(first) if **first == *name => {}
            Names::One(first) => {
                self.0 = Names::Many(BTreeSet::from([std::mem::take(first), name.into()]));
            }
            Names::Many(names) => {
                if !names.contains(name) {
                    names.insert(name.into());
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
        let (one, many) = match &self.0 {
            Names::None => (None, None),
            Names::One(name) => (Some(name), None),
            Names::Many(names) => (None, Some(names)),
        };
        one.into_iter().chain(many.into_iter().flatten()).map(|name| &**name)
    }
}

impl AddAssign<&Self> for ModelNames {
    fn add_assign(&mut self, other: &Self) {
        other.iter().for_each(|name| self.insert(name));
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
}
