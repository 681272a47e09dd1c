//! Content blocks of a request: blocks of the log, and the few that are generated or modified.

use std::borrow::Cow;

use threadline_entry::key::quoted::{
    CONTENT, DATA, ID, INPUT, IS_ERROR, MEDIA_TYPE, NAME, SOURCE, TEXT, TOOL_USE_ID, TYPE,
};
use threadline_entry::{Json, key, replace_lone_surrogates, value};

use super::rule::{ReplayRule, VersionRules};

/// A content block as JSON text, borrowed from the log or generated.
#[derive(Clone, Debug)]
pub struct ReplayBlock<'s> {
    text: Cow<'s, str>,
    kind: Cow<'s, str>,
    /// Reminders that [`ReplayBlock::fold_reminders`] will append to this result.
    reminders: Vec<String>,
}

/// The text that Claude Code sends as the result of a call that has none.
const MISSING_RESULT: &str = "[Tool result missing due to internal error]";

/// The text that it sends as the result of an unanswered call of the last reply.
const INTERRUPTED_RESULT: &str = "[Tool call interrupted: the session ended before this call's result was recorded, \
     so its outcome is unknown. Check whether it took effect before relying on it or running it again.]";

/// Fields that Claude Code adds to the input of a `SendMessage` call when it logs the call.
const ADDED_TO_SEND_MESSAGE: &[&str] = &["type", "recipient", "recipient_kind", "content"];

/// Old and new names of renamed tools. A request contains the new names.
const RENAMED_TOOLS: &[(&str, &str)] = &[
    ("Task", "Agent"),
    ("AgentOutputTool", "TaskOutput"),
    ("BashOutput", "TaskOutput"),
    ("KillBash", "TaskStop"),
    ("KillShell", "TaskStop"),
];

impl<'s> ReplayBlock<'s> {
    /// Converts a block of the log. Calls are reduced to the fields that the API accepts.
    pub(super) fn of(json: Json<'s>, rules: VersionRules) -> Self {
        let kind = json.get(key::TYPE).and_then(Json::as_str).unwrap_or_default();
        if kind != value::TOOL_USE {
            return Self::unchanged(json.raw(), kind);
        }
        let known = [key::TYPE, key::ID, key::NAME, key::INPUT];
        let name = json.get(key::NAME).and_then(Json::as_str).unwrap_or_default();
        let renamed =
            RENAMED_TOOLS.iter().find(|(old, _)| *old == name && rules.has(ReplayRule::RenamedTools));
        let input = json.get(key::INPUT).and_then(|input| stripped_input(&name, input, rules));
        let has_more = || json.members().any(|(key, _)| !known.iter().any(|name| key.is(name)));
        if renamed.is_none() && input.is_none() && !has_more() {
            return Self::unchanged(json.raw(), kind);
        }
        let raw = |key: &str| json.get(key).map_or("null", Json::raw);
        let name = renamed.map_or_else(|| raw(key::NAME).to_owned(), |(_, new)| quote(new));
        let input = input.unwrap_or_else(|| raw(key::INPUT).to_owned());
        let id = raw(key::ID);
        Self::generated(
            value::TOOL_USE,
            format!("{{{TYPE}:\"tool_use\",{ID}:{id},{NAME}:{name},{INPUT}:{input}}}"),
        )
    }

    /// Returns the call without some members of its input.
    pub(super) fn without_input(&self, names: &[&str]) -> Option<Self> {
        let json = self.json();
        let input = without_members(json.get(key::INPUT)?, names)?;
        let (id, name) = (json.get(key::ID)?.raw(), json.get(key::NAME)?.raw());
        Some(Self::generated(
            value::TOOL_USE,
            format!("{{{TYPE}:\"tool_use\",{ID}:{id},{NAME}:{name},{INPUT}:{input}}}"),
        ))
    }

    /// Returns a block as the log contains it.
    fn unchanged(text: &'s str, kind: Cow<'s, str>) -> Self {
        Self { text: Cow::Borrowed(text), kind, reminders: Vec::new() }
    }

    /// Returns a generated block.
    fn generated(kind: &'static str, text: String) -> Self {
        Self { text: Cow::Owned(text), kind: Cow::Borrowed(kind), reminders: Vec::new() }
    }

    /// Returns a text block.
    pub(super) fn text(text: &str) -> Self {
        // `format!` would reserve twice the length of a long text.
        let start = format!("{{{TYPE}:\"text\",{TEXT}:");
        Self::generated("text", [&*start, &quote(text), "}"].concat())
    }

    /// Returns an image block. `data` is base64.
    pub(super) fn image(media_type: &str, data: &str) -> Self {
        let (media_type, data) = (quote(media_type), quote(data));
        let source = format!("{{{TYPE}:\"base64\",{MEDIA_TYPE}:{media_type},{DATA}:{data}}}");
        Self::generated("image", format!("{{{TYPE}:\"image\",{SOURCE}:{source}}}"))
    }

    /// Returns the error result for an unanswered call of the last reply.
    pub(super) fn interrupted_result(id: &str) -> Self {
        Self::error_result(id, INTERRUPTED_RESULT)
    }

    /// Returns the error result for a call that has no result.
    pub(super) fn missing_result(id: &str) -> Self {
        Self::error_result(id, MISSING_RESULT)
    }

    fn error_result(id: &str, text: &str) -> Self {
        let (id, text) = (quote(id), quote(text));
        let block = format!("{{{TYPE}:\"tool_result\",{TOOL_USE_ID}:{id},{CONTENT}:{text},{IS_ERROR}:true}}");
        Self::generated(value::TOOL_RESULT, block)
    }

    /// Returns a placeholder for text that Claude Code adds itself. It affects merging, and is removed in
    /// the end.
    pub(super) fn reminder() -> Self {
        Self::unchanged("{}", Cow::Borrowed("reminder"))
    }

    /// Adds a reminder to the content of this result. Returns whether the result can contain one.
    ///
    /// The content changes in [`ReplayBlock::fold_reminders`]: rewriting it for each reminder would be
    /// quadratic.
    pub(super) fn add_reminder(&mut self, reminder: &str, rules: VersionRules) -> bool {
        let accepts = !self.reminders.is_empty() || self.accepts_reminders(rules);
        if accepts {
            self.reminders.push(reminder.to_owned());
        }
        accepts
    }

    fn accepts_reminders(&self, rules: VersionRules) -> bool {
        let Some(content) = self.json().get(key::CONTENT).filter(|content| content.as_str().is_none()) else {
            return true;
        };
        rules.has(ReplayRule::FoldIntoBlocks) && !content.items().any(|item| is_item(item, "tool_reference"))
    }

    /// Appends the added reminders to the content.
    pub(super) fn fold_reminders(&mut self) {
        let reminders = std::mem::take(&mut self.reminders);
        if reminders.is_empty() {
            return;
        }
        let json = self.json();
        let content = json.get(key::CONTENT);
        let folded = match content.map_or(Some(Cow::Borrowed("")), Json::as_str) {
            Some(text) => quote(&append_paragraphs(&text, &reminders)),
            None => {
                let items: Vec<Json<'_>> = content.into_iter().flat_map(Json::items).collect();
                let mut blocks: Vec<String> = items.iter().map(|item| item.raw().to_owned()).collect();
                if let Some((last, block)) = items.last().zip(blocks.last_mut())
                    && let Some(text) =
                        last.get(key::TEXT).and_then(Json::as_str).filter(|_| is_item(*last, value::TEXT))
                {
                    *block = Self::text(&format!("{text}\n")).text.into_owned();
                }
                let end = reminders.len() - 1;
                // Two texts in a row are set apart by a newline.
                blocks.extend(reminders.iter().enumerate().map(|(i, reminder)| {
                    let newline = if i < end { "\n" } else { "" };
                    Self::text(&format!("{reminder}{newline}")).text.into_owned()
                }));
                format!("[{}]", blocks.join(","))
            }
        };
        *self = self.with_member(key::CONTENT, &folded);
    }

    /// Returns this block with a field replaced or added.
    fn with_member(&self, name: &str, value: &str) -> Self {
        let json = self.json();
        let mut members: Vec<String> = Vec::new();
        let mut found = false;
        for (key, old) in json.members() {
            let is_it = key.is(name);
            found |= is_it;
            members.push(format!("\"{}\":{}", key.raw(), if is_it { value } else { old.raw() }));
        }
        if !found {
            members.push(format!("{}:{value}", quote(name)));
        }
        let text = Cow::Owned(format!("{{{}}}", members.join(",")));
        Self { text, kind: self.kind.clone(), reminders: Vec::new() }
    }

    /// Returns this block with other content items.
    pub(super) fn with_content<'i>(&self, items: impl Iterator<Item = Json<'i>>) -> Self {
        let items: Vec<&str> = items.map(Json::raw).collect();
        self.with_member(key::CONTENT, &format!("[{}]", items.join(",")))
    }

    /// Returns the block as a JSON value.
    pub fn json(&self) -> Json<'_> {
        Json::parse(&self.text).unwrap_or(Json::NULL)
    }

    /// Returns the type of the block.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    pub(super) fn is(&self, kind: &str) -> bool {
        self.kind() == kind
    }

    /// Returns whether the block is a call of the advisor tool or its result.
    pub(super) fn is_advisor(&self) -> bool {
        self.is("advisor_tool_result")
            || self.is(value::SERVER_TOOL_USE)
                && self.json().get(key::NAME).is_some_and(|name| name.is_str("advisor"))
    }

    pub(super) fn is_thinking(&self) -> bool {
        self.is(value::THINKING) || self.is(value::REDACTED_THINKING)
    }

    /// Returns whether the block is a text block that contains only white space.
    pub(super) fn is_blank(&self) -> bool {
        self.is(value::TEXT) && self.field(key::TEXT).is_none_or(|text| text.trim().is_empty())
    }

    /// Returns a string field of the block.
    pub(super) fn field(&self, key: &str) -> Option<String> {
        self.json().get(key)?.as_str().map(Cow::into_owned)
    }

    /// Appends the block to `out`, as JavaScript would serialize it after parsing it.
    ///
    /// Lone surrogates become U+FFFD, and numbers are rounded to 64-bit floats.
    pub fn write_json(&self, out: &mut String) {
        write_as_javascript(&replace_lone_surrogates(&self.text), out);
    }
}

/// Returns the input of a call without the fields that a version does not send. `None` if it is sent
/// unchanged.
fn stripped_input(name: &str, input: Json<'_>, rules: VersionRules) -> Option<String> {
    let added = match name {
        "ExitPlanMode" if rules.has(ReplayRule::StripExitPlanMode) => &["plan"],
        // In older calls the model produced these fields, and there is no `to`.
        "SendMessage" if rules.has(ReplayRule::StripSendMessage) && input.get("to").is_some() => {
            ADDED_TO_SEND_MESSAGE
        }
        _ => return None,
    };
    without_members(input, added)
}

/// Returns an object without some members. `None` if it has none of them.
fn without_members(input: Json<'_>, names: &[&str]) -> Option<String> {
    let kept = input.members().filter(|(key, _)| !names.contains(&&*key.name()));
    let kept: Vec<String> = kept.map(|(key, value)| format!("\"{}\":{}", key.raw(), value.raw())).collect();
    (kept.len() < input.members().count()).then(|| format!("{{{}}}", kept.join(",")))
}

/// Returns whether an item of the content of a result has this type.
fn is_item(item: Json<'_>, kind: &str) -> bool {
    item.get(key::TYPE).is_some_and(|json| json.is_str(kind))
}

/// Appends paragraphs to a text, each after a blank line. White space around the text so far is removed
/// before each of them.
fn append_paragraphs(text: &str, paragraphs: &[String]) -> String {
    let mut out = text.to_owned();
    for paragraph in paragraphs {
        out.truncate(out.trim_end().len());
        let white = out.len() - out.trim_start().len();
        out.drain(..white);
        if !out.is_empty() && !paragraph.is_empty() {
            out.push_str("\n\n");
        }
        out.push_str(paragraph);
    }
    out
}

/// Returns a text as a JSON string literal.
fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Copies JSON text and rewrites every number as JavaScript would write it.
fn write_as_javascript(text: &str, out: &mut String) {
    let bytes = text.as_bytes();
    let mut copied = 0;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = end_of_string(bytes, at),
            b'-' | b'0'..=b'9' => {
                let start = at;
                while bytes
                    .get(at)
                    .is_some_and(|byte| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9'))
                {
                    at += 1;
                }
                if let Some(number) = javascript_number(&text[start..at]) {
                    out.push_str(&text[copied..start]);
                    out.push_str(&number);
                    copied = at;
                }
            }
            _ => at += 1,
        }
    }
    out.push_str(&text[copied..]);
}

fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Returns a number as JavaScript writes it. `None` if the text needs no change.
fn javascript_number(text: &str) -> Option<String> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if text != "-0" && digits.len() <= 15 && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    if value == 0.0 {
        return Some("0".to_owned());
    }
    if !value.is_finite() {
        return Some("null".to_owned());
    }
    if (1e-6..1e21).contains(&value.abs()) {
        return Some(format!("{value}"));
    }
    Some(format!("{value:e}").replace('e', if value.abs() < 1.0 { "e" } else { "e+" }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClientVersion;

    fn newest() -> VersionRules {
        VersionRules::of(ClientVersion::NEWEST)
    }

    #[test]
    fn numbers_are_written_as_javascript_does() {
        let cases = [
            ("1", "1"),
            ("-0", "0"),
            ("1.0", "1"),
            ("0.10", "0.1"),
            ("1e3", "1000"),
            ("123456789012345678901234567890", "1.2345678901234568e+29"),
            ("12345678901234567890", "12345678901234567000"),
            ("0.000001", "0.000001"),
            ("0.0000001", "1e-7"),
            ("1e400", "null"),
        ];
        for (written, sent) in cases {
            let mut out = String::new();
            write_as_javascript(&format!("{{\"n\":[{written}],\"s\":\"1.0 \\\" 1.0\"}}"), &mut out);
            assert_eq!(out, format!("{{\"n\":[{sent}],\"s\":\"1.0 \\\" 1.0\"}}"), "{written}");
        }
    }

    #[test]
    fn calls_are_sent_with_known_fields_only() {
        let call =
            r#"{"type":"tool_use","id":"t1","name":"KillBash","input":{"a":1},"caller":{"type":"direct"}}"#;
        let mut out = String::new();
        ReplayBlock::of(Json::parse(call).unwrap(), newest()).write_json(&mut out);
        assert_eq!(out, r#"{"type":"tool_use","id":"t1","name":"TaskStop","input":{"a":1}}"#);
    }

    /// Appends one reminder as a request with a single reminder would contain it.
    fn fold_one<'s>(block: &ReplayBlock<'s>, reminder: &str) -> ReplayBlock<'s> {
        let mut block = block.clone();
        assert!(block.add_reminder(reminder, newest()));
        block.fold_reminders();
        block
    }

    #[test]
    fn reminders_folded_together_equal_those_folded_one_by_one() {
        let contents = [
            r#""ok""#,
            r#""  ""#,
            r#"" a \n""#,
            "[]",
            "null",
            r#"[{"type":"text","text":"a"}]"#,
            r#"[{"type":"image"}]"#,
        ];
        for content in contents {
            let result = format!(r#"{{"type":"tool_result","content":{content},"is_error":true}}"#);
            let block = ReplayBlock::of(Json::parse(&result).unwrap(), newest());
            let reminders = ["\n one \n", "", " ", "two", "three\n"];
            let (mut together, mut each) = (block.clone(), block.clone());
            for reminder in reminders {
                assert!(together.add_reminder(reminder, newest()));
                each = fold_one(&each, reminder);
            }
            together.fold_reminders();
            assert_eq!(together.text, each.text, "{content}");
        }
    }

    #[test]
    fn a_block_of_another_kind_is_kept() {
        let odd = r#"{"type":"server_tool_use","name":"advisor"}"#;
        let block = ReplayBlock::of(Json::parse(odd).unwrap(), newest());
        assert!(block.kind() == "server_tool_use" && block.is_advisor() && block.text == odd);
    }

    #[test]
    fn a_result_with_tool_references_accepts_no_reminder() {
        let result = r#"{"type":"tool_result","content":[{"type":"tool_reference","tool_name":"x"}]}"#;
        let mut block = ReplayBlock::of(Json::parse(result).unwrap(), newest());
        assert!(!block.add_reminder("one", newest()));
        block.fold_reminders();
        assert_eq!(block.text, result);
    }

    #[test]
    fn content_is_replaced_in_place() {
        let result = r#"{"type":"tool_result","content":[{"type":"text","text":"\"content\":[]"},{"type":"image"}],"is_error":true}"#;
        let block = ReplayBlock::of(Json::parse(result).unwrap(), newest());
        let texts = block.json().get("content").unwrap().items().take(1);
        let mended = block.with_content(texts);
        assert_eq!(
            mended.text,
            r#"{"type":"tool_result","content":[{"type":"text","text":"\"content\":[]"}],"is_error":true}"#
        );
    }
}
