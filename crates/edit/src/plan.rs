//! Plans: the changes of an edit, line by line, and the bytes of the result.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Read};

use foldhash::HashMap;
use sha2::{Digest as _, Sha256};
use threadline_entry::{Ending, Entry, Finding, key};
use threadline_session::{EntryIndex, IndexVec, Session};

use crate::arrange::{self, Arrangement, LineOrder, ResultLine, ResultOrigin, ResultParent, is_tree};
use crate::clone;
use crate::draft::{EditDraft, SideFileOp};
use crate::rename::IdRenamer;
use crate::seed::{PlanSeed, moment};
use crate::splice::{self, Splice, quote};
use crate::totals::{PlanTotals, TurnChange};

/// The destination of a plan's result, and the inputs that vary from run to run.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// Where the result goes.
    pub target: PlanTarget,
    /// The source of new ids, and the current time.
    pub seed: PlanSeed,
}

/// The destination of the result of an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanTarget {
    /// A new session with this id. It contains only the conversation, as one chain.
    New(String),
    /// The session itself, with its conversation rearranged into one chain.
    InPlace,
    /// The session itself, with every line in its place. For changes of text that do not affect the tree.
    KeepOrder,
}

/// The changes that an edit would make.
///
/// Plans are built by [`EditDraft::plan`], which also checks the result: see [`EditPlan::refusals`].
#[derive(Debug)]
pub struct EditPlan<'s> {
    draft: EditDraft<'s>,
    options: PlanOptions,
    lines: Vec<ResultLine>,
    /// The index in the result of each entry of the log. `None` if it is removed.
    positions: IndexVec<EntryIndex, Option<usize>>,
    rename: IdRenamer,
    totals: PlanTotals,
}

/// Changes of the same kind for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeGroup {
    /// Whether the lines go, change or come.
    pub kind: ChangeKind,
    /// The reason.
    pub why: String,
    /// Number of lines.
    pub count: usize,
    /// Line numbers in the log, in order. Lines that come have none.
    pub line_nos: Vec<u64>,
}

/// How a line differs between the log and the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineChange<'p> {
    /// The line number in the log; `None` for an added line.
    pub line_no: Option<u64>,
    /// The kind of change.
    pub kind: ChangeKind,
    /// The reasons, a few words each.
    pub reasons: Vec<Cow<'p, str>>,
}

/// The kind of change of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ChangeKind {
    /// The line is removed.
    Removed,
    /// The line is changed.
    Changed,
    /// The line is added.
    Added,
}

/// The length and the SHA-256 of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentDigest {
    /// The number of bytes.
    pub length: u64,
    /// The SHA-256.
    pub sha256: [u8; 32],
}

impl<'s> EditPlan<'s> {
    pub(crate) fn new(mut draft: EditDraft<'s>, options: PlanOptions) -> Self {
        let order = match &options.target {
            PlanTarget::New(_) => {
                clone::remove_session_data(&mut draft);
                LineOrder::ConversationOnly
            }
            PlanTarget::InPlace => LineOrder::Chain,
            PlanTarget::KeepOrder => LineOrder::Original,
        };
        let Arrangement { lines, positions } = arrange::arrange(&mut draft, order, options.seed.now);
        let rename = IdRenamer::new(&draft, &options);
        let mut plan = Self { draft, options, lines, positions, rename, totals: PlanTotals::default() };
        plan.rename.replacements = plan.replacements();
        plan.totals = PlanTotals::of(&plan);
        plan
    }

    /// Maps the uuid of each removed line to the line of the result that references to it should use
    /// instead: its nearest remaining ancestor, else the preceding line of the conversation.
    fn replacements(&self) -> HashMap<String, usize> {
        let session = self.draft.session;
        let mut moved = HashMap::default();
        let mut removed = self.positions.indices().filter(|&idx| self.positions[idx].is_none());
        if !removed.any(|idx| is_tree(&session.entries()[idx])) {
            return moved;
        }
        let mut before = None;
        let is_kept = |idx: &EntryIndex| self.positions[*idx].is_some() && is_tree(&session.entries()[*idx]);
        // If a line was written twice, one of the copies is kept.
        let lines = session.entries().indices().filter(is_kept);
        let named =
            lines.clone().filter_map(|idx| Some((session.entries()[idx].uuid()?, self.positions[idx]?)));
        let kept: HashMap<Cow<'_, str>, usize> = named.collect();
        let first = lines.filter_map(|idx| self.positions[idx]).min();
        let position = |idx: EntryIndex| {
            let copy = || session.entries()[idx].uuid().and_then(|uuid| kept.get(&uuid).copied());
            self.positions[idx].or_else(copy)
        };
        // A cache of the replacements found so far.
        let mut known: HashMap<EntryIndex, Option<usize>> = HashMap::default();
        for (idx, entry) in session.entries().enumerated() {
            if self.positions[idx].is_some() {
                if is_tree(entry) && !session.is_sidechain(idx) {
                    before = self.positions[idx];
                }
                continue;
            }
            if !is_tree(entry) {
                continue;
            }
            let Some(uuid) = entry.uuid() else { continue };
            if kept.contains_key(&uuid) {
                continue;
            }
            // The result is the same for all removed lines on the path.
            let mut above = None;
            let mut gone = Vec::new();
            for line in session.ancestors(idx) {
                if let Some(place) = known.get(&line).copied().unwrap_or_else(|| position(line)) {
                    above = Some(place);
                    break;
                }
                if known.contains_key(&line) {
                    break;
                }
                gone.push(line);
            }
            known.extend(gone.into_iter().map(|line| (line, above)));
            if let Some(place) = above.or(before).or(first) {
                moved.insert(uuid.into_owned(), place);
            }
        }
        moved
    }

    /// Returns the session that is edited.
    pub fn session(&self) -> &'s Session {
        self.draft.session
    }

    /// Returns the options that the plan was made with.
    pub fn options(&self) -> &PlanOptions {
        &self.options
    }

    /// Returns the id of the resulting session.
    pub fn target_id(&self) -> Option<Cow<'_, str>> {
        match &self.options.target {
            PlanTarget::New(id) => Some(Cow::Borrowed(id)),
            PlanTarget::InPlace | PlanTarget::KeepOrder => self.draft.session.id(),
        }
    }

    /// Returns the operations on side files.
    pub fn side_files(&self) -> &[SideFileOp] {
        &self.draft.side_files
    }

    /// Returns descriptions of the changes to the content of side files.
    pub fn side_notes(&self) -> &[String] {
        &self.draft.side_notes
    }

    /// Returns the findings that the draft added.
    pub fn findings(&self) -> &[Finding] {
        &self.draft.findings
    }

    /// Returns the reasons why the result must not be written: the soundness rules that it would break.
    /// Usually empty.
    pub fn refusals(&self) -> &[String] {
        &self.totals.refusals
    }

    /// Returns the turns that change.
    pub fn turns(&self) -> &[TurnChange] {
        &self.totals.turns
    }

    /// Estimates the number of tokens that a resume of the original log sends.
    pub fn tokens_before(&self) -> u64 {
        self.totals.tokens_before
    }

    /// Estimates the number of tokens that a resume of the result sends.
    pub fn tokens_after(&self) -> u64 {
        self.totals.tokens_after
    }

    /// Returns the length and the hash of the result.
    pub fn digest(&self) -> ContentDigest {
        self.totals.digest
    }

    /// Returns whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        matches!(self.options.target, PlanTarget::InPlace | PlanTarget::KeepOrder)
            && self.draft.side_files.is_empty()
            && self.changes().next().is_none()
    }

    /// Returns the number of lines of the log, with those that a repair has removed already.
    pub fn n_lines_before(&self) -> u64 {
        (self.session().entries().len() + self.draft.already_removed.len()) as u64
    }

    /// Returns the numbers of removed, changed and added lines.
    pub fn counts(&self) -> [u64; 3] {
        let mut counts = [0; 3];
        for change in self.changes() {
            counts[change.kind as usize] += 1;
        }
        counts
    }

    /// Returns the changed lines: first the removed ones, in the order of the log, then the changed and
    /// added ones, in the order of the result.
    ///
    /// Different ids and links in a new session do not count as changes.
    pub fn changes(&self) -> impl Iterator<Item = LineChange<'_>> {
        let gone =
            self.positions.indices().filter(|&idx| self.positions[idx].is_none()).map(|idx| LineChange {
                line_no: Some(self.line_no(idx)),
                kind: ChangeKind::Removed,
                reasons: self.draft.removal_reasons_of(idx).map(Cow::Borrowed).collect(),
            });
        let before = self.draft.already_removed.iter().map(|(line_no, why)| LineChange {
            line_no: Some(*line_no),
            kind: ChangeKind::Removed,
            reasons: vec![Cow::Borrowed(&**why)],
        });
        before.chain(gone).chain((0..self.lines.len()).filter_map(|at| self.change(at)))
    }

    /// Returns the changes in groups of the same kind and reason, ordered by these. A line with several
    /// reasons is in several groups.
    pub fn changes_by_reason(&self) -> Vec<ChangeGroup> {
        let mut groups: BTreeMap<(ChangeKind, String), ChangeGroup> = BTreeMap::new();
        for change in self.changes() {
            for why in &change.reasons {
                let group = groups.entry((change.kind, why.to_string())).or_insert_with(|| ChangeGroup {
                    kind: change.kind,
                    why: why.to_string(),
                    count: 0,
                    line_nos: Vec::new(),
                });
                group.count += 1;
                group.line_nos.extend(change.line_no);
            }
        }
        let mut groups: Vec<ChangeGroup> = groups.into_values().collect();
        groups.iter_mut().for_each(|group| group.line_nos.sort_unstable());
        groups
    }

    fn change(&self, at: usize) -> Option<LineChange<'_>> {
        match self.lines[at].origin {
            ResultOrigin::Added(added) => Some(LineChange {
                line_no: None,
                kind: ChangeKind::Added,
                reasons: vec![Cow::Borrowed(&*self.draft.added[added].reason)],
            }),
            ResultOrigin::Source(idx) => {
                let mut why: Vec<Cow<'_, str>> = self.draft.reasons_of(idx).map(Cow::Borrowed).collect();
                if self.is_new() {
                    let nameless =
                        self.lines[at].new_uuid && self.draft.session.entries()[idx].uuid().is_none();
                    why.extend(nameless.then_some(Cow::Borrowed("uuid added")));
                } else {
                    why.extend(self.structural_reasons(at, idx).into_iter().map(Cow::Borrowed));
                }
                (!why.is_empty()).then(|| LineChange {
                    line_no: Some(self.line_no(idx)),
                    kind: ChangeKind::Changed,
                    reasons: why,
                })
            }
        }
    }

    /// Returns the reasons why the links, timestamp or ids of a line change in an edit of the same session.
    fn structural_reasons(&self, at: usize, idx: EntryIndex) -> Vec<&'static str> {
        let line = &self.lines[at];
        let entry = &self.draft.session.entries()[idx];
        let mut reasons = Vec::new();
        let mut out = Vec::new();
        self.rename.paths(entry, &mut out);
        if !out.is_empty() {
            reasons.push("path updated");
        }
        out.clear();
        if !is_tree(entry) && self.rename.replacements.is_empty() {
            return reasons;
        }
        self.links(at, entry, &mut out);
        if !out.is_empty() {
            reasons.push("re-parented");
        }
        if line.time.is_some() {
            reasons.push("timestamp increased");
        }
        if line.new_uuid {
            reasons.push("new uuid (duplicate)");
        }
        out.clear();
        self.rename.references(self, entry, &mut out);
        if !out.is_empty() {
            reasons.push("reference to a removed line updated");
        }
        reasons
    }

    fn line_no(&self, idx: EntryIndex) -> u64 {
        self.draft.session.entries()[idx].at().line_no
    }

    pub(crate) fn is_new(&self) -> bool {
        matches!(self.options.target, PlanTarget::New(_))
    }

    pub(crate) fn draft(&self) -> &EditDraft<'s> {
        &self.draft
    }

    pub(crate) fn lines(&self) -> &[ResultLine] {
        &self.lines
    }

    /// Returns the index of the entry that a line of the result comes from, unless the line was added.
    pub fn source_of(&self, at: usize) -> Option<EntryIndex> {
        match self.lines[at].origin {
            ResultOrigin::Source(idx) => Some(idx),
            ResultOrigin::Added(_) => None,
        }
    }

    /// Returns the number of lines in the result.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns a line of the result, before ids, links and timestamps are set.
    pub fn draft_line(&self, at: usize) -> Cow<'_, Entry> {
        match self.lines[at].origin {
            ResultOrigin::Source(idx) => self.draft.entry(idx),
            ResultOrigin::Added(added) => Cow::Borrowed(&self.draft.added[added].entry),
        }
    }

    /// Returns the uuid of a line of the result.
    pub(crate) fn uuid_at(&self, at: usize) -> Option<String> {
        let line = &self.lines[at];
        let added = matches!(line.origin, ResultOrigin::Added(_));
        let entry = arrange::entry_of(&self.draft, line.origin);
        if line.new_uuid {
            let name = format!("{} of line {at}", entry.uuid().unwrap_or_default());
            return Some(self.options.seed.uuid(&name));
        }
        let uuid = entry.uuid()?;
        Some(if added {
            uuid.into_owned()
        } else {
            self.rename.uuid(&uuid).unwrap_or_else(|| uuid.into_owned())
        })
    }

    /// Appends a line of the result to `out`, without a newline.
    pub fn render(&self, at: usize, out: &mut Vec<u8>) {
        let line = &self.lines[at];
        let entry = self.draft_line(at);
        let mut splices = Vec::new();
        if is_tree(&entry) {
            self.links(at, &entry, &mut splices);
            if let Some(time) = line.time {
                splices.extend(splice::set(&entry, key::TIMESTAMP, &quote(&moment(time))));
            }
            if (line.new_uuid || self.is_new() && matches!(line.origin, ResultOrigin::Source(_)))
                && let Some(uuid) = self.uuid_at(at)
            {
                splices.extend(splice::set(&entry, key::UUID, &quote(&uuid)));
            }
        }
        match &self.options.target {
            PlanTarget::New(id) if matches!(line.origin, ResultOrigin::Added(_)) => {
                if entry.get(key::SESSION_ID).is_some() {
                    splices.extend(splice::set(&entry, key::SESSION_ID, &quote(id)));
                }
            }
            _ if matches!(line.origin, ResultOrigin::Added(_)) => {}
            _ => self.rename.line(self, &entry, &mut splices),
        }
        match splices.is_empty() {
            true => out.extend(entry.as_bytes()),
            false => out.extend(splice::apply(entry.text(), &mut splices).as_bytes()),
        }
    }

    /// Adds the splices that change the parent of a line, if it changes.
    fn links(&self, at: usize, entry: &Entry, out: &mut Vec<Splice>) {
        let line = &self.lines[at];
        let parent = match line.parent {
            ResultParent::Keep => return,
            ResultParent::Root => None,
            ResultParent::To(above) => self.uuid_at(above),
        };
        if entry.parent_uuid().as_deref() != parent.as_deref() || entry.get(key::PARENT_UUID).is_none() {
            let value = parent.as_deref().map_or("null".to_owned(), quote);
            out.extend(splice::set(entry, key::PARENT_UUID, &value));
        }
        if line.in_chain && arrange::is_boundary(entry) {
            let before = self.lines[..at].iter().rposition(|line| line.in_chain);
            let before = before.and_then(|before| self.uuid_at(before));
            if let Some(before) = before
                .filter(|before| entry.get(key::LOGICAL_PARENT_UUID).is_none_or(|json| !json.is_str(before)))
            {
                out.extend(splice::set(entry, key::LOGICAL_PARENT_UUID, &quote(&before)));
            }
        }
    }

    /// Returns whether a newline follows a line of the result.
    pub fn ends_line(&self, at: usize) -> bool {
        match self.lines[at].origin {
            // Objects on one line stay together if nothing is removed or inserted between them, and a log
            // without a final newline stays without one.
            ResultOrigin::Source(idx) if self.options.target == PlanTarget::KeepOrder => {
                let entry = &self.draft.session.entries()[idx];
                let next = self.lines.get(at + 1).map(|line| line.origin);
                entry.ending() == Ending::Newline
                    || next.is_some_and(|next| next != ResultOrigin::Source(idx.next()))
            }
            _ => true,
        }
    }

    /// Returns a reader of the result, which renders lines on demand.
    pub fn reader(&self) -> impl Read + '_ {
        PlanReader { plan: self, at: 0, line: Vec::new(), read: 0 }
    }

    /// Returns the bytes of the result.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for at in 0..self.lines.len() {
            self.render(at, &mut bytes);
            if self.ends_line(at) {
                bytes.push(b'\n');
            }
        }
        bytes
    }

    /// Rewrites another log of the session, such as a sub-agent's, to the ids of the result.
    pub fn rewrite_ids(&self, log: &[u8], out: &mut Vec<u8>) {
        self.rename.log(self, log, out);
    }
}

/// A reader of the result of a plan.
struct PlanReader<'p, 's> {
    plan: &'p EditPlan<'s>,
    at: usize,
    line: Vec<u8>,
    read: usize,
}

impl Read for PlanReader<'_, '_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.read == self.line.len() {
            self.line.clear();
            self.read = 0;
            // Render several lines at a time, to keep the number of reads low.
            while self.at < self.plan.lines.len() && self.line.len() < 1 << 16 {
                self.plan.render(self.at, &mut self.line);
                if self.plan.ends_line(self.at) {
                    self.line.push(b'\n');
                }
                self.at += 1;
            }
        }
        let n = buf.len().min(self.line.len() - self.read);
        buf[..n].copy_from_slice(&self.line[self.read..self.read + n]);
        self.read += n;
        Ok(n)
    }
}

impl ContentDigest {
    /// Computes the digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self { length: bytes.len() as u64, sha256: Sha256::digest(bytes).into() }
    }
}

impl Default for ContentDigest {
    fn default() -> Self {
        Self::of(b"")
    }
}
