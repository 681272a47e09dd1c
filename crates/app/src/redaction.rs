//! Masks secrets in everything that is shown or exported. The logs are not changed.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aho_corasick::{AhoCorasick, Input, MatchKind};
use threadline_edit::{Redactor, rewrite_strings};
use threadline_entry::write::quote;
use threadline_entry::{Entry, Kind, LineReader, LogLine, decode, parse_line, project_directory};
use threadline_secret::{KnownSecrets, Replacer, Rules};
use threadline_store::open_regular;
use threadline_view::humanize::plural;

use crate::config::App;
use crate::error::AppError;
use crate::load::check_log_size;

/// How secrets are masked in what is shown.
pub struct DisplayRedaction {
    rules: Rules,
    /// Whether local paths and user names are replaced too, for files that are shared.
    hides_paths: bool,
}

impl fmt::Debug for DisplayRedaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DisplayRedaction").field("hides_paths", &self.hides_paths).finish_non_exhaustive()
    }
}

impl Default for DisplayRedaction {
    /// Masks what the built-in rules find.
    fn default() -> Self {
        Self::new(Rules::new())
    }
}

impl DisplayRedaction {
    /// Masks what the rules find.
    pub fn new(rules: Rules) -> Self {
        Self { rules, hides_paths: false }
    }

    /// Masks what the rules find, e-mail addresses, local paths and user names.
    pub fn for_sharing(rules: Rules) -> Self {
        Self::new(rules).with_local_names()
    }

    /// Also masks e-mail addresses, local paths and user names.
    #[must_use]
    pub fn with_local_names(self) -> Self {
        Self { rules: self.rules.with_emails(), hides_paths: true }
    }

    /// Returns the rules that define secrets.
    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Masks the secrets in a text, and e-mail addresses in one that is shared.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.hides_paths {
            true => Replacer::new(&self.rules).replace(text),
            false => self.rules.clean(text),
        }
    }

    /// Masks the tokens in markup that consists of masked texts: names may contain tokens, too. Secrets that
    /// are recognised by their context are not searched, because attributes look like them.
    pub fn markup<'t>(&self, markup: &'t str) -> Cow<'t, str> {
        self.rules.clean_tokens(markup)
    }

    /// Masks the secrets in the strings and keys of JSON text.
    pub fn json<'t>(&self, json: &'t str) -> Cow<'t, str> {
        let mut clean = String::new();
        let (mut done, mut at) = (0, 0);
        while let Some(start) = memchr::memchr(b'"', &json.as_bytes()[at..]).map(|quote| at + quote) {
            let mut end = start + 1;
            while let Some(byte) = json.as_bytes().get(end).filter(|byte| **byte != b'"') {
                end += if *byte == b'\\' { 2 } else { 1 };
            }
            at = json.len().min(end + 1);
            let text = decode(json.get(start + 1..end).unwrap_or_default());
            if let Cow::Owned(masked) = self.text(&text) {
                clean.push_str(&json[done..start]);
                clean.push_str(&quote(&masked));
                done = at;
            }
        }
        if done == 0 {
            return Cow::Borrowed(json);
        }
        clean.push_str(&json[done..]);
        Cow::Owned(clean)
    }

    /// Returns the logs without secrets, line by line, what was replaced, and the mask for other texts of the
    /// session.
    pub(crate) fn logs(
        self: &Arc<Self>,
        mut logs: Vec<Vec<u8>>,
    ) -> (Vec<Vec<u8>>, RedactionReport, SessionMask) {
        let mut report = RedactionReport::default();
        let mut mask = SessionMask::new(Arc::clone(self));
        if self.hides_paths {
            let local = LocalNames::of(&logs);
            for log in &mut logs {
                *log = local.replace(log, &mut report);
            }
            mask.local = Some(Arc::new(local));
        }
        let mut redactor = Redactor::new(&self.rules);
        logs.iter().for_each(|log| drop(redactor.learn_log(log)));
        report.secrets = redactor.secret_counts();
        redactor.finish_learning();
        for log in &mut logs {
            if let Some(clean) = redactor.mask_log(log) {
                *log = clean;
            }
        }
        mask.add(redactor.into_known());
        (logs, report, mask)
    }
}

/// Masks the secrets of a session whose lines are read one at a time.
///
/// A secret may be recognisable in one place only: by the name in front of it, or by the header of a private
/// key. So the mask first learns the secrets of all lines, and then masks every copy.
#[derive(Clone)]
pub(crate) struct SessionMask {
    redaction: Arc<DisplayRedaction>,
    /// The local paths and user names, if they are replaced.
    local: Option<Arc<LocalNames>>,
    known: Vec<Arc<KnownSecrets>>,
}

impl fmt::Debug for SessionMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionMask").field("redaction", &self.redaction).finish_non_exhaustive()
    }
}

impl SessionMask {
    /// Creates a mask that has not learnt anything.
    pub(crate) fn new(redaction: Arc<DisplayRedaction>) -> Self {
        Self { redaction, local: None, known: Vec::new() }
    }

    /// Returns the redaction that the mask applies.
    pub(crate) fn redaction(&self) -> &Arc<DisplayRedaction> {
        &self.redaction
    }

    /// Returns the secrets in some lines of the session.
    pub(crate) fn find_secrets(&self, lines: &[u8]) -> Option<KnownSecrets> {
        let mut redactor = Redactor::new(&self.redaction.rules);
        redactor.learn_log(lines);
        redactor.into_known()
    }

    /// Masks these secrets, too.
    pub(crate) fn add(&mut self, secrets: impl IntoIterator<Item = KnownSecrets>) {
        self.known.extend(secrets.into_iter().map(Arc::new));
    }

    /// Masks the secrets in a text.
    pub(crate) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let local = self.local.as_ref().and_then(|local| local.replace_elsewhere(text));
        let mut masked = local.map_or(Cow::Borrowed(text), Cow::Owned);
        for known in &self.known {
            if let Cow::Owned(clean) = known.mask(&masked) {
                masked = Cow::Owned(clean);
            }
        }
        match self.redaction.text(&masked) {
            Cow::Owned(clean) => Cow::Owned(clean),
            Cow::Borrowed(_) => masked,
        }
    }

    /// Masks the secrets in an owned text.
    pub(crate) fn mask_string(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.text(text) {
            *text = clean;
        }
    }

    /// Masks the secrets in one line of a log, which may be truncated; `None` if it contains none.
    pub(crate) fn line(&self, line: &LogLine<'_>) -> Option<Vec<u8>> {
        let mut clean = None;
        let mut is_text = false;
        parse_line(line, |entry, _| {
            if entry.shares_line() || entry.kind() == Kind::Bad {
                is_text = true;
            } else {
                clean = rewrite_strings(&entry, &mut |text| match self.text(text) {
                    Cow::Owned(clean) => Some(clean),
                    Cow::Borrowed(_) => None,
                });
            }
        });
        if is_text {
            // A line that is not one JSON object is one text.
            let text = String::from_utf8_lossy(line.bytes);
            return Some(self.text(&text).into_owned().into_bytes());
        }
        clean.map(String::into_bytes)
    }
}

/// Masks texts of one session, such as the contents of its files, if the configuration requires it.
#[derive(Debug)]
pub struct SessionTextMask {
    mask: Option<SessionMask>,
}

impl SessionTextMask {
    /// Masks the secrets in a text, also those that only a line of the session identifies.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match &self.mask {
            Some(mask) => mask.text(text),
            None => Cow::Borrowed(text),
        }
    }
}

/// The replacements in a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedactionReport {
    /// The number of different secrets by kind.
    pub secrets: BTreeMap<String, usize>,
    /// The number of local paths.
    pub paths: usize,
    /// The number of occurrences of user names.
    pub names: usize,
}

impl fmt::Display for RedactionReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts: Vec<String> =
            self.secrets.iter().map(|(kind, count)| format!("{kind} ({count})")).collect();
        let counts = [(self.paths, "local path"), (self.names, "user name")];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        parts.extend(counts.map(|(count, noun)| plural(count as u64, noun)));
        match parts.is_empty() {
            true => f.write_str("nothing"),
            false => f.write_str(&parts.join(", ")),
        }
    }
}

impl App {
    /// Masks the secrets in a text, if the configuration requires it.
    pub fn redacted<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match &self.config().redaction {
            Some(redaction) => redaction.text(text),
            None => Cow::Borrowed(text),
        }
    }

    /// Returns the mask for texts of the session with these logs. Reads the logs if the configuration
    /// requires masking. A log that cannot be read identifies no secrets.
    pub fn session_text_mask(&self, logs: &[PathBuf]) -> SessionTextMask {
        let mask = self.config().redaction.as_ref().map(|redaction| {
            let mut mask = SessionMask::new(Arc::clone(redaction));
            for log in logs {
                if let Ok(lines) = read_bytes(log) {
                    let secrets = mask.find_secrets(&lines);
                    mask.add(secrets);
                }
            }
            mask
        });
        SessionTextMask { mask }
    }

    /// Masks the secrets in an owned text, if the configuration requires it.
    pub(crate) fn redact_string(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.redacted(text) {
            *text = clean;
        }
    }
}

/// Reads a whole log.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, AppError> {
    check_log_size(path)?;
    let mut bytes = Vec::new();
    let read = open_regular(path).and_then(|mut file| file.read_to_end(&mut bytes));
    read.map(|_| bytes).map_err(AppError::read(path))
}

/// Directories and user names of the machine that wrote a session.
#[derive(Debug)]
struct LocalNames {
    /// The home directories among them, to recognise those that only another text names.
    homes: BTreeSet<String>,
    directories: NameFinder<LocalDirectory>,
    /// User names, and whether they have two letters only. Those are replaced only as a part of a path.
    users: NameFinder<bool>,
}

/// One spelling of a directory.
#[derive(Clone, Debug)]
struct LocalDirectory {
    /// The text to replace, in lower case.
    text: String,
    replacement: String,
    /// Whether it is the name of a project folder, in which each separator is a dash.
    is_encoded: bool,
}

/// Names of accounts that identify no person.
const COMMON_USERS: &[&str] = &[
    "user", "users", "root", "runner", "admin", "ubuntu", "shared", "public", "default", "home", "testuser",
];

impl LocalNames {
    /// Collects the working directories of the lines, and the users whose home directories are named.
    fn of(logs: &[Vec<u8>]) -> Self {
        let mut roots: Vec<String> = Vec::new();
        let mut known_roots = HashSet::new();
        let mut homes = BTreeMap::new();
        for log in logs {
            each_entry(log, |entry| {
                if let Some(cwd) = entry.cwd() {
                    homes.extend(homes_in(&cwd).map(|(home, user)| (home.to_owned(), user.to_owned())));
                    let root = project_directory(&cwd);
                    if !known_roots.contains(root) {
                        known_roots.insert(root.to_owned());
                        roots.push(root.to_owned());
                    }
                }
                rewrite_strings(entry, &mut |text| {
                    homes.extend(homes_in(text).map(|(home, user)| (home.to_owned(), user.to_owned())));
                    None
                });
            });
        }
        // A folder of the project is named by the project.
        let is_below = |root: &str| {
            let mut parents = root.match_indices(['/', '\\']).map(|(at, _)| &root[..at]);
            parents.any(|parent| known_roots.contains(parent))
        };
        roots.retain(|root| root.len() > 1 && !is_below(root));
        let mut directories = Vec::new();
        for (n, root) in roots.iter().enumerate() {
            let number = if n == 0 { String::new() } else { (n + 1).to_string() };
            let (plain, encoded) = (format!("/project{number}"), format!("-project{number}"));
            directories.extend(spellings(root, &plain, &encoded));
        }
        Self::new(directories, homes)
    }

    /// Creates the names from directories, and from home directories with their users.
    fn new(mut directories: Vec<LocalDirectory>, homes: BTreeMap<String, String>) -> Self {
        let mut users = BTreeSet::new();
        for (home, user) in &homes {
            directories.extend(spellings(home, "~", "-home"));
            let user = user.to_ascii_lowercase();
            if user.len() >= 2 && !COMMON_USERS.contains(&&*user) {
                users.insert(user);
            }
        }
        let directories = directories.into_iter().map(|directory| (directory.text.clone(), directory));
        Self {
            directories: NameFinder::new(directories),
            users: NameFinder::new(users.into_iter().map(|user| (user.clone(), user.len() == 2))),
            homes: homes.into_keys().collect(),
        }
    }

    fn replace(&self, log: &[u8], report: &mut RedactionReport) -> Vec<u8> {
        let mut out = Vec::with_capacity(log.len());
        let mut lines = LineReader::new(log);
        while let Ok(Some(line)) = lines.next() {
            let mut clean = None;
            let mut is_text = false;
            parse_line(&line, |entry, _| match entry.shares_line() {
                true => is_text = true,
                false => clean = rewrite_strings(&entry, &mut |text| self.replace_text(text, report)),
            });
            if is_text {
                // A line that is not one JSON object is one text.
                clean = self.replace_text(&String::from_utf8_lossy(line.bytes), report);
            }
            out.extend_from_slice(clean.as_ref().map_or(line.bytes, |clean| clean.as_bytes()));
            out.push(b'\n');
        }
        out
    }

    /// Replaces the names in a text that is not in the logs, such as stored output, and also the home
    /// directories that only this text names.
    fn replace_elsewhere(&self, text: &str) -> Option<String> {
        let mut report = RedactionReport::default();
        let clean = self.replace_text(text, &mut report);
        let unknown = homes_in(text).filter(|(home, _)| !self.homes.contains(*home));
        let unknown: BTreeMap<String, String> =
            unknown.map(|(home, user)| (home.to_owned(), user.to_owned())).collect();
        if unknown.is_empty() {
            return clean;
        }
        let others = Self::new(Vec::new(), unknown);
        others.replace_text(clean.as_deref().unwrap_or(text), &mut report).or(clean)
    }

    fn replace_text(&self, text: &str, report: &mut RedactionReport) -> Option<String> {
        let (without_paths, n_paths) = self.directories.replace(text, |directory, before, after| {
            let is_word = |ch: char| is_name_char(ch) || (ch == '-' && !directory.is_encoded);
            let is_separate =
                !directory.text.starts_with(|ch: char| ch.is_ascii_alphanumeric()) && !directory.is_encoded;
            let is_whole = (is_separate || !before.ends_with(is_name_char)) && !after.starts_with(is_word);
            is_whole.then_some(&*directory.replacement)
        });
        let text = without_paths.as_deref().unwrap_or(text);
        let (without_names, n_names) = self.users.replace(text, |is_short, before, after| {
            let is_word = !before.ends_with(is_name_char) && !after.starts_with(is_name_char);
            (is_word && (!is_short || before.ends_with(['/', '\\']))).then_some("user")
        });
        report.paths += n_paths;
        report.names += n_names;
        without_names.or(without_paths)
    }
}

fn is_name_char(ch: char) -> bool {
    ch.is_alphanumeric() || ch == '_'
}

/// Finds any of many names in a text, in any case, in one pass.
#[derive(Debug)]
struct NameFinder<T> {
    automaton: AhoCorasick,
    /// The names in lower case, each with its value and the longest other name that it begins with.
    names: Vec<(String, T, Option<usize>)>,
}

impl<T> NameFinder<T> {
    /// Creates a finder. Of several values for one name, the first counts.
    fn new(names: impl IntoIterator<Item = (String, T)>) -> Self {
        let mut sorted: BTreeMap<String, T> = BTreeMap::new();
        for (name, value) in names {
            sorted.entry(name).or_insert(value);
        }
        let mut names: Vec<(String, T, Option<usize>)> = Vec::with_capacity(sorted.len());
        // The names that the current one begins with, shortest first. In sorted order, they precede it.
        let mut prefixes: Vec<usize> = Vec::new();
        for (name, value) in sorted {
            while prefixes.pop_if(|prefix| !name.starts_with(&*names[*prefix].0)).is_some() {}
            let prefix = prefixes.last().copied();
            prefixes.push(names.len());
            names.push((name, value, prefix));
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .ascii_case_insensitive(true)
            .build(names.iter().map(|(name, _, _)| name));
        #[expect(clippy::unwrap_used, reason = "only gigabytes of names exceed the limits of an automaton")]
        let automaton = automaton.unwrap();
        Self { automaton, names }
    }

    /// Replaces the names for which `replacement` returns a text, given the value and the text before and
    /// after the name. Returns `None` if there are none, and the number of replacements.
    fn replace<'s>(
        &'s self,
        text: &str,
        replacement: impl Fn(&'s T, &str, &str) -> Option<&'s str>,
    ) -> (Option<String>, usize) {
        let mut out = String::new();
        let (mut done, mut count, mut from) = (0, 0, 0);
        while let Some(found) = self.automaton.find(Input::new(text).range(from..)) {
            let at = found.start();
            let mut name = Some(found.pattern().as_usize());
            from = at + text[at..].chars().next().map_or(1, char::len_utf8);
            // If the longest name is not a whole one, a shorter one may be.
            while let Some((text_of_name, value, prefix)) = name.map(|name| &self.names[name]) {
                let end = at + text_of_name.len();
                if let Some(replacement) = replacement(value, &text[..at], &text[end..]) {
                    out.push_str(&text[done..at]);
                    out.push_str(replacement);
                    (done, count, from) = (end, count + 1, end);
                    break;
                }
                name = *prefix;
            }
        }
        if count == 0 {
            return (None, 0);
        }
        out.push_str(&text[done..]);
        (Some(out), count)
    }
}

/// Returns the spellings of a directory: as it is, with the separators of string literals and of other
/// shells on Windows, and as the name of a project folder.
fn spellings(directory: &str, plain: &str, encoded: &str) -> Vec<LocalDirectory> {
    let directory = directory.to_ascii_lowercase();
    if !directory.contains(['/', '\\']) {
        // A part of the name of a project folder.
        return vec![LocalDirectory { text: directory, replacement: encoded.to_owned(), is_encoded: true }];
    }
    let dashes = directory.replace(|ch: char| !ch.is_ascii_alphanumeric(), "-");
    let mut plain_texts = vec![directory.clone()];
    if directory.contains('\\') {
        plain_texts.push(directory.replace('\\', r"\\"));
        plain_texts.push(directory.replace('\\', "/"));
        if let Some((drive, rest)) = directory.split_once(':') {
            plain_texts.push(format!("/{drive}{}", rest.replace('\\', "/")));
        }
    }
    // The encoded name of a folder in the root, such as `-x`, could be anything.
    let is_distinct = directory.matches(['/', '\\']).count() > 1;
    let encoded = is_distinct.then_some((dashes, encoded, true));
    let all = plain_texts.into_iter().map(|text| (text, plain, false)).chain(encoded);
    all.map(|(text, replacement, is_encoded)| LocalDirectory {
        text,
        replacement: replacement.to_owned(),
        is_encoded,
    })
    .collect()
}

/// Returns the home directories that a text names, with their users.
fn homes_in(text: &str) -> impl Iterator<Item = (&str, &str)> {
    const PARENTS: [&str; 4] = ["/home/", "/Users/", r"\Users\", r"\\Users\\"];
    let plain = PARENTS.into_iter().flat_map(move |parent| {
        text.match_indices(parent).filter_map(move |(at, _)| {
            let name = at + parent.len();
            let is_end = |ch: char| !(ch.is_alphanumeric() || matches!(ch, '.' | '_' | '-'));
            let end = text[name..].find(is_end).map_or(text.len(), |end| name + end);
            // A drive precedes the path on Windows.
            let start =
                if parent.starts_with('\\') && text[..at].ends_with(':') { at.saturating_sub(2) } else { at };
            let user = text[name..end].trim_end_matches('.');
            (!user.is_empty() && text.is_char_boundary(start))
                .then(|| (&text[start..name + user.len()], user))
        })
    });
    plain.chain(encoded_homes_in(text))
}

/// Returns the home directories in names of project folders, such as `-Users-ada-loom`. A dash in the name of
/// a user is not recognised.
fn encoded_homes_in(text: &str) -> impl Iterator<Item = (&str, &str)> {
    ["/-home-", "/-Users-", r"\C--Users-"].into_iter().flat_map(move |parent| {
        text.match_indices(parent).filter_map(move |(at, _)| {
            let name = at + parent.len();
            let is_end = |ch: char| !(ch.is_alphanumeric() || matches!(ch, '.' | '_'));
            let end = text[name..].find(is_end).map_or(text.len(), |end| name + end);
            (end > name).then(|| (&text[at + 1..end], &text[name..end]))
        })
    })
}

fn each_entry(log: &[u8], mut visit: impl FnMut(&Entry)) {
    let mut lines = LineReader::new(log);
    while let Ok(Some(line)) = lines.next() {
        parse_line(&line, |entry, _| visit(&entry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_user_names_are_replaced_as_whole_words() {
        let log = br#"{"type":"user","cwd":"/home/ada/loom","message":{"role":"user","content":"ada: see /home/ada/loom/src/a.rs and /home/ada/notes, not /home/ada/loomy or canada"}}
{"type":"user","cwd":"/home/ada/loom/src","message":{"role":"user","content":"C:\\Users\\Grace\\x by Grace"}}
torn {"
"#;
        let redaction = Arc::new(DisplayRedaction::for_sharing(Rules::new()));
        let (logs, report, _) = redaction.logs(vec![log.to_vec()]);
        let text = String::from_utf8(logs[0].clone()).unwrap();
        assert!(text.contains("user: see /project/src/a.rs and ~/notes, not ~/loomy or canada"), "{text}");
        assert!(text.contains(r#""cwd":"/project/src""#), "{text}");
        assert!(text.contains(r"~\\x by user"), "{text}");
        assert_eq!(text.lines().count(), 3);
        assert_eq!(report.to_string(), format!("{} local paths, {} user names", report.paths, report.names));
        assert!(report.paths >= 5 && report.names == 2, "{report:?}");
    }

    #[test]
    fn of_names_that_begin_alike_the_longest_whole_one_is_found() {
        let names = ["/a", "/a/b", "/a/b/c", "x"].map(|name| (name.to_owned(), name.to_uppercase()));
        let finder = NameFinder::new(names);
        let replaced = |text: &str| {
            let whole = |_: &String, _: &str, after: &str| !after.starts_with(is_name_char);
            finder.replace(text, |name, before, after| whole(name, before, after).then_some(name)).0
        };
        assert_eq!(replaced("/a/b/c /a/b/cd /A/bc /ab").as_deref(), Some("/A/B/C /A/B/cd /A/bc /ab"));
        assert_eq!(replaced("nothing"), None);
        assert_eq!(NameFinder::<()>::new([]).replace("x", |(), _, _| Some("y")), (None, 0));
    }

    /// Returns the text of a prompt in a session that worked in `cwd`, for sharing.
    fn shared(cwd: &str, text: &str) -> String {
        let quote = threadline_entry::write::quote;
        let log = format!(
            r#"{{"type":"user","cwd":{},"message":{{"role":"user","content":{}}}}}"#,
            quote(cwd),
            quote(text)
        );
        let redaction = Arc::new(DisplayRedaction::for_sharing(Rules::new()));
        let (logs, ..) = redaction.logs(vec![log.into_bytes()]);
        let line: serde_json::Value = serde_json::from_slice(&logs[0]).unwrap();
        line["message"]["content"].as_str().unwrap().to_owned()
    }

    #[test]
    fn other_spellings_of_paths_and_user_names_are_replaced() {
        for (cwd, text, expected) in [
            // Names of project folders.
            (
                "/Users/ada/loom/.worktrees/3",
                "~/.claude/projects/-Users-ada-loom--worktrees-3/x.jsonl -Users-ada-other -Users-adam",
                "~/.claude/projects/-project--worktrees-3/x.jsonl -home-other -Users-adam",
            ),
            (
                "/srv/loom",
                "/private/tmp/claude/-Users-grace-x/tasks/ by grace",
                "/private/tmp/claude/-home-x/tasks/ by user",
            ),
            // Backslashes in string literals, and other shells on Windows.
            (
                r"D:\loom\src",
                r"D:\\loom\\src\\a.rs d:\loom\src\b.rs D:/loom/src/c.rs /d/loom/src",
                r"/project\\a.rs /project\b.rs /project/c.rs /project",
            ),
            (r"C:\Users\Jande\loom", r"C:\\Users\\Jande\\notes", r"~\\notes"),
            // Other case, and dashes around a name.
            (r"C:\Users\Jande\loom", r"JANDE jande-pc C:\USERS\JANDE\x", r"user user-pc ~\x"),
            // A name of two letters is replaced in paths only.
            ("/home/tj/loom", "tj /var/mail/tj/1 /home/tj", "tj /var/mail/user/1 ~"),
        ] {
            assert_eq!(shared(cwd, text), expected, "{cwd}");
        }
    }

    #[test]
    fn texts_outside_of_the_logs_are_masked_like_the_logs() {
        let log = br#"{"type":"user","cwd":"/home/ada/loom","message":{"role":"user","content":"hi"}}"#;
        let redaction = Arc::new(DisplayRedaction::for_sharing(Rules::new()));
        let (_, _, mask) = redaction.logs(vec![log.to_vec()]);
        let text = mask.text("deploy /home/ada/loom/a from /home/grace/p for grace@loomworks.dev");
        assert!(text.starts_with("deploy /project/a from ~/p for "), "{text}");
        assert!(!text.contains("grace") && !text.contains("loomworks"), "{text}");
    }
}
