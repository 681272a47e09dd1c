//! Runs the tables of [`crate::cases`].

use std::path::{Path, PathBuf};

use threadline_permission::{
    Access, Call, CallTarget, Decision, PermissionMode, Permissions, RuleEffect, RuleSet, RuleSource,
    Workspace,
};

use crate::cases::{GROUPS, Group};

/// A project with links that lead out of it, beside a folder that is not part of it.
struct Project {
    _dir: tempfile::TempDir,
    root: PathBuf,
}

impl Project {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in [
            "work/src",
            "work/secrets",
            "work/docs",
            "work/.git",
            "work/-dash",
            "outside",
            "home/notes",
            "home/.ssh",
            "work2",
        ] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        let files = [
            "work/a.txt",
            "work/b.txt",
            "work/.env",
            "work/src/main.rs",
            "work/src/.env",
            "work/secrets/key",
            "outside/data",
            "home/notes/n.md",
            "home/.ssh/id",
            "work/docs/x.md",
            "work2/file",
        ];
        for file in files {
            std::fs::write(root.join(file), "content\n").unwrap();
        }
        let links = [
            ("../outside", "work/out"),
            ("../outside/data", "work/data-link"),
            ("../outside/new", "work/dangling"),
            ("out", "work/chain"),
            ("secrets/key", "work/key-link"),
            ("src", "work/src-link"),
            (".git", "work/git-link"),
            ("../../outside/data", "work/-dash/link"),
            ("../outside/data", "work/[d"),
            ("../outside/data", "work/{a}b"),
        ];
        for (target, link) in links {
            std::os::unix::fs::symlink(target, root.join(link)).unwrap();
        }
        Self { _dir: dir, root }
    }

    fn permissions(&self, group: &Group) -> Permissions {
        let cwd = self.root.join("work");
        let home = self.root.join("home");
        let mut rules = RuleSet::default();
        let source = RuleSource { base: &cwd, cwd: &cwd, home: Some(&home) };
        for (texts, effect) in
            [(group.allow, RuleEffect::Allow), (group.ask, RuleEffect::Ask), (group.deny, RuleEffect::Deny)]
        {
            for text in texts {
                assert!(rules.add(&self.expand(text), effect, source), "{text} is not a rule");
            }
        }
        let workspace = Workspace { cwd, home: Some(home), ..Workspace::default() };
        Permissions { mode: PermissionMode::parse(group.mode).unwrap(), rules, workspace }
    }

    fn expand(&self, text: &str) -> String {
        text.replace("$ROOT", self.root.to_str().unwrap())
    }

    /// Decides about `Bash: command`, `Read: path`, `Write: path` or `WebFetch: address`.
    fn decide(&self, permissions: &Permissions, call: &str) -> Decision {
        let call = self.expand(call);
        let (tool, input) = call.split_once(": ").unwrap();
        let cwd = self.root.join("work");
        let path = normalize(&cwd.join(input));
        let (is_read_only, target) = match tool {
            "Bash" => (false, CallTarget::Command { command: input, cwd: &cwd }),
            "Read" | "Glob" | "Grep" => {
                (true, CallTarget::Path { path: &path, given: input, access: Access::Read })
            }
            "Write" | "Edit" => {
                (false, CallTarget::Path { path: &path, given: input, access: Access::Write })
            }
            "WebFetch" => (true, CallTarget::Url(input)),
            "Agent" | "Skill" => (false, CallTarget::Text(input)),
            _ => (false, CallTarget::None),
        };
        permissions.decide(Call { tool, is_read_only, target })
    }
}

/// Removes `..` as tools do before they ask.
fn normalize(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                out.pop();
            }
            std::path::Component::CurDir => {}
            part => out.push(part),
        }
    }
    out
}

#[test]
fn hostile_calls_are_refused_with_a_reason_and_harmless_ones_run() {
    let project = Project::new();
    let mut failures = Vec::new();
    let (mut hostile, mut harmless) = (0, 0);
    for group in GROUPS {
        let permissions = project.permissions(group);
        for call in group.hostile.iter().chain(group.denied) {
            hostile += 1;
            match project.decide(&permissions, call) {
                Decision::Allow => failures.push(format!("{}: hostile call is allowed: {call}", group.name)),
                Decision::Ask(reason) if reason.message.trim().is_empty() => {
                    failures.push(format!("{}: no reason for {call}", group.name));
                }
                Decision::Deny(refusal) if refusal.message.trim().is_empty() => {
                    failures.push(format!("{}: no reason for {call}", group.name));
                }
                Decision::Ask(_) | Decision::Deny(_) => {}
            }
        }
        for call in group.harmless {
            harmless += 1;
            match project.decide(&permissions, call) {
                Decision::Allow => {}
                decision => {
                    failures.push(format!("{}: harmless call is refused: {call}: {decision:?}", group.name))
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    assert!(hostile >= 120 && harmless >= 120, "{hostile} hostile and {harmless} harmless cases");
}

#[test]
fn git_is_asked_about_in_a_folder_that_git_takes_for_a_repository() {
    let project = Project::new();
    let work = project.root.join("work");
    let write = |file: &str, text: &str| {
        let file = work.join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    for bare in ["bare", "shielded", "empty"] {
        write(&format!("{bare}/HEAD"), "ref: refs/heads/main\n");
        write(&format!("{bare}/objects/x"), "");
        write(&format!("{bare}/refs/x"), "");
        write(&format!("{bare}/deep/er/a.txt"), "");
    }
    // A repository of its own, and a folder that git does not accept as one.
    write("shielded/.git/HEAD", "ref: refs/heads/main\n");
    write("shielded/.git/objects/x", "");
    write("shielded/.git/refs/x", "");
    std::fs::create_dir_all(work.join("empty/.git")).unwrap();
    // The rest of this repository is elsewhere.
    write("linked/HEAD", "ref: refs/heads/main\n");
    write("linked/commondir", "../bare\n");
    write("headless/objects/x", "");
    write("headless/refs/x", "");
    let group = Group { allow: &["Bash(git commit:*)"], ..crate::cases::EMPTY };
    let permissions = project.permissions(&group);
    let is_allowed = |folder: &str, command: &str| {
        let target = CallTarget::Command { command, cwd: &work.join(folder) };
        permissions.decide(Call { tool: "Bash", is_read_only: false, target }) == Decision::Allow
    };
    for folder in ["bare", "bare/deep", "bare/deep/er", "linked", "empty", "empty/deep"] {
        for command in ["git status", "ls && git diff", "timeout 5 git ls-files -m", "git commit -m x"] {
            assert!(!is_allowed(folder, command), "{command} in {folder}");
        }
        assert!(is_allowed(folder, "ls"), "{folder}");
    }
    for folder in ["", "src", "shielded", "shielded/deep", "headless"] {
        assert!(is_allowed(folder, "git status"), "{folder}");
    }
}

#[test]
fn git_does_not_print_tracked_files_that_a_rule_refuses() {
    let project = Project::new();
    let work = project.root.join("work");
    let index = |names: &[&str]| {
        let mut bytes = [&b"DIRC\0\0\0\x02\0\0\0"[..], &[names.len() as u8]].concat();
        for name in names {
            bytes.extend([&[0; 61][..], &[name.len() as u8], name.as_bytes()].concat());
            bytes.extend(vec![0; 8 - (62 + name.len()) % 8]);
        }
        std::fs::write(work.join(".git/index"), bytes).unwrap();
    };
    let group = Group { deny: &["Read(.env)"], ..crate::cases::EMPTY };
    let permissions = project.permissions(&group);
    let is_denied = |command: &str| {
        matches!(project.decide(&permissions, &format!("Bash: {command}")), Decision::Deny(_))
    };
    let printing = [
        "git diff",
        "git diff HEAD~1",
        "git show",
        "git log -p",
        "git log -U1 -3",
        "git grep x",
        "git diff src",
    ];
    index(&["a.txt", "src/main.rs"]);
    for command in printing {
        assert!(!is_denied(command), "{command}");
    }
    index(&["a.txt", "src/.env", "src/main.rs"]);
    for command in printing {
        assert!(is_denied(command), "{command}");
    }
    for command in ["git log", "git diff --stat", "git show --name-only", "git diff docs", "git status"] {
        assert!(!is_denied(command), "{command}");
    }
}

#[test]
fn deny_rules_hold_in_every_mode() {
    let project = Project::new();
    for group in GROUPS.iter().filter(|group| !group.deny.is_empty()) {
        for (name, mode) in PermissionMode::ALL {
            let permissions = Permissions { mode, ..project.permissions(group) };
            for call in group.denied {
                let decision = project.decide(&permissions, call);
                assert!(
                    matches!(decision, Decision::Deny(_)),
                    "{} in {name}: {call}: {decision:?}",
                    group.name
                );
            }
        }
    }
}
