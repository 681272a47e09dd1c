use crate::testing::Fixture;

const CURRENT: &str = " (file state is current in your context — no need to Read it back)";

fn write(fixture: &Fixture, name: &str, content: &str) -> String {
    fixture.text("Write", &format!(r#"{{"file_path": "$CWD/{name}", "content": "{content}"}}"#))
}

fn read(fixture: &Fixture, name: &str) {
    fixture.run("Read", &format!(r#"{{"file_path": "$CWD/{name}"}}"#));
}

#[test]
fn a_new_file_is_created_with_its_folders() {
    let fixture = Fixture::new();
    let input = r#"{"file_path": "$CWD/deep/er/new.txt", "content": "fresh\n"}"#;
    let output = fixture.run("Write", input);
    assert_eq!(
        fixture.masked(output.text()),
        format!("File created successfully at: $CWD/deep/er/new.txt{CURRENT}")
    );
    assert_eq!(
        fixture.masked(output.record.unwrap().get()),
        r#"{"type":"create","filePath":"$CWD/deep/er/new.txt","content":"fresh\n","structuredPatch":[],"originalFile":null,"userModified":false}"#
    );
    assert_eq!(fixture.content("deep/er/new.txt"), "fresh\n");
    assert_eq!(output.changed, [fixture.path("deep/er/new.txt")]);
    assert_eq!(fixture.observed.paths(), [fixture.path("deep/er/new.txt")]);
}

#[test]
fn an_existing_file_must_have_been_read() {
    let fixture = Fixture::new();
    fixture.put("old.txt", "old\n");
    let unread = "ERR <tool_use_error>File has not been read yet. Read it first before writing to it.</tool_use_error>";
    assert_eq!(write(&fixture, "old.txt", "new"), unread);
    assert_eq!(fixture.content("old.txt"), "old\n");
    assert!(fixture.observed.paths().is_empty());
    std::fs::create_dir(fixture.path("sub")).unwrap();
    assert_eq!(write(&fixture, "sub", "x"), unread);
    // A part is enough.
    fixture.run("Read", r#"{"file_path": "old.txt", "limit": 1}"#);
    assert_eq!(
        write(&fixture, "old.txt", "new"),
        format!("The file $CWD/old.txt has been updated successfully.{CURRENT}")
    );
}

#[test]
fn an_overwrite_records_the_difference() {
    let fixture = Fixture::new();
    fixture.put("old.txt", "old\n");
    read(&fixture, "old.txt");
    assert_eq!(
        fixture.record("Write", r#"{"file_path": "$CWD/old.txt", "content": "new\nand more\n"}"#),
        r#"{"type":"update","filePath":"$CWD/old.txt","content":"new\nand more\n","structuredPatch":[{"oldStart":1,"oldLines":1,"newStart":1,"newLines":2,"lines":["-old","+new","+and more"]}],"originalFile":"old\n","userModified":false}"#
    );
    // The state after a write is known.
    assert_eq!(
        write(&fixture, "old.txt", "third\\n"),
        format!("The file $CWD/old.txt has been updated successfully.{CURRENT}")
    );
}

#[test]
fn a_file_that_changed_since_it_was_read_is_refused() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "one\n");
    read(&fixture, "a.txt");
    fixture.put("a.txt", "two\n");
    fixture.touch_later("a.txt");
    assert_eq!(
        write(&fixture, "a.txt", "mine"),
        "ERR <tool_use_error>File has been modified since read, either by the user or by a linter. Read it again before \
         attempting to write it.</tool_use_error>"
    );
    // The same content with a new time is no change.
    fixture.put("a.txt", "one\n");
    fixture.touch_later("a.txt");
    assert_eq!(
        write(&fixture, "a.txt", "mine"),
        format!("The file $CWD/a.txt has been updated successfully.{CURRENT}")
    );
}

#[test]
fn an_empty_file_counts_as_new() {
    let fixture = Fixture::new();
    write(&fixture, "a.txt", "");
    assert_eq!(write(&fixture, "a.txt", "now"), format!("File created successfully at: $CWD/a.txt{CURRENT}"));
}

#[test]
fn a_path_below_a_file_is_refused() {
    let fixture = Fixture::new();
    fixture.put("f", "file");
    let input = r#"{"file_path": "$CWD/f/below.txt", "content": "x"}"#;
    let message = "Error calling tool (Write): ENOTDIR: not a directory, statx '$CWD/f/below.txt'";
    assert_eq!(fixture.text("Write", input), format!("ERR <tool_use_error>{message}</tool_use_error>"));
    assert_eq!(fixture.record("Write", input), format!("\"{message}\""));
}

#[cfg(unix)]
#[test]
fn symbolic_links_to_files_are_not_followed() {
    let fixture = Fixture::new();
    fixture.put("old.txt", "old\n");
    std::os::unix::fs::symlink("old.txt", fixture.path("link.txt")).unwrap();
    read(&fixture, "link.txt");
    assert_eq!(
        write(&fixture, "link.txt", "via"),
        "ERR Refusing to write through symlink: $CWD/link.txt. Resolve the symlink and pass the real target path \
         explicitly."
    );
    assert_eq!(fixture.content("old.txt"), "old\n");
}

#[test]
fn line_ends_are_written_as_given() {
    let fixture = Fixture::new();
    fixture.put("crlf.txt", "a\r\nb\r\n");
    read(&fixture, "crlf.txt");
    let record = fixture.record("Write", r#"{"file_path": "$CWD/crlf.txt", "content": "c\nd\n"}"#);
    assert!(record.contains(r#""originalFile":"a\nb\n""#), "{record}");
    assert_eq!(fixture.content("crlf.txt"), "c\nd\n");
}

#[test]
fn a_folder_that_cannot_be_created_is_an_error() {
    let fixture = Fixture::new();
    assert_eq!(
        fixture.text("Write", r#"{"file_path": "/proc/x/y", "content": "r"}"#),
        "ERR ENOENT: no such file or directory, mkdir '/proc/x'"
    );
}

#[test]
fn the_older_profile_shows_the_new_content() {
    let fixture = Fixture::with_profile(&crate::Profile::V2_1_20);
    assert_eq!(write(&fixture, "a.txt", "x"), "File created successfully at: $CWD/a.txt");
    assert_eq!(
        write(&fixture, "a.txt", "new\\nand more\\n"),
        "The file $CWD/a.txt has been updated. Here's the result of running `cat -n` on a snippet of the edited file:\n     \
         1→new\n     2→and more\n     3→"
    );
    let record = fixture.record("Write", r#"{"file_path": "b.txt", "content": ""}"#);
    assert_eq!(
        record,
        r#"{"type":"create","filePath":"b.txt","content":"","structuredPatch":[],"originalFile":null}"#
    );
}

#[test]
fn a_slash_at_the_end_demands_a_folder() {
    let fixture = Fixture::new();
    assert_eq!(write(&fixture, "trail/", "x"), "ERR ENOENT: no such file or directory, open '$CWD/trail/'");
    assert!(!fixture.path("trail").exists());
}
