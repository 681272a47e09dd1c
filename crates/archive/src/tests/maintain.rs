//! Tests of checking, repairing, joining and removing.

use std::fs;
use std::sync::atomic::Ordering::SeqCst;
use std::time::UNIX_EPOCH;

use crate::manifest::MANIFESTS;
use crate::objects::Objects;
use crate::segment::SEGMENTS;
use crate::segment::{segment_digest, segment_object};
use crate::tests::Setup;
use crate::tests::source_home::{LOG, OTHER, SESSION, far_future, files_below, names_below, origin, text};
use crate::tests::write_shared_agents;
use crate::{ArchiveError, OriginFilter};

#[test]
fn a_flipped_bit_is_found() {
    let setup = Setup::new();
    setup.push();
    for prefix in [SEGMENTS, MANIFESTS] {
        let object = Objects::in_folder(&setup.folder(), false).unwrap().list(prefix).unwrap();
        let path = setup.folder().join(&object[0].name);
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
        let names = names_below(&home);
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
        setup.write(LOG, text(LOG, lines));
        setup.push();
    }
    let archive = setup.archive();
    let n_before = archive.objects().list(SEGMENTS).unwrap().len();
    let report = archive.collect_garbage(far_future()).unwrap();
    assert!(report.joined > 30 && report.deleted >= report.joined, "{report:?}");
    assert!(archive.objects().list(SEGMENTS).unwrap().len() < n_before / 4);
    assert_eq!(archive.verify(&|| ()).unwrap().damaged, [""; 0]);
    assert_eq!(files_below(&setup.fetch()[0]), files_below(&setup.home()));
    setup.write(LOG, text(LOG, 50));
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
fn a_segment_that_a_push_uses_again_is_young() {
    let setup = Setup::new();
    let mut archive = setup.archive();
    // The segments are written, the manifest is not.
    archive.objects_mut().faults.from.store(2, SeqCst);
    assert!(setup.push_to(&archive, "laptop").is_err());
    fs::remove_dir_all(setup.folder().join(MANIFESTS)).ok();
    let archive = setup.archive();
    let segment = archive.objects().list(SEGMENTS).unwrap().remove(0).name;
    let file = fs::File::options().write(true).open(setup.folder().join(&segment)).unwrap();
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
        setup.write(LOG, text(LOG, 90));
        setup.write(OTHER, text("rewritten", 9));
        setup.push();
        let expected = setup.archive().manifests(&OriginFilter::default()).unwrap();
        for object in setup.archive().objects().list(MANIFESTS).unwrap() {
            if object.name.contains(&origin("laptop").folder()) {
                let suffix = if setup.key.is_some() { ".age" } else { "" };
                let path = setup.folder().join(format!("{}{suffix}", object.name));
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
    setup.write(LOG, text(LOG, 90));
    setup.push();
    let archive = setup.archive();
    let manifests = archive.manifests(&OriginFilter::default()).unwrap();
    let pieces = &manifests[0].files[LOG].current.pieces;
    assert_eq!(pieces.len(), 2);
    let first = pieces[0].segment.clone();
    archive.objects().delete(&segment_object(&first)).unwrap();
    fs::remove_dir_all(setup.folder().join(MANIFESTS)).unwrap();
    let report = archive.rebuild().unwrap();
    assert_eq!(report.incomplete, [LOG]);
    // The next push copies it again.
    setup.push();
    assert_eq!(files_below(&setup.fetch()[0]), files_below(&setup.home()));
}

#[test]
fn sub_agents_next_to_the_log_are_removed_with_their_session() {
    let setup = Setup::new();
    write_shared_agents(&setup);
    setup.push();
    setup.archive().remove(SESSION).unwrap();
    assert_eq!(setup.push().copied_bytes, 0);
    let names = names_below(&setup.fetch()[0]);
    assert_eq!(names, ["history.jsonl", "projects/-p/agent-2.jsonl", OTHER]);
}

/// Pushes a home, then a longer log and a new session. Returns the names of the files that the last manifest
/// added.
fn push_twice(setup: &Setup) -> Vec<&'static str> {
    setup.push();
    setup.write(LOG, text(LOG, 90));
    setup.write(NEW, text(NEW, 7));
    setup.push();
    // Claude Code has deleted them.
    for name in [LOG, NEW] {
        fs::remove_file(setup.home().join(name)).unwrap();
    }
    vec![LOG, NEW]
}

const NEW: &str = "projects/-q/0b5b3a5e-0000-4000-8000-000000000003.jsonl";

#[test]
fn nothing_is_deleted_that_only_a_lost_manifest_contained() {
    for setup in [Setup::new(), Setup::encrypted()] {
        push_twice(&setup);
        let expected = setup.archive().manifests(&OriginFilter::default()).unwrap();
        fs::remove_dir_all(setup.folder().join(MANIFESTS)).unwrap();
        let archive = setup.archive();
        assert_eq!(archive.collect_garbage(far_future()).unwrap().deleted, 0);
        let report = archive.rebuild().unwrap();
        assert_eq!((report.homes, report.files), (1, 7), "{report:?}");
        let rebuilt = archive.manifests(&OriginFilter::default()).unwrap();
        for (name, version) in expected[0].versions() {
            assert_eq!(rebuilt[0].version(name, version.version).unwrap().digest, version.digest, "{name}");
        }
    }
}

#[test]
fn files_of_a_lost_newest_manifest_are_kept_and_merged() {
    // A push before the manifest is rebuilt changes nothing.
    for (setup, pushes_again) in [(Setup::new(), false), (Setup::encrypted(), false), (Setup::new(), true)] {
        let last = push_twice(&setup);
        let archive = setup.archive();
        let expected = archive.manifests(&OriginFilter::default()).unwrap().remove(0);
        let newest = archive.objects().list(MANIFESTS).unwrap().pop().unwrap();
        archive.objects().delete(&newest.name).unwrap();
        if pushes_again {
            setup.write("projects/-q/0b5b3a5e-0000-4000-8000-000000000004.jsonl", text("later", 3));
            setup.push();
        }
        let lost: Vec<String> = last.iter().map(|name| format!("laptop:/h/{name}")).collect();
        assert_eq!(archive.verify(&|| ()).unwrap().unlisted, lost);
        let garbage = archive.collect_garbage(far_future()).unwrap();
        assert_eq!((garbage.deleted, garbage.kept), (0, 1));
        let report = archive.rebuild().unwrap();
        assert_eq!((report.homes, report.files), (1, 7 + usize::from(pushes_again)), "{report:?}");
        assert!(report.incomplete.is_empty() && report.damaged.is_empty(), "{report:?}");
        let merged = archive.manifests(&OriginFilter::default()).unwrap().remove(0);
        for (name, version) in expected.versions() {
            assert_eq!(merged.version(name, version.version).unwrap().digest, version.digest, "{name}");
        }
        let report = archive.verify(&|| ()).unwrap();
        assert_eq!((report.damaged, report.unlisted), (vec![], vec![]));
        assert_eq!(archive.rebuild().unwrap().homes, 0);
        assert_eq!(archive.collect_garbage(far_future()).unwrap().kept, 0);
    }
}

#[test]
fn a_push_after_the_loss_of_all_manifests_hides_no_deleted_session() {
    let setup = Setup::new();
    let deleted = push_twice(&setup);
    let archive = setup.archive();
    // A rewritten file. Its versions are numbered from the start.
    setup.write(OTHER, text("rewritten", 9));
    setup.push();
    let expected = archive.manifests(&OriginFilter::default()).unwrap().remove(0);
    fs::remove_dir_all(setup.folder().join(MANIFESTS)).unwrap();
    setup.write(OTHER, text("rewritten", 12));
    setup.push();
    archive.collect_garbage(far_future()).unwrap();
    archive.rebuild().unwrap();
    let merged = archive.manifests(&OriginFilter::default()).unwrap().remove(0);
    for name in deleted {
        assert_eq!(merged.files[name].current.digest, expected.files[name].current.digest, "{name}");
    }
    let current = &merged.files[OTHER].current;
    assert_eq!(current.size as usize, text("rewritten", 12).len());
    assert_eq!(archive.verify(&|| ()).unwrap().unlisted, [""; 0]);
}

#[test]
fn erased_sessions_do_not_come_back_from_segments() {
    let setup = Setup::new();
    write_shared_agents(&setup);
    setup.push();
    let archive = setup.archive();
    let before = setup.dir.path().join("before");
    for (name, bytes) in files_below(&setup.folder().join(SEGMENTS)) {
        let path = before.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    archive.remove(SESSION).unwrap();
    // The removal was interrupted before it deleted the segments.
    for (name, bytes) in files_below(&before) {
        fs::write(setup.folder().join(SEGMENTS).join(name), bytes).unwrap();
    }
    assert_eq!(archive.verify(&|| ()).unwrap().unlisted, [""; 0]);
    assert_eq!(archive.rebuild().unwrap().homes, 0);
    let garbage = archive.collect_garbage(far_future()).unwrap();
    assert!(garbage.deleted > 0 && garbage.kept == 0, "{garbage:?}");
}

#[test]
fn a_session_is_erased_only_if_no_copy_is_left() {
    let setup = Setup::new();
    setup.push();
    setup.write(LOG, text("another log", 30));
    setup.push_to(&setup.archive(), "desktop").unwrap();
    let archive = setup.archive();
    fs::remove_dir_all(setup.folder().join(MANIFESTS).join(origin("laptop").folder())).unwrap();
    assert!(matches!(archive.remove(SESSION), Err(ArchiveError::Unlisted { .. })));
    archive.rebuild().unwrap();
    archive.remove(SESSION).unwrap();
    for object in archive.objects().list(SEGMENTS).unwrap() {
        let segment = archive.segment(segment_digest(&object.name).unwrap()).unwrap();
        assert!(segment.table.pieces.iter().all(|piece| !piece.file.contains(SESSION)));
    }
}
