//! The totals of a plan: tokens and bytes before and after, by turn, and the soundness check.

use sha2::{Digest as _, Sha256};
use threadline_entry::{Entry, Kind, key};
use threadline_session::{
    ClientVersion, EntryIndex, IndexVec, MAX_NAMED_LINES, RuleViolation, SoundnessBaseline, SoundnessChecker,
    SoundnessRule,
};

use crate::arrange::{ResultOrigin, is_boundary, is_tree};
use crate::draft::LineContent;
use crate::plan::{ContentDigest, EditPlan, PlanTarget};
use crate::tokens::tokens;
use crate::usage_reset;

/// The totals of a plan.
#[derive(Debug, Default)]
pub(crate) struct PlanTotals {
    pub(crate) tokens_before: u64,
    pub(crate) tokens_after: u64,
    pub(crate) digest: ContentDigest,
    pub(crate) turns: Vec<TurnChange>,
    pub(crate) refusals: Vec<String>,
}

/// The change of one turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnChange {
    /// The turn's number, from 1.
    pub number: usize,
    /// The line that opens the turn, as changed by the edit.
    pub prompt: Option<Entry>,
    /// The number of lines in the log and in the result.
    pub lines: (u64, u64),
    /// The number of bytes in the log and in the result.
    pub bytes: (u64, u64),
    /// The estimated tokens that a resume sends, of the log and of the result.
    pub tokens: (u64, u64),
}

impl TurnChange {
    fn is_change(&self) -> bool {
        self.tokens.0 != self.tokens.1 || self.lines.0 != self.lines.1
    }
}

impl PlanTotals {
    pub(crate) fn of(plan: &EditPlan<'_>) -> Self {
        let session = plan.session();
        let n = session.entries().len();
        let mut turns: Vec<TurnChange> = Vec::new();
        let mut turn_of = IndexVec::filled(None, n);
        for turn in session.turns() {
            let prompt = turn.prompt.map(|idx| plan.draft().entry(idx).into_owned());
            for &idx in &turn.entries {
                turn_of[idx] = Some(turns.len());
            }
            turns.push(TurnChange { number: turn.number, prompt, ..TurnChange::default() });
        }
        let mut tally = Self::default();
        let mut before = SoundnessChecker::before_edit(session);
        let mut sent = IndexVec::filled(false, n);
        for idx in session.resumed_lines().unwrap_or_default() {
            sent[idx] = true;
        }
        for (idx, entry) in session.entries().enumerated() {
            let bytes = entry.as_bytes().len() as u64
                + u64::from(entry.ending() == threadline_entry::Ending::Newline);
            let worth = if sent[idx] { tokens(entry) } else { 0 };
            before.push(entry);
            tally.tokens_before += worth;
            if let Some(turn) = turn_of[idx].map(|turn| &mut turns[turn]) {
                turn.lines.0 += 1;
                turn.bytes.0 += bytes;
                turn.tokens.0 += worth;
            }
        }
        let before = before.baseline();
        let after = tally.add_result(plan, &sent, &turn_of, &mut turns);
        tally.check_soundness(plan, &before, &after);
        if plan.draft().changes_every_line || matches!(plan.options().target, PlanTarget::New(_)) {
            let over_limit = session.entries().iter().filter(|entry| entry.is_over_limit());
            tally.refusals.extend(over_limit.take(MAX_NAMED_LINES).map(|entry| {
                format!("line {}: the line exceeds the limits, so it cannot be changed", entry.at().line_no)
            }));
        }
        turns.retain(TurnChange::is_change);
        tally.turns = turns;
        tally
    }

    fn add_result(
        &mut self,
        plan: &EditPlan<'_>,
        sent: &IndexVec<EntryIndex, bool>,
        turn_of: &IndexVec<EntryIndex, Option<usize>>,
        turns: &mut [TurnChange],
    ) -> SoundnessChecker {
        let in_place = plan.options().target == PlanTarget::KeepOrder;
        let lines = plan.lines();
        let is_start = |at: &usize| {
            lines[*at].in_chain && is_boundary(crate::arrange::entry_of(plan.draft(), lines[*at].origin))
        };
        let start = (0..lines.len()).rev().find(is_start).unwrap_or(0);
        let mut hash = Sha256::new();
        let mut soundness = SoundnessChecker::of_session(&plan.target_id().unwrap_or_default());
        let mut length = 0;
        let mut turn = None;
        for (at, line) in lines.iter().enumerate() {
            let mut bytes = Vec::new();
            plan.render(at, &mut bytes);
            let (entry, _) = Entry::parse_owned(bytes);
            soundness.push(&entry);
            self.check_line(plan, at, &entry);
            let ending: &[u8] = if plan.ends_line(at) { b"\n" } else { b"" };
            hash.update(entry.as_bytes());
            hash.update(ending);
            let n_bytes = (entry.as_bytes().len() + ending.len()) as u64;
            length += n_bytes;
            let is_sent = match line.origin {
                ResultOrigin::Source(idx) if in_place => sent[idx],
                _ => line.in_chain && at >= start,
            };
            let worth = if is_sent { tokens(&entry) } else { 0 };
            self.tokens_after += worth;
            match line.origin {
                ResultOrigin::Source(idx) => turn = turn_of[idx],
                // An added line counts for the turn that it follows, if it is part of the tree.
                ResultOrigin::Added(_) if !is_tree(&entry) => continue,
                ResultOrigin::Added(_) => {}
            }
            if let Some(turn) = turn.map(|turn: usize| &mut turns[turn]) {
                turn.lines.1 += 1;
                turn.bytes.1 += n_bytes;
                turn.tokens.1 += worth;
            }
        }
        self.digest = ContentDigest { length, sha256: hash.finalize().into() };
        soundness
    }

    /// Compares a line of the result with its source, and adds refusals.
    fn check_line(&mut self, plan: &EditPlan<'_>, at: usize, entry: &Entry) {
        let Some(idx) = plan.source_of(at) else { return };
        let line_edit = plan.draft().line_edit(idx);
        let mut refuse = |rule: SoundnessRule, what: &str| {
            self.refusals.push(format!("line {}: {what} (rule {})", at + 1, rule as u8));
        };
        if line_edit.stale_usage && usage_reset::has_counts(entry) {
            refuse(SoundnessRule::Usage, "token counts include removed content");
        }
        if matches!(line_edit.content, LineContent::Replaced(_))
            || plan.options().target == PlanTarget::KeepOrder
        {
            return;
        }
        let source = &plan.session().entries()[idx];
        for key in [key::CWD, key::VERSION, key::GIT_BRANCH] {
            let raw = |entry: &Entry| entry.get(key).map(|json| json.raw().to_owned());
            // Redaction may replace parts of a path.
            let named = raw(entry).is_some_and(|new| new.contains("[personal:") || new.contains("[secret:"));
            if raw(source).is_some_and(|old| Some(old) != raw(entry))
                && !contains_lone_surrogate(source)
                && !named
            {
                refuse(SoundnessRule::Origin, "cwd, version or gitBranch changed");
            }
        }
    }

    /// Checks the soundness of the result, and adds refusals. Defects that the session already had are
    /// tolerated for some rules, depending on the target.
    fn check_soundness(&mut self, plan: &EditPlan<'_>, before: &SoundnessBaseline, after: &SoundnessChecker) {
        let mut breaches = match plan.options().target {
            PlanTarget::New(_) => after.violations(true),
            PlanTarget::InPlace => after.violations(false),
            PlanTarget::KeepOrder => after.new_violations(before),
        };
        let kept = |rule: SoundnessRule| match plan.options().target {
            PlanTarget::New(_) => rule == SoundnessRule::Size,
            PlanTarget::InPlace => matches!(
                rule,
                SoundnessRule::Size | SoundnessRule::Text | SoundnessRule::OwnId | SoundnessRule::References
            ),
            PlanTarget::KeepOrder => false,
        };
        for rule in
            [SoundnessRule::Size, SoundnessRule::Text, SoundnessRule::OwnId, SoundnessRule::References]
                .into_iter()
                .filter(|rule| kept(*rule))
        {
            let count =
                |breaches: &[RuleViolation]| breaches.iter().filter(|breach| breach.rule == rule).count();
            if count(&breaches) <= count(&before.violations) {
                breaches.retain(|breach| breach.rule != rule);
            }
        }
        if plan.draft().no_user_message {
            breaches.retain(|breach| !breach.begins_with_reply());
        }
        breaches.extend(after.changed_replies(before));
        self.refusals.extend(breaches.iter().map(ToString::to_string));
        let speaks = |line: &crate::arrange::ResultLine| {
            let entry = crate::arrange::entry_of(plan.draft(), line.origin);
            line.in_chain && matches!(entry.kind(), Kind::User | Kind::Assistant)
        };
        let straight = plan.options().target != PlanTarget::KeepOrder;
        let said_something =
            || plan.session().replay(ClientVersion::NEWEST).is_some_and(|messages| !messages.is_empty());
        if straight && !plan.lines().iter().any(speaks) && (!self.refusals.is_empty() || said_something()) {
            // Any other refusals are about branches.
            self.refusals = vec!["no conversation would remain".to_owned()];
        }
    }
}

fn contains_lone_surrogate(entry: &Entry) -> bool {
    threadline_entry::has_lone_surrogate(entry.text())
}
