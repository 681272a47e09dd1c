//! What stands around a page of the viewer: its head, its bar, and the style and script that it asks our server for.

use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use crate::asset::{SCRIPT, STYLE};
use crate::markup::Markup;

/// What stands around a page.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// What the page is called.
    pub title: &'a str,
    /// Where it is in the viewer.
    pub tab: Tab,
    /// The class of its body, for its style.
    pub class: &'static str,
    /// Scripts of its own, besides the one that every page has: names of [assets](asset()).
    pub scripts: &'static [&'static str],
}

/// The parts of the viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it all")]
pub enum Tab {
    Home,
    Search,
    Usage,
    Check,
    /// None of them.
    None,
}

/// What the bar leads to.
const TABS: &[(Tab, &str, &str)] =
    &[(Tab::Home, "/", "Sessions"), (Tab::Search, "/search", "Search"), (Tab::Usage, "/usage", "Usage")];

/// The script of the pages that list things; they have a style of their own too.
const LISTS: &str = "lists.js";

/// What every page asks for, by name, with its type.
const ASSETS: &[(&str, &str, &str)] = &[
    ("page.css", "text/css; charset=utf-8", STYLE),
    ("site.css", "text/css; charset=utf-8", include_str!("../assets/site.css")),
    ("page.js", "text/javascript; charset=utf-8", SCRIPT),
    ("live.js", "text/javascript; charset=utf-8", include_str!("../assets/live.js")),
    ("lists.css", "text/css; charset=utf-8", include_str!("../assets/lists.css")),
    ("lists.js", "text/javascript; charset=utf-8", include_str!("../assets/lists.js")),
    ("site.js", "text/javascript; charset=utf-8", include_str!("../assets/site.js")),
];

/// A file that pages of the viewer ask for: its type and its text.
pub fn asset(name: &str) -> Option<(&'static str, &'static str)> {
    ASSETS.iter().find(|(known, _, _)| *known == name).map(|(_, kind, text)| (*kind, *text))
}

/// What changes when any asset does, so that browsers may keep them for good.
pub fn stamp() -> &'static str {
    static STAMP: OnceLock<String> = OnceLock::new();
    STAMP.get_or_init(|| {
        let mut hash = Sha256::new();
        for (name, _, text) in ASSETS {
            hash.update(name);
            hash.update(text);
        }
        hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    })
}

/// A page of the viewer around its content, which stands in `main`.
pub fn site(frame: &Frame<'_>, content: &Markup) -> Markup {
    let mut out = site_head(frame);
    out.lit("<main id=\"main\" tabindex=\"-1\">\n").add(content).lit("</main>\n</body>\n</html>\n");
    out
}

/// Everything up to the content, for a page that has more than `main` or is sent while it is made.
pub fn site_head(frame: &Frame<'_>) -> Markup {
    let mut out = Markup::new();
    out.lit("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    out.lit("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    out.lit("<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n");
    out.lit("<link rel=\"icon\" href=\"data:,\">\n<title>").text(frame.title).lit("</title>\n");
    let lists = frame.scripts.contains(&LISTS);
    let own = lists.then_some("lists.css");
    for style in ["page.css", "site.css"].into_iter().chain(own) {
        out.lit("<link rel=\"stylesheet\" href=\"/assets/").text(stamp()).lit("/").text(style).lit("\">\n");
    }
    for script in ["site.js"].iter().chain(frame.scripts) {
        out.lit("<script defer src=\"/assets/").text(stamp()).lit("/").text(script).lit("\"></script>\n");
    }
    out.lit("</head>\n<body class=\"site ").lit(frame.class).lit("\">\n");
    out.lit("<a class=\"skip\" href=\"#main\">Skip to the content</a>\n<header class=\"top\"><nav aria-label=\"threadline\">");
    for (tab, href, name) in TABS {
        out.lit("<a href=\"").lit(href).lit("\"");
        out.lit(if *tab == frame.tab { " aria-current=\"page\">" } else { ">" }).lit(name).lit("</a>");
    }
    out.lit("</nav>");
    if frame.tab != Tab::Search {
        out.lit(
            "<form role=\"search\" class=\"everywhere\" action=\"/search\"><input type=\"search\" name=\"q\"",
        );
        // A page of a session has a search of its own.
        out.lit(if lists { " id=\"q\"" } else { "" });
        out.lit(" placeholder=\"Search all sessions\" aria-label=\"Search all sessions\" autocomplete=\"off\" spellcheck=\"false\"></form>");
    }
    if lists {
        out.lit("<button type=\"button\" id=\"b-theme\" title=\"Light or dark (d)\" hidden>Theme</button><button type=\"button\" id=\"b-help\" title=\"Keys (?)\" aria-label=\"Keys\" hidden>?</button>");
    }
    out.lit("</header>\n");
    out
}
