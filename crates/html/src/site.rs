//! The frame of a viewer page: its head, the top bar, and the assets it loads from the server.

use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use crate::asset::{SCRIPT, STYLE};
use crate::markup::Markup;

/// The frame of a viewer page.
#[derive(Clone, Copy, Debug)]
pub struct PageFrame<'a> {
    /// The title of the page.
    pub title: &'a str,
    /// The active tab.
    pub tab: ViewerTab,
    /// The class of the body element.
    pub class: &'static str,
    /// Additional scripts, besides the one every page includes: names of [assets](asset()).
    pub scripts: &'static [&'static str],
    /// The settings of the viewer.
    pub settings: ViewerSettings,
}

/// Settings that apply to all pages of the viewer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ViewerSettings {
    /// Whether secrets are masked; `None` on pages without the switch.
    pub masking: Option<Masking>,
    /// The colours, until the person chooses others on a page.
    pub theme: PageTheme,
}

/// The colours of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageTheme {
    /// Those of the system.
    #[default]
    Auto,
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

impl PageTheme {
    /// Returns the start tag of the document.
    pub(crate) fn html_tag(self) -> &'static str {
        match self {
            Self::Auto => "<html lang=\"en\">\n",
            Self::Light => "<html lang=\"en\" data-theme=\"light\">\n",
            Self::Dark => "<html lang=\"en\" data-theme=\"dark\">\n",
        }
    }
}

/// Whether the pages mask secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Masking {
    /// Secrets are shown; the switch on the page masks them.
    Off,
    /// Secrets are masked; the switch on the page shows them.
    On,
    /// Secrets are masked, and the page cannot show them.
    Always,
}

/// The sections of the viewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum ViewerTab {
    Overview,
    Home,
    Search,
    Usage,
    Check,
    /// No tab is active.
    None,
}

/// The tabs of the top bar.
const TABS: &[(ViewerTab, &str, &str)] = &[
    (ViewerTab::Overview, "/", "Overview"),
    (ViewerTab::Home, "/sessions", "Sessions"),
    (ViewerTab::Search, "/search", "Search"),
    (ViewerTab::Usage, "/usage", "Usage"),
];

/// The script of the list pages. Pages with it also include `lists.css`.
const LISTS_SCRIPT: &str = "lists.js";

/// The script of the page of a session, which exported pages include, too.
pub(crate) const SESSION_SCRIPT: &str = "page.js";

/// The assets: name, content type and text.
const ASSETS: &[(&str, &str, &str)] = &[
    ("page.css", "text/css; charset=utf-8", STYLE),
    ("site.css", "text/css; charset=utf-8", include_str!("../assets/site.css")),
    ("page.js", "text/javascript; charset=utf-8", SCRIPT),
    ("live.js", "text/javascript; charset=utf-8", include_str!("../assets/live.js")),
    ("lists.css", "text/css; charset=utf-8", include_str!("../assets/lists.css")),
    ("lists.js", "text/javascript; charset=utf-8", include_str!("../assets/lists.js")),
    ("site.js", "text/javascript; charset=utf-8", include_str!("../assets/site.js")),
    ("palette.js", "text/javascript; charset=utf-8", include_str!("../assets/palette.js")),
];

/// Returns the content type and the text of an asset.
pub fn asset(name: &str) -> Option<(&'static str, &'static str)> {
    ASSETS.iter().find(|(known, _, _)| *known == name).map(|(_, kind, text)| (*kind, *text))
}

/// Returns a hash of all assets. It is part of their URLs, so that browsers can cache them indefinitely.
pub fn stamp() -> &'static str {
    static STAMP: OnceLock<String> = OnceLock::new();
    STAMP.get_or_init(|| {
        let mut hash = Sha256::new();
        for (name, _, text) in ASSETS {
            hash.update(name);
            hash.update(text);
        }
        const_hex::encode(&hash.finalize()[..8])
    })
}

/// Renders a viewer page with `content` inside `main`.
pub fn site(frame: &PageFrame<'_>, content: &Markup) -> Markup {
    let mut out = site_head(frame);
    out.lit("<main id=\"main\" tabindex=\"-1\">\n").add(content).lit("</main>\n</body>\n</html>\n");
    out
}

/// Renders everything up to the content, for pages with more than `main` and for streamed pages.
pub fn site_head(frame: &PageFrame<'_>) -> Markup {
    let mut out = Markup::new();
    out.lit("<!doctype html>\n")
        .lit(frame.settings.theme.html_tag())
        .lit("<head>\n<meta charset=\"utf-8\">\n");
    out.lit("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    out.lit("<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n");
    out.lit("<link rel=\"icon\" href=\"data:,\">\n<title>").text(frame.title).lit("</title>\n");
    let lists = frame.scripts.contains(&LISTS_SCRIPT);
    let own = lists.then_some("lists.css");
    for style in ["page.css", "site.css"].into_iter().chain(own) {
        out.lit("<link rel=\"stylesheet\" href=\"/assets/").text(stamp()).lit("/").text(style).lit("\">\n");
    }
    for script in ["site.js", "palette.js"].iter().chain(frame.scripts) {
        out.lit("<script defer src=\"/assets/").text(stamp()).lit("/").text(script).lit("\"></script>\n");
    }
    out.lit("</head>\n<body class=\"site ").lit(frame.class).lit("\">\n");
    out.lit("<a class=\"skip\" href=\"#main\">Skip to content</a>\n<header class=\"top\"><nav aria-label=\"threadline\">");
    for (tab, href, name) in TABS {
        out.lit("<a href=\"").lit(href).lit("\"");
        out.lit(if *tab == frame.tab { " aria-current=\"page\">" } else { ">" }).lit(name).lit("</a>");
    }
    out.lit("</nav>");
    if frame.tab != ViewerTab::Search {
        out.lit(
            "<form role=\"search\" class=\"site-search\" aria-label=\"All sessions\" action=\"/search\"><input type=\"search\" name=\"q\"",
        );
        // The page of a session has its own search field with this id.
        out.lit(if lists { " id=\"q\"" } else { "" });
        out.lit(" placeholder=\"Search all sessions\" aria-label=\"Search all sessions\" autocomplete=\"off\" spellcheck=\"false\"></form>");
    }
    out.lit("<button type=\"button\" id=\"b-palette\" title=\"Go to a session, project, file or command (Ctrl K)\" aria-haspopup=\"dialog\" hidden>Go to <kbd>Ctrl K</kbd></button>");
    if let Some(masking) = frame.settings.masking {
        out.lit("<button type=\"button\" id=\"b-mask\" hidden");
        out.lit(match masking {
            Masking::Off => " aria-pressed=\"false\" title=\"Mask secrets on all pages (m)\"",
            Masking::On => " aria-pressed=\"true\" title=\"Show secrets on all pages (m)\"",
            Masking::Always => " aria-pressed=\"true\" disabled title=\"Secrets are masked: --redact, or the setting redact\"",
        });
        out.lit(">Mask secrets</button>");
    }
    // The page of a session has this button among its controls.
    if !frame.scripts.contains(&SESSION_SCRIPT) {
        out.lit("<button type=\"button\" id=\"b-theme\" title=\"Toggle theme (d)\" hidden>Theme</button>");
    }
    if lists {
        out.lit("<button type=\"button\" id=\"b-help\" title=\"Keyboard shortcuts (?)\" aria-label=\"Keyboard shortcuts\" hidden>?</button>");
    }
    out.lit("</header>\n");
    out
}
