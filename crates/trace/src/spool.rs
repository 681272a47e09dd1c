//! The spool: files with spans that could not be delivered yet.

use std::io::{self, Read};

use flate2::read::GzDecoder;
use fs_err as fs;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span as Wire;
use prost::Message;
use threadline_store::read_file;

use crate::export::{ExportError, ExportSummary, Exporter};
use crate::otlp::{self, Protocol};
use crate::span::TraceSpan;
use crate::state::{ExportState, SpoolFile, StateDir, write_atomically};

/// The maximum total size of the spool folder of a [`StateDir`], in bytes. Spans beyond it are not spooled;
/// the log is read again instead.
const MAX_BYTES: u64 = 64 << 20;

/// Writes spans of a session to the spool. Returns `None` if the spool is full.
pub(crate) fn store_spans(
    states: &StateDir,
    key: &str,
    state: &ExportState,
    spans: Vec<TraceSpan>,
) -> io::Result<Option<SpoolFile>> {
    let mut wires: Vec<Wire> = spans.into_iter().map(otlp::to_wire).collect();
    let packed = otlp::gzip(&otlp::encode(&mut wires, &[], Protocol::Protobuf));
    let dir = states.spool_dir();
    let sizes = fs::read_dir(&dir)?.flatten().filter_map(|entry| entry.metadata().ok());
    let used: u64 = sizes.map(|metadata| metadata.len()).sum();
    if used + packed.len() as u64 > MAX_BYTES {
        return Ok(None);
    }
    // An unrecorded file with that name is overwritten: see `remove_unrecorded`.
    let is_recorded = |name: &String| state.spool.iter().any(|spooled| spooled.file == *name);
    let mut names = (0..).map(|number| file_name(key, number));
    let file = names.find(|name| !is_recorded(name)).unwrap_or_default();
    write_atomically(&dir.join(&file), &packed)?;
    Ok(Some(SpoolFile { file, spans: wires.len() as u64 }))
}

/// Returns the name of a spool file. `key` has no dot.
fn file_name(key: &str, number: usize) -> String {
    format!("{key}.{number}.otlp.gz")
}

/// Returns the state keys of all sessions with files in the spool, sorted.
pub(crate) fn keys(states: &StateDir) -> Vec<String> {
    let entries = fs::read_dir(states.spool_dir()).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut keys: Vec<String> = names.filter_map(|name| Some(name.split_once('.')?.0.to_owned())).collect();
    keys.retain(|key| !key.is_empty());
    keys.sort();
    keys.dedup();
    keys
}

/// Delivers the spooled spans of a session, oldest first, and saves the state after each file.
///
/// If a file is missing or unreadable, the session's progress is reset, so that its spans are rebuilt from
/// the log.
pub(crate) fn drain(
    states: &StateDir,
    key: &str,
    state: &mut ExportState,
    exporter: &Exporter<'_>,
    exported: &mut ExportSummary,
) -> Result<(), ExportError> {
    while let Some(spooled) = state.spool.first().cloned() {
        let path = states.spool_dir().join(&spooled.file);
        let read = read_file(&path).ok().and_then(|packed| unpack(&packed));
        match read {
            Some(wires) => {
                // Turns are the only spans without a parent.
                let turns = wires.iter().filter(|wire| wire.parent_span_id.is_empty()).count();
                let received = exporter.receiver.receive_encoded(wires, exporter.tries, exporter.until)?;
                let taken = spooled.spans.saturating_sub(received.refused);
                state.spans += taken;
                state.refused += received.refused;
                if taken > 0 {
                    state.sent_at = Some(exporter.now);
                    exported.turns += turns;
                }
                exported.spans += taken;
                exported.received.add(received);
            }
            // Keeps the list of files.
            None => state.forget(),
        }
        state.spool.remove(0);
        state.error = None;
        states.save(key, state)?;
        // A file that cannot be removed is never sent again: the state no longer refers to it.
        let _ = fs::remove_file(&path);
    }
    Ok(())
}

fn unpack(packed: &[u8]) -> Option<Vec<Wire>> {
    let mut bytes = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut bytes).ok()?;
    let request = ExportTraceServiceRequest::decode(&*bytes).ok()?;
    let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
    Some(scopes.flat_map(|scope| scope.spans).collect())
}

/// Removes files of a run that was killed before it could record them. The state must have no spool file, and
/// their spans can be rebuilt from the log.
pub(crate) fn remove_unrecorded(states: &StateDir, key: &str) -> io::Result<()> {
    let prefix = format!("{key}.");
    for entry in fs::read_dir(states.spool_dir())?.flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(&prefix)) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
