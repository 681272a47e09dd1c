//! Checks of a session, reported as findings.
//!
//! A finding that does not affect a resume is a note. The others deserve attention.

use std::borrow::Cow;

use base64::Engine;
use rustc_hash::{FxHashMap, FxHashSet};
use threadline_entry::lens::{Block, CompactMetadata, System};
use threadline_entry::{Code, Entry, Finding, Kind, key, value};

use crate::index::{EntryIndex, IndexRange, ReplyIndex};
use crate::secret::secret_in;
use crate::session::{ParentLink, Session};

/// The maximum width or height of an image that the API accepts, alone and in a request with many images.
pub(crate) const MAX_IMAGE_SIDE: usize = 8000;
const MAX_IMAGE_SIDE_OF_MANY: usize = 2000;
const MANY_IMAGES: usize = 20;
/// The maximum size of one image in bytes.
const MAX_IMAGE_BYTES: usize = 5 << 20;

/// The key by which findings are in the order of the file.
fn sort_key(finding: &Finding) -> (Option<u64>, Code) {
    (finding.at.map(|at| at.byte_offset), finding.code)
}

/// The maximum number of lines examined around an API error. Claude Code gives up after fewer retries.
const MAX_RETRY_LINES: usize = 64;

impl Session {
    /// Returns all findings, in file order: the [faults](Self::faults) of the log and the secrets in it.
    pub fn findings(&self) -> Vec<&Finding> {
        let secrets = self.cached_secrets.get_or_init(|| self.find_secrets());
        let mut findings: Vec<&Finding> = self.faults().iter().chain(secrets).collect();
        findings.sort_by_key(|finding| sort_key(finding));
        findings
    }

    /// Returns the findings about the log itself, in file order. They are cached until the next `push`.
    pub fn faults(&self) -> &[Finding] {
        self.cached_faults.get_or_init(|| self.find_faults())
    }

    /// Returns the findings of [`Session::findings`] without copies of cached ones, which are removed.
    pub fn take_findings(&mut self) -> Vec<Finding> {
        let secrets = self.cached_secrets.take().unwrap_or_else(|| self.find_secrets());
        let mut findings = self.cached_faults.take().unwrap_or_else(|| self.find_faults());
        findings.extend(secrets);
        findings.sort_by_key(sort_key);
        findings
    }

    /// Computes the findings of [`Session::faults`], for a caller that needs them once.
    pub fn find_faults(&self) -> Vec<Finding> {
        let mut findings = self.line_findings().to_vec();
        self.check_pairs(&mut findings);
        self.check_parents(&mut findings);
        self.check_compactions(&mut findings);
        self.check_retries(&mut findings);
        self.check_writers(&mut findings);
        self.check_thinking(&mut findings);
        self.check_images(&mut findings);
        self.check_contents(&mut findings);
        self.check_fields(&mut findings);
        self.check_start(&mut findings);
        self.check_end(&mut findings);
        findings.sort_by_key(sort_key);
        findings
    }

    fn finding(&self, code: Code, entry_idx: EntryIndex, message: impl Into<Cow<'static, str>>) -> Finding {
        Finding::new(code, self.entries()[entry_idx].at(), message)
    }

    /// Reports calls without results, and results without calls.
    fn check_pairs(&self, findings: &mut Vec<Finding>) {
        // A reply may have very many calls.
        let mut went_on: FxHashMap<(ReplyIndex, bool), bool> = FxHashMap::default();
        for call in self.tool_calls().iter().filter(|call| call.results.is_empty()) {
            let message = format!("the call of {} has no result ({})", call.name, call.id);
            let finding = self.finding(Code::OrphanCall, call.entry_idx, message);
            // A process that ended during a call leaves no result; every version resumes that.
            let key = (call.reply, self.is_sidechain(call.entry_idx));
            let goes_on = *went_on.entry(key).or_insert_with(|| self.continues_after(call.entry_idx));
            findings.push(if goes_on { finding } else { finding.as_note() });
        }
        for (id, results) in self.orphan_results() {
            for result in results {
                let message = format!("the result has no call in the log ({id})");
                findings.push(self.finding(Code::OrphanResult, result.entry_idx, message));
            }
        }
    }

    /// Returns whether the model continued after a reply without a new prompt. Each call of the reply then
    /// had a result.
    fn continues_after(&self, line: EntryIndex) -> bool {
        let Some(reply) = self.reply_of(line) else { return false };
        let mut below = self.replies()[reply].entries.clone();
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
        let mut seen: FxHashSet<EntryIndex> = below.iter().copied().collect();
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

    fn check_parents(&self, findings: &mut Vec<Finding>) {
        let first = self.entries().indices().find(|&idx| self.in_tree(idx));
        for idx in self.entries().indices().filter(|&idx| self.parent(idx) == ParentLink::Dangling) {
            let entry = &self.entries()[idx];
            let parent = entry.parent_uuid().unwrap_or_default();
            // A cycle was broken here. It is reported separately.
            if self.find(&parent).is_some() {
                continue;
            }
            let finding =
                self.finding(Code::DanglingParent, idx, format!("the parent {parent} is not in the log"));
            // The first line of a log may continue another log, and so may any line of a sub-agent. A
            // hook's progress line without children is not part of any conversation.
            let harmless = Some(idx) == first
                || self.is_sidechain(idx)
                || (entry.kind() == Kind::Progress && self.children(idx).next().is_none());
            findings.push(if harmless { finding.as_note() } else { finding });
        }
    }

    /// Reports messages after the last compaction that continue a line before its boundary.
    fn check_compactions(&self, findings: &mut Vec<Finding>) {
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
                findings.push(self.finding(Code::StaleTip, idx, message));
            }
        }
    }

    /// Reports prompts below an API error, if the successful retry is a sibling of the error.
    fn check_retries(&self, findings: &mut Vec<Finding>) {
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
                let message = format!(
                    "the prompt continues an API error and skips the successful retry on line {line}"
                );
                findings.push(self.finding(Code::LostRetry, idx, message));
            }
        }
    }

    /// Reports abandoned branches that kept growing, which means that two processes wrote to the log.
    fn check_writers(&self, findings: &mut Vec<Finding>) {
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
                findings.push(self.finding(Code::ForkedWriters, first, message));
            }
        }
    }

    fn check_thinking(&self, findings: &mut Vec<Finding>) {
        let mut hollow = Vec::new();
        // Some versions log no thinking text at all. It is a fault only if the same version and model
        // logged others.
        let mut whole: FxHashSet<(String, String)> = FxHashSet::default();
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
                let finding = self.finding(Code::BadSignature, idx, "the thinking has no signature");
                // Models of other vendors do not sign their thinking.
                findings.push(if maker.1.starts_with("claude") { finding } else { finding.as_note() });
            }
            whole.insert(maker);
        }
        for (idx, maker) in hollow {
            let finding = self.finding(
                Code::HollowThinking,
                idx,
                "the thinking text is missing, only the signature remains",
            );
            findings.push(if whole.contains(&maker) { finding } else { finding.as_note() });
        }
    }

    fn check_images(&self, findings: &mut Vec<Finding>) {
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
                findings.push(self.finding(Code::LargeImage, idx, message));
            } else if size.bytes > MAX_IMAGE_BYTES {
                let message = format!("the image is {} MB; API limit: 5 MB", size.bytes >> 20);
                findings.push(self.finding(Code::LargeImage, idx, message));
            }
        }
    }

    /// Reports messages without content.
    fn check_contents(&self, findings: &mut Vec<Finding>) {
        for (idx, entry) in self.entries().enumerated() {
            if !matches!(entry.kind(), Kind::User | Kind::Assistant) {
                continue;
            }
            let Some(message) = entry.message() else {
                findings.push(self.finding(Code::EmptyContent, idx, "the line has no message"));
                continue;
            };
            let Some(content) = message.content() else {
                findings.push(self.finding(Code::EmptyContent, idx, "the message has no content"));
                continue;
            };
            let empty_list = content.as_str().is_none() && content.json().items().next().is_none();
            let empty_text = content.as_str().is_some_and(|text| text.is_empty());
            if empty_list || empty_text {
                findings.push(self.finding(Code::EmptyContent, idx, "the content of the message is empty"));
            }
            for text in content.blocks().filter(|block| block.is(value::TEXT)).filter_map(Block::text) {
                if text.is_empty() {
                    let finding = self.finding(Code::EmptyContent, idx, "a text block is empty");
                    // A reply that contains only white space is never sent again.
                    let is_silent = entry.kind() == Kind::Assistant
                        && content
                            .blocks()
                            .all(|block| block.text().is_some_and(|text| text.trim().is_empty()));
                    findings.push(if is_silent { finding.as_note() } else { finding });
                } else if text.trim().is_empty() {
                    let finding =
                        self.finding(Code::EmptyContent, idx, "a text block contains only white space");
                    findings.push(finding.as_note());
                }
            }
        }
    }

    fn check_fields(&self, findings: &mut Vec<Finding>) {
        let mut places: FxHashMap<String, EntryIndex> = FxHashMap::default();
        for (idx, entry) in self.entries().enumerated() {
            if let Some(cwd) = entry.cwd() {
                places.entry(cwd.into_owned()).or_insert(idx);
            }
            if !matches!(entry.kind(), Kind::User | Kind::Assistant) {
                continue;
            }
            // A log may lack these fields on every line, so the messages are not allocated.
            for (key, message) in
                [(key::UUID, "the line has no `uuid`"), (key::TIMESTAMP, "the line has no `timestamp`")]
            {
                if entry.get(key).and_then(|value| value.as_str()).is_none() {
                    findings.push(self.finding(Code::MissingField, idx, message));
                }
            }
        }
        let mut moves: Vec<(EntryIndex, String)> = places.into_iter().map(|(cwd, idx)| (idx, cwd)).collect();
        moves.sort_unstable();
        for (idx, cwd) in moves.into_iter().skip(1) {
            findings.push(self.finding(
                Code::MovedCwd,
                idx,
                format!("the working directory changes to {cwd}"),
            ));
        }
    }

    fn find_secrets(&self) -> Vec<Finding> {
        let secrets = self.entries().enumerated().filter_map(|(idx, entry)| Some((idx, secret_in(entry)?)));
        secrets.map(|(idx, what)| self.finding(Code::Secret, idx, format!("{what} in plain text"))).collect()
    }

    fn check_start(&self, findings: &mut Vec<Finding>) {
        let first = self.entries().find_index(|entry| entry.kind() != Kind::Blank);
        if let Some(first) = first.filter(|&idx| self.entries()[idx].kind() == Kind::PrLink) {
            let message = "the first line is `pr-link`, which hides the session from the session picker";
            findings.push(self.finding(Code::HiddenFromPicker, first, message));
        }
    }

    fn check_end(&self, findings: &mut Vec<Finding>) {
        let spoken = |entry: &Entry| matches!(entry.kind(), Kind::User | Kind::Assistant);
        let last = self
            .entries()
            .indices()
            .rev()
            .find(|&idx| spoken(&self.entries()[idx]) && !self.is_sidechain(idx));
        if let Some(last) = last.filter(|&idx| self.entries()[idx].is_api_error()) {
            findings.push(self.finding(Code::ErrorTail, last, "the session ends in an API error"));
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
