//! Programs that create, remove, copy and change files.

use super::{Call, Options};
use crate::effect::{ShellEffect, TextPart};
use crate::path::{file_name, normalize};
use crate::walk::{Argument, Content, Outcome};

/// Options of `cp` and `mv` that do not change which files they write.
const TRANSFER_OPTIONS: &[&str] = &[
    "-f",
    "--force",
    "-v",
    "--verbose",
    "-t",
    "--target-directory",
    "-T",
    "--no-target-directory",
    "-r",
    "-R",
    "-a",
    "-p",
    "-d",
    "-L",
    "-P",
    "-H",
    "--recursive",
    "--archive",
    "--preserve",
    "--no-preserve",
    "-x",
    "--dereference",
    "--reflink",
    "--sparse",
];

/// Parts of scripts of `perl` that may change other files, or run programs.
const PERL_EFFECTS: &[&str] = &[
    "open", "system", "exec", "unlink", "rename", "`", "qx", "require", "use ", "do ", "mkdir", "link",
    "eval", "spew", "write", "/e", "}e",
];

impl Call<'_, '_> {
    fn done() -> Outcome {
        Outcome::new(Content::nothing(), true)
    }

    /// Records that the operands may change, in a way that is not followed.
    fn change_operands(&mut self, options: &Options<'_>) -> Outcome {
        for operand in options.operands.iter().copied().chain(options.values.iter().map(|(_, value)| value)) {
            self.walk.change_named(operand);
        }
        Self::done()
    }

    pub(super) fn remove(&mut self) -> Outcome {
        let options = Options::parse(self.arguments, &[]);
        if options.has(&["-i", "-I", "--interactive"]) {
            return self.change_operands(&options);
        }
        let is_recursive = options.has(&["-r", "-R", "--recursive"]);
        for operand in &options.operands {
            if let Some(path) = self.walk.path(operand) {
                self.walk.step(ShellEffect::Remove { path, is_recursive }, self.context);
            }
        }
        Self::done()
    }

    /// `cp` and `mv`
    pub(super) fn transfer(&mut self) -> Outcome {
        let options = Options::parse(self.arguments, &["-t", "--target-directory", "-S", "--suffix"]);
        let folder = options.value(&["-t", "--target-directory"]);
        let (sources, target) = match (folder, options.operands.split_last()) {
            (Some(folder), _) => (&options.operands[..], folder),
            (None, Some((target, sources))) => (sources, *target),
            (None, None) => return Self::done(),
        };
        // How many sources a pattern has is not known, so the target may be a file or a folder.
        let has_pattern = sources.iter().any(|source| source.is_pattern);
        if has_pattern || options.has_others(TRANSFER_OPTIONS) {
            return self.change_operands(&options);
        }
        let is_move = self.name == "mv";
        let is_recursive = options.has(&["-r", "-R", "-a", "--recursive", "--archive"]);
        let is_folder = folder.is_some() || target.text.ends_with('/') || sources.len() > 1;
        let may_be_folder = !is_folder && !options.has(&["-T", "--no-target-directory"]);
        let target = self.walk.path(target);
        for source in sources {
            let from = if is_move { self.walk.path(source) } else { self.walk.read_path(source) };
            let name = from.as_deref().and_then(file_name).map(str::to_owned);
            let (Some(from), Some(name), Some(target)) = (from, name, &target) else {
                if let Some(target) = &target {
                    self.walk.change_named(&Argument { text: target.clone(), ..Argument::default() });
                }
                continue;
            };
            let to = if is_folder { normalize(&name, target).unwrap_or_default() } else { target.clone() };
            let effect = match is_move {
                true => ShellEffect::Move { from, to, may_be_folder },
                false => ShellEffect::Copy { from, to, may_be_folder, is_recursive },
            };
            self.walk.step(effect, self.context);
        }
        Self::done()
    }

    pub(super) fn link(&mut self) -> Outcome {
        let options = Options::parse(self.arguments, &["-t", "--target-directory", "-S", "--suffix"]);
        let understood =
            ["-s", "--symbolic", "-f", "--force", "-v", "--verbose", "-n", "--no-dereference", "-T", "-h"];
        let [target, rest @ ..] = &options.operands[..] else { return self.change_operands(&options) };
        if options.has_others(&understood) || rest.len() > 1 || target.literal().is_none() {
            return self.change_operands(&options);
        }
        let name = file_name(&target.text).unwrap_or_default().to_owned();
        let name = Argument { text: name, ..Argument::default() };
        let link = rest.first().copied().unwrap_or(&name);
        let Some(mut path) = self.walk.path(link) else { return Self::done() };
        let is_folder = link.text.ends_with('/');
        if is_folder {
            path = normalize(&name.text, &path).unwrap_or(path);
        }
        let may_be_folder =
            !(rest.is_empty() || is_folder || options.has(&["-T", "-n", "-h", "--no-dereference"]));
        let effect = if options.has(&["-s", "--symbolic"]) {
            ShellEffect::Link { path, target: target.text.clone(), may_be_folder }
        } else {
            match self.walk.read_path(target) {
                Some(from) => ShellEffect::HardLink { path, from, may_be_folder },
                None => ShellEffect::Change { path },
            }
        };
        self.walk.step(effect, self.context);
        Self::done()
    }

    pub(super) fn touch(&mut self) -> Outcome {
        let options = Options::parse(self.arguments, &["-t", "-d", "-r", "--date", "--reference", "--time"]);
        if options.has(&["-c", "--no-create"]) {
            return Self::done();
        }
        for operand in &options.operands {
            if let Some(path) = self.walk.path(operand) {
                self.walk.step(ShellEffect::Touch { path }, self.context);
            }
        }
        Self::done()
    }

    pub(super) fn truncate(&mut self) -> Outcome {
        let options = Options::parse(self.arguments, &["-s", "--size", "-r", "--reference"]);
        let size = options.value(&["-s", "--size"]).and_then(Argument::literal).and_then(byte_count);
        let is_plain = !options.has_others(&["-s", "--size"]);
        for operand in &options.operands {
            let Some(path) = self.walk.path(operand) else { continue };
            let effect = match size.filter(|_| is_plain) {
                Some(length) => ShellEffect::Truncate { path, length },
                None => ShellEffect::Change { path },
            };
            self.walk.step(effect, self.context);
        }
        Self::done()
    }

    pub(super) fn dd(&mut self) -> Outcome {
        let output = self.arguments.iter().find_map(|argument| {
            let text = argument.text.strip_prefix("of=")?;
            Some(Argument { text: text.to_owned(), ..argument.clone() })
        });
        if let Some(path) = output.and_then(|output| self.walk.path(&output)) {
            self.walk.step(ShellEffect::Change { path }, self.context);
        }
        Outcome::unknown()
    }

    pub(super) fn curl(&mut self) -> Outcome {
        let with_value = [
            "-o",
            "--output",
            "-X",
            "-H",
            "-d",
            "-u",
            "-F",
            "-D",
            "--dump-header",
            "-c",
            "--cookie-jar",
            "-w",
            "-A",
            "-b",
            "-e",
            "-m",
            "-x",
            "-T",
            "-K",
        ];
        let options = Options::parse(self.arguments, &with_value);
        let written = ["-o", "--output", "-D", "--dump-header", "-c", "--cookie-jar"];
        for (_, value) in options.values.iter().filter(|(name, _)| written.contains(&name.as_str())) {
            if value.text != "-"
                && let Some(path) = self.walk.path(value)
            {
                self.walk.step(ShellEffect::Change { path }, self.context);
            }
        }
        let names_itself =
            ["-O", "--remote-name", "--remote-name-all", "-J", "--output-dir", "-K", "--config"];
        if options.has(&names_itself) {
            return self.unknown_program();
        }
        Outcome::unknown()
    }

    /// `perl -pi -e SCRIPT FILES`, and scripts that only print.
    pub(super) fn perl(&mut self) -> Outcome {
        let is_letters = |text: &str| {
            text.strip_prefix('-').is_some_and(|rest| rest.chars().all(|ch| "pnielaw0".contains(ch)))
        };
        let is_loop = self
            .arguments
            .iter()
            .any(|argument| is_letters(&argument.text) && argument.text.contains(['p', 'n']));
        let mut files = Vec::new();
        let mut is_plain = is_loop;
        let mut is_in_place = false;
        let mut has_script = false;
        let mut is_script = false;
        for argument in self.arguments {
            let text = argument.text.as_str();
            if std::mem::take(&mut is_script) {
                has_script = true;
                is_plain &= !PERL_EFFECTS.iter().any(|word| text.contains(word)) && !argument.is_dynamic;
            } else if text.starts_with('-') {
                is_plain &= is_letters(text);
                is_in_place |= text.contains('i');
                is_script = text.ends_with('e');
                // The letters after `i` are the ending of a backup.
                is_plain &= text.find('i').is_none_or(|at| at + 1 == text.len());
            } else {
                files.push(argument);
            }
        }
        if !is_plain || !has_script {
            return self.unknown_program();
        }
        if is_in_place {
            files.into_iter().for_each(|file| self.walk.change_named(file));
        }
        Outcome::unknown()
    }

    pub(super) fn patch(&mut self) -> Outcome {
        let with_value =
            ["-p", "--strip", "-d", "--directory", "-i", "--input", "-o", "--output", "-F", "--fuzz"];
        let options = Options::parse(self.arguments, &with_value);
        if options.has(&["--dry-run", "--version", "--help"]) {
            return Outcome::unknown();
        }
        let understood = [
            "-p",
            "--strip",
            "-d",
            "--directory",
            "-R",
            "--reverse",
            "-s",
            "--silent",
            "--quiet",
            "-u",
            "-f",
        ];
        let strip = options.value(&["-p", "--strip"]).and_then(|value| value.text.parse::<usize>().ok());
        let folder = match options.value(&["-d", "--directory"]) {
            Some(folder) => self.walk.read_path(folder),
            None => self.walk.cwd().map(str::to_owned),
        };
        let is_plain = !options.has_others(&understood) && options.operands.is_empty();
        let (Some(text), Some(strip), Some(folder), true) = (self.input_text(), strip, folder, is_plain)
        else {
            return self.unknown_program();
        };
        let is_reverse = options.has(&["-R", "--reverse"]);
        self.walk.step(ShellEffect::Patch { text, strip, folder, is_reverse }, self.context);
        Self::done()
    }

    /// Returns the input, if it is a text in the command.
    pub(super) fn input_text(&self) -> Option<String> {
        let texts = self.input.parts.as_ref()?.iter().map(|part| match part {
            TextPart::Text(text) => Some(text.as_str()),
            TextPart::File(_) => None,
        });
        let is_certain = self.input.condition <= self.context.condition;
        texts.collect::<Option<String>>().filter(|_| is_certain)
    }
}

/// Parses a number of bytes such as `10K`.
fn byte_count(text: &str) -> Option<u64> {
    let end = text.find(|ch: char| !ch.is_ascii_digit()).unwrap_or(text.len());
    let count: u64 = text[..end].parse().ok()?;
    let unit = match &text[end..] {
        "" => 1,
        "K" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        "KB" => 1000,
        "MB" => 1_000_000,
        _ => return None,
    };
    count.checked_mul(unit)
}
