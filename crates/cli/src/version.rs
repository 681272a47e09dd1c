//! The version of this program: release, commit, and the supported versions of Claude Code's format.

use std::sync::LazyLock;

use threadline_session::ClientVersion;

/// The release.
pub(crate) const RELEASE: &str = env!("CARGO_PKG_VERSION");
/// The commit it was built from; empty if unknown.
const COMMIT: &str = env!("THREADLINE_COMMIT");

/// The text of `--version`.
pub(crate) static LONG: LazyLock<String> = LazyLock::new(|| {
    let mut text = RELEASE.to_owned();
    if !COMMIT.is_empty() {
        text.push_str(&format!(" ({COMMIT})"));
    }
    let (oldest, newest) = (ClientVersion::OLDEST, ClientVersion::NEWEST);
    text.push_str(&format!("\nsession format: Claude Code {oldest} to {newest}"));
    text.push_str(&format!("\nJSON schema: {}", threadline_view::wire::SCHEMA));
    text
});

/// Identifies the program for caches: the release, the commit, and the file, which differs in every build.
pub(crate) fn build_id() -> String {
    let file = std::env::current_exe().and_then(std::fs::metadata);
    let file = file.and_then(|file| Ok((file.len(), file.modified()?)));
    let built = file.map(|(size, time)| {
        let time = time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        format!("{size} {}", time.as_nanos())
    });
    format!("{RELEASE} {COMMIT} {}", built.unwrap_or_default())
}
