//! Regular expressions of POSIX as patterns of the `regex` crate.
//!
//! POSIX takes the longest of the matches that begin first, the `regex` crate the one that a backtracking
//! search finds first. A pattern is translated only if both are always the same.

use regex::{Regex, RegexBuilder};

/// A translated pattern.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    pub(crate) regex: Regex,
    /// Whether it matches the same in texts that are not ASCII, in any locale.
    pub(crate) is_unicode: bool,
    /// The number of groups.
    pub(crate) groups: usize,
    /// Whether the groups match the same texts as those of POSIX.
    pub(crate) has_clear_groups: bool,
    /// Whether it has escapes that only GNU programs know.
    pub(crate) has_extensions: bool,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.regex.as_str() == other.regex.as_str()
    }
}

/// The characters that an element matches: those of ASCII, and whether it matches others.
#[derive(Clone, PartialEq)]
struct CharSet {
    ascii: [bool; 128],
    has_others: bool,
}

impl CharSet {
    fn new(is_member: impl Fn(char) -> bool, has_others: bool) -> Self {
        let mut ascii = [false; 128];
        (0u8..128).for_each(|byte| ascii[usize::from(byte)] = is_member(char::from(byte)));
        Self { ascii, has_others }
    }

    fn one(ch: char) -> Self {
        Self::new(|member| member == ch, !ch.is_ascii())
    }

    fn is_disjoint(&self, other: &Self) -> bool {
        let both = self.ascii.iter().zip(&other.ascii).any(|(a, b)| *a && *b);
        !(both || self.has_others && other.has_others)
    }

    fn is_all(&self) -> bool {
        self.has_others && self.ascii.iter().all(|member| *member)
    }

    fn ignoring_case(mut self) -> Self {
        for byte in b'a'..=b'z' {
            let upper = usize::from(byte.to_ascii_uppercase());
            let either = self.ascii[usize::from(byte)] || self.ascii[upper];
            self.ascii[usize::from(byte)] = either;
            self.ascii[upper] = either;
        }
        self
    }
}

/// An element of a pattern, in order. Groups are flat: their starts and ends are elements.
#[derive(Clone)]
enum Element {
    Chars {
        set: CharSet,
        min: u32,
        max: Option<u32>,
    },
    /// A group of fixed length that is repeated, or alternatives.
    Unknown {
        is_fixed: bool,
    },
    Anchor {
        is_end: bool,
    },
    GroupStart,
    GroupEnd,
}

struct Translator<'p> {
    chars: std::iter::Peekable<std::str::CharIndices<'p>>,
    source: &'p str,
    is_extended: bool,
    ignores_case: bool,
    out: String,
    elements: Vec<Element>,
    /// The indices of the elements and of the output at which the open groups start.
    open: Vec<(usize, usize)>,
    groups: usize,
    is_unicode: bool,
    has_extensions: bool,
    /// Where alternatives are: the pattern must be literal but for them.
    has_alternatives: bool,
}

/// A symbol of a pattern, whatever it is escaped as.
enum Symbol {
    Open,
    Close,
    Or,
    Repeat(u32, Option<u32>),
    Any,
    Start,
    End,
    Bracket,
    Literal(char),
    Class(char),
    Boundary(&'static str),
}

/// Translates a pattern. Returns `None` if the translation is not exact.
pub(crate) fn translate(source: &str, is_extended: bool, ignores_case: bool) -> Option<Pattern> {
    if source.is_empty() || source.len() > 10_000 {
        return None;
    }
    let mut translator = Translator {
        chars: source.char_indices().peekable(),
        source,
        is_extended,
        ignores_case,
        out: String::new(),
        elements: Vec::new(),
        open: Vec::new(),
        groups: 0,
        is_unicode: !ignores_case,
        has_extensions: false,
        has_alternatives: false,
    };
    translator.run()?;
    let Translator { out, elements, groups, is_unicode, has_extensions, has_alternatives, .. } = translator;
    let has_clear_groups = if has_alternatives {
        has_distinct_alternatives(source, is_extended, ignores_case).then_some(true)?
    } else {
        is_unambiguous(&elements)?
    };
    let regex = RegexBuilder::new(&out)
        .dot_matches_new_line(true)
        .case_insensitive(ignores_case)
        .size_limit(1 << 20)
        .build()
        .ok()?;
    // Where nothing is matched depends on what a character is.
    let is_unicode = is_unicode && !regex.is_match("");
    Some(Pattern { regex, is_unicode, groups, has_clear_groups, has_extensions })
}

impl Translator<'_> {
    fn run(&mut self) -> Option<()> {
        while let Some(symbol) = self.symbol()? {
            match symbol {
                Symbol::Open => {
                    self.open.push((self.elements.len(), self.out.len()));
                    self.groups += 1;
                    self.out.push('(');
                    self.elements.push(Element::GroupStart);
                }
                Symbol::Close => {
                    let start = self.open.pop()?;
                    self.out.push(')');
                    self.elements.push(Element::GroupEnd);
                    self.repeat_group(start)?;
                }
                Symbol::Or => {
                    self.has_alternatives = true;
                    self.out.push('|');
                }
                Symbol::Repeat(..) => return None,
                Symbol::Any => self.chars(".", CharSet::new(|_| true, true), true)?,
                Symbol::Start => {
                    self.out.push('^');
                    self.elements.push(Element::Anchor { is_end: false });
                }
                Symbol::End => {
                    self.out.push('$');
                    self.elements.push(Element::Anchor { is_end: true });
                }
                Symbol::Bracket => self.bracket()?,
                Symbol::Literal(ch) => {
                    let text = regex::escape(ch.encode_utf8(&mut [0; 4]));
                    self.chars(&text, CharSet::one(ch), false)?;
                }
                Symbol::Class(class) => self.class(class)?,
                Symbol::Boundary(text) => {
                    self.is_unicode = false;
                    self.out.push_str(text);
                    self.elements.push(Element::Anchor { is_end: false });
                }
            }
        }
        self.open.is_empty().then_some(())
    }

    /// Appends an element that matches one character, with its repetition.
    fn chars(&mut self, text: &str, set: CharSet, is_open: bool) -> Option<()> {
        let set = if self.ignores_case { set.ignoring_case() } else { set };
        let (mut min, mut max) = (1, Some(1));
        if let Some(repeat) = self.repetition()? {
            (min, max) = repeat;
            self.out.push_str(&format!("(?:{text})"));
            self.push_repetition(min, max);
            if self.repetition()?.is_some() {
                return None;
            }
        } else {
            self.out.push_str(text);
        }
        // In a locale without UTF-8, a character is a byte.
        if is_open && max.is_some() {
            self.is_unicode = false;
        }
        self.elements.push(Element::Chars { set, min, max });
        Some(())
    }

    fn push_repetition(&mut self, min: u32, max: Option<u32>) {
        match max {
            Some(max) => self.out.push_str(&format!("{{{min},{max}}}")),
            None => self.out.push_str(&format!("{{{min},}}")),
        }
    }

    /// Reads the repetition of a group that has just ended.
    fn repeat_group(&mut self, (element, _): (usize, usize)) -> Option<()> {
        let Some((min, max)) = self.repetition()? else { return Some(()) };
        self.push_repetition(min, max);
        if self.repetition()?.is_some() {
            return None;
        }
        let is_fixed = |element: &Element| match element {
            Element::Chars { min, max, .. } => Some(*min) == *max,
            Element::GroupStart | Element::GroupEnd => true,
            Element::Unknown { .. } | Element::Anchor { .. } => false,
        };
        let is_fixed = self.elements[element..].iter().all(is_fixed);
        let groups = self.elements[element..].iter().filter(|e| matches!(e, Element::GroupStart)).count();
        if !is_fixed || self.has_alternatives || groups > 1 {
            return None;
        }
        self.elements.truncate(element);
        self.elements.push(Element::Unknown { is_fixed: Some(min) == max });
        Some(())
    }

    /// Reads a repetition, if one follows.
    fn repetition(&mut self) -> Option<Option<(u32, Option<u32>)>> {
        let saved = self.chars.clone();
        // What follows may be no symbol in this place.
        match self.next_symbol(false) {
            Some(Some(Symbol::Repeat(min, max))) => Some(Some((min, max))),
            _ => {
                self.chars = saved;
                Some(None)
            }
        }
    }

    fn symbol(&mut self) -> Option<Option<Symbol>> {
        let is_first = matches!(
            self.elements.last(),
            None | Some(Element::GroupStart | Element::Anchor { is_end: false })
        ) || self.out.ends_with('|');
        self.next_symbol(is_first)
    }

    /// Reads the next symbol. `is_first` is true at the start of the pattern, a group or an alternative.
    fn next_symbol(&mut self, is_first: bool) -> Option<Option<Symbol>> {
        let Some((at, ch)) = self.chars.next() else { return Some(None) };
        let is_extended = self.is_extended;
        let symbol = match ch {
            '\\' => {
                let (_, escaped) = self.chars.next()?;
                match escaped {
                    '(' | ')' | '|' | '+' | '?' if !is_extended => {
                        self.has_extensions |= "|+?".contains(escaped);
                        return special(escaped).map(Some);
                    }
                    '{' if !is_extended => self.interval("\\}")?,
                    'n' => Symbol::Literal('\n'),
                    't' => {
                        self.has_extensions = true;
                        Symbol::Literal('\t')
                    }
                    'w' | 'W' | 's' | 'S' => {
                        self.has_extensions = true;
                        Symbol::Class(escaped)
                    }
                    'b' | '<' | '>' => {
                        self.has_extensions = true;
                        Symbol::Boundary(match escaped {
                            'b' => r"(?-u:\b)",
                            '<' => r"(?-u:\b{start})",
                            _ => r"(?-u:\b{end})",
                        })
                    }
                    ch if ch.is_ascii_alphanumeric() || "'`\n".contains(ch) => return None,
                    ch => Symbol::Literal(ch),
                }
            }
            '.' => Symbol::Any,
            '[' => Symbol::Bracket,
            '*' if is_first && is_extended => return None,
            '*' if is_first => Symbol::Literal('*'),
            '*' => Symbol::Repeat(0, None),
            '(' | ')' | '|' | '+' | '?' if is_extended => special(ch)?,
            '{' if is_extended => self.interval("}")?,
            '^' if is_extended => Symbol::Start,
            '$' if is_extended => Symbol::End,
            '^' if at == 0 || is_first && !self.out.ends_with('^') => Symbol::Start,
            '$' => {
                let rest = &self.source[at + 1..];
                let is_end = rest.is_empty() || rest.starts_with("\\)") || rest.starts_with("\\|");
                if is_end { Symbol::End } else { Symbol::Literal('$') }
            }
            ch => Symbol::Literal(ch),
        };
        Some(Some(symbol))
    }

    /// Reads the rest of `{1,3}`.
    fn interval(&mut self, end: &str) -> Option<Symbol> {
        let at = self.chars.peek()?.0;
        let rest = &self.source[at..];
        let length = rest.find(end)?;
        let text = &rest[..length];
        for _ in 0..length + end.len() {
            self.chars.next()?;
        }
        let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number <= 255);
        match text.split_once(',') {
            None => number(text).map(|count| Symbol::Repeat(count, Some(count))),
            Some((min, "")) => number(min).map(|min| Symbol::Repeat(min, None)),
            Some((min, max)) => {
                let (min, max) = (number(min)?, number(max)?);
                (min <= max).then_some(Symbol::Repeat(min, Some(max)))
            }
        }
    }

    fn class(&mut self, class: char) -> Option<()> {
        self.is_unicode = false;
        let is_word = |ch: char| ch.is_ascii_alphanumeric() || ch == '_';
        match class {
            'w' => self.chars("[A-Za-z0-9_]", CharSet::new(is_word, true), false),
            'W' => self.chars("[^A-Za-z0-9_]", CharSet::new(|ch| !is_word(ch), true), true),
            's' => self.chars(r"[ \t\n\r\x0b\x0c]", CharSet::new(is_space, true), false),
            _ => self.chars(r"[^ \t\n\r\x0b\x0c]", CharSet::new(|ch| !is_space(ch), true), true),
        }
    }

    /// Reads the rest of `[…]`.
    fn bracket(&mut self) -> Option<()> {
        let is_negated = self.chars.next_if(|(_, ch)| *ch == '^').is_some();
        let mut members = [false; 128];
        let mut previous: Option<char> = None;
        let mut is_first = true;
        loop {
            let (at, ch) = self.chars.next()?;
            let rest = &self.source[at..];
            match ch {
                ']' if !is_first => break,
                '[' if rest.starts_with("[:") => {
                    let end = rest.find(":]")?;
                    let is_member = class_members(&rest[2..end])?;
                    (0u8..128).for_each(|byte| members[usize::from(byte)] |= is_member(char::from(byte)));
                    (0..end + 1).try_for_each(|_| self.chars.next().map(|_| ()))?;
                    self.is_unicode = false;
                    previous = None;
                }
                '[' if rest.starts_with("[.") || rest.starts_with("[=") => return None,
                '-' if previous.is_some() && !rest[1..].starts_with(']') => {
                    let (_, end) = self.chars.next()?;
                    let start = previous.take()?;
                    // Other ranges depend on the locale.
                    let is_kind = |is_member: fn(&char) -> bool| is_member(&start) && is_member(&end);
                    let is_plain = is_kind(char::is_ascii_lowercase)
                        || is_kind(char::is_ascii_uppercase)
                        || is_kind(char::is_ascii_digit);
                    if !is_plain || start > end {
                        return None;
                    }
                    (start..=end).for_each(|ch| members[ch as usize] = true);
                }
                // sed replaces `\n` and others here; otherwise a backslash is a member.
                '\\' if rest[1..].starts_with(['n', 't']) => {
                    let (_, escape) = self.chars.next()?;
                    members[if escape == 'n' { 10 } else { 9 }] = true;
                    self.has_extensions |= escape == 't';
                    previous = None;
                }
                '\\' if rest[1..].starts_with(|ch: char| ch.is_ascii_alphanumeric() || ch == ']') => {
                    return None;
                }
                ch if !ch.is_ascii() => return None,
                ch => {
                    members[ch as usize] = true;
                    previous = Some(ch);
                }
            }
            is_first = false;
        }
        let mut text = String::from(if is_negated { "[^" } else { "[" });
        for byte in (0u8..128).filter(|byte| members[usize::from(*byte)]) {
            text.push_str(&format!("\\x{byte:02x}"));
        }
        text.push(']');
        let set = CharSet::new(|ch| members[ch as usize] != is_negated, is_negated);
        self.chars(&text, set, is_negated)
    }
}

fn special(ch: char) -> Option<Symbol> {
    Some(match ch {
        '(' => Symbol::Open,
        ')' => Symbol::Close,
        '|' => Symbol::Or,
        '+' => Symbol::Repeat(1, None),
        '?' => Symbol::Repeat(0, Some(1)),
        _ => return None,
    })
}

fn is_space(ch: char) -> bool {
    matches!(ch, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

fn class_members(name: &str) -> Option<fn(char) -> bool> {
    Some(match name {
        "alpha" => |ch| ch.is_ascii_alphabetic(),
        "digit" => |ch| ch.is_ascii_digit(),
        "alnum" => |ch| ch.is_ascii_alphanumeric(),
        "upper" => |ch| ch.is_ascii_uppercase(),
        "lower" => |ch| ch.is_ascii_lowercase(),
        "space" => is_space,
        "blank" => |ch| ch == ' ' || ch == '\t',
        "punct" => |ch| ch.is_ascii_punctuation(),
        "xdigit" => |ch| ch.is_ascii_hexdigit(),
        _ => return None,
    })
}

/// Returns whether each text has one match that begins first, whatever is preferred, and whether its groups
/// are clear. `None` if there may be several.
///
/// The length of a repetition is determined if what follows cannot begin with a character that it repeats.
/// The last repetition may be undetermined: it takes as much as possible in both kinds of search. If it is
/// `.*`, or if the match extends to the end of the line, then the end of the match does not depend on the
/// others.
fn is_unambiguous(elements: &[Element]) -> Option<bool> {
    let is_variable = |element: &Element| match element {
        Element::Chars { min, max, .. } => Some(*min) != *max,
        Element::Unknown { is_fixed } => !is_fixed,
        _ => false,
    };
    let variable: Vec<usize> = (0..elements.len()).filter(|at| is_variable(&elements[*at])).collect();
    let Some((&last, others)) = variable.split_last() else { return Some(true) };
    let is_determined = |at: &usize| {
        let Element::Chars { set, .. } = &elements[*at] else { return false };
        let next = elements[at + 1..]
            .iter()
            .find(|next| matches!(next, Element::Chars { .. } | Element::Unknown { .. }));
        matches!(next, Some(Element::Chars { set: next, min: 1.., .. }) if set.is_disjoint(next))
    };
    let undetermined = others.iter().filter(|at| !is_determined(at)).count();
    if undetermined == 0 {
        return Some(true);
    }
    let is_chars = variable.iter().all(|at| matches!(elements[*at], Element::Chars { .. }));
    let takes_all = matches!(&elements[last], Element::Chars { set, max: None, .. } if set.is_all());
    let ends_line =
        elements[last..].iter().any(|element| matches!(element, Element::Anchor { is_end: true }));
    if !is_chars || !(takes_all || ends_line) {
        return None;
    }
    // Each group must contain one repetition at most, and no other group.
    let mut repetitions = 0;
    let mut depth = 0;
    let mut is_clear = true;
    for (at, element) in elements.iter().enumerate() {
        match element {
            Element::GroupStart => {
                depth += 1;
                repetitions = 0;
            }
            Element::GroupEnd => depth -= 1,
            _ => repetitions += usize::from(variable.contains(&at)),
        }
        is_clear &= depth <= 1 && (depth == 0 || repetitions <= 1);
        // A repetition outside of the groups before one inside takes characters in another order.
        is_clear &= depth > 0 || repetitions == 0 || !variable.contains(&at) || takes_all && at == last;
    }
    Some(is_clear)
}

/// Whether a pattern consists of alternatives without operators, at the top or in one group, of which none
/// is the start of another.
fn has_distinct_alternatives(source: &str, is_extended: bool, ignores_case: bool) -> bool {
    let (open, or, close) = if is_extended { ("(", "|", ")") } else { ("\\(", "\\|", "\\)") };
    let inner = match (source.find(open), source.find(close)) {
        (None, None) => source,
        (Some(start), Some(end)) if start < end => {
            let around = format!("{}{}", &source[..start], &source[end + close.len()..]);
            let around = around.trim_start_matches('^').trim_end_matches('$');
            if !is_literal(around) {
                return false;
            }
            &source[start + open.len()..end]
        }
        _ => return false,
    };
    let alternatives: Vec<String> = inner
        .split(or)
        .map(|text| if ignores_case { text.to_ascii_lowercase() } else { text.to_owned() })
        .collect();
    let is_start = |i: usize, j: usize| i != j && alternatives[j].starts_with(&alternatives[i]);
    alternatives.len() <= 100
        && alternatives.iter().all(|text| !text.is_empty() && is_literal(text))
        && !(0..alternatives.len()).any(|i| (0..alternatives.len()).any(|j| is_start(i, j)))
}

fn is_literal(text: &str) -> bool {
    !text.contains(['\\', '.', '*', '[', ']', '^', '$', '+', '?', '{', '}', '(', ')', '|'])
}
