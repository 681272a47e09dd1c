//! PDF files.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::{Record, read_bounded, read_failed};
use crate::context::ToolContext;
use crate::limits::show_size;
use crate::output::{Failure, ToolOutput, raw};

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

pub(super) fn read(
    given: &str,
    path: &Path,
    pages: Option<PageRange>,
    context: &ToolContext<'_>,
) -> Result<ToolOutput, Failure> {
    if pages.is_some() {
        return Err(Failure::Failed(
            "pdftoppm is not installed. Install poppler-utils (e.g. `brew install poppler` or `apt-get install \
             poppler-utils`) to enable PDF page rendering."
                .to_owned(),
        ));
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
    let data = STANDARD.encode(&bytes);
    let record = PdfRecord { file_path: given, base64: &data, original_size: bytes.len() };
    let text = format!("PDF file read: {given} ({})", show_size(bytes.len() as u64));
    let mut output = ToolOutput::success(text, &Record { r#type: "pdf", file: record });
    let source = DocumentSource { r#type: "base64", media_type: "application/pdf", data: &data };
    output.follow_up.push(raw(&DocumentBlock { r#type: "document", source }));
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_a_number_or_a_range() {
        assert_eq!(parse_pages("3", 20), Ok(PageRange { first: 3, last: 3 }));
        assert_eq!(parse_pages("1-20", 20), Ok(PageRange { first: 1, last: 20 }));
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
