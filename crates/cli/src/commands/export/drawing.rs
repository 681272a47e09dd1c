//! A page that is drawn while turns are told.

use std::collections::VecDeque;
use std::sync::Mutex;

use threadline_html::{Options, Page, Spool};
use threadline_view::{Filter, Transcript, TurnView};

use crate::lock::{locked, unlocked};

/// So many turns may wait to be drawn; then who tells them draws them.
const TURNS_AHEAD: usize = 4;

/// A page that is drawn while turns are told, by whoever is free.
pub(super) struct Drawing<'a> {
    filter: &'a Filter,
    head: Transcript,
    page: Mutex<Page<'a>>,
    told: Mutex<VecDeque<TurnView>>,
    /// What was drawn, until who told it comes by: memory is given back best where it was taken.
    drawn: Mutex<Vec<TurnView>>,
}

impl<'a> Drawing<'a> {
    /// Nothing yet, of the session that `head` tells of.
    pub(super) fn new(
        options: &'a Options,
        spool: Box<dyn Spool>,
        filter: &'a Filter,
        head: Transcript,
    ) -> Self {
        let page = Mutex::new(Page::new(options, spool));
        Self { filter, head, page, told: Mutex::default(), drawn: Mutex::default() }
    }

    /// Adds the next turn.
    pub(super) fn push(&self, turn: TurnView) {
        locked(&self.drawn).clear();
        let mut told = locked(&self.told);
        told.push_back(turn);
        let n_told = told.len();
        drop(told);
        if n_told > TURNS_AHEAD {
            self.draw_on(&mut locked(&self.page));
        }
    }

    /// Draws the turns that wait, unless somebody does.
    pub(super) fn draw(&self) {
        if let Ok(mut page) = self.page.try_lock() {
            self.draw_on(&mut page);
        }
    }

    fn draw_on(&self, page: &mut Page<'_>) {
        loop {
            let Some(mut turn) = locked(&self.told).pop_front() else { return };
            if self.filter.keep_of(&mut turn) {
                page.turn(&self.head, &turn);
            }
            locked(&self.drawn).push(turn);
        }
    }

    /// Draws what still waits, and hands over the page.
    pub(super) fn finish(self) -> Page<'a> {
        self.draw_on(&mut locked(&self.page));
        unlocked(self.page)
    }
}
