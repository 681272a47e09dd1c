//! The binary format of `COPY`: rows to write and rows that were read.

use std::io::{self, Read};

use sha2::{Digest, Sha256};

const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";

/// The signature is followed by flags and the length of an extension.
const HEADER_LENGTH: usize = SIGNATURE.len() + 8;

/// Rows for one `COPY`.
pub(super) struct CopyRows {
    bytes: Vec<u8>,
    /// Where the current row begins.
    start: usize,
}

impl CopyRows {
    pub(super) fn new() -> Self {
        let mut bytes = Vec::from(SIGNATURE);
        bytes.extend([0; 8]);
        Self { start: bytes.len(), bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.len() == HEADER_LENGTH
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Begins a row.
    pub(super) fn row(&mut self, n_fields: i16) -> &mut Self {
        self.start = self.bytes.len();
        self.bytes.extend(n_fields.to_be_bytes());
        self
    }

    pub(super) fn bytes(&mut self, value: &[u8]) -> &mut Self {
        // A row is far smaller than two gigabytes.
        self.bytes.extend(i32::try_from(value.len()).unwrap_or(i32::MAX).to_be_bytes());
        self.bytes.extend(value);
        self
    }

    pub(super) fn null(&mut self) -> &mut Self {
        self.bytes.extend((-1_i32).to_be_bytes());
        self
    }

    pub(super) fn number(&mut self, value: i64) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    pub(super) fn optional(&mut self, value: Option<i64>) -> &mut Self {
        match value {
            Some(value) => self.number(value),
            None => self.null(),
        }
    }

    pub(super) fn int(&mut self, value: i32) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    pub(super) fn flag(&mut self, value: bool) -> &mut Self {
        self.bytes(&[u8::from(value)])
    }

    /// Adds a text. NUL cannot be stored, and is replaced.
    pub(super) fn text(&mut self, value: &str) -> &mut Self {
        match value.contains('\0') {
            true => self.bytes(value.replace('\0', "\u{fffd}").as_bytes()),
            false => self.bytes(value.as_bytes()),
        }
    }

    pub(super) fn optional_text(&mut self, value: Option<&str>) -> &mut Self {
        match value {
            Some(value) => self.text(value),
            None => self.null(),
        }
    }

    /// Returns the sum of the current row; see [`row_sum`].
    pub(super) fn sum(&self) -> i64 {
        row_sum(&self.bytes[self.start..])
    }

    /// Returns all bytes, with the mark of the end.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.extend((-1_i16).to_be_bytes());
        self.bytes
    }
}

/// Returns a checksum of all bytes of a row. Sums of checksums show whether rows have changed.
pub(super) fn row_sum(row: &[u8]) -> i64 {
    let digest = Sha256::digest(row);
    i64::from_be_bytes(std::array::from_fn(|i| digest[i]))
}

/// Reads rows.
pub(super) struct CopyReader<R> {
    reader: R,
    row: Vec<u8>,
    fields: Vec<Option<(usize, usize)>>,
}

/// A field must be smaller than this.
const MAX_FIELD: usize = 1 << 30;

impl<R: Read> CopyReader<R> {
    pub(super) fn new(mut reader: R) -> io::Result<Self> {
        let mut header = [0; HEADER_LENGTH];
        reader.read_exact(&mut header)?;
        if !header.starts_with(SIGNATURE) {
            return Err(io::Error::other("the server sent rows in an unknown format"));
        }
        Ok(Self { reader, row: Vec::new(), fields: Vec::new() })
    }

    /// Reads the next row. Returns `false` at the end.
    pub(super) fn next_row(&mut self) -> io::Result<bool> {
        self.row.clear();
        self.fields.clear();
        let n_fields = i16::from_be_bytes(self.take()?);
        if n_fields < 0 {
            // Reads the end of the message, so that the connection can be used again.
            io::copy(&mut self.reader, &mut io::sink())?;
            return Ok(false);
        }
        for _ in 0..n_fields {
            let length = i32::from_be_bytes(self.take()?);
            let Ok(length) = usize::try_from(length) else {
                self.fields.push(None);
                continue;
            };
            if length > MAX_FIELD {
                return Err(io::Error::other("the server sent a field that is too large"));
            }
            let start = self.row.len();
            self.row.resize(start + length, 0);
            self.reader.read_exact(&mut self.row[start..])?;
            self.fields.push(Some((start, start + length)));
        }
        Ok(true)
    }

    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes)?;
        self.row.extend(bytes);
        Ok(bytes)
    }

    /// Returns the sum of the current row; see [`row_sum`].
    pub(super) fn sum(&self) -> i64 {
        row_sum(&self.row)
    }

    pub(super) fn bytes(&self, field: usize) -> Option<&[u8]> {
        let (start, end) = (*self.fields.get(field)?)?;
        self.row.get(start..end)
    }

    pub(super) fn number(&self, field: usize) -> Option<i64> {
        match self.bytes(field)? {
            bytes @ [_, _, _, _, ..] if bytes.len() == 8 => Some(i64::from_be_bytes(bytes.try_into().ok()?)),
            bytes => Some(i32::from_be_bytes(bytes.try_into().ok()?).into()),
        }
    }

    pub(super) fn text(&self, field: usize) -> Option<&str> {
        std::str::from_utf8(self.bytes(field)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_as_they_were_written() {
        let mut rows = CopyRows::new();
        assert!(rows.is_empty());
        rows.row(6).number(-5).int(7).flag(true).text("a\0b").null().bytes(b"\xff\0");
        let sum = rows.sum();
        rows.row(1).optional(None);
        let bytes = rows.finish();
        let mut reader = CopyReader::new(&bytes[..]).unwrap();
        assert!(reader.next_row().unwrap());
        assert_eq!(
            (reader.number(0), reader.number(1), reader.text(3)),
            (Some(-5), Some(7), Some("a\u{fffd}b"))
        );
        assert_eq!(
            (reader.bytes(2), reader.bytes(4), reader.bytes(5)),
            (Some(&[1][..]), None, Some(&b"\xff\0"[..]))
        );
        assert_eq!(reader.sum(), sum);
        assert!(reader.next_row().unwrap() && reader.bytes(0).is_none());
        assert!(!reader.next_row().unwrap());
    }
}
