//! The messages of a conversation, in a form that the API accepts.

use std::collections::{HashMap, HashSet};

use threadline_api::{BlockKind, Message, RawObject, Role};

/// The messages to send. They are normalised before each request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) messages: Vec<Message>,
    /// The models of thinking blocks, by their signature.
    thinking_models: HashMap<String, String>,
}

impl Conversation {
    pub(crate) fn new(messages: Vec<Message>) -> Self {
        Self { messages, thinking_models: HashMap::new() }
    }

    /// Adds blocks of a role; they join the last message if it has the same role.
    pub(crate) fn push(&mut self, role: Role, content: Vec<RawObject>) {
        match self.messages.last_mut() {
            Some(last) if last.role == role => last.content.extend(content),
            _ => self.messages.push(Message::new(role, content)),
        }
    }

    /// Adds a prompt. A text before it in the same message ends with a newline, as a replay of the log has
    /// it, so that the beginning of a resumed request is the same and comes from the cache.
    pub(crate) fn push_prompt(&mut self, content: Vec<RawObject>) {
        if let Some(last) = self.messages.last_mut().filter(|last| last.role == Role::User)
            && let Some(before) = last.content.last_mut().filter(|block| kind(block) == "text")
            && content.first().is_some_and(|block| kind(block) == "text")
        {
            let text = before.get_str("text").unwrap_or_default();
            before.set("text", format!("{text}\n"));
        }
        self.push(Role::User, content);
    }

    /// Makes the messages acceptable: no empty blocks, every call answered, no result without a call, results
    /// before other blocks, and no two messages of one role in a row.
    pub(crate) fn normalize(&mut self) {
        for message in &mut self.messages {
            message.content.retain(|block| !is_blank(block));
        }
        self.merge();
        self.remove_unpaired();
        self.merge();
        for message in self.messages.iter_mut().filter(|message| message.role == Role::User) {
            message.content.sort_by_key(|block| kind(block) != "tool_result");
        }
    }

    /// Adds the models of thinking blocks, by their [`thinking_key`].
    #[must_use]
    pub(crate) fn with_thinking_models(mut self, models: HashMap<String, String>) -> Self {
        self.thinking_models = models;
        self
    }

    /// Notes the model of the thinking in a reply.
    pub(crate) fn note_thinking(&mut self, blocks: &[RawObject], model: &str) {
        for key in blocks.iter().filter_map(thinking_key) {
            self.thinking_models.insert(key, model.to_owned());
        }
    }

    /// Returns the messages for a model. Thinking is signed for the model that thought; that of other models
    /// is left out, and is sent when they are used again.
    pub(crate) fn messages_for(&self, model: &str) -> Vec<Message> {
        let is_foreign = |block: &RawObject| {
            let other = thinking_key(block).and_then(|key| self.thinking_models.get(&key));
            other.is_some_and(|other| model_name(other) != model_name(model))
        };
        let mut sent = Self::new(self.messages.clone());
        let mut has_removed = false;
        for message in sent.messages.iter_mut().filter(|message| message.role == Role::Assistant) {
            let count = message.content.len();
            message.content.retain(|block| !is_foreign(block));
            if message.content.len() < count {
                has_removed = true;
                // Without the thinking between them, calls follow the other blocks.
                message.content.sort_by_key(|block| kind(block) == "tool_use");
            }
        }
        if has_removed {
            sent.normalize();
        }
        sent.messages
    }

    /// Joins adjacent messages of one role, and removes empty ones.
    fn merge(&mut self) {
        let messages = std::mem::take(&mut self.messages);
        for message in messages.into_iter().filter(|message| !message.content.is_empty()) {
            self.push(message.role, message.content);
        }
    }

    /// Removes calls that the next message does not answer, and results that answer no call of the previous
    /// one.
    fn remove_unpaired(&mut self) {
        for i in 0..self.messages.len() {
            let answered = match self.messages.get(i + 1) {
                Some(next) if next.role == Role::User => ids(next, "tool_result", "tool_use_id"),
                _ => HashSet::new(),
            };
            let asked = match i.checked_sub(1).map(|before| &self.messages[before]) {
                Some(before) if before.role == Role::Assistant => ids(before, "tool_use", "id"),
                _ => HashSet::new(),
            };
            let message = &mut self.messages[i];
            let count = message.content.len();
            message.content.retain(|block| match kind(block).as_str() {
                "tool_use" => block.get_str("id").is_some_and(|id| answered.contains(&id)),
                "tool_result" => block.get_str("tool_use_id").is_some_and(|id| asked.contains(&id)),
                _ => true,
            });
            let is_thinking =
                |block: &RawObject| matches!(kind(block).as_str(), "thinking" | "redacted_thinking");
            if message.content.len() < count && message.content.iter().all(is_thinking) {
                message.content.clear();
            }
        }
    }
}

/// Returns the text that identifies a thinking block; `None` for other blocks.
pub(crate) fn thinking_key(block: &RawObject) -> Option<String> {
    match BlockKind::of(block) {
        BlockKind::Thinking => {
            block.get_str("signature").filter(|signature| !signature.is_empty()).or(block.get_str("thinking"))
        }
        BlockKind::RedactedThinking => block.get_str("data"),
        _ => None,
    }
}

/// Returns the name of a model without the day of its release and without the size of its window.
fn model_name(model: &str) -> &str {
    let name = model.strip_suffix("[1m]").unwrap_or(model);
    match name.rsplit_once('-') {
        Some((name, day)) if day.len() == 8 && day.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => name,
    }
}

fn kind(block: &RawObject) -> String {
    block.get_str("type").unwrap_or_default()
}

fn is_blank(block: &RawObject) -> bool {
    kind(block) == "text" && block.get_str("text").is_none_or(|text| text.trim().is_empty())
}

fn ids(message: &Message, block_kind: &str, key: &str) -> HashSet<String> {
    let blocks = message.content.iter().filter(|block| kind(block) == block_kind);
    blocks.filter_map(|block| block.get_str(key)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(json: &str) -> RawObject {
        RawObject::parse(json).unwrap()
    }

    fn call(id: &str) -> RawObject {
        block(&format!(r#"{{"type":"tool_use","id":"{id}","name":"Read","input":{{}}}}"#))
    }

    fn result(id: &str) -> RawObject {
        block(&format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"x"}}"#))
    }

    fn text(text: &str) -> RawObject {
        Message::text_block(text)
    }

    /// The messages as `role: kind kind; …`.
    fn normalized(messages: Vec<(Role, Vec<RawObject>)>) -> String {
        let messages = messages.into_iter().map(|(role, content)| Message::new(role, content)).collect();
        let mut conversation = Conversation::new(messages);
        conversation.normalize();
        let show = |message: &Message| {
            let kinds: Vec<String> = message.content.iter().map(kind).collect();
            format!("{:?}: {}", message.role, kinds.join(" "))
        };
        conversation.messages.iter().map(show).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn a_call_without_a_result_and_a_result_without_a_call_are_removed() {
        let messages = vec![
            (Role::User, vec![text("a")]),
            (Role::Assistant, vec![text("b"), call("1"), call("2")]),
            (Role::User, vec![result("2"), result("3")]),
        ];
        assert_eq!(normalized(messages), "User: text; Assistant: text tool_use; User: tool_result");
    }

    #[test]
    fn a_reply_that_is_left_with_thinking_only_is_removed() {
        let thinking = block(r#"{"type":"thinking","thinking":"x","signature":"y"}"#);
        let messages = vec![
            (Role::User, vec![text("a")]),
            (Role::Assistant, vec![thinking, call("1")]),
            (Role::User, vec![text("b")]),
        ];
        assert_eq!(normalized(messages), "User: text text");
    }

    #[test]
    fn results_come_first_and_blank_texts_go() {
        let messages = vec![
            (Role::User, vec![text("a")]),
            (Role::Assistant, vec![text(" \n"), call("1")]),
            (Role::User, vec![text("b")]),
            (Role::User, vec![result("1")]),
        ];
        assert_eq!(normalized(messages), "User: text; Assistant: tool_use; User: tool_result text");
    }
}
