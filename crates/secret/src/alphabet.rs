//! The character sets of tokens.

/// A set of ASCII characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alphabet {
    /// `0-9a-f`
    Hex,
    /// `0-9a-fA-F`
    AnyHex,
    /// `a-z0-9`
    Lower,
    /// `A-Z0-9`
    Upper,
    /// `A-Za-z0-9`
    Alnum,
    /// `A-Za-z0-9_`
    Word,
    /// `A-Za-z0-9_-`
    Url,
    /// `A-Za-z0-9_.-`
    Dotted,
    /// `A-Za-z0-9+/=`
    Base64,
    /// `A-Za-z0-9_=-`
    Base64Url,
    /// `0-9a-f-`
    Hyphened,
    /// `0-9a-z$`
    Braintree,
    /// `A-Za-z0-9_%+/=-`
    Cookie,
    /// `A-Za-z0-9_.~+/=-`, the characters of a token in a header
    Header,
}

impl Alphabet {
    pub(crate) const fn has(self, byte: u8) -> bool {
        match self {
            Self::Hex => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            Self::AnyHex => byte.is_ascii_hexdigit(),
            Self::Lower => matches!(byte, b'0'..=b'9' | b'a'..=b'z'),
            Self::Upper => matches!(byte, b'0'..=b'9' | b'A'..=b'Z'),
            Self::Alnum => byte.is_ascii_alphanumeric(),
            Self::Word => byte.is_ascii_alphanumeric() || byte == b'_',
            Self::Url => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Self::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
            Self::Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='),
            Self::Base64Url => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'='),
            Self::Hyphened => matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-'),
            Self::Braintree => matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'$'),
            Self::Cookie => {
                byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'%' | b'+' | b'/' | b'=')
            }
            Self::Header => {
                byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'~' | b'+' | b'/' | b'=')
            }
        }
    }

    /// Returns the number of leading bytes that are in the set.
    pub(crate) fn run(self, bytes: &[u8]) -> usize {
        bytes.iter().take_while(|byte| self.has(**byte)).count()
    }
}
