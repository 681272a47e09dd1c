//! Follows a script from command to command, and collects its effects.

mod compound;
mod expand;
mod redirect;

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::effect::{CommandEffects, OtherChanges, ShellEffect, ShellStep, StepCondition, TextPart};
use crate::path::{file_words, is_device, normalize};
use crate::syntax::{Command, Word, parse};

/// The most commands that are followed. Loops over literal words are followed word by word.
const MAX_RUNS: usize = 20_000;
/// The deepest nesting of function calls and inner scripts.
const MAX_CALLS: usize = 6;
/// The most variables whose values are kept.
const MAX_VARIABLES: usize = 256;
/// The most folders that a shell may be in.
const MAX_FOLDERS: usize = 8;
/// The most words that are kept of a program that may change any file.
const MAX_FILE_WORDS: usize = 10_000;

/// Returns what a command does to files.
pub(crate) fn effects(command: &str, cwd: &str, home: Option<&str>) -> CommandEffects {
    let mut walk = Walk::new(cwd, home);
    if !walk.script(command, Context::default()) || walk.runs > MAX_RUNS {
        return CommandEffects {
            steps: Vec::new(),
            other_changes: any_file(command),
            in_background: command.contains('&'),
        };
    }
    let mut other_changes = walk.other;
    other_changes.deduplicate();
    CommandEffects { steps: walk.steps, other_changes, in_background: walk.in_background }
}

fn any_file(text: &str) -> OtherChanges {
    let mut changes = OtherChanges::Any(file_words(text).take(MAX_FILE_WORDS).map(str::to_owned).collect());
    changes.deduplicate();
    changes
}

/// An argument after the expansions of the shell.
#[derive(Debug, Clone, Default)]
pub(crate) struct Argument {
    pub(crate) text: String,
    /// Whether it has `*`, `?` or `[…]` outside of quotes.
    pub(crate) is_pattern: bool,
    /// Whether a part of it is only known when the command runs. The text then has the literal parts.
    pub(crate) is_dynamic: bool,
}

impl Argument {
    /// Returns the text if it is known.
    pub(crate) fn literal(&self) -> Option<&str> {
        (!self.is_pattern && !self.is_dynamic).then_some(self.text.as_str())
    }
}

/// What a command prints.
#[derive(Debug, Clone, Default)]
pub(crate) struct Content {
    /// `None` if it is not known.
    pub(crate) parts: Option<Vec<TextPart>>,
    /// When it is certain.
    pub(crate) condition: StepCondition,
}

impl Content {
    pub(crate) fn unknown() -> Self {
        Self::default()
    }

    pub(crate) fn nothing() -> Self {
        Self { parts: Some(Vec::new()), condition: StepCondition::IfSucceeded }
    }

    pub(crate) fn text(text: String, condition: StepCondition) -> Self {
        Self { parts: Some(vec![TextPart::Text(text)]), condition }
    }

    /// Appends what the next command prints.
    fn append(&mut self, next: Self) {
        self.condition = self.condition.max(next.condition);
        self.parts = match (self.parts.take(), next.parts) {
            (Some(mut parts), Some(next)) => {
                parts.extend(next);
                Some(parts)
            }
            _ => None,
        };
    }

    /// Returns the text if it contains no files.
    fn literal(&self) -> Option<String> {
        let parts = self.parts.as_ref().filter(|_| self.condition != StepCondition::Maybe)?;
        let texts = parts.iter().map(|part| match part {
            TextPart::Text(text) => Some(text.as_str()),
            TextPart::File(_) => None,
        });
        texts.collect()
    }
}

/// The result of a command.
pub(crate) struct Outcome {
    pub(crate) content: Content,
    /// Whether it prints an error if it fails.
    pub(crate) is_noisy: bool,
    /// Whether the shell, function or loop ends here.
    pub(crate) has_ended: bool,
}

impl Outcome {
    pub(crate) fn new(content: Content, is_noisy: bool) -> Self {
        Self { content, is_noisy, has_ended: false }
    }

    /// The result of a program whose output is not known.
    pub(crate) fn unknown() -> Self {
        Self::new(Content::unknown(), false)
    }
}

/// Where a command is.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Context {
    /// When the command is certain to have run with success.
    pub(crate) condition: StepCondition,
    /// Whether its errors are not printed.
    is_silenced: bool,
    /// Whether its output goes to another command or a file.
    is_captured: bool,
    /// Whether its errors go where its output goes.
    has_merged_errors: bool,
    /// Whether it may not run.
    pub(crate) is_conditional: bool,
    /// Whether `set -e` does not apply to it.
    is_tested: bool,
}

impl Context {
    fn at_least(mut self, condition: StepCondition) -> Self {
        self.condition = self.condition.max(condition);
        if self.is_silenced && self.condition == StepCondition::IfSilent {
            self.condition = StepCondition::Maybe;
        }
        self
    }

    /// The context of a command whose exit status is lost.
    fn without_status(self) -> Self {
        self.at_least(StepCondition::IfSilent)
    }

    fn maybe(self) -> Self {
        Self { is_conditional: true, ..self.at_least(StepCondition::Maybe) }
    }

    fn silenced(mut self) -> Self {
        self.is_silenced = true;
        self.at_least(StepCondition::IfSucceeded)
    }
}

/// The state of a shell, which a subshell has a copy of.
#[derive(Clone, Default)]
struct ShellState {
    /// `None` if it is not known.
    cwd: Option<Rc<str>>,
    cwd_condition: StepCondition,
    /// Where the shell is if a `cd` failed.
    other_folders: Vec<Rc<str>>,
    /// The same for the current item of a list: what follows after `&&` runs only if `cd` succeeded.
    passed_folders: Vec<Rc<str>>,
    variables: BTreeMap<String, Rc<str>>,
    /// `None` for a function that is not known.
    functions: BTreeMap<String, Option<Rc<Command>>>,
    /// `set -e`
    ends_on_error: bool,
    /// `set -o pipefail`
    has_pipefail: bool,
    /// Whether the shell may have ended with success before.
    may_have_ended: bool,
}

pub(crate) struct Walk {
    steps: Vec<ShellStep>,
    other: OtherChanges,
    in_background: bool,
    home: Option<Rc<str>>,
    state: ShellState,
    /// When a failure that ends the shell is seen.
    exit_condition: StepCondition,
    documents: Rc<Vec<Word>>,
    /// The number of the first step that may happen at the same time as the current command.
    concurrent_from: Option<usize>,
    runs: usize,
    calls: usize,
}

impl Walk {
    fn new(cwd: &str, home: Option<&str>) -> Self {
        let state = ShellState { cwd: normalize(".", cwd).map(Rc::from), ..ShellState::default() };
        Self {
            steps: Vec::new(),
            other: OtherChanges::None,
            in_background: false,
            home: home.and_then(|home| normalize(home, "/")).map(Rc::from),
            state,
            exit_condition: StepCondition::IfSucceeded,
            documents: Rc::default(),
            concurrent_from: None,
            runs: 0,
            calls: 0,
        }
    }

    /// Follows a script in the current shell. Returns whether it could be parsed.
    fn script(&mut self, source: &str, context: Context) -> bool {
        let Ok(script) = parse(source) else { return false };
        let outer = std::mem::replace(&mut self.documents, Rc::new(script.documents));
        self.list(&script.list, context);
        self.documents = outer;
        true
    }

    /// Follows the script of another shell: `bash -c SCRIPT`.
    pub(crate) fn inner_script(&mut self, source: &str, context: Context) -> Outcome {
        if self.calls >= MAX_CALLS {
            self.change_any(source);
            return Outcome::unknown();
        }
        self.calls += 1;
        let outer = self.state.clone();
        self.state.variables.clear();
        self.state.functions.clear();
        (self.state.ends_on_error, self.state.has_pipefail) = (false, false);
        let exit_condition = std::mem::replace(&mut self.exit_condition, context.condition);
        if !self.script(source, context) {
            self.change_any(source);
        }
        self.exit_condition = exit_condition;
        self.state = outer;
        self.calls -= 1;
        Outcome::unknown()
    }

    /// Runs something in a subshell.
    fn subshell<T>(&mut self, context: Context, run: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.state.clone();
        let exit_condition = std::mem::replace(&mut self.exit_condition, context.condition);
        let result = run(self);
        self.exit_condition = exit_condition;
        self.state = outer;
        result
    }

    pub(crate) fn step(&mut self, effect: ShellEffect, context: Context) {
        let mut condition = context.condition.max(self.state.cwd_condition);
        if self.state.may_have_ended {
            condition = StepCondition::Maybe;
        }
        self.steps.push(ShellStep { effect, condition });
    }

    /// Records that any file may change.
    pub(crate) fn change_any(&mut self, text: &str) {
        self.other.merge(any_file(text));
    }

    /// Records that the files of a path or pattern may change.
    pub(crate) fn change_named(&mut self, argument: &Argument) {
        if argument.is_dynamic {
            return self.change_any(&argument.text);
        }
        if is_device(&argument.text) {
            return;
        }
        match &self.state.cwd {
            Some(cwd) => {
                let folders = std::iter::once(cwd).chain(&self.state.other_folders);
                let names = folders.filter_map(|folder| normalize(&argument.text, folder)).collect();
                self.other.merge(OtherChanges::Named(names));
            }
            None => match normalize(&argument.text, "") {
                Some(path) => self.other.merge(OtherChanges::Named(vec![path])),
                None => self.other.merge(OtherChanges::Any(vec![argument.text.clone()])),
            },
        }
    }

    /// Returns the absolute path of an argument that is read.
    pub(crate) fn read_path(&self, argument: &Argument) -> Option<String> {
        let text = argument.literal()?;
        normalize(text, self.state.cwd.as_deref().unwrap_or_default())
    }

    /// Returns the absolute path of an argument that is changed. If it is not known, records what may change.
    pub(crate) fn path(&mut self, argument: &Argument) -> Option<String> {
        let path = self.read_path(argument);
        if path.is_none() {
            if !argument.text.is_empty() || argument.is_dynamic {
                self.change_named(argument);
            }
            return None;
        }
        if normalize(&argument.text, "").is_none() && !self.state.other_folders.is_empty() {
            let others = self.state.other_folders.iter();
            let others = others.filter_map(|folder| normalize(&argument.text, folder)).collect();
            self.other.merge(OtherChanges::Named(others));
        }
        path.filter(|path| !is_device(path))
    }

    pub(crate) fn cwd(&self) -> Option<&str> {
        self.state.cwd.as_deref()
    }

    pub(crate) fn home(&self) -> Option<Rc<str>> {
        self.home.clone()
    }

    /// Changes the folder. `None` if the new one is not known.
    pub(crate) fn change_folder(&mut self, folder: Option<&str>, context: Context) {
        let others = std::mem::take(&mut self.state.other_folders);
        let is_certain = context.condition == StepCondition::IfSucceeded;
        for other in &others {
            self.state.other_folders.extend(folder.and_then(|folder| normalize(folder, other)).map(Rc::from));
        }
        if !is_certain {
            self.state.passed_folders.extend(others);
            self.state.passed_folders.extend(self.state.cwd.clone());
        }
        let cwd = self.state.cwd.as_deref().unwrap_or_default();
        self.state.cwd = folder.and_then(|folder| normalize(folder, cwd)).map(Rc::from);
        self.limit_folders();
        self.state.cwd_condition = self.state.cwd_condition.max(context.condition);
    }

    /// Considers that a `cd` in the current item may have failed.
    fn keep_passed_folders(&mut self) {
        self.state.other_folders.append(&mut self.state.passed_folders);
        self.limit_folders();
    }

    fn limit_folders(&mut self) {
        for folders in [&mut self.state.other_folders, &mut self.state.passed_folders] {
            folders.sort();
            folders.dedup();
            if folders.len() > MAX_FOLDERS {
                folders.clear();
                self.state.cwd = None;
            }
        }
    }

    pub(crate) fn set_variable(&mut self, name: &str, value: Option<&str>) {
        let is_full = self.state.variables.len() >= MAX_VARIABLES;
        match value {
            Some(value) if !is_full || self.state.variables.contains_key(name) => {
                self.state.variables.insert(name.to_owned(), Rc::from(value));
            }
            _ => {
                self.state.variables.remove(name);
            }
        }
    }

    /// Forgets what is known of the shell, because unknown code runs in it.
    pub(crate) fn forget_state(&mut self) {
        self.state.variables.clear();
        self.state.functions.clear();
        self.state.cwd = None;
        self.state.may_have_ended = true;
    }

    pub(crate) fn set_ends_on_error(&mut self, value: bool) {
        self.state.ends_on_error = value;
    }

    pub(crate) fn set_pipefail(&mut self, value: bool) {
        self.state.has_pipefail = value;
    }

    pub(crate) fn may_have_ended(&mut self) {
        self.state.may_have_ended = true;
    }

    pub(crate) fn set_background(&mut self, value: bool) {
        self.in_background = value;
    }

    /// Writes what a command prints to a file.
    pub(crate) fn write(&mut self, path: String, content: Content, is_append: bool, context: Context) {
        let context = context.at_least(content.condition);
        let Some(parts) = content.parts else { return self.step(ShellEffect::Change { path }, context) };
        let mut joined: Vec<TextPart> = Vec::new();
        for part in parts {
            match (joined.last_mut(), part) {
                (_, TextPart::Text(text)) if text.is_empty() => {}
                (Some(TextPart::Text(text)), TextPart::Text(next)) => text.push_str(&next),
                (_, part) => joined.push(part),
            }
        }
        let has_files = joined.iter().any(|part| matches!(part, TextPart::File(_)));
        let is_own = |part: &TextPart| matches!(part, TextPart::File(file) if *file == path);
        let is_concurrent = self.concurrent_from.is_some_and(|from| self.steps.len() > from);
        let effect = if has_files && (is_concurrent || joined.iter().any(is_own)) {
            ShellEffect::Change { path }
        } else if has_files {
            ShellEffect::Compose { path, parts: joined, is_append }
        } else {
            match (joined.pop(), is_append) {
                (Some(TextPart::Text(text)), true) => ShellEffect::Append { path, text },
                (Some(TextPart::Text(text)), false) => ShellEffect::Write { path, text },
                (_, true) => ShellEffect::Touch { path },
                (_, false) => ShellEffect::Write { path, text: String::new() },
            }
        };
        self.step(effect, context);
    }
}
