//! Redirections.

use super::{Argument, Content, Context, Outcome, Walk};
use crate::effect::{ShellEffect, TextPart};
use crate::path::is_device;
use crate::syntax::{Descriptor, Redirect, RedirectOperator, RedirectTarget, Word};

/// Where a stream goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Output,
    Errors,
    /// An index of the opened files.
    File(usize),
    Nowhere,
}

/// A file that a redirection opened for writing.
struct OpenFile {
    /// `None` if it is not known, and recorded.
    path: Option<String>,
    is_append: bool,
    /// Whether another stream than output and errors may write to it.
    is_unknown: bool,
}

struct Redirections {
    files: Vec<OpenFile>,
    output: Stream,
    errors: Stream,
    input: Option<Content>,
}

impl Walk {
    /// Runs a command with redirections.
    pub(super) fn redirected(
        &mut self,
        redirects: &[Redirect],
        context: Context,
        input: Content,
        run: impl FnOnce(&mut Self, Context, Content) -> Outcome,
    ) -> Outcome {
        if redirects.is_empty() {
            return run(self, context, input);
        }
        let mut opened = Redirections {
            files: Vec::new(),
            output: Stream::Output,
            errors: Stream::Errors,
            input: Some(input),
        };
        for redirect in redirects {
            self.redirect(redirect, context, &mut opened);
        }
        let is_silenced = match opened.errors {
            Stream::Errors => false,
            Stream::Output => context.is_captured,
            Stream::File(_) | Stream::Nowhere => true,
        };
        let mut inner = if is_silenced { context.silenced() } else { context };
        inner.is_captured |= opened.output != Stream::Output;
        let prints_errors = match opened.errors {
            Stream::Errors => context.has_merged_errors,
            errors => errors == Stream::Output,
        };
        inner.has_merged_errors = match opened.output {
            Stream::Output => prints_errors,
            output => opened.errors == output,
        };
        let before = self.concurrent_from;
        let start = self.steps.len();
        self.concurrent_from.get_or_insert(start);
        let mut outcome = run(self, inner, opened.input.take().unwrap_or_default());
        for (i, file) in opened.files.into_iter().enumerate() {
            let Some(path) = file.path else { continue };
            // The file was opened before, and may have been replaced or written in between.
            let is_used = |step: &&crate::effect::ShellStep| step.effect.paths().contains(&path.as_str());
            let used: Vec<String> = self.steps[start..]
                .iter()
                .filter(is_used)
                .flat_map(|step| step.effect.paths())
                .map(str::to_owned)
                .collect();
            if !used.is_empty() {
                used.into_iter().for_each(|path| self.step(ShellEffect::Change { path }, inner));
                continue;
            }
            let is_output = opened.output == Stream::File(i);
            let mut content = outcome.content.clone();
            if !is_output && (opened.errors != Stream::File(i) || content.parts.is_some()) {
                content.parts = Some(Vec::new());
            }
            if file.is_unknown {
                content.parts = None;
            }
            self.write(path, content, file.is_append, inner);
        }
        self.concurrent_from = before;
        outcome.is_noisy &= !is_silenced;
        if opened.output != Stream::Output {
            outcome.content = Content::nothing();
            if prints_errors {
                outcome.content.condition = inner.without_status().condition;
            }
        }
        outcome
    }

    fn redirect(&mut self, redirect: &Redirect, context: Context, opened: &mut Redirections) {
        let word = match &redirect.target {
            RedirectTarget::Document(index) => {
                let documents = std::rc::Rc::clone(&self.documents);
                let text = self.text_word(&documents[*index], context, "");
                if matches!(redirect.descriptor, Descriptor::Default | Descriptor::Number(0)) {
                    opened.input = Some(text);
                }
                return;
            }
            RedirectTarget::Word(word) => word,
        };
        match redirect.operator {
            RedirectOperator::HereString => opened.input = Some(self.text_word(word, context, "\n")),
            RedirectOperator::Read => {
                let argument = self.expand_one(word, context);
                opened.input = Some(self.read_file(&argument, context));
            }
            RedirectOperator::DuplicateInput => opened.input = None,
            RedirectOperator::WriteAll | RedirectOperator::AppendAll => {
                let stream = self.open(word, redirect.operator, false, context, opened);
                (opened.output, opened.errors) = (stream, stream);
            }
            RedirectOperator::DuplicateOutput => self.duplicate(word, redirect, context, opened),
            RedirectOperator::Write
            | RedirectOperator::Append
            | RedirectOperator::ReadWrite
            | RedirectOperator::HereDocument => {
                let is_read = redirect.operator == RedirectOperator::ReadWrite;
                match redirect.descriptor {
                    Descriptor::Default | Descriptor::Number(1) if !is_read => {
                        opened.output = self.open(word, redirect.operator, false, context, opened);
                    }
                    Descriptor::Number(2) if !is_read => {
                        opened.errors = self.open(word, redirect.operator, false, context, opened);
                    }
                    _ => {
                        self.open(word, redirect.operator, true, context, opened);
                    }
                }
            }
        }
    }

    /// `2>&1`, `>&-`, `>& file`
    fn duplicate(&mut self, word: &Word, redirect: &Redirect, context: Context, opened: &mut Redirections) {
        let target = self.expand_one(word, context);
        let stream = match target.literal() {
            Some("1") => opened.output,
            Some("2") => opened.errors,
            Some(text) if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') => Stream::Nowhere,
            _ if redirect.descriptor == Descriptor::Default => {
                let stream = self.open(word, RedirectOperator::WriteAll, false, context, opened);
                (opened.output, opened.errors) = (stream, stream);
                return;
            }
            _ => Stream::Nowhere,
        };
        match redirect.descriptor {
            Descriptor::Default | Descriptor::Number(1) => opened.output = stream,
            Descriptor::Number(2) => opened.errors = stream,
            // The files that are open may be written through another descriptor.
            _ => opened.files.iter_mut().for_each(|file| file.is_unknown = true),
        }
    }

    fn open(
        &mut self,
        word: &Word,
        operator: RedirectOperator,
        is_unknown: bool,
        context: Context,
        opened: &mut Redirections,
    ) -> Stream {
        let argument = self.expand_one(word, context);
        match argument.text.as_str() {
            "/dev/stdout" | "/dev/fd/1" => return opened.output,
            "/dev/stderr" | "/dev/fd/2" => return opened.errors,
            text if !argument.is_dynamic && is_device(text) => return Stream::Nowhere,
            _ => {}
        }
        let is_append = matches!(operator, RedirectOperator::Append | RedirectOperator::AppendAll);
        let path = self.path(&argument);
        let is_unknown = is_unknown || operator == RedirectOperator::ReadWrite;
        opened.files.push(OpenFile { path, is_append, is_unknown });
        Stream::File(opened.files.len() - 1)
    }

    /// Returns the text of a here-document or here-string.
    fn text_word(&mut self, word: &Word, context: Context, end: &str) -> Content {
        let argument = self.expand_one(word, context);
        if argument.is_dynamic {
            return Content::unknown();
        }
        Content::text(argument.text + end, Default::default())
    }

    /// Returns the text of a file that is read.
    pub(crate) fn read_file(&self, argument: &Argument, context: Context) -> Content {
        if argument.text == "/dev/null" {
            return Content::nothing();
        }
        let path = self.read_path(argument).filter(|path| !is_device(path));
        Content { parts: path.map(|path| vec![TextPart::File(path)]), condition: context.condition }
    }
}
