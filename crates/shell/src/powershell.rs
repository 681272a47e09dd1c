//! Commands of PowerShell.

use crate::effect::{CommandEffects, OtherChanges};
use crate::path::file_words;
use crate::program::{looks_like_reader_cmdlet, only_reads};

/// Characters of script blocks, calls, assignments and redirections, which are not followed.
const OTHER_SYNTAX: &[char] = &['>', '{', '(', '`', '@', '='];

/// Returns what a command of PowerShell does to files: nothing if it consists of commands that are known to
/// only read, otherwise anything.
///
/// ```
/// use threadline_shell::{OtherChanges, powershell_effects};
///
/// assert_eq!(powershell_effects("Get-Content a.txt | Select-Object -First 3").other_changes,
/// OtherChanges::None); let words = vec!["Set-Content".to_owned(), "a.txt".to_owned()];
/// assert_eq!(powershell_effects("Set-Content a.txt x").other_changes, OtherChanges::Any(words));
/// ```
pub fn powershell_effects(command: &str) -> CommandEffects {
    let reads = |part: &str| {
        let words: Vec<&str> = part.split_whitespace().collect();
        let Some((name, arguments)) = words.split_first() else { return true };
        let name = name.to_ascii_lowercase();
        let is_git = name == "git"
            && matches!(
                arguments.first(),
                Some(&("status" | "log" | "diff" | "show" | "branch" | "rev-parse" | "ls-files"))
            );
        is_git
            || looks_like_reader_cmdlet(&name)
            || !matches!(name.as_str(), "sort" | "tee" | "curl" | "date" | "diff" | "kill" | "time")
                && only_reads(&name, arguments)
    };
    let is_plain = !command.contains(OTHER_SYNTAX) && command.split(['|', ';', '\n', '&']).all(reads);
    let other_changes = if is_plain {
        OtherChanges::None
    } else {
        let mut changes = OtherChanges::Any(file_words(command).take(10_000).map(str::to_owned).collect());
        changes.deduplicate();
        changes
    };
    let lower = command.to_ascii_lowercase();
    let in_background =
        lower.contains("start-job") || lower.contains("start-process") || lower.trim_end().ends_with('&');
    CommandEffects { steps: Vec::new(), other_changes, in_background }
}
