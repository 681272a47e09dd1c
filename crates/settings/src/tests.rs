//! Settings files in a temporary home.

use std::path::Path;

use crate::{SettingsInput, SettingsPaths, SettingsSource, SettingsStack, TrustedFolders, config_file};

/// A home and a project folder.
struct Folders {
    _dir: tempfile::TempDir,
    paths: SettingsPaths,
}

fn folders(files: &[(&str, &str)]) -> Folders {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for (name, text) in files {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text.replace("$PROJECT", root.join("work").to_str().unwrap())).unwrap();
    }
    let paths = SettingsPaths {
        claude_home: root.join("home/.claude"),
        user_home: Some(root.join("home")),
        project: root.join("work"),
        managed: root.join("managed"),
    };
    Folders { _dir: dir, paths }
}

fn load(folders: &Folders) -> SettingsStack {
    SettingsStack::load(&folders.paths, &SettingsInput::default()).unwrap()
}

const TRUST: (&str, &str) =
    ("home/.claude.json", r#"{"projects":{"$PROJECT":{"hasTrustDialogAccepted":true}}}"#);

#[test]
fn the_highest_source_wins() {
    let mut files = vec![
        TRUST,
        ("home/.claude/settings.json", r#"{"model":"user","env":{"A":"user","B":"user"}}"#),
        ("work/.claude/settings.json", r#"{"model":"project","env":{"A":"project"}}"#),
    ];
    assert_eq!(load(&folders(&files)).model(), Some("project"));
    files.push(("work/.claude/settings.local.json", r#"{"model":"local"}"#));
    assert_eq!(load(&folders(&files)).model(), Some("local"));
    files.push(("managed/managed-settings.json", r#"{"model":"managed"}"#));
    let with_managed = folders(&files);
    assert_eq!(load(&with_managed).model(), Some("managed"));
    let input = SettingsInput { settings: Some(r#"{"model":"flag"}"#.to_owned()), sources: None };
    assert_eq!(SettingsStack::load(&with_managed.paths, &input).unwrap().model(), Some("managed"));
    files.pop();
    let without = folders(&files);
    let stack = SettingsStack::load(&without.paths, &input).unwrap();
    assert_eq!(stack.model(), Some("flag"));
    assert_eq!(stack.env().into_iter().collect::<Vec<_>>(), [("A", "project"), ("B", "user")]);
}

#[test]
fn rules_of_all_sources_are_joined() {
    let folders = folders(&[
        TRUST,
        ("home/.claude/settings.json", r#"{"permissions":{"allow":["Bash(a)"],"deny":["Read(x)"]}}"#),
        ("work/.claude/settings.json", r#"{"permissions":{"allow":["Bash(b)", 5],"ask":["Bash(c)"]}}"#),
    ]);
    let stack = load(&folders);
    let allowed: Vec<_> = stack.allow_rules().iter().map(|rule| (rule.rule, rule.source)).collect();
    assert_eq!(allowed, [("Bash(a)", SettingsSource::User), ("Bash(b)", SettingsSource::Project)]);
    assert_eq!(stack.ask_rules().len(), 1);
    assert_eq!(stack.deny_rules()[0].base, folders.paths.claude_home);
}

#[test]
fn an_untrusted_folder_restricts_but_does_not_extend() {
    let project = r#"{"permissions":{"allow":["Bash"],"deny":["Read(x)"],"defaultMode":"bypassPermissions",
        "additionalDirectories":["/"]},"hooks":{},"apiKeyHelper":"evil","statusLine":{},"model":"m",
        "env":{"PATH":"/evil"},"enabledMcpjsonServers":["s"],"disabledMcpjsonServers":["t"],
        "sandbox":{"enabled":false}}"#;
    for name in ["work/.claude/settings.json", "work/.claude/settings.local.json"] {
        let home = ("home/.claude/settings.json", r#"{"sandbox":{"enabled":true}}"#);
        let untrusted = folders(&[home, (name, project)]);
        let stack = load(&untrusted);
        assert!(!stack.is_trusted());
        assert!(stack.allow_rules().is_empty() && stack.additional_directories().is_empty());
        assert!(stack.hooks().is_empty() && stack.env().is_empty());
        assert_eq!((stack.api_key_helper(), stack.model(), stack.default_mode()), (None, None, None));
        assert!(stack.status_line().is_none());
        assert_eq!(stack.is_project_server_enabled("s"), None);
        assert_eq!(stack.is_project_server_enabled("t"), Some(false));
        assert_eq!(stack.deny_rules().len(), 1);
        assert!(stack.is_sandbox_enabled());
        let ignored: Vec<_> = stack.ignored().iter().map(|setting| (setting.key, setting.count)).collect();
        assert_eq!(ignored, [("allow", 1), ("additionalDirectories", 1)]);

        let trusted = load(&folders(&[home, (name, project), TRUST]));
        assert!(trusted.is_trusted());
        assert_eq!(trusted.allow_rules().len(), 1);
        assert_eq!(trusted.hooks().len(), 1);
        assert_eq!(trusted.api_key_helper(), Some("evil"));
        assert_eq!(trusted.is_project_server_enabled("s"), Some(true));
        assert!(!trusted.is_sandbox_enabled());
    }
}

#[test]
fn trust_is_for_one_folder() {
    let folders = folders(&[(
        "home/.claude.json",
        r#"{"projects":{"/a":{"hasTrustDialogAccepted":true},
        "/b":{"hasTrustDialogAccepted":false},"c":{"hasTrustDialogAccepted":true},"/d":{}}}"#,
    )]);
    let home = &folders.paths.claude_home;
    let trusted = TrustedFolders::read(&config_file(home, folders.paths.user_home.as_deref()));
    let is_trusted = |path: &str| trusted.contain(Path::new(path));
    assert!(is_trusted("/a"));
    assert!(!is_trusted("/a/b") && !is_trusted("/") && !is_trusted("/b") && !is_trusted("c"));
    assert!(!is_trusted("/d") && !is_trusted("/A"));
    assert_eq!(
        config_file(Path::new("/elsewhere"), Some(Path::new("/home"))),
        Path::new("/elsewhere/.claude.json")
    );
}

#[test]
fn a_broken_file_is_skipped_and_reported() {
    for text in ["{broken", r#"{"model": 5}"#, r#"{"permissions": 5}"#] {
        let folders = folders(&[
            ("home/.claude/settings.json", text),
            ("managed/managed-settings.d/b.json", r#"{"model":"b"}"#),
            ("managed/managed-settings.d/a.json", r#"{"model":"a"}"#),
        ]);
        let stack = load(&folders);
        assert_eq!(stack.problems().len(), 1, "{text}");
        assert_eq!(stack.model(), Some("b"));
    }
}

#[test]
fn a_broken_value_does_not_turn_off_deny_rules() {
    let text = r#"{"model":5,"permissions":{"allow":["Bash"],"deny":["Read(x)"],"ask":["Edit"]}}"#;
    let stack = load(&folders(&[("home/.claude/settings.json", text)]));
    assert_eq!(stack.problems().len(), 1);
    assert_eq!((stack.deny_rules().len(), stack.ask_rules().len(), stack.allow_rules().len()), (1, 1, 0));
}

#[test]
fn sources_are_selected_by_name() {
    let folders = folders(&[
        ("home/.claude/settings.json", r#"{"model":"user"}"#),
        ("work/.claude/settings.json", r#"{"permissions":{"deny":["Bash"]}}"#),
    ]);
    let load = |sources: &str| {
        let input = SettingsInput { settings: None, sources: Some(sources.to_owned()) };
        SettingsStack::load(&folders.paths, &input)
    };
    assert_eq!(load("project").unwrap().model(), None);
    assert_eq!(load("").unwrap().deny_rules().len(), 0);
    assert_eq!(load("user, project").unwrap().model(), Some("user"));
    let error = load("user,nope").unwrap_err().to_string();
    assert!(error.contains("Invalid setting source: nope"), "{error}");
    let input = SettingsInput { settings: Some("missing.json".to_owned()), sources: None };
    let error = SettingsStack::load(&folders.paths, &input).unwrap_err().to_string();
    assert_eq!(error, "Error: Settings file not found: missing.json");
}

/// A pipe would block.
#[test]
#[cfg(unix)]
fn only_regular_files_are_read() {
    let folders = folders(&[("home/.claude/settings.json", "{}")]);
    let file = folders.paths.user_home.as_ref().unwrap().join(".claude.json");
    assert!(std::process::Command::new("mkfifo").arg(&file).status().unwrap().success());
    assert!(!TrustedFolders::read(&file).contain(&folders.paths.project));
    assert_eq!(crate::read_text(&file).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    assert_eq!(load(&folders).model(), None);
}
