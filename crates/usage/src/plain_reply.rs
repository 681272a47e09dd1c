//! Plain replies: lines that differ from an earlier one only in id, timestamp, stop reason and token counts.
//!
//! Nearly all replies of a log are plain. Their common values are parsed once.

use threadline_entry::Millis;

use crate::figures::{self, UsageCounts};
use crate::reply_line::{ID, N_KEYS, ReplyValues, STOP_REASON, TIMESTAMP, timestamp};
use crate::scan::{CallRow, HAS_STOP, UNDATED};

/// The values of a plain reply that differ from line to line.
struct PlainReply<'a> {
    message_id: &'a [u8],
    at: Option<Millis>,
    has_stop: bool,
    counts: UsageCounts,
}

/// The bit mask of the values that plain replies share: all except those of [`PlainReply`].
const SHARED_VALUES: u64 =
    !(1 << TIMESTAMP | 1 << ID | 1 << STOP_REASON | ((1 << figures::N_COUNTS) - 1) << N_KEYS)
        & ((1 << (N_KEYS + figures::PATHS.len())) - 1);

/// The shared values of recent replies, by the number of their layout and values.
#[derive(Default)]
pub(crate) struct PlainReplyCache(Vec<(u32, CallRow)>);

/// The number of replies to remember; few logs have more variants.
const MAX_ENTRIES: usize = 4;

impl PlainReplyCache {
    /// Remembers the row of a reply, if its shared values have a number.
    pub(crate) fn learn(&mut self, values: &ReplyValues<'_>, row: CallRow) {
        if let Some(number) = values.stable_values_id(SHARED_VALUES) {
            self.0.truncate(MAX_ENTRIES - 1);
            self.0.insert(0, (number, row));
        }
    }

    /// Returns the id and the row of a plain reply; `None` if its shared values are new, or an own value has
    /// an unusual form.
    #[inline]
    pub(crate) fn read<'a>(&self, values: &ReplyValues<'a>) -> Option<(&'a [u8], CallRow)> {
        let number = values.stable_values_id(SHARED_VALUES)?;
        let (_, common) = self.0.iter().find(|(known, _)| *known == number)?;
        Some(PlainReply::of(values)?.with_shared_values(common))
    }
}

impl<'a> PlainReply<'a> {
    /// Returns the id and the row of a reply with the shared values of this row.
    fn with_shared_values(self, row: &CallRow) -> (&'a [u8], CallRow) {
        let Self { message_id, at, has_stop, counts } = self;
        let row = CallRow {
            at: at.unwrap_or(UNDATED),
            tokens: counts.tokens,
            web_searches: u32::try_from(counts.web_searches).unwrap_or(u32::MAX),
            flags: (row.flags & !HAS_STOP) | if has_stop { HAS_STOP } else { 0 },
            ..*row
        };
        (message_id, row)
    }

    #[inline]
    fn of(values: &ReplyValues<'a>) -> Option<Self> {
        // Ids are short, so a loop without early exit is faster.
        let has_escape = |text: &str| text.bytes().fold(false, |any, byte| any | (byte == b'\\'));
        let message_id = values.get(ID)?.quoted().filter(|id| id.starts_with("msg_") && !has_escape(id))?;
        Some(Self {
            message_id: message_id.as_bytes(),
            at: values.get(TIMESTAMP).and_then(timestamp),
            has_stop: values.get(STOP_REASON).is_some_and(|stop| !stop.is_null()),
            counts: UsageCounts::from_layout(values, N_KEYS)?,
        })
    }
}
