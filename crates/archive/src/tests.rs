//! Tests of the whole archive, on local folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;
use threadline_app::{SessionSource, SourceSelection};
use threadline_secret::Rules;
use threadline_store::{Home, Store};

use crate::manifest::MANIFESTS;
use crate::objects::Objects;
use crate::segment::{SEGMENTS, segment_object};
use crate::{
    Archive, ArchiveError, ArchiveLocation, KeyFile, Origin, OriginFilter, PrivacyLevel, PushOptions,
    PushReport, RestoreTarget, StorageOptions,
};

/// A home and an archive in a temporary folder.
struct Setup {
    dir: TempDir,
    rules: Rules,
    level: PrivacyLevel,
    key: Option<KeyFile>,
}

const SESSION: &str = "0b5b3a5e-0000-4000-8000-000000000001";
const LOG: &str = "projects/-p/0b5b3a5e-0000-4000-8000-000000000001.jsonl";
const AGENT: &str = "projects/-p/0b5b3a5e-0000-4000-8000-000000000001/subagents/agent-a1.jsonl";
const OUTPUT: &str = "projects/-p/0b5b3a5e-0000-4000-8000-000000000001/tool-results/t.txt";
const BACKUP: &str = "file-history/0b5b3a5e-0000-4000-8000-000000000001/c0ffee@v1";
const OTHER: &str = "projects/-q/0b5b3a5e-0000-4000-8000-000000000002.jsonl";

impl Setup {
    fn new() -> Self {
        let setup = Self {
            dir: tempfile::tempdir().unwrap(),
            rules: Rules::new(),
            level: PrivacyLevel::Full,
            key: None,
        };
        for (name, lines) in
            [(LOG, 40), (AGENT, 10), (OUTPUT, 3), (BACKUP, 5), (OTHER, 20), ("history.jsonl", 2)]
        {
            setup.write(name, &text(name, lines));
        }
        setup
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    fn write(&self, name: &str, content: &str) {
        let path = self.home().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn location(&self) -> ArchiveLocation {
        ArchiveLocation::Folder(self.dir.path().join("archive"))
    }

    fn archive(&self) -> Archive {
        self.open(self.key.clone()).unwrap()
    }

    fn open(&self, key: Option<KeyFile>) -> Result<Archive, ArchiveError> {
        Archive::create_with_key(&self.location(), &StorageOptions::new(), key)
    }

    fn encrypted() -> Self {
        let mut setup = Self::new();
        setup.key = Some(KeyFile::create(&setup.dir.path().join("key")).unwrap());
        setup
    }

    fn push(&self) -> PushReport {
        self.push_to(&self.archive(), "laptop").unwrap()
    }

    fn push_to(&self, archive: &Archive, machine: &str) -> Result<PushReport, ArchiveError> {
        let store = Store::open([self.home()]);
        let options = PushOptions { level: self.level, rules: &self.rules, now: far_future() };
        archive.push(&store, &store.homes()[0], &origin(machine), &options, &|_| ())
    }

    fn fetch(&self) -> Vec<PathBuf> {
        let cache = self.dir.path().join("cache");
        self.archive().fetch(&SourceSelection::default(), &cache, &|_| ()).unwrap()
    }
}

/// Returns a time at which every file is settled and every object is old.
fn far_future() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1 << 33)
}

fn origin(machine: &str) -> Origin {
    let text = str::to_owned;
    Origin {
        machine_id: format!("id-{machine}"),
        machine: text(machine),
        user: text("ada"),
        home: text("/h"),
    }
}

fn text(name: &str, lines: usize) -> String {
    (0..lines).map(|line| format!("{{\"type\":\"user\",\"line\":{line},\"of\":\"{name}\"}}\n")).collect()
}

/// Returns the files below a folder with their contents, sorted.
fn files_below(folder: &Path) -> Vec<(String, Vec<u8>)> {
    fn add(folder: &Path, root: &Path, files: &mut Vec<(String, Vec<u8>)>) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => add(&path, root, files),
                false => {
                    let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
                    files.push((name, fs::read(&path).unwrap()));
                }
            }
        }
    }
    let mut files = Vec::new();
    add(folder, folder, &mut files);
    files.sort();
    files
}

#[test]
fn a_home_comes_back_byte_for_byte() {
    let setup = Setup::new();
    let report = setup.push();
    assert_eq!((report.new_files, report.unread.len()), (6, 0));
    let homes = setup.fetch();
    assert_eq!(files_below(&homes[0]), files_below(&setup.home()));
}

#[test]
fn the_corpus_comes_back_byte_for_byte() {
    let setup = Setup {
        dir: tempfile::tempdir().unwrap(),
        rules: Rules::new(),
        level: PrivacyLevel::Full,
        key: None,
    };
    let logs = threadline_testkit::shared_logs();
    for (i, log) in logs.iter().enumerate() {
        let target = setup.home().join(format!("projects/-p{}/{i}.jsonl", i % 7));
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(log, target).unwrap();
    }
    assert_eq!(setup.push().new_files, logs.len());
    let report = setup.push();
    assert_eq!((report.unchanged_files, report.copied_bytes), (logs.len(), 0));
    if let [home] = &setup.fetch()[..] {
        assert!(files_below(home) == files_below(&setup.home()));
    }
}

#[test]
fn only_new_bytes_are_copied() {
    let setup = Setup::new();
    setup.push();
    let before = setup.push();
    assert_eq!((before.unchanged_files, before.copied_bytes, before.stored_bytes), (6, 0, 0));
    let grown = text(LOG, 41);
    setup.write(LOG, &grown);
    // Half a line at the end.
    setup.write(OTHER, &format!("{}{{\"type\":\"us", text(OTHER, 20)));
    let report = setup.push();
    assert_eq!((report.grown_files, report.rewritten_files, report.unchanged_files), (2, 0, 4));
    let n_new = grown.len() - text(LOG, 40).len() + "{\"type\":\"us".len();
    assert_eq!(report.copied_bytes, n_new as u64);
    assert_eq!(files_below(&setup.fetch()[0]), files_below(&setup.home()));
}

#[test]
fn a_rewritten_file_keeps_its_earlier_version() {
    let setup = Setup::new();
    setup.push();
    for content in ["{\"edited\":true}\n".to_owned(), text("other", 60)] {
        setup.write(LOG, &content);
        assert_eq!(setup.push().rewritten_files, 1);
    }
    let archive = setup.archive();
    let manifests = archive.manifests(&OriginFilter::default()).unwrap();
    let file = &manifests[0].files[LOG];
    assert_eq!((file.current.version, file.older.len()), (2, 2));
    assert_eq!(archive.verify(&|| ()).unwrap().damaged, [""; 0]);
    assert_eq!(files_below(&setup.fetch()[0]), files_below(&setup.home()));
}

#[test]
fn deleted_sessions_stay_in_the_archive_and_come_back() {
    let setup = Setup::new();
    setup.push();
    let before = files_below(&setup.home());
    fs::remove_dir_all(setup.home().join("projects/-p")).unwrap();
    fs::remove_dir_all(setup.home().join("file-history")).unwrap();
    setup.push();
    let target = RestoreTarget { home: Home::new(setup.home()), project: None, force: false };
    let report = setup.archive().restore(&SESSION[..36], &OriginFilter::default(), &target).unwrap();
    assert_eq!((report.written.len(), report.present.len()), (4, 0));
    assert_eq!(files_below(&setup.home()), before);
    // A second time, nothing is left to do.
    let report = setup.archive().restore(SESSION, &OriginFilter::default(), &target).unwrap();
    assert_eq!((report.written.len(), report.present.len()), (0, 4));
}

/// A sub-agent of [`SESSION`] next to its log, as versions before 2.1.2 wrote it, and one of the other
/// session.
fn write_shared_agents(setup: &Setup) {
    for (name, session) in [("1", SESSION), ("2", "0b5b3a5e-0000-4000-8000-000000000002")] {
        let line = format!("{{\"isSidechain\":true,\"sessionId\":\"{session}\"}}\n");
        setup.write(&format!("projects/-p/agent-{name}.jsonl"), &line);
    }
}

#[test]
fn sub_agents_next_to_the_log_come_back_with_their_session() {
    for level in [PrivacyLevel::Full, PrivacyLevel::Redacted, PrivacyLevel::Metadata] {
        let mut setup = Setup::new();
        setup.level = level;
        write_shared_agents(&setup);
        setup.push();
        fs::remove_dir_all(setup.home().join("projects/-p")).unwrap();
        let target = RestoreTarget { home: Home::new(setup.home()), project: None, force: false };
        setup.archive().restore(SESSION, &OriginFilter::default(), &target).unwrap();
        let exists = |name: &str| setup.home().join(format!("projects/-p/agent-{name}.jsonl")).exists();
        assert_eq!([exists("1"), exists("2")], [true, false], "{level}");
    }
}

#[test]
fn sub_agents_next_to_the_log_are_removed_with_their_session() {
    let setup = Setup::new();
    write_shared_agents(&setup);
    setup.push();
    setup.archive().remove(SESSION).unwrap();
    assert_eq!(setup.push().copied_bytes, 0);
    let names: Vec<_> = files_below(&setup.fetch()[0]).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["history.jsonl", "projects/-p/agent-2.jsonl", OTHER]);
}

#[test]
fn a_file_that_differs_is_not_replaced_unless_asked() {
    let setup = Setup::new();
    setup.push();
    setup.write(LOG, "mine\n");
    fs::remove_file(setup.home().join(BACKUP)).unwrap();
    let before = files_below(&setup.home());
    let mut target = RestoreTarget { home: Home::new(setup.home()), project: None, force: false };
    let restore = |target: &RestoreTarget| setup.archive().restore(SESSION, &OriginFilter::default(), target);
    assert!(matches!(restore(&target), Err(ArchiveError::Differs { .. })));
    assert_eq!(files_below(&setup.home()), before);
    target.force = true;
    assert_eq!(restore(&target).unwrap().written.len(), 2);
    assert_eq!(fs::read_to_string(setup.home().join(LOG)).unwrap(), text(LOG, 40));
}

#[test]
fn a_session_can_be_restored_into_another_project() {
    let setup = Setup::new();
    setup.push();
    let home = setup.dir.path().join("elsewhere");
    let target = RestoreTarget { home: Home::new(&home), project: Some("/srv/new.app".into()), force: false };
    setup.archive().restore(SESSION, &OriginFilter::default(), &target).unwrap();
    let names: Vec<_> = files_below(&home).into_iter().map(|(name, _)| name).collect();
    assert!(names.contains(&format!("projects/-srv-new-app/{SESSION}.jsonl")), "{names:?}");
    assert_eq!(names.len(), 4);
}

#[test]
fn interrupted_pushes_end_like_an_uninterrupted_one() {
    for from in 1..=100 {
        let setup = Setup::new();
        if from % 3 == 0 {
            setup.push();
            setup.write(LOG, &text(LOG, 90));
            setup.write(OTHER, &text("changed", 9));
        }
        let mut archive = setup.archive();
        archive.objects_mut().faults.from.store(from % 9 + 1, SeqCst);
        let _ = setup.push_to(&archive, "laptop");
        let report = setup.push();
        assert!(report.unread.is_empty());
        assert_eq!(files_below(&setup.fetch()[0]), files_below(&setup.home()), "fault {from}");
        assert_eq!(setup.archive().verify(&|| ()).unwrap().damaged, [""; 0], "fault {from}");
        assert_eq!(setup.push().copied_bytes, 0);
    }
}

#[test]
fn two_pushers_at_once_lose_nothing() {
    for _ in 0..10 {
        let setup = Setup::new();
        std::thread::scope(|scope| {
            for machine in ["laptop", "laptop", "desktop"] {
                let setup = &setup;
                scope.spawn(move || setup.push_to(&setup.archive(), machine).unwrap());
            }
        });
        let homes = setup.fetch();
        assert_eq!(homes.len(), 2);
        for home in homes {
            assert_eq!(files_below(&home), files_below(&setup.home()));
        }
        assert_eq!(setup.push().copied_bytes, 0);
    }
}

#[test]
fn a_flipped_bit_is_found() {
    let setup = Setup::new();
    setup.push();
    for prefix in [SEGMENTS, MANIFESTS] {
        let object =
            Objects::in_folder(&setup.dir.path().join("archive"), false).unwrap().list(prefix).unwrap();
        let path = setup.dir.path().join("archive").join(&object[0].name);
        let bytes = fs::read(&path).unwrap();
        for at in (0..bytes.len()).step_by(bytes.len() / 20 + 1) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            fs::write(&path, &damaged).unwrap();
            let report = setup.archive().verify(&|| ()).unwrap();
            // A few bits of compressed data have no meaning.
            let content = |bytes: &[u8]| zstd::stream::decode_all(bytes).ok();
            let is_harmless = content(&damaged) == content(&bytes);
            assert!(is_harmless || !report.damaged.is_empty(), "{prefix} byte {at}");
        }
        fs::write(&path, bytes).unwrap();
        assert_eq!(setup.archive().verify(&|| ()).unwrap().damaged, [""; 0]);
    }
}

#[test]
fn a_removed_session_is_gone_and_stays_away() {
    let setup = Setup::new();
    setup.push();
    setup.push_to(&setup.archive(), "desktop").unwrap();
    assert_eq!(setup.archive().remove(&SESSION[..36]).unwrap(), SESSION);
    assert!(matches!(setup.archive().remove(SESSION), Err(ArchiveError::NoSession { .. })));
    assert_eq!(setup.push().copied_bytes, 0);
    for home in setup.fetch() {
        let names: Vec<_> = files_below(&home).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["history.jsonl", OTHER]);
    }
    let archive = setup.archive();
    assert_eq!(archive.objects().list(MANIFESTS).unwrap().len(), 2);
    for object in archive.objects().list(SEGMENTS).unwrap() {
        let digest = object.name.rsplit('/').next().unwrap().strip_suffix(".zst").unwrap();
        let segment = archive.segment(digest).unwrap();
        assert!(segment.table.pieces.iter().all(|piece| !piece.file.contains(SESSION)));
    }
    assert_eq!(archive.verify(&|| ()).unwrap().damaged, [""; 0]);
}

#[test]
fn small_segments_are_joined_and_unused_ones_deleted() {
    let setup = Setup::new();
    for lines in 1..40 {
        setup.write(LOG, &text(LOG, lines));
        setup.push();
    }
    let archive = setup.archive();
    let n_before = archive.objects().list(SEGMENTS).unwrap().len();
    let report = archive.collect_garbage(far_future()).unwrap();
    assert!(report.joined > 30 && report.deleted >= report.joined, "{report:?}");
    assert!(archive.objects().list(SEGMENTS).unwrap().len() < n_before / 4);
    assert_eq!(archive.verify(&|| ()).unwrap().damaged, [""; 0]);
    assert_eq!(files_below(&setup.fetch()[0]), files_below(&setup.home()));
    setup.write(LOG, &text(LOG, 50));
    assert_eq!(setup.push().grown_files, 1);
    assert_eq!(files_below(&setup.fetch()[0]), files_below(&setup.home()));
}

#[test]
fn young_segments_are_never_deleted() {
    let setup = Setup::new();
    let archive = setup.archive();
    archive.objects().create(&segment_object(&"a".repeat(64)), vec![1]).unwrap();
    assert_eq!(archive.collect_garbage(UNIX_EPOCH).unwrap().deleted, 0);
}

#[test]
fn redacted_copies_contain_no_secret_of_any_file_of_the_session() {
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let mut setup = Setup::new();
    setup.level = PrivacyLevel::Redacted;
    let line = format!(
        "{{\"type\":\"user\",\"uuid\":\"1\",\"message\":{{\"role\":\"user\",\"content\":\"use {token}\"}}}}\n"
    );
    setup.write(LOG, &line);
    // Without its prefix, the text is not recognised by itself.
    setup.write(OUTPUT, &format!("the token is {token} and nothing else"));
    setup.push();
    for (name, content) in files_below(&setup.fetch()[0]) {
        assert!(!String::from_utf8_lossy(&content).contains(&token), "{name}");
    }
    setup.write(LOG, &format!("{line}{line}"));
    let report = setup.push();
    assert_eq!((report.grown_files, report.rewritten_files), (1, 0));
    let session = &setup.archive().sessions(&OriginFilter::default()).unwrap()[0];
    assert_eq!(session.level, PrivacyLevel::Redacted);
}

#[test]
fn a_lower_level_keeps_no_earlier_text() {
    let mut setup = Setup::new();
    setup.push();
    // An earlier version at the full level.
    setup.write(LOG, &text("rewritten", 3));
    setup.push();
    for level in [PrivacyLevel::Redacted, PrivacyLevel::Metadata] {
        setup.level = level;
        setup.push();
        let manifests = setup.archive().manifests(&OriginFilter::default()).unwrap();
        let file = &manifests[0].files[LOG];
        assert_eq!((file.current.level, file.older.len()), (level, 0));
        assert_eq!(setup.push().copied_bytes, 0);
    }
}

#[test]
#[cfg(unix)]
fn a_new_archive_can_be_read_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let setup = Setup::new();
    setup.push();
    let mode = fs::metadata(setup.dir.path().join("archive")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_name_that_leaves_the_home_is_refused() {
    let setup = Setup::new();
    setup.push();
    let archive = setup.archive();
    let folder = origin("laptop").folder();
    let mut read = crate::manifest::read_manifest(archive.objects(), &folder).unwrap().unwrap();
    let file = read.manifest.files[LOG].clone();
    read.manifest.files.insert("projects/../../outside.jsonl".to_owned(), file);
    assert!(read.write(archive.objects()).unwrap());
    let cache = setup.dir.path().join("cache");
    let fetched = archive.fetch(&SourceSelection::default(), &cache, &|_| ());
    assert!(fetched.unwrap_err().to_string().contains("is not the name of a file of a session"));
    assert!(!setup.dir.path().join("outside.jsonl").exists());
}

#[test]
fn machines_and_users_can_be_selected() {
    let setup = Setup::new();
    setup.push();
    setup.push_to(&setup.archive(), "desktop").unwrap();
    let of = |machine: &str| {
        let filter = OriginFilter { machine: Some(machine.to_owned()), user: Some("ada".to_owned()) };
        setup.archive().sessions(&filter).unwrap().len()
    };
    assert_eq!([of("laptop"), of("id-desktop"), of("phone")], [2, 2, 0]);
}

#[test]
fn the_status_says_which_sessions_would_be_lost() {
    let setup = Setup::new();
    setup.push();
    let third = "0b5b3a5e-0000-4000-8000-000000000003";
    let gone = "0b5b3a5e-0000-4000-8000-000000000004";
    setup.write(&format!("projects/-p/{third}.jsonl"), &text("third", 2));
    setup.write(OUTPUT, "longer output");
    setup.write("history.jsonl", &format!("{{\"display\":\"hi\",\"sessionId\":\"{gone}\"}}\n"));
    fs::remove_file(setup.home().join(OTHER)).unwrap();
    let store = Store::open([setup.home()]);
    let status = setup.archive().status(&store, &store.homes()[0], &origin("laptop")).unwrap();
    let ids =
        |sessions: &[crate::LocalSession]| sessions.iter().map(|own| own.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&status.missing), [third]);
    assert_eq!(ids(&status.changed), [SESSION]);
    assert!(status.archived.is_empty());
    assert_eq!(status.archive_only, ["0b5b3a5e-0000-4000-8000-000000000002"]);
    assert_eq!(status.prompts_only, [(gone.to_owned(), 1)]);
}

#[test]
fn addresses_are_parsed_and_printed() {
    for text in ["file:/a/b", "s3://bucket/some/prefix", "gs://bucket/", "az://container/x"] {
        assert_eq!(text.parse::<ArchiveLocation>().unwrap().to_string(), text);
    }
    for text in ["", "file:", "s3://", "ftp://host/x", "/tmp/archive"] {
        assert!(text.parse::<ArchiveLocation>().is_err(), "{text}");
    }
    let error = "s3://key:secret@bucket/x".parse::<ArchiveLocation>().unwrap_err().to_string();
    assert!(!error.contains("secret"), "{error}");
}

#[test]
fn an_encrypted_archive_does_everything_that_another_does() {
    let setup = Setup::encrypted();
    setup.push();
    setup.push_to(&setup.archive(), "desktop").unwrap();
    for lines in 41..70 {
        setup.write(LOG, &text(LOG, lines));
        setup.push();
    }
    assert_eq!(setup.push().copied_bytes, 0);
    for home in setup.fetch().iter().take(1) {
        assert!(home.join(LOG).is_file());
    }
    assert_eq!(setup.archive().verify(&|| ()).unwrap().damaged, [""; 0]);
    assert!(setup.archive().collect_garbage(far_future()).unwrap().joined > 16);
    assert_eq!(setup.archive().verify(&|| ()).unwrap().damaged, [""; 0]);
    fs::remove_file(setup.home().join(LOG)).unwrap();
    let target = RestoreTarget { home: Home::new(setup.home()), project: None, force: false };
    setup.archive().restore(SESSION, &OriginFilter::default(), &target).unwrap();
    assert_eq!(fs::read_to_string(setup.home().join(LOG)).unwrap(), text(LOG, 69));
    setup.archive().remove(SESSION).unwrap();
    for home in setup.fetch() {
        assert!(!home.join(LOG).exists());
    }
    assert_eq!(setup.archive().verify(&|| ()).unwrap().damaged, [""; 0]);
}

#[test]
fn names_and_contents_of_an_encrypted_archive_reveal_nothing() {
    let setup = Setup::encrypted();
    setup.push();
    let plain = Setup::new();
    plain.push();
    let names = |setup: &Setup| {
        let files = files_below(&setup.dir.path().join("archive"));
        files.into_iter().map(|(name, _)| name).filter(|name| name.starts_with(SEGMENTS)).collect::<Vec<_>>()
    };
    // The same content has another name in every archive.
    let other = Setup::encrypted();
    other.push();
    assert!(names(&setup)[0].strip_suffix(".age") != Some(&names(&plain)[0]));
    assert_ne!(names(&setup), names(&other));
    let key = fs::read_to_string(setup.dir.path().join("key")).unwrap();
    let secret = key.lines().last().unwrap();
    for (name, content) in files_below(&setup.dir.path().join("archive")) {
        assert!(name == "format" || name.ends_with(".age"), "{name}");
        assert!(content.starts_with(b"age-encryption.org/v1\n"), "{name}");
        assert!(!String::from_utf8_lossy(&content).contains(secret));
    }
}

#[test]
fn a_missing_or_wrong_key_is_named() {
    let setup = Setup::encrypted();
    setup.push();
    let other = KeyFile::create(&setup.dir.path().join("other")).unwrap();
    assert!(matches!(setup.open(None).err(), Some(ArchiveError::KeyNeeded)));
    assert!(matches!(setup.open(Some(other)).err(), Some(ArchiveError::WrongKey { .. })));
}

#[test]
fn an_archive_is_encrypted_or_not() {
    let mut setup = Setup::new();
    setup.push();
    let key = KeyFile::create(&setup.dir.path().join("key")).unwrap();
    setup.key = Some(key);
    let refused = setup.push_to(&setup.archive(), "laptop");
    assert!(matches!(refused, Err(ArchiveError::NotEncrypted)));
    // One without the object that says so is an earlier one.
    fs::remove_file(setup.dir.path().join("archive/format")).unwrap();
    let refused = setup.push_to(&setup.archive(), "laptop");
    assert!(matches!(refused, Err(ArchiveError::NotEncrypted)));
    // Reading it needs no key, and one does no harm.
    assert_eq!(setup.archive().verify(&|| ()).unwrap().damaged, [""; 0]);
}

#[test]
fn the_first_of_two_pushers_decides_whether_an_archive_is_encrypted() {
    let mut setup = Setup::encrypted();
    let key = setup.key.take();
    let (plain, encrypted) = (setup.open(None).unwrap(), setup.open(key.clone()).unwrap());
    setup.push_to(&encrypted, "laptop").unwrap();
    assert!(matches!(setup.push_to(&plain, "desktop"), Err(ArchiveError::KeyNeeded)));
    setup.key = key;
    assert_eq!(setup.archive().verify(&|| ()).unwrap().damaged, [""; 0]);
    assert_eq!(setup.fetch().len(), 1);
}

#[test]
fn interrupted_pushes_of_an_encrypted_archive_lose_nothing() {
    for from in 1..=12 {
        let setup = Setup::encrypted();
        let mut archive = setup.archive();
        archive.objects_mut().faults.from.store(from, SeqCst);
        let _ = setup.push_to(&archive, "laptop");
        setup.push();
        assert_eq!(files_below(&setup.fetch()[0]), files_below(&setup.home()), "fault {from}");
        assert_eq!(setup.archive().verify(&|| ()).unwrap().damaged, [""; 0], "fault {from}");
    }
}

#[test]
fn a_segment_that_a_push_uses_again_is_young() {
    let setup = Setup::new();
    let mut archive = setup.archive();
    // The segments are written, the manifest is not.
    archive.objects_mut().faults.from.store(2, SeqCst);
    assert!(setup.push_to(&archive, "laptop").is_err());
    fs::remove_dir_all(setup.dir.path().join("archive").join(MANIFESTS)).ok();
    let archive = setup.archive();
    let segment = archive.objects().list(SEGMENTS).unwrap().remove(0).name;
    let file = fs::File::options().write(true).open(setup.dir.path().join("archive").join(&segment)).unwrap();
    file.set_modified(UNIX_EPOCH).unwrap();
    assert_eq!(archive.objects().written(&segment).unwrap(), Some(0));
    setup.push();
    assert!(archive.objects().written(&segment).unwrap() > Some(0));
}

#[test]
fn lost_manifests_are_rebuilt_from_the_segments() {
    for (setup, is_damaged) in [(Setup::new(), false), (Setup::new(), true), (Setup::encrypted(), false)] {
        write_shared_agents(&setup);
        setup.push();
        setup.push_to(&setup.archive(), "desktop").unwrap();
        setup.write(LOG, &text(LOG, 90));
        setup.write(OTHER, &text("rewritten", 9));
        setup.push();
        let expected = setup.archive().manifests(&OriginFilter::default()).unwrap();
        for object in setup.archive().objects().list(MANIFESTS).unwrap() {
            if object.name.contains(&origin("laptop").folder()) {
                let suffix = if setup.key.is_some() { ".age" } else { "" };
                let path = setup.dir.path().join("archive").join(format!("{}{suffix}", object.name));
                match is_damaged {
                    true => fs::write(path, "damaged").unwrap(),
                    false => fs::remove_file(path).unwrap(),
                }
            }
        }
        let report = setup.archive().rebuild().unwrap();
        assert_eq!((report.homes, report.files), (1, 8), "{report:?}");
        assert!(report.incomplete.is_empty() && report.damaged.is_empty(), "{report:?}");
        let rebuilt = setup.archive().manifests(&OriginFilter::default()).unwrap();
        let without_times = |manifests: &[crate::manifest::Manifest]| {
            let versions = manifests.iter().flat_map(crate::manifest::Manifest::versions);
            let facts = versions.map(|(name, version)| {
                let session = version.session.clone();
                (name.to_owned(), version.version, version.digest.clone(), version.size, session)
            });
            facts.collect::<Vec<_>>()
        };
        assert_eq!(without_times(&rebuilt), without_times(&expected));
        assert_eq!(setup.archive().verify(&|| ()).unwrap().damaged, [""; 0]);
        let fetched = setup.fetch();
        assert!(fetched.iter().any(|home| files_below(home) == files_below(&setup.home())));
        assert_eq!(setup.push().copied_bytes, 0);
        // A second time, nothing is left to do.
        assert_eq!(setup.archive().rebuild().unwrap().homes, 0);
    }
}

#[test]
fn a_rebuilt_manifest_names_what_is_missing() {
    let setup = Setup::new();
    setup.push();
    setup.write(LOG, &text(LOG, 90));
    setup.push();
    let archive = setup.archive();
    let manifests = archive.manifests(&OriginFilter::default()).unwrap();
    let pieces = &manifests[0].files[LOG].current.pieces;
    assert_eq!(pieces.len(), 2);
    let first = pieces[0].segment.clone();
    archive.objects().delete(&segment_object(&first)).unwrap();
    fs::remove_dir_all(setup.dir.path().join("archive").join(MANIFESTS)).unwrap();
    let report = archive.rebuild().unwrap();
    assert_eq!(report.incomplete, [LOG]);
    // The next push copies it again.
    setup.push();
    assert_eq!(files_below(&setup.fetch()[0]), files_below(&setup.home()));
}
