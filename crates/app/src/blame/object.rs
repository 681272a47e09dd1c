//! Origins of lines and edits as public JSON.

use threadline_evidence::{FileText, LineHunk, LineOrigin};
use threadline_view::line_counts;
use threadline_view::wire::{BlameEditObject, BlameLineObject, CommitObject, moment};

use super::{FileBlame, GitCommitInfo, LoggedEdit};
use crate::config::App;

impl LoggedEdit {
    /// Returns the number of lines that the edit added and removed; `None` if the log does not contain them.
    pub fn changed_lines(&self) -> Option<(usize, usize)> {
        *self.changed_lines.get_or_init(|| self.count_changed_lines())
    }

    fn count_changed_lines(&self) -> Option<(usize, usize)> {
        fn text(known: &FileText) -> Option<&str> {
            match known {
                FileText::Absent => Some(""),
                FileText::Text(text) => Some(text),
                FileText::Unknown => None,
            }
        }
        let edit = &self.edit;
        if let (Some(before), Some(after)) = (text(&edit.before), text(&edit.after)) {
            return Some(line_counts(before, after));
        }
        let count = |sign: char| {
            let lines = |hunk: &LineHunk| hunk.lines.iter().filter(|line| line.starts_with(sign)).count();
            edit.hunks.iter().map(lines).sum::<usize>()
        };
        (!edit.hunks.is_empty()).then(|| (count('+'), count('-')))
    }

    /// Returns the edit as public JSON.
    pub fn object(&self, app: &App) -> BlameEditObject {
        let shown = |text: &Option<String>| text.as_ref().map(|text| app.masked(text).into_owned());
        let changed = self.changed_lines();
        BlameEditObject {
            session: self.session.id.to_string(),
            title: shown(&self.title),
            agent: self.agent.clone(),
            turn: self.turn.map(|turn| turn as u64),
            prompt: shown(&self.prompt),
            anchor: self.anchor.clone(),
            link: self.link(),
            tool: self.tool.clone(),
            path: self.edit.path.clone(),
            edited_at: self.edit.at.map(moment),
            lines_added: changed.map(|(added, _)| added as u64),
            lines_removed: changed.map(|(_, removed)| removed as u64),
        }
    }
}

impl GitCommitInfo {
    fn object(&self, app: &App) -> CommitObject {
        CommitObject {
            id: self.id.clone(),
            author: self.author.clone(),
            committed_at: moment(self.at),
            summary: app.masked(&self.summary).into_owned(),
            file: self.file.clone(),
        }
    }
}

impl FileBlame {
    /// Returns lines as public JSON, by their indexes from 0.
    pub fn objects<'b>(
        &'b self,
        app: &'b App,
        lines: impl Iterator<Item = usize> + 'b,
    ) -> impl Iterator<Item = BlameLineObject> + 'b {
        // Counting the changed lines of an edit compares texts, and an edit wrote many lines.
        let edits: Vec<BlameEditObject> = self.edits.iter().map(|edit| edit.object(app)).collect();
        lines.filter_map(move |at| {
            let line = self.lines.get(at)?;
            let (origin, moved, edit, candidates) = match &line.origin {
                LineOrigin::Edit { edit, is_moved } => ("edit", *is_moved, Some(*edit), &[][..]),
                LineOrigin::Unknown { reason, candidates, .. } => (reason.name(), false, None, &**candidates),
            };
            Some(BlameLineObject {
                line: at as u64 + 1,
                text: app.masked(&line.text).into_owned(),
                origin,
                moved,
                edit: edit.map(|edit| edits[edit].clone()),
                candidates: candidates.iter().map(|&edit| edits[edit].clone()).collect(),
                commit: line.commit.map(|commit| self.commits[commit].object(app)),
            })
        })
    }
}
