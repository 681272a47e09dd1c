//! HTML to Markdown.

use htmd::HtmlToMarkdown;

/// Elements without content for a reader.
const SKIPPED: &[&str] = &["script", "style", "noscript", "template", "iframe", "svg", "head"];

/// The converter is recursive. Pages that may be nested more deeply than this are reduced to their text.
const MAX_NESTING: usize = 10_000;

/// The stack of the thread that converts.
const STACK: usize = 256 << 20;

/// Converts a page to Markdown.
pub(super) fn to_markdown(html: &str) -> String {
    if nesting_bound(html) > MAX_NESTING {
        return visible_text(html);
    }
    let converted = std::thread::scope(|scope| {
        let convert = || HtmlToMarkdown::builder().skip_tags(SKIPPED.to_vec()).build().convert(html).ok();
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, convert);
        thread.ok().and_then(|thread| thread.join().ok().flatten())
    });
    converted.unwrap_or_else(|| visible_text(html))
}

/// Returns an upper bound of the nesting of elements.
fn nesting_bound(html: &str) -> usize {
    const VOID: &[&str] =
        &["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "wbr"];
    let (mut open, mut most) = (0_usize, 0);
    for (at, _) in html.match_indices('<') {
        let rest = &html[at + 1..];
        if rest.starts_with('/') {
            open = open.saturating_sub(1);
        } else if rest.starts_with(|ch: char| ch.is_ascii_alphabetic()) {
            let end = rest.find(|ch: char| !ch.is_ascii_alphanumeric()).unwrap_or(rest.len());
            if !VOID.iter().any(|name| name.eq_ignore_ascii_case(&rest[..end])) {
                open += 1;
                most = most.max(open);
            }
        }
    }
    most
}

/// Removes everything between `<` and `>`.
fn visible_text(html: &str) -> String {
    let mut out = String::with_capacity(html.len() / 2);
    for part in html.split('<') {
        out.push_str(part.split_once('>').map_or(part, |(_, text)| text));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_elements_are_converted() {
        let html = "<html><head><title>T</title><style>x{}</style></head><body><h1>Head</h1><p>Para <b>bold</b> \
                    <a href='/x'>link</a> <code>c</code></p><script>alert(1)</script><ul><li>one</li><li>two</li></ul>\
                    </body></html>";
        let markdown = to_markdown(html);
        assert_eq!(markdown.replace("*   ", "* "), "# Head\n\nPara **bold** [link](/x) `c`\n\n* one\n* two");
    }

    #[test]
    fn hostile_nesting_does_not_overflow_the_stack() {
        let deep = format!("{}text", "<div>".repeat(9_000));
        assert!(to_markdown(&deep).contains("text"));
        let deeper = format!("{}text", "<div>".repeat(1_000_000));
        assert_eq!(to_markdown(&deeper), "text");
    }
}
