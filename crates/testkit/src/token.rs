//! The tokens of a line of notation: words, JSON, lists of blocks, and modifiers.

use serde_json::value::RawValue;

use Token::{Json, List, Word};

#[derive(Debug)]
pub(crate) enum Token<'a> {
    Word(&'a str),
    Json(&'a str),
    /// `[text "a", image]`: a list of blocks, each a list of tokens.
    List(Vec<Vec<Self>>),
}

/// The modifiers of a line.
#[derive(Default)]
pub(crate) struct Modifiers<'a> {
    pub(crate) named: Vec<(&'a str, String)>,
    pub(crate) flags: Vec<&'a str>,
    pub(crate) set: Vec<(String, &'a str)>,
    pub(crate) removed: Vec<&'a str>,
    pub(crate) time: Option<&'a str>,
}

impl Modifiers<'_> {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.named.iter().rev().find(|(n, _)| *n == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn has_flag(&self, flag: &str) -> bool {
        self.flags.contains(&flag)
    }
}

pub(crate) struct NotationScanner<'a> {
    pub(crate) rest: &'a str,
    pub(crate) line_no: usize,
}

impl<'a> NotationScanner<'a> {
    pub(crate) fn line(mut self) -> (Vec<Token<'a>>, Modifiers<'a>) {
        let (mut tokens, mut changes) = (Vec::new(), Modifiers::default());
        while self.skip_blanks() {
            if self.rest.starts_with("+{") {
                self.rest = &self.rest[1..];
                let members = self.json();
                changes.set.extend(self.members(members));
            } else if self.rest.starts_with(['"', '{', '[']) {
                tokens.push(self.value());
            } else {
                let word = self.word(&[]);
                match word.split_once('=') {
                    Some((name, value)) if NAMES.contains(&name) => {
                        changes.named.push((name, self.named_value(name, value)));
                    }
                    _ if word == "sidechain" || word == "meta" => changes.flags.push(word),
                    _ if word.starts_with('@') => changes.time = Some(&word[1..]),
                    _ if word.starts_with('-') => changes.removed.push(&word[1..]),
                    _ => tokens.push(Word(word)),
                }
            }
        }
        (tokens, changes)
    }

    fn skip_blanks(&mut self) -> bool {
        self.rest = self.rest.trim_start();
        !self.rest.is_empty()
    }

    /// Reads a word, which ends at white space, at JSON after an equals sign, or at one of `ends`.
    fn word(&mut self, ends: &[char]) -> &'a str {
        let mut previous = ' ';
        let end = self.rest.find(|c: char| {
            let ended = c.is_whitespace() || ends.contains(&c) || (previous == '=' && (c == '"' || c == '{'));
            previous = c;
            ended
        });
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }

    /// Returns the JSON of `name=value`: literal JSON if the value is JSON, otherwise a string.
    fn named_value(&mut self, name: &str, value: &str) -> String {
        if value.is_empty() && self.rest.starts_with(['"', '{']) {
            self.json().to_owned()
        } else if name == "usage" {
            fail(self.line_no, "`usage={…}`", self.rest)
        } else {
            quote(value)
        }
    }

    fn json(&mut self) -> &'a str {
        let mut values = serde_json::Deserializer::from_str(self.rest).into_iter::<&RawValue>();
        match values.next() {
            Some(Ok(raw)) => {
                self.rest = &self.rest[values.byte_offset()..];
                raw.get()
            }
            _ => fail(self.line_no, "JSON", self.rest),
        }
    }

    fn value(&mut self) -> Token<'a> {
        let is_json = serde_json::Deserializer::from_str(self.rest).into_iter::<&RawValue>().next();
        if self.rest.starts_with('[') && is_json.is_none_or(|value| value.is_err()) {
            List(self.list())
        } else {
            Json(self.json())
        }
    }

    fn list(&mut self) -> Vec<Vec<Token<'a>>> {
        let mut blocks = vec![Vec::new()];
        self.rest = &self.rest[1..];
        while self.skip_blanks() {
            if let Some(rest) = self.rest.strip_prefix(']') {
                self.rest = rest;
                return blocks;
            } else if let Some(rest) = self.rest.strip_prefix(',') {
                self.rest = rest;
                blocks.push(Vec::new());
            } else if let Some(block) = blocks.last_mut() {
                let is_value = self.rest.starts_with(['"', '{', '[']);
                block.push(if is_value { self.value() } else { Word(self.word(&[',', ']'])) });
            }
        }
        fail(self.line_no, "`]`", "the end of the line")
    }

    /// Returns the members of a JSON object in order.
    pub(crate) fn members(&self, object: &'a str) -> Vec<(String, &'a str)> {
        let mut inner = Self { rest: &object[1..], line_no: self.line_no };
        let mut members = Vec::new();
        while inner.skip_blanks() && !inner.rest.starts_with('}') {
            inner.rest = inner.rest.trim_start_matches(',').trim_start();
            let key = inner.json();
            let key = serde_json::from_str(key).unwrap_or_else(|_| fail(self.line_no, "a key", key));
            inner.rest = inner.rest.trim_start().trim_start_matches(':');
            members.push((key, inner.json()));
        }
        members
    }
}

/// The names of modifiers of the form `name=value`.
const NAMES: &[&str] =
    &["model", "stop", "req", "usage", "version", "cwd", "branch", "session", "agent", "team"];

pub(crate) fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

pub(crate) fn fail(line_no: usize, expected: &str, found: &str) -> ! {
    panic!("notation line {line_no}: expected {expected}, found `{found}`")
}
