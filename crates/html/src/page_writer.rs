//! Writes the page of a session, rendered while its transcript is being built.

use std::collections::VecDeque;
use std::io::{self, Write};

use parking_lot::Mutex;
use threadline_view::{
    FindingSummary, TranscriptEnd, TranscriptFilter, TranscriptHeader, TranscriptPart, TranscriptParts,
    TurnView,
};

use crate::page::PageBuilder;

/// Writes the page of a session: its turns while `parts` builds them, rendered on all cores, then the rest.
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
    let renderer = PageRenderer::new(page, filter);
    let mut found = FindingSummary::default();
    let first_branch = rayon::in_place_scope(|scope| {
        scope.spawn(|_| found = findings());
        loop {
            match parts.next()? {
                TranscriptPart::Turn(turn) => {
                    renderer.push(turn);
                    scope.spawn(|_| renderer.render());
                }
                TranscriptPart::Agent(agent) => end.agents.push(*agent),
                TranscriptPart::Branch(branch) => return Some(branch),
                // The caller took the header.
                TranscriptPart::Header(_) | TranscriptPart::Findings(_) => {}
            }
        }
    });
    filter.apply_to_end(&mut end);
    end.findings = found;
    let branches = first_branch.into_iter().chain(parts.filter_map(|part| match part {
        TranscriptPart::Branch(branch) => Some(branch),
        _ => None,
    }));
    let branches = branches.map(|mut branch| {
        filter.keep_turns(&mut branch.turns);
        branch
    });
    renderer.finish().finish(header, &end, branches, out)
}

/// Maximum number of queued turns. If there are more, the producing thread renders them itself.
const MAX_QUEUED_TURNS: usize = 8;

/// A page that any idle thread renders while its transcript is being built.
struct PageRenderer<'a> {
    filter: &'a TranscriptFilter,
    page: Mutex<PageBuilder<'a>>,
    queue: Mutex<VecDeque<Box<TurnView>>>,
    /// Rendered turns, which the producing thread drops: memory is freed fastest on the thread that
    /// allocated it.
    rendered: Mutex<Vec<Box<TurnView>>>,
}

impl<'a> PageRenderer<'a> {
    /// Starts with an empty page.
    fn new(page: PageBuilder<'a>, filter: &'a TranscriptFilter) -> Self {
        Self { filter, page: Mutex::new(page), queue: Mutex::default(), rendered: Mutex::default() }
    }

    /// Queues the next turn.
    fn push(&self, turn: Box<TurnView>) {
        drop(std::mem::take(&mut *self.rendered.lock()));
        let mut queue = self.queue.lock();
        queue.push_back(turn);
        let n_queued = queue.len();
        drop(queue);
        if n_queued > MAX_QUEUED_TURNS {
            self.render_queued(&mut self.page.lock());
        }
    }

    /// Renders the queued turns, unless another thread is doing so.
    fn render(&self) {
        if let Some(mut page) = self.page.try_lock() {
            self.render_queued(&mut page);
        }
    }

    fn render_queued(&self, page: &mut PageBuilder<'_>) {
        loop {
            let Some(mut turn) = self.queue.lock().pop_front() else { return };
            self.filter.keep_items(&mut turn.items);
            page.turn(&turn);
            self.rendered.lock().push(turn);
        }
    }

    /// Renders the remaining turns and returns the page.
    fn finish(self) -> PageBuilder<'a> {
        self.render_queued(&mut self.page.lock());
        self.page.into_inner()
    }
}
