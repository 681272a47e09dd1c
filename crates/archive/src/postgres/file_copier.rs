//! Copies the content of files into the tables, within a transaction.

use std::collections::BTreeSet;
use std::io::{self, Cursor, Read, Seek};
use std::path::Path;

use memchr::memchr_iter;
use postgres::Transaction;
use sha2::{Digest, Sha256};
use threadline_app::MAX_LINE;
use threadline_entry::{Ending, LineReader, LogLine, Position};
use threadline_store::open_regular;
use threadline_usage::{LogSource, LogStart};

use crate::digest::hex_digits;
use crate::error::ArchiveError;
use crate::level::PrivacyLevel;
use crate::postgres::connection::DatabaseResult as _;
use crate::postgres::copy_format::CopyRows;
use crate::postgres::derive::{CallScan, DERIVED, RowBuffers, copy_in};
use crate::postgres::line_batch::{LineBatch, LineSplitter};
use crate::postgres::stored_file::{COLUMNS, StoredFile};

/// Rows are sent when they have this size.
const FLUSH_SIZE: usize = 4 << 20;

/// The start time and directory of a log are in its first lines.
const HEAD_LINES: i64 = 64;

/// Copies files within a transaction.
pub(super) struct FileCopier<'t, 'c> {
    transaction: &'t mut Transaction<'c>,
    home_id: i64,
    pub(super) buffers: RowBuffers,
    /// The new rows of files, and those that replace others.
    pub(super) rows: Vec<StoredFile>,
    /// Earlier versions that are kept.
    retired: Vec<StoredFile>,
}

/// The content of a file, which can be read more than once.
pub(super) enum Content<'p> {
    File(&'p Path),
    Bytes(Vec<u8>),
}

pub(super) trait ReadSeek: Read + Seek {}
impl<T: Read + Seek> ReadSeek for T {}

impl Content<'_> {
    pub(super) fn open(&self) -> io::Result<Box<dyn ReadSeek + '_>> {
        Ok(match self {
            Self::File(path) => Box::new(open_regular(path)?),
            Self::Bytes(bytes) => Box::new(Cursor::new(bytes)),
        })
    }
}

impl<'t, 'c> FileCopier<'t, 'c> {
    pub(super) fn new(transaction: &'t mut Transaction<'c>, home_id: i64) -> Result<Self, ArchiveError> {
        let is_limited = "select row_security_active('threadline.lines')";
        let is_limited: bool = transaction.query_one(is_limited, &[]).action("read")?.get(0);
        let buffers = RowBuffers::new(is_limited);
        Ok(Self { transaction, home_id, buffers, rows: Vec::new(), retired: Vec::new() })
    }

    /// Copies the content from the end of the last whole line on. `tail` was read already.
    pub(super) fn content(
        &mut self,
        row: &mut StoredFile,
        tail: Vec<u8>,
        content: &Content<'_>,
        source: Option<LogSource>,
        mut reader: HashReader<'_>,
    ) -> Result<(), ArchiveError> {
        if !row.name.ends_with(".jsonl") {
            return self.chunks(row, &mut reader);
        }
        if row.tail_at < row.size {
            self.delete_tail(row)?;
        }
        let first_line = row.n_lines + 1;
        row.row_sum = row.row_sum.wrapping_sub(row.tail_sum);
        (row.tail_sum, row.is_torn) = (0, false);
        let mut scan = source.clone().map(CallScan::new);
        let mut at = row.tail_at;
        let (mut part_length, mut has_tail) = (0, false);
        let mut splitter = LineSplitter::new(tail, reader);
        while let Some(batch) = splitter.next()? {
            match batch {
                LineBatch::Lines(bytes) => {
                    if let Some(scan) = &mut scan {
                        scan.lines(bytes);
                    }
                    let mut start = 0;
                    for newline in memchr_iter(b'\n', bytes) {
                        let line = &bytes[start..=newline];
                        let sum = self.line(row, at, line, Ending::Newline, scan.is_some());
                        row.row_sum = row.row_sum.wrapping_add(sum);
                        row.n_lines += 1;
                        at += length(line);
                        start = newline + 1;
                    }
                    row.tail_at = at;
                }
                LineBatch::LongLine(bytes, ends) => {
                    self.buffers.lines.row(4).number(row.id).number(at).number(row.n_lines + 1).bytes(bytes);
                    at += length(bytes);
                    part_length += length(bytes);
                    row.longest_line = row.longest_line.max(part_length);
                    if ends {
                        row.n_lines += 1;
                        row.tail_at = at;
                        part_length = 0;
                    }
                }
                LineBatch::Tail(bytes) => {
                    let mut sum = self.line(row, at, bytes, Ending::None, scan.is_some());
                    if let Some(source) = &source {
                        let mut scan = CallScan::new(source.clone());
                        scan.lines(bytes);
                        let scanned = scan.finish();
                        row.is_torn = scanned.start().ends_in_incomplete_line;
                        sum = sum.wrapping_add(self.buffers.add_calls(row.id, row.n_lines + 1, &scanned));
                        has_tail = true;
                    }
                    row.tail_sum = sum;
                    row.row_sum = row.row_sum.wrapping_add(sum);
                    at += length(bytes);
                }
            }
            if self.buffers.size() > FLUSH_SIZE {
                self.buffers.flush(self.transaction)?;
            }
        }
        row.size = at;
        if let Some(scan) = scan {
            let scanned = scan.finish();
            let sum = self.buffers.add_calls(row.id, first_line, &scanned);
            row.row_sum = row.row_sum.wrapping_add(sum);
            row.n_invalid += i64::try_from(scanned.start().n_invalid_lines).unwrap_or(0);
            match (first_line, source) {
                (1, _) if !has_tail => set_start(row, scanned.start()),
                (..=HEAD_LINES, Some(source)) => set_start(row, read_head(content, source)?),
                _ => {}
            }
        }
        Ok(())
    }

    /// Adds a line and, for a log, the rows derived from it. Returns the sum of the derived rows.
    fn line(&mut self, row: &mut StoredFile, at: i64, line: &[u8], ending: Ending, is_log: bool) -> i64 {
        let line_no = row.n_lines + 1;
        row.longest_line = row.longest_line.max(length(line));
        self.buffers.lines.row(4).number(row.id).number(at).number(line_no).bytes(line);
        if !is_log {
            return 0;
        }
        let bytes = line.strip_suffix(b"\n").unwrap_or(line);
        let line = LogLine { bytes, ending, at: Position::START };
        let (sum, last_at) = self.buffers.add_line(row.id, line_no, &line);
        row.last_at = last_at.or(row.last_at);
        sum
    }

    /// Copies a file that does not consist of lines.
    fn chunks(&mut self, row: &mut StoredFile, reader: &mut HashReader<'_>) -> Result<(), ArchiveError> {
        let mut buffer = vec![0; CHUNK_SIZE];
        loop {
            let n_read = reader.read(&mut buffer)?;
            if n_read == 0 {
                break;
            }
            self.buffers.chunks.row(3).number(row.id).number(row.size).bytes(&buffer[..n_read]);
            row.size += length(&buffer[..n_read]);
            if self.buffers.size() > FLUSH_SIZE {
                self.buffers.flush(self.transaction)?;
            }
        }
        row.tail_at = row.size;
        Ok(())
    }

    /// Deletes the rows of an incomplete last line, which is copied again as a whole.
    fn delete_tail(&mut self, row: &StoredFile) -> Result<(), ArchiveError> {
        let lines = "delete from threadline.lines where file = $1 and at >= $2";
        self.transaction.execute(lines, &[&row.id, &row.tail_at]).action("write to")?;
        for (table, _) in DERIVED {
            let delete = format!("delete from threadline.{table} where file = $1 and line > $2");
            self.transaction.execute(&delete, &[&row.id, &row.n_lines]).action("write to")?;
        }
        Ok(())
    }

    /// Keeps the earlier version of a file that was rewritten, or deletes it if it may contain texts that the
    /// level leaves out.
    pub(super) fn retire(&mut self, known: &StoredFile, new: &StoredFile) -> Result<(), ArchiveError> {
        if known.level == new.level && new.level == PrivacyLevel::Full {
            delete_rows(self.transaction, &[known.id], false)?;
            self.retired.push(StoredFile { row_sum: 0, tail_sum: 0, ..known.clone() });
            return Ok(());
        }
        let all = "delete from threadline.files where home = $1 and name = $2 and id <> $3 returning id";
        let deleted = self.transaction.query(all, &[&known.home, &known.name, &new.id]).action("write to")?;
        let ids: Vec<i64> = deleted.iter().map(|row| row.get(0)).collect();
        delete_rows(self.transaction, &ids, true)
    }

    /// Writes rows of files: of current versions and of others.
    pub(super) fn write_files(
        &mut self,
        current: &[StoredFile],
        others: &[StoredFile],
    ) -> Result<(), ArchiveError> {
        let mut rows = CopyRows::new();
        others.iter().for_each(|row| row.write(&mut rows, false));
        current.iter().for_each(|row| row.write(&mut rows, true));
        let columns = format!("{COLUMNS}, checksum, is_current");
        copy_in(self.transaction, "files", &columns, rows, self.buffers.is_limited)
    }

    /// Writes the rows that are left, and those of the files. Returns the ids of these.
    pub(super) fn finish(mut self) -> Result<Vec<i64>, ArchiveError> {
        self.buffers.flush(self.transaction)?;
        let ids: Vec<i64> = self.rows.iter().map(|row| row.id).collect();
        let replaced: Vec<i64> = ids.iter().copied().chain(self.retired.iter().map(|row| row.id)).collect();
        let delete = "delete from threadline.files where id = any ($1)";
        self.transaction.execute(delete, &[&replaced]).action("write to")?;
        let (rows, retired) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.retired));
        self.write_files(&rows, &retired)?;
        let sessions: BTreeSet<&str> = rows.iter().filter_map(|row| row.session.as_deref()).collect();
        let sessions: Vec<&str> = sessions.into_iter().collect();
        self.transaction.execute(SESSIONS, &[&self.home_id, &sessions]).action("write to")?;
        Ok(ids)
    }
}

/// Files that do not consist of lines are stored in rows of this size.
const CHUNK_SIZE: usize = 256 << 10;

/// Updates the rows of some sessions from those of their files.
const SESSIONS: &str = "insert into threadline.sessions (home, id, folder, cwd, level, first_at, last_at, n_files, size)
    select home, session, max(folder) filter (where is_own), max(cwd) filter (where is_own),
        max(level) filter (where is_own), min(first_at), max(last_at), count(*), sum(size)
    from (
        select *, is_log and agent is null as is_own from threadline.files
        where home = $1 and session = any ($2) and is_current
    ) f
    group by home, session
    on conflict (home, id) do update set folder = excluded.folder, cwd = excluded.cwd, level = excluded.level,
        first_at = excluded.first_at, last_at = excluded.last_at, n_files = excluded.n_files, size = excluded.size";

/// Deletes the rows that were derived from some files, and with `content` also their lines and chunks.
pub(super) fn delete_rows(
    transaction: &mut Transaction<'_>,
    ids: &[i64],
    content: bool,
) -> Result<(), ArchiveError> {
    let own = ["lines", "chunks", "entry_ids"].into_iter().filter(|_| content);
    for table in own.chain(DERIVED.map(|(table, _)| table)) {
        let delete = format!("delete from threadline.{table} where file = any ($1)");
        transaction.execute(&delete, &[&ids]).action("write to")?;
    }
    Ok(())
}

/// Reads the part of a file that is archived. Returns the bytes of its incomplete last line if it is the
/// same, and `None` if the file was rewritten.
pub(super) fn read_start(
    reader: &mut dyn ReadSeek,
    known: &StoredFile,
    hash: &mut Sha256,
) -> io::Result<Option<Vec<u8>>> {
    const BUFFER: usize = 256 << 10;
    let mut buffer = vec![0; BUFFER];
    let mut tail = Vec::new();
    let mut at = 0;
    while at < known.size {
        let wanted = buffer.len().min(usize::try_from(known.size - at).unwrap_or(usize::MAX));
        let n_read = reader.read(&mut buffer[..wanted])?;
        if n_read == 0 {
            return Ok(None);
        }
        let read = &buffer[..n_read];
        hash.update(read);
        let skipped = usize::try_from(known.tail_at - at).unwrap_or(0);
        tail.extend(read.get(skipped..).unwrap_or_default());
        at += length(read);
    }
    Ok((hex_digits(hash.clone()) == known.digest).then_some(tail))
}

/// Returns the start of a log, from its first lines.
fn read_head(content: &Content<'_>, source: LogSource) -> Result<LogStart, ArchiveError> {
    let mut scan = CallScan::new(source);
    let mut lines = LineReader::new(content.open()?).skip_longer_than(MAX_LINE);
    let mut n_lines = 0;
    while n_lines < HEAD_LINES
        && let Some(block) = lines.next_block()?
    {
        n_lines += i64::try_from(memchr_iter(b'\n', block.bytes).count()).unwrap_or(i64::MAX);
        scan.lines(block.bytes);
    }
    Ok(scan.finish().start())
}

/// Sets the facts about a log.
fn set_start(row: &mut StoredFile, start: LogStart) {
    let LogStart { source, first_at, cwd, .. } = start;
    row.is_log = true;
    row.first_at = first_at;
    row.cwd = cwd;
    row.log_session = source.session;
    row.folder = source.folder;
    row.agent = source.agent.map(|(id, _)| id);
}

fn length(bytes: &[u8]) -> i64 {
    i64::try_from(bytes.len()).unwrap_or(i64::MAX)
}

/// A reader that computes a digest.
pub(super) struct HashReader<'a> {
    pub(super) reader: Box<dyn ReadSeek + 'a>,
    pub(super) hash: &'a mut Sha256,
    pub(super) progress: Option<&'a (dyn Fn(u64) + Sync)>,
}

impl Read for HashReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_read = self.reader.read(buffer)?;
        self.hash.update(&buffer[..n_read]);
        if let Some(progress) = self.progress {
            progress(n_read as u64);
        }
        Ok(n_read)
    }
}
