//! A cache of line layouts that speeds up scanning replies.

use memchr::memmem::Finder;

use crate::plain::Commons;
use crate::reply::{ReplyTrails, reply_trails};

/// A cache of line layouts, learnt from the replies read so far. Passing it to the scan of the next log makes
/// that faster and does not change its result.
pub struct Ways {
    pub(crate) usage: Finder<'static>,
    pub(crate) first_key: FirstKey,
    pub(crate) trails: ReplyTrails,
    pub(crate) commons: Commons,
    /// The number of replies in this log that matched a cached layout, and how many of them were plain.
    pub(crate) n_read: u64,
    pub(crate) n_plain: u64,
}

impl Default for Ways {
    fn default() -> Self {
        Self {
            usage: Finder::new("\"usage\""),
            first_key: FirstKey { finder: Finder::new(FirstKey::NAME), distance: 0 },
            trails: reply_trails(),
            commons: Commons::default(),
            n_read: 0,
            n_plain: 0,
        }
    }
}

impl Ways {
    /// Prepares the cache for the next log.
    pub(crate) fn begin_log(&mut self) {
        const MANY: u64 = 16;
        // Layouts of an unusual log do not help with others.
        if self.n_read > MANY && self.n_plain < self.n_read / 2 {
            self.trails = reply_trails();
        }
        self.trails.begin_log();
        self.commons = Commons::default();
        (self.n_read, self.n_plain) = (0, 0);
    }
}

/// Finds the first key after the content, if it is near: Claude Code writes `stop_reason` and then `usage`.
pub(crate) struct FirstKey {
    finder: Finder<'static>,
    /// The distance between the two keys in the previous line.
    distance: usize,
}

impl FirstKey {
    const NAME: &str = "\"stop_reason\"";

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
