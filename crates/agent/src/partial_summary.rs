//! Summaries of a part of the conversation: from a prompt on, or up to it. The log keeps everything.

use std::time::Instant;

use threadline_cancel::CancelToken;
use threadline_entry::write::SummarizedPart;
use threadline_session::EntryIndex;

use crate::agent::Agent;
use crate::compaction::{BYTES_PER_TOKEN, CompactError, CompactTrigger, report_end};
use crate::conversation::Conversation;
use crate::error_text::filler;
use crate::event::{AgentEvent, CompactionEvent};
use crate::resume::{Filler, ResumeError, ResumedSession};
use crate::session_writer::{CompactBoundary, UserLineFields, WriteError};
use crate::summary::instruction;

/// The part of a conversation that a summary replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryPart {
    /// A prompt and everything after it.
    From,
    /// Everything before a prompt.
    UpTo,
}

impl SummaryPart {
    /// The name in session lines.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::From => "from",
            Self::UpTo => "up_to",
        }
    }
}

/// Why a part of the conversation was not summarised.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SummarizeError {
    /// The session cannot be read.
    #[error(transparent)]
    Read(#[from] ResumeError),
    /// The session cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The model returned no summary, or a hook refused it. It was reported as an event.
    #[error("{0}")]
    Failed(String),
    /// The person interrupted it.
    #[error("interrupted")]
    Cancelled,
}

impl From<CompactError> for SummarizeError {
    fn from(error: CompactError) -> Self {
        match error {
            CompactError::Failed(reason) => Self::Failed(reason),
            CompactError::Cancelled => Self::Cancelled,
            CompactError::Write(error) => Self::Write(error),
        }
    }
}

/// The lines of the conversation before a prompt, and from it on.
struct SplitLines {
    before: Vec<String>,
    after: Vec<String>,
}

impl Agent {
    /// Replaces a part of the conversation by a summary, and writes that to the log. Returns the text of the
    /// prompt.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no summary, or if the log cannot be read or written. The conversation is
    /// as before then.
    pub fn summarize_part(
        &mut self,
        prompt: &str,
        part: SummaryPart,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<String, SummarizeError> {
        let (before, text) = ResumedSession::read_before(&self.log(), self.config.profile.version, prompt)?;
        let lines = self.split_lines(prompt)?;
        let failed = |reason: &str| Err(SummarizeError::Failed(reason.to_owned()));
        if !self.writer.lock().format().has_partial_summaries {
            return failed("Sessions of this version have no summaries of a part.");
        }
        if part == SummaryPart::UpTo && before.messages.is_empty() {
            return failed("There is nothing before this prompt.");
        }
        let instructions = self.compact_hooks(CompactTrigger::Manual, "", cancel, events)?;
        events(AgentEvent::Compaction(CompactionEvent::Start));
        let start = Instant::now();
        let result = match part {
            SummaryPart::From => {
                self.conversation.normalize();
                self.request_summary(&instruction(Some(&text), &instructions), cancel)
            }
            SummaryPart::UpTo => {
                let before = Conversation::new(before.messages).with_thinking_models(before.thinking_models);
                let all = std::mem::replace(&mut self.conversation, before);
                self.conversation.normalize();
                let result = self.request_summary(&instruction(None, &instructions), cancel);
                self.conversation = all;
                result
            }
        };
        report_end(&result, events);
        let summary = result?;
        let (replaced, preserved) = match part {
            SummaryPart::From => (&lines.after, &lines.before),
            SummaryPart::UpTo => (&lines.before, &lines.after),
        };
        let tokens = self.last_usage.context();
        let prompt_id = self.clock.new_uuid();
        {
            let mut writer = self.writer.lock();
            writer.plan_name(&*self.clock);
            let text = filler::compact_summary(&summary, &writer.path().to_string_lossy());
            let after = (text.len() / BYTES_PER_TOKEN) as u64;
            let boundary = CompactBoundary {
                trigger: CompactTrigger::Manual.name(),
                pre_tokens: tokens,
                post_tokens: after,
                dropped_tokens: self.dropped_tokens + tokens.saturating_sub(after),
                duration: start.elapsed(),
                preserved,
                part: Some(SummarizedPart { messages: replaced.len() as u64, direction: part.name() }),
                logical_parent: lines.before.last().map(String::as_str),
            };
            let fields = UserLineFields { prompt_id: Some(&prompt_id), ..UserLineFields::default() };
            let written = writer.compaction(&boundary, &text, fields, &*self.clock)?;
            self.dropped_tokens = boundary.dropped_tokens;
            events(AgentEvent::Compaction(CompactionEvent::Boundary(&written)));
        }
        self.continue_from(ResumedSession::read(&self.log(), self.config.profile.version)?);
        // The next prompt joins the summary, or follows the last reply.
        self.filler = Filler::None;
        // Files with content in the summarised part must be read again before they are edited.
        self.files.clear();
        self.compacted_hooks(CompactTrigger::Manual, &summary, cancel, events)?;
        Ok(text)
    }

    /// Returns the lines of the conversation before a prompt, and from it on.
    fn split_lines(&self, prompt: &str) -> Result<SplitLines, ResumeError> {
        let (outline, path) = self.conversation_lines()?;
        let session = &outline.session;
        let line = session.find(prompt);
        let at = path.iter().position(|other| Some(*other) == line);
        let at = at.ok_or_else(|| ResumeError::Empty { path: self.log() })?;
        let uuids = |lines: &[EntryIndex]| -> Vec<String> {
            let entries = lines.iter().map(|line| &session.entries()[*line]);
            entries.filter_map(|entry| entry.uuid().map(|uuid| uuid.into_owned())).collect()
        };
        Ok(SplitLines { before: uuids(&path[..at]), after: uuids(&path[at..]) })
    }
}
