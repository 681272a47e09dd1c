//! Random command lines, of which some parts fail: a step that is certain must have happened.

use std::process::Command;

use threadline_shell::{CommandEffects, OtherChanges, ShellEffect, StepCondition, file_effects};

use crate::apply::{Files, apply};
use crate::bash::{create_files, files};

const COMMANDS: usize = 400;

/// Simple commands. Some fail with an error, some fail without one.
const SIMPLE: &[&str] = &[
    "echo x > a",
    "echo y >> b",
    "printf '%s\\n' z > new",
    "rm a",
    "rm missing",
    "rm -f missing b",
    "cp a new",
    "cp missing b",
    "mv b new",
    "mv a sub",
    "cd sub",
    "cd missing",
    "cd ./folder",
    "false",
    "true",
    "grep -q one a",
    "grep -q nothing a",
    "[ -f a ]",
    "[ -f missing ]",
    "cat a > new",
    "cat missing > b",
    "cat a",
    "touch new",
    "sed -i 's/one/1/' a",
    "sed -i 's/x/y/' missing",
    "X=a",
    "X=b",
    "echo w > $X",
    "echo v > \"${X}2\"",
    "exit 0",
    "exit 1",
    "exit",
    "set -e",
    "set +e",
    "set -o pipefail",
    "cat a b > sub/c",
    "{ echo 1; cat b; } > new",
    "echo q | tee a",
    "echo r | tee -a b >/dev/null",
    "cat <<'E' > a\nheld\nE\n",
    "f",
    "f() { rm b; }",
    "f() { echo f > a; return; }",
    "echo x > missing/a",
    "test -s b",
    "echo $(cat a) > new",
    "X=$(echo b)",
    "truncate -s 1 a",
    "echo out",
    "echo err >&2",
    "exec 2>/dev/null",
    "exec > b",
];

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn command(&mut self, depth: usize) -> String {
        if depth == 0 || self.below(5) == 0 {
            return SIMPLE[self.below(SIMPLE.len())].to_owned();
        }
        let a = self.command(depth - 1);
        let b = self.command(depth - 1);
        // A here-document ends its line.
        let end = |text: &str| if text.ends_with("E\n") { "" } else { ";" };
        let (a_end, b_end) = (end(&a), end(&b));
        let joined = |operator: &str| match a_end {
            "" => format!("{{ {a}}} {operator} {b}"),
            _ => format!("{a} {operator} {b}"),
        };
        match self.below(18) {
            0..=2 => joined("&&"),
            3 => joined("||"),
            4..=7 => format!("{a}{a_end} {b}"),
            8 => format!("{{ {a}{a_end} {b}{b_end} }}"),
            9 => format!("( {a}{a_end} {b}{b_end} )"),
            10 => format!("{{ {a}{a_end} }} | cat"),
            11 => format!("if {a}{a_end} then {b}{b_end} fi"),
            12 => format!("for X in a b; do {a}{a_end} {b}{b_end} done"),
            13 => format!("{{ {a}{a_end} {b}{b_end} }} > out"),
            14 => format!("{{ {a}{a_end} {b}{b_end} }} 2>/dev/null"),
            15 => format!("! {{ {a}{a_end} }}"),
            16 => format!("{{ {a}{a_end} }} || exit 1; {b}"),
            _ => format!("{{ {a}{a_end} }} 2>&1 | cat; {b}"),
        }
    }
}

/// Returns the paths that a step writes or removes.
fn changed(effect: &ShellEffect, folders: &[String]) -> Vec<String> {
    let in_folder = |to: &String, from: &str| {
        let name = from.rsplit('/').next().unwrap();
        if folders.contains(to) { format!("{to}/{name}") } else { to.clone() }
    };
    match effect {
        ShellEffect::Write { path, .. }
        | ShellEffect::Append { path, .. }
        | ShellEffect::Compose { path, .. }
        | ShellEffect::Remove { path, .. }
        | ShellEffect::Touch { path }
        | ShellEffect::Truncate { path, .. }
        | ShellEffect::Substitute { path, .. }
        | ShellEffect::Change { path } => vec![path.clone()],
        ShellEffect::HardLink { path, from, .. } => vec![in_folder(path, from)],
        ShellEffect::Copy { from, to, .. } => vec![in_folder(to, from)],
        ShellEffect::Move { from, to, .. } => vec![from.clone(), in_folder(to, from)],
        other => panic!("{other:?}"),
    }
}

/// Returns the files that are known after a command. `None` if none is.
fn expected(
    effects: &CommandEffects,
    mut files: Files,
    folders: &[String],
    is_ok: bool,
    is_silent: bool,
) -> Option<Files> {
    if effects.in_background || matches!(effects.other_changes, OtherChanges::Any(_)) {
        return None;
    }
    for step in &effects.steps {
        let is_certain = match step.condition {
            StepCondition::IfSucceeded => is_ok,
            StepCondition::IfSilent => is_ok && is_silent,
            StepCondition::Maybe => false,
        };
        if is_certain {
            let one = CommandEffects { steps: vec![step.clone()], ..CommandEffects::default() };
            apply(&one, &mut files, folders);
        } else {
            for path in changed(&step.effect, folders) {
                files.insert(path, None);
            }
        }
    }
    if let OtherChanges::Named(names) = &effects.other_changes {
        for name in names {
            files.retain(|path, _| !path.starts_with(&format!("{name}/")));
            files.insert(name.clone(), None);
        }
    }
    Some(files)
}

#[test]
fn certain_steps_have_happened() {
    if Command::new("bash").arg("--version").output().is_err() {
        println!("skipped: there is no bash");
        return;
    }
    let mut random = Random(1);
    let (mut certain, mut failures) = (0, Vec::new());
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for number in 0..COMMANDS {
        let root = root.join(number.to_string());
        std::fs::create_dir(&root).unwrap();
        create_files(&root);
        let cwd = root.to_str().unwrap();
        let before = files(&root);
        let folders = [format!("{cwd}/sub"), format!("{cwd}/folder")];
        let command = random.command(1 + number % 4);
        let effects = file_effects(&command, cwd, Some(cwd));
        let output = Command::new("bash").arg("-c").arg(&command).current_dir(&root).output().unwrap();
        let is_silent = output.stdout.is_empty() && output.stderr.is_empty();
        let is_ok = output.status.success();
        let Some(expected) = expected(&effects, before, &folders, is_ok, is_silent) else { continue };
        let actual = files(&root);
        let known: Files =
            expected.iter().filter(|(_, text)| text.is_some()).map(|(a, b)| (a.clone(), b.clone())).collect();
        let is_known = |path: &String| {
            let mut unknown = expected.iter().filter(|(_, text)| text.is_none());
            !unknown.any(|(name, _)| path == name || path.starts_with(&format!("{name}/")))
        };
        let compared: Files = actual.into_iter().filter(|(path, _)| is_known(path)).collect();
        certain += usize::from(is_ok && !effects.steps.is_empty());
        if known != compared {
            let errors = String::from_utf8_lossy(&output.stderr);
            failures.push(format!(
                "{command}\n  ok {is_ok} silent {is_silent} {effects:?}\n  bash: {compared:?}\n  ours: {known:?}\n  {errors}"
            ));
        }
    }
    failures.sort_by_key(String::len);
    failures.truncate(4);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(certain > COMMANDS / 5, "{certain}");
}
