//! The lines that a resume reads: the leaf, its ancestors, and the lines attached to that path.

use std::borrow::Cow;
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeSet;

use foldhash::{HashMap, HashSet};
use threadline_entry::lens::CompactBoundary;
use threadline_entry::{Entry, Kind, Millis, key, value};

use super::rule::{ReplayRule, VersionRules};
use crate::index::EntryIndex;
use crate::session::Session;

/// The maximum age, relative to its child, of a line that substitutes for a missing parent.
const MAX_SUBSTITUTE_AGE: Millis = 5000;

/// The conversation lines as Claude Code stores them: one per uuid, in file order.
pub(super) struct ResumeGraph<'s> {
    session: &'s Session,
    rules: VersionRules,
    items: Vec<GraphItem>,
    item_by_uuid: HashMap<Cow<'s, str>, usize>,
    /// The leaf named by the last `last-prompt` line.
    last_prompt: Option<Cow<'s, str>>,
    /// Whether a compaction preserved its tail, and the tail was linked below the summary.
    preserved: bool,
    nearest_messages: RefCell<NearestAncestors>,
}

struct GraphItem {
    entry_idx: EntryIndex,
    parent: ItemParent,
    /// Whether a compaction removed the item.
    dropped: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemParent {
    Root,
    Item(usize),
    Missing,
}

/// The nearest item with some property at or above each item, as far as it was searched for.
#[derive(Default)]
struct NearestAncestors {
    /// By item. `Some(None)` if there is none.
    known: Vec<Option<Option<u32>>>,
}

impl NearestAncestors {
    /// Returns the nearest item with the property, which must be the same one in each call.
    fn find(
        &mut self,
        graph: &ResumeGraph<'_>,
        item: usize,
        has_property: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        self.known.resize(graph.items.len(), None);
        let (mut searched, mut at) = (Vec::new(), Some(item));
        let mut found = None;
        while let Some(item) = at {
            if let Some(known) = self.known[item] {
                found = known;
                break;
            }
            // The parents may form a cycle.
            self.known[item] = Some(None);
            searched.push(item);
            if has_property(item) {
                found = Some(item as u32);
                break;
            }
            at = graph.parent(item);
        }
        for item in searched {
            self.known[item] = Some(found);
        }
        found.map(|item| item as usize)
    }
}

/// The items that a walk has not visited, by time: of the main conversation, and of sidechains. Of items with
/// the same time, the first one is the last.
struct ItemsByTime([BTreeSet<(Millis, Reverse<usize>)>; 2]);

impl ItemsByTime {
    fn without(graph: &ResumeGraph<'_>, seen: &HashSet<usize>) -> Self {
        let items = |sidechain: bool| {
            let items = graph.kept_items().filter(|item| !seen.contains(item));
            let items = items.filter(|&item| graph.is_sidechain(item) == sidechain);
            items.filter_map(|item| Some((graph.timestamp(item)?, Reverse(item)))).collect()
        };
        Self([items(false), items(true)])
    }

    fn remove(&mut self, graph: &ResumeGraph<'_>, item: usize) {
        if let Some(time) = graph.timestamp(item) {
            self.0[usize::from(graph.is_sidechain(item))].remove(&(time, Reverse(item)));
        }
    }

    /// Returns the newest item that is not newer than `item` and at most [`MAX_SUBSTITUTE_AGE`] older.
    fn just_before(&self, graph: &ResumeGraph<'_>, item: usize) -> Option<usize> {
        let now = graph.timestamp(item)?;
        let items = &self.0[usize::from(graph.is_sidechain(item))];
        let (time, Reverse(before)) = *items.range(..=(now, Reverse(0))).next_back()?;
        (time >= now - MAX_SUBSTITUTE_AGE).then_some(before)
    }
}

impl<'s> ResumeGraph<'s> {
    pub(super) fn new(session: &'s Session, rules: VersionRules) -> Self {
        let mut graph = Self {
            session,
            rules,
            items: Vec::new(),
            item_by_uuid: HashMap::default(),
            last_prompt: None,
            preserved: false,
            nearest_messages: RefCell::default(),
        };
        graph.load();
        if rules.has(ReplayRule::PreservedTail) {
            graph.apply_preserved_tail();
        }
        graph
    }

    pub(super) fn entry_idx(&self, item: usize) -> EntryIndex {
        self.items[item].entry_idx
    }

    /// Returns the item of a line.
    pub(super) fn item_of(&self, entry_idx: EntryIndex) -> Option<usize> {
        self.items.iter().position(|item| item.entry_idx == entry_idx)
    }

    pub(super) fn timestamp(&self, item: usize) -> Option<Millis> {
        self.session.timestamp(self.items[item].entry_idx)
    }

    /// Returns the item with a uuid.
    fn item(&self, uuid: &str) -> Option<usize> {
        self.item_by_uuid.get(uuid).copied()
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

    fn kept_items(&self) -> impl DoubleEndedIterator<Item = usize> {
        (0..self.items.len()).filter(|&item| !self.items[item].dropped)
    }

    /// Loads the lines.
    ///
    /// A repeated uuid replaces the earlier line in its position. `progress` lines become no items; their
    /// children are linked to their parents.
    fn load(&mut self) {
        let session = self.session;
        // The parent of each `progress` line.
        let mut bridges: HashMap<Cow<'s, str>, Option<Cow<'s, str>>> = HashMap::default();
        for (entry_idx, entry) in session.entries().enumerated() {
            if entry.follows_on_line() {
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
                    let item = *self.item_by_uuid.entry(uuid).or_insert(self.items.len());
                    if item == self.items.len() {
                        self.items.push(GraphItem { entry_idx, parent: ItemParent::Root, dropped: false });
                    }
                    self.items[item].entry_idx = entry_idx;
                    if self.session.is_boundary(entry_idx) {
                        self.last_prompt = None;
                    }
                }
                Kind::LastPrompt => {
                    if let Some(leaf) = entry.get(key::LEAF_UUID).and_then(|leaf| leaf.as_str()) {
                        self.last_prompt = Some(leaf);
                    }
                }
                _ => {}
            }
        }
        for item in 0..self.items.len() {
            let mut parent = self.entry(item).parent_uuid();
            let mut crossed: HashSet<Cow<'s, str>> = HashSet::default();
            while let Some(uuid) = &parent
                && self.item(uuid).is_none()
                && let Some(above) = bridges.get(uuid)
                && crossed.insert(uuid.clone())
            {
                parent = above.clone();
            }
            // Many items may be below one chain of `progress` lines.
            for uuid in crossed {
                bridges.insert(uuid, parent.clone());
            }
            self.items[item].parent = match &parent {
                None => ItemParent::Root,
                Some(name) => self.item(name).map_or(ItemParent::Missing, ItemParent::Item),
            };
        }
    }

    /// Applies a compaction that preserved its tail.
    ///
    /// Links the tail below the summary, and the lines that follow below the end of the tail. Drops the
    /// other lines that precede the boundary.
    fn apply_preserved_tail(&mut self) {
        let boundaries: Vec<usize> = self.kept_items().filter(|&item| self.is_boundary(item)).collect();
        let keeps = |item: usize| {
            let metadata = self.entry(item).lens::<CompactBoundary<'s>>()?.compact_metadata()?;
            (metadata.preserved_segment().is_some() || metadata.preserved_messages().is_some())
                .then_some(metadata)
        };
        let (Some(&last), true) = (boundaries.last(), boundaries.iter().any(|&item| keeps(item).is_some()))
        else {
            return;
        };
        let mut kept = Vec::new();
        if let Some(metadata) = keeps(last) {
            let Some((anchor, tail)) = self.kept_tail(metadata) else { return };
            kept = tail;
            self.relink(anchor, &kept);
        }
        let tail = kept.last().copied();
        let kept: HashSet<usize> = kept.into_iter().collect();
        for item in 0..last {
            self.items[item].dropped |= !kept.contains(&item);
        }
        for item in last..self.items.len() {
            if let ItemParent::Item(parent) = self.items[item].parent
                && self.items[parent].dropped
            {
                self.items[item].parent = tail.map_or(ItemParent::Missing, ItemParent::Item);
            }
        }
    }

    /// Returns the item of the summary and the preserved items, in order. `None` if a preserved item is
    /// missing.
    fn kept_tail(
        &self,
        metadata: threadline_entry::lens::CompactMetadata<'s>,
    ) -> Option<(Option<usize>, Vec<usize>)> {
        let find = |uuid: Cow<'_, str>| self.item(&uuid);
        if let Some(messages) = metadata.preserved_messages()
            && let Some(uuids) = messages.uuids().filter(|uuids| !uuids.is_empty())
        {
            let kept = uuids.iter().map(find).collect::<Option<Vec<_>>>()?;
            return Some((messages.anchor_uuid().and_then(find), kept));
        }
        let segment = metadata.preserved_segment()?;
        let head = segment.head_uuid().and_then(find)?;
        let (mut kept, mut seen) = (Vec::new(), HashSet::default());
        let mut at = segment.tail_uuid().and_then(find)?;
        loop {
            if !seen.insert(at) {
                return None;
            }
            kept.push(at);
            if at == head {
                kept.reverse();
                return Some((segment.anchor_uuid().and_then(find), kept));
            }
            let ItemParent::Item(above) = self.items[at].parent else { return None };
            at = above;
        }
    }

    fn relink(&mut self, anchor: Option<usize>, kept: &[usize]) {
        let Some((&head, &tail)) = kept.first().zip(kept.last()) else { return };
        if let Some(anchor) = anchor {
            for item in 0..self.items.len() {
                if self.items[item].parent == ItemParent::Item(anchor) && item != head {
                    self.items[item].parent = ItemParent::Item(tail);
                }
            }
        }
        self.preserved = true;
        let mut above = anchor.map_or(ItemParent::Missing, ItemParent::Item);
        for &item in kept {
            self.items[item].parent = above;
            above = ItemParent::Item(item);
        }
    }

    /// Returns the parent of an item. `None` at a root, and if the parent is missing or dropped.
    fn parent(&self, item: usize) -> Option<usize> {
        match self.items[item].parent {
            ItemParent::Item(parent) if !self.items[parent].dropped => Some(parent),
            _ => None,
        }
    }

    /// Returns the nearest message at or above an item.
    fn nearest_message(&self, item: usize) -> Option<usize> {
        let is_message = |item: usize| matches!(self.entry(item).kind(), Kind::User | Kind::Assistant);
        self.nearest_messages.borrow_mut().find(self, item, is_message)
    }

    /// Returns whether an item is another one or one of its ancestors.
    fn is_at_or_above(&self, item: usize, below: usize) -> bool {
        let ancestors = std::iter::successors(Some(below), |&item| self.parent(item));
        // The parents may form a cycle.
        ancestors.take(self.items.len()).any(|above| above == item)
    }

    /// Returns the item that the conversation ends with.
    pub(super) fn leaf(&self) -> Option<usize> {
        if self.rules.has(ReplayRule::NewestLeaf) {
            self.newest_leaf()
        } else if self.preserved {
            self.last_childless_leaf()
        } else {
            self.last_leaf()
        }
    }

    /// Returns the item with the newest timestamp that is at or below a message. Of equal ones, the first.
    fn newest_leaf(&self) -> Option<usize> {
        let main = self.kept_items().filter(|&item| !self.is_sidechain(item));
        let spoken = main.filter(|&item| self.nearest_message(item).is_some());
        spoken.max_by_key(|&item| (self.timestamp(item), Reverse(self.items[item].entry_idx)))
    }

    /// Returns the last item in file order that is at or below a message.
    ///
    /// If the user went back, `last-prompt` names an item that is not an ancestor of the last one. That is
    /// the leaf then.
    fn last_leaf(&self) -> Option<usize> {
        let mut main: Vec<usize> = self.kept_items().filter(|&item| !self.is_sidechain(item)).collect();
        main.sort_by_key(|&item| self.items[item].entry_idx);
        let &tip = main.last()?;
        let latest = main.into_iter().rev().find(|&item| self.nearest_message(item).is_some());
        let Some(latest) = latest else { return Some(tip) };
        let named = self.last_prompt.as_ref().and_then(|uuid| self.item(uuid));
        let named = named.filter(|&item| !self.items[item].dropped && self.nearest_message(item).is_some());
        let leaf = named.filter(|&item| !self.is_at_or_above(item, tip)).unwrap_or(latest);
        self.nearest_message(leaf).is_some_and(|talk| !self.is_sidechain(talk)).then_some(leaf)
    }

    /// Returns the leaf if a compaction preserved its tail: of the items without children, the one with the
    /// last message.
    fn last_childless_leaf(&self) -> Option<usize> {
        let parents: HashSet<usize> = self
            .kept_items()
            .filter_map(|item| match self.items[item].parent {
                ItemParent::Item(parent) => Some(parent),
                ItemParent::Root | ItemParent::Missing => None,
            })
            .collect();
        let ends = self.kept_items().filter(|item| !parents.contains(item) && !self.is_sidechain(*item));
        let ends: Vec<(usize, usize)> =
            ends.filter_map(|item| Some((self.nearest_message(item)?, item))).collect();
        let &(talk, end) = ends.iter().max()?;
        let named = self.last_prompt.as_ref().and_then(|uuid| self.item(uuid));
        let named = named.filter(|&item| item != talk && ends.iter().any(|&(talk, _)| talk == item));
        let (talk, leaf) = named.map_or((talk, end), |item| (item, item));
        (!self.is_sidechain(talk)).then_some(leaf)
    }

    /// Returns the entries that a resume reads, oldest first.
    ///
    /// `None` if the version refuses to resume because a message has no content.
    pub(super) fn path(&self, leaf: usize) -> Option<Vec<EntryIndex>> {
        let mut walk = self.walk(leaf);
        let is_message = |item: &usize| {
            let entry = self.entry(*item);
            let content = || entry.message().and_then(|message| message.content());
            match entry.kind() {
                Kind::User => content().is_some(),
                Kind::Assistant => content().is_some_and(|content| content.as_str().is_none()),
                _ => true,
            }
        };
        if !self.rules.has(ReplayRule::AcceptMissingContent) && !walk.iter().all(is_message) {
            return None;
        }
        if self.rules.has(ReplayRule::RecoverSiblingLines) {
            self.recover_missed_lines(&mut walk);
        }
        let boundary = walk.iter().rposition(|&item| self.is_boundary(item)).unwrap_or(0);
        Some(walk[boundary..].iter().map(|&item| self.items[item].entry_idx).collect())
    }

    /// Returns the items from the root to the leaf.
    ///
    /// If a parent is missing or closes a cycle, continues with the line that was written just before.
    fn walk(&self, leaf: usize) -> Vec<usize> {
        let mut seen = HashSet::default();
        let mut walk = Vec::new();
        let mut unseen: Option<ItemsByTime> = None;
        let mut at = Some(leaf);
        while let Some(item) = at {
            seen.insert(item);
            walk.push(item);
            if let Some(unseen) = &mut unseen {
                unseen.remove(self, item);
            }
            at = match self.items[item].parent {
                ItemParent::Root => None,
                ItemParent::Item(parent) if !self.items[parent].dropped && !seen.contains(&parent) => {
                    Some(parent)
                }
                ItemParent::Item(_) | ItemParent::Missing
                    if self.rules.has(ReplayRule::BridgeMissingParent) =>
                {
                    unseen.get_or_insert_with(|| ItemsByTime::without(self, &seen)).just_before(self, item)
                }
                ItemParent::Item(_) | ItemParent::Missing => None,
            };
        }
        walk.reverse();
        walk
    }

    /// Inserts lines that the walk missed: other lines of its replies, and results attached to any of
    /// these.
    ///
    /// They are inserted after the last line of the reply on the walk.
    fn recover_missed_lines(&self, walk: &mut Vec<usize>) {
        let on_walk: HashSet<usize> = walk.iter().copied().collect();
        let mut last_of: HashMap<Cow<'s, str>, usize> = HashMap::default();
        for (at, &item) in walk.iter().enumerate() {
            if let Some(id) = self.message_id(item) {
                last_of.insert(id, at);
            }
        }
        // By position on the walk: the reply lines and the results to insert after it.
        let mut behind: HashMap<usize, (Vec<usize>, Vec<usize>)> = HashMap::default();
        let mut nearest = NearestAncestors::default();
        for item in self.kept_items().filter(|item| !on_walk.contains(item)) {
            let place = |id: Option<Cow<'s, str>>| id.and_then(|id| last_of.get(&id).copied());
            if let Some(at) = place(self.message_id(item)) {
                behind.entry(at).or_default().0.push(item);
            } else if let ItemParent::Item(parent) = self.items[item].parent
                && let Some(at) = place(self.message_id(parent))
                && self.has_result(item)
            {
                behind.entry(at).or_default().1.push(item);
            } else if self.rules.has(ReplayRule::RecoverAttachments)
                && let Some(at) = self.attached_to(item, &on_walk, &last_of, &mut nearest)
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

    /// Returns the position on the walk of the reply that an attachment belongs to.
    ///
    /// The attachment is below a line of that reply, with only other attachments and results in between,
    /// and none of these is on the walk.
    fn attached_to(
        &self,
        item: usize,
        on_walk: &HashSet<usize>,
        last_of: &HashMap<Cow<'s, str>, usize>,
        nearest: &mut NearestAncestors,
    ) -> Option<usize> {
        if self.entry(item).kind() != Kind::Attachment {
            return None;
        }
        let is_between = |item: usize| {
            !on_walk.contains(&item) && (self.entry(item).kind() == Kind::Attachment || self.has_result(item))
        };
        let above = nearest.find(self, item, |item| !is_between(item))?;
        last_of.get(&self.message_id(above)?).copied()
    }

    fn message_id(&self, item: usize) -> Option<Cow<'s, str>> {
        let entry = self.entry(item);
        (entry.kind() == Kind::Assistant).then(|| entry.message()?.id()).flatten()
    }

    fn has_result(&self, item: usize) -> bool {
        let entry = self.entry(item);
        entry.kind() == Kind::User
            && entry
                .message()
                .is_some_and(|message| message.blocks().any(|block| block.is(value::TOOL_RESULT)))
    }
}
