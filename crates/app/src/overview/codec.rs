//! The facts as bytes, for the cache.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use threadline_entry::Millis;
use threadline_session::{
    ActivityPause, ActivityState, CallActivity, LineMark, LogActivity, LogEnding, ToolOutcome,
};
use threadline_store::{LogFile, read_file, replace_own_file};
use threadline_usage::byte_codec::{ByteReader, put_number, put_signed, put_text};
use threadline_usage::{LogSource, Money, ScannedLog, TokenCounts, UsageTotals};

use super::facts::{CallFact, LogFact, MarkFact, OverviewFacts, PeriodFact, SessionFact, UNDATED, UsageFact};
use crate::figures::LogVersion;

/// Returns the content of a log as bytes.
pub(super) fn log_bytes(scanned: &ScannedLog, activity: &LogActivity) -> Vec<u8> {
    let mut calls = Vec::new();
    scanned.write(&mut calls);
    let mut out = Vec::new();
    put_number(&mut out, calls.len() as u64);
    out.extend(calls);
    put_names(&mut out, &activity.names);
    put_all(&mut out, &activity.calls, |out, call| {
        out.extend(call.key.to_le_bytes());
        put_signed(out, call.at.unwrap_or(UNDATED));
        put_number(out, call.line.into());
        put_number(out, call.tool.into());
        put_optional(out, call.detail);
        put_optional(out, call.duration);
        out.extend([call.outcome as u8, u8::from(call.is_progress)]);
    });
    for marks in [&activity.prompts, &activity.compactions] {
        put_all(&mut out, marks, |out, mark| {
            out.extend(mark.key.to_le_bytes());
            put_signed(out, mark.at.unwrap_or(UNDATED));
            put_number(out, mark.line.into());
        });
    }
    let mut last = 0;
    put_all(&mut out, &activity.pauses, |out, pause| {
        out.extend(pause.key.to_le_bytes());
        put_time(out, &mut last, pause.start);
        put_time(out, &mut last, pause.end);
        out.push(pause.state as u8);
    });
    put_signed(&mut out, activity.last_at.unwrap_or(UNDATED));
    put_ending(&mut out, activity.ending);
    out
}

/// Reads the bytes of [`log_bytes`]. Returns `None` if they are damaged.
pub(super) fn read_log(source: LogSource, bytes: &[u8]) -> Option<(ScannedLog, LogActivity)> {
    let mut rest = ByteReader(bytes);
    let length = usize::try_from(rest.number()?).ok()?;
    let (calls, bytes) = rest.0.split_at_checked(length)?;
    let scanned = ScannedLog::read(source, calls)?;
    let mut rest = ByteReader(bytes);
    let names = read_names(&mut rest)?;
    let n_names = names.len() as u32;
    let calls = read_all(&mut rest, |rest| {
        let call = CallActivity {
            key: key(rest)?,
            at: dated(rest.signed()?),
            line: rest.small()?,
            tool: rest.small()?,
            detail: optional(rest)?,
            duration: optional(rest)?,
            outcome: outcome(rest.byte()?)?,
            is_progress: rest.byte()? != 0,
        };
        (call.tool < n_names && call.detail.is_none_or(|name| name < n_names)).then_some(call)
    })?;
    let mut marks = || {
        read_all(&mut rest, |rest| {
            Some(LineMark { key: key(rest)?, at: dated(rest.signed()?), line: rest.small()? })
        })
    };
    let (prompts, compactions) = (marks()?, marks()?);
    let mut last = 0;
    let pauses = read_all(&mut rest, |rest| {
        let key = key(rest)?;
        let (start, end) = (time(rest, &mut last)?, time(rest, &mut last)?);
        Some(ActivityPause { key, start, end, state: state(rest.byte()?)? })
    })?;
    let last_at = dated(rest.signed()?);
    let ending = read_ending(&mut rest, n_names)?;
    let activity = LogActivity { names, calls, prompts, compactions, pauses, last_at, ending };
    rest.0.is_empty().then_some((scanned, activity))
}

/// Writes the merged facts, if every log may be cached.
pub(super) fn write_facts(
    file: &Path,
    key: &str,
    logs: &[&LogFile],
    facts: &OverviewFacts,
    now: SystemTime,
) -> io::Result<()> {
    let mut out = format!("{key}\n").into_bytes();
    put_number(&mut out, logs.len() as u64);
    for log in logs {
        let version = LogVersion::of(log).filter(|version| version.is_settled(now));
        let (Some(version), Some(path)) = (version, log.path.to_str()) else { return Ok(()) };
        put_text(&mut out, path);
        put_text(&mut out, &version.fields());
    }
    put_facts(&mut out, facts);
    replace_own_file(file, &out)
}

/// Reads the merged facts. Returns `None` if there is no cache, if it has another key or is damaged, or if
/// the logs are not exactly these.
pub(super) fn read_facts(file: &Path, key: &str, logs: &[&LogFile]) -> Option<OverviewFacts> {
    let bytes = read_file(file).ok()?;
    let rest = bytes.strip_prefix(key.as_bytes())?.strip_prefix(b"\n")?;
    let mut rest = ByteReader(rest);
    let versions: HashMap<&Path, String> =
        logs.iter().map(|log| Some((&*log.path, LogVersion::of(log)?.fields()))).collect::<Option<_>>()?;
    let count = usize::try_from(rest.number()?).ok()?;
    if count != logs.len() || count != versions.len() {
        return None;
    }
    for _ in 0..count {
        let (path, version) = (rest.text()?, rest.text()?);
        (*versions.get(Path::new(&path))? == version).then_some(())?;
    }
    parse_facts(&mut rest)
}

fn put_facts(out: &mut Vec<u8>, facts: &OverviewFacts) {
    put_names(out, &facts.names);
    put_all(out, &facts.sessions, |out, session| {
        put_text(out, &session.id);
        put_optional_text(out, session.title.as_deref());
        put_number(out, session.project.into());
        put_optional(out, session.cwd);
        put_optional(out, session.branch);
        put_signed(out, session.started.unwrap_or(UNDATED));
        put_signed(out, session.last_active);
        put_signed(out, session.modified);
        put_signed(out, session.last_message.unwrap_or(UNDATED));
        put_ending(out, session.ending);
    });
    put_all(out, &facts.logs, |out, log| {
        put_number(out, log.session.into());
        put_optional_text(out, log.agent.as_deref());
    });
    let mut last = 0;
    put_all(out, &facts.usage, |out, fact| {
        put_time(out, &mut last, fact.at);
        put_number(out, fact.session.into());
        put_number(out, fact.model.into());
        put_number(out, fact.branch.into());
        out.push(u8::from(fact.is_agent));
        put_totals(out, &fact.totals);
    });
    let mut last = 0;
    put_all(out, &facts.calls, |out, call| {
        put_time(out, &mut last, call.at);
        put_number(out, call.log.into());
        put_number(out, call.line.into());
        put_number(out, call.tool.into());
        put_optional(out, call.detail);
        put_optional(out, call.duration);
        out.push(call.outcome as u8);
    });
    for marks in [&facts.prompts, &facts.compactions] {
        let mut last = 0;
        put_all(out, marks, |out, mark| {
            put_time(out, &mut last, mark.at);
            put_number(out, mark.log.into());
            put_number(out, mark.line.into());
        });
    }
    let mut last = 0;
    put_all(out, &facts.periods, |out, period| {
        put_time(out, &mut last, period.start);
        put_signed(out, period.end.wrapping_sub(period.start));
        put_number(out, period.session.into());
        out.push(period.state as u8);
    });
}

fn parse_facts(rest: &mut ByteReader<'_>) -> Option<OverviewFacts> {
    let names = read_names(rest)?;
    let n_names = names.len() as u32;
    let name = |id: u32| (id < n_names).then_some(id);
    let optional_name = |id: Option<u32>| id.is_none_or(|id| id < n_names).then_some(id);
    let sessions = read_all(rest, |rest| {
        Some(SessionFact {
            id: rest.text()?,
            title: rest.optional_text()?,
            project: name(rest.small()?)?,
            cwd: optional_name(optional(rest)?)?,
            branch: optional_name(optional(rest)?)?,
            started: dated(rest.signed()?),
            last_active: rest.signed()?,
            modified: rest.signed()?,
            last_message: dated(rest.signed()?),
            ending: read_ending(rest, n_names)?,
        })
    })?;
    let (n_sessions, session) = (sessions.len() as u32, |id: u32, count: u32| (id < count).then_some(id));
    let logs = read_all(rest, |rest| {
        Some(LogFact { session: session(rest.small()?, n_sessions)?, agent: rest.optional_text()? })
    })?;
    let n_logs = logs.len() as u32;
    let mut last = 0;
    let usage = read_all(rest, |rest| {
        Some(UsageFact {
            at: time(rest, &mut last)?,
            session: session(rest.small()?, n_sessions)?,
            model: name(rest.small()?)?,
            branch: name(rest.small()?)?,
            is_agent: rest.byte()? != 0,
            totals: read_totals(rest)?,
        })
    })?;
    let mut last = 0;
    let calls = read_all(rest, |rest| {
        Some(CallFact {
            at: time(rest, &mut last)?,
            log: session(rest.small()?, n_logs)?,
            line: rest.small()?,
            tool: name(rest.small()?)?,
            detail: optional_name(optional(rest)?)?,
            duration: optional(rest)?,
            outcome: outcome(rest.byte()?)?,
        })
    })?;
    let mut marks = || {
        let mut last = 0;
        read_all(rest, |rest| {
            let at = time(rest, &mut last)?;
            Some(MarkFact { at, log: session(rest.small()?, n_logs)?, line: rest.small()? })
        })
    };
    let (prompts, compactions) = (marks()?, marks()?);
    let mut last = 0;
    let periods = read_all(rest, |rest| {
        let start = time(rest, &mut last)?;
        let end = start.wrapping_add(rest.signed()?);
        let session = session(rest.small()?, n_sessions)?;
        Some(PeriodFact { start, end, session, state: state(rest.byte()?)? })
    })?;
    let facts = OverviewFacts {
        names,
        sessions,
        logs,
        usage,
        calls,
        prompts,
        compactions,
        periods,
        ..OverviewFacts::default()
    };
    rest.0.is_empty().then_some(facts)
}

fn put_totals(out: &mut Vec<u8>, totals: &UsageTotals) {
    let TokenCounts { input, output, cache_read, cache_write_5m, cache_write_1h } = totals.tokens;
    let numbers = [
        totals.calls,
        input,
        output,
        cache_read,
        cache_write_5m,
        cache_write_1h,
        totals.web_searches,
        totals.unpriced_calls,
        totals.under_reported,
        totals.unlogged_compactions,
    ];
    numbers.into_iter().for_each(|number| put_number(out, number));
    out.extend(totals.cost.steps().to_le_bytes());
    put_number(out, totals.unpriced.len() as u64);
    totals.unpriced.iter().for_each(|name| put_text(out, name));
}

fn read_totals(rest: &mut ByteReader<'_>) -> Option<UsageTotals> {
    let mut totals = UsageTotals { calls: rest.number()?, ..UsageTotals::default() };
    totals.tokens = TokenCounts {
        input: rest.number()?,
        output: rest.number()?,
        cache_read: rest.number()?,
        cache_write_5m: rest.number()?,
        cache_write_1h: rest.number()?,
    };
    totals.web_searches = rest.number()?;
    totals.unpriced_calls = rest.number()?;
    totals.under_reported = rest.number()?;
    totals.unlogged_compactions = rest.number()?;
    let (steps, after) = rest.0.split_first_chunk()?;
    rest.0 = after;
    totals.cost = Money::from_steps(i128::from_le_bytes(*steps));
    for _ in 0..rest.number()? {
        totals.unpriced.insert(rest.text()?);
    }
    Some(totals)
}

/// Writes the distance to the previous time.
fn put_time(out: &mut Vec<u8>, last: &mut Millis, at: Millis) {
    put_signed(out, at.wrapping_sub(*last));
    *last = at;
}

fn time(rest: &mut ByteReader<'_>, last: &mut Millis) -> Option<Millis> {
    *last = last.wrapping_add(rest.signed()?);
    Some(*last)
}

fn dated(at: Millis) -> Option<Millis> {
    (at != UNDATED).then_some(at)
}

fn put_names(out: &mut Vec<u8>, names: &[String]) {
    put_all(out, names, |out, name| put_text(out, name));
}

fn read_names(rest: &mut ByteReader<'_>) -> Option<Vec<String>> {
    read_all(rest, |rest| rest.text())
}

fn put_all<T>(out: &mut Vec<u8>, items: &[T], mut put: impl FnMut(&mut Vec<u8>, &T)) {
    put_number(out, items.len() as u64);
    items.iter().for_each(|item| put(out, item));
}

fn read_all<T>(
    rest: &mut ByteReader<'_>,
    mut read: impl FnMut(&mut ByteReader<'_>) -> Option<T>,
) -> Option<Vec<T>> {
    let count = usize::try_from(rest.number()?).ok()?;
    // Every item takes at least one byte, so a damaged number reserves no more than the file is long.
    let mut items = Vec::with_capacity(count.min(rest.0.len()));
    for _ in 0..count {
        items.push(read(rest)?);
    }
    Some(items)
}

fn put_optional(out: &mut Vec<u8>, number: Option<u32>) {
    put_number(out, number.map_or(0, |number| u64::from(number) + 1));
}

fn optional(rest: &mut ByteReader<'_>) -> Option<Option<u32>> {
    match rest.number()? {
        0 => Some(None),
        number => Some(Some(u32::try_from(number - 1).ok()?)),
    }
}

fn put_optional_text(out: &mut Vec<u8>, text: Option<&str>) {
    put_number(out, u64::from(text.is_some()));
    put_text(out, text.unwrap_or_default());
}

fn key(rest: &mut ByteReader<'_>) -> Option<u64> {
    let (low, high) = (rest.word()?, rest.word()?);
    Some(u64::from(low) | u64::from(high) << 32)
}

fn put_ending(out: &mut Vec<u8>, ending: LogEnding) {
    let (kind, tool) = match ending {
        LogEnding::Empty => (0, 0),
        LogEnding::Working => (1, 0),
        LogEnding::Replied => (2, 0),
        LogEnding::Called(tool) => (3, tool),
        LogEnding::Asked(tool) => (4, tool),
    };
    out.push(kind);
    put_number(out, tool.into());
}

fn read_ending(rest: &mut ByteReader<'_>, n_names: u32) -> Option<LogEnding> {
    let (kind, tool) = (rest.byte()?, rest.small()?);
    Some(match kind {
        0 => LogEnding::Empty,
        1 => LogEnding::Working,
        2 => LogEnding::Replied,
        3 if tool < n_names => LogEnding::Called(tool),
        4 if tool < n_names => LogEnding::Asked(tool),
        _ => return None,
    })
}

fn outcome(byte: u8) -> Option<ToolOutcome> {
    let all = [
        ToolOutcome::Ok,
        ToolOutcome::Error,
        ToolOutcome::Denied,
        ToolOutcome::Interrupted,
        ToolOutcome::Missing,
    ];
    all.into_iter().find(|outcome| *outcome as u8 == byte)
}

fn state(byte: u8) -> Option<ActivityState> {
    let all = [ActivityState::Active, ActivityState::Waiting, ActivityState::Idle];
    all.into_iter().find(|state| *state as u8 == byte)
}

#[cfg(test)]
mod tests {
    use threadline_entry::{LineReader, OutlineReader};
    use threadline_session::ActivityScan;
    use threadline_testkit::{samples, shared_logs};
    use threadline_usage::{ScanOptions, UsageScan};

    use super::*;

    fn scan(log: &[u8]) -> (ScannedLog, LogActivity) {
        let mut usage = UsageScan::new(LogSource::default(), ScanOptions::default());
        let mut activity = ActivityScan::default();
        let mut outlines = OutlineReader::default();
        let mut lines = LineReader::new(log);
        while let Some(block) = lines.next_block().unwrap() {
            outlines.read_block(&block, |line, outline| {
                usage.line(line, outline);
                activity.line(line, outline);
            });
        }
        (usage.finish(), activity.finish())
    }

    #[test]
    fn logs_survive_the_cache() {
        let real = shared_logs().into_iter().map(|path| std::fs::read(path).unwrap());
        for log in samples().into_iter().map(|sample| sample.log).chain(real) {
            let (scanned, activity) = scan(&log);
            let bytes = log_bytes(&scanned, &activity);
            assert_eq!(read_log(LogSource::default(), &bytes).unwrap().1, activity);
        }
    }

    #[test]
    fn damaged_bytes_are_not_read() {
        let (scanned, activity) = scan(&samples()[0].log);
        let mut bytes = log_bytes(&scanned, &activity);
        for length in 0..bytes.len() {
            assert!(read_log(LogSource::default(), &bytes[..length]).is_none());
        }
        bytes.push(0);
        assert!(read_log(LogSource::default(), &bytes).is_none());
    }
}
