use serde_json::value::RawValue;

use crate::testing::Fixture;
use crate::tool::validate;

const CURRENT: &str = " (file state is current in your context — no need to Read it back)";

fn edit(fixture: &Fixture, name: &str, old: &str, new: &str) -> String {
    let input =
        serde_json::json!({"file_path": format!("$CWD/{name}"), "old_string": old, "new_string": new});
    fixture.text("Edit", &input.to_string())
}

/// Creates a file, reads it and edits it.
fn edited(content: &str, old: &str, new: &str) -> (String, String) {
    let fixture = Fixture::new();
    fixture.put("a.txt", content);
    fixture.run("Read", r#"{"file_path": "a.txt"}"#);
    let text = edit(&fixture, "a.txt", old, new);
    (text, fixture.content("a.txt"))
}

fn updated() -> String {
    format!("The file $CWD/a.txt has been updated successfully.{CURRENT}")
}

fn refused(message: &str) -> String {
    format!("ERR <tool_use_error>{message}</tool_use_error>")
}

#[test]
fn a_string_is_replaced_and_recorded() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "one\ntwo\nthree\n");
    fixture.run("Read", r#"{"file_path": "a.txt"}"#);
    let output = fixture
        .run("Edit", r#"{"file_path": "$CWD/a.txt", "old_string": "two\n", "new_string": "TWO\n2\n"}"#);
    assert_eq!(fixture.masked(output.text()), updated());
    assert_eq!(
        fixture.masked(output.record.unwrap().get()),
        r#"{"filePath":"$CWD/a.txt","oldString":"two\n","newString":"TWO\n2\n","originalFile":"one\ntwo\nthree\n","structuredPatch":[{"oldStart":1,"oldLines":3,"newStart":1,"newLines":4,"lines":[" one","-two","+TWO","+2"," three"]}],"userModified":false,"replaceAll":false}"#
    );
    assert_eq!(fixture.content("a.txt"), "one\nTWO\n2\nthree\n");
    assert_eq!(fixture.observed.paths(), [fixture.path("a.txt")]);
}

#[test]
fn a_string_that_is_missing_or_ambiguous_is_refused() {
    assert_eq!(
        edited("x\n", "absent", "y").0,
        refused("String to replace not found in file.\nString: absent")
    );
    assert_eq!(
        edited("twin\ntwin\n", "twin", "single").0,
        refused(
            "Found 2 matches of the string to replace, but replace_all is false. To replace all occurrences, set \
             replace_all to true. To replace only one occurrence, please provide more context to uniquely identify the \
             instance.\nString: twin"
        )
    );
}

#[test]
fn all_occurrences_are_replaced_on_request() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "a b a\n");
    fixture.run("Read", r#"{"file_path": "a.txt"}"#);
    assert_eq!(
        fixture.text(
            "Edit",
            r#"{"file_path": "a.txt", "old_string": "a", "new_string": "c", "replace_all": "true"}"#
        ),
        format!("The file a.txt has been updated. All occurrences were successfully replaced.{CURRENT}")
    );
    assert_eq!(fixture.content("a.txt"), "c b c\n");
}

#[test]
fn equal_strings_are_refused_first() {
    let fixture = Fixture::new();
    assert_eq!(
        edit(&fixture, "none.txt", "a", "a"),
        refused("No changes to make: old_string and new_string are exactly the same.")
    );
}

#[test]
fn an_empty_old_string_creates_a_file() {
    let fixture = Fixture::new();
    assert_eq!(edit(&fixture, "a.txt", "", "created\n"), updated());
    assert_eq!(fixture.content("a.txt"), "created\n");
    assert_eq!(edit(&fixture, "a.txt", "", "x"), refused("Cannot create new file - file already exists."));
    fixture.put("blank.txt", " \n");
    edit(&fixture, "blank.txt", "", "filled\n");
    assert_eq!(fixture.content("blank.txt"), "filled\n");
}

#[test]
fn unread_missing_and_unsuitable_files_are_refused() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "x");
    assert_eq!(
        edit(&fixture, "a.txt", "x", "y"),
        refused("File has not been read yet. Read it first before writing to it.")
    );
    assert_eq!(
        edit(&fixture, "none.txt", "x", "y"),
        refused("File does not exist. Note: your current working directory is $CWD.")
    );
    fixture.put("n.ipynb", "{}");
    assert_eq!(
        edit(&fixture, "n.ipynb", "{}", "y"),
        refused("File is a Jupyter Notebook. Use the NotebookEdit to edit this file.")
    );
    assert_eq!(
        edit(&fixture, "", "x", "y"),
        refused("Error calling tool (Edit): EISDIR: illegal operation on a directory, read")
    );
}

#[test]
fn line_ends_of_the_file_are_kept() {
    assert_eq!(
        edited("a\r\nb\r\nc\r\n", "a\nb", "A\nB\nB2"),
        (updated(), "A\r\nB\r\nB2\r\nc\r\n".to_owned())
    );
}

#[test]
fn straight_quotes_match_curly_ones() {
    let (text, content) = edited("say “hello” and ‘hi’\n", "say \"hello\"", "cry \"bye\" 'q'");
    assert_eq!((text, content), (updated(), "cry “bye” 'q' and ‘hi’\n".to_owned()));
}

#[test]
fn deleting_a_line_deletes_its_line_end() {
    assert_eq!(edited("a\nb\nc\n", "b", "").1, "a\nc\n");
    assert_eq!(edited("a\nb c\n", "b", "").1, "a\n c\n");
}

#[test]
fn white_space_before_line_ends_is_removed_from_the_new_string() {
    assert_eq!(edited("a\nb\n", "b\n", "c \t \n\n  \nd ").1, "a\nc\n\n\nd");
    let fixture = Fixture::new();
    fixture.put("m.md", "x\n");
    fixture.run("Read", r#"{"file_path": "m.md"}"#);
    edit(&fixture, "m.md", "x", "y  ");
    assert_eq!(fixture.content("m.md"), "y  \n");
}

#[test]
fn the_rewritten_input_begins_with_replace_all() {
    let fixture = Fixture::new();
    let raw = r#"{"file_path": "a.rs", "old_string": "x ", "new_string": "y "}"#;
    let raw = RawValue::from_string(raw.to_owned()).unwrap();
    let input = validate(fixture.tools.get("Edit").unwrap(), &raw, &fixture.project).unwrap();
    assert_eq!(
        input.raw().get(),
        r#"{"replace_all":false,"file_path":"a.rs","old_string":"x ","new_string":"y"}"#
    );
}

#[test]
fn dollar_signs_have_no_meaning() {
    assert_eq!(edited("a $1 b\n", "$1", "$& $$").1, "a $& $$ b\n");
}
