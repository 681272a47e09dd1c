//! Cancellation of a running turn.

pub use threadline_cancel::{CancelGuard, CancelToken};
