//! Logs for measuring: made up, but of the sizes and shapes that real ones have.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Real session sizes: a share of the files, and how large the largest of that share are.
const QUANTILES: &[(f64, f64)] =
    &[(0.0, 2e3), (0.5, 105e3), (0.75, 234e3), (0.9, 654e3), (0.95, 1.5e6), (0.99, 5.4e6), (1.0, 30e6)];

/// How many sessions there are, as in the home of a busy user.
pub(crate) const SESSIONS: usize = 3000;

/// Files are this much smaller than real ones, so that making them takes seconds.
const SCALE: f64 = 0.2;

/// A home with made-up sessions, made anew where it is not there yet.
pub(crate) fn home(target: &Path) -> io::Result<PathBuf> {
    let home = target.join("bench-home");
    let mark = home.join(format!("complete-{SESSIONS}-1"));
    if mark.exists() {
        return Ok(home);
    }
    if home.exists() {
        fs::remove_dir_all(&home)?;
    }
    let mut random = Random(0x5eed);
    for i in 0..SESSIONS {
        let dir = home.join(format!("projects/-home-ada-project-{}", i % 40));
        fs::create_dir_all(&dir)?;
        let id = format!("{:08x}-0000-4000-8000-{:012x}", random.next() as u32, i);
        // Evenly spread over the quantiles, so that every run has the same few large files.
        let share = (i as f64 + 0.5) / SESSIONS as f64;
        fs::write(dir.join(format!("{id}.jsonl")), log(&id, (size_at(share) * SCALE) as usize, &mut random))?;
    }
    fs::write(mark, "")?;
    Ok(home)
}

/// The size of the file at this share of all files, between the quantiles on both sides of it.
fn size_at(share: f64) -> f64 {
    let above = QUANTILES.iter().position(|(at, _)| share <= *at).unwrap_or(QUANTILES.len() - 1).max(1);
    let ((from, low), (to, high)) = (QUANTILES[above - 1], QUANTILES[above]);
    low * (high / low).powf((share - from) / (to - from))
}

/// One session of about `size` bytes.
pub(crate) fn log(id: &str, size: usize, random: &mut Random) -> String {
    let mut log = String::with_capacity(size + 8192);
    let mut parent = "null".to_owned();
    let mut line = 0;
    while log.len() < size {
        line += 1;
        let uuid = format!("{:08x}-1111-4000-8000-{line:012x}", random.next() as u32);
        let envelope = format!(
            "{{\"parentUuid\":{parent},\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"/home/ada/project\",\
             \"sessionId\":\"{id}\",\"version\":\"2.1.39\",\"gitBranch\":\"main\""
        );
        let tail = format!(
            "\"uuid\":\"{uuid}\",\"timestamp\":\"2026-03-{:02}T10:{:02}:{:02}.000Z\"}}",
            line / 3600 % 28 + 1,
            line / 60 % 60,
            line % 60
        );
        let _ = match line % 6 {
            1 => writeln!(
                log,
                "{envelope},\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":\"{}\"}},{tail}",
                random.text(120)
            ),
            2 | 4 => {
                let block = if line % 6 == 2 {
                    format!("{{\"type\":\"text\",\"text\":\"{}\"}}", random.text(600))
                } else {
                    format!(
                        "{{\"type\":\"tool_use\",\"id\":\"toolu_{line}\",\"name\":\"Bash\",\"input\":{{\"command\":\"{}\"}}}}",
                        random.text(80)
                    )
                };
                writeln!(
                    log,
                    "{envelope},\"message\":{{\"model\":\"claude-opus-4-6\",\"id\":\"msg_{id}_{line}\",\"type\":\"message\",\"role\":\"assistant\",\
                     \"content\":[{block}],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{{\"input_tokens\":3,\"cache_creation_input_tokens\":812,\
                     \"cache_read_input_tokens\":40211,\"cache_creation\":{{\"ephemeral_5m_input_tokens\":0,\"ephemeral_1h_input_tokens\":812}},\
                     \"output_tokens\":{},\"service_tier\":\"standard\"}}}},\"requestId\":\"req_{line}\",\"type\":\"assistant\",{tail}",
                    random.next() % 900
                )
            }
            5 => {
                let wide = [200, 900, 4000, 20_000][random.next() as usize % 4];
                let text = random.text(wide);
                writeln!(
                    log,
                    "{envelope},\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":[{{\"tool_use_id\":\"toolu_{}\",\"type\":\"tool_result\",\
                     \"content\":\"{text}\",\"is_error\":false}}]}},\"toolUseResult\":{{\"stdout\":\"{text}\",\"stderr\":\"\",\"interrupted\":false}},{tail}",
                    line - 1
                )
            }
            _ => writeln!(
                log,
                "{envelope},\"type\":\"progress\",\"data\":{{\"type\":\"hook_progress\",\"hookEvent\":\"PostToolUse\",\"hookName\":\"PostToolUse:Bash\",\
                 \"command\":\"{}\"}},\"parentToolUseID\":\"toolu_{line}\",\"toolUseID\":\"toolu_{line}\",{tail}",
                random.text(40)
            ),
        };
        parent = format!("\"{uuid}\"");
    }
    log
}

/// Numbers that look random and are the same every time.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// Text as it stands in a JSON string: words, code, a newline now and then, some Chinese.
    fn text(&mut self, length: usize) -> String {
        const WORDS: &[&str] = &[
            "the ",
            "warp ",
            "thread ",
            "fn main() {\\n    ",
            "let count = ",
            "return ",
            "error: ",
            "src/lib.rs:42 ",
            "\\\"quoted\\\" ",
            "织机 ",
            "pattern ",
            "if x > 3 {\\n",
            "}\\n",
            "and ",
            "weft ",
            "shuttle\\t",
            "tie-up ",
            "draft ",
            "loom::weave(&mut ",
            "assert_eq!(a, b);\\n",
        ];
        let mut text = String::with_capacity(length + 24);
        while text.len() < length {
            text.push_str(WORDS[self.next() as usize % WORDS.len()]);
        }
        text
    }
}
