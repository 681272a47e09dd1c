//! Edit: replaces a string in a file.

mod quotes;

use std::io;
use std::ops::Range;
use std::path::Path;

use serde::Serialize;

use crate::context::ToolContext;
use crate::json::OrderedJson;
use crate::output::{Failure, ToolOutput};
use crate::patch::{Hunk, hunks};
use crate::paths::{errno_text, missing_file, resolve};
use crate::profile::Profile;
use crate::schema::{Kind, Parameter, optional, required};
use crate::text_file::{TextFile, write_atomically};
use crate::tool::{InputSchema, Permit, Tool, ToolInput};
use crate::write::check_seen;

/// The Edit tool.
pub(crate) struct Edit {
    pub(crate) profile: &'static Profile,
}

const PARAMETERS: &[Parameter] = &[
    required("file_path", Kind::Text(0), "Path of the file, preferably absolute"),
    required(
        "old_string",
        Kind::Text(0),
        "The text to replace, exactly as in the file; empty to create a file",
    ),
    required("new_string", Kind::Text(0), "The text to put in its place"),
    Parameter {
        default: Some("false"),
        ..optional("replace_all", Kind::Flag, "Replace every occurrence, not just one")
    },
];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EditRecord<'a> {
    file_path: &'a str,
    old_string: &'a str,
    new_string: &'a str,
    original_file: &'a str,
    structured_patch: Vec<Hunk>,
    user_modified: bool,
    replace_all: bool,
}

impl Tool for Edit {
    fn name(&self) -> &str {
        "Edit"
    }

    fn description(&self) -> String {
        "Replaces text in a file that has been read. `old_string` must occur exactly once, without the line numbers \
         that Read adds; include neighbouring lines to make it unique, or set `replace_all` to replace every \
         occurrence."
            .to_owned()
    }

    fn schema(&self) -> InputSchema<'_> {
        InputSchema::Parameters(PARAMETERS)
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        false
    }

    fn converts_text(&self) -> bool {
        self.profile.converts_text
    }

    fn rewrite(&self, input: &mut ToolInput, _: &Path) {
        let text = |name: &str| input.text(name).unwrap_or_default();
        let path = text("file_path");
        let lower = path.to_lowercase();
        let is_markdown = lower.ends_with(".md") || lower.ends_with(".mdx");
        let new =
            if is_markdown { text("new_string").to_owned() } else { trim_line_ends(text("new_string")) };
        let members = vec![
            ("replace_all", Some(OrderedJson::Bool(input.flag("replace_all")))),
            ("file_path", Some(path.into())),
            ("old_string", Some(text("old_string").into())),
            ("new_string", Some(OrderedJson::String(new))),
        ];
        input.set_members(members);
    }

    fn check(&self, input: &ToolInput, context: &ToolContext<'_>) -> Option<ToolOutput> {
        self.edit(input, context, true).err().map(|failure| failure.into_output(self.name()))
    }

    fn run(&self, input: &ToolInput, context: &ToolContext<'_>, _: Permit) -> ToolOutput {
        self.edit(input, context, false).unwrap_or_else(|failure| failure.into_output(self.name()))
    }
}

/// Removes white space before each line end and at the end of the text.
fn trim_line_ends(text: &str) -> String {
    let is_blank = |ch: char| ch.is_whitespace() && ch != '\n' && ch != '\r';
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let body = line.trim_end_matches(['\n', '\r']);
        out.push_str(body.trim_end_matches(is_blank));
        out.push_str(&line[body.len()..]);
    }
    out
}

impl Edit {
    /// Runs a call; with `is_check`, only as far as nothing is changed.
    fn edit(
        &self,
        input: &ToolInput,
        context: &ToolContext<'_>,
        is_check: bool,
    ) -> Result<ToolOutput, Failure> {
        let text = |name: &str| input.text(name).unwrap_or_default();
        let (given, old, new) = (text("file_path"), text("old_string"), text("new_string"));
        let replaces_all = input.flag("replace_all");
        let refused = |message: &str| Err(Failure::Refused(message.to_owned()));
        if old == new {
            return refused("No changes to make: old_string and new_string are exactly the same.");
        }
        let path = resolve(given, context)?;
        let file = match TextFile::read(&path, context.limits.edit_bytes) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                return Err(Failure::CheckFailed(errno_text(&error, "read", None)));
            }
            Err(error) => return Err(Failure::CheckFailed(errno_text(&error, "open", Some(&path)))),
        };
        let file = match file {
            None if old.is_empty() => TextFile::empty(),
            None => {
                let names_cwd = self.profile.missing_file_names_cwd;
                return refused(&missing_file(&path, context, names_cwd));
            }
            Some(file) => {
                if !old.is_empty() {
                    if path.extension().is_some_and(|extension| extension == "ipynb") {
                        return refused(
                            "File is a Jupyter Notebook. Use the NotebookEdit to edit this file.",
                        );
                    }
                    check_seen(&path, context)?;
                }
                file
            }
        };
        let replacement = Replacement::plan(&file.text, old, new, replaces_all)?;
        if is_check {
            return Ok(ToolOutput::not_run("", ""));
        }
        context.observer.before_change(&path);
        self.apply(given, &path, &file, &replacement, (new, replaces_all), context)
    }

    fn apply(
        &self,
        given: &str,
        path: &Path,
        file: &TextFile,
        replacement: &Replacement,
        (new, replaces_all): (&str, bool),
        context: &ToolContext<'_>,
    ) -> Result<ToolOutput, Failure> {
        let updated = replacement.apply(&file.text);
        let ranges: Vec<_> =
            replacement.ranges.iter().map(|range| (range.clone(), replacement.new.as_str())).collect();
        write_atomically(path, &file.encode_replaced(&ranges))?;
        context.files.written(path, &updated);
        let record = EditRecord {
            file_path: given,
            old_string: &replacement.old,
            new_string: new,
            original_file: &file.text,
            structured_patch: hunks(&file.text, &updated),
            user_modified: false,
            replace_all: replaces_all,
        };
        let suffix = self.profile.written_suffix;
        let text = match (replaces_all, self.profile.replace_all_quotes) {
            (false, _) => format!("The file {given} has been updated successfully.{suffix}"),
            (true, false) => {
                format!(
                    "The file {given} has been updated. All occurrences were successfully replaced.{suffix}"
                )
            }
            (true, true) => format!(
                "The file {given} has been updated. All occurrences of '{}' were successfully replaced with '{new}'.\
                 {suffix}",
                replacement.old
            ),
        };
        let mut output = ToolOutput::success(text, &record);
        output.changed.push(path.to_owned());
        Ok(output)
    }
}

/// A replacement with its places in the text.
pub(crate) struct Replacement {
    /// The ranges to replace, sorted.
    ranges: Vec<Range<usize>>,
    /// The string of the file that was matched.
    old: String,
    /// The text that replaces each range.
    new: String,
}

impl Replacement {
    /// Returns the replacement of `old` in the text of a file. An empty `old` fills an empty file.
    pub(crate) fn plan(text: &str, old: &str, new: &str, replaces_all: bool) -> Result<Self, Failure> {
        if !old.is_empty() {
            return Self::find(text, old, new, replaces_all);
        }
        if !text.trim().is_empty() {
            return Err(Failure::Refused("Cannot create new file - file already exists.".to_owned()));
        }
        let all = std::iter::once(0..text.len());
        Ok(Self { ranges: all.collect(), old: String::new(), new: new.to_owned() })
    }

    fn find(text: &str, old: &str, new: &str, replaces_all: bool) -> Result<Self, Failure> {
        let Some(actual) = quotes::find_actual(text, old) else {
            return Err(Failure::Refused(format!("String to replace not found in file.\nString: {old}")));
        };
        let count = text.matches(actual).count();
        if count > 1 && !replaces_all {
            return Err(Failure::Refused(format!(
                "Found {count} matches of the string to replace, but replace_all is false. To replace all occurrences, \
                 set replace_all to true. To replace only one occurrence, please provide more context to uniquely \
                 identify the instance.\nString: {old}"
            )));
        }
        let new = if actual == old { new.to_owned() } else { quotes::curl_like(actual, new) };
        let with_line_end = format!("{actual}\n");
        // Deleting all of a line deletes its line end too.
        let removes_line = new.is_empty() && !actual.ends_with('\n') && text.contains(&with_line_end);
        let pattern = if removes_line { with_line_end.as_str() } else { actual };
        let matches = text.match_indices(pattern).map(|(at, _)| at..at + pattern.len());
        let ranges = matches.take(if replaces_all { usize::MAX } else { 1 }).collect();
        Ok(Self { ranges, old: actual.to_owned(), new })
    }

    pub(crate) fn apply(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for range in &self.ranges {
            out.push_str(&text[at..range.start]);
            out.push_str(&self.new);
            at = range.end;
        }
        out.push_str(&text[at..]);
        out
    }
}

#[cfg(test)]
mod tests;
