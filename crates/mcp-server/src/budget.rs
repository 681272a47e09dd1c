//! The size of an answer: a page of items that fits a number of tokens, and the cursor of the next page.

use std::hash::{Hash, Hasher};

use serde::Serialize;
use serde_json::{Map, Value};

/// The default size of an answer in tokens.
pub(crate) const DEFAULT_TOKENS: u64 = 6_000;

/// The limits of the size that a client can choose.
const MIN_TOKENS: u64 = 400;
const MAX_TOKENS: u64 = 50_000;

/// The estimated number of bytes per token, a little less than the average of code and prose.
const BYTES_PER_TOKEN: u64 = 3;

/// The bytes of an answer about one session besides its items: the title, the project and notes.
const ENVELOPE: usize = 700;

/// The bytes of an answer about many sessions besides its items: counts and notes.
const LIST_ENVELOPE: usize = 350;

/// A place in a list of items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PagePlace {
    /// The index of an item, from 0.
    pub(crate) item: u64,
    /// The byte offset in the text of this item.
    pub(crate) byte: u64,
}

/// The name of the argument that contains a cursor.
const CURSOR: &str = "cursor";
/// The name of the argument that contains the size of an answer.
const MAX_TOKENS_NAME: &str = "max_tokens";

/// Returns a number that is the same for all pages of a request.
pub(crate) fn request_digest(name: &str, arguments: &Map<String, Value>) -> u32 {
    // Stable within one build of the program, which is as long as a cursor is valid.
    let mut hasher = std::hash::DefaultHasher::new();
    name.hash(&mut hasher);
    for (key, value) in arguments.iter().filter(|(key, _)| *key != CURSOR && *key != MAX_TOKENS_NAME) {
        (key, value.to_string()).hash(&mut hasher);
    }
    hasher.finish() as u32
}

impl PagePlace {
    /// Formats the place as the cursor of a request.
    pub(crate) fn cursor(self, digest: u32) -> String {
        format!("{}.{}.{digest:08x}", self.item, self.byte)
    }

    /// Parses a cursor of a request; `None` if it is invalid or that of another request.
    pub(crate) fn parse(cursor: &str, digest: u32) -> Option<Self> {
        let mut parts = cursor.split('.');
        let (item, byte) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let own = u32::from_str_radix(parts.next()?, 16).ok()?;
        (own == digest && parts.next().is_none()).then_some(Self { item, byte })
    }
}

/// Collects the items of one page.
pub(crate) struct AnswerPage<T> {
    left: usize,
    items: Vec<T>,
    text: String,
    next: Option<PagePlace>,
}

impl<T: Serialize> AnswerPage<T> {
    /// Starts a page of about this many tokens, in an answer about one session.
    pub(crate) fn new(max_tokens: Option<u64>) -> Self {
        Self::with_envelope(max_tokens, ENVELOPE)
    }

    /// Starts a page of about this many tokens, in an answer about many sessions, which has no heading.
    pub(crate) fn of_sessions(max_tokens: Option<u64>) -> Self {
        Self::with_envelope(max_tokens, LIST_ENVELOPE)
    }

    fn with_envelope(max_tokens: Option<u64>, envelope: usize) -> Self {
        let tokens = max_tokens.unwrap_or(DEFAULT_TOKENS).clamp(MIN_TOKENS, MAX_TOKENS);
        let left = (tokens * BYTES_PER_TOKEN) as usize - envelope;
        Self { left, items: Vec::new(), text: String::new(), next: None }
    }

    /// The number of bytes that are left.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// The number of items.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Adds an item, of which `text` is the form for reading. Returns whether the page has space for more. An
    /// item that does not fit is the first of the next page; `index` is its index in the whole list.
    pub(crate) fn push(&mut self, index: u64, item: T, text: &str) -> bool {
        let size = json_length(&item).max(text.len());
        if size > self.left && !self.items.is_empty() {
            self.next = Some(PagePlace { item: index, byte: 0 });
            return false;
        }
        self.left = self.left.saturating_sub(size);
        self.items.push(item);
        self.text.push_str(text);
        true
    }

    /// Adds an item like [`AnswerPage::push`]. `make` creates it and its form for reading, with texts of at
    /// most the given size. The first item of a page is always part of it: if it does not fit, its texts are
    /// shortened.
    pub(crate) fn push_shortened(&mut self, index: u64, make: impl Fn(usize) -> (T, String)) -> bool {
        let (mut item, mut text) = make(usize::MAX);
        if self.items.is_empty() {
            // The texts of the first item of a page are shortened until it fits.
            for limit in [300, 150, 75, 40] {
                if json_length(&item).max(text.len()) <= self.left {
                    break;
                }
                (item, text) = make(limit);
            }
        }
        self.push(index, item, &text)
    }

    /// Adds an item with a long text, from byte `start` of it. `make` creates the item and its form for
    /// reading from the part of the text that is shown. A text that does not fit is cut at the end of a line
    /// and continues on the next page.
    pub(crate) fn push_long(
        &mut self,
        place: PagePlace,
        text: &str,
        make: impl Fn(&str, TextPart) -> (T, String),
    ) -> bool {
        let start = text.floor_char_boundary(usize::try_from(place.byte).unwrap_or(usize::MAX));
        let rest = &text[start..];
        let part = |shown: &str| TextPart { start, end: start + shown.len(), of: text.len() };
        let (item, form) = make(rest, part(rest));
        if json_length(&item).max(form.len()) <= self.left || !self.items.is_empty() {
            return self.push(place.item, item, &form);
        }
        let (bare, bare_form) = make("", part(""));
        let space = self.left.saturating_sub(json_length(&bare).max(bare_form.len())).max(200);
        let shown = cut_to(rest, space);
        let (item, form) = make(shown, part(shown));
        self.push(place.item, item, &form);
        if shown.len() < rest.len() {
            self.next = Some(PagePlace { item: place.item, byte: (start + shown.len()) as u64 });
            return false;
        }
        true
    }

    /// Returns the items, their form for reading, and the place of the next page.
    pub(crate) fn finish(self) -> (Vec<T>, String, Option<PagePlace>) {
        (self.items, self.text, self.next)
    }
}

/// The part of a text that is shown, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextPart {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) of: usize,
}

impl TextPart {
    /// Returns whether something is missing at either end.
    pub(crate) fn is_cut(self) -> bool {
        self.start > 0 || self.end < self.of
    }
}

/// Returns the start of a text that has at most `space` bytes as JSON, up to the end of a line if one ends in
/// its second half.
pub(crate) fn cut_to(text: &str, space: usize) -> &str {
    let mut end = text.floor_char_boundary(space.min(text.len()));
    loop {
        let length = json_length(&&text[..end]).saturating_sub(2);
        if length <= space || end == 0 {
            break;
        }
        end = text.floor_char_boundary(end * space / length.max(1));
    }
    if end == text.len() {
        return text;
    }
    // At least one character, so that every page makes progress.
    let end = end.max(text.chars().next().map_or(0, char::len_utf8));
    match text[..end].rfind('\n') {
        Some(line_end) if line_end >= end / 2 => &text[..line_end + 1],
        _ => &text[..end],
    }
}

/// Shortens a text to about `space` bytes, with a mark where it was cut. Returns whether it was.
pub(crate) fn shorten(text: &str, space: usize) -> (String, bool) {
    let shown = cut_to(text, space);
    match shown.len() == text.len() {
        true => (text.to_owned(), false),
        false => (format!("{}…", shown.trim_end()), true),
    }
}

fn json_length(value: &impl Serialize) -> usize {
    serde_json::to_string(value).map_or(0, |json| json.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_between_items_and_continues() {
        let items: Vec<String> = (0..100).map(|n| format!("item {n} {}", "x".repeat(90))).collect();
        let mut seen = Vec::new();
        let mut place = PagePlace::default();
        loop {
            let mut page = AnswerPage::new(Some(MIN_TOKENS));
            for (index, item) in items.iter().enumerate().skip(place.item as usize) {
                if !page.push(index as u64, item.clone(), item) {
                    break;
                }
            }
            let (shown, text, next) = page.finish();
            assert!(!shown.is_empty() && text.len() <= 3 * MIN_TOKENS as usize, "{}", text.len());
            seen.extend(shown);
            let Some(next) = next else { break };
            place = PagePlace::parse(&next.cursor(7), 7).unwrap();
        }
        assert_eq!(seen, items);
    }

    #[test]
    fn a_long_text_continues_where_it_was_cut() {
        let text: String = (0..400).map(|n| format!("{n}: \"quoted\" \u{e9}\u{1f9f5}\n")).collect();
        let mut joined = String::new();
        let mut place = PagePlace::default();
        loop {
            let mut page = AnswerPage::new(Some(MIN_TOKENS));
            page.push_long(place, &text, |shown, _| (shown.to_owned(), shown.to_owned()));
            let (shown, _, next) = page.finish();
            assert!(serde_json::to_string(&shown).unwrap().len() <= 3 * MIN_TOKENS as usize);
            joined.extend(shown);
            let Some(next) = next else { break };
            assert!(joined.ends_with('\n'), "cut at the end of a line");
            place = next;
        }
        assert_eq!(joined, text);
    }

    #[test]
    fn a_cursor_of_another_request_is_refused() {
        let digest = |json: &str| request_digest("search", &serde_json::from_str(json).unwrap());
        let first = digest(r#"{"query":"a","max_tokens":500}"#);
        assert_eq!(first, digest(r#"{"cursor":"1.0.0","query":"a","max_tokens":900}"#));
        assert_ne!(first, digest(r#"{"query":"b"}"#));
        let place = PagePlace { item: 3, byte: 17 };
        assert_eq!(PagePlace::parse(&place.cursor(first), first), Some(place));
        for wrong in ["", "3", "3.17", "3.17.x", "-1.0.0", &place.cursor(first ^ 1), "3.17.0.0"] {
            assert_eq!(PagePlace::parse(wrong, first), None, "{wrong}");
        }
    }

    #[test]
    fn a_text_without_line_ends_is_cut_at_a_character() {
        assert_eq!(cut_to("äöü", 3), "ä");
        assert_eq!(cut_to("\u{1}\u{1}\u{1}", 7), "\u{1}");
        assert_eq!(cut_to("ä", 0), "ä");
        assert_eq!(shorten("abc", 3), ("abc".to_owned(), false));
        assert_eq!(shorten("abcd", 3), ("abc…".to_owned(), true));
    }
}
