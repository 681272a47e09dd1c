//! Checks of a session, reported as findings.
//!
//! A finding that does not affect a resume is a note. The others deserve attention.

use std::borrow::Cow;

use base64::Engine;
use foldhash::{HashMap, HashSet};
use threadline_entry::lens::{Block, CompactMetadata, System};
use threadline_entry::{Code, Entry, Finding, Kind, Severity, key, value};

use crate::index::{EntryIndex, IndexRange, ReplyIndex};
use crate::session::{ParentLink, Session};

/// The maximum width or height of an image that the API accepts, alone and in a request with many images.
pub(crate) const MAX_IMAGE_SIDE: usize = 8000;
const MAX_IMAGE_SIDE_OF_MANY: usize = 2000;
const MANY_IMAGES: usize = 20;
/// The maximum size of one image in bytes.
const MAX_IMAGE_BYTES: usize = 5 << 20;

/// The number of lines beyond the limits that a finding names.
pub const MAX_NAMED_LINES: usize = 10;

/// The maximum number of lines examined around an API error. Claude Code gives up after fewer retries.
pub const MAX_RETRY_LINES: usize = 64;

/// A finding about one line, without its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineFault {
    /// The line.
    pub entry_idx: EntryIndex,
    /// The kind of problem.
    pub code: Code,
    /// The severity in this case.
    pub severity: Severity,
}

impl LineFault {
    /// Creates a fault with the default severity of its code.
    fn new(code: Code, entry_idx: EntryIndex) -> Self {
        Self { entry_idx, code, severity: code.severity() }
    }

    fn with_message(self, session: &Session, message: impl Into<Cow<'static, str>>) -> Finding {
        let at = session.entries()[self.entry_idx].at();
        Finding { severity: self.severity, ..Finding::new(self.code, at, message) }
    }

    /// Returns the fault, as a note if `is_harmless` is true.
    fn note_if(self, is_harmless: bool) -> Self {
        if is_harmless { Self { severity: Severity::Note, ..self } } else { self }
    }
}

impl Session {
    /// Returns the findings about the log, in file order. They are cached until the next `push`.
    ///
    /// Secrets in plain text are none of them.
    pub fn findings(&self) -> &[Finding] {
        self.cached_findings.get_or_init(|| {
            let mut findings = self.line_findings().to_vec();
            self.check(&mut findings);
            findings.sort_by_key(|finding| (finding.at.map(|at| at.byte_offset), finding.code));
            findings
        })
    }

    /// Returns the findings of [`Session::findings`] without their messages, in file order.
    pub fn line_faults(&self) -> Vec<LineFault> {
        let entries = self.entries();
        let fault = |finding: &Finding| {
            let at = finding.at?;
            // Entries are in the order of their offsets.
            let entry_idx = entries.partition_point(|entry| entry.at().byte_offset < at.byte_offset);
            let is_entry = entries.get(entry_idx)?.at().byte_offset == at.byte_offset;
            is_entry.then_some(LineFault { entry_idx, code: finding.code, severity: finding.severity })
        };
        self.findings().iter().filter_map(fault).collect()
    }

    fn check(&self, faults: &mut Vec<Finding>) {
        self.check_limits(faults);
        self.check_pairs(faults);
        self.check_parents(faults);
        self.check_compactions(faults);
        self.check_retries(faults);
        self.check_writers(faults);
        self.check_thinking(faults);
        self.check_images(faults);
        self.check_contents(faults);
        self.check_fields(faults);
        self.check_start(faults);
        self.check_end(faults);
    }

    /// Reports the lines that exceed a limit, in one finding.
    fn check_limits(&self, faults: &mut Vec<Finding>) {
        let over_limit: Vec<&Entry> = self.entries().iter().filter(|entry| entry.is_over_limit()).collect();
        let Some(first) = over_limit.first() else { return };
        let named = over_limit.iter().take(MAX_NAMED_LINES).map(|entry| entry.at().line_no.to_string());
        let (word, rest) = match over_limit.len() {
            1 => ("line beyond the limits is", ""),
            ..=MAX_NAMED_LINES => ("lines beyond the limits are", ""),
            _ => ("lines beyond the limits are", ", …"),
        };
        let named = named.collect::<Vec<_>>().join(", ");
        let message = format!("{} {word} not parsed: {named}{rest}", over_limit.len());
        faults.push(Finding::new(Code::OverLimit, first.at(), message));
    }

    /// Reports calls without results, and results without calls.
    fn check_pairs(&self, faults: &mut Vec<Finding>) {
        // A reply may have very many calls.
        let mut went_on: HashMap<(ReplyIndex, bool), bool> = HashMap::default();
        for call in self.tool_calls().iter().filter(|call| call.results.is_empty()) {
            let message = format!("the call of {} has no result ({})", call.name, call.id);
            let fault = LineFault::new(Code::OrphanCall, call.entry_idx);
            // A process that ended during a call leaves no result; every version resumes that.
            let key = (call.reply, self.is_sidechain(call.entry_idx));
            let goes_on = *went_on.entry(key).or_insert_with(|| self.continues_after(call.entry_idx));
            faults.push(fault.note_if(!goes_on).with_message(self, message));
        }
        for (id, results) in self.orphan_results() {
            for result in results {
                let message = format!("the result has no call in the log ({id})");
                faults.push(LineFault::new(Code::OrphanResult, result.entry_idx).with_message(self, message));
            }
        }
    }

    /// Returns whether the model continued after a reply without a new prompt. Each call of the reply then
    /// had a result.
    fn continues_after(&self, line: EntryIndex) -> bool {
        let Some(reply) = self.reply_of(line) else { return false };
        let mut below = self.replies()[reply].entries.to_vec();
        // If the line with the result was removed, the next reply has lost its parent.
        let last = below.iter().copied().max().unwrap_or(line);
        let spoken = |idx: &EntryIndex| matches!(self.entries()[*idx].kind(), Kind::User | Kind::Assistant);
        let side = self.is_sidechain(line);
        let mut later =
            (last.next()..self.entries().end()).indices().filter(|&idx| self.is_sidechain(idx) == side);
        let next = later.find(spoken);
        if next.is_some_and(|next| self.reply_of(next).is_some() && self.parent(next) == ParentLink::Dangling)
        {
            return true;
        }
        let mut seen: HashSet<EntryIndex> = below.iter().copied().collect();
        while let Some(idx) = below.pop() {
            for child in self.children(idx).filter(|child| seen.insert(*child)) {
                let entry = &self.entries()[child];
                let blocks = || entry.message().into_iter().flat_map(|message| message.blocks());
                match entry.kind() {
                    Kind::Assistant if self.reply_of(child) != Some(reply) => {
                        let model = entry.message().and_then(|message| message.model());
                        if model.as_deref() != Some(value::SYNTHETIC_MODEL) {
                            return true;
                        }
                    }
                    Kind::User if !blocks().any(|block| block.is(value::TOOL_RESULT)) => {}
                    _ => below.push(child),
                }
            }
        }
        false
    }

    fn check_parents(&self, faults: &mut Vec<Finding>) {
        let first = self.entries().indices().find(|&idx| self.in_tree(idx));
        for idx in self.entries().indices().filter(|&idx| self.parent(idx) == ParentLink::Dangling) {
            let entry = &self.entries()[idx];
            let parent = entry.parent_uuid().unwrap_or_default();
            // A cycle was broken here. It is reported separately.
            if self.find(&parent).is_some() {
                continue;
            }
            // The first line of a log may continue another log, and so may any line of a sub-agent. A
            // progress line is not sent: a resume continues with the line that was written before it.
            let harmless = Some(idx) == first || self.is_sidechain(idx) || entry.kind() == Kind::Progress;
            let fault = LineFault::new(Code::DanglingParent, idx).note_if(harmless);
            faults.push(fault.with_message(self, format!("the parent {parent} is not in the log")));
        }
    }

    /// Reports messages after the last compaction that continue a line before its boundary.
    fn check_compactions(&self, faults: &mut Vec<Finding>) {
        let compactions = self.compactions();
        let Some(last) = compactions.last() else { return };
        let kept = |metadata: CompactMetadata<'_>| {
            metadata.preserved_segment().is_some() || metadata.preserved_messages().is_some()
        };
        if last.metadata(self).is_some_and(kept) {
            return;
        }
        for idx in (last.boundary.next()..self.entries().end()).indices() {
            let ParentLink::Entry(parent) = self.parent(idx) else { continue };
            let asks = self.input(idx).is_some_and(|input| input.opens_turn());
            let says = self.entries()[idx].kind() == Kind::Assistant;
            if parent < last.boundary && (asks || says) && !self.is_sidechain(idx) {
                let line = self.entries()[last.boundary].at().line_no;
                let message = format!("the parent precedes the compaction on line {line}");
                faults.push(LineFault::new(Code::StaleTip, idx).with_message(self, message));
            }
        }
    }

    /// Reports prompts below an API error, if the successful retry is a sibling of the error.
    fn check_retries(&self, faults: &mut Vec<Finding>) {
        let subtype = |idx: EntryIndex| self.entries()[idx].lens::<System<'_>>().and_then(System::subtype);
        for idx in
            self.entries().indices().filter(|&idx| self.input(idx).is_some_and(|input| input.opens_turn()))
        {
            let errors: Vec<EntryIndex> = self
                .ancestors(idx)
                .skip(1)
                .take(MAX_RETRY_LINES)
                .take_while(|&above| self.entries()[above].kind() == Kind::System)
                .filter(|&above| subtype(above).as_deref() == Some(value::API_ERROR))
                .collect();
            let Some(&first) = errors.last() else { continue };
            let ParentLink::Entry(fork) = self.parent(first) else { continue };
            let retried = self.children(fork).take(MAX_RETRY_LINES).find(|&child| {
                child < idx && !errors.contains(&child) && self.entries()[child].kind() == Kind::Assistant
            });
            if let Some(retried) = retried {
                let line = self.entries()[retried].at().line_no;
                let message = {
                    format!("the prompt continues an API error and skips the successful retry on line {line}")
                };
                faults.push(LineFault::new(Code::LostRetry, idx).with_message(self, message));
            }
        }
    }

    /// Reports abandoned branches that kept growing, which means that two processes wrote to the log.
    fn check_writers(&self, faults: &mut Vec<Finding>) {
        let thread = self.thread();
        let spoken = |idx: &EntryIndex| {
            self.entries()[*idx].kind() == Kind::Assistant
                || self.input(*idx).is_some_and(|input| input.opens_turn())
        };
        // The entries of the thread are sorted.
        let talk: Vec<EntryIndex> = thread.entries.iter().copied().filter(spoken).collect();
        for branch in self.branches() {
            let Some(fork) = branch.fork else { continue };
            let mut said = branch.entries.iter().copied().filter(spoken);
            let Some(first) = said.next() else { continue };
            let last = said.next_back().unwrap_or(first);
            let beside =
                talk.get(talk.partition_point(|&idx| idx <= first)).copied().filter(|&idx| idx < last);
            if let Some(beside) = beside.filter(|&beside| beside > fork) {
                let line = self.entries()[beside].at().line_no;
                let message = format!("two processes wrote at the same time, here and from line {line}");
                faults.push(LineFault::new(Code::ForkedWriters, first).with_message(self, message));
            }
        }
    }

    fn check_thinking(&self, faults: &mut Vec<Finding>) {
        let mut hollow = Vec::new();
        // Some versions log no thinking text at all. It is a fault only if the same version and model
        // logged others.
        let mut whole: HashSet<(String, String)> = HashSet::default();
        for (idx, entry, block) in
            self.message_blocks(Kind::Assistant).filter(|(_, _, block)| block.is(value::THINKING))
        {
            let model = entry.message().and_then(|message| message.model()).unwrap_or_default();
            let version = entry.envelope().and_then(|envelope| envelope.version()).unwrap_or_default();
            let maker = (version.into_owned(), model.into_owned());
            let is_empty = |text: Option<Cow<'_, str>>| text.is_none_or(|text| text.is_empty());
            if is_empty(block.thinking()) {
                hollow.push((idx, maker));
                continue;
            }
            if is_empty(block.signature()) {
                // Models of other vendors do not sign their thinking.
                let is_foreign = !maker.1.starts_with("claude");
                let fault = LineFault::new(Code::BadSignature, idx).note_if(is_foreign);
                faults.push(fault.with_message(self, "the thinking has no signature"));
            }
            whole.insert(maker);
        }
        for (idx, maker) in hollow {
            let fault = LineFault::new(Code::HollowThinking, idx).note_if(!whole.contains(&maker));
            faults.push(fault.with_message(self, "the thinking text is missing, only the signature remains"));
        }
    }

    fn check_images(&self, faults: &mut Vec<Finding>) {
        let mut images = Vec::new();
        for kind in [Kind::User, Kind::Assistant] {
            for (idx, _, block) in self.message_blocks(kind) {
                images.extend(image_size(block).map(|size| (idx, size)));
                let nested = block.content().into_iter().flat_map(|content| content.blocks());
                images.extend(nested.filter_map(image_size).map(|size| (idx, size)));
            }
        }
        let limit = if images.len() > MANY_IMAGES { MAX_IMAGE_SIDE_OF_MANY } else { MAX_IMAGE_SIDE };
        for (idx, size) in images {
            if size.width.max(size.height) > limit {
                let message =
                    format!("the image is {} × {} pixels; API limit: {limit}", size.width, size.height);
                faults.push(LineFault::new(Code::LargeImage, idx).with_message(self, message));
            } else if size.bytes > MAX_IMAGE_BYTES {
                let message = format!("the image is {} MB; API limit: 5 MB", size.bytes >> 20);
                faults.push(LineFault::new(Code::LargeImage, idx).with_message(self, message));
            }
        }
    }

    /// Reports messages without content.
    fn check_contents(&self, faults: &mut Vec<Finding>) {
        for (idx, entry) in self.entries().enumerated() {
            if !matches!(entry.kind(), Kind::User | Kind::Assistant) {
                continue;
            }
            let Some(message) = entry.message() else {
                faults.push(
                    LineFault::new(Code::EmptyContent, idx).with_message(self, "the line has no message"),
                );
                continue;
            };
            let Some(content) = message.content() else {
                faults.push(
                    LineFault::new(Code::EmptyContent, idx).with_message(self, "the message has no content"),
                );
                continue;
            };
            let empty_list = content.as_str().is_none() && content.json().items().next().is_none();
            let empty_text = content.as_str().is_some_and(|text| text.is_empty());
            if empty_list || empty_text {
                let message = "the content of the message is empty";
                faults.push(LineFault::new(Code::EmptyContent, idx).with_message(self, message));
            }
            for text in content.blocks().filter(|block| block.is(value::TEXT)).filter_map(Block::text) {
                if text.is_empty() {
                    // A reply that contains only white space is never sent again.
                    let is_silent = entry.kind() == Kind::Assistant
                        && content
                            .blocks()
                            .all(|block| block.text().is_some_and(|text| text.trim().is_empty()));
                    let fault = LineFault::new(Code::EmptyContent, idx).note_if(is_silent);
                    faults.push(fault.with_message(self, "a text block is empty"));
                } else if text.trim().is_empty() {
                    let fault = LineFault::new(Code::EmptyContent, idx).note_if(true);
                    faults.push(fault.with_message(self, "a text block contains only white space"));
                }
            }
        }
    }

    fn check_fields(&self, faults: &mut Vec<Finding>) {
        let mut places: HashMap<String, EntryIndex> = HashMap::default();
        for (idx, entry) in self.entries().enumerated() {
            if let Some(cwd) = entry.cwd() {
                places.entry(cwd.into_owned()).or_insert(idx);
            }
            if !matches!(entry.kind(), Kind::User | Kind::Assistant) {
                continue;
            }
            for (key, message) in
                [(key::UUID, "the line has no `uuid`"), (key::TIMESTAMP, "the line has no `timestamp`")]
            {
                if entry.get(key).and_then(|value| value.as_str()).is_none() {
                    faults.push(LineFault::new(Code::MissingField, idx).with_message(self, message));
                }
            }
        }
        let mut moves: Vec<(EntryIndex, String)> = places.into_iter().map(|(cwd, idx)| (idx, cwd)).collect();
        moves.sort_unstable();
        for (idx, cwd) in moves.into_iter().skip(1) {
            let message = format!("the working directory changes to {cwd}");
            faults.push(LineFault::new(Code::MovedCwd, idx).with_message(self, message));
        }
    }

    fn check_start(&self, faults: &mut Vec<Finding>) {
        let first = self.entries().find_index(|entry| entry.kind() != Kind::Blank);
        if let Some(first) = first.filter(|&idx| self.entries()[idx].kind() == Kind::PrLink) {
            let message = "the first line is `pr-link`, which hides the session from the session picker";
            faults.push(LineFault::new(Code::HiddenFromPicker, first).with_message(self, message));
        }
    }

    fn check_end(&self, faults: &mut Vec<Finding>) {
        let spoken = |entry: &Entry| matches!(entry.kind(), Kind::User | Kind::Assistant);
        let last = self
            .entries()
            .indices()
            .rev()
            .find(|&idx| spoken(&self.entries()[idx]) && !self.is_sidechain(idx));
        if let Some(last) = last.filter(|&idx| self.entries()[idx].is_api_error()) {
            faults.push(
                LineFault::new(Code::ErrorTail, last).with_message(self, "the session ends in an API error"),
            );
        }
    }

    /// Returns the blocks of all messages of a kind, with their entries.
    fn message_blocks(&self, kind: Kind) -> impl Iterator<Item = (EntryIndex, &Entry, Block<'_>)> {
        let lines = self.entries().enumerated().filter(move |(_, entry)| entry.kind() == kind);
        lines.flat_map(|(idx, entry)| {
            let blocks = entry.message().into_iter().flat_map(|message| message.blocks());
            blocks.map(move |block| (idx, entry, block))
        })
    }
}

pub(crate) struct ImageSize {
    pub(crate) width: usize,
    pub(crate) height: usize,
    bytes: usize,
}

/// Returns the dimensions of an image, read from its header, and its approximate size in bytes.
pub(crate) fn image_size(block: Block<'_>) -> Option<ImageSize> {
    if !block.is(value::IMAGE) {
        return None;
    }
    let data = block.source()?.data()?;
    // The dimensions are near the start, but the metadata of a photograph may precede them.
    let head = &data.as_bytes()[..data.len().min(256 << 10) / 4 * 4];
    let decoded = base64::engine::general_purpose::STANDARD.decode(head).ok()?;
    let size = imagesize::blob_size(&decoded).ok()?;
    Some(ImageSize { width: size.width, height: size.height, bytes: data.len() / 4 * 3 })
}
