//! Checks the files around the logs: folders, side data, backups, the index, the configuration.
//!
//! Problems inside a log are detected elsewhere; these checks need the disk.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use memchr::memmem::Finder;
use threadline_entry::lens::{FileHistoryDelta, FileHistorySnapshot};
use threadline_entry::{Code, Entry, Finding, Json, Kind, LineReader, LogLine, Position, key, walk};

use crate::home::{Home, Store};
use crate::id::is_plain_name;
use crate::listing::Listing;
use crate::project::folder_matches;
use crate::regular_file;
use crate::session_file::SessionFile;

/// The number of days that Claude Code keeps an unused session, unless its settings have another value.
const DEFAULT_RETENTION_DAYS: u64 = 30;
/// A session that will be deleted within this many days is reported.
const NOTICE_DAYS: u64 = 3;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Store {
    /// Checks the files around the logs of every home. The age of files is measured at `now`.
    pub fn audit(&self, now: SystemTime) -> Listing<(PathBuf, Finding)> {
        let mut listing = Listing::new();
        for home in self.homes() {
            audit_config(home, &mut listing);
            audit_folders(home, &mut listing);
            audit_backups(home, &mut listing);
            audit_ages(home, now, &mut listing);
        }
        listing
    }
}

impl SessionFile {
    /// Checks the location of the session in its home, and the backups that its log refers to.
    pub fn audit(&self) -> io::Result<Vec<Finding>> {
        let (Some(home), Some(folder)) = (&self.home, &self.folder) else { return Ok(Vec::new()) };
        let mut findings = Vec::new();
        let mut places = WorkingDirCheck::default();
        let mut backups = BackupCheck { dir: home.file_history_dir(&self.id), missing: Vec::new() };
        let mut lines = LineReader::new(regular_file::open(&self.path)?);
        let (cwd, history) = (Finder::new(key::quoted::CWD), Finder::new(key::quoted::BACKUP_FILE_NAME));
        while let Some(line) = lines.next()? {
            if !places.matches && cwd.find(line.bytes).is_some() {
                places.check_line(&line, folder);
            }
            if history.find(line.bytes).is_some() {
                backups.check_line(&line);
            }
        }
        findings.extend(places.finding(folder));
        findings.extend(backups.finding());
        Ok(findings)
    }
}

/// Whether any working directory of a session matches its folder.
#[derive(Default)]
struct WorkingDirCheck {
    matches: bool,
    first: Option<(Position, String)>,
}

impl WorkingDirCheck {
    fn check_line(&mut self, line: &LogLine<'_>, folder: &str) {
        let Some(cwd) = walk::pick(line.bytes, [key::CWD]).and_then(|[cwd]| cwd?.as_str()) else { return };
        // Redaction replaced a name in the path, which the folder name still contains.
        self.matches |= folder_matches(folder, &cwd) || cwd.contains("[personal:");
        self.first.get_or_insert_with(|| (line.at, cwd.into_owned()));
    }

    fn finding(self, folder: &str) -> Option<Finding> {
        let (at, cwd) = self.first.filter(|_| !self.matches)?;
        let message = format!("the working directory {cwd} does not match the folder {folder}");
        Some(Finding::new(Code::FolderMismatch, at, message))
    }
}

/// The backups that a log refers to and that do not exist.
struct BackupCheck {
    dir: PathBuf,
    missing: Vec<(Position, String)>,
}

impl BackupCheck {
    fn check_line(&mut self, line: &LogLine<'_>) {
        let (entry, _) = Entry::parse_at(line.bytes, line.ending, line.at);
        let mut names: Vec<String> = Vec::new();
        match entry.kind() {
            Kind::FileHistorySnapshot => {
                let snapshot = entry.lens::<FileHistorySnapshot<'_>>().and_then(|line| line.snapshot());
                let files = snapshot.and_then(|snapshot| snapshot.tracked_file_backups());
                let backups = files.into_iter().flat_map(Json::members);
                names.extend(backups.filter_map(|(_, backup)| {
                    Some(backup.get(key::BACKUP_FILE_NAME)?.as_str()?.into_owned())
                }));
            }
            Kind::FileHistoryDelta => {
                let backup = entry.lens::<FileHistoryDelta<'_>>().and_then(|line| line.backup());
                names.extend(backup.and_then(|backup| Some(backup.backup_file_name()?.into_owned())));
            }
            _ => {}
        }
        for name in names {
            let known = self.missing.iter().any(|(_, missing)| *missing == name);
            let exists = is_plain_name(&name) && self.dir.join(&name).exists();
            if !known && !exists {
                self.missing.push((line.at, name));
            }
        }
    }

    fn finding(self) -> Option<Finding> {
        let (at, first) = self.missing.first()?;
        let message = match self.missing.len() {
            1 => format!("missing backup {first} in {}", self.dir.display()),
            n => format!("{n} missing backups in {}, first: {first}", self.dir.display()),
        };
        Some(Finding::new(Code::HistoryGap, *at, message))
    }
}

fn file_finding(code: Code, path: PathBuf, message: String) -> (PathBuf, Finding) {
    (path, Finding { code, severity: code.severity(), at: None, message: message.into() })
}

/// Formats a number with its noun: `1 day`, `2 days`.
fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Checks Claude Code's settings and state: with a damaged file it would start without them.
fn audit_config(home: &Home, listing: &mut Listing<(PathBuf, Finding)>) {
    // The state is next to a home in the default location, and inside any other home.
    let usual = home.root().file_name() == Some(OsStr::new(".claude"));
    let beside = home.root().parent().filter(|_| usual).map(|parent| parent.join(".claude.json"));
    let files = [home.root().join(".claude.json"), home.root().join("settings.json")];
    for path in files.into_iter().chain(beside) {
        let Some(bytes) = listing.ok_or_record(regular_file::read(&path)) else { continue };
        if str::from_utf8(&bytes).ok().and_then(Json::parse).is_none_or(|json| !json.is_object()) {
            listing.found.push(file_finding(
                Code::TornConfig,
                path,
                "the configuration is not a JSON object".to_owned(),
            ));
        }
    }
}

/// Checks for side data without a session, and for an outdated index.
fn audit_folders(home: &Home, listing: &mut Listing<(PathBuf, Finding)>) {
    for folder in entries(&home.projects_dir(), listing) {
        let inside = entries(&folder, listing);
        let ids: HashSet<&OsStr> =
            inside.iter().filter(|path| is_log(path)).filter_map(|path| path.file_stem()).collect();
        for dir in inside.iter().filter(|path| is_side_data(path)) {
            if dir.file_name().is_some_and(|id| !ids.contains(id)) {
                let message = "side data of a deleted session".to_owned();
                listing.found.push(file_finding(Code::OrphanSideData, dir.clone(), message));
            }
        }
        let index = folder.join("sessions-index.json");
        if let Some(bytes) = listing.ok_or_record(regular_file::read(&index))
            && let Some(message) = stale_index(&bytes, &ids)
        {
            listing.found.push(file_finding(Code::StaleIndex, index, message));
        }
    }
}

/// Returns a message if the index lists sessions that do not exist, or lacks sessions that do.
fn stale_index(bytes: &[u8], ids: &HashSet<&OsStr>) -> Option<String> {
    let Some(json) = str::from_utf8(bytes).ok().and_then(Json::parse) else {
        return Some("the index is not JSON".to_owned());
    };
    let listed = json.get("entries").into_iter().flat_map(Json::items);
    let listed: HashSet<String> =
        listed.filter_map(|entry| Some(entry.get(key::SESSION_ID)?.as_str()?.into_owned())).collect();
    let gone = listed.iter().filter(|id| !ids.contains(OsStr::new(id))).count();
    let is_session = |id: &&&OsStr| !id.to_string_lossy().starts_with("agent-");
    let unlisted =
        ids.iter().filter(is_session).filter(|id| !listed.contains(&*id.to_string_lossy())).count();
    (gone + unlisted > 0).then(|| {
        let (gone, unlisted) = (counted(gone as u64, "missing session"), counted(unlisted as u64, "session"));
        format!("outdated index: {gone} listed, {unlisted} not listed")
    })
}

/// Checks for backups of sessions that were deleted.
fn audit_backups(home: &Home, listing: &mut Listing<(PathBuf, Finding)>) {
    let folders = entries(&home.projects_dir(), listing);
    let mut ids = HashSet::new();
    for folder in folders {
        let logs = entries(&folder, listing).into_iter().filter(|path| is_log(path));
        ids.extend(logs.filter_map(|path| path.file_stem().map(OsStr::to_owned)));
    }
    for dir in entries(&home.root().join("file-history"), listing) {
        if dir.file_name().is_some_and(|id| !ids.contains(id)) {
            let message = "backups of a deleted session".to_owned();
            listing.found.push(file_finding(Code::OrphanSideData, dir, message));
        }
    }
}

/// Checks for sessions that Claude Code will delete soon.
fn audit_ages(home: &Home, now: SystemTime, listing: &mut Listing<(PathBuf, Finding)>) {
    let settings =
        listing.ok_or_record(regular_file::read(&home.root().join("settings.json"))).unwrap_or_default();
    let settings = str::from_utf8(&settings).ok().and_then(Json::parse);
    let kept = settings
        .and_then(|settings| settings.get("cleanupPeriodDays")?.as_u64())
        .unwrap_or(DEFAULT_RETENTION_DAYS);
    let limit = DAY * u32::try_from(kept.saturating_sub(NOTICE_DAYS)).unwrap_or(u32::MAX);
    for folder in entries(&home.projects_dir(), listing) {
        for log in entries(&folder, listing).into_iter().filter(|path| is_log(path)) {
            let Some(metadata) = listing.ok_or_record(fs_err::metadata(&log)) else { continue };
            let age = metadata
                .modified()
                .ok()
                .and_then(|modified| now.duration_since(modified).ok())
                .unwrap_or_default();
            if age > limit {
                let (days, kept) = (counted(age.as_secs() / DAY.as_secs(), "day"), counted(kept, "day"));
                let message = format!("the log is {days} old; Claude Code deletes logs after {kept}");
                listing.found.push(file_finding(Code::Retention, log, message));
            }
        }
    }
}

fn entries(dir: &Path, listing: &mut Listing<(PathBuf, Finding)>) -> Vec<PathBuf> {
    let Some(found) = listing.ok_or_record(fs_err::read_dir(dir)) else { return Vec::new() };
    let mut paths: Vec<PathBuf> =
        found.filter_map(|entry| listing.ok_or_record(entry)).map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn is_log(path: &Path) -> bool {
    path.extension() == Some(OsStr::new("jsonl"))
}

/// Whether this is a directory named like a session.
fn is_side_data(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_uuid = name.len() == 36
        && name.bytes().enumerate().all(|(i, byte)| match i {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        });
    is_uuid && path.is_dir()
}

#[cfg(test)]
mod tests {
    use threadline_testkit::{TestHome, session_uuid};

    use super::*;

    fn codes(home: &TestHome, now: SystemTime) -> Vec<&'static str> {
        let listing = Store::open([home.root().to_owned()]).audit(now);
        assert!(listing.errors.is_empty(), "{:?}", listing.errors);
        listing.found.iter().map(|(_, finding)| finding.code.id()).collect()
    }

    fn session_codes(path: &Path) -> Vec<&'static str> {
        SessionFile::at(path).audit().unwrap().iter().map(|finding| finding.code.id()).collect()
    }

    /// A time at which newly written files are recent.
    fn today() -> SystemTime {
        fs_err::metadata(".").unwrap().modified().unwrap()
    }

    #[test]
    fn a_valid_home_has_no_findings() {
        let home = TestHome::new();
        let path = home.session(
            "s1",
            "u1 user \"hi\"\nsnapshot u1 {\"a.txt\":{\"backupFileName\":\"0123@v1\",\"version\":1}}",
        );
        let id = session_uuid("s1");
        home.agent("s1", "a1", "u1 user \"look\"", None);
        home.file(format!("file-history/{id}/0123@v1"), "old");
        home.file("settings.json", "{}");
        home.file(
            "projects/-home-ada-loom/sessions-index.json",
            format!("{{\"entries\":[{{\"sessionId\":\"{id}\"}}]}}"),
        );
        assert_eq!(codes(&home, today()), [""; 0]);
        assert_eq!(session_codes(&path), [""; 0]);
    }

    #[test]
    fn a_session_in_the_wrong_folder_is_reported() {
        let home = TestHome::new();
        let path = home.session("s1", "u1 user \"hi\" cwd=/somewhere/else");
        assert_eq!(session_codes(&path), ["F18"]);
        let path = home.session("s2", "u1 user \"hi\"\nu2 <- u1 user \"ho\" cwd=/somewhere/else");
        assert_eq!(session_codes(&path), [""; 0], "one matching line is enough");
    }

    #[test]
    fn missing_backups_are_reported_in_both_forms() {
        let home = TestHome::new();
        let snapshot = "u1 user \"hi\"\nsnapshot u1 {\"a.txt\":{\"backupFileName\":\"0123@v1\",\"version\":1},\"new.txt\":{\"backupFileName\":null,\"version\":1}}";
        assert_eq!(session_codes(&home.session("s1", snapshot)), ["F20"]);
        let delta = "u1 user \"hi\"\nentry file-history-delta {\"messageId\":\"u1\",\"trackingPath\":\"a\",\"backup\":{\"backupFileName\":\"77@v2\",\"version\":2}}";
        assert_eq!(session_codes(&home.session("s2", delta)), ["F20"]);
    }

    #[test]
    fn side_data_without_a_session_is_reported() {
        let home = TestHome::new();
        home.session("s1", "u1 user \"hi\"");
        home.file(format!("projects/-home-ada-loom/{}/tool-results/x.txt", session_uuid("gone")), "x");
        home.file(format!("file-history/{}/0@v1", session_uuid("gone")), "x");
        home.file("projects/-home-ada-loom/memory/MEMORY.md", "no side data");
        assert_eq!(codes(&home, today()), ["F21", "F21"]);
    }

    #[test]
    fn an_outdated_index_is_reported() {
        let home = TestHome::new();
        home.session("s1", "u1 user \"hi\"");
        for index in ["{\"entries\":[]}", "{\"entries\":[{\"sessionId\":\"gone\"}]}", "torn"] {
            home.file("projects/-home-ada-loom/sessions-index.json", index);
            assert_eq!(codes(&home, today()), ["F16"], "{index}");
        }
    }

    #[test]
    fn a_damaged_configuration_is_reported() {
        let home = TestHome::new();
        home.file("settings.json", "{\"model\":");
        assert_eq!(codes(&home, today()), ["F24"]);
    }

    #[test]
    fn a_session_about_to_be_deleted_is_reported() {
        let home = TestHome::new();
        home.session("s1", "u1 user \"hi\"");
        assert_eq!(codes(&home, today() + 26 * DAY), [""; 0]);
        assert_eq!(codes(&home, today() + 29 * DAY), ["F22"]);
        home.file("settings.json", "{\"cleanupPeriodDays\":365}");
        assert_eq!(codes(&home, today() + 29 * DAY), [""; 0]);
    }
}
