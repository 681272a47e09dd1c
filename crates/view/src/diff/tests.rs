use proptest::prelude::*;
use similar::{Algorithm, ChangeTag, DiffOp, DiffableStr};
use threadline_entry::Json;
use threadline_entry::lens::FromJson;

use super::anchor::{compare_first_lines, sorted_lines};
use super::line_diff::CONTEXT;
use super::text_lines::{first_line, lines_from_end, lines_of};
use super::*;

/// Returns the lines of operations of the library.
fn op_lines<'t>(ops: &[DiffOp], old: &[&'t str], new: &[&'t str]) -> Vec<(DiffChange, &'t str)> {
    let changes = ops.iter().flat_map(|op| op.iter_changes(old, new));
    let line = |change: similar::Change<&'t str>| match change.tag() {
        ChangeTag::Equal => (DiffChange::Kept, change.value()),
        ChangeTag::Delete => (DiffChange::Removed, change.value()),
        ChangeTag::Insert => (DiffChange::Added, change.value()),
    };
    changes.map(line).collect()
}

/// Returns a text of the lines with these numbers. Few lines are different, and all ends of lines occur.
fn text_of(numbers: &[usize]) -> String {
    const LINES: [&str; 9] = ["a\n", "b\n", "\n", "c\r\n", "a\r", "é d\n", "x y z\n", "x w z\n", "end"];
    numbers.iter().map(|number| LINES[*number]).collect()
}

/// Returns two texts, of which the second often is an edited copy of the first.
fn any_texts() -> impl Strategy<Value = (String, String)> {
    let numbers = |kinds: usize, count: usize| prop::collection::vec(0..kinds, 0..count);
    let edit = (0_usize..60, 0_usize..4, numbers(9, 5));
    let edited = (numbers(9, 60), prop::collection::vec(edit, 0..5)).prop_map(|(old, edits)| {
        let mut new = old.clone();
        for (at, n_removed, added) in edits {
            let at = at.min(new.len());
            let end = (at + n_removed).min(new.len());
            new.splice(at..end, added);
        }
        (old, new)
    });
    let texts = prop_oneof![edited, (numbers(3, 40), numbers(3, 40)), (numbers(9, 20), numbers(9, 20))];
    texts.prop_map(|(old, new)| (text_of(&old), text_of(&new)))
}

#[test]
fn first_lines_are_compared_as_texts() {
    let texts = ["", "a", "a\n", "a\nb", "a\r\nc", "a\rc", "a\r", "ab\n", "b", "\n", "\r\n", "é\n"];
    for a in texts {
        for b in texts {
            assert_eq!(compare_first_lines(a, b), first_line(a).cmp(first_line(b)), "{a:?} {b:?}");
        }
    }
}

proptest! {
    #[test]
    fn groups_and_lines_are_those_of_the_library((old, new) in any_texts()) {
        let (old_lines, new_lines) = (old.tokenize_lines(), new.tokenize_lines());
        let ops = similar::capture_diff_slices(Algorithm::Myers, &old_lines, &new_lines);
        let expected = similar::group_diff_ops(ops.clone(), CONTEXT);
        let diff = LineDiff::new(&old, &new);
        prop_assert_eq!(diff.groups().count(), expected.len());
        let hunks = hunks(&old, &new);
        prop_assert_eq!(hunks.len(), expected.len());
        for ((group, ops), hunk) in diff.groups().zip(&expected).zip(&hunks) {
            let (old_line, new_line) = (ops[0].old_range().start, ops[0].new_range().start);
            prop_assert_eq!((group.old_line, group.new_line), (old_line, new_line));
            prop_assert_eq!((hunk.old_start, hunk.new_start), (old_line as u64 + 1, new_line as u64 + 1));
            let lines = op_lines(ops, &old_lines, &new_lines);
            prop_assert_eq!(group.lines().collect::<Vec<_>>(), lines.clone());
            let lines = lines.iter().map(|(change, line)| (*change, line.trim_end_matches(['\n', '\r'])));
            prop_assert!(hunk.lines().map(|line| (line.change, line.text)).eq(lines));
        }
        let mut unified = String::new();
        diff.write_unified(&mut unified);
        prop_assert_eq!(&unified, &TextDiff::from_lines(&old, &new).unified_diff().to_string());
        let lines = op_lines(&ops, &old_lines, &new_lines);
        let count = |change| lines.iter().filter(|(of, _)| *of == change).count();
        prop_assert_eq!(line_counts(&old, &new), (count(DiffChange::Added), count(DiffChange::Removed)));
    }

    #[test]
    fn texts_that_are_compared_in_parts_consist_of_their_sections(
        (old, new) in any_texts(), max_pairs in 0_usize..20,
    ) {
        let diff = LineDiff::with_max_pairs(&old, &new, max_pairs);
        let (mut old_text, mut new_text) = (String::new(), String::new());
        for (i, section) in diff.sections().enumerate() {
            old_text.extend([section.removed, section.kept]);
            new_text.extend([section.added, section.kept]);
            prop_assert!(i == 0 || !section.removed.is_empty() || !section.added.is_empty());
        }
        prop_assert_eq!((old_text, new_text), (old, new));
    }
}

#[test]
fn many_short_lines_take_few_bytes() {
    let many = "\n".repeat(100_000);
    for (old, new) in [(&*many, "a\nb\n"), ("a\nb\n", &*many), (&*many, ""), ("", &*many)] {
        assert!(LineDiff::new(old, new).lengths.capacity() <= 16);
        let hunks = hunks(old, new);
        let bytes = |hunk: &Hunk| hunk.text.capacity() + hunk.headers.capacity() + hunk.changed.capacity();
        assert_eq!(hunks.len(), 1);
        assert!(bytes(&hunks[0]) <= 100_010, "{}", bytes(&hunks[0]));
        let patch = unified(old, new, ("x", "y"));
        assert!(patch.capacity() <= 200_100, "{}", patch.capacity());
    }
    // Too many lines to compare them one by one.
    let more = many.repeat(2) + "a\n";
    let diff = LineDiff::new(&more, "b\na\nb\n");
    assert!(diff.sections().count() == 2 && diff.lengths.capacity() <= 16);
    assert_eq!(line_counts(&more, "b\na\nb\n"), (2, 200_000));
    assert_eq!((sorted_lines(&more).len(), sorted_lines(&more).capacity()), (200_001, 200_001));
}

#[test]
fn alternating_short_lines_take_few_bytes() {
    let old: String = (0..3_000).map(|idx| format!("{}{idx}\n", "\n".repeat(9))).collect();
    let new: String = (0..3_000).map(|idx| format!("{}{idx}\n", "a\n\n".repeat(9))).collect();
    let length = old.len() + new.len();
    let diff = LineDiff::new(&old, &new);
    assert_eq!(line_counts(&old, &new), (27_000, 0));
    assert!(diff.lengths.capacity() <= 3 * length, "{} {length}", diff.lengths.capacity());
    let hunk = hunks(&old, &new).remove(0);
    assert!(hunk.text.capacity() + hunk.headers.capacity() + hunk.changed.capacity() <= length);
}

#[test]
fn very_many_hunks_are_joined() {
    let text = |changed: &str| {
        let lines = (0..(MAX_HUNKS + 3) * 8).map(|idx| match idx % 8 {
            0 => format!("{changed}\n"),
            _ => format!("{idx}\n"),
        });
        lines.collect::<String>()
    };
    let (old, new) = (text("a"), text("b"));
    let hunks = hunks(&old, &new);
    assert_eq!(hunks.len(), MAX_HUNKS + 1);
    assert_eq!(Hunk::counts(&hunks), (MAX_HUNKS + 3, MAX_HUNKS + 3));
    let last = &hunks[MAX_HUNKS];
    assert_eq!((last.old_start, last.new_start, Hunk::counts(std::slice::from_ref(last))), (0, 0, (3, 3)));
}

#[test]
fn a_new_or_deleted_text_is_one_hunk_of_all_lines() {
    for text in ["a", "a\n", "\n\n", "a\r\nb\rc\n\r\nd", "\r", "é\n\n\nx"] {
        assert_eq!(lines_of(text).collect::<Vec<_>>(), text.tokenize_lines(), "{text:?}");
        let mut from_end: Vec<&str> = lines_from_end(text).collect();
        from_end.reverse();
        assert_eq!(from_end, text.tokenize_lines(), "{text:?}");
        for (old, new, change) in [("", text, DiffChange::Added), (text, "", DiffChange::Removed)] {
            let found = hunks(old, new);
            let expected = text.tokenize_lines().into_iter();
            let expected = expected.map(|line| (change, line.trim_end_matches(['\n', '\r'])));
            let lines = found[0].lines().map(|line| (line.change, line.text));
            assert!(lines.eq(expected), "{text:?}");
            assert_eq!((found.len(), found[0].old_start, found[0].new_start), (1, 1, 1), "{text:?}");
        }
    }
}

#[test]
fn a_patch_has_the_counts_of_its_hunks() {
    let patch = r#"[{"lines":["+a","-b"," c","d","","\\ No newline","-"]},{},{"lines":["+","++","é"]}]"#;
    let hunks = || Json::parse(patch).unwrap().items().filter_map(PatchHunk::from_json);
    assert_eq!(Hunk::patch_counts(hunks()), (3, 2));
    assert_eq!(Hunk::counts(&hunks().map(Hunk::from_patch).collect::<Vec<_>>()), (3, 2));
}

#[test]
fn long_texts_with_little_in_common_are_replaced_whole() {
    let text = |step: usize| {
        let lines = (0..6000).map(|idx| format!("line {}", idx * step % 2999));
        format!("same\n{}\nend", lines.collect::<Vec<_>>().join("\n"))
    };
    let hunks = hunks(&text(7), &text(13));
    assert_eq!((hunks.len(), hunks[0].lines().count()), (1, 1 + 5999 + 5999 + 2));
    assert_eq!(Hunk::counts(&hunks), (5999, 5999));
}

#[test]
fn long_texts_are_compared_between_the_lines_that_they_have_in_common() {
    let lines: Vec<String> = (0..9000).map(|idx| format!("line {idx}")).collect();
    let mut changed = lines.clone();
    changed[10] = "one".to_owned();
    changed.remove(4000);
    changed.insert(8000, "two".to_owned());
    let hunks = hunks(&lines.join("\n"), &changed.join("\n"));
    assert_eq!((hunks.len(), Hunk::counts(&hunks)), (3, (2, 2)));
    let starts: Vec<u64> = hunks.iter().map(|hunk| hunk.old_start).collect();
    assert_eq!(starts, [8, 3998, 7999]);
}

#[test]
fn a_unified_diff_is_that_of_the_library() {
    let long = |step: usize| (0..40).map(|idx| format!("{}\n", idx * step % 31)).collect::<String>();
    let texts = ["", "a", "a\n", "a\nb\n", "a\nc\nd", "a\r\nb\rc", &long(3), &long(7)];
    for (old, new) in texts.iter().flat_map(|old| texts.iter().map(move |new| (*old, *new))) {
        let mut out = String::new();
        LineDiff::new(old, new).write_unified(&mut out);
        assert_eq!(out, TextDiff::from_lines(old, new).unified_diff().to_string(), "{old:?} {new:?}");
    }
}

fn shown(hunks: &[Hunk]) -> String {
    let mut out = String::new();
    for hunk in hunks {
        out.push_str(&format!("@@ -{} +{}\n", hunk.old_start, hunk.new_start));
        for line in hunk.lines() {
            let sign = line.change.sign();
            let mut text = line.text.to_string();
            for range in line.changed().collect::<Vec<_>>().into_iter().rev() {
                text.insert(range.end, ']');
                text.insert(range.start, '[');
            }
            out.push_str(&format!("{sign}{text}\n"));
        }
    }
    out
}

#[test]
fn a_replaced_line_shows_the_words_that_differ() {
    let old = "a\nb\nlet count = 3;\nc\nd\n";
    let new = "a\nb\nlet count = 40;\nc\nd\n";
    insta::assert_snapshot!(shown(&hunks(old, new)), @r"
    @@ -1 +1
     a
     b
    -let count = [3;]
    +let count = [40;]
     c
     d
    ");
}

#[test]
fn words_of_very_many_replaced_lines_are_not_marked() {
    let text = |count: usize, end: &str| (0..count).map(|idx| format!("let a{idx} = {end}\n")).collect();
    let marks = |count: usize| {
        let (old, new): (String, String) = (text(count, "1"), text(count, "2"));
        let hunks = hunks(&old, &new);
        hunks[0].lines().filter(|line| line.changed().next().is_some()).count()
    };
    assert_eq!(marks(MAX_COMPARED_LINES), 2 * MAX_COMPARED_LINES);
    assert_eq!(marks(MAX_COMPARED_LINES + 1), 0);
}

#[test]
fn lines_of_very_many_short_words_are_not_compared() {
    let is_marked = |old: &str, new: &str| {
        assert!(old.len().max(new.len()) <= MAX_COMPARED_LENGTH);
        hunks(old, new)[0].lines().any(|line| line.changed().next().is_some())
    };
    // Every other word differs.
    let line = |words: [&str; 2], count: usize| words.join(" ").repeat(count);
    assert!(!is_marked(&line(["a", "b "], 490), &line(["a", "c "], 490)));
    assert!(is_marked(&line(["a", "b "], 90), &line(["a", "c "], 90)));
    assert!(is_marked(&line(["warp", "weft "], 190), &line(["warp", "wefts "], 180)));
    // All of the others are at the start and the end.
    let few = |word: &str| format!("{}{word} {}", line(["a", "b "], 240), line(["a", "b "], 240));
    assert!(is_marked(&few("d"), &few("e")));
}

#[test]
fn lines_that_have_nothing_in_common_are_not_marked() {
    assert_eq!(
        shown(&hunks("one\n", "completely different words\n")),
        "@@ -1 +1\n-one\n+completely different words\n"
    );
}

#[test]
fn appended_hunks_keep_their_lines_and_marks() {
    let first = hunks("one two three\nx\n", "one too three\nx\n").remove(0);
    let second = hunks("a\nfour five six\n", "a\nfour fife six\n").remove(0);
    let mut joined = first.clone();
    joined.append(&second);
    assert_eq!(shown(&[joined.clone()]), shown(&[first]) + shown(&[second]).trim_start_matches("@@ -1 +1\n"));
    assert_eq!(joined.lines().filter(|line| line.changed().next().is_some()).count(), 4);
    assert_eq!(Hunk::counts(&[joined]), (2, 2));
}

#[test]
fn the_patch_of_a_whole_file_is_that_of_the_library() {
    for text in ["a", "a\n", "a\nb", "a\nb\n", "\n", "a\r\nb\r", "é\n\n\nz"] {
        for (old, new) in [("", text), (text, "")] {
            let expected = TextDiff::from_lines(old, new).unified_diff().header("x", "y").to_string();
            assert_eq!(unified(old, new, ("x", "y")), expected);
        }
    }
    assert_eq!(unified("", "", ("x", "y")), "");
}
