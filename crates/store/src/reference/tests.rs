use std::time::Duration;

use super::*;

/// Creates a home with one session per id and title, each modified later than the previous one.
fn home(sessions: &[(&str, &str)]) -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    for (i, (path, title)) in (1..).zip(sessions) {
        let path = dir.path().join("projects").join(format!("{path}.jsonl"));
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        let prompt = r#"{"type":"user","message":{"role":"user","content":"hello"}}"#;
        fs_err::write(
            &path,
            format!("{prompt}\n{{\"type\":\"custom-title\",\"customTitle\":\"{title}\"}}\n"),
        )
        .unwrap();
        let file = fs_err::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(i)).unwrap();
    }
    let store = Store::open([dir.path().to_owned()]);
    (dir, store)
}

/// Returns the id that a needle finds, or a summary of the error.
fn found(store: &Store, needle: &str) -> String {
    describe(store.find(needle))
}

fn describe(found: Result<SessionFile, FindError>) -> String {
    let ids = |list: &[SessionCandidate]| list.iter().map(|it| it.id.clone()).collect::<Vec<_>>().join(" ");
    match found {
        Ok(file) => file.id.into(),
        Err(FindError::NoMatch { similar: near, .. }) => format!("none, near: {}", ids(&near)),
        Err(FindError::Ambiguous { found, .. }) => format!("several: {}", ids(&found)),
        Err(FindError::Empty { .. }) => "no sessions".to_owned(),
        Err(FindError::PartOfTitle { found, .. }) => format!("part: {}", ids(&found)),
        Err(FindError::Folder { path }) => format!("folder: {}", path.display()),
        Err(FindError::Read(error)) => panic!("{error}"),
    }
}

#[test]
fn a_session_is_found_by_id_prefix_and_title() {
    let (_dir, store) = home(&[
        ("-p/3f91c2aa", "Fix the flaky test"),
        ("-p/3f9e0711", "Release notes"),
        ("-q/abc00000", "Add search"),
        ("-q/abd00000", "3f9"),
        ("-q/abe00000", "Add export"),
        ("-q/add00000", "add"),
    ]);
    for (needle, expected) in [
        ("3f91c2aa", "3f91c2aa"),
        ("3F91C2AA", "3f91c2aa"),
        ("3f91", "3f91c2aa"),
        (" abc ", "abc00000"),
        ("release NOTES", "3f9e0711"),
        ("flaky", "3f91c2aa"),
        ("3f9", "abd00000"),
        ("add", "add00000"),
        ("ab", "several: abe00000 abd00000 abc00000"),
        ("ex", "abe00000"),
        ("es", "several: 3f9e0711 3f91c2aa"),
        ("last", "add00000"),
        ("3f91c3", "none, near: 3f91c2aa"),
        ("flakey", "none, near: 3f91c2aa"),
        ("relese notes", "none, near: 3f9e0711"),
        ("nothing like it", "none, near: "),
        ("", "none, near: "),
    ] {
        assert_eq!(found(&store, needle), expected, "{needle}");
    }
}

#[test]
fn a_session_to_change_is_not_found_by_a_part_of_its_title() {
    let (dir, store) = home(&[("-p/3f91c2aa", "Fix v1.2 of a/b.c"), ("-q/abc00000", "Fix it...")]);
    let path = dir.path().join("projects/-p/3f91c2aa.jsonl");
    for (needle, expected) in [
        ("3f91", "3f91c2aa"),
        ("fix V1.2 of a/b.c", "3f91c2aa"),
        ("last", "abc00000"),
        (path.to_str().unwrap(), "3f91c2aa"),
        ("v1.2", "part: 3f91c2aa"),
        ("fix", "part: abc00000 3f91c2aa"),
        ("of", "part: 3f91c2aa"),
        (".", "folder: ."),
        ("..", "folder: .."),
        ("...", "none, near: "),
    ] {
        assert_eq!(describe(store.find_to_change(needle)), expected, "{needle}");
    }
    // Signs alone are no part of a title for other commands either.
    assert_eq!((found(&store, "."), found(&store, "/")), ("folder: .".to_owned(), "folder: /".to_owned()));
}

#[test]
fn candidates_have_a_title_and_a_time() {
    let (_dir, store) = home(&[("-p/aa1", "One"), ("-p/aa2", "Two")]);
    let Err(error @ FindError::Ambiguous { .. }) = store.find("aa") else { panic!() };
    assert_eq!(error.to_string(), "`aa` matches 2 sessions");
    let FindError::Ambiguous { found, .. } = error else { panic!() };
    assert_eq!(found[0].title.as_deref(), Some("Two"));
    assert_eq!(found[0].last_active, SystemTime::UNIX_EPOCH + Duration::from_secs(2));
    assert_eq!(store.find("zz").unwrap_err().to_string(), "no session matches `zz`");
}

#[test]
fn a_session_is_found_by_path() {
    let (dir, store) = home(&[("-p/aa1", "One"), ("-p/aa2", "and/or")]);
    let folder = dir.path().join("projects/-p");
    fs_err::create_dir_all(folder.join("aa1/subagents")).unwrap();
    fs_err::write(dir.path().join("elsewhere.jsonl"), "").unwrap();
    for (path, id) in [
        (folder.join("aa1.jsonl"), "aa1"),
        (folder.join("aa1"), "aa1"),
        (folder.join("aa1/"), "aa1"),
        (folder.join("aa2"), "aa2"),
        (dir.path().join("elsewhere"), "elsewhere"),
    ] {
        assert_eq!(found(&store, path.to_str().unwrap()), id);
    }
    assert_eq!(found(&store, "and/or"), "aa2", "a title may look like a path");
    assert_eq!(store.find("aa1").unwrap(), store.find(folder.join("aa1").to_str().unwrap()).unwrap());
    assert!(found(&store, folder.join("nope.jsonl").to_str().unwrap()).starts_with("none"));
    assert!(found(&store, folder.to_str().unwrap()).starts_with("folder"));
}

#[test]
fn the_newest_of_two_files_with_one_id_is_found() {
    let (_dir, store) = home(&[("-p/same", "Old"), ("-q/same", "New"), ("-r/other", "x")]);
    for needle in ["same", "sa", "new"] {
        assert_eq!(store.find(needle).unwrap().folder.as_deref(), Some("-q"), "{needle}");
    }
}

#[test]
fn last_is_always_a_conversation() {
    let (dir, store) = home(&[("-p/talk", "x")]);
    fs_err::write(dir.path().join("projects/-p/empty.jsonl"), "{\"type\":\"mode\"}\n").unwrap();
    let side = "{\"isSidechain\":true,\"type\":\"user\",\"message\":{\"content\":\"x\"}}\n";
    fs_err::write(dir.path().join("projects/-p/side.jsonl"), side).unwrap();
    assert_eq!(found(&store, "last"), "talk");
    assert_eq!(found(&store, "empty"), "empty", "but it has an id");
    assert!(found(&store, "side").starts_with("none"));
    assert!(found(&Store::open([]), "last") == "no sessions");
}

#[test]
fn distances() {
    for (a, b, expected) in [("", "", 0), ("abc", "", 3), ("kitten", "sitting", 3), ("flakey", "flaky", 1)] {
        assert_eq!((distance(a, b), distance(b, a)), (expected, expected));
    }
}

#[test]
fn an_untrusted_id_finds_only_sessions_of_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let path = dir.path().join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    };
    put("home/projects/-p/one.jsonl", "{\"type\":\"user\"}\n");
    put("home/projects/-p/side.jsonl", "{\"type\":\"user\",\"isSidechain\":true}\n");
    put("home/history.jsonl", "{}\n");
    put("outside.jsonl", "{}\n");
    let store = Store::open([dir.path().join("home")]);
    assert_eq!(store.session("one").unwrap().id, "one");
    let outside = dir.path().join("outside");
    for id in [
        "",
        "on",
        "side",
        "last",
        "../one",
        "../../history",
        "history",
        "one.jsonl",
        outside.to_str().unwrap(),
    ] {
        assert_eq!(store.session(id), None, "{id}");
    }
}

#[test]
fn untrusted_text_names_sessions_but_no_paths() {
    let (dir, store) = home(&[("-p/3f91c2aa", "Fix the flaky test"), ("-q/abc00000", "Add search")]);
    let id = |needle: &str| store.find_named(needle).map(|file| file.id.to_string()).ok();
    assert_eq!(id("3f9").as_deref(), Some("3f91c2aa"));
    assert_eq!(id("add SEARCH").as_deref(), Some("abc00000"));
    let path = dir.path().join("projects/-p/3f91c2aa.jsonl");
    assert!(store.find(path.to_str().unwrap()).is_ok());
    assert_eq!(id(path.to_str().unwrap()), None);
    assert!(id("last").is_some());
}
