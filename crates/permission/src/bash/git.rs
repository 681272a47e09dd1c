//! Commands of git that change nothing, and folders in which no command of git is harmless.

use std::path::Path;

/// Options that are harmless for the commands that show history, differences and lists.
const OPTIONS: &[&str] = &[
    "--abbrev",
    "--abbrev-commit",
    "--abbrev-ref",
    "--absolute-git-dir",
    "--after",
    "--all",
    "--always",
    "--ancestry-path",
    "--author",
    "--before",
    "--branches",
    "--cached",
    "--cherry-pick",
    "--color",
    "--color-words",
    "--column",
    "--committer",
    "--contains",
    "--count",
    "--date",
    "--decorate",
    "--deleted",
    "--diff-filter",
    "--dirstat",
    "--dirty",
    "--error-unmatch",
    "--exact-match",
    "--exclude-standard",
    "--first-parent",
    "--follow",
    "--format",
    "--full-history",
    "--full-index",
    "--get",
    "--get-all",
    "--get-regexp",
    "--git-dir",
    "--graph",
    "--grep",
    "--heads",
    "--histogram",
    "--ignore-all-space",
    "--ignore-blank-lines",
    "--ignore-case",
    "--ignore-space-change",
    "--ignored",
    "--invert-grep",
    "--is-inside-work-tree",
    "--left-right",
    "--line-number",
    "--list",
    "--local",
    "--long",
    "--max-count",
    "--max-parents",
    "--merge-base",
    "--merged",
    "--merges",
    "--minimal",
    "--modified",
    "--name-only",
    "--name-status",
    "--no-abbrev",
    "--no-color",
    "--no-decorate",
    "--no-ext-diff",
    "--no-index",
    "--no-merged",
    "--no-merges",
    "--no-pager",
    "--no-patch",
    "--no-renames",
    "--no-textconv",
    "--numstat",
    "--oneline",
    "--others",
    "--parents",
    "--patch",
    "--patience",
    "--points-at",
    "--porcelain",
    "--pretty",
    "--quiet",
    "--raw",
    "--refs",
    "--relative",
    "--remotes",
    "--reverse",
    "--short",
    "--shortstat",
    "--show-current",
    "--show-prefix",
    "--show-signature",
    "--show-stash",
    "--show-toplevel",
    "--simplify-merges",
    "--since",
    "--skip",
    "--sort",
    "--staged",
    "--stat",
    "--stat-width",
    "--stage",
    "--submodule",
    "--summary",
    "--symbolic-full-name",
    "--tags",
    "--text",
    "--unified",
    "--until",
    "--untracked-files",
    "--verbose",
    "--verify",
    "--walk-reflogs",
    "--word-diff",
    "--branch",
    "--is-ancestor",
    "--numbered",
    "--email",
    "--left-only",
    "--right-only",
    "--no-optional-locks",
    "--topo-order",
    "--date-order",
    "--name",
    "--show-number",
    "--untracked",
    "--fixed-strings",
    "--extended-regexp",
    "--perl-regexp",
    "--word-regexp",
    "--files-with-matches",
    "--ignore-submodules",
    "--show-cdup",
    "--is-bare-repository",
    "--heading",
    "--break",
    "--no-column",
    "--ahead-behind",
    "--batch-check",
];

/// Letters of short options that are harmless for these commands.
const LETTERS: &str = "abcdefghilmnpqrstuvwzSGLMCUDEFHIPRWXZ0123456789";

/// Whether git takes a folder, or one above it, for a bare repository by its content. Such a folder can be
/// part of a cloned project, and its configuration makes git run commands (`core.fsmonitor`).
pub(super) fn is_in_bare_repository(folder: &Path) -> bool {
    for folder in folder.ancestors() {
        let git = folder.join(".git");
        if git.is_file() || is_git_folder(&git) {
            return false;
        }
        if is_git_folder(folder) {
            return true;
        }
    }
    false
}

/// Whether a folder has the content of a `.git` folder; `commondir` names another one with the rest of it.
fn is_git_folder(folder: &Path) -> bool {
    let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
    has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

/// Returns whether the arguments of `git` change nothing.
pub(super) fn git_query(words: &[&str]) -> bool {
    let Some((command, rest)) = words.split_first() else { return false };
    let letters: &str = match *command {
        "status" | "log" | "diff" | "show" | "ls-files" | "rev-list" | "shortlog" | "describe"
        | "for-each-ref" => LETTERS,
        // `-O` opens a pager; `--contents` reads any file.
        "grep" => "EFGHILPabcdhilnoqrvwpW0123456789ACBe",
        "blame" => "LCMbceflnpstwe0123456789",
        "rev-parse" | "merge-base" => "aq",
        "cat-file" => "pte",
        "reflog" => {
            let is_change = |word: &&str| ["expire", "delete", "drop", "write"].contains(word);
            return !rest.iter().any(is_change) && has_only(rest, LETTERS);
        }
        "stash" => return matches!(rest.first(), Some(&("list" | "show"))) && has_only(&rest[1..], LETTERS),
        "tag" => return is_list(rest, "ln0123456789"),
        "branch" => return is_list(rest, "avrlqi"),
        "remote" => return matches!(rest, [] | ["-v" | "--verbose"]),
        "worktree" => return matches!(rest, ["list", options @ ..] if has_only(options, "v")),
        "config" => {
            return matches!(rest, ["--get" | "--get-all" | "--get-regexp", keys @ ..] if keys.iter().all(|key| !key.starts_with('-')));
        }
        "ls-remote" => {
            let is_name =
                |word: &&str| word.chars().all(|ch| ch.is_ascii_alphanumeric() || "_-".contains(ch));
            return rest.iter().all(|word| {
                ["--heads", "--tags", "--refs", "-q"].contains(word)
                    || !word.starts_with('-') && is_name(word)
            });
        }
        _ => return false,
    };
    has_only(rest, letters)
}

/// Whether all options are known.
fn has_only(words: &[&str], letters: &str) -> bool {
    words.iter().take_while(|word| **word != "--").filter(|word| word.starts_with('-') && word.len() > 1).all(
        |word| {
            let name = word.split('=').next().unwrap_or(word);
            if name.starts_with("--") {
                OPTIONS.contains(&name)
            } else {
                // The value of an option such as `-S` follows its letter.
                name[1..].chars().next().is_some_and(|ch| letters.contains(ch))
                    && (is_group(name, letters) || takes_value(name))
            }
        },
    )
}

fn is_group(name: &str, letters: &str) -> bool {
    name[1..].chars().all(|ch| letters.contains(ch))
}

/// Whether a short option is followed by its value: a text to search for, or a number.
fn takes_value(name: &str) -> bool {
    let is_number = name[2..].bytes().all(|byte| byte.is_ascii_digit() || b"%,".contains(&byte));
    name[1..].starts_with(['S', 'G', 'L']) || name[1..].starts_with(['U', 'n', 'M', 'C']) && is_number
}

/// Whether `git branch` or `git tag` only lists: operands are patterns or commits of an option that filters,
/// or the value of an option. Without a filter, they are the names of new branches and tags.
fn is_list(words: &[&str], letters: &str) -> bool {
    let filters = ["--list", "-l", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"];
    let has_filter = words.iter().any(|word| filters.contains(&word.split('=').next().unwrap_or(word)));
    let is_value = |i: usize| i > 0 && ["--format", "--sort"].contains(&words[i - 1]);
    let has_operand = words.iter().enumerate().any(|(i, word)| !word.starts_with('-') && !is_value(i));
    (has_filter || !has_operand) && has_only(words, letters)
}
