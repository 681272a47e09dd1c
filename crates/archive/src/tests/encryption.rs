//! Tests of encrypted archives.

use std::fs;
use std::sync::atomic::Ordering::SeqCst;

use crate::segment::SEGMENTS;
use crate::tests::Setup;
use crate::tests::source_home::{LOG, SESSION, far_future, files_below, text};
use crate::{ArchiveError, KeyFile};

#[test]
fn an_encrypted_archive_does_everything_that_another_does() {
    let setup = Setup::encrypted();
    setup.push();
    setup.push_to(&setup.archive(), "desktop").unwrap();
    for lines in 41..70 {
        setup.write(LOG, text(LOG, lines));
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
    setup.restore_from(&setup.archive(), false).unwrap();
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
        let files = files_below(&setup.folder());
        files.into_iter().map(|(name, _)| name).filter(|name| name.starts_with(SEGMENTS)).collect::<Vec<_>>()
    };
    // The same content has another name in every archive.
    let other = Setup::encrypted();
    other.push();
    assert!(names(&setup)[0].strip_suffix(".age") != Some(&names(&plain)[0]));
    assert_ne!(names(&setup), names(&other));
    let key = fs::read_to_string(setup.dir.path().join("key")).unwrap();
    let secret = key.lines().last().unwrap();
    for (name, content) in files_below(&setup.folder()) {
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
    // An archive without the format object is from an earlier version.
    fs::remove_file(setup.folder().join("format")).unwrap();
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
