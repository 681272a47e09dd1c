//! Finds ancestors of many lines.

use threadline_session::{EntryIndex, IndexVec, Session};

/// Finds the nearest ancestors of lines with a property. A long chain of lines without it is walked once, and
/// not once for each line below it.
pub(crate) struct AncestorSearch {
    /// The next line to examine after each line.
    above: IndexVec<EntryIndex, Option<EntryIndex>>,
}

impl AncestorSearch {
    pub(crate) fn new(session: &Session) -> Self {
        let parent = |idx| session.ancestors(idx).nth(1);
        Self { above: session.entries().indices().map(parent).collect() }
    }

    /// Returns the first of a line and its ancestors that is wanted. Later searches skip the lines that were
    /// not, so none of them may be wanted later.
    pub(crate) fn nearest(
        &mut self,
        idx: EntryIndex,
        is_wanted: impl Fn(EntryIndex) -> bool,
    ) -> Option<EntryIndex> {
        let mut found = Some(idx);
        while let Some(at) = found.filter(|&at| !is_wanted(at)) {
            found = self.above[at];
        }
        let mut skipped = Some(idx);
        while let Some(at) = skipped.filter(|_| skipped != found) {
            skipped = std::mem::replace(&mut self.above[at], found);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use threadline_testkit::log;

    use super::*;

    #[test]
    fn a_chain_is_walked_once() {
        let chain = (1..1000).map(|i| format!("u{i} <- u{} user \"x\"\n", i - 1)).collect::<String>();
        let session = Session::from_bytes(&log(&format!("u0 user \"x\"\n{chain}")));
        let mut search = AncestorSearch::new(&session);
        let n_examined = Cell::new(0);
        for idx in session.entries().indices().rev() {
            let is_wanted = |at: EntryIndex| {
                n_examined.set(n_examined.get() + 1);
                at.position() == 7 || at.position() > 998
            };
            let expected = if idx.position() > 998 { Some(999) } else { (idx.position() >= 7).then_some(7) };
            assert_eq!(search.nearest(idx, is_wanted).map(EntryIndex::position), expected);
        }
        assert!(n_examined.get() < 4000, "{}", n_examined.get());
    }
}
