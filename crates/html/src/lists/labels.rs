//! The pin and the tags of a session, with controls to change them.

use super::link;
use crate::markup::Markup;
use crate::text_format;

/// The pin and the tags of a session.
#[derive(Clone, Copy, Debug)]
pub struct LabelControls<'a> {
    /// The session id.
    pub id: &'a str,
    /// Whether it is pinned.
    pub is_pinned: bool,
    /// Its tags.
    pub tags: &'a [String],
}

impl LabelControls<'_> {
    /// Renders the controls, with links to all sessions that have a tag. `site.js` sends the changes.
    pub fn render(&self) -> Markup {
        self.render_with_links(|tag| link::href("/sessions", [("tag", tag)]))
    }

    /// Renders the controls with other links.
    pub(super) fn render_with_links(&self, tag_link: impl Fn(&str) -> String) -> Markup {
        let mut out = Markup::new();
        out.lit("<span class=\"labels\" data-at=\"").text(&link::session(self.id)).lit("/labels\">");
        out.lit("<button type=\"button\" class=\"tag pin\" aria-pressed=\"");
        out.lit(match self.is_pinned {
            true => "true\" title=\"Remove the pin\">Pinned</button>",
            false => "false\" title=\"Pin this session\">Pin</button>",
        });
        for tag in self.tags {
            out.lit("<span class=\"tag\"><a href=\"").text(&tag_link(tag)).lit("\">");
            out.text(&text_format::excerpt(tag, 60)).lit("</a><button type=\"button\" data-remove=\"");
            out.text(tag).lit("\" title=\"Remove the tag\" aria-label=\"Remove the tag ");
            out.text(tag).lit("\">×</button></span>");
        }
        out.lit("<details class=\"tagger\"><summary title=\"Add a tag\">+ tag</summary><form><input name=\"tag\" maxlength=\"60\" size=\"12\" aria-label=\"New tag\" autocomplete=\"off\" spellcheck=\"false\"><button>Add</button></form></details>");
        out.lit("<span class=\"note\" role=\"status\"></span></span>");
        out
    }
}
