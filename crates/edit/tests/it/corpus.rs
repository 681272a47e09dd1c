//! Every real session, edited in every way: the result is sound, and replays as planned.

use threadline_edit::{Target, clone};
use threadline_session::Session;
use threadline_testkit::shared_logs;

use crate::support::{new, plan};

const MENDED: &[&str] =
    &["a call that was made before", "a result without a call", "said before anything was asked"];

/// The logs, in debug runs a sample of the small ones.
fn logs() -> Vec<(String, Session)> {
    let mut logs: Vec<_> = shared_logs();
    logs.sort_by_key(|path| std::fs::metadata(path).map(|metadata| metadata.len()).unwrap_or(0));
    let n = logs.len();
    let step = if cfg!(debug_assertions) { 6 } else { 1 };
    let kept = if cfg!(debug_assertions) { n * 2 / 3 } else { n };
    logs.into_iter()
        .take(kept)
        .step_by(step)
        .map(|path| {
            let mut session = Session::with_id(path.file_stem().unwrap().to_string_lossy());
            for entry in Session::from_bytes(&std::fs::read(&path).unwrap()).entries() {
                session.push(entry.clone(), Vec::new());
            }
            (path.to_string_lossy().into_owned(), session)
        })
        .collect()
}

/// What a resume sends, less texts of white space, which no result has.
fn sent(session: &Session) -> Option<String> {
    let mut out = String::new();
    for message in session.replay()? {
        out.push_str(message.role.name());
        for block in message.content {
            let white = block.kind() == "text"
                && block
                    .json()
                    .get("text")
                    .and_then(|text| text.as_str())
                    .is_none_or(|text| text.trim().is_empty());
            if !white {
                block.write_json(&mut out);
            }
        }
    }
    Some(out)
}

#[test]
fn clones_are_sound_and_say_the_same() {
    let mut differ = Vec::new();
    for (path, session) in logs() {
        let Some(before) = sent(&session).filter(|sent| !sent.is_empty()) else { continue };
        // Where lines have no uuid, Claude Code sees the last alone; the result has all of them.
        let nameless = session.thread().entries.iter().any(|&idx| session.entries()[idx].uuid().is_none());
        for target in [new(), Target::InPlace] {
            let in_place = target == Target::InPlace;
            let plan = plan(&session, target, |draft| {
                if !in_place {
                    clone(draft, None, None).unwrap();
                }
            });
            if !plan.refusals().is_empty() {
                differ.push((path.clone(), in_place, plan.refusals().to_vec()));
                continue;
            }
            let after = sent(&Session::from_bytes(&plan.to_bytes())).unwrap_or_default();
            // What the API would refuse is mended, and then less is said.
            let mended = plan.changes().any(|change| change.why.iter().any(|why| MENDED.contains(&&**why)));
            if after != before && !mended && !nameless {
                differ.push((path.clone(), in_place, vec![first_difference(&before, &after)]));
            }
        }
    }
    let told: Vec<String> =
        differ.iter().map(|(path, in_place, why)| format!("{path} {in_place} {}", why.join("; "))).collect();
    assert!(differ.is_empty(), "{}", told.join("\n"));
}

/// Where two requests part.
fn first_difference(before: &str, after: &str) -> String {
    let same = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
    let piece = |text: &str| {
        let from = (0..=same.saturating_sub(60)).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text[from..].chars().take(200).collect::<String>()
    };
    format!("before …{}… after …{}…", piece(before), piece(after))
}
