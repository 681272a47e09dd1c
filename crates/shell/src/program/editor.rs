//! Programs that people use to change the files that they name.

/// Programs that run a script, and programs that change the files that they name.
const EDITORS: &[&str] = &[
    "add-content",
    "autopep",
    "awk",
    "biome",
    "black",
    "bun",
    "clang-format",
    "clear-content",
    "copy-item",
    "dd",
    "deno",
    "dos2unix",
    "dprint",
    "ed",
    "emacs",
    "eslint",
    "ex",
    "find",
    "gawk",
    "gofmt",
    "goimports",
    "isort",
    "jq",
    "julia",
    "lua",
    "make",
    "mawk",
    "move-item",
    "nawk",
    "new-item",
    "node",
    "nvim",
    "out-file",
    "parallel",
    "patch",
    "perl",
    "php",
    "prettier",
    "python",
    "remove-item",
    "rename-item",
    "rscript",
    "ruby",
    "ruff",
    "rustfmt",
    "sd",
    "sed",
    "set-content",
    "shfmt",
    "sort",
    "source",
    "sponge",
    "tar",
    "tclsh",
    "tsx",
    "unix2dos",
    "unzip",
    "vi",
    "vim",
    "writealllines",
    "writealltext",
    "xargs",
    "yq",
];

/// Returns whether a program in a command is one that people use to change the files that it names: an
/// interpreter, an editor, a formatter. Of the files that a command with any other unknown program names, most
/// are only passed on.
///
/// ```
/// use threadline_shell::names_editor;
///
/// assert!(names_editor("python3 - <<'EOF'\nopen('a.txt', 'w')\nEOF"));
/// assert!(!names_editor("tracker close 7 --reason 'a.txt is done'"));
/// ```
pub fn names_editor(command: &str) -> bool {
    let mut words = command.split(|c: char| !c.is_alphanumeric() && !matches!(c, '-' | '_' | '.'));
    words.any(|word| {
        let name = word.strip_suffix(".exe").unwrap_or(word);
        // `python3`, `python3.12`
        let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        EDITORS.contains(&&*name.to_ascii_lowercase())
    })
}
