//! A reading: what one line says that a call used, for those who look at lines one by one.

use std::borrow::Cow;

use threadline_entry::{Entry, Millis};

use crate::book::Book;
use crate::calls::Call;
use crate::figures::Tokens;
use crate::model::model;
use crate::money::Money;
use crate::reply::{Seen, Top};

/// What one line says that a call of a model used.
///
/// The lines of a reply repeat its figures, and early ones are too low: [`Reading::beats`] tells which of two
/// counts, as a [`Ledger`](crate::Ledger) decides it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading<'a> {
    /// When the line was written.
    pub at: Option<Millis>,
    /// The model, as the line names it.
    pub model: Cow<'a, str>,
    /// What it used.
    pub tokens: Tokens,
    /// How often it searched the web.
    pub web_searches: u64,
    /// Whether it ran in fast mode.
    pub fast: bool,
    /// Whether it had to run in the United States.
    pub us: bool,
    /// Whether the reply is known to have come to its end.
    pub has_stop: bool,
    /// Other models that were asked on the way, and what they used, which is not in `tokens`.
    pub advisors: Vec<(Cow<'a, str>, Tokens)>,
}

impl<'a> Reading<'a> {
    /// What a line says; `None` if it is no reply of a model, or one without figures.
    pub fn of(entry: &'a Entry) -> Option<Self> {
        let Seen::Reply(reply) = Top::of(entry).see() else { return None };
        let figures = reply.figures;
        Some(Self {
            at: reply.at,
            model: reply.model,
            tokens: figures.tokens,
            web_searches: figures.web_searches,
            fast: figures.fast,
            us: figures.us,
            has_stop: reply.has_stop,
            advisors: figures.advisors,
        })
    }

    /// Whether this line's figures count rather than the other's.
    pub fn beats(&self, other: &Self) -> bool {
        let size = |reading: &Self| (reading.has_stop, reading.tokens.output, reading.tokens.total());
        size(self) > size(other)
    }

    /// What the call cost, its advisors apart; `None` if the model, or the mode it ran in, has no price.
    pub fn cost(&self, book: &Book) -> Option<Money> {
        let Self { at, tokens, web_searches, fast, us, .. } = *self;
        cost(book, &self.model, at, tokens, web_searches, (fast, us))
    }

    /// What one of the advisors cost.
    pub fn advice_cost(&self, advisor: usize, book: &Book) -> Option<Money> {
        let (name, tokens) = self.advisors.get(advisor)?;
        cost(book, name, self.at, *tokens, 0, (false, false))
    }
}

fn cost(
    book: &Book,
    name: &str,
    at: Option<Millis>,
    tokens: Tokens,
    web_searches: u64,
    (fast, us): (bool, bool),
) -> Option<Money> {
    let model = model(name);
    book.cost(&Call {
        at,
        session: "",
        project: "",
        model: &model.name,
        branch: "",
        agent: None,
        tokens,
        web_searches,
        fast,
        us,
        regional: model.regional,
        under_reported: false,
    })
}
