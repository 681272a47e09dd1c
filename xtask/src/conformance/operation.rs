//! The operations that are tried, and what each may do to what is sent.

use std::collections::HashSet;

use super::request::Block;

/// An operation: its arguments, and what it may do to the messages of a resume.
pub(crate) struct Operation {
    /// What stands behind `threadline edit`, the session aside.
    pub(crate) args: &'static [&'static str],
    pub(crate) effect: Effect,
}

/// What an operation may do to the messages of a resume. What is not named here must come out as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing.
    Same,
    /// What comes after a cut goes.
    Cut,
    /// Calls and their results may go, and thinking that led to them; with `true`, all of them must.
    Tools(bool),
    /// Results and inputs may be cut short.
    Shorter,
    /// Thinking goes.
    Thinking,
    /// Images go, and a note may stand for each.
    Images,
    /// Any of the three above.
    Preset,
    /// Older turns are told in a summary, prompts in their own words.
    Compress,
    /// Texts may have other words in them, and thinking may go.
    Words,
    /// Faults are mended, so faulty messages may differ.
    Mended,
}

/// Every operation, its options and presets.
pub(crate) fn operations() -> Vec<Operation> {
    let all: &[(Effect, &[&'static [&'static str]])] = &[
        (
            Effect::Same,
            &[
                &["clone"],
                &["strip", "--progress"],
                &["strip", "--attachments"],
                &["strip", "--snapshots"],
                &["strip", "--progress", "--attachments", "--snapshots", "--in-place"],
            ],
        ),
        (Effect::Cut, &[&["clone", "--to", "1"]]),
        (Effect::Tools(true), &[&["strip", "--tools"]]),
        (
            Effect::Tools(false),
            &[
                &["strip", "--tools=Bash"],
                &["strip", "--tools", "--older-than", "1"],
                &["strip", "--tools", "--keep-last", "1"],
            ],
        ),
        (Effect::Shorter, &[&["strip", "--tools", "--truncate"]]),
        (Effect::Thinking, &[&["strip", "--thinking"]]),
        (Effect::Images, &[&["strip", "--images"]]),
        (
            Effect::Preset,
            &[
                &["strip", "--preset", "light"],
                &["strip", "--preset", "standard"],
                &["strip", "--preset", "heavy"],
                &["strip", "--preset", "extreme"],
                &["strip", "--preset", "standard", "--in-place"],
                &["strip", "--preset", "extreme", "--in-place"],
            ],
        ),
        (Effect::Compress, &[&["compress"], &["compress", "--in-place"]]),
        (Effect::Words, &[&["redact"], &["redact", "--emails", "--paths", "--in-place"]]),
        (Effect::Mended, &[&["repair"], &["repair", "--in-place"]]),
    ];
    all.iter().flat_map(|(effect, all)| all.iter().map(|args| Operation { args, effect: *effect })).collect()
}

impl Operation {
    pub(crate) fn name(&self) -> String {
        self.args.join(" ")
    }

    /// Whether it puts other words in the place of some, and no more.
    pub(crate) fn changes_words(&self) -> bool {
        self.effect == Effect::Words
    }

    /// Whether it changes words where they stand and leaves everything else, faults too, as it is.
    pub(crate) fn leaves_faults(&self) -> bool {
        self.changes_words() && self.args.contains(&"--in-place")
    }

    /// Whether the messages of the result are what the operation may make of those of the source.
    ///
    /// `meta` is what nobody typed, though it has the role of the user. Where lines of the source are `nameless`, Claude Code sees the last of them alone, and the result has all: more may come.
    pub(crate) fn fits(
        &self,
        source: &[Block],
        result: &[Block],
        nameless: bool,
        meta: &HashSet<String>,
    ) -> Result<(), String> {
        if result.is_empty() {
            return Err("nothing is left".to_owned());
        }
        if nameless {
            return match self.effect {
                Effect::Same => in_order(source, result, |_| false, |_, _| false, |_| true),
                Effect::Words => {
                    in_order(source, result, is_thinking, |a, b| a.kind == b.kind && a.id == b.id, |_| true)
                }
                _ => Ok(()),
            };
        }
        // What the model said before anybody asked is no conversation: it may go.
        let asked = source.iter().position(|block| block.role == "user" && !block.kind.starts_with("tool_"));
        let source = match (&source[asked.unwrap_or(0)..], result.first()) {
            (later, Some(first)) if source.first() != Some(first) && later.first() == Some(first) => later,
            _ => source,
        };
        match self.effect {
            Effect::Same => in_order(source, result, |_| false, is_brought_back, |_| false),
            // A prompt that was compacted away comes back when the cut lies before the compaction.
            Effect::Cut if source.iter().any(is_summary) => Ok(()),
            Effect::Cut => match result.len() <= source.len() && source[..result.len()] == *result {
                true => Ok(()),
                false => Err("not the beginning of the source".to_owned()),
            },
            Effect::Tools(all) => {
                let left = result.iter().find(|block| all && block.kind.starts_with("tool_"));
                match left {
                    Some(block) => Err(format!("{} {} is left", block.kind, block.id)),
                    None => in_order(source, result, is_tool_or_thinking, is_brought_back, is_text),
                }
            }
            Effect::Shorter => in_order(
                source,
                result,
                is_thinking,
                |a, b| is_shorter(a, b) || is_brought_back(a, b),
                |_| false,
            ),
            Effect::Thinking => {
                // The last reply keeps it while its calls are being answered.
                let last = result.iter().rposition(|block| block.role == "user").unwrap_or(0);
                let last = result[..last].iter().rposition(|block| block.role == "user").unwrap_or(0);
                match result[..last].iter().any(is_thinking) {
                    true => Err("thinking is left".to_owned()),
                    false => in_order(source, result, is_thinking, is_brought_back, |_| false),
                }
            }
            Effect::Images => match result.iter().any(is_image) {
                true => Err("an image is left".to_owned()),
                false => in_order(source, result, is_image, same_call, is_text),
            },
            Effect::Preset => in_order(
                source,
                result,
                |block| is_tool_or_thinking(block) || is_image(block),
                |a, b| is_shorter(a, b) || same_call(a, b),
                is_text,
            ),
            Effect::Compress => compressed(source, result, meta),
            Effect::Words => {
                in_order(source, result, is_thinking, |a, b| a.kind == b.kind && a.id == b.id, |_| false)
            }
            Effect::Mended => in_order(source, result, |_| true, same_call, |_| true),
        }
    }
}

fn is_text(block: &Block) -> bool {
    block.kind == "text"
}

fn is_thinking(block: &Block) -> bool {
    block.kind.ends_with("thinking")
}

fn is_image(block: &Block) -> bool {
    matches!(&*block.kind, "image" | "document")
        || (block.kind == "tool_result" && (block.content.contains("\"type\":\"image\"")))
}

fn is_tool_or_thinking(block: &Block) -> bool {
    block.kind.starts_with("tool_") || is_thinking(block)
}

fn is_summary(block: &Block) -> bool {
    block.role == "user" && block.content.starts_with("This session is being continued")
}

fn same_call(a: &Block, b: &Block) -> bool {
    a.kind == b.kind && a.id == b.id && a.kind.starts_with("tool_")
}

/// Whether a result stands in for the word that it was lost: it had come behind another reply.
fn is_brought_back(a: &Block, b: &Block) -> bool {
    same_call(a, b) && a.is_error && a.content == "[Tool result missing due to internal error]"
}

fn is_shorter(a: &Block, b: &Block) -> bool {
    same_call(a, b) && b.content.len() <= a.content.len()
}

/// Whether `result` is `source` in the same order, but for blocks that may go, change or come.
fn in_order(
    source: &[Block],
    result: &[Block],
    may_go: impl Fn(&Block) -> bool,
    may_change: impl Fn(&Block, &Block) -> bool,
    may_come: impl Fn(&Block) -> bool,
) -> Result<(), String> {
    let mut at = 0;
    for block in result {
        let same = |other: &Block| other == block || may_change(other, block);
        match source[at..].iter().position(same) {
            Some(step) if source[at..at + step].iter().all(&may_go) => at += step + 1,
            _ if may_come(block) => {}
            Some(step) => {
                let lost = source[at..at + step].iter().find(|block| !may_go(block));
                return Err(format!("lost: {}", lost.map(tell).unwrap_or_default()));
            }
            None => return Err(format!("not of the source: {}", tell(block))),
        }
    }
    match source[at..].iter().find(|block| !may_go(block)) {
        Some(block) => Err(format!("lost: {}", tell(block))),
        None => Ok(()),
    }
}

/// Whether older turns are in the summary, prompts in their own words, and the rest is as it was.
fn compressed(source: &[Block], result: &[Block], meta: &HashSet<String>) -> Result<(), String> {
    let Some((summary, rest)) =
        result.split_first().filter(|(first, _)| is_text(first) && first.role == "user")
    else {
        return Err("no summary".to_owned());
    };
    // What is kept is the end of the source.
    let kept = rest.iter().rev().zip(source.iter().rev()).take_while(|(a, b)| a == b).count();
    if kept < rest.len() {
        return Err(format!("not of the source: {}", tell(&rest[rest.len() - kept - 1])));
    }
    let told = source[..source.len() - kept].iter();
    let prompts = told.filter(|block| {
        block.role == "user"
            && is_text(block)
            && !block.content.starts_with(['<', '['])
            && !block.content.starts_with("Caveat:")
            && !meta.contains(&block.content)
    });
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let summary = squeezed(&summary.content);
    for prompt in prompts.filter(|block| block.content.len() < 2000 && !is_summary(block)) {
        if !summary.contains(&squeezed(&prompt.content)) {
            return Err(format!("not told: {}", tell(prompt)));
        }
    }
    Ok(())
}

fn tell(block: &Block) -> String {
    let shown: String = block.content.chars().take(60).collect();
    format!("{} {} {} {shown:?}", block.role, block.kind, block.id)
}
