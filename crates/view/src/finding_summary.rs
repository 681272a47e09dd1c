//! The problems of a log, as far as a transcript shows them.

use threadline_entry::Finding;
use threadline_session::Session;

/// The number of problems of a log, and the first ones. A log may have several problems per line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindingSummary {
    /// The number of problems.
    pub count: usize,
    /// The first [`MAX_LISTED`](Self::MAX_LISTED) problems, in file order.
    pub first: Vec<Finding>,
}

impl FindingSummary {
    /// The maximum number of problems in [`FindingSummary::first`].
    pub const MAX_LISTED: usize = 200;

    /// Returns the problems of a log, without notes. Secrets are not searched for: they are no defect of the
    /// log, and the search would take longer than everything else.
    pub fn of(session: &Session) -> Self {
        let problems = session.findings().iter().filter(|finding| finding.severity.is_problem());
        Self { count: problems.clone().count(), first: problems.take(Self::MAX_LISTED).cloned().collect() }
    }
}
