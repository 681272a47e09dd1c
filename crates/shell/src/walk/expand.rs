//! Expansions of words.

use super::{Argument, Context, Walk};
use crate::syntax::{Piece, Word};

/// The most words that braces expand to.
const MAX_BRACES: usize = 100;

impl Walk {
    /// Returns the arguments that a word becomes.
    pub(super) fn expand(&mut self, word: &Word, context: Context, out: &mut Vec<Argument>) {
        let has_braces = word
            .pieces
            .iter()
            .any(|piece| matches!(piece, Piece::Text { text, is_quoted: false } if has_braces(text)));
        if has_braces {
            return self.expand_braces(word, context, out);
        }
        let argument = self.expand_one(word, context);
        // A variable without a value and without quotes leaves no word.
        let is_quoted = |piece: &Piece| match piece {
            Piece::Text { .. } => true,
            Piece::Variable { is_quoted, .. } | Piece::Substitution { is_quoted, .. } => *is_quoted,
            _ => false,
        };
        if argument.text.is_empty() && !argument.is_dynamic && !word.pieces.iter().any(is_quoted) {
            return;
        }
        out.push(argument);
    }

    fn expand_braces(&mut self, word: &Word, context: Context, out: &mut Vec<Argument>) {
        let mut symbols = Vec::new();
        for piece in &word.pieces {
            let Piece::Text { text, is_quoted } = piece else {
                let argument = self.expand_one(word, context);
                return out.push(Argument { is_dynamic: true, ..argument });
            };
            symbols.extend(text.chars().map(|ch| (ch, *is_quoted)));
        }
        let mut words = Vec::new();
        if symbols.len() > 1000 || !expand_braces(&symbols, &mut words) {
            let text = symbols.iter().map(|(ch, _)| ch).collect();
            return out.push(Argument { text, is_dynamic: true, is_pattern: false });
        }
        for symbols in words {
            let plain: String =
                symbols.iter().filter(|(_, is_quoted)| !is_quoted).map(|(ch, _)| ch).collect();
            let text = symbols.iter().map(|(ch, _)| ch).collect();
            out.push(Argument { text, is_pattern: has_pattern(&plain), is_dynamic: false });
        }
    }

    /// Returns a word after its expansions, without splitting it.
    pub(super) fn expand_one(&mut self, word: &Word, context: Context) -> Argument {
        let mut argument = Argument::default();
        for piece in &word.pieces {
            match piece {
                Piece::Text { text, is_quoted } => {
                    argument.text.push_str(text);
                    argument.is_pattern |= !is_quoted && has_pattern(text);
                }
                Piece::Home => match self.home() {
                    Some(home) => argument.text.push_str(&home),
                    None => argument.push_unknown("~"),
                },
                Piece::Variable { name, is_quoted } => {
                    match self.variable(name) {
                        Some(value) => argument.push_value(&value, *is_quoted),
                        None => argument.push_unknown(&format!("${name}")),
                    };
                }
                Piece::Substitution { list, is_quoted } => {
                    let mut inner = context.without_status();
                    inner.is_captured = true;
                    let outcome = self.subshell(inner, |walk| walk.list(list, inner));
                    match outcome.content.literal() {
                        Some(text) => argument.push_value(text.trim_end_matches('\n'), *is_quoted),
                        None => argument.push_unknown(""),
                    }
                }
                Piece::Process(list) => {
                    let inner = Context { is_captured: true, ..context.maybe() };
                    self.subshell(inner, |walk| walk.list(list, inner));
                    argument.text.push_str("/dev/fd/63");
                }
                Piece::Expansion(text) => {
                    self.expansion(text);
                    argument.push_unknown(text);
                }
            }
        }
        argument
    }

    fn variable(&self, name: &str) -> Option<std::rc::Rc<str>> {
        match name {
            "PWD" => self.state.cwd.clone(),
            name => match self.state.variables.get(name) {
                Some(value) => Some(std::rc::Rc::clone(value)),
                None if name == "HOME" => self.home(),
                None => None,
            },
        }
    }

    /// Considers an expansion that is not followed: it may assign variables and run commands.
    fn expansion(&mut self, text: &str) {
        if text.contains("$(") && !text.starts_with("$((") || text[1..].contains("$(") || text.contains('`') {
            self.change_any(text);
        }
        if text.contains('=') || text.contains("++") || text.contains("--") {
            self.forget_names(text);
        }
    }

    /// Forgets the variables that are named in a text.
    pub(super) fn forget_names(&mut self, text: &str) {
        for name in text.split(|ch: char| !(ch.is_ascii_alphanumeric() || ch == '_')) {
            self.state.variables.remove(name);
        }
    }
}

impl Argument {
    fn push_unknown(&mut self, text: &str) {
        self.is_dynamic = true;
        self.text.push_str(text);
    }

    /// Appends the value of a variable. Without quotes, it may be split or name several files.
    fn push_value(&mut self, value: &str, is_quoted: bool) {
        self.text.push_str(value);
        let is_split = value.contains([' ', '\t', '\n']) || has_pattern(value);
        self.is_dynamic |= !is_quoted && is_split;
    }
}

fn has_pattern(text: &str) -> bool {
    text.contains(['*', '?']) || text.find('[').is_some_and(|at| text[at..].contains(']'))
}

fn has_braces(text: &str) -> bool {
    text.find('{').is_some_and(|at| text[at..].contains([',', '.']) || !text[at..].contains('}'))
}

/// Expands `{a,b}`. Returns whether all is understood.
fn expand_braces(symbols: &[(char, bool)], out: &mut Vec<Vec<(char, bool)>>) -> bool {
    let Some(open) = symbols.iter().position(|symbol| *symbol == ('{', false)) else {
        out.push(symbols.to_vec());
        return out.len() <= MAX_BRACES;
    };
    let mut depth = 0;
    let mut parts: Vec<&[(char, bool)]> = Vec::new();
    let mut start = open + 1;
    for (at, symbol) in symbols.iter().enumerate().skip(open + 1) {
        match symbol {
            ('{', false) => depth += 1,
            ('}', false) if depth > 0 => depth -= 1,
            (',', false) if depth == 0 => {
                parts.push(&symbols[start..at]);
                start = at + 1;
            }
            ('}', false) if parts.is_empty() => return false,
            ('}', false) => {
                parts.push(&symbols[start..at]);
                return parts.into_iter().all(|part| {
                    let joined = [&symbols[..open], part, &symbols[at + 1..]].concat();
                    expand_braces(&joined, out)
                });
            }
            _ => {}
        }
    }
    false
}
