//! The secrets of a session, and the lines of its files that they are in.
//!
//! Finding secrets takes much longer than reading. So the lines that something was found in are cached by the
//! version of their file: same path, size, times and identity. As long as the file is unchanged, only these
//! lines are examined again. The cache contains places and no text, and can be deleted at any time.

use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use threadline_edit::{MaskedSecret, Redactor};
use threadline_entry::{Ending, LineReader, LogLine, Position};
use threadline_secret::{KnownSecrets, Rules};
use threadline_store::open_regular;

use crate::cache_file;
use crate::figures::LogVersion;
use crate::time::now;

/// The start of the first line of a cache file. It must change with the format.
const FORMAT: &str = "threadline secrets 1";

/// The secrets of a session, if it has some, with the versions of its logs.
type VersionedSecrets = (Vec<LogVersion>, Option<Arc<KnownSecrets>>);

/// Finds the secrets of sessions. Those of unchanged files are known from the cache.
#[derive(Default)]
pub(crate) struct SessionSecrets {
    /// The folder with a cache file per session; `None` if there is no cache.
    folder: Option<PathBuf>,
    /// The build of the program. Its rules may differ from those of another one.
    build: String,
    /// The secrets of the sessions that were masked, by the path of the first log, with the versions of all
    /// logs.
    known: Mutex<HashMap<PathBuf, VersionedSecrets>>,
}

impl fmt::Debug for SessionSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionSecrets").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl SessionSecrets {
    /// Creates a finder with its cache below `cache_dir`.
    pub(crate) fn new(cache_dir: Option<&Path>, build: &str) -> Self {
        Self { folder: cache_dir.map(|dir| dir.join("secrets")), build: build.to_owned(), ..Self::default() }
    }

    /// Returns the secrets in the logs of a session; `None` if there are none. A log that cannot be read
    /// contains none, and is read again the next time.
    pub(crate) fn known(&self, rules: &Rules, logs: &[PathBuf]) -> Option<Arc<KnownSecrets>> {
        let first = logs.first()?;
        let version = |log: &PathBuf| std::fs::metadata(log).ok().as_ref().and_then(LogVersion::of_file);
        let versions: Option<Vec<LogVersion>> = logs.iter().map(version).collect();
        if let Some((known, secrets)) = self.known.lock().get(first)
            && Some(known) == versions.as_ref()
        {
            return secrets.clone();
        }
        let mut lines = self.lines(rules, first);
        let mut redactor = Redactor::new(rules);
        let mut is_complete = true;
        for log in logs {
            is_complete &= lines.learn_file(&mut redactor, log, true).is_ok();
        }
        lines.save();
        let secrets = redactor.into_known().map(Arc::new);
        if let Some(versions) = versions.filter(|_| is_complete) {
            self.known.lock().insert(first.clone(), (versions, secrets.clone()));
        }
        secrets
    }

    /// Reads the cache for the files of a session, whose log is at `session`.
    pub(crate) fn lines(&self, rules: &Rules, session: &Path) -> SecretPlaces {
        let key = format!("{FORMAT}\t{}\t{:016x}", self.build, rules.fingerprint());
        let mut hasher = DefaultHasher::new();
        (session, rules.fingerprint()).hash(&mut hasher);
        let cache = self.folder.as_ref().map(|folder| folder.join(format!("{:016x}", hasher.finish())));
        let files = cache.as_deref().and_then(|cache| cache_file::read(cache, &key)).unwrap_or_default();
        SecretPlaces { cache, key, files, is_changed: false, now: now() }
    }
}

/// The places of secrets in the files of one session: the lines that contain them.
pub(crate) struct SecretPlaces {
    cache: Option<PathBuf>,
    key: String,
    /// By path, the version of a file, and the numbers and offsets of its lines.
    files: HashMap<String, (LogVersion, Vec<(u64, u64)>)>,
    is_changed: bool,
    now: SystemTime,
}

impl SecretPlaces {
    /// Returns the lines of a log that contain secrets, among others.
    pub(crate) fn of_log(&mut self, rules: &Rules, path: &Path) -> io::Result<Vec<Position>> {
        let version = LogVersion::of_file(&open_regular(path)?.metadata()?);
        if let Some(lines) = self.known(path, version.as_ref()) {
            return Ok(lines);
        }
        let mut redactor = Redactor::new(rules);
        let mut lines = LineReader::new(open_regular(path)?);
        while let Some(line) = lines.next()? {
            redactor.learn_line(&line);
        }
        let lines = redactor.take_source_lines();
        self.add(path, version, &lines);
        Ok(lines)
    }

    /// Lets a redactor learn the secrets of a file: of its lines if `is_log`, else of its text.
    pub(crate) fn learn_file(
        &mut self,
        redactor: &mut Redactor<'_>,
        path: &Path,
        is_log: bool,
    ) -> io::Result<Vec<MaskedSecret>> {
        let mut file = open_regular(path)?;
        let version = LogVersion::of_file(&file.metadata()?);
        match self.known(path, version.as_ref()) {
            Some(lines) if lines.is_empty() => return Ok(Vec::new()),
            Some(lines) if is_log => return learn_lines(redactor, file, &lines),
            _ => {}
        }
        let mut found = Vec::new();
        if is_log {
            let mut lines = LineReader::new(file);
            while let Some(line) = lines.next()? {
                found.append(&mut redactor.learn_line(&line));
            }
        } else {
            let mut content = Vec::new();
            file.read_to_end(&mut content)?;
            found = redactor.learn_file(&content);
        }
        self.add(path, version, &redactor.take_source_lines());
        Ok(found)
    }

    /// Reads a log, lets a redactor learn its secrets, and returns it with the lines that they are in.
    pub(crate) fn read_log(
        &mut self,
        redactor: &mut Redactor<'_>,
        path: &Path,
    ) -> io::Result<(Vec<u8>, Vec<Position>)> {
        let mut file = open_regular(path)?;
        let version = LogVersion::of_file(&file.metadata()?);
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        if let Some(lines) = self.known(path, version.as_ref()) {
            learn_lines(redactor, io::Cursor::new(&content), &lines)?;
            return Ok((content, lines));
        }
        redactor.learn_log(&content);
        let lines = redactor.take_source_lines();
        self.add(path, version, &lines);
        Ok((content, lines))
    }

    fn known(&self, path: &Path, version: Option<&LogVersion>) -> Option<Vec<Position>> {
        let (known, lines) = self.files.get(path.to_str()?)?;
        let position =
            |(line_no, byte_offset): &(u64, u64)| Position { line_no: *line_no, byte_offset: *byte_offset };
        (Some(known) == version).then(|| lines.iter().map(position).collect())
    }

    fn add(&mut self, path: &Path, version: Option<LogVersion>, lines: &[Position]) {
        let version = version.filter(|version| version.is_settled(self.now));
        if let (Some(version), Some(path)) = (version, path.to_str()) {
            let lines = lines.iter().map(|at| (at.line_no, at.byte_offset)).collect();
            self.files.insert(path.to_owned(), (version, lines));
            self.is_changed = true;
        }
    }

    /// Writes what was found to the cache. The cache only saves time, so a full disk is no error.
    pub(crate) fn save(self) {
        if let Some(cache) = self.cache.filter(|_| self.is_changed) {
            let _ = cache_file::write(&cache, &self.key, &self.files);
        }
    }
}

/// Lets a redactor learn the secrets of some lines of a log.
fn learn_lines(
    redactor: &mut Redactor<'_>,
    log: impl Read + Seek,
    lines: &[Position],
) -> io::Result<Vec<MaskedSecret>> {
    let mut log = BufReader::new(log);
    let (mut found, mut bytes) = (Vec::new(), Vec::new());
    for at in lines {
        log.seek(SeekFrom::Start(at.byte_offset))?;
        bytes.clear();
        log.read_until(b'\n', &mut bytes)?;
        let ending =
            if bytes.pop_if(|last| *last == b'\n').is_some() { Ending::Newline } else { Ending::None };
        found.extend(redactor.learn_line(&LogLine { bytes: &bytes, ending, at: *at }));
    }
    redactor.take_source_lines();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECRET: &str = "Weft-42-wArp";

    /// Writes a log that has not changed for a while, as far as its times tell.
    fn write_log(path: &Path) {
        let lines = [
            r#"{"type":"x","text":"nothing"}"#,
            r#"{"content":[{"id":"t1","input":{"command":"printenv DB_PASSWORD"}}]}"#,
            r#"{"content":[{"tool_use_id":"t1","content":"shuttle7-prod\n"}]}"#,
            r#"{"text":"it was [secret:assignment:4] before"}"#,
            r#"{"text":"DB_PASSWORD=Weft-42-wArp\n"} {"text":"two objects"}"#,
        ];
        std::fs::write(path, lines.join("\n")).unwrap();
    }

    fn found(secrets: &SessionSecrets, log: &Path, later: Duration) -> Vec<MaskedSecret> {
        let rules = Rules::new();
        let mut lines = secrets.lines(&rules, log);
        lines.now += later;
        let found = lines.learn_file(&mut Redactor::new(&rules), log, true).unwrap();
        lines.save();
        found
    }

    #[test]
    fn secrets_are_the_same_with_and_without_a_cache() {
        let dir = tempfile::tempdir().unwrap();
        let (log, cache) = (dir.path().join("s.jsonl"), dir.path().join("cache"));
        write_log(&log);
        let secrets = SessionSecrets::new(Some(&cache), "build");
        let later = Duration::from_secs(3600);
        let first = found(&secrets, &log, later);
        assert_eq!(first.len(), 2, "{first:?}");
        assert_eq!(first[0].at.map(|at| at.line_no), Some(3));
        assert_eq!(first[1].placeholder.as_ref(), "[secret:assignment:5]");
        let files = || std::fs::read_dir(cache.join("secrets")).map_or(0, Iterator::count);
        assert_eq!(files(), usize::from(cfg!(unix)));
        assert_eq!(found(&secrets, &log, later), first);
        std::fs::remove_dir_all(&cache).unwrap();
        assert_eq!(found(&secrets, &log, later), first);
        // Another build may have other rules.
        assert_eq!(found(&SessionSecrets::new(Some(&cache), "other"), &log, later), first);
        assert_eq!(found(&SessionSecrets::default(), &log, later), first);
    }

    #[test]
    fn a_log_that_has_changed_is_searched_again() {
        let dir = tempfile::tempdir().unwrap();
        let (log, cache) = (dir.path().join("s.jsonl"), dir.path().join("cache"));
        write_log(&log);
        let secrets = SessionSecrets::new(Some(&cache), "build");
        let later = Duration::from_secs(3600);
        assert_eq!(found(&secrets, &log, later).len(), 2);
        std::fs::write(&log, "{\"text\":\"TOKEN=kQ8zR4tVbN2xLm7pWs5dq\"}\n").unwrap();
        assert_eq!(found(&secrets, &log, later).len(), 1);
        // A log that was changed just now may change again at the same time.
        std::fs::remove_dir_all(&cache).unwrap();
        assert_eq!(found(&secrets, &log, Duration::ZERO).len(), 1);
        assert!(!cache.exists());
    }

    #[test]
    #[cfg(unix)]
    fn the_cache_is_private_and_contains_no_secret() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let (log, cache) = (dir.path().join("s.jsonl"), dir.path().join("cache"));
        write_log(&log);
        found(&SessionSecrets::new(Some(&cache), "build"), &log, Duration::from_secs(3600));
        let file = std::fs::read_dir(cache.join("secrets")).unwrap().next().unwrap().unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let content = std::fs::read(file.path()).unwrap();
        assert!(!content.windows(SECRET.len()).any(|part| part == SECRET.as_bytes()));
    }
}
