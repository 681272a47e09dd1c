//! The session lines of each version of Claude Code, as data.

/// The lines of a version, as far as versions differ.
#[derive(Debug)]
pub(crate) struct SessionFormat {
    version: &'static str,
    /// Whether a prompt has a line for its way into the queue, besides the one for its way out.
    pub(crate) writes_enqueue: bool,
    /// Whether the snapshot of a prompt precedes its line.
    pub(crate) snapshot_precedes_prompt: bool,
    /// Whether user lines name the prompt they belong to and where it comes from.
    pub(crate) has_prompt_ids: bool,
    /// Whether lines name the program that wrote them.
    pub(crate) has_entrypoint: bool,
    /// Whether the values that all lines have in common come first.
    pub(crate) has_leading_context: bool,
    /// The branch outside of a repository.
    pub(crate) no_branch: &'static str,
    /// Whether reply lines have the usage and stop reason of the end of the reply; otherwise those of the
    /// moment at which the block was complete.
    pub(crate) has_final_usage: bool,
    /// Whether lines name the session's plan, from the first file on that a tool works on.
    pub(crate) has_slug: bool,
    /// Whether context is written as `attachment` lines.
    pub(crate) has_attachments: bool,
    /// Whether the end of a run is marked with `last-prompt` and `mode` lines.
    pub(crate) has_end_marks: bool,
    /// Whether filler lines separate a prompt from an error before it.
    pub(crate) fills_after_errors: bool,
    /// Whether errors are worded for people and have the members of later versions; otherwise the answer of
    /// the API is quoted.
    pub(crate) has_error_details: bool,
    /// Whether sub-agents are described by a file, have long ids, and records with their kind and calls.
    pub(crate) has_agent_details: bool,
    /// Whether a session has a file with its to-do list.
    pub(crate) has_todo_file: bool,
    /// Whether titles are `summary` lines at the end of the log.
    pub(crate) has_summary_titles: bool,
    /// Whether running commands, hooks and sub-agents at a screen are reported in the log.
    pub(crate) has_progress: bool,
    /// Whether the line of an interruption at a screen names the reply.
    pub(crate) names_interrupted_reply: bool,
    /// Whether a summary can replace a part of the conversation.
    pub(crate) has_partial_summaries: bool,
}

/// The format of 2.1.197.
const V2_1_197: SessionFormat = SessionFormat {
    version: "2.1.197",
    writes_enqueue: true,
    snapshot_precedes_prompt: false,
    has_prompt_ids: true,
    has_entrypoint: true,
    has_leading_context: false,
    no_branch: "HEAD",
    has_final_usage: true,
    has_slug: false,
    has_attachments: true,
    has_end_marks: true,
    fills_after_errors: true,
    has_error_details: true,
    has_agent_details: true,
    has_todo_file: false,
    has_summary_titles: false,
    has_progress: false,
    names_interrupted_reply: true,
    has_partial_summaries: true,
};

/// The format of 2.1.20.
const V2_1_20: SessionFormat = SessionFormat {
    version: "2.1.20",
    writes_enqueue: false,
    snapshot_precedes_prompt: true,
    has_prompt_ids: false,
    has_entrypoint: false,
    has_leading_context: true,
    no_branch: "",
    has_final_usage: false,
    has_slug: true,
    has_attachments: false,
    has_end_marks: false,
    fills_after_errors: false,
    has_error_details: false,
    has_agent_details: false,
    has_todo_file: true,
    has_summary_titles: true,
    has_progress: true,
    names_interrupted_reply: false,
    has_partial_summaries: false,
};

static ALL: [SessionFormat; 2] = [V2_1_197, V2_1_20];

impl SessionFormat {
    /// Returns the format of a version; that of the reference version if there is none.
    pub(crate) fn of(version: &str) -> &'static Self {
        ALL.iter().find(|format| format.version == version).unwrap_or(&ALL[0])
    }
}

/// First words of slugs.
const ADJECTIVES: &[&str] = &[
    "amber", "brisk", "calm", "clever", "cosy", "curious", "dapper", "eager", "fuzzy", "gentle", "golden",
    "hidden", "jolly", "lively", "lucid", "mellow", "misty", "nimble", "polished", "quiet", "rapid",
    "rustic", "serene", "silver", "snug", "steady", "sunny", "tidy", "velvet", "vivid", "witty", "zesty",
];

/// Second words of slugs.
const VERBS: &[&str] = &[
    "baking",
    "building",
    "charting",
    "climbing",
    "counting",
    "crafting",
    "dancing",
    "drawing",
    "drifting",
    "floating",
    "forging",
    "gliding",
    "humming",
    "juggling",
    "knitting",
    "leaping",
    "mapping",
    "painting",
    "plotting",
    "puzzling",
    "reading",
    "roaming",
    "sailing",
    "singing",
    "sketching",
    "spinning",
    "tinkering",
    "tracing",
    "wandering",
    "weaving",
    "whistling",
    "writing",
];

/// Last words of slugs.
const NOUNS: &[&str] = &[
    "acorn", "babbage", "beacon", "comet", "curie", "darwin", "euler", "falcon", "fermat", "galaxy", "gauss",
    "harbor", "hopper", "island", "kepler", "lantern", "lovelace", "maple", "meadow", "newton", "noether",
    "nygaard", "otter", "pebble", "planck", "quill", "river", "sparrow", "thicket", "turing", "walnut",
    "willow",
];

/// Returns a readable name made of the digits of a UUID.
pub(crate) fn slug(uuid: &str) -> String {
    let digits: Vec<usize> =
        uuid.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as usize).collect();
    let pick = |words: &[&'static str], at: usize| {
        let number = digits.get(at).unwrap_or(&0) * 16 + digits.get(at + 1).unwrap_or(&0);
        words[number % words.len()]
    };
    format!("{}-{}-{}", pick(ADJECTIVES, 0), pick(VERBS, 2), pick(NOUNS, 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_has_three_words() {
        assert_eq!(slug("0001020a-0000-4000-8000-000000000000"), "amber-building-beacon");
        assert_eq!(slug("ffffffff-ffff-4fff-8fff-ffffffffffff"), "zesty-writing-willow");
    }

    #[test]
    fn an_unknown_version_has_the_format_of_the_reference() {
        assert_eq!(SessionFormat::of("2.1.20").version, "2.1.20");
        assert_eq!(SessionFormat::of("9.9.9").version, "2.1.197");
    }
}
