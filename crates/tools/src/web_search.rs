//! WebSearch: a search by the server tool of the API.

use std::time::Instant;

use serde::Serialize;

use crate::context::{ToolContext, WebSearchPart, WebSearchRequest};
use crate::output::{Failure, ToolOutput};
use crate::profile::Profile;
use crate::schema::{Kind, Parameter, optional, required};
use crate::tool::{InputSchema, Permit, Tool, ToolInput};

/// The WebSearch tool.
pub(crate) struct WebSearch {
    pub(crate) profile: &'static Profile,
}

const PARAMETERS: &[Parameter] = &[
    required("query", Kind::Text(2), "The words to search for"),
    optional("allowed_domains", Kind::Texts, "Only results of these hosts"),
    optional("blocked_domains", Kind::Texts, "No results of these hosts"),
];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WebSearchRecord<'a> {
    query: &'a str,
    results: Vec<Entry>,
    duration_seconds: f64,
    search_count: usize,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Entry {
    Text(String),
    Links { tool_use_id: String, content: Vec<Link> },
}

#[derive(Serialize)]
struct Link {
    title: String,
    url: String,
}

impl Tool for WebSearch {
    fn name(&self) -> &str {
        "WebSearch"
    }

    fn description(&self) -> String {
        "Searches the web and returns titles and addresses of pages with a summary. Name the pages that were used as \
         Markdown links in the answer."
            .to_owned()
    }

    fn schema(&self) -> InputSchema<'_> {
        InputSchema::Parameters(PARAMETERS)
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        true
    }

    fn converts_text(&self) -> bool {
        self.profile.converts_text
    }

    fn run(&self, input: &ToolInput, context: &ToolContext<'_>, _: Permit) -> ToolOutput {
        search(input, context).unwrap_or_else(|failure| failure.into_output(self.name()))
    }
}

fn search(input: &ToolInput, context: &ToolContext<'_>) -> Result<ToolOutput, Failure> {
    let started = Instant::now();
    let query = input.text("query").unwrap_or_default();
    let (allowed, blocked) = (input.texts("allowed_domains"), input.texts("blocked_domains"));
    if !allowed.is_empty() && !blocked.is_empty() {
        let message = "Error: Cannot specify both allowed_domains and blocked_domains in the same request";
        return Err(Failure::Refused(message.to_owned()));
    }
    let request = WebSearchRequest { query, allowed_domains: &allowed, blocked_domains: &blocked };
    let reply = context.model.web_search(&request, context.cancel).map_err(Failure::Failed)?;
    let is_search = |part: &&WebSearchPart| !matches!(part, WebSearchPart::Text(_));
    let search_count = reply.parts.iter().filter(is_search).count();
    let results = entries(reply.parts);
    let mut text = format!("Web search results for query: \"{query}\"\n\n");
    for entry in &results {
        match entry {
            Entry::Text(part) => text.push_str(&format!("{part}\n\n")),
            Entry::Links { content, .. } if content.is_empty() => text.push_str("No links found.\n\n"),
            Entry::Links { content, .. } => {
                text.push_str(&format!("Links: {}\n\n", serde_json::to_string(content).unwrap_or_default()));
            }
        }
    }
    text.push_str(
        "\nREMINDER: You MUST include the sources above in your response to the user using markdown hyperlinks.",
    );
    let duration_seconds = started.elapsed().as_secs_f64();
    Ok(ToolOutput::success(text, &WebSearchRecord { query, results, duration_seconds, search_count }))
}

/// Joins adjacent texts, and drops those that are blank.
fn entries(parts: Vec<WebSearchPart>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut text = String::new();
    let flush = |text: &mut String, entries: &mut Vec<Entry>| {
        let joined = std::mem::take(text);
        if !joined.trim().is_empty() {
            entries.push(Entry::Text(joined.trim().to_owned()));
        }
    };
    for part in parts {
        match part {
            WebSearchPart::Text(part) => text.push_str(&part),
            WebSearchPart::Results { tool_use_id, hits } => {
                flush(&mut text, &mut entries);
                let content = hits.into_iter().map(|hit| Link { title: hit.title, url: hit.url }).collect();
                entries.push(Entry::Links { tool_use_id, content });
            }
            WebSearchPart::Error(code) => {
                flush(&mut text, &mut entries);
                entries.push(Entry::Text(format!("Web search error: {code}")));
            }
        }
    }
    flush(&mut text, &mut entries);
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::CancelToken;
    use crate::context::{ModelAccess, WebSearchHit, WebSearchReply};
    use crate::testing::Fixture;

    struct ScriptedSearch;

    impl ModelAccess for ScriptedSearch {
        fn summarize(&self, _: &str, _: &str, _: &CancelToken) -> Result<String, String> {
            Err("unexpected".to_owned())
        }

        fn web_search(
            &self,
            search: &WebSearchRequest<'_>,
            _: &CancelToken,
        ) -> Result<WebSearchReply, String> {
            if search.query == "broken" {
                return Err("API Error: 529 Overloaded".to_owned());
            }
            let hit = |title: &str, url: &str| WebSearchHit { title: title.to_owned(), url: url.to_owned() };
            Ok(WebSearchReply {
                parts: vec![
                    WebSearchPart::Text("I'll search.".to_owned()),
                    WebSearchPart::Results {
                        tool_use_id: "srvtoolu_1".to_owned(),
                        hits: vec![hit("Rust", "https://rust-lang.org/")],
                    },
                    WebSearchPart::Text("Rust is ".to_owned()),
                    WebSearchPart::Text("a language.".to_owned()),
                    WebSearchPart::Error("max_uses_exceeded".to_owned()),
                    WebSearchPart::Results { tool_use_id: "srvtoolu_2".to_owned(), hits: Vec::new() },
                ],
            })
        }
    }

    fn run(input: &str) -> ToolOutput {
        let mut fixture = Fixture::new();
        fixture.model = Box::new(ScriptedSearch);
        fixture.run("WebSearch", input)
    }

    #[test]
    fn texts_and_links_are_listed() {
        let output = run(r#"{"query": "rust"}"#);
        assert_eq!(
            output.text(),
            "Web search results for query: \"rust\"\n\nI'll search.\n\n\
             Links: [{\"title\":\"Rust\",\"url\":\"https://rust-lang.org/\"}]\n\nRust is a language.\n\n\
             Web search error: max_uses_exceeded\n\nNo links found.\n\n\n\
             REMINDER: You MUST include the sources above in your response to the user using markdown hyperlinks."
        );
        let record = output.record.unwrap().get().to_owned();
        let start = r#"{"query":"rust","results":["I'll search.",{"tool_use_id":"srvtoolu_1","content":[{"title":"Rust","url":"https://rust-lang.org/"}]},"Rust is a language.","Web search error: max_uses_exceeded",{"tool_use_id":"srvtoolu_2","content":[]}],"durationSeconds":"#;
        assert!(record.starts_with(start) && record.ends_with(r#","searchCount":3}"#), "{record}");
    }

    #[test]
    fn contradictory_domains_are_refused() {
        let output = run(r#"{"query": "rust", "allowed_domains": ["a"], "blocked_domains": ["b"]}"#);
        assert_eq!(
            output.text(),
            "<tool_use_error>Error: Cannot specify both allowed_domains and blocked_domains in the same request\
             </tool_use_error>"
        );
    }

    #[test]
    fn a_failed_request_is_an_error() {
        let output = run(r#"{"query": "broken"}"#);
        assert_eq!((output.text(), output.is_error), ("API Error: 529 Overloaded", true));
    }
}
