//! Every tool and every kind of entry, as Markdown and as our JSON.

use threadline_session::Family;
use threadline_view::{Level, markdown, transcript, wire};

#[test]
fn every_tool_and_every_kind_of_entry() {
    for sample in threadline_testkit::samples() {
        let family = Family::from_bytes(&sample.log, sample.agents);
        let told = transcript(&family, &|_| None);
        let mut text = markdown(&told, Level::Tools);
        text.push_str("\n════ full ════\n\n");
        text.push_str(&markdown(&told, Level::Full));
        text.push_str("\n════ json ════\n\n");
        wire::show(&told, &mut |object| {
            text.push_str(&serde_json::to_string(&object).unwrap());
            text.push('\n');
        });
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(sample.name, text);
        });
    }
}
