//! Insertions into JSON files, and removals, that preserve every other byte.

use std::ops::Range;

use threadline_entry::{Json, JsonKey};

use crate::hook_command::SettingsEditError;

/// A JSON text, to locate parsed values in.
pub(crate) struct SettingsText<'a>(pub(crate) &'a str);

impl<'a> SettingsText<'a> {
    pub(crate) fn root(&self) -> Result<Json<'a>, SettingsEditError> {
        Json::parse(self.0).filter(|json| json.is_object()).ok_or(SettingsEditError::NotAnObject)
    }

    /// Returns the byte range of a parsed value.
    pub(crate) fn range(&self, json: Json<'_>) -> Range<usize> {
        let start = json.raw().as_ptr() as usize - self.0.as_ptr() as usize;
        start..start + json.raw().len()
    }

    /// Returns the leading white space of the line that contains `at`.
    pub(crate) fn indent(&self, at: usize) -> &'a str {
        let line = &self.0[self.0[..at].rfind('\n').map_or(0, |newline| newline + 1)..at];
        &line[..line.len() - line.trim_start().len()]
    }

    /// Whether only white space precedes `at` on its line.
    pub(crate) fn is_on_own_line(&self, at: usize) -> bool {
        self.0[..at].trim_end_matches([' ', '\t']).ends_with('\n')
    }
}

/// Returns the offset and text to insert a new last member into an object.
pub(crate) fn last_member(
    text: &SettingsText<'_>,
    object: Json<'_>,
    key: &str,
    value: impl Fn(&str, &str) -> String,
) -> (usize, String) {
    let range = text.range(object);
    let outer = text.indent(range.start);
    let last = object.members().last();
    match last {
        Some((_, last)) => {
            let first = object.members().next().map_or(range.start, |(key, _)| key_start(text, key));
            let end = text.range(last).end;
            if text.is_on_own_line(first) {
                let indent = text.indent(first);
                let step = indent.strip_prefix(outer).filter(|step| !step.is_empty()).unwrap_or("  ");
                (end, format!(",\n{indent}\"{key}\": {}", value(indent, step)))
            } else {
                (end, format!(", \"{key}\": {}", value(outer, "  ")))
            }
        }
        None => (range.start + 1, format!("\"{key}\": {}", value(outer, "  "))),
    }
}

/// Returns the offset of the quote that opens a member's key.
pub(crate) fn key_start(text: &SettingsText<'_>, key: JsonKey<'_>) -> usize {
    (key.raw().as_ptr() as usize - text.0.as_ptr() as usize).saturating_sub(1)
}

/// Returns the range of item `at` including the comma that separates it from a neighbour.
pub(crate) fn with_comma(ranges: &[Range<usize>], at: usize) -> Range<usize> {
    let own = ranges[at].clone();
    match at.checked_sub(1) {
        Some(before) => ranges[before].end..own.end,
        // The first item is removed together with the comma after it, up to the next item.
        None => {
            let next = ranges.get(1).map_or(own.end, |next| next.start);
            own.start..next
        }
    }
}
