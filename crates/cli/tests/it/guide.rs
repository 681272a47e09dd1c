//! The commands of the guide are run, and their output is compared with the chapters.
//!
//! Every `console` block of `docs/guide` is run on a terminal of 100 columns, in a folder of its own for each
//! chapter, so a command sees the files of the commands before it. `UPDATE_DOCS=1` writes the output into the
//! chapters. A comment before a block changes how it is handled:
//!
//! - `<!-- guide: not run, REASON -->`: the block is not run.
//! - `<!-- guide: exit N -->`: the commands exit with this code instead of 0.
//! - `<!-- guide: lines 1..8, 12 -->`: only these lines of the output are shown, with `…` for the others.
//! - `<!-- guide: hide PATTERN -->`: the first group of each match is shown as `…`.
//!
//! Several are separated by semicolons. Ids of new sessions and operations are random; the chapters have
//! fixed ones in their place, also in later commands. The folder of the chapter is shown as `/home/ada`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Read;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use regex::Regex;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

const COLUMNS: u16 = 100;
/// The share of commands that may be marked as not run, in percent.
const MAX_NOT_RUN: usize = 15;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Returns the names of the chapters, in the order of the summary.
fn chapters() -> Vec<String> {
    let summary = fs::read_to_string(docs().join("guide/SUMMARY.md")).unwrap();
    let link = Regex::new(r"\]\(([^)]+)\.md\)").unwrap();
    link.captures_iter(&summary).map(|found| found[1].to_owned()).collect()
}

/// How a block of commands is handled.
#[derive(Default)]
struct Directives {
    not_run: Option<String>,
    exit: i32,
    lines: Vec<RangeInclusive<usize>>,
    hide: Option<Regex>,
}

impl Directives {
    /// Parses a comment such as `<!-- guide: exit 1; lines 1..4 -->`.
    fn parse(line: &str) -> Option<Self> {
        let text = line.strip_prefix("<!-- guide: ")?.strip_suffix(" -->")?;
        let mut directives = Self::default();
        for directive in text.split("; ") {
            let (name, value) = directive.split_once(' ').unwrap_or((directive, ""));
            match name {
                "not" => directives.not_run = value.strip_prefix("run, ").map(str::to_owned),
                "exit" => directives.exit = value.parse().unwrap(),
                "lines" => directives.lines = value.split(", ").map(parse_range).collect(),
                "hide" => directives.hide = Some(Regex::new(&format!("(?m){value}")).unwrap()),
                _ => panic!("unknown directive: {line}"),
            }
        }
        Some(directives)
    }

    /// Removes the parts of an output that are not shown.
    fn shorten(&self, output: &str) -> String {
        let hidden = |found: &regex::Captures<'_>| found[0].replacen(&found[1], "…", 1);
        let output = self.hide.as_ref().map_or(output.into(), |hide| hide.replace_all(output, hidden));
        if self.lines.is_empty() {
            return output.into_owned();
        }
        let mut shown = String::new();
        let mut is_omitting = false;
        for (i, line) in output.lines().enumerate() {
            let is_shown = self.lines.iter().any(|range| range.contains(&(i + 1)));
            match is_shown {
                true => writeln!(shown, "{line}").unwrap(),
                false if is_omitting => {}
                false => shown.push_str("…\n"),
            }
            is_omitting = !is_shown;
        }
        shown
    }
}

/// Parses `4`, `4..9`, `..9` or `4..`.
fn parse_range(text: &str) -> RangeInclusive<usize> {
    let number = |text: &str, default| if text.is_empty() { default } else { text.parse().unwrap() };
    match text.split_once("..") {
        Some((first, last)) => number(first, 1)..=number(last, usize::MAX),
        None => text.parse().unwrap()..=text.parse().unwrap(),
    }
}

/// A part of a chapter: lines of text, or a block of commands.
enum Part {
    Text(String),
    Commands(Directives, Vec<ShownCommand>),
}

/// A command with the output that the chapter shows.
struct ShownCommand {
    text: String,
    output: String,
}

fn parse_chapter(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut lines = text.lines();
    let mut directives = None;
    while let Some(line) = lines.next() {
        parts.push(Part::Text(format!("{line}\n")));
        if line != "```console" {
            assert!(line != "```sh" && line != "```bash", "commands are in `console` blocks");
            directives = Directives::parse(line);
            continue;
        }
        let mut commands: Vec<ShownCommand> = Vec::new();
        for line in lines.by_ref().take_while(|line| *line != "```") {
            match (line.strip_prefix("$ "), commands.last_mut()) {
                (Some(command), _) => {
                    commands.push(ShownCommand { text: command.to_owned(), output: String::new() });
                }
                (None, Some(last)) if last.output.is_empty() && last.text.ends_with('\\') => {
                    write!(last.text, "\n{line}").unwrap();
                }
                (None, Some(last)) => writeln!(last.output, "{line}").unwrap(),
                (None, None) => panic!("a block begins with a command: {line}"),
            }
        }
        parts.push(Part::Commands(directives.take().unwrap_or_default(), commands));
        parts.push(Part::Text("```\n".to_owned()));
    }
    parts
}

/// The folder in which the commands of a chapter run, and the random ids that they printed.
pub(crate) struct Sandbox {
    dir: tempfile::TempDir,
    known: BTreeSet<String>,
    /// Ids and the fixed ones that are shown in their place.
    ids: Vec<(String, String)>,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let bin = dir.path().join(".local/bin");
        fs::create_dir_all(&bin).unwrap();
        // A link to the same file, so that the program sees this path as its own.
        fs::hard_link(env!("CARGO_BIN_EXE_threadline"), bin.join("threadline")).unwrap();
        let mut known = BTreeSet::new();
        for project in fs::read_dir(docs().join("../demo/projects")).unwrap() {
            for file in fs::read_dir(project.unwrap().path()).unwrap() {
                let path = file.unwrap().path();
                known.insert(path.file_stem().unwrap().to_str().unwrap().to_owned());
            }
        }
        Self { dir, known, ids: Vec::new() }
    }

    /// The folder in which the commands run.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Runs a command on a terminal. Returns its exit code and its output, errors last.
    pub(crate) fn run(&mut self, command: &str) -> (i32, String) {
        let mut script = command.to_owned();
        for (id, shown) in &self.ids {
            script = script.replace(shown, id);
        }
        let home = self.dir.path();
        let (mut master, slave) = open_terminal();
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(&script).current_dir(home).env_clear().env("HOME", home).env("TZ", "UTC");
        shell.env("PATH", format!("{}/.local/bin:/usr/local/bin:/usr/bin:/bin", home.display()));
        shell.env("USER", "ada").env("NO_COLOR", "1").env("TERM", "xterm").env("THREADLINE_PAGER", "cat");
        let mut child = shell.stdin(Stdio::null()).stdout(slave).stderr(Stdio::piped()).spawn().unwrap();
        // Closes our copy of the slave end, so that reading ends when the child exits.
        drop(shell);
        let mut errors = child.stderr.take().unwrap();
        let errors = std::thread::spawn(move || {
            let mut text = String::new();
            errors.read_to_string(&mut text).map(|_| text)
        });
        let mut output = Vec::new();
        let mut buffer = [0; 1 << 14];
        // End of file is an error on Linux and an empty read elsewhere.
        while let Ok(count @ 1..) = master.read(&mut buffer) {
            output.extend(&buffer[..count]);
        }
        let code = child.wait().unwrap().code().unwrap();
        let output =
            String::from_utf8(output).unwrap().replace("\r\n", "\n") + &errors.join().unwrap().unwrap();
        assert!(!output.contains('\u{1b}'), "control sequences in the output of {command}");
        (code, self.normalize(&output))
    }

    /// Replaces random ids and the path of the folder, and removes white space at the ends of lines.
    fn normalize(&mut self, output: &str) -> String {
        let uuid = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}";
        for found in Regex::new(uuid).unwrap().find_iter(output) {
            let is_new = self.ids.iter().all(|(id, _)| id != found.as_str());
            if is_new && !self.known.contains(found.as_str()) {
                let n = 1 + self.ids.iter().filter(|(id, _)| id.len() == 36).count();
                let shown = format!("0000000{n}-1111-4111-8111-11111111111{n}");
                // Short ids are shown too; the long one is replaced first.
                self.ids.push((found.as_str().to_owned(), shown.clone()));
                self.ids.push((found.as_str()[..8].to_owned(), shown[..8].to_owned()));
            }
        }
        for found in Regex::new(r"\b20\d{6}T\d{6}-[0-9a-f]{6}\b").unwrap().find_iter(output) {
            if self.ids.iter().all(|(id, _)| id != found.as_str()) {
                let n = 1 + self.ids.iter().filter(|(id, _)| id.contains('T')).count();
                self.ids.push((found.as_str().to_owned(), format!("20261117T09000{n}-c0ffe{n}")));
            }
        }
        let mut output = output.replace(self.dir.path().to_str().unwrap(), "/home/ada");
        for (id, shown) in &self.ids {
            output = output.replace(id, shown);
        }
        let lines: Vec<&str> = output.lines().map(str::trim_end).collect();
        format!("{}\n", lines.join("\n").trim_matches('\n'))
    }
}

fn open_terminal() -> (File, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let slave = File::options().read(true).write(true).open(OsStr::from_bytes(name.as_bytes())).unwrap();
    tcsetwinsize(&slave, Winsize { ws_row: 50, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    (File::from(master), slave)
}

/// Runs the commands of a chapter. Returns its text with their present output.
fn run_chapter(text: &str) -> String {
    let mut sandbox = Sandbox::new();
    let mut page = String::new();
    for part in parse_chapter(text) {
        let (directives, commands) = match part {
            Part::Text(text) => {
                page.push_str(&text);
                continue;
            }
            Part::Commands(directives, commands) => (directives, commands),
        };
        let mut follows_output = false;
        for command in &commands {
            let output = match &directives.not_run {
                Some(_) => command.output.clone(),
                None => {
                    let (code, output) = sandbox.run(&command.text);
                    assert_eq!(code, directives.exit, "exit code of `{}`:\n{output}", command.text);
                    directives.shorten(&output)
                }
            };
            let output = output.trim_end();
            assert!(!output.contains("\n$ "), "output that looks like a command: {}", command.text);
            // A command is separated from the output above it.
            page.push_str(if follows_output { "\n" } else { "" });
            writeln!(page, "$ {}", command.text).unwrap();
            page.push_str(output);
            page.push_str(if output.is_empty() { "" } else { "\n" });
            follows_output = !output.is_empty();
        }
    }
    page
}

fn check_chapter(name: &str) {
    check_page(&docs().join(format!("guide/{name}.md")));
}

/// Runs the commands of a page, and compares their output with it.
#[expect(clippy::disallowed_methods, reason = "developers set UPDATE_DOCS")]
pub(crate) fn check_page(path: &Path) {
    let name = path.file_stem().unwrap().to_str().unwrap();
    let text = fs::read_to_string(path).unwrap();
    let page = run_chapter(&text);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path, &page).unwrap();
        return;
    }
    let differences =
        similar::TextDiff::from_lines(&text, &page).unified_diff().header(name, "now").to_string();
    assert!(
        text == page,
        "{differences}\n{name}.md is not current: `UPDATE_DOCS=1 cargo test -p threadline --test it guide readme`"
    );
}

/// One test per chapter, and a test that none is missing.
macro_rules! chapters {
    ($($test:ident $name:literal,)*) => {
        $(#[test] fn $test() { check_chapter($name); })*

        #[test]
        fn every_chapter_is_run() {
            let run = BTreeSet::from([$($name.to_owned()),*]);
            assert_eq!(run, chapters().into_iter().collect());
        }
    };
}

chapters! {
    introduction "introduction",
    first_steps "first-steps",
    reading "reading",
    searching "searching",
    cost "cost",
    editing "editing",
    sharing "sharing",
    traces "traces",
    archive "archive",
    chat "chat",
    mcp "mcp",
    library "library",
    troubleshooting "troubleshooting",
}

#[test]
fn the_summary_lists_every_chapter() {
    let mut listed: Vec<String> = chapters().iter().map(|name| format!("{name}.md")).collect();
    listed.push("SUMMARY.md".to_owned());
    listed.sort();
    let names = fs::read_dir(docs().join("guide")).unwrap().map(|file| file.unwrap().file_name());
    let mut files: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    files.retain(|name| name.ends_with(".md"));
    files.sort();
    assert_eq!(listed, files);
}

#[test]
fn few_commands_of_the_guide_are_not_run() {
    let (mut all, mut not_run) = (0, 0);
    for name in chapters() {
        for part in parse_chapter(&fs::read_to_string(docs().join(format!("guide/{name}.md"))).unwrap()) {
            let Part::Commands(directives, commands) = part else { continue };
            all += commands.len();
            not_run += if directives.not_run.is_some() { commands.len() } else { 0 };
        }
    }
    assert!(not_run * 100 <= all * MAX_NOT_RUN, "{not_run} of {all} commands are not run");
}

/// Returns the anchors of the headings of a page.
fn anchors(page: &str) -> Vec<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let anchor = |line: &str| {
        let text = line.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter(|ch| ch.is_alphanumeric() || " -_".contains(*ch));
        kept.map(|ch| if ch == ' ' { '-' } else { ch }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn links_between_pages_resolve() {
    let root = docs().join("..");
    let mut pages: Vec<PathBuf> = Vec::new();
    for folder in [root.clone(), docs(), docs().join("guide"), docs().join("client")] {
        let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        pages.extend(files.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    let link = Regex::new(r"\]\(([^)\s]+)\)").unwrap();
    let mut broken = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let prose = text.split("```").step_by(2).collect::<String>();
        for found in link.captures_iter(&prose) {
            let (file, anchor) = found[1].split_once('#').unwrap_or((&found[1], ""));
            if file.contains(':') {
                continue;
            }
            let target = if file.is_empty() { page.clone() } else { page.with_file_name(file) };
            let is_anchored = || {
                let target = fs::read_to_string(&target).unwrap_or_default();
                anchors(&target).iter().any(|found| found == anchor)
            };
            if !target.exists() || (!anchor.is_empty() && !is_anchored()) {
                broken.push(format!("{}: {}", page.display(), &found[1]));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}
