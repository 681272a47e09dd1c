//! The width of the terminal, which the screen and the agent's thread share.

use std::sync::atomic::{AtomicUsize, Ordering};

use threadline_term::TermPage;

/// The page of the terminal. Its width may change at any time.
#[derive(Debug)]
pub(crate) struct SharedPage {
    width: AtomicUsize,
    color: bool,
    links: bool,
}

impl SharedPage {
    pub(crate) fn new(width: usize, color: bool, links: bool) -> Self {
        Self { width: AtomicUsize::new(width), color, links }
    }

    pub(crate) fn get(&self) -> TermPage {
        TermPage {
            width: Some(self.width.load(Ordering::Relaxed)),
            color: self.color,
            links: self.links,
            whole_lines: false,
        }
    }

    pub(crate) fn set_width(&self, width: usize) {
        self.width.store(width, Ordering::Relaxed);
    }
}
