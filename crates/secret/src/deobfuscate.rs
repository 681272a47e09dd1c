//! Obfuscated secrets: split by terminal colours, invisible characters, line breaks or string concatenation,
//! percent-encoded, escaped as in JSON, C or HTML, or encoded as base64 or hex.
//!
//! A [`DecodedView`] is a part of a text with such escapes decoded, and maps its offsets back to the text.
//! [`encoded`] decodes runs of base64 and hex that contain readable text, and a [`CopyDecoder`] those that
//! may contain a copy of a known secret. They use windows of bounded size, so memory does not grow with the
//! text.

use std::ops::Range;

use memchr::{memchr, memchr2, memchr3, memrchr};

/// The size of the part that is decoded at once, and the overlap of two consecutive parts.
const WINDOW: usize = 64 << 10;
const OVERLAP: usize = 4 << 10;

/// Some lines of a text with escapes decoded.
pub(crate) struct DecodedView {
    /// The decoded lines.
    pub(crate) text: String,
    /// Pairs of an offset in the view and the corresponding offset in the text, one after each escape.
    /// Sorted.
    offsets: Vec<(usize, usize)>,
}

impl DecodedView {
    /// Decodes a part of a text. `next` returns the next escape from an offset on.
    fn of(
        text: &str,
        range: Range<usize>,
        mut next: impl FnMut(&[u8], usize) -> Option<EscapeSequence>,
    ) -> Self {
        let bytes = &text.as_bytes()[..range.end];
        let mut view = Self { text: String::with_capacity(range.len()), offsets: vec![(0, range.start)] };
        let mut at = range.start;
        while let Some(escape) = next(bytes, at) {
            view.text.push_str(&text[at..escape.range.start]);
            // A decoded character gets its own entry, so that a range that ends with it also ends there in
            // the text.
            if let Some(letter) = escape.letter {
                view.offsets.push((view.text.len(), escape.range.start));
                view.text.push(letter);
            }
            view.offsets.push((view.text.len(), escape.range.end));
            at = escape.range.end;
        }
        view.text.push_str(&text[at..range.end]);
        view
    }

    /// Decodes the escapes of a part of a text.
    fn decoded(text: &str, range: Range<usize>) -> Self {
        let mut finder = EscapeFinder::new(&text[range.clone()]);
        Self::of(text, range, |bytes, at| finder.next(bytes, at))
    }

    /// Returns the range of the text that a non-empty range of the view was decoded from.
    pub(crate) fn origin(&self, range: &Range<usize>) -> Range<usize> {
        let place = |at: usize| {
            let jump = self.offsets.partition_point(|(view, _)| *view <= at) - 1;
            let (view, text) = self.offsets[jump];
            let next = self.offsets.get(jump + 1).filter(|next| next.0 == at + 1).map(|next| next.1);
            (text + at - view, next)
        };
        let (last, behind) = place(range.end - 1);
        // A colour after the last character is not included, but the rest of its escape is.
        let is_escape = self.offsets.binary_search(&(range.end - 1, last)).is_ok();
        let end = if is_escape { behind.unwrap_or(last + 1) } else { last + 1 };
        place(range.start).0..end
    }
}

/// A sequence that encodes one character, or none.
#[derive(Clone)]
struct EscapeSequence {
    range: Range<usize>,
    letter: Option<char>,
}

/// Finds the escapes of a text in order.
///
/// Several searches run in parallel, because a byte search looks for at most three bytes. Each keeps its next
/// result, so that the text is searched once by each of them.
struct EscapeFinder {
    searches: [EscapeSearch; 3],
}

/// A search for some kinds of escapes.
struct EscapeSearch {
    find: fn(&[u8], usize) -> Option<EscapeSequence>,
    next: Option<EscapeSequence>,
    /// Whether there are no more results.
    is_done: bool,
}

impl EscapeFinder {
    fn new(text: &str) -> Self {
        let search = |find, is_done| EscapeSearch { find, next: None, is_done };
        Self {
            searches: [
                search(next_escape, false),
                search(next_entity_or_concatenation, false),
                search(next_invisible, text.is_ascii()),
            ],
        }
    }

    /// Returns the first escape that begins at `from` or later. `from` must not decrease.
    fn next(&mut self, bytes: &[u8], from: usize) -> Option<EscapeSequence> {
        for search in &mut self.searches {
            let is_current = search.next.as_ref().is_some_and(|next| next.range.start >= from);
            if !is_current && !search.is_done {
                search.next = (search.find)(bytes, from);
                search.is_done = search.next.is_none();
            }
        }
        let found =
            self.searches.iter().filter(|search| !search.is_done).filter_map(|search| search.next.clone());
        found.min_by_key(|escape| escape.range.start)
    }
}

/// Returns the printable ASCII character that digits of a base encode.
fn printable(digits: &[u8], base: u32) -> Option<char> {
    let mut code = 0_u32;
    for digit in digits {
        code = code * base + (*digit as char).to_digit(base)?;
    }
    (!digits.is_empty() && (0x20..0x7F).contains(&code)).then(|| char::from_u32(code)).flatten()
}

/// Returns the next escape: a terminal control sequence, `%3D`, or one of [`backslash`].
fn next_escape(bytes: &[u8], mut from: usize) -> Option<EscapeSequence> {
    loop {
        let at = from + memchr3(0x1B, b'%', b'\\', bytes.get(from..)?)?;
        let found = match bytes[at] {
            0x1B => command_length(&bytes[at..]).map(|length| (length, None)),
            b'%' => {
                bytes.get(at + 1..at + 3).and_then(|digits| printable(digits, 16)).map(|ch| (3, Some(ch)))
            }
            _ => backslash(&bytes[at..]).map(|(length, letter)| (length, Some(letter))),
        };
        if let Some((length, letter)) = found {
            return Some(EscapeSequence { range: at..at + length, letter });
        }
        from = at + 1;
    }
}

/// Decodes `\u003d`, `\u{3d}`, `\x3d` and `\075`. Returns the length of the escape and its character.
fn backslash(bytes: &[u8]) -> Option<(usize, char)> {
    let hex = |range: Range<usize>| printable(bytes.get(range)?, 16);
    match bytes.get(1)? {
        b'u' if bytes.get(2..4) == Some(b"00") => Some((6, hex(4..6)?)),
        b'u' if bytes.get(2) == Some(&b'{') && bytes.get(5) == Some(&b'}') => Some((6, hex(3..5)?)),
        b'x' => Some((4, hex(2..4)?)),
        b'0'..=b'1' => Some((4, printable(bytes.get(1..4)?, 8)?)),
        _ => None,
    }
}

/// Returns the next entity of HTML, or the next place where two string literals are concatenated with `+`.
fn next_entity_or_concatenation(bytes: &[u8], mut from: usize) -> Option<EscapeSequence> {
    let start = from;
    loop {
        let at = from + memchr2(b'&', b'+', bytes.get(from..)?)?;
        let found = match bytes[at] {
            b'&' => entity(&bytes[at..])
                .map(|(length, letter)| EscapeSequence { range: at..at + length, letter: Some(letter) }),
            _ => concatenation(bytes, at)
                .filter(|range| range.start >= start)
                .map(|range| EscapeSequence { range, letter: None }),
        };
        if found.is_some() {
            return found;
        }
        from = at + 1;
    }
}

/// Decodes `&#61;`, `&#x3d;` and the names of characters that HTML escapes. Returns the length and the
/// character.
fn entity(bytes: &[u8]) -> Option<(usize, char)> {
    let end = memchr(b';', &bytes[..bytes.len().min(8)])?;
    let letter = match &bytes[1..end] {
        b"amp" => '&',
        b"lt" => '<',
        b"gt" => '>',
        b"quot" => '"',
        b"apos" => '\'',
        [b'#', b'x' | b'X', digits @ ..] => printable(digits, 16)?,
        [b'#', digits @ ..] => printable(digits, 10)?,
        _ => return None,
    };
    Some((end + 1, letter))
}

/// Returns the range from the closing quote before a `+` to the opening quote after it. Backslashes before
/// the quotes are included.
fn concatenation(bytes: &[u8], plus: usize) -> Option<Range<usize>> {
    let blanks = |bytes: &mut dyn Iterator<Item = &u8>| {
        bytes.take(64).take_while(|byte| byte.is_ascii_whitespace()).count()
    };
    let close = plus.checked_sub(1 + blanks(&mut bytes[..plus].iter().rev()))?;
    let open = plus + 1 + blanks(&mut bytes[plus + 1..].iter());
    let escapes = bytes.get(open..)?.iter().take(4).take_while(|byte| **byte == b'\\').count();
    let quote = *bytes.get(open + escapes)?;
    if !matches!(quote, b'"' | b'\'' | b'`') || bytes[close] != quote {
        return None;
    }
    let before = bytes[..close].iter().rev().take(4).take_while(|byte| **byte == b'\\').count();
    Some(close - before..open + escapes + 1)
}

/// Characters without a width, with which a text may be interspersed.
const INVISIBLE: [&[u8]; 7] = [
    "\u{ad}".as_bytes(),
    "\u{200b}".as_bytes(),
    "\u{200c}".as_bytes(),
    "\u{200d}".as_bytes(),
    "\u{2060}".as_bytes(),
    "\u{2063}".as_bytes(),
    "\u{feff}".as_bytes(),
];

/// Returns the next character without a width.
fn next_invisible(bytes: &[u8], mut from: usize) -> Option<EscapeSequence> {
    loop {
        let at = from + memchr3(0xC2, 0xE2, 0xEF, bytes.get(from..)?)?;
        if let Some(found) = INVISIBLE.iter().find(|letter| bytes[at..].starts_with(letter)) {
            return Some(EscapeSequence { range: at..at + found.len(), letter: None });
        }
        from = at + 1;
    }
}

/// Returns the length of a terminal control sequence: `ESC [ … m`, or a link `ESC ] … BEL`.
fn command_length(bytes: &[u8]) -> Option<usize> {
    if let Some(rest) = bytes.strip_prefix(b"\x1b]") {
        let end = memchr3(0x07, 0x1B, b'\n', &rest[..rest.len().min(OVERLAP / 2)])?;
        return match rest[end..] {
            [0x07, ..] => Some(end + 3),
            [0x1B, b'\\', ..] => Some(end + 4),
            _ => None,
        };
    }
    let rest = bytes.strip_prefix(b"\x1b[")?;
    let parameters = rest.iter().take(32).take_while(|byte| (0x20..0x40).contains(*byte)).count();
    rest.get(parameters).is_some_and(|byte| (0x40..0x7F).contains(byte)).then_some(parameters + 3)
}

/// Visits the lines that contain escapes, decoded. Adjacent lines are visited together.
pub(crate) fn views(text: &str, mut visit: impl FnMut(&DecodedView)) {
    let bytes = text.as_bytes();
    let mut finder = EscapeFinder::new(text);
    let mut lines: Option<Range<usize>> = None;
    let mut at = 0;
    while let Some(escape) = finder.next(bytes, at) {
        let from = lines.as_ref().map_or(0, |lines| lines.end);
        let start = memrchr(b'\n', &bytes[from..escape.range.start]).map_or(from, |line| from + line + 1);
        let end =
            memchr(b'\n', &bytes[escape.range.end..]).map_or(bytes.len(), |line| escape.range.end + line);
        at = end;
        lines = match lines.take() {
            Some(lines) if start <= lines.end + 1 => Some(lines.start..end),
            other => {
                other.into_iter().for_each(|lines| visit(&DecodedView::decoded(text, lines)));
                Some(start..end)
            }
        };
    }
    lines.into_iter().for_each(|lines| visit(&DecodedView::decoded(text, lines)));
}

/// Visits a text of several lines without its line breaks and the indentation after them.
pub(crate) fn joined_lines(text: &str, mut visit: impl FnMut(&DecodedView)) {
    if memchr(b'\n', text.as_bytes()).is_some() {
        visit(&DecodedView::of(text, 0..text.len(), next_line_break));
    }
}

/// Returns the next line break with the blanks around it, and with a backslash that continues the line.
fn next_line_break(bytes: &[u8], from: usize) -> Option<EscapeSequence> {
    let at = from + memchr(b'\n', bytes.get(from..)?)?;
    let start = bytes[from..at].trim_ascii_end();
    let start = from + start.strip_suffix(b"\\").unwrap_or(start).len();
    let end = at + bytes[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    Some(EscapeSequence { range: start..end, letter: None })
}

/// Returns a short text with its escapes decoded and its lines joined; `None` if it has neither.
pub(crate) fn plain(text: &str) -> Option<String> {
    let decoded = DecodedView::decoded(text, 0..text.len()).text;
    let joined = DecodedView::of(&decoded, 0..decoded.len(), next_line_break).text;
    (joined != text).then_some(joined)
}

/// The shortest run that is decoded: 18 bytes in base64.
const SHORTEST_RUN: usize = 24;
/// The number of bytes that must be readable before the rest is decoded.
const READABLE: usize = 12;

const NONE: u8 = 0xFF;

/// The values of base64 digits, of the standard and the URL-safe alphabet.
static DIGITS: [u8; 256] = {
    let mut digits = [NONE; 256];
    let mut at = 0;
    while at < 64 {
        let byte = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[at];
        digits[byte as usize] = at as u8;
        at += 1;
    }
    digits[b'-' as usize] = 62;
    digits[b'_' as usize] = 63;
    digits
};

/// Returns the words of letters and digits in a range of a text.
pub(crate) fn words(text: &str, range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let start = range.start;
    let words = text[range].split(|ch: char| !ch.is_ascii_alphanumeric());
    words.scan(start, |at, word| {
        let word = *at..*at + word.len();
        *at = word.end + 1;
        Some(word)
    })
}

/// Visits the runs of base64 and hex that decode to readable text, with the decoded text. Calls `on_run` for
/// every run of [`SHORTEST_RUN`] and more digits.
pub(crate) fn encoded(
    text: &str,
    mut on_run: impl FnMut(Range<usize>),
    mut visit: impl FnMut(Range<usize>, &str),
) {
    let bytes = text.as_bytes();
    let is_digit = |byte: &u8| DIGITS[usize::from(*byte)] != NONE;
    let mut at = SHORTEST_RUN - 1;
    let mut done = 0;
    while at < bytes.len() {
        if !is_digit(&bytes[at]) {
            at += SHORTEST_RUN;
            continue;
        }
        let start = at - bytes[done..at].iter().rev().take_while(|byte| is_digit(byte)).count();
        let end = at + bytes[at..].iter().take_while(|byte| is_digit(byte)).count();
        done = end;
        at = end + SHORTEST_RUN;
        if end - start >= SHORTEST_RUN {
            on_run(start..end);
            let wrapped = wrapped_end(bytes, start, end);
            (done, at) = (wrapped, wrapped + SHORTEST_RUN);
            let padding = bytes[wrapped..].iter().take(2).take_while(|byte| **byte == b'=').count();
            let mut from = start;
            while from < wrapped {
                let part = from..wrapped.min(from + WINDOW);
                if let Some(decoded) = decode(&bytes[part.clone()]) {
                    let to = if part.end == wrapped { wrapped + padding } else { part.end };
                    visit(part.start..to, &decoded);
                }
                if part.end == wrapped {
                    break;
                }
                // The next window begins with a whole group of four digits. Line breaks are not digits.
                let mut next = part.end - OVERLAP;
                for _ in 0..bytes[from..next].iter().filter(|byte| is_digit(byte)).count() % 4 {
                    next = bytes[..next].iter().rposition(is_digit).unwrap_or(from);
                }
                from = next;
            }
        }
    }
}

/// The length of the shortest copy of a secret that is searched in decoded bytes.
pub(crate) const MIN_COPY: usize = 8;

/// The bytes that a run of base64 or hex digits decodes to.
pub(crate) struct DecodedRun {
    pub(crate) bytes: Vec<u8>,
    /// The offset of the first decoded digit.
    start: usize,
    is_hex: bool,
}

impl DecodedRun {
    /// Returns the range of the digits that encode a range of the bytes.
    pub(crate) fn origin(&self, range: &Range<usize>) -> Range<usize> {
        match self.is_hex {
            true => self.start + range.start * 2..self.start + range.end * 2,
            false => self.start + range.start * 4 / 3..self.start + (range.end * 4).div_ceil(3),
        }
    }
}

/// Decodes the base64 and hex of a text at the positions where copies of a secret may begin. Unlike
/// [`encoded`], what surrounds a copy need not be readable.
pub(crate) struct CopyDecoder<'t> {
    text: &'t [u8],
    /// The number of digits that are decoded at once, twice the number of those of the longest copy.
    length: usize,
    /// The end of the part that has been decoded, by the alignment of its groups of digits: four of base64,
    /// two of hex.
    done: [usize; 6],
}

impl<'t> CopyDecoder<'t> {
    /// Creates a decoder for copies of secrets of at most `longest` bytes.
    pub(crate) fn new(text: &'t [u8], longest: usize) -> Self {
        Self { text, length: 4 * longest + 32, done: [0; 6] }
    }

    /// Visits what the digits from `at` on decode to, with each alignment in which a secret may begin there.
    pub(crate) fn decode_at(&mut self, at: usize, mut visit: impl FnMut(&DecodedRun)) {
        let is_digit = |byte: &u8| DIGITS[usize::from(*byte)] != NONE;
        let rest = &self.text[at..self.text.len().min(at + self.length)];
        let n_digits = rest.iter().take_while(|byte| is_digit(byte)).count();
        let n_hex = rest[..n_digits].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        // A secret that begins with the second or third byte of a group begins within its second or third
        // digit; the next digit is the first that depends on nothing else.
        for before in [0, 2, 3] {
            let Some(start) = at.checked_sub(before) else { continue };
            let is_run = self.text[start..at].iter().all(is_digit) && n_digits >= MIN_COPY;
            if is_run && self.is_new(start % 4, at, at + n_digits) {
                let bytes = base64_bytes(&self.text[start..at + n_digits]);
                visit(&DecodedRun { bytes, start, is_hex: false });
            }
        }
        if n_hex >= 2 * MIN_COPY && self.is_new(4 + at % 2, at, at + n_hex) {
            visit(&DecodedRun { bytes: hex_bytes(&self.text[at..at + n_hex]), start: at, is_hex: true });
        }
    }

    /// Returns whether the digits have to be decoded in this alignment. Otherwise they have been, up to the
    /// end of the longest copy that may begin here.
    fn is_new(&mut self, alignment: usize, at: usize, end: usize) -> bool {
        let done = &mut self.done[alignment];
        let is_new = end > *done && at + self.length / 2 > *done;
        if is_new {
            *done = end;
        }
        is_new
    }
}

/// Returns the value of a hex digit.
fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20).wrapping_sub(b'a').wrapping_add(10),
    }
}

/// The bytes of a hex dump: pairs of hex digits that are separated by blanks, commas or colons, on one or
/// several lines, with or without offsets and a column of characters.
pub(crate) struct HexDump {
    pub(crate) bytes: Vec<u8>,
    /// The offset of the digits of each byte.
    places: Vec<usize>,
}

impl HexDump {
    /// Returns the range of the text that shows a range of the bytes. If a column of characters follows, the
    /// rest of the line is included, because it shows them as well.
    pub(crate) fn origin(&self, text: &str, range: &Range<usize>) -> Range<usize> {
        let bytes = text.as_bytes();
        let last = self.places[range.end - 1];
        let line_end = memchr(b'\n', &bytes[last..]).map_or(bytes.len(), |end| last + end);
        // The last byte on the same line.
        let n_before = self.places.partition_point(|place| *place < line_end);
        let row_end = self.places[n_before - 1] + 2;
        let has_column =
            bytes[row_end..line_end].starts_with(b"  ") || bytes[row_end..line_end].contains(&b'|');
        self.places[range.start]..if has_column { line_end } else { last + 2 }
    }
}

/// The minimum number of bytes on a line of a hex dump, unless it is the last one.
const MIN_ROW: usize = 4;

/// Visits the hex dumps of a text.
pub(crate) fn hex_dumps(text: &str, mut visit: impl FnMut(&HexDump)) {
    let bytes = text.as_bytes();
    let mut dump = HexDump { bytes: Vec::new(), places: Vec::new() };
    let mut at = 0;
    while let Some(row) = next_row(bytes, at) {
        at += memrchr(b'\n', &bytes[at..row]).map_or(0, |end| end + 1);
        dump.bytes.clear();
        dump.places.clear();
        loop {
            let end = memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |end| at + end + 1);
            let n_before = dump.bytes.len();
            read_row(&bytes[at..end], at, &mut dump);
            at = end;
            // The last row may be short.
            if dump.bytes.len() - n_before < MIN_ROW || at == bytes.len() {
                break;
            }
        }
        if dump.bytes.len() >= MIN_COPY {
            visit(&dump);
        }
    }
}

/// Returns a position where a row of eight bytes may be. Such a row has nine characters in sequence, from a
/// multiple of eight on, that are digits and gaps.
fn next_row(bytes: &[u8], from: usize) -> Option<usize> {
    const STEP: usize = 8;
    const DIGIT: u8 = 1;
    const GAP: u8 = 2;
    static CLASSES: [u8; 256] = {
        let mut classes = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            if (byte as u8).is_ascii_hexdigit() {
                classes[byte] = DIGIT;
            } else if matches!(byte as u8, b' ' | b'\t' | b',' | b':' | b'-' | b'x') {
                classes[byte] = GAP;
            }
            byte += 1;
        }
        classes
    };
    let class = |at: usize| CLASSES[usize::from(bytes[at])];
    let is_row = |at: usize| {
        let n_gaps = (at..at + STEP).filter(|at| class(*at) == GAP).count();
        (at + 1..at + STEP).all(|at| class(at) != 0) && (1..=4).contains(&n_gaps)
    };
    (from..bytes.len().saturating_sub(STEP))
        .step_by(STEP)
        .find(|at| class(*at) != 0 && class(at + STEP) != 0 && is_row(*at))
}

/// Appends the bytes of the longest row of hex digits in a line.
fn read_row(line: &[u8], line_start: usize, dump: &mut HexDump) {
    let is_gap = |byte: &u8| matches!(byte, b' ' | b'\t' | b',' | b':' | b'-');
    let is_hex = |byte: &u8| byte.is_ascii_hexdigit();
    // The range of the current row and of the longest one, with their numbers of bytes.
    let (mut row, mut longest) = ((0..0, 0), (0..0, 0));
    let mut width = 0;
    let mut at = 0;
    while at < line.len() {
        let begins = at == 0 || !line[at - 1].is_ascii_alphanumeric();
        let digits = at + if line[at..].starts_with(b"0x") { 2 } else { 0 };
        let length = line[digits..].iter().take(17).take_while(|byte| is_hex(byte)).count();
        let end = digits + length;
        let is_group = begins
            && matches!(length, 2 | 4 | 8 | 16)
            && !line.get(end).is_some_and(u8::is_ascii_alphanumeric);
        // The offset at the beginning of a line.
        let is_offset = length >= 4 && line.get(end) == Some(&b':') && line.get(end + 1) == Some(&b' ');
        // Two blanks precede the column of characters, and in some dumps follow the first eight bytes.
        let is_wide_gap = line[..at].ends_with(b"  ");
        let continues = match is_wide_gap {
            true => length == width && row.1 == 8,
            false => length == width || length < width && row.1 > 0,
        };
        if is_group && !is_offset {
            match continues {
                true => row = (row.0.start..end, row.1 + length / 2),
                false => row = (at..end, length / 2),
            }
            width = length;
            if row.1 > longest.1 {
                longest = row.clone();
            }
            at = end + line[end..].iter().take(3).take_while(|byte| is_gap(byte)).count();
            continue;
        }
        (row, width) = ((0..0, 0), 0);
        // Skips the rest of the word.
        at += line[at..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count().max(1);
    }
    let mut at = longest.0.start;
    while at < longest.0.end {
        if line[at..].starts_with(b"0x") {
            at += 2;
        }
        match (line.get(at), line.get(at + 1)) {
            (Some(first), Some(second)) if is_hex(first) && is_hex(second) => {
                dump.places.push(line_start + at);
                dump.bytes.push(hex_value(*first) << 4 | hex_value(*second));
                at += 2;
            }
            _ => at += 1,
        }
    }
}

/// Returns the end of a run that is wrapped into lines of equal length, as base64 often is.
fn wrapped_end(bytes: &[u8], start: usize, end: usize) -> usize {
    let width = end - start;
    let mut end = end;
    if !(60..=80).contains(&width) {
        return end;
    }
    while bytes.get(end) == Some(&b'\n') {
        let rest = &bytes[end + 1..];
        let next = rest.iter().take(width + 1).take_while(|byte| DIGITS[usize::from(**byte)] != NONE).count();
        if next == 0 || next > width {
            break;
        }
        end += 1 + next;
        if next < width {
            break;
        }
    }
    end
}

/// Decodes a run, if the result is readable.
fn decode(run: &[u8]) -> Option<String> {
    // Most runs are not, which their beginning shows.
    let is_text = |decode: fn(&[u8]) -> Vec<u8>| {
        let head = decode(&run[..run.len().min(2 * READABLE)]);
        head.len() >= READABLE && is_readable(&head[..READABLE])
    };
    let is_hex = run.iter().all(u8::is_ascii_hexdigit) && is_text(hex_bytes);
    let decode = if is_hex { hex_bytes } else { base64_bytes };
    is_text(decode).then(|| readable(decode(run))).flatten()
}

/// Decodes digits of base64, of the standard and the URL-safe alphabet. Skips other bytes.
fn base64_bytes(digits: &[u8]) -> Vec<u8> {
    let digits = digits.iter().map(|byte| DIGITS[usize::from(*byte)]).filter(|digit| *digit != NONE);
    let digits: Vec<u8> = digits.collect();
    let groups = digits.chunks(4).flat_map(|group| {
        let bits = group.iter().enumerate().map(|(n, digit)| u32::from(*digit) << (18 - 6 * n)).sum::<u32>();
        bits.to_be_bytes().into_iter().skip(1).take(group.len() * 3 / 4)
    });
    groups.collect()
}

fn hex_bytes(digits: &[u8]) -> Vec<u8> {
    digits.chunks_exact(2).map(|pair| hex_value(pair[0]) << 4 | hex_value(pair[1])).collect()
}

fn is_readable(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t'))
}

/// Returns the valid UTF-8 prefix, if the first bytes are readable.
fn readable(mut bytes: Vec<u8>) -> Option<String> {
    bytes.truncate(std::str::from_utf8(&bytes).map_or_else(|error| error.valid_up_to(), str::len));
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::{encoded, views};
    use base64::Engine;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

    #[test]
    fn a_view_maps_back_to_the_text() {
        let text = "plain\nab\u{1b}[31mcd\u{1b}[0mef %3Dx\\u0026y\nplain\nz%41";
        let mut seen = Vec::new();
        views(text, |view| {
            for (at, letter) in view.text.char_indices() {
                let origin = view.origin(&(at..at + letter.len_utf8()));
                seen.push(format!("{letter}<{}", &text[origin]));
            }
        });
        let expected = "a<a b<b c<c d<d e<e f<f  <  =<%3D x<x &<\\u0026 y<y z<z A<%41";
        assert_eq!(seen.join(" "), expected);
        views("abcd\u{1b}[1mef", |view| assert_eq!(view.origin(&(2..6)), 2..10));
        views("ab\u{1b}[1mcd", |view| assert_eq!(view.origin(&(0..2)), 0..2));
    }

    #[test]
    fn readable_runs_are_decoded() {
        let secret = "user: ada, pass: loom-and-shuttle";
        let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        let long = secret.repeat(20);
        let wrapped = STANDARD
            .encode(&long)
            .as_bytes()
            .chunks(76)
            .map(|line| String::from_utf8_lossy(line).into_owned())
            .collect::<Vec<_>>();
        for (run, expected) in [
            (STANDARD.encode(secret), secret),
            (URL_SAFE_NO_PAD.encode(secret), secret),
            (hex, secret),
            (wrapped.join("\n"), &*long),
        ] {
            let mut seen = Vec::new();
            let text = format!("x = \"{run}\";");
            encoded(&text, |_| {}, |range, decoded| seen.push((text[range].to_owned(), decoded.to_owned())));
            assert_eq!(seen, [(run, expected.to_owned())]);
        }
        encoded(
            "a-rather-long-name_of_something/that/is/no/base64 and 3f786850e387550fdab836ed7e6dc881de23001b",
            |_| {},
            |range, _| panic!("{range:?}"),
        );
    }

    #[test]
    fn every_window_of_wrapped_base64_is_decoded() {
        let long = "user: ada, pass: loom-and-shuttle\n".repeat(4_000);
        let run = STANDARD.encode(&long);
        for width in [60, 61, 64, 76] {
            let lines = run.as_bytes().chunks(width).map(String::from_utf8_lossy);
            let text = lines.collect::<Vec<_>>().join("\n");
            let mut at = 0;
            encoded(
                &text,
                |_| {},
                |range, decoded| {
                    assert!(range.start <= at && long.contains(decoded), "width {width}: {range:?}");
                    at = range.end;
                },
            );
            assert_eq!(at, text.len(), "width {width}");
        }
    }
}
