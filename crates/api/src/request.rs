//! Requests to the Messages API.

use serde::{Deserialize, Serialize};

use crate::raw_object::RawObject;

/// The role of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user, including results of tools.
    User,
    /// The model.
    Assistant,
}

/// A message: a role and content blocks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Message {
    /// The role.
    pub role: Role,
    /// The content blocks.
    pub content: Vec<RawObject>,
}

impl Message {
    /// Creates a message.
    pub fn new(role: Role, content: Vec<RawObject>) -> Self {
        Self { role, content }
    }

    /// Creates a message of the user with one text.
    pub fn user_text(text: &str) -> Self {
        Self::new(Role::User, vec![Self::text_block(text)])
    }

    /// Creates a text block.
    pub fn text_block(text: &str) -> RawObject {
        RawObject::new().with("type", "text").with("text", text)
    }
}

/// A part of the system prompt.
#[derive(Clone, Debug)]
pub struct SystemBlock {
    /// The text.
    pub text: String,
    /// Whether the prompt up to here is kept in the cache of the API.
    pub is_cached: bool,
}

impl SystemBlock {
    /// Creates a block that is not marked for the cache.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_cached: false }
    }

    /// Creates a block up to which the prompt is kept in the cache.
    pub fn cached(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_cached: true }
    }
}

/// Whether and how the model thinks before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Thinking {
    /// Up to this number of tokens.
    Enabled {
        /// The budget.
        budget_tokens: u64,
    },
    /// As much as the model decides.
    Adaptive,
    /// Not at all.
    Disabled,
}

/// A request to the Messages API.
#[derive(Clone, Debug)]
pub struct MessagesRequest {
    /// The model.
    pub model: String,
    /// The maximum number of output tokens.
    pub max_tokens: u64,
    /// The system prompt.
    pub system: Vec<SystemBlock>,
    /// The conversation.
    pub messages: Vec<Message>,
    /// The definitions of the tools.
    pub tools: Vec<RawObject>,
    /// How the model thinks; `None` leaves it to the API.
    pub thinking: Option<Thinking>,
    /// The effort, such as `high`; `None` leaves it to the API.
    pub effort: Option<String>,
    /// An id of the user for the API's metadata.
    pub user_id: Option<String>,
    /// The beta features that are asked for.
    pub betas: Vec<String>,
    /// Further members of the body.
    pub extra: RawObject,
}

impl MessagesRequest {
    /// Creates a request without messages.
    pub fn new(model: impl Into<String>, max_tokens: u64) -> Self {
        Self {
            model: model.into(),
            max_tokens,
            system: Vec::new(),
            messages: Vec::new(),
            tools: Vec::new(),
            thinking: None,
            effort: None,
            user_id: None,
            betas: Vec::new(),
            extra: RawObject::new(),
        }
    }

    /// Returns the body of the request.
    ///
    /// Up to four positions are marked for the cache of the API: the marked parts of the system prompt, the
    /// end of the conversation, and the end of the conversation in the previous request, so that this
    /// request reads what that one wrote, however many blocks were added in between.
    pub fn body(&self, stream: bool) -> Vec<u8> {
        let marks = self.cached_messages();
        let mut body = RawObject::new();
        body.set("model", &self.model);
        let messages: Vec<MarkedMessage<'_>> = self
            .messages
            .iter()
            .enumerate()
            .map(|(i, message)| MarkedMessage { message, is_cached: marks.contains(&Some(i)) })
            .collect();
        body.set("messages", messages);
        if !self.system.is_empty() {
            body.set("system", self.system.iter().map(system_json).collect::<Vec<_>>());
        }
        if !self.tools.is_empty() {
            body.set("tools", &self.tools);
        }
        if let Some(user_id) = &self.user_id {
            body.set("metadata", RawObject::new().with("user_id", user_id));
        }
        body.set("max_tokens", self.max_tokens);
        if let Some(thinking) = self.thinking {
            body.set("thinking", thinking);
        }
        if let Some(effort) = &self.effort {
            body.set("output_config", RawObject::new().with("effort", effort));
        }
        for (key, value) in self.extra.members() {
            body.set_raw(key, value.to_owned());
        }
        if stream {
            body.set("stream", true);
        }
        body.to_json().into_bytes()
    }

    /// Returns the positions of the last message and of the user message before it.
    fn cached_messages(&self) -> [Option<usize>; 2] {
        let last = self.messages.len().checked_sub(1);
        let before = last.and_then(|last| self.messages[..last].iter().rposition(|m| m.role == Role::User));
        let system_marks = self.system.iter().filter(|block| block.is_cached).count();
        if system_marks > 2 { [last, None] } else { [last, before] }
    }
}

fn system_json(block: &SystemBlock) -> RawObject {
    let json = Message::text_block(&block.text);
    if block.is_cached { json.with("cache_control", cache_control()) } else { json }
}

fn cache_control() -> RawObject {
    RawObject::new().with("type", "ephemeral")
}

/// A message whose last block may be marked for the cache.
struct MarkedMessage<'a> {
    message: &'a Message,
    is_cached: bool,
}

impl Serialize for MarkedMessage<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let content = &self.message.content;
        let can_be_marked = |block: &RawObject| {
            !matches!(block.get_str("type").as_deref(), Some("thinking" | "redacted_thinking") | None)
        };
        let mark = self.is_cached.then(|| content.iter().rposition(can_be_marked)).flatten();
        let Some(mark) = mark else { return self.message.serialize(serializer) };
        let marked = content[mark].clone().with("cache_control", cache_control());
        let blocks: Vec<&RawObject> =
            content.iter().enumerate().map(|(i, block)| if i == mark { &marked } else { block }).collect();
        #[derive(Serialize)]
        struct WireMessage<'a> {
            role: Role,
            content: Vec<&'a RawObject>,
        }
        WireMessage { role: self.message.role, content: blocks }.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> MessagesRequest {
        let mut request = MessagesRequest::new("m", 10);
        request.system = vec![SystemBlock::cached("a"), SystemBlock::cached("b")];
        request.messages = vec![
            Message::user_text("one"),
            Message::new(Role::Assistant, vec![Message::text_block("two")]),
            Message::user_text("three"),
        ];
        request
    }

    #[test]
    fn a_body_has_its_members_in_order() {
        let mut request = MessagesRequest::new("m", 10);
        request.messages.push(Message::user_text("hi"));
        request.thinking = Some(Thinking::Enabled { budget_tokens: 9 });
        assert_eq!(
            String::from_utf8(request.body(true)).unwrap(),
            r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}],"max_tokens":10,"thinking":{"type":"enabled","budget_tokens":9},"stream":true}"#
        );
    }

    #[test]
    fn a_request_marks_the_end_of_the_previous_one() {
        let body: serde_json::Value = serde_json::from_slice(&request().body(false)).unwrap();
        let is_marked = |i: usize| body["messages"][i]["content"][0].get("cache_control").is_some();
        assert_eq!([0, 1, 2].map(is_marked), [true, false, true]);
    }

    #[test]
    fn there_are_at_most_four_marks() {
        let mut request = request();
        request.system.push(SystemBlock::cached("c"));
        let body = String::from_utf8(request.body(false)).unwrap();
        assert_eq!(body.matches("cache_control").count(), 4);
    }

    #[test]
    fn thinking_is_never_marked() {
        let mut request = MessagesRequest::new("m", 10);
        let thinking = RawObject::new().with("type", "thinking").with("thinking", "x");
        request.messages.push(Message::new(Role::Assistant, vec![Message::text_block("a"), thinking]));
        let body: serde_json::Value = serde_json::from_slice(&request.body(false)).unwrap();
        let content = &body["messages"][0]["content"];
        assert!(content[0].get("cache_control").is_some() && content[1].get("cache_control").is_none());
    }
}
