//! Images.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::{Record, read_bounded, read_failed};
use crate::context::ToolContext;
use crate::limits::show_size;
use crate::output::{Failure, ResultContent, ToolOutput, raw};
use crate::profile::Profile;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ImageRecord<'a> {
    base64: &'a str,
    r#type: &'a str,
    original_size: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<Dimensions>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Dimensions {
    original_width: usize,
    original_height: usize,
    display_width: usize,
    display_height: usize,
}

/// An image block for the model.
#[derive(Serialize)]
pub(super) struct ImageBlock<'a> {
    r#type: &'static str,
    source: ImageSource<'a>,
}

#[derive(Serialize)]
struct ImageSource<'a> {
    r#type: &'static str,
    data: &'a str,
    media_type: &'a str,
}

impl<'a> ImageBlock<'a> {
    pub(super) fn new(data: &'a str, media_type: &'a str) -> Self {
        Self { r#type: "image", source: ImageSource { r#type: "base64", data, media_type } }
    }
}

pub(super) fn read(path: &Path, profile: &Profile, context: &ToolContext<'_>) -> Result<ToolOutput, Failure> {
    let max = context.limits.image_bytes;
    let bytes = read_bounded(path, max).map_err(|error| read_failed(&error, path))?;
    if bytes.is_empty() {
        return Err(Failure::Failed(format!("Image file is empty: {}", path.display())));
    }
    if bytes.len() as u64 > max {
        return Err(Failure::Failed(format!(
            "Image file is larger than {}: {}. Shrink it first, for example with ImageMagick.",
            show_size(max),
            path.display()
        )));
    }
    let media_type = media_type(&bytes).ok_or_else(|| not_an_image(&bytes, path))?;
    let data = STANDARD.encode(&bytes);
    let size = imagesize::blob_size(&bytes).ok().filter(|_| profile.image_dimensions);
    let dimensions = size.map(|size| Dimensions {
        original_width: size.width,
        original_height: size.height,
        display_width: size.width,
        display_height: size.height,
    });
    let file = ImageRecord { base64: &data, r#type: media_type, original_size: bytes.len(), dimensions };
    let mut output = ToolOutput::success("", &Record { r#type: "image", file });
    output.content = ResultContent::Blocks(vec![raw(&ImageBlock::new(&data, media_type))]);
    Ok(output)
}

/// Returns the media type by the first bytes.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

fn not_an_image(bytes: &[u8], path: &Path) -> Failure {
    let hex: Vec<_> = bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Failure::Failed(format!(
        "File has an image extension but its content is not a valid PNG/JPEG/GIF/WebP. Detected: unrecognized bytes \
         (hex: {}). This usually means a download saved an error/login page instead of the image. Use `file \"{}\"` \
         to confirm, or read it as text with Bash (e.g. `head -c 500`).",
        hex.join(" "),
        path.display()
    ))
}
