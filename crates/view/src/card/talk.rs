//! Cards of tools that talk to other agents and to the person: tasks, messages, plans, questions.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use threadline_entry::Json;
use threadline_entry::lens::{
    AgentResult, AskUserQuestionResult, PlanResult, SendMessageResult, TeammateResult,
};

use super::{CallSummary, CardInput, Choice, Question, ToolCard, first_line};
use crate::humanize::{plural, short_count};
use crate::transcript::CLARIFY_MESSAGE;

/// The length in bytes after which the answers of the next questions are left out of the gist.
const LONG_GIST: usize = 1_000;

/// Returns the members of an object with the given keys. The last one counts if a key occurs twice. A hostile
/// result has very many others.
fn members_with_keys<'a>(
    object: Option<Json<'a>>,
    keys: &HashSet<Cow<'_, str>>,
) -> HashMap<Cow<'a, str>, Json<'a>> {
    let members = object.into_iter().flat_map(Json::members);
    members.map(|(key, value)| (key.name(), value)).filter(|(key, _)| keys.contains(key)).collect()
}

/// Joins answers until they are long. The card contains all of them.
fn join_short<'a>(answers: impl Iterator<Item = &'a str>) -> String {
    let mut gist = String::new();
    for answer in answers {
        gist.push_str(if gist.is_empty() { "" } else { "; " });
        gist.push_str(&answer[..answer.floor_char_boundary(LONG_GIST)]);
        if gist.len() >= LONG_GIST {
            gist.push('…');
            break;
        }
    }
    gist
}

impl CardInput<'_> {
    pub(super) fn agent(&self) -> CallSummary {
        let result = self.of::<AgentResult<'_>>();
        let answer = result.and_then(|result| result.content()).map(|content| content.text().into_owned());
        let background = result.and_then(|result| result.is_async()).unwrap_or(false);
        let mut gist: Vec<String> =
            Some(self.string("model")).filter(|model| !model.is_empty()).into_iter().collect();
        if let Some(calls) = result.and_then(|result| result.total_tool_use_count()) {
            gist.push(plural(calls, "call"));
        }
        if let Some(tokens) = result.and_then(|result| result.total_tokens()) {
            gist.push(format!("{} tokens", short_count(tokens)));
        }
        if background {
            gist.push("in the background".to_owned());
        }
        let teammate = self.of::<TeammateResult<'_>>().and_then(|result| result.teammate_id());
        gist.extend(teammate.map(|name| format!("teammate {name}")));
        let description = self.string("description");
        let card = ToolCard::Agent {
            description: description.clone(),
            agent_type: self.string("subagent_type"),
            prompt: self.string("prompt"),
            answer: match answer {
                Some(answer) => answer,
                // Errors are shown separately, and the result of a background agent only confirms its
                // start.
                None if self.failed || background => String::new(),
                None => self.text.to_owned(),
            },
            background,
        };
        CallSummary { card, subject: description, gist: gist.join(" · ") }
    }

    pub(super) fn plan(&self) -> CallSummary {
        let noted = self.of::<PlanResult<'_>>().and_then(|result| result.plan());
        let plan = noted.map_or_else(|| self.string("plan"), Cow::into_owned);
        let subject = first_line(plan.trim_start_matches(['#', ' ', '\n'])).to_owned();
        let gist = match (self.name, self.failed) {
            ("EnterPlanMode", _) => String::new(),
            // There is no answer yet.
            (_, true) if self.text.is_empty() => String::new(),
            (_, true) => "kept planning".to_owned(),
            _ => "approved".to_owned(),
        };
        CallSummary { card: ToolCard::Plan(plan), subject, gist }
    }

    pub(super) fn questions(&self) -> CallSummary {
        let result = self.of::<AskUserQuestionResult<'_>>();
        let answers = result.and_then(|result| result.answers());
        let notes = result.and_then(|result| result.annotations());
        let asked = self.input.and_then(|input| input.get("questions"));
        let texts = asked.into_iter().flat_map(Json::items);
        let mut texts = texts.filter_map(|question| question.get("question")?.as_str()).collect();
        let answers = members_with_keys(answers, &texts);
        let notes = members_with_keys(notes, &texts);
        let questions: Vec<Question> = asked
            .into_iter()
            .flat_map(Json::items)
            .enumerate()
            .map(|(n_before, question)| {
                let text = question.get("question").and_then(Json::as_str).unwrap_or_default().into_owned();
                let options = question.get("options").into_iter().flat_map(Json::items);
                let choice = |option: Json<'_>| {
                    let text = |key: &str| option.get(key).and_then(Json::as_str).map(Cow::into_owned);
                    let label = option.as_str().map(Cow::into_owned).or_else(|| text("label"))?;
                    Some(Choice { label, description: text("description").unwrap_or_default() })
                };
                // Claude Code asks no question twice. Of equal ones, the first has the answer and the notes.
                let is_first = texts.remove(&*text);
                let answer = answers.get(&*text).filter(|_| is_first).map(|answer| match answer.as_str() {
                    Some(answer) => answer.into_owned(),
                    None => answer.raw().to_owned(),
                });
                // Claude Code asks at most four questions at once. Each is searched for in the whole text.
                let is_searched = is_first && n_before < 16;
                let in_text = || is_searched.then(|| self.answer_in_text(&text)).flatten().map(str::to_owned);
                let answer = answer.or_else(in_text);
                let notes = notes.get(&*text).filter(|_| is_first);
                let notes = notes.and_then(|notes| notes.get("notes")?.as_str());
                // An answer in the person's own words is logged twice.
                let notes = notes.map(Cow::into_owned).filter(|notes| Some(notes) != answer.as_ref());
                Question { options: options.filter_map(choice).collect(), answer, notes, text }
            })
            .collect();
        let answers = questions.iter().filter_map(|question| question.answer.as_deref());
        let gist = match self.failed && self.text.contains(CLARIFY_MESSAGE) {
            true => "clarification requested".to_owned(),
            false => join_short(answers),
        };
        let subject = questions.first().map(|question| question.text.clone()).unwrap_or_default();
        CallSummary { card: ToolCard::Questions(questions), subject, gist }
    }

    /// Returns the answer to a question from the result text: `"Which colour?"="Blue", …`.
    fn answer_in_text(&self, question: &str) -> Option<&str> {
        let (_, rest) = self.text.split_once(&format!("\"{question}\"=\""))?;
        let ends = ["\", \"", "\". ", "\" selected preview", "\" user notes"];
        let end = ends.into_iter().filter_map(|end| rest.find(end)).min().or_else(|| rest.rfind('"'))?;
        Some(&rest[..end])
    }

    pub(super) fn message(&self) -> CallSummary {
        let to = ["to", "recipient", "target_agent_id"]
            .into_iter()
            .map(|key| self.string(key))
            .find(|to| !to.is_empty());
        let text =
            ["message", "content"].into_iter().map(|key| self.string(key)).find(|text| !text.is_empty());
        let sent = self.of::<SendMessageResult<'_>>().and_then(|result| result.success());
        let summary = Some(self.string("summary")).filter(|summary| !summary.is_empty());
        let said = summary.or_else(|| text.clone()).unwrap_or_default();
        let gist = if sent == Some(false) { "not sent" } else { first_line(said.trim_start()) }.to_owned();
        let to = to.unwrap_or_default();
        CallSummary {
            subject: to.clone(),
            card: ToolCard::Message { to, text: text.unwrap_or_default() },
            gist,
        }
    }
}
