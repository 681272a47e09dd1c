//! What threadline learns from around it: environment variables, which are named here and nowhere else, and the time zone.

use jiff::tz::TimeZone;

/// Where Claude Code keeps its folder; several may be given, set apart by commas.
pub(crate) const CLAUDE_CONFIG_DIR: &str = "CLAUDE_CONFIG_DIR";
/// No colours, where set to anything but nothing.
pub(crate) const NO_COLOR: &str = "NO_COLOR";
/// The pager for long answers; before [`PAGER`].
pub(crate) const THREADLINE_PAGER: &str = "THREADLINE_PAGER";
/// The pager for long answers.
pub(crate) const PAGER: &str = "PAGER";
/// How wide to write where there is no terminal to ask.
pub(crate) const COLUMNS: &str = "COLUMNS";

/// Who uses Claude Code, for traces.
pub(crate) const LANGFUSE_USER_ID: &str = "LANGFUSE_USER_ID";
/// The environment that traces are of.
pub(crate) const LANGFUSE_TRACING_ENVIRONMENT: &str = "LANGFUSE_TRACING_ENVIRONMENT";
/// The release that traces are of.
pub(crate) const LANGFUSE_RELEASE: &str = "LANGFUSE_RELEASE";

/// From what size on glibc asks the system for each block of memory by itself, and gives it back.
pub(crate) const MALLOC_MMAP_THRESHOLD: &str = "MALLOC_MMAP_THRESHOLD_";

/// Variables that terminals set which can open links, and the one by which a person says so.
const LINKS: &[&str] =
    &["FORCE_HYPERLINK", "VTE_VERSION", "WT_SESSION", "KITTY_WINDOW_ID", "KONSOLE_VERSION", "DOMTERM"];
/// The terminal, as some of them call themselves.
const TERM_PROGRAM: &str = "TERM_PROGRAM";

/// Whether the terminal is one that can open links.
pub(crate) fn knows_links() -> bool {
    let program = get(TERM_PROGRAM).unwrap_or_default();
    LINKS.iter().any(|name| get(name).is_some_and(|value| value != "0"))
        || ["iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper"].contains(&&*program)
}

/// The time zone to use instead of the system's.
const TZ: &str = "TZ";
/// The system's, on whatever is like Unix.
const LOCALTIME: &str = "/etc/localtime";

/// The zone that times are shown in.
pub(crate) fn zone() -> TimeZone {
    // All that is needed is in the file. To learn its name as well, every zone there is would be looked through.
    let file = std::env::var_os(TZ).is_none().then(|| std::fs::read(LOCALTIME).ok()).flatten();
    file.and_then(|file| TimeZone::tzif("local", &file).ok()).unwrap_or_else(TimeZone::system)
}

/// The value of a variable, if it is set to something.
pub(crate) fn get(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
