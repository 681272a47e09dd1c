//! Reading a session for a resume.

use threadline_agent::ResumedSession;
use threadline_api::Message;
use threadline_session::{ClientVersion, ReplayMessage, Session};

/// The messages of a whole log with all its thinking, as JSON.
fn replayed(session: &Session, version: ClientVersion) -> Option<Vec<serde_json::Value>> {
    let messages = session.replay_path_with_thinking(&session.resume_path(version)?, version);
    Some(json(&messages))
}

fn json(messages: &[ReplayMessage<'_>]) -> Vec<serde_json::Value> {
    let json = messages.iter().map(|message| {
        let mut json = String::new();
        message.write_json(&mut json);
        serde_json::from_str(&json).unwrap()
    });
    json.collect()
}

/// Leaves out prompts that joined a turn. They are sent as reminders, which a replay does not contain.
fn without_joined_prompts(mut message: serde_json::Value) -> serde_json::Value {
    const REMINDER: &str = "<system-reminder>\nThe user wrote this while you were working.";
    if let Some(blocks) = message["content"].as_array_mut() {
        blocks.retain(|block| !block["text"].as_str().is_some_and(|text| text.starts_with(REMINDER)));
    }
    message
}

fn plain(messages: &[Message]) -> Vec<serde_json::Value> {
    let json = messages.iter().map(|message| serde_json::to_value(message).unwrap());
    json.map(without_joined_prompts).collect()
}

#[test]
fn the_lines_that_are_read_are_all_that_matter() {
    let mut resumed = 0;
    for path in threadline_testkit::shared_logs() {
        let log = std::fs::read(&path).unwrap();
        for version in ["2.1.20", "2.1.197", "2.1.325"] {
            let read = ResumedSession::read(&path, version).ok();
            let (session, version) = (Session::from_bytes(&log), version.parse::<ClientVersion>().unwrap());
            let all = read.as_ref().map(|read| plain(&read.messages));
            assert!(all == replayed(&session, version), "{} as {version}", path.display());
            // A replay contains the thinking of the model that answered last.
            let line = session.last_model_line().filter(|_| version != ClientVersion::OLDEST);
            let model = line.and_then(|line| session.entries()[line].message()?.model());
            if let (Some(read), Some(model)) = (&read, model) {
                let replay = json(&session.replay(version).unwrap());
                assert!(plain(&read.messages_for(&model)) == replay, "{} as {version}", path.display());
            }
            resumed += usize::from(read.is_some());
        }
    }
    println!("{resumed} resumed");
}
