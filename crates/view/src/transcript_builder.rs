//! Builds transcripts: as a whole, part by part, or only the turns.

use std::borrow::Cow;
use std::cell::RefCell;

use threadline_entry::{Finding, Severity, key};
use threadline_session::{EntryIndex, InputKind, Session, SessionFamily, editor_context};

use crate::card::tag_text;
use crate::outline::text_title;
use crate::spending::Spending;
use crate::transcript::{Transcript, TranscriptHeader};
use crate::transcript_parts::{TranscriptParts, TurnPredicate, TurnViews};
use crate::transcript_writer::{TranscriptWriter, strip_tags};

/// Reads output that Claude Code saved to a separate file, given the path in the log.
///
/// Returns `None` if the file cannot be read.
pub type OutputReader<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The inputs of a transcript, with methods that build it.
#[derive(Clone, Copy)]
pub struct TranscriptBuilder<'a> {
    /// The session and its sub-agents.
    pub family: &'a SessionFamily,
    /// Reads output that was saved to a separate file.
    pub read_output: OutputReader<'a>,
    /// The cost of the calls; without it, every `spent` field stays empty.
    pub spending: Option<&'a Spending>,
}

/// Returns the transcript of a session, without costs. See [`TranscriptBuilder::transcript`].
pub fn transcript(family: &SessionFamily, kept: OutputReader<'_>) -> Transcript {
    TranscriptBuilder { family, read_output: kept, spending: None }.transcript()
}

impl<'a> TranscriptBuilder<'a> {
    /// Creates a builder that reads no files and reports no cost.
    pub fn new(family: &'a SessionFamily) -> Self {
        Self { family, read_output: &|_| None, spending: None }
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

    /// Builds the turns that `wanted` accepts, and nothing else.
    pub fn turns(self, wanted: TurnPredicate<'a>) -> TurnViews<'a> {
        TurnViews::new(self, wanted)
    }

    /// Returns the number of the turn that contains a line of the log, or `None` if the line is not part of
    /// the active conversation.
    pub fn turn_of_line(self, line_no: u64) -> Option<usize> {
        let session = &self.family.main;
        let visited = RefCell::default();
        let is_there = |&idx: &EntryIndex| session.entries()[idx].at().line_no == line_no;
        let turns = session.turns_of(&TranscriptWriter::new(self, None, &visited).thread());
        turns.iter().find(|turn| turn.entries.iter().any(is_there)).map(|turn| turn.number)
    }

    /// Returns the facts about the session and its total cost.
    pub(crate) fn header(self) -> TranscriptHeader {
        TranscriptHeader {
            spent: self.spending.map(|spending| spending.total().clone()).unwrap_or_default(),
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
    let typed = |entries: &[EntryIndex], wanted: &dyn Fn(InputKind) -> bool| {
        entries.iter().find_map(|&idx| {
            let input = session.input(idx).filter(|input| wanted(*input))?;
            let content = session.entries()[idx].message()?.content()?;
            let mut texts = content.blocks().filter_map(|block| block.text());
            let text = content.as_str().or_else(|| texts.find(|text| editor_context(text).is_none()))?;
            let text = strip_tags(input, text.into_owned());
            Some(text_title(&text).to_owned()).filter(|line| !line.is_empty())
        })
    };
    let prompt = |input: InputKind| input == InputKind::Prompt || input.is_from_editor();
    let command = |input: InputKind| input == InputKind::SlashCommand;
    let message = |input: InputKind| input == InputKind::TeammateMessage;
    let thread = session.thread().entries;
    let said = |wanted: &dyn Fn(InputKind) -> bool| typed(&thread, wanted);
    let began = opening_command(session, &thread).and_then(|idx| typed(&[idx], &command));
    // A session with only commands is named after the first one; a teammate's session after its first
    // message.
    let said = began.or_else(|| said(&prompt)).or_else(|| said(&command)).or_else(|| said(&message));
    TranscriptHeader {
        id: session.id().map(Cow::into_owned),
        title: session.title().map(Cow::into_owned),
        first_prompt: said.or_else(|| typed(&session.entries().indices().collect::<Vec<_>>(), &prompt)),
        cwd: session.entries().iter().find_map(|entry| entry.cwd()).map(Cow::into_owned),
        git_branch: last(key::GIT_BRANCH),
        version: last("version"),
        ..TranscriptHeader::default()
    }
}

/// Returns the slash command that a conversation begins with, if it has arguments and the model replied to
/// it before any prompt was typed.
fn opening_command(session: &Session, thread: &[EntryIndex]) -> Option<EntryIndex> {
    let has_words = |idx: EntryIndex| {
        let text = || session.entries()[idx].message()?.content()?.as_str();
        text().is_some_and(|text| tag_text(&text, "command-args").is_some_and(|words| !words.is_empty()))
    };
    let mut command = None;
    for &idx in thread {
        match session.input(idx) {
            Some(InputKind::SlashCommand) => command = Some(idx).filter(|&idx| has_words(idx)),
            // Claude Code handled the command locally.
            Some(InputKind::CommandOutput) => command = None,
            Some(input) if input.opens_turn() && input != InputKind::BashInput => return None,
            _ => {}
        }
        let reply = session.reply_of(idx).map(|reply| &session.replies()[reply]);
        if command.is_some() && reply.is_some_and(|reply| !reply.is_synthetic()) {
            return command;
        }
    }
    None
}

/// Returns the problems of a log, without notes. Secrets are not searched for: they are no defect of the
/// log, and the search would take longer than everything else.
pub fn findings(session: &Session) -> Vec<Finding> {
    let mut findings = session.faults();
    findings.retain(|finding| finding.severity > Severity::Note);
    findings
}
