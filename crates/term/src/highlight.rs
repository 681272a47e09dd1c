//! Syntax highlighting of short code.

use std::sync::OnceLock;

use anstyle::{AnsiColor, Style};
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxSet};

use crate::page::TermPage;
use crate::text::TermText;

/// Longer code is not highlighted, because that is slow.
const MAX_CODE_BYTES: usize = 32 << 10;
/// Code with a longer line is not highlighted, because such a line is disproportionately slow.
const MAX_LINE_BYTES: usize = 1 << 10;

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
    let plain = || code.lines().map(|line| line.replace('\t', "    ").into()).collect();
    if !can_highlight(code, language, page) {
        return plain();
    }
    let set = syntaxes();
    let token = language.split([',', ' ', '{']).next().unwrap_or_default();
    let Some(syntax) = set.find_syntax_by_token(token) else { return plain() };
    let mut state = ParseState::new(syntax);
    let mut stack = ScopeStack::new();
    let mut out = Vec::new();
    for line in code.lines() {
        if line.len() > MAX_LINE_BYTES {
            return plain();
        }
        let line = format!("{}\n", line.replace('\t', "    "));
        let Ok(ops) = state.parse_line(&line, set) else { return plain() };
        let mut painted = TermText::new();
        let mut from = 0;
        for (at, op) in ops {
            painted.push(page.paint_style(style_of(&stack), line[from..at].trim_end_matches('\n')));
            from = at;
            if stack.apply(&op).is_err() {
                return plain();
            }
        }
        painted.push(page.paint_style(style_of(&stack), line[from..].trim_end_matches('\n')));
        out.push(painted);
    }
    out
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
