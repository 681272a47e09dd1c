//! Reads the place of a line in the conversation, and the blocks of its message, without parsing it.
//!
//! For scans that count over all logs of a home. An [`OutlineReader`] reads a line by the first of two
//! methods that can, and both return the same outline:
//!
//! 1. A line with the keys of an earlier one is compared with that one's text, and the offsets of its values
//!    are moved to where the values of this line are ([`layout`]).
//! 2. Any other line is walked from key to key ([`walker`]).
//!
//! A line that cannot be walked has no outline, and must be parsed.

mod layout;
mod walker;

use std::ops::Range;

use fearless_simd::{Simd, dispatch};

pub use self::layout::ValuePlace;
use self::layout::{LineLayout, MAX_STEPS};
use self::walker::OutlineWalker;
use crate::json::{ValueSkipper, skipper_level};
use crate::kind::Kind;
use crate::lines::{LineBlock, LogLine};
use crate::value;

/// Reads the outlines of one line after another, and remembers the layouts of recent lines.
#[derive(Debug, Default)]
pub struct OutlineReader {
    layouts: Vec<LineLayout>,
    /// The layouts by index. Those that match most often are first.
    order: Vec<usize>,
    /// The number of steps that two layouts begin with, for each pair.
    n_shared: Vec<[usize; MAX_LAYOUTS]>,
    /// The offsets of the literals of the layout that was compared last.
    starts: LiteralStarts,
    /// The layouts of the last two lines, and the one that followed each such pair last.
    last: [usize; 2],
    next: [[u8; MAX_LAYOUTS]; MAX_LAYOUTS],
    /// The number of the newest layout.
    last_number: u64,
    walker: OutlineWalker,
}

/// The offsets of literals.
#[derive(Debug)]
struct LiteralStarts(Box<[u32; MAX_STEPS]>);

impl Default for LiteralStarts {
    fn default() -> Self {
        Self(Box::new([0; MAX_STEPS]))
    }
}

/// The maximum number of layouts; few logs have more.
const MAX_LAYOUTS: usize = 24;

impl OutlineReader {
    /// Reads a line.
    ///
    /// The result is exact for a line that is valid JSON. Values that do not matter are not validated.
    /// Returns `None` if the line is not an object, if a key that matters occurs twice, if its value contains
    /// escapes or has an unexpected type, or if the line has very many values that are very short.
    pub fn read<'a>(&'a mut self, line: &'a [u8]) -> Option<LineOutline<'a>> {
        u32::try_from(line.len()).ok()?;
        match self.find_layout(line).filter(|(_, length)| *length == line.len()) {
            Some((layout, _)) => Some(self.outline(line, layout)),
            None => self.walk(line),
        }
    }

    /// Returns the outline of a line with a layout that was just found.
    #[inline]
    fn outline<'a>(&'a self, line: &'a [u8], layout: usize) -> LineOutline<'a> {
        let layout = &self.layouts[layout];
        LineOutline { line, values: &layout.values, layout: Some((layout, &self.starts)) }
    }

    /// Returns the outline of a line without a known layout.
    fn walk<'a>(&'a mut self, line: &'a [u8]) -> Option<LineOutline<'a>> {
        self.walker.walk(line)?;
        self.learn(line);
        Some(LineOutline { line, values: &self.walker.values, layout: None })
    }

    /// Returns the layout and the length of the first line of a text.
    fn find_layout(&mut self, text: &[u8]) -> Option<(usize, usize)> {
        dispatch!(skipper_level(), simd => self.find_layout_by(ValueSkipper(simd), text))
    }

    /// Does the same. The layout that followed those of the last two lines before is compared first, because
    /// lines come in sequences. Most layouts begin alike: what a line has in common with the layout that was
    /// compared last is not compared again, and neither is what it has not.
    #[inline(always)]
    fn find_layout_by<S: Simd>(&mut self, skipper: ValueSkipper<S>, text: &[u8]) -> Option<(usize, usize)> {
        let [before, last] = self.last.map(|layout| layout % MAX_LAYOUTS);
        let expected = usize::from(self.next[before][last]);
        let mut compared: Option<(usize, usize)> = None;
        let places = self.order.iter().position(|&layout| layout == expected).into_iter();
        for place in places.chain(0..self.order.len()) {
            let layout = self.order[place];
            if compared.is_some() && layout == expected {
                continue;
            }
            let n_known = match compared.map(|(other, n_equal)| (self.n_shared[other][layout], n_equal)) {
                // This layout has the step that does not match.
                Some((n_shared, n_equal)) if n_shared > n_equal => continue,
                Some((n_shared, _)) => n_shared,
                None => 0,
            };
            match self.layouts[layout].read(skipper, text, &mut self.starts.0, n_known) {
                Ok(length) => {
                    // Each match moves a layout one place forward, so that the order is soon that of the
                    // frequencies.
                    self.order.swap(place, place.saturating_sub(1));
                    self.next[before][last] = layout as u8;
                    self.last = [last, layout];
                    return Some((layout, length));
                }
                Err(n_equal) => compared = Some((layout, n_equal)),
            }
        }
        None
    }

    /// Reads the lines of a block, and calls `on_line` for each. The end of a line with a known layout is
    /// found by comparing it, so that most bytes are searched once.
    pub fn read_block(
        &mut self,
        block: &LineBlock<'_>,
        mut on_line: impl FnMut(&LogLine<'_>, Option<&LineOutline<'_>>),
    ) {
        let mut start = 0;
        while let Some(rest) = block.bytes.get(start..).filter(|rest| !rest.is_empty()) {
            let can_compare = u32::try_from(rest.len()).is_ok();
            let found = if can_compare { self.find_layout(rest) } else { None };
            let line = match found {
                Some((_, length)) => block.line_of_length(start, length),
                None => block.line_at(start),
            };
            let outline = match found {
                Some((layout, _)) => Some(self.outline(line.bytes, layout)),
                None if can_compare => self.walk(line.bytes),
                None => self.read(line.bytes),
            };
            on_line(&line, outline.as_ref());
            start += line.bytes.len() + 1;
        }
    }

    /// Remembers the layout of the line that was walked last.
    #[cold]
    fn learn(&mut self, line: &[u8]) {
        self.last_number += 1;
        let number = self.last_number;
        let known = self.layouts.iter_mut().position(|layout| layout.learn(line, &self.walker, number));
        if let Some(layout) = known {
            return self.compare_layouts(layout);
        }
        if let Some(layout) = LineLayout::new(line, &self.walker, number) {
            // The one that matches least often is replaced.
            let place = match self.order.len() < MAX_LAYOUTS {
                true => {
                    self.order.push(self.layouts.len());
                    self.layouts.push(layout);
                    self.layouts.len() - 1
                }
                false => {
                    let last = self.order[MAX_LAYOUTS - 1];
                    self.layouts[last] = layout;
                    last
                }
            };
            self.compare_layouts(place);
        }
    }

    /// Updates the number of steps that a layout shares with each of the others.
    fn compare_layouts(&mut self, layout: usize) {
        self.n_shared.resize(MAX_LAYOUTS, [0; MAX_LAYOUTS]);
        for other in 0..self.layouts.len() {
            let n_shared = self.layouts[layout].n_shared_steps(&self.layouts[other]);
            self.n_shared[layout][other] = n_shared;
            self.n_shared[other][layout] = n_shared;
        }
    }
}

/// The members of a line that determine its place in the conversation. Texts are as written, and contain no
/// escapes.
#[derive(Clone, Copy, Debug)]
pub struct LineOutline<'a> {
    line: &'a [u8],
    values: &'a OutlineValues,
    /// The layout, and the offsets of its literals, if the line was compared with an earlier one.
    layout: Option<(&'a LineLayout, &'a LiteralStarts)>,
}

/// The values of an outline. Texts are offsets in the line.
#[derive(Clone, Debug, Default)]
struct OutlineValues {
    kind: Option<Kind>,
    is_sidechain: bool,
    is_api_error: bool,
    has_message: bool,
    has_other_keys: bool,
    nested: Option<NestedOutline>,
    /// Whether the message has an object with figures.
    has_figures: bool,
    /// The start and the end of each [`Text`], and of each [`BlockText`] of each block. Zero if there is
    /// none. Those of a line with a layout follow from the layout.
    offsets: Vec<u32>,
    blocks: Vec<BlockForm>,
}

/// A text of an outline.
#[derive(Clone, Copy, Debug)]
enum Text {
    Uuid,
    Parent,
    Timestamp,
    RequestId,
    Subtype,
    BodyType,
    HookEvent,
    AgentId,
    MessageId,
    Model,
    StopReason,
    Content,
}

/// The number of texts of an outline.
const N_TEXTS: usize = 12;

/// A text of a block.
#[derive(Clone, Copy, Debug)]
enum BlockText {
    Id,
    Name,
    Input,
}

/// The number of texts of a block.
const N_BLOCK_TEXTS: usize = 3;

/// The line that a progress line repeats.
#[derive(Clone, Copy, Debug, Default)]
pub struct NestedOutline {
    /// The kind of the line; `None` if it has no type.
    pub kind: Option<Kind>,
    /// Whether it is an error message of the API in place of a reply.
    pub is_api_error: bool,
}

impl<'a> LineOutline<'a> {
    /// Returns the kind of the line; `None` if it has no type.
    #[inline]
    pub fn kind(&self) -> Option<Kind> {
        self.values.kind
    }

    /// Returns the uuid of the line.
    #[inline]
    pub fn uuid(&self) -> Option<&'a [u8]> {
        self.text(Text::Uuid)
    }

    /// Returns the uuid of its parent.
    #[inline]
    pub fn parent(&self) -> Option<&'a [u8]> {
        self.text(Text::Parent)
    }

    /// Returns when it was written.
    #[inline]
    pub fn timestamp(&self) -> Option<&'a [u8]> {
        self.text(Text::Timestamp)
    }

    /// Returns the subtype of a system line.
    #[inline]
    pub fn subtype(&self) -> Option<&'a [u8]> {
        self.text(Text::Subtype)
    }

    /// Returns whether it belongs to a sub-agent.
    #[inline]
    pub fn is_sidechain(&self) -> bool {
        self.values.is_sidechain
    }

    /// Returns whether it is an error message of the API in place of a reply.
    #[inline]
    pub fn is_api_error(&self) -> bool {
        self.values.is_api_error
    }

    /// Returns whether the line has keys besides those of every line of a conversation.
    #[inline]
    pub fn has_other_keys(&self) -> bool {
        self.values.has_other_keys
    }

    /// Returns the type of an attachment or of a progress report.
    #[inline]
    pub fn body_type(&self) -> Option<&'a [u8]> {
        self.text(Text::BodyType)
    }

    /// Returns the event of a hook that an attachment or a progress report is about.
    #[inline]
    pub fn hook_event(&self) -> Option<&'a [u8]> {
        self.text(Text::HookEvent)
    }

    /// Returns the id of the sub-agent that a progress report is about.
    #[inline]
    pub fn agent_id(&self) -> Option<&'a [u8]> {
        self.text(Text::AgentId)
    }

    /// Returns the line that a progress line repeats.
    #[inline]
    pub fn nested(&self) -> Option<NestedOutline> {
        self.values.nested
    }

    /// Returns the id that the API gave to the reply. Like the following ones, it is that of the message of
    /// the line, or of the message that a progress line repeats.
    #[inline]
    pub fn message_id(&self) -> Option<&'a [u8]> {
        self.text(Text::MessageId)
    }

    /// Returns the id of the request that the reply answers.
    #[inline]
    pub fn request_id(&self) -> Option<&'a [u8]> {
        self.text(Text::RequestId)
    }

    /// Returns the model.
    #[inline]
    pub fn model(&self) -> Option<&'a [u8]> {
        self.text(Text::Model)
    }

    /// Returns whether the reply may have ended for an error.
    #[inline]
    pub fn may_be_cut_off(&self) -> bool {
        let reason = self.text(Text::StopReason);
        !matches!(reason, None | Some(b"end_turn" | b"tool_use" | b"stop_sequence"))
    }

    /// Returns the content of the message, as written.
    #[inline]
    pub fn content(&self) -> Option<&'a [u8]> {
        self.text(Text::Content)
    }

    /// Returns the offset after the content of the message; zero if there is none.
    #[inline]
    pub fn content_end(&self) -> usize {
        self.range_at(Text::Content as usize).map_or(0, |range| range.end)
    }

    /// Returns the blocks of the message.
    #[inline]
    pub fn blocks(&self) -> impl Iterator<Item = BlockOutline<'a>> + use<'a> {
        let outline = *self;
        outline.values.blocks.iter().enumerate().map(move |(block, &form)| {
            let text = |text: BlockText| outline.text_at(block_text_index(block, text));
            BlockOutline {
                form,
                id: text(BlockText::Id),
                name: text(BlockText::Name),
                input: text(BlockText::Input),
            }
        })
    }

    /// Returns the forms of the blocks of the message.
    #[inline]
    pub fn block_forms(&self) -> &'a [BlockForm] {
        &self.values.blocks
    }

    /// Returns whether the message has the figures of a reply.
    #[inline]
    pub fn has_figures(&self) -> bool {
        self.values.has_figures
    }

    /// Returns whether the message has a stop reason.
    #[inline]
    pub fn has_stop_reason(&self) -> bool {
        self.text(Text::StopReason).is_some()
    }

    /// Returns a number that the line shares only with lines, read by the same reader, that differ from it in
    /// their variable values. `None` if it was not compared with an earlier line.
    ///
    /// Two lines with one number have the same keys in the same order, also in the figures of a reply.
    #[inline]
    pub fn layout_number(&self) -> Option<u64> {
        self.layout.map(|(layout, _)| layout.number)
    }

    /// Returns the place of a value of this line in lines with the same number, given its offsets. `None` if
    /// it is only a part of a variable value, or contains one.
    pub fn place_of(&self, value: Range<usize>) -> Option<ValuePlace> {
        let (layout, starts) = self.layout?;
        layout.place_of(self.line, &starts.0, value)
    }

    /// Returns the value at a place that a line with the same number returned. A string may lack its quotes,
    /// but then it does so in all of these lines.
    #[inline]
    pub fn value_at(&self, place: &ValuePlace) -> Option<&'a [u8]> {
        let (layout, starts) = self.layout?;
        layout.value_at(self.line, &starts.0, place)
    }

    #[inline]
    fn text(&self, text: Text) -> Option<&'a [u8]> {
        self.text_at(text as usize)
    }

    /// Returns the text with this index, if the line has it.
    #[inline(always)]
    fn text_at(&self, index: usize) -> Option<&'a [u8]> {
        self.line.get(self.range_at(index)?)
    }

    /// Returns the offsets of the text with this index.
    #[inline(always)]
    fn range_at(&self, index: usize) -> Option<Range<usize>> {
        match self.layout {
            Some((layout, starts)) => layout.range_at(&starts.0, index),
            None => self.values.range_at(index),
        }
    }
}

impl OutlineValues {
    /// Removes all values, and keeps the memory.
    fn clear(&mut self) {
        let Self { mut offsets, mut blocks, .. } = std::mem::take(self);
        offsets.clear();
        offsets.resize(2 * N_TEXTS, 0);
        blocks.clear();
        *self = Self { offsets, blocks, ..Self::default() };
    }

    /// Returns the offsets of the text with this index, if the line has it.
    fn range_at(&self, index: usize) -> Option<Range<usize>> {
        let &[start, end] = self.offsets.get(2 * index..)?.first_chunk()?;
        // No text begins at the start of a line.
        (start > 0).then_some(start as usize..end as usize)
    }
}

/// Returns the index of a text of a block.
fn block_text_index(block: usize, text: BlockText) -> usize {
    N_TEXTS + N_BLOCK_TEXTS * block + text as usize
}

/// A block of a message. Texts are as written, and contain no escapes.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockOutline<'a> {
    /// The kind of the block, and whether it has failed.
    pub form: BlockForm,
    /// The id of a call, or of the call that a result answers.
    pub id: Option<&'a [u8]>,
    /// The name of the tool that a call uses.
    pub name: Option<&'a [u8]>,
    /// The input of a call, as written.
    pub input: Option<&'a [u8]>,
}

/// The kind and the state of a block. The blocks of all lines with one layout have the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockForm {
    /// The kind of the block.
    pub kind: BlockKind,
    /// Whether it is the result of a failed call.
    pub is_error: bool,
}

/// The kind of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockKind {
    /// Text.
    Text,
    /// Thinking.
    Thinking,
    /// A call of a tool of the client.
    ToolUse,
    /// The result of such a call.
    ToolResult,
    /// Another call.
    OtherCall,
    /// The result of another call.
    OtherResult,
    /// A block of another type, or without one.
    #[default]
    Other,
}

impl BlockKind {
    /// Returns the kind of blocks of this type.
    pub fn named(kind: &[u8]) -> Self {
        match std::str::from_utf8(kind) {
            Ok(value::TEXT) => Self::Text,
            Ok(value::THINKING) => Self::Thinking,
            Ok(value::TOOL_USE) => Self::ToolUse,
            Ok(value::TOOL_RESULT) => Self::ToolResult,
            Ok(value::MCP_TOOL_RESULT) => Self::OtherResult,
            _ if value::is_call(kind) => Self::OtherCall,
            _ => Self::Other,
        }
    }

    /// Returns whether the block is a call of a tool.
    #[inline]
    pub fn is_call(self) -> bool {
        matches!(self, Self::ToolUse | Self::OtherCall)
    }

    /// Returns whether the block is the result of a call.
    #[inline]
    pub fn is_result(self) -> bool {
        matches!(self, Self::ToolResult | Self::OtherResult)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Position;

    /// Describes the outline of a line.
    fn describe(outline: &LineOutline<'_>) -> String {
        let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or(b"-")).into_owned();
        let mut out = format!("{:?} {} <- {}", outline.kind(), text(outline.uuid()), text(outline.parent()));
        let flags = [
            outline.is_sidechain(),
            outline.is_api_error(),
            outline.may_be_cut_off(),
            outline.has_other_keys(),
        ];
        out += &format!(" {:?} {:?}", flags.map(u8::from), outline.nested());
        for value in [
            outline.timestamp(),
            outline.request_id(),
            outline.subtype(),
            outline.body_type(),
            outline.hook_event().or(outline.agent_id()),
            outline.message_id(),
            outline.model(),
            outline.content(),
        ] {
            out += &format!(" {}", text(value));
        }
        for block in outline.blocks() {
            let BlockOutline { form: BlockForm { kind, is_error }, id, name, input } = block;
            out += &format!("; {kind:?} {} {} {} {is_error}", text(id), text(name), text(input));
        }
        out
    }

    fn read(line: &str) -> Option<String> {
        OutlineReader::default().read(line.as_bytes()).map(|outline| describe(&outline))
    }

    /// Checks that a reader which knows other lines returns the outline of each line that a new one does.
    fn check_lines<'l>(lines: impl IntoIterator<Item = &'l [u8]>) -> usize {
        let mut reader = OutlineReader::default();
        let mut n_learnt = 0;
        let lines: Vec<&[u8]> = lines.into_iter().collect();
        let mut outlines = Vec::new();
        for &line in &lines {
            let walked = OutlineReader::default().read(line).map(|outline| describe(&outline));
            n_learnt += usize::from(reader.find_layout(line).is_some_and(|(_, length)| length == line.len()));
            assert_eq!(reader.read(line).map(|outline| describe(&outline)), walked);
            outlines.push((line.to_vec(), walked));
        }
        // The lines of a block end where the block has line breaks, whatever they contain.
        outlines.pop_if(|(line, _)| line.is_empty());
        let block = LineBlock { bytes: &lines.join(&b'\n'), at: Position::START };
        let mut in_block = Vec::new();
        OutlineReader::default().read_block(&block, |line, outline| {
            in_block.push((line.bytes.to_vec(), outline.map(describe)));
        });
        assert_eq!(in_block, outlines);
        n_learnt
    }

    #[test]
    fn a_line_with_very_many_short_values_has_no_outline() {
        let line = |block: &str, n_blocks: usize| {
            let blocks = [block].repeat(n_blocks).join(",");
            format!(r#"{{"type":"user","message":{{"content":[{blocks}]}}}}"#)
        };
        for block in ["{}", "\"a\"", r#"{"type":"text"}"#] {
            assert!(read(&line(block, 100)).is_some());
            let mut reader = OutlineReader::default();
            let long = line(block, 100_000);
            assert!(reader.read(long.as_bytes()).is_none());
            assert!(
                reader.walker.variables.len() * 12 + reader.walker.values.offsets.len() * 4 < 2 * long.len()
            );
        }
        let call = r#"{"type":"tool_use","id":"toolu_0123456789","name":"Bash","input":{"command":"ls"}}"#;
        assert!(read(&line(call, 10_000)).is_some());
    }

    #[test]
    fn a_result_has_the_id_of_its_call() {
        let line = r#"{"parentUuid":"p","isSidechain":false,"type":"user","message":{"role":"user","content":[{"tool_use_id":"t","type":"tool_result","content":[{"type":"text","text":"\"}]"}],"is_error":true}]},"toolUseResult":{"uuid":"v"},"uuid":"u"}"#;
        let content = &line[line.find('[').unwrap()..=line.rfind(']').unwrap()];
        let expected =
            format!("Some(User) u <- p [0, 0, 0, 1] None - - - - - - - {content}; ToolResult t - - true");
        assert_eq!(read(line), Some(expected));
    }

    #[test]
    fn a_reply_is_read_to_its_end() {
        let content = r#"[{"type":"tool_use","id":"t","name":"Bash","input":{"id":"x"}},{"type":"text"},7]"#;
        let line = format!(
            r#"{{"parentUuid":null,"message":{{"model":"m","id":"i","content":{content},"stop_reason":"refusal"}},"type":"assistant","uuid":"u","isApiErrorMessage":true,"requestId":"r","timestamp":"time"}}"#
        );
        let blocks = r#"ToolUse t Bash {"id":"x"} false; Text - - - false"#;
        let expected =
            format!("Some(Assistant) u <- - [0, 1, 1, 0] None time r - - - i m {content}; {blocks}");
        assert_eq!(read(&line), Some(expected));
    }

    #[test]
    fn a_progress_line_has_the_message_that_it_repeats() {
        let line = r#"{"type":"progress","data":{"type":"agent_progress","message":{"type":"assistant","timestamp":"y","message":{"id":"m","content":[]},"requestId":"r"}},"uuid":"u","timestamp":"x"}"#;
        let nested = "Some(NestedOutline { kind: Some(Assistant), is_api_error: false })";
        let expected = format!("Some(Progress) u <- - [0, 0, 0, 0] {nested} x r - agent_progress - m - []");
        assert_eq!(read(line), Some(expected));
        let line = line.replace(r#""r"}}"#, r#""r","agentId":"x"},"agentId":"a"}"#);
        assert_eq!(OutlineReader::default().read(line.as_bytes()).unwrap().agent_id(), Some(&b"a"[..]));
    }

    #[test]
    fn similar_lines_are_compared_with_earlier_ones() {
        let line = |n: usize, text: &str| {
            let branch = if n < 6 { "main" } else { "a long name" };
            format!(
                r#"{{"parentUuid":"p{n}","isSidechain":false,"gitBranch":"{branch}","message":{{"id":"{text}","content":[{{"type":"text","text":"{text}"}}],"stop_reason":null,"usage":{{"n":{n}}}}},"type":"assistant","uuid":"u{n}{}"}}"#,
                "u".repeat(n)
            )
        };
        let lines: Vec<String> = (0..12).map(|n| line(n, &"text ".repeat(n))).collect();
        assert_eq!(check_lines(lines.iter().map(String::as_bytes)), 9);
        // Values of another form are not taken for the same.
        let known = line(3, "a");
        for (part, other) in [
            (r#""id":"a""#, r#""id":"\u0061""#),
            (r#""id":"a""#, r#""id":null"#),
            (r#""id":"a""#, r#""id":7"#),
            (r#""type":"text""#, r#""type":"tool_use""#),
            (r#"{"type":"text","text":"a"}"#, r#""a""#),
            (r#""usage":{"n":3}"#, r#""usage":[]"#),
            (r#""isSidechain":false"#, r#""isSidechain":true"#),
            (r#""uuid":"u3uuu""#, r#""uuid":"""#),
            ("assistant", "user"),
            ("}", "} "),
            ("}", "}}"),
        ] {
            assert_ne!(known.replacen(part, other, 1), known);
            check_lines(
                lines.iter().map(String::as_bytes).chain([known.replacen(part, other, 1).as_bytes()]),
            );
        }
        for end in 0..known.len() {
            check_lines(lines.iter().map(String::as_bytes).chain([&known.as_bytes()[..end]]));
        }
    }

    #[test]
    fn real_lines_are_read_as_if_each_were_the_first() {
        for path in threadline_testkit::shared_logs() {
            check_lines(std::fs::read(&path).unwrap().split(|&byte| byte == b'\n'));
        }
    }

    #[test]
    fn odd_lines_are_not_read() {
        for line in [
            "",
            "7",
            r#"{"type":"user""#,
            r#"{"type":"user"}{}"#,
            r#"{"type":"us\u0065r"}"#,
            r#"{"type":"user","uuid":7}"#,
            r#"{"typ\u0065":"user"}"#,
            r#"{"type":"user","message":"none"}"#,
            r#"{"type":"user","type":"assistant"}"#,
            r#"{"type":"user","message":{},"message":{}}"#,
            r#"{"type":"user","message":{"content":[{"id":"a","tool_use_id":"b"}]}}"#,
            r#"{"type":"progress","message":{},"data":{"message":{"message":{}}}}"#,
            r#"{"type":"progress","requestId":"r","data":{"message":{"message":{}}}}"#,
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
