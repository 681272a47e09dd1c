//! `session_changes`: the net patch of a session, or a file as it was at a prompt.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use threadline_app::SessionFile;
use threadline_app::restore::{RestoreAction, RestoreError, RestoreOptions, RestorePoint, is_named};
use threadline_view::humanize::plural;
use threadline_view::wire::moment;
use threadline_view::{FileChange, Hunk, changes, patch};

use crate::answer::AnswerEnd;
use crate::budget::{AnswerPage, PagePlace, shorten};
use crate::call::PageRequestState;
use crate::error::HistoryError;
use crate::history::{History, one_line};
use crate::tool::{HistoryTool, ToolAnswer};

pub(crate) struct SessionChanges;

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangesArguments {
    /// The id, a unique beginning of it, the title, or `last`.
    session: String,
    /// Only this file, by its path or the end of it, or the files of this folder, by its path, absolute or
    /// below the project.
    #[serde(default)]
    file: Option<String>,
    /// Returns files as they were at the beginning of this turn instead of the patch: 3, -1, m42, or `end`.
    #[serde(default)]
    at: Option<String>,
    /// Approximate size of the answer, from 400 to 50000. Default: 6000.
    #[serde(default)]
    max_tokens: Option<u64>,
    /// The next_cursor of the previous page.
    #[serde(default)]
    #[expect(dead_code, reason = "read before the arguments are parsed")]
    cursor: Option<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ChangesAnswer {
    session: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    /// When the session was last active.
    last_active_at: String,
    /// The number of files on all pages.
    files: u64,
    items: Vec<NetFileChange>,
    #[serde(flatten)]
    end: AnswerEnd,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct NetFileChange {
    /// The session, for read_session.
    source: String,
    path: String,
    /// added, changed, deleted; with at: present, absent or unknown.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines_added: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines_removed: Option<u64>,
    /// The patch; with at, the content of the file.
    text: String,
    /// Whether the text is incomplete.
    cut: bool,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    notes: Vec<String>,
}

impl HistoryTool for SessionChanges {
    const NAME: &'static str = "session_changes";
    const TITLE: &'static str = "Changes of a session";
    const DESCRIPTION: &'static str = "Returns the net change of each file that a session edited, as a \
        patch. With at: the content of the files at the beginning of a turn.";
    type Arguments = ChangesArguments;
    type Answer = ChangesAnswer;

    fn run(
        history: &History,
        arguments: ChangesArguments,
        request: &PageRequestState,
    ) -> Result<ToolAnswer<ChangesAnswer>, HistoryError> {
        let (file, _) = history.find(&arguments.session)?;
        let (files, mut notes) = match &arguments.at {
            Some(at) => files_at(history, &file, at, arguments.file.as_deref())?,
            None => net_changes(history, &file, arguments.file.as_deref())?,
        };
        let mut page = AnswerPage::new(arguments.max_tokens);
        let first = request.start;
        for (index, file) in files.iter().enumerate().skip(usize::try_from(first.item).unwrap_or(usize::MAX))
        {
            let byte = if index as u64 == first.item { first.byte } else { 0 };
            let place = PagePlace { item: index as u64, byte };
            let goes_on = page.push_long(place, &file.text, |shown, part| {
                let item = NetFileChange { text: shown.to_owned(), cut: part.is_cut(), ..file.clone() };
                let form = item.form();
                (item, form)
            });
            if !goes_on {
                break;
            }
        }
        let (items, mut text, next) = page.finish();
        if files.is_empty() {
            notes.push(match &arguments.file {
                Some(name) => format!("no edits of `{}` in this session", one_line(name)),
                None => "no edits of files in this session".to_owned(),
            });
        }
        let end = AnswerEnd::new(request, next, notes, &mut text);
        let summary = history.summary(file)?;
        let title = summary.title().map(|title| shorten(&one_line(&title), 200).0);
        let project = summary.project().map(str::to_owned);
        let heading = format!(
            "# {}\n{} · {} · {}\n\n",
            title.as_deref().unwrap_or("untitled"),
            summary.file.id,
            one_line(project.as_deref().unwrap_or("–")),
            plural(files.len() as u64, "file")
        );
        let session = summary.file.id.to_string();
        let last_active_at = moment(threadline_app::time::millis(summary.preview.last_active));
        let n_files = files.len() as u64;
        let data = ChangesAnswer { session, title, project, last_active_at, files: n_files, items, end };
        Ok(ToolAnswer { data, text: heading + &text })
    }
}

impl NetFileChange {
    fn form(&self) -> String {
        let notes: String = self.notes.iter().map(|note| format!("({})\n", one_line(note))).collect();
        let end = if self.text.ends_with('\n') || self.text.is_empty() { "" } else { "\n" };
        format!("## {} ({})\n{notes}{}{end}\n", one_line(&self.path), self.state, self.text)
    }
}

/// The changes of files, and notes about logs that could not be read.
type ChangesAndNotes = (Vec<NetFileChange>, Vec<String>);

/// Returns the net change of each file of a session.
fn net_changes(
    history: &History,
    file: &SessionFile,
    name: Option<&str>,
) -> Result<ChangesAndNotes, HistoryError> {
    let loaded = history.app.load(file)?;
    let root = loaded.cwd();
    let found = changes(&history.app.logged_evidence(file, &loaded.family), &loaded.family);
    let found =
        found.iter().filter(|change| name.is_none_or(|name| is_named(&change.path, name, root.as_deref())));
    let found = found.map(|change| NetFileChange::of(&file.id, change, root.as_deref())).collect();
    Ok((found, loaded.unread.iter().map(ToString::to_string).collect()))
}

impl NetFileChange {
    fn of(session: &str, change: &FileChange, root: Option<&str>) -> Self {
        let (added, removed) = Hunk::counts(&change.hunks());
        Self {
            source: session.to_owned(),
            path: change.path.clone(),
            state: match (change.is_new(), change.is_deleted()) {
                (true, _) => "added",
                (_, true) => "deleted",
                _ => "changed",
            },
            lines_added: Some(added as u64),
            lines_removed: Some(removed as u64),
            text: patch(std::slice::from_ref(change), root),
            cut: false,
            notes: change.notes.clone(),
        }
    }
}

/// Returns the files of a session as they were at a moment.
fn files_at(
    history: &History,
    file: &SessionFile,
    at: &str,
    name: Option<&str>,
) -> Result<ChangesAndNotes, HistoryError> {
    let point: RestorePoint = at.parse().map_err(HistoryError::new)?;
    let loaded = history.app.load(file)?;
    let evidence = history.app.logged_evidence(file, &loaded.family);
    let (moment, _) = point.resolve(&loaded.family)?;
    let options =
        RestoreOptions { names: name.map(str::to_owned).into_iter().collect(), ..RestoreOptions::default() };
    let notes = loaded.unread.iter().map(ToString::to_string).collect();
    let plan = match history.app.plan_restore(file, &evidence, moment, &options) {
        Err(RestoreError::NoFiles) => return Ok((Vec::new(), notes)),
        plan => plan?,
    };
    let session = file.id.to_string();
    let files = plan.files.into_iter().map(|file| {
        let is_unknown = file.action == RestoreAction::Cannot;
        let (state, text) = match &file.content {
            Some(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => ("present", text.to_owned()),
                Err(_) => ("present", format!("(not text: {} bytes)", bytes.len())),
            },
            None if is_unknown => ("unknown", String::new()),
            None => ("absent", String::new()),
        };
        NetFileChange {
            source: session.clone(),
            path: file.path,
            state,
            lines_added: None,
            lines_removed: None,
            text,
            cut: false,
            // Nothing is written here.
            notes: file.note.into_iter().filter(|_| file.action != RestoreAction::Blocked).collect(),
        }
    });
    Ok((files.collect(), notes))
}
