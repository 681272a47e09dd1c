//! Finds the lines of a log that a resume needs, without keeping the rest in memory.
//!
//! A log may be a hundred times larger than the conversation that is sent: earlier conversations that were
//! compacted, abandoned branches, sub-agents, results as data. It is read once with its long texts truncated;
//! lines before a compaction are dropped while reading. Then the few lines that a resume needs are read
//! again.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Seek, SeekFrom};
use std::path::Path;

use memchr::memmem::Finder;
use threadline_entry::lens::{CompactBoundary, System};
use threadline_entry::{
    Chunk, ChunkReader, Entry, Kind, LineReader, LogLine, Millis, Position, parse_line, value,
};
use threadline_session::{ClientVersion, EntryIndex, IndexRange, ParentLink, Session};
use threadline_store::{open_regular, read_chunks};

/// The number of bytes that are kept of a long text: enough to recognise generated texts.
const KEPT_TEXT: usize = 192;

/// A log of at least this size is searched for its last compaction before it is read.
const SCANNED_LENGTH: u64 = 1 << 20;

/// The lines of a log that the current conversation depends on, with their long texts truncated.
pub(crate) struct LogOutline {
    version: ClientVersion,
    pub(crate) session: Session,
    /// The latest time of all lines.
    pub(crate) last_time: Millis,
    /// The last lines of their kinds.
    last_prompt: Option<Position>,
    last_snapshot: Option<Position>,
    /// The boundary of the last compaction, if the lines before it were dropped.
    boundary: Option<EntryIndex>,
    /// Whether a line of an earlier conversation is needed that was dropped already.
    is_incomplete: bool,
}

impl LogOutline {
    /// Reads the log of the session with this id, for a resume as `version` does it.
    pub(crate) fn read(log: &Path, id: &str, version: ClientVersion) -> io::Result<Self> {
        let outline = Self::read_lines(log, id, version, true)?;
        if outline.is_sufficient() { Ok(outline) } else { Self::read_lines(log, id, version, false) }
    }

    fn read_lines(log: &Path, id: &str, version: ClientVersion, drops_compacted: bool) -> io::Result<Self> {
        let mut outline = Self {
            version,
            session: Session::with_id(id),
            last_time: 0,
            last_prompt: None,
            last_snapshot: None,
            boundary: None,
            is_incomplete: false,
        };
        let mut file = open_regular(log)?;
        let length = file.metadata()?.len();
        let mut start = Position::START;
        if drops_compacted && length >= SCANNED_LENGTH {
            let scan = LastCompaction::find(log, version)?;
            start = scan.start;
            outline.last_snapshot = scan.last_snapshot;
            outline.last_prompt = scan.last_prompt;
            file.seek(SeekFrom::Start(start.byte_offset))?;
        }
        let parse = |chunk: &mut Chunk| {
            let mut entries = Vec::new();
            chunk.parse_abridged(KEPT_TEXT, |entry, _| entries.push(entry));
            entries
        };
        read_chunks(ChunkReader::from(file, start), length - start.byte_offset, parse, |entries| {
            for entry in entries {
                if drops_compacted && is_boundary(&entry) {
                    outline.drop_compacted(&entry);
                }
                outline.push(entry);
            }
        })?;
        Ok(outline)
    }

    fn push(&mut self, entry: Entry) {
        self.last_time = self.last_time.max(entry.timestamp().unwrap_or_default());
        match entry.kind() {
            Kind::LastPrompt => self.last_prompt = Some(entry.at()),
            Kind::FileHistorySnapshot => self.last_snapshot = Some(entry.at()),
            _ => {}
        }
        self.session.push(entry, Vec::new());
    }

    /// Drops everything before the boundary of a compaction but the messages that it preserved.
    fn drop_compacted(&mut self, boundary: &Entry) {
        let id = self.session.id().map(|id| id.into_owned()).unwrap_or_default();
        let session = std::mem::replace(&mut self.session, Session::with_id(id));
        match preserved_lines(&session, boundary) {
            // An earlier version continues with everything before the preserved lines.
            Some(lines) if !lines.is_empty() && !self.version.continues_preserved_tail() => {
                self.is_incomplete = true;
            }
            Some(lines) => {
                for line in lines {
                    self.session.push(session.entries()[line].clone(), Vec::new());
                }
            }
            None => self.is_incomplete = true,
        }
        self.boundary = Some(self.session.entries().end());
    }

    /// Whether the dropped lines are not needed: every line after the boundary continues one that is there.
    fn is_sufficient(&self) -> bool {
        let Some(boundary) = self.boundary else { return true };
        let is_attached = |line: EntryIndex| {
            let is_elsewhere = self.session.is_sidechain(line) || !self.session.in_tree(line);
            is_elsewhere || self.session.parent(line) != ParentLink::Dangling
        };
        !self.is_incomplete && (boundary..self.session.entries().end()).indices().all(is_attached)
    }

    /// Reads lines of the outline in full, with those that the session's state depends on.
    ///
    /// Returns a session of these lines only, and their indexes in it.
    pub(crate) fn read_full(
        &self,
        log: &Path,
        path: &[EntryIndex],
    ) -> io::Result<(Session, Vec<EntryIndex>)> {
        let outline = self.session.entries();
        let offset = |line: &EntryIndex| outline[*line].at().byte_offset;
        let state = [self.last_prompt, self.last_snapshot].into_iter().flatten().map(|at| at.byte_offset);
        let wanted: BTreeSet<u64> =
            path.iter().chain(&self.session.last_model_line()).map(offset).chain(state).collect();
        let mut session = Session::with_id(self.session.id().unwrap_or_default());
        let mut indexes = HashMap::with_capacity(wanted.len());
        let first = wanted.first().copied().unwrap_or_default();
        let mut file = open_regular(log)?;
        file.seek(SeekFrom::Start(first))?;
        let mut lines = LineReader::from(file, Position { byte_offset: first, line_no: 1 });
        let mut left = wanted.len();
        while left > 0
            && let Some(line) = lines.next()?
        {
            let offset = line.at.byte_offset;
            if !wanted.contains(&offset) {
                continue;
            }
            left -= 1;
            parse_line(&line, |entry, _| {
                if !entry.follows_on_line() {
                    indexes.insert(offset, session.entries().end());
                }
                session.push(entry, Vec::new());
            });
        }
        let changed = || io::Error::other("the file was changed while it was read");
        let path: Option<Vec<EntryIndex>> = path
            .iter()
            .map(|line| {
                let index = indexes.get(&offset(line)).copied()?;
                let is_same = session.entries()[index].uuid() == outline[*line].uuid();
                is_same.then_some(index)
            })
            .collect();
        Ok((session, path.ok_or_else(changed)?))
    }
}

/// The place in a large log from which it is read: its last compaction, with the messages that it preserved.
struct LastCompaction {
    start: Position,
    /// The last lines of their kinds before that.
    last_snapshot: Option<Position>,
    last_prompt: Option<Position>,
}

impl LastCompaction {
    /// Searches a log for a few words, which is much faster than parsing its lines.
    fn find(log: &Path, version: ClientVersion) -> io::Result<Self> {
        let mut found = Self { start: Position::START, last_snapshot: None, last_prompt: None };
        let mut preserved = None;
        let (mut snapshot, mut prompt) = (None, None);
        let kinds = [Kind::FileHistorySnapshot.name(), Kind::LastPrompt.name()];
        let words = kinds.into_iter().flatten().chain([value::COMPACT_BOUNDARY]);
        let finders: Vec<Finder<'_>> = words.map(|word| Finder::new(word.as_bytes())).collect();
        scan(log, &finders, |line| {
            parse_line(&line, |entry, _| match entry.kind() {
                Kind::FileHistorySnapshot => snapshot = Some(line.at),
                Kind::LastPrompt => prompt = Some(line.at),
                _ if is_boundary(&entry) => {
                    preserved = first_preserved(&entry);
                    found = Self { start: line.at, last_snapshot: snapshot, last_prompt: prompt };
                }
                _ => {}
            });
            true
        })?;
        let Some(uuid) = preserved else { return Ok(found) };
        if !version.continues_preserved_tail() {
            return Ok(Self { start: Position::START, last_snapshot: None, last_prompt: None });
        }
        // A line precedes those that refer to it.
        let boundary = found.start;
        found.start = Position::START;
        scan(log, &[Finder::new(uuid.as_bytes())], |line| {
            found.start = line.at.min(boundary);
            false
        })?;
        Ok(found)
    }
}

/// Calls `visit` with every line that contains one of the words, until it returns `false`.
fn scan(log: &Path, finders: &[Finder<'_>], mut visit: impl FnMut(LogLine<'_>) -> bool) -> io::Result<()> {
    let mut lines = LineReader::new(open_regular(log)?);
    lines.stop_numbering();
    while let Some(block) = lines.next_block()? {
        let hits = finders.iter().flat_map(|finder| block.hits(finder).map(|(line, _)| line));
        let mut hits: Vec<LogLine<'_>> = hits.collect();
        hits.sort_by_key(|line| line.at.byte_offset);
        hits.dedup_by_key(|line| line.at.byte_offset);
        if !hits.into_iter().all(&mut visit) {
            break;
        }
    }
    Ok(())
}

/// Returns the first message that a compaction preserved.
fn first_preserved(boundary: &Entry) -> Option<String> {
    let metadata = boundary.lens::<CompactBoundary<'_>>().and_then(CompactBoundary::compact_metadata)?;
    let uuids = metadata.preserved_messages().and_then(|messages| messages.uuids());
    if let Some(first) = uuids.and_then(|uuids| uuids.iter().next()) {
        return Some(first.into_owned());
    }
    metadata.preserved_segment()?.head_uuid().map(|uuid| uuid.into_owned())
}

fn is_boundary(entry: &Entry) -> bool {
    let subtype = || entry.lens::<System<'_>>().and_then(System::subtype);
    entry.kind() == Kind::System
        && !entry.is_sidechain()
        && subtype().is_some_and(|subtype| subtype == value::COMPACT_BOUNDARY)
}

/// Returns the lines before a boundary that its compaction preserved. `None` if one of them is missing.
fn preserved_lines(session: &Session, boundary: &Entry) -> Option<BTreeSet<EntryIndex>> {
    let metadata = boundary.lens::<CompactBoundary<'_>>().and_then(CompactBoundary::compact_metadata);
    let Some(metadata) = metadata else { return Some(BTreeSet::new()) };
    if let Some(messages) = metadata.preserved_messages()
        && let Some(uuids) = messages.uuids().filter(|uuids| !uuids.is_empty())
    {
        return uuids.iter().map(|uuid| session.find(&uuid)).collect();
    }
    let Some(segment) = metadata.preserved_segment() else { return Some(BTreeSet::new()) };
    let head = session.find(&segment.head_uuid()?)?;
    let tail = session.find(&segment.tail_uuid()?)?;
    let mut lines = BTreeSet::new();
    for line in std::iter::once(tail).chain(session.ancestors(tail)) {
        lines.insert(line);
        if line == head {
            return Some(lines);
        }
    }
    None
}
