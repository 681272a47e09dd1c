//! Read: text with line numbers, images, notebooks, PDF.

mod image;
mod notebook;
mod pdf;

use std::fs::{self, Metadata};
use std::io::Read as _;
use std::path::Path;

use serde::Serialize;

use crate::context::ToolContext;
use crate::file_state::{ContentDigest, FileState, ReadRange, modified_ms};
use crate::limits::show_size;
use crate::output::{Failure, ToolOutput};
use crate::paths::{errno_text, missing_file, resolve};
use crate::profile::{LineNumbers, Profile};
use crate::schema::{Kind, Parameter, optional, required};
use crate::text_file::open_regular;
use crate::tool::{InputSchema, Permit, Tool, ToolInput};

pub(crate) use notebook::{Notebook, joined};

/// The Read tool.
pub(crate) struct ReadFile {
    pub(crate) profile: &'static Profile,
}

const PARAMETERS: &[Parameter] = &[
    required("file_path", Kind::Text(0), "Path of the file, preferably absolute"),
    optional("offset", Kind::Offset, "First line to return, counted from 1. Only for parts of large files"),
    optional("limit", Kind::Count, "Number of lines to return. Only for parts of large files"),
    optional(
        "pages",
        Kind::Text(0),
        "Pages of a PDF as a number or a range, such as \"3\" or \"1-5\"; at most 20",
    ),
];

const OLD_PARAMETERS: &[Parameter] = &[
    required("file_path", Kind::Text(0), "Absolute path of the file"),
    optional(
        "offset",
        Kind::Number(None),
        "First line to return, counted from 1. Only for parts of large files",
    ),
    optional("limit", Kind::Number(None), "Number of lines to return. Only for parts of large files"),
];

/// Extensions that are refused without looking at the content.
const BINARY_EXTENSIONS: &[&str] = &[
    "3ds", "7z", "a", "aac", "ai", "aiff", "app", "avi", "bin", "blend", "bmp", "bz2", "class", "dat", "db",
    "deb", "dll", "doc", "docx", "dylib", "ear", "eot", "eps", "exe", "fig", "fla", "flac", "flv", "gz",
    "ico", "idx", "iso", "jar", "lib", "m4a", "m4v", "max", "mdb", "mkv", "mov", "mp3", "mp4", "mpeg", "mpg",
    "msi", "node", "o", "obj", "odp", "ods", "odt", "ogg", "opus", "otf", "ppt", "pptx", "psd", "pyc", "pyo",
    "rar", "rlib", "rpm", "sketch", "so", "sqlite", "sqlite3", "swf", "tar", "tgz", "tif", "tiff", "ttf",
    "war", "wasm", "wav", "webm", "wma", "wmv", "woff", "woff2", "xd", "xls", "xlsx", "xz", "z", "zip",
];

#[derive(Serialize)]
struct ReadRecord<F> {
    r#type: &'static str,
    file: F,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TextRecord<'a> {
    file_path: &'a str,
    content: &'a str,
    num_lines: u64,
    start_line: u64,
    total_lines: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UnchangedRecord<'a> {
    file_path: &'a str,
}

impl Tool for ReadFile {
    fn name(&self) -> &str {
        "Read"
    }

    fn description(&self) -> String {
        "Reads a file of this machine. Text is returned with line numbers; images are shown; notebooks are returned \
         as cells with their outputs; PDF files are shown, large ones by `pages`. Use `offset` and `limit` for parts \
         of large files. Folders cannot be read: list them with a shell command."
            .to_owned()
    }

    fn schema(&self) -> InputSchema<'_> {
        let is_old = self.profile.line_numbers == LineNumbers::Arrow;
        InputSchema::Parameters(if is_old { OLD_PARAMETERS } else { PARAMETERS })
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        true
    }

    fn converts_text(&self) -> bool {
        self.profile.converts_text
    }

    fn run(&self, input: &ToolInput, context: &ToolContext<'_>, _: Permit) -> ToolOutput {
        self.read(input, context).unwrap_or_else(|failure| failure.into_output(self.name()))
    }
}

impl ReadFile {
    fn read(&self, input: &ToolInput, context: &ToolContext<'_>) -> Result<ToolOutput, Failure> {
        let given = input.text("file_path").unwrap_or_default();
        let path = resolve(given, context)?;
        let extension = extension(&path);
        let pages = match input.text("pages") {
            Some(pages) if extension == "pdf" => Some(pdf::parse_pages(pages, context.limits.pdf_pages)?),
            _ => None,
        };
        let metadata = fs::metadata(&path);
        refuse_unreadable(given, &path, &extension, metadata.as_ref().ok())?;
        // A value that makes no sense counts as missing.
        let whole = |value: f64| value as u64;
        let offset = input.number("offset").filter(|value| *value >= 0.0).map(whole);
        let limit = input.number("limit").filter(|value| *value >= 1.0).map(whole);
        let range = ReadRange { offset: offset.unwrap_or(1), limit };
        let metadata = metadata.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                let text = missing_file(&path, context, self.profile.missing_file_names_cwd);
                if self.profile.read_checks_existence {
                    Failure::Refused(text)
                } else {
                    Failure::Failed(text)
                }
            }
            _ => Failure::Failed(errno_text(&error, "statx", Some(&path))),
        })?;
        if self.profile.notes_repeated_reads && is_repeated(&path, range, &metadata, context) {
            let record = ReadRecord { r#type: "file_unchanged", file: UnchangedRecord { file_path: given } };
            let text = "Wasted call — file unchanged since your last Read. Refer to that earlier tool_result instead.";
            return Ok(ToolOutput::success(text, &record));
        }
        match extension.as_str() {
            "ipynb" => notebook::read(given, &path, &metadata, range, context),
            "png" | "jpg" | "jpeg" | "gif" | "webp" => image::read(&path, self.profile, context),
            "pdf" => pdf::read(given, &path, pages, context),
            _ => self.read_text(given, &path, &metadata, range, context),
        }
    }

    fn read_text(
        &self,
        given: &str,
        path: &Path,
        metadata: &Metadata,
        range: ReadRange,
        context: &ToolContext<'_>,
    ) -> Result<ToolOutput, Failure> {
        if metadata.is_dir() {
            let error = std::io::Error::from(std::io::ErrorKind::IsADirectory);
            let shown = self.profile.folder_error_names_path.then_some(path);
            return Err(Failure::Failed(errno_text(&error, "read", shown)));
        }
        let limits = context.limits;
        if range.limit.is_none() && metadata.len() > limits.read_bytes {
            return Err(too_large(metadata.len(), limits.read_bytes));
        }
        let lines = LineSelection::read(path, range, context)?;
        let count = || context.model.count_tokens(&lines.text);
        // Fewer bytes than tokens allowed cannot exceed them.
        if lines.text.len() as u64 > limits.read_tokens
            && let Some(tokens) = count().filter(|tokens| *tokens > limits.read_tokens)
        {
            return Err(Failure::Failed(format!(
                "File content ({tokens} tokens) exceeds maximum allowed tokens ({}). Use offset and limit parameters \
                 to read specific portions of the file, or search for specific content instead of reading the whole \
                 file.",
                limits.read_tokens
            )));
        }
        let is_whole = range.limit.is_none() && range.offset <= 1;
        let digest = is_whole.then(|| ContentDigest::of(&lines.text));
        let state =
            FileState { modified_ms: modified_ms(metadata), digest, written: None, range: Some(range) };
        context.files.insert(path, state);
        let record = ReadRecord {
            r#type: "text",
            file: TextRecord {
                file_path: given,
                content: &lines.text,
                num_lines: lines.count,
                start_line: range.offset,
                total_lines: lines.total,
            },
        };
        if lines.text.is_empty() {
            let text = format!(
                "<system-reminder>Warning: the file exists but is shorter than the provided offset ({}). The file has \
                 {} lines.</system-reminder>",
                range.offset, lines.total
            );
            return Ok(ToolOutput::success(text, &record));
        }
        let mut text = number_lines(&lines.text, range.offset, self.profile.line_numbers);
        text.push_str(self.profile.read_suffix);
        Ok(ToolOutput::success(text, &record))
    }
}

/// Returns the extension in lower case.
fn extension(path: &Path) -> String {
    path.extension().map(|extension| extension.to_string_lossy().to_lowercase()).unwrap_or_default()
}

fn too_large(bytes: u64, max: u64) -> Failure {
    Failure::Failed(format!(
        "File content ({}) exceeds maximum allowed size ({}). Use offset and limit parameters to read specific \
         portions of the file, or search for specific content instead of reading the whole file.",
        show_size(bytes),
        show_size(max)
    ))
}

/// Refuses devices that never end or block, and files that are binary by their name.
fn refuse_unreadable(
    given: &str,
    path: &Path,
    extension: &str,
    metadata: Option<&Metadata>,
) -> Result<(), Failure> {
    if is_endless(path, metadata) {
        return Err(Failure::Refused(format!(
            "Cannot read '{given}': this device file would block or produce infinite output."
        )));
    }
    if BINARY_EXTENSIONS.binary_search(&extension).is_ok() {
        return Err(Failure::Refused(format!(
            "This tool cannot read binary files. The file appears to be a binary .{extension} file. Please use \
             appropriate tools for binary file analysis."
        )));
    }
    Ok(())
}

/// Returns whether reading the file may block or never end.
pub(crate) fn is_endless(path: &Path, metadata: Option<&Metadata>) -> bool {
    if path == Path::new("/dev/null") {
        return false;
    }
    let parts: Vec<_> = path.iter().filter_map(|part| part.to_str()).collect();
    let is_process_file =
        matches!(parts[..], ["/", "proc", _, "fd", ..] | ["/", "proc", _, "mem" | "pagemap"])
            || matches!(parts[..], ["/", "dev", "fd", ..] | ["/", "proc", "kmsg" | "kcore"]);
    is_process_file || metadata.is_some_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Returns whether the last access to the file was a Read of the same range, and the file is unchanged.
fn is_repeated(path: &Path, range: ReadRange, metadata: &Metadata, context: &ToolContext<'_>) -> bool {
    let state = context.files.get(path);
    state.is_some_and(|state| state.range == Some(range) && state.modified_ms == modified_ms(metadata))
}

/// Returns the text with a number before each line.
pub(crate) fn number_lines(text: &str, first: u64, style: LineNumbers) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8 + 16);
    for (number, line) in (first..).zip(text.split('\n')) {
        if !out.is_empty() {
            out.push('\n');
        }
        match style {
            LineNumbers::Tab => out.push_str(&format!("{number}\t")),
            LineNumbers::Arrow => out.push_str(&format!("{number:6}→")),
        }
        out.push_str(line);
    }
    out
}

/// The selected lines of a file.
struct LineSelection {
    /// The lines, joined by line feeds.
    text: String,
    /// The number of selected lines.
    count: u64,
    /// The number of lines of the file; a final line feed begins one more, empty, line.
    total: u64,
}

impl LineSelection {
    /// Reads a file once, in chunks, and keeps only the selected lines.
    fn read(path: &Path, range: ReadRange, context: &ToolContext<'_>) -> Result<Self, Failure> {
        let failed = |error: &std::io::Error| Failure::Failed(errno_text(error, "open", Some(path)));
        let mut file = open_regular(path).map_err(|error| failed(&error))?;
        let limits = context.limits;
        let max = if range.limit.is_some() { limits.read_selection_bytes } else { limits.read_bytes };
        let first = range.offset.saturating_sub(1);
        let end = range.limit.map_or(u64::MAX, |limit| first.saturating_add(limit));
        let mut bytes = Vec::new();
        let mut chunk = vec![0; 64 * 1024];
        let mut line = 0;
        loop {
            if context.cancel.is_cancelled() {
                return Err(Failure::Failed("Interrupted by user".to_owned()));
            }
            let count = file.read(&mut chunk).map_err(|error| failed(&error))?;
            if count == 0 {
                break;
            }
            let mut at = 0;
            while at < count {
                let newline = memchr::memchr(b'\n', &chunk[at..count]).map(|offset| at + offset + 1);
                let stop = newline.unwrap_or(count);
                if (first..end).contains(&line) {
                    bytes.extend_from_slice(&chunk[at..stop]);
                }
                line += u64::from(newline.is_some());
                at = stop;
            }
            if bytes.len() as u64 > max {
                return Err(too_large(bytes.len() as u64, max));
            }
        }
        let total = line + 1;
        let count = total.min(end).saturating_sub(first);
        if end < total && bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        let bytes = if first == 0 { bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&bytes) } else { &bytes };
        let mut text = String::from_utf8_lossy(bytes).replace("\r\n", "\n");
        // The last line may end without a line feed.
        if text.ends_with('\r') {
            text.pop();
        }
        Ok(Self { text, count, total })
    }
}

/// Reads at most `max + 1` bytes of a file.
fn read_bounded(path: &Path, max: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns an error of a read, with the texts of the reference.
fn read_failed(error: &std::io::Error, path: &Path) -> Failure {
    match error.kind() {
        std::io::ErrorKind::IsADirectory => Failure::Failed(errno_text(error, "read", None)),
        _ => Failure::Failed(errno_text(error, "open", Some(path))),
    }
}

#[cfg(test)]
mod tests;
