//! One change of a file: from the content before to the content after, and back.

use std::sync::Arc;

use foldhash::HashMap;
use threadline_shell::SedScript;

use crate::content::{FileBytes, FileContent};
use crate::hunk::{Applied, LineHunk, apply_hunks, reverse_hunks};
use crate::replacement::EditReplacement;
use crate::timeline::{Current, EvidenceSource, Known, Level};

/// A change of a file, as far as it is recorded.
#[derive(Clone, Debug)]
pub(crate) enum FileChangeKind {
    /// The content was observed and not changed.
    Seen,
    /// The content at the beginning of the session.
    Start,
    /// The content was observed; nothing is known of how it came about.
    Scanned,
    /// The file has this content afterwards.
    Become(Known),
    /// A tool replaced parts of the text.
    Edit { replacements: Arc<[EditReplacement]>, hunks: Arc<[LineHunk]> },
    /// The hunks in the list of changes of a command.
    Diff {
        hunks: Arc<[LineHunk]>,
        /// What the command does to the file according to its text, if that is all that it does to it.
        steps: Vec<TextStep>,
        /// Whether it is the first list since a prompt. Such lists do not say whether the file ends with a
        /// newline.
        is_first: bool,
    },
    /// A command created the file, according to its list of changes.
    Created { known: Option<Known>, steps: Vec<TextStep> },
    /// A command changed the file according to its text.
    Step { step: TextStep, level: Level },
    /// Something may have changed the file.
    MayChange,
    /// The file was changed, created or deleted in a way that is not recorded.
    Changed,
}

/// What a command does to one file, according to its text.
#[derive(Clone, Debug)]
pub(crate) enum TextStep {
    Write(String),
    Append(String),
    Compose {
        parts: Vec<ContentPart>,
        is_append: bool,
    },
    Substitute(SedScript),
    Truncate(u64),
    Touch,
    Patch(Vec<LineHunk>),
    Remove,
    Link(String),
    /// The content of another file, by its number.
    CopyOf(usize),
    /// A change that the text of the command does not determine.
    Unknown,
}

/// A part of a composed text.
#[derive(Clone, Debug)]
pub(crate) enum ContentPart {
    Text(String),
    /// The content of a file, by its number.
    File(usize),
}

impl ContentPart {
    fn file(&self) -> Option<usize> {
        match self {
            Self::File(file) => Some(*file),
            Self::Text(_) => None,
        }
    }
}

impl FileChangeKind {
    /// Returns whether Claude Code takes the content after this change for the one that it read last.
    pub(crate) fn updates_read(&self) -> bool {
        match self {
            Self::Edit { .. } => true,
            Self::Become(known) => known.source == EvidenceSource::Write,
            _ => false,
        }
    }

    /// Returns whether the content was observed and not changed.
    pub(crate) fn is_observation(&self) -> bool {
        matches!(self, Self::Seen | Self::Start | Self::Scanned)
    }

    /// Returns whether the change says that the file changed, not only that it was seen or may have changed.
    pub(crate) fn is_certain(&self) -> bool {
        match self {
            Self::Seen | Self::Start | Self::Scanned | Self::MayChange => false,
            Self::Step { level, .. } => *level > Level::Suspect,
            Self::Become(_)
            | Self::Edit { .. }
            | Self::Diff { .. }
            | Self::Created { .. }
            | Self::Changed => true,
        }
    }

    /// Returns whether a content may be derived through this change, and counts its bytes. A content that is
    /// only passed on, or is in the log, costs nothing.
    pub(crate) fn allows(&self, derived: &Known, left: &mut usize) -> bool {
        if !matches!(self, Self::Edit { .. } | Self::Diff { .. } | Self::Step { .. }) {
            return true;
        }
        let rest = left.checked_sub(derived.content.n_bytes());
        *left = rest.unwrap_or(*left);
        rest.is_some()
    }

    /// Returns whether the change is a step of a command that creates a file if there is none.
    pub(crate) fn may_create(&self) -> bool {
        let Self::Step { step, .. } = self else { return false };
        use TextStep::{Append, Compose, CopyOf, Touch, Write};
        matches!(step, Write(_) | Append(_) | Compose { .. } | Touch | CopyOf(_))
    }

    /// Returns whether a command made the change.
    pub(crate) fn is_by_command(&self) -> bool {
        match self {
            Self::Diff { .. } | Self::Created { .. } | Self::Step { .. } => true,
            Self::MayChange | Self::Changed => true,
            Self::Become(known) => known.source != EvidenceSource::Write,
            Self::Seen | Self::Start | Self::Scanned | Self::Edit { .. } => false,
        }
    }

    /// Returns the files whose contents the change copies, by their numbers.
    pub(crate) fn sources(&self) -> Vec<usize> {
        let steps = match self {
            Self::Step { step, .. } => std::slice::from_ref(step),
            Self::Diff { steps, .. } | Self::Created { steps, .. } => steps,
            _ => &[],
        };
        let sources = steps.iter().flat_map(|step| match step {
            TextStep::CopyOf(file) => vec![*file],
            TextStep::Compose { parts, .. } => parts.iter().filter_map(ContentPart::file).collect(),
            _ => Vec::new(),
        });
        sources.collect()
    }

    /// Returns the recorded changed lines, and the replacements.
    pub(crate) fn recorded_lines(&self) -> (Vec<LineHunk>, Vec<EditReplacement>) {
        match self {
            Self::Edit { replacements, hunks } => (hunks.to_vec(), replacements.to_vec()),
            Self::Diff { hunks, .. } => (hunks.to_vec(), Vec::new()),
            _ => (Vec::new(), Vec::new()),
        }
    }

    /// Returns the recorded content after the change.
    pub(crate) fn recorded(&self) -> Option<&Known> {
        match self {
            Self::Become(known) | Self::Created { known: Some(known), .. } => Some(known),
            _ => None,
        }
    }

    /// Returns the recorded content after the change, to be replaced.
    pub(crate) fn recorded_mut(&mut self) -> Option<&mut Known> {
        match self {
            Self::Become(known) | Self::Created { known: Some(known), .. } => Some(known),
            _ => None,
        }
    }

    /// Returns the content after the change.
    pub(crate) fn forward(&self, state: &Current<'_>) -> Option<Known> {
        match self {
            Self::Seen | Self::Start | Self::Scanned => state.before.cloned(),
            Self::Become(known) => Some(known.clone()),
            Self::Edit { replacements, hunks } => {
                let before = state.before?;
                let after = edited(&before.content, replacements, hunks)?;
                Some(Known::new(after, before.level, EvidenceSource::Edit))
            }
            Self::Diff { hunks, steps, is_first } => diff_forward(hunks, steps, *is_first, state),
            Self::Created { known, steps } => created_forward(known.as_ref(), steps, state),
            Self::Step { step, level } => {
                let (content, base) = step.apply(state.before, state.others)?;
                // A step that may not have happened at all leaves the content from before.
                Some(Known::new(content, base.min(*level), EvidenceSource::Command))
            }
            Self::MayChange => state.before.cloned().map(|known| known.at_most(Level::Suspect)),
            Self::Changed => None,
        }
    }

    /// Returns the content before the change, given the one after it. `has_older_base` is true if hunks may
    /// be relative to a text that was read before other changes.
    pub(crate) fn backward(&self, after: Option<&Known>, has_older_base: bool) -> Option<Known> {
        let after = after?;
        match self {
            Self::Seen | Self::Start | Self::Scanned => Some(after.clone()),
            Self::Become(_) | Self::Created { .. } | Self::Changed => None,
            Self::MayChange => Some(after.clone().at_most(Level::Suspect)),
            Self::Edit { replacements, hunks } => {
                let content = unedited(&after.content, replacements, hunks)?;
                Some(Known::new(content, after.level, EvidenceSource::Edit))
            }
            Self::Diff { hunks, is_first, .. } => {
                let applied = reverse_hunks(after.content.file()?, hunks)?;
                let is_doubtful = has_older_base
                    || applied.has_returns
                    || (*is_first && applied.ends_with_added_line)
                    || hunks.iter().any(LineHunk::adds_last_newline);
                let level = if is_doubtful { Level::Likely } else { Level::Exact };
                let content = FileContent::File(applied.file);
                Some(Known::new(content, after.level.min(level), EvidenceSource::CommandDiff))
            }
            Self::Step { step: TextStep::Append(text), level } => {
                let file = after.content.file()?;
                let bytes = file.bytes.strip_suffix(text.as_bytes()).filter(|before| !before.is_empty())?;
                let file = FileBytes { bytes: bytes.into(), is_shown: file.is_shown };
                let content = FileContent::File(file);
                Some(Known::new(content, after.level.min(*level), EvidenceSource::Command))
            }
            Self::Step { step: TextStep::Patch(hunks), level } => {
                let applied = reverse_hunks(after.content.file()?, hunks)?;
                let content = FileContent::File(applied.file);
                Some(Known::new(content, after.level.min(*level), EvidenceSource::Command))
            }
            Self::Step { .. } => None,
        }
    }
}

/// Returns the content after the hunks of a command.
///
/// The hunks are relative to the text before the command, or to one that was read before other commands
/// changed it, or, for calls at the same time, to the text before all of them.
fn diff_forward(
    hunks: &[LineHunk],
    steps: &[TextStep],
    is_first: bool,
    state: &Current<'_>,
) -> Option<Known> {
    let expected = apply_steps(steps, state);
    let applied = |known: &Known| {
        let applied = apply_hunks(known.content.file()?, hunks)?;
        let doubtful = applied.has_returns || (is_first && applied.ends_with_added_line);
        Some((applied, doubtful))
    };
    let result = |(applied, doubtful): (Applied, bool), level: Level| {
        let level = if doubtful { level.min(Level::Likely) } else { level };
        Known::new(FileContent::File(applied.file), level, EvidenceSource::CommandDiff)
    };
    let confirmed = |known: Known| match &expected {
        Some((content, level)) if content.agrees_with(&known.content) => {
            let content = content.clone().better(known.content);
            Known { content, level: known.level.max(*level), ..known }
        }
        // Hunks do not always contain carriage returns.
        Some((content, level)) if content.text().is_some() && content.text() == known.content.text() => {
            Known { content: content.clone(), level: *level, ..known }
        }
        _ => known,
    };
    let own = state.before.and_then(|known| Some((applied(known)?, known.level)));
    let read = state.read.map(|content| Known::exact(content.clone(), EvidenceSource::Read));
    let from_read = read.as_ref().and_then(&applied);
    let from_call = state.at_call.and_then(&applied);
    let is_same = |a: &Applied, b: &Applied| {
        let [a, b] = [a, b].map(|applied| FileContent::File(applied.file.clone()));
        a.agrees_with(&b)
    };
    let found = match (own, from_read) {
        (Some((own, level)), Some(other)) if !is_same(&own.0, &other.0) => {
            // Both bases fit. If the text of the command says the same as one of them, it is that one.
            let [own, other] = [result(own, level.min(Level::Likely)), result(other, Level::Likely)];
            match &expected {
                Some((content, _)) if content.agrees_with(&other.content) => other,
                _ => own,
            }
        }
        // Without the text before the command, other parts of the file may have changed too.
        (Some((own, Level::Suspect)), _) => result(own, Level::Likely),
        (Some((own, level)), _) => result(own, level),
        (None, Some(other)) => result(other, Level::Likely),
        (None, None) => match from_call {
            Some(applied) => result(applied, Level::Likely),
            None => {
                return expected.map(|(content, level)| Known::new(content, level, EvidenceSource::Command));
            }
        },
    };
    Some(confirmed(found))
}

/// Returns the content of a created file. The text of the command may say more than the list of changes: that
/// the file is a link, or has no newline at its end.
fn created_forward(known: Option<&Known>, steps: &[TextStep], state: &Current<'_>) -> Option<Known> {
    let absent = Known::exact(FileContent::Absent, EvidenceSource::CommandDiff);
    let own = Current { before: Some(&absent), read: None, at_call: None, others: state.others };
    let expected =
        apply_steps(steps, &own).map(|(content, level)| Known::new(content, level, EvidenceSource::Command));
    let (Some(known), Some(expected)) = (known, &expected) else { return known.cloned().or(expected) };
    let line = |content: &FileContent| match content {
        FileContent::Link(target) => Some(target.clone()),
        other => other.text().map(|text| text.strip_suffix('\n').unwrap_or(&text).to_owned()),
    };
    let is_same = line(&expected.content).is_some_and(|text| Some(text) == line(&known.content));
    Some(if is_same && expected.level >= known.level { expected.clone() } else { known.clone() })
}

/// Applies the steps of a command to a file, one after the other.
fn apply_steps(steps: &[TextStep], state: &Current<'_>) -> Option<(FileContent, Level)> {
    let mut known: Option<Known> = state.before.cloned();
    for step in steps {
        let (content, level) = step.apply(known.as_ref(), state.others)?;
        known = Some(Known::new(content, level, EvidenceSource::Command));
    }
    known.filter(|_| !steps.is_empty()).map(|known| (known.content, known.level))
}

impl TextStep {
    /// Returns the content after the step, and how certain it is. `None` if it is unknown.
    fn apply(&self, before: Option<&Known>, others: &HashMap<usize, Known>) -> Option<(FileContent, Level)> {
        let bytes = |text: &str| FileContent::bytes(text.as_bytes());
        let content = match self {
            // The file keeps nothing of what it was.
            Self::Write(text) => return Some((bytes(text), Level::Exact)),
            Self::Remove => return Some((FileContent::Absent, Level::Exact)),
            Self::Link(target) => return Some((FileContent::Link(target.clone()), Level::Exact)),
            Self::CopyOf(other) => {
                let known = others.get(other).filter(|known| !known.content.is_absent())?;
                return Some((known.content.clone(), known.level));
            }
            Self::Unknown => return None,
            Self::Compose { parts, is_append } => return compose(parts, *is_append, before, others),
            Self::Append(text) => match &before?.content {
                FileContent::Absent => bytes(text),
                FileContent::File(file) => {
                    let bytes = [&*file.bytes, text.as_bytes()].concat();
                    FileContent::File(FileBytes { bytes: bytes.into(), is_shown: file.is_shown })
                }
                FileContent::Link(_) => return None,
            },
            Self::Touch => match &before?.content {
                FileContent::Absent => bytes(""),
                other => other.clone(),
            },
            Self::Substitute(script) => {
                let file = before?.content.file()?;
                // The script sees the bytes as they are, with carriage returns.
                let text = std::str::from_utf8(&file.bytes).ok()?;
                let after = script.apply(text)?;
                FileContent::File(FileBytes { bytes: after.into_bytes().into(), is_shown: file.is_shown })
            }
            Self::Truncate(length) => {
                let file = before?.content.file().filter(|file| !file.is_shown)?;
                let length = usize::try_from(*length).ok().filter(|length| *length <= file.bytes.len())?;
                FileContent::bytes(&file.bytes[..length])
            }
            Self::Patch(hunks) => FileContent::File(apply_hunks(before?.content.file()?, hunks)?.file),
        };
        // Of a text as the tools show it, the real line ends are unknown.
        let level = before?.level;
        let is_plain = matches!(self, Self::Touch) || !content.file().is_some_and(|file| file.is_shown);
        Some((content, if is_plain { level } else { level.min(Level::Likely) }))
    }
}

fn compose(
    parts: &[ContentPart],
    is_append: bool,
    before: Option<&Known>,
    others: &HashMap<usize, Known>,
) -> Option<(FileContent, Level)> {
    let mut level = Level::Exact;
    let (mut bytes, mut is_shown) = (Vec::new(), false);
    let mut add = |known: &Known, bytes: &mut Vec<u8>| {
        let file = known.content.file()?;
        bytes.extend_from_slice(&file.bytes);
        level = level.min(known.level);
        is_shown |= file.is_shown;
        Some(())
    };
    if is_append && !before?.content.is_absent() {
        add(before?, &mut bytes)?;
    }
    for part in parts {
        match part {
            ContentPart::Text(text) => bytes.extend_from_slice(text.as_bytes()),
            ContentPart::File(other) => add(others.get(other)?, &mut bytes)?,
        }
    }
    let level = if is_shown { level.min(Level::Likely) } else { level };
    Some((FileContent::File(FileBytes { bytes: bytes.into(), is_shown }), level))
}

/// Returns the content after an edit of a tool.
fn edited(before: &FileContent, replacements: &[EditReplacement], hunks: &[LineHunk]) -> Option<FileContent> {
    let empty = FileBytes { bytes: Arc::default(), is_shown: false };
    let file = match before {
        FileContent::Absent => &empty,
        FileContent::File(file) => file,
        FileContent::Link(_) => return None,
    };
    let replace = |text: &str| {
        let mut text = text.to_owned();
        for replacement in replacements {
            text = replacement.apply(&text)?.1;
        }
        Some(text)
    };
    let by_hunks = || {
        let text = file.text()?;
        let shown = FileBytes { bytes: text.as_bytes().into(), is_shown: true };
        let after = apply_hunks(&shown, hunks).filter(|_| !hunks.is_empty())?;
        file.map_text(|_| String::from_utf8(after.file.bytes.to_vec()).ok())
    };
    file.map_text(replace).or_else(by_hunks).map(FileContent::File)
}

/// Returns the content before an edit of a tool.
fn unedited(
    after: &FileContent,
    replacements: &[EditReplacement],
    hunks: &[LineHunk],
) -> Option<FileContent> {
    let file = after.file()?;
    let text = file.text()?;
    let shown = FileBytes { bytes: text.as_bytes().into(), is_shown: true };
    let before = match reverse_hunks(&shown, hunks).filter(|_| !hunks.is_empty()) {
        Some(applied) => String::from_utf8(applied.file.bytes.to_vec()).ok()?,
        None => {
            let [EditReplacement { old, new, all: false }] = replacements else { return None };
            // The new text is where the old one was, if it occurs once.
            let (start, rest) = text.split_once(&**new).filter(|_| !new.is_empty() && !old.is_empty())?;
            if rest.contains(&**new) {
                return None;
            }
            format!("{start}{old}{rest}")
        }
    };
    file.map_text(|_| Some(before)).map(FileContent::File)
}
