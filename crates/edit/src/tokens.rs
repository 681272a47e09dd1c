//! Estimates the number of tokens of a line.

use threadline_entry::lens::{Block, Lens, System};
use threadline_entry::{Entry, Json, JsonKind, Kind, key, value};

/// The approximate number of bytes per token.
const BYTES_PER_TOKEN: u64 = 4;
/// The approximate number of tokens per image.
const TOKENS_PER_IMAGE: u64 = 1500;

/// Estimates the number of tokens of a text.
pub(crate) fn text_tokens(text: &str) -> u64 {
    text.len() as u64 / BYTES_PER_TOKEN
}

/// Estimates the number of tokens that an entry adds to a request, if it is sent.
pub fn tokens(entry: &Entry) -> u64 {
    let (bytes, images) = match entry.kind() {
        Kind::User | Kind::Assistant => {
            let Some(content) = entry.message().and_then(|message| message.content()) else { return 0 };
            match content.json().quoted() {
                Some(text) => (text.len() as u64, 0),
                None => content.blocks().map(block_size).fold((0, 0), add),
            }
        }
        Kind::System => {
            let system: Option<System<'_>> = entry.lens();
            let command = system.filter(|system| system.subtype().as_deref() == Some(value::LOCAL_COMMAND));
            (command.and_then(System::content).map_or(0, |text| text.len() as u64), 0)
        }
        _ => (0, 0),
    };
    bytes.div_ceil(BYTES_PER_TOKEN) + images * TOKENS_PER_IMAGE
}

fn add(a: (u64, u64), b: (u64, u64)) -> (u64, u64) {
    (a.0 + b.0, a.1 + b.1)
}

/// Returns the number of bytes of text in a block, and the number of images.
fn block_size(block: Block<'_>) -> (u64, u64) {
    let object = block.object();
    let length = |key: &str| object.get(key).map_or(0, |json| json.raw().len() as u64);
    match block.kind().as_deref() {
        Some("image" | "document") => (0, 1),
        Some(value::TOOL_RESULT) => match object.get(key::CONTENT) {
            Some(content) if content.kind() == JsonKind::Array => {
                let is_image = |item: &Json<'_>| {
                    item.get(key::TYPE)
                        .is_some_and(|kind| kind.is_str(value::IMAGE) || kind.is_str(value::DOCUMENT))
                };
                content.items().fold((0, 0), |sum, item| {
                    add(sum, if is_image(&item) { (0, 1) } else { (item.raw().len() as u64, 0) })
                })
            }
            Some(content) => (content.raw().len() as u64, 0),
            None => (0, 0),
        },
        Some(value::TOOL_USE) => (length("name") + length("input"), 0),
        Some("thinking") => (length("thinking"), 0),
        _ => (length("text") + length("data"), 0),
    }
}
