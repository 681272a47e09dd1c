//! Renders a page while its transcript is being built.

use std::collections::VecDeque;
use std::sync::Mutex;

use threadline_app::sync::{into_inner, lock};
use threadline_html::PageBuilder;
use threadline_view::{TranscriptFilter, TranscriptPart};

/// Maximum number of queued parts. If there are more, the producing thread renders them itself.
const MAX_QUEUED_PARTS: usize = 8;

/// A page that any idle thread renders while its transcript is being built.
pub(super) struct PageRenderer<'a> {
    filter: &'a TranscriptFilter,
    page: Mutex<PageBuilder<'a>>,
    queue: Mutex<VecDeque<TranscriptPart>>,
    /// Rendered parts, which the producing thread drops: memory is freed fastest on the thread that allocated
    /// it.
    rendered: Mutex<Vec<TranscriptPart>>,
}

impl<'a> PageRenderer<'a> {
    /// Starts with an empty page.
    pub(super) fn new(page: PageBuilder<'a>, filter: &'a TranscriptFilter) -> Self {
        Self { filter, page: Mutex::new(page), queue: Mutex::default(), rendered: Mutex::default() }
    }

    /// Queues the next part.
    pub(super) fn push(&self, part: TranscriptPart) {
        drop(std::mem::take(&mut *lock(&self.rendered)));
        let mut told = lock(&self.queue);
        told.push_back(part);
        let n_told = told.len();
        drop(told);
        if n_told > MAX_QUEUED_PARTS {
            self.render_queued(&mut lock(&self.page));
        }
    }

    /// Renders the queued parts, unless another thread is doing so.
    pub(super) fn render(&self) {
        if let Ok(mut page) = self.page.try_lock() {
            self.render_queued(&mut page);
        }
    }

    fn render_queued(&self, page: &mut PageBuilder<'_>) {
        loop {
            let Some(mut part) = lock(&self.queue).pop_front() else { return };
            match &mut part {
                TranscriptPart::Items(items) => {
                    self.filter.keep_items(items);
                    page.items(items);
                }
                TranscriptPart::Turn(turn) => page.end_turn(turn),
            }
            lock(&self.rendered).push(part);
        }
    }

    /// Renders the remaining parts and returns the page.
    pub(super) fn finish(self) -> PageBuilder<'a> {
        self.render_queued(&mut lock(&self.page));
        into_inner(self.page)
    }
}
