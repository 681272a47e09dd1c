//! The tools of a profile.

use std::collections::BTreeSet;

use crate::bash::Bash;
use crate::edit::Edit;
use crate::glob::Glob;
use crate::grep::Grep;
use crate::notebook_edit::NotebookEdit;
use crate::output::ToolOutput;
use crate::profile::Profile;
use crate::read::ReadFile;
use crate::task_list::{TaskListTool, TaskOperation};
use crate::task_output::{TaskOutput, TaskStop, TodoWrite};
use crate::tool::{Tool, ToolDefinition};
use crate::web_fetch::WebFetch;
use crate::web_search::WebSearch;
use crate::write::WriteFile;

/// A tool of this crate, by which profiles name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolKind {
    Bash,
    Edit,
    Glob,
    Grep,
    NotebookEdit,
    Read,
    TaskCreate,
    TaskGet,
    TaskList,
    TaskOutput,
    TaskStop,
    TaskUpdate,
    TodoWrite,
    WebFetch,
    WebSearch,
    Write,
}

impl ToolKind {
    fn build(self, profile: &'static Profile) -> Box<dyn Tool> {
        match self {
            Self::Bash => Box::new(Bash { profile }),
            Self::Edit => Box::new(Edit { profile }),
            Self::Glob => Box::new(Glob { profile }),
            Self::Grep => Box::new(Grep { profile }),
            Self::NotebookEdit => Box::new(NotebookEdit { profile }),
            Self::Read => Box::new(ReadFile { profile }),
            Self::TaskCreate => Box::new(TaskListTool { profile, operation: TaskOperation::Create }),
            Self::TaskGet => Box::new(TaskListTool { profile, operation: TaskOperation::Get }),
            Self::TaskList => Box::new(TaskListTool { profile, operation: TaskOperation::List }),
            Self::TaskOutput => Box::new(TaskOutput { profile }),
            Self::TaskStop => Box::new(TaskStop { profile }),
            Self::TaskUpdate => Box::new(TaskListTool { profile, operation: TaskOperation::Update }),
            Self::TodoWrite => Box::new(TodoWrite::new(profile)),
            Self::WebFetch => Box::new(WebFetch::new(profile)),
            Self::WebSearch => Box::new(WebSearch { profile }),
            Self::Write => Box::new(WriteFile { profile }),
        }
    }
}

/// The selection of tools on the command line.
#[derive(Debug, Clone, Default)]
pub struct ToolSelection {
    /// `--tools`: only these; `None` for the default list.
    pub only: Option<Vec<String>>,
    /// `--disallowedTools`: none of these (names without a rule in parentheses).
    pub without: Vec<String>,
}

/// The tools that are sent to the model, and the names of those that exist but are not sent.
pub struct ToolSet {
    tools: Vec<Box<dyn Tool>>,
    disabled: BTreeSet<String>,
    profile: &'static Profile,
}

impl ToolSet {
    /// Returns the tools of a profile, without those that a function refuses by name.
    #[must_use]
    pub fn new(
        profile: &'static Profile,
        selection: &ToolSelection,
        is_denied: &dyn Fn(&str) -> bool,
    ) -> Self {
        Self::select(profile, |name, is_default| {
            let is_named = |names: &[String]| names.iter().any(|other| other == name);
            let is_selected = selection.only.as_ref().map_or(is_default, |only| is_named(only));
            is_selected && !is_named(&selection.without) && !is_denied(name)
        })
    }

    /// Returns the tools of a profile that a function selects by name.
    pub(crate) fn select(profile: &'static Profile, is_selected: impl Fn(&str, bool) -> bool) -> Self {
        let mut tools: Vec<Box<dyn Tool>> = Vec::new();
        let mut disabled: BTreeSet<String> =
            profile.other_tools.iter().map(|name| (*name).to_owned()).collect();
        let defaults = profile.default_tools.iter().map(|kind| (*kind, true));
        let selectable = profile.selectable_tools.iter().map(|kind| (*kind, false));
        for (kind, is_default) in defaults.chain(selectable) {
            let tool = kind.build(profile);
            if is_selected(tool.name(), is_default) {
                tools.push(tool);
            } else {
                disabled.insert(tool.name().to_owned());
            }
        }
        let mut set = Self { tools, disabled, profile };
        set.sort();
        set
    }

    fn sort(&mut self) {
        if self.profile.sorts_tools {
            self.tools.sort_by(|a, b| a.name().cmp(b.name()));
        }
    }

    /// Adds a tool that is not part of a profile: structured output, sub-agents, MCP tools. It replaces one
    /// of the same name.
    pub fn push(&mut self, tool: Box<dyn Tool>) {
        self.disabled.remove(tool.name());
        self.tools.retain(|other| other.name() != tool.name());
        self.tools.push(tool);
        self.sort();
    }

    /// Removes a tool.
    pub fn remove(&mut self, name: &str) {
        self.tools.retain(|tool| tool.name() != name);
    }

    /// Returns the enabled tool of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&dyn Tool> {
        self.tools.iter().find(|tool| tool.name() == name).map(|tool| &**tool)
    }

    /// Returns whether a tool of this name exists, enabled or not.
    #[must_use]
    pub fn exists(&self, name: &str) -> bool {
        self.get(name).is_some() || self.disabled.contains(name)
    }

    /// Returns the enabled tools in the order in which they are sent.
    pub fn tools(&self) -> impl Iterator<Item = &dyn Tool> {
        self.tools.iter().map(|tool| &**tool)
    }

    /// Returns the definitions to send, in order.
    #[must_use]
    pub fn definitions(&self) -> Vec<ToolDefinition> {
        self.tools.iter().map(|tool| tool.definition()).collect()
    }

    /// Returns the result of a call of a tool that is unknown or not enabled.
    #[must_use]
    pub fn unavailable(&self, name: &str) -> ToolOutput {
        let mut message = format!("Error: No such tool available: {name}");
        if self.profile.names_disabled_tools && self.disabled.contains(name) {
            message.push_str(&format!(
                ". {name} exists but is not enabled in this context. Use one of the available tools instead."
            ));
        }
        ToolOutput::unavailable(&message)
    }
}

impl std::fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.tools().map(|tool| tool.name().to_owned()).collect();
        f.debug_struct("ToolSet").field("tools", &names).field("disabled", &self.disabled).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(profile: &'static Profile, only: Option<&[&str]>, without: &[&str]) -> Vec<String> {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let selection = ToolSelection { only: only.map(owned), without: owned(without) };
        ToolSet::new(profile, &selection, &|_| false).tools().map(|tool| tool.name().to_owned()).collect()
    }

    #[test]
    fn search_tools_are_sent_on_request_only() {
        let all = names(&Profile::V2_1_197, None, &[]);
        assert!(all.contains(&"Read".to_owned()) && !all.contains(&"Grep".to_owned()), "{all:?}");
        assert!(all.is_sorted());
        let only: &[&str] = &["Read", "Bash", "Glob", "Grep", "TodoWrite"];
        assert_eq!(names(&Profile::V2_1_197, Some(only), &["Bash"]), ["Glob", "Grep", "Read"]);
        assert!(names(&Profile::V2_1_20, None, &[]).contains(&"TodoWrite".to_owned()));
    }

    #[test]
    fn calls_of_tools_that_are_not_enabled_name_the_reason() {
        let set = ToolSet::new(&Profile::V2_1_197, &ToolSelection::default(), &|_| false);
        assert!(set.get("TodoWrite").is_none() && set.exists("TodoWrite") && !set.exists("Nope"));
        assert_eq!(
            set.unavailable("TodoWrite").text(),
            "<tool_use_error>Error: No such tool available: TodoWrite. TodoWrite exists but is not enabled in this \
             context. Use one of the available tools instead.</tool_use_error>"
        );
        let unknown = set.unavailable("Nope");
        assert_eq!(unknown.text(), "<tool_use_error>Error: No such tool available: Nope</tool_use_error>");
        assert_eq!(unknown.record.unwrap().get(), r#""Error: No such tool available: Nope""#);
    }

    #[test]
    fn every_tool_has_a_definition_that_the_api_accepts() {
        for profile in [&Profile::V2_1_197, &Profile::V2_1_20] {
            for definition in ToolSet::select(profile, |_, _| true).definitions() {
                let schema: serde_json::Value = serde_json::from_str(definition.input_schema.get()).unwrap();
                assert_eq!(schema["type"], "object", "{}", definition.name);
                assert!(!definition.description.is_empty(), "{}", definition.name);
            }
        }
    }

    #[test]
    fn no_value_of_any_parameter_makes_a_tool_panic() {
        let values = [
            "null",
            "true",
            "-1",
            "0",
            "1.5",
            "1e308",
            "18446744073709551615",
            r#""""#,
            r#""x""#,
            r#""a\u0000b""#,
            r#""1""#,
            r#""true""#,
            r#""..""#,
            r#""~""#,
            r#""cell-18446744073709551615""#,
            r#""[""#,
            r#""**""#,
            "[]",
            "[1]",
            r#"["1"]"#,
            "[[]]",
            "{}",
            r#"{"a":{"b":[null]}}"#,
        ];
        for profile in [&Profile::V2_1_197, &Profile::V2_1_20] {
            let fixture = crate::testing::Fixture::with_profile(profile);
            fixture.put("x", "x\n");
            fixture.put("n.ipynb", r#"{"cells": [{"cell_type": "code", "source": 5, "outputs": {"a": 1}}]}"#);
            fixture.run("Read", r#"{"file_path": "x"}"#);
            fixture.run("Read", r#"{"file_path": "n.ipynb"}"#);
            // Bash and the web are left out: they would run the commands and requests in the values.
            let tools = fixture
                .tools
                .tools()
                .filter(|tool| !matches!(tool.name(), "Bash" | "WebFetch" | "WebSearch"));
            for tool in tools {
                let crate::InputSchema::Parameters(parameters) = tool.schema() else { continue };
                for parameter in parameters {
                    for value in values {
                        let valid = |name: &str| match name {
                            "notebook_path" => r#""n.ipynb""#,
                            "content" | "new_string" => r#""y""#,
                            "todos" => "[]",
                            "block" => "false",
                            "timeout" => "0",
                            _ => r#""x""#,
                        };
                        let members: Vec<_> = parameters
                            .iter()
                            .filter(|other| other.required || other.name == parameter.name)
                            .map(|other| {
                                let text =
                                    if other.name == parameter.name { value } else { valid(other.name) };
                                format!("{:?}:{text}", other.name)
                            })
                            .collect();
                        fixture.run(tool.name(), &format!("{{{}}}", members.join(",")));
                    }
                }
                for value in values {
                    fixture.run(tool.name(), value);
                }
            }
        }
    }
}
