//! The commands of the README are run on the samples.

use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

use crate::guide::{Sandbox, check_page};

fn readme() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")
}

#[test]
fn the_quick_start_shows_what_its_commands_print() {
    check_page(&readme());
}

/// Commands of the table that are not run, and why.
const NOT_RUN: &[(&str, &str)] = &[
    ("serve", "runs until it is ended"),
    ("show last --follow", "runs until it is ended"),
    ("search -i", "needs a terminal"),
    ("resume last", "starts Claude Code"),
    ("chat", "needs a terminal"),
    ("chat --continue", "needs a terminal"),
    ("chat --acp", "answers an editor"),
    ("mcp", "answers a client"),
];

/// Commands that report problems.
const NEGATIVE: &[&str] = &["check", "edit redact last --check"];

/// Returns the commands of the table of tasks, without `threadline`. An option alone belongs to the first
/// command of its row.
fn tasks() -> Vec<String> {
    let text = fs::read_to_string(readme()).unwrap();
    let (_, table) = text.split_once("| task | command |\n|---|---|\n").unwrap();
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let code = Regex::new("`([^`]+)`").unwrap();
    let mut commands = Vec::new();
    for row in rows {
        let words: Vec<&str> = code.captures_iter(row).map(|found| found.get(1).unwrap().as_str()).collect();
        let first = words[0].strip_prefix("threadline ").unwrap_or_else(|| panic!("{row}"));
        for word in words {
            let command = word.strip_prefix("threadline ").unwrap_or(word);
            let is_option = command.starts_with("--");
            commands.push(if is_option { format!("{first} {command}") } else { command.to_owned() });
        }
    }
    commands
}

#[test]
fn every_task_has_an_answer_on_the_samples() {
    let commands = tasks();
    assert!(commands.len() > 50, "{commands:?}");
    for (command, _) in NOT_RUN {
        assert!(commands.iter().any(|known| known == command), "{command} is not in the table");
    }
    let mut sandbox = Sandbox::new();
    copy(&threadline_testkit::demo(), &sandbox.dir().join("practice"), &|text| text);
    // The file whose lines have prompts is where the sessions edited it.
    let project = sandbox.dir().join("loom");
    let here = project.to_str().unwrap().to_owned();
    copy(&threadline_testkit::demo(), &sandbox.dir().join("moved"), &|text| {
        text.replace("/home/ada/loom", &here)
    });
    fs::create_dir_all(&project).unwrap();
    let (code, output) =
        sandbox.run("threadline --home moved restore last src/loom.rs --at end --to loom --apply");
    assert_eq!(code, 0, "{output}");
    let mut wrong = Vec::new();
    for command in commands.iter().filter(|command| !NOT_RUN.iter().any(|(known, _)| known == command)) {
        let script = match command.split_once(' ').map_or(&**command, |(first, _)| first) {
            "blame" | "restore" => format!("cd loom && threadline --home ../moved {command}"),
            "op" => {
                let run = |command: &str| format!("threadline --home practice {command}");
                let edit = run("edit title last Fast --apply >/dev/null 2>&1");
                let undo = if command == "op redo" {
                    "op undo --apply >/dev/null 2>&1"
                } else {
                    "op log >/dev/null"
                };
                format!("{edit}; {}; {}", run(undo), run(command))
            }
            "chat" => format!("threadline --demo {command}"),
            _ => format!("threadline --home practice {command}"),
        };
        let (code, output) = sandbox.run(&script);
        let expected = i32::from(NEGATIVE.contains(&&**command));
        // The manual contains all phrases.
        let is_empty = command != "man"
            && ["no file changes", "no sessions match", "nothing to", "no session edited"]
                .iter()
                .any(|nothing| output.contains(nothing));
        if code != expected || output.trim().is_empty() || is_empty {
            wrong.push(format!("{command}: exit {code}\n{output}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Copies a folder, with its texts changed.
fn copy(from: &Path, to: &Path, change: &dyn Fn(String) -> String) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target, change);
            continue;
        }
        match fs::read_to_string(entry.path()) {
            Ok(text) => fs::write(target, change(text)).unwrap(),
            Err(_) => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}
