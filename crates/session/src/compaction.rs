//! Compaction: the points at which a conversation was replaced by a summary.

use std::collections::VecDeque;

use foldhash::HashSet;
use threadline_entry::lens::{CompactBoundary, CompactMetadata, System};
use threadline_entry::{Kind, key, value};

use crate::index::{EntryIndex, IndexRange};
use crate::session::{ParentLink, Session};

/// A compaction boundary and its summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// The line of the boundary.
    pub boundary: EntryIndex,
    /// The line of the summary. From 2.1.300 on, attachments may come between the boundary and the summary.
    pub summary: Option<EntryIndex>,
    /// The logical parent of the boundary: the line named by `logicalParentUuid`, else its parent, else the
    /// previous line of the main conversation.
    pub continues: Option<EntryIndex>,
    /// The preserved tail, in order. Empty if none was preserved or it is not in the log.
    pub preserved: Vec<EntryIndex>,
}

impl Compaction {
    /// Returns the metadata of the boundary.
    pub fn metadata<'s>(&self, session: &'s Session) -> Option<CompactMetadata<'s>> {
        session.entries()[self.boundary].lens::<CompactBoundary<'_>>()?.compact_metadata()
    }
}

impl Session {
    /// Returns whether the entry is a compaction boundary.
    pub fn is_boundary(&self, entry_idx: EntryIndex) -> bool {
        let entry = &self.entries()[entry_idx];
        entry.kind() == Kind::System
            && entry.lens::<System<'_>>().and_then(System::subtype).as_deref()
                == Some(value::COMPACT_BOUNDARY)
    }

    /// Returns the compactions, in file order.
    pub fn compactions(&self) -> Vec<Compaction> {
        self.boundaries().iter().map(|&(boundary, _)| self.compaction_at(boundary)).collect()
    }

    /// Returns the compaction of a boundary. `None` for any other entry.
    pub fn compaction(&self, entry_idx: EntryIndex) -> Option<Compaction> {
        self.is_boundary(entry_idx).then(|| self.compaction_at(entry_idx))
    }

    /// Returns the compaction of an entry that [is a boundary](Self::is_boundary).
    pub fn compaction_at(&self, boundary: EntryIndex) -> Compaction {
        let (summary, continues) = (self.summary_below(boundary), self.logical_parent(boundary));
        let mut compaction = Compaction { boundary, summary, continues, preserved: Vec::new() };
        compaction.preserved = self.preserved(&compaction).unwrap_or_default();
        compaction
    }

    /// Returns the line that a boundary continues, see [`Compaction::continues`].
    fn logical_parent(&self, boundary: EntryIndex) -> Option<EntryIndex> {
        let named = || self.find(&self.entries()[boundary].get(key::LOGICAL_PARENT_UUID)?.as_str()?);
        // The named line was often never written.
        named().or_else(|| match self.parent(boundary) {
            ParentLink::Entry(parent) => Some(parent),
            ParentLink::Root | ParentLink::Dangling => {
                let at = self.boundaries().binary_search_by_key(&boundary, |&(boundary, _)| boundary).ok()?;
                let (_, last_main_line) = self.boundaries()[at];
                self.previous_line(boundary, last_main_line?.next(), false)
            }
        })
    }

    /// Returns the first summary below a boundary that is not separated from it by a message or another
    /// boundary.
    fn summary_below(&self, boundary: EntryIndex) -> Option<EntryIndex> {
        let mut below: VecDeque<EntryIndex> = self.children(boundary).collect();
        while let Some(idx) = below.pop_front() {
            let entry = &self.entries()[idx];
            if entry.is_compact_summary() {
                return Some(idx);
            }
            if !matches!(entry.kind(), Kind::User | Kind::Assistant) && !self.is_boundary(idx) {
                below.extend(self.children(idx));
            }
        }
        None
    }

    /// Returns the preserved tail, from its head to its end. `None` if the log does not contain all of it.
    fn preserved(&self, compaction: &Compaction) -> Option<Vec<EntryIndex>> {
        let segment = compaction.metadata(self)?.preserved_segment()?;
        let head = self.find(&segment.head_uuid()?)?;
        let tail = self.find(&segment.tail_uuid()?)?;
        let mut kept: Vec<EntryIndex> = Vec::new();
        for idx in self.ancestors(tail) {
            kept.push(idx);
            if idx == head {
                kept.reverse();
                return Some(kept);
            }
        }
        None
    }

    /// Returns the entry that this one continues, across compactions.
    ///
    /// Usually that is its parent. A boundary has no parent; it continues its logical parent, see
    /// [`Compaction::continues`]. An entry with a missing parent continues the previous line.
    pub fn continues(&self, entry_idx: EntryIndex) -> Option<EntryIndex> {
        match self.parent(entry_idx) {
            ParentLink::Entry(parent) => Some(parent),
            ParentLink::Root if self.is_boundary(entry_idx) => self.logical_parent(entry_idx),
            ParentLink::Root => None,
            ParentLink::Dangling => self.previous_line(entry_idx, entry_idx, self.is_sidechain(entry_idx)),
        }
    }

    /// Returns the last line in the tree before `end` that is not a descendant of the entry. A descendant can
    /// precede it.
    fn previous_line(&self, entry_idx: EntryIndex, end: EntryIndex, sidechain: bool) -> Option<EntryIndex> {
        // The descendants of the entry.
        let mut below: HashSet<EntryIndex> = HashSet::default();
        let mut open = vec![entry_idx];
        while let Some(idx) = open.pop() {
            open.extend(self.children(idx).filter(|child| below.insert(*child)));
        }
        (EntryIndex::FIRST..end)
            .indices()
            .rev()
            .find(|idx| self.in_tree(*idx) && self.is_sidechain(*idx) == sidechain && !below.contains(idx))
    }
}
