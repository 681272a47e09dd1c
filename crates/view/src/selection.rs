//! The filter, sort order and page of a list of sessions, as encoded in a link.

use threadline_entry::Millis;

use crate::session_card::{SessionCard, SessionCardFigures};

/// The number of sessions per page.
pub const PAGE_SIZE: usize = 100;

/// The filter, sort order and page of a session list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Words that must all occur in the title or the first prompt, or begin the id.
    pub words: String,
    /// The exact project.
    pub project: Option<String>,
    /// The exact branch.
    pub branch: Option<String>,
    /// A model that was used.
    pub model: Option<String>,
    /// A tool that was called.
    pub tool: Option<String>,
    /// A tag, of threadline or of Claude Code.
    pub tag: Option<String>,
    /// Only sessions active at or after this time.
    pub since: Option<TypedTime>,
    /// Only sessions started before this time.
    pub until: Option<TypedTime>,
    /// Only sessions with errors.
    pub errors: bool,
    /// Only sessions that are being written to.
    pub live: bool,
    /// Only pinned sessions.
    pub pinned: bool,
    /// The sort order.
    pub sort: SortBy,
    /// The page, from 0.
    pub page: usize,
}

/// A time as a person typed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedTime {
    /// The typed text.
    pub text: String,
    /// The time.
    pub at: Millis,
}

/// A sort order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SortBy {
    /// Last active first.
    #[default]
    Active,
    /// Last started first.
    Started,
    /// By title, ascending.
    Title,
    /// Most turns first.
    Turns,
    /// Most tokens first.
    Tokens,
    /// Highest cost first.
    Cost,
    /// Most errors first.
    Errors,
    /// Largest log first.
    Size,
}

impl SortBy {
    /// Every sort order.
    pub const ALL: [Self; 8] = [
        Self::Active,
        Self::Started,
        Self::Title,
        Self::Turns,
        Self::Tokens,
        Self::Cost,
        Self::Errors,
        Self::Size,
    ];

    /// Returns the name of the order in links.
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Started => "started",
            Self::Title => "title",
            Self::Turns => "turns",
            Self::Tokens => "tokens",
            Self::Cost => "cost",
            Self::Errors => "errors",
            Self::Size => "size",
        }
    }

    /// Returns the order with this name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            // The names in links of earlier versions.
            "modified" => Some(Self::Active),
            "created" => Some(Self::Started),
            name => Self::ALL.into_iter().find(|sort| sort.name() == name),
        }
    }
}

/// One page of the selected sessions.
#[derive(Clone, Debug)]
pub struct SelectedPage<'c> {
    /// The sessions on the page, in order.
    pub cards: Vec<&'c SessionCard>,
    /// The number of sessions on all pages.
    pub total: usize,
    /// The page, from 0; the last one if a later one was requested.
    pub page: usize,
    /// The number of pages, at least one.
    pub pages: usize,
}

impl Selection {
    /// Parses the query parameters of a link.
    ///
    /// `moment` parses a date as the start of a period or, if its second argument is true, as the end.
    /// Unknown parameters and invalid dates are ignored, so that links of later versions still work.
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
            let when = |end| moment(value, end).map(|at| TypedTime { text: value.to_owned(), at });
            match key {
                "words" => value.clone_into(&mut selection.words),
                "project" => selection.project = text(),
                "branch" => selection.branch = text(),
                "model" => selection.model = text(),
                "tool" => selection.tool = text(),
                "tag" => selection.tag = text(),
                "since" => selection.since = when(false),
                "until" => selection.until = when(true),
                "errors" => selection.errors = true,
                "live" => selection.live = true,
                "pinned" => selection.pinned = true,
                "sort" => selection.sort = SortBy::named(value).unwrap_or_default(),
                "page" => selection.page = value.parse::<usize>().unwrap_or(1).saturating_sub(1),
                _ => {}
            }
        }
        selection
    }

    /// Returns the query parameters of the selection. Default values are omitted.
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
        add("tag", self.tag.as_deref());
        add("since", self.since.as_ref().map(|when| &*when.text));
        add("until", self.until.as_ref().map(|when| &*when.text));
        add("errors", self.errors.then_some("1"));
        add("live", self.live.then_some("1"));
        add("pinned", self.pinned.then_some("1"));
        add("sort", Some(self.sort.name()).filter(|_| self.sort != SortBy::default()));
        add("page", Some(&*(self.page + 1).to_string()).filter(|_| self.page > 0));
        pairs
    }

    /// Returns whether any filter is set.
    pub fn has_filter(&self) -> bool {
        *self != Self { sort: self.sort, page: self.page, ..Self::default() }
    }

    /// Returns whether the selection depends on figures that require a full read.
    pub fn needs_figures(&self) -> bool {
        let by_figures = matches!(self.sort, SortBy::Turns | SortBy::Tokens | SortBy::Cost | SortBy::Errors);
        self.model.is_some() || self.tool.is_some() || self.errors || by_figures
    }

    /// Returns whether a session matches the filters. A session without figures does not match a filter
    /// that needs them.
    pub fn matches(&self, card: &SessionCard) -> bool {
        let same = |wanted: &Option<String>, value: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| value == Some(wanted))
        };
        let figures = |wanted: bool, holds: &dyn Fn(&SessionCardFigures) -> bool| {
            !wanted || card.figures.as_deref().is_some_and(holds)
        };
        (!self.live || card.live)
            && (!self.pinned || card.pinned)
            && self.tag.as_ref().is_none_or(|tag| card.has_tag(tag))
            && same(&self.project, Some(&card.project))
            && same(&self.branch, card.branch.as_deref())
            && self.since.as_ref().is_none_or(|since| card.last_active >= since.at)
            && self.until.as_ref().is_none_or(|until| card.started.unwrap_or(card.last_active) < until.at)
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

    /// Returns whether each word occurs in the title or the first prompt, or begins the id.
    fn has_words(&self, card: &SessionCard) -> bool {
        let mut words = self.words.split_whitespace().map(str::to_lowercase).peekable();
        if words.peek().is_none() {
            return true;
        }
        let text =
            format!("{}\n{}", card.title, card.first_prompt.as_deref().unwrap_or_default()).to_lowercase();
        words.all(|word| text.contains(&word) || card.id.starts_with(&word))
    }

    /// Returns the sessions that match, in order.
    pub fn sorted<'c>(&self, cards: &'c [SessionCard]) -> Vec<&'c SessionCard> {
        self.order(cards).into_iter().map(|place| &cards[place]).collect()
    }

    /// Does the same without copying the cards.
    pub fn into_sorted(&self, cards: Vec<SessionCard>) -> Vec<SessionCard> {
        let order = self.order(&cards);
        take_in_order(cards, order)
    }

    /// Returns the places of the sessions that match, in the order of the selection.
    fn order(&self, cards: &[SessionCard]) -> Vec<usize> {
        let mut kept: Vec<usize> = (0..cards.len()).filter(|&place| self.matches(&cards[place])).collect();
        let by = |value: fn(&SessionCardFigures) -> u128| {
            move |place: &usize| std::cmp::Reverse(cards[*place].figures.as_deref().map(value))
        };
        kept.sort_by(|&a, &b| {
            let (a, b) = (&cards[a], &cards[b]);
            (b.last_active.cmp(&a.last_active)).then_with(|| a.id.cmp(&b.id))
        });
        match self.sort {
            SortBy::Active => {}
            SortBy::Started => kept.sort_by_key(|&place| std::cmp::Reverse(cards[place].started)),
            SortBy::Title => kept.sort_by_cached_key(|&place| cards[place].title.to_lowercase()),
            SortBy::Turns => kept.sort_by_key(by(|figures| figures.tally.turns.into())),
            SortBy::Tokens => kept.sort_by_key(by(|figures| figures.totals.tokens.total().into())),
            SortBy::Cost => {
                kept.sort_by_key(|&place| {
                    std::cmp::Reverse(cards[place].figures.as_deref().map(|figures| figures.totals.cost))
                });
            }
            SortBy::Errors => kept.sort_by_key(by(|figures| figures.tally.errors.into())),
            SortBy::Size => kept.sort_by_key(|&place| std::cmp::Reverse(cards[place].size)),
        }
        kept
    }

    /// Returns the selected page of the sessions that match.
    pub fn select<'c>(&self, cards: &'c [SessionCard]) -> SelectedPage<'c> {
        let kept = self.sorted(cards);
        let total = kept.len();
        let pages = total.div_ceil(PAGE_SIZE).max(1);
        let page = self.page.min(pages - 1);
        let cards = kept.into_iter().skip(page * PAGE_SIZE).take(PAGE_SIZE).collect();
        SelectedPage { cards, total, page, pages }
    }
}

/// Returns the elements at these places, each of which occurs at most once, in their order.
pub fn take_in_order<T>(items: Vec<T>, order: Vec<usize>) -> Vec<T> {
    let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
    order.into_iter().filter_map(|place| items.get_mut(place)?.take()).collect()
}

/// The available filter values, each with its number of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterChoices {
    /// Projects, last active first.
    pub projects: Vec<(String, usize)>,
    /// Branches, most frequent first; only those of the selected project if there is one.
    pub branches: Vec<(String, usize)>,
    /// Models, most frequent first.
    pub models: Vec<(String, usize)>,
    /// Tools, most frequent first.
    pub tools: Vec<(String, usize)>,
    /// Tags, most frequent first.
    pub tags: Vec<(String, usize)>,
    /// The number of pinned sessions.
    pub pinned: usize,
    /// The number of sessions that are being written to.
    pub live: usize,
    /// The number of sessions with errors.
    pub errors: usize,
    /// The number of sessions that were not fully read yet.
    pub unread: usize,
}

impl FilterChoices {
    /// Collects the filter values of sessions, which must be sorted by last activity, latest first.
    pub fn of(cards: &[SessionCard], selection: &Selection) -> Self {
        let mut choices = Self::default();
        let mut projects = NameCounter::default();
        let (mut branches, mut models, mut tools) =
            (NameCounter::default(), NameCounter::default(), NameCounter::default());
        let mut tags = NameCounter::default();
        for card in cards {
            choices.pinned += usize::from(card.pinned);
            let own = card.tag.iter().filter(|tag| !card.tags.contains(tag));
            card.tags.iter().chain(own).for_each(|tag| tags.add(tag));
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
        choices.tags = tags.by_count();
        choices
    }
}

/// Counts names, in order of first occurrence.
#[derive(Default)]
struct NameCounter<'a> {
    indices: std::collections::HashMap<&'a str, usize>,
    counts: Vec<(&'a str, usize)>,
}

impl<'a> NameCounter<'a> {
    fn add(&mut self, name: &'a str) {
        let next = self.counts.len();
        let place = *self.indices.entry(name).or_insert(next);
        if place == next {
            self.counts.push((name, 0));
        }
        self.counts[place].1 += 1;
    }

    fn in_order(self) -> Vec<(String, usize)> {
        self.counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
    }

    fn by_count(self) -> Vec<(String, usize)> {
        let mut found = self.in_order();
        found.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        found
    }
}

#[cfg(test)]
mod tests;
