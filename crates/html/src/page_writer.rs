//! Renders a page while its transcript is being built.

use std::collections::VecDeque;
use std::sync::Mutex;

use threadline_app::sync::{into_inner, lock};
use threadline_html::PageBuilder;
use threadline_view::{
    BranchView, TranscriptEnd, TranscriptFilter, TranscriptItem, TranscriptPart, TranscriptParts, TurnView,
};

/// Maximum number of queued pieces. If there are more, the producing thread renders them itself.
const MAX_QUEUED_PIECES: usize = 8;

/// The number of items after which a piece ends.
const ITEMS_PER_PIECE: usize = 32;

/// A piece of the conversation. A turn may be large, so it is rendered in several pieces.
pub(super) enum PagePiece {
    /// Consecutive items of a turn.
    Items(Vec<TranscriptItem>),
    /// The end of that turn.
    EndOfTurn(Box<TurnView>),
}

/// Splits the turns of a transcript into pieces while they are built. Adds unattached sub-agents to `end`.
/// Returns the first branch, after which `parts` yields the others.
pub(super) fn split_turns(
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
pub(super) struct PageRenderer<'a> {
    filter: &'a TranscriptFilter,
    page: Mutex<PageBuilder<'a>>,
    queue: Mutex<VecDeque<PagePiece>>,
    /// Rendered pieces, which the producing thread drops: memory is freed fastest on the thread that
    /// allocated it.
    rendered: Mutex<Vec<PagePiece>>,
}

impl<'a> PageRenderer<'a> {
    /// Starts with an empty page.
    pub(super) fn new(page: PageBuilder<'a>, filter: &'a TranscriptFilter) -> Self {
        Self { filter, page: Mutex::new(page), queue: Mutex::default(), rendered: Mutex::default() }
    }

    /// Queues the next piece.
    pub(super) fn push(&self, piece: PagePiece) {
        drop(std::mem::take(&mut *lock(&self.rendered)));
        let mut queue = lock(&self.queue);
        queue.push_back(piece);
        let n_queued = queue.len();
        drop(queue);
        if n_queued > MAX_QUEUED_PIECES {
            self.render_queued(&mut lock(&self.page));
        }
    }

    /// Renders the queued pieces, unless another thread is doing so.
    pub(super) fn render(&self) {
        if let Ok(mut page) = self.page.try_lock() {
            self.render_queued(&mut page);
        }
    }

    fn render_queued(&self, page: &mut PageBuilder<'_>) {
        loop {
            let Some(mut piece) = lock(&self.queue).pop_front() else { return };
            match &mut piece {
                PagePiece::Items(items) => {
                    self.filter.keep_items(items);
                    page.items(items);
                }
                PagePiece::EndOfTurn(turn) => page.end_turn(turn),
            }
            lock(&self.rendered).push(piece);
        }
    }

    /// Renders the remaining pieces and returns the page.
    pub(super) fn finish(self) -> PageBuilder<'a> {
        self.render_queued(&mut lock(&self.page));
        into_inner(self.page)
    }
}
