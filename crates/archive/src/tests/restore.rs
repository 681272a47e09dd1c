//! Tests of restoring sessions.

use std::fs;

use threadline_store::Home;

use crate::tests::Setup;
use crate::tests::source_home::{AGENT, BACKUP, LOG, SESSION, files_below, names_below, text};
use crate::tests::write_shared_agents;
use crate::{ArchiveError, OriginFilter, PrivacyLevel, RestoreTarget};

#[test]
fn deleted_sessions_stay_in_the_archive_and_come_back() {
    let setup = Setup::new();
    setup.push();
    let before = files_below(&setup.home());
    fs::remove_dir_all(setup.home().join("projects/-p")).unwrap();
    fs::remove_dir_all(setup.home().join("file-history")).unwrap();
    setup.push();
    let report = setup.restore_from(&setup.archive(), false).unwrap();
    assert_eq!((report.written.len(), report.present.len()), (4, 0));
    assert_eq!(files_below(&setup.home()), before);
    // A second time, nothing is left to do.
    let report = setup.restore_from(&setup.archive(), false).unwrap();
    assert_eq!((report.written.len(), report.present.len(), report.receipt), (0, 4, None));
}

#[test]
fn sub_agents_next_to_the_log_come_back_with_their_session() {
    for level in [PrivacyLevel::Full, PrivacyLevel::Redacted, PrivacyLevel::Metadata] {
        let mut setup = Setup::new();
        setup.level = level;
        write_shared_agents(&setup);
        setup.push();
        fs::remove_dir_all(setup.home().join("projects/-p")).unwrap();
        setup.restore_from(&setup.archive(), false).unwrap();
        let exists = |name: &str| setup.home().join(format!("projects/-p/agent-{name}.jsonl")).exists();
        assert_eq!([exists("1"), exists("2")], [true, false], "{level}");
    }
}

#[test]
fn a_file_that_differs_is_not_replaced_unless_asked() {
    let setup = Setup::new();
    setup.push();
    setup.write(LOG, "mine\n");
    fs::remove_file(setup.home().join(BACKUP)).unwrap();
    let before = files_below(&setup.home());
    let restore = |force| setup.restore_from(&setup.archive(), force);
    assert!(matches!(restore(false), Err(ArchiveError::Differs { .. })));
    assert_eq!(files_below(&setup.home()), before);
    let report = restore(true).unwrap();
    assert_eq!(report.written.len(), 2);
    assert_eq!(fs::read_to_string(setup.home().join(LOG)).unwrap(), text(LOG, 40));
    // The replaced file is in the receipt.
    setup.app().undo_operation(&report.receipt.unwrap().id, false).unwrap();
    assert_eq!(files_below(&setup.home()), before);
    assert_eq!(fs::read_dir(setup.dir.path().join("cache")).unwrap().count(), 0);
}

/// A person's file with the name that a partial copy once had, and a link of that name.
#[test]
#[cfg(unix)]
fn files_and_links_beside_the_log_are_not_touched() {
    let setup = Setup::new();
    setup.push();
    fs::remove_file(setup.home().join(LOG)).unwrap();
    fs::remove_file(setup.home().join(AGENT)).unwrap();
    let precious = setup.dir.path().join("precious");
    fs::write(&precious, "mine").unwrap();
    setup.write(&format!("{LOG}.part"), "notes");
    std::os::unix::fs::symlink(&precious, setup.home().join(format!("{AGENT}.part"))).unwrap();
    setup.restore_from(&setup.archive(), false).unwrap();
    assert_eq!(fs::read_to_string(setup.home().join(format!("{LOG}.part"))).unwrap(), "notes");
    assert_eq!(fs::read_to_string(&precious).unwrap(), "mine");
    assert!(!setup.home().join(AGENT).is_symlink());
    assert_eq!(fs::read_to_string(setup.home().join(AGENT)).unwrap(), text(AGENT, 10));
}

#[test]
#[cfg(unix)]
fn a_link_out_of_the_home_is_not_written_through() {
    let setup = Setup::new();
    setup.push();
    let elsewhere = setup.dir.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::remove_dir_all(setup.home().join("projects/-p")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, setup.home().join("projects/-p")).unwrap();
    for force in [false, true] {
        let error = setup.restore_from(&setup.archive(), force).unwrap_err();
        assert!(error.to_string().contains("outside the home"), "{error}");
    }
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    // The same for a link in place of a file.
    fs::remove_file(setup.home().join("projects/-p")).unwrap();
    setup.restore_from(&setup.archive(), false).unwrap();
    fs::rename(setup.home().join(LOG), elsewhere.join("log")).unwrap();
    std::os::unix::fs::symlink(elsewhere.join("log"), setup.home().join(LOG)).unwrap();
    let error = setup.restore_from(&setup.archive(), true).unwrap_err();
    assert!(matches!(error, ArchiveError::NotRegular { .. }), "{error}");
}

#[test]
fn a_session_can_be_restored_into_another_project() {
    let setup = Setup::new();
    setup.push();
    let home = setup.dir.path().join("elsewhere");
    let target = RestoreTarget { home: Home::new(&home), project: Some("/srv/new.app".into()), force: false };
    let app = setup.app_at(home.clone());
    setup.archive().restore(&SESSION[..36], &OriginFilter::default(), &target, &app, &[]).unwrap();
    let names = names_below(&home);
    assert!(names.contains(&format!("projects/-srv-new-app/{SESSION}.jsonl")), "{names:?}");
    assert_eq!(names.len(), 4);
}
