//! The tree nodes of the entries that have one.

use std::num::NonZeroU32;
use std::ops::{Index, IndexMut};

use threadline_entry::Millis;

use crate::index::{EntryIndex, IndexVec, ReplyIndex};
use crate::input::InputKind;
use crate::uuid_table::UuidKey;

/// The links of an entry. Kept small, since a log may consist of very short lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreeNode {
    /// The parent, if it is in the log.
    pub(crate) parent: Option<EntryIndex>,
    /// The entry's own uuid and its parent's uuid. `None` if the kind of entry cannot be in the tree.
    pub(crate) uuid: Option<UuidKey>,
    pub(crate) parent_uuid: Option<UuidKey>,
    pub(crate) first_child: Option<EntryIndex>,
    pub(crate) last_child: Option<EntryIndex>,
    pub(crate) next_sibling: Option<EntryIndex>,
    pub(crate) reply: Option<ReplyIndex>,
    /// [`NO_TIMESTAMP`] if the entry has none.
    pub(crate) timestamp: Millis,
    pub(crate) input: Option<InputKind>,
    /// Whether the entry names a parent that is not in the log.
    pub(crate) is_dangling: bool,
    pub(crate) in_tree: bool,
    pub(crate) sidechain: bool,
}

/// The timestamp of a [`TreeNode`] whose entry has none.
pub(crate) const NO_TIMESTAMP: Millis = Millis::MIN;

impl TreeNode {
    /// The node of an entry outside the tree about which nothing is recorded.
    pub(crate) const EMPTY: Self = Self {
        parent: None,
        uuid: None,
        parent_uuid: None,
        first_child: None,
        last_child: None,
        next_sibling: None,
        reply: None,
        timestamp: NO_TIMESTAMP,
        input: None,
        is_dangling: false,
        in_tree: false,
        sidechain: false,
    };
}

/// The node of each entry. Empty nodes are not stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeTable {
    /// One more than the position of the entry's node in `nodes`. `None` for an empty node.
    positions: IndexVec<EntryIndex, Option<NonZeroU32>>,
    nodes: Vec<TreeNode>,
    /// A union-find forest over the tree: an ancestor of each entry in `nodes`, or the entry itself for a
    /// root. Lookups halve the path.
    root_links: Vec<EntryIndex>,
}

impl NodeTable {
    /// Adds the node of the next entry.
    pub(crate) fn push(&mut self, node: TreeNode) {
        if node == TreeNode::EMPTY {
            self.positions.push(None);
            return;
        }
        self.root_links.push(self.positions.end());
        self.nodes.push(node);
        self.positions.push(NonZeroU32::new(self.nodes.len() as u32));
    }

    /// Reserves memory for this many further entries, and no more.
    pub(crate) fn reserve_exact(&mut self, count: usize) {
        self.positions.reserve_exact(count);
        self.nodes.reserve_exact(count);
        self.root_links.reserve_exact(count);
    }

    /// Returns the root of the tree that contains an entry.
    pub(crate) fn root_of(&mut self, entry_idx: EntryIndex) -> EntryIndex {
        let mut root = entry_idx;
        loop {
            let above = self.root_link(root);
            if above == root {
                return root;
            }
            // Path halving: shortens later lookups.
            let next = self.root_link(above);
            self.set_root_link(root, next);
            root = next;
        }
    }

    /// Sets an ancestor of an entry.
    pub(crate) fn set_root_link(&mut self, entry_idx: EntryIndex, ancestor: EntryIndex) {
        if let Some(position) = self.position(entry_idx) {
            self.root_links[position] = ancestor;
        }
    }

    fn root_link(&self, entry_idx: EntryIndex) -> EntryIndex {
        self.position(entry_idx).map_or(entry_idx, |position| self.root_links[position])
    }

    fn position(&self, entry_idx: EntryIndex) -> Option<usize> {
        self.positions[entry_idx].map(|position| position.get() as usize - 1)
    }
}

impl Index<EntryIndex> for NodeTable {
    type Output = TreeNode;

    fn index(&self, entry_idx: EntryIndex) -> &TreeNode {
        match self.position(entry_idx) {
            Some(position) => &self.nodes[position],
            None => &TreeNode::EMPTY,
        }
    }
}

impl IndexMut<EntryIndex> for NodeTable {
    /// # Panics
    ///
    /// If the node is empty. Entries in the tree have a node.
    fn index_mut(&mut self, entry_idx: EntryIndex) -> &mut TreeNode {
        let position = self.position(entry_idx).expect("the entry is in the tree");
        &mut self.nodes[position]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_node_is_small_and_an_empty_one_is_not_stored() {
        // A log may consist of very short lines.
        assert!(size_of::<TreeNode>() <= 40, "{}", size_of::<TreeNode>());
        let mut table = NodeTable::default();
        for in_tree in [false, true, false] {
            table.push(TreeNode { in_tree, ..TreeNode::EMPTY });
        }
        assert_eq!(table.nodes.len(), 1);
        let second = EntryIndex::FIRST.next();
        table[second].sidechain = true;
        assert!(table[second].sidechain && table.root_of(second) == second);
        assert_eq!(table[EntryIndex::FIRST], TreeNode::EMPTY);
    }
}
