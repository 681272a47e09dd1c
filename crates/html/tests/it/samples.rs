//! Every tool and every kind of entry as markup.

use threadline_html::turn;
use threadline_session::SessionFamily;

use crate::support::{build_transcript, lined, options};

#[test]
fn every_tool_and_every_kind_of_entry() {
    for sample in threadline_testkit::samples() {
        let transcript = build_transcript(&SessionFamily::from_bytes(&sample.log, sample.agents));
        let turns = transcript
            .turns
            .iter()
            .map(|found| turn(found, transcript.header.cwd.as_deref(), &options()).into_string());
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(sample.name, lined(&turns.collect::<String>()));
        });
    }
}
