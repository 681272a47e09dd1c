//! Results of servers as results of tools.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::value::RawValue;
use threadline_tools::{ResultContent, ToolOutput};

/// Returns the result of a call.
pub(crate) fn output(result: &CallToolResult) -> ToolOutput {
    if result.is_error == Some(true) {
        let texts: Vec<String> = result.content.iter().filter_map(text).collect();
        let message = texts.join("\n");
        return ToolOutput::failed(if message.is_empty() {
            "The tool failed without a message".to_owned()
        } else {
            message
        });
    }
    let mut blocks: Vec<Box<RawValue>> = result.content.iter().map(block).collect();
    if let (true, Some(data)) = (blocks.is_empty(), &result.structured_content) {
        blocks.push(ResultContent::text_block(&data.to_string()));
    }
    let output = ToolOutput::success(String::new(), &blocks);
    ToolOutput { content: ResultContent::Blocks(blocks), ..output }
}

/// Returns a content block of the API.
fn block(content: &ContentBlock) -> Box<RawValue> {
    match content {
        ContentBlock::Image(image) => ResultContent::image_block(&image.mime_type, &image.data),
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::BlobResourceContents { mime_type: Some(kind), blob, .. } if is_image(kind) => {
                ResultContent::image_block(kind, blob)
            }
            _ => ResultContent::text_block(&text(content).unwrap_or_default()),
        },
        _ => ResultContent::text_block(&text(content).unwrap_or_default()),
    }
}

/// Returns the text of a block; `None` for images.
fn text(content: &ContentBlock) -> Option<String> {
    Some(match content {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(_) => return None,
        ContentBlock::Audio(audio) => {
            format!("[audio of the type {}, which is not supported]", audio.mime_type)
        }
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("[resource {uri}]\n{text}"),
            ResourceContents::BlobResourceContents { uri, blob, .. } => {
                format!("[resource {uri}: {} characters of base64, not shown]", blob.len())
            }
            _ => "[resource of an unknown type]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[link to the resource {}: {}]", link.name, link.uri),
        _ => "[content of an unknown type]".to_owned(),
    })
}

/// Whether the API accepts images of this type.
fn is_image(mime_type: &str) -> bool {
    matches!(mime_type, "image/png" | "image/jpeg" | "image/gif" | "image/webp")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result(json: serde_json::Value) -> ToolOutput {
        output(&serde_json::from_value(json).unwrap())
    }

    #[test]
    fn blocks_are_those_of_the_api() {
        let output = result(json!({"content": [
            {"type": "text", "text": "3"},
            {"type": "image", "mimeType": "image/png", "data": "AAAA"},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "body"}},
            {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "x/y", "blob": "AAAA"}},
            {"type": "resource_link", "name": "b", "uri": "file:///b"},
            {"type": "audio", "mimeType": "audio/wav", "data": "AAAA"},
        ]}));
        assert!(!output.is_error);
        assert_eq!(
            output.record.unwrap().get(),
            r#"[{"type":"text","text":"3"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},{"type":"text","text":"[resource file:///a]\nbody"},{"type":"text","text":"[resource file:///b: 4 characters of base64, not shown]"},{"type":"text","text":"[link to the resource b: file:///b]"},{"type":"text","text":"[audio of the type audio/wav, which is not supported]"}]"#
        );
    }

    #[test]
    fn texts_of_an_error_are_joined() {
        let texts = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
        let output = result(json!({"content": texts, "isError": true}));
        assert_eq!((output.text(), output.is_error), ("a\nb", true));
        assert_eq!(output.record.unwrap().get(), r#""Error: a\nb""#);
        assert!(result(json!({"content": [], "isError": true})).text().contains("without a message"));
    }

    #[test]
    fn data_without_blocks_is_text() {
        let output = result(json!({"content": [], "structuredContent": {"n": 1}}));
        assert_eq!(output.record.unwrap().get(), r#"[{"type":"text","text":"{\"n\":1}"}]"#);
    }
}
