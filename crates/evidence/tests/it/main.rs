//! Tests of file evidence: notation in, text out.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod file_history;
mod line_origin;
