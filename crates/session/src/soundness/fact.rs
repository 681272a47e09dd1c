//! The facts recorded per line, and the checks of single lines.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;
use threadline_entry::lens::{Block, Lens, System};
use threadline_entry::{Entry, Json, Kind, Millis, has_lone_surrogate};

use super::{Breach, Rule, Soundness};

/// The parent of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Up {
    Root,
    Line(u32),
    Missing,
}

/// The facts recorded about a line.
#[derive(Clone, Debug)]
pub(super) struct Fact {
    pub(super) in_tree: bool,
    pub(super) sidechain: bool,
    pub(super) boundary: bool,
    pub(super) progress: bool,
    pub(super) role: Role,
    pub(super) up: Up,
    /// The line of the logical parent of a boundary.
    pub(super) logical: Option<u32>,
    pub(super) time: Option<Millis>,
    /// A hash of the uuid.
    pub(super) name: u64,
    /// A hash of the message id of the reply.
    pub(super) reply: Option<u64>,
    pub(super) calls: Vec<u64>,
    pub(super) results: Vec<u64>,
    /// Whether the message contains anything other than results.
    pub(super) text: bool,
    /// The size in bytes of the content, as part of a request.
    pub(super) size: u64,
}

/// The role of a line in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    User,
    Assistant,
    /// The line is not part of a request.
    Nobody,
}

pub(super) fn hash(value: &impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}

impl Fact {
    pub(super) fn of(entry: &Entry) -> Self {
        let kind = entry.kind();
        let is_tree = match kind {
            Kind::User | Kind::Assistant | Kind::System | Kind::Progress | Kind::Attachment => true,
            Kind::Unknown | Kind::Untyped => entry.uuid().is_some() && entry.get("parentUuid").is_some(),
            _ => false,
        };
        let subtype = (kind == Kind::System).then(|| entry.lens::<System<'_>>()?.subtype()).flatten();
        let role = match kind {
            Kind::User => Role::User,
            Kind::Assistant if entry.flag("isApiErrorMessage") => Role::Nobody,
            Kind::Assistant => Role::Assistant,
            Kind::System if subtype.as_deref() == Some("local_command") => Role::User,
            _ => Role::Nobody,
        };
        let mut fact = Self {
            in_tree: is_tree,
            sidechain: entry.flag("isSidechain"),
            boundary: subtype.as_deref() == Some("compact_boundary"),
            progress: kind == Kind::Progress,
            role,
            up: Up::Root,
            logical: None,
            time: entry.timestamp(),
            name: entry.uuid().map_or(0, |uuid| hash(&uuid)),
            reply: None,
            calls: Vec::new(),
            results: Vec::new(),
            text: kind == Kind::System && role == Role::User,
            size: 0,
        };
        if matches!(kind, Kind::User | Kind::Assistant) {
            fact.take_message(entry);
        }
        fact
    }

    fn take_message(&mut self, entry: &Entry) {
        let Some(message) = entry.message() else { return };
        if self.role == Role::Assistant {
            self.reply = message.id().or_else(|| entry.uuid()).map(|id| hash(&id));
        }
        let Some(content) = message.content() else { return };
        self.size = content.json().raw().len() as u64;
        self.text |= content.as_str().is_some();
        for block in content.blocks() {
            match block.kind().as_deref() {
                Some("tool_use") => self.calls.extend(block.id().map(|id| hash(&id))),
                Some("tool_result") => self.results.extend(block.tool_use_id().map(|id| hash(&id))),
                _ => self.text = true,
            }
        }
    }

    /// Returns whether the line is part of a request.
    pub(super) fn speaks(&self) -> bool {
        self.role != Role::Nobody
    }
}

impl Soundness {
    /// Checks a single line, and determines its parent.
    pub(super) fn check_line(&mut self, line: usize, entry: &Entry, fact: &mut Fact) {
        let name = fact.name;
        let mut breach = |rule, message| self.lines.push(Breach::new(rule, line, name, message));
        if let (Some(own), Some(id)) = (&self.id, entry.session_id())
            && **own != *id
        {
            breach(Rule::OwnId, "the line has the id of another session");
        }
        if entry.kind() == Kind::Bad {
            breach(Rule::Text, "the line is not a JSON object");
        }
        if std::str::from_utf8(entry.as_bytes()).is_err() || has_lone_surrogate(entry.text()) {
            breach(Rule::Text, "the line contains invalid Unicode");
        }
        if fact.in_tree && fact.sidechain {
            breach(Rule::Sidechain, "the line belongs to a sub-agent");
        }
        self.check_content(line, entry, fact);
        self.note_references(line, entry, fact);
        if !fact.in_tree {
            return;
        }
        fact.up = match entry.parent_uuid() {
            None => Up::Root,
            Some(parent) => match self.by_uuid.get(&*parent) {
                Some(&above) => Up::Line(above),
                None => {
                    let message = "the parent does not precede the line";
                    self.lines.push(Breach::new(Rule::ParentBefore, line, name, message));
                    Up::Missing
                }
            },
        };
        let fault = match entry.uuid() {
            Some(uuid) => {
                let again = self.by_uuid.insert((&*uuid).into(), line as u32).is_some();
                again.then_some("another line has the same uuid")
            }
            None => fact.speaks().then_some("the line has no uuid"),
        };
        self.lines.extend(fault.map(|message| Breach::new(Rule::ParentBefore, line, name, message)));
    }

    fn note_references(&mut self, line: usize, entry: &Entry, fact: &mut Fact) {
        let named = |key: &str| entry.get(key).and_then(Json::as_str);
        if fact.boundary {
            fact.logical = named("logicalParentUuid").and_then(|uuid| self.by_uuid.get(&*uuid).copied());
        }
        let keys: &[&str] = match entry.kind() {
            Kind::LastPrompt | Kind::Summary => &["leafUuid"],
            Kind::User => &["sourceToolAssistantUUID"],
            _ => &[],
        };
        for uuid in keys.iter().filter_map(|key| named(key)) {
            self.references.push((line as u32, (&*uuid).into()));
        }
    }

    /// Checks the content of the message on a line.
    fn check_content(&mut self, line: usize, entry: &Entry, fact: &Fact) {
        if !matches!(entry.kind(), Kind::User | Kind::Assistant) || fact.role == Role::Nobody {
            return;
        }
        let name = fact.name;
        let message = entry.message();
        let content = message.and_then(|message| message.content());
        let text = content.and_then(|content| content.json().quoted());
        let is_empty = match (content, text) {
            (None, _) => true,
            (_, Some(text)) => is_white(text),
            (Some(content), None) => content.json().items().next().is_none(),
        };
        if is_empty {
            self.lines.push(Breach::new(Rule::NotEmpty, line, name, "the message is empty"));
        }
        if let (Some(reply), Some(model)) = (fact.reply, message.and_then(|message| message.model())) {
            self.models.insert(reply, hash(&model));
        }
        for block in content.into_iter().flat_map(|content| content.blocks()) {
            let text = || block.object().get("text").and_then(Json::quoted);
            if block.is("text") && text().is_none_or(is_white) {
                self.lines.push(Breach::new(Rule::NotEmpty, line, name, "a text block is empty"));
            }
            if block.is("thinking") || block.is("redacted_thinking") {
                let thought = hash(&block.object().json().raw());
                let seen = self.thoughts.entry(fact.reply.unwrap_or(0)).or_default();
                if !seen.contains(&thought) {
                    seen.push(thought);
                }
            }
            if too_large(block) || block.content().is_some_and(|content| content.blocks().any(too_large)) {
                self.lines.push(Breach::new(Rule::Size, line, name, "an image exceeds the API limit"));
            }
        }
    }
}

/// Returns whether the content of a quoted JSON string is white space.
fn is_white(quoted: &str) -> bool {
    // Avoids decoding: nearly every text begins with an ASCII character that is not white space.
    let begins_white =
        quoted.bytes().next().is_none_or(|byte| byte <= b' ' || byte == b'\\' || !byte.is_ascii());
    begins_white && threadline_entry::decode(quoted).trim().is_empty()
}

fn too_large(block: Block<'_>) -> bool {
    crate::check::image_size(block).is_some_and(|size| size.width.max(size.height) > crate::check::IMAGE_SIDE)
}
