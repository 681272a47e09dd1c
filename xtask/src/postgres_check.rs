//! Checks archives in a database with a real server: sessions come back byte for byte, commands answer as
//! they do for local files and for a folder, faults lose nothing, and many machines push at the same time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use threadline_testkit::PostgresServer;

use crate::archive_check::{MACHINES, compare, home, sorted, team_home};
use crate::bench::LogFiles;
use crate::postgres_bench::SERVER;

/// The number of times that a push is killed.
const KILLS: u64 = 20;

pub(crate) fn check(binary: &Path) -> Result<(), String> {
    let Some(server) = PostgresServer::start(&SERVER) else {
        println!("database: skipped, PostgreSQL is not installed (Debian: postgresql)");
        return Ok(());
    };
    let work = tempfile::tempdir().map_err(|error| error.to_string())?;
    let home = home(work.path()).map_err(|error| error.to_string())?;
    let client = Client { binary, work: work.path() };
    let url = server.url(&server.database());
    let folder = format!("file:{}", work.path().join("folder").display());
    let push = ["archive", "push", "--level", "full", "--to"];
    client.expect(&home, "one", &[&push[..], &[&url]].concat())?;
    client.expect(&home, "one", &[&push[..], &[&folder]].concat())?;
    client.expect(&home, "one", &["archive", "verify", "--from", &url])?;
    answers(&client, &home, &[&folder, &url])?;
    session_store(&url)?;
    client.expect(&home, "one", &["archive", "verify", "--from", &url])?;
    faults(&client, &server, &home)?;
    simulate_team(&client, &server)
}

/// Compares the answers of archives with those of local files.
fn answers(client: &Client<'_>, local_home: &Path, archives: &[&str]) -> Result<(), String> {
    for query in [
        "list --json",
        "usage --json",
        "usage --by week --json",
        "usage --by session --json",
        "usage --by project --json",
        "usage --by model --json",
        "usage --by branch --json",
        "usage --by tool --json",
        "search the -c --json",
        "search error --json",
        "search Cargo.toml --json",
        "search /fn\\s/ -c --json",
        "search tool:Bash -c --json",
        "inspect 00000003 --json",
    ] {
        let words: Vec<&str> = query.split(' ').collect();
        let local = client.expect(local_home, "one", &words)?;
        for from in archives {
            let archived = client.expect(local_home, "one", &[&words[..], &["--from", from]].concat())?;
            let mut archived = archived;
            for cached in client.cached_homes("one") {
                archived = archived.replace(&*cached.to_string_lossy(), "[home]");
            }
            let local = sorted(&local.replace(&*local_home.to_string_lossy(), "[home]"));
            if local != sorted(&archived) {
                return Err(format!("{query} from {from} differs:\n{local}\n{archived}"));
            }
        }
        println!("{query}: the same from files, a folder and a database");
    }
    for cached in client.cached_homes("one") {
        compare(&local_home.join("projects"), &cached.join("projects"))?;
    }
    println!("{} files come back byte for byte", LogFiles::in_folder(local_home).files.len());
    Ok(())
}

/// Runs the conformance checks of the Agent SDK.
fn session_store(url: &str) -> Result<(), String> {
    let Some(python) = std::env::var_os("AGENT_SDK_PYTHON") else {
        println!("SessionStore: skipped, AGENT_SDK_PYTHON is not set (claude-agent-sdk, psycopg[binary])");
        return Ok(());
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../integrations/python");
    let mut command = Command::new(python);
    command.arg("-B").arg("test_conformance.py").arg(url).current_dir(folder);
    let done = command.output().map_err(|error| error.to_string())?;
    println!("SessionStore: {}", String::from_utf8_lossy(&done.stdout).trim());
    match done.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
    }
}

/// Interrupts pushes: the program is killed, and the server restarts or crashes.
fn faults(client: &Client<'_>, server: &PostgresServer, home: &Path) -> Result<(), String> {
    let url = server.url(&server.database());
    let push = ["archive", "push", "--quiet", "--level", "full", "--to", &url];
    client.expect(home, "state", &["archive", "status", "--from", &url, "--json"]).err();
    let mut codes = Vec::new();
    for number in 0..KILLS {
        let mut child = client.command(home, "two", &push).spawn().map_err(|error| error.to_string())?;
        std::thread::sleep(Duration::from_millis(20 + number * 37 % 400));
        match number % 10 {
            3 => server.command("restart"),
            7 => server.command("crash"),
            _ => {
                let _ = child.kill();
            }
        }
        codes.push(child.wait().ok().and_then(|status| status.code()).unwrap_or(-1));
        if !server.wait() {
            return Err("the server does not start again".to_owned());
        }
    }
    println!("{KILLS} interrupted pushes, exit codes {codes:?}");
    client.expect(home, "two", &push)?;
    let again = client.expect(home, "two", &[&push[..], &["--json"]].concat())?;
    if !again.contains("\"copied_bytes\":0") {
        return Err(format!("something was copied twice: {again}"));
    }
    client.expect(home, "two", &["archive", "verify", "--from", &url])?;
    client.expect(home, "three", &["list", "--json", "--from", &url])?;
    for cached in client.cached_homes("three") {
        compare(&home.join("projects"), &cached.join("projects"))?;
    }
    println!("the next push ends as an uninterrupted one");
    Ok(())
}

/// Pushes from many machines at the same time.
fn simulate_team(client: &Client<'_>, server: &PostgresServer) -> Result<(), String> {
    let url = server.url(&server.database());
    let home = team_home(client.work)?;
    client.expect(&home, "first", &["archive", "push", "--level", "full", "--to", &url])?;
    let begun = Instant::now();
    let spawn = |machine: usize| {
        let push = ["archive", "push", "--quiet", "--to", &url, "--level", "full"];
        client.command(&home, &format!("machine{machine}"), &push).stdout(Stdio::null()).spawn()
    };
    let children: Result<Vec<Child>, _> = (0..MACHINES).map(spawn).collect();
    let mut failed = 0;
    for mut child in children.map_err(|error| error.to_string())? {
        failed += usize::from(!child.wait().is_ok_and(|status| status.success()));
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{MACHINES} machines push to a database at once: {seconds:.1} s, {:.0} pushes/s, {failed} failed",
        MACHINES as f64 / seconds
    );
    let idle = Instant::now();
    for machine in 0..20 {
        let push = ["archive", "push", "--quiet", "--to", &url, "--level", "full"];
        client.expect(&home, &format!("machine{machine}"), &push)?;
    }
    println!("a push with nothing new: {:.0} ms", idle.elapsed().as_secs_f64() * 1e3 / 20.0);
    client.expect(&home, "first", &["archive", "verify", "--from", &url])?;
    if failed > 0 { Err(format!("{failed} pushes failed")) } else { Ok(()) }
}

/// The program, with folders per machine.
struct Client<'a> {
    binary: &'a Path,
    work: &'a Path,
}

impl Client<'_> {
    fn command(&self, home: &Path, machine: &str, args: &[&str]) -> Command {
        let mut command = Command::new(self.binary);
        command.arg("--home").arg(home).args(args).stdin(Stdio::null()).stderr(Stdio::piped());
        for (name, folder) in [("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache")] {
            command.env(name, self.work.join(machine).join(folder));
        }
        command
    }

    /// Runs a command that must succeed, and returns its output.
    fn expect(&self, home: &Path, machine: &str, args: &[&str]) -> Result<String, String> {
        let Output { status, stdout, stderr } =
            self.command(home, machine, args).output().map_err(|error| error.to_string())?;
        match status.success() {
            true => Ok(String::from_utf8_lossy(&stdout).into_owned()),
            false => Err(format!("{args:?}: {}", String::from_utf8_lossy(&stderr))),
        }
    }

    /// Returns the folders that the archives of a machine were fetched to.
    fn cached_homes(&self, machine: &str) -> Vec<PathBuf> {
        let entries = |folder: &Path| {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).collect::<Vec<_>>()
        };
        let archives = entries(&self.work.join(machine).join("cache/threadline/archive"));
        let homes = archives.iter().flat_map(|archive| entries(archive));
        homes.filter(|path| path.join("projects").is_dir()).collect()
    }
}
