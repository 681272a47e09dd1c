//! Tool output of which no line recurs in a later prompt, reply or call.

use foldhash::HashSet;
use threadline_entry::lens::{Block, Lens};
use threadline_entry::{Json, JsonKind, key, value};
use threadline_session::{EntryIndex, Session};

/// Shorter lines recur by coincidence.
const MIN_LINE_CHARS: usize = 8;

/// Returns the line and block of each result of which no line recurs in a later prompt, reply or call.
pub(super) fn unused_results(session: &Session) -> HashSet<(EntryIndex, Option<u32>)> {
    let mut later: HashSet<u64> = HashSet::default();
    let mut unused = HashSet::default();
    for &idx in session.thread().entries.iter().rev() {
        let entry = &session.entries()[idx];
        let Some(content) = entry.message().and_then(|message| message.content()) else { continue };
        if let Some(text) = content.as_str() {
            add_lines(&text, &mut later);
            continue;
        }
        let mut said: Vec<Json<'_>> = Vec::new();
        for (block_idx, block) in content.blocks().enumerate() {
            match block.kind().as_deref() {
                Some(value::TOOL_RESULT) => {
                    if block.tool_use_id().is_some() && is_unused(block, &later) {
                        unused.insert((idx, Some(block_idx as u32)));
                    }
                }
                Some(value::TOOL_USE) => said.extend(block.input()),
                _ => said.extend(
                    [block.object().get(key::TEXT), block.object().get(key::THINKING)].into_iter().flatten(),
                ),
            }
        }
        said.into_iter().for_each(|json| add_strings(json, &mut later));
    }
    unused
}

/// Whether a result has lines, and none of them is in the set.
fn is_unused(block: Block<'_>, later: &HashSet<u64>) -> bool {
    let mut lines: HashSet<u64> = HashSet::default();
    if let Some(content) = block.object().get(key::CONTENT) {
        add_strings(content, &mut lines);
    }
    !lines.is_empty() && lines.is_disjoint(later)
}

fn add_strings(json: Json<'_>, lines: &mut HashSet<u64>) {
    match json.kind() {
        JsonKind::String => add_lines(&json.as_str().unwrap_or_default(), lines),
        JsonKind::Array => json.items().for_each(|item| add_strings(item, lines)),
        JsonKind::Object => json.members().for_each(|(_, item)| add_strings(item, lines)),
        _ => {}
    }
}

/// Adds the hashes of the lines of a text, without indentation and the numbers that `Read` adds.
fn add_lines(text: &str, lines: &mut HashSet<u64>) {
    for line in text.lines() {
        let line = line.trim();
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let numbered = line[digits..].strip_prefix(['→', '\t']).filter(|_| digits > 0);
        let line = numbered.unwrap_or(line).trim();
        if line.chars().take(MIN_LINE_CHARS).count() == MIN_LINE_CHARS {
            lines.insert(threadline_entry::hash_of(line));
        }
    }
}
