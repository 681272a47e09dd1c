//! Lines of real logs, and malformed lines: all keep their exact bytes.

#![allow(clippy::unwrap_used, reason = "a test that cannot read its input should fail")]

mod drift;

use proptest::prelude::*;
use threadline_entry::lens::Lens;
use threadline_entry::{Code, Ending, Entry, Finding, Kind, LineReader, parse_line};

/// Returns every entry of a log, with its findings.
fn entries(bytes: &[u8]) -> Vec<(Entry, Vec<Finding>)> {
    let mut lines = LineReader::new(bytes);
    let mut out = Vec::new();
    while let Some(line) = lines.next().unwrap() {
        parse_line(&line, |entry, findings| out.push((entry, findings)));
    }
    out
}

/// Returns the log that results from writing the entries.
fn written(entries: &[(Entry, Vec<Finding>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (entry, _) in entries {
        bytes.extend_from_slice(entry.as_bytes());
        if entry.ending() == Ending::Newline {
            bytes.push(b'\n');
        }
    }
    bytes
}

#[test]
fn a_repeated_key_is_found_among_very_many() {
    let line = |last: &str| {
        let keys: String = (0..1000).map(|n| format!("\"k{n}\":{n},")).collect();
        format!("{{\"type\":\"user\",{keys}\"{last}\":0}}")
    };
    let codes = |line: &str| -> Vec<Code> {
        Entry::parse(line.as_bytes()).1.into_iter().map(|finding| finding.code).collect()
    };
    assert_eq!(codes(&line("last")), []);
    assert_eq!(codes(&line("k7")), [Code::DuplicateKey]);
    assert_eq!(codes(&line("\\u006b999")), [Code::DuplicateKey]);
}

/// When a line surprises us, it joins the table: its name, its bytes, its kind, the codes it gets.
type ExpectedLine = (&'static str, &'static [u8], Kind, &'static [Code]);
const LINES: &[ExpectedLine] = &[
    ("unknown kind", br#"{"type":"hologram","x":1}"#, Kind::Unknown, &[]),
    ("no type", br#"{"x":1}"#, Kind::Untyped, &[]),
    ("type is a number", br#"{"type":7}"#, Kind::Untyped, &[]),
    ("empty object", b"{}", Kind::Untyped, &[]),
    ("keys in odd order", br#"{"uuid":"u1","cwd":"/","type":"user"}"#, Kind::User, &[]),
    ("spaces everywhere", b" { \"type\" : \"user\" , \"n\" : [ 1 ] } ", Kind::User, &[]),
    ("a number too wide", br#"{"type":"user","n":123456789012345678901234}"#, Kind::User, &[]),
    ("repeated key", br#"{"type":"system","type":"user"}"#, Kind::User, &[Code::DuplicateKey]),
    ("escaped key", br#"{"t\u0079pe":"user"}"#, Kind::User, &[]),
    ("lone surrogate", br#"{"type":"user","s":"\ud800"}"#, Kind::User, &[Code::LoneSurrogate]),
    ("torn tail", br#"{"type":"assistant","mess"#, Kind::Bad, &[Code::BrokenLine]),
    ("not utf-8", b"{\"type\":\"user\",\"s\":\"\xff\"}", Kind::User, &[Code::OddBytes]),
    ("carriage return", b"{\"type\":\"user\"}\r", Kind::User, &[Code::OddBytes]),
    ("byte order mark", b"\xef\xbb\xbf{\"type\":\"user\"}", Kind::User, &[Code::OddBytes]),
    ("NUL bytes", b"\0\0\0\0", Kind::Bad, &[Code::BrokenLine]),
    ("comment", b"// Source: elsewhere", Kind::Bad, &[Code::BrokenLine]),
    ("number", b"42", Kind::Bad, &[Code::BrokenLine]),
    ("list", b"[1]", Kind::Bad, &[Code::BrokenLine]),
    ("raw tab in a string", b"{\"type\":\"us\ter\"}", Kind::Bad, &[Code::BrokenLine]),
    ("blank", b"  \t", Kind::Blank, &[]),
    ("trailing comma", br#"{"type":"user",}"#, Kind::Bad, &[Code::BrokenLine]),
];

#[test]
fn every_line_keeps_its_bytes_and_gets_its_findings() {
    for (name, bytes, kind, codes) in LINES {
        let (entry, findings) = Entry::parse(bytes);
        assert_eq!(entry.as_bytes(), *bytes, "{name}");
        assert_eq!(entry.kind(), *kind, "{name}");
        assert_eq!(
            findings.iter().map(|finding| finding.code).collect::<Vec<_>>(),
            *codes,
            "{name}: {findings:?}"
        );
    }
}

#[test]
fn concatenated_objects_are_read_separately_and_written_together() {
    let log = b"{\"type\":\"user\"}{\"type\":\"summary\"} {\"type\":\"mode\"}\n{\"type\":\"user\"}{\"torn\n{\"type\":\"user\"} x";
    let entries = entries(log);
    let kinds: Vec<_> = entries.iter().map(|(entry, _)| (entry.kind(), entry.follows_on_line())).collect();
    let (first, behind) = (false, true);
    let expected = [
        (Kind::User, first),
        (Kind::Summary, behind),
        (Kind::Mode, behind),
        (Kind::User, first),
        (Kind::Bad, behind),
        (Kind::User, first),
        (Kind::Bad, behind),
    ];
    assert_eq!(kinds, expected);
    assert!(entries.iter().all(|(entry, _)| entry.shares_line()));
    assert_eq!(entries[1].0.at().byte_offset, 15);
    assert_eq!(entries[1].0.at().line_no, 1);
    assert_eq!(written(&entries), log);
}

#[test]
fn a_line_of_a_hundred_megabytes_is_read() {
    let text = "x".repeat(100 << 20);
    let log = format!(
        "{{\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":\"{text}\"}},\"uuid\":\"u\"}}\n{{}}"
    );
    let entries = entries(log.as_bytes());
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[0].0.uuid().unwrap(), "u");
    assert_eq!(entries[0].0.message().unwrap().content().unwrap().text().len(), text.len());
    assert!(entries[0].1.is_empty());
    assert!(written(&entries) == log.as_bytes());
}

#[test]
fn every_file_of_the_corpus_keeps_its_bytes() {
    for path in threadline_testkit::shared_logs() {
        let bytes = std::fs::read(&path).unwrap();
        assert!(written(&entries(&bytes)) == bytes, "{}", path.display());
    }
}

/// Checks that our lenses read the same values from each line of the corpus as serde_json.
#[test]
fn lenses_and_serde_json_agree_on_the_corpus() {
    for path in threadline_testkit::shared_logs() {
        let bytes = std::fs::read(&path).unwrap();
        for (i, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
            let (entry, _) = Entry::parse(line);
            let value = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(line).ok();
            assert_eq!(value.is_some(), entry.object().is_some(), "{} line {}", path.display(), i + 1);
            for (key, value) in value.into_iter().flatten() {
                let ours = entry.get(&key).unwrap();
                let back: serde_json::Value = serde_json::from_str(ours.raw()).unwrap();
                assert!(back == value, "{} line {}: {key}", path.display(), i + 1);
            }
            // The index returns the same blocks and fields as a scan of the text.
            let Some(message) = entry.get("message").filter(|message| message.is_object()) else { continue };
            let walked = message.get("content").into_iter().flat_map(|content| content.items());
            let walked: Vec<_> = walked.filter(|item| item.is_object()).collect();
            let indexed: Vec<_> = entry.message().unwrap().blocks().map(Lens::object).collect();
            assert_eq!(walked, indexed.iter().map(|object| object.json()).collect::<Vec<_>>());
            for object in indexed {
                for (key, value) in object.json().members() {
                    assert_eq!(object.get(&key.name()), Some(value).filter(|value| !value.is_null()));
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_kept(bytes in prop::collection::vec(
        prop_oneof![3 => Just(b'{'), 3 => Just(b'}'), 2 => Just(b'\n'), 2 => Just(b'"'), 1 => Just(b'\\'), 1 => Just(b':'), 3 => any::<u8>()], 0..120)
    ) {
        prop_assert_eq!(written(&entries(&bytes)), bytes);
    }

    #[test]
    fn any_pieces_of_lines_are_kept(pieces in prop::collection::vec(prop::sample::select(vec![
        "{\"type\":\"user\"}", "{", "}", "\n", "\r\n", "\"", "\\", "\u{feff}", "\0", "é", "[1]", ",", "{\"a\":", "null", "// x", " ",
    ]), 0..30)) {
        let text = pieces.concat();
        prop_assert_eq!(written(&entries(text.as_bytes())), text.as_bytes());
    }
}

#[test]
fn a_record_after_a_torn_line_is_a_separate_entry() {
    let kinds =
        |line: &str| entries(line.as_bytes()).into_iter().map(|(entry, _)| entry.kind()).collect::<Vec<_>>();
    let title = r#"{"type":"custom-title","customTitle":"Loom","sessionId":"s"}"#;
    assert_eq!(kinds(&format!(r#"{{"type":"user","mess{title}"#)), [Kind::Bad, Kind::CustomTitle]);
    assert_eq!(
        kinds(&format!(r#"{{"type":"user"}}{{"torn{title} "#)),
        [Kind::User, Kind::Bad, Kind::CustomTitle]
    );
    // The end of a torn line may be a complete object without being a record.
    for line in [
        r#"{"type":"user","message":{"content":[{"type":"text","text":"hi"}"#,
        r#"{"type":"progress","data":{"message":{"type":"user","sessionId":"s"}"#,
        r#"{"type":"x","a":{"type":"custom-title","customTitle":"no session"}"#,
    ] {
        assert_eq!(kinds(line), [Kind::Bad], "{line}");
    }
}

#[test]
fn the_format_document_lists_every_type() {
    use threadline_entry::lens::{ATTACHMENT_TYPES, SYSTEM_SUBTYPES};
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format.md");
    let document = std::fs::read_to_string(path).unwrap();
    let kinds = Kind::NAMED.iter().filter_map(|kind| kind.name());
    let names = kinds.chain(ATTACHMENT_TYPES.iter().copied()).chain(SYSTEM_SUBTYPES.iter().copied());
    let missing: Vec<&str> = names.filter(|name| !document.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "not in docs/format.md: {missing:?}");
}
