//! The layout of a line: the text that other lines share with it, and the values in between.
//!
//! The lines of a log have the same keys in the same order again and again. So a line is compared with the
//! text of an earlier one, without its variable values, which are skipped. If all of the text matches, a walk
//! over the line would meet the same keys, and find the same values at offsets that have moved.

use std::ops::Range;

use super::OutlineValues;
use super::walker::{OutlineWalker, ValueForm, VariableValue};
use crate::json::{find_special, skip_value};
use crate::walk::short_texts_equal;

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
    /// The values of the line that was read last.
    pub(super) values: OutlineValues,
    /// The text before, between and after the variable values of the walker, to recognize the layout.
    frame: Vec<u8>,
    /// The form of these values, and their text as long as it was the same in all lines.
    stable: Vec<(ValueForm, Option<Box<[u8]>>)>,
    /// The text to compare, with the stable values.
    literals: Vec<u8>,
    steps: Vec<LayoutStep>,
    /// The offsets of the outline that are relative to the literals: their index, and the distance from the
    /// start of the literal.
    offsets: Vec<(usize, u32)>,
}

/// A literal text and the value after it.
#[derive(Debug)]
struct LayoutStep {
    literal: Range<usize>,
    /// The offsets that are relative to this literal.
    offsets: Range<usize>,
    /// The form of the value; `None` at the end of the line.
    value: Option<ValueForm>,
}

impl LineLayout {
    /// Returns the layout of the line that was walked; `None` if it is too long.
    pub(super) fn new(line: &[u8], walked: &OutlineWalker) -> Option<Self> {
        if walked.variables.len() > MAX_VALUES {
            return None;
        }
        let frame = frame(line, &walked.variables);
        let stable = walked.variables.iter().map(|value| {
            let text = value_text(line, value);
            // Counts and long texts are hardly ever the same.
            let is_count = text.first().is_some_and(u8::is_ascii_digit);
            let is_stable = text.len() <= MAX_STABLE_LENGTH && !is_count;
            (value.form, is_stable.then(|| text.into()))
        });
        let mut layout = Self {
            values: OutlineValues::default(),
            stable: stable.collect(),
            literals: Vec::new(),
            steps: Vec::new(),
            offsets: Vec::new(),
            frame,
        };
        layout.build(line, walked);
        (layout.literals.len() <= MAX_LITERAL_BYTES).then_some(layout)
    }

    /// Learns from a line that was walked, since it differs from the stable values. Returns whether it has
    /// this layout.
    pub(super) fn learn(&mut self, line: &[u8], walked: &OutlineWalker) -> bool {
        let forms = |(value, (form, _)): (&VariableValue, &(ValueForm, _))| value.form == *form;
        if walked.variables.len() != self.stable.len()
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
        true
    }

    /// Builds the text to compare from the line that was walked.
    fn build(&mut self, line: &[u8], walked: &OutlineWalker) {
        self.literals.clear();
        self.steps.clear();
        self.offsets.clear();
        let values = walked.variables.iter().zip(&self.stable).filter(|(_, (_, stable))| stable.is_none());
        let ends = values.map(|(value, _)| (value.start as usize, value.end as usize, Some(value.form)));
        let (mut previous_end, mut start) = (0, 0);
        for (end, next_start, value) in ends.chain([(line.len(), line.len() + 1, None)]) {
            let literal = self.literals.len()..self.literals.len() + end - start;
            self.literals.extend(&line[start..end]);
            let first = self.offsets.len();
            for (index, &offset) in walked.values.offsets.iter().enumerate() {
                let at = offset as usize;
                // A value begins where a literal ends, and ends where the next one begins.
                let is_start = index % 2 == 0;
                let is_here =
                    if is_start { previous_end < at && at <= end } else { start <= at && at < next_start };
                if is_here && at > 0 {
                    self.offsets.push((index, (at - start) as u32));
                }
            }
            self.steps.push(LayoutStep { literal, offsets: first..self.offsets.len(), value });
            (previous_end, start) = (end, next_start);
        }
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

    /// Reads a line into `values`. Returns the number of steps that it matches if it has another layout.
    ///
    /// `starts` are the offsets of the literals. The first `n_known` steps are known to match, and the start
    /// of the next one is known.
    #[inline]
    pub(super) fn read(&mut self, line: &[u8], starts: &mut [u32], n_known: usize) -> Result<(), usize> {
        starts[0] = 0;
        for (n, step) in self.steps.iter().enumerate().skip(n_known) {
            let at = starts[n] as usize;
            let literal = &self.literals[step.literal.clone()];
            let end = at + literal.len();
            if !line.get(at..end).is_some_and(|text| short_texts_equal(text, literal)) {
                return Err(n);
            }
            let next = match step.value {
                None if end == line.len() => {
                    self.set_offsets(starts);
                    return Ok(());
                }
                None => return Err(n),
                // If this is not the closing quote, the next literal does not match.
                Some(ValueForm::Text) => match find_special(line, end) {
                    Some(end) => end,
                    None => return Err(n),
                },
                Some(form) => match line.get(end) {
                    Some(b'"') => match find_special(line, end + 1) {
                        Some(close) if line[close] == b'"' => close + 1,
                        _ => skip_value(line, end),
                    },
                    _ if form == ValueForm::String => return Err(n),
                    _ => skip_value(line, end),
                },
            };
            starts[n + 1] = next as u32;
        }
        Err(self.steps.len())
    }

    /// Moves the offsets of the values to those of the line with these literals.
    fn set_offsets(&mut self, starts: &[u32]) {
        for (step, start) in self.steps.iter().zip(starts) {
            for &(index, distance) in &self.offsets[step.offsets.clone()] {
                self.values.offsets[index] = start + distance;
            }
        }
    }
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
