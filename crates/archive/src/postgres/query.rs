//! Search and usage in the database.

use std::collections::{BTreeMap, HashSet};

use postgres::GenericClient;
use postgres::types::ToSql;
use threadline_app::{CallQuery, MAX_LINE, SourceSelection};
use threadline_entry::AgentKind;
use threadline_usage::{
    CallLedger, LogSource, LogStart, ModelCalls, ScannedLog, StoredCall, StoredSum, TokenCounts,
};

use crate::error::ArchiveError;
use crate::postgres::connection::{DatabaseResult as _, PostgresArchive};
use crate::postgres::copy_format::CopyReader;
use crate::postgres::derive::lost;
use crate::postgres::stored_file::{COLUMNS, StoredFile, homes};
use crate::read::OriginFilter;

/// Calls within this time have the same day in every time zone, and the same price.
const SUM_MILLIS: i64 = 15 * 60 * 1000;

/// The last active sessions, which the order of results depends on.
const N_NEWEST: usize = 4;

impl PostgresArchive {
    /// Returns the sessions that may contain all of some texts in one line, as pairs of the folder of the
    /// home and the id. `None` if the texts do not exclude any session.
    pub(crate) fn candidates(
        &self,
        selection: &SourceSelection,
    ) -> Result<Option<HashSet<(String, String)>>, ArchiveError> {
        let Some(texts) = selection.texts.as_ref().filter(|texts| !texts.is_empty()) else {
            return Ok(None);
        };
        self.seal()?;
        let filter = OriginFilter { machine: selection.machine.clone(), user: selection.user.clone() };
        let patterns: Vec<String> = texts.iter().map(|text| like_pattern(text)).collect();
        let conditions: Vec<String> =
            (2..).zip(&patterns).map(|(number, _)| format!("m.text like ${number}")).collect();
        let select = format!(
            "select h.folder, coalesce(f.session, f.log_session) from threadline.files f
             join threadline.homes h on h.id = f.home
             where f.is_current and f.home = any ($1) and f.id in (select m.file from threadline.messages m where {})
             union
             (select h.folder, f.session from threadline.files f join threadline.homes h on h.id = f.home
              where f.is_current and f.home = any ($1) and f.is_log and f.session is not null
              order by coalesce(f.last_at, f.modified) desc limit {N_NEWEST})",
            conditions.join(" and ")
        );
        let rows = self.run(|client| {
            let homes: Vec<i64> = homes(client, &filter)?.iter().map(|home| home.id).collect();
            let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&homes];
            parameters.extend(patterns.iter().map(|pattern| pattern as &(dyn ToSql + Sync)));
            client.query(&select, &parameters).action("search")
        })?;
        let session = |row: &postgres::Row| Some((row.get(0), row.get::<_, Option<String>>(1)?));
        Ok(Some(rows.iter().filter_map(session).collect()))
    }

    /// Counts the model calls of the selected homes. Calls that occur once are added up in the database, the
    /// others by a [`CallLedger`]. Returns `None` if that would not be exact.
    pub(crate) fn model_calls(
        &self,
        selection: &SourceSelection,
        query: &CallQuery,
    ) -> Result<Option<ModelCalls>, ArchiveError> {
        self.seal()?;
        let filter = OriginFilter { machine: selection.machine.clone(), user: selection.user.clone() };
        self.run(|client| {
            let mut transaction = client.transaction().action("read")?;
            mark_all(&mut transaction)?;
            transaction.commit().action("write to")?;
            // Both statements see the same state.
            let transaction =
                client.build_transaction().isolation_level(postgres::IsolationLevel::RepeatableRead);
            let mut transaction = transaction.read_only(true).start().action("read")?;
            let unmarked = "select count(*) from threadline.files where not is_marked and is_current";
            let unmarked: i64 = transaction.query_one(unmarked, &[]).action("read")?.get(0);
            let homes = homes(&mut transaction, &filter)?;
            let folders: BTreeMap<i64, String> =
                homes.iter().map(|home| (home.id, home.origin.folder())).collect();
            let logs =
                format!("select {COLUMNS} from threadline.files where is_current and is_log order by id");
            let mut ledger = ScanSet::default();
            for row in transaction.query(&logs, &[]).action("read")? {
                let file = StoredFile::of(&row)?;
                let Some(folder) = folders.get(&file.home) else { continue };
                if usize::try_from(file.longest_line).unwrap_or(usize::MAX) > MAX_LINE || unmarked > 0 {
                    return Ok(None);
                }
                ledger.add_log(file, folder);
            }
            ledger.read_calls(&mut transaction)?;
            ledger.read_sums(&mut transaction, query)
        })
    }
}

/// Marks the calls of files if their push was interrupted before that.
fn mark_all(client: &mut impl GenericClient) -> Result<(), ArchiveError> {
    let unmarked = "select coalesce(array_agg(id), '{}') from threadline.files where not is_marked";
    let unmarked: Vec<i64> = client.query_one(unmarked, &[]).action("read")?.get(0);
    if !unmarked.is_empty() {
        client.execute("select threadline.mark_shared($1)", &[&unmarked]).action("write to")?;
    }
    Ok(())
}

/// The logs, in the order in which they are added to a ledger.
#[derive(Default)]
struct ScanSet {
    scans: Vec<ScannedLog>,
    places: BTreeMap<i64, usize>,
}

impl ScanSet {
    fn add_log(&mut self, file: StoredFile, folder: &str) {
        let StoredFile { name, log_session, folder: project, agent, first_at, cwd, is_torn, .. } = file;
        let folders: Vec<&str> = name.rsplit('/').skip(2).collect();
        let in_workflow = folders.contains(&"workflows");
        let agent = agent.map(|id| {
            let kind = AgentKind::of(&id, in_workflow);
            (id, kind)
        });
        let path = format!("{folder}/{name}");
        let start = LogStart {
            source: LogSource { path, session: log_session, folder: project, agent },
            first_at,
            cwd,
            n_invalid_lines: u64::try_from(file.n_invalid).unwrap_or(0),
            ends_in_incomplete_line: is_torn,
        };
        self.places.insert(file.id, self.scans.len());
        self.scans.push(ScannedLog::from_start(start));
    }

    /// Reads the calls that cannot be added up by the database.
    fn read_calls(&mut self, client: &mut impl GenericClient) -> Result<(), ArchiveError> {
        let select =
            "copy (select file, key, at, model, branch, input_tokens, output_tokens, cache_read_tokens,
            cache_write_5m_tokens, cache_write_1h_tokens, web_searches, figures_origin, owner_origin, flags
            from threadline.usage where is_shared or not can_be_summed order by file, line, seq)
            to stdout (format binary)";
        let reader = client.copy_out(select).action("read")?;
        let mut rows = CopyReader::new(reader).map_err(|error| lost(&error))?;
        while rows.next_row().map_err(|error| lost(&error))? {
            let Some(place) = rows.number(0).and_then(|file| self.places.get(&file)) else { continue };
            let count =
                |field: usize| rows.number(field).and_then(|number| u64::try_from(number).ok()).unwrap_or(0);
            let mark = |field: usize| u8::try_from(count(field)).unwrap_or(u8::MAX);
            let call = StoredCall {
                key: rows.bytes(1).and_then(|key| key.try_into().ok()).unwrap_or_default(),
                at: rows.number(2),
                model: rows.text(3).unwrap_or_default(),
                branch: rows.text(4).unwrap_or_default(),
                tokens: TokenCounts {
                    input: count(5),
                    output: count(6),
                    cache_read: count(7),
                    cache_write_5m: count(8),
                    cache_write_1h: count(9),
                },
                web_searches: u32::try_from(count(10)).unwrap_or(u32::MAX),
                marks: [mark(11), mark(12), mark(13)],
            };
            if !self.scans[*place].add_call(&call) {
                return Err(ArchiveError::Damaged {
                    object: "usage".to_owned(),
                    reason: "a row has an unknown origin".to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Adds up the other calls in the database.
    fn read_sums(
        self,
        client: &mut impl GenericClient,
        query: &CallQuery,
    ) -> Result<Option<ModelCalls>, ArchiveError> {
        let mut ledger = CallLedger::default();
        for scan in self.scans {
            ledger.add(scan);
        }
        let limits: Vec<String> = query.context_limits.iter().map(u64::to_string).collect();
        let context = "input_tokens + cache_read_tokens + cache_write_5m_tokens + cache_write_1h_tokens";
        let classes = match limits.is_empty() {
            true => String::new(),
            // A call at the limit has the lower price.
            false => format!(", width_bucket(({context}) - 1, array[{}]::bigint[])", limits.join(",")),
        };
        let mut conditions = vec!["can_be_summed".to_owned(), "not is_shared".to_owned()];
        conditions.extend(query.since.map(|since| format!("at >= {since}")));
        conditions.extend(query.until.map(|until| format!("at < {until}")));
        let select = format!(
            "copy (select file, min(at), max(at), model, branch, count(*), max({context}), sum(input_tokens::int),
             sum(output_tokens::int), sum(cache_read_tokens::int), sum(cache_write_5m_tokens::int),
             sum(cache_write_1h_tokens::int), sum(web_searches::int), flags
             from threadline.usage where {}
             group by file, model, branch, flags, at / {SUM_MILLIS}{classes}) to stdout (format binary)",
            conditions.join(" and ")
        );
        let reader = client.copy_out(&select).action("read")?;
        let mut rows = CopyReader::new(reader).map_err(|error| lost(&error))?;
        while rows.next_row().map_err(|error| lost(&error))? {
            let Some(place) = rows.number(0).and_then(|file| self.places.get(&file)) else { continue };
            let count =
                |field: usize| rows.number(field).and_then(|number| u64::try_from(number).ok()).unwrap_or(0);
            let sum = StoredSum {
                first_at: rows.number(1),
                last_at: rows.number(2),
                model: rows.text(3).unwrap_or_default(),
                branch: rows.text(4).unwrap_or_default(),
                calls: count(5),
                context: count(6),
                tokens: TokenCounts {
                    input: count(7),
                    output: count(8),
                    cache_read: count(9),
                    cache_write_5m: count(10),
                    cache_write_1h: count(11),
                },
                web_searches: count(12),
                flags: u8::try_from(count(13)).unwrap_or(0),
            };
            ledger.add_sum(*place, &sum);
        }
        Ok(Some(ledger.finish()))
    }
}

/// Returns the pattern of `like` that matches texts with this text in them.
fn like_pattern(text: &str) -> String {
    let mut pattern = String::from("%");
    for ch in text.chars() {
        if matches!(ch, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(ch);
    }
    pattern.push('%');
    pattern
}
