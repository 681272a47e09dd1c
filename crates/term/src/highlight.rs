//! Code with colours, where a person looks at it and it is not too long.

use std::sync::OnceLock;

use anstyle::{AnsiColor, Style};
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxSet};

use crate::page::Page;
use crate::text::TermText;

/// Code longer than this is shown as it is: colours are slow to find.
const LONG: usize = 32 << 10;
/// So is a line longer than this, for which it takes more than its share.
const LONG_LINE: usize = 1 << 10;

fn syntaxes() -> &'static SyntaxSet {
    static SYNTAXES: OnceLock<SyntaxSet> = OnceLock::new();
    SYNTAXES.get_or_init(two_face::syntax::extra_newlines)
}

/// Whether some code may be coloured at all.
pub(crate) fn is_coloured(code: &str, language: &str, page: Page) -> bool {
    page.color && code.len() <= LONG && !language.is_empty()
}

/// The lines of some code, coloured by what its language or file ending says.
pub(crate) fn highlight(code: &str, language: &str, page: Page) -> Vec<TermText> {
    let plain = || code.lines().map(|line| line.replace('\t', "    ").into()).collect();
    if !is_coloured(code, language, page) {
        return plain();
    }
    let set = syntaxes();
    let token = language.split([',', ' ', '{']).next().unwrap_or_default();
    let Some(syntax) = set.find_syntax_by_token(token) else { return plain() };
    let mut state = ParseState::new(syntax);
    let mut stack = ScopeStack::new();
    let mut out = Vec::new();
    for line in code.lines() {
        if line.len() > LONG_LINE {
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

/// The kinds of code that stand out, by the beginning of their scope; few, so that the page stays quiet.
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
