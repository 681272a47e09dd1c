//! The question whether a folder is trusted, at the first start of a screen in it.

use std::io::BufRead;
use std::path::Path;

use threadline_settings::{TrustedFolders, config_file};
use threadline_term::{TermText, text, visible};

use super::config;
use super::files::update_text;
use super::settings_file::with_trusted_folder;
use crate::context::Context;
use crate::error::CommandError;
use crate::ui;

/// The parts of a folder that are used only if it is trusted, and their meaning.
const PARTS: &[(&str, &str)] = &[
    (".claude/settings.json", "hooks, rules and other settings"),
    (".claude/settings.local.json", "hooks, rules and other settings"),
    (".mcp.json", "MCP servers"),
    (".claude/commands", "commands"),
    (".claude/skills", "skills"),
];

/// Asks whether the working folder is trusted, if it has settings that depend on it and the person has not
/// trusted it yet. Without an answer, it is not.
///
/// `sources` is the value of `--setting-sources`: files that are not read are no reason to ask.
pub(super) fn ask(cx: &Context, sources: Option<&str>) -> Result<(), CommandError> {
    let paths = config::paths(cx, &[], &config::current_dir()?)?;
    let file = config_file(&paths.claude_home, paths.user_home.as_deref());
    let found = parts_of(&paths.cwd, &paths.claude_home, sources);
    if found.is_empty() || TrustedFolders::read(&file).contain(&paths.cwd) {
        return Ok(());
    }
    ui::write_stderr(&question(&paths.cwd, &found));
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    if answer.trim() != "1" {
        return Ok(());
    }
    if let Err(error) = save(&file, &paths.cwd) {
        ui::write_stderr(&text!("The answer was not saved: {}\n", visible(&error)));
    }
    Ok(())
}

/// Returns the parts that a folder has. In the home folder, the person's own settings are not parts of it.
fn parts_of(
    folder: &Path,
    claude_home: &Path,
    sources: Option<&str>,
) -> Vec<&'static (&'static str, &'static str)> {
    let is_read =
        |source: &str| sources.is_none_or(|sources| sources.split(',').any(|one| one.trim() == source));
    let is_part = |(name, _): &&(&str, &str)| {
        let path = folder.join(name);
        let is_read = match *name {
            ".claude/settings.json" => is_read("project"),
            ".claude/settings.local.json" => is_read("local"),
            _ => true,
        };
        is_read && path.exists() && !path.starts_with(claude_home)
    };
    PARTS.iter().filter(is_part).collect()
}

fn question(folder: &Path, found: &[&(&str, &str)]) -> TermText {
    let folder = folder.display().to_string();
    let mut question = text!("{} has settings of its own:\n", visible(&folder));
    for (name, meaning) in found {
        question += text!("  {name}  {meaning}\n");
    }
    question
        + "They can run programs on this computer. Trust the folder only if you know who wrote them.\n  \
           1. Trust the folder\n  2. Continue without them; rules that refuse still count\n\
           Type 1 or 2 [2]: "
}

/// Saves that a folder is trusted, where Claude Code keeps it.
fn save(file: &Path, folder: &Path) -> Result<(), String> {
    update_text(file, |old| {
        let new = with_trusted_folder(old, &folder.to_string_lossy());
        new.map(Some).ok_or_else(|| format!("{} is not a JSON object", file.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_the_person_are_not_parts_of_the_home_folder() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".claude")).unwrap();
        std::fs::write(folder.path().join(".claude/settings.json"), "{}").unwrap();
        let names = |claude_home: &str| parts_of(folder.path(), &folder.path().join(claude_home), None).len();
        assert_eq!((names(".claude"), names("other")), (0, 1));
    }
}
