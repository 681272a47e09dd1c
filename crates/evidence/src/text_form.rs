//! How a text file is stored: its encoding, byte order mark and line ends.
//!
//! The log contains texts as the model sees them: without a byte order mark, mostly with plain line ends, and
//! with U+FFFD for bytes that are not text. To restore such a text, the rest follows another version of the
//! file: the one on disk, or a backup.

use std::borrow::Cow;

/// The form of a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextForm {
    encoding: TextEncoding,
    has_mark: bool,
    line_end: LineEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextEncoding {
    Utf8,
    Utf16Le,
    Utf16Be,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnd {
    Plain,
    CarriageReturn,
    Mixed,
}

const BYTE_ORDER_MARK: char = '\u{feff}';

impl TextForm {
    /// Returns the form of a file. `None` if its encoding is unknown.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let encoding = match bytes {
            [0xff, 0xfe, ..] => TextEncoding::Utf16Le,
            [0xfe, 0xff, ..] => TextEncoding::Utf16Be,
            _ => TextEncoding::Utf8,
        };
        let text = encoding.decode(bytes)?;
        let returns = text.matches("\r\n").count();
        let line_end = match (returns, text.matches('\n').count()) {
            (0, _) => LineEnd::Plain,
            (returns, all) if returns == all => LineEnd::CarriageReturn,
            _ => LineEnd::Mixed,
        };
        Some(Self { encoding, has_mark: text.starts_with(BYTE_ORDER_MARK), line_end })
    }

    /// Returns the text of a file in this form, as the tools show it.
    pub(crate) fn decode(self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        let text = self.encoding.decode(bytes)?;
        if !self.has_mark && self.line_end == LineEnd::Plain {
            return Some(text);
        }
        Some(Cow::Owned(text.trim_start_matches(BYTE_ORDER_MARK).replace("\r\n", "\n")))
    }

    /// Returns the bytes of a text in this form. `None` if they cannot be known: the text lacks characters,
    /// or the lines of the file end in different ways.
    pub(crate) fn encode(self, text: &str) -> Option<Vec<u8>> {
        if text.contains('\u{fffd}') {
            return None;
        }
        let mut text = text.trim_start_matches(BYTE_ORDER_MARK).to_owned();
        // The log may contain the line ends as they are.
        if !text.contains('\r') && text.contains('\n') {
            match self.line_end {
                LineEnd::Plain => {}
                LineEnd::CarriageReturn => text = text.replace('\n', "\r\n"),
                LineEnd::Mixed => return None,
            }
        }
        if self.has_mark {
            text.insert(0, BYTE_ORDER_MARK);
        }
        Some(self.encoding.encode(text))
    }
}

impl TextEncoding {
    fn decode(self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        let units = |unit: fn([u8; 2]) -> u16| {
            let (pairs, rest) = bytes.as_chunks();
            let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
            String::from_utf16(&units).ok().filter(|_| rest.is_empty()).map(Cow::Owned)
        };
        match self {
            Self::Utf8 => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
            Self::Utf16Le => units(u16::from_le_bytes),
            Self::Utf16Be => units(u16::from_be_bytes),
        }
    }

    fn encode(self, text: String) -> Vec<u8> {
        match self {
            Self::Utf8 => text.into_bytes(),
            Self::Utf16Le => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Self::Utf16Be => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn a_text_gets_the_form_of_another_version_of_its_file() {
        for (other, text, expected) in [
            (&b"a\nb\n"[..], "x\ny\n", Some(b"x\ny\n".to_vec())),
            (b"a\r\nb\r\n", "x\ny\n", Some(b"x\r\ny\r\n".to_vec())),
            (b"a\r\nb\r\n", "x\r\ny\r\n", Some(b"x\r\ny\r\n".to_vec())),
            (b"\xef\xbb\xbfa\n", "x\n", Some(b"\xef\xbb\xbfx\n".to_vec())),
            (&utf16("\u{feff}a\r\n"), "x\n", Some(utf16("\u{feff}x\r\n"))),
            (b"a\r\nb\n", "x\ny\n", None),
            (b"a\r\nb\n", "x", Some(b"x".to_vec())),
            (b"a\n", "caf\u{fffd}\n", None),
        ] {
            let form = TextForm::of(other).unwrap();
            assert_eq!(form.encode(text), expected, "{other:?} {text:?}");
        }
        assert_eq!(TextForm::of(b"caf\xe9\n"), None);
    }
}
