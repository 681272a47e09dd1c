//! A list of texts that share one allocation.

/// Texts in order. A log may contain very many short ones, and a [`String`] each would take far more memory
/// than they have in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextList {
    text: String,
    /// The end of each text. The texts of one line of a log are shorter than 4 GiB.
    ends: Vec<u32>,
}

impl TextList {
    /// Appends a text.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len() as u32);
    }

    /// Returns the number of texts.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no texts.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the text at an index.
    pub fn get(&self, index: usize) -> Option<&str> {
        let end = *self.ends.get(index)? as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        Some(&self.text[start..end])
    }

    /// Returns the texts.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        (0..self.len()).map(|index| self.get(index).unwrap_or_default())
    }

    /// Returns the length of all texts in bytes.
    pub fn n_bytes(&self) -> usize {
        self.text.len()
    }

    /// Returns the memory that is not needed to the system.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

impl<T: AsRef<str>> FromIterator<T> for TextList {
    fn from_iter<I: IntoIterator<Item = T>>(texts: I) -> Self {
        let mut list = Self::default();
        texts.into_iter().for_each(|text| list.push(text.as_ref()));
        list.shrink_to_fit();
        list
    }
}

#[cfg(test)]
mod tests {
    use super::TextList;

    #[test]
    fn texts_are_returned_as_they_were_added() {
        let list: TextList = ["", "a", "", "é\n"].into_iter().collect();
        assert_eq!(list.iter().collect::<Vec<_>>(), ["", "a", "", "é\n"]);
        assert_eq!((list.len(), list.n_bytes(), list.get(3), list.get(4)), (4, 4, Some("é\n"), None));
        assert!(TextList::default().is_empty() && TextList::default().get(0).is_none());
    }
}
