//! Search over logs: against a search that decodes everything, with odd spellings, and when files misbehave.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod brute;
mod escape;
mod fault;
mod found;

use std::ops::ControlFlow;

use threadline_search::{Hit, Query, Searcher};

/// The query, seen from a day in 2026.
fn query(text: &str) -> Query {
    let now: jiff::Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
    Query::parse(text, &now.to_zoned(jiff::tz::TimeZone::UTC))
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Everything that is found in a log.
fn search(text: &str, log: &[u8]) -> Vec<Hit> {
    let query = query(text);
    let mut hits = Vec::new();
    let scanned = Searcher::new(&query).search(
        || Ok(log),
        |found| {
            hits.push(found.hit(0));
            ControlFlow::Continue(())
        },
    );
    assert_eq!(scanned.unwrap().bytes, log.len() as u64);
    hits
}
