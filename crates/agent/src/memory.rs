//! Memory files: `CLAUDE.md` and its relatives, which the user and the project write for the model.

use std::path::{Component, Path, PathBuf};

use ignore::gitignore::GitignoreBuilder;
use threadline_api::RawObject;

use crate::agent::Agent;
use crate::definition_file::read_text;
use crate::front_matter::FrontMatter;

/// The maximum depth of imports.
const MAX_IMPORT_DEPTH: usize = 4;
/// The largest size of all memory files, in bytes.
const MAX_TOTAL_SIZE: usize = 1 << 20;
/// The largest number of memory files.
const MAX_FILES: usize = 200;

/// The locations of memory files.
#[derive(Clone, Debug)]
pub struct MemoryPaths {
    /// Claude Code's home, such as `~/.claude`.
    pub claude_home: PathBuf,
    /// The home folder of the user.
    pub user_home: Option<PathBuf>,
    /// The working folder, without links.
    pub cwd: PathBuf,
}

/// The author of a memory file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// The user, for all projects.
    User,
    /// The project; it comes with the repository.
    Project,
    /// The user, for this project.
    Local,
}

/// A memory file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryFile {
    /// The file.
    pub path: PathBuf,
    /// Its author.
    pub kind: MemoryKind,
    /// The text.
    pub content: String,
}

/// Reads the memory files of a session, the most general one first.
///
/// Files of the project can import only files of the project, also after links are resolved: a repository
/// must not send private files of the user to the model.
pub fn read_memory(paths: &MemoryPaths) -> Vec<MemoryFile> {
    let mut reader = MemoryReader { paths, files: Vec::new(), total: 0 };
    let user = MemoryKind::User;
    reader.add(&paths.claude_home.join("CLAUDE.md"), user, 0);
    reader.add_rules(&paths.claude_home.join("rules"), user);
    let folders: Vec<&Path> = paths.cwd.ancestors().collect();
    for folder in folders.into_iter().rev() {
        // The user's own files are not those of a project, also if the working folder is inside of them.
        if folder.join(".claude") == paths.claude_home {
            continue;
        }
        reader.add(&folder.join("CLAUDE.md"), MemoryKind::Project, 0);
        reader.add(&folder.join(".claude/CLAUDE.md"), MemoryKind::Project, 0);
        reader.add_rules(&folder.join(".claude/rules"), MemoryKind::Project);
        reader.add(&folder.join("CLAUDE.local.md"), MemoryKind::Local, 0);
    }
    reader.files
}

/// Reads the memory files for a file below the working folder: those of its folders, and the rules for its
/// path.
pub(crate) fn read_nested_memory(paths: &MemoryPaths, file: &Path) -> Vec<MemoryFile> {
    let mut reader = MemoryReader { paths, files: Vec::new(), total: 0 };
    let Ok(relative) = file.strip_prefix(&paths.cwd) else { return Vec::new() };
    let folders: Vec<&Path> = file.ancestors().skip(1).take_while(|folder| *folder != paths.cwd).collect();
    for folder in folders.into_iter().rev() {
        reader.add(&folder.join("CLAUDE.md"), MemoryKind::Project, 0);
        reader.add(&folder.join("CLAUDE.local.md"), MemoryKind::Local, 0);
    }
    let mut rules = MemoryReader { paths, files: Vec::new(), total: 0 };
    rules.add_rules_where(&paths.cwd.join(".claude/rules"), MemoryKind::Project, &|text| {
        path_patterns(text).is_some_and(|patterns| matches_path(&patterns, &paths.cwd, relative))
    });
    reader.files.extend(rules.files);
    reader.files
}

/// Returns the text that puts the memory files into the conversation; `None` without files.
pub(crate) fn memory_reminder(files: &[MemoryFile]) -> Option<String> {
    if files.is_empty() {
        return None;
    }
    let mut text = "<system-reminder>\nInstructions of the user and of the project. Follow them where they \
                    apply to the task.\n"
        .to_owned();
    for file in files {
        let kind = match file.kind {
            MemoryKind::User => "written by the user for all projects",
            MemoryKind::Project => "part of the project",
            MemoryKind::Local => "written by the user for this project",
        };
        text.push_str(&format!("\n{} ({kind}):\n\n{}\n", file.path.display(), file.content.trim()));
    }
    text.push_str("</system-reminder>");
    Some(text)
}

impl Agent {
    /// Adds the memory files for files that were read to the results, each once.
    pub(crate) fn add_nested_memory(&mut self, read_files: &[PathBuf], results: &mut [RawObject]) {
        let paths = MemoryPaths {
            claude_home: self.config.paths.claude_home.clone(),
            user_home: self.config.paths.user_home.clone(),
            cwd: self.config.paths.cwd.clone(),
        };
        for path in read_files {
            let nested = read_nested_memory(&paths, path);
            let new: Vec<MemoryFile> =
                nested.into_iter().filter(|file| self.nested_memory.insert(file.path.clone())).collect();
            let Some(text) = memory_reminder(&new) else { continue };
            let is_text = |block: &&mut RawObject| block.get_str("content").is_some();
            if let Some(block) = results.iter_mut().rev().find(is_text) {
                let content = block.get_str("content").unwrap_or_default();
                block.set("content", format!("{content}\n\n{text}"));
            }
        }
    }
}

struct MemoryReader<'a> {
    paths: &'a MemoryPaths,
    files: Vec<MemoryFile>,
    total: usize,
}

impl MemoryReader<'_> {
    /// Adds a file and the files that it imports.
    fn add(&mut self, path: &Path, kind: MemoryKind, depth: usize) {
        if self.files.len() >= MAX_FILES || self.files.iter().any(|file| file.path == path) {
            return;
        }
        if !self.is_allowed(path, kind, depth > 0) {
            return;
        }
        let Some(content) = read_text(path) else { return };
        if self.total + content.len() > MAX_TOTAL_SIZE {
            return;
        }
        self.total += content.len();
        let imports = imports(&content);
        self.files.push(MemoryFile { path: path.to_owned(), kind, content });
        if depth >= MAX_IMPORT_DEPTH {
            return;
        }
        for import in imports {
            if let Some(target) = self.resolve_import(&import, path) {
                self.add(&target, kind, depth + 1);
            }
        }
    }

    /// Adds the rules of a folder, except those for certain paths only.
    fn add_rules(&mut self, folder: &Path, kind: MemoryKind) {
        self.add_rules_where(folder, kind, &|text| path_patterns(text).is_none());
    }

    /// Adds the rules of a folder that fulfil a condition.
    fn add_rules_where(&mut self, folder: &Path, kind: MemoryKind, condition: &dyn Fn(&str) -> bool) {
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        let mut paths: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            let is_link = path.is_symlink();
            if path.is_dir() && !is_link {
                self.add_rules_where(&path, kind, condition);
            } else if path.extension().is_some_and(|extension| extension == "md")
                && read_text(&path).is_some_and(|text| condition(&text))
            {
                self.add(&path, kind, 0);
            }
        }
    }

    /// Whether a file may be read. `is_import`: another file names it.
    fn is_allowed(&self, path: &Path, kind: MemoryKind, is_import: bool) -> bool {
        let Ok(real) = path.canonicalize() else { return false };
        let is_inside = |folder: &Path| folder.canonicalize().is_ok_and(|folder| real.starts_with(folder));
        match kind {
            MemoryKind::User => {
                is_inside(&self.paths.claude_home) || self.paths.user_home.as_deref().is_some_and(is_inside)
            }
            // The folders above the working folder have memory files of their own, but neither imports nor
            // links.
            MemoryKind::Project | MemoryKind::Local => {
                is_inside(&self.paths.cwd) || !is_import && real == path
            }
        }
    }

    fn resolve_import(&self, import: &str, from: &Path) -> Option<PathBuf> {
        let path = match import.strip_prefix("~/") {
            Some(rest) => self.paths.user_home.as_ref()?.join(rest),
            None => from.parent()?.join(import),
        };
        Some(normalize(&path))
    }
}

/// Removes `.` and `..` from a path.
fn normalize(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                result.pop();
            }
            part => result.push(part),
        }
    }
    result
}

/// Returns the patterns of a rule that applies to certain paths only.
fn path_patterns(text: &str) -> Option<Vec<String>> {
    let (front_matter, _) = FrontMatter::split(text);
    Some(front_matter.list("paths")).filter(|patterns| !patterns.is_empty())
}

/// Whether a path below a folder matches one of the patterns.
fn matches_path(patterns: &[String], folder: &Path, relative: &Path) -> bool {
    let mut builder = GitignoreBuilder::new(folder);
    for pattern in patterns {
        // A pattern that cannot be parsed matches nothing.
        let _ = builder.add_line(None, pattern);
    }
    builder.build().is_ok_and(|patterns| patterns.matched_path_or_any_parents(relative, false).is_ignore())
}

/// Returns the paths that a text imports with `@path`, outside of code.
fn imports(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_in_block = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~") {
            is_in_block = !is_in_block;
            continue;
        }
        if is_in_block {
            continue;
        }
        // Every second part is between backticks.
        for part in line.split('`').step_by(2) {
            let words = part.split_whitespace();
            let paths = words.filter_map(|word| word.strip_prefix('@'));
            found.extend(paths.filter(|path| is_path(path)).map(str::to_owned));
        }
    }
    found
}

/// Whether a word after `@` is a path, and not a name.
fn is_path(word: &str) -> bool {
    let first = word.chars().next();
    first.is_some_and(|ch| ch.is_alphanumeric() || matches!(ch, '.' | '/' | '~' | '_' | '-'))
        && !word.contains('@')
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Stage {
        dir: tempfile::TempDir,
    }

    impl Stage {
        fn new(files: &[(&str, &str)]) -> Self {
            let dir = tempfile::tempdir().unwrap();
            for (name, text) in files {
                let path = dir.path().join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            std::fs::create_dir_all(dir.path().join("home/.claude")).unwrap();
            std::fs::create_dir_all(dir.path().join("project")).unwrap();
            Self { dir }
        }

        fn read(&self) -> String {
            let root = self.dir.path().canonicalize().unwrap();
            let files = read_memory(&MemoryPaths {
                claude_home: root.join("home/.claude"),
                user_home: Some(root.join("home")),
                cwd: root.join("project"),
            });
            let texts = files.iter().map(|file| file.content.split_whitespace().next().unwrap_or_default());
            texts.collect::<Vec<_>>().join(" ")
        }
    }

    #[test]
    fn files_are_read_from_the_general_to_the_particular() {
        let stage = Stage::new(&[
            ("home/.claude/CLAUDE.md", "USER @more.md"),
            ("home/.claude/more.md", "MORE"),
            ("home/.claude/rules/a.md", "USER-RULE"),
            ("CLAUDE.md", "ABOVE"),
            ("project/CLAUDE.md", "PROJECT\n@docs/x.md"),
            ("project/docs/x.md", "IMPORTED"),
            ("project/.claude/CLAUDE.md", "DOT"),
            ("project/.claude/rules/b/c.md", "RULE"),
            ("project/.claude/rules/d.md", "---\npaths: src/**\n---\nCONDITIONAL"),
            ("project/CLAUDE.local.md", "LOCAL"),
        ]);
        assert_eq!(stage.read(), "USER MORE USER-RULE ABOVE PROJECT IMPORTED DOT RULE LOCAL");
    }

    #[test]
    fn files_below_have_memory_files_of_their_own() {
        let stage = Stage::new(&[
            ("project/CLAUDE.md", "ROOT"),
            ("project/src/CLAUDE.md", "SRC @more.md"),
            ("project/src/more.md", "MORE"),
            ("project/.claude/rules/p.md", "---\npaths: src/**\n---\nRULE"),
            ("project/.claude/rules/q.md", "---\npaths: docs/**\n---\nOTHER"),
            ("project/src/a.txt", "a"),
        ]);
        let root = stage.dir.path().canonicalize().unwrap();
        let paths = MemoryPaths {
            claude_home: root.join("home/.claude"),
            user_home: Some(root.join("home")),
            cwd: root.join("project"),
        };
        let texts = |file: &str| {
            let files = read_nested_memory(&paths, &root.join("project").join(file));
            files.iter().map(|file| file.content.trim().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(texts("src/a.txt"), ["SRC @more.md", "MORE", "---\npaths: src/**\n---\nRULE"]);
        assert_eq!(texts("README.md"), Vec::<String>::new());
    }

    #[test]
    fn imports_in_code_and_of_names_are_not_followed() {
        let stage = Stage::new(&[
            ("project/CLAUDE.md", "ROOT `@a.md` mail@b.md\n```\n@c.md\n```\n@missing.md @d.md"),
            ("project/a.md", "A"),
            ("project/b.md", "B"),
            ("project/c.md", "C"),
            ("project/d.md", "D @CLAUDE.md"),
        ]);
        assert_eq!(stage.read(), "ROOT D");
    }

    #[test]
    fn the_depth_of_imports_is_limited() {
        let files: Vec<(String, String)> = (0..9)
            .map(|i| {
                let name = if i == 0 { "project/CLAUDE.md".to_owned() } else { format!("project/{i}.md") };
                (name, format!("{i} @{}.md", i + 1))
            })
            .collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
        assert_eq!(Stage::new(&files).read(), "0 1 2 3 4");
    }

    #[cfg(unix)]
    #[test]
    fn a_project_imports_nothing_from_outside() {
        let stage = Stage::new(&[
            ("home/secret.md", "SECRET"),
            ("project/CLAUDE.md", "ROOT @~/secret.md @../home/secret.md @link.md @/etc/hostname"),
        ]);
        let root = stage.dir.path();
        std::os::unix::fs::symlink(root.join("home/secret.md"), root.join("project/link.md")).unwrap();
        assert_eq!(stage.read(), "ROOT");
        // A memory file that is itself a link out of the project is not read either.
        std::fs::remove_file(root.join("project/CLAUDE.md")).unwrap();
        std::os::unix::fs::symlink(root.join("home/secret.md"), root.join("project/CLAUDE.md")).unwrap();
        assert_eq!(stage.read(), "");
    }
}
