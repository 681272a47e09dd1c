//! Scripts of `sed` that can be applied to a text.

use crate::pattern::{Pattern, translate};

/// A script of `sed` of which the effect on any text is known: `s`, `d`, `a`, `i`, `c` and `y` with
/// addresses.
#[derive(Debug, Clone, PartialEq)]
pub struct SedScript {
    commands: Vec<SedCommand>,
    /// Whether it ran with the `sed` of BSD and macOS: `sed -i ''`.
    is_bsd: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct SedCommand {
    start: Option<Address>,
    end: Option<Address>,
    is_negated: bool,
    action: Action,
}

impl SedCommand {
    /// Whether it does the same in the `sed` of BSD.
    fn is_portable(&self) -> bool {
        let is_plain = |address: &Option<Address>| match address {
            Some(Address::Match(pattern)) => !pattern.has_extensions,
            Some(Address::Line(line)) => *line > 0,
            Some(Address::Following(_)) => false,
            Some(Address::Last) | None => true,
        };
        let has_control = |part: &ReplacementPart| match part {
            ReplacementPart::Text(text) => text.contains(['\n', '\t']),
            ReplacementPart::Group(_) => false,
        };
        let is_plain_action = match &self.action {
            Action::Substitute { pattern, parts, .. } => {
                !pattern.has_extensions && !parts.iter().any(has_control)
            }
            Action::Delete | Action::Translate(_) => true,
            Action::Append(_) | Action::Insert(_) | Action::Change(_) => false,
        };
        is_plain_action && is_plain(&self.start) && is_plain(&self.end)
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Address {
    Line(usize),
    Last,
    Match(Pattern),
    /// `+3` as the end of a range.
    Following(usize),
}

#[derive(Debug, Clone, PartialEq)]
enum Action {
    Substitute { pattern: Pattern, parts: Vec<ReplacementPart>, from: usize, is_global: bool },
    Delete,
    Append(String),
    Insert(String),
    Change(String),
    Translate(Vec<(char, char)>),
}

#[derive(Debug, Clone, PartialEq)]
enum ReplacementPart {
    Text(String),
    Group(usize),
}

/// How far a range of lines has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RangeState {
    Inactive,
    /// Active, with the number of the last line if it is known.
    Active(Option<usize>),
}

/// The most bytes that are searched in one text.
const MAX_WORK: usize = 1 << 32;

impl SedScript {
    /// Parses a script. Returns `None` if its effect is not known. The parts of the options `-e` are separate
    /// lines of it.
    pub(crate) fn parse(source: &str, is_extended: bool, is_bsd: bool) -> Option<Self> {
        let mut parser = ScriptParser { rest: source, is_extended };
        let mut commands = Vec::new();
        loop {
            parser.rest = parser.rest.trim_start_matches([' ', '\t', '\n', ';']);
            if parser.rest.is_empty() {
                break;
            }
            commands.push(parser.command()?);
        }
        if is_bsd && !commands.iter().all(SedCommand::is_portable) {
            return None;
        }
        Some(Self { commands, is_bsd })
    }

    /// Returns the text that the script makes of a text. `None` if that depends on the locale or the
    /// version of `sed`, or takes too long.
    pub fn apply(&self, text: &str) -> Option<String> {
        if self.is_bsd && !text.is_empty() && !text.ends_with('\n') {
            return None;
        }
        let mut run = ScriptRun { states: vec![RangeState::Inactive; self.commands.len()], work: 0 };
        for (state, command) in run.states.iter_mut().zip(&self.commands) {
            if command.start == Some(Address::Line(0)) {
                *state = RangeState::Active(None);
            }
        }
        let mut out = String::with_capacity(text.len());
        let mut lines = text.split_inclusive('\n').enumerate().peekable();
        while let Some((i, line)) = lines.next() {
            let body = line.strip_suffix('\n').unwrap_or(line);
            let is_last = lines.peek().is_none();
            let has_newline = body.len() < line.len();
            self.line(&mut run, &mut out, i + 1, body, is_last, has_newline)?;
        }
        Some(out)
    }

    fn line(
        &self,
        run: &mut ScriptRun,
        out: &mut String,
        number: usize,
        line: &str,
        is_last: bool,
        has_newline: bool,
    ) -> Option<()> {
        let mut space = line.to_owned();
        let mut appended = String::new();
        let mut is_deleted = false;
        for (i, command) in self.commands.iter().enumerate() {
            if !run.is_selected(i, command, number, &space, is_last)? {
                continue;
            }
            match &command.action {
                Action::Substitute { pattern, parts, from, is_global } => {
                    space = run.substitute(&space, pattern, parts, *from, *is_global)?;
                }
                Action::Append(text) => appended.push_str(text),
                Action::Insert(text) => out.push_str(text),
                Action::Translate(pairs) => {
                    let replace =
                        |ch: char| pairs.iter().find(|(from, _)| *from == ch).map_or(ch, |(_, to)| *to);
                    space = space.chars().map(replace).collect();
                }
                Action::Delete => is_deleted = true,
                Action::Change(text) => {
                    let is_range = command.end.is_some() && !command.is_negated;
                    if !is_range || run.states[i] == RangeState::Inactive {
                        out.push_str(text);
                    }
                    is_deleted = true;
                }
            }
            if is_deleted {
                break;
            }
        }
        if !is_deleted {
            out.push_str(&space);
            if has_newline || !appended.is_empty() {
                out.push('\n');
            }
        }
        out.push_str(&appended);
        Some(())
    }
}

struct ScriptRun {
    states: Vec<RangeState>,
    /// The number of bytes that were searched.
    work: usize,
}

impl ScriptRun {
    fn is_selected(
        &mut self,
        i: usize,
        command: &SedCommand,
        number: usize,
        line: &str,
        is_last: bool,
    ) -> Option<bool> {
        let Some(start) = &command.start else { return Some(!command.is_negated) };
        let is_in = match &command.end {
            None => self.matches(start, number, line, is_last)?,
            Some(end) => self.is_in_range(i, start, end, number, line, is_last)?,
        };
        Some(is_in != command.is_negated)
    }

    fn is_in_range(
        &mut self,
        i: usize,
        start: &Address,
        end: &Address,
        number: usize,
        line: &str,
        is_last: bool,
    ) -> Option<bool> {
        if let RangeState::Active(last) = self.states[i] {
            if let Some(last) = last {
                if number >= last {
                    self.states[i] = RangeState::Inactive;
                }
                return Some(number <= last || self.matches(start, number, line, is_last)?);
            }
            if self.matches(end, number, line, is_last)? {
                self.states[i] = RangeState::Inactive;
            }
            return Some(true);
        }
        if !self.matches(start, number, line, is_last)? {
            return Some(false);
        }
        let last = match end {
            Address::Line(last) => Some(*last),
            Address::Following(count) => Some(number + count),
            Address::Last if is_last => Some(number),
            Address::Last | Address::Match(_) => None,
        };
        if last.is_none_or(|last| last > number) {
            self.states[i] = RangeState::Active(last);
        }
        Some(true)
    }

    fn matches(&mut self, address: &Address, number: usize, line: &str, is_last: bool) -> Option<bool> {
        match address {
            Address::Line(line) => Some(*line == number),
            Address::Last => Some(is_last),
            Address::Following(_) => Some(false),
            Address::Match(pattern) => {
                self.check(pattern, line)?;
                Some(pattern.regex.is_match(line))
            }
        }
    }

    fn check(&mut self, pattern: &Pattern, line: &str) -> Option<()> {
        self.work += line.len();
        (self.work < MAX_WORK && (pattern.is_unicode || line.is_ascii())).then_some(())
    }

    fn substitute(
        &mut self,
        line: &str,
        pattern: &Pattern,
        parts: &[ReplacementPart],
        from: usize,
        is_global: bool,
    ) -> Option<String> {
        self.check(pattern, line)?;
        let mut out = String::with_capacity(line.len());
        let mut at = 0;
        for (i, captures) in pattern.regex.captures_iter(line).enumerate() {
            self.check(pattern, line)?;
            if i + 1 < from {
                continue;
            }
            let whole = captures.get(0)?;
            out.push_str(&line[at..whole.start()]);
            for part in parts {
                match part {
                    ReplacementPart::Text(text) => out.push_str(text),
                    ReplacementPart::Group(group) => {
                        out.push_str(captures.get(*group).map_or("", |found| found.as_str()));
                    }
                }
            }
            at = whole.end();
            if !is_global {
                break;
            }
        }
        out.push_str(&line[at..]);
        Some(out)
    }
}

struct ScriptParser<'s> {
    rest: &'s str,
    is_extended: bool,
}

impl<'s> ScriptParser<'s> {
    fn next(&mut self) -> Option<char> {
        let ch = self.rest.chars().next()?;
        self.rest = &self.rest[ch.len_utf8()..];
        Some(ch)
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn command(&mut self) -> Option<SedCommand> {
        let start = self.address()?;
        self.skip_blanks();
        let mut end = None;
        if start.is_some() && self.rest.starts_with(',') {
            self.next();
            self.skip_blanks();
            end = Some(self.address()?.or_else(|| self.following())?);
            self.skip_blanks();
        }
        // Line 0 is only the start of a range that ends with a pattern.
        let is_zero = start == Some(Address::Line(0));
        if is_zero && !matches!(end, Some(Address::Match(_))) || end == Some(Address::Line(0)) {
            return None;
        }
        let mut is_negated = false;
        while self.rest.starts_with('!') {
            self.next();
            self.skip_blanks();
            is_negated = true;
        }
        let action = self.action()?;
        Some(SedCommand { start, end, is_negated, action })
    }

    fn following(&mut self) -> Option<Address> {
        self.rest = self.rest.strip_prefix('+')?;
        self.number().map(Address::Following)
    }

    fn number(&mut self) -> Option<usize> {
        let end = self.rest.find(|ch: char| !ch.is_ascii_digit()).unwrap_or(self.rest.len());
        let number = self.rest[..end].parse().ok().filter(|number| *number < 1 << 40)?;
        self.rest = &self.rest[end..];
        Some(number)
    }

    /// Reads an address, if there is one.
    fn address(&mut self) -> Option<Option<Address>> {
        let delimiter = match self.rest.chars().next() {
            Some('0'..='9') => {
                let line = self.number()?;
                return (!self.rest.starts_with('~')).then_some(Some(Address::Line(line)));
            }
            Some('$') => {
                self.next();
                return Some(Some(Address::Last));
            }
            Some('/') => '/',
            Some('\\') => {
                self.next();
                self.rest.chars().next()?
            }
            _ => return Some(None),
        };
        self.next();
        let source = self.delimited(delimiter, true)?;
        let ignores_case = self.rest.starts_with('I');
        if ignores_case {
            self.next();
        }
        let mut pattern = translate(&source, self.is_extended, ignores_case)?;
        pattern.has_extensions |= ignores_case;
        Some(Some(Address::Match(pattern)))
    }

    /// Reads up to a delimiter that is not escaped. The backslash before an escaped one is removed.
    fn delimited(&mut self, delimiter: char, is_pattern: bool) -> Option<String> {
        if delimiter == '\n' || delimiter == '\\' {
            return None;
        }
        let mut text = String::new();
        loop {
            match self.next()? {
                ch if ch == delimiter => return Some(text),
                '\n' if is_pattern => return None,
                '\\' => match self.next()? {
                    // An escaped delimiter with a meaning of its own: versions differ.
                    ch if ch == delimiter
                        && (ch.is_ascii_alphanumeric() || "^$.*[]+?(){}|&".contains(ch)) =>
                    {
                        return None;
                    }
                    ch if ch == delimiter => text.push(ch),
                    ch => text.extend(['\\', ch]),
                },
                ch => text.push(ch),
            }
        }
    }

    fn action(&mut self) -> Option<Action> {
        let action = match self.next()? {
            's' => self.substitution()?,
            'y' => self.translation()?,
            'd' => Action::Delete,
            'a' => return self.text().map(Action::Append),
            'i' => return self.text().map(Action::Insert),
            'c' => return self.text().map(Action::Change),
            _ => return None,
        };
        self.skip_blanks();
        let is_end = self.rest.is_empty() || self.rest.starts_with([';', '\n']);
        is_end.then_some(action)
    }

    fn substitution(&mut self) -> Option<Action> {
        let delimiter = self.next()?;
        let source = self.delimited(delimiter, true)?;
        let replacement = self.delimited(delimiter, false)?;
        let (mut from, mut is_global, mut ignores_case) = (None, false, false);
        loop {
            match self.rest.chars().next() {
                Some('g') if !is_global => is_global = true,
                Some('i' | 'I') => ignores_case = true,
                Some('1'..='9') if from.is_none() => {
                    from = Some(self.number()?);
                    continue;
                }
                None | Some(';' | '\n' | ' ' | '\t') => break,
                _ => return None,
            }
            self.next();
        }
        let mut pattern = translate(&source, self.is_extended, ignores_case)?;
        pattern.has_extensions |= ignores_case;
        let parts = replacement_parts(&replacement)?;
        for part in &parts {
            if let ReplacementPart::Group(group) = part
                && (*group > pattern.groups || *group > 0 && !pattern.has_clear_groups)
            {
                return None;
            }
        }
        Some(Action::Substitute { pattern, parts, from: from.unwrap_or(1), is_global })
    }

    fn translation(&mut self) -> Option<Action> {
        let delimiter = self.next()?;
        let from = self.delimited(delimiter, true)?;
        let to = self.delimited(delimiter, true)?;
        let is_plain = |text: &str| text.is_ascii() && !text.contains('\\');
        if !is_plain(&from) || !is_plain(&to) || from.len() != to.len() {
            return None;
        }
        Some(Action::Translate(from.chars().zip(to.chars()).collect()))
    }

    /// Reads the text of `a`, `i` or `c`, up to a line that does not end with a backslash.
    fn text(&mut self) -> Option<String> {
        self.skip_blanks();
        if let Some(rest) = self.rest.strip_prefix('\\') {
            self.rest = rest;
            self.skip_blanks();
            match self.rest.strip_prefix('\n') {
                Some(rest) => self.rest = rest,
                // `a\  text` keeps the blanks, in some versions.
                None if rest.starts_with([' ', '\t']) => return None,
                None => {}
            }
        }
        let mut text = String::new();
        loop {
            match self.next() {
                None | Some('\n') => break,
                Some('\\') => match self.next()? {
                    ch @ ('\n' | '\\') => text.push(ch),
                    _ => return None,
                },
                Some(ch) => text.push(ch),
            }
        }
        // An empty text is an error, and versions differ in leading blanks of later lines.
        if text.is_empty() {
            return None;
        }
        text.push('\n');
        Some(text)
    }
}

fn replacement_parts(text: &str) -> Option<Vec<ReplacementPart>> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut chars = text.chars();
    while let Some(ch) = chars.next() {
        let group = match ch {
            '&' => 0,
            '\\' => match chars.next()? {
                digit @ '0'..='9' => digit as usize - '0' as usize,
                'n' => {
                    literal.push('\n');
                    continue;
                }
                't' => {
                    literal.push('\t');
                    continue;
                }
                ch if ch.is_ascii_alphabetic() => return None,
                ch => {
                    literal.push(ch);
                    continue;
                }
            },
            '\n' => return None,
            ch => {
                literal.push(ch);
                continue;
            }
        };
        parts.push(ReplacementPart::Text(std::mem::take(&mut literal)));
        parts.push(ReplacementPart::Group(group));
    }
    parts.push(ReplacementPart::Text(literal));
    Some(parts)
}

/// The options and arguments of a call of `sed`.
#[derive(Debug, Default)]
pub(crate) struct SedCall<'a> {
    /// The script, with the parts of several `-e` on separate lines.
    pub(crate) script: String,
    /// The indices of the arguments that are files.
    pub(crate) files: Vec<usize>,
    /// What is appended to the names of backups, if files are changed.
    pub(crate) in_place: Option<&'a str>,
    /// Whether the output is not that of the script alone: `-n`, `-z`, `-f`, unknown options.
    pub(crate) has_other_options: bool,
    pub(crate) is_extended: bool,
    pub(crate) is_bsd: bool,
}

impl<'a> SedCall<'a> {
    /// Parses the arguments of `sed`.
    pub(crate) fn parse(arguments: &[&'a str]) -> Self {
        let mut call = Self::default();
        let mut scripts: Vec<&str> = Vec::new();
        let mut others = Vec::new();
        let mut at = 0;
        let mut is_options = true;
        while let Some(&word) = arguments.get(at) {
            at += 1;
            if !is_options || !word.starts_with('-') || word.len() == 1 {
                others.push(at - 1);
            } else if word == "--" {
                is_options = false;
            } else if let Some(option) = word.strip_prefix("--") {
                let (name, value) = option.split_once('=').unwrap_or((option, ""));
                match name {
                    "in-place" => call.in_place = Some(value),
                    "expression" if option.contains('=') => scripts.push(value),
                    "expression" => {
                        scripts.extend(arguments.get(at));
                        at += 1;
                    }
                    "regexp-extended" => call.is_extended = true,
                    "separate" | "unbuffered" | "posix" => {}
                    _ => call.has_other_options = true,
                }
            } else {
                at = call.letters(&word[1..], arguments, at, &mut scripts);
            }
        }
        if scripts.is_empty() && !others.is_empty() {
            scripts.push(arguments[others.remove(0)]);
        }
        call.script = scripts.join("\n");
        call.files = others;
        call
    }

    /// Reads a group of short options. Returns the index of the next argument.
    fn letters(
        &mut self,
        letters: &'a str,
        arguments: &[&'a str],
        mut at: usize,
        scripts: &mut Vec<&'a str>,
    ) -> usize {
        for (i, letter) in letters.char_indices() {
            let value = &letters[i + letter.len_utf8()..];
            match letter {
                'i' => {
                    self.in_place = Some(value);
                    if value.is_empty() && arguments.get(at) == Some(&"") {
                        self.is_bsd = true;
                        at += 1;
                    }
                    return at;
                }
                'e' if value.is_empty() => {
                    scripts.extend(arguments.get(at));
                    return at + 1;
                }
                'e' => {
                    scripts.push(value);
                    return at;
                }
                'E' | 'r' => self.is_extended = true,
                's' | 'u' => {}
                'f' => {
                    self.has_other_options = true;
                    scripts.push("");
                    return at + usize::from(value.is_empty());
                }
                'l' => {
                    self.has_other_options = true;
                    return at + usize::from(value.is_empty());
                }
                _ => self.has_other_options = true,
            }
        }
        at
    }
}
