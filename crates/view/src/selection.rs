//! Which sessions of a list are shown, in which order, and which page of them. All of it fits into a link.

use threadline_entry::Millis;

use crate::session_card::{Figures, SessionCard};

/// How many sessions stand on a page.
pub const PAGE: usize = 100;

/// Which sessions to show, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Words of the title, the first prompt or the id.
    pub words: String,
    /// The project, whole.
    pub project: Option<String>,
    /// The branch, whole.
    pub branch: Option<String>,
    /// A model that answered.
    pub model: Option<String>,
    /// A tool that was called.
    pub tool: Option<String>,
    /// Written to since then.
    pub since: Option<When>,
    /// Begun before then.
    pub until: Option<When>,
    /// Only those where something failed.
    pub errors: bool,
    /// Only those that are being written.
    pub live: bool,
    /// Which comes first.
    pub sort: SortBy,
    /// The page, counted from 0.
    pub page: usize,
}

/// A moment as a person typed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct When {
    /// What was typed.
    pub text: String,
    /// What it means.
    pub at: Millis,
}

/// Which session comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SortBy {
    /// The one that was written to last.
    #[default]
    Modified,
    /// The one that began last.
    Created,
    /// By name, from A on.
    Title,
    /// The one with the most turns.
    Turns,
    /// The one that used the most tokens.
    Tokens,
    /// The dearest.
    Cost,
    /// The one where the most failed.
    Errors,
    /// The longest log.
    Size,
}

impl SortBy {
    /// Every order.
    pub const ALL: [Self; 8] = [
        Self::Modified,
        Self::Created,
        Self::Title,
        Self::Turns,
        Self::Tokens,
        Self::Cost,
        Self::Errors,
        Self::Size,
    ];

    /// The word for it, as links have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Modified => "modified",
            Self::Created => "created",
            Self::Title => "title",
            Self::Turns => "turns",
            Self::Tokens => "tokens",
            Self::Cost => "cost",
            Self::Errors => "errors",
            Self::Size => "size",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|sort| sort.name() == name)
    }
}

/// What was chosen, and how much there is of it.
#[derive(Clone, Debug)]
pub struct Chosen<'c> {
    /// The sessions of the page, in order.
    pub cards: Vec<&'c SessionCard>,
    /// How many sessions there are on all pages.
    pub total: usize,
    /// The page, counted from 0; the last one where a later one was asked for.
    pub page: usize,
    /// How many pages there are, one at least.
    pub pages: usize,
}

impl Selection {
    /// Reads the parts of a link; `moment` says what a date means as the start or, if asked, the end of a stretch.
    ///
    /// What is not known, or is no moment, is left out: a link of tomorrow still shows something.
    pub fn of<'p>(
        pairs: impl IntoIterator<Item = (&'p str, &'p str)>,
        moment: impl Fn(&str, bool) -> Option<Millis>,
    ) -> Self {
        let mut selection = Self::default();
        for (key, value) in pairs {
            let value = value.trim();
            if value.is_empty() {
                continue;
            }
            let text = || Some(value.to_owned());
            let when = |end| moment(value, end).map(|at| When { text: value.to_owned(), at });
            match key {
                "words" => value.clone_into(&mut selection.words),
                "project" => selection.project = text(),
                "branch" => selection.branch = text(),
                "model" => selection.model = text(),
                "tool" => selection.tool = text(),
                "since" => selection.since = when(false),
                "until" => selection.until = when(true),
                "errors" => selection.errors = true,
                "live" => selection.live = true,
                "sort" => selection.sort = SortBy::named(value).unwrap_or_default(),
                "page" => selection.page = value.parse::<usize>().unwrap_or(1).saturating_sub(1),
                _ => {}
            }
        }
        selection
    }

    /// The parts of a link that says the same. What is as always is left out.
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = Vec::new();
        let mut add = |key, value: Option<&str>| {
            if let Some(value) = value {
                pairs.push((key, value.to_owned()));
            }
        };
        add("words", Some(&*self.words).filter(|words| !words.is_empty()));
        add("project", self.project.as_deref());
        add("branch", self.branch.as_deref());
        add("model", self.model.as_deref());
        add("tool", self.tool.as_deref());
        add("since", self.since.as_ref().map(|when| &*when.text));
        add("until", self.until.as_ref().map(|when| &*when.text));
        add("errors", self.errors.then_some("1"));
        add("live", self.live.then_some("1"));
        add("sort", Some(self.sort.name()).filter(|_| self.sort != SortBy::default()));
        add("page", Some(&*(self.page + 1).to_string()).filter(|_| self.page > 0));
        pairs
    }

    /// Whether anything is left out of the list.
    pub fn is_narrowed(&self) -> bool {
        *self != Self { sort: self.sort, page: self.page, ..Self::default() }
    }

    /// Whether it asks for what only a whole reading tells.
    pub fn needs_figures(&self) -> bool {
        let by_figures = matches!(self.sort, SortBy::Turns | SortBy::Tokens | SortBy::Cost | SortBy::Errors);
        self.model.is_some() || self.tool.is_some() || self.errors || by_figures
    }

    /// Whether a session is among those to show. One that was not read yet is not, where that would tell.
    pub fn keeps(&self, card: &SessionCard) -> bool {
        let same = |wanted: &Option<String>, value: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| value == Some(wanted))
        };
        let figures = |wanted: bool, holds: &dyn Fn(&Figures) -> bool| {
            !wanted || card.figures.as_ref().is_some_and(holds)
        };
        (!self.live || card.live)
            && same(&self.project, Some(&card.project))
            && same(&self.branch, card.branch.as_deref())
            && self.since.as_ref().is_none_or(|since| card.modified >= since.at)
            && self.until.as_ref().is_none_or(|until| card.created.unwrap_or(card.modified) < until.at)
            && figures(self.errors, &|figures| figures.tally.errors > 0)
            && self
                .model
                .as_ref()
                .is_none_or(|model| figures(true, &|figures| figures.models.contains(model)))
            && self.tool.as_ref().is_none_or(|tool| {
                figures(true, &|figures| figures.tools.iter().any(|(name, _)| name == tool))
            })
            && self.has_words(card)
    }

    /// Whether every word stands in the title, the first prompt or the beginning of the id.
    fn has_words(&self, card: &SessionCard) -> bool {
        let mut words = self.words.split_whitespace().map(str::to_lowercase).peekable();
        if words.peek().is_none() {
            return true;
        }
        let text =
            format!("{}\n{}", card.title, card.first_prompt.as_deref().unwrap_or_default()).to_lowercase();
        words.all(|word| text.contains(&word) || card.id.starts_with(&word))
    }

    /// The page of sessions that it asks for.
    pub fn choose<'c>(&self, cards: &'c [SessionCard]) -> Chosen<'c> {
        let mut kept: Vec<&SessionCard> = cards.iter().filter(|card| self.keeps(card)).collect();
        let by = |value: fn(&Figures) -> u128| {
            move |card: &&SessionCard| std::cmp::Reverse(card.figures.as_ref().map(value))
        };
        kept.sort_by(|a, b| (b.modified.cmp(&a.modified)).then_with(|| a.id.cmp(&b.id)));
        match self.sort {
            SortBy::Modified => {}
            SortBy::Created => kept.sort_by_key(|card| std::cmp::Reverse(card.created)),
            SortBy::Title => kept.sort_by_cached_key(|card| card.title.to_lowercase()),
            SortBy::Turns => kept.sort_by_key(by(|figures| figures.tally.turns.into())),
            SortBy::Tokens => kept.sort_by_key(by(|figures| figures.totals.tokens.total().into())),
            SortBy::Cost => {
                kept.sort_by_key(|card| {
                    std::cmp::Reverse(card.figures.as_ref().map(|figures| figures.totals.cost))
                });
            }
            SortBy::Errors => kept.sort_by_key(by(|figures| figures.tally.errors.into())),
            SortBy::Size => kept.sort_by_key(|card| std::cmp::Reverse(card.size)),
        }
        let total = kept.len();
        let pages = total.div_ceil(PAGE).max(1);
        let page = self.page.min(pages - 1);
        let cards = kept.into_iter().skip(page * PAGE).take(PAGE).collect();
        Chosen { cards, total, page, pages }
    }
}

/// What there is to choose from, each with how many sessions have it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choices {
    /// Projects, the one that was worked on last first.
    pub projects: Vec<(String, usize)>,
    /// Branches, the most frequent first; those of the chosen project if one is chosen.
    pub branches: Vec<(String, usize)>,
    /// Models, the most frequent first.
    pub models: Vec<(String, usize)>,
    /// Tools, the most frequent first.
    pub tools: Vec<(String, usize)>,
    /// How many sessions are being written.
    pub live: usize,
    /// How many sessions something failed in.
    pub errors: usize,
    /// How many sessions were not read yet.
    pub unread: usize,
}

impl Choices {
    /// What these sessions, the last modified first, offer to a selection.
    pub fn of(cards: &[SessionCard], selection: &Selection) -> Self {
        let mut choices = Self::default();
        let mut projects = Counter::default();
        let (mut branches, mut models, mut tools) =
            (Counter::default(), Counter::default(), Counter::default());
        for card in cards {
            projects.add(&card.project);
            let of_project = selection.project.as_ref().is_none_or(|project| *project == card.project);
            if let Some(branch) = card.branch.as_deref().filter(|_| of_project) {
                branches.add(branch);
            }
            choices.live += usize::from(card.live);
            let Some(figures) = &card.figures else {
                choices.unread += 1;
                continue;
            };
            choices.errors += usize::from(figures.tally.errors > 0);
            figures.models.iter().for_each(|model| models.add(model));
            figures.tools.iter().for_each(|(tool, _)| tools.add(tool));
        }
        choices.projects = projects.in_order();
        choices.branches = branches.by_count();
        choices.models = models.by_count();
        choices.tools = tools.by_count();
        choices
    }
}

/// Names with how often each was met.
#[derive(Default)]
struct Counter<'a> {
    places: std::collections::HashMap<&'a str, usize>,
    found: Vec<(&'a str, usize)>,
}

impl<'a> Counter<'a> {
    fn add(&mut self, name: &'a str) {
        let next = self.found.len();
        let place = *self.places.entry(name).or_insert(next);
        if place == next {
            self.found.push((name, 0));
        }
        self.found[place].1 += 1;
    }

    fn in_order(self) -> Vec<(String, usize)> {
        self.found.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
    }

    fn by_count(self) -> Vec<(String, usize)> {
        let mut found = self.in_order();
        found.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        found
    }
}

#[cfg(test)]
mod tests;
