//! Grep: searches files with ripgrep's crates.

mod search;

use std::time::UNIX_EPOCH;

use serde::Serialize;

use crate::context::ToolContext;
use crate::glob::{missing_path, show_path};
use crate::output::{Failure, ToolOutput};
use crate::paths::resolve;
use crate::profile::Profile;
use crate::schema::{Kind, Parameter, optional, required};
use crate::side_output::limit_text;
use crate::tool::{InputSchema, Permit, Tool, ToolInput};

use search::{FileHit, LineOptions, SearchMode, SearchRequest};

/// The Grep tool.
pub(crate) struct Grep {
    pub(crate) profile: &'static Profile,
}

const MODES: &[&str] = &["content", "files_with_matches", "count"];

const PARAMETERS: &[Parameter] = &[
    required("pattern", Kind::Text(0), "The regular expression, in the syntax of ripgrep"),
    optional("path", Kind::Text(0), "File or folder to search; the current folder if left out"),
    optional("glob", Kind::Text(0), "Only files that match this pattern, such as `*.{ts,tsx}`"),
    optional("output_mode", Kind::Choice(MODES), "Lines, paths of files (if left out), or counts per file"),
    optional("-B", Kind::Number(None), "Lines to show before each match (`content`)"),
    optional("-A", Kind::Number(None), "Lines to show after each match (`content`)"),
    optional("-C", Kind::Number(None), "Lines to show before and after each match (`content`)"),
    optional("context", Kind::Number(None), "Same as `-C`"),
    optional("-n", Kind::Flag, "Show line numbers (`content`); true if left out"),
    optional("-i", Kind::Flag, "Ignore case"),
    optional("-o", Kind::Flag, "Show only the matching part of each line (`content`)"),
    optional("type", Kind::Text(0), "Only files of this type, such as `rust` or `py`"),
    optional(
        "head_limit",
        Kind::Number(None),
        "Show at most this many lines or files; 250 if left out, 0 for all",
    ),
    optional("offset", Kind::Number(None), "Skip this many lines or files first"),
    optional("multiline", Kind::Flag, "Let matches span lines, and `.` match line ends"),
];

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct GrepRecord {
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    filenames: Option<Vec<String>>,
    num_files: usize,
    /// The empty list of names after the number, as the reference writes it in the other modes.
    #[serde(rename = "filenames", skip_serializing_if = "Option::is_none")]
    no_filenames: Option<[String; 0]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_lines: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_matches: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    applied_limit: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    applied_offset: Option<usize>,
}

impl Tool for Grep {
    fn name(&self) -> &str {
        "Grep"
    }

    fn description(&self) -> String {
        "Searches the contents of files for a regular expression, with the rules of ripgrep: ignored and binary files \
         are skipped. Returns paths (newest first), matching lines or counts."
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
        self.search(input, context).unwrap_or_else(|failure| failure.into_output(self.name()))
    }
}

impl Grep {
    fn search(&self, input: &ToolInput, context: &ToolContext<'_>) -> Result<ToolOutput, Failure> {
        let path = match input.text("path") {
            Some(given) => {
                let path = resolve(given, context)?;
                if !path.exists() {
                    return Err(Failure::Refused(missing_path("Path", given, self.profile, context)));
                }
                path
            }
            None => context.cwd(),
        };
        let page = Page::of(input, self.profile, context);
        let mode = input.text("output_mode").unwrap_or("files_with_matches");
        let request = SearchRequest {
            pattern: input.text("pattern").unwrap_or_default(),
            globs: split_globs(input.text("glob").unwrap_or_default()),
            file_type: input.text("type"),
            ignores_case: input.flag("-i"),
            multiline: input.flag("multiline"),
            mode: match mode {
                "content" => SearchMode::Lines(line_options(input, &path)),
                "count" => SearchMode::Counts,
                _ => SearchMode::Files,
            },
            // One more than can be shown, to detect that there are more.
            max_items: page.end().map(|end| end.saturating_add(1)),
            path,
        };
        // A pattern, glob or type that cannot be compiled finds nothing, as in the reference.
        let hits = if has_negative_context(input) { Vec::new() } else { request.run(context)? };
        Ok(match mode {
            "content" => self.show_lines(hits, &page, context),
            "count" => self.show_counts(&hits, &page, &request, context),
            _ => self.show_files(hits, &page, context),
        })
    }

    fn show_lines(&self, hits: Vec<FileHit>, page: &Page, context: &ToolContext<'_>) -> ToolOutput {
        let cwd = format!("{}/", context.cwd().display());
        let lines = hits.into_iter().flat_map(|hit| hit.lines).collect();
        let (lines, applied) = page.cut(lines);
        let lines: Vec<_> = lines.iter().map(|line| relative_line(line, &cwd)).collect();
        let content = lines.join("\n").trim_end().to_owned();
        let shown = if content.is_empty() { "No matches found" } else { &content };
        let text = match self.page_text(applied) {
            Some(page) => format!("{shown}\n\n[Showing results with pagination = {page}]"),
            None => shown.to_owned(),
        };
        let text = limit_text(text, context, context.limits.grep_output_chars);
        let record = GrepRecord {
            mode: "content",
            no_filenames: Some([]),
            content: Some(content),
            num_lines: Some(lines.len()),
            ..applied.record()
        };
        ToolOutput::success(text, &record)
    }

    fn show_counts(
        &self,
        hits: &[FileHit],
        page: &Page,
        request: &SearchRequest<'_>,
        context: &ToolContext<'_>,
    ) -> ToolOutput {
        let cwd = context.cwd();
        let (hits, applied) = page.cut(hits.iter().collect());
        let omits_name = !self.profile.grep_names_single_file && request.path.is_file();
        let line = |hit: &&FileHit| {
            if omits_name {
                hit.count.to_string()
            } else {
                format!("{}:{}", show_path(&hit.path, &cwd), hit.count)
            }
        };
        let content = hits.iter().map(line).collect::<Vec<_>>().join("\n");
        // The reference finds no name in such a line, and counts nothing.
        let files = if omits_name { 0 } else { hits.len() };
        let matches: u64 = if omits_name { 0 } else { hits.iter().map(|hit| hit.count).sum() };
        let shown = if content.is_empty() { "No matches found" } else { &content };
        let occurrences = if matches == 1 { "occurrence" } else { "occurrences" };
        let noun = if files == 1 { "file" } else { "files" };
        let mut text = format!("{shown}\n\nFound {matches} total {occurrences} across {files} {noun}.");
        if let Some(page) = self.page_text(applied) {
            text.push_str(&format!(" with pagination = {page}"));
        }
        let text = limit_text(text, context, context.limits.grep_output_chars);
        let record = GrepRecord {
            mode: "count",
            num_files: files,
            no_filenames: Some([]),
            content: Some(content),
            num_matches: Some(matches),
            ..applied.record()
        };
        ToolOutput::success(text, &record)
    }

    fn show_files(&self, hits: Vec<FileHit>, page: &Page, context: &ToolContext<'_>) -> ToolOutput {
        let cwd = context.cwd();
        let time = |hit: &FileHit| {
            std::fs::metadata(&hit.path).and_then(|metadata| metadata.modified()).unwrap_or(UNIX_EPOCH)
        };
        let mut files: Vec<_> = hits.into_iter().map(|hit| (time(&hit), hit.path)).collect();
        files.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        let (files, applied) = page.cut(files);
        let names: Vec<_> = files.iter().map(|(_, path)| show_path(path, &cwd)).collect();
        let noun = if names.len() == 1 { "file" } else { "files" };
        let page = self.page_text(applied).map(|page| format!(" {page}")).unwrap_or_default();
        let text = if names.is_empty() {
            "No files found".to_owned()
        } else {
            format!("Found {} {noun}{page}\n{}", names.len(), names.join("\n"))
        };
        let text = limit_text(text, context, context.limits.grep_output_chars);
        let record = GrepRecord {
            mode: "files_with_matches",
            num_files: names.len(),
            filenames: Some(names),
            ..applied.record()
        };
        ToolOutput::success(text, &record)
    }

    fn page_text(&self, applied: AppliedPage) -> Option<String> {
        let limit = applied.limit.map(|limit| format!("limit: {limit}"));
        let offset = if self.profile.grep_limits_by_default {
            applied.offset.map(|offset| format!("offset: {offset}"))
        } else {
            limit.is_some().then(|| format!("offset: {}", applied.offset.unwrap_or_default()))
        };
        let parts: Vec<_> = limit.into_iter().chain(offset).collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// The part of the results that a call asks for.
struct Page {
    limit: Option<usize>,
    offset: usize,
}

/// The part of the page that had an effect.
#[derive(Debug, Clone, Copy)]
struct AppliedPage {
    limit: Option<usize>,
    offset: Option<usize>,
}

impl Page {
    fn of(input: &ToolInput, profile: &Profile, context: &ToolContext<'_>) -> Self {
        let whole = |value: f64| value.max(0.0) as usize;
        let default = profile.grep_limits_by_default.then_some(context.limits.grep_results);
        let limit = input.number("head_limit").map(whole);
        Self {
            limit: limit.map_or(default, |limit| (limit > 0).then_some(limit)),
            offset: input.number("offset").map(whole).unwrap_or_default(),
        }
    }

    /// Returns the number of results up to the end of the page.
    fn end(&self) -> Option<usize> {
        self.limit.map(|limit| self.offset.saturating_add(limit))
    }

    fn cut<T>(&self, items: Vec<T>) -> (Vec<T>, AppliedPage) {
        let is_cut = self.end().is_some_and(|end| items.len() > end);
        let limit = self.limit.filter(|_| is_cut);
        let offset = (self.offset > 0).then_some(self.offset);
        let items = items.into_iter().skip(self.offset).take(self.limit.unwrap_or(usize::MAX)).collect();
        (items, AppliedPage { limit, offset })
    }
}

impl AppliedPage {
    fn record(self) -> GrepRecord {
        GrepRecord { applied_limit: self.limit, applied_offset: self.offset, ..GrepRecord::default() }
    }
}

/// The most lines before or after a match.
const MAX_CONTEXT: f64 = 10_000.0;

fn line_options(input: &ToolInput, path: &std::path::Path) -> LineOptions {
    let lines = |name: &str| input.number(name).map(|value| value.clamp(0.0, MAX_CONTEXT) as usize);
    let around = lines("-C").or_else(|| lines("context"));
    LineOptions {
        before: around.or_else(|| lines("-B")).unwrap_or_default(),
        after: around.or_else(|| lines("-A")).unwrap_or_default(),
        numbers: input.json().get("-n").is_none() || input.flag("-n"),
        only_matching: input.flag("-o"),
        names: !path.is_file(),
    }
}

/// Returns whether the call asks for a negative number of lines, which ripgrep rejects.
fn has_negative_context(input: &ToolInput) -> bool {
    ["-A", "-B", "-C", "context"].iter().any(|name| input.number(name).is_some_and(|value| value < 0.0))
}

/// Splits a list of globs at white space, and at commas outside of braces.
fn split_globs(text: &str) -> Vec<String> {
    let split = |part: &str| -> Vec<String> {
        if part.contains('{') {
            return vec![part.to_owned()];
        }
        part.split(',').filter(|glob| !glob.is_empty()).map(str::to_owned).collect()
    };
    text.split_whitespace().flat_map(split).collect()
}

/// Makes the part before the first colon relative, as the reference does: paths of context lines, which end
/// at a hyphen, stay absolute unless their text has a colon.
fn relative_line(line: &str, cwd: &str) -> String {
    match line.split_once(':').and_then(|(path, rest)| Some((path.strip_prefix(cwd)?, rest))) {
        Some((path, rest)) => format!("{path}:{rest}"),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests;
