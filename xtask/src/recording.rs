//! Records a session of `threadline --demo chat` as an animated SVG, for the README.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use threadline_testkit::terminal::TestTerminal;

/// The size of the terminal.
const SIZE: (u16, u16) = (28, 84);
/// The time between two pictures of the screen.
const PICTURE_TIME: Duration = Duration::from_millis(80);
/// The size of a character.
const CELL: (f64, f64) = (8.4, 17.0);
/// How long the last picture is shown.
const LAST_TIME: Duration = Duration::from_secs(4);

/// A picture of the screen, and when it was taken.
struct Picture {
    at: Duration,
    rows: Vec<Vec<Run>>,
    cursor: (u16, u16),
}

/// Text in one style.
#[derive(Clone, PartialEq)]
struct Run {
    column: u16,
    text: String,
    style: &'static str,
    is_bold: bool,
    is_inverse: bool,
}

/// Writes the recording.
pub(crate) fn run() -> ExitCode {
    let Some(binary) = crate::command::binary() else { return ExitCode::from(2) };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/client/chat.svg");
    let svg = record(&binary);
    match std::fs::write(&file, &svg) {
        Ok(()) => {
            println!("{}: {} kB", file.display(), svg.len() / 1000);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("cannot write {}: {error}", file.display());
            ExitCode::from(2)
        }
    }
}

fn record(binary: &Path) -> String {
    let folder = std::env::temp_dir().join(format!("loom-{}", std::process::id()));
    let work = folder.join("loom");
    for name in ["Cargo.toml", "README.md", "src/main.rs"] {
        let path = work.join(name);
        let _ = path.parent().map(std::fs::create_dir_all);
        let _ = std::fs::write(path, "");
    }
    let envs: Vec<(&str, OsString)> = vec![
        ("HOME", folder.clone().into_os_string()),
        ("PATH", "/usr/bin:/bin".into()),
        ("TERM", "xterm-256color".into()),
    ];
    let mut terminal = TestTerminal::start(binary, &["--demo", "chat"], &envs, &work, SIZE);
    let mut recording = Recording { start: Instant::now(), pictures: Vec::new() };
    terminal.wait_for("scripted model");
    recording.pause(&terminal, 800);
    recording.type_text(&mut terminal, "What is in @READ");
    recording.pause(&terminal, 700);
    recording.type_text(&mut terminal, "\t");
    recording.pause(&terminal, 300);
    recording.type_text(&mut terminal, "and what can you do?");
    recording.type_text(&mut terminal, "\r");
    recording.until(&terminal, "talk to a real model.");
    recording.pause(&terminal, 1800);
    recording.type_text(&mut terminal, "Write a note\r");
    recording.until(&terminal, "Enter chooses");
    recording.pause(&terminal, 1500);
    recording.type_text(&mut terminal, "y");
    recording.until(&terminal, "The script ends here.");
    recording.pause(&terminal, 1200);
    let _ = std::fs::remove_dir_all(&folder);
    recording.svg()
}

struct Recording {
    start: Instant,
    pictures: Vec<Picture>,
}

impl Recording {
    fn type_text(&mut self, terminal: &mut TestTerminal, text: &str) {
        for key in text.chars() {
            terminal.send(&key.to_string());
            self.pause(terminal, 70);
        }
    }

    fn pause(&mut self, terminal: &TestTerminal, millis: u64) {
        let end = Instant::now() + Duration::from_millis(millis);
        while Instant::now() < end {
            std::thread::sleep(PICTURE_TIME.min(end.saturating_duration_since(Instant::now())));
            self.take(terminal);
        }
    }

    fn until(&mut self, terminal: &TestTerminal, text: &str) {
        while !terminal.text().contains(text) {
            self.pause(terminal, 80);
        }
    }

    /// Takes a picture, unless the screen is still the same.
    fn take(&mut self, terminal: &TestTerminal) {
        let (rows, cursor) = terminal.with_screen(|screen| {
            let rows = (0..SIZE.0).map(|row| runs(screen, row)).collect::<Vec<_>>();
            (rows, screen.cursor_position())
        });
        if self.pictures.last().is_none_or(|last| last.rows != rows || last.cursor != cursor) {
            self.pictures.push(Picture { at: self.start.elapsed(), rows, cursor });
        }
    }

    fn svg(&self) -> String {
        let (width, height) = (f64::from(SIZE.1) * CELL.0 + 24.0, f64::from(SIZE.0) * CELL.1 + 24.0);
        let first = self.pictures.first().map(|picture| picture.at).unwrap_or_default();
        let last = self.pictures.last().map(|picture| picture.at).unwrap_or_default();
        let total = (last - first + LAST_TIME).as_secs_f64();
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"ui-monospace, \
             SFMono-Regular, Menlo, Consolas, monospace\" font-size=\"14\" role=\"img\" aria-label=\"A session of threadline \
             chat\">\n<style>text{{fill:#d8dee9;white-space:pre}}.d{{fill:#7b8494}}.r{{fill:#e06c75}}.g{{fill:#98c379}}\
             .y{{fill:#e5c07b}}.b{{fill:#61afef}}.m{{fill:#c678dd}}.c{{fill:#56b6c2}}.s{{font-weight:bold}}\
             .p{{visibility:hidden;animation:{total:.2}s step-end infinite}}</style>\n<rect width=\"100%\" height=\"100%\" \
             rx=\"8\" fill=\"#1e2127\"/>\n"
        );
        for (i, picture) in self.pictures.iter().enumerate() {
            let at = |time: Duration| (time - first).as_secs_f64() / total * 100.0;
            let from = at(picture.at);
            let to = self.pictures.get(i + 1).map_or(100.0, |next| at(next.at));
            let before = if i == 0 { String::new() } else { "0%{visibility:hidden}".to_owned() };
            let _ = writeln!(
                out,
                "<style>@keyframes k{i}{{{before}{from:.3}%{{visibility:visible}}{to:.3}%{{visibility:hidden}}}}</style>\
                 <g class=\"p\" style=\"animation-name:k{i}\">{}</g>",
                picture.svg()
            );
        }
        out.push_str("</svg>\n");
        out
    }
}

impl Picture {
    fn svg(&self) -> String {
        let mut out = String::new();
        let (x, y) = (f64::from(self.cursor.1) * CELL.0 + 12.0, f64::from(self.cursor.0) * CELL.1 + 14.0);
        let _ = write!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"#5c6370\"/>",
            CELL.0, CELL.1
        );
        for (row, runs) in self.rows.iter().enumerate() {
            let y = row as f64 * CELL.1 + 27.0;
            for run in runs {
                let class = format!("{}{}", run.style, if run.is_bold { " s" } else { "" });
                let class = class.trim();
                let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
                let x = f64::from(run.column) * CELL.0 + 12.0;
                let text = run.text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                let length = run.text.chars().count() as f64 * CELL.0;
                let _ = write!(
                    out,
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{length:.1}\"{class}>{text}</text>"
                );
            }
        }
        out
    }
}

/// Returns the runs of a row.
fn runs(screen: &vt100::Screen, row: u16) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for column in 0..SIZE.1 {
        let Some(cell) = screen.cell(row, column).filter(|cell| cell.has_contents()) else { continue };
        let style = match cell.fgcolor() {
            vt100::Color::Idx(1 | 9) => "r",
            vt100::Color::Idx(2 | 10) => "g",
            vt100::Color::Idx(3 | 11) => "y",
            vt100::Color::Idx(4 | 12) => "b",
            vt100::Color::Idx(5 | 13) => "m",
            vt100::Color::Idx(6 | 14) => "c",
            _ if cell.dim() => "d",
            _ => "",
        };
        let next = Run {
            column,
            text: cell.contents().to_owned(),
            style,
            is_bold: cell.bold(),
            is_inverse: cell.inverse(),
        };
        match runs.last_mut() {
            Some(last)
                if last.style == next.style
                    && last.is_bold == next.is_bold
                    && usize::from(last.column) + last.text.chars().count() == usize::from(column) =>
            {
                last.text.push_str(&next.text);
            }
            _ => runs.push(next),
        }
    }
    runs.retain(|run| !run.text.trim().is_empty());
    runs
}
