//! Tests of restoring sessions.

use std::fs;

use threadline_store::Home;

use crate::tests::Setup;
use crate::tests::source_home::{BACKUP, LOG, SESSION, files_below, names_below, text};
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
    let target = setup.restore_target();
    let report = setup.archive().restore(&SESSION[..36], &OriginFilter::default(), &target).unwrap();
    assert_eq!((report.written.len(), report.present.len()), (4, 0));
    assert_eq!(files_below(&setup.home()), before);
    // A second time, nothing is left to do.
    let report = setup.archive().restore(SESSION, &OriginFilter::default(), &target).unwrap();
    assert_eq!((report.written.len(), report.present.len()), (0, 4));
}

#[test]
fn sub_agents_next_to_the_log_come_back_with_their_session() {
    for level in [PrivacyLevel::Full, PrivacyLevel::Redacted, PrivacyLevel::Metadata] {
        let mut setup = Setup::new();
        setup.level = level;
        write_shared_agents(&setup);
        setup.push();
        fs::remove_dir_all(setup.home().join("projects/-p")).unwrap();
        let target = setup.restore_target();
        setup.archive().restore(SESSION, &OriginFilter::default(), &target).unwrap();
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
    let mut target = setup.restore_target();
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
    let names = names_below(&home);
    assert!(names.contains(&format!("projects/-srv-new-app/{SESSION}.jsonl")), "{names:?}");
    assert_eq!(names.len(), 4);
}
