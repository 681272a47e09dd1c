//! Renders a page while its transcript is being built.

use std::collections::VecDeque;
use std::sync::Mutex;

use threadline_app::sync::{into_inner, lock};
use threadline_html::Page;
use threadline_view::{Filter, Told};

/// Maximum number of queued parts. If there are more, the producing thread renders them itself.
const PARTS_AHEAD: usize = 8;

/// A page that any idle thread renders while its transcript is being built.
pub(super) struct Drawing<'a> {
    filter: &'a Filter,
    page: Mutex<Page<'a>>,
    told: Mutex<VecDeque<Told>>,
    /// Rendered parts, which the producing thread drops: memory is freed fastest on the thread that allocated
    /// it.
    drawn: Mutex<Vec<Told>>,
}

impl<'a> Drawing<'a> {
    /// Starts with an empty page.
    pub(super) fn new(page: Page<'a>, filter: &'a Filter) -> Self {
        Self { filter, page: Mutex::new(page), told: Mutex::default(), drawn: Mutex::default() }
    }

    /// Queues the next part.
    pub(super) fn push(&self, part: Told) {
        drop(std::mem::take(&mut *lock(&self.drawn)));
        let mut told = lock(&self.told);
        told.push_back(part);
        let n_told = told.len();
        drop(told);
        if n_told > PARTS_AHEAD {
            self.draw_on(&mut lock(&self.page));
        }
    }

    /// Renders the queued parts, unless another thread is doing so.
    pub(super) fn draw(&self) {
        if let Ok(mut page) = self.page.try_lock() {
            self.draw_on(&mut page);
        }
    }

    fn draw_on(&self, page: &mut Page<'_>) {
        loop {
            let Some(mut part) = lock(&self.told).pop_front() else { return };
            match &mut part {
                Told::Items(items) => {
                    self.filter.keep_items(items);
                    page.items(items);
                }
                Told::Turn(turn) => page.end_turn(turn),
            }
            lock(&self.drawn).push(part);
        }
    }

    /// Renders the remaining parts and returns the page.
    pub(super) fn finish(self) -> Page<'a> {
        self.draw_on(&mut lock(&self.page));
        into_inner(self.page)
    }
}
