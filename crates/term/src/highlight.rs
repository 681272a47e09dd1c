//! Syntax highlighting of short code.

use std::sync::OnceLock;

use anstyle::{AnsiColor, Style};
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxSet};

use crate::page::{TermPage, without_tabs};
use crate::text::TermText;

/// Longer code is not highlighted, because that is slow.
const MAX_CODE_BYTES: usize = 32 << 10;
/// Code with a longer line is not highlighted, because the time of some syntaxes grows with its square or
/// cube.
const MAX_LINE_BYTES: usize = 200;

fn syntaxes() -> &'static SyntaxSet {
    static SYNTAXES: OnceLock<SyntaxSet> = OnceLock::new();
    SYNTAXES.get_or_init(two_face::syntax::extra_newlines)
}

/// Returns whether code of this length and language can be highlighted on this page.
pub(crate) fn can_highlight(code: &str, language: &str, page: TermPage) -> bool {
    page.color && code.len() <= MAX_CODE_BYTES && !language.is_empty()
}

/// Returns the lines of code, highlighted by language name or file extension. Plain if that is unknown.
pub(crate) fn highlight(code: &str, language: &str, page: TermPage) -> Vec<TermText> {
    let plain = || code.lines().map(|line| without_tabs(line).into_owned().into()).collect();
    if !can_highlight(code, language, page) || code.lines().any(|line| line.len() > MAX_LINE_BYTES) {
        return plain();
    }
    let mut highlighter = CodeHighlighter::new(language, page);
    let lines = code.lines().map(|line| highlighter.line(line)).collect();
    if highlighter.is_plain() { plain() } else { lines }
}

/// Highlights code that arrives line by line.
pub(crate) struct CodeHighlighter {
    page: TermPage,
    /// The state of the parser; `None` for code that is not highlighted.
    state: Option<(ParseState, ScopeStack)>,
    bytes: usize,
}

impl CodeHighlighter {
    /// Returns a highlighter for a language name or file extension.
    pub(crate) fn new(language: &str, page: TermPage) -> Self {
        let token = language.split([',', ' ', '{']).next().unwrap_or_default();
        let is_named = page.color && !token.is_empty();
        let syntax = is_named.then(|| syntaxes().find_syntax_by_token(token)).flatten();
        let state = syntax.map(|syntax| (ParseState::new(syntax), ScopeStack::new()));
        Self { page, state, bytes: 0 }
    }

    /// Returns whether the lines from here on are not highlighted.
    fn is_plain(&self) -> bool {
        self.state.is_none()
    }

    /// Renders the next line. After too much code, after a line that is too long, and after a syntax error,
    /// the rest is plain.
    pub(crate) fn line(&mut self, line: &str) -> TermText {
        let line = format!("{}\n", without_tabs(line));
        self.bytes += line.len();
        if self.bytes > MAX_CODE_BYTES || line.len() > MAX_LINE_BYTES + 1 {
            self.state = None;
        }
        self.paint(&line).unwrap_or_else(|| {
            self.state = None;
            line.trim_end_matches('\n').into()
        })
    }

    fn paint(&mut self, line: &str) -> Option<TermText> {
        let (state, stack) = self.state.as_mut()?;
        let ops = state.parse_line(line, syntaxes()).ok()?;
        let mut painted = TermText::new();
        let mut from = 0;
        for (at, op) in ops {
            painted.push(self.page.paint_style(style_of(stack), line[from..at].trim_end_matches('\n')));
            from = at;
            stack.apply(&op).ok()?;
        }
        painted.push(self.page.paint_style(style_of(stack), line[from..].trim_end_matches('\n')));
        Some(painted)
    }
}

/// Returns the style of a scope, by prefix. Only a few kinds of code are coloured, to keep the page calm.
fn style_of(stack: &ScopeStack) -> Style {
    static KINDS: OnceLock<Vec<(Scope, Style)>> = OnceLock::new();
    let kinds = KINDS.get_or_init(|| {
        let color = |color: AnsiColor| Style::new().fg_color(Some(color.into()));
        let kinds = [
            ("comment", Style::new().dimmed()),
            ("string", color(AnsiColor::Green)),
            ("constant", color(AnsiColor::Magenta)),
            ("keyword.operator", Style::new()),
            ("keyword", color(AnsiColor::Blue)),
            ("storage", color(AnsiColor::Blue)),
            ("entity.name.function", color(AnsiColor::Cyan)),
            ("entity.name.tag", color(AnsiColor::Blue)),
            ("support.function", color(AnsiColor::Cyan)),
            ("markup.inserted", color(AnsiColor::Green)),
            ("markup.deleted", color(AnsiColor::Red)),
        ];
        kinds.into_iter().filter_map(|(scope, style)| Some((Scope::new(scope).ok()?, style))).collect()
    });
    let found =
        stack.scopes.iter().rev().find_map(|scope| kinds.iter().find(|(kind, _)| kind.is_prefix_of(*scope)));
    found.map(|(_, style)| *style).unwrap_or_default()
}
