//! Environment variables, which are named only here, and the time zone.

use jiff::tz::TimeZone;

/// The home of Claude Code, or several separated by commas.
pub(crate) const CLAUDE_CONFIG_DIR: &str = "CLAUDE_CONFIG_DIR";
/// Disables colours if set and not empty.
pub(crate) const NO_COLOR: &str = "NO_COLOR";
/// The pager for long output; takes precedence over [`PAGER`].
pub(crate) const THREADLINE_PAGER: &str = "THREADLINE_PAGER";
/// The pager for long output.
pub(crate) const PAGER: &str = "PAGER";
/// The output width, if the size of the terminal is unavailable.
pub(crate) const COLUMNS: &str = "COLUMNS";

/// The user id in traces.
pub(crate) const LANGFUSE_USER_ID: &str = "LANGFUSE_USER_ID";
/// The environment name in traces.
pub(crate) const LANGFUSE_TRACING_ENVIRONMENT: &str = "LANGFUSE_TRACING_ENVIRONMENT";
/// The release name in traces.
pub(crate) const LANGFUSE_RELEASE: &str = "LANGFUSE_RELEASE";

/// The size from which glibc allocates a block with `mmap`, and returns it to the system when freed.
pub(crate) const MALLOC_MMAP_THRESHOLD: &str = "MALLOC_MMAP_THRESHOLD_";

/// Variables set by terminals that support hyperlinks, and the one with which users enable them.
const HYPERLINK_VARIABLES: &[&str] =
    &["FORCE_HYPERLINK", "VTE_VERSION", "WT_SESSION", "KITTY_WINDOW_ID", "KONSOLE_VERSION", "DOMTERM"];
/// The name of the terminal program, which some terminals set.
const TERM_PROGRAM: &str = "TERM_PROGRAM";

/// Returns whether the terminal supports hyperlinks.
pub(crate) fn supports_hyperlinks() -> bool {
    let program = get(TERM_PROGRAM).unwrap_or_default();
    HYPERLINK_VARIABLES.iter().any(|name| get(name).is_some_and(|value| value != "0"))
        || ["iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper"].contains(&&*program)
}

/// The time zone to use instead of the system's.
const TZ: &str = "TZ";
/// The system's time zone on Unix.
const LOCALTIME: &str = "/etc/localtime";

/// Returns the time zone in which times are shown.
pub(crate) fn time_zone() -> TimeZone {
    // Reads the file directly: to find its name as well, `TimeZone::system` would search all zones.
    let file = std::env::var_os(TZ).is_none().then(|| std::fs::read(LOCALTIME).ok()).flatten();
    file.and_then(|file| TimeZone::tzif("local", &file).ok()).unwrap_or_else(TimeZone::system)
}

/// Returns the value of a variable, if it is set and not empty.
pub(crate) fn get(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
