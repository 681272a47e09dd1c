//! A page that is drawn while it is told.

use std::collections::VecDeque;
use std::sync::Mutex;

use threadline_html::Page;
use threadline_view::{Filter, Told};

use crate::lock::{locked, unlocked};

/// So many parts may wait to be drawn; then who tells them draws them.
const PARTS_AHEAD: usize = 8;

/// A page that is drawn while it is told, by whoever is free.
pub(super) struct Drawing<'a> {
    filter: &'a Filter,
    page: Mutex<Page<'a>>,
    told: Mutex<VecDeque<Told>>,
    /// What was drawn, until who told it comes by: memory is given back best where it was taken.
    drawn: Mutex<Vec<Told>>,
}

impl<'a> Drawing<'a> {
    /// Of a page as it begins.
    pub(super) fn new(page: Page<'a>, filter: &'a Filter) -> Self {
        Self { filter, page: Mutex::new(page), told: Mutex::default(), drawn: Mutex::default() }
    }

    /// Adds the next part.
    pub(super) fn push(&self, part: Told) {
        drop(std::mem::take(&mut *locked(&self.drawn)));
        let mut told = locked(&self.told);
        told.push_back(part);
        let n_told = told.len();
        drop(told);
        if n_told > PARTS_AHEAD {
            self.draw_on(&mut locked(&self.page));
        }
    }

    /// Draws the parts that wait, unless somebody does.
    pub(super) fn draw(&self) {
        if let Ok(mut page) = self.page.try_lock() {
            self.draw_on(&mut page);
        }
    }

    fn draw_on(&self, page: &mut Page<'_>) {
        loop {
            let Some(mut part) = locked(&self.told).pop_front() else { return };
            match &mut part {
                Told::Items(items) => {
                    self.filter.keep_items(items);
                    page.items(items);
                }
                Told::Turn(turn) => page.end_turn(turn),
            }
            locked(&self.drawn).push(part);
        }
    }

    /// Draws what still waits, and hands over the page.
    pub(super) fn finish(self) -> Page<'a> {
        self.draw_on(&mut locked(&self.page));
        unlocked(self.page)
    }
}
