//! Checks that no log makes the session model panic or hang.
#![no_main]

use libfuzzer_sys::fuzz_target;
use threadline_session::{ClientVersion, Session, SessionFamily};

fuzz_target!(|bytes: &[u8]| {
    let session = Session::from_bytes(bytes);
    let _ = session.turns();
    let _ = session.branches();
    let _ = session.findings();
    for version in ClientVersion::KNOWN {
        let mut out = String::new();
        for message in session.replay(version).iter().flatten() {
            message.write_json(&mut out);
        }
    }
    let _ = SessionFamily::new(session, Vec::new());
});
