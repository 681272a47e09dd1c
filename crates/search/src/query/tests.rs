use jiff::Zoned;

use super::*;

fn now() -> Zoned {
    let now: jiff::Timestamp = "2026-03-10T10:00:00Z".parse().unwrap();
    now.to_zoned(jiff::tz::TimeZone::UTC)
}

/// Describes a parsed query.
fn described(text: &str) -> String {
    let query = match Query::parse(text, &now()) {
        Ok(query) => query,
        Err(error) => {
            let span = error.span().map_or(String::new(), |span| format!(" at `{}`", &text[span]));
            return format!("{error}{span}");
        }
    };
    let mut out = Vec::new();
    out.extend(query.terms.iter().map(term));
    out.extend(query.excluded.iter().map(|excluded| format!("not {}", term(excluded))));
    out.extend(
        query
            .filters
            .iter()
            .map(|filter| format!("{}{}", if filter.negated { "not " } else { "" }, field(&filter.field))),
    );
    out.join(", ")
}

fn term(term: &Term) -> String {
    match term {
        Term::Word(word) => format!("{}{}", word.folded, case(word.case)),
        Term::Phrase(words) => {
            let texts: Vec<_> = words.iter().map(|word| &*word.folded).collect();
            format!("\"{}\"{}", texts.join("|"), case(words[0].case))
        }
        Term::Pattern { regex, .. } => format!("/{regex}/"),
    }
}

fn case(case: crate::fold::Case) -> &'static str {
    if case == crate::fold::Case::Sensitive { " (case)" } else { "" }
}

fn field(field: &FieldCondition) -> String {
    match field {
        FieldCondition::Role(role) => format!("role {}", role.name()),
        FieldCondition::Kind(kind) => format!("kind {}", kind.name()),
        FieldCondition::Tool(name) => format!("tool {name}"),
        FieldCondition::Path(value) => format!("path {}", term(value)),
        FieldCondition::Command(value) => format!("command {}", term(value)),
        FieldCondition::Error(is, None) => format!("error {is}"),
        FieldCondition::Error(is, Some(value)) => format!("error {is} {}", term(value)),
        FieldCondition::Project(value) => format!("project {}", term(value)),
        FieldCondition::Session(id) => format!("session {id}"),
        FieldCondition::Branch(value) => format!("branch {}", term(value)),
        FieldCondition::Model(value) => format!("model {}", term(value)),
        FieldCondition::Since(at) => format!("since {}", jiff::Timestamp::from_millisecond(*at).unwrap()),
        FieldCondition::Until(at) => format!("until {}", jiff::Timestamp::from_millisecond(*at).unwrap()),
    }
}

#[test]
fn queries_are_parsed() {
    for (text, expected) in [
        ("slow loom", "slow, loom"),
        ("  slow\t loom ", "slow, loom"),
        ("Slow loom", "Slow (case), loom"),
        ("\"a phrase\" x", "\"a|phrase\", x"),
        ("\"say \\\"hi\\\"\"", "\"say|\"hi\"\""),
        ("\"type\":\"user\"", "\"type\":\"user\""),
        ("\"C:\\Users\\ada\"", "\"C:\\Users\\ada\" (case)"),
        ("say\"hi\"", "say\"hi\""),
        ("-not this", "this, not not"),
        ("x -\"a b\" -/c+/", "x, not \"a|b\", not /c+/"),
        ("a - b", "a, -, b"),
        ("a -", "a, -"),
        ("/err(or)?/", "/err(or)?/"),
        ("/a b/ c", "/a b/, c"),
        (r"/a\/b/", r"/a\/b/"),
        ("/Foo/i", "/Foo/"),
        ("/home/ada/loom", "/home/ada/loom"),
        ("/usr /tmp", "/usr, /tmp"),
        ("/", "/"),
        ("//", "//"),
        ("std::io http://x.y", "std::io, http://x.y"),
        ("error::Error", "error::Error (case)"),
        ("café ÉCOLE", "cafe, ECOLE (case)"),
        ("错误 🦀", "错误, 🦀"),
        ("kind:prompt role:assistant", "kind prompt, role assistant"),
        ("kind:PROMPT", "kind prompt"),
        ("tool:Bash -tool:mcp__*", "tool bash, not tool mcp__*"),
        ("path:src/main.rs command:\"git push\"", "path src/main.rs, command \"git|push\""),
        ("path:/\\.rs$/", "path /\\.rs$/"),
        ("path:/home/ada", "path /home/ada"),
        ("error:true", "error true"),
        ("error:E0308", "E0308 (case), error true E0308 (case)"),
        ("x -error:timeout", "x, not error true timeout"),
        (
            "project:loom session:3F91 branch:main model:opus",
            "project loom, session 3f91, branch main, model opus",
        ),
        ("since:2026-03-01", "since 2026-03-01T00:00:00Z"),
        ("until:2026-03-01", "until 2026-03-02T00:00:00Z"),
        ("since:7d until:yesterday", "since 2026-03-04T00:00:00Z, until 2026-03-10T00:00:00Z"),
        ("since:yesterday until:yesterday", "since 2026-03-09T00:00:00Z, until 2026-03-10T00:00:00Z"),
        ("x -since:today until:yesterday", "x, not since 2026-03-10T00:00:00Z, until 2026-03-10T00:00:00Z"),
        (
            "x since:2026-03-02 y until:2026-03-01",
            "`since:2026-03-02` is not before `until:2026-03-01` at `until:2026-03-01`",
        ),
        (
            "until:yesterday since:7d since:today",
            "`since:today` is not before `until:yesterday` at `since:today`",
        ),
        ("", "the query is empty"),
        ("  ", "the query is empty"),
        ("-x", "the query contains only exclusions"),
        ("-kind:prompt", "the query contains only exclusions"),
        ("x \"open", "the phrase `\"open` has no closing quote at `\"open`"),
        ("path:\"a", "the phrase `path:\"a` has no closing quote at `path:\"a`"),
        ("\"\"", "`\"\"` is empty at `\"\"`"),
        ("a \" \" b", "`\" \"` is empty at `\" \"`"),
        ("path:", "`path:` is empty at `path:`"),
        ("x /a(/", "`/a(/` is not a valid regular expression: unclosed group at `/a(/`"),
        ("a role:boss", "`role:boss`: expected `user`, `assistant` or `system` at `role:boss`"),
        (
            "since:soon",
            "`since:soon`: expected a time such as `2026-03-01`, `2026-03`, `7d`, `12h`, `today` or `yesterday` at `since:soon`",
        ),
    ] {
        assert_eq!(described(text), expected, "{text}");
    }
    assert!(
        described("kind:promt").starts_with("`kind:promt`: expected `prompt`, `reply`"),
        "{}",
        described("kind:promt")
    );
}

#[test]
fn equal_terms_are_searched_once() {
    let query = Query::parse("a a A \"b  c\" \"b c\" /x/ /x/ /x/i /X/ a:b -n -n", &now()).unwrap();
    let terms: Vec<String> = query.terms.iter().map(term).collect();
    assert_eq!((terms.len(), query.excluded.len()), (6, 1), "{terms:?}");
}

#[test]
fn sessions_and_projects_are_filtered() {
    let query = Query::parse("x session:3f9 session:aa -project:loom", &now()).unwrap();
    assert!(
        query.matches_session("3F91c2") && query.matches_session("aab") && !query.matches_session("b3f9")
    );
    assert!(query.has_project_filter());
    assert!(!query.matches_project(&["/home/ada/loom", "-home-ada-loom"]));
    assert!(query.matches_project(&["/home/ada/other"]));
}

#[test]
fn unknown_fields_are_distinguished_from_words_with_a_colon() {
    for (text, name) in [("brunch:main", "brunch"), ("slow -tol:Bash", "tol"), ("a b:c d:e", "b")] {
        assert_eq!(unknown_field(text), Some(name), "{text}");
    }
    for text in ["branch:main", "std::fs", "https://x", "c:\\loom", "error:", "12:30", "E:x", ":x", "-", ""] {
        assert_eq!(unknown_field(text), None, "{text}");
    }
}
