//! Scripts of sed, compared with the program.

use std::process::Command;

use threadline_shell::{SedScript, ShellEffect, file_effects};

const TEXTS: &[&str] = &[
    "one\ntwo\nthree\nfour\nfive\n",
    "one\ntwo\nthree",
    "",
    "\n",
    "aaa bbb aaa\n  indented = \"x y\"\nversion = \"1.2.3\"\nfoo(bar, baz)\n\nfoo/bar.baz\nONE two\tthree\n",
    "a1b22c333\nx.y.z\n[section]\nkey: value # comment\nfoobar barfoo\nnaïve ümlaut\nend",
];

/// Addresses, with an empty one.
const ADDRESSES: &[&str] = &[
    "",
    "1",
    "3",
    "$",
    "99",
    "2,3",
    "2,$",
    "3,1",
    "/o/",
    "/^$/",
    "/one/,/three/",
    "2,/e/",
    "/t/,3",
    "0,/o/",
    "/o/,+1",
    "1!",
    "$!",
    "2,4!",
    "/o/!",
    "\\,bar/baz,",
    "/FOO/I",
    "/[^a-z]$/",
    "/o/,$",
    "/three/,1",
    "1,+2",
    "2,2",
];

const COMMANDS: &[&str] = &[
    "d",
    "s/o/0/",
    "s/o/0/g",
    "s/O/0/gi",
    "s/o/0/2",
    "s/./x/3g",
    "s/[a-z]*/<&>/",
    "s/[a-z]*/<&>/g",
    "s/a*/x/g",
    "s|/|_|g",
    "s,bar,a/b,",
    "s/^/> /",
    "s/$/;/",
    "s/\\(f\\)\\(o*\\)/\\2\\1/g",
    "s/\\./\\\\/g",
    "s/[[:space:]]*$//",
    "s/^[ \\t]*//",
    "s/\"[^\"]*\"/\"new\"/",
    "s/version = \".*\"/version = \"2\"/",
    "s/o/a\\nb/",
    "s/o/a\\\nb/",
    "s/\\bbar\\b/X/g",
    "s/\\<b/B/g",
    "s/r\\>/R/g",
    "s/foo\\|bar/X/g",
    "s/\\(foo\\|bar\\)/<\\1>/g",
    "s/[0-9]\\+/N/g",
    "s/x\\?y/_/",
    "s/a\\{2,\\}/A/g",
    "s/a.*b/X/",
    "s/\\(.*\\)o\\(.*\\)/\\2-\\1/",
    "s/.*/[&]/",
    "s/ *= */=/",
    "s/[]]/x/",
    "s/[^]]*]/x/",
    "s/a/\\&/",
    "s/\\//|/g",
    "s/*/x/",
    "s/\\*/x/",
    "s/a\\|b/x/;s/x/y/g",
    "y/abc/xyz/",
    "a after",
    "i before",
    "c changed",
    "a\\\nafter",
    "i\\\nbefore\\\nmore",
    "a\\text",
    "s/one/1/;s/two/2/",
    "s/e/E/\n2d",
    "s/(/[/",
    "s/foo(\\(.*\\))/bar[\\1]/",
    "s/\\s\\+/ /g",
    "s/\\w\\+/W/",
    "s/[A-Z]/-/g",
    "s/#.*$//",
    "s/^\\(.\\)\\(.*\\)$/\\2\\1/",
    "s/^$/empty/",
    "s/n*/x/2",
    "s/b*/x/2g",
    "s/$/\\t/",
    "s/o$/0/;$d",
    "s/\\([a-z]\\)\\([a-z]\\)/\\2\\1/g",
    "s/[a-f]*[d-z]*/X/",
    "s/a*b*c*/X/g",
    "s/\\(a*\\)*b/x/",
    "s/\\(ab\\)*a/x/g",
    "s/\\(foo\\)\\?bar/X/g",
    "s/e*$/E/",
    "s/^o*//",
    "s/^*a/x/",
    "s/a^b/x/",
    "s/a$b/x/",
    "s/foo\\|foobar/X/",
    "s/.\\?b/X/g",
    "s/[.]/,/g",
    "s/[a-z]*\\.[a-z]*/X/g",
];

const EXTENDED: &[&str] = &[
    "s/(o)(n)/\\2\\1/",
    "s/[0-9]+/N/g",
    "s/o?n/X/g",
    "s/(foo|bar)/<\\1>/g",
    "s/foo|one/X/",
    "s/^(.*) = (.*)$/\\2 = \\1/",
    "s/a{2}/A/",
    "s/\\(/[/",
    "s/(a|b)+/x/",
    "s/x|y|z/_/g",
    "s/a+b*/X/g",
    "s/\\+/x/",
    "s/(foo)?bar/X/g",
    "s/^(foo|one)$/X/",
    "s/(^|x)o/X/",
    "s/([a-z]+)\\.([a-z]+)/\\2.\\1/g",
    "s/.+o/X/",
    "s/(.+)o(.+)/\\2\\1/",
    "/one|two/d",
    "s/\\$/x/",
    "s/[0-9]{1,2}/N/g",
];

/// Returns the script of `sed -i SCRIPT`, if it is understood.
fn script(options: &str, script: &str) -> Option<SedScript> {
    let quoted = script.replace('\'', "'\\''");
    let effects = file_effects(&format!("sed -i {options} '{quoted}' a"), "/w", None);
    match &effects.steps[..] {
        [step] => match &step.effect {
            ShellEffect::Substitute { script, .. } => Some(script.clone()),
            _ => None,
        },
        _ => panic!("{script}: {effects:?}"),
    }
}

#[test]
fn scripts_do_what_sed_does() {
    let version = Command::new("sed").arg("--version").output();
    if !version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("GNU")) {
        println!("skipped: there is no GNU sed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..TEXTS.len()).map(|i| format!("{i}")).collect();
    let (mut compared, mut refused, mut failures) = (0, Vec::new(), Vec::new());
    let basic = COMMANDS.iter().map(|command| ("", *command));
    let extended = EXTENDED.iter().map(|command| ("-E", *command));
    for (number, (options, command)) in basic.chain(extended).enumerate() {
        for (i, address) in ADDRESSES.iter().enumerate() {
            // All addresses with a few commands, and a few addresses with all commands.
            let is_own = command.starts_with('/');
            if is_own && i > 0 || number > 4 && !matches!(number, 40..=49) && i % 7 != number % 7 && i > 0 {
                continue;
            }
            let source = format!("{address}{command}");
            let Some(script) = script(options, &source) else {
                refused.push(source);
                continue;
            };
            for (name, text) in names.iter().zip(TEXTS) {
                std::fs::write(folder.path().join(name), text).unwrap();
            }
            let mut run = Command::new("sed");
            run.current_dir(&folder).env("LC_ALL", "C.UTF-8").arg("-i");
            run.args((!options.is_empty()).then_some(options)).arg(&source).args(&names);
            let output = run.output().unwrap();
            for (name, text) in names.iter().zip(TEXTS) {
                let actual = std::fs::read(folder.path().join(name)).unwrap();
                let actual = String::from_utf8_lossy(&actual).into_owned();
                let Some(ours) = script.apply(text) else { continue };
                compared += 1;
                if !output.status.success() || ours != actual {
                    let errors = String::from_utf8_lossy(&output.stderr);
                    failures.push(format!(
                        "{source:?} on {text:?}\n  sed:  {actual:?}\n  ours: {ours:?} {errors}"
                    ));
                }
            }
        }
    }
    refused.dedup();
    println!("compared {compared}, refused {refused:?}");
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
    assert!(compared > 1000, "{compared}");
}

#[test]
fn scripts_that_depend_on_more_are_refused() {
    for source in [
        "s/a/b/w out",
        "s/a/b/e",
        "s/a/b/p",
        "p",
        "n;d",
        "N",
        "r other",
        "w out",
        "s/\\(a\\)\\1/x/",
        "s/a/\\U&/",
        "s/ä*[é]/x/",
        "$!N;P;D",
        "/a/{s/b/c/}",
        "1~2d",
        "s/a/b",
        "q",
        "=",
        "s/foo\\|foobar/x/",
        "s/a*ab*/x/",
    ] {
        assert_eq!(script("", source), None, "{source}");
    }
}
