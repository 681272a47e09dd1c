//! Sub-agents of an earlier run of the session, which are continued from their logs.

use std::sync::Arc;

use threadline_entry::AgentKind;
use threadline_store::{AgentFile, AgentMeta, is_plain_name};

use crate::agent::Agent;
use crate::agent_definition::DEFAULT_AGENT;
use crate::resume::{Filler, ResumedAgent};
use crate::sub_agent::SubAgentSource;

impl Agent {
    /// Returns the sub-agent with an id as its log in the folder of the session describes it, ready for a
    /// message. `None` if there is no log of it, if the log contains no conversation, or if its kind is not
    /// known.
    pub(crate) fn stored_agent(&self, id: &str, prompt_id: &str) -> Option<Self> {
        // The model chooses the id, which becomes a part of a path.
        let path = is_plain_name(id).then(|| self.agent_log(id)).filter(|path| path.is_file())?;
        let stored = ResumedAgent::read(&path, self.config.profile.version).ok()?;
        let file = AgentFile { id: id.to_owned(), path, kind: AgentKind::of(id, false), run: None };
        let meta = file.read_meta().ok().flatten();
        let value = |get: fn(&AgentMeta) -> Option<String>| meta.as_ref().and_then(get).unwrap_or_default();
        let agent_type = meta.as_ref().and_then(AgentMeta::agent_type);
        let agent_type = agent_type.unwrap_or_else(|| DEFAULT_AGENT.to_owned());
        // Another kind than the one that was removed meanwhile might have more tools.
        let definition = self.agents.iter().find(|definition| definition.name == agent_type)?;
        let source = Arc::new(SubAgentSource {
            agent_id: id.to_owned(),
            agent_type,
            tool_use_id: value(AgentMeta::tool_use_id),
            description: value(AgentMeta::description),
            prompt: stored.prompt,
        });
        let mut agent = self.sub_agent(definition, &source, prompt_id, stored.model.as_deref());
        for file in &stored.session.seen_files {
            let time = u64::try_from(file.time).unwrap_or_default();
            agent.files.restore(file.path.clone(), &file.content, time);
        }
        agent.continue_from(stored.session);
        // A message follows, whatever the end of the log.
        agent.filler = Filler::None;
        Some(agent)
    }
}
