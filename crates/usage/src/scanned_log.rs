//! The calls of a scanned log as bytes, for a cache.

use std::collections::BTreeSet;

use threadline_entry::Millis;

use crate::byte_codec::{ByteReader, put_number, put_signed, put_text};
use crate::call_key::CallKey;
use crate::figures::TokenCounts;
use crate::name_table::NameTable;
use crate::reconcile::CostAccount;
use crate::scan::{CallRow, LogSource, ScannedLog, ToolUse};
use crate::stored::origin;

impl ScannedLog {
    /// Appends the calls, their tools and Claude Code's own totals to `out`. Records and limits are not
    /// written.
    ///
    /// The format is that of this build. A cache must not be read by another one.
    pub fn write(&self, out: &mut Vec<u8>) {
        for text in [&self.source.session, &self.cwd] {
            put_number(out, u64::from(text.is_some()));
            put_text(out, text.as_deref().unwrap_or_default());
        }
        put_number(out, self.origins.len() as u64);
        self.origins.iter().for_each(|origin| put_text(out, origin));
        put_number(out, u64::from(self.first_at.is_some()));
        put_signed(out, self.first_at.unwrap_or_default());
        put_number(out, self.names.iter().count() as u64);
        self.names.iter().for_each(|name| put_text(out, name));
        put_number(out, self.rows.len() as u64);
        let mut last_at = 0;
        for (key, row) in &self.rows {
            key.words().iter().for_each(|word| out.extend(word.to_le_bytes()));
            // Times are close to each other.
            put_signed(out, row.at.wrapping_sub(last_at));
            last_at = row.at;
            let TokenCounts { input, output, cache_read, cache_write_5m, cache_write_1h } = row.tokens;
            let numbers =
                [input, output, cache_read, cache_write_5m, cache_write_1h, row.web_searches.into()];
            let names = [row.model.into(), row.branch.into()];
            numbers.into_iter().chain(names).for_each(|number| put_number(out, number));
            out.extend([row.figures_origin as u8, row.owner_origin as u8, row.flags]);
        }
        put_number(out, self.tools.len() as u64);
        for tool in &self.tools {
            put_number(out, tool.row.into());
            out.extend(tool.id.to_le_bytes());
            put_number(out, tool.name.into());
        }
        put_number(out, self.n_broken);
        put_number(out, u64::from(self.ends_in_incomplete_line));
        put_number(out, u64::from(self.account.is_some()));
        self.account.iter().for_each(|account| account.write(out));
    }

    /// Reads the bytes that [`ScannedLog::write`] wrote for the log with this source. Returns `None` if they
    /// are damaged.
    pub fn read(source: LogSource, bytes: &[u8]) -> Option<Self> {
        let mut rest = ByteReader(bytes);
        let [session, cwd] = [rest.optional_text()?, rest.optional_text()?];
        let mut origins = BTreeSet::new();
        for _ in 0..rest.number()? {
            origins.insert(rest.text()?);
        }
        let has_first = rest.number()? != 0;
        let first_at = Some(rest.signed()?).filter(|_| has_first);
        let mut names = NameTable::default();
        let n_names = rest.small()?;
        for position in 0..n_names {
            // Names are distinct, so each gets its old index.
            (names.id(&rest.text()?) == position).then_some(())?;
        }
        let mut rows = Vec::new();
        let mut at: Millis = 0;
        for _ in 0..rest.number()? {
            let key = CallKey::from_words([rest.word()?, rest.word()?, rest.word()?]);
            at = at.wrapping_add(rest.signed()?);
            let tokens = TokenCounts {
                input: rest.number()?,
                output: rest.number()?,
                cache_read: rest.number()?,
                cache_write_5m: rest.number()?,
                cache_write_1h: rest.number()?,
            };
            let [web_searches, model, branch] = [rest.small()?, rest.small()?, rest.small()?];
            let [figures_origin, owner_origin] = [origin(rest.byte()?)?, origin(rest.byte()?)?];
            let flags = rest.byte()?;
            (model < n_names && branch < n_names).then_some(())?;
            let row = CallRow {
                at,
                tokens,
                web_searches,
                model,
                branch,
                file: 0,
                figures_origin,
                owner_origin,
                flags,
            };
            rows.push((key, row));
        }
        let mut tools = Vec::new();
        for _ in 0..rest.number()? {
            let row = rest.small()?;
            let id = u64::from(rest.word()?) | u64::from(rest.word()?) << 32;
            let name = rest.small()?;
            ((row as usize) < rows.len() && name < n_names).then_some(())?;
            tools.push(ToolUse { row, id, name });
        }
        let (n_broken, ends_in_incomplete_line) = (rest.number()?, rest.number()? != 0);
        let account = match rest.number()? {
            0 => None,
            _ => Some(CostAccount::read(&mut rest)?),
        };
        let source = LogSource { session: source.session.or(session), ..source };
        rest.0.is_empty().then(|| Self {
            source,
            first_at,
            cwd,
            origins,
            names,
            rows,
            tools,
            account,
            n_broken,
            ends_in_incomplete_line,
            ..Self::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use threadline_entry::LineReader;
    use threadline_testkit::{samples, shared_logs};

    use super::*;
    use crate::scan::{ScanOptions, UsageScan};

    fn scanned(log: &[u8]) -> ScannedLog {
        let options = ScanOptions { tools: true, ..ScanOptions::default() };
        let mut scan = UsageScan::new(LogSource::default(), options);
        let mut lines = LineReader::new(log);
        while let Some(block) = lines.next_block().unwrap() {
            scan.block(&block);
        }
        scan.finish()
    }

    #[test]
    fn calls_survive_the_cache() {
        let real = shared_logs().into_iter().map(|path| std::fs::read(path).unwrap());
        for log in samples().into_iter().map(|sample| sample.log).chain(real) {
            let scanned = scanned(&log);
            let mut bytes = Vec::new();
            scanned.write(&mut bytes);
            let read = ScannedLog::read(LogSource::default(), &bytes).unwrap();
            assert_eq!(format!("{:?}", read.rows), format!("{:?}", scanned.rows));
            assert_eq!(read.tools, scanned.tools);
            assert_eq!(
                (read.first_at, read.cwd, read.origins, read.source),
                (scanned.first_at, scanned.cwd, scanned.origins, scanned.source)
            );
            assert!(read.names.iter().eq(scanned.names.iter()));
        }
    }

    #[test]
    fn damaged_bytes_are_not_read() {
        let mut bytes = Vec::new();
        scanned(&samples()[0].log).write(&mut bytes);
        for length in 0..bytes.len() {
            assert!(ScannedLog::read(LogSource::default(), &bytes[..length]).is_none());
        }
        bytes.push(0);
        assert!(ScannedLog::read(LogSource::default(), &bytes).is_none());
    }
}
