//! Which lines a resume reads: the leaf, the way up from it, and what hangs beside the way.

use std::borrow::Cow;
use std::cell::OnceCell;

use rustc_hash::{FxHashMap, FxHashSet};
use threadline_entry::lens::CompactBoundary;
use threadline_entry::{Entry, Kind, Millis};

use crate::session::Session;

/// A parent that was never written is stood in for by a line this much older at most.
const NEARBY: Millis = 5000;

/// The conversation lines as Claude Code holds them: by uuid, in file order.
pub(super) struct Graph<'s> {
    session: &'s Session,
    items: Vec<Item>,
    by_uuid: FxHashMap<Cow<'s, str>, usize>,
    /// The leaf that the newest `last-prompt` line names.
    last_prompt: Option<Cow<'s, str>>,
    /// The summary that a kept tail hangs below, and the tail's end.
    preserved: Option<(usize, usize)>,
    /// Items by time, made when a parent is missing.
    by_time: OnceCell<Vec<(Millis, usize)>>,
}

struct Item {
    entry_idx: usize,
    up: Up,
    /// Dropped: replaced by a later line of the same uuid, or cut off by a compaction.
    dropped: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Up {
    Root,
    Item(usize),
    Missing,
}

impl<'s> Graph<'s> {
    pub(super) fn new(session: &'s Session) -> Self {
        let mut graph = Self {
            session,
            items: Vec::new(),
            by_uuid: FxHashMap::default(),
            last_prompt: None,
            preserved: None,
            by_time: OnceCell::new(),
        };
        graph.load();
        graph.preserve();
        graph
    }

    pub(super) fn entry_idx(&self, item: usize) -> usize {
        self.items[item].entry_idx
    }

    pub(super) fn timestamp(&self, item: usize) -> Option<Millis> {
        self.session.timestamp(self.items[item].entry_idx)
    }

    fn entry(&self, item: usize) -> &'s Entry {
        &self.session.entries()[self.items[item].entry_idx]
    }

    fn is_sidechain(&self, item: usize) -> bool {
        self.session.is_sidechain(self.items[item].entry_idx)
    }

    fn is_boundary(&self, item: usize) -> bool {
        self.session.is_boundary(self.items[item].entry_idx)
    }

    fn live(&self) -> impl DoubleEndedIterator<Item = usize> {
        (0..self.items.len()).filter(|&item| !self.items[item].dropped)
    }

    /// Enters the lines. A uuid that comes again replaces the line and moves to the end; `progress`
    /// lines are no items, only a way from their children to their parent.
    fn load(&mut self) {
        let mut bridges: FxHashMap<Cow<'s, str>, Option<Cow<'s, str>>> = FxHashMap::default();
        for (entry_idx, entry) in self.session.entries().iter().enumerate() {
            if entry.is_glued() {
                continue;
            }
            match entry.kind() {
                Kind::Progress => {
                    if let Some(uuid) = entry.uuid() {
                        bridges.insert(uuid, entry.parent_uuid());
                    }
                }
                Kind::User | Kind::Assistant | Kind::Attachment | Kind::System => {
                    let uuid = entry.uuid().unwrap_or_default();
                    let item = self.items.len();
                    if let Some(old) = self.by_uuid.insert(uuid, item) {
                        self.items[old].dropped = true;
                    }
                    self.items.push(Item { entry_idx, up: Up::Root, dropped: false });
                    if self.session.is_boundary(entry_idx) {
                        self.last_prompt = None;
                    }
                }
                Kind::LastPrompt => {
                    if let Some(leaf) = entry.get("leafUuid").and_then(|leaf| leaf.as_str()) {
                        self.last_prompt = Some(leaf);
                    }
                }
                _ => {}
            }
        }
        for item in 0..self.items.len() {
            let mut parent = self.entry(item).parent_uuid();
            let mut crossed: FxHashSet<Cow<'s, str>> = FxHashSet::default();
            while let Some(uuid) = &parent
                && !self.by_uuid.contains_key(uuid)
                && let Some(above) = bridges.get(uuid)
                && crossed.insert(uuid.clone())
            {
                parent = above.clone();
            }
            self.items[item].up = match parent {
                None => Up::Root,
                Some(uuid) => self.by_uuid.get(&uuid).map_or(Up::Missing, |&parent| Up::Item(parent)),
            };
        }
    }

    /// A compaction that kept the tail of the conversation: hangs that tail below the summary, what
    /// came after it below its end, and drops the rest of what came before.
    fn preserve(&mut self) {
        let boundaries: Vec<usize> = self.live().filter(|&item| self.is_boundary(item)).collect();
        let keeps = |item: usize| {
            let metadata = self.entry(item).lens::<CompactBoundary<'s>>()?.compact_metadata()?;
            (metadata.preserved_segment().is_some() || metadata.preserved_messages().is_some()).then_some(metadata)
        };
        let (Some(&last), true) = (boundaries.last(), boundaries.iter().any(|&item| keeps(item).is_some())) else {
            return;
        };
        let mut kept = Vec::new();
        if let Some(metadata) = keeps(last) {
            let Some((anchor, tail)) = self.kept_tail(metadata) else { return };
            kept = tail;
            self.relink(anchor, &kept);
        }
        let tail = kept.last().copied();
        for item in 0..last {
            self.items[item].dropped |= !kept.contains(&item);
        }
        for item in last..self.items.len() {
            if let Up::Item(parent) = self.items[item].up
                && self.items[parent].dropped
            {
                self.items[item].up = tail.map_or(Up::Missing, Up::Item);
            }
        }
    }

    /// The summary's item and the items that were kept, head first; `None` if any of them is not here.
    fn kept_tail(
        &self,
        metadata: threadline_entry::lens::CompactMetadata<'s>,
    ) -> Option<(Option<usize>, Vec<usize>)> {
        let find = |uuid: Cow<'_, str>| self.by_uuid.get(&*uuid).copied();
        if let Some(messages) = metadata.preserved_messages()
            && let Some(uuids) = messages.uuids().filter(|uuids| !uuids.is_empty())
        {
            let kept = uuids.iter().map(find).collect::<Option<Vec<_>>>()?;
            return Some((messages.anchor_uuid().and_then(find), kept));
        }
        let segment = metadata.preserved_segment()?;
        let head = segment.head_uuid().and_then(find)?;
        let mut kept = Vec::new();
        let mut at = segment.tail_uuid().and_then(find)?;
        loop {
            if kept.contains(&at) {
                return None;
            }
            kept.push(at);
            if at == head {
                kept.reverse();
                return Some((segment.anchor_uuid().and_then(find), kept));
            }
            let Up::Item(above) = self.items[at].up else { return None };
            at = above;
        }
    }

    fn relink(&mut self, anchor: Option<usize>, kept: &[usize]) {
        let Some((&head, &tail)) = kept.first().zip(kept.last()) else { return };
        if let Some(anchor) = anchor {
            for item in 0..self.items.len() {
                if self.items[item].up == Up::Item(anchor) && item != head {
                    self.items[item].up = Up::Item(tail);
                }
            }
            self.preserved = Some((anchor, tail));
        }
        let mut above = anchor.map_or(Up::Missing, Up::Item);
        for &item in kept {
            self.items[item].up = above;
            above = Up::Item(item);
        }
    }

    /// From an item up to its root, itself first. Ends where a parent is missing.
    fn up(&self, item: usize) -> impl Iterator<Item = usize> {
        let mut seen = FxHashSet::default();
        std::iter::successors(Some(item), |&item| match self.items[item].up {
            Up::Item(parent) if !self.items[parent].dropped => Some(parent),
            _ => None,
        })
        .take_while(move |&item| seen.insert(item))
    }

    /// The item that the conversation ends with.
    ///
    /// The last line in file order that belongs to a conversation, unless the person went back: then
    /// `last-prompt` names a line that is not on the way up from there.
    pub(super) fn leaf(&self) -> Option<usize> {
        let spoken = |item: usize| matches!(self.entry(item).kind(), Kind::User | Kind::Assistant);
        // Going up from every line would be slow in a long log: remember which lines lead to nothing.
        let mut silent = FxHashSet::default();
        let mut main = self.live().rev().filter(|&item| !self.is_sidechain(item));
        let found = main.find(|&item| {
            let mut way = Vec::new();
            for item in self.up(item) {
                if silent.contains(&item) {
                    break;
                }
                if spoken(item) {
                    return true;
                }
                way.push(item);
            }
            silent.extend(way);
            false
        });
        let newest = found.or_else(|| self.live().rev().find(|&item| !self.is_sidechain(item)))?;
        let newest = match self.preserved {
            Some((anchor, tail)) if anchor == newest => tail,
            _ => newest,
        };
        let named = self.last_prompt.as_ref().and_then(|uuid| self.by_uuid.get(uuid).copied());
        let named = named.filter(|&item| !self.items[item].dropped && !self.is_sidechain(item));
        Some(named.filter(|&item| self.up(newest).all(|above| above != item)).unwrap_or(newest))
    }

    /// The lines that a resume reads, oldest first, as entries of the session.
    pub(super) fn path(&self, leaf: usize) -> Vec<usize> {
        let mut walk = self.walk(leaf);
        self.recover(&mut walk);
        let boundary = walk.iter().rposition(|&item| self.is_boundary(item)).unwrap_or(0);
        walk[boundary..].iter().map(|&item| self.items[item].entry_idx).collect()
    }

    /// From the root down to the leaf. Where a parent is missing, goes on from the line that was
    /// written just before.
    fn walk(&self, leaf: usize) -> Vec<usize> {
        let mut seen = FxHashSet::default();
        let mut walk = Vec::new();
        let mut at = Some(leaf);
        while let Some(item) = at.filter(|&item| seen.insert(item)) {
            walk.push(item);
            at = match self.items[item].up {
                Up::Root => None,
                Up::Item(parent) if !self.items[parent].dropped => Some(parent),
                Up::Item(_) | Up::Missing => self.written_before(item, &seen),
            };
        }
        walk.reverse();
        walk
    }

    /// The newest line that is not younger than `item`, and not much older.
    fn written_before(&self, item: usize, seen: &FxHashSet<usize>) -> Option<usize> {
        let now = self.timestamp(item)?;
        let by_time = self.by_time.get_or_init(|| {
            let main = self.live().filter(|&item| !self.is_sidechain(item));
            let mut by_time: Vec<_> = main.filter_map(|item| Some((self.timestamp(item)?, item))).collect();
            // Of lines of one moment the first counts, so it stands last.
            by_time.sort_by_key(|&(time, item)| (time, std::cmp::Reverse(item)));
            by_time
        });
        let end = by_time.partition_point(|&(time, _)| time <= now);
        let near = by_time[..end].iter().rev().take_while(|&&(time, _)| time >= now - NEARBY);
        near.map(|&(_, item)| item).find(|item| !seen.contains(item))
    }

    /// Puts back what the walk missed of the replies it met: their other lines, and the results that
    /// hang on any of their lines, right behind the reply's last line on the walk.
    fn recover(&self, walk: &mut Vec<usize>) {
        let on_walk: FxHashSet<usize> = walk.iter().copied().collect();
        let mut last_of: FxHashMap<Cow<'s, str>, usize> = FxHashMap::default();
        for (at, &item) in walk.iter().enumerate() {
            if let Some(id) = self.message_id(item) {
                last_of.insert(id, at);
            }
        }
        // For each place on the walk: the lines, then the results, that go behind it.
        let mut behind: FxHashMap<usize, (Vec<usize>, Vec<usize>)> = FxHashMap::default();
        for item in self.live().filter(|item| !on_walk.contains(item)) {
            let place = |id: Option<Cow<'s, str>>| id.and_then(|id| last_of.get(&id).copied());
            if let Some(at) = place(self.message_id(item)) {
                behind.entry(at).or_default().0.push(item);
            } else if let Up::Item(parent) = self.items[item].up
                && let Some(at) = place(self.message_id(parent))
                && self.has_result(item)
            {
                behind.entry(at).or_default().1.push(item);
            }
        }
        if behind.is_empty() {
            return;
        }
        let mut full = Vec::with_capacity(walk.len() + behind.len());
        for (at, &item) in walk.iter().enumerate() {
            full.push(item);
            if let Some((mut lines, mut results)) = behind.remove(&at) {
                lines.sort_by_key(|&item| self.timestamp(item));
                results.sort_by_key(|&item| self.timestamp(item));
                full.append(&mut lines);
                full.append(&mut results);
            }
        }
        *walk = full;
    }

    fn message_id(&self, item: usize) -> Option<Cow<'s, str>> {
        let entry = self.entry(item);
        (entry.kind() == Kind::Assistant).then(|| entry.message()?.id()).flatten()
    }

    fn has_result(&self, item: usize) -> bool {
        let entry = self.entry(item);
        entry.kind() == Kind::User
            && entry.message().is_some_and(|message| message.blocks().any(|block| block.is("tool_result")))
    }
}
