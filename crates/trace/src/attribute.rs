//! The names of all attributes. `docs/trace.md` lists them; a test compares the two.

macro_rules! names {
    ($($(#[$doc:meta])* $constant:ident = $name:literal;)*) => {
        $($(#[$doc])* pub(crate) const $constant: &str = $name;)*

        /// Every attribute that a span or an event may have.
        pub const ALL: &[&str] = &[$($name),*];
    };
}

names! {
    // On every span.
    SESSION = "session.id";
    USER = "user.id";
    CONVERSATION = "gen_ai.conversation.id";
    PROVIDER = "gen_ai.provider.name";
    OPERATION = "gen_ai.operation.name";
    TRACE_NAME = "langfuse.trace.name";
    TAGS = "langfuse.trace.tags";
    ENVIRONMENT = "langfuse.environment";
    RELEASE = "langfuse.release";
    TYPE = "langfuse.observation.type";
    LEVEL = "langfuse.observation.level";
    STATUS_MESSAGE = "langfuse.observation.status_message";
    INPUT = "langfuse.observation.input";
    OUTPUT = "langfuse.observation.output";
    ERROR_TYPE = "error.type";

    // On the root.
    META_SOURCE = "langfuse.trace.metadata.source";
    META_TURN = "langfuse.trace.metadata.turn_number";
    META_SESSION = "langfuse.trace.metadata.session_id";
    META_VERSION = "langfuse.trace.metadata.version";
    META_SLUG = "langfuse.trace.metadata.slug";
    META_CWD = "langfuse.trace.metadata.cwd";
    META_BRANCH = "langfuse.trace.metadata.git_branch";
    META_DURATION = "langfuse.trace.metadata.turn_duration_ms";

    // On the root and on sub-agents.
    AGENT_NAME = "gen_ai.agent.name";
    AGENT_ID = "gen_ai.agent.id";
    AGENT_DESCRIPTION = "gen_ai.agent.description";
    AGENT_VERSION = "gen_ai.agent.version";

    // On generations.
    MODEL = "langfuse.observation.model.name";
    MODEL_PARAMETERS = "langfuse.observation.model.parameters";
    USAGE_DETAILS = "langfuse.observation.usage_details";
    COST_DETAILS = "langfuse.observation.cost_details";
    META_TOOLS = "langfuse.observation.metadata.tool_count";
    META_REQUEST = "langfuse.observation.metadata.request_id";
    REQUEST_MODEL = "gen_ai.request.model";
    RESPONSE_MODEL = "gen_ai.response.model";
    RESPONSE_ID = "gen_ai.response.id";
    FINISH_REASONS = "gen_ai.response.finish_reasons";
    INPUT_TOKENS = "gen_ai.usage.input_tokens";
    OUTPUT_TOKENS = "gen_ai.usage.output_tokens";
    CACHE_READ = "gen_ai.usage.cache_read.input_tokens";
    CACHE_CREATION = "gen_ai.usage.cache_creation.input_tokens";
    CACHE_WRITE = "gen_ai.usage.cache_write.input_tokens";
    REASONING = "gen_ai.usage.reasoning.output_tokens";
    COST = "gen_ai.usage.cost";
    INPUT_MESSAGES = "gen_ai.input.messages";
    OUTPUT_MESSAGES = "gen_ai.output.messages";

    // On tool calls.
    TOOL_NAME = "gen_ai.tool.name";
    TOOL_TYPE = "gen_ai.tool.type";
    TOOL_CALL_ID = "gen_ai.tool.call.id";
    TOOL_ARGUMENTS = "gen_ai.tool.call.arguments";
    TOOL_RESULT = "gen_ai.tool.call.result";
    META_TOOL_NAME = "langfuse.observation.metadata.tool_name";
    META_TOOL_ID = "langfuse.observation.metadata.tool_id";
    META_OUTCOME = "langfuse.observation.metadata.outcome";

    // On events.
    EVENT_TRIGGER = "threadline.compaction.trigger";
    EVENT_TOKENS_BEFORE = "threadline.compaction.tokens_before";
    EVENT_TOKENS_AFTER = "threadline.compaction.tokens_after";
    EVENT_MESSAGE = "exception.message";
    EVENT_STATUS = "http.response.status_code";
    EVENT_ATTEMPT = "threadline.retry.attempt";
    EVENT_HOOK = "threadline.hook.name";
    EVENT_HOOKS = "threadline.hook.count";
    EVENT_HOOK_ERRORS = "threadline.hook.errors";
}
