//! The tested operations, and the changes that each may make to a request.

use std::collections::HashSet;

use super::request::RequestBlock;

/// An operation: its arguments, and its permitted effect on the messages of a resume.
pub(crate) struct TestedOperation {
    /// The arguments of `threadline edit`, without the session.
    pub(crate) args: &'static [&'static str],
    pub(crate) effect: PermittedEffect,
}

/// The permitted effect on the messages of a resume. Everything else must stay the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PermittedEffect {
    /// No change.
    Unchanged,
    /// Removes the messages after a cut.
    Cut,
    /// May remove calls with their results, and the thinking before them; if `true`, must remove all of them.
    Tools(bool),
    /// May truncate results and inputs.
    Truncate,
    /// Removes thinking.
    Thinking,
    /// Removes images, and may leave a placeholder for each.
    Images,
    /// May remove or truncate tool calls, and remove thinking and images.
    Preset,
    /// Replaces older turns by a summary that contains the prompts verbatim.
    Compress,
    /// May replace words in texts, and remove thinking.
    ReplaceWords,
    /// Repairs problems, so affected messages may differ.
    Repaired,
}

/// Returns every operation with its options and presets.
pub(crate) fn operations() -> Vec<TestedOperation> {
    let all: &[(PermittedEffect, &[&'static [&'static str]])] = &[
        (
            PermittedEffect::Unchanged,
            &[
                &["clone"],
                &["strip", "--progress"],
                &["strip", "--attachments"],
                &["strip", "--snapshots"],
                &["strip", "--progress", "--attachments", "--snapshots", "--in-place"],
            ],
        ),
        (PermittedEffect::Cut, &[&["clone", "--to", "1"]]),
        (PermittedEffect::Tools(true), &[&["strip", "--tools"]]),
        (
            PermittedEffect::Tools(false),
            &[
                &["strip", "--tools=Bash"],
                &["strip", "--tools", "--older-than", "1"],
                &["strip", "--tools", "--keep-last", "1"],
            ],
        ),
        (PermittedEffect::Truncate, &[&["strip", "--tools", "--truncate"]]),
        (PermittedEffect::Thinking, &[&["strip", "--thinking"]]),
        (PermittedEffect::Images, &[&["strip", "--images"]]),
        (
            PermittedEffect::Preset,
            &[
                &["strip", "--preset", "light"],
                &["strip", "--preset", "standard"],
                &["strip", "--preset", "heavy"],
                &["strip", "--preset", "extreme"],
                &["strip", "--preset", "standard", "--in-place"],
                &["strip", "--preset", "extreme", "--in-place"],
            ],
        ),
        (PermittedEffect::Compress, &[&["compress"], &["compress", "--in-place"]]),
        (PermittedEffect::ReplaceWords, &[&["redact"], &["redact", "--emails", "--paths", "--in-place"]]),
        (PermittedEffect::Repaired, &[&["repair"], &["repair", "--in-place"]]),
    ];
    all.iter()
        .flat_map(|(effect, all)| all.iter().map(|args| TestedOperation { args, effect: *effect }))
        .collect()
}

impl TestedOperation {
    pub(crate) fn name(&self) -> String {
        self.args.join(" ")
    }

    /// Returns whether the operation only replaces words.
    pub(crate) fn replaces_words(&self) -> bool {
        self.effect == PermittedEffect::ReplaceWords
    }

    /// Returns whether the operation replaces words in place and leaves everything else, including problems.
    pub(crate) fn keeps_problems(&self) -> bool {
        self.replaces_words() && self.args.contains(&"--in-place")
    }

    /// Checks that the operation may produce the messages of `result` from those of `source`.
    ///
    /// `meta` are texts with the role of the user that no person typed. If `nameless`, some lines of the
    /// source have no uuid: Claude Code reads only the last of them, while the result contains all, so it may
    /// have more.
    pub(crate) fn check(
        &self,
        source: &[RequestBlock],
        result: &[RequestBlock],
        nameless: bool,
        meta: &HashSet<String>,
    ) -> Result<(), String> {
        if result.is_empty() {
            return Err("empty result".to_owned());
        }
        if nameless {
            return match self.effect {
                PermittedEffect::Unchanged => check_order(source, result, |_| false, |_, _| false, |_| true),
                PermittedEffect::ReplaceWords => check_order(
                    source,
                    result,
                    is_thinking,
                    |a, b| a.kind == b.kind && a.id == b.id,
                    |_| true,
                ),
                _ => Ok(()),
            };
        }
        // Replies before the first prompt are not part of the conversation and may be removed.
        let asked = source.iter().position(|block| block.role == "user" && !block.kind.starts_with("tool_"));
        let source = match (&source[asked.unwrap_or(0)..], result.first()) {
            (later, Some(first)) if source.first() != Some(first) && later.first() == Some(first) => later,
            _ => source,
        };
        match self.effect {
            PermittedEffect::Unchanged => {
                check_order(source, result, |_| false, restores_missing_result, |_| false)
            }
            // A prompt removed by a compaction reappears if the cut is before the compaction.
            PermittedEffect::Cut if source.iter().any(is_summary) => Ok(()),
            PermittedEffect::Cut => match result.len() <= source.len() && source[..result.len()] == *result {
                true => Ok(()),
                false => Err("not the beginning of the source".to_owned()),
            },
            PermittedEffect::Tools(all) => {
                let left = result.iter().find(|block| all && block.kind.starts_with("tool_"));
                match left {
                    Some(block) => Err(format!("{} {} not removed", block.kind, block.id)),
                    None => {
                        check_order(source, result, is_tool_or_thinking, restores_missing_result, is_text)
                    }
                }
            }
            PermittedEffect::Truncate => check_order(
                source,
                result,
                is_thinking,
                |a, b| is_shorter(a, b) || restores_missing_result(a, b),
                |_| false,
            ),
            PermittedEffect::Thinking => {
                // The last reply keeps its thinking while its calls are being answered.
                let last = result.iter().rposition(|block| block.role == "user").unwrap_or(0);
                let last = result[..last].iter().rposition(|block| block.role == "user").unwrap_or(0);
                match result[..last].iter().any(is_thinking) {
                    true => Err("thinking not removed".to_owned()),
                    false => check_order(source, result, is_thinking, restores_missing_result, |_| false),
                }
            }
            PermittedEffect::Images => match result.iter().any(is_image) {
                true => Err("image not removed".to_owned()),
                false => check_order(source, result, is_image, same_call, is_text),
            },
            PermittedEffect::Preset => check_order(
                source,
                result,
                |block| is_tool_or_thinking(block) || is_image(block),
                |a, b| is_shorter(a, b) || same_call(a, b),
                is_text,
            ),
            PermittedEffect::Compress => check_compressed(source, result, meta),
            PermittedEffect::ReplaceWords => {
                check_order(source, result, is_thinking, |a, b| a.kind == b.kind && a.id == b.id, |_| false)
            }
            PermittedEffect::Repaired => check_order(source, result, |_| true, same_call, |_| true),
        }
    }
}

fn is_text(block: &RequestBlock) -> bool {
    block.kind == "text"
}

fn is_thinking(block: &RequestBlock) -> bool {
    block.kind.ends_with("thinking")
}

fn is_image(block: &RequestBlock) -> bool {
    matches!(&*block.kind, "image" | "document")
        || (block.kind == "tool_result" && (block.content.contains("\"type\":\"image\"")))
}

fn is_tool_or_thinking(block: &RequestBlock) -> bool {
    block.kind.starts_with("tool_") || is_thinking(block)
}

fn is_summary(block: &RequestBlock) -> bool {
    block.role == "user" && block.content.starts_with("This session is being continued")
}

fn same_call(a: &RequestBlock, b: &RequestBlock) -> bool {
    a.kind == b.kind && a.id == b.id && a.kind.starts_with("tool_")
}

/// Returns whether `a` is Claude Code's placeholder for a missing result, and `b` is the actual result.
///
/// That result is written after another reply in the source.
fn restores_missing_result(a: &RequestBlock, b: &RequestBlock) -> bool {
    same_call(a, b) && a.is_error && a.content == "[Tool result missing due to internal error]"
}

fn is_shorter(a: &RequestBlock, b: &RequestBlock) -> bool {
    same_call(a, b) && b.content.len() <= a.content.len()
}

/// Checks that `result` equals `source` in order, except for blocks that may be removed, changed or added.
fn check_order(
    source: &[RequestBlock],
    result: &[RequestBlock],
    may_go: impl Fn(&RequestBlock) -> bool,
    may_change: impl Fn(&RequestBlock, &RequestBlock) -> bool,
    may_come: impl Fn(&RequestBlock) -> bool,
) -> Result<(), String> {
    let mut at = 0;
    for block in result {
        let same = |other: &RequestBlock| other == block || may_change(other, block);
        match source[at..].iter().position(same) {
            Some(step) if source[at..at + step].iter().all(&may_go) => at += step + 1,
            _ if may_come(block) => {}
            Some(step) => {
                let lost = source[at..at + step].iter().find(|block| !may_go(block));
                return Err(format!("lost: {}", lost.map(describe).unwrap_or_default()));
            }
            None => return Err(format!("not in the source: {}", describe(block))),
        }
    }
    match source[at..].iter().find(|block| !may_go(block)) {
        Some(block) => Err(format!("lost: {}", describe(block))),
        None => Ok(()),
    }
}

/// Checks that the summary contains the prompts of older turns verbatim, and that the rest is unchanged.
fn check_compressed(
    source: &[RequestBlock],
    result: &[RequestBlock],
    meta: &HashSet<String>,
) -> Result<(), String> {
    let Some((summary, rest)) =
        result.split_first().filter(|(first, _)| is_text(first) && first.role == "user")
    else {
        return Err("no summary".to_owned());
    };
    // The messages that are kept are the end of the source.
    let kept = rest.iter().rev().zip(source.iter().rev()).take_while(|(a, b)| a == b).count();
    if kept < rest.len() {
        return Err(format!("not in the source: {}", describe(&rest[rest.len() - kept - 1])));
    }
    let summarised = source[..source.len() - kept].iter();
    let prompts = summarised.filter(|block| {
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
            return Err(format!("missing in the summary: {}", describe(prompt)));
        }
    }
    Ok(())
}

fn describe(block: &RequestBlock) -> String {
    let shown: String = block.content.chars().take(60).collect();
    format!("{} {} {} {shown:?}", block.role, block.kind, block.id)
}
