//! Access control, and the security headers of responses.

use threadline_testkit::{TestHome, session_uuid};

use crate::support::TestServer;

fn home() -> TestHome {
    let home = TestHome::new();
    home.session("one", "u1 user \"the warp is tangled\"\na1 <- u1 reply m1 text \"I see.\"");
    home
}

#[test]
fn the_token_is_exchanged_for_a_strict_http_only_cookie() {
    let home = home();
    let served = TestServer::new(&home);
    let reply = served.request("GET", &format!("/?sort=cost&token={}", served.token), &[]);
    assert_eq!((reply.status, reply.header("location")), (303, "/?sort=cost"));
    let cookie = reply.header("set-cookie");
    assert_eq!(cookie, format!("{}; HttpOnly; SameSite=Strict; Path=/", served.cookie()));
    let page = served.get("/sessions");
    assert_eq!(page.status, 200);
    assert!(page.body.contains("the warp is tangled"));
}

/// The code is in the command line of the browser, which other users of the machine can read.
#[test]
fn the_code_works_once_and_the_token_repeatedly() {
    let home = home();
    let served = TestServer::new(&home);
    let code = format!("/?code={}", served.code);
    assert_eq!(served.request("GET", "/?code=wrong", &[]).status, 401);
    let reply = served.request("GET", &code, &[]);
    assert_eq!((reply.status, reply.header("location")), (303, "/"));
    assert!(reply.header("set-cookie").starts_with(&served.cookie()));
    let again = served.request("GET", &code, &[]);
    assert_eq!((again.status, again.header("set-cookie")), (401, ""));
    for _ in 0..3 {
        assert_eq!(served.request("GET", &format!("/?token={}", served.token), &[]).status, 303);
    }
    // All three keys are different.
    let keys = [&served.token, &served.code, &served.cookie_value];
    for (i, key) in keys.iter().enumerate() {
        assert!(!keys[i + 1..].contains(key));
    }
    assert_eq!(served.request("GET", &format!("/?token={}", served.code), &[]).status, 401);
    assert_eq!(served.request("GET", &format!("/?token={}", served.cookie_value), &[]).status, 401);
}

#[test]
fn requests_without_the_cookie_are_rejected() {
    let home = home();
    let served = TestServer::new(&home);
    let wrong = format!("threadline-{}={}x", served.port, served.cookie_value);
    let short = format!("threadline-{}={}", served.port, &served.cookie_value[1..]);
    let other = format!("threadline-{}={}", served.port + 1, served.cookie_value);
    let token = format!("threadline-{}={}", served.port, served.token);
    for path in
        ["/", "/index.json", "/s/x", "/s/x.md", "/nowhere", "/?token=", "/?token=wrong", "//evil.example/"]
    {
        for cookie in ["", &wrong, &short, &other, &token] {
            let reply = served.request("GET", path, &[("Cookie", cookie)]);
            assert_eq!(reply.status, 401, "{path} {cookie}");
            assert!(!reply.body.contains("warp"), "{path}");
        }
    }
    // Stylesheets and scripts are public.
    assert_eq!(served.request("GET", "/assets/x/page.css", &[]).status, 200);
}

#[test]
fn a_token_does_not_redirect_to_another_host() {
    let home = home();
    let served = TestServer::new(&home);
    let reply = served.request("GET", &format!("//evil.example/?token={}", served.token), &[]);
    assert_eq!(reply.header("location"), "/");
}

#[test]
fn a_foreign_host_is_rejected_even_with_the_cookie() {
    let home = home();
    let served = TestServer::new(&home);
    let cookie = served.cookie();
    for host in
        ["evil.example", "evil.example:80", &format!("evil.example:{}", served.port), "127.0.0.1", "", "[::1"]
    {
        let reply = served.request("GET", "/", &[("Host", host), ("Cookie", &cookie)]);
        assert!(matches!(reply.status, 400 | 421), "{host}: {}", reply.status);
        assert!(!reply.body.contains("warp"), "{host}");
        let reply = served.request("GET", &format!("/?token={}", served.token), &[("Host", host)]);
        assert!(matches!(reply.status, 400 | 421) && reply.header("set-cookie").is_empty(), "{host}");
    }
    for host in ["localhost", "[::1]", "127.0.0.1"] {
        let reply =
            served.request("GET", "/", &[("Host", &format!("{host}:{}", served.port)), ("Cookie", &cookie)]);
        assert_eq!(reply.status, 200, "{host}");
    }
}

#[test]
fn a_request_with_two_hosts_is_rejected() {
    let home = home();
    let served = TestServer::new(&home);
    let (cookie, own) = (served.cookie(), format!("127.0.0.1:{}", served.port));
    for hosts in [[&*own, "evil.example"], ["evil.example", &own], [&own, &own]] {
        let headers = [("Host", hosts[0]), ("Host", hosts[1]), ("Cookie", &*cookie)];
        let reply = served.request("GET", "/", &headers);
        assert!(matches!(reply.status, 400 | 421), "{hosts:?}: {}", reply.status);
    }
    for (target, status) in [
        ("http://evil.example/".to_owned(), 421),
        (format!("http://evil.example:{}/", served.port), 421),
        (format!("http://{own}/"), 200),
    ] {
        assert_eq!(served.request("GET", &target, &[("Cookie", &cookie)]).status, status, "{target}");
    }
}

#[test]
fn a_foreign_origin_is_rejected_even_with_the_cookie() {
    let home = home();
    let served = TestServer::new(&home);
    let cookie = served.cookie();
    let own = format!("http://127.0.0.1:{}", served.port);
    let near = format!("http://127.0.0.1:{}", served.port + 1);
    let secure = format!("https://127.0.0.1:{}", served.port);
    for origin in ["http://evil.example", "null", "", &near, &secure, &format!("{own}.evil.example")] {
        let reply = served.request("GET", "/", &[("Origin", origin), ("Cookie", &cookie)]);
        assert_eq!(reply.status, 403, "{origin}");
    }
    for (site, mode, status) in [
        ("cross-site", "no-cors", 403),
        ("same-site", "cors", 403),
        ("cross-site", "navigate", 200),
        ("same-origin", "cors", 200),
    ] {
        let headers = [("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", mode), ("Cookie", &*cookie)];
        assert_eq!(served.request("GET", "/", &headers).status, status, "{site} {mode}");
    }
    assert_eq!(served.request("GET", "/", &[("Origin", &own), ("Cookie", &cookie)]).status, 200);
}

#[test]
fn only_scripts_of_our_own_pages_change_pins_and_tags() {
    let home = TestHome::new();
    home.session("loom", "u1 user \"weave\"");
    let served = TestServer::new(&home);
    let path = format!("/s/{}/labels.json?pin=1&add=blue", session_uuid("loom"));
    let (cookie, own) = (served.cookie(), format!("http://127.0.0.1:{}", served.port));
    let post = |headers: &[(&str, &str)]| served.request("POST", &path, headers).status;
    assert_eq!(post(&[("Cookie", &cookie)]), 403, "without an origin");
    assert_eq!(post(&[("Cookie", &cookie), ("Origin", "null")]), 403, "a form of a page without a referrer");
    assert_eq!(post(&[("Cookie", &cookie), ("Origin", "http://evil.example")]), 403);
    let cross = [
        ("Cookie", &*cookie),
        ("Origin", &own),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Mode", "navigate"),
    ];
    assert_eq!(post(&cross), 403);
    assert_eq!(post(&[("Origin", &own)]), 401, "without the cookie");
    assert_eq!(served.get(&path).status, 405, "a link");
    let labels = || served.get("/sessions.json").body;
    assert!(!labels().contains("blue") && labels().contains("\"pinned\":false"), "{}", labels());
    let allowed = [("Cookie", &*cookie), ("Origin", &own), ("Sec-Fetch-Site", "same-origin")];
    assert_eq!(post(&allowed), 200);
    assert!(labels().contains("blue") && labels().contains("\"pinned\":true"), "{}", labels());
    for (path, status) in [("labels?add=%20", 400), ("labels", 400), ("context", 405)] {
        let path = format!("/s/{}/{path}", session_uuid("loom"));
        assert_eq!(served.request("POST", &path, &allowed).status, status, "{path}");
    }
    assert_eq!(served.request("POST", "/s/nothing/labels?pin=1", &allowed).status, 404);
}

#[test]
fn methods_other_than_get_and_head_are_rejected() {
    let home = home();
    let served = TestServer::new(&home);
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let headers = [("Cookie", &*served.cookie()), ("Content-Length", "0")];
        assert_eq!(served.request(method, "/", &headers).status, 405, "{method}");
    }
    assert_eq!(served.request("HEAD", "/", &[("Cookie", &served.cookie())]).status, 200);
}

#[test]
fn every_response_has_security_headers() {
    let home = home();
    let served = TestServer::new(&home);
    for path in ["/", "/nowhere", "/s/none", "/s/none.json", "/assets/x/none"] {
        let reply = served.get(path);
        let policy = reply.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'") && policy.contains("script-src 'self'"), "{path}");
        assert!(!policy.contains("unsafe"), "{path}");
        assert_eq!(reply.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(reply.header("referrer-policy"), "no-referrer", "{path}");
        assert_eq!(reply.header("cache-control"), "no-store", "{path}");
    }
    let asset = served.get(&format!("/assets/{}/page.css", threadline_html::stamp()));
    assert_eq!(asset.header("cache-control"), "public, max-age=31536000, immutable");
    let page = served.get("/").body;
    assert!(!page.contains("<style") && !page.contains("<script>") && !page.contains(" style=\""), "{page}");
    assert!(
        page.contains(&format!(
            "<script defer src=\"/assets/{}/site.js\"></script>",
            threadline_html::stamp()
        ))
    );
}
