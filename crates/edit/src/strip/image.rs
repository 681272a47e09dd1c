//! Replaces images and documents with placeholders, anywhere in a line.

use threadline_entry::{Entry, Json, JsonKind, Kind, key};

use crate::draft::EditDraft;
use crate::splice::Splice;

/// The placeholder for an image in a message.
const IMAGE_PLACEHOLDER: &str = r#"{"type":"text","text":"[image removed]"}"#;
const DOCUMENT_PLACEHOLDER: &str = r#"{"type":"text","text":"[document removed]"}"#;

/// Base64 strings up to this length are not considered images.
const SHORT_BASE64: usize = 256;

pub(super) fn strip(draft: &mut EditDraft<'_>) {
    for (idx, entry) in draft.session.entries().enumerated() {
        if draft.is_removed(idx) || entry.kind() == Kind::Bad || !may_contain_image(entry) {
            continue;
        }
        let mut splices = Vec::new();
        for (_, value) in entry.members() {
            find(entry, value, &mut splices);
        }
        for splice in splices {
            draft.splice(idx, splice, "image removed");
        }
    }
}

/// Returns whether a line may contain an image: a cheap test that excludes nearly all lines.
fn may_contain_image(entry: &Entry) -> bool {
    let text = entry.text().as_bytes();
    [&b"\"base64\""[..], b"\"image\"", b"\"document\""]
        .iter()
        .any(|name| memchr::memmem::find(text, name).is_some())
}

fn find(entry: &Entry, json: Json<'_>, out: &mut Vec<Splice>) {
    match json.kind() {
        JsonKind::Array => json.items().for_each(|item| find(entry, item, out)),
        JsonKind::Object => {
            let is = |kind: &str| json.get(key::TYPE).is_some_and(|json| json.is_str(kind));
            if (is("image") || is("document")) && json.get(key::SOURCE).is_some_and(Json::is_object) {
                let word = if is("image") { IMAGE_PLACEHOLDER } else { DOCUMENT_PLACEHOLDER };
                out.push(Splice::replace(entry.text(), json.raw(), word));
                return;
            }
            for (key, value) in json.members() {
                if key.is("base64") && value.quoted().is_some_and(|data| data.len() > SHORT_BASE64) {
                    out.push(Splice::replace(entry.text(), value.raw(), "\"\""));
                } else {
                    find(entry, value, out);
                }
            }
        }
        _ => {}
    }
}
