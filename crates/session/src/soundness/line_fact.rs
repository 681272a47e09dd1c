//! The facts recorded per line, and the checks of single lines.

use std::hash::Hash;

use threadline_entry::lens::{Block, Lens, System};
use threadline_entry::{Entry, Json, Kind, Millis, has_lone_surrogate, key, value};

use super::{RuleViolation, SoundnessChecker, SoundnessRule};

/// The parent of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParentLine {
    Root,
    /// A line of the tree, by the position of its facts.
    Line(usize),
    Missing,
}

/// The facts recorded about a line.
#[derive(Clone, Debug)]
pub(super) struct LineFact {
    /// The line number, counted from 0.
    pub(super) line: usize,
    /// Whether the line is part of the conversation of the session or of a sub-agent.
    pub(super) in_tree: bool,
    pub(super) sidechain: bool,
    pub(super) boundary: bool,
    pub(super) progress: bool,
    pub(super) role: RequestRole,
    pub(super) parent: ParentLine,
    /// The logical parent of a boundary, by the position of its facts.
    pub(super) logical_parent: Option<usize>,
    pub(super) time: Option<Millis>,
    /// A hash of the uuid; 0 if the line has none.
    pub(super) uuid_hash: u64,
    /// A hash of the message id of its reply.
    pub(super) reply_hash: Option<u64>,
    /// Hashes of the ids of its calls.
    pub(super) calls: Vec<u64>,
    /// Hashes of the ids of the calls that its results answer.
    pub(super) results: Vec<u64>,
    /// Whether the message contains anything other than calls and results.
    pub(super) has_text: bool,
    /// The size in bytes of the content, as part of a request.
    pub(super) size: usize,
}

/// The role of a line in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestRole {
    User,
    Assistant,
    /// The line is not part of a request.
    NotSent,
}

pub(super) fn hash(value: &impl Hash) -> u64 {
    threadline_entry::hash_of(value)
}

impl LineFact {
    /// Returns the facts of a line.
    pub(super) fn of(entry: &Entry, line: usize) -> Self {
        let kind = entry.kind();
        let in_tree = match kind {
            Kind::User | Kind::Assistant | Kind::System | Kind::Progress | Kind::Attachment => true,
            // Later versions may have other types of lines in the conversation.
            Kind::Unknown | Kind::Untyped => entry.uuid().is_some() && entry.get(key::PARENT_UUID).is_some(),
            _ => false,
        };
        let subtype = (kind == Kind::System).then(|| entry.lens::<System<'_>>()?.subtype()).flatten();
        let role = match kind {
            Kind::User => RequestRole::User,
            Kind::Assistant if entry.is_api_error() => RequestRole::NotSent,
            Kind::Assistant => RequestRole::Assistant,
            Kind::System if subtype.as_deref() == Some(value::LOCAL_COMMAND) => RequestRole::User,
            _ => RequestRole::NotSent,
        };
        let mut fact = Self {
            line,
            in_tree,
            sidechain: entry.is_sidechain(),
            boundary: subtype.as_deref() == Some(value::COMPACT_BOUNDARY),
            progress: kind == Kind::Progress,
            role,
            parent: ParentLine::Root,
            logical_parent: None,
            time: entry.timestamp(),
            uuid_hash: entry.uuid().map_or(0, |uuid| hash(&uuid)),
            reply_hash: None,
            calls: Vec::new(),
            results: Vec::new(),
            has_text: kind == Kind::System && role == RequestRole::User,
            size: 0,
        };
        if matches!(kind, Kind::User | Kind::Assistant) {
            fact.read_message(entry);
        }
        fact
    }

    fn read_message(&mut self, entry: &Entry) {
        let Some(message) = entry.message() else { return };
        if self.role == RequestRole::Assistant {
            let id = message.id().or_else(|| entry.uuid());
            self.reply_hash = id.map(|id| hash(&id));
        }
        let Some(content) = message.content() else { return };
        self.size = content.json().raw().len();
        self.has_text |= content.as_str().is_some();
        for block in content.blocks() {
            match block.kind().as_deref() {
                Some(value::TOOL_USE) => self.calls.extend(block.id().map(|id| hash(&id))),
                Some(value::TOOL_RESULT) => self.results.extend(block.tool_use_id().map(|id| hash(&id))),
                _ => self.has_text = true,
            }
        }
    }

    /// Returns a violation of a rule on this line.
    pub(super) fn violation(&self, rule: SoundnessRule, message: &'static str) -> RuleViolation {
        RuleViolation::new(rule, self.line, self.uuid_hash, message)
    }

    /// Returns whether the line is part of a request.
    pub(super) fn is_sent(&self) -> bool {
        self.role != RequestRole::NotSent
    }
}

impl SoundnessChecker {
    /// Checks a single line, and determines its parent. The caller then adds the facts of a line in the tree.
    pub(super) fn check_line(&mut self, entry: &Entry, fact: &mut LineFact) {
        let mut report = |rule, message| self.line_violations.push(fact.violation(rule, message));
        if let (Some(own), Some(id)) = (&self.id, entry.session_id())
            && **own != *id
        {
            report(SoundnessRule::OwnId, "the line has the id of another session");
        }
        if entry.kind() == Kind::Bad {
            report(SoundnessRule::Text, "the line is not a JSON object");
        }
        if std::str::from_utf8(entry.as_bytes()).is_err() || has_lone_surrogate(entry.text()) {
            report(SoundnessRule::Text, "the line contains invalid Unicode");
        }
        if fact.in_tree && fact.sidechain {
            report(SoundnessRule::Sidechain, "the line belongs to a sub-agent");
        }
        self.check_content(entry, fact);
        self.note_references(entry, fact);
        if !fact.in_tree {
            return;
        }
        fact.parent = match entry.parent_uuid() {
            None => ParentLine::Root,
            Some(parent) => match self.uuids.get(&*parent) {
                Some(&above) => ParentLine::Line(above),
                None => {
                    let message = "the parent does not precede the line";
                    self.line_violations.push(fact.violation(SoundnessRule::ParentBefore, message));
                    ParentLine::Missing
                }
            },
        };
        let problem = match entry.uuid() {
            Some(uuid) => {
                let position = self.line_facts.len();
                let again = self.uuids.insert(uuid.into_owned(), position).is_some();
                again.then_some("another line has the same uuid")
            }
            None => fact.is_sent().then_some("the line has no uuid"),
        };
        let violation = |message| fact.violation(SoundnessRule::ParentBefore, message);
        self.line_violations.extend(problem.map(violation));
    }

    fn note_references(&mut self, entry: &Entry, fact: &mut LineFact) {
        let named = |key: &str| entry.get(key).and_then(Json::as_str);
        if fact.boundary {
            fact.logical_parent =
                named(key::LOGICAL_PARENT_UUID).and_then(|uuid| self.uuids.get(&*uuid).copied());
        }
        let keys: &[&str] = match entry.kind() {
            Kind::LastPrompt | Kind::Summary => &[key::LEAF_UUID],
            Kind::User => &[key::SOURCE_TOOL_ASSISTANT_UUID],
            _ => &[],
        };
        for uuid in keys.iter().filter_map(|key| named(key)) {
            self.references.push((fact.line, uuid.into_owned()));
        }
    }

    /// Checks the content of the message on a line.
    fn check_content(&mut self, entry: &Entry, fact: &LineFact) {
        if !matches!(entry.kind(), Kind::User | Kind::Assistant) || fact.role == RequestRole::NotSent {
            return;
        }
        let message = entry.message();
        let content = message.and_then(|message| message.content());
        let text = content.and_then(|content| content.json().quoted());
        let is_empty = match (content, text) {
            (None, _) => true,
            (_, Some(text)) => is_blank(text),
            (Some(content), None) => content.json().items().next().is_none(),
        };
        if is_empty {
            self.line_violations.push(fact.violation(SoundnessRule::NotEmpty, "the message is empty"));
        }
        if let (Some(reply), Some(model)) = (fact.reply_hash, message.and_then(|message| message.model())) {
            self.models.insert(reply, hash(&model));
        }
        for block in content.into_iter().flat_map(|content| content.blocks()) {
            let text = || block.object().get("text").and_then(Json::quoted);
            if block.is(value::TEXT) && text().is_none_or(is_blank) {
                self.line_violations.push(fact.violation(SoundnessRule::NotEmpty, "a text block is empty"));
            }
            if block.is(value::THINKING) || block.is(value::REDACTED_THINKING) {
                let thought = hash(&block.object().json().raw());
                let reply = fact.reply_hash.unwrap_or(0);
                if self.known_thinking.insert((reply, thought)) {
                    self.thinking_hashes.entry(reply).or_default().push(thought);
                }
            }
            if too_large(block) || block.content().is_some_and(|content| content.blocks().any(too_large)) {
                self.line_violations
                    .push(fact.violation(SoundnessRule::Size, "an image exceeds the API limit"));
            }
        }
    }
}

/// Returns whether the content of a quoted JSON string is white space.
fn is_blank(quoted: &str) -> bool {
    // Avoids decoding: nearly every text begins with an ASCII character that is not white space.
    let may_be_blank =
        quoted.bytes().next().is_none_or(|byte| byte <= b' ' || byte == b'\\' || !byte.is_ascii());
    may_be_blank && threadline_entry::decode(quoted).trim().is_empty()
}

fn too_large(block: Block<'_>) -> bool {
    crate::check::image_size(block)
        .is_some_and(|size| size.width.max(size.height) > crate::check::MAX_IMAGE_SIDE)
}
