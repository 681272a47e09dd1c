//! The origin of each line of a file: the edit that wrote it, from a replay of the logged edits.
//!
//! A [`LineHistory`] follows the lines of one file through its known versions. A line belongs to an edit only
//! if that edit added it in every possible reading of the edit, and every later version contains it. All
//! other lines are of unknown origin, with the edits that may have written them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use memchr::memchr_iter;

use crate::content::FileBytes;
use crate::evidence::{FileEdit, FileText};
use crate::hunk::{LineHunk, apply_hunks};
use crate::line_alignment::{LineId, LineSource, align, has_more_sources};
use crate::replacement::EditReplacement;

/// The origin of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineOrigin {
    /// An edit wrote the line.
    Edit {
        /// The number that was passed to [`LineHistory::edit`].
        edit: usize,
        /// Whether the line was moved to another place later.
        is_moved: bool,
    },
    /// The origin is unknown.
    Unknown {
        /// The reason.
        reason: UnknownReason,
        /// The edits that may have written the line, or an earlier form of it, in order. At most
        /// [`MAX_CANDIDATES`], the last ones.
        candidates: Arc<[usize]>,
        /// Whether one of the candidates wrote the line.
        is_one_of_them: bool,
    },
}

impl LineOrigin {
    /// An unknown origin; something else than the candidates may have written the line.
    fn unknown(reason: UnknownReason, candidates: Arc<[usize]>) -> Self {
        Self::Unknown { reason, candidates, is_one_of_them: false }
    }
}

/// The reason why the origin of a line is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownReason {
    /// The first known version of the file contains the line.
    Older,
    /// The line appeared between two known versions, in none of the logged edits.
    Outside,
    /// The same, but a removed line differs only in white space. The candidates are its origin.
    Reformatted,
    /// Several edits, or an edit and something else, may have written the line.
    Ambiguous,
}

impl UnknownReason {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Older => "older",
            Self::Outside => "outside",
            Self::Reformatted => "reformatted",
            Self::Ambiguous => "ambiguous",
        }
    }
}

/// The maximum number of candidates of a line: each of very many lines may have been written by each of very
/// many edits.
pub const MAX_CANDIDATES: usize = 64;

/// The number of pairs of lines that the replay of one file may compare. Beyond it, lines are ambiguous.
const MAX_PAIRS: usize = 1 << 26;

/// The lines of a file, and the edits that wrote them.
#[derive(Clone, Debug)]
pub struct LineHistory<'t> {
    interner: LineInterner,
    /// The current version; `None` before the first one.
    text: Option<Cow<'t, str>>,
    lines: Vec<LineId>,
    origins: Vec<LineOrigin>,
    /// The edits since the last known version at unknown places in the file.
    unplaced: Vec<UnplacedEdit>,
    budget: usize,
}

/// An edit that cannot be applied to the current version.
#[derive(Clone, Debug)]
struct UnplacedEdit {
    edit: usize,
    /// The lines that it may have added; `None` if the log does not contain them.
    lines: Option<HashSet<LineId>>,
}

/// The edits that may have added the new lines of a version.
struct UnplacedCandidates {
    /// The edits whose lines the log does not contain. They may have added any line.
    of_all_lines: Arc<[usize]>,
    /// The other edits, by the lines that they may have added.
    by_line: HashMap<LineId, Vec<usize>>,
}

impl UnplacedCandidates {
    fn of(unplaced: &[UnplacedEdit]) -> Self {
        let of_all_lines = unplaced.iter().filter(|edit| edit.lines.is_none()).map(|edit| edit.edit);
        let of_all_lines = CandidateLists::default().list(of_all_lines.collect());
        let mut by_line: HashMap<LineId, Vec<usize>> = HashMap::default();
        for edit in unplaced {
            for &line in edit.lines.iter().flatten() {
                by_line.entry(line).or_default().push(edit.edit);
            }
        }
        Self { of_all_lines, by_line }
    }

    fn of_line(&self, line: LineId, lists: &mut CandidateLists) -> Arc<[usize]> {
        let Some(own) = self.by_line.get(&line) else { return self.of_all_lines.clone() };
        let last = own.iter().rev().take(MAX_CANDIDATES);
        lists.list(last.chain(&*self.of_all_lines).copied().collect())
    }
}

/// Lists of candidates. Lines with equal ones share a list.
#[derive(Default)]
struct CandidateLists(HashSet<Arc<[usize]>>);

impl CandidateLists {
    /// Returns the list of the last candidates.
    fn list(&mut self, candidates: BTreeSet<usize>) -> Arc<[usize]> {
        let n_omitted = candidates.len().saturating_sub(MAX_CANDIDATES);
        let list: Arc<[usize]> = candidates.into_iter().skip(n_omitted).collect();
        if let Some(known) = self.0.get(&list) {
            return known.clone();
        }
        self.0.insert(list.clone());
        list
    }
}

/// Numbers lines by their text.
#[derive(Clone, Debug, Default)]
struct LineInterner {
    ids: HashMap<String, LineId>,
    /// By line: the number of letters and digits.
    weights: Vec<u32>,
}

impl LineInterner {
    fn lines(&mut self, text: &str) -> Vec<LineId> {
        text.strip_prefix('\u{feff}').unwrap_or(text).lines().map(|line| self.id(line)).collect()
    }

    fn id(&mut self, line: &str) -> LineId {
        if let Some(&id) = self.ids.get(line) {
            return id;
        }
        let weight = line.chars().filter(|c| c.is_alphanumeric()).count();
        let id = self.weights.len() as LineId;
        self.weights.push(u32::try_from(weight).unwrap_or(u32::MAX));
        self.ids.insert(line.to_owned(), id);
        id
    }
}

impl Default for LineHistory<'_> {
    fn default() -> Self {
        Self {
            interner: LineInterner::default(),
            text: None,
            lines: Vec::new(),
            origins: Vec::new(),
            unplaced: Vec::new(),
            budget: MAX_PAIRS,
        }
    }
}

impl<'t> LineHistory<'t> {
    /// Starts a history without a version.
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies the next edit, which is numbered `number`.
    pub fn edit(&mut self, number: usize, edit: &'t FileEdit) {
        match &edit.before {
            FileText::Text(text) if edit.is_before_logged => self.observe(text),
            FileText::Absent if edit.is_before_logged => self.observe(""),
            _ => {}
        }
        if self.apply_replacements(number, edit) {
            return;
        }
        let by_edit = LineOrigin::Edit { edit: number, is_moved: false };
        // Without the text before it, the text after an edit is only assumed.
        let is_assumed = !edit.is_before_logged && !edit.replacements.is_empty();
        let after = match &edit.after {
            FileText::Text(after) if !is_assumed => Some(Cow::Borrowed(&**after)),
            FileText::Absent => Some(Cow::Borrowed("")),
            FileText::Text(_) | FileText::Unknown => {
                let text = self.text.as_deref().filter(|_| !edit.hunks.is_empty());
                text.and_then(|text| applied(text, &edit.hunks)).map(Cow::Owned)
            }
        };
        match after {
            // Another program may have changed the file since the last known version.
            Some(after) if !edit.is_before_logged && edit.hunks.is_empty() => {
                let origin = LineOrigin::unknown(UnknownReason::Ambiguous, [number].into());
                self.advance(after, |_| origin.clone());
            }
            Some(after) => drop(self.advance(after, |_| by_edit.clone())),
            None => self.add_unplaced(number, edit),
        }
    }

    /// Continues with a version of the file. Lines that are new in it were written by something else than a
    /// logged edit.
    pub fn observe(&mut self, text: &'t str) {
        let text = match text.contains('\r') {
            true => Cow::Owned(text.replace("\r\n", "\n")),
            false => Cow::Borrowed(text),
        };
        if self.text.is_none() && self.unplaced.is_empty() {
            self.lines = self.interner.lines(&text);
            self.origins = vec![LineOrigin::unknown(UnknownReason::Older, Arc::default()); self.lines.len()];
            self.text = Some(text);
            return;
        }
        if self.text.as_ref() == Some(&text) {
            self.unplaced.clear();
            return;
        }
        let unplaced = UnplacedCandidates::of(&std::mem::take(&mut self.unplaced));
        let other = if self.text.is_none() { UnknownReason::Older } else { UnknownReason::Outside };
        let mut lists = CandidateLists::default();
        let outside = |line: LineId| {
            let candidates = unplaced.of_line(line, &mut lists);
            let reason = if candidates.is_empty() { other } else { UnknownReason::Ambiguous };
            LineOrigin::unknown(reason, candidates)
        };
        let (old_text, old_origins) = (self.text.clone(), self.origins.clone());
        let added = self.advance(text, outside);
        self.find_reformatted(&added, old_text.as_deref().unwrap_or_default(), &old_origins);
    }

    /// Returns the origin of each line of the current version.
    pub fn origins(&self) -> &[LineOrigin] {
        &self.origins
    }

    /// Returns the origins of the lines of a version that follows the current one, which stays the current
    /// one.
    pub fn origins_in(&mut self, text: &'t str) -> Vec<LineOrigin> {
        let (lines, origins) = (self.lines.clone(), self.origins.clone());
        let (current, unplaced) = (self.text.clone(), self.unplaced.clone());
        self.observe(text);
        (self.text, self.lines, self.unplaced) = (current, lines, unplaced);
        std::mem::replace(&mut self.origins, origins)
    }

    /// Replaces the current version. Returns the indexes of lines that were certainly added; `origin` returns
    /// their origins.
    fn advance(&mut self, text: Cow<'t, str>, mut origin: impl FnMut(LineId) -> LineOrigin) -> Vec<usize> {
        let lines = self.interner.lines(&text);
        let sources = align(&self.lines, &lines, &self.interner.weights, &mut self.budget);
        let (mut added, mut lists) = (Vec::new(), CandidateLists::default());
        let origins = sources.iter().zip(&lines).enumerate().map(|(at, (source, line))| {
            if *source == LineSource::Added {
                added.push(at);
            }
            resolve(source, &self.origins, &mut lists, || origin(*line))
        });
        self.origins = origins.collect();
        (self.text, self.lines) = (Some(text), lines);
        added
    }

    /// Notes the origins of added lines that differ only in white space from exactly one removed line.
    fn find_reformatted(&mut self, added: &[usize], old_text: &str, old_origins: &[LineOrigin]) {
        let squeezed = |line: &str| line.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        let new_text = self.text.as_deref().unwrap_or_default();
        let new_lines: Vec<&str> = new_text.lines().collect();
        let mut wanted: HashMap<String, Vec<usize>> = HashMap::default();
        for &at in added {
            wanted.entry(squeezed(new_lines.get(at).copied().unwrap_or_default())).or_default().push(at);
        }
        wanted.remove("");
        if wanted.is_empty() {
            return;
        }
        let mut found: HashMap<String, Vec<usize>> = HashMap::default();
        for (at, line) in old_text.lines().enumerate() {
            let line = squeezed(line);
            if wanted.contains_key(&line) {
                found.entry(line).or_default().push(at);
            }
        }
        for (line, places) in wanted {
            if let (&[new_at], Some(&[old_at])) = (&*places, found.get(&line).map(Vec::as_slice))
                && self.origins[new_at] == LineOrigin::unknown(UnknownReason::Outside, Arc::default())
                && let Some(&LineOrigin::Edit { edit, .. }) = old_origins.get(old_at)
            {
                self.origins[new_at] = LineOrigin::unknown(UnknownReason::Reformatted, [edit].into());
            }
        }
    }

    fn add_unplaced(&mut self, number: usize, edit: &FileEdit) {
        let lines = edit.hunks.iter().flat_map(|hunk| hunk.lines.iter());
        let added = lines.filter_map(|line| line.strip_prefix('+'));
        let replaced = edit.replacements.iter().flat_map(|step| step.new.lines());
        let mut texts = added.chain(replaced).peekable();
        // The first and the last line of a replacement may be parts of lines.
        let is_whole = edit.replacements.is_empty() || !edit.hunks.is_empty();
        let lines = (texts.peek().is_some() && is_whole)
            .then(|| texts.map(|line| self.interner.id(line.trim_end_matches('\r'))).collect());
        self.unplaced.push(UnplacedEdit { edit: number, lines });
    }

    /// Applies the replacements of an edit to the current version. Returns `false` if there are none, or one
    /// of them does not match, or matches more than once although the version is only assumed to be the one
    /// that was edited.
    fn apply_replacements(&mut self, number: usize, edit: &FileEdit) -> bool {
        let Some(text) = self.text.as_deref() else { return false };
        let is_certain = edit.is_before_logged;
        // All of them must match before one is applied. Only one text is kept: there may be very many.
        let mut last: Option<ReplacementStep> = None;
        for replacement in edit.replacements.iter() {
            let text = last.as_ref().map_or(text, |step| &*step.after);
            last = ReplacementStep::of(replacement, text, is_certain);
            if last.is_none() {
                return false;
            }
        }
        let Some(last) = last.filter(|last| !is_certain || Some(&*last.after) == edit.after.as_text()) else {
            return false;
        };
        for replacement in edit.replacements.iter().take(edit.replacements.len() - 1) {
            let text = self.text.as_deref().unwrap_or_default();
            if let Some(step) = ReplacementStep::of(replacement, text, is_certain) {
                self.replace(number, step);
            }
        }
        self.replace(number, last);
        true
    }

    /// Applies one replacement. Lines outside of the replaced text are certainly kept.
    fn replace(&mut self, number: usize, step: ReplacementStep) {
        let by_edit = LineOrigin::Edit { edit: number, is_moved: false };
        let ReplacementStep { after, around } = step;
        let is_inside = |around: &LinesAround| around.n_before + around.n_after <= self.lines.len();
        let Some(around) = around.filter(is_inside) else {
            self.advance(Cow::Owned(after), |_| by_edit.clone());
            return;
        };
        let new = self.interner.lines(&after[around.between]);
        let (mut start, mut end) = (around.n_before, self.lines.len() - around.n_after);
        // An edit repeats lines around the change. Repeated lines at the beginning and the end were there.
        let old = &self.lines[start..end];
        let n_same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
        let (old, mut new) = (&old[n_same..], &new[n_same..]);
        start += n_same;
        let n_same = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
        new = &new[..new.len() - n_same];
        end -= n_same;
        let sources = align(&self.lines[start..end], new, &self.interner.weights, &mut self.budget);
        let inside = &self.origins[start..end];
        let mut lists = CandidateLists::default();
        let origin = |source| resolve(source, inside, &mut lists, || by_edit.clone());
        let origins: Vec<LineOrigin> = sources.iter().map(origin).collect();
        self.origins.splice(start..end, origins);
        self.lines.splice(start..end, new.iter().copied());
        self.text = Some(Cow::Owned(after));
    }
}

/// Returns a text after hunks.
fn applied(text: &str, hunks: &[LineHunk]) -> Option<String> {
    let file = FileBytes { bytes: text.as_bytes().into(), is_shown: true };
    String::from_utf8(apply_hunks(&file, hunks)?.file.bytes.to_vec()).ok()
}

/// Returns, for each line of the new text, the index of the same line of the old text, if there is no doubt
/// about it.
pub fn same_lines(old: &str, new: &str) -> Vec<Option<usize>> {
    let mut interner = LineInterner::default();
    let (old, new) = (interner.lines(old), interner.lines(new));
    let sources = align(&old, &new, &interner.weights, &mut MAX_PAIRS.clone());
    let same = |source: &LineSource| match source {
        LineSource::Kept(at) => Some(*at),
        _ => None,
    };
    sources.iter().map(same).collect()
}

/// One replacement of an edit.
struct ReplacementStep {
    after: String,
    /// The lines around the replaced text; `None` if several places were replaced.
    around: Option<LinesAround>,
}

/// The lines before and after a replaced text, which are kept.
struct LinesAround {
    n_before: usize,
    n_after: usize,
    /// The bytes of the new text between them, which are whole lines.
    between: Range<usize>,
}

impl ReplacementStep {
    /// Applies a replacement to a text. `None` if it does not match, or matches more than once although the
    /// text is not certainly the one that was edited.
    fn of(replacement: &EditReplacement, text: &str, is_certain: bool) -> Option<Self> {
        let EditReplacement { old, new, all } = replacement;
        let all = *all;
        let (range, after) = replacement.apply(text)?;
        let is_single = !old.is_empty() && !text[range.end..].contains(&text[range.clone()]);
        if !is_certain && !is_single && !all {
            return None;
        }
        if !is_single && all {
            return Some(Self { after, around: None });
        }
        // If whole lines were replaced by whole lines, the next line is not part of them.
        let line_start = |at: usize| text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let starts_line = |at: usize| line_start(at) == at;
        let is_whole = starts_line(range.start) && starts_line(range.end);
        let rest = match is_whole && (new.is_empty() || new.ends_with('\n')) {
            true => &text[range.end..],
            false => text[range.end..].split_once('\n').map_or("", |(_, rest)| rest),
        };
        let start = line_start(range.start);
        let around = LinesAround {
            n_before: memchr_iter(b'\n', &text.as_bytes()[..start]).count(),
            n_after: memchr_iter(b'\n', rest.as_bytes()).count()
                + usize::from(!rest.is_empty() && !rest.ends_with('\n')),
            between: start..after.len() - rest.len(),
        };
        Some(Self { after, around: Some(around) })
    }
}

/// Returns the origin of a line: that of its source in the old version, or that of added lines.
fn resolve(
    source: &LineSource,
    old: &[LineOrigin],
    lists: &mut CandidateLists,
    added: impl FnOnce() -> LineOrigin,
) -> LineOrigin {
    match source {
        LineSource::Added => added(),
        LineSource::Kept(at) => old[*at].clone(),
        LineSource::Moved(at) => match &old[*at] {
            LineOrigin::Edit { edit, .. } => LineOrigin::Edit { edit: *edit, is_moved: true },
            unknown => unknown.clone(),
        },
        LineSource::Unclear { sources, can_be_added } => {
            let added = can_be_added.then(added);
            let possible = || sources.iter().map(|&at| &old[at]).chain(&added);
            let mut all = possible();
            match all.next() {
                Some(first) if !has_more_sources(sources) && all.all(|origin| origin == first) => {
                    first.clone()
                }
                _ => {
                    let mut candidates = BTreeSet::new();
                    let mut is_one_of_them = !has_more_sources(sources);
                    for origin in possible() {
                        match origin {
                            LineOrigin::Edit { edit, .. } => drop(candidates.insert(*edit)),
                            LineOrigin::Unknown { candidates: more, is_one_of_them: all, .. } => {
                                candidates.extend(more.iter());
                                is_one_of_them &= all;
                            }
                        }
                    }
                    let reason = match candidates.is_empty() && !has_more_sources(sources) {
                        true => UnknownReason::Outside,
                        false => UnknownReason::Ambiguous,
                    };
                    is_one_of_them &= candidates.len() <= MAX_CANDIDATES;
                    let candidates = lists.list(candidates);
                    LineOrigin::Unknown { reason, candidates, is_one_of_them }
                }
            }
        }
    }
}
