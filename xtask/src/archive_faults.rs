//! Faults of the archive on object storage and on a full disk: interruptions, two pushers, flipped bits,
//! and slow or silent servers. After each, a push continues, and everything comes back byte for byte.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::archive_check::{BUCKET, Client, MotoServer, compare};
use crate::corpus::{Random, log};

/// The number of pushes that are killed.
const KILLS: u64 = 100;

/// The number of pushes during which the connection is cut.
const CUTS: u64 = 8;

/// The longest time until a push to a server that does not answer fails.
const MAX_SILENCE: Duration = Duration::from_secs(150);

pub(crate) fn check_faults(client: &Client<'_>, moto: &MotoServer) -> Result<(), String> {
    let home = client.work.join("fault-home");
    for i in 0..24 {
        write_log(&home, i, 20_000 + 9_000 * i as usize)?;
    }
    let url = format!("s3://{BUCKET}/faults");
    let push = ["archive", "push", "--to", &url, "--level", "full", "--quiet"];
    kill_pushes(client, &home, &push)?;
    expect_all(client, &home, &url, "faults")?;
    println!("{KILLS} pushes killed at random times: everything comes back byte for byte");

    cut_connections(client, moto, &home, &push)?;
    expect_all(client, &home, &url, "faults")?;
    println!("{CUTS} pushes without a connection after some requests: the same");

    for round in 0..10 {
        write_log(&home, round, 300_000)?;
        let pushers: Vec<Child> = (0..3)
            .map(|_| client.command(&home, "faults", &push).stdout(Stdio::null()).spawn())
            .collect::<Result<_, _>>()
            .map_err(text)?;
        for mut pusher in pushers {
            if !pusher.wait().is_ok_and(|status| status.success()) {
                return Err("one of several pushers failed".to_owned());
            }
        }
    }
    expect_all(client, &home, &url, "faults")?;
    println!("3 processes push the same home at once, 10 times: the same");

    flip_bits(client, moto, &home, &url)?;
    expect_all(client, &home, &url, "faults")?;

    let slow = FaultyProxy::start(moto.port)?;
    slow.delay.store(200, Ordering::SeqCst);
    write_log(&home, 3, 200_000)?;
    let begun = Instant::now();
    client.with_port(slow.port).expect(&home, "faults", &push)?;
    println!("a server that needs 200 ms for each answer: pushed in {:.1} s", begun.elapsed().as_secs_f64());
    slow.delay.store(u64::MAX, Ordering::SeqCst);
    write_log(&home, 4, 200_000)?;
    let begun = Instant::now();
    let failed = client.with_port(slow.port).expect(&home, "faults", &push);
    if failed.is_ok() || begun.elapsed() > MAX_SILENCE {
        return Err(format!("a server that never answers: {failed:?} after {:?}", begun.elapsed()));
    }
    println!("a server that never answers: an error after {:.0} s", begun.elapsed().as_secs_f64());
    client.expect(&home, "faults", &push)?;
    expect_all(client, &home, &url, "faults")
}

/// Fills a small file system with an archive, and continues when there is space.
pub(crate) fn check_full_disk(client: &Client<'_>) -> Result<(), String> {
    let folder = client.work.join("small-disk");
    fs::create_dir_all(&folder).map_err(text)?;
    let Some(disk) = SmallDisk::mount(&folder) else {
        println!("full disk: skipped, a tmpfs cannot be mounted");
        return Ok(());
    };
    let home = client.work.join("full-disk-home");
    let mut random = Random::new(5);
    for i in 0..40 {
        let content: String = (0..40_000).map(|_| format!("{:x}", random.next())).collect();
        let line =
            format!("{{\"type\":\"user\",\"uuid\":\"{i}\",\"message\":{{\"content\":\"{content}\"}}}}\n");
        put(&home, i, line.as_bytes())?;
    }
    let url = format!("file:{}", folder.join("archive").display());
    let push = ["archive", "push", "--to", &url];
    let failed = client.expect(&home, "disk", &push);
    let Err(message) = failed else { return Err("the disk was not full".to_owned()) };
    println!("full disk: {}", message.lines().next().unwrap_or_default());
    disk.resize("64m")?;
    client.expect(&home, "disk", &["archive", "verify", "--from", &url])?;
    client.expect(&home, "disk", &push)?;
    expect_all(client, &home, &url, "disk")?;
    println!("full disk: what was written is intact, and the next push continues");
    Ok(())
}

/// A small file system in memory, which is unmounted when dropped.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    fn mount(folder: &'a Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"]).arg(folder).stderr(Stdio::null());
        mount.status().is_ok_and(|status| status.success()).then_some(Self(folder))
    }

    fn resize(&self, size: &str) -> Result<(), String> {
        let options = format!("remount,size={size}");
        let status = Command::new("mount").args(["-o", &options]).arg(self.0).status().map_err(text)?;
        if status.success() { Ok(()) } else { Err("the file system cannot be enlarged".to_owned()) }
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

/// Kills pushes after a random time, while logs grow and are rewritten.
fn kill_pushes(client: &Client<'_>, home: &Path, push: &[&str]) -> Result<(), String> {
    let begun = Instant::now();
    client.expect(
        home,
        "faults-once",
        &["archive", "push", "--to", &format!("s3://{BUCKET}/once"), "--level", "full"],
    )?;
    let longest = u64::try_from(begun.elapsed().as_millis()).unwrap_or(1).max(10);
    let mut random = Random::new(11);
    for i in 0..KILLS {
        write_log(home, random.next() % 24, 30_000 + (random.next() % 400_000) as usize)?;
        let mut child = client
            .command(home, "faults", push)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(text)?;
        std::thread::sleep(Duration::from_millis(random.next() % longest));
        let _ = child.kill();
        child.wait().map_err(text)?;
        // Some complete, so that later ones continue from different states.
        if i % 20 == 19 {
            client.expect(home, "faults", push)?;
        }
    }
    client.expect(home, "faults", push).map(drop)
}

/// Cuts the connection after some requests.
fn cut_connections(client: &Client<'_>, moto: &MotoServer, home: &Path, push: &[&str]) -> Result<(), String> {
    for requests in 1..=CUTS {
        write_log(home, requests, 250_000)?;
        let proxy = FaultyProxy::start(moto.port)?;
        proxy.allowed.store(requests, Ordering::SeqCst);
        // Whether it fails depends on how many requests it needs.
        let _ = client.with_port(proxy.port).expect(home, "faults", push);
    }
    client.expect(home, "faults", push).map(drop)
}

/// Flips a bit of a segment and of a manifest; `verify` must find each.
fn flip_bits(client: &Client<'_>, moto: &MotoServer, home: &Path, url: &str) -> Result<(), String> {
    for prefix in ["faults/segments/", "faults/manifests/"] {
        let listed = moto.list(prefix)?;
        let name = listed.last().ok_or("there is no object")?;
        let content = moto.get(name)?;
        for at in [0, content.len() / 2, content.len() - 1] {
            let mut damaged = content.clone();
            damaged[at] ^= 16;
            moto.put(name, &damaged)?;
            if client.expect(home, "faults", &["archive", "verify", "--from", url]).is_ok() {
                return Err(format!("verify does not find a flipped bit in {name}"));
            }
        }
        moto.put(name, &content)?;
    }
    println!("a flipped bit in a segment or a manifest is found by verify");
    Ok(())
}

/// Checks that an archive is intact and that its files are those of the home.
fn expect_all(client: &Client<'_>, home: &Path, url: &str, machine: &str) -> Result<(), String> {
    client.expect(home, machine, &["archive", "push", "--to", url, "--level", "full"])?;
    client.expect(home, machine, &["archive", "verify", "--from", url])?;
    client.expect(home, machine, &["list", "--json", "--from", url])?;
    let cached = client.cached_home(machine).ok_or("nothing was fetched")?;
    compare(&home.join("projects"), &cached.join("projects"))
}

fn write_log(home: &Path, number: u64, size: usize) -> Result<(), String> {
    let id = format!("{number:08}-0000-4000-8000-000000000000");
    put(home, number, log(&id, size, &mut Random::new(number)).as_bytes())
}

fn put(home: &Path, number: u64, content: &[u8]) -> Result<(), String> {
    let folder = home.join(format!("projects/-faults-{}", number % 3));
    fs::create_dir_all(&folder).map_err(text)?;
    fs::write(folder.join(format!("{number:08}-0000-4000-8000-000000000000.jsonl")), content).map_err(text)
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}

/// A proxy that forwards requests to a server, with faults.
struct FaultyProxy {
    port: u16,
    /// How many connections are accepted; later ones are closed at once.
    allowed: Arc<AtomicU64>,
    /// Milliseconds before each answer; no answer at all if it is the maximum.
    delay: Arc<AtomicU64>,
}

impl FaultyProxy {
    fn start(server: u16) -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(text)?;
        let port = listener.local_addr().map_err(text)?.port();
        let proxy =
            Self { port, allowed: Arc::new(AtomicU64::new(u64::MAX)), delay: Arc::new(AtomicU64::new(0)) };
        let (allowed, delay) = (Arc::clone(&proxy.allowed), Arc::clone(&proxy.delay));
        // Ends with the process.
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (allowed, delay) = (Arc::clone(&allowed), Arc::clone(&delay));
                std::thread::spawn(move || forward(client, server, &allowed, &delay));
            }
        });
        Ok(proxy)
    }
}

/// Forwards both directions of a connection. Every packet of a client counts as a request.
fn forward(
    mut client: TcpStream,
    server: u16,
    allowed: &Arc<AtomicU64>,
    delay: &Arc<AtomicU64>,
) -> Option<()> {
    let mut upstream = TcpStream::connect(("127.0.0.1", server)).ok()?;
    let (mut answers, mut back) = (upstream.try_clone().ok()?, client.try_clone().ok()?);
    let answer_delay = Arc::clone(delay);
    std::thread::spawn(move || -> Option<()> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            let n_read = answers.read(&mut buffer).ok().filter(|n_read| *n_read > 0)?;
            match answer_delay.load(Ordering::SeqCst) {
                u64::MAX => std::thread::sleep(MAX_SILENCE),
                milliseconds => std::thread::sleep(Duration::from_millis(milliseconds)),
            }
            back.write_all(&buffer[..n_read]).ok()?;
        }
    });
    let mut buffer = vec![0; 64 << 10];
    loop {
        let n_read = client.read(&mut buffer).ok().filter(|n_read| *n_read > 0)?;
        let left = allowed.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if left.is_err() {
            let _ = client.shutdown(std::net::Shutdown::Both);
            return None;
        }
        upstream.write_all(&buffer[..n_read]).ok()?;
    }
}
