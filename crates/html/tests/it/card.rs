//! Every kind of card, each from a small log.

use insta::assert_snapshot;
use threadline_html::RenderOptions;

use crate::support::{options, rendered, rendered_with};

/// Renders a call and its result.
fn call(tool: &str, input: &str, result: &str) -> String {
    rendered(&format!(
        "u1 user \"go\"\na1 <- u1 reply m1 tool t1 {tool} {input}\nr1 <- a1 result t1 {result}\n"
    ))
}

#[test]
fn a_command_with_colours() {
    assert_snapshot!(call("Bash", r#"{"command":"cargo test <x>","description":"Run it"}"#, r#""ok" {"stdout":"\u001b[32mok\u001b[0m & done\n","stderr":"warned","interrupted":false}"#), @r##"
    <div class="i call k-tool" id="m2" data-t="0">
    <details><summary><span class="tool">Bash</span><span class="subject">cargo test &lt;x&gt;</span><span class="gist"></span><span class="duration">1.0 s</span></summary>
    <div class="body">
    <p class="cap">Run it</p>
    <div class="code command" data-lang="sh">
    <pre tabindex="0"><code>cargo test &lt;x&gt;</code></pre></div>
    <div class="code">
    <pre tabindex="0"><span class="f2 ">ok</span> &amp; done</pre></div>
    <p class="cap">stderr</p>
    <div class="code">
    <pre tabindex="0">warned</pre></div></div></details><a class="at" href="#m2">m2</a>
    "##);
}

#[test]
fn a_command_that_failed() {
    assert_snapshot!(call("Bash", r#"{"command":"false"}"#, r#""Exit code 101\nno" error"#), @r##"
    <div class="i call bad k-tool" id="m2" data-t="0">
    <details><summary><span class="tool">Bash</span><span class="subject">false</span><span class="outcome">error</span><span class="gist">exit 101</span><span class="duration">1.0 s</span></summary>
    <div class="body">
    <div class="code command" data-lang="sh">
    <pre tabindex="0"><code>false</code></pre></div>
    <div class="code">
    <pre tabindex="0">no</pre></div>
    <p class="cap bad">exit 101</p></div></details><a class="at" href="#m2">m2</a>
    "##);
}

#[test]
fn a_file_that_was_read() {
    assert_snapshot!(call("Read", r#"{"file_path":"/home/ada/loom/a.rs"}"#, r#""x" {"type":"text","file":{"filePath":"/home/ada/loom/a.rs","content":"fn a() {}\nfn b() {}\n","numLines":2,"startLine":9,"totalLines":40}}"#), @r##"
    <div class="i call k-tool" id="m2" data-t="0">
    <details><summary><span class="tool">Read</span><span class="subject">a.rs</span><span class="gist">2 lines of 40</span><span class="duration">1.0 s</span></summary>
    <div class="body">
    <p class="path">/home/ada/loom/a.rs</p>
    <div class="code lines" data-lang="rs">
    <pre class="nos" aria-hidden="true">9
    10
    </pre>
    <pre tabindex="0"><code>fn a() {}
    fn b() {}</code></pre></div></div></details><a class="at" href="#m2">m2</a>
    "##);
}

#[test]
fn an_edit_with_the_words_that_changed() {
    assert_snapshot!(call("Edit", r#"{"file_path":"/home/ada/loom/a.rs","old_string":"x","new_string":"y"}"#, r#""done" {"filePath":"/home/ada/loom/a.rs","structuredPatch":[{"oldStart":4,"oldLines":2,"newStart":4,"newLines":2,"lines":[" fn a() {","-let count = 3;","+let count = 40;"]}]}"#), @r##"
    <div class="i call k-tool" id="m2" data-t="0">
    <details><summary><span class="tool">Edit</span><span class="subject">a.rs</span><span class="gist">+1 −1</span><span class="duration">1.0 s</span></summary>
    <div class="body">
    <p class="path">/home/ada/loom/a.rs</p>
    <div class="code diff" data-lang="rs">
    <pre tabindex="0"><span class="same" data-o="4" data-n="4"> fn a() {
    </span><span class="old" data-o="5">-let count = <b>3;</b>
    </span><span class="new" data-n="5">+let count = <b>40;</b>
    </span></pre></div></div></details><a class="at" href="#m2">m2</a>
    "##);
}

#[test]
fn files_that_match() {
    assert_snapshot!(call("Grep", r#"{"pattern":"sl<ee>p","path":"src"}"#, r#""x" {"mode":"files_with_matches","filenames":["/home/ada/loom/src/a.rs"],"numFiles":1}"#), @r##"
    <div class="i call k-tool" id="m2" data-t="0">
    <details><summary><span class="tool">Grep</span><span class="subject">sl&lt;ee&gt;p</span><span class="gist">1 file</span><span class="duration">1.0 s</span></summary>
    <div class="body">
    <dl class="fields">
    <dt>pattern</dt><dd>sl&lt;ee&gt;p</dd>
    <dt>in</dt><dd>src</dd></dl>
    <ul class="files">
    <li>src/a.rs</li></ul></div></details><a class="at" href="#m2">m2</a>
    "##);
}

#[test]
fn a_list_of_things_to_do() {
    assert_snapshot!(call("TodoWrite", r#"{"todos":[]}"#, r#""ok" {"oldTodos":[{"content":"one","status":"pending","activeForm":"x"}],"newTodos":[{"content":"one","status":"completed","activeForm":"x"},{"content":"two","status":"in_progress","activeForm":"x"}]}"#), @r##"
    <div class="i call k-tool" id="m2" data-t="0">
    <details><summary><span class="tool">TodoWrite</span><span class="subject words">two</span><span class="gist">1 of 2 done</span><span class="duration">1.0 s</span></summary>
    <div class="body">
    <ul class="todos">
    <li class="done"><span class="tick">☑</span> one <span class="detail">pending → completed</span></li>
    <li class="active"><span class="tick">▶</span> two <span class="detail">new</span></li></ul></div></details><a class="at" href="#m2">m2</a>
    "##);
}

#[test]
fn a_page_that_was_fetched() {
    assert_snapshot!(call("WebFetch", r#"{"url":"https://example.org/a?b=1&c=2","prompt":"what is it"}"#, r#""x" {"code":200,"codeText":"OK","result":"It is **bold**.","url":"https://example.org"}"#), @r##"
    <div class="i call k-tool" id="m2" data-t="0">
    <details><summary><span class="tool">WebFetch</span><span class="subject">https://example.org/a?b=1&amp;c=2</span><span class="gist">200 OK</span><span class="duration">1.0 s</span></summary>
    <div class="body">
    <p class="path"><a rel="noopener noreferrer" href="https://example.org/a?b=1&amp;c=2">https://example.org/a?b=1&amp;c=2</a></p>
    <dl class="fields">
    <dt>status</dt><dd>200 OK</dd>
    <dt>prompt</dt><dd>what is it</dd></dl>
    <div class="prose">
    <p>It is <strong>bold</strong>.</p></div></div></details><a class="at" href="#m2">m2</a>
    "##);
}

#[test]
fn links_that_were_found() {
    assert_snapshot!(call("WebSearch", r#"{"query":"twill"}"#, r#""x" {"query":"twill","results":[{"content":[{"title":"Twill","url":"https://example.org"},{"title":"Bad","url":"javascript:alert(1)"}]}]}"#), @r##"
    <div class="i call k-tool" id="m2" data-t="0">
    <details><summary><span class="tool">WebSearch</span><span class="subject">twill</span><span class="gist">2 results</span><span class="duration">1.0 s</span></summary>
    <div class="body">
    <dl class="fields">
    <dt>query</dt><dd>twill</dd></dl>
    <ol class="links">
    <li><a rel="noopener noreferrer" href="https://example.org">Twill</a></li>
    <li>Bad <code>javascript:alert(1)</code></li></ol></div></details><a class="at" href="#m2">m2</a>
    "##);
}

#[test]
fn a_plan_and_a_question() {
    assert_snapshot!(call("ExitPlanMode", r##"{"plan":"# Plan\n\n1. Look"}"##, r#""approved""#), @r##"
    <div class="i call k-tool" id="m2" data-t="0">
    <details><summary><span class="tool">ExitPlanMode</span><span class="subject words">Plan</span><span class="gist">approved</span><span class="duration">1.0 s</span></summary>
    <div class="body">
    <div class="prose"><h3>Plan</h3>
    <ol>
    <li>Look</li></ol></div>
    <p class="cap">result</p>
    <div class="code">
    <pre tabindex="0">approved</pre></div></div></details><a class="at" href="#m2">m2</a>
    "##);
    assert_snapshot!(call("AskUserQuestion", r#"{"questions":[{"question":"Which?","options":[{"label":"A"},{"label":"B"}]}]}"#, r#""x" {"answers":{"Which?":"B"}}"#), @r##"
    <div class="i call k-tool" id="m2" data-t="0">
    <details><summary><span class="tool">AskUserQuestion</span><span class="subject words">Which?</span><span class="gist">B</span><span class="duration">1.0 s</span></summary>
    <div class="body">
    <p class="question">Which?</p>
    <ul class="todos">
    <li><span class="tick">○</span> A</li>
    <li class="active"><span class="tick">●</span> B</li></ul></div></details><a class="at" href="#m2">m2</a>
    "##);
}

#[test]
fn an_unknown_tool() {
    assert_snapshot!(call("mcp__loom__weave", r#"{"threads":40,"na<me>":"x"}"#, r#""woven""#), @r##"
    <div class="i call k-tool" id="m2" data-t="0">
    <details><summary><span class="tool" title="mcp__loom__weave">weave</span><span class="subject">x</span><span class="gist">woven</span><span class="duration">1.0 s</span></summary>
    <div class="body">
    <dl class="fields">
    <dt>threads</dt><dd>40</dd>
    <dt>na&lt;me&gt;</dt><dd>x</dd></dl>
    <p class="cap">result</p>
    <div class="code">
    <pre tabindex="0">woven</pre></div></div></details><a class="at" href="#m2">m2</a>
    "##);
}

#[test]
fn a_message_and_an_agent() {
    assert_snapshot!(call("SendMessage", r#"{"to":"bob","message":"hello *there*"}"#, r#""sent""#), @r##"
    <div class="i call k-tool" id="m2" data-t="0">
    <details><summary><span class="tool">SendMessage</span><span class="subject words">bob</span><span class="gist">hello *there*</span><span class="duration">1.0 s</span></summary>
    <div class="body">
    <dl class="fields">
    <dt>to</dt><dd>bob</dd></dl>
    <div class="prose">
    <p>hello <em>there</em></p></div>
    <p class="cap">result</p>
    <div class="code">
    <pre tabindex="0">sent</pre></div></div></details><a class="at" href="#m2">m2</a>
    "##);
    assert_snapshot!(call("Task", r#"{"description":"look","prompt":"look around","subagent_type":"Explore"}"#, r#""nothing `here`""#), @r##"
    <div class="i call k-tool" id="m2" data-t="0">
    <details><summary><span class="tool">Task</span><span class="subject words">look</span><span class="gist"></span><span class="duration">1.0 s</span></summary>
    <div class="body">
    <dl class="fields">
    <dt>agent</dt><dd>Explore</dd></dl>
    <details><summary><span class="tool">Prompt</span><span class="subject">look around</span></summary>
    <div class="prompt">look around</div></details>
    <p class="cap">answer</p>
    <div class="prose">
    <p>nothing <code>here</code></p></div></div></details><a class="at" href="#m2">m2</a>
    "##);
}

#[test]
fn events_around_the_conversation() {
    assert_snapshot!(rendered(r#"
u1        user   "go"
a1 <- u1  reply  m1 thinking "Perhaps *a* sleep."
a2 <- a1  reply  m1 thinking ""
a3 <- a2  reply  m1 thinking ""
s1 <- a3  system api_error {"retryAttempt":1,"maxRetries":10,"error":{"status":529}}
p1 <- s1  progress hook t1
x1 <- p1  user   "[Request interrupted by user]"
pr-link 7 ada/loom
raw {"type":"hologram","x":"<b>"}
"#), @r##"
    <div class="i thinking k-thinking" id="m2">
    <details><summary><span class="tool">Thinking</span><span class="subject">Perhaps *a* sleep.</span></summary>
    <p>Perhaps <em>a</em> sleep.</p></details><a class="at" href="#m2">m2</a></div>
    <div class="run k-thinking">
    <div class="i mark" id="m3"></div>
    <div class="i mark" id="m4"></div>
    <p class="quiet">2 thinking blocks not recorded in the log</p></div>
    <div class="i failure bad k-reply" id="m5">
    <p class="line"><span class="outcome">API error</span> <span class="subject">status 529, try 1 of 10</span></p><a class="at" href="#m5">m5</a></div>
    <div class="i event k-event" id="m6">
    <p class="line"><span class="tool">hook</span> <span class="subject"></span></p><a class="at" href="#m6">m6</a></div>
    <div class="i user-input k-user" id="m7">
    <p class="line warn"><span class="outcome">interrupted</span> <span class="subject"></span></p><a class="at" href="#m7">m7</a></div>
    <div class="i link k-reply" id="m8">
    <p class="line"><span class="tool">Link</span> <a rel="noopener noreferrer" href="https://github.com/ada/loom/pull/7">pull request ada/loom #7</a></p><a class="at" href="#m8">m8</a></div>
    <div class="i unknown bad k-unknown" id="m9">
    <details><summary><span class="outcome">unknown line</span><span class="subject">hologram</span></summary>
    <div class="code">
    <pre tabindex="0">{&quot;type&quot;:&quot;hologram&quot;,&quot;x&quot;:&quot;&lt;b&gt;&quot;}</pre></div></details><a class="at" href="#m9">m9</a>
    "##);
}

#[test]
fn a_compaction_shows_the_dropped_lines() {
    assert_snapshot!(rendered(r#"
u1        user   "go"
a1 <- u1  reply  m1 text "Done."
b1 <- a1  boundary auto {"preTokens":150000}
c1 <- b1  compact-summary "We *did* it."
a2 <- c1  reply  m2 text "On we go."
"#), @r##"
    <div class="i reply k-reply" id="m2">
    <p>Done.</p><a class="at" href="#m2">m2</a></div>
    <div class="i compaction k-reply" id="m3">
    <details><summary><span class="tool">Compacted</span><span class="subject">auto · at 150k tokens · 2 lines dropped</span></summary>
    <div class="body">
    <p>We <em>did</em> it.</p></div></details><a class="at" href="#m3">m3</a></div>
    <div class="i reply k-reply" id="m5">
    <p>On we go.</p><a class="at" href="#m5">m5</a>
    "##);
}

#[test]
fn output_is_truncated() {
    let options = RenderOptions { max_output: Some(5), ..options() };
    let log = "u1 user \"go\"\na1 <- u1 reply m1 tool t1 Bash {\"command\":\"seq\"}\nr1 <- a1 result t1 \"123456789\"\n";
    assert_snapshot!(rendered_with(log, &options), @r##"
    <div class="i call k-tool" id="m2" data-t="0">
    <details><summary><span class="tool">Bash</span><span class="subject">seq</span><span class="gist"></span><span class="duration">1.0 s</span></summary>
    <div class="body">
    <div class="code command" data-lang="sh">
    <pre tabindex="0"><code>seq</code></pre></div>
    <div class="code">
    <pre tabindex="0">12345</pre></div>
    <p class="note">4 B more omitted</p></div></details><a class="at" href="#m2">m2</a>
    "##);
}

#[test]
fn a_truncated_diff_ends_at_the_first_line_that_does_not_fit() {
    let options = RenderOptions { max_output: Some(5), ..options() };
    let log = r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 Edit {"file_path":"/a.rs","old_string":"x","new_string":"y"}
r1 <- a1  result t1 "ok" {"filePath":"/a.rs","structuredPatch":[{"oldStart":3,"oldLines":3,"newStart":3,"newLines":3,"lines":[" ab"," a long line"," c"]},{"oldStart":9,"oldLines":1,"newStart":9,"newLines":1,"lines":[" d"]}]}
"#;
    let page = rendered_with(log, &options);
    let diff = page.split_once("<div class=\"code diff\"").unwrap().1;
    assert!(
        diff.contains("<span class=\"same\" data-o=\"3\" data-n=\"3\"> ab\n</span></pre></div>"),
        "{diff}"
    );
    assert!(diff.contains("13 B more omitted"), "{diff}");
}
