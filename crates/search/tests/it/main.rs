//! Search over logs: compared with a naive search, with unusual escapes, and with read errors.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod escape;
mod matches;
mod naive;
mod read_error;

use std::ops::ControlFlow;

use threadline_search::{Query, SearchMatch, Searcher};

/// Parses a query, relative to a day in 2026.
fn query(text: &str) -> Query {
    let now: jiff::Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
    Query::parse(text, &now.to_zoned(jiff::tz::TimeZone::UTC))
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Returns all matches in a log.
fn search(text: &str, log: &[u8]) -> Vec<SearchMatch> {
    let query = query(text);
    let [matches, same] =
        [Searcher::new(&query), Searcher::new(&query).expecting_matches()].map(|mut searcher| {
            let mut matches = Vec::new();
            let scanned = searcher.search(
                || Ok(log),
                |found| {
                    matches.push(found.with_excerpt(0));
                    ControlFlow::Continue(())
                },
            );
            assert_eq!(scanned.unwrap().bytes, log.len() as u64);
            matches
        });
    assert_eq!(same, matches);
    matches
}
