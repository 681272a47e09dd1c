//! Plans: what an edit would do, line by line, and the bytes that would come of it.

use std::borrow::Cow;
use std::io::{self, Read};

use rustc_hash::FxHashMap;
use sha2::{Digest as _, Sha256};
use threadline_entry::{Ending, Entry, Finding};
use threadline_session::Session;

use crate::arrange::{self, Arranged, From, GONE, Link, Order, Placed, is_tree};
use crate::clone;
use crate::draft::{Draft, SideFile};
use crate::fresh::{Fresh, moment};
use crate::rename::Rename;
use crate::splice::{self, Splice, quote};
use crate::tally::{Tally, TurnChange};
use crate::usage;

/// What an edit is to make.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The name of the operation, such as `strip`.
    pub operation: &'static str,
    /// Where the result goes.
    pub target: Target,
    /// Fresh ids and the time.
    pub fresh: Fresh,
}

/// Where the result of an edit goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Into a new session with this id. Its conversation is made straight, and nothing but it is taken over.
    New(String),
    /// Into the session itself, its conversation made straight.
    InPlace,
    /// Into the session itself, every line where it stands. For changes of text, which leave the tree alone.
    AsItStands,
}

/// What an edit would do.
///
/// A plan is made by [`Draft::plan`], which has checked it: see [`Plan::refusals`].
#[derive(Debug)]
pub struct Plan<'s> {
    draft: Draft<'s>,
    shape: Shape,
    lines: Vec<Placed>,
    place: Vec<u32>,
    rename: Rename,
    tally: Tally,
}

/// How a line differs between the log and the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineChange<'p> {
    /// The number of the line in the log; `None` for one that comes.
    pub line_no: Option<u64>,
    /// What happens to it.
    pub kind: ChangeKind,
    /// Why, in a few words each.
    pub why: Vec<Cow<'p, str>>,
}

/// What happens to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ChangeKind {
    /// It goes.
    Removed,
    /// It says something else.
    Changed,
    /// It is new.
    Added,
}

/// The length and the SHA-256 of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    /// How many bytes.
    pub length: u64,
    /// Their SHA-256.
    pub sha256: [u8; 32],
}

impl<'s> Plan<'s> {
    pub(crate) fn new(mut draft: Draft<'s>, shape: Shape) -> Self {
        let order = match &shape.target {
            Target::New(_) => {
                clone::leave_out(&mut draft);
                Order::ConversationOnly
            }
            Target::InPlace => Order::Straight,
            Target::AsItStands => Order::AsTheyStand,
        };
        let Arranged { lines, place } = arrange::arrange(&mut draft, order, shape.fresh.now);
        let rename = Rename::new(&draft, &shape);
        let mut plan = Self { draft, shape, lines, place, rename, tally: Tally::default() };
        plan.rename.moved = plan.moved();
        plan.tally = Tally::of(&plan);
        plan
    }

    /// Which line stands in for each that is gone, for those that refer to it.
    fn moved(&self) -> FxHashMap<Box<str>, u32> {
        let session = self.draft.session;
        let mut moved = FxHashMap::default();
        let mut before = None;
        let is_kept = |idx: &usize| self.place[*idx] != GONE && is_tree(&session.entries()[*idx]);
        // Of a line that was written twice, one of the two is kept.
        let lines = (0..session.entries().len()).filter(is_kept);
        let named = lines.clone().filter_map(|idx| Some((session.entries()[idx].uuid()?, self.place[idx])));
        let kept: FxHashMap<Cow<'_, str>, u32> = named.collect();
        let first = lines.map(|idx| self.place[idx]).min();
        let stands = |idx: usize| match self.place[idx] {
            GONE => session.entries()[idx].uuid().and_then(|uuid| kept.get(&uuid).copied()),
            place => Some(place),
        };
        // What stands in for lines that are gone, as far as that was looked for.
        let mut known: FxHashMap<usize, Option<u32>> = FxHashMap::default();
        for (idx, entry) in session.entries().iter().enumerate() {
            if self.place[idx] != GONE {
                if is_tree(entry) && !session.is_sidechain(idx) {
                    before = Some(self.place[idx]);
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
            // What was found for a line holds for all that were gone through on the way.
            let mut above = None;
            let mut gone = Vec::new();
            for line in session.ancestors(idx) {
                if let Some(place) = known.get(&line).copied().unwrap_or_else(|| stands(line)) {
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
                moved.insert((&*uuid).into(), place);
            }
        }
        moved
    }

    /// The session that is edited.
    pub fn session(&self) -> &'s Session {
        self.draft.session
    }

    /// What was asked for.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The id of the session that comes out.
    pub fn target_id(&self) -> Option<Cow<'_, str>> {
        match &self.shape.target {
            Target::New(id) => Some(Cow::Borrowed(id)),
            Target::InPlace | Target::AsItStands => self.draft.session.id(),
        }
    }

    /// What becomes of files beside the log.
    pub fn side_files(&self) -> &[SideFile] {
        &self.draft.side
    }

    /// What is done to the content of files beside the log, in words.
    pub fn notes_beside(&self) -> &[String] {
        &self.draft.beside
    }

    /// What was odd about the session, and what the person should know about the result.
    pub fn findings(&self) -> &[Finding] {
        &self.draft.findings
    }

    /// Why the result must not be written: the rules of a sound session that it would break. Nothing, most of the time.
    pub fn refusals(&self) -> &[String] {
        &self.tally.refusals
    }

    /// What it comes to, turn by turn: those that change.
    pub fn turns(&self) -> &[TurnChange] {
        &self.tally.turns
    }

    /// About how many tokens a resume sends of the log as it is.
    pub fn tokens_before(&self) -> u64 {
        self.tally.tokens_before
    }

    /// About how many tokens a resume sends of the result.
    pub fn tokens_after(&self) -> u64 {
        self.tally.tokens_after
    }

    /// How long the log is.
    pub fn bytes_before(&self) -> u64 {
        self.tally.bytes_before
    }

    /// The length of the result, and its hash.
    pub fn digest(&self) -> Digest {
        self.tally.digest
    }

    /// Whether there is anything to write.
    pub fn is_empty(&self) -> bool {
        matches!(self.shape.target, Target::InPlace | Target::AsItStands)
            && self.draft.side.is_empty()
            && self.changes().next().is_none()
    }

    /// How many lines go, change and come.
    pub fn counts(&self) -> [u64; 3] {
        let mut counts = [0; 3];
        for change in self.changes() {
            counts[change.kind as usize] += 1;
        }
        counts
    }

    /// The lines that are not as they were: those that go, in the order of the log, and then those that change or
    /// come, in the order of the result.
    ///
    /// In a new session every line has other ids and links, which is no change in this sense.
    pub fn changes(&self) -> impl Iterator<Item = LineChange<'_>> {
        let gone = (0..self.place.len()).filter(|&idx| self.place[idx] == GONE).map(|idx| LineChange {
            line_no: Some(self.line_no(idx)),
            kind: ChangeKind::Removed,
            why: self.why_gone(idx),
        });
        let before = self.draft.gone_before.iter().map(|&(line_no, why)| LineChange {
            line_no: Some(line_no),
            kind: ChangeKind::Removed,
            why: self.why(&[why]),
        });
        before.chain(gone).chain((0..self.lines.len()).filter_map(|at| self.change(at)))
    }

    fn change(&self, at: usize) -> Option<LineChange<'_>> {
        match self.lines[at].from {
            From::Added(added) => Some(LineChange {
                line_no: None,
                kind: ChangeKind::Added,
                why: self.why(&[self.draft.added[added as usize].why]),
            }),
            From::Source(idx) => {
                let idx = idx as usize;
                let mut why = self.why(&self.draft.fates[idx].why);
                if self.is_new() {
                    let nameless =
                        self.lines[at].renamed && self.draft.session.entries()[idx].uuid().is_none();
                    why.extend(nameless.then_some(Cow::Borrowed("a uuid for a line that had none")));
                } else {
                    why.extend(self.structural_reasons(at, idx).into_iter().map(Cow::Borrowed));
                }
                (!why.is_empty()).then(|| LineChange {
                    line_no: Some(self.line_no(idx)),
                    kind: ChangeKind::Changed,
                    why,
                })
            }
        }
    }

    /// What happens to the links, times and ids of a line that stays in its file.
    fn structural_reasons(&self, at: usize, idx: usize) -> Vec<&'static str> {
        let line = &self.lines[at];
        let entry = &self.draft.session.entries()[idx];
        let mut reasons = Vec::new();
        let mut out = Vec::new();
        self.rename.paths(entry, &mut out);
        if !out.is_empty() {
            reasons.push("a path that has moved");
        }
        out.clear();
        if !is_tree(entry) && self.rename.moved.is_empty() {
            return reasons;
        }
        self.links(at, entry, &mut out);
        if !out.is_empty() {
            reasons.push("hung elsewhere");
        }
        if line.time.is_some() {
            reasons.push("a later time");
        }
        if line.renamed {
            reasons.push("a uuid of its own");
        }
        out.clear();
        self.rename.references(self, entry, &mut out);
        if !out.is_empty() {
            reasons.push("refers to a line that goes");
        }
        reasons
    }

    /// Why a line is gone; what was to be done to it before that is none of it.
    fn why_gone(&self, idx: usize) -> Vec<Cow<'_, str>> {
        let mut why = self.why(&self.draft.fates[idx].why);
        if why.len() > 1 {
            why.retain(|why| why != usage::WHY);
        }
        why
    }

    fn why(&self, reasons: &[u16]) -> Vec<Cow<'_, str>> {
        reasons.iter().map(|&reason| Cow::Borrowed(&*self.draft.reasons[usize::from(reason)])).collect()
    }

    fn line_no(&self, idx: usize) -> u64 {
        self.draft.session.entries()[idx].at().line_no
    }

    pub(crate) fn is_new(&self) -> bool {
        matches!(self.shape.target, Target::New(_))
    }

    pub(crate) fn draft(&self) -> &Draft<'s> {
        &self.draft
    }

    pub(crate) fn lines(&self) -> &[Placed] {
        &self.lines
    }

    /// The line of the log that stands at a place of the result, if it comes from there.
    pub fn source_of(&self, at: usize) -> Option<usize> {
        match self.lines[at].from {
            From::Source(idx) => Some(idx as usize),
            From::Added(_) => None,
        }
    }

    /// How many lines the result has.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// The line at a place of the result, before ids, links and times are set.
    pub fn said(&self, at: usize) -> Cow<'_, Entry> {
        match self.lines[at].from {
            From::Source(idx) => self.draft.entry(idx as usize),
            From::Added(added) => Cow::Borrowed(&self.draft.added[added as usize].entry),
        }
    }

    /// The uuid that the line at a place of the result has.
    pub(crate) fn uuid_at(&self, at: u32) -> Option<String> {
        let line = &self.lines[at as usize];
        let added = matches!(line.from, From::Added(_));
        let entry = arrange::entry_of(&self.draft, line.from);
        if line.renamed {
            let name = format!("{} of line {at}", entry.uuid().unwrap_or_default());
            return Some(self.shape.fresh.uuid(&name));
        }
        let uuid = entry.uuid()?;
        Some(if added {
            uuid.into_owned()
        } else {
            self.rename.uuid(&uuid).unwrap_or_else(|| uuid.into_owned())
        })
    }

    /// Writes the line at a place of the result, without a newline.
    pub fn render(&self, at: usize, out: &mut Vec<u8>) {
        let line = &self.lines[at];
        let entry = self.said(at);
        let mut splices = Vec::new();
        if is_tree(&entry) {
            self.links(at, &entry, &mut splices);
            if let Some(time) = line.time {
                splices.extend(splice::set(&entry, "timestamp", &quote(&moment(time))));
            }
            if (line.renamed || self.is_new() && matches!(line.from, From::Source(_)))
                && let Some(uuid) = self.uuid_at(at as u32)
            {
                splices.extend(splice::set(&entry, "uuid", &quote(&uuid)));
            }
        }
        match &self.shape.target {
            Target::New(id) if matches!(line.from, From::Added(_)) => {
                if entry.get("sessionId").is_some() {
                    splices.extend(splice::set(&entry, "sessionId", &quote(id)));
                }
            }
            _ if matches!(line.from, From::Added(_)) => {}
            _ => self.rename.line(self, &entry, &mut splices),
        }
        if splices.is_empty() {
            out.extend(entry.as_bytes());
        } else {
            let mut text = String::with_capacity(entry.text().len() + 256);
            splice::apply_to(entry.text(), &mut splices, &mut text);
            out.extend(text.as_bytes());
        }
    }

    /// What the line continues, where that is not what it says.
    fn links(&self, at: usize, entry: &Entry, out: &mut Vec<Splice>) {
        let line = &self.lines[at];
        let parent = match line.link {
            Link::Keep => return,
            Link::Root => None,
            Link::To(above) => self.uuid_at(above),
        };
        if entry.parent_uuid().as_deref() != parent.as_deref() || entry.get("parentUuid").is_none() {
            let value = parent.as_deref().map_or("null".to_owned(), quote);
            out.extend(splice::set(entry, "parentUuid", &value));
        }
        if line.chained && arrange::is_boundary(entry) {
            let before = self.lines[..at].iter().rposition(|line| line.chained);
            let before = before.and_then(|before| self.uuid_at(before as u32));
            if let Some(before) =
                before.filter(|before| entry.get("logicalParentUuid").is_none_or(|json| !json.is_str(before)))
            {
                out.extend(splice::set(entry, "logicalParentUuid", &quote(&before)));
            }
        }
    }

    /// Whether a newline follows the line at a place of the result.
    pub(crate) fn ends_line(&self, at: usize) -> bool {
        match self.lines[at].from {
            // What was glued together stays so where neither has changed; a log that had no newline at its end has none.
            From::Source(idx) if self.shape.target == Target::AsItStands => {
                let entry = &self.draft.session.entries()[idx as usize];
                let next = self.lines.get(at + 1).map(|next| next.from);
                entry.ending() == Ending::Newline || next.is_some_and(|next| next != From::Source(idx + 1))
            }
            _ => true,
        }
    }

    /// The bytes of the result, made as they are read.
    pub fn reader(&self) -> impl Read + '_ {
        Rendered { plan: self, at: 0, line: Vec::new(), read: 0 }
    }

    /// The bytes of the result.
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

    /// The same, for a log beside the session's own whose ids are to be those of the new session.
    pub fn repoint(&self, log: &[u8], out: &mut Vec<u8>) {
        self.rename.log(self, log, out);
    }
}

/// Reads the result of a plan.
struct Rendered<'p, 's> {
    plan: &'p Plan<'s>,
    at: usize,
    line: Vec<u8>,
    read: usize,
}

impl Read for Rendered<'_, '_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.read == self.line.len() {
            self.line.clear();
            self.read = 0;
            // Enough lines at a time that a writer is not asked for each.
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

impl Digest {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self { length: bytes.len() as u64, sha256: Sha256::digest(bytes).into() }
    }
}

impl Default for Digest {
    fn default() -> Self {
        Self::of(b"")
    }
}
