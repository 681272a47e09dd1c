//! The search: files in the order of their folders, several at a time.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Instant;

use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch};
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};
use ignore::{WalkBuilder, WalkState};
use parking_lot::Mutex;

use crate::context::ToolContext;
use crate::glob::{is_searchable, search_timed_out};
use crate::output::Failure;
use crate::read::is_endless;

/// A search.
pub(super) struct SearchRequest<'a> {
    pub(super) pattern: &'a str,
    pub(super) path: PathBuf,
    pub(super) globs: Vec<String>,
    pub(super) file_type: Option<&'a str>,
    pub(super) ignores_case: bool,
    pub(super) multiline: bool,
    pub(super) mode: SearchMode,
    /// The maximum number of lines or files to find; `None` for all.
    pub(super) max_items: Option<usize>,
}

/// The requested results.
#[derive(Debug, Clone, Copy)]
pub(super) enum SearchMode {
    Files,
    Counts,
    Lines(LineOptions),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct LineOptions {
    pub(super) before: usize,
    pub(super) after: usize,
    pub(super) numbers: bool,
    pub(super) only_matching: bool,
    /// Whether lines begin with the path of their file.
    pub(super) names: bool,
}

/// The results in one file.
#[derive(Debug, Default)]
pub(super) struct FileHit {
    pub(super) path: PathBuf,
    pub(super) count: u64,
    /// The lines to show; paths are absolute.
    pub(super) lines: Vec<String>,
}

/// Folders of version control systems, which are never searched.
const VERSION_CONTROL: &[&str] = &[".git", ".svn", ".hg", ".bzr", ".jj", ".sl"];

/// The most text of all lines together, in bytes.
const MAX_TEXT: usize = 16 << 20;

impl SearchRequest<'_> {
    /// Returns the files with results, in the order of their folders.
    pub(super) fn run(&self, context: &ToolContext<'_>) -> Result<Vec<FileHit>, Failure> {
        let compiled = (self.matcher(), self.overrides(&context.cwd()), self.types());
        let (Ok(matcher), Ok(overrides), Ok(types)) = compiled else { return Ok(Vec::new()) };
        let mut walk = WalkBuilder::new(&self.path);
        walk.hidden(false).overrides(overrides).types(types).filter_entry(is_searchable);
        if is_endless(&self.path, std::fs::metadata(&self.path).ok().as_ref()) {
            return Ok(Vec::new());
        }
        let stop = AtomicBool::new(false);
        let deadline = Instant::now() + context.limits.search_time;
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
        let (jobs, queue) = sync_channel(4 * threads);
        let queue = Mutex::new(queue);
        let (results, collected) = channel();
        let hits = std::thread::scope(|scope| {
            let (stop, queue) = (&stop, &queue);
            scope.spawn(move || send_files(&mut walk, &jobs, stop));
            for _ in 0..threads {
                let (matcher, results) = (matcher.clone(), results.clone());
                scope.spawn(move || self.search_files(&matcher, queue, &results, (stop, deadline), context));
            }
            drop(results);
            self.collect(&collected, stop)
        });
        if context.cancel.is_cancelled() {
            return Err(Failure::Failed("Interrupted by user".to_owned()));
        }
        // Partial results are returned.
        if hits.is_empty() && Instant::now() > deadline {
            return Err(search_timed_out(context));
        }
        Ok(hits)
    }

    fn matcher(&self) -> Result<RegexMatcher, grep_regex::Error> {
        let mut builder = RegexMatcherBuilder::new();
        builder.multi_line(true).case_insensitive(self.ignores_case);
        if self.multiline {
            builder.dot_matches_new_line(true);
        } else {
            builder.line_terminator(Some(b'\n'));
        }
        builder.build(self.pattern)
    }

    fn overrides(&self, cwd: &Path) -> Result<Override, ignore::Error> {
        let mut builder = OverrideBuilder::new(cwd);
        for name in VERSION_CONTROL {
            builder.add(&format!("!{name}"))?;
        }
        for glob in &self.globs {
            builder.add(glob)?;
        }
        builder.build()
    }

    fn types(&self) -> Result<Types, ignore::Error> {
        let mut builder = TypesBuilder::new();
        builder.add_defaults();
        if let Some(name) = self.file_type {
            builder.select(name);
        }
        builder.build()
    }

    fn is_single_file(&self) -> bool {
        self.path.is_file()
    }

    fn searcher(&self) -> Searcher {
        let mut builder = SearcherBuilder::new();
        // A file that is given is searched even if it is binary; its matches are not shown.
        let binary =
            if self.is_single_file() { BinaryDetection::convert(0) } else { BinaryDetection::quit(0) };
        builder.binary_detection(binary).multi_line(self.multiline);
        if let SearchMode::Lines(options) = self.mode {
            builder.line_number(options.numbers).before_context(options.before).after_context(options.after);
        } else {
            builder.line_number(false);
        }
        builder.build()
    }

    fn search_files(
        &self,
        matcher: &RegexMatcher,
        queue: &Mutex<Receiver<(usize, PathBuf)>>,
        results: &Sender<(usize, Option<FileHit>)>,
        (stop, deadline): (&AtomicBool, Instant),
        context: &ToolContext<'_>,
    ) {
        let mut searcher = self.searcher();
        loop {
            let job = queue.lock().recv();
            let Ok((index, path)) = job else { return };
            if stop.load(Ordering::Relaxed) || context.cancel.is_cancelled() || Instant::now() > deadline {
                stop.store(true, Ordering::Relaxed);
                continue;
            }
            if (context.is_hidden)(&path) {
                if results.send((index, None)).is_err() {
                    return;
                }
                continue;
            }
            let mut sink = HitSink {
                request: self,
                matcher,
                context,
                prefix: path.display().to_string(),
                hit: FileHit { path, ..FileHit::default() },
                text: 0,
                binary_offset: None,
            };
            let path = sink.hit.path.clone();
            // Files that cannot be read are skipped.
            let _ = searcher.search_path(matcher, &path, &mut sink);
            let is_hit = sink.hit.count > 0 && (sink.binary_offset.is_none() || self.is_single_file());
            if results.send((index, is_hit.then_some(sink.hit))).is_err() {
                return;
            }
        }
    }

    /// Collects results in the order of the files, and ends the search when there are enough.
    fn collect(&self, results: &Receiver<(usize, Option<FileHit>)>, stop: &AtomicBool) -> Vec<FileHit> {
        let separates = matches!(self.mode, SearchMode::Lines(options) if options.before + options.after > 0);
        let mut early: BTreeMap<usize, Option<FileHit>> = BTreeMap::new();
        let mut hits: Vec<FileHit> = Vec::new();
        let (mut next, mut items, mut text) = (0, 0, 0);
        for (index, hit) in results {
            early.insert(index, hit);
            while let Some(hit) = early.remove(&next) {
                next += 1;
                let Some(mut hit) = hit.filter(|_| !stop.load(Ordering::Relaxed)) else { continue };
                if separates && !hits.is_empty() {
                    hit.lines.insert(0, "--".to_owned());
                }
                items += match self.mode {
                    SearchMode::Lines(_) => hit.lines.len(),
                    SearchMode::Counts => 1,
                    // All files are needed to find the newest.
                    SearchMode::Files => 0,
                };
                text += hit.lines.iter().map(String::len).sum::<usize>();
                hits.push(hit);
                if self.max_items.is_some_and(|max| items >= max) || text > MAX_TEXT {
                    stop.store(true, Ordering::Relaxed);
                }
            }
        }
        hits
    }
}

/// Sends the files to search. One thread of the parallel walker visits the entries of a folder last to first,
/// as ripgrep does with one thread, so that results have its order.
fn send_files(walk: &mut WalkBuilder, jobs: &SyncSender<(usize, PathBuf)>, stop: &AtomicBool) {
    let count = AtomicUsize::new(0);
    walk.threads(1).build_parallel().run(|| {
        Box::new(|entry| {
            let Ok(entry) = entry else { return WalkState::Continue };
            let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
            // A path that is given is searched whatever it is; other links are not followed.
            let is_searched = is_file || entry.depth() == 0 && entry.path().is_file();
            if !is_searched {
                return WalkState::Continue;
            }
            let index = count.fetch_add(1, Ordering::Relaxed);
            let is_over = stop.load(Ordering::Relaxed) || jobs.send((index, entry.into_path())).is_err();
            if is_over { WalkState::Quit } else { WalkState::Continue }
        })
    });
}

/// Collects the results of one file.
struct HitSink<'a> {
    request: &'a SearchRequest<'a>,
    matcher: &'a RegexMatcher,
    context: &'a ToolContext<'a>,
    prefix: String,
    hit: FileHit,
    text: usize,
    /// Where the first null byte was found.
    binary_offset: Option<u64>,
}

impl HitSink<'_> {
    fn push(&mut self, options: LineOptions, number: Option<u64>, mark: char, text: &[u8], noun: &str) {
        let mut line = String::new();
        if options.names {
            line.push_str(&self.prefix);
            line.push(mark);
        }
        if let Some(number) = number.filter(|_| options.numbers) {
            line.push_str(&format!("{number}{mark}"));
        }
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if text.len() > self.context.limits.grep_columns {
            line.push_str(&format!("[Omitted long {noun} line]"));
        } else {
            line.push_str(&String::from_utf8_lossy(text));
        }
        self.text += line.len();
        self.hit.lines.push(line);
    }

    fn is_full(&self) -> bool {
        let max = self.request.max_items.unwrap_or(usize::MAX);
        self.hit.lines.len() >= max || self.text > MAX_TEXT || self.context.cancel.is_cancelled()
    }

    /// Returns the number of matching lines, or of matches if they may span lines.
    fn match_count(&self, matched: &SinkMatch<'_>) -> u64 {
        if !self.request.multiline {
            return matched.lines().count() as u64;
        }
        let mut count = 0;
        let _ = self.matcher.find_iter(matched.bytes(), |_| {
            count += 1;
            true
        });
        count.max(1)
    }

    /// Pushes the matching parts of a line.
    fn push_matches(&mut self, options: LineOptions, number: Option<u64>, line: &[u8]) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let mut parts = Vec::new();
        let _ = self.matcher.find_iter(line, |part| {
            parts.push(part);
            true
        });
        for part in parts {
            self.push(options, number, ':', &line[part], "matching");
        }
    }
}

impl Sink for HitSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, matched: &SinkMatch<'_>) -> io::Result<bool> {
        let SearchMode::Lines(options) = self.request.mode else {
            self.hit.count += self.match_count(matched);
            return Ok(matches!(self.request.mode, SearchMode::Counts) && !self.context.cancel.is_cancelled());
        };
        self.hit.count += 1;
        if let Some(offset) = self.binary_offset {
            let text = format!("binary file matches (found \"\\0\" byte around offset {offset})");
            self.hit.lines.push(text);
            return Ok(false);
        }
        for (index, line) in matched.lines().enumerate() {
            let number = matched.line_number().map(|number| number + index as u64);
            if options.only_matching && !self.request.multiline {
                self.push_matches(options, number, line);
            } else {
                self.push(options, number, ':', line, "matching");
            }
        }
        Ok(!self.is_full())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if let SearchMode::Lines(options) = self.request.mode
            && !options.only_matching
        {
            self.push(options, context.line_number(), '-', context.bytes(), "context");
        }
        Ok(!self.is_full())
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        if !self.hit.lines.is_empty() {
            self.hit.lines.push("--".to_owned());
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, offset: u64) -> io::Result<bool> {
        self.binary_offset.get_or_insert(offset);
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.binary_offset = self.binary_offset.or(finish.binary_byte_offset());
        Ok(())
    }
}
