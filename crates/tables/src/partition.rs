//! Writes the rows of one table and day into a Parquet file.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use threadline_usage::Money;

use crate::schema::TableKind;

/// A value of a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TableCell {
    Null,
    Boolean(bool),
    Integer(i64),
    Text(String),
    Amount(Money),
}

impl TableCell {
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    fn size(&self) -> usize {
        size_of::<Self>() + if let Self::Text(text) = self { text.len() } else { 0 }
    }
}

impl<T: Into<Self>> From<Option<T>> for TableCell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl From<String> for TableCell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for TableCell {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<i64> for TableCell {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<u64> for TableCell {
    fn from(value: u64) -> Self {
        Self::Integer(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<usize> for TableCell {
    fn from(value: usize) -> Self {
        Self::Integer(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<Money> for TableCell {
    fn from(value: Money) -> Self {
        Self::Amount(value)
    }
}

/// The values of one row, in the order of the columns.
pub(crate) type TableRow = Vec<TableCell>;

/// The file of one table and day. Rows are kept in memory until [`PartitionFile::flush`].
pub(crate) struct PartitionFile {
    path: PathBuf,
    writer: SerializedFileWriter<AppendFile>,
    rows: Vec<TableRow>,
    pub(crate) buffered: usize,
    pub(crate) n_rows: u64,
}

impl PartitionFile {
    pub(crate) fn create(table: TableKind, path: &Path) -> Result<Self> {
        const LEVEL: i32 = 6;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(LEVEL)?))
            // Files of the same rows are the same, whichever version wrote them.
            .set_created_by("threadline".to_owned());
        fs_err::write(path, "")?;
        let file = AppendFile { path: path.to_owned(), buffer: Vec::new() };
        let writer = SerializedFileWriter::new(file, table.parquet_type()?, Arc::new(properties.build()))?;
        Ok(Self { path: path.to_owned(), writer, rows: Vec::new(), buffered: 0, n_rows: 0 })
    }

    pub(crate) fn push(&mut self, row: TableRow) {
        self.buffered += row.iter().map(TableCell::size).sum::<usize>();
        self.n_rows += 1;
        self.rows.push(row);
    }

    /// Writes the rows in memory as one row group.
    pub(crate) fn flush(&mut self) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.rows);
        self.buffered = 0;
        let mut group = self.writer.next_row_group()?;
        let mut column = 0;
        while let Some(mut writer) = group.next_column()? {
            write_column(writer.untyped(), rows.iter().map(|row| &row[column]))?;
            writer.close()?;
            column += 1;
        }
        group.close()?;
        Ok(())
    }

    /// Finishes the file and returns its path.
    pub(crate) fn finish(mut self) -> Result<PathBuf> {
        self.flush()?;
        let mut file = self.writer.into_inner()?;
        file.append()?;
        Ok(self.path)
    }
}

/// Writes the values of a column. A value of another type than the column's is an error.
fn write_column<'r>(
    writer: &mut ColumnWriter<'_>,
    cells: impl Iterator<Item = &'r TableCell> + Clone,
) -> Result<()> {
    let levels: Vec<i16> = cells.clone().map(|cell| i16::from(*cell != TableCell::Null)).collect();
    let present = || cells.clone().filter(|cell| **cell != TableCell::Null);
    let wrong =
        |_: &TableCell| ParquetError::General("the type of a value is not that of its column".to_owned());
    macro_rules! write {
        ($writer:expr, $cell:pat => $value:expr) => {{
            let value = |cell: &TableCell| match cell {
                $cell => Ok($value),
                cell => Err(wrong(cell)),
            };
            let values: Vec<_> = present().map(value).collect::<Result<_>>()?;
            let is_optional = $writer.get_descriptor().max_def_level() > 0;
            $writer.write_batch(&values, is_optional.then_some(&levels), None)?;
        }};
    }
    match writer {
        ColumnWriter::BoolColumnWriter(writer) => write!(writer, TableCell::Boolean(value) => *value),
        ColumnWriter::Int32ColumnWriter(writer) => {
            write!(writer, TableCell::Integer(value) => i32::try_from(*value).unwrap_or(i32::MAX));
        }
        ColumnWriter::Int64ColumnWriter(writer) => write!(writer, TableCell::Integer(value) => *value),
        ColumnWriter::ByteArrayColumnWriter(writer) => {
            write!(writer, TableCell::Text(value) => ByteArray::from(value.as_str()));
        }
        ColumnWriter::FixedLenByteArrayColumnWriter(writer) => {
            write!(writer, TableCell::Amount(value) =>
                FixedLenByteArray::from(ByteArray::from(value.steps().to_be_bytes().to_vec())));
        }
        _ => return Err(ParquetError::General("a column has an unknown type".to_owned())),
    }
    Ok(())
}

/// A file that is open only while it is written, so that there can be many.
struct AppendFile {
    path: PathBuf,
    buffer: Vec<u8>,
}

impl AppendFile {
    fn append(&mut self) -> io::Result<()> {
        fs_err::OpenOptions::new().append(true).open(&self.path)?.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

impl Write for AppendFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        const BUFFER: usize = 256 << 10;
        self.buffer.extend(bytes);
        if self.buffer.len() >= BUFFER {
            self.append()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
