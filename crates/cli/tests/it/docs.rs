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
        &["overview"],
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
        &["resume", "last", "--print"],
        &["trace", "push", "--all", "--dry-run"],
        &["trace", "install"],
        &["setup"],
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
fn the_plugin_has_the_version_of_the_workspace() {
    let plugin: Value = serde_json::from_str(&read("plugin/.claude-plugin/plugin.json")).unwrap();
    assert_eq!(plugin["version"], env!("CARGO_PKG_VERSION"));
    let marketplace: Value = serde_json::from_str(&read(".claude-plugin/marketplace.json")).unwrap();
    let versions =
        marketplace["plugins"].as_array().unwrap().iter().filter_map(|plugin| plugin.get("version"));
    versions.for_each(|version| assert_eq!(version, env!("CARGO_PKG_VERSION")));
}

#[test]
fn every_finding_is_documented() {
    let docs = read("docs/format.md");
    for code in Code::ALL {
        assert!(docs.contains(&format!("| {} | {} |", code.id(), code.name())), "{code}");
    }
}

/// The rows of the code map in ARCHITECTURE.md: a crate and the crates that it uses.
fn code_map() -> Vec<(String, Vec<String>)> {
    let page = read("ARCHITECTURE.md");
    let table = page.split("## Code map").nth(1).unwrap().split("\n## ").next().unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, name, _, uses, _] = cells[..] else { return None };
        let name = name.strip_prefix('`')?.strip_suffix('`')?;
        let mut uses: Vec<String> =
            uses.split(',').map(str::trim).filter(|name| *name != "–").map(str::to_owned).collect();
        uses.sort();
        Some((name.to_owned(), uses))
    };
    table.lines().filter_map(row).collect()
}

#[test]
fn the_code_map_has_every_crate_with_the_edges_of_its_manifest() {
    let mut manifests = vec![("xtask".to_owned(), root().join("xtask"))];
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let entry = entry.unwrap();
        manifests.push((entry.file_name().into_string().unwrap(), entry.path()));
    }
    manifests.sort();
    let manifests: Vec<(String, Vec<String>)> = manifests
        .into_iter()
        .map(|(name, folder)| {
            let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
            let section = manifest.split("\n[dependencies]\n").nth(1).unwrap_or_default();
            let section = section.split("\n[").next().unwrap();
            let mut uses: Vec<String> = section
                .lines()
                .filter_map(|line| line.strip_prefix("threadline-"))
                .map(|line| line.chars().take_while(|ch| ch.is_ascii_lowercase() || *ch == '-').collect())
                .collect();
            uses.sort();
            (name, uses)
        })
        .collect();
    let mut map = code_map();
    map.sort();
    assert_eq!(map, manifests);
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
fn every_corpus_log_is_in_the_corpus_index() {
    let index = read("corpus/README.md");
    for entry in std::fs::read_dir(root().join("corpus")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.ends_with(".jsonl") || index.contains(&format!("`{name}`")), "{name}");
    }
}

/// Returns the help of a command and of its subcommands, as Markdown sections.
fn reference(path: &[&str], sections: &mut String) {
    let help = threadline(path.iter().copied().chain(["--help"])).out;
    // The global options are the same everywhere; the first section has them.
    let shown = if path.is_empty() { &*help } else { help.split("\nGlobal options:").next().unwrap() };
    let name = [&["threadline"], path].concat().join(" ");
    sections.push_str(&format!("## {name}\n\n```text\n{}\n```\n\n", shown.trim_end()));
    let Some(commands) = help.split("\nCommands:\n").nth(1) else { return };
    for line in commands.lines().take_while(|line| !line.is_empty()) {
        let Some(command) = line.strip_prefix("  ").and_then(|line| line.split(' ').next()) else { continue };
        if !command.is_empty() && command != "help" {
            reference(&[path, &[command]].concat(), sections);
        }
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "developers set UPDATE_DOCS")]
fn the_command_reference_is_the_help_of_every_command() {
    let mut page =
        "# Command reference\n\nThe output of `--help`. A test compares this page with the program;\n\
                    `UPDATE_DOCS=1 cargo test -p threadline docs` writes it.\n\n"
            .to_owned();
    reference(&[], &mut page);
    let page = format!("{}\n", page.trim_end());
    let path = root().join("docs/cli.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == page,
        "docs/cli.md is not current: run `UPDATE_DOCS=1 cargo test -p threadline docs`"
    );
}
