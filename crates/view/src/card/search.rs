//! What was looked for: files, lines, tools, pages.

use std::borrow::Cow;

use threadline_entry::Json;
use threadline_entry::lens::{GlobResult, GrepResult, ToolSearchResult, WebFetchResult, WebSearchResult};

use super::{Call, Card, Told};
use crate::figure::plural;

impl Call<'_> {
    pub(super) fn matches(&self) -> Told {
        let pattern = self.string("pattern");
        let place = self.string("path");
        let grep = self.of::<GrepResult<'_>>();
        let glob = self.of::<GlobResult<'_>>();
        let listed =
            grep.and_then(|result| result.filenames()).or_else(|| glob.and_then(|result| result.filenames()));
        let files: Vec<String> =
            listed.into_iter().flat_map(|files| files.iter()).map(Cow::into_owned).collect();
        let lines = match grep {
            Some(grep) => grep.content().unwrap_or_default().into_owned(),
            None if files.is_empty() => self.text.to_owned(),
            None => String::new(),
        };
        let n_files = grep.and_then(|grep| grep.num_files()).unwrap_or(files.len() as u64);
        let gist = if self.failed {
            String::new()
        } else if lines.is_empty() {
            plural(n_files, "file")
        } else {
            let n_lines =
                grep.and_then(|grep| grep.num_lines()).unwrap_or_else(|| lines.lines().count() as u64);
            if n_files > 0 {
                format!("{} in {}", plural(n_lines, "line"), plural(n_files, "file"))
            } else {
                plural(n_lines, "line")
            }
        };
        let subject = if pattern.is_empty() { place.clone() } else { pattern.clone() };
        Told { card: Card::Matches { pattern, place, files, lines }, subject, gist }
    }

    pub(super) fn tool_search(&self) -> Told {
        let found = self.of::<ToolSearchResult<'_>>().and_then(|result| result.matches());
        let found: Vec<String> =
            found.into_iter().flat_map(|found| found.iter()).map(Cow::into_owned).collect();
        let pattern = self.string("query");
        let gist = plural(found.len() as u64, "tool");
        let card = Card::Matches {
            pattern: pattern.clone(),
            place: String::new(),
            files: found,
            lines: String::new(),
        };
        Told { card, subject: pattern, gist }
    }

    pub(super) fn page(&self) -> Told {
        let url = self.string("url");
        let result = self.of::<WebFetchResult<'_>>();
        let code = result.and_then(|result| result.code());
        let status = code.map(|code| {
            let text = result.and_then(|result| result.code_text()).unwrap_or_default();
            format!("{code} {text}").trim_end().to_owned()
        });
        let text =
            result.and_then(|result| result.result()).map_or_else(|| self.text.to_owned(), Cow::into_owned);
        let status = status.unwrap_or_default();
        let gist = if self.failed { String::new() } else { status.clone() };
        Told {
            subject: url.clone(),
            card: Card::Page { url, status, prompt: self.string("prompt"), text },
            gist,
        }
    }

    pub(super) fn links(&self) -> Told {
        let query = self.string("query");
        let results = self.of::<WebSearchResult<'_>>().and_then(|result| result.results());
        let mut links = Vec::new();
        for result in results.into_iter().flat_map(|results| results.iter()) {
            for link in result.get("content").into_iter().flat_map(Json::items) {
                let text = |key: &str| link.get(key).and_then(Json::as_str).unwrap_or_default().into_owned();
                links.push((text("title"), text("url")));
            }
        }
        let gist = if self.failed { String::new() } else { plural(links.len() as u64, "result") };
        Told { subject: query.clone(), card: Card::Links { query, links }, gist }
    }
}
