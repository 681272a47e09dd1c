//! The purpose of a sub-agent. Defined in this crate because both file names and log lines reveal it.

/// The purpose of a sub-agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AgentKind {
    /// A task that the model delegated.
    Task,
    /// A step of a workflow.
    Workflow,
    /// Writing the summary of a compaction.
    Compaction,
    /// A question that is not part of the conversation.
    SideQuestion,
}

impl AgentKind {
    /// Returns the name used in our JSON output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Workflow => "workflow",
            Self::Compaction => "compaction",
            Self::SideQuestion => "side_question",
        }
    }

    /// Derives the kind from the id of the agent and from whether its file is in the folder of a workflow.
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
