//! Effects of commands as text.

use threadline_shell::{
    GitSource, GitStep, OtherChanges, ShellEffect, ShellStep, StepCondition, TextPart, file_effects,
    powershell_effects,
};

/// Writes effects as short text. Paths below `/w` are relative; `?` is `IfSilent`, `??` is `Maybe`.
fn effects(command: &str) -> String {
    let effects = file_effects(command, "/w", Some("/home/u"));
    let mut out: Vec<String> = effects.steps.iter().map(step).collect();
    match &effects.other_changes {
        OtherChanges::None => {}
        OtherChanges::Named(names) => out.push(format!("named {}", paths(names))),
        OtherChanges::Any(words) => out.push(format!("any {}", words.join(" ")).trim().to_owned()),
    }
    if effects.in_background {
        out.push("background".to_owned());
    }
    out.join("; ")
}

fn path(path: &str) -> &str {
    path.strip_prefix("/w/").unwrap_or(path)
}

fn paths(paths: &[String]) -> String {
    paths.iter().map(|name| path(name)).collect::<Vec<_>>().join(" ")
}

fn step(step: &ShellStep) -> String {
    let mark = match step.condition {
        StepCondition::IfSucceeded => "",
        StepCondition::IfSilent => "?",
        StepCondition::Maybe => "??",
    };
    let folder_mark = |may_be_folder: bool| if may_be_folder { "" } else { " exactly" };
    let text = match &step.effect {
        ShellEffect::Write { path: file, text } => format!("{} = {text:?}", path(file)),
        ShellEffect::Append { path: file, text } => format!("{} += {text:?}", path(file)),
        ShellEffect::Compose { path: file, parts, is_append } => {
            let parts: Vec<String> = parts
                .iter()
                .map(|part| match part {
                    TextPart::Text(text) => format!("{text:?}"),
                    TextPart::File(file) => format!("<{}>", path(file)),
                })
                .collect();
            format!("{} {}= {}", path(file), if *is_append { "+" } else { "" }, parts.join(" "))
        }
        ShellEffect::Remove { path: file, is_recursive } => {
            format!("rm{} {}", if *is_recursive { " -r" } else { "" }, path(file))
        }
        ShellEffect::Copy { from, to, may_be_folder, .. } => {
            format!("cp {} {}{}", path(from), path(to), folder_mark(*may_be_folder))
        }
        ShellEffect::Move { from, to, may_be_folder } => {
            format!("mv {} {}{}", path(from), path(to), folder_mark(*may_be_folder))
        }
        ShellEffect::Link { path: link, target, may_be_folder } => {
            format!("ln -s {target} {}{}", path(link), folder_mark(*may_be_folder))
        }
        ShellEffect::HardLink { path: link, from, .. } => format!("ln {} {}", path(from), path(link)),
        ShellEffect::Touch { path: file } => format!("touch {}", path(file)),
        ShellEffect::Truncate { path: file, length } => format!("truncate {} {length}", path(file)),
        ShellEffect::Substitute { path: file, .. } => format!("sed {}", path(file)),
        ShellEffect::Patch { text, strip, folder, is_reverse } => {
            format!("patch {text:?} -p{strip} in {folder}{}", if *is_reverse { " -R" } else { "" })
        }
        ShellEffect::Git { folder, step } => format!("git {} in {folder}", git(step)),
        ShellEffect::Change { path: file } => format!("change {}", path(file)),
    };
    format!("{text}{mark}")
}

fn git(step: &GitStep) -> String {
    match step {
        GitStep::Commit { is_all, paths: files } => {
            format!("commit{} {}", if *is_all { " -a" } else { "" }, paths(files))
        }
        GitStep::Add { paths: files, is_all } => {
            format!("add{} {}", if *is_all { " -A" } else { "" }, paths(files))
        }
        GitStep::Restore { paths: files, source, in_worktree, in_index } => {
            let source = match source {
                GitSource::Index => "index",
                GitSource::Revision(revision) => revision,
            };
            let targets = [(*in_worktree, " worktree"), (*in_index, " index")];
            let targets: String = targets.iter().filter(|(is, _)| *is).map(|(_, name)| *name).collect();
            format!("restore {} from {source}:{targets}", paths(files))
        }
        GitStep::Switch { revision, is_forced, path: file } => {
            let file = file.as_deref().map(|file| format!(" or {}", path(file))).unwrap_or_default();
            format!("switch{} {revision}{file}", if *is_forced { " -f" } else { "" })
        }
        other => format!("{other:?}"),
    }
}

fn check(table: &[(&str, &str)]) {
    let mut failures = Vec::new();
    for (command, expected) in table {
        let actual = effects(command);
        if actual != *expected {
            failures.push(format!("{command}\n  expected: {expected}\n  actual:   {actual}"));
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn conditions_follow_from_the_status() {
    check(&[
        ("echo x > a", r#"a = "x\n""#),
        ("echo x > a; echo y > b", r#"a = "x\n"?; b = "y\n""#),
        ("echo x > a && echo y > b", r#"a = "x\n"; b = "y\n""#),
        ("echo x > a || echo y > b", r#"a = "x\n"?; b = "y\n"??"#),
        ("cp a b && grep -q x b && rm a; ls", "cp a b?; rm a??"),
        ("cp a b && rm a; ls", "cp a b?; rm a?"),
        ("cp a b 2>/dev/null; ls", "cp a b??"),
        ("cp a b 2>&1; ls", "cp a b?"),
        ("cp a b 2>&1 | tail -1", "cp a b??"),
        ("cp a b | tail -1", "cp a b?"),
        ("set -o pipefail; cp a b 2>&1 | tail -1", "cp a b"),
        ("set -e; rm a; rm b", "rm a; rm b"),
        ("set -e; rm a && ls; rm b", "rm a?; rm b"),
        ("set -e; if ls; then rm a; fi; rm b", "rm a??; rm b"),
        ("rm a || exit 1; rm b", "rm a; rm b"),
        ("rm a || exit; rm b", "rm a?; rm b??"),
        ("if ls; then rm a || exit 1; fi; rm b", "rm a??; rm b"),
        ("[ -f a ] && exit 0; rm a", "rm a??"),
        ("(exit 0; rm b); rm a", "rm a"),
        ("([ -f x ] && exit 0; rm b); rm a", "rm b??; rm a"),
        ("! rm a", "rm a??"),
        ("rm a &", "rm a??; background"),
        ("rm a & wait", "rm a??"),
        ("nohup touch a", "touch a; background"),
        ("while read x; do echo $x > a; done < b", "change a??"),
        ("for f in a b; do rm $f; done", "rm a?; rm b"),
        ("for f in *.txt; do rm \"$f\"; done", "any *.txt"),
        ("for f in a b; do [ -f $f ] || continue; rm $f; done", "rm a??; rm b??"),
        ("f() { rm a; }; f", "rm a"),
        ("{ rm a; } 2>/dev/null; ls", "rm a??"),
        ("echo x | tee a | head -1", r#"a = "x\n"??"#),
        ("X=1; if ls; then X=2; fi; echo $X > a", "change a"),
    ]);
}

#[test]
fn folders_are_followed() {
    check(&[
        ("cd s && rm a", "rm s/a"),
        ("cd s && rm a; ls", "rm s/a?"),
        ("cd s; rm a", "rm s/a?; named a"),
        ("cd /x/../y && rm a", "rm /y/a"),
        ("cd && rm a", "rm /home/u/a"),
        ("cd - && rm a", "any a"),
        ("cd $X && echo x > a.txt", "any a.txt"),
        ("cd $X && echo x > /b", r#"/b = "x\n""#),
        ("(cd s && rm a) && rm b", "rm s/a; rm b"),
        ("cd s | rm a", "rm a"),
        ("if ls; then cd s; fi; rm a.txt", "any a.txt"),
        ("git -C s add a", "git add s/a in /w/s"),
    ]);
}

#[test]
fn texts_that_are_not_known_are_changes() {
    check(&[
        ("echo $X > a", "change a"),
        ("echo \"$(date)\" > a", "change a"),
        ("cat <<EOF > a\n$X\nEOF", "change a"),
        ("echo 'a\\nb' > a", "change a"),
        ("echo * > a", "change a"),
        ("ls > a 2> b", "change a; change b"),
        ("ls &>> a", "change a"),
        ("cat a > a", "change a"),
        ("cat a | tee a", "change a?"),
        ("cat a >> a", "change a"),
        ("{ cat a; echo x > a; } > b", r#"a = "x\n"; change b?"#),
        ("{ cat a; echo x; } > b", r#"b = <a> "x\n"?"#),
        ("echo x > $F.txt", "any F.txt"),
        ("echo x > \"$D/a.txt\"", "any D/a.txt"),
        ("printf '%5d' 3 > a", "change a"),
        ("printf '%s' > a", r#"a = """#),
        ("if ls; then echo x; fi > a", "change a"),
        ("echo x > a 3> b", r#"a = "x\n"; change b"#),
        ("printf 'top\\n' | cat - f > .t && mv .t f", r#".t = "top\n" <f>; mv .t f"#),
    ]);
}

#[test]
fn programs_have_effects() {
    check(&[
        ("ls -la && git status", ""),
        ("cargo test 2>&1 | tail -5", ""),
        ("rm *.txt", "named *.txt"),
        ("rm -i a", "named a"),
        ("rm -rf s/", "rm -r s"),
        ("cp a b", "cp a b"),
        ("cp a s/", "cp a s/a exactly"),
        ("cp a b s", "cp a s/a exactly; cp b s/b exactly"),
        ("cp -n a b", "named a b"),
        ("cp *.txt s", "named *.txt s"),
        ("cp $X b.txt", "named b.txt"),
        ("mv $X b.txt", "any /w/b.txt"),
        ("ln -s ../x s/y", "ln -s ../x s/y"),
        ("ln -s ../x", "ln -s ../x x exactly"),
        ("sed -i 's/a/b/' f", "sed f"),
        ("sed -i '' 's/a/b/' f", "sed f"),
        ("sed -i.bak 's/a/b/' f", "cp f f.bak exactly; sed f"),
        ("sed -i 's/\\(a\\)\\1/b/' f", "change f"),
        ("sed -i 's/a/b/' *.rs", "named *.rs"),
        ("sed -n 1,5p f", ""),
        ("perl -pi -e 's/a/b/' f g", "named f g"),
        ("perl -i -pe 's/a/b/' f", "named f"),
        ("perl -ne 'print if /x/' f", ""),
        ("perl -e 'open(F, \">a.txt\")'", "any open a.txt"),
        ("python3 run.py a.txt", "any a.txt"),
        ("python3 - <<'EOF'\nopen('a.txt', 'w')\nEOF", "any open a.txt"),
        ("python3 -c \"open('a.txt')\"", "any open a.txt"),
        ("make", "any"),
        ("npm install", "any install"),
        ("cargo fmt", "any"),
        ("npx prettier --write a.ts", "any prettier a.ts"),
        ("npx tsc --noEmit", ""),
        ("find . -name '*.o' -delete", "any -name *.o -delete"),
        ("find . -name '*.rs' -exec grep x {} +", ""),
        ("ls | xargs grep x", ""),
        ("ls | xargs rm", "any"),
        ("eval \"rm a.txt\"", "any a.txt"),
        ("curl -o out.html http://x", "change out.html"),
        ("curl -s http://x | jq .", ""),
        ("echo x | sudo tee -a a > /dev/null", r#"a += "x\n""#),
        ("bash -c 'cd s; echo x > a'", r#"s/a = "x\n"?; named a"#),
        ("patch -p1 <<'EOF'\n--- a/x\nEOF", r#"patch "--- a/x\n" -p1 in /w"#),
        ("patch -p0 -R -d s <<'EOF'\nx\nEOF", r#"patch "x\n" -p0 in /w/s -R"#),
        ("echo $(rm a)", "rm a?"),
        ("echo `rm a`", "rm a?"),
        ("tar xzf a.tgz", "any a.tgz"),
        ("'unterminated", "any unterminated"),
        ("", ""),
    ]);
}

#[test]
fn git_commands_have_steps() {
    check(&[
        ("git add -A && git commit -m 'fix: a.txt; rm b.txt'", "git add -A  in /w; git commit  in /w"),
        ("git commit -am x", "git commit -a  in /w"),
        ("git commit -m \"$(cat <<'EOF'\nfix a.txt (twice)\n\nsed -i b.txt\nEOF\n)\"", "git commit  in /w"),
        ("git checkout -- a b", "git restore a b from index: worktree in /w"),
        ("git checkout .", "git restore /w from index: worktree in /w"),
        ("git checkout HEAD~1 -- a", "git restore a from HEAD~1: worktree index in /w"),
        ("git checkout HEAD~1 a", "git restore a from HEAD~1: worktree index in /w"),
        ("git checkout topic", "git switch topic or topic in /w"),
        ("git checkout -b topic", ""),
        ("git switch -c topic", ""),
        ("git switch main", "git switch main in /w"),
        ("git restore a", "git restore a from index: worktree in /w"),
        ("git restore --staged a", "git restore a from HEAD: index in /w"),
        ("git restore -s HEAD~2 a", "git restore a from HEAD~2: worktree in /w"),
        ("git reset --hard", "git switch -f HEAD in /w"),
        ("git reset HEAD a", "git restore a from HEAD: index in /w"),
        (
            "git stash && git stash pop",
            "git Stash { paths: [], with_untracked: false } in /w; git StashPop { is_kept: false } in /w",
        ),
        ("git stash list", ""),
        ("git rm a", "git Remove { paths: [\"/w/a\"], is_cached: false } in /w"),
        ("git mv a s/", "git Move { from: \"/w/a\", to: \"/w/s/a\", may_be_folder: false } in /w"),
        ("git pull --rebase", "git Other in /w"),
        ("git clean -n", ""),
        ("git clean -fd", "git Other in /w"),
        ("git frobnicate a.txt", "any a.txt"),
        ("git apply <<'EOF'\ndiff\nEOF", r#"patch "diff\n" -p1 in /w"#),
        ("git apply --check a.patch", ""),
        ("git apply a.patch", "any a.patch"),
        ("git diff > a.patch", "change a.patch"),
    ]);
}

#[test]
fn powershell_is_read_by_its_commands() {
    for (command, expected) in [
        ("Get-ChildItem -Recurse | Select-String x", OtherChanges::None),
        ("dir; type a.txt", OtherChanges::None),
        ("git status", OtherChanges::None),
        ("type a.txt > b.txt", OtherChanges::Any(vec!["type".into(), "a.txt".into(), "b.txt".into()])),
        ("Remove-Item a.txt", OtherChanges::Any(vec!["Remove-Item".into(), "a.txt".into()])),
    ] {
        let effects = powershell_effects(command);
        assert_eq!(effects.other_changes, expected, "{command}");
        assert!(effects.steps.is_empty());
    }
}
