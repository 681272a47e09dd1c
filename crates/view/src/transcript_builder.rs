//! Builds transcripts: as a whole, part by part, or only the turns.

use std::borrow::Cow;
use std::cell::RefCell;

use foldhash::HashMap;
use threadline_entry::{Kind, Millis, SessionStartSearch, key};
use threadline_session::{EntryIndex, Session, SessionFamily};

use crate::call_count::count_tool_calls;
use crate::error_count::count_errors;
use crate::spending::Spending;
use crate::transcript::{Transcript, TranscriptHeader};
use crate::transcript_parts::{TranscriptParts, TurnPredicate};
use crate::transcript_writer::TranscriptWriter;

/// Reads output that Claude Code saved to a separate file, given the path in the log.
///
/// The path may be one of another machine, so only its file name matters. Returns `None` if the file cannot
/// be read.
pub type OutputReader<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The maximum number of times that a file with output is read: for the text and the card of a call, of a
/// session that was logged twice.
const MAX_OUTPUT_READS: u8 = 4;

/// Counts how often each file with output is read, since very many results may name the same one.
#[derive(Debug, Default)]
pub struct OutputReads(RefCell<HashMap<Box<str>, u8>>);

impl OutputReads {
    /// Reads a file, unless it was read four times before.
    pub fn read(&self, path: &str, reader: impl FnOnce(&str) -> Option<String>) -> Option<String> {
        // Only the name of the file counts, see `OutputReader`.
        let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
        let mut counts = self.0.borrow_mut();
        let count = counts.entry(name.into()).or_default();
        let is_allowed = *count < MAX_OUTPUT_READS;
        *count = count.saturating_add(1);
        is_allowed.then(|| reader(path))?
    }
}

/// The inputs of a transcript, with methods that build it.
#[derive(Clone, Copy)]
pub struct TranscriptBuilder<'a> {
    /// The session and its sub-agents.
    pub family: &'a SessionFamily,
    /// Reads output that was saved to a separate file.
    pub read_output: OutputReader<'a>,
    /// The cost of the calls; without it, every `spent` field stays empty.
    pub spending: Option<&'a Spending>,
    /// The current time if the session is live; `None` if not. Calls that the last reply of a live session
    /// waits for are running.
    pub live_at: Option<Millis>,
}

/// Returns the transcript of a session, without costs. See [`TranscriptBuilder::transcript`].
pub fn transcript(family: &SessionFamily, kept: OutputReader<'_>) -> Transcript {
    TranscriptBuilder { read_output: kept, ..TranscriptBuilder::new(family) }.transcript()
}

impl<'a> TranscriptBuilder<'a> {
    /// Creates a builder that reads no files and reports no cost.
    pub fn new(family: &'a SessionFamily) -> Self {
        Self { family, read_output: &|_| None, spending: None, live_at: None }
    }

    /// Returns the transcript of the session, with each sub-agent nested in the call that started it.
    pub fn transcript(self) -> Transcript {
        self.parts().collect()
    }

    /// Builds the transcript part by part.
    pub fn parts(self) -> TranscriptParts<'a> {
        TranscriptParts::new(self, None)
    }

    /// Builds the turns that `wanted` accepts, after the header and before the findings. Branches and
    /// unattached sub-agents are left out.
    pub fn parts_of_turns(self, wanted: TurnPredicate<'a>) -> TranscriptParts<'a> {
        TranscriptParts::new(self, Some(wanted))
    }

    /// Returns the number of the turn that contains a line of the log, or `None` if the line is not part of
    /// the active conversation.
    pub fn turn_of_line(self, line_no: u64) -> Option<usize> {
        let session = &self.family.main;
        let is_there = |&idx: &EntryIndex| session.entries()[idx].at().line_no == line_no;
        let turns = session.turns_of(&TranscriptWriter::new(self, None).thread());
        turns.iter().find(|turn| turn.entries.iter().any(is_there)).map(|turn| turn.number)
    }

    /// Returns the facts about the session and its total cost.
    pub(crate) fn header(self) -> TranscriptHeader {
        TranscriptHeader {
            spent: self.spending.map(Spending::own).unwrap_or_default(),
            inherited: self.spending.and_then(Spending::inherited).cloned(),
            errors: count_errors(self.family),
            n_calls: count_tool_calls(self.family),
            n_agents: self.family.agents.len(),
            ..session_facts(&self.family.main)
        }
    }
}

/// Returns the facts about a session that do not depend on its turns: id, title, first prompt, directory,
/// branch and version.
pub(crate) fn session_facts(session: &Session) -> TranscriptHeader {
    let last = |key: &str| {
        let found = session.entries().iter().rev().find_map(|entry| entry.get(key)?.as_str());
        found.filter(|text| !text.is_empty()).map(Cow::into_owned)
    };
    TranscriptHeader {
        id: session.id().map(Cow::into_owned),
        title: session.title(),
        first_prompt: session.first_prompt(),
        cwd: session.first_cwd().map(Cow::into_owned),
        git_branch: last(key::GIT_BRANCH),
        version: last("version"),
        active: active_span(session),
        ..TranscriptHeader::default()
    }
}

/// Returns when a session started and was last active, by the rules of lists.
pub(crate) fn active_span(session: &Session) -> Option<(Millis, Millis)> {
    let entries = session.entries();
    let mut search = SessionStartSearch::default();
    for entry in entries {
        search.add_line(|| entry.timestamp(), entry.kind() == Kind::Assistant);
        if search.is_done() {
            break;
        }
    }
    let end = entries.iter().rev().find_map(|entry| entry.timestamp());
    let start = search.start()?;
    Some((start, end.unwrap_or(start)))
}
