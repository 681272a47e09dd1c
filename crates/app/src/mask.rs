//! Masks secrets in everything that is shown or exported. The logs are not changed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use threadline_edit::{Redactor, rewrite_strings};
use threadline_entry::write::quote;
use threadline_entry::{Kind, LogLine, decode, parse_line};
use threadline_secret::{KnownSecrets, Replacer, Rules};
use threadline_view::humanize::plural;

use crate::config::App;
use crate::error::AppError;
use crate::load::check_log_size;
use crate::local_names::LocalNames;
use crate::session_secrets::SessionSecrets;

/// Replaces secrets in texts that are shown or exported: those that its rules find, and for texts of a
/// session, those that are known from its lines. The default mask replaces nothing.
///
/// A secret may be recognisable in one place only: by the name in front of it, or by the header of a private
/// key. So the secrets of all lines are learnt first, and then every copy is masked.
#[derive(Clone, Default)]
pub struct Mask {
    /// `None` if nothing is masked.
    rules: Option<Arc<Rules>>,
    /// Whether local paths and user names are replaced too, for files that are shared.
    hides_paths: bool,
    /// The local paths and user names of the session, if they are replaced.
    local: Option<Arc<LocalNames>>,
    /// The secrets of the session.
    known: Vec<Arc<KnownSecrets>>,
    /// Finds the secrets of sessions.
    secrets: Arc<SessionSecrets>,
}

impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mask").field("hides_paths", &self.hides_paths).finish_non_exhaustive()
    }
}

impl Mask {
    /// Masks what the rules find.
    pub fn new(rules: Rules) -> Self {
        Self { rules: Some(Arc::new(rules)), ..Self::default() }
    }

    /// Masks what the built-in rules find.
    pub fn built_in() -> Self {
        Self::new(Rules::new())
    }

    /// Masks what the rules find, e-mail addresses, local paths and user names.
    pub fn for_sharing(rules: Rules) -> Self {
        Self { hides_paths: true, ..Self::new(rules.with_emails()) }
    }

    /// Masks what the built-in rules find, e-mail addresses, local paths and user names.
    pub fn built_in_for_sharing() -> Self {
        Self::for_sharing(Rules::new())
    }

    /// Finds the secrets of sessions with this finder.
    pub(crate) fn with_finder(self, secrets: Arc<SessionSecrets>) -> Self {
        Self { secrets, ..self }
    }

    /// Returns the finder of the secrets of sessions.
    pub(crate) fn finder(&self) -> &Arc<SessionSecrets> {
        &self.secrets
    }

    /// Returns the mask for texts of the session with these logs, with the secrets of all of its lines.
    pub(crate) fn of_session(&self, logs: &[PathBuf]) -> Self {
        let known = self.rules.as_ref().and_then(|rules| self.secrets.known(rules, logs));
        Self { known: known.into_iter().collect(), ..self.clone() }
    }

    /// Returns whether anything is masked.
    pub fn is_on(&self) -> bool {
        self.rules.is_some()
    }

    /// Masks the secrets in a text, and e-mail addresses in one that is shared.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.excerpt(text, [false; 2])
    }

    /// Masks the secrets in an owned text.
    pub(crate) fn mask_string(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.text(text) {
            *text = clean;
        }
    }

    /// Masks the secrets in an excerpt. `cut` is whether its beginning and its end are within a line.
    pub(crate) fn excerpt<'t>(&self, text: &'t str, cut: [bool; 2]) -> Cow<'t, str> {
        let Some(rules) = &self.rules else { return Cow::Borrowed(text) };
        let local = self.local.as_ref().and_then(|local| local.replace_elsewhere(text));
        let mut masked = local.map_or(Cow::Borrowed(text), Cow::Owned);
        for known in &self.known {
            if let Cow::Owned(clean) = known.mask_excerpt(&masked, cut) {
                masked = Cow::Owned(clean);
            }
        }
        let clean = match self.hides_paths {
            true => Replacer::new(rules).replace(&masked),
            false => rules.mask(&masked),
        };
        match clean {
            Cow::Owned(clean) => Cow::Owned(clean),
            Cow::Borrowed(_) => masked,
        }
    }

    /// Masks the tokens in markup that consists of masked texts: names may contain tokens, too. Secrets that
    /// are recognised by their context are not searched, because attributes look like them.
    pub fn markup<'t>(&self, markup: &'t str) -> Cow<'t, str> {
        self.rules.as_ref().map_or(Cow::Borrowed(markup), |rules| rules.mask_tokens(markup))
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

    /// Reads the logs of a session without their secrets, line by line. Returns them with what was replaced,
    /// and with the mask for other texts of the session.
    pub(crate) fn read_logs(&self, paths: &[PathBuf]) -> (Vec<Result<Vec<u8>, AppError>>, MaskReport, Self) {
        let mut report = MaskReport::default();
        let (mut mask, rules) = (self.clone(), self.rules.clone().unwrap_or_default());
        let mut redactor = Redactor::new(&rules);
        let mut lines = self.secrets.lines(&rules, paths.first().map_or(Path::new(""), |first| first));
        let mut read = |path: &PathBuf| {
            check_log_size(path)?;
            lines.read_log(&mut redactor, path).map_err(AppError::read(path))
        };
        let mut logs: Vec<_> = paths.iter().map(&mut read).collect();
        lines.save();
        if self.hides_paths {
            let local = LocalNames::of(logs.iter().flatten().map(|(log, _)| &**log));
            redactor = Redactor::new(&rules);
            for (log, sources) in logs.iter_mut().flatten() {
                *log = local.replace(log, &mut report);
                redactor.learn_log(log);
                *sources = redactor.take_source_lines();
            }
            mask.local = Some(Arc::new(local));
        }
        report.secrets = redactor.secret_counts();
        redactor.finish_learning();
        let masked = logs
            .into_iter()
            .map(|read| read.map(|(log, sources)| redactor.mask_log(&log, Some(&sources)).unwrap_or(log)));
        let masked = masked.collect();
        mask.add(redactor.into_known());
        (masked, report, mask)
    }

    /// Returns the secrets in some lines of a session.
    pub(crate) fn find_secrets(&self, lines: &[u8]) -> Option<KnownSecrets> {
        let mut redactor = Redactor::new(self.rules.as_ref()?);
        redactor.learn_log(lines);
        redactor.into_known()
    }

    /// Masks these secrets, too.
    pub(crate) fn add(&mut self, secrets: impl IntoIterator<Item = KnownSecrets>) {
        self.known.extend(secrets.into_iter().map(Arc::new));
    }

    /// Masks the secrets in one line of a log, which may be truncated; `None` if it contains none.
    pub(crate) fn line(&self, line: &LogLine<'_>) -> Option<Vec<u8>> {
        if !self.is_on() {
            return None;
        }
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
pub struct MaskReport {
    /// The number of different secrets by kind.
    pub secrets: BTreeMap<String, usize>,
    /// The number of local paths.
    pub paths: usize,
    /// The number of occurrences of user names.
    pub names: usize,
}

impl fmt::Display for MaskReport {
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
    pub fn masked<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.config().mask.text(text)
    }

    /// Masks the secrets in an owned text, if the configuration requires it.
    pub(crate) fn mask_string(&self, text: &mut String) {
        self.config().mask.mask_string(text);
    }

    /// Returns the mask for texts of the session with these logs, with the secrets of all of its lines.
    pub fn session_mask(&self, logs: &[PathBuf]) -> Mask {
        self.config().mask.of_session(logs)
    }

    /// Masks secrets in a text of the session with these logs, such as its title, if the configuration
    /// requires it. Secrets that only another line of the session identifies are masked, too.
    pub fn masked_in<'t>(&self, logs: &[PathBuf], text: &'t str) -> Cow<'t, str> {
        self.mask_for(&[text], logs).text(text)
    }

    /// Returns the mask for some texts of the session with these logs. The secrets of its lines are found
    /// only if a text has a word that may be one.
    pub(crate) fn mask_for(&self, texts: &[&str], logs: &[PathBuf]) -> Mask {
        let mask = &self.config().mask;
        let may_be_known = mask.rules.as_ref().is_some_and(|rules| rules.may_be_known(texts));
        if may_be_known { mask.of_session(logs) } else { mask.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a log that is prepared for sharing, what was replaced, and the mask for other texts.
    fn share(log: &str) -> (String, MaskReport, Mask) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        std::fs::write(&path, log).unwrap();
        let (mut logs, report, mask) = Mask::built_in_for_sharing().read_logs(&[path]);
        (String::from_utf8(logs.remove(0).unwrap()).unwrap(), report, mask)
    }

    #[test]
    fn paths_and_user_names_are_replaced_as_whole_words() {
        let log = r#"{"type":"user","cwd":"/home/ada/loom","message":{"role":"user","content":"ada: see /home/ada/loom/src/a.rs and /home/ada/notes, not /home/ada/loomy or canada"}}
{"type":"user","cwd":"/home/ada/loom/src","message":{"role":"user","content":"C:\\Users\\Grace\\x by Grace"}}
torn {"
"#;
        let (text, report, _) = share(log);
        assert!(text.contains("user: see /project/src/a.rs and ~/notes, not ~/loomy or canada"), "{text}");
        assert!(text.contains(r#""cwd":"/project/src""#), "{text}");
        assert!(text.contains(r"~\\x by user"), "{text}");
        assert_eq!(text.lines().count(), 3);
        assert_eq!(report.to_string(), format!("{} local paths, {} user names", report.paths, report.names));
        assert!(report.paths >= 5 && report.names == 2, "{report:?}");
    }

    /// Returns the text of a prompt in a session that worked in `cwd`, for sharing.
    fn shared(cwd: &str, text: &str) -> String {
        let quote = threadline_entry::write::quote;
        let log = format!(
            r#"{{"type":"user","cwd":{},"message":{{"role":"user","content":{}}}}}"#,
            quote(cwd),
            quote(text)
        );
        let line: serde_json::Value = serde_json::from_str(&share(&log).0).unwrap();
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
        let log = r#"{"type":"user","cwd":"/home/ada/loom","message":{"role":"user","content":"hi"}}"#;
        let (_, _, mask) = share(log);
        let text = mask.text("deploy /home/ada/loom/a from /home/grace/p for grace@loomworks.dev");
        assert!(text.starts_with("deploy /project/a from ~/p for "), "{text}");
        assert!(!text.contains("grace") && !text.contains("loomworks"), "{text}");
    }
}
