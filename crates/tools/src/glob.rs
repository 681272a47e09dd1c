//! Glob: finds files by name.

use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use ignore::overrides::OverrideBuilder;
use ignore::{DirEntry, WalkBuilder};
use serde::Serialize;

use crate::context::ToolContext;
use crate::output::{Failure, ToolOutput};
use crate::paths::resolve;
use crate::profile::Profile;
use crate::schema::{Kind, Parameter, optional, required};
use crate::tool::{InputSchema, Permit, Tool, ToolInput};

/// The Glob tool.
pub(crate) struct Glob {
    pub(crate) profile: &'static Profile,
}

const PARAMETERS: &[Parameter] = &[
    required("pattern", Kind::Text(0), "The pattern, such as `**/*.rs` or `src/*.{ts,tsx}`"),
    optional("path", Kind::Text(0), "The folder to search; the current folder if left out"),
];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GlobRecord<'a> {
    filenames: &'a [String],
    duration_ms: u64,
    num_files: usize,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_matches: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count_is_complete: Option<bool>,
}

impl Tool for Glob {
    fn name(&self) -> &str {
        "Glob"
    }

    fn description(&self) -> String {
        "Finds files whose path matches a glob pattern, oldest first, also hidden and ignored ones. At most 100 are \
         returned."
            .to_owned()
    }

    fn schema(&self) -> InputSchema<'_> {
        InputSchema::Parameters(PARAMETERS)
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        true
    }

    fn converts_text(&self) -> bool {
        self.profile.converts_text
    }

    fn run(&self, input: &ToolInput, context: &ToolContext<'_>, _: Permit) -> ToolOutput {
        self.find(input, context).unwrap_or_else(|failure| failure.into_output(self.name()))
    }
}

impl Glob {
    fn find(&self, input: &ToolInput, context: &ToolContext<'_>) -> Result<ToolOutput, Failure> {
        let started = Instant::now();
        let pattern = input.text("pattern").unwrap_or_default();
        let root = match input.text("path") {
            Some(given) => search_root(given, self.profile, context)?,
            None => context.cwd(),
        };
        let (root, pattern) = split_absolute(pattern).unwrap_or_else(|| (root, pattern.to_owned()));
        let mut found = matching_files(&root, &pattern, context)?;
        // Files of the same time stay in the order of the folder.
        found.sort_by_key(|(modified, _)| *modified);
        let total = found.len();
        found.truncate(context.limits.glob_results);
        let cwd = context.cwd();
        let names: Vec<_> = found
            .iter()
            .map(
                |(_, path)| {
                    if self.profile.glob_is_relative { show_path(path, &cwd) } else { show_absolute(path) }
                },
            )
            .collect();
        let truncated = total > names.len();
        let mut lines = names.clone();
        if names.is_empty() {
            lines.push("No files found".to_owned());
        } else if truncated && self.profile.glob_counts_matches {
            let left = total - names.len();
            lines.push(format!(
                "(Showing {} of {total} matching files; {left} more are not listed. Narrow the pattern or path to see \
                 the rest.)",
                names.len()
            ));
        } else if truncated {
            lines.push("(Results are truncated. Consider using a more specific path or pattern.)".to_owned());
        }
        let counts = self.profile.glob_counts_matches;
        let record = GlobRecord {
            filenames: &names,
            duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX).max(1),
            num_files: names.len(),
            truncated,
            total_matches: counts.then_some(total),
            count_is_complete: counts.then_some(true),
        };
        Ok(ToolOutput::success(lines.join("\n"), &record))
    }
}

/// Returns the folder to search.
fn search_root(given: &str, profile: &Profile, context: &ToolContext<'_>) -> Result<PathBuf, Failure> {
    let root = resolve(given, context)?;
    if !root.exists() {
        return Err(Failure::Refused(missing_path("Directory", given, profile, context)));
    }
    if !root.is_dir() {
        return Err(Failure::Refused(format!("Path is not a directory: {given}")));
    }
    Ok(root)
}

/// Returns the text for a folder or path that does not exist.
pub(crate) fn missing_path(noun: &str, given: &str, profile: &Profile, context: &ToolContext<'_>) -> String {
    if !profile.missing_file_names_cwd {
        return format!("{noun} does not exist: {given}");
    }
    let cwd = context.cwd();
    format!("{noun} does not exist: {given}. Note: your current working directory is {}.", cwd.display())
}

/// Splits an absolute pattern into the folder before its first wildcard and the rest.
fn split_absolute(pattern: &str) -> Option<(PathBuf, String)> {
    if !pattern.starts_with('/') {
        return None;
    }
    let wildcard = pattern.find(['*', '?', '[', '{']).unwrap_or(pattern.len());
    let slash = pattern[..wildcard].rfind('/')?;
    Some((PathBuf::from(&pattern[..=slash]), pattern[slash + 1..].to_owned()))
}

/// Returns the files below `root` that match, with their time of change, in the order of the folders.
fn matching_files(
    root: &Path,
    pattern: &str,
    context: &ToolContext<'_>,
) -> Result<Vec<(SystemTime, PathBuf)>, Failure> {
    let mut overrides = OverrideBuilder::new(root);
    let Ok(overrides) = overrides.add(pattern).and_then(|overrides| overrides.build()) else {
        return Ok(Vec::new());
    };
    let mut walk = WalkBuilder::new(root);
    walk.standard_filters(false).overrides(overrides).filter_entry(is_searchable);
    let deadline = Instant::now() + context.limits.search_time;
    let mut found = Vec::new();
    for entry in walk.build().flatten() {
        if context.cancel.is_cancelled() {
            return Err(Failure::Failed("Interrupted by user".to_owned()));
        }
        if Instant::now() > deadline {
            return Err(search_timed_out(context));
        }
        if entry.file_type().is_some_and(|kind| kind.is_file()) && !(context.is_hidden)(entry.path()) {
            let modified = entry.metadata().ok().and_then(|metadata| metadata.modified().ok());
            found.push((modified.unwrap_or(UNIX_EPOCH), entry.into_path()));
        }
    }
    Ok(found)
}

/// Returns whether a walk enters a folder. The file systems of the kernel contain no files of the user, and
/// some of their files block when they are read.
pub(crate) fn is_searchable(entry: &DirEntry) -> bool {
    let is_kernel = || ["/proc", "/sys", "/dev"].iter().any(|path| entry.path() == Path::new(path));
    entry.depth() == 0 || !is_kernel()
}

/// Returns the failure of a search that took too long.
pub(crate) fn search_timed_out(context: &ToolContext<'_>) -> Failure {
    Failure::Failed(format!(
        "The search timed out after {} seconds. Search a smaller folder or use a more specific pattern.",
        context.limits.search_time.as_secs()
    ))
}

/// Returns a path relative to the current folder if it is below it.
pub(crate) fn show_path(path: &Path, cwd: &Path) -> String {
    show_absolute(path.strip_prefix(cwd).unwrap_or(path))
}

fn show_absolute(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use crate::testing::Fixture;

    fn with_files() -> Fixture {
        let fixture = Fixture::new();
        let files =
            ["src/a.py", "src/deep/c.js", ".hidden/h.txt", ".gitignore", "ignored/i.txt", ".git/config"];
        for (age, name) in files.iter().enumerate() {
            let path = fixture.put(name, "ignored/\n");
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000 + age as u64);
            std::fs::File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
        }
        fixture
    }

    fn glob(fixture: &Fixture, pattern: &str) -> String {
        fixture.text("Glob", &format!(r#"{{"pattern": "{pattern}"}}"#))
    }

    #[test]
    fn all_files_are_found_oldest_first() {
        let fixture = with_files();
        let all = "src/a.py\nsrc/deep/c.js\n.hidden/h.txt\n.gitignore\nignored/i.txt\n.git/config";
        assert_eq!(glob(&fixture, "**/*"), all);
        assert_eq!(glob(&fixture, "*"), all);
    }

    #[test]
    fn patterns_match_as_in_ripgrep() {
        let fixture = with_files();
        for (pattern, expected) in [
            ("*.py", "src/a.py"),
            ("src/*", "src/a.py"),
            ("src/**/*.js", "src/deep/c.js"),
            ("*.{js,py}", "src/a.py\nsrc/deep/c.js"),
            ("$CWD/src/*.py", "src/a.py"),
            ("src", "No files found"),
            ("./src/*.py", "No files found"),
            ("[", "No files found"),
            ("/nonexistent/*", "No files found"),
        ] {
            assert_eq!(glob(&fixture, pattern), expected, "{pattern}");
        }
        assert_eq!(fixture.text("Glob", r#"{"pattern": "*.py", "path": "src"}"#), "src/a.py");
    }

    #[test]
    fn the_record_counts_matches() {
        let fixture = with_files();
        let record = fixture.record("Glob", r#"{"pattern": "*.py"}"#);
        let start = r#"{"filenames":["src/a.py"],"durationMs":"#;
        let end = r#","numFiles":1,"truncated":false,"totalMatches":1,"countIsComplete":true}"#;
        assert!(record.starts_with(start) && record.ends_with(end), "{record}");
    }

    #[test]
    fn folders_that_do_not_exist_are_refused() {
        let fixture = with_files();
        assert_eq!(
            fixture.text("Glob", r#"{"pattern": "*", "path": "$CWD/nowhere"}"#),
            "ERR <tool_use_error>Directory does not exist: $CWD/nowhere. Note: your current working directory is $CWD.\
             </tool_use_error>"
        );
        assert_eq!(
            fixture.text("Glob", r#"{"pattern": "*", "path": "$CWD/src/a.py"}"#),
            "ERR <tool_use_error>Path is not a directory: $CWD/src/a.py</tool_use_error>"
        );
    }

    #[test]
    fn a_search_that_takes_too_long_ends() {
        let mut fixture = with_files();
        fixture.limits.search_time = std::time::Duration::ZERO;
        let text = "ERR The search timed out after 0 seconds. Search a smaller folder or use a more specific pattern.";
        assert_eq!(glob(&fixture, "*.py"), text);
        assert_eq!(fixture.text("Grep", r#"{"pattern": "x"}"#), text);
    }

    #[test]
    fn a_hundred_files_are_shown() {
        let fixture = Fixture::new();
        (0..103).for_each(|n| drop(fixture.put(&format!("f{n}.txt"), "")));
        let text = glob(&fixture, "*.txt");
        assert_eq!(text.lines().count(), 101);
        assert_eq!(
            text.lines().last().unwrap(),
            "(Showing 100 of 103 matching files; 3 more are not listed. Narrow the pattern or path to see the rest.)"
        );
    }
}
