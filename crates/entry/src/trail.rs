//! A cache of line layouts, to read values of lines with the same structure without parsing keys.
//!
//! The lines of a log have the same keys in the same order again and again. So the text between the values of
//! a line is stored and compared with the next line. If all of it matches, the values in between are those
//! that a scan from key to key would find. Values that rarely change from line to line, such as the session
//! id, are compared as part of that text.

use crate::json::{self, Json};
use crate::walk::jump;

/// Reads values at given paths, at any depth, from one line after another.
pub struct Trails<const N: usize> {
    paths: [&'static [&'static str]; N],
    required: &'static [usize],
    /// The cached layouts. The one that matched last is first.
    known: Vec<Way>,
    /// The number of fast paths built so far, used to number them.
    n_short: u32,
}

/// The maximum number of cached layouts; a log hardly has more.
const MOST: usize = 4;

/// The maximum number of keys in a path.
const DEEPEST: usize = 8;

/// The maximum number of bytes of a layout worth caching.
const LONGEST: usize = 1 << 13;

/// The maximum length of a value to be treated as stable.
const LONGEST_STEADY: usize = 1 << 8;

/// The number of changes in one log after which a value is no longer treated as stable.
const SELDOM: u8 = 2;

/// The layout of lines with the same structure.
struct Way {
    /// The layout with every value as a variable part.
    trail: Trail,
    /// The values that are the same in line after line, as a bitmask of the first 64.
    steady: u64,
    /// The stable values, concatenated, and the end of each.
    values: Vec<u8>,
    ends: Vec<usize>,
    /// How often each value changed in this log.
    changes: [u8; 64],
    /// The layout with stable values as literal text; built when the second line matches.
    short: Option<Short>,
}

/// A layout in which only the values that change are variable parts.
struct Short {
    trail: Trail,
    /// The paths whose values are part of the literal text, or missing, and the number of this fast path. The
    /// number is unique within the `Trails`.
    same: Same,
}

struct Trail {
    steps: Vec<Step>,
    /// The literal text of all steps, concatenated.
    between: Vec<u8>,
}

/// A literal text and the value after it.
struct Step {
    /// The length of the literal text before the value.
    length: usize,
    /// The requested values inside the literal text: their paths, and their spans relative to it.
    passed: Vec<(usize, Span)>,
    value: Value,
}

/// The treatment of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    /// The value of the path with this number.
    Wanted(usize),
    /// A value that is skipped.
    Other,
    /// A skipped value that was not an object. If it is one, it may contain requested values.
    Closed,
    /// The content of the message, which is jumped over.
    Content,
    /// No value: the end of the line.
    End,
}

/// The start and end of a value, in 32 bits because many are passed around per line. No value starts at
/// offset 0.
type Span = (u32, u32);

const NOWHERE: Span = (0, 0);

/// Converts an offset; the length of the line was checked to fit.
fn place(at: usize) -> u32 {
    at as u32
}

/// The requested values of a line.
pub struct Trailed<'a, const N: usize> {
    spans: [Span; N],
    /// The text of the line before the content of its message, and the text after it.
    before: &'a str,
    behind: &'a str,
    behind_from: usize,
    same: Same,
}

/// The paths whose values are the same in every line that matches a fast path, as a bitmask, and its number.
type Same = (u64, u32);

impl<'a, const N: usize> Trailed<'a, N> {
    /// Returns the value of the path with this number, if the line has one.
    pub fn get(&self, path: usize) -> Option<Json<'a>> {
        let span = self.spans.get(path).filter(|span| **span != NOWHERE)?;
        let (start, end) = (span.0 as usize, span.1 as usize);
        let text = match start.checked_sub(self.behind_from) {
            Some(start) => self.behind.get(start..end - self.behind_from)?,
            None => self.before.get(start..end)?,
        };
        Some(Json::trusted(text))
    }

    /// Returns a number that identifies the values of `paths`, given as a bitmask.
    ///
    /// Lines read through the same `Trails` with the same number have the same values there, or lack the same
    /// ones. Returns `None` if it is not known whether the values equal those of other lines.
    pub fn alike_in(&self, paths: u64) -> Option<u32> {
        (self.same.0 & paths == paths).then_some(self.same.1)
    }
}

impl<const N: usize> Trails<N> {
    /// Creates a cache that reads the values at `paths`, each a list of keys from the top level inwards.
    ///
    /// A line without the values of the paths in `required` is not read.
    pub fn new(paths: [&'static [&'static str]; N], required: &'static [usize]) -> Self {
        Self { paths, required, known: Vec::new(), n_short: 0 }
    }

    /// Starts another log, in which other values may be stable.
    pub fn begin_log(&mut self) {
        for way in &mut self.known {
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
    pub fn read<'a>(&mut self, line: &'a [u8], hit: usize) -> Option<Trailed<'a, N>> {
        u32::try_from(line.len()).ok()?;
        let mut spans = [NOWHERE; N];
        for i in 0..self.known.len() {
            if let Some((jumped, same)) = self.known[i].follow(line, hit, &mut spans, &mut self.n_short) {
                if i > 0 {
                    self.known.swap(0, i);
                }
                return trailed(line, spans, jumped, same);
            }
            spans = [NOWHERE; N];
        }
        let mut scout = Scout {
            line,
            hit,
            paths: &self.paths,
            spans,
            met: [0; DEEPEST],
            trail: Trail { steps: Vec::new(), between: Vec::new() },
            values: Vec::new(),
            at: 0,
            jumped: None,
        };
        let jumped = scout.explore()?;
        if self.required.iter().any(|&path| scout.spans[path] == NOWHERE) {
            return None;
        }
        let spans = scout.spans;
        if scout.trail.between.len() <= LONGEST {
            self.known.truncate(MOST - 1);
            self.known.insert(0, Way::new(line, scout.trail, &scout.values));
        }
        trailed(line, spans, jumped, (0, 0))
    }
}

#[inline(always)]
fn trailed<const N: usize>(
    line: &[u8],
    spans: [Span; N],
    jumped: Span,
    same: Same,
) -> Option<Trailed<'_, N>> {
    let text = |bytes| simdutf8::basic::from_utf8(bytes).ok();
    let (from, to) = (jumped.0 as usize, jumped.1 as usize);
    let (before, behind) = (text(&line[..from])?, text(&line[to..])?);
    Some(Trailed { spans, before, behind, behind_from: to, same })
}

/// Returns the text of a value; empty if the span is outside the line.
fn text_at(line: &[u8], (start, end): Span) -> &[u8] {
    line.get(start as usize..end as usize).unwrap_or_default()
}

/// Returns whether a value may be stable. Numbers are counts, which nearly always change.
fn may_be_steady(text: &[u8]) -> bool {
    text.len() <= LONGEST_STEADY && !matches!(text, [b'0'..=b'9' | b'-', ..])
}

impl Way {
    fn new(line: &[u8], trail: Trail, values: &[Span]) -> Self {
        let mut steady = 0;
        for (i, (value, step)) in values.iter().zip(&trail.steps).enumerate().take(64) {
            if may_be_steady(text_at(line, *value)) && step.value != Value::Content {
                steady |= 1 << i;
            }
        }
        let (ends, changes) = (Vec::with_capacity(values.len()), [0; 64]);
        let mut way = Self { trail, steady, values: Vec::new(), ends, changes, short: None };
        way.learn(line, values);
        way
    }

    /// Stores the stable values of this line to compare the next lines with.
    fn learn(&mut self, line: &[u8], values: &[Span]) {
        self.values.clear();
        self.ends.clear();
        for (i, value) in values.iter().enumerate() {
            if self.is_steady(i) {
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

    fn is_steady(&self, i: usize) -> bool {
        i < 64 && self.steady >> i & 1 == 1
    }

    /// Reads a line of this layout, and tracks which values change.
    ///
    /// Returns the span of the content, and the values that are the same in all lines of the fast path.
    /// Returns `None` if the line has another layout.
    #[inline(always)]
    fn follow<const N: usize>(
        &mut self,
        line: &[u8],
        hit: usize,
        spans: &mut [Span; N],
        n_short: &mut u32,
    ) -> Option<(Span, Same)> {
        if let Some(short) = &self.short
            && let Some(jumped) = short.trail.follow(line, hit, spans, |_, _| ())
        {
            return Some((jumped, short.same));
        }
        *spans = [NOWHERE; N];
        self.follow_long(line, hit, spans, n_short)
    }

    #[cold]
    fn follow_long<const N: usize>(
        &mut self,
        line: &[u8],
        hit: usize,
        spans: &mut [Span; N],
        n_short: &mut u32,
    ) -> Option<(Span, Same)> {
        let mut values = Vec::with_capacity(self.ends.len());
        let jumped = self.trail.follow(line, hit, spans, |_, span| values.push(span))?;
        for (i, value) in values.iter().enumerate().take(64) {
            let text = text_at(line, *value);
            if self.is_steady(i) && text != self.value(i) {
                self.changes[i] += 1;
                // A value that differs in the very next line differs in most of them.
                if self.short.is_none() || self.changes[i] > SELDOM || !may_be_steady(text) {
                    self.steady &= !(1 << i);
                }
            }
        }
        self.learn(line, &values);
        *n_short += 1;
        self.short = Some(self.shortened(*n_short));
        Some((jumped, (0, 0)))
    }

    /// Builds the fast path: the same layout, with the stable values as part of the literal text.
    fn shortened(&self, number: u32) -> Short {
        let mut short = Trail { steps: Vec::new(), between: Vec::new() };
        let mut same = u64::MAX;
        let mut between = &*self.trail.between;
        let (mut length, mut passed) = (0, Vec::new());
        for (i, step) in self.trail.steps.iter().enumerate() {
            let (text, rest) = between.split_at(step.length);
            between = rest;
            short.between.extend(text);
            length += text.len();
            if self.is_steady(i) {
                let value = self.value(i);
                if let Value::Wanted(path) = step.value {
                    passed.push((path, (place(length), place(length + value.len()))));
                }
                short.between.extend(value);
                length += value.len();
            } else {
                if let Value::Wanted(path) = step.value {
                    same &= !(1 << path);
                }
                let (length, passed) = (std::mem::take(&mut length), std::mem::take(&mut passed));
                short.steps.push(Step { length, passed, value: step.value });
            }
        }
        Short { trail: short, same: (same, number) }
    }
}

impl Trail {
    /// Matches a line against the layout, stores the spans of requested values, and calls `each` for every
    /// value.
    ///
    /// Returns the span of the content, or `None` if the line has another layout.
    #[inline]
    fn follow<const N: usize>(
        &self,
        line: &[u8],
        hit: usize,
        spans: &mut [Span; N],
        mut each: impl FnMut(usize, Span),
    ) -> Option<Span> {
        let mut between = &*self.between;
        let mut at = 0;
        let mut jumped = None;
        for (i, step) in self.steps.iter().enumerate() {
            let expected;
            (expected, between) = between.split_at_checked(step.length)?;
            let start = at + step.length;
            if !same(line.get(at..start)?, expected) {
                return None;
            }
            for &(path, (from, to)) in &step.passed {
                spans[path] = (place(at) + from, place(at) + to);
            }
            at = match step.value {
                Value::End => return jumped.filter(|_| start == line.len()),
                Value::Closed if line.get(start) == Some(&b'{') => return None,
                Value::Content => {
                    let end = jump(line, start, hit)?;
                    jumped = Some((place(start), place(end)));
                    end
                }
                _ => json::skip_value(line, start),
            };
            let span = (place(start), place(at));
            if let Value::Wanted(path) = step.value {
                spans[path] = span;
            }
            each(i, span);
        }
        None
    }
}

/// Compares two texts of equal length. Most are one or two keys long, too short for a call to `memcmp`.
#[inline(always)]
fn same(a: &[u8], b: &[u8]) -> bool {
    match a.len() {
        0..2 => a == b,
        2..4 => same_by(a, b, |piece: &[u8; 2]| u128::from(u16::from_le_bytes(*piece))),
        4..8 => same_by(a, b, |piece: &[u8; 4]| u128::from(u32::from_le_bytes(*piece))),
        8..16 => same_by(a, b, |piece: &[u8; 8]| u128::from(u64::from_le_bytes(*piece))),
        64.. => a == b,
        _ => same_by(a, b, |piece: &[u8; 16]| u128::from_le_bytes(*piece)),
    }
}

/// Compares in pieces of `N` bytes, of which the last may overlap the previous one. Needs at least `N` bytes.
#[inline(always)]
fn same_by<const N: usize>(a: &[u8], b: &[u8], word: impl Fn(&[u8; N]) -> u128) -> bool {
    let (Some((_, a_last)), Some((_, b_last))) = (a.split_last_chunk::<N>(), b.split_last_chunk::<N>())
    else {
        return false;
    };
    let pieces = a.as_chunks::<N>().0.iter().zip(b.as_chunks::<N>().0);
    pieces.fold(word(a_last) ^ word(b_last), |differ, (a, b)| differ | (word(a) ^ word(b))) == 0
}

/// Scans a line from key to key and records its layout.
struct Scout<'l, 'p, const N: usize> {
    line: &'l [u8],
    hit: usize,
    paths: &'p [&'static [&'static str]; N],
    spans: [Span; N],
    /// By depth, a bitmask of the paths whose key was found there already.
    met: [u64; DEEPEST],
    trail: Trail,
    /// The span of each value.
    values: Vec<Span>,
    /// The end of the last value.
    at: usize,
    jumped: Option<Span>,
}

impl<const N: usize> Scout<'_, '_, N> {
    /// Scans the whole line and returns the span of its content.
    fn explore(&mut self) -> Option<Span> {
        const { assert!(N <= 64, "each path needs a bit of the mask") };
        let end = self.object(0, 0, u64::MAX >> (64 - N), false)?;
        if json::skip_white(self.line, end) != self.line.len() {
            return None;
        }
        self.step(self.line.len(), Value::End)?;
        self.jumped
    }

    /// Scans an object that is `depth` keys deep and on the way of `paths`; returns its end.
    fn object(&mut self, start: usize, depth: usize, paths: u64, is_message: bool) -> Option<usize> {
        let line = self.line;
        json::step_over(line, start, |key, at| self.member(key, at, depth, paths, is_message))
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
        if own & *self.met.get(depth)? != 0 {
            return None;
        }
        let value = match wanted {
            Some(path) => Value::Wanted(path),
            None if own != 0 && self.line.get(start) == Some(&b'{') => {
                self.met[depth] |= own;
                return self.object(start, depth + 1, own, depth == 0 && key == b"message");
            }
            None if own != 0 => Value::Closed,
            None if in_message && key == b"content" && start < self.hit => Value::Content,
            None => Value::Other,
        };
        let end = match value {
            Value::Content if self.jumped.is_some() => return None,
            Value::Content => jump(self.line, start, self.hit)?,
            _ => json::skip_value(self.line, start),
        };
        let span = (place(start), place(end));
        match value {
            Value::Wanted(path) => {
                self.met[depth] |= own;
                self.spans[path] = span;
            }
            Value::Content => self.jumped = Some(span),
            Value::Other | Value::Closed | Value::End => {}
        }
        self.step(start, value)?;
        self.values.push(span);
        self.at = end;
        Some(end)
    }

    /// Records the literal text before a value.
    fn step(&mut self, start: usize, value: Value) -> Option<()> {
        let between = self.line.get(self.at..start)?;
        self.trail.between.extend(between);
        self.trail.steps.push(Step { length: between.len(), passed: Vec::new(), value });
        Some(())
    }
}

#[cfg(test)]
mod tests;
