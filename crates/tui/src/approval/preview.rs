//! Previews of calls: the command, the changes of a file, the plan, the questions.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;
use threadline_agent::{FilePreview, PermissionRequest};
use threadline_api::RawObject;
use threadline_entry::Json;
use threadline_entry::lens::{AskUserQuestionResult, FromJson, Question};
use threadline_permission::{AskBasis, PermissionMode};
use threadline_term::{MarkdownStream, TermPage, TermText, TextLabel, render_hunks, visible};
use threadline_view::hunks;

use super::Choice;

/// The lines of a preview that are shown.
const MAX_PREVIEW_LINES: usize = 400;

/// A call as a person sees it before it runs.
pub(crate) struct Preview {
    pub(crate) title: String,
    pub(crate) lines: Vec<TermText>,
    pub(crate) reason: Option<String>,
    /// The choices, if they are not the usual ones.
    pub(crate) choices: Vec<Choice>,
    pub(crate) editable: Option<EditablePart>,
}

/// The part of an input that can be edited before the call runs.
#[derive(Clone, Debug)]
pub(crate) struct EditablePart {
    /// The text to edit: a command, or a file as it would be.
    pub(crate) text: String,
    /// The extension of a file with this text.
    pub(crate) extension: String,
    kind: EditableKind,
}

#[derive(Clone, Debug)]
enum EditableKind {
    /// A member of the input.
    Member(&'static str),
    /// A file with this content, which an edit replaces.
    File(String),
}

/// A question of the model.
pub(crate) struct ModelQuestion {
    pub(crate) text: String,
    pub(crate) options: Vec<(String, String)>,
    /// Whether several options can be chosen.
    pub(crate) takes_several: bool,
}

impl Preview {
    pub(crate) fn of(request: &PermissionRequest<'_>, cwd: &Path, page: TermPage) -> Self {
        let input = RawObject::parse(request.input.get()).unwrap_or_default();
        let reason = match &request.reason.basis {
            AskBasis::Other(reason) | AskBasis::Safety { reason, .. } => Some(reason.clone()),
            AskBasis::OutsideWorkspace => Some("outside of the working folders".to_owned()),
            AskBasis::Mode => Some(request.reason.message.clone()),
            AskBasis::NotGranted | AskBasis::Parts => None,
        };
        let reason = match (reason, request.missing_protections) {
            (Some(reason), Some(missing)) => Some(format!("{reason}; {missing}")),
            (reason, missing) => reason.or_else(|| missing.map(str::to_owned)),
        };
        let mut preview = Self {
            title: request.tool.to_owned(),
            lines: Vec::new(),
            reason,
            choices: Vec::new(),
            editable: None,
        };
        match request.tool {
            "Bash" => preview.command(&input, page),
            "Write" | "Edit" => preview.file(request.tool, &input, cwd, page),
            "ExitPlanMode" => preview.plan(&input, page),
            "AskUserQuestion" => preview.ask(request.input, page),
            _ => preview.fields(&input, request, page),
        }
        let more = preview.lines.len().saturating_sub(MAX_PREVIEW_LINES);
        if more > 0 {
            preview.lines.truncate(MAX_PREVIEW_LINES);
            preview.lines.push(page.paint(TextLabel::Dim, format!("… {more} more lines")));
        }
        preview
    }

    fn command(&mut self, input: &RawObject, page: TermPage) {
        let command = input.get_str("command").unwrap_or_default();
        self.title = "Run a command".to_owned();
        if let Some(about) = input.get_str("description").filter(|about| !about.is_empty()) {
            self.title = format!("Run a command: {about}");
        }
        let lines = page.wrap(&visible(&command), 2);
        self.lines = lines.into_iter().map(|line| page.paint(TextLabel::Code, line)).collect();
        self.editable = Some(EditablePart {
            text: command,
            extension: "sh".to_owned(),
            kind: EditableKind::Member("command"),
        });
    }

    fn file(&mut self, tool: &str, input: &RawObject, cwd: &Path, page: TermPage) {
        let given = input.get_str("file_path").unwrap_or_default();
        let path = cwd.join(&given);
        let shown = path.strip_prefix(cwd).unwrap_or(&path).display().to_string();
        let text = |name: &str| input.get_str(name).unwrap_or_default();
        let effect = if tool == "Write" {
            FilePreview::write(&path, &text("content"))
        } else {
            let replaces_all = input.get("replace_all").is_some_and(|value| value.get() == "true");
            FilePreview::edit(&path, &text("old_string"), &text("new_string"), replaces_all)
        };
        let FilePreview { old, new } = match effect {
            Ok(effect) => effect,
            Err(reason) => {
                self.title = format!("Change {shown}");
                let lines = page.wrap(&visible(&reason), 0);
                self.lines = lines.into_iter().map(|line| page.paint(TextLabel::Warning, line)).collect();
                return;
            }
        };
        let verb = if old.is_some() { "Change" } else { "Create" };
        self.title = format!("{verb} {shown}");
        let old = old.unwrap_or_default();
        self.lines = render_hunks(&hunks(&old, &new), page);
        let extension = PathBuf::from(&given).extension().unwrap_or_default().to_string_lossy().into_owned();
        let kind = if tool == "Write" { EditableKind::Member("content") } else { EditableKind::File(old) };
        self.editable = Some(EditablePart { text: new, extension, kind });
    }

    fn plan(&mut self, input: &RawObject, page: TermPage) {
        self.title = "Leave plan mode and start with this plan".to_owned();
        let mut markdown = MarkdownStream::new();
        let (_, mut lines) = markdown.push(&input.get_str("plan").unwrap_or_default(), page);
        lines.extend(markdown.finish(page));
        self.lines = lines;
        self.choices =
            vec![Choice::Approve(PermissionMode::AcceptEdits), Choice::Approve(PermissionMode::Default)];
        self.editable = None;
    }

    fn ask(&mut self, input: &RawValue, page: TermPage) {
        let questions = questions(input);
        self.title = "The model asks".to_owned();
        for (i, question) in questions.iter().enumerate() {
            let lines = page.wrap(&visible(&question.text), 0);
            self.lines.extend(lines.into_iter().map(|line| page.paint(TextLabel::Strong, line)));
            let choice = |(label, description): &(String, String)| Choice::Option {
                question: i,
                label: label.clone(),
                description: description.clone(),
            };
            self.choices.extend(question.options.iter().map(choice));
        }
    }

    fn fields(&mut self, input: &RawObject, request: &PermissionRequest<'_>, page: TermPage) {
        if !request.description.is_empty() {
            self.title = format!("{}: {}", request.tool, request.description);
        }
        for (name, value) in input.members() {
            let text = serde_json::from_str::<String>(value.get()).unwrap_or_else(|_| value.get().to_owned());
            let line = format!("{name}: {text}");
            self.lines.extend(page.wrap(&visible(&line), 2));
        }
    }
}

impl EditablePart {
    /// Returns the input with the edited text.
    pub(super) fn apply(&self, input: &RawValue, text: &str) -> Option<Box<RawValue>> {
        let mut input = RawObject::parse(input.get()).ok()?;
        match &self.kind {
            EditableKind::Member(name) => {
                // Editors end a file with a newline, which a command did not have.
                let text = if self.text.ends_with('\n') { text } else { text.trim_end_matches('\n') };
                input.set(name, text);
            }
            EditableKind::File(old) => {
                input.set("old_string", old);
                input.set("new_string", text);
                input.set("replace_all", false);
            }
        }
        serde_json::value::to_raw_value(&input).ok()
    }
}

/// Returns the questions of the model.
pub(super) fn questions(input: &RawValue) -> Vec<ModelQuestion> {
    let asked = Json::parse(input.get()).and_then(AskUserQuestionResult::from_json);
    let text = |text: Option<Cow<'_, str>>| text.unwrap_or_default().into_owned();
    let question = |question: Question<'_>| ModelQuestion {
        text: text(question.question()),
        options: question
            .options()
            .into_iter()
            .flat_map(|options| options.iter())
            .map(|option| (text(option.label()), text(option.description())))
            .collect(),
        takes_several: question.multi_select().unwrap_or(false),
    };
    asked.and_then(|asked| asked.questions()).into_iter().flat_map(|all| all.iter()).map(question).collect()
}

/// Returns the input with the answers to its questions.
pub(super) fn with_answers(input: &RawValue, answers: &[(String, String)]) -> Option<Box<RawValue>> {
    let mut input = RawObject::parse(input.get()).ok()?;
    let mut object = RawObject::new();
    for (question, answer) in answers {
        object.set(question, answer);
    }
    input.set("answers", object);
    serde_json::value::to_raw_value(&input).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edited_call_has_the_new_text() {
        let raw = |json: &str| serde_json::from_str::<Box<RawValue>>(json).unwrap();
        let part = EditablePart {
            text: "ls".to_owned(),
            extension: "sh".to_owned(),
            kind: EditableKind::Member("command"),
        };
        let changed = part.apply(&raw(r#"{"command":"ls","description":"d"}"#), "ls -l\n").unwrap();
        assert_eq!(changed.get(), r#"{"command":"ls -l","description":"d"}"#);
        let kind = EditableKind::File("a\n".to_owned());
        let part = EditablePart { text: "b\n".to_owned(), extension: String::new(), kind };
        let changed =
            part.apply(&raw(r#"{"file_path":"f","old_string":"a","new_string":"b"}"#), "c\n").unwrap();
        assert_eq!(
            changed.get(),
            r#"{"file_path":"f","old_string":"a\n","new_string":"c\n","replace_all":false}"#
        );
    }

    #[test]
    fn answers_are_added_to_the_questions() {
        let raw = r#"{"questions":[{"question":"Which?","options":[{"label":"A","description":"first"}]}]}"#;
        let raw = serde_json::from_str::<Box<RawValue>>(raw).unwrap();
        let asked = questions(&raw);
        assert_eq!((asked[0].text.as_str(), asked[0].options[0].0.as_str()), ("Which?", "A"));
        let answered = with_answers(&raw, &[("Which?".to_owned(), "A".to_owned())]).unwrap();
        assert!(answered.get().ends_with(r#""answers":{"Which?":"A"}}"#), "{}", answered.get());
    }
}
