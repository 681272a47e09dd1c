//! Read errors: matches before the error are reported, and so is the error.

use std::io::{self, Read};
use std::ops::ControlFlow;

use threadline_search::Searcher;
use threadline_testkit::log;

const TALK: &str = "u1 user \"slow one\"\nu2 user \"slow two\"\n";

/// Returns its bytes, then fails.
struct Failing<'a>(&'a [u8]);

impl Read for Failing<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() {
            return Err(io::Error::other("the disk is gone"));
        }
        self.0.read(into)
    }
}

fn lines_of<R: Read>(
    open: impl Fn() -> io::Result<R>,
) -> (Vec<u64>, io::Result<threadline_search::SearchStats>) {
    let query = crate::query("slow");
    let mut lines = Vec::new();
    let scanned = Searcher::new(&query).search(open, |found| {
        lines.push(found.at().line_no);
        ControlFlow::Continue(())
    });
    (lines, scanned)
}

#[test]
fn matches_before_a_read_error_are_reported() {
    let log = log(TALK);
    let (lines, scanned) = lines_of(|| Ok(Failing(&log)));
    assert_eq!(lines, [1, 2]);
    assert_eq!(scanned.unwrap_err().to_string(), "the disk is gone");
}

#[test]
fn a_missing_file_is_an_error_and_the_searcher_stays_usable() {
    let query = crate::query("slow");
    let mut searcher = Searcher::new(&query);
    let gone = || Err::<&[u8], _>(io::Error::from(io::ErrorKind::NotFound));
    assert_eq!(
        searcher.search(gone, |_| ControlFlow::Continue(())).unwrap_err().kind(),
        io::ErrorKind::NotFound
    );
    let log = log(TALK);
    let mut found = 0;
    let counted = |_: &threadline_search::MatchRef<'_>| {
        found += 1;
        ControlFlow::Continue(())
    };
    searcher.search(|| Ok(&log[..]), counted).unwrap();
    assert_eq!(found, 2);
}

#[test]
fn an_incomplete_line_does_not_match() {
    let mut log = log(TALK);
    log.extend_from_slice(br#"{"type":"user","message":{"role":"user","content":"slow thr"#);
    assert_eq!(lines_of(|| Ok(&log[..])).0, [1, 2]);
    log.extend_from_slice(br#"ee"}}"#);
    assert_eq!(lines_of(|| Ok(&log[..])).0, [1, 2, 3], "the last line needs no newline");
}

#[test]
fn a_huge_line_is_searched_and_reported() {
    let huge = format!("u3 user \"{} slow end\"\n", "x".repeat(25 << 20));
    let log = log(&format!("{TALK}{huge}u4 user \"slow four\"\n"));
    let (lines, scanned) = lines_of(|| Ok(&log[..]));
    assert_eq!(lines, [1, 2, 3, 4]);
    let [(line_no, length)] = scanned.unwrap().huge_lines[..] else { panic!("one line is huge") };
    assert_eq!(line_no, 3);
    assert!(length > 25 << 20);
}

#[test]
fn lines_are_numbered_across_blocks() {
    let filler = "y".repeat(5000);
    let mut notation = String::new();
    for i in 0..1000 {
        let word = if i % 400 == 399 { "slow" } else { "fast" };
        notation.push_str(&format!("u{i} user \"{word} {filler}\"\n"));
    }
    let log = log(&notation);
    assert!(log.len() > 4 << 20);
    assert_eq!(lines_of(|| Ok(&log[..])).0, [400, 800]);
    assert_eq!(crate::search("slow", &log).iter().map(|found| found.line_no).collect::<Vec<_>>(), [400, 800]);
}
