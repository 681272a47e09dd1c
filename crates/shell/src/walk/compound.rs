//! Lists, pipelines and compound commands.

use std::rc::Rc;

use super::{Argument, Content, Context, MAX_CALLS, MAX_RUNS, Outcome, ShellState, Walk};
use crate::effect::{OtherChanges, StepCondition};
use crate::program;
use crate::syntax::{Command, CommandKind, Connector, Item, List, Piece, Pipeline, SimpleCommand, Word};

impl Walk {
    pub(super) fn list(&mut self, list: &List, context: Context) -> Outcome {
        let mut result = Outcome::new(Content::nothing(), true);
        for (i, item) in list.items.iter().enumerate() {
            if self.runs > MAX_RUNS {
                break;
            }
            let is_last = i + 1 == list.items.len();
            let is_checked = self.state.ends_on_error
                && !context.is_tested
                && context.condition != StepCondition::Maybe
                && item.rest.is_empty();
            let inner = match is_last {
                true => context,
                false if is_checked => Context { condition: self.exit_condition, ..context },
                false => context.without_status(),
            };
            let outcome = self.item(item, inner);
            result.content.append(outcome.content);
            result.is_noisy &= outcome.is_noisy;
            if self.state.may_have_ended {
                result.content.condition = StepCondition::Maybe;
            }
            if outcome.has_ended {
                result.has_ended = true;
                break;
            }
        }
        result
    }

    fn item(&mut self, item: &Item, context: Context) -> Outcome {
        if item.is_background {
            let inner = Context { is_tested: true, ..context.maybe() };
            self.in_background = true;
            self.subshell(inner, |walk| walk.connected(item, inner));
            return Outcome::new(Content::unknown(), true);
        }
        let outcome = self.connected(item, context);
        // Outside of the item, it is not known whether `cd` succeeded.
        self.keep_passed_folders();
        outcome
    }

    fn connected(&mut self, item: &Item, context: Context) -> Outcome {
        let ors = item.rest.iter().filter(|(connector, _)| *connector == Connector::Or).count();
        // `a || exit 1`: the failure of `a` is seen.
        let ends_on_failure = ors == 1
            && context.condition != StepCondition::Maybe
            && item.rest.last().is_some_and(|(connector, last)| *connector == Connector::Or && fails(last));
        let mut ors_left = ors;
        let mut first = context;
        first.is_tested |= !item.rest.is_empty();
        if ends_on_failure {
            first.condition = first.condition.min(self.exit_condition);
        } else if ors_left > 0 {
            first = first.without_status();
        }
        let mut result = self.pipeline(&item.first, first);
        for (i, (connector, pipeline)) in item.rest.iter().enumerate() {
            if result.has_ended {
                break;
            }
            let mut inner = context;
            inner.is_conditional = true;
            inner.is_tested |= i + 1 < item.rest.len();
            ors_left -= usize::from(*connector == Connector::Or);
            if *connector == Connector::Or {
                self.keep_passed_folders();
                inner = inner.maybe();
            } else if ends_on_failure {
                inner.condition = inner.condition.min(self.exit_condition);
            } else if ors_left > 0 {
                inner = inner.without_status();
            }
            if *connector == Connector::And
                && inner.condition != StepCondition::IfSucceeded
                && !result.is_noisy
            {
                inner = inner.maybe();
            }
            let before = self.state.clone();
            let outcome = self.pipeline(pipeline, inner);
            if inner.condition != StepCondition::IfSucceeded {
                self.merge(before, inner.condition == StepCondition::Maybe);
            }
            result.is_noisy &= outcome.is_noisy;
            if *connector == Connector::And {
                result.content.append(outcome.content);
            } else if !is_silent_program(pipeline) {
                result.content.parts = None;
            }
        }
        result
    }

    /// Keeps what is the same in another state, which the shell may be in as well.
    fn merge(&mut self, other: ShellState, forgets_folder: bool) {
        self.state.variables.retain(|name, value| other.variables.get(name) == Some(value));
        if forgets_folder && self.state.cwd != other.cwd {
            self.state.cwd = None;
        }
        self.state.other_folders.extend(other.other_folders);
        self.state.passed_folders.extend(other.passed_folders);
        self.limit_folders();
        self.state.may_have_ended |= other.may_have_ended;
        self.state.ends_on_error &= other.ends_on_error;
        for (name, function) in &mut self.state.functions {
            let old = other.functions.get(name).and_then(Option::as_ref);
            let is_same = matches!((old, &function), (Some(old), Some(new)) if Rc::ptr_eq(old, new));
            if !is_same {
                *function = None;
            }
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline, context: Context) -> Outcome {
        let context =
            if pipeline.is_negated { Context { is_tested: true, ..context.maybe() } } else { context };
        let [command] = &pipeline.commands[..] else { return self.piped(&pipeline.commands, context) };
        let mut outcome = self.command(command, context, Content::unknown());
        outcome.is_noisy &= !pipeline.is_negated;
        outcome
    }

    fn piped(&mut self, commands: &[Command], context: Context) -> Outcome {
        let before = self.concurrent_from;
        let start = self.steps.len();
        self.concurrent_from.get_or_insert(start);
        let mut input = Content::unknown();
        let mut result = Outcome::unknown();
        let mut is_noisy = true;
        for (i, command) in commands.iter().enumerate() {
            let mut inner = context;
            if i + 1 < commands.len() {
                inner.is_captured = true;
                if !self.state.has_pipefail {
                    inner = inner.without_status();
                }
                if command.pipes_errors {
                    inner = inner.silenced();
                    inner.has_merged_errors = true;
                }
                // A command may be ended when the next one does not read all of its output.
                if !matches!(command.kind, CommandKind::Simple(_)) || is_tee(command) {
                    inner = inner.at_least(StepCondition::Maybe);
                }
            }
            let received = std::mem::take(&mut input);
            result = self.subshell(inner, |walk| walk.command(command, inner, received));
            is_noisy &= result.is_noisy;
            input = std::mem::take(&mut result.content);
        }
        self.concurrent_from = before;
        result.content = input;
        result.has_ended = false;
        // Without `pipefail`, only the last command can fail.
        result.is_noisy = if self.state.has_pipefail { is_noisy } else { result.is_noisy };
        result
    }

    pub(super) fn command(&mut self, command: &Command, context: Context, input: Content) -> Outcome {
        self.runs += 1;
        if let CommandKind::Simple(simple) = &command.kind {
            return self.simple(simple, command, context, input);
        }
        self.redirected(&command.redirects, context, input, |walk, context, _| {
            walk.compound(&command.kind, context)
        })
    }

    fn compound(&mut self, kind: &CommandKind, context: Context) -> Outcome {
        match kind {
            CommandKind::Group(list) => self.list(list, context),
            CommandKind::Subshell(list) => {
                let mut outcome = self.subshell(context, |walk| walk.list(list, context));
                outcome.has_ended = false;
                outcome
            }
            CommandKind::If { branches, otherwise } => self.if_command(branches, otherwise.as_ref(), context),
            CommandKind::While { condition, body } => {
                self.repeat(|walk| {
                    let tested = Context { is_tested: true, ..context.without_status() };
                    if walk.list(condition, tested).has_ended {
                        walk.may_have_ended();
                    }
                    walk.list(body, context.maybe());
                });
                Outcome::unknown()
            }
            CommandKind::For { variable, words, body } => {
                self.for_command(variable, words.as_deref(), body, context)
            }
            CommandKind::Case { words, branches } => {
                words.iter().for_each(|word| {
                    self.expand_one(word, context);
                });
                for branch in branches {
                    self.branch(branch, context);
                }
                Outcome::unknown()
            }
            CommandKind::Function { name, body } => {
                self.state.functions.insert(name.clone(), Some(Rc::clone(body)));
                Outcome::new(Content::nothing(), true)
            }
            CommandKind::Condition(words) => {
                words.iter().for_each(|word| {
                    self.expand_one(word, context);
                });
                Outcome::new(Content::nothing(), false)
            }
            CommandKind::Arithmetic(text) => {
                self.forget_names(text);
                if text.contains("$(") || text.contains('`') {
                    self.change_any(text);
                }
                Outcome::new(Content::nothing(), false)
            }
            CommandKind::Simple(_) => Outcome::unknown(),
        }
    }

    /// Follows commands that may run or not.
    fn branch(&mut self, list: &List, context: Context) {
        let before = self.state.clone();
        self.list(list, context.maybe());
        self.merge(before, true);
    }

    fn if_command(
        &mut self,
        branches: &[(List, List)],
        otherwise: Option<&List>,
        context: Context,
    ) -> Outcome {
        for (i, (condition, body)) in branches.iter().enumerate() {
            let tested = Context { is_tested: true, ..context.without_status() };
            let outcome = self.list(condition, if i == 0 { tested } else { tested.maybe() });
            if outcome.has_ended {
                return outcome;
            }
            self.branch(body, context);
        }
        if let Some(otherwise) = otherwise {
            self.branch(otherwise, context);
        }
        Outcome::unknown()
    }

    /// Follows the body of a loop, until another round knows no less than the one before.
    fn repeat(&mut self, mut round: impl FnMut(&mut Self)) {
        for i in 0..3 {
            let steps = self.steps.len();
            let before = self.state.clone();
            round(self);
            let (variables, cwd) = (before.variables.len(), before.cwd.clone());
            self.merge(before, true);
            if self.state.variables.len() == variables && self.state.cwd == cwd {
                return;
            }
            if i == 2 {
                return self.forget_state();
            }
            self.steps.truncate(steps);
        }
    }

    fn for_command(
        &mut self,
        variable: &str,
        words: Option<&[Word]>,
        body: &List,
        context: Context,
    ) -> Outcome {
        let mut values: Vec<Argument> = Vec::new();
        let has_words = words.is_some();
        for word in words.unwrap_or_default() {
            self.expand(word, context, &mut values);
        }
        let is_literal = has_words && values.iter().all(|value| value.literal().is_some());
        if !is_literal || values.len() > 100 {
            self.repeat(|walk| {
                walk.set_variable(variable, None);
                walk.list(body, context.maybe());
            });
            if matches!(self.other, OtherChanges::Any(_)) {
                values.iter().for_each(|value| self.change_any(&value.text));
            }
            return Outcome::unknown();
        }
        if leaves_loop(body) {
            for value in &values {
                self.set_variable(variable, Some(&value.text));
                self.branch(body, context);
            }
            self.set_variable(variable, None);
            return Outcome::unknown();
        }
        let mut result = Outcome::new(Content::nothing(), true);
        for (i, value) in values.iter().enumerate() {
            self.set_variable(variable, Some(&value.text));
            let is_last = i + 1 == values.len();
            let outcome = self.list(body, if is_last { context } else { context.without_status() });
            result.content.append(outcome.content);
            result.is_noisy &= outcome.is_noisy;
            result.has_ended |= outcome.has_ended;
            if outcome.has_ended {
                break;
            }
        }
        result
    }

    fn simple(
        &mut self,
        simple: &SimpleCommand,
        command: &Command,
        context: Context,
        input: Content,
    ) -> Outcome {
        let mut arguments = Vec::new();
        for word in &simple.words {
            self.expand(word, context, &mut arguments);
        }
        let is_alone = arguments.is_empty();
        for assignment in &simple.assignments {
            let mut value = None;
            for word in &assignment.words {
                let new = self.expand_assigned(word, context);
                value = Some(new).filter(|new| assignment.is_plain && !new.is_dynamic);
            }
            if is_alone {
                self.set_variable(&assignment.name, value.map(|value| value.text).as_deref());
            }
        }
        // `exec > log` redirects all that follows.
        if arguments.first().and_then(Argument::literal) == Some("exec") && arguments.len() == 1 {
            return self.exec(command, context);
        }
        self.redirected(&command.redirects, context, input, |walk, context, input| {
            if is_alone {
                // The status of `X=$(cat a)` is that of `cat`.
                let has_output = simple
                    .words
                    .iter()
                    .chain(simple.assignments.iter().flat_map(|assignment| &assignment.words))
                    .any(has_substitution);
                let mut content = Content::nothing();
                if has_output && context.has_merged_errors {
                    content.condition = context.condition;
                }
                return Outcome::new(content, !has_output);
            }
            let mut outcome = walk.call(&arguments, context, input);
            let never_fails = |name: &str| matches!(name, "echo" | "printf" | "true" | ":");
            if context.has_merged_errors && !arguments[0].literal().is_some_and(never_fails) {
                outcome.content.condition = outcome.content.condition.max(context.condition);
            }
            outcome
        })
    }

    fn exec(&mut self, command: &Command, context: Context) -> Outcome {
        if !command.redirects.is_empty() {
            self.redirected(&command.redirects, context, Content::unknown(), |_, _, _| Outcome::unknown());
            // What is printed afterwards may go to a file.
            self.state.cwd_condition = StepCondition::Maybe;
        }
        Outcome::new(Content::nothing(), true)
    }

    /// Returns the value of an assignment, which is not split.
    fn expand_assigned(&mut self, word: &Word, context: Context) -> Argument {
        let mut argument = self.expand_one(word, context);
        let is_split = |piece: &Piece| {
            matches!(
                piece,
                Piece::Variable { is_quoted: false, .. } | Piece::Substitution { is_quoted: false, .. }
            )
        };
        // The value is not split, but this is not worth a second kind of expansion: it stays unknown.
        argument.is_dynamic |= argument.is_pattern && word.pieces.iter().any(is_split);
        argument
    }

    fn call(&mut self, arguments: &[Argument], context: Context, input: Content) -> Outcome {
        let Some(name) = arguments.first().and_then(Argument::literal) else {
            let text: Vec<&str> = arguments.iter().map(|argument| argument.text.as_str()).collect();
            self.change_any(&text.join(" "));
            return Outcome::unknown();
        };
        match self.state.functions.get(name).cloned() {
            Some(Some(body)) if self.calls < MAX_CALLS => self.call_function(&body, arguments, context),
            Some(_) => {
                self.change_any(name);
                self.forget_state();
                Outcome::unknown()
            }
            None => program::run(self, arguments, context, input),
        }
    }

    fn call_function(&mut self, body: &Rc<Command>, arguments: &[Argument], context: Context) -> Outcome {
        self.calls += 1;
        let parameters: Vec<String> = (1..10).map(|number| number.to_string()).collect();
        let outer: Vec<_> =
            parameters.iter().map(|name| self.state.variables.remove(name.as_str())).collect();
        for (name, argument) in parameters.iter().zip(&arguments[1..]) {
            self.set_variable(name, argument.literal());
        }
        let mut outcome = self.command(body, context, Content::unknown());
        // Whether by `return` or by `exit` is not known.
        if std::mem::take(&mut outcome.has_ended) {
            self.may_have_ended();
        }
        for (name, value) in parameters.iter().zip(outer) {
            self.set_variable(name, value.as_deref());
        }
        self.calls -= 1;
        outcome
    }
}

fn has_substitution(word: &Word) -> bool {
    word.pieces.iter().any(|piece| matches!(piece, Piece::Substitution { .. }))
}

/// Returns the words of a pipeline that is one simple command without quotes and expansions.
fn plain_words(pipeline: &Pipeline) -> Option<Vec<&str>> {
    let [Command { kind: CommandKind::Simple(simple), redirects, .. }] = &pipeline.commands[..] else {
        return None;
    };
    let text = |word: &'_ Word| match &word.pieces[..] {
        [Piece::Text { .. }] => Some(()),
        _ => None,
    };
    if !redirects.is_empty() || simple.words.iter().any(|word| text(word).is_none()) {
        return None;
    }
    let texts = simple.words.iter().filter_map(|word| match &word.pieces[..] {
        [Piece::Text { text, .. }] => Some(text.as_str()),
        _ => None,
    });
    Some(texts.collect())
}

/// Whether a command ends the shell with a failure: `exit 1`, or a group that ends with it.
fn fails(pipeline: &Pipeline) -> bool {
    if let Some(words) = plain_words(pipeline) {
        let is_failure = |status: &str| status.parse::<u8>().is_ok_and(|status| status > 0);
        return matches!(words[..], ["exit", status] if is_failure(status));
    }
    let [Command { kind: CommandKind::Group(list), .. }] = &pipeline.commands[..] else { return false };
    list.items.last().is_some_and(|item| item.rest.is_empty() && fails(&item.first))
        && list.items.len() <= 4
        && list.items[..list.items.len() - 1].iter().all(|item| item.rest.is_empty() && prints(&item.first))
}

fn prints(pipeline: &Pipeline) -> bool {
    let [Command { kind: CommandKind::Simple(simple), .. }] = &pipeline.commands[..] else { return false };
    simple.words.first().is_some_and(|word| is_one_of(word, &["echo", "printf"]))
}

/// Whether a word without expansions is one of these.
fn is_one_of(word: &Word, texts: &[&str]) -> bool {
    matches!(&word.pieces[..], [Piece::Text { text, .. }] if texts.contains(&text.as_str()))
}

/// Whether a command prints nothing to its output.
fn is_silent_program(pipeline: &Pipeline) -> bool {
    plain_words(pipeline)
        .is_some_and(|words| matches!(words.first(), Some(&("true" | ":" | "false" | "exit"))))
}

fn is_tee(command: &Command) -> bool {
    let CommandKind::Simple(simple) = &command.kind else { return true };
    simple.words.iter().any(|word| is_one_of(word, &["tee"]))
}

/// Whether `break`, `continue` or `return` may end a round of a loop.
fn leaves_loop(list: &List) -> bool {
    let in_command = |command: &Command| match &command.kind {
        CommandKind::Simple(simple) => {
            simple.words.iter().any(|word| is_one_of(word, &["break", "continue", "return", "exit"]))
        }
        CommandKind::Subshell(list) | CommandKind::Group(list) => leaves_loop(list),
        CommandKind::If { branches, otherwise } => {
            branches.iter().any(|(condition, body)| leaves_loop(condition) || leaves_loop(body))
                || otherwise.as_ref().is_some_and(leaves_loop)
        }
        CommandKind::While { condition, body } => leaves_loop(condition) || leaves_loop(body),
        CommandKind::For { body, .. } => leaves_loop(body),
        CommandKind::Case { branches, .. } => branches.iter().any(leaves_loop),
        _ => false,
    };
    let in_pipeline = |pipeline: &Pipeline| pipeline.commands.iter().any(in_command);
    list.items
        .iter()
        .any(|item| in_pipeline(&item.first) || item.rest.iter().any(|(_, rest)| in_pipeline(rest)))
}
