//! The documentation and the program agree: JSON fields, findings, crates, commands and corpus files.

use std::path::{Path, PathBuf};

use serde_json::Value;
use threadline_entry::Code;

use crate::run::threadline;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap()
}

#[test]
fn every_json_field_is_documented() {
    let docs = read("docs/json.md");
    let mut fields = Vec::new();
    for command in [
        &["list"][..],
        &["inspect", "last"],
        &["check", "--notes"],
        &["replay", "last"],
        &["restore", "a4d5d01a"],
        &["restore", "a4d5d01a", "--at", "1"],
        &["search", "error"],
        &["search", "error", "-c"],
        &["show", "a4d5d01a"],
        &["usage", "--by", "session"],
        &["usage", "--by", "tool"],
        &["usage", "--blocks"],
        &["usage", "--explain"],
        &["edit", "clone", "last"],
        &["trace", "push", "--all", "--dry-run"],
        &["trace", "install"],
    ] {
        let run = threadline([&["--demo", "--json"], command].concat());
        for line in run.json_lines() {
            fields.extend(line.as_object().unwrap().keys().cloned());
            fields.extend(line["tokens"].as_object().into_iter().flatten().map(|(key, _)| key.clone()));
            fields.extend(line["unknown"].as_object().into_iter().flatten().map(|(key, _)| key.clone()));
            if let Some(Value::String(kind)) = line.get("kind") {
                fields.push(kind.clone());
            }
        }
    }
    fields.sort();
    fields.dedup();
    let missing: Vec<_> = fields.iter().filter(|field| !docs.contains(&format!("`{field}`"))).collect();
    assert!(missing.is_empty(), "not in docs/json.md: {missing:?}");
}

#[test]
fn every_finding_is_documented() {
    let docs = read("docs/format.md");
    for code in Code::ALL {
        assert!(docs.contains(&format!("| {} | {} |", code.id(), code.name())), "{code}");
    }
}

#[test]
fn every_crate_is_on_the_map() {
    let map = read("ARCHITECTURE.md");
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(map.contains(&format!("| `{name}` |")), "{name}");
    }
}

#[test]
fn every_command_is_in_the_readme_and_has_help() {
    let readme = read("README.md");
    let help = threadline(["--help"]).out;
    let commands = help.split("Commands:").nth(1).unwrap().split("Options:").next().unwrap();
    for line in commands.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   ")) {
        let command = line.split_whitespace().next().unwrap();
        if command != "help" {
            assert!(readme.contains(&format!("threadline {command}")), "{command}");
            assert_eq!(threadline([command, "--help"]).code, 0);
        }
    }
}

#[test]
fn every_odd_log_is_in_its_index() {
    let index = read("corpus/README.md");
    for entry in std::fs::read_dir(root().join("corpus")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.ends_with(".jsonl") || index.contains(&format!("`{name}`")), "{name}");
    }
}
