//! Generated logs for benchmarks, with the sizes and contents of real ones.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The distribution of the sizes of real sessions: a share of the files, and the size at that quantile.
const QUANTILES: &[(f64, f64)] =
    &[(0.0, 2e3), (0.5, 105e3), (0.75, 234e3), (0.9, 654e3), (0.95, 1.5e6), (0.99, 5.4e6), (1.0, 30e6)];

/// The number of sessions, as in the home of a busy user.
pub(crate) const SESSIONS: usize = 3000;

/// Returns a home with generated sessions, and creates it if it does not exist.
///
/// Files are `scale` times as large as real ones.
pub(crate) fn home(target: &Path, name: &str, scale: f64) -> io::Result<PathBuf> {
    let home = target.join(name);
    let mark = home.join(format!("complete-{SESSIONS}-5"));
    if mark.exists() {
        return Ok(home);
    }
    if home.exists() {
        fs::remove_dir_all(&home)?;
    }
    let mut random = Random::new(0x5eed);
    for i in 0..SESSIONS {
        let dir = home.join(format!("projects/-home-ada-project-{}", i % 40));
        fs::create_dir_all(&dir)?;
        let id = format!("{:08x}-0000-4000-8000-{:012x}", random.next() as u32, i);
        // Evenly distributed over the quantiles, so that every run has the same few large files.
        let share = (i as f64 + 0.5) / SESSIONS as f64;
        fs::write(dir.join(format!("{id}.jsonl")), log(&id, (size_at(share) * scale) as usize, &mut random))?;
    }
    fs::write(mark, "")?;
    Ok(home)
}

/// Returns the size at this share of all files, interpolated between quantiles.
fn size_at(share: f64) -> f64 {
    let above = QUANTILES.iter().position(|(at, _)| share <= *at).unwrap_or(QUANTILES.len() - 1).max(1);
    let ((from, low), (to, high)) = (QUANTILES[above - 1], QUANTILES[above]);
    low * (high / low).powf((share - from) / (to - from))
}

/// The repeated sequence of lines of a session: prompts, thinking, replies, tool calls and results, progress,
/// attachments and snapshots, as frequent as in real logs.
const ROUND: &[u8] = b"phtgcgrgcgrgsgtcgrgcgra";

/// Returns one session of about `size` bytes.
///
/// Real lines are 2.4 KB long on average, with a quote every 26 bytes and an escape every 42. A third has
/// token counts, a sixth contains non-ASCII text, and half of all bytes are in tool results, which are
/// written twice.
pub(crate) fn log(id: &str, size: usize, random: &mut Random) -> String {
    let mut log = String::with_capacity(size + 8192);
    let mut parent = "null".to_owned();
    for line in 1.. {
        if log.len() >= size {
            break;
        }
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
        random.chinese = random.next().is_multiple_of(5);
        let _ = match ROUND[(line - 1) % ROUND.len()] {
            b'p' => writeln!(
                log,
                "{envelope},\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":\"{}\"}},{tail}",
                random.code(1600)
            ),
            b'h' => {
                let (thinking, signature) = (random.prose(900), "EqQBCkgIBRABGAIiQL".repeat(75));
                let block = format!(
                    "{{\"type\":\"thinking\",\"thinking\":\"{thinking}\",\"signature\":\"{signature}\"}}"
                );
                reply(&mut log, &envelope, &block, id, line, random, &tail)
            }
            b't' => {
                let block = format!("{{\"type\":\"text\",\"text\":\"{}\"}}", random.prose(250));
                reply(&mut log, &envelope, &block, id, line, random, &tail)
            }
            b'c' => {
                let block = format!(
                    "{{\"type\":\"tool_use\",\"id\":\"toolu_{line}\",\"name\":\"Edit\",\"input\":{{\"file_path\":\"/home/ada/loom.rs\",\
                     \"old_string\":\"{}\",\"new_string\":\"{}\",\"replace_all\":false}},\"caller\":{{\"type\":\"direct\"}}}}",
                    random.code(180),
                    random.code(260)
                );
                reply(&mut log, &envelope, &block, id, line, random, &tail)
            }
            b'r' => {
                let wide = [200, 900, 2500, 8500][random.next() as usize % 4];
                let text = random.code(wide);
                writeln!(
                    log,
                    "{envelope},\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":[{{\"tool_use_id\":\"toolu_{}\",\"type\":\"tool_result\",\
                     \"content\":\"{text}\",\"is_error\":false}}]}},\"toolUseResult\":{{\"filePath\":\"/home/ada/loom.rs\",\"stdout\":\"{text}\",\
                     \"stderr\":\"\",\"interrupted\":false,\"structuredPatch\":[{{\"oldStart\":1,\"oldLines\":6,\"lines\":[\" a\",\"-b\",\"+c\"]}}]}},\
                     \"sourceToolAssistantUUID\":{parent},{tail}",
                    line - 2
                )
            }
            b's' => writeln!(
                log,
                "{{\"type\":\"file-history-snapshot\",\"messageId\":\"{uuid}\",\"snapshot\":{{\"messageId\":\"{uuid}\",\"trackedFileBackups\":{{\
                 \"src/loom.rs\":{{\"backupFileName\":\"c0ffee@v1\",\"version\":1,\"backupTime\":\"2026-03-01T10:00:00.000Z\"}},\
                 \"src/warp.rs\":{{\"backupFileName\":\"c0ffee@v2\",\"version\":2,\"backupTime\":\"2026-03-01T10:00:00.000Z\"}}}},\
                 \"timestamp\":\"2026-03-01T10:00:00.000Z\"}},\"isSnapshotUpdate\":false}}"
            ),
            b'a' => writeln!(
                log,
                "{envelope},\"type\":\"attachment\",\"attachment\":{{\"type\":\"file\",\"filename\":\"/home/ada/loom.rs\",\"content\":{{\
                 \"type\":\"text\",\"file\":{{\"filePath\":\"/home/ada/loom.rs\",\"content\":\"{}\",\"numLines\":40}}}}}},{tail}",
                random.code(1500)
            ),
            _ => writeln!(
                log,
                "{envelope},\"type\":\"progress\",\"data\":{{\"type\":\"agent_progress\",\"message\":{{\"type\":\"user\",\"message\":{{\
                 \"role\":\"user\",\"content\":[{{\"tool_use_id\":\"toolu_{line}\",\"type\":\"tool_result\",\"content\":\"{}\"}}]}},\
                 \"uuid\":\"{uuid}\"}},\"agentId\":\"a1b2c3d\"}},\"parentToolUseID\":\"toolu_{line}\",\"toolUseID\":\"toolu_{line}\",{tail}",
                random.code(380)
            ),
        };
        parent = format!("\"{uuid}\"");
    }
    log
}

/// Writes an assistant line with one content block.
fn reply(
    log: &mut String,
    envelope: &str,
    block: &str,
    id: &str,
    line: usize,
    random: &mut Random,
    tail: &str,
) -> std::fmt::Result {
    writeln!(
        log,
        "{envelope},\"message\":{{\"model\":\"claude-opus-4-6\",\"id\":\"msg_{id}_{line}\",\"type\":\"message\",\"role\":\"assistant\",\
         \"content\":[{block}],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{{\"input_tokens\":3,\"cache_creation_input_tokens\":812,\
         \"cache_read_input_tokens\":40211,\"server_tool_use\":{{\"web_search_requests\":0,\"web_fetch_requests\":0}},\"service_tier\":\"standard\",\
         \"cache_creation\":{{\"ephemeral_1h_input_tokens\":812,\"ephemeral_5m_input_tokens\":0}},\"inference_geo\":\"not_available\",\
         \"iterations\":[],\"speed\":\"standard\",\"output_tokens\":{}}}}},\"requestId\":\"req_{line}\",\"type\":\"assistant\",{tail}",
        random.next() % 900
    )
}

/// A deterministic pseudo-random generator.
pub(crate) struct Random {
    state: u64,
    /// Whether generated text contains some Chinese.
    chinese: bool,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed, chinese: false }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.state >> 33
    }

    /// Returns code and output, escaped for a JSON string, with an escape about every twenty bytes.
    fn code(&mut self, length: usize) -> String {
        self.words(
            length,
            &[
                "the ",
                "warp ",
                "thread ",
                "fn main() {\\n    ",
                "let count = ",
                "return ",
                "error: ",
                "src/lib.rs:42 ",
                "\\\"quoted\\\" ",
                "pattern ",
                "if x > 3 {\\n",
                "}\\n",
                "and ",
                "weft ",
                "\\tshuttle ",
                "\\ttie-up ",
                "draft ",
                "loom::weave(&mut ",
                "assert_eq!(a, b);\\n",
                "treadles: 4, shafts: 8 ",
                "heddle and reed ",
                "0x5eed ",
            ],
        )
    }

    /// Returns prose with few escapes.
    fn prose(&mut self, length: usize) -> String {
        const WORDS: &[&str] = &[
            "the ",
            "warp ",
            "is tied ",
            "to the loom, ",
            "and ",
            "then we weave. ",
            "A plain pattern ",
            "needs two shafts. ",
            "So it is done:\\n",
        ];
        self.words(length, WORDS)
    }

    fn words(&mut self, length: usize, words: &[&str]) -> String {
        let mut text = String::with_capacity(length + 24);
        while text.len() < length {
            let pick = self.next() as usize;
            text.push_str(match pick % 120 {
                0..6 if self.chinese => "织机 ",
                6 => "C:\\\\loom ",
                7 => "\\u001b[0m",
                // A word that is rare enough to search for.
                8 if (pick / 120).is_multiple_of(300) => "drawloom ",
                _ => words[pick / 120 % words.len()],
            });
        }
        text
    }
}
