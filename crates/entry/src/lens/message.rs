//! Messages as defined by the API: role, content blocks, usage.

use std::borrow::Cow;

use super::{Drift, FromJson, Json, JsonKind, List, Mixed, Object, Open, lens};
use crate::index::IndexedBlocks;
use crate::lens::Lens;

lens! {
    /// A message of the user or the model.
    Message {
        id: Cow<'a, str> = "id",
        /// Always `message`.
        kind: Cow<'a, str> = "type",
        role: Cow<'a, str> = "role",
        model: Cow<'a, str> = "model",
        content: Content<'a> = "content",
        stop_reason: Cow<'a, str> = "stop_reason",
        stop_sequence: Cow<'a, str> = "stop_sequence",
        stop_details: StopDetails<'a> = "stop_details",
        usage: Usage<'a> = "usage",
        container: Container<'a> = "container",
        context_management: ContextManagement<'a> = "context_management",
        diagnostics: Diagnostics<'a> = "diagnostics",
    }

    /// Details of why a reply ended.
    StopDetails {
        kind: Cow<'a, str> = "type",
        category: Cow<'a, str> = "category",
        explanation: Cow<'a, str> = "explanation",
    }

    /// The container in which code ran.
    Container {
        id: Cow<'a, str> = "id",
        expires_at: Cow<'a, str> = "expires_at",
    }

    /// Edits that the API made to the context.
    ContextManagement {
        applied_edits: List<'a, ContextEdit<'a>> = "applied_edits",
    }

    /// One edit that the API made to the context.
    ContextEdit {
        kind: Cow<'a, str> = "type",
        cleared_input_tokens: u64 = "cleared_input_tokens",
        cleared_tool_uses: u64 = "cleared_tool_uses",
        cleared_thinking_turns: u64 = "cleared_thinking_turns",
    }

    /// Diagnostics of the API about a request.
    Diagnostics {
        cache_miss_reason: CacheMissReason<'a> = "cache_miss_reason",
    }

    /// Why the cache was not used.
    CacheMissReason {
        kind: Cow<'a, str> = "type",
        cache_missed_input_tokens: u64 = "cache_missed_input_tokens",
    }

    /// The token counts of one reply.
    Usage {
        input_tokens: u64 = "input_tokens",
        output_tokens: u64 = "output_tokens",
        cache_creation_input_tokens: u64 = "cache_creation_input_tokens",
        cache_read_input_tokens: u64 = "cache_read_input_tokens",
        /// The cache writes by lifetime.
        cache_creation: CacheCreation<'a> = "cache_creation",
        server_tool_use: ServerToolUse<'a> = "server_tool_use",
        service_tier: Cow<'a, str> = "service_tier",
        inference_geo: Cow<'a, str> = "inference_geo",
        speed: Cow<'a, str> = "speed",
        /// The same counts for each step on the server; never add them to the totals.
        iterations: List<'a, Iteration<'a>> = "iterations",
        output_tokens_details: OutputTokensDetails<'a> = "output_tokens_details",
        fallback_credit: Json<'a> = "fallback_credit",
    }

    /// Cache writes by lifetime.
    CacheCreation {
        ephemeral_5m_input_tokens: u64 = "ephemeral_5m_input_tokens",
        ephemeral_1h_input_tokens: u64 = "ephemeral_1h_input_tokens",
    }

    /// Calls of tools that ran on the server.
    ServerToolUse {
        web_search_requests: u64 = "web_search_requests",
        web_fetch_requests: u64 = "web_fetch_requests",
    }

    /// The output tokens by purpose.
    OutputTokensDetails {
        thinking_tokens: u64 = "thinking_tokens",
    }

    /// One step on the server within a reply.
    Iteration {
        kind: Cow<'a, str> = "type",
        model: Cow<'a, str> = "model",
        input_tokens: u64 = "input_tokens",
        output_tokens: u64 = "output_tokens",
        cache_creation_input_tokens: u64 = "cache_creation_input_tokens",
        cache_read_input_tokens: u64 = "cache_read_input_tokens",
        cache_creation: CacheCreation<'a> = "cache_creation",
    }

    /// A content block of any type. Which fields it has depends on [`Block::kind`].
    Block {
        kind: Cow<'a, str> = "type",
        text: Cow<'a, str> = "text",
        thinking: Cow<'a, str> = "thinking",
        signature: Cow<'a, str> = "signature",
        /// For `redacted_thinking`.
        data: Cow<'a, str> = "data",
        id: Cow<'a, str> = "id",
        name: Cow<'a, str> = "name",
        input: Open<'a> = "input",
        caller: Caller<'a> = "caller",
        tool_use_id: Cow<'a, str> = "tool_use_id",
        is_error: bool = "is_error",
        content: Content<'a> = "content",
        source: Source<'a> = "source",
        title: Cow<'a, str> = "title",
        context: Json<'a> = "context",
        citations: Mixed<'a, Citation<'a>> = "citations",
        /// For `tool_reference`.
        tool_name: Cow<'a, str> = "tool_name",
        /// For `fallback`: the models before and after.
        from: Mixed<'a, FallbackModel<'a>> = "from",
        to: Mixed<'a, FallbackModel<'a>> = "to",
        cache_control: CacheControl<'a> = "cache_control",
        server_name: Cow<'a, str> = "server_name",
        /// For search results.
        url: Cow<'a, str> = "url",
        page_age: Json<'a> = "page_age",
        encrypted_content: Cow<'a, str> = "encrypted_content",
        /// For `resource` and `resource_link`, from MCP servers.
        resource: Resource<'a> = "resource",
        uri: Cow<'a, str> = "uri",
        mime_type: Cow<'a, str> = "mimeType",
        description: Cow<'a, str> = "description",
        annotations: Open<'a> = "annotations",
        meta: Open<'a> = "_meta",
    }

    /// The origin of a tool call: the model itself, or code that it wrote.
    Caller {
        kind: Cow<'a, str> = "type",
        tool_id: Cow<'a, str> = "tool_id",
    }

    /// The source that a text cites.
    Citation {
        kind: Cow<'a, str> = "type",
        cited_text: Cow<'a, str> = "cited_text",
        title: Cow<'a, str> = "title",
        url: Cow<'a, str> = "url",
        encrypted_index: Cow<'a, str> = "encrypted_index",
        source: Cow<'a, str> = "source",
        document_index: u64 = "document_index",
        document_title: Cow<'a, str> = "document_title",
        file_id: Cow<'a, str> = "file_id",
        start_char_index: u64 = "start_char_index",
        end_char_index: u64 = "end_char_index",
        start_page_number: u64 = "start_page_number",
        end_page_number: u64 = "end_page_number",
        start_block_index: u64 = "start_block_index",
        end_block_index: u64 = "end_block_index",
        search_result_index: u64 = "search_result_index",
    }

    /// The model that refused, or the model that replaced it.
    FallbackModel {
        model: Cow<'a, str> = "model",
    }

    /// A marker up to which a request is cached.
    CacheControl {
        kind: Cow<'a, str> = "type",
        ttl: Cow<'a, str> = "ttl",
        scope: Cow<'a, str> = "scope",
    }

    /// A resource of an MCP server.
    Resource {
        uri: Cow<'a, str> = "uri",
        mime_type: Cow<'a, str> = "mimeType",
        text: Cow<'a, str> = "text",
        blob: Cow<'a, str> = "blob",
        name: Cow<'a, str> = "name",
        meta: Open<'a> = "_meta",
    }

    /// The bytes of an image or document.
    Source {
        kind: Cow<'a, str> = "type",
        media_type: Cow<'a, str> = "media_type",
        data: Cow<'a, str> = "data",
        url: Cow<'a, str> = "url",
        file_id: Cow<'a, str> = "file_id",
        content: Content<'a> = "content",
    }
}

/// The token counts of a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the keys")]
pub struct UsageTokens {
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cache_creation_input_tokens: Option<u64>,
    pub cache_read_input_tokens: Option<u64>,
}

impl Usage<'_> {
    /// Returns the token counts, which takes less time than to read them one by one.
    pub fn tokens(self) -> UsageTokens {
        let keys =
            ["input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
        let [input_tokens, output_tokens, cache_creation_input_tokens, cache_read_input_tokens] =
            self.object().get_all(keys).map(|json| json?.as_u64());
        UsageTokens { input_tokens, output_tokens, cache_creation_input_tokens, cache_read_input_tokens }
    }
}

/// The known block types.
pub const BLOCK_TYPES: &[&str] = &[
    "text",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "tool_result",
    "image",
    "document",
    "tool_reference",
    "fallback",
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "web_search_result",
    "mcp_tool_use",
    "mcp_tool_result",
    "code_execution_tool_result",
    "container_upload",
    "search_result",
    "advisor_tool_result",
    "advisor_result",
    "web_search_tool_result_error",
    "resource",
    "resource_link",
];

/// The content of a message or a tool result: a string, or a list of blocks.
#[derive(Clone, Copy, Debug)]
pub struct Content<'a> {
    json: Json<'a>,
    /// The indexed blocks, if the content is that of an indexed message.
    blocks: Option<IndexedBlocks<'a>>,
}

impl<'a> Content<'a> {
    /// Returns the content as JSON.
    pub fn json(self) -> Json<'a> {
        self.json
    }

    /// Returns the string, if the content is one.
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        self.json.as_str()
    }

    /// Returns the blocks, if the content is a list.
    pub fn blocks(self) -> impl Iterator<Item = Block<'a>> {
        let indexed =
            self.blocks.into_iter().flat_map(|blocks| (0..blocks.len()).map(move |i| blocks.get(i)));
        let indexed = indexed.flatten().map(|(json, fields)| Block::over(Object::indexed(json, fields)));
        let found = self.blocks.is_none().then(|| self.json.items().filter_map(Block::from_json));
        indexed.chain(found.into_iter().flatten())
    }

    /// Returns the block at a position in the list. Takes constant time for the content of a message.
    pub fn block(self, position: usize) -> Option<Block<'a>> {
        match self.blocks {
            Some(blocks) => {
                blocks.get(position).map(|(json, fields)| Block::over(Object::indexed(json, fields)))
            }
            None => self.blocks().nth(position),
        }
    }

    /// Returns the text of the content: the string, or the text blocks separated by line breaks.
    pub fn text(self) -> Cow<'a, str> {
        if let Some(text) = self.as_str() {
            return text;
        }
        let mut texts = self.blocks().filter(|block| block.is("text")).filter_map(Block::text);
        let Some(mut all) = texts.next() else { return Cow::Borrowed("") };
        for text in texts {
            let all = all.to_mut();
            all.push('\n');
            all.push_str(&text);
        }
        all
    }
}

impl<'a> FromJson<'a> for Content<'a> {
    type Value = Self;

    fn value(self) -> Self {
        self
    }

    fn from_json(json: Json<'a>) -> Option<Self> {
        matches!(json.kind(), JsonKind::String | JsonKind::Array).then_some(Self { json, blocks: None })
    }

    fn from_field(object: Object<'a>, key: &str) -> Option<Self> {
        let content = Self::from_json(object.get(key)?)?;
        let blocks = object.blocks.filter(|_| content.json.kind() == JsonKind::Array);
        Some(Self { blocks, ..content })
    }

    fn drift(json: Json<'_>, drift: &mut Drift<'_>) {
        // The results of some API tools are a single block instead of a list.
        let one = json.is_object().then_some(json);
        for item in one.into_iter().chain(json.items()) {
            match item.get("type").and_then(Json::as_str) {
                Some(kind) if BLOCK_TYPES.contains(&&*kind) => {
                    drift.at(&kind, |drift| Block::drift(item, drift))
                }
                Some(kind) => drift.report(&kind),
                None => drift.members(item, &[]),
            }
        }
    }
}

impl Block<'_> {
    /// Returns whether the block has this type.
    pub fn is(self, kind: &str) -> bool {
        self.object().get("type").is_some_and(|json| json.is_str(kind))
    }
}

impl<'a> Message<'a> {
    /// Returns the blocks of the content; none if the content is a string.
    pub fn blocks(self) -> impl Iterator<Item = Block<'a>> {
        self.content().into_iter().flat_map(Content::blocks)
    }
}

impl<'a> From<Json<'a>> for Message<'a> {
    fn from(json: Json<'a>) -> Self {
        Self::over(Object::new(json))
    }
}
