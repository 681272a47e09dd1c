//! A PostgreSQL server for tests.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::skip::report_skipped;

/// A PostgreSQL server in a temporary folder, on a free port of this machine.
///
/// It ends when its standard input is closed: when this value is dropped, and also when the process ends in
/// any other way.
pub struct PostgresServer {
    child: Child,
    input: Mutex<Option<ChildStdin>>,
    programs: PathBuf,
    port: u16,
    dir: PathBuf,
    n_databases: AtomicUsize,
}

/// Starts the server, obeys commands, and stops it and deletes its folder when there are no more.
const SCRIPT: &str = r#"
cd "$1" || exit 1
"$2/initdb" -D data -U threadline --auth=trust -E UTF8 --locale=C --no-sync >initdb.log 2>&1 || exit 1
{ echo "host all keyholder 127.0.0.1/32 scram-sha-256"; cat data/pg_hba.conf; } >hba && mv hba data/pg_hba.conf
if [ -f server.crt ]; then set -- "$@" -c ssl=on -c "ssl_cert_file=$1/server.crt" -c "ssl_key_file=$1/server.key"; fi
dir=$1 bin=$2 port=$3
shift 3
start() {
    "$bin/postgres" -D data -k "$dir" -p "$port" -c listen_addresses=127.0.0.1 "$@" >>server.log 2>&1 &
    pid=$!
}
stop() {
    kill "-$1" "$pid" && wait "$pid"
}
start "$@"
while read -r word; do
    case $word in
        restart) stop INT; start "$@" ;;
        crash) stop QUIT; start "$@" ;;
        stop) stop INT ;;
        start) start "$@" ;;
    esac
done
stop INT
cd /
rm -rf "$dir"
"#;

/// Creates an authority and a certificate for 127.0.0.1.
const CERTIFICATES: &str = r#"
set -e
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.crt
openssl req -newkey rsa:2048 -nodes -subj /CN=server -keyout server.key -out server.csr
echo subjectAltName=IP:127.0.0.1 >names
openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.crt
chmod 600 server.key
chmod 755 .
"#;

/// The server is not found to run within this time.
const START_TIME: Duration = Duration::from_secs(60);

impl PostgresServer {
    /// Returns the server that all tests of this process use; `None` if PostgreSQL is not installed.
    pub fn shared() -> Option<&'static Self> {
        static SERVER: OnceLock<Option<PostgresServer>> = OnceLock::new();
        SERVER.get_or_init(|| Self::start(&["-c", "fsync=off"])).as_ref()
    }

    /// Starts a server with some options; `None`, with a message, if PostgreSQL is not installed.
    pub fn start(options: &[&str]) -> Option<Self> {
        let Some(programs) = programs() else {
            report_skipped("PostgreSQL is not installed (Debian: postgresql)");
            return None;
        };
        let server = Self::start_with(&programs, options, false);
        if server.is_none() {
            report_skipped("PostgreSQL does not start");
        }
        server
    }

    /// Starts a server with a certificate for 127.0.0.1; see [`PostgresServer::certificate`]. `None`, with a
    /// message, if PostgreSQL or OpenSSL is not installed.
    pub fn start_encrypted() -> Option<Self> {
        let server = programs().and_then(|programs| Self::start_with(&programs, &["-c", "fsync=off"], true));
        if server.is_none() {
            report_skipped("PostgreSQL or OpenSSL is not installed (Debian: postgresql, openssl)");
        }
        server
    }

    /// Returns the file with the certificate of the authority that has signed that of the server.
    pub fn certificate(&self) -> PathBuf {
        self.dir.join("ca.crt")
    }

    fn start_with(programs: &Path, options: &[&str], encrypted: bool) -> Option<Self> {
        let dir = tempfile::Builder::new().prefix("threadline-pg").tempdir().ok()?.keep();
        let port = TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?.port();
        if encrypted {
            output(Command::new("sh").args(["-c", CERTIFICATES]).current_dir(&dir))?;
        }
        // The server refuses to run as root.
        let is_root = output(Command::new("id").arg("-u"))?.trim() == "0";
        let mut command = match is_root {
            false => Command::new("sh"),
            true => {
                let user = ["postgres", "nobody"]
                    .into_iter()
                    .find_map(|user| output(Command::new("id").args(["-u", user])))?;
                output(Command::new("chown").args(["-R", user.trim()]).arg(&dir))?;
                let mut command = Command::new("setpriv");
                command.arg(format!("--reuid={}", user.trim())).args(["--clear-groups", "sh"]);
                command
            }
        };
        command.args(["-c", SCRIPT, "postgres-server"]).arg(&dir).arg(programs).arg(port.to_string());
        command.args(options).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().ok()?;
        let input = Mutex::new(child.stdin.take());
        let server =
            Self { child, input, programs: programs.to_owned(), port, dir, n_databases: AtomicUsize::new(0) };
        server.wait().then_some(server)
    }

    /// Waits until the server accepts connections. Returns `false` if it does not.
    pub fn wait(&self) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < START_TIME {
            if self.try_sql("postgres", "select 1").is_some() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Creates a database, and returns its name.
    ///
    /// # Panics
    ///
    /// If the server does not do it.
    pub fn database(&self) -> String {
        let number = self.n_databases.fetch_add(1, Ordering::SeqCst);
        let name = format!("archive{number}");
        self.sql("postgres", &format!("create database {name}"));
        name
    }

    /// Returns the address of a database for its owner.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://threadline@127.0.0.1:{}/{database}?sslmode=disable", self.port)
    }

    /// Runs statements, and returns the rows: one per line, columns separated by `|`.
    ///
    /// # Panics
    ///
    /// If a statement fails.
    pub fn sql(&self, database: &str, statements: &str) -> String {
        self.try_sql(database, statements).unwrap_or_else(|| panic!("the server refused: {statements}"))
    }

    fn try_sql(&self, database: &str, statements: &str) -> Option<String> {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U", "threadline"]);
        psql.args(["-p", &self.port.to_string(), "-d", database, "-c", statements]);
        output(&mut psql)
    }

    /// Tells the server to `restart`, `crash`, `stop` or `start`.
    pub fn command(&self, word: &str) {
        if let Some(input) = &mut *self.input.lock() {
            let _ = writeln!(input, "{word}");
        }
    }

    /// Returns whether something accepts connections at the port.
    pub fn is_listening(&self) -> bool {
        TcpStream::connect(("127.0.0.1", self.port)).is_ok()
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        drop(self.input.lock().take());
        let _ = self.child.wait();
    }
}

/// Runs a program. Returns its output, if it succeeds.
fn output(command: &mut Command) -> Option<String> {
    let done = command.stdin(Stdio::null()).output().ok()?;
    done.status.success().then(|| String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Returns the folder of the programs of PostgreSQL: `THREADLINE_POSTGRES`, or that of the newest version.
#[expect(clippy::disallowed_methods, reason = "tests are configured by the environment")]
fn programs() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os("THREADLINE_POSTGRES") {
        return Some(folder.into());
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    let folders = versions.flatten().map(|version| version.path().join("bin"));
    let number = |folder: &PathBuf| -> Option<u32> { folder.parent()?.file_name()?.to_str()?.parse().ok() };
    folders.filter(|folder| folder.join("initdb").exists()).max_by_key(number)
}
