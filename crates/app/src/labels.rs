//! Pins and tags that a person gives to sessions. They are kept in threadline's state folder, and never in
//! the folders of Claude Code.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use threadline_store::{open_own_file, read_text_file, replace_own_file};

use crate::config::App;
use crate::error::AppError;

/// The first line of the file.
const HEADER: &str = "threadline labels 1";

/// The longest tag, in characters.
const MAX_TAG: usize = 60;

/// The pins and tags of all sessions, by session id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionLabels(BTreeMap<String, SessionLabel>);

/// The pin and the tags of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionLabel {
    /// Whether it is pinned.
    pub is_pinned: bool,
    /// Its tags.
    pub tags: BTreeSet<String>,
}

impl SessionLabels {
    /// Returns the labels of a session; none if it has none.
    pub fn get(&self, id: &str) -> SessionLabel {
        self.0.get(id).cloned().unwrap_or_default()
    }

    /// Returns all sessions with labels.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &SessionLabel)> {
        self.0.iter().map(|(id, label)| (&**id, label))
    }

    fn read(file: &Path) -> io::Result<Self> {
        let text = match read_text_file(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            text => text?,
        };
        let mut lines = text.lines();
        if lines.next() != Some(HEADER) {
            let message = "not a list of pins and tags of this version";
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let label = |line: &str| {
            let mut fields = line.split('\t');
            let id = unescape(fields.next()?);
            let is_pinned = fields.next()? == "pinned";
            Some((id, SessionLabel { is_pinned, tags: fields.map(unescape).collect() }))
        };
        Ok(Self(lines.filter_map(label).collect()))
    }

    fn write(&self, file: &Path) -> io::Result<()> {
        let mut text = format!("{HEADER}\n");
        for (id, label) in self.iter().filter(|(_, label)| **label != SessionLabel::default()) {
            text.push_str(&escape(id));
            text.push_str(if label.is_pinned { "\tpinned" } else { "\t-" });
            for tag in &label.tags {
                text.push('\t');
                text.push_str(&escape(tag));
            }
            text.push('\n');
        }
        replace_own_file(file, text.as_bytes())
    }
}

/// Checks that a text can be a tag: not empty, on one line, and not too long.
///
/// # Errors
///
/// A message for the person.
pub fn check_tag(tag: &str) -> Result<(), String> {
    if tag.trim() != tag || tag.is_empty() {
        return Err("a tag must not be empty, or begin or end with a space".to_owned());
    }
    if tag.chars().count() > MAX_TAG || tag.chars().any(char::is_control) {
        return Err(format!(
            "a tag has at most {MAX_TAG} characters, and none of them is a control character"
        ));
    }
    Ok(())
}

impl App {
    fn labels_file(&self) -> Result<PathBuf, AppError> {
        Ok(self.state_dir()?.join("labels"))
    }

    /// Returns the pins and tags of all sessions.
    ///
    /// # Errors
    ///
    /// If the file cannot be read. Without a state folder there are none.
    pub fn labels(&self) -> Result<SessionLabels, AppError> {
        let Ok(file) = self.labels_file() else { return Ok(SessionLabels::default()) };
        SessionLabels::read(&file).map_err(AppError::read(file))
    }

    /// Changes the pin and the tags of a session, and returns the new ones. One process at a time does this.
    ///
    /// # Errors
    ///
    /// If there is no state folder, or if the file cannot be read or written.
    pub fn change_labels(
        &self,
        id: &str,
        change: impl FnOnce(&mut SessionLabel),
    ) -> Result<SessionLabel, AppError> {
        let file = self.labels_file()?;
        fs::create_dir_all(self.state_dir()?)?;
        let lock = open_own_file(&file.with_extension("lock"))?;
        lock.lock()?;
        let mut labels = SessionLabels::read(&file).map_err(AppError::read(&file))?;
        let label = labels.0.entry(id.to_owned()).or_default();
        change(label);
        let label = label.clone();
        labels.write(&file)?;
        Ok(label)
    }
}

/// The characters that separate fields and lines of the file.
const SEPARATORS: &AsciiSet = &CONTROLS.add(b'%').add(b',').add(b'=');

/// Percent-encodes the characters that separate fields and lines.
fn escape(text: &str) -> String {
    utf8_percent_encode(text, SEPARATORS).to_string()
}

fn unescape(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AppConfig;

    #[test]
    fn labels_are_kept_in_the_state_folder() {
        let folder = tempfile::tempdir().unwrap();
        let state_dir = Some(folder.path().join("state"));
        let app = App::new(AppConfig { state_dir, ..AppConfig::default() });
        assert_eq!(app.labels().unwrap(), SessionLabels::default());
        let tag = "odd\ttag, 100 % = x\nü";
        app.change_labels("a/b", |label| label.tags.extend([tag.to_owned(), "blue".to_owned()])).unwrap();
        app.change_labels("c", |label| label.is_pinned = true).unwrap();
        let labels = app.labels().unwrap();
        assert_eq!(labels.get("a/b").tags, BTreeSet::from([tag.to_owned(), "blue".to_owned()]));
        assert!(labels.get("c").is_pinned && !labels.get("a/b").is_pinned);
        app.change_labels("a/b", |label| label.tags.clear()).unwrap();
        assert_eq!(app.labels().unwrap().iter().map(|(id, _)| id).collect::<Vec<_>>(), ["c"]);
        fs::write(folder.path().join("state/labels"), "threadline labels 9\n").unwrap();
        assert!(app.labels().is_err() && app.change_labels("c", |_| ()).is_err());
        let text = fs::read_to_string(folder.path().join("state/labels")).unwrap();
        assert_eq!(text, "threadline labels 9\n", "a file of a later version is not overwritten");
        assert!(App::new(AppConfig::default()).change_labels("c", |_| ()).is_err());
    }

    #[test]
    fn concurrent_changes_are_all_kept() {
        let folder = tempfile::tempdir().unwrap();
        let app = App::new(AppConfig { state_dir: Some(folder.path().to_owned()), ..AppConfig::default() });
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let app = &app;
                scope.spawn(move || {
                    for n in 0..10 {
                        let tag = format!("{thread}-{n}");
                        app.change_labels("s", |label| label.tags.extend([tag])).unwrap();
                    }
                });
            }
        });
        assert_eq!(app.labels().unwrap().get("s").tags.len(), 40);
    }

    #[test]
    fn tags_are_short_lines() {
        assert!(check_tag("blue").is_ok() && check_tag("to review").is_ok());
        for odd in ["", " blue", "a\nb", &"x".repeat(61)] {
            assert!(check_tag(odd).is_err(), "{odd:?}");
        }
    }
}
