use std::time::{Duration, UNIX_EPOCH};

use super::*;
use crate::testing::Fixture;

fn with_files() -> Fixture {
    let fixture = Fixture::new();
    let files: &[(&str, &[u8])] = &[
        ("src/a.py", b"import os\nprint('needle')\n"),
        ("src/b.py", b"needle = 1\nNEEDLE = 2\nneedle\n"),
        ("doc/c.md", b"no match\n"),
        (".hidden/h.txt", b"needle\n"),
        (".gitignore", b"ignored/\n"),
        ("ignored/i.txt", b"needle\n"),
        (".git/config", b"needle\n"),
        ("bin.dat", b"needle\0\n"),
        ("crlf.txt", b"needle\r\nend\r\n"),
    ];
    for (age, (name, content)) in files.iter().enumerate() {
        let path = fixture.put(name, content);
        let time = UNIX_EPOCH + Duration::from_secs(1_000 + age as u64);
        std::fs::File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
    }
    fixture
}

fn grep(fixture: &Fixture, rest: &str) -> String {
    fixture.text("Grep", &format!("{{{rest}}}"))
}

/// Sorts the lines, because the order of files in a folder is up to the file system.
fn sorted(text: &str) -> String {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

#[test]
fn files_that_must_not_be_read_are_not_searched() {
    let fixture = with_files();
    fixture.put("src/denied.txt", b"needle\n");
    assert!(!grep(&fixture, r#""pattern": "needle""#).contains("denied"));
    assert_eq!(grep(&fixture, r#""pattern": "needle", "path": "src/denied.txt""#), "No files found");
    let found = fixture.text("Glob", r#"{"pattern": "**/*.txt"}"#);
    assert!(found.contains("crlf.txt") && !found.contains("denied"), "{found}");
}

#[test]
fn files_are_listed_newest_first() {
    let fixture = with_files();
    assert_eq!(
        grep(&fixture, r#""pattern": "needle""#),
        "Found 4 files\ncrlf.txt\n.hidden/h.txt\nsrc/b.py\nsrc/a.py"
    );
    assert_eq!(
        fixture.record("Grep", r#"{"pattern": "no match"}"#),
        r#"{"mode":"files_with_matches","filenames":["doc/c.md"],"numFiles":1}"#
    );
    assert_eq!(grep(&fixture, r#""pattern": "zzz""#), "No files found");
    assert_eq!(
        grep(&fixture, r#""pattern": "needle", "head_limit": 2, "offset": 1"#),
        "Found 2 files limit: 2, offset: 1\n.hidden/h.txt\nsrc/b.py"
    );
}

#[test]
fn lines_of_several_files_have_relative_paths() {
    let fixture = with_files();
    assert_eq!(
        sorted(&grep(&fixture, r#""pattern": "needle", "output_mode": "content", "path": "src""#)),
        "src/a.py:2:print('needle')\nsrc/b.py:1:needle = 1\nsrc/b.py:3:needle"
    );
    assert_eq!(
        sorted(&grep(
            &fixture,
            r#""pattern": "needle", "output_mode": "content", "path": "src", "-o": true, "-n": false"#
        )),
        "src/a.py:needle\nsrc/b.py:needle\nsrc/b.py:needle"
    );
}

#[test]
fn context_lines_keep_absolute_paths() {
    let fixture = with_files();
    assert_eq!(
        grep(&fixture, r#""pattern": "NEEDLE", "output_mode": "content", "path": "$CWD/src", "-C": 1"#),
        "$CWD/src/b.py-1-needle = 1\nsrc/b.py:2:NEEDLE = 2\n$CWD/src/b.py-3-needle"
    );
}

#[test]
fn lines_of_one_file_have_no_path() {
    let fixture = with_files();
    let record = fixture.record(
        "Grep",
        r#"{"pattern": "needle", "output_mode": "content", "path": "src/b.py", "head_limit": 1}"#,
    );
    assert_eq!(
        record,
        r#"{"mode":"content","numFiles":0,"filenames":[],"content":"1:needle = 1","numLines":1,"appliedLimit":1}"#
    );
    for (rest, expected) in [
        (r#""-i": true, "-n": false"#, "needle = 1\nNEEDLE = 2\nneedle"),
        (r#""head_limit": 1"#, "1:needle = 1\n\n[Showing results with pagination = limit: 1]"),
        (r#""head_limit": 2"#, "1:needle = 1\n3:needle"),
        (r#""offset": 500"#, "No matches found\n\n[Showing results with pagination = offset: 500]"),
        (r#""-A": 1"#, "1:needle = 1\n2-NEEDLE = 2\n3:needle"),
        (r#""-A": -1"#, "No matches found"),
    ] {
        let input = format!(r#""pattern": "needle", "output_mode": "content", "path": "src/b.py", {rest}"#);
        assert_eq!(grep(&fixture, &input), expected, "{rest}");
    }
}

#[test]
fn separate_groups_of_lines_are_separated() {
    let fixture = Fixture::new();
    fixture.put("x.txt", "needle\n1\n2\n3\nneedle\n");
    assert_eq!(
        grep(&fixture, r#""pattern": "needle", "output_mode": "content", "path": "x.txt", "context": 1"#),
        "1:needle\n2-1\n--\n4-3\n5:needle"
    );
}

#[test]
fn matching_lines_are_counted() {
    let fixture = with_files();
    assert_eq!(
        grep(&fixture, r#""pattern": "needle", "output_mode": "count", "path": "src/b.py""#),
        "src/b.py:2\n\nFound 2 total occurrences across 1 file."
    );
    assert_eq!(
        grep(&fixture, r#""pattern": "zzz", "output_mode": "count""#),
        "No matches found\n\nFound 0 total occurrences across 0 files."
    );
    let text = grep(&fixture, r#""pattern": "needle", "output_mode": "count", "head_limit": 1"#);
    assert!(text.ends_with(" across 1 file. with pagination = limit: 1"), "{text}");
}

#[test]
fn patterns_span_lines_on_request() {
    let fixture = Fixture::new();
    fixture.put("x.js", "foo(\n  bar\n);\n");
    assert_eq!(
        grep(&fixture, r#""pattern": "foo\\(.*\\);", "multiline": true, "output_mode": "content""#),
        "x.js:1:foo(\nx.js:2:  bar\nx.js:3:);"
    );
    assert_eq!(grep(&fixture, r#""pattern": "foo\\(\\n", "output_mode": "content""#), "No matches found");
}

#[test]
fn files_are_selected_by_glob_and_type() {
    let fixture = with_files();
    for (rest, expected) in [
        (r#""glob": "*.{py,js}""#, "Found 2 files\nsrc/b.py\nsrc/a.py"),
        (r#""glob": "*.txt *.js""#, "Found 2 files\ncrlf.txt\n.hidden/h.txt"),
        (r#""glob": "!*.py", "path": "src""#, "No files found"),
        (r#""type": "py", "glob": "a*""#, "Found 1 file\nsrc/a.py"),
        (r#""type": "nosuch""#, "No files found"),
        (r#""path": "ignored""#, "Found 1 file\nignored/i.txt"),
    ] {
        assert_eq!(grep(&fixture, &format!(r#""pattern": "needle", {rest}"#)), expected, "{rest}");
    }
}

#[test]
fn matches_in_a_binary_file_that_is_given_are_not_shown() {
    let fixture = Fixture::new();
    fixture.put("bin", b"abc\0needle\n");
    assert_eq!(
        grep(&fixture, r#""pattern": "needle", "path": "bin", "output_mode": "content""#),
        "binary file matches (found \"\\0\" byte around offset 3)"
    );
    assert_eq!(grep(&fixture, r#""pattern": "needle""#), "No files found");
}

#[test]
fn matches_over_several_lines_count_once() {
    let fixture = Fixture::new();
    fixture.put("a.rs", "fn main() {\n    1;\n}\n");
    assert_eq!(
        grep(&fixture, r#""pattern": "fn[\\s\\S]*?\\}", "multiline": true, "output_mode": "count""#),
        "a.rs:1\n\nFound 1 total occurrence across 1 file."
    );
}

#[test]
fn empty_matches_are_shown() {
    let fixture = Fixture::new();
    fixture.put("w.txt", "ab\n");
    assert_eq!(
        grep(&fixture, r#""pattern": "x*", "path": "w.txt", "output_mode": "content", "-o": true"#),
        "1:\n1:\n1:"
    );
}

#[test]
fn bad_patterns_find_nothing() {
    let fixture = with_files();
    assert_eq!(grep(&fixture, r#""pattern": "(unclosed""#), "No files found");
    assert_eq!(grep(&fixture, r#""pattern": "((a{1000}){1000}){1000}""#), "No files found");
    assert_eq!(
        grep(&fixture, r#""pattern": "x", "path": "nowhere""#),
        "ERR <tool_use_error>Path does not exist: nowhere. Note: your current working directory is $CWD.</tool_use_error>"
    );
}

#[test]
fn long_lines_are_omitted() {
    let fixture = Fixture::new();
    fixture.put("x.txt", format!("needle {}\n", "x".repeat(600)));
    assert_eq!(
        grep(&fixture, r#""pattern": "needle", "output_mode": "content""#),
        "x.txt:1:[Omitted long matching line]"
    );
}

#[test]
fn lines_are_limited_and_large_results_saved() {
    let fixture = Fixture::new();
    fixture.put("x.txt", "needle in a haystack with some more text to make it long\n".repeat(600));
    let text = grep(&fixture, r#""pattern": "needle", "output_mode": "content""#);
    assert!(text.ends_with("\n\n[Showing results with pagination = limit: 250]"), "{text}");
    assert_eq!(text.lines().count(), 252);
    let text = grep(&fixture, r#""pattern": "needle", "output_mode": "content", "head_limit": 0"#);
    let saved = std::fs::read_to_string(fixture.outside("tool-results/toolu_1.txt")).unwrap();
    assert_eq!(saved.lines().count(), 600);
    let start = format!(
        "<persisted-output>\nOutput too large ({}). Full output saved to: $ROOT/tool-results/toolu_1.txt\n\nPreview",
        crate::limits::show_size(saved.len() as u64)
    );
    assert!(text.starts_with(&start), "{text}");
}

#[test]
fn results_have_the_same_order_in_every_run() {
    let fixture = Fixture::new();
    (0..200).for_each(|n| drop(fixture.put(&format!("d{}/f{n}.txt", n % 7), "needle\n")));
    let count = grep(&fixture, r#""pattern": "needle", "output_mode": "count""#);
    assert_eq!(count.lines().count(), 202);
    let lines = grep(&fixture, r#""pattern": "needle", "output_mode": "content", "-n": false"#);
    let names = |text: &str| -> Vec<String> {
        text.lines().filter_map(|line| line.split_once(".txt:")).map(|(name, _)| name.to_owned()).collect()
    };
    assert_eq!(names(&lines), names(&count));
}

#[test]
fn globs_are_split_outside_of_braces() {
    assert_eq!(split_globs("*.{a,b} *.c,*.d"), ["*.{a,b}", "*.c", "*.d"]);
}

#[test]
fn a_cancelled_search_ends() {
    let fixture = with_files();
    fixture.cancel.cancel();
    assert_eq!(grep(&fixture, r#""pattern": "needle""#), "ERR Interrupted by user");
}
