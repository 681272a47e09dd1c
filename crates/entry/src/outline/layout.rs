//! The layout of a line: the text that other lines share with it, and the values in between.
//!
//! The lines of a log have the same keys in the same order again and again. So a line is compared with the
//! text of an earlier one, without its variable values, which are skipped. If all of the text matches, a walk
//! over the line would meet the same keys, and find the same values at offsets that have moved.

use std::ops::Range;

use fearless_simd::Simd;

use super::OutlineValues;
use super::walker::{OutlineWalker, ValueForm, VariableValue};
use crate::json::ValueSkipper;

/// The maximum number of bytes of a layout worth remembering.
const MAX_LITERAL_BYTES: usize = 1 << 12;

/// The maximum number of values of a layout worth remembering. The time to build it is quadratic in them.
const MAX_VALUES: usize = 256;

/// The maximum number of steps of a layout: one per value, and the end of the line.
pub(super) const MAX_STEPS: usize = MAX_VALUES + 1;

/// The maximum length of a value that is expected to be the same in the next line.
const MAX_STABLE_LENGTH: usize = 128;

/// The layout of lines with the same keys.
#[derive(Debug)]
pub(super) struct LineLayout {
    /// The values of the line that was learnt last, which are the same in all lines but for the offsets.
    pub(super) values: OutlineValues,
    /// The number of this layout with these stable values; no other one of the reader has had it.
    pub(super) number: u64,
    /// The text before, between and after the variable values of the walker, to recognize the layout.
    frame: Vec<u8>,
    /// The form of these values, and their text as long as it was the same in all lines.
    stable: Vec<(ValueForm, Option<Box<[u8]>>)>,
    /// The text to compare, with the stable values.
    literals: Vec<u8>,
    steps: Vec<LayoutStep>,
    /// The texts of the outline, in the order of its offsets.
    texts: Vec<Option<TextPlace>>,
}

/// The place of a text of the outline in all lines of a layout. Its ends may be in different literals.
#[derive(Clone, Copy, Debug)]
struct TextPlace {
    start: TextEnd,
    end: TextEnd,
}

/// An offset relative to a literal: its step, and the distance from its start.
#[derive(Clone, Copy, Debug)]
struct TextEnd {
    step: u32,
    distance: u32,
}

impl TextEnd {
    /// Returns the offset in a line, which never fails. An access that might panic could not be left out
    /// where the offset is not used.
    #[inline(always)]
    fn offset(self, starts: &[u32; MAX_STEPS]) -> Option<usize> {
        Some(*starts.get(self.step as usize)? as usize + self.distance as usize)
    }
}

/// The place of a value in all lines of a layout.
#[derive(Clone, Debug)]
pub struct ValuePlace {
    /// The literal, or the one before the value.
    step: u32,
    /// The offsets in the literal if the value is part of it.
    in_literal: Option<Range<u32>>,
}

impl ValuePlace {
    /// Returns whether the value is the same in all lines with the same number.
    pub fn is_stable(&self) -> bool {
        self.in_literal.is_some()
    }
}

/// A literal text and the value after it.
#[derive(Debug)]
struct LayoutStep {
    literal: Range<usize>,
    /// The form of the value; `None` at the end of the line.
    value: Option<ValueForm>,
}

impl LineLayout {
    /// Returns the layout of the line that was walked; `None` if it is too long.
    pub(super) fn new(line: &[u8], walked: &OutlineWalker, number: u64) -> Option<Self> {
        // The text around the values is a part of the literals.
        if walked.variables.len() > MAX_VALUES || frame_length(line, &walked.variables) > MAX_LITERAL_BYTES {
            return None;
        }
        let frame = frame(line, &walked.variables);
        let stable = walked.variables.iter().map(|value| {
            let text = value_text(line, value);
            // Counts and long texts are hardly ever the same, unless nothing is counted.
            let is_count = text.first().is_some_and(u8::is_ascii_digit) && text != b"0";
            let is_stable = text.len() <= MAX_STABLE_LENGTH && !is_count;
            (value.form, is_stable.then(|| text.into()))
        });
        let mut layout = Self {
            values: OutlineValues::default(),
            number,
            stable: stable.collect(),
            literals: Vec::new(),
            steps: Vec::new(),
            texts: Vec::new(),
            frame,
        };
        layout.build(line, walked);
        (layout.literals.len() <= MAX_LITERAL_BYTES).then_some(layout)
    }

    /// Learns from a line that was walked, since it differs from the stable values. Returns whether it has
    /// this layout.
    pub(super) fn learn(&mut self, line: &[u8], walked: &OutlineWalker, number: u64) -> bool {
        let forms = |(value, (form, _)): (&VariableValue, &(ValueForm, _))| value.form == *form;
        if walked.variables.len() != self.stable.len()
            || frame_length(line, &walked.variables) != self.frame.len()
            || !walked.variables.iter().zip(&self.stable).all(forms)
            || frame(line, &walked.variables) != self.frame
        {
            return false;
        }
        for (value, (_, stable)) in walked.variables.iter().zip(&mut self.stable) {
            if stable.as_deref() != Some(value_text(line, value)) {
                *stable = None;
            }
        }
        self.build(line, walked);
        self.number = number;
        true
    }

    /// Builds the text to compare from the line that was walked.
    fn build(&mut self, line: &[u8], walked: &OutlineWalker) {
        self.literals.clear();
        self.steps.clear();
        let mut offsets: Vec<Option<TextEnd>> = vec![None; walked.values.offsets.len()];
        let values = walked.variables.iter().zip(&self.stable).filter(|(_, (_, stable))| stable.is_none());
        let ends = values.map(|(value, _)| (value.start as usize, value.end as usize, Some(value.form)));
        let (mut previous_end, mut start) = (0, 0);
        for (end, next_start, value) in ends.chain([(line.len(), line.len() + 1, None)]) {
            let literal = self.literals.len()..self.literals.len() + end - start;
            self.literals.extend(&line[start..end]);
            let step = self.steps.len() as u32;
            for (index, &offset) in walked.values.offsets.iter().enumerate() {
                let at = offset as usize;
                // A value begins where a literal ends, and ends where the next one begins.
                let is_start = index % 2 == 0;
                let is_here =
                    if is_start { previous_end < at && at <= end } else { start <= at && at < next_start };
                if is_here && at > 0 {
                    offsets[index] = Some(TextEnd { step, distance: (at - start) as u32 });
                }
            }
            self.steps.push(LayoutStep { literal, value });
            (previous_end, start) = (end, next_start);
        }
        let place = |ends: &[Option<TextEnd>; 2]| Some(TextPlace { start: ends[0]?, end: ends[1]? });
        self.texts = offsets.as_chunks().0.iter().map(place).collect();
        self.values = walked.values.clone();
    }

    /// Returns the number of steps that this layout and another one begin with.
    pub(super) fn n_shared_steps(&self, other: &Self) -> usize {
        let is_equal = |(a, b): &(&LayoutStep, &LayoutStep)| {
            let literals = (&self.literals[a.literal.clone()], &other.literals[b.literal.clone()]);
            a.value == b.value && literals.0 == literals.1
        };
        self.steps.iter().zip(&other.steps).take_while(is_equal).count()
    }

    /// Compares the first line of a text with this layout, and returns its length. Returns the number of
    /// steps that it matches if it has another layout.
    ///
    /// `starts` become the offsets of the literals. The first `n_known` steps are known to match, and the
    /// start of the next one is known.
    #[inline(always)]
    pub(super) fn read<S: Simd>(
        &self,
        skipper: ValueSkipper<S>,
        line: &[u8],
        starts: &mut [u32; MAX_STEPS],
        n_known: usize,
    ) -> Result<usize, usize> {
        starts[0] = 0;
        let mut at = starts.get(n_known).map_or(0, |start| *start as usize);
        for (n, step) in self.steps.iter().enumerate().skip(n_known) {
            let literal = &self.literals[step.literal.clone()];
            let end = at + literal.len();
            if !line.get(at..end).is_some_and(|text| skipper.texts_equal(text, literal)) {
                return Err(n);
            }
            let next = match step.value {
                None if line.get(end).is_none_or(|&byte| byte == b'\n') => return Ok(end),
                None => return Err(n),
                // If this is not the closing quote, the next literal does not match.
                Some(ValueForm::Text) => match skipper.find_special(line, end) {
                    Some(end) => end,
                    None => return Err(n),
                },
                Some(form) if !has_form(line.get(end), form) => return Err(n),
                Some(ValueForm::Number) => skip_number(line, end),
                Some(_) => skipper.skip_value(line, end),
            };
            starts[n + 1] = next as u32;
            at = next;
        }
        Err(self.steps.len())
    }

    /// Returns the place of a value in the line that was read last, given its offsets. `None` if it is
    /// neither part of a literal nor a variable value.
    pub(super) fn place_of(
        &self,
        line: &[u8],
        starts: &[u32; MAX_STEPS],
        value: Range<usize>,
    ) -> Option<ValuePlace> {
        let is_string = line.get(value.start) == Some(&b'"');
        for (n, step) in self.steps.iter().enumerate() {
            let start = starts[n] as usize;
            let end = start + step.literal.len();
            if start <= value.start && value.end <= end {
                let offsets = (value.start - start) as u32..(value.end - start) as u32;
                return Some(ValuePlace { step: n as u32, in_literal: Some(offsets) });
            }
            let variable = end..*starts.get(n + 1)? as usize;
            let is_text = is_string && value.start + 1 == variable.start && value.end == variable.end + 1;
            if step.value.is_some() && (variable == value || is_text) {
                return Some(ValuePlace { step: n as u32, in_literal: None });
            }
        }
        None
    }

    /// Returns the value at a place in the line that was read last. A string may lack its quotes.
    #[inline]
    pub(super) fn value_at<'l>(
        &self,
        line: &'l [u8],
        starts: &[u32; MAX_STEPS],
        place: &ValuePlace,
    ) -> Option<&'l [u8]> {
        let n = place.step as usize;
        let start = starts[n];
        match &place.in_literal {
            Some(offsets) => line.get((start + offsets.start) as usize..(start + offsets.end) as usize),
            None => line.get(start as usize + self.steps.get(n)?.literal.len()..*starts.get(n + 1)? as usize),
        }
    }

    /// Returns the offsets of the text with this index in the line that was read last.
    #[inline(always)]
    pub(super) fn range_at(&self, starts: &[u32; MAX_STEPS], index: usize) -> Option<Range<usize>> {
        let place = (*self.texts.get(index)?)?;
        Some(place.start.offset(starts)?..place.end.offset(starts)?)
    }
}

/// Returns whether a value that begins with this byte may have this form.
#[inline(always)]
fn has_form(first: Option<&u8>, form: ValueForm) -> bool {
    match form {
        ValueForm::Text | ValueForm::Any => true,
        ValueForm::String => first == Some(&b'"'),
        ValueForm::Array => first == Some(&b'['),
        ValueForm::Number => matches!(first, Some(b'0'..=b'9' | b'-')),
    }
}

/// Returns the end of a number of valid text. If the text is not valid, the next literal does not match.
#[inline(always)]
fn skip_number(line: &[u8], start: usize) -> usize {
    let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n');
    let digits = line[start + 1..].iter().take_while(|byte| !is_end(byte));
    start + 1 + digits.count()
}

/// Returns the length of the text around the values of a line.
fn frame_length(line: &[u8], values: &[VariableValue]) -> usize {
    line.len() - values.iter().map(|value| (value.end - value.start) as usize).sum::<usize>()
}

/// Returns the text around the values of a line.
fn frame(line: &[u8], values: &[VariableValue]) -> Vec<u8> {
    let mut frame = Vec::new();
    let mut start = 0;
    for value in values {
        frame.extend(&line[start..value.start as usize]);
        start = value.end as usize;
    }
    frame.extend(&line[start..]);
    frame
}

fn value_text<'a>(line: &'a [u8], value: &VariableValue) -> &'a [u8] {
    &line[value.start as usize..value.end as usize]
}
