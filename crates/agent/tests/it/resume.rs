//! Reading a session for a resume.

use threadline_agent::ResumedSession;
use threadline_session::{ClientVersion, Session};

/// The messages of a whole log, as JSON.
fn replayed(log: &[u8], version: ClientVersion) -> Option<Vec<serde_json::Value>> {
    let session = Session::from_bytes(log);
    let messages = session.replay(version)?;
    let json = messages.iter().map(|message| {
        let mut json = String::new();
        message.write_json(&mut json);
        serde_json::from_str(&json).unwrap()
    });
    Some(json.collect())
}

/// Leaves out prompts that joined a turn. They are sent as reminders, which a replay does not contain.
fn without_joined_prompts(mut message: serde_json::Value) -> serde_json::Value {
    const REMINDER: &str = "<system-reminder>\nThe user wrote this while you were working.";
    if let Some(blocks) = message["content"].as_array_mut() {
        blocks.retain(|block| !block["text"].as_str().is_some_and(|text| text.starts_with(REMINDER)));
    }
    message
}

#[test]
fn the_lines_that_are_read_are_all_that_matter() {
    let mut resumed = 0;
    for path in threadline_testkit::shared_logs() {
        let log = std::fs::read(&path).unwrap();
        for version in ["2.1.20", "2.1.197", "2.1.325"] {
            let read = ResumedSession::read(&path, version).ok();
            let read = read.map(|session| session.messages);
            let read: Option<Vec<_>> = read.map(|messages| {
                let json = messages.iter().map(|message| serde_json::to_value(message).unwrap());
                json.map(without_joined_prompts).collect()
            });
            let whole = replayed(&log, version.parse().unwrap());
            assert!(read == whole, "{} as {version}", path.display());
            resumed += usize::from(read.is_some());
        }
    }
    println!("{resumed} resumed");
}
