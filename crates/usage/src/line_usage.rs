//! The usage figures of a single line, for callers that process lines one by one.

use std::borrow::Cow;

use threadline_entry::{Entry, Millis};

use crate::calls::ModelCall;
use crate::figures::TokenCounts;
use crate::model::model;
use crate::money::Money;
use crate::price_book::PriceBook;
use crate::reply_line::{LineClass, LineValues};

/// The usage figures of one line of a model call.
///
/// The lines of a reply repeat its figures, and early ones are too low: [`LineUsage::supersedes`] selects
/// the line to use, by the same criteria that a [`CallLedger`](crate::CallLedger) applies within one log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineUsage<'a> {
    /// When the line was written.
    pub at: Option<Millis>,
    /// The model, as named in the line.
    pub model: Cow<'a, str>,
    /// The token counts.
    pub tokens: TokenCounts,
    /// The number of web searches.
    pub web_searches: u64,
    /// Whether the call ran in fast mode.
    pub fast: bool,
    /// Whether the call was restricted to the United States.
    pub us: bool,
    /// Whether the reply has a stop reason.
    pub has_stop: bool,
    /// Advisor models called on the way and their token counts, which are not included in `tokens`.
    pub advisors: Vec<(Cow<'a, str>, TokenCounts)>,
}

impl<'a> LineUsage<'a> {
    /// Reads the figures of an entry; `None` if it is not a reply of a model or has no figures.
    pub fn of(entry: &'a Entry) -> Option<Self> {
        let LineClass::Reply(reply) = LineValues::of(entry).classify() else { return None };
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

    /// Whether the figures of this line are to be used rather than the other's.
    pub fn supersedes(&self, other: &Self) -> bool {
        let size = |reading: &Self| (reading.has_stop, reading.tokens.output, reading.tokens.total());
        size(self) > size(other)
    }

    /// Returns the cost of the call without its advisors; `None` if the model, or the mode it ran in, has no
    /// price.
    pub fn cost(&self, book: &PriceBook) -> Option<Money> {
        let Self { at, tokens, web_searches, fast, us, .. } = *self;
        cost(book, &self.model, at, tokens, web_searches, (fast, us))
    }

    /// Returns the cost of one of the advisors.
    pub fn advisor_cost(&self, advisor: usize, book: &PriceBook) -> Option<Money> {
        let (name, tokens) = self.advisors.get(advisor)?;
        cost(book, name, self.at, *tokens, 0, (false, false))
    }
}

fn cost(
    book: &PriceBook,
    name: &str,
    at: Option<Millis>,
    tokens: TokenCounts,
    web_searches: u64,
    (fast, us): (bool, bool),
) -> Option<Money> {
    let model = model(name);
    book.cost(&ModelCall {
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
        compaction: None,
    })
}
