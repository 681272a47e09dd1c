//! Numbers and texts as bytes, for caches that only the same build reads.
//!
//! Every method of [`ByteReader`] returns `None` if the bytes are damaged.

/// Writes a number in groups of seven bits, the lowest first.
pub fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Writes a number with its sign in the lowest bit.
pub fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_number(out, ((number << 1) ^ (number >> 63)) as u64);
}

/// Writes the length of a text and the text.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    put_number(out, text.len() as u64);
    out.extend(text.as_bytes());
}

/// The bytes that are not read yet.
#[derive(Clone, Copy, Debug)]
pub struct ByteReader<'a>(pub &'a [u8]);

impl<'a> ByteReader<'a> {
    /// Reads one byte.
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// Reads a number.
    pub fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// Reads a number of at most 32 bits.
    pub fn small(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    /// Reads a number with a sign.
    pub fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Reads four bytes as a number.
    pub fn word(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*word))
    }

    /// Reads a text.
    pub fn text(&mut self) -> Option<String> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(std::str::from_utf8(text).ok()?.to_owned())
    }

    /// Reads whether there is a text, and the text.
    pub fn optional_text(&mut self) -> Option<Option<String>> {
        let is_some = self.number()? != 0;
        Some(Some(self.text()?).filter(|_| is_some))
    }
}
