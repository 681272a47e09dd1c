//! A real browser for tests: Chromium, controlled through chromedriver.
//!
//! [`Browser::start`] installs both with apt if it can (as root on Debian). Otherwise it prints how to
//! install them, and that the test was skipped.

#![allow(clippy::print_stderr, reason = "a skipped test should be reported")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A browser with one window. Dropping it ends the process.
pub struct Browser {
    driver: Child,
    /// The output of the driver, kept open because the driver may still write to it.
    _stdout: BufReader<ChildStdout>,
    port: u16,
    session: String,
    _profile: tempfile::TempDir,
}

/// The timeout of every operation, long enough for machines that build at the same time.
const TIMEOUT: Duration = Duration::from_secs(60);

impl Browser {
    /// Starts a browser with a window of 1400 by 1000.
    ///
    /// Returns `None` if no browser is installed, and prints that the test is skipped.
    pub fn start() -> Option<Self> {
        static THERE: OnceLock<bool> = OnceLock::new();
        if !*THERE.get_or_init(|| is_installed() || (install() && is_installed())) {
            crate::report_skipped(
                "no browser found; install one with `apt install chromium chromium-driver`",
            );
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
        // The driver chooses a free port and prints it: a port that we chose could be taken by then.
        let mut said = BufReader::new(driver.stdout.take().expect("stdout is piped"));
        let mut line = String::new();
        let port = loop {
            line.clear();
            assert!(said.read_line(&mut line).expect("text") > 0, "chromedriver ended");
            let port = line.trim_end().strip_suffix('.').and_then(|line| line.split_once(" on port "));
            if let Some(port) = port.and_then(|(_, port)| port.parse().ok()) {
                break port;
            }
        };
        let mut browser = Self { driver, _stdout: said, port, session: String::new(), _profile: profile };
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
                Err(error) => assert!(started.elapsed() < TIMEOUT, "cannot start the browser: {error}"),
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        answer["sessionId"].as_str().unwrap_or_default().clone_into(&mut browser.session);
        Some(browser)
    }

    /// Opens a URL and returns when the page is loaded.
    pub fn open(&self, url: &str) {
        self.command("url", &json!({"url": url}));
    }

    /// Runs a script and returns its value.
    pub fn run(&self, script: &str) -> Value {
        self.command("execute/sync", &json!({"script": script, "args": []}))
    }

    /// Runs a script repeatedly until it returns a truthy value, and returns that.
    ///
    /// # Panics
    ///
    /// If that takes longer than the timeout.
    pub fn wait_for(&self, script: &str) -> Value {
        let started = Instant::now();
        loop {
            let value = self.run(script);
            if !matches!(value, Value::Null | Value::Bool(false)) && value != json!(0) && value != json!("") {
                return value;
            }
            assert!(started.elapsed() < TIMEOUT, "condition not met in time: {script}\n{:?}", self.console());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Presses and releases a key on the focused element.
    pub fn press(&self, key: &str) {
        let key_event = |kind: &str| json!({"type": kind, "value": key});
        let keys =
            json!({"type": "key", "id": "keys", "actions": [key_event("keyDown"), key_event("keyUp")]});
        self.command("actions", &json!({"actions": [keys]}));
    }

    /// Returns the messages of the console since the last call: script errors and policy violations.
    pub fn console(&self) -> Vec<String> {
        let log = self.command("se/log", &json!({"type": "browser"}));
        let lines = log.as_array().cloned().unwrap_or_default();
        lines.iter().map(|line| line["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Runs a command of the DevTools protocol.
    pub fn devtools(&self, command: &str, params: &Value) -> Value {
        self.command("goog/cdp/execute", &json!({"cmd": command, "params": params}))
    }

    /// Emulates the preferred colour scheme: `light` or `dark`.
    pub fn set_color_scheme(&self, theme: &str) {
        let feature = json!({"name": "prefers-color-scheme", "value": theme});
        self.devtools("Emulation.setEmulatedMedia", &json!({"features": [feature]}));
    }

    /// Resizes the viewport.
    pub fn resize(&self, width: u32, height: u32) {
        let metrics = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", &metrics);
    }

    /// Returns a screenshot of the viewport, as base64.
    pub fn screenshot(&self) -> String {
        let taken = self.devtools("Page.captureScreenshot", &json!({"format": "png"}));
        taken["data"].as_str().unwrap_or_default().to_owned()
    }

    fn command(&self, name: &str, body: &Value) -> Value {
        let path = format!("/session/{}/{name}", self.session);
        self.call("POST", &path, body).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let error_text = |error: std::io::Error| error.to_string();
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).map_err(error_text)?;
        stream.set_read_timeout(Some(TIMEOUT)).map_err(error_text)?;
        let body = body.to_string();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        let request =
            format!("{head}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).map_err(error_text)?;
        // The driver keeps connections open, so the length of the body comes from its header.
        let mut stream = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).map_err(error_text)?;
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
        stream.read_exact(&mut body).map_err(error_text)?;
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

fn is_installed() -> bool {
    ["chromedriver", "chromium"].iter().all(|program| succeeds(program, &["--version"]))
}

/// Installs the browser if that needs no permission: as root, on a system with apt.
fn install() -> bool {
    let root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    if !root || !succeeds("apt-get", &["--version"]) {
        return false;
    }
    eprintln!("installing chromium and chromium-driver with apt");
    let packages = ["install", "-y", "--no-install-recommends", "chromium", "chromium-driver"];
    succeeds("apt-get", &packages) || (succeeds("apt-get", &["update"]) && succeeds("apt-get", &packages))
}

fn succeeds(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
