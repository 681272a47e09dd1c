//! Colours: those of the terminal, or fixed ones for dark and light backgrounds.

use std::borrow::Cow;

/// The colours of the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// The 16 colours of the terminal.
    #[default]
    Terminal,
    /// Colours for a dark background.
    Dark,
    /// Colours for a light background.
    Light,
}

/// The colours that `term` uses: their codes, and the colours of the 256-colour palette for dark and light
/// backgrounds.
const COLOURS: &[(&str, &str, &str)] = &[
    ("\u{1b}[31m", "\u{1b}[38;5;203m", "\u{1b}[38;5;124m"),
    ("\u{1b}[32m", "\u{1b}[38;5;114m", "\u{1b}[38;5;28m"),
    ("\u{1b}[33m", "\u{1b}[38;5;221m", "\u{1b}[38;5;130m"),
    ("\u{1b}[34m", "\u{1b}[38;5;75m", "\u{1b}[38;5;26m"),
    ("\u{1b}[35m", "\u{1b}[38;5;176m", "\u{1b}[38;5;90m"),
    ("\u{1b}[36m", "\u{1b}[38;5;80m", "\u{1b}[38;5;30m"),
    ("\u{1b}[2m", "\u{1b}[38;5;245m", "\u{1b}[38;5;242m"),
];

impl Theme {
    /// The names and themes.
    pub const ALL: [(&'static str, Self); 3] =
        [("terminal", Self::Terminal), ("dark", Self::Dark), ("light", Self::Light)];

    /// Returns the theme with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, theme)| *theme)
    }

    /// The name of the theme.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, theme)| *theme == self).map_or("", |(name, _)| name)
    }

    /// Returns text with its colour sequences replaced by those of the theme.
    pub(crate) fn apply(self, text: &str) -> Cow<'_, str> {
        if self == Self::Terminal || !text.contains('\u{1b}') {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len() + 64);
        let mut rest = text;
        while let Some(start) = rest.find('\u{1b}') {
            out.push_str(&rest[..start]);
            rest = &rest[start..];
            let known = COLOURS.iter().find(|(code, ..)| rest.starts_with(code));
            let (code, new) = match known {
                Some((code, dark, _)) if self == Self::Dark => (*code, *dark),
                Some((code, _, light)) => (*code, *light),
                None => ("\u{1b}", "\u{1b}"),
            };
            out.push_str(new);
            rest = &rest[code.len()..];
        }
        out.push_str(rest);
        Cow::Owned(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_theme_replaces_the_colours_of_the_terminal() {
        let text = "\u{1b}[31mred\u{1b}[0m \u{1b}[1mbold\u{1b}[0m";
        assert_eq!(Theme::Terminal.apply(text), text);
        assert_eq!(Theme::Light.apply(text), "\u{1b}[38;5;124mred\u{1b}[0m \u{1b}[1mbold\u{1b}[0m");
        assert_eq!(Theme::parse("dark"), Some(Theme::Dark));
        assert_eq!(Theme::Dark.name(), "dark");
    }
}
