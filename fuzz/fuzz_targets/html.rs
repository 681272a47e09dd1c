//! Checks that the page of any session contains only elements, attributes and URLs that we generate.
#![no_main]

use libfuzzer_sys::fuzz_target;
use threadline_fuzz::log;
use threadline_html::{RenderOptions, turn};
use threadline_session::{Session, SessionFamily};
use threadline_view::transcript;

/// The elements and attributes of rendered turns.
const TAGS: &str = "a h1 h2 h3 h4 h5 h6 p span section div dl dt dd time details summary code pre ul ol li em strong \
                    del blockquote hr br table thead tbody tr th td figure img aside i b kbd header input button sup";
const ATTRIBUTES: &str = "href class id tabindex data-a data-tools data-bad data-t data-b data-p data-rows data-o data-n \
                          data-lang data-k data-elapsed aria-hidden aria-label title datetime start alt loading src type role rel \
                          open hidden checked disabled / ";

fn check(markup: &str) {
    let mut rest = markup;
    while let Some(at) = rest.find('<') {
        let tag = rest[at + 1..].split('>').next().unwrap_or_default();
        let name = tag.trim_start_matches('/').split_whitespace().next().unwrap_or_default();
        assert!(TAGS.split_whitespace().any(|known| known == name), "<{tag}");
        let mut inside = tag.trim_start_matches('/')[name.len()..].trim_start();
        while !inside.is_empty() && inside != "/" {
            let (key, after) = inside.split_at(inside.find(['=', ' ']).unwrap_or(inside.len()));
            assert!(ATTRIBUTES.split_whitespace().any(|known| known == key), "<{tag}: {key}");
            let after = match after.strip_prefix("=\"") {
                Some(after) => {
                    let (value, after) = after.split_once('"').expect("a closed attribute");
                    if key == "href" {
                        let starts = ["#", "https://", "http://", "mailto:"];
                        assert!(starts.iter().any(|start| value.starts_with(start)), "href={value}");
                    }
                    if key == "src" {
                        assert!(
                            value.starts_with("data:image/") && value.contains(";base64,"),
                            "src={value}"
                        );
                        assert!(!value.contains("svg"), "src={value}");
                    }
                    after
                }
                None => {
                    assert!(!after.starts_with('='), "<{tag}: an attribute without quotes");
                    after
                }
            };
            inside = after.trim_start();
        }
        rest = &rest[at + 1 + tag.len()..];
    }
    let hidden =
        |ch: char| ch.is_control() && !matches!(ch, '\n' | '\t') || ('\u{202a}'..='\u{202e}').contains(&ch);
    assert!(!markup.contains(hidden), "a control character in {markup:?}");
}

fuzz_target!(|data: &[u8]| {
    let bytes = log(data);
    let family = SessionFamily::new(Session::from_bytes(&bytes), Vec::new());
    let view = transcript(&family, &|_| None);
    let options = RenderOptions::new(jiff::tz::TimeZone::UTC);
    for shown in &view.turns {
        check(&turn(shown, view.header.cwd.as_deref(), &options).into_string());
    }
});
