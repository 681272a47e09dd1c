//! Returns to an earlier prompt of the conversation. The log keeps the later lines as a branch.

use threadline_entry::{Entry, Kind, Millis};
use threadline_session::{ClientVersion, EntryIndex};

use crate::agent::Agent;
use crate::conversation::Conversation;
use crate::log_outline::LogOutline;
use crate::resume::{ResumeError, ResumedSession};

/// The longest beginning of a prompt in a list, in characters.
const LABEL_LENGTH: usize = 160;

/// A prompt to which the conversation can return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewindPoint {
    /// The line of the prompt.
    pub uuid: String,
    /// The beginning of the prompt.
    pub label: String,
    /// The time of the prompt.
    pub time: Millis,
}

impl Agent {
    /// Returns the prompts of the conversation since the last compaction, the oldest first.
    pub fn rewind_points(&self) -> Result<Vec<RewindPoint>, ResumeError> {
        let (outline, path) = self.conversation_lines()?;
        let session = &outline.session;
        let points = path.iter().filter(|line| session.input(**line).is_some_and(|input| input.is_prompt()));
        let points = points.filter_map(|line| {
            let entry = &session.entries()[*line];
            let text = prompt_text(entry)?;
            let label = text.split_whitespace().collect::<Vec<_>>().join(" ");
            Some(RewindPoint {
                uuid: entry.uuid()?.into_owned(),
                label: label.chars().take(LABEL_LENGTH).collect(),
                time: entry.timestamp().unwrap_or_default(),
            })
        });
        Ok(points.collect())
    }

    /// Reads the log, and returns it with the lines of the conversation, the first one first.
    pub(crate) fn conversation_lines(&self) -> Result<(LogOutline, Vec<EntryIndex>), ResumeError> {
        let log = self.log();
        let version = self.client_version()?;
        let unreadable = |error| ResumeError::Read { path: log.clone(), error };
        let outline = LogOutline::read(&log, &self.session_id(), version).map_err(unreadable)?;
        let tip = self.writer.lock().tip().and_then(|tip| outline.session.find(tip));
        let path = tip.and_then(|tip| outline.session.resume_path_to(tip, version)).unwrap_or_default();
        Ok((outline, path))
    }

    /// Returns to the state before a prompt: the next prompt continues the line before it. Returns the text
    /// of the prompt.
    pub fn rewind(&mut self, uuid: &str) -> Result<String, ResumeError> {
        let log = self.log();
        let (session, prompt) = ResumedSession::read_before(&log, self.config.profile.version, uuid)?;
        self.continue_from(session);
        // The note about plan mode may be on the branch that is left.
        if self.is_planning() {
            self.has_reported_plan_mode = false;
        }
        Ok(prompt)
    }

    /// Continues the conversation from another state of the session.
    pub(crate) fn continue_from(&mut self, session: ResumedSession) {
        self.conversation = Conversation::new(session.messages).with_thinking_models(session.thinking_models);
        self.writer.lock().set_tip(session.tip);
        self.filler = session.filler;
        self.open_calls = session.open_calls;
        self.reply_lines = session.reply_lines;
        self.last_usage = session.last_usage;
    }

    pub(crate) fn client_version(&self) -> Result<ClientVersion, ResumeError> {
        let version = self.config.profile.version;
        version.parse().map_err(|_| ResumeError::Version { version: version.to_owned() })
    }
}

/// Returns the text of a prompt.
pub(crate) fn prompt_text(entry: &Entry) -> Option<String> {
    let content = entry.message().filter(|_| entry.kind() == Kind::User)?.content()?;
    Some(content.text().into_owned())
}
