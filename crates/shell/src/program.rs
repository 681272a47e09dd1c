//! What programs do to files.

mod editor;
mod files;
mod git;
mod reader;

use crate::effect::{ShellEffect, StepCondition};
use crate::path::file_name;
use crate::sed::{SedCall, SedScript};
use crate::text;
use crate::walk::{Argument, Content, Context, Outcome, Walk};

pub use editor::names_editor;
pub(crate) use reader::{looks_like_reader_cmdlet, only_reads};

/// A call of a program.
pub(crate) struct Call<'w, 'a> {
    walk: &'w mut Walk,
    /// The program's name without its folder.
    name: &'a str,
    arguments: &'a [Argument],
    context: Context,
    input: Content,
}

/// Programs that run the command in their arguments, and their options with a value.
const WRAPPERS: &[(&str, &[&str])] = &[
    ("sudo", &["-u", "-g", "-h", "-p", "-C", "-T", "-r", "-t", "--user", "--group"]),
    ("doas", &["-u", "-C"]),
    ("env", &["-u", "--unset"]),
    ("time", &["-f", "-o"]),
    ("nice", &["-n", "--adjustment"]),
    ("ionice", &["-c", "-n", "-p"]),
    ("timeout", &["-k", "--kill-after", "-s", "--signal"]),
    ("gtimeout", &["-k", "--kill-after", "-s", "--signal"]),
    ("command", &[]),
    ("builtin", &[]),
    ("exec", &["-a"]),
    ("nohup", &[]),
    ("setsid", &[]),
    ("stdbuf", &["-i", "-o", "-e"]),
    ("caffeinate", &[]),
];

/// Runs a program.
pub(crate) fn run(walk: &mut Walk, arguments: &[Argument], context: Context, input: Content) -> Outcome {
    let mut arguments = arguments;
    let mut ends_shell = false;
    // Each round removes a wrapper.
    loop {
        let Some(name) = arguments.first().and_then(Argument::literal) else {
            change_any(walk, arguments);
            return Outcome::unknown();
        };
        let name = program_name(name);
        let Some((_, with_value)) = WRAPPERS.iter().find(|(wrapper, _)| *wrapper == name) else {
            let mut call = Call { walk, name, arguments: &arguments[1..], context, input };
            let mut outcome = call.run();
            outcome.has_ended |= ends_shell;
            return outcome;
        };
        if matches!(name, "nohup" | "setsid") {
            walk.set_background(true);
        }
        ends_shell |= name == "exec";
        let Some(rest) = wrapped(name, &arguments[1..], with_value) else {
            change_any(walk, arguments);
            return Outcome::unknown();
        };
        if rest.is_empty() {
            return Outcome::unknown();
        }
        arguments = rest;
    }
}

fn program_name(name: &str) -> &str {
    let folders = ["/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/", "/opt/homebrew/bin/"];
    let name = name.strip_prefix('\\').unwrap_or(name);
    let inner = folders.iter().find_map(|folder| name.strip_prefix(folder));
    inner.filter(|name| !name.contains('/')).unwrap_or(name)
}

/// Returns the command in the arguments of a wrapper. `None` if the wrapper changes its folder or its words.
fn wrapped<'a>(name: &str, arguments: &'a [Argument], with_value: &[&str]) -> Option<&'a [Argument]> {
    let mut at = 0;
    while let Some(argument) = arguments.get(at) {
        let text = argument.text.as_str();
        if text == "--" {
            at += 1;
            break;
        }
        let is_assignment = matches!(name, "env" | "sudo") && text.contains('=') && !text.starts_with('-');
        if !is_assignment && !text.starts_with('-') {
            break;
        }
        match (name, text) {
            ("env", "-C" | "--chdir" | "-S" | "--split-string") | ("sudo", "-D" | "-i" | "-s" | "-e") => {
                return None;
            }
            ("command", "-v" | "-V") => return Some(&[]),
            _ => {}
        }
        at += 1 + usize::from(with_value.contains(&text));
    }
    // `timeout 5 command`
    at += usize::from(name.ends_with("timeout"));
    Some(arguments.get(at..).unwrap_or_default())
}

/// Records that a program may change any file, with the words that may name files.
fn change_any(walk: &mut Walk, arguments: &[Argument]) {
    let text: Vec<&str> = arguments.iter().map(|argument| argument.text.as_str()).collect();
    walk.change_any(&text.join(" "));
}

/// The options and operands of a call.
#[derive(Default)]
pub(crate) struct Options<'a> {
    /// Single letters (`-r`), and long names without values (`--recursive`).
    pub(crate) names: Vec<String>,
    /// The values of options that have one.
    pub(crate) values: Vec<(String, Argument)>,
    pub(crate) operands: Vec<&'a Argument>,
    /// Whether `--` is before the operands, and how many operands are before it.
    pub(crate) separator: Option<usize>,
}

impl<'a> Options<'a> {
    /// Parses arguments. `with_value` are the options that have a value.
    pub(crate) fn parse(arguments: &'a [Argument], with_value: &[&str]) -> Self {
        let mut options = Self::default();
        let mut at = 0;
        while let Some(argument) = arguments.get(at) {
            at += 1;
            let text = argument.text.as_str();
            if options.separator.is_some() || !text.starts_with('-') || text.len() == 1 {
                options.operands.push(argument);
            } else if text == "--" {
                options.separator = Some(options.operands.len());
            } else if text.starts_with("--") {
                let (name, value) = text.split_once('=').unwrap_or((text, ""));
                if text.contains('=') {
                    options
                        .values
                        .push((name.to_owned(), Argument { text: value.to_owned(), ..argument.clone() }));
                } else if with_value.contains(&name) {
                    options.values.extend(arguments.get(at).map(|value| (name.to_owned(), value.clone())));
                    at += 1;
                }
                options.names.push(name.to_owned());
            } else {
                for (i, letter) in text.char_indices().skip(1) {
                    let name = format!("-{letter}");
                    let has_value = with_value.contains(&name.as_str());
                    options.names.push(name.clone());
                    if !has_value {
                        continue;
                    }
                    let rest = &text[i + letter.len_utf8()..];
                    if rest.is_empty() {
                        options.values.extend(arguments.get(at).map(|value| (name, value.clone())));
                        at += 1;
                    } else {
                        options.values.push((name, Argument { text: rest.to_owned(), ..argument.clone() }));
                    }
                    break;
                }
            }
        }
        options
    }

    pub(crate) fn has(&self, names: &[&str]) -> bool {
        self.names.iter().any(|name| names.contains(&name.as_str()))
    }

    /// Whether there are options besides these.
    pub(crate) fn has_others(&self, names: &[&str]) -> bool {
        self.names.iter().any(|name| !names.contains(&name.as_str()))
    }

    pub(crate) fn value(&self, names: &[&str]) -> Option<&Argument> {
        self.values.iter().rev().find(|(name, _)| names.contains(&name.as_str())).map(|(_, value)| value)
    }
}

impl Call<'_, '_> {
    fn run(&mut self) -> Outcome {
        let arguments = self.arguments;
        let texts: Vec<&str> = arguments.iter().map(|argument| argument.text.as_str()).collect();
        match self.name {
            ":" | "true" => Outcome::new(Content::nothing(), true),
            "false" => Outcome::new(Content::nothing(), false),
            "echo" => self.print(text::echo(&texts)),
            "printf" if texts.first().is_some_and(|first| first.starts_with("-v")) => {
                let name = texts.get(1).copied().unwrap_or_default();
                self.walk.set_variable(name, None);
                Outcome::new(Content::nothing(), true)
            }
            "printf" => self.print(text::printf(&texts)),
            "pwd" if texts.is_empty() => {
                let cwd = self.walk.cwd().map(|cwd| format!("{cwd}\n"));
                Outcome::new(
                    cwd.map_or_else(Content::unknown, |cwd| Content::text(cwd, self.context.condition)),
                    true,
                )
            }
            "cat" => self.cat(),
            "tee" => self.tee(),
            "sed" | "gsed" => self.sed(&texts),
            "cd" | "chdir" | "pushd" | "popd" => self.change_folder(),
            "git" => git::run(self),
            "patch" => self.patch(),
            "rm" | "unlink" => self.remove(),
            "cp" | "mv" => self.transfer(),
            "ln" => self.link(),
            "touch" => self.touch(),
            "truncate" => self.truncate(),
            "mkdir" | "rmdir" => Outcome::new(Content::unknown(), true),
            "dd" => self.dd(),
            "curl" => self.curl(),
            "perl" => self.perl(),
            "bash" | "sh" | "zsh" | "dash" => self.shell(),
            "xargs" => self.xargs(),
            _ => self.shell_builtin(&texts),
        }
    }

    /// Builtins that change the shell, and all other programs.
    fn shell_builtin(&mut self, texts: &[&str]) -> Outcome {
        match self.name {
            "exit" | "return" | "break" | "continue" | "logout" => return self.end(texts),
            "set" => self.set(texts),
            "export" | "declare" | "local" | "readonly" | "typeset" => self.declare(),
            "unset" | "read" | "getopts" | "let" => {
                for name in texts {
                    self.walk.set_variable(name.split('=').next().unwrap_or(name), None);
                }
                return Outcome::new(Content::nothing(), false);
            }
            "mapfile" | "readarray" => return Outcome::new(Content::nothing(), false),
            "wait" if texts.is_empty() && !self.context.is_conditional => self.walk.set_background(false),
            "wait" => {}
            "eval" | "source" | "." | "trap" | "alias" => {
                self.walk.forget_state();
                return self.unknown_program();
            }
            "disown" => self.walk.set_background(true),
            "at" | "batch" | "coproc" | "screen" | "tmux" | "daemonize" => {
                self.walk.set_background(true);
                return self.unknown_program();
            }
            name => {
                if only_reads(name, texts) {
                    return Outcome::unknown();
                }
                return self.unknown_program();
            }
        }
        Outcome::new(Content::nothing(), true)
    }

    /// A program that may change any file.
    fn unknown_program(&mut self) -> Outcome {
        if let Some(text) = self.input.parts.is_some().then(|| self.input_words()) {
            self.walk.change_any(&text);
        }
        let runs_file = matches!(self.name, "node" | "python" | "python3" | "ruby" | "perl" | "bash" | "sh")
            && self.arguments.first().is_some_and(|first| !first.text.starts_with('-'));
        change_any(self.walk, &self.arguments[usize::from(runs_file)..]);
        Outcome::unknown()
    }

    fn input_words(&self) -> String {
        let mut text = String::new();
        for part in self.input.parts.iter().flatten() {
            if let crate::effect::TextPart::Text(part) = part {
                text.push_str(part);
                text.push(' ');
            }
        }
        text
    }

    /// The result of a builtin that prints a text, if it is known.
    fn print(&self, text: Option<String>) -> Outcome {
        let is_known = self.arguments.iter().all(|argument| argument.literal().is_some());
        let condition =
            if self.context.is_conditional { self.context.condition } else { StepCondition::IfSucceeded };
        let content = match text.filter(|_| is_known) {
            Some(text) => Content::text(text, condition),
            None => Content::unknown(),
        };
        Outcome::new(content, true)
    }

    fn change_folder(&mut self) -> Outcome {
        let operands: Vec<&Argument> = self
            .arguments
            .iter()
            .filter(|argument| !matches!(argument.text.as_str(), "--" | "-P" | "-L"))
            .collect();
        let home = self.walk.home();
        let folder = match operands[..] {
            [] if self.name == "cd" => home.as_deref(),
            [folder] if !folder.text.starts_with(['-', '+']) => folder.literal(),
            _ => None,
        };
        self.walk.change_folder(folder, self.context);
        Outcome::new(Content::nothing(), true)
    }

    /// `exit` and what else ends a list of commands.
    fn end(&mut self, texts: &[&str]) -> Outcome {
        let status = texts.first().and_then(|status| status.parse::<u8>().ok());
        let is_failure = self.name == "exit" && status.is_some_and(|status| status > 0);
        if self.context.is_conditional && !is_failure {
            self.walk.may_have_ended();
        }
        let has_ended = !self.context.is_conditional;
        Outcome { content: Content::nothing(), is_noisy: false, has_ended }
    }

    fn set(&mut self, texts: &[&str]) {
        let mut previous = "";
        for text in texts {
            match (previous, *text) {
                ("-o", "errexit") => self.walk.set_ends_on_error(true),
                ("-o", "pipefail") => self.walk.set_pipefail(true),
                ("+o", "errexit") => self.walk.set_ends_on_error(false),
                ("+o", "pipefail") => self.walk.set_pipefail(false),
                (previous, "pipefail") if previous.starts_with('-') && previous.ends_with('o') => {
                    self.walk.set_pipefail(true);
                }
                _ => {}
            }
            if text.starts_with('-') && text.contains('e') {
                self.walk.set_ends_on_error(true);
            } else if text.starts_with('+') && text.contains('e') {
                self.walk.set_ends_on_error(false);
            }
            // `set -n` reads commands without running them.
            if text.starts_with('-') && !text.starts_with("--") && text.contains('n') {
                self.walk.forget_state();
            }
            previous = text;
        }
    }

    fn declare(&mut self) {
        for argument in self.arguments {
            let (name, value) = argument.text.split_once('=').unwrap_or((&argument.text, ""));
            if argument.text.contains('=') {
                self.walk.set_variable(name, argument.literal().map(|_| value));
            } else if self.name != "export" && self.name != "readonly" {
                self.walk.set_variable(name, None);
            }
        }
    }

    fn cat(&mut self) -> Outcome {
        let options = Options::parse(self.arguments, &[]);
        if options.has_others(&["-u"]) {
            return Outcome::new(Content::unknown(), true);
        }
        if options.operands.is_empty() {
            return Outcome::new(std::mem::take(&mut self.input), true);
        }
        let mut content = Content::nothing();
        for operand in options.operands {
            let next = match operand.text.as_str() {
                "-" | "/dev/stdin" => std::mem::take(&mut self.input),
                _ => self.walk.read_file(operand, self.context),
            };
            content.condition = content.condition.max(next.condition);
            content.parts = content.parts.zip(next.parts).map(|(mut parts, next)| {
                parts.extend(next);
                parts
            });
        }
        Outcome::new(content, true)
    }

    fn tee(&mut self) -> Outcome {
        let options = Options::parse(self.arguments, &[]);
        let is_append = options.has(&["-a", "--append"]);
        let mut content = std::mem::take(&mut self.input);
        if options.has_others(&["-a", "--append", "-i"]) {
            content = Content::unknown();
        }
        for operand in options.operands {
            if let Some(path) = self.walk.path(operand) {
                self.walk.write(path, content.clone(), is_append, self.context);
            }
        }
        Outcome::new(content, true)
    }

    fn sed(&mut self, texts: &[&str]) -> Outcome {
        let call = SedCall::parse(texts);
        let is_dynamic = self.arguments.iter().any(|argument| argument.is_dynamic);
        let script = SedScript::parse(&call.script, call.is_extended, call.is_bsd)
            .filter(|_| !call.has_other_options && !is_dynamic);
        // A script that is not understood may write other files, or run commands.
        let is_plain = |text: &str| !["w ", "W ", "w\t", "/e", "e "].iter().any(|part| text.contains(part));
        if script.is_none() && !is_plain(&call.script) {
            self.walk.change_any(&call.script);
        }
        let Some(suffix) = call.in_place else { return Outcome::new(Content::unknown(), true) };
        for index in call.files {
            let Some(path) = self.walk.path(&self.arguments[index]) else { continue };
            match (suffix, suffix.contains(['*', '/'])) {
                ("", _) => {}
                (suffix, false) => {
                    let to = format!("{path}{suffix}");
                    let effect = ShellEffect::Copy {
                        from: path.clone(),
                        to,
                        may_be_folder: false,
                        is_recursive: false,
                    };
                    self.walk.step(effect, self.context);
                }
                (suffix, true) => {
                    self.walk.change_any(&format!("{suffix} {}", file_name(&path).unwrap_or_default()));
                }
            }
            let effect = match &script {
                Some(script) => ShellEffect::Substitute { path, script: script.clone() },
                None => ShellEffect::Change { path },
            };
            self.walk.step(effect, self.context);
        }
        Outcome::new(Content::nothing(), true)
    }

    /// `bash -c SCRIPT`, and a script as input.
    fn shell(&mut self) -> Outcome {
        let mut at = 0;
        let mut context = self.context;
        while let Some(argument) = self.arguments.get(at)
            && argument.text.starts_with('-')
        {
            at += 1;
            let text = argument.text.as_str();
            let is_letters = !text.starts_with("--");
            if is_letters && text.contains('c') {
                let script = self.arguments.get(at).and_then(Argument::literal);
                return match script {
                    // Another shell has another `echo`, but that makes no difference to what is understood.
                    Some(script) => self.walk.inner_script(script, context),
                    None => self.unknown_program(),
                };
            }
            match text {
                "-s" | "-" => break,
                "-e" | "-l" | "-i" | "-x" | "-u" | "-eu" | "-ex" | "-eux" | "--login" | "--norc" => {}
                "--version" | "--help" => return Outcome::unknown(),
                // Nothing runs: `-n`.
                _ => context.condition = StepCondition::Maybe,
            }
        }
        if self.arguments.get(at).is_some_and(|argument| !argument.text.starts_with('-')) {
            return self.unknown_program();
        }
        let texts = self.input.parts.iter().flatten();
        let is_text = texts.clone().all(|part| matches!(part, crate::effect::TextPart::Text(_)));
        if self.input.parts.is_none() || !is_text {
            return self.unknown_program();
        }
        let script = self.input_words();
        context.condition = context.condition.max(self.input.condition);
        self.walk.inner_script(&script, context)
    }

    fn xargs(&mut self) -> Outcome {
        let with_value =
            ["-I", "-n", "-P", "-L", "-d", "-a", "-s", "-E", "--max-args", "--max-procs", "--delimiter"];
        let mut at = 0;
        while let Some(argument) = self.arguments.get(at)
            && argument.text.starts_with('-')
        {
            at += 1 + usize::from(with_value.contains(&argument.text.as_str()));
        }
        let rest = self.arguments.get(at..).unwrap_or_default();
        let texts: Vec<&str> = rest.iter().map(|argument| argument.text.as_str()).collect();
        let reads = match texts.split_first() {
            None => true,
            Some((name, arguments)) => reader::reads_as_inner(program_name(name), arguments),
        };
        if !reads || rest.first().is_some_and(|name| name.is_dynamic) {
            return self.unknown_program();
        }
        Outcome::unknown()
    }
}
