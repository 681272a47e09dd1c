use std::io::Write;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use tempfile::TempDir;

use super::*;

/// A client that maintains its lines according to the follower's results.
struct FollowingClient {
    follower: Follower,
    lines: Vec<String>,
}

impl FollowingClient {
    fn new(follower: Follower) -> Self {
        Self { follower, lines: Vec::new() }
    }

    fn poll(&mut self) -> PollOutcome {
        let mut fresh = Vec::new();
        let change = self.follower.poll(|entry, _| fresh.push(entry.text().to_owned())).unwrap();
        if change == PollOutcome::Replaced {
            self.lines.clear();
        }
        self.lines.extend(fresh);
        change
    }

    fn finish(mut self) -> Vec<String> {
        self.follower.finish(|entry, _| self.lines.push(entry.text().to_owned()));
        self.lines
    }
}

fn fixture() -> (TempDir, PathBuf, FollowingClient) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let reader = FollowingClient::new(Follower::open(&path));
    (dir, path, reader)
}

fn add(path: &Path, text: &str) {
    let mut file = fs_err::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// Replaces the file with another one.
fn swap(path: &Path, text: &str) {
    let other = path.with_extension("new");
    fs_err::write(&other, text).unwrap();
    fs_err::rename(other, path).unwrap();
}

#[test]
fn an_incomplete_line_is_not_delivered() {
    let (_dir, path, mut reader) = fixture();
    assert_eq!(reader.poll(), PollOutcome::Missing);
    add(&path, "{\"a\"");
    assert_eq!(reader.poll(), PollOutcome::Unchanged);
    add(&path, ":1}\n{\"b\":");
    assert_eq!(reader.poll(), PollOutcome::Appended);
    assert_eq!(reader.lines, ["{\"a\":1}"]);
    assert_eq!(reader.follower.mark().at, Position { line_no: 2, byte_offset: 8 });
    assert_eq!(reader.poll(), PollOutcome::Unchanged);
    assert_eq!(reader.finish(), ["{\"a\":1}", "{\"b\":"]);
}

#[test]
fn entries_have_their_position_and_ending() {
    let (_dir, path, _) = fixture();
    add(&path, "{\"a\":1}\n\n{\"b\":2}{\"c\":3}\n{}");
    let mut follower = Follower::open(&path);
    let mut reported = Vec::new();
    let mut tell =
        |entry: Entry, _| reported.push((entry.at().line_no, entry.at().byte_offset, entry.ending()));
    follower.poll(&mut tell).unwrap();
    follower.finish(tell);
    let newline = Ending::Newline;
    assert_eq!(
        reported,
        [(1, 0, newline), (2, 8, newline), (3, 9, Ending::None), (3, 16, newline), (4, 24, Ending::None)]
    );
}

#[test]
fn a_replaced_file_is_detected() {
    let (_dir, path, mut reader) = fixture();
    add(&path, "a\nb\n");
    reader.poll();
    swap(&path, "a\nb\nc\n");
    assert_eq!(reader.poll(), PollOutcome::Replaced);
    assert_eq!(reader.lines, ["a", "b", "c"]);
    swap(&path, "");
    assert_eq!(reader.poll(), PollOutcome::Replaced);
    assert!(reader.lines.is_empty());
    swap(&path, "d\n");
    assert_eq!(reader.poll(), PollOutcome::Appended, "there were no lines to discard");
    assert_eq!(reader.lines, ["d"]);
}

#[test]
fn a_truncated_or_rewritten_file_is_detected() {
    let (_dir, path, mut reader) = fixture();
    for (before, after) in
        [("a\nb\n", "a\n"), ("a\nb\n", "a\nc\nd\n"), ("a\nb\n", "c\nb\nd\n"), ("a\nhalf", "a\nHALF\n")]
    {
        swap(&path, before);
        reader.poll();
        fs_err::write(&path, after).unwrap();
        assert_eq!(reader.poll(), PollOutcome::Replaced, "{after}");
        assert_eq!(reader.lines, after.lines().collect::<Vec<_>>());
    }
}

#[test]
fn a_rewrite_of_the_same_size_and_time_is_detected() {
    let (_dir, path, mut reader) = fixture();
    add(&path, "a\nb\n");
    let modified = fs_err::metadata(&path).unwrap().modified().unwrap();
    reader.poll();
    let mut file = fs_err::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all(b"a\nX\n").unwrap();
    file.set_modified(modified).unwrap();
    assert_eq!(reader.poll(), PollOutcome::Replaced);
    assert_eq!(reader.lines, ["a", "X"]);
}

#[test]
fn a_file_that_is_moved_away_and_back_is_the_same_file() {
    let (_dir, path, mut reader) = fixture();
    add(&path, "a\n");
    reader.poll();
    fs_err::rename(&path, path.with_extension("away")).unwrap();
    assert_eq!(reader.poll(), PollOutcome::Missing);
    add(&path.with_extension("away"), "b\n");
    fs_err::rename(path.with_extension("away"), &path).unwrap();
    assert_eq!(reader.poll(), PollOutcome::Appended);
    assert_eq!(reader.lines, ["a", "b"]);
}

#[test]
fn following_resumes_at_a_mark() {
    let (_dir, path, mut reader) = fixture();
    add(&path, "a\nb\nhal");
    reader.poll();
    let mark = reader.follower.mark();
    add(&path, "f\nc\n");
    let mut second = FollowingClient::new(Follower::resume_at(&path, mark));
    assert_eq!(second.follower.mark(), mark);
    assert_eq!(second.poll(), PollOutcome::Appended);
    assert_eq!(second.lines, ["half", "c"]);
    assert_eq!(second.follower.mark().at, Position { line_no: 5, byte_offset: 11 });
    let mut third = FollowingClient::new(Follower::resume_at(&path, second.follower.mark()));
    assert_eq!(third.poll(), PollOutcome::Unchanged);

    for change in
        [|path: &Path| swap(path, "a\nb\nhalf\n"), |path: &Path| fs_err::write(path, "a\nX\n").unwrap()]
    {
        swap(&path, "a\nb\n");
        let mut first = FollowingClient::new(Follower::open(&path));
        first.poll();
        let mark = first.follower.mark();
        drop(first);
        change(&path);
        let mut second = FollowingClient::new(Follower::resume_at(&path, mark));
        assert_eq!(second.poll(), PollOutcome::Replaced);
        assert_eq!(second.lines.join("\n"), fs_err::read_to_string(&path).unwrap().trim_end());
    }
    fs_err::remove_file(&path).unwrap();
    let mut second = FollowingClient::new(Follower::resume_at(&path, mark));
    assert_eq!(second.poll(), PollOutcome::Missing);
    assert_eq!(second.follower.mark(), mark);
    add(&path, "new\n");
    assert_eq!(second.poll(), PollOutcome::Replaced);
    assert_eq!(second.lines, ["new"]);
}

#[test]
fn a_line_of_many_chunks_is_delivered_whole() {
    let (_dir, path, mut reader) = fixture();
    let long = "x".repeat(20 * CHUNK);
    add(&path, &long);
    assert_eq!(reader.poll(), PollOutcome::Unchanged);
    add(&path, "\nshort\n");
    assert_eq!(reader.poll(), PollOutcome::Appended);
    assert!(reader.lines == [long, "short".into()]);
    assert!(reader.follower.pending.capacity() <= 16 * CHUNK);
}

#[derive(Clone, Debug)]
enum WriterAction {
    Add(String),
    Swap(String),
    Rewrite(String),
    Remove,
    Poll,
    Resume,
}

fn act() -> impl Strategy<Value = WriterAction> {
    let text = "[ab\n]{0,12}";
    prop_oneof![
        5 => text.prop_map(WriterAction::Add),
        1 => text.prop_map(WriterAction::Swap),
        1 => text.prop_map(WriterAction::Rewrite),
        1 => Just(WriterAction::Remove),
        5 => Just(WriterAction::Poll),
        1 => Just(WriterAction::Resume),
    ]
}

fn run(acts: Vec<WriterAction>) -> Result<(), TestCaseError> {
    let (_dir, path, mut reader) = fixture();
    add(&path, "");
    for act in acts {
        match act {
            WriterAction::Add(text) => add(&path, &text),
            WriterAction::Swap(text) => swap(&path, &text),
            WriterAction::Rewrite(text) => fs_err::write(&path, text).unwrap(),
            WriterAction::Remove => drop(fs_err::remove_file(&path)),
            WriterAction::Poll => drop(reader.poll()),
            WriterAction::Resume => {
                let mark = reader.follower.mark();
                reader.follower = Follower::resume_at(&path, mark);
            }
        }
    }
    add(&path, "");
    reader.poll();
    let text = fs_err::read_to_string(&path).unwrap();
    prop_assert_eq!(reader.finish(), text.lines().collect::<Vec<_>>());
    Ok(())
}

proptest! {
    #[test]
    fn the_final_lines_equal_those_of_the_file(acts in prop::collection::vec(act(), 0..40)) {
        run(acts)?;
    }
}
