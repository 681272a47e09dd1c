//! Commands that are made to take long or to overflow the stack.

use std::time::{Duration, Instant};

use threadline_shell::{file_effects, powershell_effects};

const PIECES: &[&str] = &[
    "(",
    "((",
    "$(",
    "$((",
    "${",
    "`",
    "\"",
    "'",
    "\"$(",
    "a;",
    "a|",
    "a&&",
    "{ ",
    "if a; then ",
    "for x in a; do ",
    "<<a ",
    "<<a\n",
    "$'",
    "\\",
    "<(",
    "a=(",
    "a[",
    "a() ",
    "case a in a) ",
    "[[ ",
    "> a ",
    ">",
    "a\0",
    "\u{fffd}",
    "x=1;",
    "{a,",
    "{a,b}",
    "echo {a,b}{c,d} > x;",
    "bash -c \"",
    "X=$X$X;",
    "echo $X > a;",
    "(X=1) ",
    "~",
    "!",
    "#",
    "2>&1 ",
    "for i in a b; do :; done;",
    "while a; do x=1; done;",
    "f() { f; }; f;",
    "f() { f; f; }; f; ",
    "cd a;",
    "sed -i s/a/b/ a;",
    "a && ",
    "a || ",
    "esac ",
    ";;",
    "&",
    "\n",
    "cat <<A\n$(",
    "echo 'a' > a;",
    "a=$(a);",
    "a{",
    "b[1",
];

#[test]
fn time_is_linear_and_the_stack_does_not_overflow() {
    for piece in PIECES {
        let command = piece.repeat(1_000_000 / piece.len());
        let start = Instant::now();
        let effects = file_effects(&command, "/w", Some("/h"));
        powershell_effects(&command);
        let time = start.elapsed();
        assert!(time < Duration::from_secs(8), "{piece}: {time:?}");
        assert!(effects.steps.len() <= 20_000, "{piece}");
    }
}

#[test]
fn deep_nesting_is_any_change() {
    for (open, close) in
        [("$(", ")"), ("( ", ")"), ("{ ", "; }"), ("\"$(", ")\""), ("if a; then ", "; fi"), ("f() (", ")")]
    {
        let command = format!("{}echo x > a{}", open.repeat(10_000), close.repeat(10_000));
        let effects = file_effects(&command, "/w", None);
        assert!(effects.steps.is_empty(), "{open}");
        assert!(matches!(effects.other_changes, threadline_shell::OtherChanges::Any(_)), "{open}");
    }
}

#[test]
fn any_text_is_accepted() {
    let odd = [
        "\"",
        "'",
        "`",
        "$(",
        ")",
        "\\",
        "<<",
        "<<EOF\n",
        ">",
        "a>",
        "&>",
        "((",
        "))",
        "$((",
        "${",
        "}",
        "\u{1f9f6}\\\u{1f9f6}",
        "2>",
        "#",
        "é",
        "[[",
        "]]",
        "{a,",
        "{é,b}",
        "case",
        "esac",
        "a=",
        "a=(",
        "\n",
        ";",
        "&&",
        "|",
        "~é",
        "$'\\",
        "$'\\x",
        "printf '\\",
        "echo -e '\\u",
        "sed -i 's/\\",
        "sed -i 'a\\",
        "git -C",
        "cp -t",
        "-",
        "xargs -I",
        "sudo -u",
        "timeout",
    ];
    for command in odd.iter().flat_map(|a| odd.map(|b| format!("{a}{b} x"))) {
        for cwd in ["/w", "C:\\a", "", "é", "C:"] {
            file_effects(&command, cwd, Some(cwd));
        }
        powershell_effects(&command);
    }
}
