//! Prompts of servers, which people use as commands.

use rmcp::model::{GetPromptRequestParams, GetPromptResponse, JsonObject, Prompt};
use rmcp::service::ServiceError;
use serde_json::value::RawValue;
use threadline_cancel::CancelToken;
use threadline_tools::ToolContext;

use crate::content::blocks;
use crate::servers::McpServers;
use crate::tool::plain_name;

/// The longest description of a prompt, in characters.
const MAX_DESCRIPTION: usize = 1_000;
/// The most blocks of a prompt that are used.
const MAX_BLOCKS: usize = 100;

/// A prompt as its server describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpPromptInfo {
    /// The name of the command: `mcp__server__prompt`.
    pub command: String,
    /// The name of the server.
    pub server: String,
    /// The name at the server.
    pub prompt: String,
    /// The explanation for people.
    pub description: String,
    /// The names of its arguments, in their order.
    pub arguments: Vec<String>,
}

impl McpPromptInfo {
    /// Describes the prompts of a server.
    pub(crate) fn of_server(server: &str, prompts: Vec<Prompt>) -> impl Iterator<Item = Self> {
        prompts.into_iter().map(move |prompt| Self {
            command: format!("mcp__{}__{}", plain_name(server), plain_name(&prompt.name)),
            server: server.to_owned(),
            prompt: prompt.name,
            description: prompt.description.unwrap_or_default().chars().take(MAX_DESCRIPTION).collect(),
            arguments: prompt
                .arguments
                .unwrap_or_default()
                .into_iter()
                .map(|argument| argument.name)
                .collect(),
        })
    }
}

impl McpServers {
    /// Returns the content blocks of a prompt with these words as its arguments. Blocks until the server has
    /// answered.
    ///
    /// # Errors
    /// Returns the reason why there is none.
    pub fn prompt_blocks(
        &self,
        prompt: &McpPromptInfo,
        words: &str,
        context: &ToolContext<'_>,
    ) -> Result<Vec<Box<RawValue>>, String> {
        let session = self.session.as_ref().ok_or("no server is connected")?;
        let words = words.split_whitespace().map(|word| word.into());
        let arguments: JsonObject = prompt.arguments.iter().cloned().zip(words).collect();
        let params = GetPromptRequestParams::new(prompt.prompt.clone()).with_arguments(arguments);
        let cancel: &CancelToken = context.cancel;
        let result = session.request(&prompt.server, cancel, |peer| async move {
            match peer.get_prompt_once(params).await? {
                GetPromptResponse::Complete(result) => Ok(result),
                _ => Err(ServiceError::UnexpectedResponse),
            }
        });
        let result = result.map_err(|error| error.message)?;
        let all =
            result.messages.iter().flat_map(|message| blocks(&message.content, &prompt.server, context));
        Ok(all.take(MAX_BLOCKS).collect())
    }
}
