//! Results of servers as results of tools.

use rmcp::model::{CallToolResult, ContentBlock, EmbeddedResource, ResourceContents};
use serde_json::value::RawValue;
use threadline_tools::{ResultContent, ToolContext, ToolOutput, save_binary};

use crate::tool::plain_name;

/// Returns the result of a call of a tool of `server`.
pub(crate) fn output(result: &CallToolResult, server: &str, context: &ToolContext<'_>) -> ToolOutput {
    if result.is_error == Some(true) {
        let texts = result.content.iter().filter_map(|content| text(content, server, context));
        let message = texts.collect::<Vec<_>>().join("\n");
        let message = if message.is_empty() { "Unknown error".to_owned() } else { message };
        return ToolOutput::failed(message);
    }
    let mut blocks: Vec<Box<RawValue>> =
        result.content.iter().flat_map(|content| blocks(content, server, context)).collect();
    if let (true, Some(data)) = (blocks.is_empty(), &result.structured_content) {
        blocks.push(ResultContent::text_block(&data.to_string()));
    }
    ToolOutput::blocks(blocks, context)
}

/// Returns the blocks of the API for a block of a server.
pub(crate) fn blocks(content: &ContentBlock, server: &str, context: &ToolContext<'_>) -> Vec<Box<RawValue>> {
    match content {
        ContentBlock::Image(image) => vec![ResultContent::image_block(&image.mime_type, &image.data)],
        ContentBlock::Resource(EmbeddedResource {
            resource: ResourceContents::BlobResourceContents { uri, mime_type: Some(media_type), blob, .. },
            ..
        }) if is_image(media_type) => vec![
            ResultContent::text_block(&format!("[Resource from {server} at {uri}] ")),
            ResultContent::image_block(media_type, blob),
        ],
        _ => vec![ResultContent::text_block(&text(content, server, context).unwrap_or_default())],
    }
}

/// Returns the text of a block; `None` for images. Other data is saved to a file, which the text names.
fn text(content: &ContentBlock, server: &str, context: &ToolContext<'_>) -> Option<String> {
    let save = |media_type: &str, data: &str| {
        save_binary(&format!("mcp-{}-blob", plain_name(server)), media_type, data, context).note
    };
    Some(match content {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(_) => return None,
        ContentBlock::Audio(audio) => {
            format!("[Audio from {server}] {}", save(&audio.mime_type, &audio.data))
        }
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                format!("[Resource from {server} at {uri}] {text}")
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let media_type = mime_type.as_deref().unwrap_or("application/octet-stream");
                format!("[Resource from {server} at {uri}] {}", save(media_type, blob))
            }
            _ => format!("[Resource from {server} of an unknown type]"),
        },
        ContentBlock::ResourceLink(link) => {
            let about = link.description.as_ref().map(|about| format!(" ({about})"));
            format!("[Resource link: {}] {}{}", link.name, link.uri, about.unwrap_or_default())
        }
        _ => format!("[Content from {server} of an unknown type]"),
    })
}

/// Whether the API accepts images of this type.
fn is_image(mime_type: &str) -> bool {
    matches!(mime_type, "image/png" | "image/jpeg" | "image/gif" | "image/webp")
}
