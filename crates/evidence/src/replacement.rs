//! Replacements of text, as the edit tools make them.

use std::ops::Range;

/// A text replacement made by a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditReplacement {
    /// The text to replace.
    pub old: String,
    /// The new text.
    pub new: String,
    /// Whether all occurrences are replaced.
    pub all: bool,
}

/// The most bytes that one replacement may add. One that replaces all occurrences is short, and may double a
/// text.
const MAX_GROWTH: usize = 16 << 20;

impl EditReplacement {
    /// Applies the replacement to a text. Returns the byte range of the first occurrence, and the new text.
    /// `None` if the text does not contain the old one, or would become too long.
    pub(crate) fn apply(&self, text: &str) -> Option<(Range<usize>, String)> {
        let (old, new, all) = (&*self.old, &*self.new, self.all);
        if old.is_empty() {
            let after = if text.is_empty() { new.to_owned() } else { format!("{new}{text}") };
            return Some((0..0, after));
        }
        // Deleting whole lines also deletes their newline, as the tool does.
        let line = format!("{old}\n");
        let old = if new.is_empty() && !old.ends_with('\n') && text.contains(&line) { &*line } else { old };
        let start = text.find(old)?;
        let added = if all { new.len().saturating_sub(old.len()) } else { 0 };
        if added > 0 {
            // The log contains the new text once.
            let n_more = text[start + old.len()..].matches(old).count();
            (added.saturating_mul(n_more) <= MAX_GROWTH).then_some(())?;
        }
        let after = if all { text.replace(old, new) } else { text.replacen(old, new, 1) };
        Some((start..start + old.len(), after))
    }
}
