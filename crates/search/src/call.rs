//! Tool calls: finds the call of a result, which precedes it in the log and provides its tool, path and
//! command.

use std::io::{self, Read};
use std::ops::Range;

use foldhash::HashMap;
use memchr::{memchr, memmem, memrchr};
use threadline_entry::lens::Block as MessageBlock;
use threadline_entry::{Entry, Json, LineBlock, LineReader, Position, value};

use crate::needle::count_lines;
use crate::searcher::LONGEST_LINE;

/// A tool call.
#[derive(Clone, Debug)]
pub(crate) struct CallInfo {
    pub(crate) tool: String,
    pub(crate) path: Option<String>,
    pub(crate) command: Option<String>,
    pub(crate) line_no: u64,
    pub(crate) block_idx: usize,
}

impl CallInfo {
    fn of(block: MessageBlock<'_>, line_no: u64, block_idx: usize) -> Self {
        let input = block.input();
        Self {
            tool: block.name().unwrap_or_default().into_owned(),
            path: input.and_then(path_of),
            command: input.and_then(command_of),
            line_no,
            block_idx,
        }
    }
}

/// Returns the file or folder of a call.
pub(crate) fn path_of(input: Json<'_>) -> Option<String> {
    let keys = ["file_path", "notebook_path", "path"];
    keys.iter().find_map(|key| Some(input.get(key)?.as_str()?.into_owned()))
}

/// Returns the shell command of a call.
pub(crate) fn command_of(input: Json<'_>) -> Option<String> {
    Some(input.get("command")?.as_str()?.into_owned())
}

/// The tool calls of one log, looked up on demand.
pub(crate) struct CallLookup {
    /// The last lines before the current block, and the byte offset at which they end.
    previous_lines: Vec<u8>,
    previous_end: u64,
    /// The number of times the log was read again for one call.
    n_rereads: usize,
    /// The number of lines that may still be parsed without finding the call.
    misses_left: usize,
    /// All calls of the log, once it was read again too often.
    index: Option<CallsById>,
}

/// The first call with each id, and the byte offset of its line.
type CallsById = HashMap<String, (u64, CallInfo)>;

/// A call is first looked for within this distance before its result, where it nearly always is.
const NEAR_DISTANCE: usize = 1 << 15;

/// The log is read again for this many calls. After that, all of them are indexed.
const MAX_REREADS: usize = 3;

/// This many lines are parsed that contain the id of a result and a call, but not the call of the result.
/// After that, all calls are indexed, because every result of a hostile log may have the same such lines
/// before it.
const MAX_MISSES: usize = 1_000;

impl Default for CallLookup {
    fn default() -> Self {
        Self {
            previous_lines: Vec::new(),
            previous_end: 0,
            n_rereads: 0,
            misses_left: MAX_MISSES,
            index: None,
        }
    }
}

impl CallLookup {
    /// Keeps the last lines of a block, for results in the next one.
    pub(crate) fn keep_end(&mut self, block: LineBlock<'_>) {
        let from = block.bytes.len().saturating_sub(NEAR_DISTANCE);
        let from = memrchr(b'\n', &block.bytes[..from]).map_or(0, |newline| newline + 1);
        self.previous_lines.clear();
        self.previous_lines.extend_from_slice(&block.bytes[from..]);
        self.previous_end = block.at.byte_offset + block.bytes.len() as u64;
    }

    /// Returns the call `id` of the result at `offset` of `block`. `open` may be called to read the log
    /// again.
    pub(crate) fn find<R: Read>(
        &mut self,
        id: &str,
        block: LineBlock<'_>,
        offset: usize,
        open: &impl Fn() -> io::Result<R>,
    ) -> Option<CallInfo> {
        let near = memrchr(b'\n', &block.bytes[..offset.saturating_sub(NEAR_DISTANCE)])
            .map_or(0, |newline| newline + 1);
        let misses_left = &mut self.misses_left;
        if let Some(call) = find_between(id, block, near..offset, misses_left) {
            return Some(call);
        }
        if self.index.is_none() {
            let call = find_between(id, block, 0..near, misses_left).or_else(|| self.find_before(id, block));
            if call.is_some() {
                return call;
            }
            if self.n_rereads < MAX_REREADS && self.misses_left > 0 {
                self.n_rereads += 1;
                let end = block.at.byte_offset;
                let call = reread_for_call(id, end, &mut self.misses_left, open).ok().flatten();
                if call.is_some() || self.misses_left > 0 {
                    return call;
                }
            }
            self.index = Some(index_calls(open).unwrap_or_default());
        }
        let (start, call) = self.index.as_ref()?.get(id)?;
        // A call after the result is another one with the same id.
        (*start < block.at.byte_offset + offset as u64).then(|| call.clone())
    }

    /// Searches the lines kept, if they directly precede the block.
    fn find_before(&mut self, id: &str, block: LineBlock<'_>) -> Option<CallInfo> {
        if self.previous_end != block.at.byte_offset {
            return None;
        }
        let line_no = block.at.line_no.saturating_sub(count_lines(&self.previous_lines));
        let before = LineBlock { bytes: &self.previous_lines, at: Position { line_no, byte_offset: 0 } };
        find_between(id, before, 0..self.previous_lines.len(), &mut self.misses_left)
    }
}

/// Reads the log again up to the byte offset `end`, for one call.
fn reread_for_call<R: Read>(
    id: &str,
    end: u64,
    misses_left: &mut usize,
    open: &impl Fn() -> io::Result<R>,
) -> io::Result<Option<CallInfo>> {
    let mut lines = LineReader::new(open()?.take(end)).skip_longer_than(LONGEST_LINE);
    while let Some(block) = lines.next_block()? {
        let found = find_between(id, block, 0..block.bytes.len(), misses_left);
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Searches the lines that begin in a range of a block. Returns `None` if no misses are left.
fn find_between(
    id: &str,
    block: LineBlock<'_>,
    range: Range<usize>,
    misses_left: &mut usize,
) -> Option<CallInfo> {
    let bytes = block.bytes;
    let quoted = format!("\"{id}\"");
    let finder = memmem::Finder::new(&quoted);
    let mut at = range.start;
    while at < range.end
        && *misses_left > 0
        && let Some(found) = finder.find(&bytes[at..range.end])
    {
        let found = at + found;
        let start = memrchr(b'\n', &bytes[..found]).map_or(0, |newline| newline + 1);
        let stop = memchr(b'\n', &bytes[found..]).map_or(bytes.len(), |newline| found + newline);
        let line = &bytes[start..stop];
        // A line may contain the id very many times.
        at = stop;
        // Progress lines and results also contain the id.
        if memmem::find(line, b"tool_use\"").is_none() {
            continue;
        }
        let (entry, _) = Entry::parse(line);
        let line_no = block.at.line_no + count_lines(&bytes[..start]);
        let mut found = None;
        each_call(&entry, |i, block| {
            if block.id().as_deref() == Some(id) {
                found = Some(CallInfo::of(block, line_no, i));
            }
        });
        if found.is_some() {
            return found;
        }
        *misses_left -= 1;
    }
    None
}

fn each_call<'e>(entry: &'e Entry, mut sink: impl FnMut(usize, MessageBlock<'e>)) {
    let blocks = entry.message().into_iter().flat_map(|message| message.blocks());
    for (i, block) in blocks.enumerate() {
        if block.is(value::TOOL_USE) || block.is(value::SERVER_TOOL_USE) || block.is(value::MCP_TOOL_USE) {
            sink(i, block);
        }
    }
}

/// Indexes every call of a log.
fn index_calls<R: Read>(open: &impl Fn() -> io::Result<R>) -> io::Result<CallsById> {
    let mut calls = HashMap::default();
    let mut lines = LineReader::new(open()?).skip_longer_than(LONGEST_LINE);
    let needle = memmem::Finder::new("tool_use\"");
    while let Some(block) = lines.next_block()? {
        let (mut counted, mut line_no) = (0, block.at.line_no);
        for (line, _) in block.hits(&needle) {
            let start = (line.at.byte_offset - block.at.byte_offset) as usize;
            line_no += count_lines(&block.bytes[counted..start]);
            counted = start;
            let (entry, _) = Entry::parse(line.bytes);
            each_call(&entry, |i, block| {
                if let Some(id) = block.id() {
                    let call = || (line.at.byte_offset, CallInfo::of(block, line_no, i));
                    calls.entry(id.into_owned()).or_insert_with(call);
                }
            });
        }
    }
    Ok(calls)
}
