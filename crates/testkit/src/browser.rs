//! A real browser for tests: Chromium, driven through chromedriver.
//!
//! [`Browser::start`] installs both with apt where it may (as root on Debian) and otherwise says what to do, and that
//! the test was skipped.

#![allow(clippy::print_stderr, reason = "a test that does nothing should say so")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A browser with one window. It ends when dropped.
pub struct Browser {
    driver: Child,
    /// Open as long as it may want to say something.
    _said: BufReader<ChildStdout>,
    port: u16,
    session: String,
    _profile: tempfile::TempDir,
}

/// How long anything may take that a test waits for; machines that build at the same time are slow.
const PATIENCE: Duration = Duration::from_secs(60);

impl Browser {
    /// A browser with a window of 1400 by 1000, or `None` where there is none, after saying so.
    pub fn start() -> Option<Self> {
        static THERE: OnceLock<bool> = OnceLock::new();
        if !*THERE.get_or_init(|| is_there() || (install() && is_there())) {
            crate::skipped("there is no browser; `apt install chromium chromium-driver` brings one");
            return None;
        }
        let profile = tempfile::Builder::new().prefix("threadline-browser-").tempdir().ok()?;
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver starts");
        // It takes a port that is free and says which: one that we had looked for could be somebody's by then.
        let mut said = BufReader::new(driver.stdout.take().expect("its output is piped"));
        let mut line = String::new();
        let port = loop {
            line.clear();
            assert!(said.read_line(&mut line).expect("text") > 0, "chromedriver ended");
            let port = line.trim_end().strip_suffix('.').and_then(|line| line.split_once(" on port "));
            if let Some(port) = port.and_then(|(_, port)| port.parse().ok()) {
                break port;
            }
        };
        let mut browser = Self { driver, _said: said, port, session: String::new(), _profile: profile };
        let data = format!("--user-data-dir={}", browser._profile.path().display());
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:loggingPrefs": {"browser": "ALL"},
            "goog:chromeOptions": {"args": [
                "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
                "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
                "--window-size=1400,1000", data,
            ]},
        }}});
        let started = Instant::now();
        let answer = loop {
            match browser.call("POST", "/session", &wanted) {
                Ok(answer) => break answer,
                Err(error) => assert!(started.elapsed() < PATIENCE, "no browser: {error}"),
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        answer["sessionId"].as_str().unwrap_or_default().clone_into(&mut browser.session);
        Some(browser)
    }

    /// Goes to an address and waits until the page is there.
    pub fn open(&self, url: &str) {
        self.command("url", &json!({"url": url}));
    }

    /// What a piece of script returns.
    pub fn run(&self, script: &str) -> Value {
        self.command("execute/sync", &json!({"script": script, "args": []}))
    }

    /// Waits until a piece of script returns something true, and returns that.
    ///
    /// # Panics
    ///
    /// If it never does.
    pub fn wait(&self, script: &str) -> Value {
        let started = Instant::now();
        loop {
            let value = self.run(script);
            if !matches!(value, Value::Null | Value::Bool(false)) && value != json!(0) && value != json!("") {
                return value;
            }
            assert!(started.elapsed() < PATIENCE, "never true: {script}\n{:?}", self.console());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Presses a key, wherever the focus is.
    pub fn press(&self, key: &str) {
        let key_event = |kind: &str| json!({"type": kind, "value": key});
        let keys =
            json!({"type": "key", "id": "keys", "actions": [key_event("keyDown"), key_event("keyUp")]});
        self.command("actions", &json!({"actions": [keys]}));
    }

    /// What the browser has to complain of since it was last asked: errors of scripts, and what a policy refused.
    pub fn console(&self) -> Vec<String> {
        let log = self.command("se/log", &json!({"type": "browser"}));
        let lines = log.as_array().cloned().unwrap_or_default();
        lines.iter().map(|line| line["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// A command of the browser's own protocol.
    pub fn devtools(&self, command: &str, params: &Value) -> Value {
        self.command("goog/cdp/execute", &json!({"cmd": command, "params": params}))
    }

    /// Makes the page believe that the reader likes it `light` or `dark`.
    pub fn prefer(&self, theme: &str) {
        let feature = json!({"name": "prefers-color-scheme", "value": theme});
        self.devtools("Emulation.setEmulatedMedia", &json!({"features": [feature]}));
    }

    /// Gives the window another size.
    pub fn resize(&self, width: u32, height: u32) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", &metrics);
    }

    /// A picture of what is seen, in base 64.
    pub fn picture(&self) -> String {
        let taken = self.devtools("Page.captureScreenshot", &json!({"format": "png"}));
        taken["data"].as_str().unwrap_or_default().to_owned()
    }

    fn command(&self, name: &str, body: &Value) -> Value {
        let path = format!("/session/{}/{name}", self.session);
        self.call("POST", &path, body).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let told = |error: std::io::Error| error.to_string();
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).map_err(told)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(told)?;
        let body = body.to_string();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        let request =
            format!("{head}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).map_err(told)?;
        // The driver keeps connections open, so the answer is as long as it says.
        let mut stream = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).map_err(told)?;
            if line.trim().is_empty() {
                break;
            }
            if let Some((_, value)) =
                line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            {
                length = value.trim().parse().map_err(|_| line.clone())?;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).map_err(told)?;
        let answer: Value = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        let value = answer["value"].clone();
        match value["error"].as_str() {
            Some(error) => Err(format!("{error}: {}", value["message"].as_str().unwrap_or_default())),
            None => Ok(value),
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() {
            let _ = self.call("DELETE", &format!("/session/{}", self.session), &json!({}));
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn is_there() -> bool {
    ["chromedriver", "chromium"].iter().all(|program| answers(program, &["--version"]))
}

/// Brings the browser where that needs nobody's leave: as root, on a system with apt.
fn install() -> bool {
    let root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    if !root || !answers("apt-get", &["--version"]) {
        return false;
    }
    eprintln!("installing chromium and chromium-driver with apt");
    let packages = ["install", "-y", "--no-install-recommends", "chromium", "chromium-driver"];
    answers("apt-get", &packages) || (answers("apt-get", &["update"]) && answers("apt-get", &packages))
}

fn answers(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
