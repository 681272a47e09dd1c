//! MCP servers of a session: their tools, their prompts as commands, and resources that a prompt mentions.

use std::path::Path;

use threadline_api::{Message, RawObject, Role};
use threadline_cancel::CancelToken;
use threadline_mcp_client::{McpPromptInfo, McpServers};
use threadline_tools::{FileObserver, Tool};

use crate::agent::{Agent, tool_json};
use crate::custom_command::CustomCommand;
use crate::json::raw;
use crate::session_writer::{UserLineFields, WriteError};
use crate::slash_command::{ExpandedCommand, SlashMeaning, SlashPrompt};

/// The observer of requests to servers, which change no files.
struct UnchangedFiles;

impl FileObserver for UnchangedFiles {
    fn before_change(&self, _: &Path) {}
}

impl Agent {
    /// Offers the tools of servers to the model. The servers end with the session.
    pub fn add_servers(&mut self, servers: McpServers) {
        let is_offered = |name: &str| {
            let is_named = self.config.disallowed_tools.iter().any(|other| other == name);
            !is_named && !self.config.permissions.read(|permissions| permissions.is_tool_denied(name))
        };
        for tool in servers.tools().filter(|tool| is_offered(tool.name())) {
            self.tools.push(Box::new(tool));
        }
        for tool in servers.resource_tools() {
            if is_offered(tool.name()) {
                self.tools.push(tool);
            }
        }
        self.config.mcp = servers;
        self.request.tools = self.tools.definitions().iter().map(tool_json).collect();
    }

    /// Returns the meaning of a command if it is a prompt of a server: `/mcp__server__prompt` or
    /// `/server:prompt (MCP)`.
    pub(crate) fn mcp_prompt(&self, slash: SlashPrompt<'_>, cancel: &CancelToken) -> Option<SlashMeaning> {
        let short = slash.arguments.strip_prefix("(MCP)").map(str::trim_start);
        let is_short_name = |prompt: &McpPromptInfo| {
            short.is_some() && slash.name.split_once(':') == Some((&prompt.server, &prompt.prompt))
        };
        let is_named = |prompt: &&McpPromptInfo| prompt.command == slash.name || is_short_name(prompt);
        let prompt = self.config.mcp.prompts().find(is_named)?;
        let arguments =
            if prompt.command == slash.name { slash.arguments } else { short.unwrap_or_default() };
        let id = self.clock.new_uuid();
        let is_hidden = |path: &Path| self.is_hidden(path);
        let context = self.tool_context(cancel, &id, &UnchangedFiles, &is_hidden);
        let blocks = match self.config.mcp.prompt_blocks(prompt, arguments, &context) {
            Ok(blocks) => blocks,
            Err(reason) => {
                let message = format!("/{} could not be used: {reason}", prompt.command);
                return Some(SlashMeaning::Unusable(message));
            }
        };
        let blocks: Vec<RawObject> =
            blocks.iter().filter_map(|block| RawObject::parse(block.get()).ok()).collect();
        if blocks.is_empty() {
            return Some(SlashMeaning::Unusable(format!("/{} has no content", prompt.command)));
        }
        Some(SlashMeaning::Custom(ExpandedCommand {
            command: CustomCommand::of_server(prompt.command.clone(), prompt.description.clone()),
            arguments: arguments.to_owned(),
            text: String::new(),
            blocks,
        }))
    }

    /// Adds a resource that a prompt mentions as `@server:uri` to the conversation.
    pub(crate) fn attach_resource(&mut self, mention: &str, cancel: &CancelToken) -> Result<(), WriteError> {
        let id = self.clock.new_uuid();
        let is_hidden = |path: &Path| self.is_hidden(path);
        let context = self.tool_context(cancel, &id, &UnchangedFiles, &is_hidden);
        let Some(text) = self.config.mcp.mentioned_resource(mention, &context) else { return Ok(()) };
        let block = Message::text_block(&text);
        let fields = UserLineFields {
            prompt_id: self.prompt_id.as_deref(),
            is_meta: true,
            ..UserLineFields::default()
        };
        self.writer.lock().user(&raw(&[&block]), fields, &*self.clock)?;
        self.conversation.push(Role::User, vec![block]);
        Ok(())
    }
}
