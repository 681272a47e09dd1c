//! The message of a skipped test.

use std::io::Write;

/// Prints that the test is skipped, and why. Bypasses the test harness, which captures the output of passing
/// tests.
pub fn report_skipped(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = writeln!(std::io::stderr(), "{test}: skipped, {why}");
}
