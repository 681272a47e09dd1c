//! A cache of line layouts, to read values of lines with the same structure without parsing keys.
//!
//! The lines of a log have the same keys in the same order again and again. So the text between the values of
//! a line is stored and compared with the next line. If all of it matches, the values in between are those
//! that a scan from key to key would find. Values that rarely change from line to line, such as the session
//! id, are compared as part of that text.

use threadline_entry::walk::{jump_to_hit, short_texts_equal, skip_value, visit_members};
use threadline_entry::{Json, key};

/// Reads values at given paths, at any depth, from one line after another.
pub(crate) struct LineLayoutCache<const N: usize> {
    paths: [&'static [&'static str]; N],
    required: &'static [usize],
    /// The cached layouts. The one that matched last is first.
    layouts: Vec<CachedLayout>,
    /// The number of fast paths built so far, used to number them.
    n_fast_paths: u32,
}

/// The maximum number of cached layouts; a log hardly has more.
const MAX_LAYOUTS: usize = 4;

/// The maximum number of keys in a path.
const MAX_PATH_KEYS: usize = 8;

/// The maximum number of bytes of a layout worth caching.
const MAX_LITERAL_BYTES: usize = 1 << 13;

/// The layout of lines with the same structure.
struct CachedLayout {
    /// The layout with every value as a variable part.
    template: LineTemplate,
    /// The values that are the same in line after line, as a bitmask of the first 64.
    stable: u64,
    /// The stable values, concatenated, and the end of each.
    values: Vec<u8>,
    ends: Vec<usize>,
    /// How often each value changed in this log.
    changes: [u8; 64],
    /// The layout with stable values as literal text; built when the second line matches.
    fast_path: Option<FastPath>,
}

/// A layout in which only the values that change are variable parts.
struct FastPath {
    template: LineTemplate,
    /// The paths whose values are part of the literal text, or missing, and the number of this fast path. The
    /// number is unique within the `LineLayoutCache`.
    same: StableValues,
}

struct LineTemplate {
    steps: Vec<LayoutStep>,
    /// The literal text of all steps, concatenated.
    literals: Vec<u8>,
}

/// A literal text and the value after it.
struct LayoutStep {
    /// The length of the literal text before the value.
    length: usize,
    /// The requested values inside the literal text: their paths, and their spans relative to it.
    inline_values: Vec<(usize, CompactSpan)>,
    value: ValueAction,
}

/// The treatment of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueAction {
    /// The value of the path with this number.
    Requested(usize),
    /// A value that is skipped.
    Skipped,
    /// A skipped value that was not an object. If it is one, it may contain requested values.
    NotObject,
    /// The content of the message, which is jumped over.
    Content,
    /// No value: the end of the line.
    End,
}

/// The start and end of a value, in 32 bits because many are passed around per line. No value starts at
/// offset 0.
type CompactSpan = (u32, u32);

const NO_SPAN: CompactSpan = (0, 0);

/// Converts an offset; the length of the line was checked to fit.
fn to_u32(at: usize) -> u32 {
    at as u32
}

/// The requested values of a line.
pub(crate) struct LayoutValues<'a, const N: usize> {
    spans: [CompactSpan; N],
    /// The text of the line before the content of its message, and the text after it.
    before: &'a str,
    after: &'a str,
    after_start: usize,
    same: StableValues,
}

/// The paths whose values are the same in every line that matches a fast path, as a bitmask, and its number.
type StableValues = (u64, u32);

impl<'a, const N: usize> LayoutValues<'a, N> {
    /// Returns the value of the path with this number, if the line has one.
    pub(crate) fn get(&self, path: usize) -> Option<Json<'a>> {
        let span = self.spans.get(path).filter(|span| **span != NO_SPAN)?;
        let (start, end) = (span.0 as usize, span.1 as usize);
        let text = match start.checked_sub(self.after_start) {
            Some(start) => self.after.get(start..end - self.after_start)?,
            None => self.before.get(start..end)?,
        };
        Some(Json::from_valid(text))
    }

    /// Returns a number that identifies the values of `paths`, given as a bitmask.
    ///
    /// Lines read through the same `LineLayoutCache` with the same number have the same values there, or lack
    /// the same ones. Returns `None` if it is not known whether the values equal those of other lines.
    pub(crate) fn stable_values_id(&self, paths: u64) -> Option<u32> {
        (self.same.0 & paths == paths).then_some(self.same.1)
    }
}

impl<const N: usize> LineLayoutCache<N> {
    /// Creates a cache that reads the values at `paths`, each a list of keys from the top level inwards.
    ///
    /// A line without the values of the paths in `required` is not read.
    pub(crate) fn new(paths: [&'static [&'static str]; N], required: &'static [usize]) -> Self {
        Self { paths, required, layouts: Vec::new(), n_fast_paths: 0 }
    }

    /// Starts another log, in which other values may be stable.
    pub(crate) fn begin_log(&mut self) {
        for way in &mut self.layouts {
            way.changes = [0; 64];
        }
    }

    /// Reads the values of a line. `hit` is the offset of a key of the message, the next one after its
    /// content.
    ///
    /// The result is exact for a line that is valid JSON. Returns `None` if the line must be read in another
    /// way: if there is no content before the hit, if a requested key occurs twice or has escapes, if a
    /// required value is missing, or if the syntax is not the plain form of Claude Code. Skipped values are
    /// not validated.
    pub(crate) fn read<'a>(&mut self, line: &'a [u8], hit: usize) -> Option<LayoutValues<'a, N>> {
        u32::try_from(line.len()).ok()?;
        let mut spans = [NO_SPAN; N];
        for i in 0..self.layouts.len() {
            if let Some((jumped, same)) =
                self.layouts[i].match_line(line, hit, &mut spans, &mut self.n_fast_paths)
            {
                if i > 0 {
                    self.layouts.swap(0, i);
                }
                return layout_values(line, spans, jumped, same);
            }
            spans = [NO_SPAN; N];
        }
        let mut scout = LayoutRecorder {
            line,
            hit,
            paths: &self.paths,
            spans,
            keys_found: [0; MAX_PATH_KEYS],
            template: LineTemplate { steps: Vec::new(), literals: Vec::new() },
            values: Vec::new(),
            at: 0,
            jumped: None,
        };
        let jumped = scout.record()?;
        if self.required.iter().any(|&path| scout.spans[path] == NO_SPAN) {
            return None;
        }
        let spans = scout.spans;
        if scout.template.literals.len() <= MAX_LITERAL_BYTES {
            self.layouts.truncate(MAX_LAYOUTS - 1);
            self.layouts.insert(0, CachedLayout::new(line, scout.template, &scout.values));
        }
        layout_values(line, spans, jumped, (0, 0))
    }
}

#[inline(always)]
fn layout_values<const N: usize>(
    line: &[u8],
    spans: [CompactSpan; N],
    jumped: CompactSpan,
    same: StableValues,
) -> Option<LayoutValues<'_, N>> {
    let text = |bytes| simdutf8::basic::from_utf8(bytes).ok();
    let (from, to) = (jumped.0 as usize, jumped.1 as usize);
    let (before, behind) = (text(&line[..from])?, text(&line[to..])?);
    Some(LayoutValues { spans, before, after: behind, after_start: to, same })
}

/// Returns the text of a value; empty if the span is outside the line.
fn text_at(line: &[u8], (start, end): CompactSpan) -> &[u8] {
    line.get(start as usize..end as usize).unwrap_or_default()
}

/// Returns whether a value may be stable. Numbers are counts, which nearly always change.
fn may_be_stable(text: &[u8]) -> bool {
    text.len() <= 256 && !matches!(text, [b'0'..=b'9' | b'-', ..])
}

impl CachedLayout {
    fn new(line: &[u8], trail: LineTemplate, values: &[CompactSpan]) -> Self {
        let mut steady = 0;
        for (i, (value, step)) in values.iter().zip(&trail.steps).enumerate().take(64) {
            if may_be_stable(text_at(line, *value)) && step.value != ValueAction::Content {
                steady |= 1 << i;
            }
        }
        let (ends, changes) = (Vec::with_capacity(values.len()), [0; 64]);
        let mut way =
            Self { template: trail, stable: steady, values: Vec::new(), ends, changes, fast_path: None };
        way.store_stable_values(line, values);
        way
    }

    /// Stores the stable values of this line to compare the next lines with.
    fn store_stable_values(&mut self, line: &[u8], values: &[CompactSpan]) {
        self.values.clear();
        self.ends.clear();
        for (i, value) in values.iter().enumerate() {
            if self.is_stable(i) {
                self.values.extend(text_at(line, *value));
            }
            self.ends.push(self.values.len());
        }
    }

    /// Returns the `i`th value if it is stable, and an empty slice otherwise.
    fn value(&self, i: usize) -> &[u8] {
        let start = i.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.values[start..self.ends[i]]
    }

    fn is_stable(&self, i: usize) -> bool {
        i < 64 && self.stable >> i & 1 == 1
    }

    /// Reads a line of this layout, and tracks which values change.
    ///
    /// Returns the span of the content, and the values that are the same in all lines of the fast path.
    /// Returns `None` if the line has another layout.
    #[inline(always)]
    fn match_line<const N: usize>(
        &mut self,
        line: &[u8],
        hit: usize,
        spans: &mut [CompactSpan; N],
        n_short: &mut u32,
    ) -> Option<(CompactSpan, StableValues)> {
        if let Some(short) = &self.fast_path
            && let Some(jumped) = short.template.follow(line, hit, spans, |_, _| ())
        {
            return Some((jumped, short.same));
        }
        *spans = [NO_SPAN; N];
        self.match_and_learn(line, hit, spans, n_short)
    }

    #[cold]
    fn match_and_learn<const N: usize>(
        &mut self,
        line: &[u8],
        hit: usize,
        spans: &mut [CompactSpan; N],
        n_short: &mut u32,
    ) -> Option<(CompactSpan, StableValues)> {
        let mut values = Vec::with_capacity(self.ends.len());
        let jumped = self.template.follow(line, hit, spans, |_, span| values.push(span))?;
        for (i, value) in values.iter().enumerate().take(64) {
            let text = text_at(line, *value);
            if self.is_stable(i) && text != self.value(i) {
                self.changes[i] += 1;
                // A value that differs in the very next line differs in most of them.
                // A value that has changed more often in this log is not stable.
                if self.fast_path.is_none() || self.changes[i] > 2 || !may_be_stable(text) {
                    self.stable &= !(1 << i);
                }
            }
        }
        self.store_stable_values(line, &values);
        *n_short += 1;
        self.fast_path = Some(self.build_fast_path(*n_short));
        Some((jumped, (0, 0)))
    }

    /// Builds the fast path: the same layout, with the stable values as part of the literal text.
    fn build_fast_path(&self, number: u32) -> FastPath {
        let mut short = LineTemplate { steps: Vec::new(), literals: Vec::new() };
        let mut same = u64::MAX;
        let mut between = &*self.template.literals;
        let (mut length, mut passed) = (0, Vec::new());
        for (i, step) in self.template.steps.iter().enumerate() {
            let (text, rest) = between.split_at(step.length);
            between = rest;
            short.literals.extend(text);
            length += text.len();
            if self.is_stable(i) {
                let value = self.value(i);
                if let ValueAction::Requested(path) = step.value {
                    passed.push((path, (to_u32(length), to_u32(length + value.len()))));
                }
                short.literals.extend(value);
                length += value.len();
            } else {
                if let ValueAction::Requested(path) = step.value {
                    same &= !(1 << path);
                }
                let (length, passed) = (std::mem::take(&mut length), std::mem::take(&mut passed));
                short.steps.push(LayoutStep { length, inline_values: passed, value: step.value });
            }
        }
        FastPath { template: short, same: (same, number) }
    }
}

impl LineTemplate {
    /// Matches a line against the layout, stores the spans of requested values, and calls `each` for every
    /// value.
    ///
    /// Returns the span of the content, or `None` if the line has another layout.
    #[inline]
    fn follow<const N: usize>(
        &self,
        line: &[u8],
        hit: usize,
        spans: &mut [CompactSpan; N],
        mut each: impl FnMut(usize, CompactSpan),
    ) -> Option<CompactSpan> {
        let mut between = &*self.literals;
        let mut at = 0;
        let mut jumped = None;
        for (i, step) in self.steps.iter().enumerate() {
            let expected;
            (expected, between) = between.split_at_checked(step.length)?;
            let start = at + step.length;
            if !short_texts_equal(line.get(at..start)?, expected) {
                return None;
            }
            for &(path, (from, to)) in &step.inline_values {
                spans[path] = (to_u32(at) + from, to_u32(at) + to);
            }
            at = match step.value {
                ValueAction::End => return jumped.filter(|_| start == line.len()),
                ValueAction::NotObject if line.get(start) == Some(&b'{') => return None,
                ValueAction::Content => {
                    let end = jump_to_hit(line, start, hit)?;
                    jumped = Some((to_u32(start), to_u32(end)));
                    end
                }
                _ => skip_value(line, start),
            };
            let span = (to_u32(start), to_u32(at));
            if let ValueAction::Requested(path) = step.value {
                spans[path] = span;
            }
            each(i, span);
        }
        None
    }
}

/// Scans a line from key to key and records its layout.
struct LayoutRecorder<'l, 'p, const N: usize> {
    line: &'l [u8],
    hit: usize,
    paths: &'p [&'static [&'static str]; N],
    spans: [CompactSpan; N],
    /// By depth, a bitmask of the paths whose key was found there already.
    keys_found: [u64; MAX_PATH_KEYS],
    template: LineTemplate,
    /// The span of each value.
    values: Vec<CompactSpan>,
    /// The end of the last value.
    at: usize,
    jumped: Option<CompactSpan>,
}

impl<const N: usize> LayoutRecorder<'_, '_, N> {
    /// Scans the whole line and returns the span of its content.
    fn record(&mut self) -> Option<CompactSpan> {
        const { assert!(N <= 64, "each path needs a bit of the mask") };
        let end = self.object(0, 0, u64::MAX >> (64 - N), false)?;
        let is_white = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        if !self.line.get(end..)?.iter().all(is_white) {
            return None;
        }
        self.step(self.line.len(), ValueAction::End)?;
        self.jumped
    }

    /// Scans an object that is `depth` keys deep and on the way of `paths`; returns its end.
    fn object(&mut self, start: usize, depth: usize, paths: u64, is_message: bool) -> Option<usize> {
        let line = self.line;
        visit_members(line, start, |key, at| self.member(key, at, depth, paths, is_message))
    }

    fn member(
        &mut self,
        key: &[u8],
        start: usize,
        depth: usize,
        paths: u64,
        in_message: bool,
    ) -> Option<usize> {
        let fits = |path: usize| self.paths[path].get(depth).is_some_and(|name| name.as_bytes() == key);
        let own =
            (0..N).filter(|path| paths >> path & 1 == 1 && fits(*path)).fold(0, |all, path| all | 1 << path);
        let wanted = (0..N).find(|path| own >> path & 1 == 1 && self.paths[*path].len() == depth + 1);
        // If a key occurs twice the last one counts, with all its contents.
        if own & *self.keys_found.get(depth)? != 0 {
            return None;
        }
        let value = match wanted {
            Some(path) => ValueAction::Requested(path),
            None if own != 0 && self.line.get(start) == Some(&b'{') => {
                self.keys_found[depth] |= own;
                return self.object(start, depth + 1, own, depth == 0 && key == key::MESSAGE.as_bytes());
            }
            None if own != 0 => ValueAction::NotObject,
            None if in_message && key == key::CONTENT.as_bytes() && start < self.hit => ValueAction::Content,
            None => ValueAction::Skipped,
        };
        let end = match value {
            ValueAction::Content if self.jumped.is_some() => return None,
            ValueAction::Content => jump_to_hit(self.line, start, self.hit)?,
            _ => skip_value(self.line, start),
        };
        let span = (to_u32(start), to_u32(end));
        match value {
            ValueAction::Requested(path) => {
                self.keys_found[depth] |= own;
                self.spans[path] = span;
            }
            ValueAction::Content => self.jumped = Some(span),
            ValueAction::Skipped | ValueAction::NotObject | ValueAction::End => {}
        }
        self.step(start, value)?;
        self.values.push(span);
        self.at = end;
        Some(end)
    }

    /// Records the literal text before a value.
    fn step(&mut self, start: usize, value: ValueAction) -> Option<()> {
        let between = self.line.get(self.at..start)?;
        self.template.literals.extend(between);
        self.template.steps.push(LayoutStep { length: between.len(), inline_values: Vec::new(), value });
        Some(())
    }
}

#[cfg(test)]
mod tests;
