//! `threadline serve` as a process: the address it prints, where it listens, how it exits.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use threadline_testkit::TestHome;

use crate::run::{command, threadline};

/// A server process that is killed when dropped.
struct ServerProcess {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
}

impl ServerProcess {
    fn start(home: &TestHome) -> Self {
        Self::start_with(home, &["serve", "--no-open"])
    }

    fn start_with(home: &TestHome, args: &[&str]) -> Self {
        let mut child = command([args, &["--home", home.root().to_str().unwrap()]].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_server_prints_its_url_responds_and_exits_on_ctrl_c() {
    let home = TestHome::new();
    home.session("loom", "u1 user \"weave\"");
    let mut served = ServerProcess::start(&home);
    let line = served.line();
    let rest = line.trim_end().strip_prefix("http://127.0.0.1:").unwrap();
    let (port, token) = rest.split_once("/?token=").unwrap();
    assert!(token.len() >= 32 && token.bytes().all(|byte| byte.is_ascii_hexdigit()), "{line}");
    let ask = |path: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", port.parse().unwrap())).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(ask(&format!("/?token={token}")).contains("303"), "the token is traded for a cookie");
    assert!(ask("/").starts_with("HTTP/1.1 401"));
    if cfg!(unix) {
        let pid = served.child.id();
        assert!(Command::new("sh").args(["-c", &format!("kill -INT {pid}")]).status().unwrap().success());
        assert_eq!(served.child.wait().unwrap().code(), Some(0));
        assert_eq!(served.line(), "", "one line and no more");
    }
}

#[test]
fn a_port_in_use_is_reported_with_a_hint() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let run = threadline(["--demo", "serve", "--no-open", "--port", &*port]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains(&format!("cannot listen on 127.0.0.1:{port}")), "{}", run.err);
    assert!(run.err.contains("omit --port"), "{}", run.err);
}

#[test]
fn remote_access_needs_host_and_allow_remote() {
    let run = threadline(["--demo", "serve", "--no-open", "--host", "0.0.0.0"]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("--allow-remote"), "{}", run.err);
}

#[test]
fn the_key_of_a_server_is_printed_if_secrets_are_masked() {
    let home = TestHome::new();
    home.session("loom", "u1 user \"weave\"");
    for (args, start) in [
        (&["--redact", "serve", "--no-open"][..], "/?token="),
        (&["--redact", "mcp", "--http", "--json"], "\"token\":\""),
        (&["--redact", "mcp", "--http"], "Authorization: Bearer "),
    ] {
        let mut served = ServerProcess::start_with(&home, args);
        let mut line = served.line();
        if !line.contains(start) {
            line = served.line();
        }
        let key = line.split_once(start).unwrap().1.trim_end();
        assert!(
            key.len() >= 32 && key.as_bytes()[..32].iter().all(u8::is_ascii_hexdigit),
            "{args:?}: {line}"
        );
    }
}
