//! Checks the archive: real versions of Claude Code resume restored sessions. On a real S3 server, `moto`
//! from PyPI, sessions come back byte for byte, commands answer as they do for local files, faults lose
//! nothing, and many machines push at the same time.
//!
//! `MOTO_SERVER` is the program `moto_server` of a virtual environment with `moto[server,s3]`.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::time::{Duration, Instant};

use crate::archive_encryption::check_encryption;
use crate::archive_faults::{check_faults, check_full_disk};
use crate::archive_resume::check_resume;
use crate::bench::{LogFiles, shared};
use crate::command::binary;
use crate::tables_check::{check_tables, check_tables_on_s3};

pub(crate) const BUCKET: &str = "threadline-sessions";

/// The number of machines that push at the same time.
pub(crate) const MACHINES: usize = 200;

pub(crate) fn run() -> ExitCode {
    let Some(binary) = binary() else { return ExitCode::from(2) };
    let objects = check(&binary);
    #[cfg(unix)]
    let database = crate::postgres_check::check(&binary);
    #[cfg(not(unix))]
    let database: Result<(), String> = Ok(());
    let mut code = ExitCode::SUCCESS;
    for error in [objects, database].into_iter().filter_map(Result::err) {
        println!("archive: {error}");
        code = ExitCode::from(1);
    }
    code
}

fn check(binary: &Path) -> Result<(), String> {
    let work = tempfile::tempdir().map_err(|error| error.to_string())?;
    let local = Client { binary, work: work.path(), port: 0 };
    check_encryption(&local)?;
    check_resume(&local)?;
    check_tables(&local)?;
    check_full_disk(&local)?;
    match std::env::var_os("MOTO_SERVER").map(PathBuf::from) {
        Some(server) => check_s3(&server, binary, work.path()),
        None => {
            println!("S3: skipped, MOTO_SERVER is not set (pip install 'moto[server,s3]')");
            Ok(())
        }
    }
}

fn check_s3(server: &Path, binary: &Path, work: &Path) -> Result<(), String> {
    let home = home(work).map_err(|error| error.to_string())?;
    let mut moto = MotoServer::start(server, None)?;
    let client = Client { binary, work, port: moto.port };
    let url = format!("s3://{BUCKET}/team");
    let push = ["archive", "push", "--to", &url, "--level", "full"];
    client.expect(&home, "one", &push)?;
    client.expect(&home, "one", &["archive", "verify", "--from", &url])?;
    for query in [
        &["list", "--json"][..],
        &["usage", "--by", "session", "--json"],
        &["usage", "--by", "model", "--json"],
        &["search", "the", "-c", "--json"],
        &["inspect", "00000003", "--json"],
        &["show", "00000003", "--json"],
        &["check", "--json"],
        &["replay", "00000003", "--json"],
        &["export", "json", "00000003"],
        &["export", "markdown", "00000003"],
    ] {
        let local = client.answer(&home, "one", query)?;
        let archived = client.answer(&home, "one", &[query, &["--from", &url]].concat())?;
        let cache = client.cached_home("one").ok_or("nothing was fetched")?;
        let [local, archived] = [(local, &home), (archived, &cache)]
            .map(|(out, home)| sorted(&out.replace(&*home.to_string_lossy(), "[home]")));
        if local != archived {
            return Err(format!("{query:?} differs:\n{local}\n{archived}"));
        }
        println!("{}: the same from S3", query.join(" "));
    }
    let cached = client.cached_home("one").ok_or("nothing was fetched")?;
    compare(&home.join("projects"), &cached.join("projects"))?;
    println!("{} files come back byte for byte", LogFiles::in_folder(&home).files.len());

    check_tables_on_s3(&client, &moto, &home, &url)?;
    check_faults(&client, &moto)?;

    // The server is gone half-way, and another one takes its place.
    let port = moto.port;
    let mut child = client.command(&home, "two", &push).spawn().map_err(|error| error.to_string())?;
    std::thread::sleep(Duration::from_millis(100));
    moto.stop();
    let status = child.wait().map_err(|error| error.to_string())?;
    println!("the server stops during a push: exit {}", status.code().unwrap_or(-1));
    let _moto = MotoServer::start(server, Some(port))?;
    client.expect(&home, "two", &push)?;
    client.expect(&home, "two", &["archive", "verify", "--from", &url])?;
    println!("the next push to a new server copies everything again");
    simulate_team(&client, &url)
}

/// Pushes from many machines at the same time.
fn simulate_team(client: &Client<'_>, url: &str) -> Result<(), String> {
    let home = team_home(client.work)?;
    let begun = Instant::now();
    let spawn = |machine: usize| {
        let push = ["archive", "push", "--to", url, "--level", "full"];
        client.command(&home, &format!("machine{machine}"), &push).stdout(Stdio::null()).spawn()
    };
    let children: Result<Vec<Child>, _> = (0..MACHINES).map(spawn).collect();
    let mut failed = 0;
    for mut child in children.map_err(|error| error.to_string())? {
        failed += usize::from(!child.wait().is_ok_and(|status| status.success()));
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{MACHINES} machines push at once: {seconds:.1} s, {:.0} pushes/s, {failed} failed",
        MACHINES as f64 / seconds
    );
    let listed = client.expect(&home, "reader", &["list", "--json", "--from", url])?;
    println!("read by one: {} sessions", listed.lines().count());
    if failed > 0 { Err(format!("{failed} pushes failed")) } else { Ok(()) }
}

/// Creates a home with five small sessions.
pub(crate) fn team_home(work: &Path) -> Result<PathBuf, String> {
    let home = work.join("small");
    let folder = home.join("projects/-small");
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let text = "{\"type\":\"user\",\"uuid\":\"1\",\"message\":{\"role\":\"user\",\"content\":\"hello\"}}\n"
        .repeat(200);
    for i in 0..5 {
        let name = format!("{i:08}-0000-4000-8000-000000000000.jsonl");
        fs::write(folder.join(name), &text).map_err(|error| error.to_string())?;
    }
    Ok(home)
}

/// The program with a server of object storage.
pub(crate) struct Client<'a> {
    pub(crate) binary: &'a Path,
    /// A temporary folder.
    pub(crate) work: &'a Path,
    pub(crate) port: u16,
}

impl Client<'_> {
    pub(crate) fn command(&self, home: &Path, machine: &str, args: &[&str]) -> Command {
        let mut command = Command::new(self.binary);
        command.arg("--home").arg(home).args(args).stdin(Stdio::null());
        for (name, folder) in [("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache")] {
            command.env(name, self.work.join(machine).join(folder));
        }
        command.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test");
        command.env("AWS_REGION", "us-east-1").env("AWS_ALLOW_HTTP", "true");
        command.env("AWS_ENDPOINT", format!("http://127.0.0.1:{}", self.port));
        command
    }

    /// Runs a command that must succeed, and returns its output.
    pub(crate) fn expect(&self, home: &Path, machine: &str, args: &[&str]) -> Result<String, String> {
        let Output { status, stdout, stderr } =
            self.command(home, machine, args).output().map_err(|error| error.to_string())?;
        match status.success() {
            true => Ok(String::from_utf8_lossy(&stdout).into_owned()),
            false => Err(format!("{args:?}: {}", String::from_utf8_lossy(&stderr))),
        }
    }

    /// Runs a command that may find nothing or problems, and returns its exit code and output.
    fn answer(&self, home: &Path, machine: &str, args: &[&str]) -> Result<String, String> {
        let done = self.command(home, machine, args).output().map_err(|error| error.to_string())?;
        match done.status.code() {
            Some(code @ 0..=1) => Ok(format!("{code}\n{}", String::from_utf8_lossy(&done.stdout))),
            _ => Err(format!("{args:?}: {}", String::from_utf8_lossy(&done.stderr))),
        }
    }

    /// Returns the same program with another server.
    pub(crate) fn with_port(&self, port: u16) -> Self {
        Self { port, binary: self.binary, work: self.work }
    }

    /// Returns the folder that the archive of a machine was fetched to.
    pub(crate) fn cached_home(&self, machine: &str) -> Option<PathBuf> {
        let archives = fs::read_dir(self.work.join(machine).join("cache/threadline/archive")).ok()?;
        let folders = archives.flatten().filter_map(|archive| fs::read_dir(archive.path()).ok()).flatten();
        folders.flatten().map(|entry| entry.path()).find(|path| path.join("projects").is_dir())
    }
}

/// A server with the interface of S3, which is killed when dropped.
pub(crate) struct MotoServer {
    child: Child,
    pub(crate) port: u16,
}

impl MotoServer {
    fn start(program: &Path, port: Option<u16>) -> Result<Self, String> {
        let free = || TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = match port {
            Some(port) => port,
            None => free().map_err(|error| error.to_string())?.port(),
        };
        let mut command = Command::new(program);
        command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let server = Self { child: child.map_err(|error| error.to_string())?, port };
        let deadline = Instant::now() + Duration::from_secs(30);
        while server.request("HEAD / HTTP/1.1").is_none() {
            if Instant::now() > deadline {
                return Err("moto_server does not answer".to_owned());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        server.request(&format!("PUT /{BUCKET} HTTP/1.1")).ok_or("the bucket cannot be created")?;
        Ok(server)
    }

    fn request(&self, line: &str) -> Option<Vec<u8>> {
        self.send(line, &[])
    }

    /// Sends a request and returns the answer with its head.
    fn send(&self, line: &str, body: &[u8]) -> Option<Vec<u8>> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        let head = format!(
            "{line}\r\nHost: 127.0.0.1:{}\r\nContent-Length: {}\r\nAuthorization: AWS test:test\r\nConnection: close\r\n\r\n",
            self.port,
            body.len()
        );
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(body).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        Some(answer)
    }

    /// Returns the names of the objects with a prefix.
    pub(crate) fn list(&self, prefix: &str) -> Result<Vec<String>, String> {
        let answer = self.request(&format!("GET /{BUCKET}?list-type=2&prefix={prefix} HTTP/1.1"));
        let answer = String::from_utf8_lossy(&answer.ok_or("the server does not answer")?).into_owned();
        let names = answer.split("<Key>").skip(1).filter_map(|rest| rest.split_once("</Key>"));
        Ok(names.map(|(name, _)| name.to_owned()).collect())
    }

    /// Returns the content of an object.
    pub(crate) fn get(&self, name: &str) -> Result<Vec<u8>, String> {
        let answer =
            self.request(&format!("GET /{BUCKET}/{name} HTTP/1.1")).ok_or("the server does not answer")?;
        if !answer.starts_with(b"HTTP/1.1 200") {
            return Err(format!("{name}: {}", String::from_utf8_lossy(&answer)));
        }
        let body = answer.windows(4).position(|window| window == b"\r\n\r\n").ok_or("there is no body")?;
        Ok(answer[body + 4..].to_vec())
    }

    /// Replaces an object.
    pub(crate) fn put(&self, name: &str, content: &[u8]) -> Result<(), String> {
        let answer = self.send(&format!("PUT /{BUCKET}/{name} HTTP/1.1"), content);
        match answer.is_some_and(|answer| answer.starts_with(b"HTTP/1.1 200")) {
            true => Ok(()),
            false => Err(format!("{name} cannot be written")),
        }
    }

    fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for MotoServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns a home with the real sessions, or with the sample sessions if there are none.
pub(crate) fn home(work: &Path) -> std::io::Result<PathBuf> {
    let home = work.join("home");
    let mut logs = LogFiles::in_folder(&shared().join("corpus")).files;
    if logs.is_empty() {
        logs = LogFiles::in_folder(&threadline_testkit::demo()).files;
    }
    for (i, log) in logs.iter().enumerate() {
        let folder = home.join(format!("projects/-project-{}", i % 5));
        fs::create_dir_all(&folder)?;
        fs::copy(log, folder.join(format!("{i:08}-0000-4000-8000-000000000000.jsonl")))?;
    }
    Ok(home)
}

/// Copies a folder with everything in it.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", from.display());
    fs::create_dir_all(to).map_err(failed)?;
    for entry in fs::read_dir(from).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        match path.is_dir() {
            true => copy_folder(&path, &target)?,
            false => {
                fs::copy(&path, &target).map_err(failed)?;
            }
        }
    }
    Ok(())
}

/// Sorts lines, and leaves out the time of the copy.
pub(crate) fn sorted(out: &str) -> String {
    let without_time = |line: &str| {
        let Ok(mut value) = serde_json::from_str::<serde_json::Value>(line) else { return line.to_owned() };
        if let Some(object) = value.as_object_mut() {
            object.remove("modified_at");
        }
        value.to_string()
    };
    let mut lines: Vec<String> = out.lines().map(without_time).collect();
    lines.sort();
    lines.join("\n")
}

/// Compares two folders byte for byte.
pub(crate) fn compare(a: &Path, b: &Path) -> Result<(), String> {
    let files = |folder: &Path| {
        let mut files = LogFiles::in_folder(folder).files;
        files.sort();
        files
    };
    let (left, right) = (files(a), files(b));
    if left.len() != right.len() {
        return Err(format!("{} files and {} files", left.len(), right.len()));
    }
    for (left, right) in left.iter().zip(&right) {
        if fs::read(left).ok() != fs::read(right).ok() {
            return Err(format!("{} differs", left.display()));
        }
    }
    Ok(())
}
