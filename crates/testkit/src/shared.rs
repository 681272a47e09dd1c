//! Test data on disk: the files of the repository, and an optional folder next to it.

use std::path::{Path, PathBuf};

/// Returns the folder of shared test data: `THREADLINE_SHARED`, or `shared` next to the workspace.
///
/// If it does not exist, prints that the test is skipped and returns `None`; the caller then returns.
pub fn shared() -> Option<PathBuf> {
    #[allow(clippy::disallowed_methods, reason = "the only place that reads the variable")]
    let named = std::env::var_os("THREADLINE_SHARED");
    let folder = named.map_or_else(|| workspace().join("../shared"), PathBuf::from);
    // Another folder may have that name.
    if ["corpus", "truth"].iter().all(|part| folder.join(part).is_dir()) {
        return Some(folder);
    }
    crate::report_skipped(&format!("no real sessions in {} (set THREADLINE_SHARED)", folder.display()));
    None
}

/// Returns every log in the `corpus` of the shared test data, sorted; empty if there is none.
pub fn shared_logs() -> Vec<PathBuf> {
    let mut logs = Vec::new();
    if let Some(shared) = shared() {
        find_logs(&shared.join("corpus"), &mut logs);
    }
    logs.sort();
    logs
}

/// Returns the folder of small logs in the repository, each with one peculiarity.
pub fn corpus() -> PathBuf {
    workspace().join("corpus")
}

/// Returns the home of the demo.
pub fn demo() -> PathBuf {
    workspace().join("demo")
}

pub(crate) fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/testkit is in a workspace")
}

fn find_logs(folder: &Path, logs: &mut Vec<PathBuf>) {
    for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            find_logs(&path, logs);
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            logs.push(path);
        }
    }
}
