//! Attachments of a message: images, documents, and context from the editor.

use threadline_view::{AttachedFile, humanize};

use crate::attachment::is_base64;
use crate::markup::Markup;
use crate::page::ImageMode;
use crate::render_context::RenderContext;
use crate::text_format;

/// Adds the attachments of a message: context from the editor, images and documents.
pub(crate) fn render_files(
    cx: &RenderContext<'_>,
    out: &mut Markup,
    files: &[AttachedFile],
    context: &[String],
) {
    for about in context {
        out.text_element("p class=\"note context\"", &text_format::excerpt(about, 400));
    }
    for file in files {
        picture(cx, out, file);
    }
}

/// Image types that all browsers show and that cannot contain scripts.
const IMAGE_TYPES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

fn picture(cx: &RenderContext<'_>, out: &mut Markup, file: &AttachedFile) {
    let data = file.data.trim();
    let is_base64 = is_base64(data.as_bytes());
    let attachment = || cx.sections.as_ref().and_then(|_| cx.raw.attachments.find(data));
    let kind = IMAGE_TYPES.iter().find(|kind| **kind == file.media_type);
    match kind.filter(|_| is_base64 && !data.is_empty() && cx.options.images == ImageMode::Inline) {
        // The script inserts the data from the raw lines, so that the page contains it once.
        Some(kind) if let Some(attachment) = attachment() => {
            out.lit("<figure><img alt=\"\" data-l=\"")
                .num(attachment as u64)
                .lit("\" data-kind=\"")
                .lit(kind);
            out.lit("\"></figure>");
        }
        Some(kind) => {
            out.lit("<figure><img alt=\"\" loading=\"lazy\" src=\"data:")
                .lit(kind)
                .lit(";base64,")
                .text(data);
            out.lit("\"></figure>");
        }
        None => {
            out.lit("<p class=\"note\">").text(&file.media_type);
            if is_base64 {
                out.lit(", ").text(&humanize::bytes(data.len() as u64 * 3 / 4));
            } else {
                out.lit(", <code>").text(&text_format::excerpt(data, 200)).lit("</code>");
            }
            out.lit(", not shown</p>");
        }
    }
}
