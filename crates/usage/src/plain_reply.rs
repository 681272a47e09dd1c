//! Plain replies: lines that differ from an earlier one only in id, timestamp, stop reason and token counts.
//!
//! Nearly all replies of a log are plain. Their common values are parsed once. If the outline of a line is
//! known as well, its values need not be searched for a second time: the outlines of plain replies have the
//! same layout, in which each value has a place.

use threadline_entry::{Kind, LineOutline, Millis, ValuePlace, parse_timestamp_bytes};

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

/// The shared values of recent replies with outlines.
#[derive(Default)]
pub(crate) struct OutlinedReplyCache(Vec<OutlinedReplies>);

/// The replies whose outlines have the same layout.
struct OutlinedReplies {
    number: u64,
    /// How often the shared values have changed.
    n_changes: u32,
    /// `None` if the replies cannot be read this way.
    values: Option<OutlinedValues>,
}

/// The values of replies whose outlines have the same layout.
struct OutlinedValues {
    row: CallRow,
    /// The shared values that are not part of the layout.
    shared: Vec<(ValuePlace, Box<[u8]>)>,
    counts: [Option<ValuePlace>; figures::N_COUNTS],
}

/// The number of layouts to remember; few logs have more for replies.
const MAX_LAYOUTS: usize = 16;

/// The number of changes in one log after which replies are no longer read by their outlines.
const MAX_CHANGES: u32 = 16;

impl OutlinedReplyCache {
    /// Remembers the row of a reply with these values.
    #[cold]
    pub(crate) fn learn(&mut self, outline: &LineOutline<'_>, values: &ReplyValues<'_>, row: CallRow) {
        let Some(number) = outline.layout_number().filter(|_| outline.kind() == Some(Kind::Assistant)) else {
            return;
        };
        let known = self.0.iter().position(|known| known.number == number).map(|place| self.0.remove(place));
        let n_changes = known.map_or(0, |known| known.n_changes + 1);
        let values = (n_changes <= MAX_CHANGES).then(|| OutlinedValues::of(outline, values, row)).flatten();
        self.0.truncate(MAX_LAYOUTS - 1);
        self.0.insert(0, OutlinedReplies { number, n_changes, values });
    }

    /// Returns whether it is useful to learn from a reply.
    pub(crate) fn may_learn(&self, outline: &LineOutline<'_>) -> bool {
        let number = outline.layout_number();
        let known = self.0.iter().find(|known| Some(known.number) == number);
        number.is_some() && known.is_none_or(|known| known.values.is_some())
    }

    /// Returns the id and the row of a plain reply; `None` if its shared values are new, or an own value has
    /// an unusual form.
    #[inline]
    pub(crate) fn read<'a>(&self, outline: &LineOutline<'a>) -> Option<(&'a [u8], CallRow)> {
        let number = outline.layout_number()?;
        let known = self.0.iter().find(|known| known.number == number)?;
        known.values.as_ref()?.read(outline)
    }
}

impl OutlinedValues {
    fn of(outline: &LineOutline<'_>, values: &ReplyValues<'_>, row: CallRow) -> Option<Self> {
        let mut shared = Vec::new();
        let mut counts = [const { None }; figures::N_COUNTS];
        for path in 0..N_KEYS + figures::PATHS.len() {
            let Some(offsets) = values.offsets(path) else { continue };
            if let Some(count) = path.checked_sub(N_KEYS).and_then(|count| counts.get_mut(count)) {
                *count = Some(outline.place_of(offsets)?);
            } else if SHARED_VALUES >> path & 1 == 1 {
                let place = outline.place_of(offsets)?;
                if !place.is_stable() {
                    let text = outline.value_at(&place)?.into();
                    shared.push((place, text));
                }
            }
        }
        Some(Self { row, shared, counts })
    }

    #[inline]
    fn read<'a>(&self, outline: &LineOutline<'a>) -> Option<(&'a [u8], CallRow)> {
        if !self.shared.iter().all(|(place, text)| outline.value_at(place) == Some(&**text)) {
            return None;
        }
        let message_id = outline.message_id().filter(|id| id.starts_with(b"msg_") && id.is_ascii())?;
        let at = outline.timestamp().and_then(parse_timestamp_bytes);
        let count = |path: usize| outline.value_at(self.counts[path].as_ref()?);
        let reply = PlainReply {
            message_id,
            at,
            has_stop: outline.has_stop_reason(),
            counts: UsageCounts::read(count)?,
        };
        Some(reply.with_shared_values(&self.row))
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
