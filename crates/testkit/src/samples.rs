//! Small logs that together contain every tool and every kind of entry, for tests of rendering.

/// A small log, with the logs of its sub-agents.
pub struct Sample {
    /// The topic of the sample.
    pub name: &'static str,
    /// The log of the session.
    pub log: Vec<u8>,
    /// The id of each sub-agent, and its log.
    pub agents: Vec<(String, Vec<u8>)>,
}

macro_rules! samples {
    ($($name:literal),*) => {
        &[$(($name, include_str!(concat!("../samples/", $name, ".log")))),*]
    };
}

/// The name and [notation](crate::log) of each sample. A line `=== agent ID` begins the log of a sub-agent.
const SAMPLES: &[(&str, &str)] = samples![
    "agents",
    "around",
    "branches",
    "commands",
    "compaction",
    "files",
    "hostile",
    "people",
    "prompts",
    "replies",
    "search",
    "shell",
    "tasks",
    "trouble"
];

/// Returns all samples.
pub fn samples() -> Vec<Sample> {
    let read = |&(name, notation): &(&'static str, &'static str)| {
        let mut parts = notation.split("=== agent ");
        let log = crate::log(parts.next().unwrap_or_default());
        let agents = parts.map(|part| {
            let (id, notation) = part.split_once('\n').expect("a newline after the agent id");
            (id.trim().to_owned(), crate::log(notation))
        });
        Sample { name, log, agents: agents.collect() }
    };
    SAMPLES.iter().map(read).collect()
}
