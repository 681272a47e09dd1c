//! The names of the environment variables that threadline reads, and nowhere else.

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

/// The value of a variable, if it is set to something.
pub(crate) fn get(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
