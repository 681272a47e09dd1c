//! Parts of a session page: each can be sent, rendered and updated by itself.

/// A part of a conversation: several turns, or a section of a long one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PagePart {
    /// Its name: the anchor of its first line.
    pub name: String,
    /// A stamp that changes whenever its markup would.
    pub stamp: String,
    /// The first and last line of the log in it.
    pub lines: (u64, u64),
    /// Its estimated height in rows.
    pub rows: usize,
}

/// A section of the outline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlinePart {
    /// Its number.
    pub number: usize,
    /// A stamp that changes whenever its markup would.
    pub stamp: String,
}
