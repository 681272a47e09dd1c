//! Writes the page of a session, rendered while its transcript is being built.

use std::io::{self, Write};
use std::sync::mpsc;
use std::thread;

use threadline_view::{
    FindingSummary, TranscriptEnd, TranscriptFilter, TranscriptHeader, TranscriptPart, TranscriptParts,
    TurnView,
};

use crate::page::PageBuilder;

/// Writes the page of a session: its turns while `parts` builds them on another thread, then the rest.
///
/// `end` is that of the transcript so far, to which sub-agents and `findings` are added. Findings take long,
/// so they are computed meanwhile, and not by `parts`.
///
/// # Errors
///
/// Those of writing.
pub fn write_page(
    page: PageBuilder<'_>,
    (header, mut end): (&TranscriptHeader, TranscriptEnd),
    parts: TranscriptParts<'_>,
    filter: &TranscriptFilter,
    findings: impl FnOnce() -> FindingSummary + Send,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut parts = parts.without_findings();
    let (sender, receiver) = mpsc::sync_channel::<Box<TurnView>>(8);
    let render = move || {
        let mut page = page;
        for mut turn in receiver {
            filter.keep_items(&mut turn.items);
            page.turn(&turn);
        }
        page
    };
    let (page, findings, first_branch) = thread::scope(|scope| {
        let rendered = scope.spawn(render);
        let findings = scope.spawn(findings);
        let first_branch = loop {
            match parts.next() {
                // Sending fails only if rendering has panicked.
                Some(TranscriptPart::Turn(turn)) => drop(sender.send(turn)),
                Some(TranscriptPart::Agent(agent)) => end.agents.push(*agent),
                Some(TranscriptPart::Branch(branch)) => break Some(branch),
                // The caller took the header.
                Some(TranscriptPart::Header(_) | TranscriptPart::Findings(_)) => {}
                None => break None,
            }
        };
        drop(sender);
        (rendered.join(), findings.join(), first_branch)
    });
    let failed = |_| io::Error::other("rendering the page failed");
    let page = page.map_err(failed)?;
    filter.apply_to_end(&mut end);
    end.findings = findings.map_err(failed)?;
    let branches = first_branch.into_iter().chain(parts.filter_map(|part| match part {
        TranscriptPart::Branch(branch) => Some(branch),
        _ => None,
    }));
    let branches = branches.map(|mut branch| {
        filter.keep_turns(&mut branch.turns);
        branch
    });
    page.finish(header, &end, branches, out)
}
