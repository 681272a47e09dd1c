//! Masks excerpts of a session with the secrets of the whole session, without examining all of it.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use threadline_edit::Redactor;
use threadline_entry::LineReader;
use threadline_secret::{KnownSecrets, ProbeCounts, ProbeMatch, ProbeWord, SecretProbe};
use threadline_store::{map_blocks, open_regular};

use crate::config::App;
use crate::redaction::DisplayRedaction;

/// The number of lines that are examined for all words of the excerpts, and their size in bytes.
const MAX_LINES: usize = 1 << 12;
const MAX_BYTES: usize = 16 << 20;

/// Masks excerpts of one session.
pub(crate) struct ExcerptMask<'r> {
    redaction: &'r DisplayRedaction,
    known: Option<KnownSecrets>,
    /// Whether every line was examined that may identify a secret.
    pub(crate) is_complete: bool,
}

impl<'r> ExcerptMask<'r> {
    /// Finds the secrets of a session that its excerpts may contain.
    ///
    /// Reads the logs only if an excerpt contains a word that may be a password, and examines only the lines
    /// that contain the word, too.
    pub(crate) fn new(redaction: &'r DisplayRedaction, excerpts: &[&str], logs: &[PathBuf]) -> Self {
        let mut lines = SelectedLines::default();
        let known = redaction.rules().probe(excerpts).and_then(|probe| {
            for log in logs {
                // Without the log, what the excerpts reveal by themselves is masked.
                let _ = lines.read(&probe, log);
            }
            let mut redactor = Redactor::new(redaction.rules());
            redactor.learn_log(&lines.bytes);
            redactor.into_known()
        });
        Self { redaction, known, is_complete: !lines.is_full() }
    }

    /// Finds all secrets of a session, for very many excerpts of it. Examines every line of the logs.
    pub(crate) fn of_session(redaction: &'r DisplayRedaction, logs: &[PathBuf]) -> Self {
        let mut redactor = Redactor::new(redaction.rules());
        for log in logs {
            // Without the log, what the excerpts reveal by themselves is masked.
            let _ = learn(&mut redactor, log);
        }
        Self { redaction, known: redactor.into_known(), is_complete: true }
    }

    /// Masks the secrets in an excerpt. `cut` is whether its beginning and its end are within a line.
    pub(crate) fn mask<'t>(&self, text: &'t str, cut: [bool; 2]) -> Cow<'t, str> {
        let masked = match &self.known {
            Some(known) => known.mask_excerpt(text, cut),
            None => Cow::Borrowed(text),
        };
        match self.redaction.text(&masked) {
            Cow::Owned(clean) => Cow::Owned(clean),
            Cow::Borrowed(_) => masked,
        }
    }
}

impl App {
    /// Masks secrets in a text of the session with these logs, such as its title, if the configuration
    /// requires it. Secrets that only another line of the session identifies are masked, too.
    pub fn redacted_in<'t>(&self, logs: &[PathBuf], text: &'t str) -> Cow<'t, str> {
        match &self.config().redaction {
            Some(redaction) => ExcerptMask::new(redaction, &[text], logs).mask(text, [false; 2]),
            None => Cow::Borrowed(text),
        }
    }
}

fn learn(redactor: &mut Redactor<'_>, log: &Path) -> io::Result<()> {
    let mut lines = LineReader::new(open_regular(log)?);
    while let Some(block) = lines.next_block()? {
        redactor.learn_log(block.bytes);
    }
    Ok(())
}

/// The lines that may identify a secret.
#[derive(Default)]
struct SelectedLines {
    bytes: Vec<u8>,
    n_lines: usize,
    counts: ProbeCounts,
}

/// A line of a block that may identify a secret, and the words that it shares with the excerpts.
struct SelectedLine {
    start: usize,
    /// The line, with a newline.
    bytes: Vec<u8>,
    words: Vec<ProbeWord>,
}

impl SelectedLines {
    fn read(&mut self, probe: &SecretProbe, log: &Path) -> io::Result<()> {
        let blocks = map_blocks(log, |block| select(probe, block.bytes))?;
        blocks.into_iter().flatten().for_each(|line| self.add(line));
        Ok(())
    }

    /// Returns whether no more lines are added.
    fn is_full(&self) -> bool {
        self.n_lines >= MAX_LINES || self.bytes.len() >= MAX_BYTES
    }

    fn add(&mut self, line: SelectedLine) {
        if self.is_full() {
            return;
        }
        let mut is_new = line.words.is_empty();
        for word in line.words {
            is_new |= self.counts.admit(word);
        }
        if is_new {
            self.n_lines += 1;
            match self.bytes.is_empty() {
                // The only line may have megabytes.
                true => self.bytes = line.bytes,
                false => self.bytes.extend_from_slice(&line.bytes),
            }
        }
    }
}

/// Returns the lines of a block that may identify a secret.
fn select(probe: &SecretProbe, bytes: &[u8]) -> Vec<SelectedLine> {
    let mut lines: Vec<SelectedLine> = Vec::new();
    probe.select(bytes, &mut ProbeCounts::default(), |ProbeMatch { line, word }| {
        // The words of a line are visited one after the other.
        match lines.last_mut().filter(|last| last.start == line.start) {
            Some(last) => last.words.extend(word),
            None => {
                let (start, words) = (line.start, word.into_iter().collect());
                lines.push(SelectedLine { start, bytes: [&bytes[line], b"\n"].concat(), words });
            }
        }
    });
    lines
}
