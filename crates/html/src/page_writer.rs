//! Writes the page of a session, rendered while its transcript is being built.

use std::collections::VecDeque;
use std::io::{self, Write};

use parking_lot::Mutex;
use threadline_view::{
    BranchView, FindingSummary, TranscriptEnd, TranscriptFilter, TranscriptHeader, TranscriptItem,
    TranscriptPart, TranscriptParts, TurnView,
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
        split_turns(&mut parts, &mut end, |piece| {
            renderer.push(piece);
            scope.spawn(|_| renderer.render());
        })
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

/// Maximum number of queued pieces. If there are more, the producing thread renders them itself.
const MAX_QUEUED_PIECES: usize = 8;

/// The number of items after which a piece ends.
const ITEMS_PER_PIECE: usize = 32;

/// A piece of the conversation. A turn may be large, so it is rendered in several pieces.
enum PagePiece {
    /// Consecutive items of a turn.
    Items(Vec<TranscriptItem>),
    /// The end of that turn.
    EndOfTurn(Box<TurnView>),
}

/// Splits the turns of a transcript into pieces while they are built. Adds unattached sub-agents to `end`.
/// Returns the first branch, after which `parts` yields the others.
fn split_turns(
    parts: &mut TranscriptParts<'_>,
    end: &mut TranscriptEnd,
    mut sink: impl FnMut(PagePiece),
) -> Option<BranchView> {
    let mut items = Vec::new();
    loop {
        while let Some(more) = parts.next_items() {
            items.extend(more);
            if items.len() >= ITEMS_PER_PIECE {
                sink(PagePiece::Items(std::mem::take(&mut items)));
            }
        }
        match parts.next() {
            Some(TranscriptPart::Turn(turn)) => {
                sink(PagePiece::Items(std::mem::take(&mut items)));
                sink(PagePiece::EndOfTurn(turn));
            }
            Some(TranscriptPart::Agent(agent)) => end.agents.push(*agent),
            Some(TranscriptPart::Branch(branch)) => return Some(branch),
            Some(TranscriptPart::Findings(findings)) => end.findings = findings,
            // The caller took the header, and the turns are whole.
            Some(TranscriptPart::Header(_) | TranscriptPart::MoreItems(_)) => {}
            None => return None,
        }
    }
}

/// A page that any idle thread renders while its transcript is being built.
struct PageRenderer<'a> {
    filter: &'a TranscriptFilter,
    page: Mutex<PageBuilder<'a>>,
    queue: Mutex<VecDeque<PagePiece>>,
    /// Rendered pieces, which the producing thread drops: memory is freed fastest on the thread that
    /// allocated it.
    rendered: Mutex<Vec<PagePiece>>,
}

impl<'a> PageRenderer<'a> {
    /// Starts with an empty page.
    fn new(page: PageBuilder<'a>, filter: &'a TranscriptFilter) -> Self {
        Self { filter, page: Mutex::new(page), queue: Mutex::default(), rendered: Mutex::default() }
    }

    /// Queues the next piece.
    fn push(&self, piece: PagePiece) {
        drop(std::mem::take(&mut *self.rendered.lock()));
        let mut queue = self.queue.lock();
        queue.push_back(piece);
        let n_queued = queue.len();
        drop(queue);
        if n_queued > MAX_QUEUED_PIECES {
            self.render_queued(&mut self.page.lock());
        }
    }

    /// Renders the queued pieces, unless another thread is doing so.
    fn render(&self) {
        if let Some(mut page) = self.page.try_lock() {
            self.render_queued(&mut page);
        }
    }

    fn render_queued(&self, page: &mut PageBuilder<'_>) {
        loop {
            let Some(mut piece) = self.queue.lock().pop_front() else { return };
            match &mut piece {
                PagePiece::Items(items) => {
                    self.filter.keep_items(items);
                    page.items(items);
                }
                PagePiece::EndOfTurn(turn) => page.end_turn(turn),
            }
            self.rendered.lock().push(piece);
        }
    }

    /// Renders the remaining pieces and returns the page.
    fn finish(self) -> PageBuilder<'a> {
        self.render_queued(&mut self.page.lock());
        self.page.into_inner()
    }
}
