//! Ways: what was learnt of how the replies of a log are built.

use memchr::memmem::Finder;

use crate::plain::Commons;
use crate::reply::{ReplyTrails, reply_trails};

/// What was learnt of how replies are built. Who reads another log with it gets the same answer sooner.
pub struct Ways {
    pub(crate) usage: Finder<'static>,
    pub(crate) first_key: FirstKey,
    pub(crate) trails: ReplyTrails,
    pub(crate) commons: Commons,
    /// How many replies were read along a trail in this log, and how many of them were plain.
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
    /// Goes on with another log.
    pub(crate) fn begin_log(&mut self) {
        const MANY: u64 = 16;
        // What was learnt of an odd log is of no use for others.
        if self.n_read > MANY && self.n_plain < self.n_read / 2 {
            self.trails = reply_trails();
        }
        self.trails.begin_log();
        self.commons = Commons::default();
        (self.n_read, self.n_plain) = (0, 0);
    }
}

/// Finds the first key behind the content, if that is near: Claude Code writes why the reply ended, and then `usage`.
pub(crate) struct FirstKey {
    finder: Finder<'static>,
    /// How far it stood before `usage` the last time.
    distance: usize,
}

impl FirstKey {
    const NAME: &str = "\"stop_reason\"";

    /// Where it stands in a line that has `"usage"` at `usage`.
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
