//! The notation for logs: lines of tokens in, JSON Lines out. The crate documentation has the grammar.

use std::collections::HashSet;

use jiff::{SignedDuration, Timestamp};

use crate::token::Token::{self, Json, List, Word};
use crate::token::{Modifiers, NotationScanner, fail, quote};

/// Values for fields that the notation of a line does not set.
pub(crate) struct LineDefaults<'a> {
    pub(crate) session: &'a str,
    pub(crate) cwd: &'a str,
    /// The id of a sub-agent. If set, all lines have this `agentId` and are sidechain lines.
    pub(crate) agent: Option<&'a str>,
}

/// Returns the bytes of the log that `notation` describes, with the session id `s1`.
///
/// # Panics
///
/// If the notation is invalid. The message contains the line number within the notation, from 1.
pub fn log(notation: &str) -> Vec<u8> {
    log_of("s1", notation)
}

/// Returns the log that `notation` describes, with this session id. See [`log`].
pub fn log_of(session_id: &str, notation: &str) -> Vec<u8> {
    build_log(notation, &LineDefaults { session: session_id, cwd: "/home/ada/loom", agent: None })
}

pub(crate) fn build_log(notation: &str, defaults: &LineDefaults<'_>) -> Vec<u8> {
    let lines = || {
        let numbered = notation.lines().enumerate().map(|(i, line)| (i + 1, line.trim_start()));
        numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
    };
    let first_words = lines().filter_map(|(_, line)| line.split_whitespace().next());
    let ids: HashSet<&str> = first_words.filter(|word| !is_record(word)).collect();

    let mut out = Vec::new();
    let mut clock: Timestamp = START.parse().expect("a constant");
    for (i, (line_no, line)) in lines().enumerate() {
        if i > 0 {
            clock += SignedDuration::from_secs(1);
        }
        let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
        match first {
            "raw" => out.extend(rest.bytes().chain([b'\n'])),
            "torn" => out.extend(rest.bytes()),
            "hex" => {
                let byte = |hex| u8::from_str_radix(hex, 16);
                let bytes = rest.split_whitespace().map(byte).collect::<Result<Vec<_>, _>>();
                out.extend(bytes.unwrap_or_else(|_| fail(line_no, "pairs of hexadecimal digits", rest)));
                out.push(b'\n');
            }
            _ => {
                let (tokens, changes) = NotationScanner { rest: line.trim_end(), line_no }.line();
                if let Some(time) = changes.time {
                    clock = move_clock(clock, time)
                        .unwrap_or_else(|| fail(line_no, "a time such as `@10:00:07.500` or `@+5m`", time));
                }
                let line = NotationLine { line_no, tokens: &tokens, modifiers: &changes, clock, defaults };
                out.extend(line.build(&ids).to_json().bytes().chain([b'\n']));
            }
        }
    }
    out
}

const START: &str = "2026-01-01T10:00:00Z";

/// The words that begin a line outside of the tree, and so cannot be ids.
const RECORDS: &str = "title ai-title tag agent-name mode permission-mode summary last-prompt pr-link queue \
                       snapshot entry raw torn hex";

fn is_record(word: &str) -> bool {
    RECORDS.split(' ').any(|record| record == word)
}

/// An image of one pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// A minimal PDF header.
const PDF: &str = "JVBERi0xLjQKJSVFT0YK";

fn move_clock(clock: Timestamp, time: &str) -> Option<Timestamp> {
    let seconds = |unit: &str| match unit {
        "s" => Some(1.0),
        "m" => Some(60.0),
        "h" => Some(3600.0),
        "d" => Some(86400.0),
        _ => None,
    };
    if time.starts_with(['+', '-']) {
        let unit_at = time.find(|c: char| c.is_ascii_alphabetic())?;
        let amount: f64 = time[..unit_at].parse().ok()?;
        let millis = (amount * seconds(&time[unit_at..])? * 1000.0).round();
        clock.checked_add(SignedDuration::from_millis(millis as i64)).ok()
    } else if time.contains('T') {
        time.parse().ok()
    } else {
        let day = clock.to_string();
        format!("{}T{time}Z", &day[..10]).parse().ok()
    }
}

/// A JSON object under construction: keys in order, values as JSON text.
#[derive(Default)]
struct JsonObject(Vec<(String, String)>);

impl JsonObject {
    fn with(mut self, key: &str, value: impl Into<String>) -> Self {
        self.set(key, value.into());
        self
    }

    fn with_some(self, key: &str, value: Option<String>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    fn set(&mut self, key: &str, value: String) {
        match self.0.iter_mut().find(|(k, _)| k == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    fn to_json(&self) -> String {
        let members: Vec<String> =
            self.0.iter().map(|(key, value)| format!("{}:{value}", quote(key))).collect();
        format!("{{{}}}", members.join(","))
    }
}

struct NotationLine<'a> {
    line_no: usize,
    tokens: &'a [Token<'a>],
    modifiers: &'a Modifiers<'a>,
    clock: Timestamp,
    defaults: &'a LineDefaults<'a>,
}

impl<'a> NotationLine<'a> {
    fn build(&self, ids: &HashSet<&str>) -> JsonObject {
        let mut object = match self.tokens {
            [Word(record), args @ ..] if is_record(record) => self.record(record, args),
            [Word(id), Word("<-"), Word(parent), Word(form), args @ ..] => {
                let known = parent.strip_prefix('?').or(ids.contains(parent).then_some(*parent));
                let parent = known.unwrap_or_else(|| {
                    fail(self.line_no, "an id of this notation, or `?` before it", parent)
                });
                self.node(id, Some(parent), form, args)
            }
            [Word(id), Word(form), args @ ..] if *form != "<-" => self.node(id, None, form, args),
            _ => self.expected("`ID FORM`, `ID <- PARENT FORM` or a record"),
        };
        for (key, value) in &self.modifiers.set {
            object.set(key, (*value).to_owned());
        }
        for key in &self.modifiers.removed {
            match object.0.iter().position(|(k, _)| k == key) {
                Some(i) => drop(object.0.remove(i)),
                None => fail(self.line_no, "a key of this line to remove", key),
            }
        }
        object
    }

    fn expected(&self, what: &str) -> ! {
        fail(self.line_no, what, &format!("{:?}", self.tokens))
    }

    fn time(&self) -> String {
        format!("\"{:.3}\"", self.clock)
    }

    fn named(&self, name: &str, default: &str) -> String {
        self.modifiers.get(name).map_or_else(|| quote(default), str::to_owned)
    }

    fn session(&self) -> String {
        self.named("session", self.defaults.session)
    }

    /// Builds a line of the tree: the fields of `form` within the common envelope.
    fn node(&self, id: &str, parent: Option<&str>, form: &str, args: &[Token<'_>]) -> JsonObject {
        let body = self.form(id, parent, form, args);
        let agent = self.modifiers.get("agent").map(str::to_owned).or(self.defaults.agent.map(quote));
        let is_sidechain = self.modifiers.has_flag("sidechain") || self.defaults.agent.is_some();
        let version = self.named("version", "2.1.197");
        let is_old = is_before_2_1_81(&version);
        let parent_json = parent.map_or("null".to_owned(), quote);

        let mut head = if form == "boundary" {
            JsonObject::default().with("parentUuid", "null").with("logicalParentUuid", parent_json)
        } else {
            JsonObject::default().with("parentUuid", parent_json)
        };
        head = head.with("isSidechain", is_sidechain.to_string());
        let envelope = JsonObject::default()
            .with("userType", quote("external"))
            .with_some("entrypoint", (!is_old).then(|| quote("cli")))
            .with("cwd", self.named("cwd", self.defaults.cwd))
            .with("sessionId", self.session())
            .with("version", version)
            .with("gitBranch", self.named("branch", "main"))
            .with_some("teamName", self.modifiers.get("team").map(str::to_owned));

        let agent = JsonObject::default().with_some("agentId", agent);
        let parts = if is_old { [head, envelope, agent, body] } else { [head, agent, body, envelope] };
        let mut object = JsonObject::default();
        for (key, value) in parts.into_iter().flat_map(|part| part.0) {
            object.set(&key, value);
        }
        object
    }

    fn form(&self, id: &str, parent: Option<&str>, form: &str, args: &[Token<'_>]) -> JsonObject {
        let typed = |name: &str| JsonObject::default().with("type", quote(name));
        let meta = self.modifiers.has_flag("meta").then(|| "true".to_owned());
        let user = |content: String| {
            typed("user")
                .with("message", format!(r#"{{"role":"user","content":{content}}}"#))
                .with_some("isMeta", meta.clone())
        };
        let stamped = |object: JsonObject| object.with("uuid", quote(id)).with("timestamp", self.time());
        match (form, args) {
            ("user", [content]) => stamped(user(self.content(content))),
            ("compact-summary", [content]) => stamped(
                user(self.content(content))
                    .with("isVisibleInTranscriptOnly", "true")
                    .with("isCompactSummary", "true"),
            ),
            ("result", [Word(tool_use), rest @ ..]) => {
                let (block, result) = self.result_block(tool_use, rest);
                stamped(user(format!("[{block}]")))
                    .with_some("toolUseResult", result)
                    .with_some("sourceToolAssistantUUID", parent.map(quote))
            }
            ("reply", [Word(message), blocks @ ..]) => {
                let head = JsonObject::default()
                    .with("message", self.reply(message, blocks).to_json())
                    .with("requestId", self.named("req", &format!("req_{message}")));
                stamped(head.with("type", quote("assistant")).with_some("isMeta", meta))
            }
            ("system", [Word(subtype), rest @ ..]) => {
                let (content, more) = self.text_and_members(rest);
                let object = typed("system").with("subtype", quote(subtype)).with_some("content", content);
                let object = object.with_some("isMeta", meta);
                let object = more.into_iter().fold(object, |object, (key, value)| object.with(&key, value));
                object.with("timestamp", self.time()).with("uuid", quote(id))
            }
            ("boundary", [Word(trigger @ ("auto" | "manual")), rest @ ..]) => {
                let metadata =
                    JsonObject::default().with("trigger", quote(trigger)).with("preTokens", "150000");
                typed("system")
                    .with("subtype", quote("compact_boundary"))
                    .with("content", quote("Conversation compacted"))
                    .with("isMeta", "false")
                    .with("timestamp", self.time())
                    .with("uuid", quote(id))
                    .with("level", quote("info"))
                    .with("compactMetadata", self.extended(metadata, rest).to_json())
            }
            ("progress", [Word(kind), rest @ ..]) => {
                let kind = match *kind {
                    short @ ("hook" | "bash" | "agent" | "mcp") => format!("{short}_progress"),
                    other => other.to_owned(),
                };
                let (tool_use, rest) = match rest {
                    [Word(tool_use), rest @ ..] => (*tool_use, rest),
                    _ => ("t0", rest),
                };
                let data = self.extended(typed(&kind), rest);
                let object = typed("progress").with("data", data.to_json());
                stamped(object.with("toolUseID", quote(tool_use)).with("parentToolUseID", quote(tool_use)))
            }
            ("attach", [Word(kind), rest @ ..]) => {
                let attachment = self.extended(typed(kind), rest).to_json();
                stamped(
                    JsonObject::default().with("attachment", attachment).with("type", quote("attachment")),
                )
            }
            _ => self.expected("a form such as `user \"text\"` or `reply m1 text \"…\"`"),
        }
    }

    fn reply(&self, message: &str, blocks: &[Token<'_>]) -> JsonObject {
        let content = match blocks {
            // An object is a single block; any other JSON value is the whole content.
            [Json(block)] if block.starts_with('{') => format!("[{block}]"),
            [content @ (List(_) | Json(_))] => self.content(content),
            block => format!("[{}]", self.block(block)),
        };
        let zeros =
            ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"];
        let mut usage = zeros.into_iter().fold(JsonObject::default(), |usage, key| usage.with(key, "0"));
        if let Some(given) = self.modifiers.get("usage") {
            for (key, value) in (NotationScanner { rest: "", line_no: self.line_no }).members(given) {
                usage.set(&key, value.to_owned());
            }
        }
        JsonObject::default()
            .with("model", self.named("model", "claude-opus-4-8"))
            .with("id", quote(message))
            .with("type", quote("message"))
            .with("role", quote("assistant"))
            .with("content", content)
            .with("stop_reason", self.modifiers.get("stop").unwrap_or("null"))
            .with("stop_sequence", "null")
            .with("usage", usage.to_json())
    }

    /// Returns the content of a message: a string, literal JSON, or a list of blocks.
    fn content(&self, content: &Token<'_>) -> String {
        match content {
            Json(json) => (*json).to_owned(),
            List(blocks) => {
                let blocks: Vec<String> = blocks.iter().map(|block| self.block(block)).collect();
                format!("[{}]", blocks.join(","))
            }
            Word(word) => fail(self.line_no, "\"text\" or [BLOCK, …]", word),
        }
    }

    fn block(&self, tokens: &[Token<'_>]) -> String {
        let typed = |name: &str| JsonObject::default().with("type", quote(name));
        let base64 = |name: &str, media: &str, data: &str| {
            let source = typed("base64").with("media_type", quote(media)).with("data", quote(data));
            typed(name).with("source", source.to_json())
        };
        let object = match tokens {
            [Json(block)] if block.starts_with('{') => return (*block).to_owned(),
            [Word("text"), Json(text)] => typed("text").with("text", *text),
            [Word("thinking"), Json(text)] => {
                typed("thinking").with("thinking", *text).with("signature", quote("sig"))
            }
            [Word("thinking"), Json(text), Json(signature)] => {
                typed("thinking").with("thinking", *text).with("signature", *signature)
            }
            [Word("redacted")] => typed("redacted_thinking").with("data", quote("sealed")),
            [Word("redacted"), Json(data)] => typed("redacted_thinking").with("data", *data),
            [Word("tool"), Word(id), Word(name), input @ ..] => {
                let input = match input {
                    [] => "{}",
                    [Json(input)] => input,
                    _ => fail(self.line_no, "one `{…}` as input", &format!("{input:?}")),
                };
                typed("tool_use").with("id", quote(id)).with("name", quote(name)).with("input", input)
            }
            [Word("fallback"), Word(from), Word(to)] => {
                let model = |name| JsonObject::default().with("model", quote(name)).to_json();
                typed("fallback").with("from", model(from)).with("to", model(to))
            }
            [Word("image")] => base64("image", "image/png", PNG),
            [Word("image"), Word(kind)] => base64("image", &format!("image/{kind}"), PNG),
            [Word("document")] => base64("document", "application/pdf", PDF),
            [Word("ref"), Word(tool)] => typed("tool_reference").with("tool_name", quote(tool)),
            [Word("result"), Word(tool_use), rest @ ..] => return self.result_block(tool_use, rest).0,
            _ => fail(
                self.line_no,
                "a block such as `text \"…\"` or `tool t1 Bash {…}`",
                &format!("{tokens:?}"),
            ),
        };
        object.to_json()
    }

    /// Returns a `tool_result` block, and the `toolUseResult` of the line.
    fn result_block(&self, tool_use: &str, tokens: &[Token<'_>]) -> (String, Option<String>) {
        let (mut content, mut result, mut is_error) = (None, None, false);
        for token in tokens {
            match token {
                Word("error") => is_error = true,
                Json(json) if content.is_some() || json.starts_with('{') => result = Some((*json).to_owned()),
                Json(_) | List(_) => content = Some(self.content(token)),
                Word(word) => fail(self.line_no, "`error`, \"text\", [BLOCK, …] or {…}", word),
            }
        }
        let content = content.unwrap_or_else(|| quote(""));
        // As in real logs, the order of these keys differs between failed and successful calls.
        let block = JsonObject::default();
        let block = if is_error {
            let block = block.with("type", quote("tool_result")).with("content", content);
            block.with("is_error", "true").with("tool_use_id", quote(tool_use))
        } else {
            let block = block.with("tool_use_id", quote(tool_use)).with("type", quote("tool_result"));
            block.with("content", content)
        };
        (block.to_json(), result)
    }

    /// Parses an optional `"text"`, then the members of an optional `{…}`.
    fn text_and_members(&self, tokens: &[Token<'_>]) -> (Option<String>, Vec<(String, String)>) {
        let (text, rest) = match tokens {
            [Json(text), rest @ ..] if text.starts_with('"') => (Some((*text).to_owned()), rest),
            rest => (None, rest),
        };
        (text, self.extended(JsonObject::default(), rest).0)
    }

    /// Returns `object` with the keys of an optional `{…}` set.
    fn extended(&self, mut object: JsonObject, tokens: &[Token<'_>]) -> JsonObject {
        match tokens {
            [] => {}
            [Json(more)] if more.starts_with('{') => {
                for (key, value) in (NotationScanner { rest: "", line_no: self.line_no }).members(more) {
                    object.set(&key, value.to_owned());
                }
            }
            _ => fail(self.line_no, "a single `{…}`", &format!("{tokens:?}")),
        }
        object
    }

    /// Builds a line that is not part of the tree.
    fn record(&self, record: &str, args: &[Token<'_>]) -> JsonObject {
        let typed = |name: &str| JsonObject::default().with("type", quote(name));
        let of_session = |object: JsonObject| object.with("sessionId", self.session());
        match (record, args) {
            ("title", [Json(text)]) => of_session(typed("custom-title").with("customTitle", *text)),
            ("ai-title", [Json(text)]) => of_session(typed("ai-title").with("aiTitle", *text)),
            ("tag", [Json(text)]) => of_session(typed("tag").with("tag", *text)),
            ("agent-name", [Word(name)]) => of_session(typed("agent-name").with("agentName", quote(name))),
            ("mode", [Word(name)]) => of_session(typed("mode").with("mode", quote(name))),
            ("permission-mode", [Word(name)]) => {
                of_session(typed("permission-mode").with("permissionMode", quote(name)))
            }
            ("summary", [Json(text), Word("leaf"), Word(leaf)]) => {
                typed("summary").with("summary", *text).with("leafUuid", quote(leaf))
            }
            ("last-prompt", [Json(text), Word("leaf"), Word(leaf)]) => {
                of_session(typed("last-prompt").with("lastPrompt", *text).with("leafUuid", quote(leaf)))
            }
            ("pr-link", [Word(number), Word(repository)]) => of_session(typed("pr-link"))
                .with("prNumber", *number)
                .with("prUrl", quote(&format!("https://github.com/{repository}/pull/{number}")))
                .with("prRepository", quote(repository))
                .with("timestamp", self.time()),
            ("queue", [Word(operation), content @ ..]) => {
                let object = typed("queue-operation").with("operation", quote(operation));
                let (content, _) = self.text_and_members(content);
                of_session(object.with("timestamp", self.time())).with_some("content", content)
            }
            ("snapshot", [Word(message), rest @ ..]) => {
                let (is_update, backups) = match rest {
                    [Word("update"), backups @ ..] => (true, backups),
                    backups => (false, backups),
                };
                let backups = self.extended(JsonObject::default(), backups).to_json();
                let snapshot = JsonObject::default()
                    .with("messageId", quote(message))
                    .with("trackedFileBackups", backups)
                    .with("timestamp", self.time());
                typed("file-history-snapshot")
                    .with("messageId", quote(message))
                    .with("snapshot", snapshot.to_json())
                    .with("isSnapshotUpdate", is_update.to_string())
            }
            ("entry", [Word(kind), rest @ ..]) => self.extended(of_session(typed(kind)), rest),
            _ => self.expected("a record such as `title \"…\"` or `summary \"…\" leaf u1`"),
        }
    }
}

/// Returns whether the version writes the envelope before the message, as Claude Code did up to 2.1.80.
fn is_before_2_1_81(version: &str) -> bool {
    let mut parts = version.trim_matches('"').split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let mut part = || parts.next().unwrap_or(0);
    (part(), part(), part()) < (2, 1, 81)
}
