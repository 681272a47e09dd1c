//! A session with injection attempts in every field. All of them must be rendered as text.

use threadline_html::RenderOptions;

use crate::support::{family, inflated_sections, options, render_page, tags};

/// Attempts to break out of text, attributes, comments, scripts, styles, links and terminals. `@` is a
/// number.
const ATTACK: &str = r#"'"><script>document.title='pwned@'</script><img src=x onerror=document.title='pwned@'><svg/onload=document.title='pwned@'> ' onmouseover='document.title=1' " autofocus onfocus="document.title='pwned@'" </script></style></template></title></textarea></noscript> --> <!-- <![CDATA[ [x](javascript:document.title='pwned@') [y](<JaVaScRiPt:document.title=1> "t\" onclick=x") ![z](x" onerror="document.title=1) <javascript:document.title=1> <iframe srcdoc="<script>parent.document.title=1</script>"> data:text/html,<script>alert(1)</script> <base href=//evil.test> <meta http-equiv=refresh content="0;url=//evil.test"> <link rel=stylesheet href=//evil.test> <style>*{display:none;background:url(//evil.test)}</style> </details></section></main> {{constructor.constructor('alert(1)')()}} `${alert(1)}` &lt;script&gt; &#60;script&#62;"#;

/// Control sequences, bidirectional controls, lone surrogates and NUL.
const CONTROLS: &str =
    r"\u001b]8;;javascript:alert(1)\u0007link\u001b[2J\u009b31m\u202eevil\u2066\u0000\ud800\u2028\r";

/// `¤` is replaced by the attack, each time with another number.
const SESSION: &str = r#"
title "¤"
tag "¤"
u1        user   "¤\n¤" cwd="/home/¤" branch="¤" version="¤"
a1 <- u1  reply  m1 thinking "¤" model="¤"
a2 <- a1  reply  m1 text "¤\n\n```¤\n¤\n```\n\n<div>¤</div>\n\n| a | ¤ |\n|--|--|\n| 1 | ¤ |\n\n[l]: javascript:x \"¤\"\n[l]"
a3 <- a2  reply  m2 {"type":"tool_use","id":"t¤","name":"mcp__x__¤","input":{"¤":"¤","deep":{"¤":["¤"]}}}
a4 <- a3  reply  m3 tool t2 Bash {"command":"¤","description":"¤"}
r2 <- a4  result t2 "¤" error {"stdout":"¤","stderr":"¤","interrupted":false,"backgroundTaskId":"¤","persistedOutputPath":"/¤"}
a5 <- r2  reply  m4 tool t3 Read {"file_path":"/¤"}
r3 <- a5  result t3 "¤" {"type":"text","file":{"filePath":"/¤","content":"¤\n¤","numLines":2,"startLine":1,"totalLines":9}}
a6 <- r3  reply  m5 tool t4 Edit {"file_path":"/¤","old_string":"¤ a","new_string":"¤ b"}
r4 <- a6  result t4 "¤" {"filePath":"/x","structuredPatch":[{"oldStart":1,"oldLines":1,"newStart":1,"newLines":1,"lines":["-let a = ¤ x","+let a = ¤ y"]}]}
a7 <- r4  reply  m6 tool t5 Grep {"pattern":"¤","path":"¤"}
r5 <- a7  result t5 "¤" {"mode":"content","filenames":["¤"],"numFiles":1,"content":"¤","numLines":1}
a8 <- r5  reply  m7 tool t6 Task {"description":"¤","subagent_type":"¤","prompt":"look ¤"}
r6 <- a8  result t6 "¤" {"agentId":"AGENT","content":[{"type":"text","text":"¤"}]}
a9 <- r6  reply  m8 tool t7 TodoWrite {"todos":[{"content":"¤","status":"¤","activeForm":"¤"}]}
r7 <- a9  result t7 "¤" {"oldTodos":[{"content":"¤","status":"¤","activeForm":"x"}],"newTodos":[{"content":"¤","status":"in_progress","activeForm":"x"}]}
b1 <- r7  reply  m9 tool t8 WebFetch {"url":"javascript:¤","prompt":"¤"}
r8 <- b1  result t8 "¤" {"code":200,"codeText":"¤","result":"¤","url":"x"}
b2 <- r8  reply  n1 tool t9 WebSearch {"query":"¤"}
r9 <- b2  result t9 "¤" {"query":"x","results":[{"content":[{"title":"¤","url":"javascript:¤"},{"title":"¤","url":"https://example.test/\"onclick=x¤"}]}]}
b3 <- r9  reply  n2 tool v1 ExitPlanMode {"plan":"¤"}
s1 <- b3  result v1 "¤" {"plan":"¤"}
b4 <- s1  reply  n3 tool v2 AskUserQuestion {"questions":[{"question":"¤","options":[{"label":"¤","description":"¤"}]},{"question":"x","options":[]}]}
s2 <- b4  result v2 "¤" {"answers":{"x":"¤"},"annotations":{"x":{"notes":"¤"}}}
h1 <- s2  reply  n9 tool v4 TaskCreate {"subject":"¤","description":"¤"}
s4 <- h1  result v4 "¤" {"task":{"id":"¤","subject":"¤"}}
h2 <- s4  reply  p1 tool v5 Workflow {"script":"¤","description":"¤"}
s5 <- h2  result v5 "¤" {"taskId":"¤"}
h3 <- s5  reply  p2 tool v6 Skill {"skill":"¤","args":"¤"}
s6 <- h3  result v6 "¤"
b5 <- s6  reply  n4 tool v3 SendMessage {"to":"¤","message":"¤"}
s3 <- b5  result v3 [text "¤", image png, {"type":"image","source":{"type":"base64","media_type":"image/svg+xml","data":"PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+"}}, {"type":"image","source":{"type":"base64","media_type":"image/png","data":"¤"}}, {"type":"image","source":{"type":"url","media_type":"¤","url":"javascript:¤"}}]
c1 <- s3  user   [text "<ide_selection>¤</ide_selection>", text "¤", {"type":"document","source":{"type":"base64","media_type":"text/html","data":"PHNjcmlwdD4="}}]
c2 <- c1  user   "<command-name>/¤</command-name><command-args>¤</command-args>"
c3 <- c2  user   "<local-command-stdout>¤</local-command-stdout>"
c4 <- c3  user   "<bash-input>¤</bash-input>"
c5 <- c4  user   "<bash-stdout>¤</bash-stdout><bash-stderr>¤</bash-stderr>"
c6 <- c5  user   "<teammate-message teammate_id=\"¤\" summary=\"¤\">¤</teammate-message>"
c7 <- c6  user   "<task-notification><summary>¤</summary><result>¤</result></task-notification>"
c8 <- c7  user   "¤" meta
d1 <- c8  system local_command "¤"
d2 <- d1  system made_up "¤" +{"subtype":"¤"}
d3 <- d2  progress hook {"hookName":"¤","hookEvent":"¤"}
d4 <- d3  attach edited_text_file {"filename":"¤","snippet":"¤"}
d5 <- d4  attach hook_blocking_error {"hookName":"¤","stderr":"¤"}
e1 <- d5  boundary auto {"trigger":"¤","preTokens":9}
e2 <- e1  compact-summary "¤"
e3 <- e2  reply  n5 text "¤" +{"isApiErrorMessage":true}
e4 <- e3  reply  n6 {"type":"fallback","from":{"model":"¤"},"to":{"model":"¤"}}
e5 <- e4  reply  n7 {"type":"¤","text":"¤"}
f1 <- a2  user   "another way ¤"
f2 <- f1  reply  n8 text "¤"
g1 <- e5  user   "on"
entry pr-link {"prNumber":7,"prUrl":"javascript:¤","prRepository":"¤"}
entry frame-link {"frameUrl":"javascript:¤","title":"¤","path":"¤"}
raw {"type":"¤","x":"¤"}
raw <script>document.title='pwned-raw'</script>
hex 3c 73 63 72 69 70 74 3e ff fe 3c 2f 73 63 72 69 70 74 3e
"#;

const AGENT: &str = r#"
x1        user   "look ¤"
y1 <- x1  reply  k1 text "¤"
y2 <- y1  reply  k1 tool q1 Bash {"command":"¤"}
z1 <- y2  result q1 "¤"
"#;

/// Inserts the attack at every `¤` and returns the notation with the next free number.
fn insert_attacks(notation: &str, first: usize) -> (String, usize) {
    let mut count = first;
    let mut out = String::new();
    for (i, part) in notation.split('¤').enumerate() {
        if i > 0 {
            let attack = ATTACK.replace('@', &count.to_string()).replace('\\', "\\\\").replace('"', "\\\"");
            out.push_str(&attack);
            out.push_str(CONTROLS);
            count += 1;
        }
        out.push_str(part);
    }
    (out, count)
}

pub(crate) fn hostile_page(options: &RenderOptions) -> (String, usize) {
    let (session, count) = insert_attacks(SESSION, 0);
    let (agent, count) = insert_attacks(AGENT, count);
    let agent_id = "\"><img src=x onerror=alert(1)>";
    let session = session.replace("\"AGENT\"", "\"\\\"><img src=x onerror=alert(1)>\"");
    (render_page(&family(&session, Some((agent_id, &agent))), options), count)
}

/// The elements and attributes that this crate generates. Any other one would be injected.
const TAGS: &str = "!doctype html head meta link title style body a main header h1 h2 h3 h4 h5 h6 p span section div dl dt dd time \
                    details summary code pre ul ol li em strong del blockquote hr br table thead tbody tr th td figure img aside \
                    nav svg rect i b form input output button select option dialog kbd script noscript";
const ATTRIBUTES: &str = "html lang charset http-equiv content name rel href class id tabindex data-a data-tools data-bad data-t \
                          data-b data-p data-rows data-o data-n data-lang data-k aria-hidden aria-label aria-labelledby \
                          aria-pressed aria-controls aria-expanded aria-live title datetime start alt loading src type role \
                          placeholder autocomplete spellcheck value hidden viewBox preserveAspectRatio height width method / ";

pub(crate) fn check(markup: &str) {
    for (name, attributes) in tags(markup) {
        let bare = name.trim_start_matches('/');
        assert!(TAGS.split_whitespace().any(|tag| tag == bare), "<{name} {attributes:?}");
        for (key, value) in attributes {
            assert!(ATTRIBUTES.split_whitespace().any(|known| known == key), "<{name} {key}={value}");
            match &*key {
                "href" => {
                    let safe =
                        ["#", "https://", "http://", "mailto:"].iter().any(|start| value.starts_with(start));
                    assert!(safe || value == "data:,", "<{name} href={value}");
                }
                "src" => {
                    let kind = value.split_once(";base64,").unwrap().0;
                    let kinds = ["data:image/png", "data:image/jpeg", "data:image/gif", "data:image/webp"];
                    assert!(kinds.contains(&kind), "{kind}");
                }
                _ => {}
            }
        }
    }
}

#[test]
fn no_attack_becomes_markup() {
    for options in [options(), RenderOptions { plain_up_to: 0, ..options() }] {
        let (page, count) = hostile_page(&options);
        assert!(count >= 100, "{count} places");
        check(&page);
        let parts = inflated_sections(&page, "z");
        for part in parts.iter().flat_map(|pack| pack.split_terminator('\0')) {
            check(part.split_once('\n').unwrap().1);
        }
        // Every attack is present as text.
        let all = format!("{page}{}", parts.concat());
        assert!(all.matches("&lt;script&gt;document.title=&#39;pwned").count() > 90);
        for hidden in ['\u{1b}', '\u{202e}', '\u{2066}', '\u{9b}', '\r'] {
            assert!(!all.contains(hidden), "{hidden:?}");
        }
    }
}

#[test]
fn the_data_for_the_script_is_inert() {
    let (page, _) = hostile_page(&options());
    let index = page.split_once("id=\"index\">").unwrap().1.split_once("</script>").unwrap().0;
    assert!(!index.contains(['<', '>', '&', '\'']), "{index}");
}
