//! Checks that real versions of Claude Code resume a session that was deleted and restored.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::archive_check::{Client, copy_folder};
use crate::bench::{LogFiles, shared};
use crate::conformance::{RequestBlock, first_difference, run_claude};
use crate::random_turns::oracle_commands;

/// The number of real sessions besides the samples.
const REAL_SESSIONS: usize = 3;

/// The largest real session, so that the check is quick.
const MAX_SIZE: u64 = 1_000_000;

/// Archives sessions, deletes each as Claude Code does, finds it by its first prompt, restores it, and lets
/// Claude Code resume it.
pub(crate) fn check_resume(client: &Client<'_>) -> Result<(), String> {
    let commands = oracle_commands();
    if commands.is_empty() {
        println!(
            "resume: skipped, there is no Claude Code (oracle/claude_oracle.py below THREADLINE_SHARED)"
        );
        return Ok(());
    }
    let home = client.work.join("resume-home");
    copy_folder(&threadline_testkit::demo().join("projects"), &home.join("projects"))?;
    copy_real_sessions(&home).map_err(|error| error.to_string())?;
    let folder = client.work.join("resume-archive");
    let url = format!("file:{}", folder.display());
    client.expect(&home, "resume", &["archive", "push", "--to", &url])?;
    let listed = client.expect(&home, "resume", &["list", "--json"])?;
    let sessions: Vec<Value> = listed.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut resumed = 0;
    for session in &sessions {
        let text = |key: &str| session[key].as_str().unwrap_or_default();
        let (id, log, prompt) = (text("id"), PathBuf::from(text("path")), text("first_prompt"));
        let word = prompt.split(|ch: char| !ch.is_alphanumeric()).max_by_key(|word| word.len());
        let word = word.unwrap_or_default();
        let before = sent(&commands, &log);
        let copies = files(&log)?;
        delete(&log).map_err(|error| error.to_string())?;
        let found = client.expect(&home, "resume", &["search", word, "--from", &url, "--json"])?;
        // Copies in forks are counted, not listed.
        let is_fork = found.lines().any(|line| !line.contains("\"copies\":0"));
        if !found.contains(id) && !is_fork {
            return Err(format!("`{word}` does not find {id} in the archive"));
        }
        client.expect(&home, "resume", &["archive", "restore", id, "--from", &url])?;
        if files(&log)? != copies {
            return Err(format!("{id} was not restored byte for byte"));
        }
        for ((version, before), (_, after)) in before.into_iter().zip(sent(&commands, &log)) {
            match (before, after) {
                // Not every sample is one that Claude Code accepts.
                (None, _) => {}
                (Some(_), None) => {
                    return Err(format!("Claude Code {version} does not resume the restored {id}"));
                }
                (Some(before), Some(after)) => {
                    if let Some(difference) = first_difference(&before, &after) {
                        return Err(format!(
                            "Claude Code {version} sends something else for {id}: {difference}"
                        ));
                    }
                    resumed += 1;
                }
            }
        }
    }
    println!(
        "{} sessions deleted, found and restored; Claude Code resumed them {resumed} times, in {} versions",
        sessions.len(),
        commands.len()
    );
    if resumed == 0 { Err("Claude Code resumed no session".to_owned()) } else { Ok(()) }
}

/// Returns what each version sends when it resumes a session; `None` if it refuses.
fn sent(commands: &[String], log: &Path) -> Vec<(String, Option<Vec<RequestBlock>>)> {
    commands.iter().map(|command| run_claude(command, log)).collect()
}

/// Copies some real sessions with the files in their folders.
fn copy_real_sessions(home: &Path) -> std::io::Result<()> {
    let is_suitable = |path: &PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let is_small = fs::metadata(path).is_ok_and(|metadata| metadata.len() < MAX_SIZE);
        is_small && name.len() == 36 && path.with_extension("").is_dir()
    };
    let mut logs = LogFiles::in_folder(&shared().join("corpus")).files;
    logs.retain(is_suitable);
    logs.sort();
    let project = home.join("projects/-real");
    fs::create_dir_all(&project)?;
    for log in logs.iter().take(REAL_SESSIONS) {
        fs::copy(log, project.join(log.file_name().unwrap_or_default()))?;
        let side = log.with_extension("");
        copy_folder(&side, &project.join(side.file_name().unwrap_or_default()))
            .map_err(std::io::Error::other)?;
    }
    Ok(())
}

/// Returns the files of a session with their contents.
fn files(log: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>, String> {
    let mut files = LogFiles::in_folder(&log.with_extension("")).files;
    files.push(log.to_owned());
    files.sort();
    files
        .into_iter()
        .map(|path| Ok((path.clone(), fs::read(&path).map_err(|error| error.to_string())?)))
        .collect()
}

/// Deletes a session as Claude Code does: the log and the folder beside it.
fn delete(log: &Path) -> std::io::Result<()> {
    fs::remove_file(log)?;
    match log.with_extension("").is_dir() {
        true => fs::remove_dir_all(log.with_extension("")),
        false => Ok(()),
    }
}
