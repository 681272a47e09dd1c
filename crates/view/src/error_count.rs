//! Counts the errors of a session without building its transcript.

use threadline_entry::lens::AttachmentLine;
use threadline_entry::{Entry, Kind, value};
use threadline_session::{AgentIndex, EntryIndex, InputKind, Session, SessionFamily, Turn};

use crate::transcript::ItemBody;
use crate::transcript_builder::TranscriptBuilder;
use crate::transcript_writer::{BlockContent, TranscriptWriter, cut_off_reason};

/// Returns the number of errors of a session.
///
/// Errors are failed tool calls, API errors, refused and truncated replies, and turns stopped by a hook, in
/// the active conversation and in those of all sub-agents. A call that was denied or interrupted, or has no
/// result, is not an error.
pub fn count_errors(family: &SessionFamily) -> usize {
    let agents = family.agents.indices().map(Some);
    let errors = |agent| count_own_errors(family, agent, family.session(agent).turns().iter());
    std::iter::once(None).chain(agents).map(errors).sum()
}

/// Returns the number of errors in some turns of the session or of a sub-agent, without those of the
/// sub-agents that they started.
pub(crate) fn count_own_errors<'t>(
    family: &SessionFamily,
    agent: Option<AgentIndex>,
    turns: impl Iterator<Item = &'t Turn>,
) -> usize {
    let session = family.session(agent);
    let writer = TranscriptWriter::without_agents(TranscriptBuilder::new(family), agent);
    turns.flat_map(|turn| &turn.entries).map(|&idx| errors_on(&writer, session, idx)).sum()
}

/// Returns the number of errors on a line.
fn errors_on(writer: &TranscriptWriter<'_>, session: &Session, idx: EntryIndex) -> usize {
    if !may_contain_error(session, idx) {
        return 0;
    }
    let is_error = |content: &BlockContent<'_>| match content {
        BlockContent::Call(call) => call.outcome(session).is_error(),
        BlockContent::Body(body) => matches!(body, ItemBody::Error { .. }),
        BlockContent::Compaction => false,
    };
    writer.contents(idx).iter().filter(|(_, content)| is_error(content)).count()
}

/// Returns `false` for lines that certainly contain no error. Most do not, and their content need not be
/// built.
fn may_contain_error(session: &Session, idx: EntryIndex) -> bool {
    let entry = &session.entries()[idx];
    match entry.kind() {
        Kind::System => true,
        Kind::Attachment => is_hook(entry),
        Kind::User => session.input(idx) == Some(InputKind::HookStop),
        Kind::Assistant => {
            entry.is_api_error() || cut_off_reason(entry).is_some() || has_special_block(entry)
        }
        _ => false,
    }
}

fn is_hook(entry: &Entry) -> bool {
    let body = entry.lens::<AttachmentLine<'_>>().and_then(|line| line.attachment());
    body.and_then(|body| body.kind()).is_some_and(|kind| kind.starts_with("hook_"))
}

/// Returns whether a reply contains anything but text and thinking.
fn has_special_block(entry: &Entry) -> bool {
    let mut blocks = entry.message().into_iter().flat_map(|message| message.blocks());
    blocks.any(|block| !["text", "thinking", value::REDACTED_THINKING].iter().any(|kind| block.is(kind)))
}

#[cfg(test)]
mod tests {
    use threadline_testkit::{log, shared_logs};

    use super::*;
    use crate::finding_summary::FindingSummary;
    use crate::line_note::LineNotes;
    use crate::{DetailLevel, Transcript, TranscriptFilter, TranscriptItem, TurnView, layout, transcript};

    /// Asserts that all ways to count the errors of a session agree, and returns their number.
    fn errors(bytes: &[u8]) -> usize {
        let family = SessionFamily::new(Session::from_bytes(bytes), Vec::new());
        let count = count_errors(&family);
        let builder = TranscriptBuilder::new(&family);
        let laid_out = layout(builder, &LineNotes::of(&family), None, None, FindingSummary::default());
        assert_eq!(laid_out.header.errors, count);
        let shown = transcript(&family, &|_| None);
        assert_eq!(shown.header.errors, count);
        let mut failures = shown.clone();
        TranscriptFilter { errors_only: true, ..TranscriptFilter::up_to_level(DetailLevel::Full) }
            .apply(&mut failures);
        assert_eq!(shown_errors(&failures), count);
        // Sub-agents of abandoned branches are shown with the branch.
        if laid_out.branches.is_empty() {
            let turns = crate::outline(&shown.turns);
            let unattached = shown.end.agents.iter().map(|agent| agent.errors);
            let listed = turns.iter().map(|line| line.errors).chain(unattached).sum::<usize>();
            assert_eq!(listed, count);
            assert_eq!(
                laid_out.turns.iter().map(|turn| turn.line.errors).sum::<usize>()
                    + shown.end.agents.iter().map(|agent| agent.errors).sum::<usize>(),
                count
            );
        }
        count
    }

    /// Counts the failed calls and errors of a transcript that was filtered by errors.
    fn shown_errors(transcript: &Transcript) -> usize {
        fn in_turns(turns: &[TurnView]) -> usize {
            turns.iter().flat_map(|turn| &turn.items).map(in_item).sum()
        }
        fn in_item(item: &TranscriptItem) -> usize {
            match &item.body {
                ItemBody::Call(call) => {
                    let agents = call.agents.iter().map(|agent| in_turns(&agent.turns));
                    usize::from(call.is_error()) + agents.sum::<usize>()
                }
                ItemBody::Error { .. } => 1,
                body => panic!("not an error: {body:?}"),
            }
        }
        let end = &transcript.end;
        let branches = end.branches.iter().map(|branch| &branch.turns);
        let agents = end.agents.iter().map(|agent| &agent.turns);
        in_turns(&transcript.turns) + branches.chain(agents).map(|turns| in_turns(turns)).sum::<usize>()
    }

    #[test]
    fn errors_are_failures_not_denials_interruptions_or_missing_results() {
        let count = errors(&log(r#"
u1        user   "weave"
a1 <- u1  reply  m1 tool t1 Bash {"command":"make"}
r1 <- a1  result t1 "exit 2" error
a2 <- r1  reply  m2 tool t2 Bash {"command":"make"}
r2 <- a2  result t2 "The user doesn't want to proceed with this tool use." error
a3 <- r2  reply  m3 tool t3 Bash {"command":"make"}
r3 <- a3  result t3 "[Request interrupted by user for tool use]" error
a4 <- r3  reply  m4 text "API Error: overloaded" +{"isApiErrorMessage":true}
u2 <- a4  user   "Operation stopped by hook: no"
a5 <- u2  reply  m5 tool t5 Bash {"command":"make"}
"#));
        assert_eq!(count, 3);
    }

    #[test]
    fn errors_of_abandoned_branches_do_not_count() {
        let count = errors(&log(r#"
u1        user   "weave"
a1 <- u1  reply  m1 tool t1 Bash {"command":"make"}
r1 <- a1  result t1 "exit 2" error
u2        user   "weave"
a2 <- u2  reply  m2 text "done"
"#));
        assert_eq!(count, 0);
    }

    #[test]
    fn real_sessions_have_the_same_count_everywhere() {
        for path in shared_logs() {
            errors(&std::fs::read(&path).unwrap());
        }
    }
}
