//! How much of a session is copied.

use std::fmt;

use serde::{Deserialize, Serialize};
use threadline_edit::Redactor;
use threadline_entry::{LineReader, metadata_line};
use threadline_secret::Rules;
use threadline_store::{HomeFile, read_regular};

/// How much of a session is copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PrivacyLevel {
    /// Times, models, tokens and names of tools, without any text.
    Metadata,
    /// Everything, with secrets replaced.
    Redacted,
    /// Every byte.
    #[default]
    Full,
}

impl PrivacyLevel {
    /// Returns whether a file of a home is copied at this level.
    pub(crate) fn copies(self, name: &str) -> bool {
        self != Self::Metadata || (is_log(name) && name != "history.jsonl")
    }

    /// Returns the level with a name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Metadata, Self::Redacted, Self::Full].into_iter().find(|level| level.name() == name)
    }

    /// Returns the name of the level.
    pub fn name(self) -> &'static str {
        match self {
            Self::Metadata => "metadata",
            Self::Redacted => "redacted",
            Self::Full => "full",
        }
    }
}

impl fmt::Display for PrivacyLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Makes the copies of the files of a session at a level below [`PrivacyLevel::Full`].
pub(crate) struct SessionReducer<'r> {
    level: PrivacyLevel,
    redactor: Redactor<'r>,
}

impl<'r> SessionReducer<'r> {
    /// Creates a reducer. Secrets in these files, which are those of a session, are replaced in all of them.
    pub(crate) fn new(level: PrivacyLevel, rules: &'r Rules, files: &[HomeFile]) -> Self {
        let mut reducer = Self { level, redactor: Redactor::new(rules) };
        if level == PrivacyLevel::Redacted {
            // The order is the same each time, and so are the numbers of the secrets.
            for file in files {
                // A file that cannot be read is reported when it is copied.
                reducer.learn(&file.name, &read_regular(&file.path).unwrap_or_default());
            }
        }
        reducer
    }

    fn learn(&mut self, name: &str, content: &[u8]) {
        match is_log(name) {
            true => self.redactor.learn_log(whole_lines(content)),
            false => self.redactor.learn_file(content),
        };
    }

    pub(crate) fn level(&self) -> PrivacyLevel {
        self.level
    }

    /// Returns the copy of a file that the level copies.
    ///
    /// Lines of a log are replaced one by one, so the copy of a log that has grown begins with the copy of
    /// what it was, unless a secret was found that occurs before. An incomplete last line is left out.
    pub(crate) fn reduce(&mut self, name: &str, content: &[u8]) -> Vec<u8> {
        match self.level {
            PrivacyLevel::Full => content.to_vec(),
            PrivacyLevel::Redacted => self.redact(name, content),
            PrivacyLevel::Metadata => {
                let mut out = Vec::new();
                let mut lines = LineReader::new(whole_lines(content));
                while let Ok(Some(line)) = lines.next() {
                    if let Some(line) = metadata_line(line.bytes) {
                        out.extend(line);
                        out.push(b'\n');
                    }
                }
                out
            }
        }
    }

    fn redact(&mut self, name: &str, content: &[u8]) -> Vec<u8> {
        // The file may have grown.
        self.learn(name, content);
        self.redactor.finish_learning();
        let (content, clean) = match is_log(name) {
            true => (whole_lines(content), self.redactor.redact_log(whole_lines(content))),
            false => (content, self.redactor.redact_file(content)),
        };
        clean.unwrap_or_else(|| content.to_vec())
    }
}

fn is_log(name: &str) -> bool {
    name.ends_with(".jsonl")
}

fn whole_lines(content: &[u8]) -> &[u8] {
    let end = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    &content[..end]
}
