//! `sed`, which can write files and run commands.

use crate::mode::PermissionMode;
use threadline_shell::command_line::Word;

/// A call of `sed`.
pub(super) struct SedCall {
    pub(super) scripts: Vec<String>,
    pub(super) files: Vec<Word>,
    /// Whether it only prints lines by their numbers.
    pub(super) is_line_printer: bool,
    has_unknown_option: bool,
    is_in_place: bool,
}

pub(super) fn parse(arguments: &[Word]) -> SedCall {
    let mut scripts = Vec::new();
    let mut files = Vec::new();
    let mut is_quiet = false;
    let mut is_in_place = false;
    let mut has_unknown_option = false;
    let mut is_script = false;
    let mut is_options = true;
    for word in arguments {
        let text = word.text.as_str();
        if word.is_dynamic {
            has_unknown_option = true;
        }
        if std::mem::take(&mut is_script) {
            scripts.push(text.to_owned());
            continue;
        }
        match text {
            "--" if is_options => is_options = false,
            "-n" | "--quiet" | "--silent" if is_options => is_quiet = true,
            "-i" | "--in-place" if is_options => is_in_place = true,
            "-E" | "-r" | "--regexp-extended" | "-z" | "-s" | "-u" if is_options => {}
            "-e" | "--expression" if is_options => is_script = true,
            "-ne" if is_options => {
                is_quiet = true;
                is_script = true;
            }
            _ if is_options && text.starts_with('-') && text.len() > 1 => has_unknown_option = true,
            _ if scripts.is_empty() => scripts.push(text.to_owned()),
            _ => files.push(word.clone()),
        }
    }
    let is_print = |script: &String| script.split(';').all(is_line_print);
    let is_line_printer = is_quiet
        && !is_in_place
        && !has_unknown_option
        && !scripts.is_empty()
        && scripts.iter().all(is_print);
    SedCall { scripts, files, is_line_printer, has_unknown_option, is_in_place }
}

/// Whether a command is `5p` or `1,5p`.
fn is_line_print(command: &str) -> bool {
    let Some(lines) = command.trim().strip_suffix('p') else { return false };
    let mut numbers = lines.split(',');
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    numbers.clone().count() <= 2 && numbers.all(is_number)
}

/// Returns whether a call does nothing but print lines or replace text.
pub(super) fn is_safe(arguments: &[Word], mode: PermissionMode) -> bool {
    let sed = parse(arguments);
    if sed.is_line_printer {
        return true;
    }
    let may_edit = mode == PermissionMode::AcceptEdits;
    !sed.has_unknown_option
        && sed.scripts.len() == 1
        && sed.scripts.iter().all(|script| is_substitution(script))
        && (may_edit || !sed.is_in_place)
}

/// Whether a script is one `s/…/…/` without flags that write or run something.
fn is_substitution(script: &str) -> bool {
    let Some(rest) = script.trim().strip_prefix("s/") else { return false };
    let mut parts = vec![String::new()];
    let mut chars = rest.chars();
    while let Some(ch) = chars.next() {
        match ch {
            '\\' => {
                let last = parts.last_mut().expect("there is a part");
                last.push(ch);
                last.extend(chars.next());
            }
            '/' => parts.push(String::new()),
            '\n' => return false,
            ch => parts.last_mut().expect("there is a part").push(ch),
        }
    }
    parts.len() == 3 && parts[2].chars().all(|ch| "gpiIm0123456789".contains(ch))
}
