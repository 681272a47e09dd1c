//! `export html --all`: a page for every session, and an index page.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::UNIX_EPOCH;

use parking_lot::Mutex;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use threadline_app::time::millis;
use threadline_app::{ListFilter, SessionSummary};
use threadline_html::IndexedSession;
use threadline_store::{SessionFile, read_file};
use threadline_usage::{Money, UsageTotals};
use threadline_view::TranscriptHeader;
use threadline_view::humanize::plural;
use threadline_view::wire::ExportAllObject;

use super::{HtmlArgs, write_file, write_html};
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// The record of an export into a folder, so that the next one writes only pages that changed.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ExportManifest {
    /// The program version and the options that pages were written with.
    made: String,
    sessions: BTreeMap<String, ExportedPage>,
}

/// A page that was written, with the data of its index entry, so that an unchanged session is not read again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct ExportedPage {
    /// The size and modification time of the session's logs.
    state: String,
    title: Option<String>,
    first_prompt: Option<String>,
    span: Option<(i64, i64)>,
    turns: u64,
    calls: u64,
    cost_usd: f64,
    unpriced_models: Vec<String>,
    unpriced_calls: u64,
    under_reported_calls: u64,
}

const MANIFEST_FILE: &str = ".threadline-export.json";

pub(super) fn run(cx: &Context, args: &HtmlArgs) -> Result<CommandOutcome, CommandError> {
    let folder = args.output.as_deref().unwrap_or(".".as_ref());
    fs::create_dir_all(folder)
        .map_err(|error| CommandError::new(format!("cannot write {}: {error}", folder.display())))?;
    let listing = cx.app.list(&ListFilter::default());
    let made = format!(
        "{} {:?} {:?} {:?} {:?}",
        env!("CARGO_PKG_VERSION"),
        args.level(),
        args.images,
        args.max_output,
        cx.theme()
    );
    let made = if cx.app.config().mask.is_on() { format!("{made} redacted") } else { made };
    let before: ExportManifest = read_file(&folder.join(MANIFEST_FILE))
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default();
    let before = if before.made == made { before } else { ExportManifest::default() };
    let progress = cx.ui.progress("exporting", listing.found.len());
    let after = Mutex::new(ExportManifest { made, sessions: BTreeMap::new() });
    // Set if a sub-agent of some session could not be read.
    let incomplete = AtomicBool::new(false);
    let failed: Vec<CommandError> = listing
        .found
        .par_iter()
        .filter_map(|SessionSummary { file, .. }| {
            let state = log_state(file);
            let page = folder.join(format!("{}.html", file.id));
            let same = before.sessions.get(&*file.id).filter(|made| made.state == state && page.is_file());
            let result = match same {
                Some(made) => Ok(made.clone()),
                None => {
                    let header = Cell::new(None);
                    write_file(&page, &|out| {
                        let page = write_html(cx, file, args, out)?;
                        header.set(Some(page.header));
                        if page.outcome != CommandOutcome::Done {
                            incomplete.store(true, Ordering::Relaxed);
                        }
                        Ok(())
                    })
                    .map(|()| ExportedPage::new(state, header.take().unwrap_or_default()))
                }
            };
            progress.step();
            let made = match result {
                Ok(made) => made,
                Err(error) => return Some(error),
            };
            after.lock().sessions.insert(file.id.to_string(), made);
            None
        })
        .collect();
    drop(progress);
    let after = after.into_inner();
    let written = after.sessions.iter().filter(|(id, made)| before.sessions.get(*id) != Some(made)).count();
    let listed: Vec<IndexedSession> = listing
        .found
        .iter()
        .filter_map(|session| Some(after.sessions.get(&*session.file.id)?.index_entry(session)))
        .collect();
    let index = threadline_html::index(&listed, &crate::env::time_zone(), cx.theme());
    write_file(&folder.join("index.html"), &|out| Ok(index.write_to(out)?))?;
    write_file(&folder.join(MANIFEST_FILE), &|out| Ok(serde_json::to_writer(out, &after)?))?;
    if cx.json {
        let mut answer = cx.ui.output();
        answer.json(&ExportAllObject {
            path: std::path::absolute(folder.join("index.html"))?.to_string_lossy().into_owned(),
            sessions: listed.len() as u64,
            written: written as u64,
        })?;
        answer.finish()?;
    }
    cx.ui.note(&format!(
        "wrote {written} of {} to {}",
        plural(listed.len() as u64, "session"),
        folder.join("index.html").display()
    ));
    for error in &failed {
        cx.ui.warn(error.to_string().trim_end());
    }
    for error in &listing.errors {
        cx.ui.warn(&error.to_string());
    }
    let whole = failed.is_empty() && listing.errors.is_empty() && !incomplete.into_inner();
    Ok(if whole { CommandOutcome::Done } else { CommandOutcome::Partial })
}

/// Returns a string that changes with the number, size or modification time of the files that the page of a
/// session is made from: its log, those of its sub-agents, and saved tool output.
fn log_state(file: &SessionFile) -> String {
    let agents = file.agents().found.into_iter().map(|agent| agent.path);
    let saved = file.tool_results_dir().and_then(|folder| fs::read_dir(folder).ok());
    let saved = saved.into_iter().flatten().flatten().map(|entry| entry.path());
    let paths = std::iter::once(file.path.clone()).chain(agents).chain(saved);
    let (mut size, mut newest, mut count) = (0, 0, 0);
    for metadata in paths.filter_map(|path| fs::metadata(path).ok()) {
        let modified = metadata.modified().ok().and_then(|modified| modified.duration_since(UNIX_EPOCH).ok());
        size += metadata.len();
        newest = newest.max(modified.map_or(0, |modified| modified.as_nanos()));
        count += 1;
    }
    format!("{count} {size} {newest}")
}

impl ExportedPage {
    fn new(state: String, header: TranscriptHeader) -> Self {
        let spent = header.spent;
        Self {
            state,
            title: header.title,
            first_prompt: header.first_prompt,
            span: header.active,
            turns: header.n_turns as u64,
            calls: spent.calls,
            cost_usd: spent.cost.to_f64(),
            unpriced_models: spent.unpriced.iter().cloned().collect(),
            unpriced_calls: spent.unpriced_calls,
            under_reported_calls: spent.under_reported,
        }
    }

    fn index_entry(&self, session: &SessionSummary) -> IndexedSession {
        let SessionSummary { file, preview } = session;
        let active = millis(preview.last_active);
        let title = self.title.as_ref().or(self.first_prompt.as_ref());
        IndexedSession {
            href: format!("{}.html", file.id),
            project: session.project().unwrap_or_default().to_owned(),
            title: title.map_or_else(|| file.id.to_string(), Clone::clone),
            first_prompt: self.first_prompt.clone(),
            git_branch: preview.git_branch.clone(),
            span: self.span.or(Some((active, active))),
            turns: self.turns,
            spent: UsageTotals {
                calls: self.calls,
                cost: Money::from_f64(self.cost_usd).unwrap_or_default(),
                unpriced: self.unpriced_models.iter().cloned().collect(),
                unpriced_calls: self.unpriced_calls,
                under_reported: self.under_reported_calls,
                ..UsageTotals::default()
            },
            size: preview.size,
        }
    }
}
