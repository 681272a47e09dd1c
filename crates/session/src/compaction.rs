//! Compaction: where a conversation was replaced by a summary of itself.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;
use threadline_entry::Kind;
use threadline_entry::lens::{CompactBoundary, CompactMetadata, System};

use crate::session::{Parent, Session};

/// A compaction boundary and its summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// The boundary's line.
    pub boundary: usize,
    /// The summary's line. Attachments may come between the boundary and it (from 2.1.300 on).
    pub summary: Option<usize>,
    /// What the boundary continues in the reader's eyes, if that line was ever written.
    pub continues: Option<usize>,
    /// The tail that was kept as it was, head first; empty if none was, or it is not in the log.
    pub preserved: Vec<usize>,
}

impl Compaction {
    /// What the boundary says about itself.
    pub fn metadata<'s>(&self, session: &'s Session) -> Option<CompactMetadata<'s>> {
        session.entries()[self.boundary].lens::<CompactBoundary<'_>>()?.compact_metadata()
    }
}

impl Session {
    /// Whether the entry is a compaction boundary.
    pub fn is_boundary(&self, entry_idx: usize) -> bool {
        let entry = &self.entries()[entry_idx];
        entry.kind() == Kind::System
            && entry.lens::<System<'_>>().and_then(System::subtype).as_deref() == Some("compact_boundary")
    }

    /// The compactions, in file order.
    pub fn compactions(&self) -> Vec<Compaction> {
        self.boundaries().iter().map(|&boundary| self.compacted_at(boundary)).collect()
    }

    /// The compaction whose boundary an entry is.
    pub fn compaction(&self, entry_idx: usize) -> Option<Compaction> {
        self.is_boundary(entry_idx).then(|| self.compacted_at(entry_idx))
    }

    fn compacted_at(&self, boundary: usize) -> Compaction {
        let summary = self.summary_below(boundary);
        let entry = &self.entries()[boundary];
        let named = entry.get("logicalParentUuid").and_then(|uuid| self.find(&uuid.as_str()?));
        // The line that it names was often never written: then it continues the line before.
        let before = || self.line_before(boundary, false);
        let mut compaction =
            Compaction { boundary, summary, continues: named.or_else(before), preserved: Vec::new() };
        compaction.preserved = self.preserved(&compaction).unwrap_or_default();
        compaction
    }

    /// The first summary below a boundary, with no line of the conversation between them.
    fn summary_below(&self, boundary: usize) -> Option<usize> {
        let mut below: VecDeque<usize> = self.children(boundary).collect();
        while let Some(idx) = below.pop_front() {
            let entry = &self.entries()[idx];
            if entry.flag("isCompactSummary") {
                return Some(idx);
            }
            if !matches!(entry.kind(), Kind::User | Kind::Assistant) {
                below.extend(self.children(idx));
            }
        }
        None
    }

    /// The kept tail, from its head to its end.
    fn preserved(&self, compaction: &Compaction) -> Option<Vec<usize>> {
        let segment = compaction.metadata(self)?.preserved_segment()?;
        let head = self.find(&segment.head_uuid()?)?;
        let tail = self.find(&segment.tail_uuid()?)?;
        let mut kept: Vec<usize> = Vec::new();
        for idx in self.ancestors(tail) {
            kept.push(idx);
            if idx == head {
                kept.reverse();
                return Some(kept);
            }
        }
        None
    }

    /// What the entry continues, across compaction.
    ///
    /// Inside a stretch of conversation this is its parent. A boundary has none, though a reader would
    /// say that it continues the last entry before it; and an entry whose parent was never written
    /// continues the line before it.
    pub fn continues(&self, entry_idx: usize) -> Option<usize> {
        match self.parent(entry_idx) {
            Parent::Entry(parent) => Some(parent),
            Parent::Root if self.is_boundary(entry_idx) => self.compacted_at(entry_idx).continues,
            Parent::Root => None,
            Parent::Dangling => self.line_before(entry_idx, self.is_sidechain(entry_idx)),
        }
    }

    /// The line of the tree before an entry that does not hang below it: one that does may stand before it, too.
    fn line_before(&self, entry_idx: usize, sidechain: bool) -> Option<usize> {
        // What hangs below it, as far as it stands before it.
        let mut below: FxHashSet<usize> = FxHashSet::default();
        let mut open = vec![entry_idx];
        while let Some(idx) = open.pop() {
            open.extend(self.children(idx).filter(|child| below.insert(*child)));
        }
        (0..entry_idx)
            .rev()
            .find(|idx| self.in_tree(*idx) && self.is_sidechain(*idx) == sidechain && !below.contains(idx))
    }
}
