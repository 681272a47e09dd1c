//! Groups shell commands by the program they run, so that runs of the same command can be counted.

/// Programs with a command, or the name of another program, as the first argument.
const WITH_COMMANDS: &[&str] = &[
    "apt",
    "apt-get",
    "aws",
    "az",
    "brew",
    "bun",
    "bundle",
    "bunx",
    "cargo",
    "composer",
    "deno",
    "docker",
    "docker-compose",
    "dotnet",
    "flutter",
    "gcloud",
    "gh",
    "git",
    "go",
    "gradle",
    "gradlew",
    "helm",
    "jj",
    "just",
    "kubectl",
    "make",
    "mix",
    "mvn",
    "npm",
    "npx",
    "nx",
    "pip",
    "pip3",
    "pnpm",
    "podman",
    "poetry",
    "rails",
    "rustup",
    "swift",
    "systemctl",
    "terraform",
    "turbo",
    "uv",
    "uvx",
    "yarn",
];

/// Commands that run another one, which is then part of the group: `npm run build`, `uv tool run`.
const RUNNERS: &[&str] = &["exec", "run", "tool"];

/// Programs that run the command after them.
const WRAPPERS: &[&str] = &["command", "env", "exec", "nice", "nohup", "stdbuf", "sudo", "time", "timeout"];

/// Programs that prepare the command after them.
const PREPARATIONS: &[&str] = &[".", "cd", "export", "popd", "pushd", "set", "source", "unset"];

/// Returns the group of a shell command: the name of the program, and its sub-command if it has one.
///
/// `cd app && FOO=1 cargo test -p loom` belongs to `cargo test`, `npm run build` to `npm run build`,
/// `python3 -m pytest -q` to `python3 -m pytest`, and `/usr/bin/grep -rn x src` to `grep`. The first simple
/// command counts that does more than prepare the next one. A command that does not begin with the name of a
/// program belongs to `(other)`. This is a grouping for people, not a parser of shells.
pub fn command_group(command: &str) -> String {
    // The program is near the beginning.
    let command = &command[..command.floor_char_boundary(2000)];
    let mut first = None;
    for words in simple_commands(command) {
        let Some(group) = group(&words) else { continue };
        if !PREPARATIONS.contains(&&*group) {
            return group;
        }
        first = first.or(Some(group));
    }
    first.unwrap_or_else(|| "(other)".to_owned())
}

/// Returns the words of each simple command.
fn simple_commands(command: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word = String::new();
    let mut quote = None;
    let mut chars = command.chars().peekable();
    let end_word = |word: &mut String, commands: &mut Vec<Vec<String>>| {
        if !word.is_empty() {
            commands.last_mut().into_iter().for_each(|words| words.push(std::mem::take(word)));
        }
    };
    while let Some(ch) = chars.next() {
        match (quote, ch) {
            (Some(open), _) if ch == open => quote = None,
            (Some(_), _) => word.push(ch),
            (None, '"' | '\'') => quote = Some(ch),
            (None, '\\') => match chars.next() {
                Some('\n') | None => end_word(&mut word, &mut commands),
                Some(next) => word.push(next),
            },
            (None, '#') if word.is_empty() => while chars.next_if(|ch| *ch != '\n').is_some() {},
            (None, '\n' | ';' | '|' | '&') => {
                end_word(&mut word, &mut commands);
                commands.push(Vec::new());
            }
            (None, _) if ch.is_whitespace() => end_word(&mut word, &mut commands),
            (None, _) => word.push(ch),
        }
    }
    end_word(&mut word, &mut commands);
    commands.retain(|words| !words.is_empty());
    commands
}

/// Returns the group of a simple command; `None` if it runs no program.
fn group(words: &[String]) -> Option<String> {
    let words = words.iter().map(|word| word.trim_start_matches('(').trim_end_matches(')'));
    let mut words = words.filter(|word| !word.is_empty()).peekable();
    let program = loop {
        let word = words.next()?;
        let is_assignment = word.split_once('=').is_some_and(|(name, _)| is_name(name));
        let program = word.rsplit(['/', '\\']).next().unwrap_or(word);
        if is_assignment {
            continue;
        }
        if !WRAPPERS.contains(&program) {
            break program;
        }
        // Skips the options of a wrapper, and the duration of `timeout`.
        while words
            .next_if(|word| word.starts_with('-') || word.starts_with(|ch: char| ch.is_ascii_digit()))
            .is_some()
        {}
    };
    if !is_name(program) {
        return Some("(other)".to_owned());
    }
    let mut group = program.to_owned();
    if program.starts_with("python") {
        let module = words.next().filter(|word| *word == "-m").and_then(|_| words.next());
        if let Some(module) = module.filter(|module| is_name(module)) {
            group.push_str(" -m ");
            group.push_str(module);
        }
        return Some(group);
    }
    if WITH_COMMANDS.contains(&program) {
        let mut arguments = words.filter(|word| !word.starts_with(['-', '+']));
        while let Some(argument) = arguments.next().filter(|argument| is_name(argument)) {
            group.push(' ');
            group.push_str(argument);
            if !RUNNERS.contains(&argument) {
                break;
            }
        }
    }
    Some(group)
}

/// Returns whether a word may be the name of a program or of a sub-command.
fn is_name(word: &str) -> bool {
    word.len() <= 40
        && (word == "." || word.starts_with(|ch: char| ch.is_ascii_alphabetic() || ch == '_'))
        && word.chars().all(|ch| ch.is_ascii_alphanumeric() || "._+-:@".contains(ch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_belong_to_their_program() {
        for (command, group) in [
            ("ls -la src", "ls"),
            ("cargo test -p loom -- --nocapture", "cargo test"),
            ("cargo +nightly fmt", "cargo fmt"),
            ("cd app && FOO=1 cargo test", "cargo test"),
            ("cd app\n# build it\nmake", "make"),
            ("npm run build 2>&1 | tail -5", "npm run build"),
            ("uv run pytest -q", "uv run pytest"),
            ("python3 -m pytest -q", "python3 -m pytest"),
            ("python3 -c 'print(1)'", "python3"),
            ("/usr/bin/grep -rn 'a; b' src", "grep"),
            ("timeout 60 git push origin main", "git push"),
            ("git \\\n  commit -m 'cd x'", "git commit"),
            ("cd /tmp", "cd"),
            ("for f in *; do echo $f; done", "for"),
            ("$(which node) x.js", "(other)"),
            ("(cd x; make)", "make"),
            ("", "(other)"),
            ("\"my program\" x", "(other)"),
            ("make -j4", "make"),
            ("docker compose up -d", "docker compose"),
        ] {
            assert_eq!(command_group(command), group, "{command}");
        }
    }

    #[test]
    fn long_commands_are_cut() {
        let command = format!("echo {}", "ü".repeat(100_000));
        assert_eq!(command_group(&command), "echo");
        assert_eq!(command_group(&"x".repeat(100_000)), "(other)");
    }
}
