//! `export`.

use std::fs;
use std::path::Path;

use threadline_testkit::{TestHome, session_uuid};

use crate::run::{RunOutput, at_home};

const TALK: &str = r#"
u1        user   "why is it slow?"
a1 <- u1  reply  m1 text "Let me look."
a2 <- a1  reply  m1 tool t1 Bash {"command":"cargo bench"}
r1 <- a2  result t1 "12345678901234567890"
"#;

fn export(home: &TestHome, args: &[&str]) -> RunOutput {
    at_home(home, &[&["export"], args].concat())
}

fn is_page(text: &str) -> bool {
    text.starts_with("<!doctype html>") && text.ends_with("</html>\n")
}

#[test]
fn html_is_written_to_one_file() {
    let home = TestHome::new();
    home.session("slow", TALK);
    let out = home.root().join("a page.html");
    let run = export(&home, &["html", "last", "-o", out.to_str().unwrap()]);
    assert_eq!((run.code, &*run.out, &*run.err), (0, "", "wrote [home]/a page.html\n"), "{run}");
    let page = fs::read_to_string(&out).unwrap();
    assert!(is_page(&page) && page.contains("why is it slow?") && page.contains("\"raw\":null"));
    let run = export(&home, &["html", "last", "-o", "-"]);
    assert_eq!(run.out, page);
}

#[test]
fn omitted_content_is_not_in_the_file() {
    let home = TestHome::new();
    home.session("slow", TALK);
    let cut = export(&home, &["html", "last", "-o", "-", "--max-output", "5"]).out;
    assert!(
        is_page(&cut) && cut.contains("12345<") && !cut.contains("123456") && cut.contains("\"raw\":null")
    );
    let chat = export(&home, &["html", "last", "-o", "-", "--level", "chat"]).out;
    assert!(chat.contains("Let me look.") && !chat.contains("cargo bench") && chat.contains("\"raw\":null"));
    assert_eq!(export(&home, &["html", "last", "-o", "-", "--images", "none"]).code, 0);
}

#[test]
fn all_sessions_are_exported_with_an_index_and_written_once() {
    let home = TestHome::new();
    home.session("slow", TALK);
    let other = home.session_in("/home/ada/site", "other", "u1 user \"a <b> question\"\n");
    let dir = home.root().join("out");
    let all = || export(&home, &["html", "--all", "-o", dir.to_str().unwrap()]);
    assert_eq!(all().err, "wrote 2 of 2 sessions to [home]/out/index.html\n");
    let index = fs::read_to_string(dir.join("index.html")).unwrap();
    for name in ["slow", "other"] {
        let page = format!("{}.html", session_uuid(name));
        assert!(
            index.contains(&format!("href=\"{page}\""))
                && is_page(&fs::read_to_string(dir.join(page)).unwrap())
        );
    }
    assert!(index.contains("/home/ada/site</h2>") && index.contains("a &lt;b&gt; question"), "{index}");
    assert!(index.contains("2 projects · 2 sessions · 2 turns · "), "{index}");
    assert!(index.contains("2026, 10:00</time> · 1 turn · "), "{index}");
    assert_eq!(all().err, "wrote 0 of 2 sessions to [home]/out/index.html\n");
    // The data of a session's index entry is stored in its page, so an unchanged page is not rebuilt.
    assert_eq!(fs::read_to_string(dir.join("index.html")).unwrap(), index);
    append(&other, "\n");
    assert_eq!(all().err, "wrote 1 of 2 sessions to [home]/out/index.html\n");
    let fewer = export(&home, &["html", "--all", "-o", dir.to_str().unwrap(), "--level", "chat"]);
    assert_eq!(fewer.err, "wrote 2 of 2 sessions to [home]/out/index.html\n");
}

#[test]
fn a_page_is_written_again_if_saved_tool_output_changed() {
    let home = TestHome::new();
    let log = home.session("slow", TALK);
    let dir = home.root().join("out");
    let all = || export(&home, &["html", "--all", "-o", dir.to_str().unwrap()]).err;
    let results = log.with_extension("").join("tool-results");
    fs::create_dir_all(&results).unwrap();
    fs::write(results.join("t1.txt"), "one").unwrap();
    assert_eq!(all(), "wrote 1 of 1 session to [home]/out/index.html\n");
    assert_eq!(all(), "wrote 0 of 1 session to [home]/out/index.html\n");
    fs::write(results.join("t1.txt"), "another").unwrap();
    assert_eq!(all(), "wrote 1 of 1 session to [home]/out/index.html\n");
}

fn append(path: &Path, text: &str) {
    let mut bytes = fs::read(path).unwrap();
    bytes.extend(text.as_bytes());
    fs::write(path, bytes).unwrap();
}

#[test]
fn markdown_and_json_go_to_stdout() {
    let home = TestHome::new();
    home.session("slow", TALK);
    let run = export(&home, &["markdown", "last"]);
    assert!(run.out.contains("> why is it slow?\n\nLet me look.\n\n- Bash `cargo bench`\n"), "{run}");
    let lines = export(&home, &["json", "last"]);
    assert_eq!(lines.json_lines().len(), 5);
    assert_eq!(lines.out, at_home(&home, &["show", "last", "--json", "--level", "full"]).out);
}

/// Logs are readable by their owner only, and so are exports of them.
#[test]
#[cfg(unix)]
fn exports_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let home = TestHome::new();
    home.session("loom", "u1 user \"hi\"\na1 <- u1 reply m1 text \"Hello.\"");
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    for (kind, name) in [("html", "s.html"), ("markdown", "s.md"), ("json", "s.json")] {
        // Also if the export replaces a world-readable file.
        std::fs::write(at(name), "").unwrap();
        assert_eq!(export(&home, &[kind, "last", "-o", &at(name)]).code, 0);
    }
    assert_eq!(export(&home, &["html", "--all", "-o", &at("all")]).code, 0);
    let all = std::fs::read_dir(at("all")).unwrap().flatten().map(|entry| entry.path());
    let files = ["s.html", "s.md", "s.json"].map(|name| at(name).into()).into_iter().chain(all);
    for file in files.collect::<Vec<std::path::PathBuf>>() {
        let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", file.display());
    }
}

#[test]
fn a_write_failure_is_reported() {
    let home = TestHome::new();
    home.session("slow", TALK);
    let run = export(&home, &["html", "last", "-o", "/nowhere/x.html"]);
    assert_eq!(run.code, 2);
    assert!(run.err.starts_with("error: cannot write /nowhere/x.html: "), "{run}");
    assert_eq!(export(&home, &["html"]).code, 2);
    assert_eq!(export(&home, &["html", "--all"]).code, 2);
}

#[test]
fn the_raw_log_is_included_on_request_only() {
    let home = TestHome::new();
    home.session("slow", TALK);
    let page = |args: &[&str]| export(&home, &[&["html", "last", "-o", "-"], args].concat()).out;
    assert!(page(&[]).contains("\"raw\":null"));
    for raw in [&["--raw"][..], &["--level", "raw"]] {
        assert!(!page(raw).contains("\"raw\":null") && page(raw).contains("id=\"r0\""), "{raw:?}");
    }
}

#[test]
fn a_missing_folder_is_named_and_no_temporary_file() {
    let home = TestHome::new();
    home.session("slow", TALK);
    let target = home.root().join("missing/page.html");
    let run = export(&home, &["html", "last", "-o", target.to_str().unwrap()]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("there is no folder") && !run.err.contains(".threadline-"), "{run}");
}

#[cfg(unix)]
#[test]
fn a_pipe_is_written_to_and_not_replaced() {
    use std::os::unix::fs::FileTypeExt;

    let home = TestHome::new();
    home.session("loom", "u1 user \"weave\"");
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).unwrap()
    });
    let run = at_home(&home, &["export", "markdown", "last", "-o", pipe.to_str().unwrap()]);
    assert_eq!(run.code, 0, "{run}");
    assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());
    assert!(reader.join().unwrap().contains("weave"));
}
