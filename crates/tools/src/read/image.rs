//! Images.

use std::io::Cursor;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::imageops::FilterType;
use image::{DynamicImage, ImageFormat, ImageReader};
use serde::Serialize;

use super::{ReadRecord, read_bounded, read_failed};
use crate::context::ToolContext;
use crate::limits::{Limits, show_size};
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
    let limits = context.limits;
    let bytes = read_bounded(path, limits.image_file_bytes).map_err(|error| read_failed(&error, path))?;
    if bytes.is_empty() {
        return Err(Failure::Failed(format!("Image file is empty: {}", path.display())));
    }
    if bytes.len() as u64 > limits.image_file_bytes {
        return Err(too_large(path, limits.image_file_bytes));
    }
    let media_type = media_type(&bytes).ok_or_else(|| not_an_image(&bytes, path))?;
    let original = imagesize::blob_size(&bytes).ok().map(|size| (size.width, size.height));
    if original.is_none() {
        return Err(Failure::Failed(
            "Unable to resize image — image processing is unavailable and dimensions could not be read from the file \
             header. Please convert the image to PNG, JPEG, GIF, or WebP."
                .to_owned(),
        ));
    }
    let side = limits.image_side as usize;
    let fits = original.is_none_or(|(width, height)| width <= side && height <= side);
    let shown = if fits && bytes.len() as u64 <= limits.image_bytes {
        ShownImage { bytes: None, media_type, size: original }
    } else {
        shrink(&bytes, limits).ok_or_else(|| too_large(path, limits.image_bytes))?
    };
    let data = STANDARD.encode(shown.bytes.as_ref().unwrap_or(&bytes));
    let sizes = original.zip(shown.size);
    let has_dimensions = profile.image_dimensions && shown.media_type != "image/gif";
    let dimensions = sizes.filter(|_| has_dimensions).map(|(original, shown)| Dimensions {
        original_width: original.0,
        original_height: original.1,
        display_width: shown.0,
        display_height: shown.1,
    });
    let file =
        ImageRecord { base64: &data, r#type: shown.media_type, original_size: bytes.len(), dimensions };
    let mut output = ToolOutput::success("", &ReadRecord { r#type: "image", file });
    output.content = ResultContent::Blocks(vec![raw(&ImageBlock::new(&data, shown.media_type))]);
    if let Some((original, shown)) = sizes.filter(|(original, shown)| original != shown) {
        let text = format!(
            "[Image: original {}x{}, displayed at {}x{}. Multiply coordinates by {:.2} to map to original image.]",
            original.0,
            original.1,
            shown.0,
            shown.1,
            original.0 as f64 / shown.0 as f64
        );
        output.follow_up.push(raw(&NoteBlock { r#type: "text", text: &text }));
    }
    Ok(output)
}

#[derive(Serialize)]
struct NoteBlock<'a> {
    r#type: &'static str,
    text: &'a str,
}

/// The image that is sent.
struct ShownImage {
    /// The new bytes; `None` for the original.
    bytes: Option<Vec<u8>>,
    media_type: &'static str,
    size: Option<(usize, usize)>,
}

/// Memory that decoding may take.
const MAX_DECODED: u64 = 512 << 20;

/// Scales an image down until it fits into the limits. `None` if it cannot be decoded or does not get small
/// enough.
fn shrink(bytes: &[u8], limits: &Limits) -> Option<ShownImage> {
    let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format().ok()?;
    let mut decoding = image::Limits::default();
    decoding.max_alloc = Some(MAX_DECODED);
    reader.limits(decoding);
    let format = reader.format()?;
    let decoded = reader.decode().ok()?;
    let mut side = limits.image_side;
    // Photos become JPEG, and so do other images that stay large as PNG.
    let formats: &[ImageFormat] = if format == ImageFormat::Png {
        &[ImageFormat::Png, ImageFormat::Jpeg]
    } else {
        &[ImageFormat::Jpeg]
    };
    while side >= 100 {
        let scaled = if decoded.width() > side || decoded.height() > side {
            fit(&decoded, side)
        } else {
            decoded.clone()
        };
        for format in formats {
            let encoded = encode(&scaled, *format)?;
            if encoded.len() as u64 <= limits.image_bytes {
                let media_type = if *format == ImageFormat::Png { "image/png" } else { "image/jpeg" };
                let size = Some((scaled.width() as usize, scaled.height() as usize));
                return Some(ShownImage { bytes: Some(encoded), media_type, size });
            }
        }
        side /= 2;
    }
    None
}

/// Scales an image so that its larger side has `side` pixels.
fn fit(image: &DynamicImage, side: u32) -> DynamicImage {
    let (width, height) = (f64::from(image.width()), f64::from(image.height()));
    let factor = f64::from(side) / width.max(height);
    let scaled = |length: f64| ((length * factor).round() as u32).max(1);
    image.resize_exact(scaled(width), scaled(height), FilterType::Triangle)
}

fn encode(image: &DynamicImage, format: ImageFormat) -> Option<Vec<u8>> {
    let mut out = Cursor::new(Vec::new());
    // JPEG has no transparency.
    let flat;
    let image = if format == ImageFormat::Jpeg {
        flat = DynamicImage::ImageRgb8(image.to_rgb8());
        &flat
    } else {
        image
    };
    image.write_to(&mut out, format).ok()?;
    Some(out.into_inner())
}

fn too_large(path: &Path, max: u64) -> Failure {
    Failure::Failed(format!(
        "Image is larger than {} and cannot be scaled down: {}. Convert it first, for example with ImageMagick.",
        show_size(max),
        path.display()
    ))
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
    let detected = detected_content(bytes);
    Failure::Failed(format!(
        "File has an image extension but its content is not a valid PNG/JPEG/GIF/WebP. Detected: {detected}. This \
         usually means a download saved an error/login page instead of the image. Use `file \"{}\"` to confirm, or read \
         it as text with Bash (e.g. `head -c 500`).",
        path.display()
    ))
}

/// Describes content that is not an image by its first bytes.
fn detected_content(bytes: &[u8]) -> String {
    let head = &bytes[..bytes.len().min(24)];
    let shown: String = String::from_utf8_lossy(head)
        .chars()
        .map(|ch| if ch.is_ascii_graphic() || ch == ' ' { ch } else { '.' })
        .collect();
    let text = String::from_utf8_lossy(head).trim_start().to_lowercase();
    let starts_with = |names: &[&str]| names.iter().any(|name| text.starts_with(name));
    if starts_with(&["<!doctype html", "<html"]) {
        format!("HTML document (starts with \"{shown}\")")
    } else if starts_with(&["<?xml", "<svg"]) {
        format!("XML/SVG document (starts with \"{shown}\")")
    } else if starts_with(&["{", "["]) {
        format!("JSON/text (starts with \"{shown}\")")
    } else if text.starts_with("%pdf") {
        "PDF document".to_owned()
    } else {
        let hex: Vec<_> = bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        format!("unrecognized bytes (hex: {})", hex.join(" "))
    }
}
