//! Results that are too large to show: the full text goes to a file, the model gets its beginning.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::context::ToolContext;
use crate::json::OrderedJson;
use crate::limits::show_size;
use crate::output::{ResultContent, ToolOutput, take_utf16};

/// Returns the text for an output that is kept in a file.
pub(crate) fn persisted_text(text: &str, size: u64, path: &Path, preview: usize) -> String {
    let head = take_utf16(text, preview);
    // End at a line end, if that leaves a good part.
    let end = head.rfind('\n').filter(|at| *at > head.len() / 2 && head.len() < text.len());
    let head = end.map_or(head, |end| &head[..end]);
    format!(
        "<persisted-output>\nOutput too large ({}). Full output saved to: {}\n\nPreview (first 2KB):\n{head}\n...\n\
         </persisted-output>",
        show_size(size),
        path.display()
    )
}

/// Returns the text, or the beginning of a text that is longer than `max` UTF-16 units and was saved to the
/// side files under the id of the call. A text that cannot be saved stays as it is.
pub(crate) fn limit_text(text: String, context: &ToolContext<'_>, max: usize) -> String {
    if text.len() <= max || text.chars().map(char::len_utf16).sum::<usize>() <= max {
        return text;
    }
    save_text(&text, "txt", context).unwrap_or(text)
}

/// Saves content blocks whose texts have more than `max` UTF-16 units together to the side files, as JSON.
/// Returns the beginning for the model; `None` if the blocks are small or cannot be saved.
fn limit_blocks(blocks: &[Box<RawValue>], context: &ToolContext<'_>, max: usize) -> Option<String> {
    let blocks = blocks.iter().map(|block| serde_json::from_str(block.get()));
    let blocks: Vec<OrderedJson> = blocks.collect::<Result<_, _>>().ok()?;
    let texts: Option<Vec<&str>> = blocks.iter().map(|block| block.get("text")?.as_str()).collect();
    let length: usize = texts?.iter().flat_map(|text| text.chars()).map(char::len_utf16).sum();
    if length <= max {
        return None;
    }
    save_text(&OrderedJson::Array(blocks).to_pretty(b"  "), "json", context)
}

impl ToolOutput {
    /// Returns a successful result with a text. A long text is saved to the side files, and the model gets
    /// its beginning.
    #[must_use]
    pub fn long_text(text: String, record: &impl Serialize, context: &ToolContext<'_>) -> Self {
        Self::success(limit_text(text, context, context.limits.blocks_chars), record)
    }

    /// Returns a successful result with content blocks, which are also its record. Much text is saved to the
    /// side files, and the model gets its beginning.
    #[must_use]
    pub fn blocks(blocks: Vec<Box<RawValue>>, context: &ToolContext<'_>) -> Self {
        let limited = limit_blocks(&blocks, context, context.limits.blocks_chars);
        let output = Self::success(limited.clone().unwrap_or_default(), &blocks);
        match limited {
            Some(_) => output,
            None => Self { content: ResultContent::Blocks(blocks), ..output },
        }
    }
}

/// Saves a text under the id of the call. Returns its beginning for the model.
fn save_text(text: &str, extension: &str, context: &ToolContext<'_>) -> Option<String> {
    let is_name_char = |ch: char| ch.is_ascii_alphanumeric() || matches!(ch, '_' | '-');
    let id = context.tool_use_id;
    if id.is_empty() || !id.chars().all(is_name_char) {
        return None;
    }
    let path = context.side_files.join(format!("{id}.{extension}"));
    fs::create_dir_all(context.side_files).and_then(|()| fs::write(&path, text)).ok()?;
    Some(persisted_text(text, text.len() as u64, &path, context.limits.preview_chars))
}

/// Data that was saved to the side files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedBinary {
    /// The file; `None` if the data could not be saved.
    pub path: Option<PathBuf>,
    /// A note for the model.
    pub note: String,
}

/// Saves data that the model cannot be given to the side files.
///
/// `stem` is the beginning of the name and `data` is base64.
#[must_use]
pub fn save_binary(stem: &str, media_type: &str, data: &str, context: &ToolContext<'_>) -> SavedBinary {
    let Ok(bytes) = base64::engine::general_purpose::STANDARD.decode(data) else {
        let note = format!("Binary content ({media_type}) is not valid base64");
        return SavedBinary { path: None, note };
    };
    let size = show_size(bytes.len() as u64);
    let mut id = [0; 4];
    // Without a random number, the names only have a counter.
    let _ = getrandom::fill(&mut id);
    let id = u32::from_ne_bytes(id);
    let extension = extension(media_type);
    let save = |path: &Path| {
        let mut file = fs::File::create_new(path)?;
        file.write_all(&bytes)
    };
    let save_all = || {
        fs::create_dir_all(context.side_files)?;
        let mut number = 0;
        loop {
            let path = context.side_files.join(format!("{stem}-{number}-{id:08x}.{extension}"));
            match save(&path) {
                // Calls at the same time must not replace each other's files.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                result => return result.map(|()| path),
            }
        }
    };
    match save_all() {
        Ok(path) => {
            let note = format!("Binary content ({media_type}, {size}) saved to {}", path.display());
            SavedBinary { path: Some(path), note }
        }
        Err(error) => {
            let note = format!("Binary content ({media_type}, {size}) could not be saved: {error}");
            SavedBinary { path: None, note }
        }
    }
}

/// Returns the extension of files of a type.
fn extension(media_type: &str) -> &'static str {
    match media_type.split(';').next().unwrap_or_default().trim() {
        "application/json" => "json",
        "application/pdf" => "pdf",
        "application/zip" => "zip",
        "audio/mpeg" => "mp3",
        "audio/ogg" => "ogg",
        "audio/wav" | "audio/x-wav" => "wav",
        "image/gif" => "gif",
        "image/jpeg" => "jpg",
        "image/png" => "png",
        "image/svg+xml" => "svg",
        "image/webp" => "webp",
        "text/csv" => "csv",
        "text/html" => "html",
        "text/plain" => "txt",
        "video/mp4" => "mp4",
        _ => "bin",
    }
}
