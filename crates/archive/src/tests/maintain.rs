//! Tests of checking, repairing, joining and removing.

use std::fs;
use std::sync::atomic::Ordering::SeqCst;
use std::time::UNIX_EPOCH;

use crate::manifest::MANIFESTS;
use crate::objects::Objects;
use crate::segment::SEGMENTS;
use crate::segment::segment_object;
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
