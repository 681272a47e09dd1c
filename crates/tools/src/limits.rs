//! Every limit of the tools in one table.

use std::time::Duration;

/// Sizes, counts and times that bound the work of one call. "Reference" means measured on Claude Code
/// 2.1.197.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The largest text file that Read returns without `limit`, in bytes (reference).
    pub read_bytes: u64,
    /// The largest selection that Read returns with `limit`, in bytes. The reference has none.
    pub read_selection_bytes: u64,
    /// The most tokens that Read returns, if the model can count them (reference).
    pub read_tokens: u64,
    /// The largest file that Edit and Write load, in bytes. The reference has none below 1 GiB.
    pub edit_bytes: u64,
    /// The largest side of an image that is sent unchanged, in pixels (reference).
    pub image_side: u32,
    /// The largest image file that is decoded, in bytes.
    pub image_file_bytes: u64,
    /// The largest image that is sent, in bytes before base64 (API: 5 MB of base64).
    pub image_bytes: u64,
    /// The largest PDF that is sent as a document, in bytes (API: 32 MB per request).
    pub pdf_bytes: u64,
    /// The most pages of a PDF that is read as a whole, if `pdfinfo` can count them (reference).
    pub pdf_whole_pages: u32,
    /// The most pages of a PDF per call (reference).
    pub pdf_pages: u32,
    /// Text of outputs of a notebook cell that is shown, in characters (reference).
    pub notebook_output_chars: usize,
    /// Output of Bash that is shown in full, in bytes (reference).
    pub bash_output_bytes: u64,
    /// Preview of an output that is kept in a file, in characters (reference).
    pub preview_chars: usize,
    /// Output after which a command is killed, in bytes, so that it cannot fill the disk.
    pub bash_output_max: u64,
    /// The time after which Bash moves a command to the background (reference).
    pub bash_timeout: Duration,
    /// The longest time a call may ask for (reference).
    pub bash_timeout_max: Duration,
    /// The time between SIGTERM and SIGKILL.
    pub kill_grace: Duration,
    /// The time after which Glob and Grep end (reference).
    pub search_time: Duration,
    /// The most paths that Glob returns (reference).
    pub glob_results: usize,
    /// The most lines or paths that Grep returns unless the call says otherwise (reference).
    pub grep_results: usize,
    /// The longest line that Grep shows, in bytes (reference).
    pub grep_columns: usize,
    /// Output of Grep that is shown in full, in characters (reference).
    pub grep_output_chars: usize,
    /// Text in the content blocks of a result that is shown in full, in characters (reference).
    pub blocks_chars: usize,
    /// The largest web page, in bytes (reference).
    pub web_bytes: u64,
    /// The most Markdown of a page that is passed to the model, in characters (reference).
    pub web_chars: usize,
    /// The time for one web request.
    pub web_timeout: Duration,
    /// The most redirects within one host (reference).
    pub web_redirects: u32,
    /// Whether addresses of private networks may be fetched, also over plain HTTP.
    pub web_allows_private: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            read_bytes: 256 * 1024,
            read_selection_bytes: 16 << 20,
            read_tokens: 25_000,
            edit_bytes: 256 << 20,
            image_side: 2_000,
            image_file_bytes: 64 << 20,
            image_bytes: 3_750_000,
            pdf_bytes: 20 << 20,
            pdf_whole_pages: 10,
            pdf_pages: 20,
            notebook_output_chars: 10_000,
            bash_output_bytes: 30_000,
            preview_chars: 2_000,
            bash_output_max: 1 << 30,
            bash_timeout: Duration::from_secs(120),
            bash_timeout_max: Duration::from_secs(600),
            kill_grace: Duration::from_millis(500),
            search_time: Duration::from_secs(20),
            glob_results: 100,
            grep_results: 250,
            grep_columns: 500,
            grep_output_chars: 20_000,
            blocks_chars: 50_000,
            web_bytes: 10 << 20,
            web_chars: 100_000,
            web_timeout: Duration::from_secs(60),
            web_redirects: 10,
            web_allows_private: false,
        }
    }
}

/// Returns a size as the reference shows it: `12 bytes`, `37KB`, `298.8KB`, `1.5MB`.
pub(crate) fn show_size(bytes: u64) -> String {
    let units = [("GB", 1_u64 << 30), ("MB", 1 << 20), ("KB", 1 << 10)];
    for (unit, size) in units {
        if bytes >= size {
            let value = format!("{:.1}", bytes as f64 / size as f64);
            return format!("{}{unit}", value.strip_suffix(".0").unwrap_or(&value));
        }
    }
    format!("{bytes} bytes")
}

#[cfg(test)]
mod tests {
    use super::show_size;

    #[test]
    fn sizes_have_one_decimal_unless_it_is_zero() {
        assert_eq!(show_size(12), "12 bytes");
        assert_eq!(show_size(37_893), "37KB");
        assert_eq!(show_size(306_000), "298.8KB");
        assert_eq!(show_size(3 << 19), "1.5MB");
        assert_eq!(show_size(256 * 1024), "256KB");
    }
}
