//! Write: creates or replaces a file.

use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;

use crate::context::ToolContext;
use crate::file_state::{ContentDigest, modified_ms};
use crate::output::{Failure, ToolOutput};
use crate::patch::{Hunk, hunks};
use crate::paths::{errno_text, resolve};
use crate::profile::{LineNumbers, OverwriteText, Profile};
use crate::read::number_lines;
use crate::schema::{Kind, Parameter, required};
use crate::text_file::{TextFile, write_atomically};
use crate::tool::{InputSchema, Permit, Tool, ToolInput};

/// The Write tool.
pub(crate) struct WriteFile {
    pub(crate) profile: &'static Profile,
}

const PARAMETERS: &[Parameter] = &[
    required("file_path", Kind::Text(0), "Path of the file, preferably absolute"),
    required("content", Kind::Text(0), "The whole new content of the file"),
];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WriteRecord<'a> {
    r#type: &'static str,
    file_path: &'a str,
    content: &'a str,
    structured_patch: Vec<Hunk>,
    original_file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_modified: Option<bool>,
}

impl Tool for WriteFile {
    fn name(&self) -> &str {
        "Write"
    }

    fn description(&self) -> String {
        "Creates a file, or replaces all of an existing one, which must have been read first. Missing folders are \
         created. To change a part of a file, use Edit."
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

    fn check(&self, input: &ToolInput, context: &ToolContext<'_>) -> Option<ToolOutput> {
        self.write(input, context, true).err().map(|failure| failure.into_output(self.name()))
    }

    fn run(&self, input: &ToolInput, context: &ToolContext<'_>, _: Permit) -> ToolOutput {
        self.write(input, context, false).unwrap_or_else(|failure| failure.into_output(self.name()))
    }
}

impl WriteFile {
    /// Runs a call; with `is_check`, only as far as nothing is changed.
    fn write(
        &self,
        input: &ToolInput,
        context: &ToolContext<'_>,
        is_check: bool,
    ) -> Result<ToolOutput, Failure> {
        let given = input.text("file_path").unwrap_or_default();
        let content = input.text("content").unwrap_or_default();
        let path = resolve(given, context)?;
        match fs::metadata(&path) {
            Ok(_) => check_seen(&path, context)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::CheckFailed(errno_text(&error, "statx", Some(&path)))),
        }
        if is_check {
            return Ok(ToolOutput::not_run("", ""));
        }
        context.observer.before_change(&path);
        let old = match TextFile::read(&path, context.limits.edit_bytes) {
            Ok(old) => old,
            Err(error) if error.kind() == io::ErrorKind::NotFound => TextFile::empty(),
            Err(error) => return Err(Failure::Failed(errno_text(&error, "open", Some(&path)))),
        };
        write_atomically(&path, &old.encode_new(content))?;
        context.files.written(&path, content);
        Ok(self.output(given, content, &old, path.as_path()))
    }

    fn output(&self, given: &str, content: &str, old: &TextFile, path: &Path) -> ToolOutput {
        // The reference treats an empty file like a missing one.
        let is_new = old.text.is_empty();
        let record = WriteRecord {
            r#type: if is_new { "create" } else { "update" },
            file_path: given,
            content,
            structured_patch: if is_new { Vec::new() } else { hunks(&old.text, content) },
            original_file: (!is_new).then_some(old.text.as_str()),
            user_modified: self.profile.write_records_user_modified.then_some(false),
        };
        let suffix = self.profile.written_suffix;
        let text = match self.profile.overwrite_text {
            _ if is_new => format!("File created successfully at: {given}{suffix}"),
            OverwriteText::Short => format!("The file {given} has been updated successfully.{suffix}"),
            OverwriteText::Snippet => format!(
                "The file {given} has been updated. Here's the result of running `cat -n` on a snippet of the edited \
                 file:\n{}",
                number_lines(content, 1, LineNumbers::Arrow)
            ),
        };
        let mut output = ToolOutput::success(text, &record);
        output.changed.push(path.to_owned());
        output
    }
}

/// Refuses to change a file that the model has not read, or that changed since.
pub(crate) fn check_seen(path: &Path, context: &ToolContext<'_>) -> Result<(), Failure> {
    let Some(state) = context.files.get(path) else {
        return Err(Failure::Refused(
            "File has not been read yet. Read it first before writing to it.".to_owned(),
        ));
    };
    let is_newer = fs::metadata(path).is_ok_and(|metadata| modified_ms(&metadata) > state.modified_ms);
    // A new time with the content that was seen is no change.
    let is_same = || {
        state.digest.is_some_and(|digest| {
            let current = TextFile::read(path, context.limits.edit_bytes);
            current.is_ok_and(|file| {
                let text = file.text.strip_prefix('\u{FEFF}').unwrap_or(&file.text);
                ContentDigest::of(&file.text) == digest || ContentDigest::of(text) == digest
            })
        })
    };
    if is_newer && !is_same() {
        return Err(Failure::Refused(
            "File has been modified since read, either by the user or by a linter. Read it again before attempting \
             to write it."
                .to_owned(),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
