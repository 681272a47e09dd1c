//! Profiles: the tools, texts and habits of one version of Claude Code, as data.

use crate::set::ToolKind;

/// The behaviour of the tools in one version. Everything in which versions differ is a field.
#[derive(Debug)]
pub struct Profile {
    /// The version, for example `2.1.197`.
    pub version: &'static str,
    /// The tools of this crate that are sent by default, in order.
    pub(crate) default_tools: &'static [ToolKind],
    /// Tools that exist and are sent only if they are selected by name.
    pub(crate) selectable_tools: &'static [ToolKind],
    /// Names of further tools of the version: calls of them are answered with "exists but is not enabled".
    pub(crate) other_tools: &'static [&'static str],
    /// Whether tools are sent in the order of their names.
    pub(crate) sorts_tools: bool,
    /// How Read numbers lines.
    pub(crate) line_numbers: LineNumbers,
    /// Whether a repeated Read of an unchanged file is answered with a note.
    pub(crate) notes_repeated_reads: bool,
    /// Text appended to each Read of a text file.
    pub(crate) read_suffix: &'static str,
    /// Whether the text for a missing file names the current folder.
    pub(crate) missing_file_names_cwd: bool,
    /// Whether Read checks that the file exists before the call proper, which wraps the error.
    pub(crate) read_checks_existence: bool,
    /// Whether the error for a folder names it.
    pub(crate) folder_error_names_path: bool,
    /// Whether the note about a reset folder is separated from the output by a line end.
    pub(crate) reset_note_begins_line: bool,
    /// Whether a call whose input is not JSON is answered as such; otherwise it counts as a call without
    /// input.
    pub(crate) reports_unparsed_input: bool,
    /// Whether the error of a disabled tool mentions that the tool exists.
    pub(crate) names_disabled_tools: bool,
    /// Text appended to the results of Write and Edit.
    pub(crate) written_suffix: &'static str,
    /// Whether the result of Edit with `replace_all` quotes both strings.
    pub(crate) replace_all_quotes: bool,
    /// The form of the result of Write on an existing file.
    pub(crate) overwrite_text: OverwriteText,
    /// Whether records of Write contain `userModified`.
    pub(crate) write_records_user_modified: bool,
    /// Whether strings are accepted for numbers and booleans.
    pub(crate) converts_text: bool,
    /// The result of a Bash call without output.
    pub(crate) bash_no_output: &'static str,
    /// Whether records of Bash contain `noOutputExpected`.
    pub(crate) bash_records_expectation: bool,
    /// Whether records of Bash list git operations.
    pub(crate) bash_records_git: bool,
    /// The exit code that is shown for a shell killed by SIGTERM.
    pub(crate) sigterm_code: i32,
    /// Whether Glob returns paths relative to the current folder.
    pub(crate) glob_is_relative: bool,
    /// Whether Glob reports the number of all matches.
    pub(crate) glob_counts_matches: bool,
    /// Whether Grep limits its results by default, and names only the parts of the limit that had an effect.
    pub(crate) grep_limits_by_default: bool,
    /// Whether counts of Grep in a single file begin with its name.
    pub(crate) grep_names_single_file: bool,
    /// Whether notebooks must be read before they are changed.
    pub(crate) notebooks_must_be_read: bool,
    /// Whether the record of TaskStop contains the command.
    pub(crate) stop_records_command: bool,
    /// Whether image records contain dimensions.
    pub(crate) image_dimensions: bool,
    /// Whether the call of a background command mentions the notification.
    pub(crate) background_notifies: bool,
}

/// The way in which Read numbers lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineNumbers {
    /// `10<TAB>line`
    Tab,
    /// `    10→line`
    Arrow,
}

/// The result of Write on an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OverwriteText {
    /// One sentence.
    Short,
    /// The new content with line numbers.
    Snippet,
}

/// The note of 2.1.197 after each write.
const STATE_IS_CURRENT: &str = " (file state is current in your context — no need to Read it back)";

impl Profile {
    /// Returns whether a call whose input is not JSON is answered with [`crate::unparsed_input`]. Otherwise
    /// it counts as a call with an empty object.
    #[must_use]
    pub fn reports_unparsed_input(&self) -> bool {
        self.reports_unparsed_input
    }

    /// The default profile.
    pub const V2_1_197: Self = Self {
        version: "2.1.197",
        default_tools: &[
            ToolKind::Bash,
            ToolKind::Edit,
            ToolKind::NotebookEdit,
            ToolKind::Read,
            ToolKind::TaskCreate,
            ToolKind::TaskGet,
            ToolKind::TaskList,
            ToolKind::TaskOutput,
            ToolKind::TaskStop,
            ToolKind::TaskUpdate,
            ToolKind::WebFetch,
            ToolKind::WebSearch,
            ToolKind::Write,
        ],
        selectable_tools: &[ToolKind::Glob, ToolKind::Grep],
        other_tools: &[
            "Agent",
            "AskUserQuestion",
            "CronCreate",
            "CronDelete",
            "CronList",
            "EnterPlanMode",
            "EnterWorktree",
            "ExitPlanMode",
            "ExitWorktree",
            "ReportFindings",
            "ScheduleWakeup",
            "SendMessage",
            "Skill",
            "TodoWrite",
            "Workflow",
        ],
        sorts_tools: true,
        line_numbers: LineNumbers::Tab,
        notes_repeated_reads: true,
        read_suffix: "",
        missing_file_names_cwd: true,
        read_checks_existence: false,
        folder_error_names_path: true,
        reset_note_begins_line: true,
        reports_unparsed_input: true,
        names_disabled_tools: true,
        written_suffix: STATE_IS_CURRENT,
        replace_all_quotes: false,
        overwrite_text: OverwriteText::Short,
        write_records_user_modified: true,
        converts_text: true,
        bash_no_output: "(Bash completed with no output)",
        bash_records_expectation: true,
        bash_records_git: true,
        sigterm_code: 144,
        glob_is_relative: true,
        glob_counts_matches: true,
        grep_limits_by_default: true,
        grep_names_single_file: true,
        notebooks_must_be_read: true,
        stop_records_command: true,
        image_dimensions: true,
        background_notifies: true,
    };

    /// The profile of seed documents: `%6d→` line numbers, TodoWrite, Glob and Grep by default.
    pub const V2_1_20: Self = Self {
        version: "2.1.20",
        default_tools: &[
            ToolKind::TaskOutput,
            ToolKind::Bash,
            ToolKind::Glob,
            ToolKind::Grep,
            ToolKind::Read,
            ToolKind::Edit,
            ToolKind::Write,
            ToolKind::NotebookEdit,
            ToolKind::WebFetch,
            ToolKind::TodoWrite,
            ToolKind::WebSearch,
            ToolKind::TaskStop,
        ],
        selectable_tools: &[],
        other_tools: &["AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "Skill", "Task"],
        sorts_tools: false,
        line_numbers: LineNumbers::Arrow,
        notes_repeated_reads: false,
        read_suffix: "",
        missing_file_names_cwd: false,
        read_checks_existence: true,
        folder_error_names_path: false,
        reset_note_begins_line: false,
        reports_unparsed_input: false,
        names_disabled_tools: false,
        written_suffix: "",
        replace_all_quotes: true,
        overwrite_text: OverwriteText::Snippet,
        write_records_user_modified: false,
        converts_text: false,
        bash_no_output: "",
        bash_records_expectation: false,
        bash_records_git: false,
        sigterm_code: 143,
        glob_is_relative: false,
        glob_counts_matches: false,
        grep_limits_by_default: false,
        grep_names_single_file: false,
        notebooks_must_be_read: false,
        stop_records_command: false,
        image_dimensions: true,
        background_notifies: false,
    };
}

/// All profiles, newest first.
static ALL: [Profile; 2] = [Profile::V2_1_197, Profile::V2_1_20];

impl Profile {
    /// Returns the profile of a version.
    #[must_use]
    pub fn find(version: &str) -> Option<&'static Self> {
        ALL.iter().find(|profile| profile.version == version)
    }

    /// Returns the known versions.
    #[must_use]
    pub fn versions() -> Vec<&'static str> {
        ALL.iter().map(|profile| profile.version).collect()
    }
}
