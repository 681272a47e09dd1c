//! From notation to markup, and what a browser would see in it.

use std::io::Read;

use jiff::tz::TimeZone;
use threadline_html::{Options, RawLine, RawLines, Spool, page, turn};
use threadline_session::Family;
use threadline_view::{Transcript, transcript};

pub(crate) fn options() -> Options {
    Options::new(TimeZone::UTC)
}

/// A session, with a sub-agent where there is one.
pub(crate) fn family(notation: &str, agent: Option<(&str, &str)>) -> Family {
    let agents = agent.map(|(id, notation)| (id.to_owned(), threadline_testkit::log(notation)));
    Family::from_bytes(&threadline_testkit::log(notation), agents)
}

pub(crate) fn told(family: &Family) -> Transcript {
    transcript(family, &|_| None)
}

/// The work of all turns, an element a line, without what every item has.
pub(crate) fn drawn(notation: &str) -> String {
    drawn_with(notation, &options())
}

pub(crate) fn drawn_with(notation: &str, options: &Options) -> String {
    let told = told(&family(notation, None));
    let turns: String =
        told.turns.iter().map(|found| turn(found, told.cwd.as_deref(), options).into_string()).collect();
    let work = turns.split_once("<div class=\"work\">").map_or("", |(_, work)| work);
    lined(work.trim_end().trim_end_matches("</section>").trim_end_matches("</div>"))
}

/// Markup, an element a line.
pub(crate) fn lined(markup: &str) -> String {
    let mut lines = String::new();
    for part in markup.split_inclusive('>') {
        let text = part.rfind('<').unwrap_or(part.len());
        lines.push_str(&part[..text]);
        let tag = &part[text..];
        let opens = [
            "<div", "<p", "<details", "<ul", "<ol", "<li", "<dl", "<dt", "<pre", "<section", "<figure",
            "<table",
        ];
        if opens.iter().any(|open| tag.starts_with(open)) && !lines.is_empty() && !lines.ends_with('\n') {
            lines.push('\n');
        }
        lines.push_str(tag);
    }
    lines
}

pub(crate) fn spool() -> Box<dyn Spool> {
    Box::new(std::io::Cursor::new(Vec::new()))
}

pub(crate) fn raw(family: &Family) -> RawLines {
    let mut raw = RawLines::new(spool());
    let agents = family.agents.iter().map(|agent| (&*agent.id, &agent.session));
    for (name, session) in std::iter::once(("", &family.main)).chain(agents) {
        raw.begin(name);
        for entry in session.entries() {
            let (whole, range) = entry.shared_text();
            raw.add(RawLine { line_no: entry.at().line_no, whole, range });
        }
    }
    raw
}

pub(crate) fn whole(family: &Family, options: &Options) -> String {
    page(&told(family), raw(family), options)
}

/// The packs of a page whose names begin so, inflated.
pub(crate) fn packs(page: &str, prefix: &str) -> Vec<String> {
    let start = format!("<script type=\"application/octet-stream\" id=\"{prefix}");
    let unpack = |base64: &str| {
        let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, base64).unwrap();
        let mut text = String::new();
        flate2::read::DeflateDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
        text
    };
    let bodies =
        page.split(&start).skip(1).map(|rest| rest.split_once('>').unwrap().1.split('<').next().unwrap());
    bodies.map(unpack).collect()
}

/// Every tag of some markup with its attributes, as a browser would see it; scripts and styles are skipped.
pub(crate) fn tags(markup: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut tags = Vec::new();
    let mut rest = markup;
    while let Some(at) = rest.find('<') {
        let end = rest[at..].find('>').map_or(rest.len(), |end| at + end);
        let tag = &rest[at + 1..end];
        let name: String = tag.chars().take_while(|ch| !ch.is_whitespace()).collect();
        let mut attributes = Vec::new();
        let mut inside = tag[name.len()..].trim_start();
        while !inside.is_empty() && inside != "/" {
            let (key, after) = inside.split_at(inside.find(['=', ' ']).unwrap_or(inside.len()));
            let (value, after) = match after.strip_prefix("=\"") {
                Some(after) => after.split_once('"').unwrap_or((after, "")),
                // Whatever stands there instead of a value is no attribute of ours.
                None => ("", after.strip_prefix('=').unwrap_or(after)),
            };
            attributes.push((key.to_owned(), value.to_owned()));
            inside = after.trim_start();
        }
        rest = &rest[(end + 1).min(rest.len())..];
        if name == "script" || name == "style" {
            let close = format!("</{name}>");
            rest = rest.split_once(&*close).map_or("", |(_, rest)| rest);
        }
        tags.push((name, attributes));
    }
    tags
}
