//! The footer of every list page: links to other formats, and the keyboard shortcuts.

use crate::markup::Markup;

/// Adds the footer with links to the same page as JSON and Markdown, and the dialog of keyboard shortcuts.
pub(crate) fn foot(out: &mut Markup, json: &str, markdown: Option<&str>) {
    out.lit("<footer class=\"foot\"><span>Also available as ");
    out.lit("<a rel=\"alternate\" type=\"application/json\" href=\"").text(json).lit("\">JSON</a>");
    if let Some(markdown) = markdown {
        out.lit(", <a rel=\"alternate\" type=\"text/markdown\" href=\"")
            .text(markdown)
            .lit("\">Markdown</a>");
    }
    out.lit(concat!("</span> <span>threadline ", env!("CARGO_PKG_VERSION"), "</span></footer>\n"));
    out.lit("<dialog id=\"help\" aria-labelledby=\"help-h\"><form method=\"dialog\"><h2 id=\"help-h\">Keyboard shortcuts</h2>\n<dl>");
    for (keys, what) in KEYS {
        out.lit("<dt>");
        for key in *keys {
            out.lit("<kbd>").lit(key).lit("</kbd> ");
        }
        out.lit("</dt><dd>").lit(what).lit("</dd>\n");
    }
    out.lit(
        "</dl><button>Close</button></form></dialog>\n<p class=\"sr\" id=\"status-message\" role=\"status\"></p>\n",
    );
}

const KEYS: &[(&[&str], &str)] = &[
    (&["j", "n"], "next session, match or finding"),
    (&["k", "p"], "previous session, match or finding"),
    (&["Enter"], "open the selected item"),
    (&["c"], "health check of the selected session"),
    (&["Ctrl K"], "go to a session, project, file or command"),
    (&["/"], "search all sessions"),
    (&["f"], "focus the filters"),
    (&["x"], "clear the filters"),
    (&["]"], "next page"),
    (&["["], "previous page"),
    (&["o"], "overview"),
    (&["s"], "sessions"),
    (&["u"], "usage"),
    (&["m"], "mask or show secrets"),
    (&["d"], "toggle theme"),
    (&["?"], "show keyboard shortcuts"),
    (&["↓"], "in the search field: first match or session"),
    (&["Esc"], "close the dialog, or leave the field and keep its text"),
];
