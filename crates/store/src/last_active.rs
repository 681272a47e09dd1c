//! The time of the last message of a session.
//!
//! One rule for lists, sort orders and `last`: the time of the last line with a timestamp in the session's
//! own log. Sub-agents report to it, so their logs are not read. A log without timestamps was last active
//! when its file was modified.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use memchr::memchr;
use threadline_entry::{Millis, key, parse_timestamp, walk};

use crate::file_window::{MAX_HEAD_BYTES, fill, lines_back};
use crate::leading_members;
use crate::regular_file::open_regular;

/// The number of bytes read first at the end of a file.
const FIRST_BYTES: u64 = 8 << 10;

/// Returns when the session with the log at `path` was last active.
///
/// # Errors
///
/// If the file cannot be read.
pub fn read_last_active(path: &Path) -> io::Result<SystemTime> {
    last_active_in(&mut open_regular(path)?)
}

/// Returns when the session with this log was last active.
///
/// # Errors
///
/// If the file cannot be read.
pub fn last_active_in(log: &mut File) -> io::Result<SystemTime> {
    let metadata = log.metadata()?;
    Ok(time_or(search_back(log, metadata.len())?, metadata.modified()?))
}

/// Returns when the last message of the log at `path` was written, if it has one and can be read.
pub(crate) fn read_last_message(path: &Path) -> Option<SystemTime> {
    let mut log = open_regular(path).ok()?;
    let size = log.metadata().ok()?.len();
    let millis = u64::try_from(search_back(&mut log, size).ok()??).ok()?;
    Some(UNIX_EPOCH + Duration::from_millis(millis))
}

/// Returns the timestamp of a line or of its message, if it has one. A line that was not written to its end
/// is no message.
pub(crate) fn line_time(line: &[u8]) -> Option<Millis> {
    line.trim_ascii_end().ends_with(b"}").then_some(())?;
    let [time] = leading_members::members(line, [(key::TIMESTAMP, true)]);
    let of_message = || walk::pick(line, [key::MESSAGE])?[0]?.get(key::TIMESTAMP);
    parse_timestamp(&time.or_else(of_message)?.as_str()?)
}

/// Returns the timestamp of the last line that has one, within the last 4 MiB of a file.
pub(crate) fn search_back(file: &mut (impl Read + Seek), size: u64) -> io::Result<Option<Millis>> {
    let mut buffer = Vec::new();
    let mut wanted = FIRST_BYTES;
    loop {
        let start = size.saturating_sub(wanted);
        buffer.resize(usize::try_from(size - start).unwrap_or_default(), 0);
        file.seek(SeekFrom::Start(start))?;
        let length = fill(file, &mut buffer)?;
        buffer.truncate(length);
        // The first line may be incomplete, unless it is the first of the file.
        let whole = match (start, memchr(b'\n', &buffer)) {
            (0, _) => &buffer[..],
            (_, newline) => newline.map_or(&[][..], |newline| &buffer[newline + 1..]),
        };
        let found = lines_back(whole).find_map(line_time);
        if found.is_some() || start == 0 || wanted >= MAX_HEAD_BYTES as u64 {
            return Ok(found);
        }
        wanted *= 8;
    }
}

/// Converts the time of a message, or returns `modified` if there is none.
pub(crate) fn time_or(message: Option<Millis>, modified: SystemTime) -> SystemTime {
    let millis = message.and_then(|millis| u64::try_from(millis).ok());
    millis.map_or(modified, |millis| UNIX_EPOCH + Duration::from_millis(millis))
}
