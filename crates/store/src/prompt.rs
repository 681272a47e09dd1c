//! Finds the first prompt of a session, by the rules of Anthropic's SDK.

use memchr::memmem;
use threadline_entry::lens::Message;
use threadline_entry::{Json, key, walk};

/// The maximum length of a prompt, in characters.
const MAX_CHARS: usize = 200;

/// Prefixes of texts that were written by a program.
const PROGRAM_PREFIXES: [&str; 4] = ["<local-command-stdout>", "<session-start-hook>", "<tick>", "<goal>"];

/// Searches for the first prompt typed by the user, line by line.
#[derive(Default)]
pub(crate) struct PromptSearch {
    found: Option<String>,
    /// The first slash command, used if there is no prompt.
    command: Option<String>,
}

impl PromptSearch {
    /// Examines the next line.
    pub(crate) fn examine_line(&mut self, line: &[u8]) {
        if self.found.is_some() || !may_be_prompt(line) {
            return;
        }
        let keys = [key::TYPE, key::IS_META, key::IS_COMPACT_SUMMARY, key::MESSAGE];
        let Some([Some(kind), meta, summary, Some(message)]) = walk::pick(line, keys) else { return };
        let is = |flag: Option<Json<'_>>| flag.and_then(Json::as_bool).unwrap_or(false);
        if !kind.is_str("user") || is(meta) || is(summary) || !message.is_object() {
            return;
        }
        let Some(content) = Message::from(message).content() else { return };
        if let Some(text) = content.as_str() {
            return self.examine_text(&text);
        }
        for text in content.blocks().filter(|block| block.is("text")).filter_map(|block| block.text()) {
            self.examine_text(&text);
        }
    }

    fn examine_text(&mut self, text: &str) {
        let text = text.trim();
        if self.found.is_some() || text.is_empty() {
            return;
        }
        if let Some(command) = command_name(text) {
            if self.command.is_none() && !command.is_empty() {
                self.command = Some(one_line(command));
            }
        } else if !is_skipped(text) {
            self.found = Some(shorten(text));
        }
    }

    /// Whether a prompt was found, so that no further lines are needed.
    pub(crate) fn is_done(&self) -> bool {
        self.found.is_some()
    }

    /// Returns the prompt, or else the slash command.
    pub(crate) fn finish(self) -> Option<String> {
        self.found.or(self.command)
    }
}

/// Whether the line has to be parsed.
///
/// The names searched for cannot occur inside a text, where quotes are escaped.
fn may_be_prompt(line: &[u8]) -> bool {
    const NEVER: [&str; 3] = [r#""tool_result""#, key::set_true::IS_META, key::set_true::IS_COMPACT_SUMMARY];
    let has = |text: &str| memmem::find(line, text.as_bytes()).is_some();
    has(r#""user""#) && !NEVER.into_iter().any(has)
}

/// Returns the slash command that the text contains.
fn command_name(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("<command-name>")?;
    Some(rest.split_once("</command-name>")?.0)
}

fn is_skipped(text: &str) -> bool {
    let interrupted =
        text.strip_prefix("[Request interrupted by user").is_some_and(|rest| rest.contains(']'));
    let wholly = |tag: &str| {
        let inner = text.strip_prefix('<').and_then(|rest| rest.strip_prefix(tag));
        inner.and_then(|rest| rest.strip_prefix('>')).is_some_and(|rest| rest.ends_with(&format!("</{tag}>")))
    };
    PROGRAM_PREFIXES.iter().any(|start| text.starts_with(start))
        || interrupted
        || wholly("ide_opened_file")
        || wholly("ide_selection")
}

fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}

/// Returns the text on one line, truncated to the maximum length.
fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => one_line(text[..end].trim_end()) + "…",
        None => one_line(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(lines: &[String]) -> Option<String> {
        let mut search = PromptSearch::default();
        lines.iter().for_each(|line| search.examine_line(line.as_bytes()));
        search.finish()
    }

    fn user(content: &str, more: &str) -> String {
        format!(r#"{{"type":"user","message":{{"role":"user","content":{content}}}{more}}}"#)
    }

    #[test]
    fn the_first_prompt_is_typed_by_the_user() {
        for (content, more, expected) in [
            (r#""hi\nthere  ""#, "", Some("hi there")),
            (r#"[{"type":"text","text":" one "},{"type":"text","text":"two"}]"#, "", Some("one")),
            (r#"[{"type":"image"},{"type":"text","text":"look"}]"#, "", Some("look")),
            (r#""he said \"tool_result\"""#, "", Some("he said \"tool_result\"")),
            (r#"[{"type":"tool_result","content":"x"},{"type":"text","text":"no"}]"#, "", None),
            (r#""meta""#, r#","isMeta":true"#, None),
            (r#""meta""#, r#", "isMeta" : true"#, None),
            (r#""summary""#, r#","isCompactSummary":true"#, None),
            (r#""not meta""#, r#","isMeta":false"#, Some("not meta")),
            (r#""   ""#, "", None),
            (r#""<local-command-stdout>x""#, "", None),
            (r#""<session-start-hook>x""#, "", None),
            (r#""<tick>""#, "", None),
            (r#""<goal>x""#, "", None),
            (r#""[Request interrupted by user for tool use]""#, "", None),
            (r#""[Request interrupted by user""#, "", Some("[Request interrupted by user")),
            (r#""<ide_opened_file>a\nb</ide_opened_file>""#, "", None),
            (r#"" <ide_selection>a</ide_selection> ""#, "", None),
            (r#""<ide_selection>a</ide_selection> why?""#, "", Some("<ide_selection>a</ide_selection> why?")),
            (
                r#"[{"type":"text","text":"<ide_opened_file>a</ide_opened_file>"},{"type":"text","text":"go"}]"#,
                "",
                Some("go"),
            ),
            (r#""<command-message>c</command-message>\n<command-name>/c</command-name>""#, "", Some("/c")),
            (r#""<command-name></command-name>""#, "", None),
            ("42", "", None),
        ] {
            assert_eq!(first(&[user(content, more)]).as_deref(), expected, "{content}{more}");
        }
        assert_eq!(first(&[r#"{"type":"assistant","message":{"content":[{"type":"user"}]}}"#.into()]), None);
        assert_eq!(first(&["{\"type\":\"user\",\"message\":{\"content\":\"to".into()]), None);
    }

    #[test]
    fn a_prompt_is_preferred_to_a_slash_command() {
        let command = user(r#""<command-name>/init</command-name>""#, "");
        let other = user(r#""<command-name>/other</command-name>""#, "");
        let prompt = user(r#""go on""#, "");
        assert_eq!(first(&[command.clone(), other.clone()]).as_deref(), Some("/init"));
        assert_eq!(first(&[command, other, prompt]).as_deref(), Some("go on"));
    }

    #[test]
    fn a_prompt_is_truncated_at_200_characters() {
        let exact = "é".repeat(200);
        assert_eq!(first(&[user(&format!("\"{exact}\""), "")]), Some(exact.clone()));
        assert_eq!(first(&[user(&format!("\"{exact}x\""), "")]), Some(format!("{exact}…")));
        let spaced = format!("{}  {}", "a".repeat(198), "b");
        assert_eq!(first(&[user(&format!("\"{spaced}\""), "")]), Some(format!("{}…", "a".repeat(198))));
    }
}
