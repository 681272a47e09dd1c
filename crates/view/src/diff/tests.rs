use threadline_entry::Json;
use threadline_entry::lens::FromJson;

use super::*;

#[test]
fn a_new_or_deleted_text_is_one_hunk_of_all_lines() {
    for text in ["a", "a\n", "\n\n", "a\r\nb\rc\n\r\nd", "\r", "é\n\n\nx"] {
        for (old, new, change) in [("", text, DiffChange::Added), (text, "", DiffChange::Removed)] {
            let found = hunks(old, new);
            let expected = text.tokenize_lines().into_iter();
            let expected = expected.map(|line| (change, line.trim_end_matches(['\n', '\r'])));
            let lines = found[0].lines.iter().map(|line| (line.change, &*line.text));
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

fn shown(hunks: &[Hunk]) -> String {
    let mut out = String::new();
    for hunk in hunks {
        out.push_str(&format!("@@ -{} +{}\n", hunk.old_start, hunk.new_start));
        for line in &hunk.lines {
            let sign = line.change.sign();
            let mut text = line.text.to_string();
            for range in line.changed.iter().rev() {
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
        hunks[0].lines.iter().filter(|line| !line.changed.is_empty()).count()
    };
    assert_eq!(marks(MAX_COMPARED_LINES), 2 * MAX_COMPARED_LINES);
    assert_eq!(marks(MAX_COMPARED_LINES + 1), 0);
}

#[test]
fn lines_that_have_nothing_in_common_are_not_marked() {
    assert_eq!(
        shown(&hunks("one\n", "completely different words\n")),
        "@@ -1 +1\n-one\n+completely different words\n"
    );
}

#[test]
fn equal_texts_have_no_patch() {
    assert_eq!(unified("", "", ("x", "y")), "");
    assert_eq!(unified("a\n", "a\n", ("x", "y")), "");
}
