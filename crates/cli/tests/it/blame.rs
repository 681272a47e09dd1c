//! `blame`: the lines of a file with the turns that wrote them, and the edits of a file.

use std::fs;
use std::path::Path;

use insta::assert_snapshot;
use threadline_testkit::TestHome;

use crate::run::{RunOutput, at_home};

/// Creates a file that a session wrote in two turns, and a person completed.
fn project(home: &TestHome, dir: &Path) {
    let notation = r#"
        u1        user   "write the loom"
        a1 <- u1  reply  m1 tool t1 Write {"file_path":"[dir]/loom.rs","content":"x"}
        r1 <- a1  result t1 "ok" {"type":"create","filePath":"[dir]/loom.rs","content":"fn weave() {\n}\n","originalFile":null}
        u2 <- r1  user   "add the \u001b[31mshuttle\u001b[0m"
        a2 <- u2  reply  m2 tool t2 Edit {"file_path":"[dir]/loom.rs"}
        r2 <- a2  result t2 "ok" {"filePath":"[dir]/loom.rs","oldString":"{\n","newString":"{\n\tshuttle();\n\tbeat(\"key [token]\");\n","originalFile":"fn weave() {\n}\n"}
        "#;
    let dir_text = dir.to_str().unwrap();
    let tokens = threadline_testkit::secrets(1);
    let token = &tokens.iter().find(|secret| secret.kind == "github-token").unwrap().secret;
    home.session_in(dir_text, "loom", &notation.replace("[dir]", dir_text).replace("[token]", token));
    let text = "fn weave() {\n\tshuttle();\n\tbeat(\"key [token]\");\n}\n// by hand \u{1b}[2J\n";
    fs::write(dir.join("loom.rs"), text.replace("[token]", token)).unwrap();
}

fn blame(home: &TestHome, dir: &Path, lines: &str, args: &[&str]) -> RunOutput {
    let file = format!("{}{lines}", dir.join("loom.rs").to_str().unwrap());
    at_home(home, &[&["blame", &*file], args].concat())
}

#[test]
fn lines_are_shown_with_their_turns() {
    let (home, dir) = (TestHome::new(), tempfile::tempdir().unwrap());
    let dir = fs::canonicalize(dir.path()).unwrap();
    project(&home, &dir);
    assert_snapshot!(blame(&home, &dir, "", &["--redact"]), @r#"
    exit: 0
    ----- stdout -----
    cdecefad turn 1    1  fn weave() {
    cdecefad turn 2    2      shuttle();
                       3      beat("key [secret:github-token]");
    cdecefad turn 1    4  }
    outside            5  // by hand ^[[2J

    turn         lines  edited            prompt
    cdecefad#m1      2  2026-01-01 10:00  write the loom
    cdecefad#m4      2  2026-01-01 10:00  add the ^[[31mshuttle^[[0m
    ----- stderr -----
    4 of 5 lines written by sessions; `threadline --home [home] --redact show SESSION#m42` shows a turn
    "#);
    assert_snapshot!(blame(&home, &dir, ":2", &[]), @r"
    exit: 0
    ----- stdout -----
    cdecefad turn 2    2      shuttle();

    turn         lines  edited            prompt
    cdecefad#m4      1  2026-01-01 10:00  add the ^[[31mshuttle^[[0m
    ----- stderr -----
    1 of 1 line written by sessions; `threadline --home [home] show SESSION#m42` shows a turn
    ");
    assert_snapshot!(blame(&home, &dir, "", &["--edits"]), @r"
    exit: 0
    ----- stdout -----
    edited            session      turn  tool   lines  prompt
    2026-01-01 10:00  cdecefad#m2     1  Write     +2  write the loom
    2026-01-01 10:00  cdecefad#m5     2  Edit      +2  add the ^[[31mshuttle^[[0m
    ----- stderr -----
    ");
    assert_snapshot!(blame(&home, &dir, ":9", &[]).to_string().replace(dir.to_str().unwrap(), "[dir]"), @r"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: no line 9: [dir]/loom.rs has 5 lines
    ");
    let missing = blame(&home, &dir, ".txt", &["--edits"]);
    assert_eq!(missing.code, 1);
}

#[test]
fn json_has_one_object_per_line_or_edit() {
    let (home, dir) = (TestHome::new(), tempfile::tempdir().unwrap());
    let dir = fs::canonicalize(dir.path()).unwrap();
    project(&home, &dir);
    let lines = blame(&home, &dir, ":2-5", &["--json"]).json_lines();
    assert_eq!(lines.len(), 4);
    assert_eq!((&lines[0]["line"], &lines[0]["origin"]), (&2.into(), &"edit".into()));
    let edit = &lines[0]["edit"];
    assert_eq!((&edit["turn"], &edit["anchor"], &edit["lines_added"]), (&2.into(), &"m5".into(), &2.into()));
    let link = format!("{}#m5", edit["session"].as_str().unwrap());
    assert_eq!(edit["link"], link.as_str());
    assert_eq!(lines[2]["edit"]["prompt"], "write the loom");
    assert_eq!((&lines[3]["origin"], &lines[3]["edit"]), (&"outside".into(), &().into()));
    let edits = blame(&home, &dir, "", &["--edits", "--json"]).json_lines();
    assert_eq!(
        edits.iter().map(|edit| edit["tool"].as_str().unwrap()).collect::<Vec<_>>(),
        ["Write", "Edit"]
    );
    // The link of a line shows its turn.
    let shown = at_home(&home, &["show", &link]).to_string();
    assert!(shown.contains("── 2 m4") && !shown.contains("── 1 m1"), "{shown}");
}
