//! Replies: what the model said in one go, put together from the lines it was written on.

use threadline_entry::lens::{Block, Usage};

use crate::session::Session;

/// One message of the model.
///
/// Claude Code writes a line for each block, and other lines may stand in between; what belongs
/// together is told by `message.id` alone, over the whole log.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The id that the API gave it; old or foreign writers may leave it out.
    pub id: Option<String>,
    /// The model that answered; `<synthetic>` for what Claude Code wrote itself.
    pub model: Option<String>,
    /// The lines it stands on, in file order.
    pub entries: Vec<usize>,
    /// The tool calls that it made, by their place in [`Session::tool_calls`].
    pub calls: Vec<usize>,
}

impl Reply {
    /// Whether Claude Code wrote this itself, such as the text of an API error.
    pub fn is_synthetic(&self) -> bool {
        self.model.as_deref() == Some("<synthetic>")
    }

    /// The blocks, in file order, with the entry that each stands on.
    ///
    /// A reply that was written out twice, line by line, comes back once.
    pub fn blocks<'s>(&'s self, session: &'s Session) -> Vec<(usize, Block<'s>)> {
        let mut blocks: Vec<(usize, Block<'s>)> = Vec::new();
        for &entry_idx in &self.entries {
            for block in
                session.entries()[entry_idx].message().into_iter().flat_map(|message| message.blocks())
            {
                let raw = |block: Block<'s>| threadline_entry::lens::Lens::object(block).json().raw();
                let again = blocks.iter().any(|(idx, seen)| *idx != entry_idx && raw(*seen) == raw(block));
                if !again {
                    blocks.push((entry_idx, block));
                }
            }
        }
        blocks
    }

    /// What the reply used. Lines repeat the figures, and early ones are too low: the largest counts.
    pub fn usage<'s>(&self, session: &'s Session) -> Option<Usage<'s>> {
        let usage = |idx: usize| session.entries()[idx].message()?.usage();
        match self.entries[..] {
            [only] => usage(only),
            _ => self.entries.iter().filter_map(|&idx| usage(idx)).max_by_key(|usage| usage.output_tokens()),
        }
    }
}
