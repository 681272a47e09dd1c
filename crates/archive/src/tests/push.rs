//! Tests of pushing, privacy levels and the status.

use std::fs;
use std::sync::atomic::Ordering::SeqCst;
use std::time::UNIX_EPOCH;

use threadline_app::SessionSource as _;
use threadline_app::SourceSelection;
use threadline_store::Store;

use crate::tests::Setup;
use crate::tests::source_home::{LOG, OTHER, OUTPUT, SESSION, SourceHome, files_below, origin, text};
use crate::{ArchiveLocation, OriginFilter, PrivacyLevel};

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
    let setup = Setup { home: SourceHome::empty(), key: None };
    let n_logs = setup.add_logs();
    assert_eq!(setup.push().new_files, n_logs);
    let report = setup.push();
    assert_eq!((report.unchanged_files, report.copied_bytes), (n_logs, 0));
    assert!(files_below(&setup.fetch()[0]) == files_below(&setup.home()));
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
    setup.write(OTHER, format!("{}{{\"type\":\"us", text(OTHER, 20)));
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
fn interrupted_pushes_end_like_an_uninterrupted_one() {
    for from in 1..=100 {
        let setup = Setup::new();
        if from % 3 == 0 {
            setup.push();
            setup.write(LOG, text(LOG, 90));
            setup.write(OTHER, text("changed", 9));
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
fn redacted_copies_contain_no_secret_of_any_file_of_the_session() {
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let mut setup = Setup::new();
    setup.level = PrivacyLevel::Redacted;
    let line = format!(
        "{{\"type\":\"user\",\"uuid\":\"1\",\"message\":{{\"role\":\"user\",\"content\":\"use {token}\"}}}}\n"
    );
    setup.write(LOG, &line);
    // Without its prefix, the text is not recognised by itself.
    setup.write(OUTPUT, format!("the token is {token} and nothing else"));
    setup.push();
    for (name, content) in files_below(&setup.fetch()[0]) {
        assert!(!String::from_utf8_lossy(&content).contains(&token), "{name}");
    }
    setup.write(LOG, format!("{line}{line}"));
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
    setup.write(LOG, text("rewritten", 3));
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
    let mode = fs::metadata(setup.folder()).unwrap().permissions().mode();
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
    setup.write(&format!("projects/-p/{third}.jsonl"), text("third", 2));
    setup.write(OUTPUT, "longer output");
    setup.write("history.jsonl", format!("{{\"display\":\"hi\",\"sessionId\":\"{gone}\"}}\n"));
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
fn a_session_is_archived_right_after_it_was_written() {
    for level in [PrivacyLevel::Full, PrivacyLevel::Redacted, PrivacyLevel::Metadata] {
        let mut setup = Setup::new();
        setup.level = level;
        let store = Store::open([setup.home()]);
        let archive = setup.archive();
        let counts = || {
            let status = archive.status(&store, &store.homes()[0], &origin("laptop")).unwrap();
            [status.archived.len(), status.changed.len(), status.missing.len()]
        };
        // Nothing is old enough to be known by its times.
        setup.push_at(&archive, "laptop", UNIX_EPOCH).unwrap();
        assert_eq!(counts(), [2, 0, 0], "{level:?}");
        setup.write(LOG, text(LOG, 41));
        let file = fs::File::options().write(true).open(setup.home().join(LOG)).unwrap();
        file.set_modified(UNIX_EPOCH).unwrap();
        assert_eq!(counts(), [1, 1, 0], "{level:?}");
    }
}

#[test]
fn a_file_with_the_size_of_its_copy_is_compared_by_its_content() {
    let setup = Setup::new();
    let archive = setup.archive();
    let modified = fs::metadata(setup.home().join(LOG)).unwrap().modified().unwrap();
    setup.push_at(&archive, "laptop", UNIX_EPOCH).unwrap();
    setup.write(LOG, text(LOG, 40).replace("word7 ", "WORD7 "));
    let file = fs::File::options().write(true).open(setup.home().join(LOG)).unwrap();
    file.set_modified(modified).unwrap();
    let store = Store::open([setup.home()]);
    let status = archive.status(&store, &store.homes()[0], &origin("laptop")).unwrap();
    assert_eq!((status.changed.len(), status.archived.len()), (1, 1));
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
fn a_wrong_clock_loses_nothing() {
    let setup = Setup::new();
    setup.check_wrong_clocks(&setup.archive());
}
