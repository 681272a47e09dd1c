//! Results that are too large to show: the full text goes to a file, the model gets its beginning.

use std::fs;
use std::path::Path;

use crate::context::ToolContext;
use crate::limits::show_size;
use crate::output::take_utf16;

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
    let is_name_char = |ch: char| ch.is_ascii_alphanumeric() || matches!(ch, '_' | '-');
    let id = context.tool_use_id;
    if id.is_empty() || !id.chars().all(is_name_char) {
        return text;
    }
    let path = context.side_files.join(format!("{id}.txt"));
    let saved = fs::create_dir_all(context.side_files).and_then(|()| fs::write(&path, &text));
    match saved {
        Ok(()) => persisted_text(&text, text.len() as u64, &path, context.limits.preview_chars),
        Err(_) => text,
    }
}
