//! What a sub-agent was started for. Here, because both the disk and the log tell of it.

/// What a sub-agent was started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AgentKind {
    /// A task that the model gave away.
    Task,
    /// A step of a workflow.
    Workflow,
    /// Writing the summary of a compaction.
    Compaction,
    /// A question asked beside the conversation.
    SideQuestion,
}

impl AgentKind {
    /// Its name in our JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Workflow => "workflow",
            Self::Compaction => "compaction",
            Self::SideQuestion => "side_question",
        }
    }

    /// What an agent's id tells, and whether its file lies in the folder of a workflow.
    pub fn of(id: &str, in_workflow: bool) -> Self {
        if id.starts_with("acompact-") {
            Self::Compaction
        } else if id.starts_with("aside_question-") {
            Self::SideQuestion
        } else if in_workflow {
            Self::Workflow
        } else {
            Self::Task
        }
    }
}
