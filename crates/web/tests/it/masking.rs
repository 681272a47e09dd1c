//! Secrets on the pages: shown, masked by the switch, and left out of exported files.

use threadline_testkit::{Browser, TestHome, session_uuid};

use crate::support::{HttpResponse, TestServer, assert_no_browser_errors};

/// A password that only the name in front of it identifies.
const PASSWORD: &str = "mVq3xT81pLz0";

/// Creates a session with secrets in every part of its pages. Returns its id and the secrets.
fn session_with_secrets(home: &TestHome) -> (String, Vec<String>) {
    let token = threadline_testkit::secrets(1).into_iter().next().unwrap().text;
    let lines: Vec<String> =
        (0..4).map(|line| format!("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC{line:032}")).collect();
    let fence = |word: &str| ["-----", word, " PRIVATE", " KEY-----"].concat();
    let key = [fence("BEGIN"), lines.join("\\n"), fence("END")].join("\\n");
    let log = format!(
        r#"u1        user   "deploy with {token}" cwd="/home/ada/loom"
a1 <- u1  reply  m1 tool t1 Task {{"description":"use {token}","prompt":"p"}}
s1        user   "p" +{{"isSidechain":true}}
s2 <- s1  reply  m2 text "I used {token}" +{{"isSidechain":true}}
r1 <- a1  result t1 "done"
a2 <- r1  reply  m3 tool t2 Bash {{"command":"cat key"}}
r2 <- a2  result t2 "{key}"
a3 <- r2  reply  m4 tool t3 Write {{"file_path":"/home/ada/loom/.env","content":"DB_PASSWORD={PASSWORD}\n"}}
r3 <- a3  result t3 "File created"
a4 <- r3  reply  m5 text "The password {PASSWORD} is set, the key contains {line}."
u2 <- a4  user   "thanks, ada"
"#,
        line = lines[2]
    );
    home.session("secrets", &log);
    let secrets = [token, PASSWORD.to_owned()].into_iter().chain(lines).collect();
    (session_uuid("secrets"), secrets)
}

/// Returns the secrets that a response contains.
fn leaks<'s>(response: &HttpResponse, secrets: &'s [String]) -> Vec<&'s String> {
    assert_eq!(response.status, 200, "{}", response.body);
    secrets.iter().filter(|secret| response.body.contains(secret.as_str())).collect()
}

#[test]
fn masked_requests_contain_no_secret_on_any_page() {
    let home = TestHome::new();
    let (id, secrets) = session_with_secrets(&home);
    let served = TestServer::new(&home);
    let masked = format!("{}; threadline-mask=1", served.cookie());
    let part = format!("/s/{id}/part?name=m1");
    let pages = [
        "/?range=all".to_owned(),
        "/overview.json?range=all".to_owned(),
        "/records.json".to_owned(),
        "/records?kind=prompts".to_owned(),
        "/sessions".to_owned(),
        "/index.json".to_owned(),
        "/search?q=deploy".to_owned(),
        "/search?q=contains".to_owned(),
        "/search.json?q=contains".to_owned(),
        format!("/s/{id}"),
        format!("/s/{id}.json"),
        format!("/s/{id}.md"),
        part,
        format!("/s/{id}/outline?number=0"),
        format!("/s/{id}/frame"),
        format!("/s/{id}/changes"),
        format!("/s/{id}/changes.md"),
        format!("/s/{id}/changes.json"),
        format!("/s/{id}/check"),
        format!("/s/{id}/export"),
        format!("/s/{id}/raw?line=1"),
        format!("/s/{id}/raw?line=7"),
        format!("/s/{id}/raw?line=10"),
    ];
    for page in &pages {
        let response = served.request("GET", page, &[("Cookie", &masked)]);
        assert_eq!(leaks(&response, &secrets), Vec::<&String>::new(), "{page}: {}", response.body);
    }
    // The same pages without the switch contain them, so the test above can fail.
    let shown = served.get(&format!("/s/{id}"));
    assert_eq!(leaks(&shown, &secrets).len(), secrets.len());
    assert!(shown.body.contains("id=\"b-mask\" hidden aria-pressed=\"false\""), "{}", shown.body);
}

#[test]
fn an_exported_page_is_redacted_as_asked() {
    let home = TestHome::new();
    let (id, secrets) = session_with_secrets(&home);
    let served = TestServer::new(&home);
    let export = |choice: &str| served.get(&format!("/s/{id}/export{choice}"));
    let unchanged = export("");
    let disposition = unchanged.headers.iter().find(|(name, _)| name == "content-disposition").unwrap();
    assert_eq!(disposition.1, format!("attachment; filename=\"{id}.html\""));
    assert_eq!(leaks(&unchanged, &secrets).len(), secrets.len());
    assert_eq!(leaks(&export("?redact=none"), &secrets).len(), secrets.len());
    let masked = export("?redact=secrets");
    assert!(leaks(&masked, &secrets).is_empty());
    assert!(masked.body.contains("/home/ada/loom"));
    let shared = export("?redact=share");
    assert!(leaks(&shared, &secrets).is_empty());
    assert!(!shared.body.contains("/home/ada") && !shared.body.contains("ada"), "{}", shared.body);
    assert_eq!(export("?redact=perhaps").status, 400);
}

#[test]
fn the_switch_masks_secrets_on_every_page_with_the_keyboard_alone() {
    let Some(browser) = Browser::start() else { return };
    let home = TestHome::new();
    let (id, secrets) = session_with_secrets(&home);
    let served = TestServer::new(&home);
    let has_secret = |browser: &Browser| {
        let text = browser.run("return document.body.textContent");
        secrets.iter().any(|secret| text.as_str().unwrap().contains(secret.as_str()))
    };
    let pressed = "return document.readyState === 'complete' && document.getElementById('b-mask').getAttribute('aria-pressed')";
    browser.open(&served.url(&format!("/s/{id}")));
    assert_eq!(browser.wait_for(pressed), "false");
    assert!(has_secret(&browser));
    browser.run("document.getElementById('b-mask').focus()");
    browser.press("\u{e007}");
    browser.wait_for(&format!("{pressed} === 'true'"));
    assert!(!has_secret(&browser));
    // It applies to the other pages, too.
    for page in ["/sessions", "/search?q=deploy", &format!("/s/{id}/changes")] {
        browser.open(&served.url(page));
        browser.wait_for(&format!("{pressed} === 'true'"));
        assert!(!has_secret(&browser), "{page}");
    }
    browser.press("m");
    browser.wait_for(&format!("{pressed} === 'false'"));
    assert!(has_secret(&browser));
    assert_no_browser_errors(&browser);
}

#[test]
fn net_changes_have_a_file_list_and_collapse() {
    let Some(browser) = Browser::start() else { return };
    let home = TestHome::new();
    home.session(
        "edits",
        r#"u1        user   "make a loom" cwd="/p"
a1 <- u1  reply  m1 tool t1 Write {"file_path":"/p/a.txt","content":"one\ntwo\n"}
r1 <- a1  result t1 "File created"
a2 <- r1  reply  m2 tool t2 Write {"file_path":"/p/src/b.txt","content":"three\n"}
r2 <- a2  result t2 "File created"
"#,
    );
    let served = TestServer::new(&home);
    browser.open(&served.url(&format!("/s/{}/changes#file-2", session_uuid("edits"))));
    browser.wait_for("return document.readyState === 'complete'");
    assert_eq!(browser.run("return document.querySelector('h1').textContent"), "make a loom");
    let listed = browser
        .run("return [...document.querySelectorAll('.file-list li')].map(li => li.textContent.trim())");
    assert_eq!(listed, serde_json::json!(["a.txt new +2", "src/b.txt new +1"]));
    let open = "return [...document.querySelectorAll('details.file')].map(file => file.open)";
    assert_eq!(browser.run(open), serde_json::json!([true, true]));
    browser.run("document.querySelector('.file-list button').click()");
    assert_eq!(browser.run(open), serde_json::json!([false, false]));
    assert_eq!(browser.run("return document.querySelector('.file-list button').textContent"), "Expand all");
    // A link to a file opens it.
    browser.run("document.querySelector('.file-list a').click()");
    browser.wait_for("return document.querySelector('details.file').open");
    assert_no_browser_errors(&browser);
}

#[test]
fn masked_requests_contain_no_secret_in_a_name() {
    let token = |seed: u64| {
        let all = threadline_testkit::secrets(seed);
        all.into_iter().find(|secret| secret.kind == "github-token").unwrap().secret
    };
    let (branch, model, tool, folder) = (token(5), token(6), token(7), token(8));
    let home = TestHome::new();
    let log = format!(
        "u1 user \"go\" branch=\"fix/{branch}\" cwd=\"/home/ada/{folder}\"\n\
         a1 <- u1 reply m1 tool t1 {tool} {{\"a\":1}} model={model} usage={{\"input_tokens\":9,\"output_tokens\":5}}\n\
         r1 <- a1 result t1 \"ok\"\n"
    );
    home.session_in(&format!("/home/ada/{folder}"), "names", &log);
    let served = TestServer::new(&home);
    let masked = format!("{}; threadline-mask=1", served.cookie());
    let secrets = [branch, model, tool, folder].map(|secret| secret[2..].to_owned());
    for page in [
        "/?range=all",
        "/overview.json?range=all",
        "/records.json",
        "/sessions",
        "/index.json",
        "/usage",
        "/usage.md",
        "/usage.json?by=branch",
        "/usage.json?by=model",
        "/usage.json?by=tool",
        "/usage.json?by=project",
        "/search?q=go",
        "/search.json?q=go",
    ] {
        let response = served.request("GET", page, &[("Cookie", &masked)]);
        assert_eq!(leaks(&response, &secrets), Vec::<&String>::new(), "{page}: {}", response.body);
    }
}
