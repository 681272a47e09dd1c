//! Sessions, projects, files and commands that match what a person types, for a palette.

use std::cmp::Reverse;

use foldhash::HashMap;
use threadline_session::ToolOutcome;

use super::facts::OverviewFacts;
use crate::config::App;

/// The number of matches of each kind.
const MAX_MATCHES: usize = 6;

/// Something to go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaletteMatch {
    /// Its kind.
    pub kind: PaletteKind,
    /// The id of a session, the directory of a project, the path of a file, or a command group.
    pub key: String,
    /// The text to show.
    pub label: String,
    /// Where it belongs, or how often it occurs.
    pub detail: String,
}

/// The kinds of matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PaletteKind {
    /// A session.
    Session,
    /// A project.
    Project,
    /// A file that was edited.
    File,
    /// A group of shell commands.
    Command,
}

impl PaletteKind {
    /// Returns the name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Project => "project",
            Self::File => "file",
            Self::Command => "command",
        }
    }
}

impl OverviewFacts {
    /// Returns the matches of a query: those that contain all its words, ignoring case. A match at the start
    /// of a word comes before others, then what was used last or most often. Without words, returns the last
    /// active sessions and projects. `app` masks secrets in texts, if its configuration requires it.
    pub fn palette(&self, query: &str, app: &App) -> Vec<PaletteMatch> {
        let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        let mut matches = self.sessions_with(&words, app);
        matches.extend(self.projects_with(&words, app));
        if !words.is_empty() {
            matches.extend(self.details_with(&words, PaletteKind::File, app));
            matches.extend(self.details_with(&words, PaletteKind::Command, app));
        }
        matches
    }

    fn sessions_with(&self, words: &[String], app: &App) -> Vec<PaletteMatch> {
        let found = self.sessions.iter().filter_map(|session| {
            let title = session.title.as_deref()?;
            let rank = rank(title, words).or_else(|| {
                let is_id = words.len() == 1 && session.id.starts_with(&words[0]);
                is_id.then_some(0)
            })?;
            Some((rank, Reverse(session.last_active), session, title))
        });
        let mut found: Vec<_> = found.collect();
        found.sort_by_key(|(rank, at, session, _)| (*rank, *at, &session.id));
        let shown = found.into_iter().take(MAX_MATCHES);
        shown
            .map(|(_, _, session, title)| PaletteMatch {
                kind: PaletteKind::Session,
                key: session.id.clone(),
                label: app.masked(title).into_owned(),
                detail: app.masked(self.name(session.project)).into_owned(),
            })
            .collect()
    }

    fn projects_with(&self, words: &[String], app: &App) -> Vec<PaletteMatch> {
        let mut last: HashMap<u32, (i64, u64)> = HashMap::default();
        for session in self.sessions.iter().filter(|session| session.title.is_some()) {
            let (at, sessions) = last.entry(session.project).or_default();
            *at = (*at).max(session.last_active);
            *sessions += 1;
        }
        let mut found: Vec<_> = last
            .into_iter()
            .filter_map(|(project, (at, sessions))| {
                let name = self.name(project);
                Some((rank(name, words)?, Reverse(at), name, sessions))
            })
            .collect();
        found.sort();
        let shown = found.into_iter().take(MAX_MATCHES);
        shown
            .map(|(_, _, name, sessions)| (app.masked(name).into_owned(), sessions))
            .map(|(name, sessions)| PaletteMatch {
                kind: PaletteKind::Project,
                key: name.clone(),
                label: name,
                detail: threadline_view::humanize::plural(sessions, "session"),
            })
            .collect()
    }

    /// Returns matching files or command groups.
    fn details_with(&self, words: &[String], kind: PaletteKind, app: &App) -> Vec<PaletteMatch> {
        let bash: Vec<bool> = self.names.iter().map(|name| name == "Bash").collect();
        let ranks: Vec<Option<u32>> = self.names.iter().map(|name| rank(name, words)).collect();
        let mut counts: HashMap<u32, u64> = HashMap::default();
        for call in &self.calls {
            let Some(detail) = call.detail.filter(|detail| ranks[*detail as usize].is_some()) else {
                continue;
            };
            let is_command = bash[call.tool as usize];
            let is_wanted = match kind {
                PaletteKind::Command => is_command,
                _ => !is_command && call.outcome == ToolOutcome::Ok,
            };
            if is_wanted {
                *counts.entry(detail).or_default() += 1;
            }
        }
        let mut found: Vec<_> = counts
            .into_iter()
            .map(|(detail, count)| (ranks[detail as usize], Reverse(count), self.name(detail)))
            .collect();
        found.sort();
        let noun = if kind == PaletteKind::Command { "run" } else { "edit" };
        let shown = found.into_iter().take(MAX_MATCHES);
        shown
            .map(|(_, Reverse(count), name)| {
                let name = app.masked(name).into_owned();
                let detail = threadline_view::humanize::plural(count, noun);
                PaletteMatch { kind, key: name.clone(), label: name, detail }
            })
            .collect()
    }
}

/// Returns how well a text matches all words; lower is better, `None` if it does not.
fn rank(text: &str, words: &[String]) -> Option<u32> {
    if words.is_empty() {
        return Some(0);
    }
    let text = text.to_lowercase();
    let mut sum = 0;
    for word in words {
        let at = text.find(&**word)?;
        let starts_word = |at: usize| !text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
        sum += if at == 0 {
            0
        } else if text.match_indices(&**word).any(|(at, _)| starts_word(at)) {
            1
        } else {
            2
        };
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_at_the_start_of_words_are_better() {
        let words = |query: &str| query.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(rank("Weave the loom", &words("weave")), Some(0));
        assert_eq!(rank("the Weave", &words("weave")), Some(1));
        assert_eq!(rank("interweave", &words("weave")), Some(2));
        assert_eq!(rank("the weave", &words("weave loom")), None);
        assert_eq!(rank("ü-weave", &words("weave ü")), Some(1));
        assert_eq!(rank("anything", &[]), Some(0));
    }
}
