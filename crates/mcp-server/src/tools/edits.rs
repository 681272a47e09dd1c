//! `find_edits`: the sessions and prompts that edited a file, or wrote some of its lines.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use threadline_app::blame::{BlameError, BlameOptions, LoggedEdit};
use threadline_evidence::LineOrigin;
use threadline_view::humanize::{line_change, plural};

use crate::answer::AnswerEnd;
use crate::budget::{AnswerPage, shorten};
use crate::call::PageRequestState;
use crate::error::HistoryError;
use crate::history::{History, one_line};
use crate::tool::{HistoryTool, ToolAnswer};

pub(crate) struct FindEdits;

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditArguments {
    /// The path of the file, absolute or relative to the working directory.
    file: String,
    /// Only edits that wrote this line of the present file, from 1.
    #[serde(default)]
    line: Option<u64>,
    /// The last line of a range that begins at line.
    #[serde(default)]
    last_line: Option<u64>,
    /// Approximate size of the answer, from 400 to 50000. Default: 6000.
    #[serde(default)]
    max_tokens: Option<u64>,
    /// The next_cursor of the previous page.
    #[serde(default)]
    #[expect(dead_code, reason = "read before the arguments are parsed")]
    cursor: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct EditsAnswer {
    file: String,
    /// The number of edits on all pages.
    total: u64,
    /// Newest first.
    items: Vec<FoundEdit>,
    #[serde(flatten)]
    end: AnswerEnd,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct FoundEdit {
    /// The session and the call, for read_session.
    source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    edited_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<u64>,
    /// The prompt of the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    tool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines_added: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines_removed: Option<u64>,
    /// The requested lines that it wrote.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    lines: Vec<u64>,
}

impl HistoryTool for FindEdits {
    const NAME: &'static str = "find_edits";
    const TITLE: &'static str = "Find edits of a file";
    const DESCRIPTION: &'static str = "Finds the sessions and prompts that edited a file; with line, those \
        that wrote this line of the present file.";
    type Arguments = EditArguments;
    type Answer = EditsAnswer;

    fn run(
        history: &History,
        arguments: EditArguments,
        request: &PageRequestState,
    ) -> Result<ToolAnswer<EditsAnswer>, HistoryError> {
        let mut notes = Vec::new();
        let (file, mut found) = match arguments.line {
            Some(line) => {
                line_edits(history, &arguments.file, line, arguments.last_line.unwrap_or(line), &mut notes)?
            }
            None => {
                let found = history.app.file_edits(Path::new(&arguments.file))?;
                notes.extend(found.unread.iter().map(ToString::to_string));
                let edits = found.edits.into_iter().map(|edit| (edit, Vec::new())).collect();
                (found.path.to_string_lossy().into_owned(), edits)
            }
        };
        if let Some(ids) = history.session_ids() {
            found.retain(|(edit, _)| ids.contains(&*edit.session.id));
        }
        found.reverse();
        let mut projects: HashMap<String, Option<String>> = HashMap::new();
        let mut page = AnswerPage::new(arguments.max_tokens);
        let skipped = usize::try_from(request.start.item).unwrap_or(usize::MAX);
        for (index, (edit, lines)) in found.iter().enumerate().skip(skipped) {
            let project = projects.entry(edit.session.id.to_string()).or_insert_with(|| {
                let summary = history.summary(edit.session.clone()).ok()?;
                summary.project().map(str::to_owned)
            });
            let goes_on = page.push_shortened(index as u64, |limit| {
                let item = FoundEdit::of(history, edit, lines, project.as_deref(), limit);
                let text = item.form(history, edit);
                (item, text)
            });
            if !goes_on {
                break;
            }
        }
        if found.is_empty() {
            notes.push("no session edited it".to_owned());
        }
        let (items, mut text, next) = page.finish();
        let end = AnswerEnd::new(request, next, notes, &mut text);
        let count = plural(found.len() as u64, "edit");
        let text = format!("{}: {count}, newest first\n\n{text}", one_line(&file));
        Ok(ToolAnswer { data: EditsAnswer { file, total: found.len() as u64, items, end }, text })
    }
}

/// An edit, and the requested lines that it wrote.
type EditsWithLines = Vec<(LoggedEdit, Vec<u64>)>;

/// Returns the edits that wrote some lines of the present file, in the order of their times.
fn line_edits(
    history: &History,
    file: &str,
    first: u64,
    last: u64,
    notes: &mut Vec<String>,
) -> Result<(String, EditsWithLines), HistoryError> {
    // Only files that a session edited are read.
    let options = BlameOptions { only_edited: true, ..BlameOptions::default() };
    let blame = match history.app.blame(Path::new(file), options) {
        Err(BlameError::NotEdited { path }) => {
            return Ok((path.to_string_lossy().into_owned(), Vec::new()));
        }
        blame => blame?,
    };
    notes.extend(blame.unread.iter().map(ToString::to_string));
    let count = blame.lines.len() as u64;
    if first == 0 || last < first || first > count {
        return Err(HistoryError::new(format!("no such line: the file has {}", plural(count, "line"))));
    }
    let mut by_edit: HashMap<usize, Vec<u64>> = HashMap::new();
    for (line, number) in
        blame.lines.iter().zip(1..).skip(first as usize - 1).take((last - first + 1) as usize)
    {
        match &line.origin {
            LineOrigin::Edit { edit, .. } => by_edit.entry(*edit).or_default().push(number),
            LineOrigin::Unknown { candidates, .. } if candidates.is_empty() => {
                notes.push(format!("line {number}: not written by a logged edit"));
            }
            LineOrigin::Unknown { candidates, .. } => {
                notes.push(format!("line {number}: one of {} edits", candidates.len()));
                candidates.iter().for_each(|edit| by_edit.entry(*edit).or_default().push(number));
            }
        }
    }
    let path = blame.path.to_string_lossy().into_owned();
    let edits = blame.edits.into_iter().enumerate();
    let edits = edits.filter_map(|(at, edit)| Some((edit, by_edit.remove(&at)?)));
    Ok((path, edits.collect()))
}

impl FoundEdit {
    fn of(history: &History, edit: &LoggedEdit, lines: &[u64], project: Option<&str>, limit: usize) -> Self {
        let object = edit.object(&history.app);
        let short = |text: String| shorten(&one_line(&text), limit.min(300)).0;
        Self {
            source: object.link,
            title: object.title.map(short),
            project: project.map(|project| shorten(project, limit.min(300)).0),
            edited_at: object.edited_at,
            turn: object.turn,
            prompt: object.prompt.map(short),
            agent: object.agent,
            tool: object.tool,
            lines_added: object.lines_added,
            lines_removed: object.lines_removed,
            lines: lines.to_vec(),
        }
    }

    fn form(&self, history: &History, edit: &LoggedEdit) -> String {
        let mut facts = vec![history.shown_time(edit.edit.at), self.tool.clone()];
        if let (Some(added), Some(removed)) = (self.lines_added, self.lines_removed) {
            facts.push(line_change(added as usize, removed as usize));
        }
        facts.extend(self.turn.map(|turn| format!("turn {turn}")));
        facts.extend(self.project.clone());
        let mut text = format!("- {} · {}\n", one_line(&self.source), one_line(&facts.join(" · ")));
        if let Some(title) = &self.title {
            let _ = writeln!(text, "  {title}");
        }
        if let Some(prompt) = &self.prompt {
            let _ = writeln!(text, "  > {prompt}");
        }
        if !self.lines.is_empty() {
            let lines: Vec<String> = self.lines.iter().map(u64::to_string).collect();
            let _ = writeln!(text, "  lines {}", lines.join(", "));
        }
        text
    }
}
