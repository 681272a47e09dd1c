//! Kinds of sub-agents: those that are built in, and those of files and flags.

use std::path::Path;

use threadline_api::RawObject;

use crate::definition_file::{read_text, read_text_inside};
use crate::front_matter::FrontMatter;

/// A kind of sub-agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentDefinition {
    /// The name, by which the model calls it.
    pub name: String,
    /// When it should be used, for the model.
    pub description: String,
    /// Its instructions; `None` for those of the session.
    pub prompt: Option<String>,
    /// The tools that it is given; `None` for those of the session.
    pub tools: Option<Vec<String>>,
    /// Tools that it is not given.
    pub disallowed_tools: Vec<String>,
    /// Its model; `None` for that of the session.
    pub model: Option<String>,
}

/// Tools that change nothing, for agents that only look.
const READING_TOOLS: &[&str] = &["Bash", "Glob", "Grep", "Read", "TaskStop", "WebFetch", "WebSearch"];

/// The kind that is used if the model names none.
pub(crate) const DEFAULT_AGENT: &str = "general-purpose";

impl AgentDefinition {
    fn built_in(name: &str, description: &str, prompt: Option<&str>, tools: Option<&[&str]>) -> Self {
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            prompt: prompt.map(str::to_owned),
            tools: tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect()),
            disallowed_tools: Vec::new(),
            model: None,
        }
    }

    /// Parses a file with values at its start, and instructions after them.
    ///
    /// `None` if it has no name or no description.
    pub fn parse(text: &str) -> Option<Self> {
        let (values, prompt) = FrontMatter::split(text);
        let list = |key: &str| Some(values.list(key)).filter(|list| !list.is_empty());
        Some(Self {
            name: values.text("name")?.to_owned(),
            description: values.text("description")?.replace("\\n", "\n"),
            prompt: Some(prompt.trim().to_owned()),
            tools: list("tools").filter(|tools| tools.iter().all(|tool| tool != "*")),
            disallowed_tools: values.list("disallowedTools"),
            model: values.text("model").filter(|model| *model != "inherit").map(str::to_owned),
        })
    }

    /// Reads the definitions in the `.md` files of a folder, in the order of their names. Files that are not
    /// definitions, or that are outside of `root` after links are resolved, if one is given, are left out.
    pub fn read_folder(folder: &Path, root: Option<&Path>) -> Vec<Self> {
        let mut files: Vec<_> =
            fs_err::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        files.sort();
        let read = |path: &Path| match root {
            Some(root) => read_text_inside(path, root),
            None => read_text(path),
        };
        let files = files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "md"));
        files.filter_map(|path| Self::parse(&read(path)?)).collect()
    }

    /// Returns all definitions: later ones of `custom` replace earlier and built-in ones of the same name.
    /// Sorted by name without regard to case.
    pub fn all(custom: &[Self]) -> Vec<Self> {
        let mut definitions = built_in();
        for definition in custom {
            definitions.retain(|other| other.name != definition.name);
            definitions.push(definition.clone());
        }
        definitions.sort_by_key(|definition| definition.name.to_lowercase());
        definitions
    }

    /// Parses definitions from JSON: an object with a member for each name.
    ///
    /// # Errors
    /// Returns the reason if the text is not such an object.
    pub fn parse_json(text: &str) -> Result<Vec<Self>, String> {
        let object = RawObject::parse(text).map_err(|error| error.to_string())?;
        let mut definitions = Vec::new();
        for (name, value) in object.members() {
            let value = RawObject::parse(value.get()).map_err(|error| format!("`{name}`: {error}"))?;
            let list = |key: &str| {
                value.get(key).and_then(|list| serde_json::from_str::<Vec<String>>(list.get()).ok())
            };
            let text = |key: &str| value.get_str(key).ok_or_else(|| format!("`{name}` has no `{key}`"));
            definitions.push(Self {
                name: name.to_owned(),
                description: text("description")?,
                prompt: Some(text("prompt")?),
                tools: list("tools"),
                disallowed_tools: list("disallowedTools").unwrap_or_default(),
                model: value.get_str("model").filter(|model| model != "inherit"),
            });
        }
        Ok(definitions)
    }
}

/// Returns the definitions that are built in.
fn built_in() -> Vec<AgentDefinition> {
    let agent = AgentDefinition::built_in;
    vec![
        agent("claude", "Any task, with the instructions and tools of this session.", None, None),
        agent(
            "Explore",
            "Finds files and answers questions about a code base. It changes nothing.",
            Some(
                "You explore a code base to answer a question. Search broadly first, then read the parts that \
                 matter. Change nothing: no edits, no new files, no commands with effects. Answer with the facts \
                 and where you found them, as `path:line`.",
            ),
            Some(READING_TOOLS),
        ),
        agent(
            DEFAULT_AGENT,
            "Research and tasks of several steps that need many files, when it is not clear where to look.",
            Some(
                "You work on one task for another agent, which sees only your last message. Do the task \
                 completely and nothing beyond it. End with a short report: what you found or did, and the \
                 paths that matter.",
            ),
            None,
        ),
        agent(
            "Plan",
            "Designs a change step by step before it is made. It changes nothing.",
            Some(
                "You plan a change of a code base. Read what the change touches, then write a plan: the steps in \
                 order, the files of each, risks, and how to check the result. Change nothing.",
            ),
            Some(READING_TOOLS),
        ),
        agent(
            "statusline-setup",
            "Sets up the status line in the settings of the user.",
            Some(
                "You set up the `statusLine` of the user's settings.json. Keep every other setting as it is.",
            ),
            Some(&["Read", "Edit"]),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_header_and_instructions() {
        let text = "---\nname: reviewer\ndescription: \"Reviews: code\"\ntools: Read, Grep\nmodel: inherit\n---\n\nBe strict.\n";
        let parsed = AgentDefinition::parse(text).unwrap();
        assert_eq!((parsed.name.as_str(), parsed.description.as_str()), ("reviewer", "Reviews: code"));
        assert_eq!(parsed.tools.unwrap(), ["Read", "Grep"]);
        assert_eq!((parsed.prompt.as_deref(), parsed.model), (Some("Be strict."), None));
        let text = "---\nname: x\ndescription: y\ntools:\n  - Read\n  - Bash\nmodel: haiku\n---\nz";
        let parsed = AgentDefinition::parse(text).unwrap();
        assert_eq!(
            (parsed.tools.unwrap(), parsed.model.as_deref()),
            (vec!["Read".into(), "Bash".into()], Some("haiku"))
        );
        assert_eq!(AgentDefinition::parse("no header"), None);
        assert_eq!(AgentDefinition::parse("---\nname: x\n---\nno description"), None);
    }

    #[test]
    fn a_definition_of_the_user_replaces_the_one_that_is_built_in() {
        let json = r#"{"Plan": {"description": "mine", "prompt": "p", "tools": ["Read"]}, "a": {"description": "b", "prompt": "c"}}"#;
        let all = AgentDefinition::all(&AgentDefinition::parse_json(json).unwrap());
        let names: Vec<&str> = all.iter().map(|definition| definition.name.as_str()).collect();
        assert_eq!(names, ["a", "claude", "Explore", "general-purpose", "Plan", "statusline-setup"]);
        assert_eq!(all[4].description, "mine");
        assert!(
            AgentDefinition::parse_json(r#"{"a": {"description": "b"}}"#).unwrap_err().contains("prompt")
        );
    }
}
