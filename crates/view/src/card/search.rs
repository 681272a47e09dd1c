//! Cards of tools that search: files, lines, symbols, tools and the web.

use std::borrow::Cow;

use threadline_entry::Json;
use threadline_entry::lens::{
    GlobResult, GrepResult, LspResult, ToolSearchResult, WebFetchResult, WebSearchResult,
};

use super::{CallSummary, CardInput, ToolCard};
use crate::humanize::{joined, plural};
use crate::transcript_writer::relative_to;

/// Returns the links in a line of the result of a web search.
fn links_in(line: &str) -> Option<Json<'_>> {
    line.strip_prefix("Links: ").and_then(Json::parse)
}

impl CardInput<'_> {
    pub(super) fn matches(&self) -> CallSummary {
        let pattern = self.string("pattern");
        let place = self.string("path");
        let place = relative_to(&place, self.cwd).unwrap_or(place);
        let grep = self.of::<GrepResult<'_>>();
        let glob = self.of::<GlobResult<'_>>();
        let listed =
            grep.and_then(|result| result.filenames()).or_else(|| glob.and_then(|result| result.filenames()));
        let short = |path: Cow<'_, str>| relative_to(&path, self.cwd).unwrap_or_else(|| path.into_owned());
        let mut files: Vec<String> = listed.into_iter().flat_map(|files| files.iter()).map(short).collect();
        let lines = match grep {
            Some(grep) => grep.content().unwrap_or_default().into_owned(),
            None if glob.is_some() => String::new(),
            None => {
                let (listed, lines) = self.found_in_text();
                files = listed.map(|path| short(path.into())).collect();
                lines.to_owned()
            }
        };
        let n_files = grep.and_then(|grep| grep.num_files()).unwrap_or(files.len() as u64);
        let n_lines = grep.and_then(|grep| grep.num_lines()).unwrap_or_else(|| lines.lines().count() as u64);
        let matched = grep.and_then(|grep| grep.num_matches()).map(|count| match count {
            1 => "1 match".to_owned(),
            count => format!("{count} matches"),
        });
        let total = grep.and_then(|grep| grep.total_lines()).filter(|total| *total > n_lines);
        let found = matched.unwrap_or_else(|| match total {
            Some(total) => format!("{n_lines} of {}", plural(total, "line")),
            None => plural(n_lines, "line"),
        });
        let cut = glob.and_then(|glob| glob.truncated()).unwrap_or(false);
        let gist = match (self.failed, lines.is_empty(), n_files) {
            (true, ..) => String::new(),
            (_, true, 0) => "no matches".to_owned(),
            (_, true, _) if cut => format!("{}, truncated", plural(n_files, "file")),
            (_, true, _) => plural(n_files, "file"),
            (_, _, 0) => found,
            _ => format!("{found} in {}", plural(n_files, "file")),
        };
        let subject = if pattern.is_empty() { place.clone() } else { pattern.clone() };
        CallSummary { card: ToolCard::Matches { pattern, place, files, lines }, subject, gist }
    }

    /// Returns the files listed in the result text, or else its lines.
    fn found_in_text(&self) -> (impl Iterator<Item = &str>, &str) {
        let text = self.text.trim();
        let is_empty = text.starts_with("No files found") || text.starts_with("No matches found");
        // The first line contains the count, and a line in brackets mentions truncation.
        let counted =
            text.starts_with("Found ") && text.lines().next().is_some_and(|line| line.contains(" file"));
        let lists = self.name == "Glob" || counted;
        let files = text.lines().skip(usize::from(counted)).filter(|line| !line.starts_with('('));
        // The error message is not a match.
        let is_match = !self.failed && !is_empty;
        let lines = if is_match && !lists { self.text } else { "" };
        (files.take(if is_match && lists { usize::MAX } else { 0 }), lines)
    }

    /// Returns the card of a language server request.
    pub(super) fn symbols(&self) -> CallSummary {
        let result = self.of::<LspResult<'_>>();
        let (operation, path) = (self.string("operation"), self.string("filePath"));
        let place = relative_to(&path, self.cwd).unwrap_or(path);
        let line = self.input.and_then(|input| input.get("line")?.as_u64());
        let place = line.map_or_else(|| place.clone(), |line| format!("{place}:{line}"));
        let gist = match result.and_then(|result| result.result_count()) {
            Some(count) if !self.failed => plural(count, "result"),
            _ => String::new(),
        };
        let lines = match result.and_then(|result| result.result()) {
            Some(lines) => lines.into_owned(),
            None if self.failed => String::new(),
            None => self.text.to_owned(),
        };
        let subject = format!("{operation} {place}");
        let card = ToolCard::Matches { pattern: operation, place, files: Vec::new(), lines };
        CallSummary { card, subject: subject.trim().to_owned(), gist }
    }

    pub(super) fn tool_search(&self) -> CallSummary {
        let found = self.of::<ToolSearchResult<'_>>().and_then(|result| result.matches());
        let found: Vec<String> =
            found.into_iter().flat_map(|found| found.iter()).map(Cow::into_owned).collect();
        let pattern = self.string("query");
        let gist = plural(found.len() as u64, "tool");
        let card = ToolCard::Matches {
            pattern: pattern.clone(),
            place: String::new(),
            files: found,
            lines: String::new(),
        };
        CallSummary { card, subject: pattern, gist }
    }

    pub(super) fn page(&self) -> CallSummary {
        let url = self.string("url");
        let result = self.of::<WebFetchResult<'_>>();
        let code = result.and_then(|result| result.code());
        let status = code.map(|code| {
            let text = result.and_then(|result| result.code_text()).unwrap_or_default();
            format!("{code} {text}").trim_end().to_owned()
        });
        let text = match result.and_then(|result| result.result()) {
            Some(text) => text.into_owned(),
            // The error message is not part of the page.
            None if self.failed => String::new(),
            None => self.text.to_owned(),
        };
        let status = status.unwrap_or_default();
        let gist = if self.failed { String::new() } else { status.clone() };
        CallSummary {
            subject: url.clone(),
            card: ToolCard::Page { url, status, prompt: self.string("prompt"), text },
            gist,
        }
    }

    pub(super) fn links(&self) -> CallSummary {
        let query = self.string("query");
        let results = self.of::<WebSearchResult<'_>>().and_then(|result| result.results());
        let link = |link: Json<'_>| {
            let text = |key: &str| link.get(key).and_then(Json::as_str).unwrap_or_default().into_owned();
            let (title, url) = (text("title"), text("url"));
            (!title.is_empty() || !url.is_empty()).then_some((title, url))
        };
        let results = || results.into_iter().flat_map(|results| results.items());
        let texts = results().filter_map(|result| Some(result.as_str()?.trim().to_owned()));
        let mut text = joined(texts.filter(|text| !text.is_empty()), "\n\n");
        let found =
            results().filter_map(|result| result.get("content")).flat_map(Json::items).filter_map(link);
        let mut links: Vec<(String, String)> = found.collect();
        if links.is_empty() && text.is_empty() && !self.failed {
            // The result text contains the same data in lines, some of which list the links.
            let lines =
                || self.text.lines().filter(|line| !line.starts_with("Web search results for query: "));
            text = joined(lines().filter(|line| links_in(line).is_none()), "\n").trim().to_owned();
            links = lines().filter_map(links_in).flat_map(Json::items).filter_map(link).collect();
        }
        let gist = if self.failed { String::new() } else { plural(links.len() as u64, "result") };
        CallSummary { subject: query.clone(), card: ToolCard::Links { query, links, text }, gist }
    }
}
