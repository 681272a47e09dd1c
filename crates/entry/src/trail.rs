//! Trails: lines that are built alike, read along the way that one of them was read before.
//!
//! The lines of a log have the same keys in the same order, again and again. So what stands between the values of a line
//! is remembered, and compared with the next line as it is: where all of it is there, the values between are those that
//! a walk from key to key would find, and no key had to be looked at. Values that are the same in line after line, such as
//! the session's id, are compared along with what stands around them.

use crate::json::{self, Json};
use crate::walk::jump;

/// Reads a few values of line after line, at any depth.
pub struct Trails<const N: usize> {
    paths: [&'static [&'static str]; N],
    required: &'static [usize],
    /// The one that was gone last comes first.
    known: Vec<Way>,
    /// How many short ways there have been.
    n_short: u32,
}

/// So many ways are remembered; a log hardly has more.
const MOST: usize = 4;

/// Nothing deeper than this is asked for.
const DEEPEST: usize = 8;

/// A longer way than this is not worth remembering.
const LONGEST: usize = 1 << 13;

/// A longer value than this is taken for one that changes.
const LONGEST_STEADY: usize = 1 << 8;

/// What changes more often than this in a log is not compared any more.
const SELDOM: u8 = 2;

/// A way through lines that are built alike.
struct Way {
    /// From value to value.
    trail: Trail,
    /// Which values are the same in line after line, a bit for each of the first.
    steady: u64,
    /// What they are, one after the other, and where each ends.
    values: Vec<u8>,
    ends: Vec<usize>,
    /// How often each changed in this log.
    changes: [u8; 64],
    /// From one value that changes to the next; known from the second line on.
    short: Option<Short>,
}

/// A way from one value that changes to the next.
struct Short {
    trail: Trail,
    /// The paths whose values are on the way from one to the next, or not on it at all. No other short way of the same trails
    /// has this number.
    same: Same,
}

struct Trail {
    steps: Vec<Step>,
    /// What the steps step over, one after the other.
    between: Vec<u8>,
}

/// From one value to the next.
struct Step {
    /// How much stands before the value.
    length: usize,
    /// The values within it that were asked for: their numbers, and where they stand.
    passed: Vec<(usize, Span)>,
    value: Value,
}

/// What is to be done with a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    /// It is the one that was asked for by this number.
    Wanted(usize),
    /// It is stepped over.
    Other,
    /// The same, but if it is an object there is something wanted in it.
    Closed,
    /// It is the content of the message, which is jumped over.
    Content,
    /// There is none: the line ends.
    End,
}

/// Where a value begins and ends. A short form, since many of them are handed on for every line; no value begins a line.
type Span = (u32, u32);

const NOWHERE: Span = (0, 0);

/// A place in a line, whose length is known to fit.
fn place(at: usize) -> u32 {
    at as u32
}

/// The values of a line that were asked for.
pub struct Trailed<'a, const N: usize> {
    spans: [Span; N],
    /// The line up to the content of its message, and from there on.
    before: &'a str,
    behind: &'a str,
    behind_from: usize,
    same: Same,
}

/// Which values are the same in every line that was read along a way, a bit for each path, and the number of the way.
type Same = (u64, u32);

impl<'a, const N: usize> Trailed<'a, N> {
    /// The value of the path by this number, if the line has one.
    pub fn get(&self, path: usize) -> Option<Json<'a>> {
        let span = self.spans.get(path).filter(|span| **span != NOWHERE)?;
        let (start, end) = (span.0 as usize, span.1 as usize);
        let text = match start.checked_sub(self.behind_from) {
            Some(start) => self.behind.get(start..end - self.behind_from)?,
            None => self.before.get(start..end)?,
        };
        Some(Json::trusted(text))
    }

    /// A number that other lines of the same trails have, too, if their values of `paths`, a bit for each, are the same as
    /// here, or missing as here. `None` where it is not known whether others are the same.
    pub fn alike_in(&self, paths: u64) -> Option<u32> {
        (self.same.0 & paths == paths).then_some(self.same.1)
    }
}

impl<const N: usize> Trails<N> {
    /// Values are asked for by their keys, from the line's own inwards; those by the `required` numbers must be there.
    pub fn new(paths: [&'static [&'static str]; N], required: &'static [usize]) -> Self {
        Self { paths, required, known: Vec::new(), n_short: 0 }
    }

    /// Goes on with another log, in which other values may be the same in line after line.
    pub fn begin_log(&mut self) {
        for way in &mut self.known {
            way.changes = [0; 64];
        }
    }

    /// The values of a line, in which a key of the message, the next one behind its content, stands at `hit`.
    ///
    /// For a line that is JSON this is exact, where it comes back at all: `None` says that the line must be read in another
    /// way. That is so for whatever is not as plain as Claude Code writes it: no content before the hit, a wanted key
    /// twice or with escapes, a required value that is missing. What is stepped over is not checked.
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

/// A value of a line; nothing if the line ends before it does.
fn text_at(line: &[u8], (start, end): Span) -> &[u8] {
    line.get(start as usize..end as usize).unwrap_or_default()
}

/// Whether a value may be the same in line after line: numbers are counts, and hardly are.
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

    /// Takes the steady values of this line for those of the lines to come.
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

    /// The steady value by this number.
    fn value(&self, i: usize) -> &[u8] {
        let start = i.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.values[start..self.ends[i]]
    }

    fn is_steady(&self, i: usize) -> bool {
        i < 64 && self.steady >> i & 1 == 1
    }

    /// Goes this way, and learns what changes. Returns where the content stands, and what is the same in all lines that go the
    /// short way; `None` if the line is built otherwise.
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
                // What is another in the very next line is another in all of them.
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

    /// The same way, with the steady values as part of what stands between.
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
    /// Goes from value to value, notes those that were asked for, and tells `each` where they stand.
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

/// Whether two texts of one length are the same. Most are a key or two long: too short for a call.
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

/// The same, piece by piece. Neither is shorter than a piece; the last one may lie over the one before.
#[inline(always)]
fn same_by<const N: usize>(a: &[u8], b: &[u8], word: impl Fn(&[u8; N]) -> u128) -> bool {
    let (Some((_, a_last)), Some((_, b_last))) = (a.split_last_chunk::<N>(), b.split_last_chunk::<N>())
    else {
        return false;
    };
    let pieces = a.as_chunks::<N>().0.iter().zip(b.as_chunks::<N>().0);
    pieces.fold(word(a_last) ^ word(b_last), |differ, (a, b)| differ | (word(a) ^ word(b))) == 0
}

/// Goes through a line from key to key, and remembers the way.
struct Scout<'l, 'p, const N: usize> {
    line: &'l [u8],
    hit: usize,
    paths: &'p [&'static [&'static str]; N],
    spans: [Span; N],
    /// By depth, the paths whose key there was met already, a bit for each.
    met: [u64; DEEPEST],
    trail: Trail,
    /// Where each value stands.
    values: Vec<Span>,
    /// Where the last value ended.
    at: usize,
    jumped: Option<Span>,
}

impl<const N: usize> Scout<'_, '_, N> {
    /// Goes through the whole line. Returns where its content stands.
    fn explore(&mut self) -> Option<Span> {
        const { assert!(N <= 64, "a path has a bit") };
        let end = self.object(0, 0, u64::MAX >> (64 - N), false)?;
        if json::skip_white(self.line, end) != self.line.len() {
            return None;
        }
        self.step(self.line.len(), Value::End)?;
        self.jumped
    }

    /// Goes through an object that `paths` lead into, `depth` keys deep.
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
        // Of a key that is written twice the last one counts, with all that is in it.
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

    /// Remembers what stands before a value.
    fn step(&mut self, start: usize, value: Value) -> Option<()> {
        let between = self.line.get(self.at..start)?;
        self.trail.between.extend(between);
        self.trail.steps.push(Step { length: between.len(), passed: Vec::new(), value });
        Some(())
    }
}

#[cfg(test)]
mod tests;
