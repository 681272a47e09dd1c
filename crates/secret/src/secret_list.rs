//! Secrets with their placeholders.

use crate::replacer::PlaceholderId;

/// Texts with their placeholders. They share one allocation, since a log may contain very many.
#[derive(Clone, Default)]
pub(crate) struct SecretList {
    /// The texts, without separators.
    text: String,
    /// The end of each text.
    ends: Vec<u32>,
    placeholders: Vec<PlaceholderId>,
}

impl SecretList {
    /// Adds a text, and returns whether there was room: all texts together are shorter than 4 GiB.
    pub(crate) fn push(&mut self, text: &str, placeholder: PlaceholderId) -> bool {
        let Ok(end) = u32::try_from(self.text.len() + text.len()) else { return false };
        self.text.push_str(text);
        self.ends.push(end);
        self.placeholders.push(placeholder);
        true
    }

    /// Frees the memory that further texts would need.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.placeholders.shrink_to_fit();
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the text at an index, and its placeholder.
    pub(crate) fn at(&self, index: u32) -> (&str, PlaceholderId) {
        let index = index as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        (&self.text[start..self.ends[index] as usize], self.placeholders[index])
    }
}
