//! Masks secrets in everything that is shown or exported. The logs are not changed.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use threadline_edit::{Redactor, rewrite_strings};
use threadline_entry::{Entry, Kind, LineReader, LogLine, parse_line, project_directory};
use threadline_secret::{KnownSecrets, Rules};
use threadline_store::open_regular;
use threadline_view::humanize::plural;

use crate::config::App;
use crate::error::AppError;

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

    /// Masks the secrets in a text.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.rules.clean(text)
    }

    /// Returns the logs without secrets, line by line, and what was replaced.
    pub(crate) fn logs(&self, mut logs: Vec<Vec<u8>>) -> (Vec<Vec<u8>>, RedactionReport) {
        let mut report = RedactionReport::default();
        if self.hides_paths {
            let local = LocalNames::of(&logs);
            for log in &mut logs {
                *log = local.replace(log, &mut report);
            }
        }
        let mut redactor = Redactor::new(&self.rules);
        let mut secrets: BTreeMap<String, String> = BTreeMap::new();
        for log in &logs {
            let hits = redactor.learn_log(log);
            secrets.extend(hits.into_iter().map(|hit| (hit.placeholder, hit.kind)));
        }
        redactor.finish_learning();
        for log in &mut logs {
            if let Some(clean) = redactor.mask_log(log) {
                *log = clean;
            }
        }
        for kind in secrets.into_values() {
            *report.secrets.entry(kind).or_default() += 1;
        }
        (logs, report)
    }
}

/// Masks the secrets of a session whose lines are read one at a time.
///
/// A secret may be recognisable in one place only: by the name in front of it, or by the header of a private
/// key. So the mask first learns the secrets of all lines, and then masks every copy.
#[derive(Clone)]
pub(crate) struct SessionMask {
    redaction: Arc<DisplayRedaction>,
    known: Vec<Arc<KnownSecrets>>,
}

impl SessionMask {
    /// Creates a mask that has not learnt anything.
    pub(crate) fn new(redaction: Arc<DisplayRedaction>) -> Self {
        Self { redaction, known: Vec::new() }
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
        let mut masked = Cow::Borrowed(text);
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

    /// Masks the secrets in an owned text, if the configuration requires it.
    pub(crate) fn redact_string(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.redacted(text) {
            *text = clean;
        }
    }
}

/// Reads a whole log.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, AppError> {
    let mut bytes = Vec::new();
    let read = open_regular(path).and_then(|mut file| file.read_to_end(&mut bytes));
    read.map(|_| bytes).map_err(AppError::read(path))
}

/// Directories and user names of the machine that wrote a session.
#[derive(Debug, Default)]
struct LocalNames {
    /// Directories and their replacements, longest first.
    directories: Vec<(String, String)>,
    users: BTreeSet<String>,
}

/// Names of accounts that identify nobody.
const COMMON_USERS: &[&str] = &[
    "user", "users", "root", "runner", "admin", "ubuntu", "shared", "public", "default", "home", "testuser",
];

impl LocalNames {
    /// Collects the working directories of the lines, and the users whose home directories are named.
    fn of(logs: &[Vec<u8>]) -> Self {
        let mut roots: Vec<String> = Vec::new();
        let mut homes: BTreeSet<String> = BTreeSet::new();
        let mut local = Self::default();
        for log in logs {
            each_entry(log, |entry| {
                if let Some(cwd) = entry.cwd() {
                    let root = project_directory(&cwd);
                    if !roots.iter().any(|known| known == root) {
                        roots.push(root.to_owned());
                    }
                }
                rewrite_strings(entry, &mut |text| {
                    for (home, user) in homes_in(text) {
                        homes.insert(home.to_owned());
                        local.users.insert(user.to_owned());
                    }
                    None
                });
            });
        }
        // A folder of the project is named by the project.
        let all = roots.clone();
        let is_below = |root: &str, other: &str| {
            root.strip_prefix(other).is_some_and(|rest| rest.starts_with(['/', '\\']))
        };
        roots.retain(|root| root.len() > 1 && !all.iter().any(|other| is_below(root, other)));
        for (n, root) in roots.into_iter().enumerate() {
            let name = if n == 0 { "/project".to_owned() } else { format!("/project{}", n + 1) };
            local.directories.push((root, name));
        }
        local.directories.extend(homes.into_iter().map(|home| (home, "~".to_owned())));
        local.directories.sort_by_key(|(directory, _)| std::cmp::Reverse(directory.len()));
        local.directories.dedup_by(|a, b| a.0 == b.0);
        local.users.retain(|user| user.len() >= 3 && !COMMON_USERS.contains(&&*user.to_lowercase()));
        local
    }

    fn replace(&self, log: &[u8], report: &mut RedactionReport) -> Vec<u8> {
        let mut out = Vec::with_capacity(log.len());
        let mut lines = LineReader::new(log);
        while let Ok(Some(line)) = lines.next() {
            let mut clean = None;
            parse_line(&line, |entry, _| {
                if !entry.shares_line() {
                    clean = rewrite_strings(&entry, &mut |text| self.replace_text(text, report));
                }
            });
            out.extend_from_slice(clean.as_ref().map_or(line.bytes, |clean| clean.as_bytes()));
            out.push(b'\n');
        }
        out
    }

    fn replace_text(&self, text: &str, report: &mut RedactionReport) -> Option<String> {
        let mut clean: Option<String> = None;
        for (directory, name) in &self.directories {
            let now = clean.as_deref().unwrap_or(text);
            let (next, count) = replace_words(now, directory, name);
            report.paths += count;
            clean = next.or(clean);
        }
        for user in &self.users {
            let now = clean.as_deref().unwrap_or(text);
            let (next, count) = replace_words(now, user, "user");
            report.names += count;
            clean = next.or(clean);
        }
        clean
    }
}

/// Replaces a text where it is not a part of a longer word. Returns the number of replacements.
fn replace_words(text: &str, from: &str, to: &str) -> (Option<String>, usize) {
    let is_word = |ch: char| ch.is_alphanumeric() || ch == '_' || ch == '-';
    let mut out = String::new();
    let (mut done, mut count) = (0, 0);
    for (at, _) in text.match_indices(from) {
        let end = at + from.len();
        let begins = from.starts_with(|ch: char| !is_word(ch)) || !text[..at].ends_with(is_word);
        let ends = !text[end..].starts_with(is_word);
        if at >= done && begins && ends {
            out.push_str(&text[done..at]);
            out.push_str(to);
            (done, count) = (end, count + 1);
        }
    }
    if count == 0 {
        return (None, 0);
    }
    out.push_str(&text[done..]);
    (Some(out), count)
}

/// Returns the home directories that a text names, with their users.
fn homes_in(text: &str) -> impl Iterator<Item = (&str, &str)> {
    const PARENTS: [&str; 3] = ["/home/", "/Users/", r"\Users\"];
    PARENTS.into_iter().flat_map(move |parent| {
        text.match_indices(parent).filter_map(move |(at, _)| {
            let name = at + parent.len();
            let is_end = |ch: char| !(ch.is_alphanumeric() || matches!(ch, '.' | '_' | '-'));
            let end = text[name..].find(is_end).map_or(text.len(), |end| name + end);
            // A drive precedes the path on Windows.
            let start =
                if parent.starts_with('\\') && text[..at].ends_with(':') { at.saturating_sub(2) } else { at };
            let user = text[name..end].trim_end_matches('.');
            (!user.is_empty()).then(|| (&text[start..name + user.len()], user))
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
        let redaction = DisplayRedaction::for_sharing(Rules::new());
        let (logs, report) = redaction.logs(vec![log.to_vec()]);
        let text = String::from_utf8(logs[0].clone()).unwrap();
        assert!(text.contains("user: see /project/src/a.rs and ~/notes, not ~/loomy or canada"), "{text}");
        assert!(text.contains(r#""cwd":"/project/src""#), "{text}");
        assert!(text.contains(r"~\\x by user"), "{text}");
        assert_eq!(text.lines().count(), 3);
        assert_eq!(report.to_string(), format!("{} local paths, {} user names", report.paths, report.names));
        assert!(report.paths >= 5 && report.names == 2, "{report:?}");
    }
}
