//! AskUserQuestion: questions with options to the person.

use serde::Serialize;

use crate::context::ToolContext;
use crate::json::OrderedJson;
use crate::output::ToolOutput;
use crate::schema::{Kind, Parameter, optional, required};
use crate::tool::{InputSchema, Permit, Tool, ToolInput};

/// Asks the person. The answer to the question for permission adds the answers to the input, so running the
/// call only reports them.
#[derive(Debug)]
pub struct AskUserQuestion;

impl AskUserQuestion {
    /// The name of the tool.
    pub const NAME: &str = "AskUserQuestion";
}

const OPTION: &[Parameter] = &[
    required("label", Kind::Text(0), "The option in one to five words"),
    required("description", Kind::Text(0), "The meaning or the consequences of the option"),
    optional("preview", Kind::Text(0), "A text to compare options by, such as code"),
];

const QUESTION: &[Parameter] = &[
    required("question", Kind::Text(0), "The question, with a question mark"),
    required("header", Kind::Text(0), "A label of at most 12 characters"),
    required("options", Kind::ObjectsInRange(OPTION, 2, 4), "The options; other answers are always possible"),
    Parameter {
        name: "multiSelect",
        kind: Kind::Flag,
        required: true,
        default: Some("false"),
        description: "Whether several options can be chosen",
    },
];

const PARAMETERS: &[Parameter] = &[
    required("questions", Kind::ObjectsInRange(QUESTION, 1, 4), "The questions"),
    optional("answers", Kind::Map, "The answers of the user, by question"),
    optional("annotations", Kind::Map, "Notes of the user, by question"),
    optional("metadata", Kind::Map, "Not shown"),
];

#[derive(Serialize)]
struct QuestionRecord<'a> {
    questions: &'a OrderedJson,
    answers: OrderedJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<&'a OrderedJson>,
}

impl Tool for AskUserQuestion {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn description(&self) -> String {
        "Asks the user up to four questions with two to four options each, when a decision is theirs to make and \
         cannot be found out otherwise. The user can always give another answer."
            .to_owned()
    }

    fn schema(&self) -> InputSchema<'_> {
        InputSchema::Parameters(PARAMETERS)
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        true
    }

    fn run(&self, input: &ToolInput, _: &ToolContext<'_>, _: Permit) -> ToolOutput {
        let json = input.json();
        let annotations = json.get("annotations");
        let texts: Vec<String> = json
            .members("answers")
            .filter_map(|(question, answer)| {
                let notes = annotations.and_then(|all| all.get(question)?.get("notes")?.as_str());
                let notes = notes.map(|notes| format!(" notes: {notes}")).unwrap_or_default();
                Some(format!("\"{question}\"=\"{}\"{notes}", answer.as_str()?))
            })
            .collect();
        let text = if texts.is_empty() {
            "The user did not answer the questions.".to_owned()
        } else {
            let answers = texts.join(", ");
            format!(
                "Your questions have been answered: {answers}. You can now continue with these answers in mind."
            )
        };
        let record = QuestionRecord {
            questions: json.get("questions").unwrap_or(&OrderedJson::Null),
            answers: OrderedJson::object(
                json.members("answers").map(|(question, answer)| (&**question, answer.clone())),
            ),
            annotations,
        };
        ToolOutput::success(text, &record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fixture;

    const OPTIONS: &str = r#"[{"label":"Red","description":"r"},{"label":"Blue","description":"b"}]"#;

    fn run(input: &str) -> ToolOutput {
        let mut fixture = Fixture::new();
        fixture.tools.push(Box::new(AskUserQuestion));
        fixture.run("AskUserQuestion", &input.replace("OPTIONS", OPTIONS))
    }

    #[test]
    fn answers_are_reported_with_notes() {
        let output =
            run(r#"{"questions":[{"question":"Which?","header":"H","multiSelect":false,"options":OPTIONS},
                {"question":"More?","header":"M","multiSelect":true,"options":OPTIONS}],
                "answers":{"Which?":"Blue","More?":"Red, Blue"},"annotations":{"Which?":{"notes":"dark"}}}"#);
        assert_eq!(
            output.text(),
            "Your questions have been answered: \"Which?\"=\"Blue\" notes: dark, \"More?\"=\"Red, Blue\". You can now \
             continue with these answers in mind."
        );
        let record = output.record.unwrap();
        assert!(record.get().ends_with(
            r#""answers":{"Which?":"Blue","More?":"Red, Blue"},"annotations":{"Which?":{"notes":"dark"}}}"#
        ));
    }

    #[test]
    fn questions_without_answers_are_reported() {
        let output = run(r#"{"questions":[{"question":"Which?","header":"H","options":OPTIONS}]}"#);
        assert_eq!(output.text(), "The user did not answer the questions.");
        assert!(output.record.unwrap().get().ends_with(r#""answers":{}}"#));
    }

    #[test]
    fn too_few_and_too_many_questions_are_refused() {
        assert!(run(r#"{"questions":[]}"#).text().contains("Too small: expected array to have >=1 items"));
        let question = r#"{"question":"Which?","header":"H","options":OPTIONS}"#;
        let many = run(&format!(r#"{{"questions":[{}]}}"#, [question; 5].join(",")));
        assert!(many.text().contains("Too big: expected array to have <=4 items"), "{}", many.text());
        let one = run(
            r#"{"questions":[{"question":"Which?","header":"H","options":[{"label":"a","description":"b"}]}]}"#,
        );
        assert!(one.is_error && one.text().contains("options"), "{}", one.text());
    }
}
