//! The cache of a scan, and the methods by which a scan reads a line, from the fastest to the slowest.
//!
//! Usage is counted over all logs of a home, gigabytes of which few bytes matter. So a line is read by the
//! first of these methods that can, and all of them return the same values for it:
//!
//! 1. Blocks of lines are searched for `"usage"`. Lines without it are not looked at (`UsageScan::block`).
//!    If the caller has the sketches of all lines, only replies are looked at (`UsageScan::line`).
//! 2. A line with the keys of an earlier one is compared with that one's text, and the values in between are
//!    taken from their offsets ([`line_layout`]). If only its id, time and counts differ from an earlier
//!    reply, everything else is copied from that reply's row ([`plain_reply`](crate::plain_reply)).
//! 3. Any other line is skimmed from key to key, without its content (`LineValues::skim`).
//! 4. A line that cannot be skimmed is parsed as an entry (`LineValues::of`).
//!
//! Ids that few lines need (request, session, uuid) are skimmed on demand (`RareValues::skim`).

pub(crate) mod line_layout;

use memchr::memmem::Finder;
use threadline_entry::{key, value};

use crate::plain_reply::PlainReplyCache;
use crate::reply_line::{ReplyLayouts, new_reply_layouts};

/// A cache of line layouts, learnt from the replies read so far. Passing it to the scan of the next log makes
/// that faster and does not change its result.
pub struct ScanCache {
    pub(crate) usage: Finder<'static>,
    pub(crate) cost_state: Finder<'static>,
    pub(crate) boundary: Finder<'static>,
    pub(crate) first_key: StopReasonFinder,
    pub(crate) layouts: ReplyLayouts,
    pub(crate) plain_replies: PlainReplyCache,
    /// The number of replies in this log that matched a cached layout, and how many of them were plain.
    pub(crate) n_read: u64,
    pub(crate) n_plain: u64,
    /// The number of calls of the log before. Most scans read the largest logs first.
    pub(crate) n_rows: usize,
}

impl Default for ScanCache {
    fn default() -> Self {
        Self {
            usage: Finder::new(key::quoted::USAGE),
            cost_state: Finder::new(r#""cost-state""#),
            boundary: Finder::new(value::quoted::COMPACT_BOUNDARY),
            first_key: StopReasonFinder { finder: Finder::new(StopReasonFinder::NAME), distance: 0 },
            layouts: new_reply_layouts(),
            plain_replies: PlainReplyCache::default(),
            n_read: 0,
            n_plain: 0,
            n_rows: 0,
        }
    }
}

impl ScanCache {
    /// Prepares the cache for the next log.
    pub(crate) fn begin_log(&mut self) {
        const MANY: u64 = 16;
        // Layouts of an unusual log do not help with others.
        if self.n_read > MANY && self.n_plain < self.n_read / 2 {
            self.layouts = new_reply_layouts();
        }
        self.layouts.begin_log();
        self.plain_replies = PlainReplyCache::default();
        (self.n_read, self.n_plain) = (0, 0);
    }
}

/// Finds the first key after the content, if it is near: Claude Code writes `stop_reason` and then `usage`.
pub(crate) struct StopReasonFinder {
    finder: Finder<'static>,
    /// The distance between the two keys in the previous line.
    distance: usize,
}

impl StopReasonFinder {
    const NAME: &str = key::quoted::STOP_REASON;

    /// Returns the offset of the key in a line with `"usage"` at offset `usage`; `usage` itself if it is not
    /// found.
    pub(crate) fn find(&mut self, line: &[u8], usage: usize) -> usize {
        const NEAR: usize = 128;
        let known = usage.checked_sub(self.distance);
        known.filter(|at| line[*at..].starts_with(Self::NAME.as_bytes())).unwrap_or_else(|| {
            let from = usage.saturating_sub(NEAR);
            let found = self.finder.find_iter(&line[from..usage]).last().map_or(usage, |at| from + at);
            self.distance = usage - found;
            found
        })
    }
}
