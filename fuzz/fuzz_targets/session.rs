//! Checks that no log makes the session model panic or hang.
#![no_main]

use libfuzzer_sys::fuzz_target;
use threadline_session::{Family, Session};

fuzz_target!(|bytes: &[u8]| {
    let session = Session::from_bytes(bytes);
    let _ = session.turns();
    let _ = session.branches();
    let _ = session.findings();
    if let Some(messages) = session.replay() {
        let mut out = String::new();
        for message in &messages {
            message.write_json(&mut out);
        }
    }
    let _ = Family::new(session, Vec::new());
});
