//! Small logs that together hold every tool and every kind of entry, for those who draw them.

/// A small log, and those of its sub-agents.
pub struct Sample {
    /// What it is about.
    pub name: &'static str,
    /// The session's log.
    pub log: Vec<u8>,
    /// The id of each sub-agent, and its log.
    pub agents: Vec<(String, Vec<u8>)>,
}

macro_rules! samples {
    ($($name:literal),*) => {
        &[$(($name, include_str!(concat!("../samples/", $name, ".log")))),*]
    };
}

/// By name, in [notation](crate::log); a line `=== agent ID` begins the log of a sub-agent.
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

/// All of them.
pub fn samples() -> Vec<Sample> {
    let read = |&(name, notation): &(&'static str, &'static str)| {
        let mut parts = notation.split("=== agent ");
        let log = crate::log(parts.next().unwrap_or_default());
        let agents = parts.map(|part| {
            let (id, notation) = part.split_once('\n').expect("a log follows its agent's id");
            (id.trim().to_owned(), crate::log(notation))
        });
        Sample { name, log, agents: agents.collect() }
    };
    SAMPLES.iter().map(read).collect()
}
