//! The limits of a line.
//!
//! A line is checked once, where it becomes an [`Entry`](crate::Entry). A line beyond a limit is an
//! unreadable entry: it keeps its bytes, and no code has to expect its content. The limits bound the memory
//! that a line needs, and the recursion over nested values. Real lines have at most a few megabytes, 4 blocks
//! and 9 levels.

use crate::index::LineProperties;

/// The length in bytes.
const MAX_LENGTH: usize = 256 << 20;
/// The number of blocks of a message.
const MAX_BLOCKS: usize = 16_384;
/// The number of levels of nested objects and arrays.
const MAX_DEPTH: usize = 512;
/// The number of values, at any depth.
pub(crate) const MAX_VALUES: usize = 1_000_000;

/// Returns whether a line is too long to be parsed. Checked before it is.
pub(crate) fn is_too_long(line: &str) -> bool {
    line.len() > MAX_LENGTH
}

/// Returns whether a parsed line exceeds one of the other limits.
pub(crate) fn exceeds_parsed_limits(line: &LineProperties) -> bool {
    line.n_blocks > MAX_BLOCKS || line.max_depth > MAX_DEPTH || line.n_values > MAX_VALUES
}

#[cfg(test)]
mod tests {
    use super::{MAX_BLOCKS, MAX_DEPTH, MAX_LENGTH, MAX_VALUES};
    use crate::{Entry, Kind};

    /// Checks that a line of `limit` parts is an entry like any other, and one with another part is not.
    fn assert_limit(limit: usize, line: impl Fn(usize) -> String) {
        for (count, is_over_limit) in [(limit, false), (limit + 1, true)] {
            let line = line(count);
            let (entry, findings) = Entry::parse(line.as_bytes());
            assert_eq!((entry.is_over_limit(), findings.len()), (is_over_limit, 0));
            assert_eq!(entry.kind(), if is_over_limit { Kind::Bad } else { Kind::User });
            assert!(entry.as_bytes() == line.as_bytes());
            assert_eq!(entry.object().is_none(), is_over_limit);
        }
    }

    #[test]
    fn a_line_beyond_a_limit_is_unreadable_and_keeps_its_bytes() {
        assert_limit(MAX_LENGTH, |n| {
            let (start, end) = (r#"{"type":"user","text":""#, r#""}"#);
            format!("{start}{}{end}", "x".repeat(n - start.len() - end.len()))
        });
        for block in ["0", "{}", r#"{"a":1}"#] {
            let blocks = |n: usize| [block].repeat(n).join(",");
            assert_limit(MAX_BLOCKS, |n| {
                format!(r#"{{"type":"user","message":{{"content":[{}]}}}}"#, blocks(n))
            });
            assert_limit(MAX_BLOCKS, |n| format!(r#"{{"type":"user","content":[{}]}}"#, blocks(n)));
        }
        // The line itself is a level and a value.
        assert_limit(MAX_DEPTH - 1, |n| {
            format!(r#"{{"type":"user","a":{}0{}}}"#, "[".repeat(n), "]".repeat(n))
        });
        assert_limit(MAX_DEPTH - 3, |n| {
            let block = format!("{}0{}", "[".repeat(n), "]".repeat(n));
            format!(r#"{{"type":"user","message":{{"content":[{block}]}}}}"#)
        });
        // The line, its type and the array are values, too.
        assert_limit(MAX_VALUES - 3, |n| format!(r#"{{"type":"user","a":[0{}]}}"#, ",0".repeat(n - 1)));
    }

    #[test]
    fn the_objects_of_a_line_are_limited_together() {
        let mut kinds = Vec::new();
        let line = r#"{"type":"user"}"#.repeat(MAX_VALUES / 2 + 1);
        let line = crate::log_lines(line.as_bytes()).next().unwrap();
        crate::parse_line(&line, |entry, _| kinds.push((entry.kind(), entry.is_over_limit())));
        assert_eq!(kinds, [(Kind::Bad, true)]);
    }
}
