//! PDF files.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::{ReadRecord, read_bounded, read_failed};
use crate::background::NewTask;
use crate::bash::OutputHead;
use crate::context::ToolContext;
use crate::limits::show_size;
use crate::output::{Failure, ToolOutput, raw};
use crate::text_file::open_regular;

/// A range of pages, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageRange {
    first: u32,
    last: u32,
}

/// Parses `3` or `1-5`.
pub(super) fn parse_pages(text: &str, max: u32) -> Result<PageRange, Failure> {
    let trimmed = text.trim();
    let (first, last) = trimmed.split_once('-').unwrap_or((trimmed, trimmed));
    let range = match (first.trim().parse(), last.trim().parse()) {
        (Ok(first), Ok(last)) if first >= 1 && last >= first => PageRange { first, last },
        // Without an end, the range is too long.
        (Ok(first), _) if first >= 1 && last.trim().is_empty() => PageRange { first, last: u32::MAX },
        _ => {
            return Err(Failure::Refused(format!(
                "Invalid pages parameter: \"{text}\". Use formats like \"1-5\", \"3\", or \"10-20\". Pages are 1-indexed."
            )));
        }
    };
    if range.last - range.first >= max {
        return Err(Failure::Refused(format!(
            "Page range \"{text}\" exceeds maximum of {max} pages per request. Please use a smaller range."
        )));
    }
    Ok(range)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PdfRecord<'a> {
    file_path: &'a str,
    base64: &'a str,
    original_size: usize,
}

#[derive(Serialize)]
struct DocumentBlock<'a> {
    r#type: &'static str,
    source: DocumentSource<'a>,
}

#[derive(Serialize)]
struct DocumentSource<'a> {
    r#type: &'static str,
    media_type: &'static str,
    data: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PagesRecord<'a> {
    file_path: &'a str,
    original_size: u64,
    output_dir: &'a Path,
    count: usize,
}

pub(super) fn read(
    given: &str,
    path: &Path,
    pages: Option<PageRange>,
    context: &ToolContext<'_>,
) -> Result<ToolOutput, Failure> {
    if let Some(pages) = pages {
        return read_pages(given, path, pages, context);
    }
    let max = context.limits.pdf_bytes;
    let bytes = read_bounded(path, max).map_err(|error| read_failed(&error, path))?;
    if bytes.is_empty() {
        return Err(Failure::Failed(format!("PDF file is empty: {}", path.display())));
    }
    if bytes.len() as u64 > max {
        return Err(Failure::Failed(format!(
            "PDF file is larger than {}: {}. Read it by pages, with the `pages` parameter.",
            show_size(max),
            path.display()
        )));
    }
    if !bytes.starts_with(b"%PDF-") {
        return Err(Failure::Failed(format!(
            "File is not a valid PDF (missing %PDF- header): {}",
            path.display()
        )));
    }
    if let Some(count) = page_count(path, context).filter(|count| *count > context.limits.pdf_whole_pages) {
        return Err(Failure::Failed(format!(
            "This PDF has {count} pages, which is too many to read at once. Use the pages parameter to read specific \
             page ranges (e.g., pages: \"1-5\"). Maximum {} pages per request.",
            context.limits.pdf_pages
        )));
    }
    let data = STANDARD.encode(&bytes);
    let record = PdfRecord { file_path: given, base64: &data, original_size: bytes.len() };
    let text = format!("PDF file read: {given} ({})", show_size(bytes.len() as u64));
    let mut output = ToolOutput::success(text, &ReadRecord { r#type: "pdf", file: record });
    let source = DocumentSource { r#type: "base64", media_type: "application/pdf", data: &data };
    output.follow_up.push(raw(&DocumentBlock { r#type: "document", source }));
    Ok(output)
}

/// Renders pages with poppler, and returns them as images after the result.
fn read_pages(
    given: &str,
    path: &Path,
    pages: PageRange,
    context: &ToolContext<'_>,
) -> Result<ToolOutput, Failure> {
    let failed = |error: &io::Error| read_failed(error, path);
    let size = open_regular(path).and_then(|file| file.metadata()).map_err(|error| failed(&error))?.len();
    let dir = context.side_files.join(format!("pdf-{}", new_uuid().map_err(|error| failed(&error))?));
    let mut command = Command::new("pdftoppm");
    command.args(["-jpeg", "-r", "100", "-f", &pages.first.to_string(), "-l", &pages.last.to_string()]);
    command.arg(path).arg(dir.join("page"));
    fs::create_dir_all(&dir).map_err(|error| failed(&error))?;
    let Some(result) = run_helper(&mut command, context) else {
        let _ = fs::remove_dir(&dir);
        return Err(Failure::Failed(
            "pdftoppm is not installed. Install poppler-utils (e.g. `brew install poppler` or `apt-get install \
             poppler-utils`) to enable PDF page rendering."
                .to_owned(),
        ));
    };
    let mut images: Vec<_> =
        fs::read_dir(&dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    images.sort();
    if images.is_empty() {
        let _ = fs::remove_dir(&dir);
        return Err(Failure::Failed(format!("pdftoppm failed: {}", result.trim())));
    }
    let record = PagesRecord { file_path: given, original_size: size, output_dir: &dir, count: images.len() };
    let text = format!("PDF pages extracted: {} page(s) from {given} ({})", images.len(), show_size(size));
    let mut output = ToolOutput::success(text, &ReadRecord { r#type: "parts", file: record });
    for image in images.iter().take(context.limits.pdf_pages as usize) {
        let bytes = read_bounded(image, context.limits.image_bytes).map_err(|error| failed(&error))?;
        let data = STANDARD.encode(&bytes);
        let source = DocumentSource { r#type: "base64", media_type: "image/jpeg", data: &data };
        output.follow_up.push(raw(&DocumentBlock { r#type: "image", source }));
    }
    Ok(output)
}

/// Returns the number of pages, if `pdfinfo` is installed and finds it.
fn page_count(path: &Path, context: &ToolContext<'_>) -> Option<u32> {
    let output = run_helper(Command::new("pdfinfo").arg(path), context)?;
    output.lines().find_map(|line| line.strip_prefix("Pages:")?.trim().parse().ok())
}

/// The time that a helper program gets.
const HELPER_TIME: Duration = Duration::from_secs(120);

/// The most output of a helper program that is read.
const HELPER_OUTPUT: u64 = 64 * 1024;

/// Runs a program and returns its output; `None` if it cannot be started. It is killed when it takes too long
/// or the call is cancelled.
fn run_helper(command: &mut Command, context: &ToolContext<'_>) -> Option<String> {
    command.env_clear().envs(context.environment.iter().map(|(name, value)| (name, value)));
    let name = command.get_program().to_string_lossy().into_owned();
    let new = NewTask {
        tool_use_id: context.tool_use_id,
        command: &name,
        description: &name,
        tasks_dir: context.tasks_dir,
    };
    let (id, output_file) = context.background.start(&new, command).ok()?;
    if context.background.wait(&id, HELPER_TIME, context.cancel, &mut || {}).is_none() {
        context.background.kill(&id, context.limits.kill_grace);
    }
    context.background.remove(&id);
    let output = OutputHead::read(&output_file, HELPER_OUTPUT).text;
    let _ = fs::remove_file(output_file);
    Some(output)
}

/// Returns a random id in the form of a UUID.
fn new_uuid() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    let hex = const_hex::encode(bytes);
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    Ok(parts.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_a_number_or_a_range() {
        assert_eq!(parse_pages("3", 20), Ok(PageRange { first: 3, last: 3 }));
        assert_eq!(parse_pages("1-20", 20), Ok(PageRange { first: 1, last: 20 }));
        assert!(
            matches!(parse_pages("5-", 20), Err(Failure::Refused(message)) if message.contains("exceeds"))
        );
        for text in ["abc", "0", "5-3", "", "-", "1-2-3"] {
            assert!(
                matches!(parse_pages(text, 20), Err(Failure::Refused(message)) if message.starts_with("Invalid"))
            );
        }
        assert_eq!(
            parse_pages("1-30", 20),
            Err(Failure::Refused(
                "Page range \"1-30\" exceeds maximum of 20 pages per request. Please use a smaller range."
                    .to_owned()
            ))
        );
    }
}
