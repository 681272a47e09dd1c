//! Local paths and user names in sessions that are shared.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use aho_corasick::{AhoCorasick, Input, MatchKind};
use threadline_edit::rewrite_strings;
use threadline_entry::{Entry, LineReader, parse_line, project_directory};

use crate::mask::MaskReport;

/// Directories and user names of the machine that wrote a session.
#[derive(Debug)]
pub(crate) struct LocalNames {
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
    pub(crate) fn of<'l>(logs: impl Iterator<Item = &'l [u8]>) -> Self {
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

    pub(crate) fn replace(&self, log: &[u8], report: &mut MaskReport) -> Vec<u8> {
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
    pub(crate) fn replace_elsewhere(&self, text: &str) -> Option<String> {
        let mut report = MaskReport::default();
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

    fn replace_text(&self, text: &str, report: &mut MaskReport) -> Option<String> {
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
}
