//! The end of every answer: the cursor of the next page, and notes.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Serialize;

use crate::budget::PagePlace;
use crate::call::PageRequestState;

/// The end of an answer.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct AnswerEnd {
    /// Returns the next page if it is passed with the same arguments; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
    /// Notes about missing parts of the answer, with the reasons.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(crate) notes: Vec<String>,
}

impl AnswerEnd {
    /// Ends an answer, and appends the same to its text.
    pub(crate) fn new(
        request: &PageRequestState,
        next: Option<PagePlace>,
        mut notes: Vec<String>,
        text: &mut String,
    ) -> Self {
        let next_cursor = request.cursor(next);
        match next {
            Some(PagePlace { byte: 0, .. }) => notes.push("more items on the next page".to_owned()),
            Some(_) => notes.push("the last item is cut and continues on the next page".to_owned()),
            None => {}
        }
        for note in &notes {
            let _ = writeln!(text, "({note})");
        }
        if let Some(cursor) = &next_cursor {
            let _ = writeln!(text, "(next page: {})", request.next_request(cursor));
        }
        Self { next_cursor, notes }
    }
}
