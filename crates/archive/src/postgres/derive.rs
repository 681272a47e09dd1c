//! Derives messages, tool calls and the figures of model calls from lines.

use threadline_entry::{Entry, Kind, LineBlock, LogLine, Position, parse_line, value};
use threadline_search::index_text;
use threadline_usage::{LogSource, ScanOptions, ScannedLog, StoredCall, UsageScan};

use crate::error::ArchiveError;
use crate::postgres::connection::DatabaseResult as _;
use crate::postgres::copy_format::CopyRows;

/// The tables with derived rows, and their columns. The first two columns are the file and the line.
pub(super) const DERIVED: [(&str, &str); 4] = [
    ("messages", "file, line, at, type, uuid, parent_uuid, message_id, model, text"),
    ("tool_calls", "file, line, at, id, name"),
    ("tool_results", "file, line, at, id, is_error"),
    (
        "usage",
        "file, line, seq, key, at, model, branch, input_tokens, output_tokens, cache_read_tokens, \
         cache_write_5m_tokens, cache_write_1h_tokens, web_searches, figures_origin, owner_origin, flags, \
         can_be_summed",
    ),
];

/// Rows to be copied into the tables.
pub(super) struct RowBuffers {
    /// Whether the user is subject to row-level security.
    pub(super) is_limited: bool,
    pub(super) lines: CopyRows,
    pub(super) chunks: CopyRows,
    messages: CopyRows,
    tool_calls: CopyRows,
    tool_results: CopyRows,
    usage: CopyRows,
}

impl RowBuffers {
    pub(super) fn new(is_limited: bool) -> Self {
        Self {
            is_limited,
            lines: CopyRows::new(),
            chunks: CopyRows::new(),
            messages: CopyRows::new(),
            tool_calls: CopyRows::new(),
            tool_results: CopyRows::new(),
            usage: CopyRows::new(),
        }
    }

    /// Returns the number of bytes in all rows.
    pub(super) fn size(&self) -> usize {
        let all =
            [&self.lines, &self.chunks, &self.messages, &self.tool_calls, &self.tool_results, &self.usage];
        all.iter().map(|rows| rows.len()).sum()
    }

    /// Sends the rows to the database, and empties the buffers.
    pub(super) fn flush(&mut self, transaction: &mut postgres::Transaction<'_>) -> Result<(), ArchiveError> {
        let full = std::mem::replace(self, Self::new(self.is_limited));
        let own = [("lines", "file, at, line, content"), ("chunks", "file, at, content")];
        let derived = [full.messages, full.tool_calls, full.tool_results, full.usage];
        let tables = own.into_iter().chain(DERIVED).zip([full.lines, full.chunks].into_iter().chain(derived));
        for ((table, columns), rows) in tables {
            if !rows.is_empty() {
                copy_in(transaction, table, columns, rows, self.is_limited)?;
            }
        }
        Ok(())
    }

    /// Adds the rows of model calls. Returns their sum.
    pub(super) fn add_calls(&mut self, file: i64, line: i64, scanned: &ScannedLog) -> i64 {
        let mut sum = 0_i64;
        for (seq, call) in (0..).zip(scanned.calls()) {
            sum = sum.wrapping_add(self.add_call(file, line, seq, &call));
        }
        sum
    }

    fn add_call(&mut self, file: i64, line: i64, seq: i32, call: &StoredCall<'_>) -> i64 {
        let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let tokens = &call.tokens;
        let rows = self.usage.row(17).number(file).number(line).int(seq).bytes(&call.key).optional(call.at);
        rows.text(call.model).text(call.branch).number(whole(tokens.input)).number(whole(tokens.output));
        rows.number(whole(tokens.cache_read)).number(whole(tokens.cache_write_5m));
        rows.number(whole(tokens.cache_write_1h)).number(call.web_searches.into());
        call.marks.iter().for_each(|mark| {
            rows.int((*mark).into());
        });
        rows.flag(call.can_be_summed());
        rows.sum()
    }

    /// Adds the rows of a line. Returns their sum and the time of the line.
    pub(super) fn add_line(&mut self, file: i64, line_no: i64, line: &LogLine<'_>) -> (i64, Option<i64>) {
        let (mut sum, mut last_at) = (0_i64, None);
        parse_line(line, |entry, _| {
            if entry.kind() == Kind::Bad {
                return;
            }
            let at = entry.timestamp();
            last_at = at.or(last_at);
            sum = sum.wrapping_add(self.add_message(file, line_no, at, &entry));
            if matches!(entry.kind(), Kind::User | Kind::Assistant) {
                sum = sum.wrapping_add(self.add_tool_rows(file, line_no, last_at, &entry));
            }
        });
        (sum, last_at)
    }

    /// Adds the calls and results of an entry. Returns the sum of their rows.
    fn add_tool_rows(&mut self, file: i64, line_no: i64, at: Option<i64>, entry: &Entry) -> i64 {
        let mut sum = 0_i64;
        for block in entry.message().into_iter().flat_map(|message| message.blocks()) {
            let Some(id) = block.id().or_else(|| block.tool_use_id()) else { continue };
            let is_call = block.kind().is_some_and(|kind| value::is_call(kind.as_bytes()));
            if let Some(name) = block.name().filter(|_| is_call) {
                let rows = self.tool_calls.row(5).number(file).number(line_no).optional(at);
                rows.text(&id).text(&name);
                sum = sum.wrapping_add(rows.sum());
            } else if block.is(value::TOOL_RESULT) {
                let rows = self.tool_results.row(5).number(file).number(line_no).optional(at);
                rows.text(&id).flag(block.is_error().unwrap_or(false));
                sum = sum.wrapping_add(rows.sum());
            }
        }
        sum
    }

    fn add_message(&mut self, file: i64, line_no: i64, at: Option<i64>, entry: &Entry) -> i64 {
        let text = index_text(entry);
        let uuid = entry.uuid();
        if text.is_none() && uuid.is_none() {
            return 0;
        }
        let message = entry.message();
        let (id, model) =
            (message.and_then(|message| message.id()), message.and_then(|message| message.model()));
        let rows = self.messages.row(9).number(file).number(line_no).optional(at);
        rows.optional_text(entry.type_name().as_deref()).optional_text(uuid.as_deref());
        rows.optional_text(entry.parent_uuid().as_deref()).optional_text(id.as_deref());
        rows.optional_text(model.as_deref()).optional_text(text.as_deref());
        rows.sum()
    }
}

/// Copies rows into a table.
pub(super) fn copy_in(
    transaction: &mut postgres::Transaction<'_>,
    table: &str,
    columns: &str,
    rows: CopyRows,
    is_limited: bool,
) -> Result<(), ArchiveError> {
    use std::io::Write as _;
    // Rows cannot be copied directly into a table with row-level security, unless the user is its owner.
    let target = if is_limited { format!("pg_temp.new_{table}") } else { format!("threadline.{table}") };
    if is_limited {
        let create = format!(
            "create temp table if not exists new_{table} on commit drop as
             select {columns} from threadline.{table} with no data"
        );
        transaction.batch_execute(&create).action("write to")?;
    }
    let copy = format!("copy {target} ({columns}) from stdin (format binary)");
    let mut writer = transaction.copy_in(&copy).action("write to")?;
    writer.write_all(&rows.finish()).map_err(|error| lost(&error))?;
    writer.finish().action("write to")?;
    if is_limited {
        let insert = format!(
            "insert into threadline.{table} ({columns}) select {columns} from {target}; truncate {target}"
        );
        transaction.batch_execute(&insert).action("write to")?;
    }
    Ok(())
}

/// Converts an error of a stream of rows.
pub(super) fn lost(error: &std::io::Error) -> ArchiveError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<postgres::Error>());
    match inner {
        Some(error) => crate::postgres::connection::database("copy rows of", error),
        None => {
            ArchiveError::Database { action: "copy rows of", reason: error.to_string(), is_conflict: false }
        }
    }
}

/// Scans the model calls of a log.
pub(super) struct CallScan {
    scan: UsageScan,
}

impl CallScan {
    pub(super) fn new(source: LogSource) -> Self {
        Self { scan: UsageScan::new(source, ScanOptions::default()) }
    }

    /// Scans whole lines.
    pub(super) fn lines(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.scan.block(&LineBlock { bytes, at: Position::START });
        }
    }

    pub(super) fn finish(self) -> ScannedLog {
        self.scan.finish()
    }
}
