//! References: resolves the text a user typed to a session.

use std::cmp::Reverse;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use threadline_entry::project_directory;

use crate::home::Store;
use crate::id::SessionId;
use crate::last_active::read_last_active;
use crate::preview::{SessionPreview, read_session_preview};
use crate::session_file::SessionFile;

/// Why no single session was found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// No session has this id, prefix, title or path.
    #[error("no session matches `{needle}`")]
    NoMatch {
        /// The text that was typed.
        needle: String,
        /// The most similar sessions, best first.
        similar: Vec<SessionCandidate>,
        /// Errors of reading; the session may be in one of these places.
        errors: Vec<io::Error>,
    },

    /// `last` was asked for, and there are no sessions.
    #[error("there are no sessions in {}", .homes.join(", "))]
    Empty {
        /// The homes that were searched.
        homes: Vec<String>,
        /// Errors of reading.
        errors: Vec<io::Error>,
    },

    /// No session matches or is similar, and the text is the path of a folder.
    #[error("`{}` is a folder, not a session", .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
    },

    /// Several sessions match.
    #[error("`{needle}` matches {} sessions", .found.len())]
    Ambiguous {
        /// The text that was typed.
        needle: String,
        /// All matches, last active first.
        found: Vec<SessionCandidate>,
    },

    /// The text is only a part of a title, which does not select a session to change.
    #[error("`{needle}` is only a part of a title")]
    PartOfTitle {
        /// The text that was typed.
        needle: String,
        /// The sessions with such a title, last active first.
        found: Vec<SessionCandidate>,
    },

    /// A file that matches could not be read.
    #[error(transparent)]
    Read(#[from] io::Error),
}

/// A session that may have been meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionCandidate {
    /// The session id.
    pub id: SessionId,
    /// The title.
    pub title: Option<String>,
    /// The project: its working directory, or the project folder if the log contains none.
    pub project: Option<String>,
    /// When it was last active.
    pub last_active: SystemTime,
}

impl SessionCandidate {
    /// Returns a candidate with the title, project and time from its log.
    pub fn new(file: &SessionFile, preview: &SessionPreview) -> Self {
        let directory = preview.cwd.as_deref().or(file.folder.as_deref());
        Self {
            id: file.id.clone(),
            title: preview.title(),
            project: directory.map(|directory| project_directory(directory).to_owned()),
            last_active: preview.last_active,
        }
    }
}

/// Whether a unique part of a title selects its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartialTitles {
    Accept,
    Refuse,
}

/// The result of a search by id or title.
enum ReferenceMatches {
    None,
    One(SessionFile),
    Many(Vec<SessionCandidate>),
}

impl Store {
    /// Finds the session that `needle` refers to.
    ///
    /// Tried in this order: `last` for the session last active; a path to a log, with or without
    /// `.jsonl`, or to the directory next to it; an id; a unique prefix of an id; a title, ignoring case; a
    /// unique part of a title; a file name in the current directory. If several files have the same id, the
    /// one last active is used.
    pub fn find(&self, needle: &str) -> Result<SessionFile, FindError> {
        self.find_with(needle, PartialTitles::Accept)
    }

    /// Finds a session that is to be changed: like [`find`](Self::find), but not by a part of its title.
    ///
    /// # Errors
    ///
    /// The same as of [`find`](Self::find), and [`FindError::PartOfTitle`].
    pub fn find_to_change(&self, needle: &str) -> Result<SessionFile, FindError> {
        self.find_with(needle, PartialTitles::Refuse)
    }

    fn find_with(&self, needle: &str, partial: PartialTitles) -> Result<SessionFile, FindError> {
        let needle = needle.trim();
        if needle == "last" {
            return self.find_last();
        }
        if (needle.ends_with(".jsonl") || needle.contains(std::path::is_separator))
            && let Some(file) = session_at(Path::new(needle))
        {
            return Ok(file);
        }
        let by_id = self.find_id(needle)?;
        if let ReferenceMatches::One(file) = by_id {
            return Ok(file);
        }
        match self.find_title(needle, by_id, partial, &session_at) {
            Err(FindError::NoMatch { similar, .. }) if similar.is_empty() && Path::new(needle).is_dir() => {
                Err(FindError::Folder { path: PathBuf::from(needle) })
            }
            found => found,
        }
    }

    /// Finds a session of the store like [`find`](Self::find), but not by path: `last`, an id, a prefix of
    /// an id, a title or part of a title. For untrusted text: it is compared with existing names and never
    /// used in a path.
    ///
    /// # Errors
    ///
    /// The same as of [`find`](Self::find).
    pub fn find_named(&self, needle: &str) -> Result<SessionFile, FindError> {
        let needle = needle.trim();
        if needle == "last" {
            return self.find_last();
        }
        match self.find_id(needle)? {
            ReferenceMatches::One(file) => Ok(file),
            by_id => self.find_title(needle, by_id, PartialTitles::Accept, &|_| None),
        }
    }

    /// Returns the session of the store with exactly this id; of several files, the one last active.
    ///
    /// Safe for untrusted ids: the id is compared with existing names and never used in a path.
    pub fn session(&self, id: &str) -> Option<SessionFile> {
        let files = self.session_files_with_id(&|found| found == id).into_iter();
        let sessions = files.filter(|file| !file.is_sidechain().unwrap_or(true));
        sessions.max_by_key(|file| read_last_active(&file.path).ok())
    }

    fn find_last(&self) -> Result<SessionFile, FindError> {
        let listing = self.list();
        listing.found.into_iter().next().map(|(file, _)| file).ok_or_else(|| FindError::Empty {
            homes: self.homes().iter().map(|home| home.root().display().to_string()).collect(),
            errors: listing.errors,
        })
    }

    /// Searches for a session with this id or id prefix.
    fn find_id(&self, needle: &str) -> Result<ReferenceMatches, FindError> {
        if needle.is_empty() {
            return Ok(ReferenceMatches::None);
        }
        let is_prefix =
            |id: &str| id.get(..needle.len()).is_some_and(|start| start.eq_ignore_ascii_case(needle));
        let mut files = self.session_files_with_id(&is_prefix);
        if files.iter().any(|file| file.id.eq_ignore_ascii_case(needle)) {
            files.retain(|file| file.id.eq_ignore_ascii_case(needle));
        }
        let mut hits = Vec::new();
        for file in files {
            let preview = read_session_preview(&file)?;
            if !preview.is_sidechain {
                hits.push((file, preview));
            }
        }
        Ok(single_session(hits))
    }

    /// Searches for a session with this title or a part of it. `by_id` is the result of the search by id;
    /// `at_path` is tried last.
    fn find_title(
        &self,
        needle: &str,
        by_id: ReferenceMatches,
        partial: PartialTitles,
        at_path: &dyn Fn(&Path) -> Option<SessionFile>,
    ) -> Result<SessionFile, FindError> {
        let listing = self.list();
        let wanted = needle.to_lowercase();
        let hits_of = |matches: &dyn Fn(&str) -> bool| {
            let hits =
                listing.found.iter().filter(|(_, preview)| titles(preview).any(|title| matches(&title)));
            hits.cloned().collect::<Vec<_>>()
        };
        let titled = |matches: &dyn Fn(&str) -> bool| single_session(hits_of(matches));
        // Signs such as `.` are parts of many titles by chance.
        let is_word = wanted.contains(char::is_alphanumeric);
        let hits = match (titled(&|title| title == wanted), by_id) {
            (ReferenceMatches::None, ReferenceMatches::None) if is_word => {
                let contains = |title: &str| title.contains(&wanted);
                match (titled(&contains), partial) {
                    (ReferenceMatches::None, _) => ReferenceMatches::None,
                    (part, PartialTitles::Accept) => part,
                    (_, PartialTitles::Refuse) => {
                        let hits = hits_of(&contains);
                        return at_path(Path::new(needle)).ok_or_else(|| FindError::PartOfTitle {
                            needle: needle.to_owned(),
                            found: candidates(&hits),
                        });
                    }
                }
            }
            (ReferenceMatches::None, several) => several,
            (hits, _) => hits,
        };
        match hits {
            ReferenceMatches::One(file) => Ok(file),
            ReferenceMatches::Many(found) => Err(FindError::Ambiguous { needle: needle.to_owned(), found }),
            ReferenceMatches::None => at_path(Path::new(needle)).ok_or_else(|| FindError::NoMatch {
                needle: needle.to_owned(),
                similar: similar_sessions(&wanted, &listing.found),
                errors: listing.errors,
            }),
        }
    }
}

/// Returns the log that `path` refers to, if it exists.
fn session_at(path: &Path) -> Option<SessionFile> {
    let with_extension = || {
        let mut name = path.file_name()?.to_owned();
        name.push(".jsonl");
        Some(path.with_file_name(name))
    };
    let log =
        if path.is_file() { Some(path.to_owned()) } else { with_extension().filter(|log| log.is_file()) };
    log.map(|log: PathBuf| SessionFile::at(log))
}

/// Returns all titles of the session, in lower case.
fn titles(preview: &SessionPreview) -> impl Iterator<Item = String> {
    let titles = [&preview.custom_title, &preview.ai_title, &preview.summary].map(Clone::clone);
    titles.into_iter().chain([preview.title()]).flatten().map(|title| title.to_lowercase())
}

/// Reduces hits to one session, of which the file last active is used, or to a list of candidates.
fn single_session(mut hits: Vec<(SessionFile, SessionPreview)>) -> ReferenceMatches {
    hits.sort_by_key(|(_, preview)| Reverse(preview.last_active));
    let several = hits.iter().any(|(file, _)| file.id != hits[0].0.id);
    if several {
        return ReferenceMatches::Many(candidates(&hits));
    }
    hits.into_iter().next().map_or(ReferenceMatches::None, |(file, _)| ReferenceMatches::One(file))
}

/// Returns one candidate for each session.
fn candidates(hits: &[(SessionFile, SessionPreview)]) -> Vec<SessionCandidate> {
    let mut found: Vec<SessionCandidate> = Vec::new();
    for (file, preview) in hits {
        if found.iter().all(|candidate| candidate.id != file.id) {
            found.push(SessionCandidate::new(file, preview));
        }
    }
    found
}

/// Returns sessions with a similar id prefix, title, or word in a title.
fn similar_sessions(needle: &str, sessions: &[(SessionFile, SessionPreview)]) -> Vec<SessionCandidate> {
    let length = needle.chars().count();
    let allowed = length / 3;
    if allowed == 0 {
        return Vec::new();
    }
    let mut scored: Vec<(usize, SessionCandidate)> = Vec::new();
    for (file, preview) in sessions {
        let start: String = file.id.to_ascii_lowercase().chars().take(length).collect();
        let mut best = distance(needle, &start);
        for title in titles(preview) {
            let words = title.split_whitespace().map(|word| distance(needle, word)).min();
            best = best.min(distance(needle, &title)).min(words.unwrap_or(usize::MAX));
        }
        if best <= allowed {
            scored.push((best, SessionCandidate::new(file, preview)));
        }
    }
    scored.sort_by_key(|(score, _)| *score);
    scored.into_iter().take(5).map(|(_, candidate)| candidate).collect()
}

/// Returns the Levenshtein distance of two texts.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ch) in a.chars().enumerate() {
        let mut corner = i;
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let change = corner + usize::from(ch != *other);
            corner = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests;
