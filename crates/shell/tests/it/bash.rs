//! Commands, run by bash.

use std::path::Path;
use std::process::Command;

use threadline_shell::{StepCondition, file_effects};

use crate::apply::{Files, apply};

/// Commands that succeed, and whose effects are known entirely.
const KNOWN: &[&str] = &[
    "echo hello > a",
    "echo -n hello > a",
    "echo -e 'a\\tb\\n\\x41\\0101' > a",
    "echo -ne 'a\\cb' > a",
    "echo -E 'a b' >a",
    "echo -x hello > a",
    "echo 'a  b' \"c  d\" e\\ f > a",
    "echo \"a\\\"b\\$c\\`d\\\\e\" > a",
    "echo a'b'\"c\"$'\\x64\\t' > a",
    "echo > a",
    "echo one >> a",
    "echo one >> new",
    "echo x > a > b",
    "> a",
    ": > a",
    "true > new",
    ": >> new",
    ">a echo x",
    "echo x >| a",
    "echo x &> a",
    "echo x >& a",
    "echo x > a 2>&1",
    "echo x 2>&1 > a",
    "echo x 1> a 2> /dev/null",
    "echo x > /dev/null",
    "echo x 2> new > a",
    "echo x >&2 2> a",
    "cat <<EOF > a\none\ntwo\nEOF",
    "cat > a <<EOF\none\ntwo\nEOF",
    "cat > a <<'EOF'\n$one `two` \\three \\\\\nEOF",
    "cat > a <<\"E F\"\n$x\nE F",
    "cat > a <<\\EOF\n$x\nEOF",
    "cat > a <<EOF\na\\$b \\`c\\` \\\\ \\x \"q\" 'r'\nEOF",
    "cat > a <<EOF\nline \\\ncontinued\nEOF\necho x > b",
    "cat > a <<-EOF\n\t\tone\n\t two\n\tEOF",
    "cat > a <<-'EOF'\n\tone\n  two\n\tEOF",
    "cat <<A > a; cat <<B > b\none\nA\ntwo\nB",
    "cat <<A - <<B > a\none\nA\ntwo\nB",
    "cat > a <<EOF\nEOF",
    "cat > a <<EOF && echo done > b\none\nEOF",
    "cat > a <<EOF || exit 1\none\nEOF",
    "cat <<EOF | tee a > /dev/null\none\nEOF",
    "cat <<EOF | tee a b\none\nEOF",
    "cat <<EOF | tee -a a >> b\none\nEOF",
    "tee a <<EOF\none\nEOF",
    "tee a > b <<< 'x y'",
    "cat <<< \"x\" > a",
    "cat <<< x$'\\n'y > a",
    "X=value; echo \"$X\" > a",
    "X=value; cat > a <<EOF\n$X ${X}s\nEOF",
    "X=a; echo text > $X",
    "X=sub; echo text > \"$X/c\"",
    "F=\"$HOME/f\"; echo x > \"$F\"",
    "echo x > ~/f",
    "echo \"$PWD\" > a",
    "echo x > $(pwd)/a",
    "X=$(echo one; echo two); echo \"$X\" > a",
    "X=$(cat <<'EOF'\nit's (one\nEOF\n); echo \"$X\" > a",
    "X=`echo one`; echo $X > a",
    "export X=1; echo $X > a",
    "cd sub && echo x > c",
    "cd sub; echo x > c",
    "cd sub && cd .. && echo x > c",
    "(cd sub && echo x > c); echo y > d",
    "(cd sub; echo x > c) && echo y > d",
    "pushd sub >/dev/null && echo x > c",
    "{ echo a; echo b; } > new",
    "(echo a; echo b) > new",
    "{ echo top; cat a; echo bottom; } > new && mv new a",
    "(echo top; cat a) > new",
    "{ echo a; echo b > b; } > new",
    "printf 'top\\n' | cat - a > new && mv new a",
    "echo top | cat - a b > new",
    "cat a b > new",
    "cat a >> b",
    "cat a > new",
    "cat < a > new",
    "cat a | cat > new",
    "cat a | tee new",
    "cat a | tee new | cat > new2",
    "cat a | cat - b | tee -a sub/c",
    "printf 'a' > a",
    "printf '%s\\n' one two 'three four' > a",
    "printf '%s=%d;' x 1 y 22 > a",
    "printf 'a\\tb\\\\n%%\\101\\x41' > a",
    "printf '%s-%s\\n' one > a",
    "printf '%b' 'a\\nb\\0101' > a",
    "printf -- '-x\\n' > a",
    "printf '%s' \"it's\" > a",
    "printf '%d %i' 5 -7 > a",
    "printf 'x\\n' x y > a",
    "printf '%c%c' abc d > a",
    "rm a",
    "rm -f a missing",
    "rm -rf sub",
    "rm -- a b",
    "rm -fr ./sub/../sub",
    "cp a new",
    "cp a b",
    "cp a sub",
    "cp a sub/",
    "cp a b sub",
    "cp -t sub a b",
    "cp -T a new",
    "cp -r sub new",
    "cp -R sub/. new",
    "cp -a sub new",
    "cp -r sub folder",
    "cp a{,.bak}",
    "cp -p a new",
    "mv a new",
    "mv a b",
    "mv a sub",
    "mv a b sub/",
    "mv sub new",
    "mv -f a b",
    "mv -v a new",
    "mv {a,b} sub",
    "ln a new",
    "touch a new",
    "touch -t 202001010000 new",
    "truncate -s 2 a",
    "truncate -s 0 a",
    "truncate --size=10 a",
    "truncate -s 1K new",
    "sed -i 's/one/1/' a",
    "sed -i.bak 's/one/1/' a",
    "sed -i -e 's/one/1/' -e '2d' a b",
    "sed -i '1i\\\ntop' a",
    "sed -i '$a end' a",
    "sed -i \"s/one/it's/\" a",
    "sed -Ei 's/(o)(n)/\\2\\1/' a",
    "X=uno; sed -i \"s/one/$X/\" a",
    "if true; then :; fi; echo x > a",
    "while false; do :; done; echo x > a",
    "for f in a b; do echo x >> $f; done",
    "for f in a b; do sed -i 's/o/0/g' \"$f\"; done",
    "for f in a b; do cp \"$f\" \"$f.bak\" && rm $f; done",
    "for i in 1 2 3; do echo $i; done > a",
    "for i in 1 2; do for j in x y; do echo $i$j >> new; done; done",
    "f() { echo \"$1\" > \"$2\"; }; f one a; f two b",
    "function f { echo x > a; }\nf",
    "bash -c 'echo x > a'",
    "sh -c \"cd sub && echo x > c\"",
    "bash <<'EOF'\ncd sub\necho x > c\nEOF",
    "echo 'echo x > a' | bash",
    "env X=1 touch new",
    "time echo x > a",
    "time touch new",
    "nice -n 5 touch new",
    "timeout 5 touch new",
    "command touch new",
    "/bin/rm a",
    "\\rm a",
    "set -e; echo x > a; echo y > b",
    "set -euo pipefail\necho x | tee a\necho y > b",
    "echo x > a # > b",
    "# echo x > b\necho x > a",
    "echo x > a; exit 0; echo y > b",
    "exit 0 && echo x > a",
    "true || exit 1; echo x > a",
    "cp a new || exit 1\necho x > b",
    "cp a new || { echo failed >&2; exit 1; }\necho x > b",
    "! false; echo x > a",
    "echo x \\\n  > a",
    "echo x > a &&\n\n# comment\n  echo y > b",
    "case x in x) :;; esac; echo x > a",
    "[[ -f a ]] && echo x > a",
    "[ -f a ] && rm a",
    "test -f a && mv a new",
    "(( 1 < 2 )) && echo x > a",
    "[[ a < b && ( x == x ) ]]; echo x > a",
    "mkdir -p x/y && echo z > x/y/z",
    "echo {a,b}{1,2} > a",
    "touch {x,y}.txt",
    "echo a{b > a; echo '{a,b}' > b",
    "A=(1 2 3); echo x > a",
    "X+=1; Y[1]=2; echo x > a",
    "echo \"a\nb\" > a",
    "echo 'ä ö 🧶' > a",
    "echo $((1+2)); echo x > a",
    "echo ${X:-y}; echo x > a",
    "cat a | grep one; echo x > b",
    "ls -la | head -1; echo x > b",
    "find . -name 'a' | xargs cat; echo x > b",
    "git --version > /dev/null; echo x > a",
    "exec 3>&1; echo x > a",
    "cat a 2>/dev/null > new",
    "cat > a << 'END'\nEOF\nEND\n",
    "cat > a <<EOF\nunterminated",
    "diff <(cat a) <(cat a) && echo x > b",
    "echo x | tee a | tee b > /dev/null",
    "printf '%s\\n' 'a\\b' > a",
    "unset X; echo x > a",
    "echo x > \"a b\"; echo y > 'c d'",
    "cp a './new file'",
    "echo x > a && : && echo y > b",
    "dd if=a of=new 2>/dev/null",
    "ls > a",
    "cat a | sort > new",
    "cat a > a || true",
    "rm *.txt; echo x > b",
    "perl -pi -e 's/one/1/' a",
];

pub(crate) fn files(folder: &Path) -> Files {
    let mut out = Files::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = String::from_utf8(std::fs::read(&path).unwrap()).unwrap();
                out.insert(path.to_str().unwrap().to_owned(), Some(text));
            }
        }
    }
    out
}

pub(crate) fn create_files(root: &Path) {
    for (name, text) in [
        ("a", "one\ntwo\nthree\n"),
        ("b", "four\nfive"),
        ("sub/c", "six\n"),
        ("sub/d", ""),
        ("folder/e", "seven\n"),
        ("x1.txt", "x\n"),
    ] {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

#[test]
fn effects_are_those_of_bash() {
    if Command::new("bash").arg("--version").output().is_err() {
        println!("skipped: there is no bash");
        return;
    }
    let mut failures = Vec::new();
    for command in KNOWN {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        create_files(&root);
        let cwd = root.to_str().unwrap();
        let mut expected = files(&root);
        let folders = [format!("{cwd}/sub"), format!("{cwd}/folder")];
        let effects = file_effects(command, cwd, Some(cwd));
        apply(&effects, &mut expected, &folders);
        let mut run = Command::new("bash");
        let output = run.arg("-c").arg(command).current_dir(&root).env("HOME", cwd).env("LC_ALL", "C.UTF-8");
        let output = output.output().unwrap();
        let actual = files(&root);
        let is_known = |(path, text): &(&String, &Option<String>)| {
            text.is_some() || !actual.contains_key(*path) && text.is_none()
        };
        let unknown: Vec<&String> =
            expected.iter().filter(|entry| !is_known(entry)).map(|(path, _)| path).collect();
        let mut actual = actual.clone();
        actual.retain(|path, _| !unknown.contains(&path));
        let has_any = expected.keys().any(|path| path.contains('*'));
        if has_any {
            actual.retain(|path, _| !path.ends_with(".txt"));
        }
        let mut expected = expected.clone();
        expected.retain(|path, text| text.is_some() && (!has_any || !path.ends_with(".txt")));
        if !output.status.success() || actual != expected {
            let errors = String::from_utf8_lossy(&output.stderr);
            failures.push(format!(
                "{command}\n  {effects:?}\n  bash: {actual:?}\n  ours: {expected:?}\n  {errors}"
            ));
        }
        let is_maybe = effects.steps.iter().any(|step| step.condition == StepCondition::Maybe);
        let may_be_maybe = ["|| true", "tee new |", "tee a |", "[ -f a ]; ", "exec 3"];
        if is_maybe && !may_be_maybe.iter().any(|part| command.contains(part)) {
            failures.push(format!("{command}\n  not certain: {effects:?}"));
        }
    }
    assert!(failures.is_empty(), "{} of {}\n{}", failures.len(), KNOWN.len(), failures.join("\n"));
}
