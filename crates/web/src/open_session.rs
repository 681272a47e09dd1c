//! An open session: the session as it is followed, and how its conversations are divided into parts of a
//! page.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use threadline_app::{
    LiveChange, LiveError, LiveLimits, LiveSession, PriceBook, ReadSpans, SessionFile, SessionSelector,
    TurnSpan,
};

use crate::page_layout::PageLayout;

/// An open session.
pub(crate) struct OpenSession {
    pub(crate) live: LiveSession,
    /// The layouts of the pages that were shown, of this version of the session.
    plans: HashMap<SessionSelector, Arc<PageLayout>>,
    planned: u64,
}

impl OpenSession {
    /// Reads a session and its sub-agents.
    pub(crate) fn open(file: SessionFile, prices: Arc<PriceBook>) -> io::Result<Self> {
        Self::open_with_limits(file, prices, LiveLimits::default())
    }

    /// Reads a session within other limits.
    pub(crate) fn open_with_limits(
        file: SessionFile,
        prices: Arc<PriceBook>,
        limits: LiveLimits,
    ) -> io::Result<Self> {
        let live = LiveSession::open(file, prices, limits)?;
        Ok(Self { live, plans: HashMap::new(), planned: 0 })
    }

    /// Reads the lines added to the session.
    ///
    /// # Errors
    ///
    /// Those of reading. The session stays as it was.
    pub(crate) fn refresh(&mut self) -> io::Result<()> {
        match self.live.refresh()? {
            LiveChange::Replaced => self.live.reopen(),
            LiveChange::Same | LiveChange::Changed => Ok(()),
        }
    }

    /// Approximate memory in bytes.
    pub(crate) fn memory_size(&self) -> usize {
        self.live.weight() + self.plans.values().map(|plan| plan.memory_size()).sum::<usize>()
    }

    /// How a conversation is divided into parts.
    pub(crate) fn page_layout(&mut self, selector: &SessionSelector) -> Result<Arc<PageLayout>, LiveError> {
        if std::mem::replace(&mut self.planned, self.live.version()) != self.live.version() {
            self.plans.clear();
        }
        if let Some(plan) = self.plans.get(selector) {
            return Ok(Arc::clone(plan));
        }
        let layout = self.live.layout(selector)?;
        let (log, session) = self.live.log(selector)?;
        let plan = Arc::new(PageLayout::new(layout, session, log));
        self.plans.insert(selector.clone(), Arc::clone(&plan));
        Ok(plan)
    }

    /// Reads the lines of some spans of a conversation.
    pub(crate) fn read(
        &self,
        selector: &SessionSelector,
        plan: &PageLayout,
        spans: &[TurnSpan],
    ) -> Result<ReadSpans, LiveError> {
        self.live.read(selector, &plan.layout, spans)
    }
}

/// A short name for a value, by which scripts see that it changed.
pub(crate) fn stamp(value: impl std::hash::Hash) -> String {
    use std::hash::BuildHasher;
    format!("{:x}", rustc_hash::FxBuildHasher.hash_one(value))
}

#[cfg(test)]
mod tests;
