//! Compares edited sessions with the requests that real versions of Claude Code send for them.
//!
//! Every operation is planned and applied to a selection of sessions of a corpus, each in a temporary home.
//! The result must have no new findings in `check`, its replay must be one that the operation allows, and
//! each version of Claude Code must send the messages that we replay for that version. A difference that a
//! version also shows for the unedited source is ignored.

mod operation;
mod request;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use serde_json::Value;

use operation::{TestedOperation, operations};
use request::block_difference;
pub(crate) use request::{RequestBlock, blocks, first_difference};

/// The version for comparing the replays of source and result. Like edits, it drops unanswered tool calls.
const COMPARED_VERSION: &str = "2.1.197";

const USAGE: &str = "usage: cargo xtask conformance CORPUS [--claude CMD]... [--sessions N] [--only WORD]... [--jobs N] [--log FILE]";

/// The outcome of an operation on a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ConformanceVerdict {
    Good,
    NothingToDo,
    Refused,
    NotClean,
    NotAsPlanned,
    Differs,
    ClaudeRefuses,
}

const VERDICTS: [(ConformanceVerdict, &str); 7] = [
    (ConformanceVerdict::Good, "good"),
    (ConformanceVerdict::NothingToDo, "nothing to do"),
    (ConformanceVerdict::Refused, "refused"),
    (ConformanceVerdict::NotClean, "not clean"),
    (ConformanceVerdict::NotAsPlanned, "not as planned"),
    (ConformanceVerdict::Differs, "differs"),
    (ConformanceVerdict::ClaudeRefuses, "Claude Code refuses"),
];

impl ConformanceVerdict {
    fn name(self) -> &'static str {
        VERDICTS.iter().find(|(verdict, _)| *verdict == self).map_or("", |(_, name)| name)
    }
}

struct ConformanceArgs {
    corpus: PathBuf,
    claude: Vec<String>,
    sessions: usize,
    only: Vec<String>,
    jobs: usize,
    log: Option<PathBuf>,
}

fn parse(words: &[&str]) -> Option<ConformanceArgs> {
    let mut args = ConformanceArgs {
        corpus: PathBuf::new(),
        claude: Vec::new(),
        sessions: 20,
        only: Vec::new(),
        jobs: 1,
        log: None,
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--claude" => args.claude.push((*words.next()?).to_owned()),
            "--sessions" => args.sessions = words.next()?.parse().ok()?,
            "--only" => args.only.push((*words.next()?).to_owned()),
            "--jobs" => args.jobs = words.next()?.parse().ok().filter(|jobs| *jobs > 0)?,
            "--log" => args.log = Some((*words.next()?).into()),
            word if !word.starts_with('-') && args.corpus.as_os_str().is_empty() => args.corpus = word.into(),
            _ => return None,
        }
    }
    args.corpus.is_dir().then_some(args)
}

pub(crate) fn run(words: &[&str]) -> ExitCode {
    let Some(args) = parse(words) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let Some(binary) =
        std::env::current_exe().ok().map(|own| own.with_file_name("threadline")).filter(|path| path.exists())
    else {
        eprintln!(
            "threadline not found next to xtask (cargo build -p threadline -p xtask, with the same profile)"
        );
        return ExitCode::from(2);
    };
    let mut operations = operations();
    // The full name of an operation selects only that one.
    let names: Vec<String> = operations.iter().map(TestedOperation::name).collect();
    operations.retain(|operation| {
        let is_meant = |only: &String| match names.contains(only) {
            true => operation.name() == *only,
            false => operation.name().contains(&**only),
        };
        args.only.is_empty() || args.only.iter().any(is_meant)
    });
    let resumes = |log: &Path| {
        let mut replay = Command::new(&binary);
        replay.args(["--json", "replay", "--as", COMPARED_VERSION]).arg(log);
        let answer: Value = serde_json::from_str(&run_command(replay).out).unwrap_or_default();
        answer["messages"].as_array().is_some_and(|messages| !messages.is_empty())
    };
    let sessions = select_sessions(&args.corpus, args.sessions, resumes);
    let bench = ConformanceRun {
        binary: binary.clone(),
        done: read_log(args.log.as_deref()),
        claude: args.claude,
        log: args.log,
        sources: sessions.iter().map(|path| (path.clone(), OnceLock::new())).collect(),
        rows: Mutex::default(),
    };
    eprintln!(
        "{} sessions × {} operations × {} versions",
        sessions.len(),
        operations.len(),
        bench.claude.len()
    );
    let jobs: Vec<(&PathBuf, &TestedOperation)> = sessions
        .iter()
        .flat_map(|session| operations.iter().map(move |operation| (session, operation)))
        .collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..args.jobs {
            scope.spawn(|| {
                while let Some((session, operation)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    bench.run_one(session, operation);
                }
            });
        }
    });
    let rows = bench.rows.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    print_tables(&operations, &rows);
    let bad = rows.iter().filter(|row| row.verdict > ConformanceVerdict::Refused).count();
    if bad > 0 { ExitCode::from(1) } else { ExitCode::SUCCESS }
}

/// Selects sessions of a corpus that differ in origin and size.
///
/// Takes turns over the folders, and takes the largest, the middle and the smallest remaining log of each in
/// turn. Skips sessions that cannot be resumed, because there is nothing to compare.
fn select_sessions(corpus: &Path, count: usize, resumes: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut folders: Vec<Vec<PathBuf>> = Vec::new();
    let mut tops: Vec<PathBuf> =
        fs::read_dir(corpus).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    tops.sort();
    for top in tops {
        let mut logs = Vec::new();
        collect(&top, &mut logs);
        logs.sort_by_key(|path| (fs::metadata(path).map_or(0, |metadata| metadata.len()), path.clone()));
        folders.push(logs);
    }
    let mut chosen = Vec::new();
    let mut round = 0_usize;
    while chosen.len() < count && folders.iter().any(|logs| !logs.is_empty()) {
        for logs in folders.iter_mut().filter(|logs| !logs.is_empty()) {
            if chosen.len() < count {
                let at = match round % 3 {
                    0 => logs.len() - 1,
                    1 => logs.len() / 2,
                    _ => 0,
                };
                let log = logs.remove(at);
                if resumes(&log) {
                    chosen.push(log);
                }
            }
        }
        round += 1;
    }
    chosen
}

fn collect(path: &Path, logs: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let mut inside: Vec<_> =
            fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        inside.sort();
        inside.iter().for_each(|path| collect(path, logs));
        return;
    }
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_session = name.ends_with(".jsonl") && !name.starts_with("agent-") && name != "journal.jsonl";
    if is_session && path.components().all(|part| part.as_os_str() != "subagents") {
        logs.push(path.to_owned());
    }
}

/// One row of the result.
#[derive(Clone, Debug)]
struct VerdictRow {
    /// The version of Claude Code; empty if only our own checks ran.
    version: String,
    operation: String,
    session: String,
    verdict: ConformanceVerdict,
    why: String,
}

/// The outcome for one version of Claude Code: the version, the verdict, and the reason.
type VersionVerdict = (String, ConformanceVerdict, String);

struct ConformanceRun {
    binary: PathBuf,
    claude: Vec<String>,
    log: Option<PathBuf>,
    /// The results of an earlier run, by command, operation and session.
    done: HashMap<(String, String, String), VerdictRow>,
    sources: HashMap<PathBuf, OnceLock<UneditedSession>>,
    rows: Mutex<Vec<VerdictRow>>,
}

/// An unedited session, as seen by us and by each version of Claude Code.
#[derive(Default)]
struct UneditedSession {
    replay: Vec<RequestBlock>,
    findings: HashSet<String>,
    /// Texts with the role of the user that were not typed by a person.
    meta: HashSet<String>,
    /// The differences per version, computed when a result differs. `None` if the version rejects the
    /// session.
    differences: Vec<OnceLock<Option<BlockDifference>>>,
}

/// The blocks that only our replay contains, and those that only the request of a version contains.
type BlockDifference = (Vec<RequestBlock>, Vec<RequestBlock>);

/// Findings about content and location, which an edit of the structure does not change.
const CONTENT_FINDINGS: &[&str] = &["F13", "F15", "F18", "F19", "F20", "F21", "F22", "F26"];

impl ConformanceRun {
    fn run_one(&self, path: &Path, operation: &TestedOperation) {
        let session = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let ways: Vec<String> =
            if self.claude.is_empty() { vec![String::new()] } else { self.claude.clone() };
        let key = |way: &String| (way.clone(), operation.name(), session.clone());
        let known: Vec<VerdictRow> =
            ways.iter().filter_map(|way| self.done.get(&key(way)).cloned()).collect();
        if known.len() == ways.len() {
            self.rows.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).extend(known);
            return;
        }
        let verdicts = self.verdicts(path, operation);
        for (i, way) in ways.iter().enumerate() {
            let (version, verdict, why) = match &verdicts {
                Ok(verdicts) => verdicts[i].clone(),
                Err((verdict, why)) => (command_label(way), *verdict, why.clone()),
            };
            let row =
                VerdictRow { version, operation: operation.name(), session: session.clone(), verdict, why };
            if row.verdict > ConformanceVerdict::Refused {
                eprintln!("{} · {} · {session}: {}: {}", row.version, row.operation, verdict.name(), row.why);
            }
            self.store_row(way, row);
        }
    }

    fn store_row(&self, way: &str, row: VerdictRow) {
        let mut rows = self.rows.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(log) = &self.log
            && let Ok(mut file) = fs::OpenOptions::new().create(true).append(true).open(log)
        {
            let line = serde_json::json!({"way": way, "version": row.version, "operation": row.operation,
                "session": row.session, "verdict": row.verdict.name(), "why": row.why});
            let _ = writeln!(file, "{line}");
        }
        rows.push(row);
    }

    /// Returns the outcome for each version of Claude Code, or why the operation did not get that far.
    fn verdicts(
        &self,
        path: &Path,
        operation: &TestedOperation,
    ) -> Result<Vec<VersionVerdict>, (ConformanceVerdict, String)> {
        let source = self.source(path);
        if source.replay.is_empty() {
            return Err((ConformanceVerdict::NothingToDo, "no conversation".to_owned()));
        }
        let home =
            TemporaryHome::with(path).map_err(|error| (ConformanceVerdict::Refused, error.to_string()))?;
        let mut args = vec!["--json", "edit", operation.args[0], home.log.to_str().unwrap_or_default()];
        args.extend(&operation.args[1..]);
        args.push("--apply");
        let done = self.threadline(&home, &args);
        let first_lines = |text: &str| text.trim().lines().take(3).collect::<Vec<_>>().join("; ");
        match done.code {
            0 => {}
            1 => return Err((ConformanceVerdict::NothingToDo, first_lines(&done.err))),
            _ => return Err((ConformanceVerdict::Refused, first_lines(&done.err))),
        }
        let plan: Value =
            serde_json::from_str(done.out.lines().last().unwrap_or_default()).unwrap_or_default();
        let result = PathBuf::from(plan["path"].as_str().unwrap_or_default());
        let new: Vec<String> = self
            .findings(&home, &result)
            .into_iter()
            .filter(|finding| {
                let code = finding.split(' ').next().unwrap_or_default();
                !((CONTENT_FINDINGS.contains(&code) || operation.keeps_problems())
                    && source.findings.iter().any(|other| other.starts_with(code)))
            })
            .collect();
        if let Some(first) = new.first() {
            return Err((ConformanceVerdict::NotClean, format!("{} findings: {first}", new.len())));
        }
        let Some(replay) = self.replay(&home, &result, COMPARED_VERSION) else {
            return Err((ConformanceVerdict::NotAsPlanned, "our replay rejects it".to_owned()));
        };
        // Paths inside the folder of the session contain the id of the new session.
        let id = |key: &str| plan[key].as_str().unwrap_or_default().to_owned();
        let as_in_source = |blocks: &[RequestBlock]| renamed(blocks, &id("target"), &id("source"));
        let nameless = source.findings.iter().any(|finding| finding.starts_with("F25"));
        operation
            .check(&source.replay, &as_in_source(&replay), nameless, &source.meta)
            .map_err(|why| (ConformanceVerdict::NotAsPlanned, why))?;
        if self.claude.is_empty() {
            return Ok(vec![(String::new(), ConformanceVerdict::Good, String::new())]);
        }
        let ask = |(i, way): (usize, &String)| {
            let (version, sent) = run_claude(way, &result);
            let Some(sent) = sent else {
                let also = self.source_difference(path, i).is_none();
                let verdict = if also { ConformanceVerdict::Good } else { ConformanceVerdict::ClaudeRefuses };
                return (version, verdict, String::new());
            };
            let replay = self.replay(&home, &result, &version).unwrap_or_default();
            if first_difference(&replay, &sent).is_none() {
                return (version, ConformanceVerdict::Good, String::new());
            }
            // Blocks that differ in the same way for the source are peculiarities of the version.
            let (mut mine, mut its) = block_difference(&replay, &sent);
            if let Some((source_mine, source_its)) = self.source_difference(path, i) {
                // A version that rewrites a call or a result does so at any length.
                let same_call =
                    |a: &RequestBlock, b: &RequestBlock| a.kind == b.kind && a.id == b.id && !a.id.is_empty();
                // If an operation only replaces words, each block corresponds to the block at the same index.
                let only_words = operation.replaces_words() && replay.len() == source.replay.len();
                let before = |block: &RequestBlock| {
                    replay.iter().position(|other| other == block).filter(|_| only_words)
                };
                let known = |blocks: &[RequestBlock], block: &RequestBlock| {
                    let before = before(block).map(|at| &source.replay[at]);
                    let block = as_in_source(std::slice::from_ref(block)).remove(0);
                    blocks
                        .iter()
                        .any(|other| *other == block || Some(other) == before || same_call(other, &block))
                };
                mine.retain(|block| known(source_mine, block));
                its.retain(|block| known(source_its, block));
            } else {
                (mine, its) = (Vec::new(), Vec::new());
            }
            match first_difference(&without_blocks(&replay, &mine), &without_blocks(&sent, &its)) {
                Some(why) => (version, ConformanceVerdict::Differs, why),
                None => (version, ConformanceVerdict::Good, describe_ignored(&mine, &its)),
            }
        };
        Ok(self.claude.iter().enumerate().map(ask).collect())
    }

    /// Returns the data of the unedited session, computed once.
    fn source(&self, path: &Path) -> &UneditedSession {
        self.sources[path].get_or_init(|| {
            let Ok(home) = TemporaryHome::with(path) else { return UneditedSession::default() };
            let replay = self.replay(&home, &home.log, COMPARED_VERSION).unwrap_or_default();
            let findings = self.findings(&home, &home.log).into_iter().collect();
            let apart = self.claude.iter().map(|_| OnceLock::new()).collect();
            UneditedSession { replay, findings, meta: meta_texts(path), differences: apart }
        })
    }

    /// Returns how a version of Claude Code differs from us for the unedited session; `None` if it rejects
    /// it.
    fn source_difference(&self, path: &Path, way: usize) -> Option<&BlockDifference> {
        let find = || {
            let home = TemporaryHome::with(path).ok()?;
            let (version, sent) = run_claude(&self.claude[way], &home.log);
            Some(block_difference(&self.replay(&home, &home.log, &version).unwrap_or_default(), &sent?))
        };
        self.source(path).differences[way].get_or_init(find).as_ref()
    }

    fn findings(&self, home: &TemporaryHome, log: &Path) -> Vec<String> {
        let done = self.threadline(home, &["--json", "check", log.to_str().unwrap_or_default()]);
        let findings = done.out.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        findings
            .map(|finding| {
                let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
                format!("{} line {}: {}", text("code"), finding["line"], text("message"))
            })
            .collect()
    }

    fn replay(&self, home: &TemporaryHome, log: &Path, version: &str) -> Option<Vec<RequestBlock>> {
        let done = self.threadline(home, &["--json", "replay", "--as", version, log.to_str()?]);
        let answer: Value = serde_json::from_str(&done.out).ok().filter(|_| done.code == 0)?;
        Some(blocks(&answer["messages"]))
    }

    fn threadline(&self, home: &TemporaryHome, args: &[&str]) -> CommandOutput {
        let mut command = Command::new(&self.binary);
        command.arg("--home").arg(&home.root).args(args).env("XDG_STATE_HOME", home.root.join("state"));
        run_command(command)
    }
}

/// Returns the texts of lines that no person wrote to the model: meta lines, and local commands and their
/// output.
fn meta_texts(log: &Path) -> HashSet<String> {
    let log = fs::read_to_string(log).unwrap_or_default();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let message = |mut line: Value| match line["subtype"] == "local_command" {
        true => Some(serde_json::json!({"role": "user", "content": line["content"].take()})),
        false => (line["isMeta"] == true).then(|| line["message"].take()),
    };
    let messages: Vec<Value> = lines.filter_map(message).collect();
    blocks(&Value::Array(messages)).into_iter().map(|block| block.content).collect()
}

/// A temporary home with one session, which is deleted when dropped.
struct TemporaryHome {
    root: PathBuf,
    log: PathBuf,
}

static HOMES: AtomicUsize = AtomicUsize::new(0);

impl TemporaryHome {
    fn with(session: &Path) -> std::io::Result<Self> {
        let n = HOMES.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("threadline-conformance-{}-{n}", std::process::id()));
        let project = root.join("projects/-conformance");
        fs::create_dir_all(&project)?;
        let log = project.join(format!("{}.jsonl", session_name(session)));
        fs::copy(session, &log)?;
        copy_folder(&session.with_extension(""), &log.with_extension(""))?;
        Ok(Self { root, log })
    }
}

/// Returns the name for the log of a session. Claude Code resumes only UUIDs, so other names are replaced by
/// one.
fn session_name(session: &Path) -> String {
    let name = session.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let is_uuid = name.len() == 36 && name.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    if is_uuid {
        name
    } else {
        format!(
            "00000000-0000-4000-8000-{:012x}",
            name.bytes().fold(7, |hash: u64, byte| (hash * 31 + u64::from(byte)) % (1 << 48))
        )
    }
}

impl Drop for TemporaryHome {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)?.flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy_folder(&from, &to)?;
        } else {
            fs::copy(from, to)?;
        }
    }
    Ok(())
}

struct CommandOutput {
    code: i32,
    out: String,
    err: String,
}

fn run_command(mut command: Command) -> CommandOutput {
    match command.stdin(Stdio::null()).output() {
        Ok(done) => CommandOutput {
            code: done.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&done.stdout).into_owned(),
            err: String::from_utf8_lossy(&done.stderr).into_owned(),
        },
        Err(error) => CommandOutput { code: -1, out: String::new(), err: error.to_string() },
    }
}

/// Returns the name of a command until it reports its version.
fn command_label(way: &str) -> String {
    way.rsplit(' ').next().unwrap_or_default().to_owned()
}

/// Returns the version of a Claude Code, and the blocks that it sends for a log; `None` if it rejects the
/// log.
pub(crate) fn run_claude(way: &str, log: &Path) -> (String, Option<Vec<RequestBlock>>) {
    let mut words = way.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).arg(log);
    let done = run_command(command);
    let answer: Value = serde_json::from_str(done.out.lines().last().unwrap_or_default()).unwrap_or_default();
    let version = answer["version"].as_str().map_or_else(|| command_label(way), str::to_owned);
    (version, answer["messages"].is_array().then(|| blocks(&answer["messages"])))
}

/// Describes the ignored differences: the number of omitted and added blocks by kind.
fn describe_ignored(mine: &[RequestBlock], its: &[RequestBlock]) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (sign, block) in mine.iter().map(|block| ('-', block)).chain(its.iter().map(|block| ('+', block))) {
        *counts.entry(format!("{sign}{}", block.kind)).or_default() += 1;
    }
    let shown_counts: Vec<String> =
        counts.into_iter().map(|(kind, count)| format!("{count} × {kind}")).collect();
    if shown_counts.is_empty() {
        String::new()
    } else {
        format!("ignored differences: {}", shown_counts.join(", "))
    }
}

/// Returns the blocks without those in `own`.
fn without_blocks(blocks: &[RequestBlock], own: &[RequestBlock]) -> Vec<RequestBlock> {
    blocks.iter().filter(|block| !own.contains(block)).cloned().collect()
}

/// Returns the blocks with one session id replaced by another.
fn renamed(blocks: &[RequestBlock], from: &str, to: &str) -> Vec<RequestBlock> {
    let rename =
        |block: &RequestBlock| RequestBlock { content: block.content.replace(from, to), ..block.clone() };
    blocks.iter().map(|block| if from.is_empty() { block.clone() } else { rename(block) }).collect()
}

fn read_log(log: Option<&Path>) -> HashMap<(String, String, String), VerdictRow> {
    let text = log.and_then(|log| fs::read_to_string(log).ok()).unwrap_or_default();
    let mut done = HashMap::new();
    for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        let verdict =
            VERDICTS.iter().find(|(_, name)| line["verdict"] == **name).map(|(verdict, _)| *verdict);
        let Some(verdict) = verdict.filter(|verdict| *verdict <= ConformanceVerdict::Refused) else {
            continue;
        };
        let (operation, session) = (text("operation"), text("session"));
        let row = VerdictRow {
            version: text("version"),
            operation: operation.clone(),
            session: session.clone(),
            verdict,
            why: text("why"),
        };
        done.insert((text("way"), operation, session), row);
    }
    done
}

fn print_tables(operations: &[TestedOperation], rows: &[VerdictRow]) {
    let mut versions: Vec<&str> = rows.iter().map(|row| &*row.version).collect();
    versions.sort_unstable();
    versions.dedup();
    for version in versions {
        let title = if version.is_empty() { "our own checks" } else { version };
        println!("\n{title}: {}", VERDICTS.map(|(_, name)| name).join(" / "));
        for operation in operations {
            let name = operation.name();
            let own = rows.iter().filter(|row| row.version == version && row.operation == name);
            let mut counts: BTreeMap<ConformanceVerdict, usize> = BTreeMap::new();
            own.for_each(|row| *counts.entry(row.verdict).or_default() += 1);
            let counts = VERDICTS.map(|(verdict, _)| counts.get(&verdict).copied().unwrap_or(0).to_string());
            println!("{name:<60} {}", counts.join(" / "));
        }
    }
    let refused = rows.iter().filter(|row| !row.why.is_empty());
    let mut reasons: BTreeMap<(ConformanceVerdict, String, &str), usize> = BTreeMap::new();
    for row in refused {
        *reasons.entry((row.verdict, row.operation.clone(), &*row.why)).or_default() += 1;
    }
    println!();
    for ((verdict, operation, why), count) in reasons {
        println!("{} × {count} · {operation}: {why}", verdict.name());
    }
}
