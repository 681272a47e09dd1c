//! Reads a session so that it can be continued.

use std::borrow::Cow;
use std::collections::{HashMap, hash_map};
use std::io;
use std::path::{Component, Path, PathBuf};

use threadline_api::{Message, RawObject, Usage};
use threadline_entry::lens::{Backup, CompactBoundary, FileHistorySnapshot, FromJson, ReadResult};
use threadline_entry::write::{LineContext, SyntheticLine, timestamp};
use threadline_entry::{Entry, Kind, Millis, key};
use threadline_evidence::{FileEvidence, FileText, LogOnly};
use threadline_session::{ClientVersion, EntryIndex, ParentLink, Session, SessionFamily};
use threadline_store::{is_plain_name, read_log};

use crate::conversation::{Conversation, thinking_key};
use crate::file_history::TrackedFile;
use crate::log_outline::LogOutline;
use crate::rewind::prompt_text;
use crate::turn_input::add_resumed_prompts;

/// Why a session cannot be continued.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// The log cannot be read.
    #[error("cannot read the session `{}`: {error}", .path.display())]
    Read {
        /// The log.
        path: PathBuf,
        /// The cause.
        #[source]
        error: io::Error,
    },
    /// The log contains no conversation.
    #[error("the session `{}` contains no conversation", .path.display())]
    Empty {
        /// The log.
        path: PathBuf,
    },
    /// The profile's version is not one whose sessions can be replayed.
    #[error("sessions cannot be continued in the format of version {version}")]
    Version {
        /// The version.
        version: String,
    },
}

/// A session that is continued.
#[derive(Debug)]
pub struct ResumedSession {
    /// The conversation so far, with the thinking of all models.
    pub messages: Vec<Message>,
    /// The models of the thinking.
    pub(crate) thinking_models: HashMap<String, String>,
    /// The id of the session.
    pub session_id: String,
    /// The last line of the conversation.
    pub tip: Option<String>,
    /// The time of the last line.
    pub last_time: Millis,
    /// The filler lines that are needed before a new prompt.
    pub(crate) filler: Filler,
    /// The lines of the last reply.
    pub(crate) reply_lines: Vec<String>,
    /// The tokens that compactions have removed.
    pub(crate) dropped_tokens: u64,
    /// The usage of the last reply.
    pub(crate) last_usage: Usage,
    /// The files with backups.
    pub(crate) tracked: Vec<TrackedFile>,
    /// Files that the model has seen, with their content and the time.
    pub(crate) seen_files: Vec<SeenFile>,
    /// The prompt of the last turn.
    pub(crate) last_prompt: Option<String>,
    /// The name of the session's plan.
    pub(crate) slug: Option<String>,
    /// Calls of the last reply without a result, because the process ended before.
    pub(crate) open_calls: Vec<OpenCall>,
}

/// A call without a result.
#[derive(Clone, Debug)]
pub(crate) struct OpenCall {
    pub(crate) id: String,
    /// The line with the call.
    pub(crate) line: String,
}

/// A file that the model has seen.
#[derive(Debug)]
pub(crate) struct SeenFile {
    pub(crate) path: PathBuf,
    pub(crate) content: String,
    pub(crate) time: Millis,
}

/// The lines that separate a new prompt from an unfinished end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filler {
    /// None: the conversation ends with a reply.
    None,
    /// A reply, because the conversation ends with a user message.
    Reply,
    /// A user message and a reply, because it ends with a reply that is not sent.
    UserAndReply,
}

impl ResumedSession {
    /// Returns a session without a conversation.
    fn without_messages(session_id: String, last_time: Millis) -> Self {
        Self {
            messages: Vec::new(),
            thinking_models: HashMap::new(),
            session_id,
            tip: None,
            last_time,
            filler: Filler::None,
            reply_lines: Vec::new(),
            dropped_tokens: 0,
            last_usage: Usage::default(),
            open_calls: Vec::new(),
            slug: None,
            tracked: Vec::new(),
            last_prompt: None,
            seen_files: Vec::new(),
        }
    }

    /// Reads the log of a session, as a version of Claude Code would resume it.
    pub fn read(log: &Path, version: &str) -> Result<Self, ResumeError> {
        let version: ClientVersion =
            version.parse().map_err(|_| ResumeError::Version { version: version.to_owned() })?;
        let id = log.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let unreadable = |error| ResumeError::Read { path: log.to_owned(), error };
        let empty = || ResumeError::Empty { path: log.to_owned() };
        let outline = LogOutline::read(log, &id, version).map_err(unreadable)?;
        let entries = outline.session.entries();
        if outline.session.active_leaf().is_none()
            && entries.iter().any(|entry| entry.kind() == Kind::QueueOperation)
        {
            // The client was ended after it had taken the first prompt, and before it wrote it.
            return Ok(Self::without_messages(id, outline.last_time));
        }
        let path = outline.session.resume_path(version).ok_or_else(empty)?;
        let tip = outline.session.active_leaf().ok_or_else(empty)?;
        Self::from_outline(log, id, &outline, &path, tip, version)
    }

    /// Reads a session as it was before one of its prompts. Also returns the text of the prompt.
    pub(crate) fn read_before(
        log: &Path,
        version: &str,
        prompt: &str,
    ) -> Result<(Self, String), ResumeError> {
        let version: ClientVersion =
            version.parse().map_err(|_| ResumeError::Version { version: version.to_owned() })?;
        let id = log.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let unreadable = |error| ResumeError::Read { path: log.to_owned(), error };
        let empty = || ResumeError::Empty { path: log.to_owned() };
        let outline = LogOutline::read(log, &id, version).map_err(unreadable)?;
        let line = outline.session.find(prompt).ok_or_else(empty)?;
        let (full, lines) = outline.read_full(log, &[line]).map_err(unreadable)?;
        let text = lines.first().and_then(|line| prompt_text(&full.entries()[*line])).unwrap_or_default();
        let session = match outline.session.parent(line) {
            ParentLink::Entry(parent) => {
                let path = outline.session.resume_path_to(parent, version).ok_or_else(empty)?;
                Self::from_outline(log, id, &outline, &path, parent, version)?
            }
            _ => Self::without_messages(id, outline.last_time),
        };
        Ok((session, text))
    }

    /// Returns the messages for a model: with its own thinking only.
    pub fn messages_for(&self, model: &str) -> Vec<Message> {
        let conversation = Conversation::new(self.messages.clone());
        conversation.with_thinking_models(self.thinking_models.clone()).messages_for(model)
    }

    /// Reads the lines of `path` in full. `tip` is the last line of the conversation.
    fn from_outline(
        log: &Path,
        id: String,
        outline: &LogOutline,
        path: &[EntryIndex],
        tip: EntryIndex,
        version: ClientVersion,
    ) -> Result<Self, ResumeError> {
        let unreadable = |error| ResumeError::Read { path: log.to_owned(), error };
        let tip = &outline.session.entries()[tip];
        let (session, path) = outline.read_full(log, path).map_err(unreadable)?;
        let messages = session.replay_path_with_thinking(&path, version);
        let messages = messages.iter().filter_map(|message| {
            let mut json = String::new();
            message.write_json(&mut json);
            serde_json::from_str(&json).ok()
        });
        let mut messages: Vec<Message> = messages.collect();
        add_resumed_prompts(&mut messages, path.iter().map(|line| &session.entries()[*line]));
        let tip_uuid = filler_parent(&outline.session, tip).unwrap_or(tip).uuid();
        Ok(Self {
            messages,
            thinking_models: thinking_models(path.iter().map(|line| &session.entries()[*line])),
            session_id: id,
            tip: tip_uuid.map(|uuid| uuid.into_owned()),
            last_time: outline.last_time,
            filler: filler(&outline.session, tip),
            reply_lines: reply_lines(&outline.session, tip),
            dropped_tokens: dropped_tokens(&outline.session),
            last_usage: last_usage(&session),
            open_calls: open_calls(&outline.session, tip),
            // The name of the plan becomes the name of a file.
            slug: LineContext::of(tip).slug.map(Cow::into_owned).filter(|slug| is_plain_name(slug)),
            tracked: tracked_files(&session),
            last_prompt: session.last_value(Kind::LastPrompt, key::LAST_PROMPT).map(|text| text.into_owned()),
            seen_files: seen_files(session),
        })
    }
}

/// Returns the models of the thinking in replies, by [`thinking_key`].
fn thinking_models<'a>(entries: impl Iterator<Item = &'a Entry>) -> HashMap<String, String> {
    let mut models = HashMap::new();
    for message in entries.filter(|entry| entry.kind() == Kind::Assistant).filter_map(|entry| entry.message())
    {
        let (Some(model), Some(content)) = (message.model(), message.content()) else { continue };
        for block in content.json().items() {
            if let Some(key) = RawObject::parse(block.raw()).ok().as_ref().and_then(thinking_key) {
                models.insert(key, model.clone().into_owned());
            }
        }
    }
    models
}

/// A sub-agent that is continued.
pub(crate) struct ResumedAgent {
    pub(crate) session: ResumedSession,
    /// Its first task.
    pub(crate) prompt: String,
    /// The model of its last reply.
    pub(crate) model: Option<String>,
}

impl ResumedAgent {
    /// Reads the log of a sub-agent.
    pub(crate) fn read(log: &Path, version: &str) -> Result<Self, ResumeError> {
        let version: ClientVersion =
            version.parse().map_err(|_| ResumeError::Version { version: version.to_owned() })?;
        let id = log.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let unreadable = |error| ResumeError::Read { path: log.to_owned(), error };
        let empty = || ResumeError::Empty { path: log.to_owned() };
        let outline = LogOutline::read(log, &id, version).map_err(unreadable)?;
        let session = &outline.session;
        let is_message = |line: &EntryIndex| {
            session.in_tree(*line) && matches!(session.entries()[*line].kind(), Kind::User | Kind::Assistant)
        };
        let tip = session.entries().indices().rev().find(is_message).ok_or_else(empty)?;
        let path = session.resume_path_to(tip, version).ok_or_else(empty)?;
        let replies = session.entries().iter().rev().filter(|entry| entry.kind() == Kind::Assistant);
        let models = replies.filter_map(|entry| Some(entry.message()?.model()?.into_owned()));
        let model = models.into_iter().find(|model| model != SyntheticLine::MODEL);
        let session = ResumedSession::from_outline(log, id, &outline, &path, tip, version)?;
        let first = session.messages.first().and_then(|message| message.content.first());
        let prompt = first.and_then(|block| block.get_str("text")).unwrap_or_default();
        Ok(Self { session, prompt, model })
    }
}

/// Returns the filler that the end of a conversation needs.
fn filler(session: &Session, tip: &Entry) -> Filler {
    let is_message = |entry: &&Entry| matches!(entry.kind(), Kind::User | Kind::Assistant);
    let entries = session.entries();
    let position = tip.uuid().and_then(|uuid| session.find(&uuid));
    let ancestors = position.into_iter().flat_map(|position| {
        std::iter::once(position).chain(session.ancestors(position)).map(|i| &entries[i])
    });
    let Some(last) = ancestors.into_iter().find(is_message) else { return Filler::None };
    if last.kind() == Kind::User {
        let is_command = last.message().and_then(|message| message.content()).is_some_and(|content| {
            let text = content.text();
            text.starts_with("<local-command")
        });
        let is_summary = last.is_compact_summary();
        return if is_command || is_summary { Filler::UserAndReply } else { Filler::Reply };
    }
    let is_synthetic =
        last.message().and_then(|message| message.model()).is_some_and(|model| model == SyntheticLine::MODEL);
    let has_open_call = position.is_some_and(|position| {
        session.calls_on(position).any(|call| session.tool_calls()[call].result(session).is_none())
    });
    if is_synthetic || has_open_call { Filler::UserAndReply } else { Filler::None }
}

/// Returns the line of a client's command if the last line is its output. The next line continues the
/// command, not the output.
fn filler_parent<'a>(session: &'a Session, tip: &Entry) -> Option<&'a Entry> {
    let position = tip.uuid().filter(|_| tip.kind() == Kind::System).and_then(|uuid| session.find(&uuid))?;
    let parent = session
        .ancestors(position)
        .map(|i| &session.entries()[i])
        .find(|entry| entry.uuid() != tip.uuid())?;
    let content = parent.message().filter(|_| parent.kind() == Kind::User)?.content()?;
    content.text().starts_with("<command-name>").then_some(parent)
}

/// Returns the lines of the reply that the conversation ends with.
fn reply_lines(session: &Session, tip: &Entry) -> Vec<String> {
    let Some(tip) = tip.uuid().and_then(|uuid| session.find(&uuid)) else { return Vec::new() };
    let chain = std::iter::once(tip).chain(session.ancestors(tip)).map(|i| &session.entries()[i]);
    let lines = chain
        .skip_while(|entry| !matches!(entry.kind(), Kind::User | Kind::Assistant))
        .take_while(|entry| entry.kind() == Kind::Assistant);
    let mut uuids: Vec<String> = lines.filter_map(|entry| Some(entry.uuid()?.into_owned())).collect();
    uuids.reverse();
    uuids.dedup();
    uuids
}

/// Returns the tokens that the compactions of a session have removed.
fn dropped_tokens(session: &Session) -> u64 {
    let lines = session.entries().iter().rev().filter_map(|entry| entry.lens::<CompactBoundary<'_>>());
    let mut metadata = lines.filter_map(|line| line.compact_metadata());
    metadata.next().and_then(|metadata| metadata.cumulative_dropped_tokens()).unwrap_or_default()
}

/// Returns the usage of the last reply of the model.
fn last_usage(session: &Session) -> Usage {
    let replies = session.entries().iter().rev().filter(|entry| entry.kind() == Kind::Assistant);
    let messages = replies.filter_map(|entry| entry.message());
    let mut real =
        messages.filter(|message| message.model().is_some_and(|model| model != SyntheticLine::MODEL));
    let Some(usage) = real.next().and_then(|message| message.usage()) else { return Usage::default() };
    Usage {
        input: usage.input_tokens().unwrap_or_default(),
        output: usage.output_tokens().unwrap_or_default(),
        cache_read: usage.cache_read_input_tokens().unwrap_or_default(),
        cache_write: usage.cache_creation_input_tokens().unwrap_or_default(),
        ..Usage::default()
    }
}

/// Returns the calls of the last reply that have no result.
fn open_calls(session: &Session, tip: &Entry) -> Vec<OpenCall> {
    let Some(tip) = tip.uuid().and_then(|uuid| session.find(&uuid)) else { return Vec::new() };
    let lines = std::iter::once(tip).chain(session.ancestors(tip));
    let Some(reply) = lines.into_iter().find_map(|line| session.reply_of(line)) else { return Vec::new() };
    let calls = session.tool_calls().iter().filter(|call| call.reply == reply && call.results.is_empty());
    let open = calls.filter_map(|call| {
        let line = session.entries()[call.entry_idx].uuid()?.into_owned();
        Some(OpenCall { id: call.id.to_string(), line })
    });
    open.collect()
}

/// Returns the files that the last snapshot names.
fn tracked_files(session: &Session) -> Vec<TrackedFile> {
    let lines = session.entries().iter().rev().filter(|entry| entry.kind() == Kind::FileHistorySnapshot);
    let mut snapshots = lines.filter_map(|entry| entry.lens::<FileHistorySnapshot<'_>>()?.snapshot());
    let backups = snapshots.next().and_then(|snapshot| snapshot.tracked_file_backups());
    let mut tracked = Vec::new();
    for (name, backup) in backups.into_iter().flat_map(|backups| backups.members()) {
        let Some(backup) = <Backup<'_> as FromJson<'_>>::from_json(backup) else { continue };
        let (name, backup_name) = (name.name().into_owned(), backup.backup_file_name());
        // A log may be hostile: a file outside of the working folder is not read, and a backup is a plain
        // name.
        let is_below = Path::new(&name).components().all(|part| matches!(part, Component::Normal(_)));
        if !is_below || backup_name.as_deref().is_some_and(|name| !is_plain_name(name)) {
            continue;
        }
        tracked.push(TrackedFile {
            name,
            backup: backup_name.map(|name| name.into_owned()),
            version: backup.version().unwrap_or(1),
            time: backup.backup_time().map(|time| timestamp(time.0)).unwrap_or_default(),
        });
    }
    tracked
}

/// Returns the files whose whole content the model has seen, each as it was seen last, the oldest first.
fn seen_files(session: Session) -> Vec<SeenFile> {
    // A log may contain a file very many times.
    let mut seen: HashMap<PathBuf, (Millis, String)> = HashMap::new();
    let mut add = |path: PathBuf, time: Millis, content: String| match seen.entry(path) {
        hash_map::Entry::Occupied(known) if known.get().0 > time => {}
        known => drop(known.insert_entry((time, content))),
    };
    for entry in session.entries() {
        let file = entry.tool_use_result().and_then(|record| record.of::<ReadResult<'_>>()?.file());
        if let Some(file) = file
            && file.start_line() == Some(1)
            && file.num_lines() == file.total_lines()
            && let (Some(path), Some(content)) = (file.file_path(), file.content())
        {
            add(path.into_owned().into(), entry.timestamp().unwrap_or_default(), content.into_owned());
        }
    }
    let family = SessionFamily::new(session, Vec::new());
    for edit in FileEvidence::of(&family, &LogOnly).edits() {
        if let FileText::Text(content) = edit.after {
            add(edit.path.into(), edit.at.unwrap_or_default(), content);
        }
    }
    let file = |(path, (time, content))| SeenFile { path, content, time };
    let mut seen: Vec<SeenFile> = seen.into_iter().map(file).collect();
    seen.sort_by(|a, b| (a.time, &a.path).cmp(&(b.time, &b.path)));
    seen
}

/// Returns the lines of a session for a copy with another id. Ids and times of the lines stay.
pub fn fork_lines(log: &Path, session_id: &str) -> Result<Vec<String>, ResumeError> {
    let mut lines = Vec::new();
    read_log(log, |entry, _| {
        let is_copied = entry.uuid().is_some() || entry.kind() == Kind::FileHistorySnapshot;
        if let Some(mut line) =
            RawObject::parse(&String::from_utf8_lossy(entry.as_bytes())).ok().filter(|_| is_copied)
        {
            if line.get(key::SESSION_ID).is_some() {
                line.set(key::SESSION_ID, session_id);
            }
            lines.push(line.to_json());
        }
    })
    .map_err(|error| ResumeError::Read { path: log.to_owned(), error })?;
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_kept_as_it_was_seen_last() {
        let log = threadline_testkit::log(
            r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 Write {"file_path":"/a","content":"one"}
r1 <- a1  result t1 "ok" {"type":"create","filePath":"/a","content":"one"}
a2 <- r1  reply  m2 tool t2 Write {"file_path":"/b","content":"other"}
r2 <- a2  result t2 "ok" {"type":"create","filePath":"/b","content":"other"}
a3 <- r2  reply  m3 tool t3 Write {"file_path":"/a","content":"two"}
r3 <- a3  result t3 "ok" {"type":"create","filePath":"/a","content":"two"}
"#,
        );
        let seen = seen_files(Session::from_bytes(&log));
        let seen: Vec<_> = seen.iter().map(|file| (file.path.to_str().unwrap(), &*file.content)).collect();
        assert_eq!(seen, [("/b", "other"), ("/a", "two")]);
    }
}
