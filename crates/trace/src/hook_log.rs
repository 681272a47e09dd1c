//! The hook's log file: one line per event, rotated when it grows too large.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fs_err as fs;
use jiff::Timestamp;
use threadline_entry::Millis;
use threadline_store::{open_own_file, read_text_file};

/// The log file of the hook, which has no other output that a user would see.
#[derive(Clone, Debug)]
pub struct HookLog {
    path: PathBuf,
}

/// A larger file is renamed to `hook.log.1`, replacing the previous one.
const MAX_BYTES: u64 = 1 << 20;

impl HookLog {
    /// Returns the log file in the directory `root`. Touches no files.
    pub fn open(root: &Path) -> Self {
        Self { path: root.join("hook.log") }
    }

    /// The path of the log file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line. Control characters are replaced by spaces.
    pub fn write(&self, now: Millis, level: &str, text: &str) -> io::Result<()> {
        if let Some(folder) = self.path.parent() {
            crate::state::create_private_dir(folder)?;
        }
        if fs::metadata(&self.path).is_ok_and(|metadata| metadata.len() > MAX_BYTES) {
            fs::rename(&self.path, self.path.with_extension("log.1"))?;
        }
        let at = Timestamp::from_millisecond(now).unwrap_or_default();
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let mut file = open_own_file(&self.path)?;
        file.write_all(format!("{at:.3} {level} {text}\n").as_bytes())
    }

    /// Returns the last `count` lines, newest last.
    pub fn tail(&self, count: usize) -> Vec<String> {
        let text = read_text_file(&self.path).unwrap_or_default();
        let mut lines: Vec<String> = text.lines().rev().take(count).map(str::to_owned).collect();
        lines.reverse();
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_is_rotated() {
        let dir = tempfile::tempdir().unwrap();
        let diary = HookLog::open(dir.path());
        diary.write(0, "INFO", "first\nline").unwrap();
        assert_eq!(diary.tail(5), ["1970-01-01T00:00:00.000Z INFO first line"]);
        fs::write(diary.path(), vec![b'x'; MAX_BYTES as usize + 1]).unwrap();
        diary.write(1, "WARN", "second").unwrap();
        assert_eq!(diary.tail(5), ["1970-01-01T00:00:00.001Z WARN second"]);
        assert!(dir.path().join("hook.log.1").exists());
    }
}
