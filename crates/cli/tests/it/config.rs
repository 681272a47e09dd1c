//! `config`, `resume`, `completions` and `man`.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Output;

use threadline_testkit::{TestHome, session_uuid};

use crate::run::command;

fn run(config: &Path, args: &[&str]) -> Output {
    command(args).env("XDG_CONFIG_HOME", config).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Writes a configuration file and returns its folder.
fn configure(toml: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("threadline")).unwrap();
    std::fs::write(folder.path().join("threadline/config.toml"), toml).unwrap();
    folder
}

#[test]
fn settings_come_from_options_the_environment_the_file_and_defaults() {
    let home = TestHome::new();
    home.session("loom", "u1 user \"weave\"");
    let root = home.root().display();
    let config = configure(&format!("homes = [\"{root}\"]\npager = \"more\"\nredact = true\n"));
    let settings = text(&run(config.path(), &["config", "--json"]));
    let source = |name: &str| {
        let line = settings.lines().find(|line| line.contains(&format!("\"name\":\"{name}\""))).unwrap();
        let setting: serde_json::Value = serde_json::from_str(line).unwrap();
        (setting["value"].as_str().unwrap().to_owned(), setting["source"].as_str().unwrap().to_owned())
    };
    assert_eq!(source("homes"), (root.to_string(), "config file".to_owned()));
    assert_eq!(source("pager"), ("more".to_owned(), "config file".to_owned()));
    assert_eq!(source("redact"), ("true".to_owned(), "config file".to_owned()));
    assert_eq!(source("time_zone"), ("UTC".to_owned(), "$TZ".to_owned()));
    assert_eq!(source("resume_with"), ("claude".to_owned(), "default".to_owned()));
    assert!(text(&run(config.path(), &["list"])).contains("weave"));
    let other = TestHome::new();
    let named = run(config.path(), &["--home", other.root().to_str().unwrap(), "list"]);
    assert_eq!(named.status.code(), Some(1));
}

#[test]
fn an_invalid_configuration_file_is_named() {
    for (toml, message) in [
        ("hoems = []", "unknown field `hoems`"),
        ("redact = 1", "invalid type"),
        ("theme = \"sepia\"", "unknown variant `sepia`, expected one of `auto`, `light`, `dark`"),
        ("resume_with = \"vim\"", "unknown variant `vim`, expected `claude` or `threadline`"),
        ("time_zone = \"Mars/Olympus\"", "unknown time zone `Mars/Olympus`"),
    ] {
        let config = configure(toml);
        let failed = run(config.path(), &["config"]);
        assert_eq!(failed.status.code(), Some(2));
        let message_found = text(&failed);
        assert!(
            message_found.contains("config.toml: ") && message_found.contains(message),
            "{message_found}"
        );
    }
}

#[test]
fn resume_prints_the_command_in_the_right_folder() {
    let home = TestHome::new();
    home.session("loom", "u1 user \"weave\"");
    let root = home.root().to_str().unwrap();
    let id = session_uuid("loom");
    let none = tempfile::tempdir().unwrap();
    let printed = run(none.path(), &["--home", root, "resume", "last", "--print"]);
    assert_eq!(
        text(&printed),
        format!("cd /home/ada/loom && CLAUDE_CONFIG_DIR={root} claude --resume {id}\n")
    );
    let object = run(none.path(), &["--home", root, "resume", "last", "--print", "--json"]);
    let object: serde_json::Value = serde_json::from_slice(&object.stdout).unwrap();
    assert_eq!(object["command"], text(&printed).trim_end());
    assert_eq!(object["session"], *id);
    assert_eq!(object["cwd"], "/home/ada/loom");
    // A relative folder would be looked for in the folder of the session.
    let (parent, name) = (home.root().parent().unwrap(), home.root().file_name().unwrap());
    let relative =
        command([OsStr::new("--home"), name, "resume".as_ref(), "last".as_ref(), "--print".as_ref()])
            .current_dir(parent)
            .output()
            .unwrap();
    assert_eq!(text(&relative), text(&printed));
    let missing = run(none.path(), &["--home", root, "resume", "last"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing).contains("the session's folder does not exist: /home/ada/loom"));
    let with_threadline = ["--home", root, "resume", "last", "--with", "threadline"];
    let printed = run(none.path(), &[&with_threadline[..], &["go on", "--print"]].concat());
    assert_eq!(
        text(&printed),
        format!("cd /home/ada/loom && CLAUDE_CONFIG_DIR={root} threadline chat -p --resume {id} 'go on'\n")
    );
    let printed = run(none.path(), &[&with_threadline[..], &["--print"]].concat());
    assert_eq!(
        text(&printed),
        format!("cd /home/ada/loom && CLAUDE_CONFIG_DIR={root} threadline chat --resume {id}\n")
    );
    let no_session = run(none.path(), &["--home", root, "resume"]);
    assert_eq!(no_session.status.code(), Some(2));
    assert!(text(&no_session).contains("a session is missing"), "{}", text(&no_session));
}

#[test]
fn completions_and_the_man_page_name_every_command() {
    let none = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = text(&run(none.path(), &["completions", shell]));
        assert!(script.contains("resume") && script.contains("redact"), "{shell}");
    }
    let page = text(&run(none.path(), &["man"]));
    assert!(page.contains("Resume a session"), "{page}");
    let header = page.lines().find(|line| line.starts_with(".TH")).unwrap();
    assert!(header.starts_with(".TH threadline 1") && header.contains(env!("CARGO_PKG_VERSION")), "{header}");
    assert!(!page.contains("session format:"), "the version is one line: {page}");
    let version = text(&run(none.path(), &["--version"]));
    assert!(version.contains("session format: Claude Code 2.1.20 to 2.1.328"), "{version}");
}

#[test]
fn a_session_is_opened_in_the_editor() {
    let home = TestHome::new();
    home.session("loom", "u1 user \"weave\"");
    let root = home.root().to_str().unwrap();
    let shown = command(["--home", root, "show", "last", "--editor"]).env("EDITOR", "cat").output().unwrap();
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown));
    assert!(text(&shown).contains("weave"));
    let unset = command(["--home", root, "show", "last", "--editor"]).output().unwrap();
    assert_eq!(unset.status.code(), Some(2));
}

#[test]
#[cfg(unix)]
fn a_configuration_that_is_no_regular_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("threadline/config.toml");
    std::fs::create_dir(folder.path().join("threadline")).unwrap();
    // Opening a pipe without a writer would block this test forever.
    assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
    for _ in 0..2 {
        let output = run(folder.path(), &["list"]);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && message.contains("not a regular file"), "{message}");
        let _ = std::fs::remove_file(&file);
        let _ = std::os::unix::fs::symlink("/dev/zero", &file);
    }
}
