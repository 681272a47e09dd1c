//! Resources of servers, and the tools with which the model lists and reads them.

use rmcp::model::{ErrorCode, ReadResourceRequestParams, ReadResourceResponse, Resource, ResourceContents};
use rmcp::service::ServiceError;
use serde::Serialize;
use threadline_cancel::CancelToken;
use threadline_tools::{
    InputSchema, Kind, Parameter, Permit, Tool, ToolContext, ToolInput, ToolOutput, save_binary,
};

use crate::connection::RequestError;
use crate::listing;
use crate::servers::McpServers;

const SERVER: Parameter = Parameter {
    name: "server",
    kind: Kind::Text(0),
    required: true,
    default: None,
    description: "The name of the MCP server",
};

/// ListMcpResourcesTool: lists the resources of all servers, or of one.
pub struct ListResources {
    servers: McpServers,
}

/// ReadMcpResourceTool: reads a resource of a server.
pub struct ReadResource {
    servers: McpServers,
}

/// A resource in a list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedResource {
    name: String,
    uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<String>,
    server: String,
}

/// The content of a resource.
#[derive(Serialize)]
struct ResourceRecord {
    contents: Vec<ResourcePart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourcePart {
    uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob_saved_to: Option<String>,
    text: String,
}

impl McpServers {
    /// Returns the tools for resources, if a server has some.
    #[must_use]
    pub fn resource_tools(&self) -> Vec<Box<dyn Tool>> {
        if !self.statuses().iter().any(|status| status.has_resources) {
            return Vec::new();
        }
        vec![
            Box::new(ListResources { servers: self.clone() }),
            Box::new(ReadResource { servers: self.clone() }),
        ]
    }

    /// Returns the text of a resource that a prompt mentions as `server:uri`; `None` if no server has this
    /// name or the resource cannot be read.
    #[must_use]
    pub fn mentioned_resource(&self, mention: &str, context: &ToolContext<'_>) -> Option<String> {
        let (server, uri) = mention.split_once(':').filter(|(_, uri)| !uri.is_empty())?;
        self.connected(server).ok()?;
        let contents = self.read_resource(server, uri, context.cancel).ok()?;
        let parts = contents.into_iter().map(|part| resource_part(part, server, context));
        let texts = parts.map(|part| format!("[Resource from {server} at {}] {}", part.uri, part.text));
        let texts: Vec<String> = texts.collect();
        let output = ToolOutput::long_text(texts.join("\n"), &(), context);
        Some(output.text().to_owned()).filter(|text| !text.is_empty())
    }

    /// Returns an error unless a server is connected.
    fn connected(&self, server: &str) -> Result<(), String> {
        let known = || self.statuses().iter().filter(|status| status.error.is_none());
        if known().any(|status| status.name == server) {
            return Ok(());
        }
        let names: Vec<&str> = known().map(|status| status.name.as_str()).collect();
        Err(format!("Server \"{server}\" not found. Available servers: {}", names.join(", ")))
    }

    fn list_resources(&self, server: &str, cancel: &CancelToken) -> Result<Vec<Resource>, RequestError> {
        let Some(session) = &self.session else { return Ok(Vec::new()) };
        session.request(server, cancel, |peer| async move { listing::list_resources(&peer).await })
    }

    fn read_resource(
        &self,
        server: &str,
        uri: &str,
        cancel: &CancelToken,
    ) -> Result<Vec<ResourceContents>, RequestError> {
        let Some(session) = &self.session else { return Ok(Vec::new()) };
        let params = ReadResourceRequestParams::new(uri);
        session.request(server, cancel, |peer| async move {
            match peer.read_resource_once(params).await? {
                ReadResourceResponse::Complete(result) => Ok(result.contents),
                _ => Err(ServiceError::UnexpectedResponse),
            }
        })
    }
}

/// Returns a part of a resource as the model gets it. Binary data is saved to a file, which the text names.
fn resource_part(part: ResourceContents, server: &str, context: &ToolContext<'_>) -> ResourcePart {
    match part {
        ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
            ResourcePart { uri, mime_type, blob_saved_to: None, text }
        }
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            let media_type = mime_type.as_deref().unwrap_or("application/octet-stream");
            let saved = save_binary("mcp-resource", media_type, &blob, context);
            let text = format!("[Resource from {server} at {uri}] {}", saved.note);
            let path = saved.path.map(|path| path.to_string_lossy().into_owned());
            ResourcePart { uri, mime_type, blob_saved_to: path, text }
        }
        _ => ResourcePart {
            uri: String::new(),
            mime_type: None,
            blob_saved_to: None,
            text: "[Content of an unknown type]".to_owned(),
        },
    }
}

impl Tool for ListResources {
    fn name(&self) -> &str {
        "ListMcpResourcesTool"
    }

    fn description(&self) -> String {
        "Lists the resources that connected MCP servers offer, with the name of their server.".to_owned()
    }

    fn schema(&self) -> InputSchema<'_> {
        const PARAMETERS: &[Parameter] = &[Parameter { required: false, ..SERVER }];
        InputSchema::Parameters(PARAMETERS)
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        true
    }

    fn run(&self, input: &ToolInput, context: &ToolContext<'_>, _: Permit) -> ToolOutput {
        let only = input.text("server");
        if let Some(Err(reason)) = only.map(|server| self.servers.connected(server)) {
            return ToolOutput::failed(reason);
        }
        let with_resources = self.servers.statuses().iter().filter(|status| status.has_resources);
        let mut listed = Vec::new();
        for status in with_resources.filter(|status| only.is_none_or(|only| only == status.name)) {
            // A server that fails does not hide the resources of the others.
            let resources = self.servers.list_resources(&status.name, context.cancel).unwrap_or_default();
            listed.extend(resources.into_iter().map(|resource| ListedResource {
                name: resource.name,
                uri: resource.uri,
                description: resource.description,
                mime_type: resource.mime_type,
                server: status.name.clone(),
            }));
        }
        if listed.is_empty() {
            let text =
                "No resources found. MCP servers may still provide tools even if they have no resources.";
            return ToolOutput::success(text, &listed);
        }
        let text = serde_json::to_string(&listed).unwrap_or_default();
        ToolOutput::long_text(text, &listed, context)
    }
}

impl Tool for ReadResource {
    fn name(&self) -> &str {
        "ReadMcpResourceTool"
    }

    fn description(&self) -> String {
        "Reads one resource of an MCP server, by the name of the server and the URI of the resource."
            .to_owned()
    }

    fn schema(&self) -> InputSchema<'_> {
        const URI: Parameter = Parameter { name: "uri", description: "The URI of the resource", ..SERVER };
        const PARAMETERS: &[Parameter] = &[SERVER, URI];
        InputSchema::Parameters(PARAMETERS)
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        true
    }

    fn run(&self, input: &ToolInput, context: &ToolContext<'_>, _: Permit) -> ToolOutput {
        let server = input.text("server").unwrap_or_default();
        let uri = input.text("uri").unwrap_or_default();
        if let Err(reason) = self.servers.connected(server) {
            return ToolOutput::failed(reason);
        }
        let contents = match self.servers.read_resource(server, uri, context.cancel) {
            Ok(contents) => contents,
            Err(error) if error.code == Some(ErrorCode::RESOURCE_NOT_FOUND.0) => {
                let text = format!(
                    "Resource not found: {uri} — it may have been deleted or the URI is stale. Re-run \
                     ListMcpResourcesTool to refresh."
                );
                let record = ResourceRecord { contents: Vec::new(), error: Some(text.clone()) };
                return ToolOutput::success(text, &record);
            }
            Err(error) => return ToolOutput::failed(error.message),
        };
        let contents = contents.into_iter().map(|part| resource_part(part, server, context));
        let record = ResourceRecord { contents: contents.collect(), error: None };
        let text = serde_json::to_string(&record).unwrap_or_default();
        ToolOutput::long_text(text, &record, context)
    }
}
