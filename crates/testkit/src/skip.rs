//! What a test says that does nothing.

use std::io::Write;

/// Says that the test is skipped, and why. It goes past the harness, which keeps to itself what passing tests print.
pub fn skipped(why: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = writeln!(std::io::stderr(), "{test}: skipped, {why}");
}
