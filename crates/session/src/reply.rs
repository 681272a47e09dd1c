//! Replies: messages of the model, merged from the lines that they were written on.

use foldhash::HashMap;
use threadline_entry::lens::{Block, Lens, Usage};
use threadline_entry::value;

use crate::index::{CallIndex, EntryIndex};
use crate::session::Session;

/// One message of the model.
///
/// Claude Code writes one line per block, and other lines may be interleaved. Lines with the same
/// `message.id` belong together, in the whole log.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The message id of the API. `None` if the writer left it out, as old and foreign ones do.
    pub id: Option<String>,
    /// The model. `<synthetic>` for messages that Claude Code generated itself.
    pub model: Option<String>,
    /// The lines of the reply, in file order.
    pub entries: Vec<EntryIndex>,
    /// The line whose token usage counts. Lines repeat the figures, and those on early lines are too low, so
    /// it is the last one of those with the most output tokens.
    pub usage_entry: EntryIndex,
    /// The tool calls of the reply, as indexes into [`Session::tool_calls`].
    pub calls: Vec<CallIndex>,
}

impl Reply {
    /// Returns whether Claude Code generated the reply itself, such as the text of an API error.
    pub fn is_synthetic(&self) -> bool {
        self.model.as_deref() == Some(value::SYNTHETIC_MODEL)
    }

    /// Returns the blocks in file order, each with the index of its entry.
    ///
    /// Blocks that are repeated on another line are skipped, so a reply that was written twice is returned
    /// once.
    pub fn blocks<'s>(&'s self, session: &'s Session) -> impl Iterator<Item = (EntryIndex, Block<'s>)> {
        let blocks = self.entries.iter().flat_map(|&entry_idx| {
            let message = session.entries()[entry_idx].message().into_iter();
            message.flat_map(move |message| message.blocks().map(move |block| (entry_idx, block)))
        });
        // The first line that has a block, if there are several lines.
        let mut lines: HashMap<&'s str, EntryIndex> = HashMap::default();
        blocks.filter(move |(entry_idx, block)| {
            let raw = Lens::object(*block).json().raw();
            self.entries.len() == 1 || *lines.entry(raw).or_insert(*entry_idx) == *entry_idx
        })
    }

    /// Returns the token usage of the reply, as logged on [`Reply::usage_entry`].
    pub fn usage<'s>(&self, session: &'s Session) -> Option<Usage<'s>> {
        session.entries()[self.usage_entry].message()?.usage()
    }
}
