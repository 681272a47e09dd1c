//! Parses shell commands into their parts.
//!
//! The analysis knows a closed list of syntax. Everything else sets [`Script::unclear`], the reason why the
//! command cannot be judged. The parts are collected in any case, so that rules that refuse something see as
//! much as possible.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use tree_sitter::{Node, Parser};

/// A command line, taken apart.
#[derive(Debug, Default)]
pub struct Script {
    /// The commands, in order, with those of substitutions before the command that contains them.
    pub commands: Vec<Part>,
    /// Why the command cannot be judged, if it cannot.
    pub unclear: Option<String>,
}

/// One simple command.
#[derive(Debug, Clone, Default)]
pub struct Part {
    /// Its source, without redirections.
    pub text: String,
    /// The command and its arguments.
    pub words: Vec<Word>,
    /// The names of the variables that are set for it.
    pub variables: Vec<String>,
    pub redirects: Vec<Redirect>,
    /// Whether its input is a text in the command line.
    pub has_input_text: bool,
    pub is_in_pipeline: bool,
}

/// A word without its quotes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    /// Whether it has `*`, `?` or `[` outside of quotes.
    pub is_pattern: bool,
    /// Whether it begins with `~` outside of quotes.
    pub has_tilde: bool,
    /// Whether a part of it is only known when the command runs.
    pub is_dynamic: bool,
}

/// A redirection to or from a file.
#[derive(Debug, Clone)]
pub struct Redirect {
    pub target: Word,
    pub is_write: bool,
}

/// The longest command that is analysed, in bytes. Claude Code has a similar limit.
const MAX_LENGTH: usize = 10_000;
/// The deepest nesting that is analysed.
const MAX_DEPTH: usize = 60;
/// The most commands in one command line.
const MAX_COMMANDS: usize = 200;

/// Builtins that run their arguments, or change how later commands are read.
const EVALUATORS: &[&str] = &[
    "eval",
    "exec",
    "source",
    ".",
    "alias",
    "trap",
    "hash",
    "let",
    "coproc",
    "bind",
    "compgen",
    "complete",
    "compopt",
    "enable",
    "fc",
    "mapfile",
    "readarray",
    "unalias",
];

/// Builtins that take names of variables. An array index in such a name is evaluated, and an index can
/// contain commands.
const NAME_TAKERS: &[&str] = &["getopts", "read", "test", "unset", "wait"];

/// Operators of `[[` with numbers as operands. A name there is evaluated: as the value of the variable, and
/// so on, and a value such as `a[$(command)]` runs the command.
const NUMBER_TESTS: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

thread_local! {
    /// A parser is reused: to create one costs more than to parse most commands.
    static PARSER: RefCell<Option<Parser>> = const { RefCell::new(None) };
}

/// Parses a command. `home` is the value of `$HOME`.
pub fn parse(source: &str, home: Option<&Path>) -> Script {
    let mut script = Script::default();
    if let Some(reason) = unreadable(source) {
        script.unclear = Some(reason.to_owned());
        return script;
    }
    let tree = PARSER.with_borrow_mut(|slot| {
        if slot.is_none() {
            let mut parser = Parser::new();
            parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
            *slot = Some(parser);
        }
        slot.as_mut()?.parse(source, None)
    });
    let Some(tree) = tree else {
        script.unclear = Some("Parse error".to_owned());
        return script;
    };
    let mut walk = Walk { source, script, variables: BTreeMap::new() };
    if let Some(home) = home.and_then(Path::to_str).filter(|home| is_plain(home)) {
        walk.variables.insert("HOME".to_owned(), Some(home.to_owned()));
    }
    walk.statements(tree.root_node(), Place::default(), 0);
    if tree.root_node().has_error() {
        walk.unclear("Parse error");
    }
    walk.script
}

/// Returns why a text is not parsed at all.
fn unreadable(source: &str) -> Option<&'static str> {
    if source.len() > MAX_LENGTH {
        return Some("Command is too long to be checked");
    }
    source.chars().find_map(|ch| match ch {
        '\n' | '\t' | ' ' => None,
        ch if ch.is_control() => Some("Contains control characters"),
        // Zero-width and directional characters hide text from a reader of the command.
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' => {
            Some("Contains Unicode whitespace")
        }
        ch if ch.is_whitespace() => Some("Contains Unicode whitespace"),
        _ => None,
    })
}

/// Returns whether the value of a variable is one word without meaning to the shell.
fn is_plain(value: &str) -> bool {
    !value.is_empty() && value.chars().all(|ch| ch.is_ascii_alphanumeric() || "_./-+@:,%".contains(ch))
}

/// Where a statement is.
#[derive(Clone, Copy, Default)]
struct Place {
    is_in_pipeline: bool,
    /// Whether it may not run, or runs in a process of its own: assignments in it do not count.
    is_conditional: bool,
}

struct Walk<'a> {
    source: &'a str,
    script: Script,
    /// Variables with their values; `None` if the value is not known.
    variables: BTreeMap<String, Option<String>>,
}

impl<'a> Walk<'a> {
    fn text(&self, node: Node<'_>) -> &'a str {
        self.source.get(node.byte_range()).unwrap_or_default()
    }

    fn unclear(&mut self, reason: impl Into<String>) {
        self.script.unclear.get_or_insert_with(|| reason.into());
    }

    /// Records syntax that is not judged, and collects the commands inside of it.
    fn unknown(&mut self, node: Node<'_>, reason: impl Into<String>, depth: usize) {
        self.unclear(reason);
        self.collect(node, depth + 1);
    }

    fn collect(&mut self, node: Node<'_>, depth: usize) {
        if depth > MAX_DEPTH || self.script.commands.len() > MAX_COMMANDS {
            return;
        }
        let place = Place { is_in_pipeline: false, is_conditional: true };
        for child in children(node) {
            match child.kind() {
                "command" => self.command(child, place, depth + 1),
                "redirected_statement" => self.redirected(child, place, depth + 1),
                _ => self.collect(child, depth + 1),
            }
        }
    }

    /// Visits the statements below a node, and the operators between them.
    fn statements(&mut self, node: Node<'_>, place: Place, depth: usize) {
        if depth > MAX_DEPTH || self.script.commands.len() > MAX_COMMANDS {
            self.unclear("Command is too complex to be checked");
            return;
        }
        let mut place = place;
        for child in children(node) {
            match child.kind() {
                "&" => self.unclear(
                    "This command uses the `&` background operator, which defers execution past \
                     approval-time safety checks. Approve only if you trust it.",
                ),
                // After `&&` and `||` it is not known whether a statement runs.
                "&&" | "||" => place.is_conditional = true,
                ";" | ";;" | "\n" | "|" | "|&" | "!" | "if" | "then" | "elif" | "else" | "fi" | "while"
                | "until" | "do" | "done" | "for" | "in" | "comment" => {}
                _ => self.statement(child, place, depth + 1),
            }
        }
    }

    fn statement(&mut self, node: Node<'_>, place: Place, depth: usize) {
        let inner = Place { is_conditional: true, ..place };
        match node.kind() {
            "list" | "program" => self.statements(node, place, depth),
            "negated_command" => self.statements(node, place, depth),
            "pipeline" => self.statements(node, Place { is_in_pipeline: true, ..inner }, depth),
            "if_statement" | "while_statement" | "elif_clause" | "else_clause" | "do_group" => {
                self.forget_assigned(node);
                self.statements(node, inner, depth);
            }
            "for_statement" => self.for_statement(node, inner, depth),
            "command" => self.command(node, place, depth),
            "redirected_statement" => self.redirected(node, place, depth),
            "variable_assignment" => self.assignment(node, place, depth),
            "test_command" => self.test_command(node, place, depth),
            "declaration_command" | "unset_command" => self.declaration(node, place, depth),
            "subshell" => {
                let reason = "This command uses shell operators that require approval for safety";
                self.unknown(node, reason, depth);
            }
            "compound_statement" | "case_statement" | "function_definition" => {
                self.unknown(node, format!("Contains {}", node.kind()), depth);
            }
            "ERROR" => self.unknown(node, "Parse error", depth),
            kind => {
                let reason = format!("Contains shell syntax ({kind}) that cannot be statically analyzed");
                self.unknown(node, reason, depth);
            }
        }
    }

    /// Forgets the variables that are assigned below a node: a loop may run them before what precedes them.
    fn forget_assigned(&mut self, node: Node<'_>) {
        for child in children(node) {
            if child.kind() == "variable_assignment"
                && let Some(name) = child.child_by_field_name("name")
            {
                self.variables.insert(self.text(name).to_owned(), None);
            }
            self.forget_assigned(child);
        }
    }

    fn for_statement(&mut self, node: Node<'_>, place: Place, depth: usize) {
        if node.child(0).is_some_and(|token| token.kind() == "select") {
            let reason = "select statement reads stdin into $REPLY; cannot statically model";
            return self.unknown(node, reason, depth);
        }
        self.forget_assigned(node);
        if let Some(name) = node.child_by_field_name("variable") {
            if is_special_variable(self.text(name)) {
                self.unclear("Contains an assignment to a variable with a meaning to the shell");
            }
            self.variables.insert(self.text(name).to_owned(), None);
        }
        for child in named_children(node) {
            match child.kind() {
                "do_group" => self.statements(child, place, depth + 1),
                "variable_name" | "comment" => {}
                "compound_statement" => self.unknown(child, "Contains compound_statement", depth),
                _ => {
                    self.word(child, depth);
                }
            }
        }
    }

    fn command(&mut self, node: Node<'_>, place: Place, depth: usize) {
        let mut part = Part { is_in_pipeline: place.is_in_pipeline, ..Part::default() };
        let mut texts: Vec<&str> = Vec::new();
        for child in children(node) {
            match child.kind() {
                "variable_assignment" => {
                    let name =
                        child.child_by_field_name("name").map(|name| self.text(name)).unwrap_or_default();
                    if name == "IFS" {
                        self.unclear("IFS assignment changes word-splitting — cannot model statically");
                    }
                    part.variables.push(name.to_owned());
                    if let Some(value) = child.child_by_field_name("value") {
                        self.word(value, depth);
                    }
                    texts.push(self.text(child));
                }
                "file_redirect" => self.file_redirect(child, &mut part, depth),
                "herestring_redirect" | "heredoc_redirect" => self.input_text(child, &mut part, depth),
                "command_name" => {
                    let word = child.child(0).map(|word| self.word(word, depth)).unwrap_or_default();
                    texts.push(self.text(child));
                    part.words.push(word);
                }
                "comment" => {}
                _ => {
                    let word = self.word(child, depth);
                    texts.push(self.text(child));
                    part.words.push(word);
                }
            }
        }
        part.text = texts.join(" ");
        // An assignment before a command does not outlast it, but the parser may see one where bash sees an
        // argument.
        match part.words.first() {
            Some(name) if name.is_dynamic || name.is_pattern || name.has_tilde => {
                self.unclear("Command name is only known when the command runs");
            }
            Some(name) if EVALUATORS.contains(&name.text.as_str()) => {
                self.unclear(format!("'{}' evaluates arguments as shell code", name.text));
            }
            Some(name) if ["shopt", "setopt", "emulate", "zmodload"].contains(&name.text.as_str()) => {
                self.unclear(format!("Zsh builtin '{}' can bypass security checks", name.text));
            }
            Some(name) if name.text == "[[" => self.unclear("Contains a condition as a command"),
            Some(name) if evaluates_name(&name.text, &part.words[1..]) => {
                self.unclear(format!("'{}' evaluates an array index", name.text));
            }
            Some(name) if name.text == "jobs" && part.words.iter().any(|word| word.text == "-x") => {
                self.unclear("'jobs -x' runs its arguments");
            }
            Some(name) if name.text.starts_with('=') => self.unclear("Contains zsh =cmd equals expansion"),
            Some(name)
                if name.text.is_empty() || name.text.starts_with('-') || name.text.contains(['\n', ' ']) =>
            {
                self.unclear("Command appears to be an incomplete fragment");
            }
            _ => {}
        }
        if part.words.iter().any(|word| word.text.contains("/proc/") && word.text.ends_with("/environ")) {
            self.unclear("Accesses /proc/*/environ which may expose secrets");
        }
        if part.words.is_empty() && part.redirects.is_empty() && part.variables.is_empty() {
            return;
        }
        self.script.commands.push(part);
    }

    fn redirected(&mut self, node: Node<'_>, place: Place, depth: usize) {
        let first = self.script.commands.len();
        let mut carrier = Part { is_in_pipeline: place.is_in_pipeline, ..Part::default() };
        let mut body = None;
        for child in children(node) {
            match child.kind() {
                "file_redirect" => self.file_redirect(child, &mut carrier, depth),
                "herestring_redirect" | "heredoc_redirect" => self.input_text(child, &mut carrier, depth),
                _ => {
                    body = Some(child);
                    self.statement(child, place, depth + 1);
                }
            }
        }
        // A here-document behind a pipeline belongs to one of its commands.
        for part in self.script.commands.iter_mut().skip(first) {
            part.has_input_text |= carrier.has_input_text;
        }
        if carrier.redirects.is_empty() {
            return;
        }
        let is_simple = body.is_some_and(|body| matches!(body.kind(), "command" | "test_command"));
        match self.script.commands.last_mut() {
            Some(part) if is_simple => part.redirects.append(&mut carrier.redirects),
            _ => {
                carrier.text = self.text(node).to_owned();
                self.script.commands.insert(first, carrier);
            }
        }
    }

    fn file_redirect(&mut self, node: Node<'_>, part: &mut Part, depth: usize) {
        let mut operator = "";
        let mut targets = Vec::new();
        for child in children(node) {
            match child.kind() {
                "file_descriptor" => {}
                kind if kind.contains(['<', '>']) && !child.is_named() => operator = kind,
                _ => targets.push(child),
            }
        }
        // `2>&1` and `<&-` duplicate or close a descriptor.
        let is_duplicate = operator.contains('&') && !operator.starts_with('&');
        for (i, target) in targets.into_iter().enumerate() {
            let is_descriptor = self.text(target).chars().all(|ch| ch.is_ascii_digit() || ch == '-');
            if i == 0 && is_duplicate && is_descriptor {
                continue;
            }
            let word = self.word(target, depth);
            if i > 0 {
                // The grammar takes words after the target for further targets; to bash they are arguments.
                part.words.push(word);
                continue;
            }
            if word.is_dynamic || word.is_pattern {
                self.unclear("Redirection to a path that is only known when the command runs");
            }
            if word.text.starts_with("/dev/tcp") || word.text.starts_with("/dev/udp") {
                self.unclear("Redirect involving /dev/tcp or /dev/udp opens a network connection");
            }
            part.redirects.push(Redirect { target: word, is_write: operator.contains('>') });
        }
    }

    fn input_text(&mut self, node: Node<'_>, part: &mut Part, depth: usize) {
        part.has_input_text = true;
        if node.kind() == "herestring_redirect" {
            self.herestring(node, depth);
        } else {
            self.heredoc(node, depth);
        }
    }

    fn herestring(&mut self, node: Node<'_>, depth: usize) {
        for child in named_children(node).filter(|child| child.kind() != "file_descriptor") {
            self.word(child, depth);
        }
    }

    fn heredoc(&mut self, node: Node<'_>, depth: usize) {
        for child in named_children(node) {
            match child.kind() {
                "heredoc_start" => {
                    let text = self.text(child);
                    if !text.contains(['\'', '"']) {
                        self.unclear("Heredoc with unquoted delimiter undergoes shell expansion");
                    } else if !text
                        .trim_matches(['\'', '"'])
                        .chars()
                        .all(|ch| ch.is_ascii_alphanumeric() || ch == '_')
                    {
                        self.unclear("Heredoc with an unusual delimiter");
                    }
                }
                "heredoc_body" if named_children(child).all(|part| part.kind() == "heredoc_content") => {}
                "heredoc_body" => self.unknown(child, "Contains expansion", depth),
                "heredoc_end" | "file_descriptor" => {}
                kind => {
                    let reason = format!("Contains shell syntax ({kind}) that cannot be statically analyzed");
                    let place = Place { is_in_pipeline: false, is_conditional: true };
                    self.unclear(reason);
                    self.statement(child, place, depth + 1);
                }
            }
        }
    }

    fn assignment(&mut self, node: Node<'_>, place: Place, depth: usize) {
        let (Some(name), value) = (node.child_by_field_name("name"), node.child_by_field_name("value"))
        else {
            return self.unknown(node, "Contains variable_assignment", depth);
        };
        let name_text = self.text(name);
        if name.kind() != "variable_name" || is_special_variable(name_text) {
            let reason = if name_text == "IFS" {
                "IFS assignment changes word-splitting — cannot model statically"
            } else {
                "Contains an assignment to a variable with a meaning to programs"
            };
            self.unclear(reason);
        }
        let value = value.map(|value| match value.kind() {
            // The output is not split into words here.
            "command_substitution" => {
                self.substitution(value, depth);
                Word { is_dynamic: true, ..Word::default() }
            }
            _ => self.word(value, depth),
        });
        let is_appended = children(node).any(|child| child.kind() == "+=");
        let known = value
            .filter(|word| !word.is_dynamic && !word.is_pattern && !word.has_tilde && is_plain(&word.text))
            .filter(|_| !place.is_conditional && !is_appended);
        self.variables.insert(name_text.to_owned(), known.map(|word| word.text));
    }

    fn declaration(&mut self, node: Node<'_>, place: Place, depth: usize) {
        let mut part = Part {
            text: self.text(node).to_owned(),
            is_in_pipeline: place.is_in_pipeline,
            ..Part::default()
        };
        self.forget_assigned(node);
        for child in children(node) {
            if child.kind() == "variable_assignment" {
                if let Some(value) = child.child_by_field_name("value") {
                    self.word(value, depth);
                }
                let text = self.text(child).to_owned();
                part.words.push(Word { text, ..Word::default() });
            } else if child.kind() == "variable_name" || !child.is_named() {
                self.variables.insert(self.text(child).to_owned(), None);
                part.words.push(Word { text: self.text(child).to_owned(), ..Word::default() });
            } else {
                let word = self.word(child, depth);
                part.words.push(word);
            }
        }
        // `-i` makes later values expressions, `-n` makes a name stand for another, and an index is
        // evaluated.
        let is_evaluated = |word: &Word| word.text.contains('[') || is_short_option(&word.text, &['i', 'n']);
        if part.words.iter().any(is_evaluated) {
            self.unclear("Contains a declaration that evaluates its arguments");
        }
        self.script.commands.push(part);
    }

    /// `[ … ]` and `[[ … ]]`. Numbers in them are expressions, in which array indices are evaluated.
    fn test_command(&mut self, node: Node<'_>, place: Place, depth: usize) {
        let text = self.text(node);
        if text.starts_with("((") {
            return self.unknown(node, "Contains compound_statement", depth);
        }
        if text.contains(['`'])
            || text.contains("$(")
            || text[1..text.len() - 1].trim_matches(['[', ']']).contains('[')
        {
            return self.unknown(node, "Contains an expression that may run commands", depth);
        }
        self.check_expansions(node, depth);
        let name = if text.starts_with("[[") { "[[" } else { "[" };
        if name == "[[" && !self.compares_only_numbers(text) {
            self.unclear("Compares something that is not a number as a number: `[[` evaluates names");
        }
        self.script.commands.push(Part {
            text: text.to_owned(),
            words: vec![Word { text: name.to_owned(), ..Word::default() }],
            is_in_pipeline: place.is_in_pipeline,
            ..Part::default()
        });
    }

    /// Whether the operands of all numeric comparisons in a condition are numbers as they are written, or
    /// variables whose value is known to be one.
    fn compares_only_numbers(&self, text: &str) -> bool {
        let text = text.replace("\\\n", "");
        let words: Vec<&str> = text.split_whitespace().collect();
        let is_number = |word: &str| {
            let word = word.strip_prefix('"').and_then(|word| word.strip_suffix('"')).unwrap_or(word);
            let known = word.strip_prefix('$').and_then(|name| self.variables.get(name)?.as_deref());
            let number = known.unwrap_or(word);
            let digits = number.strip_prefix('-').unwrap_or(number);
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        let mut comparisons = words.iter().enumerate().filter(|(_, word)| NUMBER_TESTS.contains(word));
        comparisons.all(|(i, _)| {
            let before = i.checked_sub(1).and_then(|i| words.get(i));
            before.is_some_and(|word| is_number(word.trim_start_matches('(')))
                && words.get(i + 1).is_some_and(|word| is_number(word.trim_end_matches(')')))
        })
    }

    /// Records expansions of unknown variables below a node.
    fn check_expansions(&mut self, node: Node<'_>, depth: usize) {
        if depth > MAX_DEPTH {
            return self.unclear("Command is too complex to be checked");
        }
        for child in children(node) {
            match child.kind() {
                "simple_expansion" => {
                    self.variable(child);
                }
                "expansion" | "command_substitution" | "process_substitution" | "ansi_c_string" | "ERROR" => {
                    self.unknown(child, format!("Contains {}", child.kind()), depth);
                }
                _ => self.check_expansions(child, depth + 1),
            }
        }
    }

    /// Returns the value of `$NAME`, if it is known.
    fn variable(&mut self, node: Node<'_>) -> Option<String> {
        let name = self.text(node).trim_start_matches('$');
        let value = self.variables.get(name).cloned().flatten();
        if value.is_none() {
            self.unclear("Contains simple_expansion");
        }
        value
    }

    /// Visits the commands of `$(…)`.
    fn substitution(&mut self, node: Node<'_>, depth: usize) {
        let text = self.text(node);
        if text.starts_with("$(<") {
            return self.unknown(node, "Contains command_substitution", depth);
        }
        let place = Place { is_in_pipeline: false, is_conditional: true };
        let variables = self.variables.clone();
        for child in children(node).filter(|child| !matches!(child.kind(), "$(" | ")" | "`")) {
            match child.kind() {
                "&" => self.unclear("Contains command_substitution"),
                ";" | "\n" | "comment" => {}
                _ => self.statement(child, place, depth + 1),
            }
        }
        self.variables = variables;
    }

    /// Returns a word without its quotes.
    fn word(&mut self, node: Node<'_>, depth: usize) -> Word {
        if depth > MAX_DEPTH {
            self.unclear("Command is too complex to be checked");
            return Word { is_dynamic: true, ..Word::default() };
        }
        let text = self.text(node);
        match node.kind() {
            "word" | "number" | "variable_name" | "test_operator" | "file_descriptor" => {
                self.plain_word(text)
            }
            "raw_string" => {
                let inner = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
                Word { text: inner.unwrap_or(text).to_owned(), ..Word::default() }
            }
            "string" => self.string(node, depth),
            "simple_expansion" => match self.variable(node) {
                Some(value) => Word { text: value, ..Word::default() },
                None => Word { is_dynamic: true, ..Word::default() },
            },
            "arithmetic_expansion" => {
                let inner = text.strip_prefix("$((").and_then(|text| text.strip_suffix("))"));
                let is_literal = inner.is_some_and(|inner| {
                    inner.chars().all(|ch| ch.is_ascii_digit() || " +-*/%()<>=!&|^~".contains(ch))
                });
                if !is_literal {
                    let shown: String = text.chars().take(2).collect();
                    let reason = format!("Arithmetic expansion references variable or non-literal: {shown}");
                    self.unknown(node, reason, depth);
                }
                Word { is_dynamic: true, ..Word::default() }
            }
            "concatenation" => {
                if has_braces(text) {
                    self.unclear("Brace expansion");
                }
                let mut joined = Word::default();
                for (i, child) in children(node).enumerate() {
                    let word = self.word(child, depth + 1);
                    joined.text.push_str(&word.text);
                    joined.is_pattern |= word.is_pattern;
                    joined.is_dynamic |= word.is_dynamic;
                    joined.has_tilde |= i == 0 && word.has_tilde;
                }
                joined
            }
            "command_substitution"
            | "process_substitution"
            | "expansion"
            | "ansi_c_string"
            | "brace_expression" => {
                self.unknown(node, format!("Contains {}", node.kind()), depth);
                Word { is_dynamic: true, ..Word::default() }
            }
            // A lone character such as `{`, `=` or `$`.
            kind if !node.is_named()
                && kind != "$"
                && kind.len() <= 2
                && !kind.contains(['`', '<', '>', '(', ')']) =>
            {
                self.plain_word(text)
            }
            kind => {
                let reason = format!("Contains shell syntax ({kind}) that cannot be statically analyzed");
                self.unknown(node, reason, depth);
                Word { is_dynamic: true, ..Word::default() }
            }
        }
    }

    /// Removes the backslashes of an unquoted word.
    fn plain_word(&mut self, source: &str) -> Word {
        if has_braces(source) {
            self.unclear("Brace expansion");
        }
        let mut word = Word { has_tilde: source.starts_with('~'), ..Word::default() };
        let mut chars = source.chars();
        while let Some(ch) = chars.next() {
            match ch {
                '\\' => match chars.next() {
                    Some('\n') => {}
                    Some(next) if next.is_whitespace() => {
                        self.unclear("Contains backslash-escaped whitespace");
                        word.text.push(next);
                    }
                    Some(next) => word.text.push(next),
                    None => self.unclear("Parse error"),
                },
                '*' | '?' | '[' => {
                    word.is_pattern = true;
                    word.text.push(ch);
                }
                '$' | '`' | '"' | '\'' | '(' | ')' | '<' | '>' | '|' | '&' | ';' | '\n' => {
                    self.unclear("Parse error");
                    word.text.push(ch);
                }
                ch => word.text.push(ch),
            }
        }
        // A pattern such as `@(a|b)`, or a tilde after `=` or `:`.
        if word.text.contains("=~") || word.text.contains(":~") {
            self.unclear("Tilde expansion variants (~user, ~+, ~-) in paths require manual approval");
        }
        word
    }

    /// Returns the content of a string in double quotes.
    fn string(&mut self, node: Node<'_>, depth: usize) -> Word {
        let range = node.byte_range();
        let mut word = Word::default();
        let mut at = range.start + 1;
        let end = range.end.saturating_sub(1);
        let mut has_literal = false;
        let mut substitutions = 0;
        for child in children(node) {
            let literal = self.source.get(at..child.start_byte().max(at)).unwrap_or_default();
            match child.kind() {
                "\"" | "string_content" => continue,
                "simple_expansion" => {
                    push_unescaped(&mut word.text, literal);
                    match self.variable(child) {
                        Some(value) => word.text.push_str(&value),
                        None => word.is_dynamic = true,
                    }
                    has_literal = true;
                }
                "command_substitution" => {
                    push_unescaped(&mut word.text, literal);
                    has_literal |= !literal.trim().is_empty();
                    self.substitution(child, depth + 1);
                    substitutions += 1;
                    word.is_dynamic = true;
                }
                "arithmetic_expansion" => {
                    push_unescaped(&mut word.text, literal);
                    has_literal = true;
                    self.word(child, depth + 1);
                    word.is_dynamic = true;
                }
                // A lone dollar sign.
                "$" => continue,
                kind => {
                    let reason = match kind {
                        "expansion" => "Contains expansion".to_owned(),
                        kind => format!("Contains shell syntax ({kind}) that cannot be statically analyzed"),
                    };
                    self.unknown(child, reason, depth);
                    word.is_dynamic = true;
                }
            }
            at = child.end_byte();
        }
        let literal = self.source.get(at..end.max(at)).unwrap_or_default();
        push_unescaped(&mut word.text, literal);
        has_literal |= !literal.trim().is_empty();
        if substitutions > 0 && !has_literal {
            self.unclear("Contains shell syntax (string) that cannot be statically analyzed");
        }
        word
    }
}

/// Appends text of a string in double quotes without the backslashes that the shell removes.
fn push_unescaped(out: &mut String, text: &str) {
    let mut chars = text.chars().peekable();
    while let Some(ch) = chars.next() {
        if ch == '\\'
            && let Some(next) = chars.peek().copied()
            && "\"\\$`\n".contains(next)
        {
            chars.next();
            if next != '\n' {
                out.push(next);
            }
            continue;
        }
        out.push(ch);
    }
}

/// Whether a word has `{a,b}` or `{1..3}` outside of quotes.
fn has_braces(source: &str) -> bool {
    let mut is_open = false;
    let mut quote = None;
    let mut previous = ' ';
    let mut chars = source.chars();
    while let Some(ch) = chars.next() {
        match (quote, ch) {
            (Some(open), ch) if ch == open => quote = None,
            (Some(_), _) => {}
            (None, '\\') => {
                chars.next();
            }
            (None, '\'' | '"') => quote = Some(ch),
            (None, '{') if previous != '$' => is_open = true,
            (None, ',') if is_open => return true,
            // `{name[index]}<file`, which evaluates the index.
            (None, '[') if is_open => return true,
            (None, '.') if is_open && previous == '.' => return true,
            _ => {}
        }
        previous = ch;
    }
    false
}

/// Whether a builtin evaluates an array index in the name of a variable.
fn evaluates_name(name: &str, arguments: &[Word]) -> bool {
    let is_taker = NAME_TAKERS.contains(&name)
        || ["[", "printf"].contains(&name) && arguments.iter().any(|word| word.text.starts_with("-v"));
    is_taker && arguments.iter().any(|word| word.text.contains('['))
}

/// Whether a word is an option or a group of them that contains one of these letters.
fn is_short_option(text: &str, letters: &[char]) -> bool {
    text.strip_prefix(['-', '+']).is_some_and(|group| !group.starts_with('-') && group.contains(letters))
}

/// Whether a variable changes how the shell or a program behaves, or whether a value that is assigned to it
/// is evaluated.
fn is_special_variable(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "PATH",
        "IFS",
        "ENV",
        "HOME",
        "PWD",
        "OLDPWD",
        "SHELL",
        "SHELLOPTS",
        "BASHOPTS",
        "CDPATH",
        "GLOBIGNORE",
        "FIGNORE",
        "PS1",
        "PS2",
        "PS4",
        "PROMPT_COMMAND",
        "PAGER",
        "EDITOR",
        "VISUAL",
        "BROWSER",
        "TMPDIR",
        "TERM",
        "EXECIGNORE",
        "HOSTFILE",
        "INPUTRC",
        "POSIXLY_CORRECT",
        "OPTIND",
        "USER",
        "LOGNAME",
        "LINENO",
        "RANDOM",
        "SECONDS",
        "SRANDOM",
    ];
    const PREFIXES: &[&str] = &[
        "LD_",
        "DYLD_",
        "BASH",
        "GIT_",
        "SSH_",
        "PYTHON",
        "PERL",
        "RUBY",
        "NODE_",
        "NPM_",
        "JAVA",
        "LESS",
        "MAN",
        "GREP_",
        "RIPGREP",
        "GCC_",
        "CARGO",
        "RUST",
        "ANTHROPIC",
        "CLAUDE",
        "HIST",
        "LC_",
        "LANG",
        "MALLOC_",
    ];
    const ENDINGS: &[&str] = &[
        "PATH", "PAGER", "EDITOR", "OPTS", "OPTIONS", "FLAGS", "PRELOAD", "COMMAND", "CMD", "PROXY", "proxy",
    ];
    NAMES.contains(&name)
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
}

fn children(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    (0..node.child_count()).filter_map(move |i| node.child(i))
}

fn named_children(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    children(node).filter(Node::is_named)
}
