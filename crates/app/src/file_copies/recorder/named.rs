//! Files that a session names: in a command, or in a call that reads or edits a file.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use foldhash::HashSet;
use threadline_entry::{BlockKind, Json, LineSketch};
use threadline_store::open_file;

use super::RecordedCall;
use crate::file_copies::scan::path_bytes;

/// The maximum number of words of a command that are taken for paths.
const MAX_WORDS: usize = 64;

/// The maximum number of bytes of a log that are read per comparison.
const MAX_LOG: u64 = 4 << 20;

/// Returns the paths below `root` that a command names, and those that the session has read or edited since
/// the offset in its log; with the new offset.
pub(super) fn named_paths(call: &RecordedCall, root: &Path, offset: u64) -> (HashSet<Vec<u8>>, u64) {
    let mut paths = HashSet::default();
    let mut add = |word: &str| {
        if let Some(path) = below(root, &call.cwd, word) {
            paths.insert(path);
        }
    };
    let words = call.command.as_deref().into_iter().flat_map(path_words).take(MAX_WORDS);
    words.for_each(&mut add);
    let offset = match &call.log {
        Some(log) => edited_paths(log, offset, &mut add).unwrap_or(offset),
        None => offset,
    };
    (paths, offset)
}

/// Returns the words of a command that may be paths of files.
fn path_words(command: &str) -> impl Iterator<Item = &str> {
    let is_end = |c: char| c.is_whitespace() || "'\"`;|&<>()={},:$".contains(c);
    command.split(is_end).filter(|word| {
        let may_be_path = word.contains(['.', '/']) || word.len() > 2;
        !word.is_empty() && !word.starts_with('-') && may_be_path && word.len() < 1024
    })
}

/// Returns a path below the root; `None` if it is elsewhere, or in git's folder.
fn below(root: &Path, cwd: &Path, word: &str) -> Option<Vec<u8>> {
    let mut path = PathBuf::new();
    for part in cwd.join(word).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
            }
            part => path.push(part),
        }
    }
    let rest = path.strip_prefix(root).ok()?;
    let is_git = rest.components().any(|part| part.as_os_str() == ".git");
    (!is_git && !rest.as_os_str().is_empty()).then(|| path_bytes(rest))
}

/// Calls `add` with the paths of calls that read or edit files, in the lines of a log after an offset. Returns
/// the offset after the last complete line.
fn edited_paths(log: &Path, offset: u64, add: &mut dyn FnMut(&str)) -> Option<u64> {
    let mut file = open_file(log).ok()?;
    let length = file.metadata().ok()?.len();
    // A log that became shorter was rewritten. Of a long one, only the end is read.
    let start = if offset > length { 0 } else { offset }.max(length.saturating_sub(MAX_LOG));
    file.seek(SeekFrom::Start(start)).ok()?;
    let mut bytes = Vec::new();
    file.take(length - start).read_to_end(&mut bytes).ok()?;
    let end = memchr::memrchr(b'\n', &bytes).map_or(0, |end| end + 1);
    for line in bytes[..end].split(|byte| *byte == b'\n') {
        // Lines without a path are the most.
        if memchr::memmem::find(line, b"_path\"").is_none() {
            continue;
        }
        let Some(sketch) = LineSketch::read(line) else { continue };
        for block in sketch.blocks.iter().filter(|block| block.kind == BlockKind::ToolUse) {
            let Some(input) = block.input.and_then(|input| std::str::from_utf8(input).ok()) else { continue };
            let Some(input) = Json::parse(input) else { continue };
            let named = ["file_path", "notebook_path"].into_iter().find_map(|name| input.get(name)?.as_str());
            if let Some(path) = named {
                add(&path);
            }
        }
    }
    Some(start + end as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_commands_and_calls_are_paths() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log.jsonl");
        let line = r#"{"type":"assistant","uuid":"a","message":{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"Read","input":{"file_path":"/w/build/read.txt"}}]}}"#;
        std::fs::write(&log, format!("{line}\n{line}")).unwrap();
        let call = RecordedCall {
            session_id: "s".to_owned(),
            event: super::super::RecordedEvent::Before,
            tool_use_id: String::new(),
            agent_id: None,
            tool: "Bash".to_owned(),
            cwd: "/w/sub".into(),
            project: None,
            command: Some(
                "cat ../a.log>'out/b.txt' --file=c.env /etc/passwd .git/config ../.git/x && cd /w".into(),
            ),
            log: Some(log),
        };
        let (paths, offset) = named_paths(&call, Path::new("/w"), 0);
        let mut paths: Vec<_> = paths.into_iter().map(|path| String::from_utf8(path).unwrap()).collect();
        paths.sort();
        assert_eq!(paths, ["a.log", "build/read.txt", "sub/c.env", "sub/cat", "sub/out/b.txt"]);
        assert_eq!(offset, line.len() as u64 + 1);
        let (paths, _) = named_paths(&call, Path::new("/w"), offset);
        assert!(!paths.contains(&b"build/read.txt"[..]));
    }
}
