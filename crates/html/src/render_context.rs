//! The state of rendering a page: options, ids in use, and deferred sections.

use std::hash::{DefaultHasher, Hash, Hasher};

use foldhash::{HashMap, HashSet};

use threadline_view::humanize;

use crate::compressed_section::{SectionWriter, Spool};
use crate::markup::Markup;
use crate::page::RenderOptions;
use crate::raw::RawLines;
use crate::text_format;

/// The content of a collapsible section smaller than this is not deferred.
const MIN_DEFERRED: usize = 1 << 10;

/// The state of rendering a page.
pub(crate) struct RenderContext<'a> {
    pub(crate) options: &'a RenderOptions,
    pub(crate) cwd: Option<String>,
    /// Sections that are drawn on demand; `None` while everything is plain markup.
    pub(crate) sections: Option<SectionWriter>,
    /// Storage for compressed sections; taken when the first one is needed. `None` for a fragment.
    pub(crate) spool: Option<Box<dyn Spool>>,
    /// The raw lines of the log, which may contain the data of images in deferred sections.
    pub(crate) raw: RawLines,
    /// Parts of the page that are drawn when they come into view.
    pub(crate) deferred: Vec<DeferredSection>,
    /// Each sub-agent with the anchor of the call that started it.
    pub(crate) agents: Vec<(String, String)>,
    /// The tools that were called, with the number of calls.
    pub(crate) tools: Vec<(String, usize)>,
    /// The number of the tool of each call, in the order of the calls.
    pub(crate) calls: Vec<usize>,
    tool_numbers: HashMap<String, usize>,
    /// Hashes of the ids in use. A page may have very many ids, and a collision only leaves one out.
    ids: HashSet<u64>,
}

/// A part of the page that is drawn when it comes into view.
pub(crate) struct DeferredSection {
    pub(crate) part: usize,
    /// The first and last line of the session in it.
    pub(crate) lines: (u64, u64),
}

impl<'a> RenderContext<'a> {
    pub(crate) fn new(options: &'a RenderOptions, cwd: Option<&str>) -> Self {
        Self {
            options,
            cwd: cwd.map(str::to_owned),
            sections: None,
            spool: None,
            raw: RawLines::default(),
            deferred: Vec::new(),
            agents: Vec::new(),
            tools: Vec::new(),
            calls: Vec::new(),
            tool_numbers: HashMap::default(),
            ids: HashSet::default(),
        }
    }

    /// Sets the tool numbers of the whole page, for a page that is rendered in parts.
    pub(crate) fn set_tools(&mut self, tools: &[(String, usize)]) {
        for (name, _) in tools {
            self.tool_numbers.insert(name.clone(), self.tools.len());
            self.tools.push((name.clone(), 0));
        }
    }

    /// Stores large parts of the page in compressed sections from now on.
    pub(crate) fn begin_sections(&mut self) {
        if let Some(spool) = self.spool.take() {
            self.sections = Some(SectionWriter::new("z", "\0", spool));
        }
    }

    /// Returns the id the first time it is requested, so that no two elements share one.
    pub(crate) fn unique_id(&mut self, name: String) -> Option<String> {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        self.ids.insert(hasher.finish()).then_some(name)
    }

    /// Counts a call of a tool and returns the number of the tool.
    pub(crate) fn count_tool_call(&mut self, name: &str) -> usize {
        let number = match self.tool_numbers.get(name) {
            Some(number) => *number,
            None => {
                self.tools.push((name.to_owned(), 0));
                self.tool_numbers.insert(name.to_owned(), self.tools.len() - 1);
                self.tools.len() - 1
            }
        };
        self.tools[number].1 += 1;
        self.calls.push(number);
        number
    }

    /// Adds a collapsible section. A large body is deferred if `owner`, the anchor it belongs to, is given.
    pub(crate) fn collapsible(
        &mut self,
        out: &mut Markup,
        owner: Option<&str>,
        summary: &Markup,
        body: Markup,
    ) {
        out.lit("<details");
        self.finish_collapsible(out, owner, summary, body);
    }

    /// Adds a collapsible section with its own id.
    pub(crate) fn collapsible_with_id(
        &mut self,
        out: &mut Markup,
        name: &str,
        summary: &Markup,
        body: Markup,
    ) {
        out.lit("<details");
        if let Some(name) = self.unique_id(name.to_owned()) {
            out.lit(" id=\"").text(&name).lit("\"");
        }
        self.finish_collapsible(out, Some(name), summary, body);
    }

    fn finish_collapsible(&mut self, out: &mut Markup, owner: Option<&str>, summary: &Markup, body: Markup) {
        if owner.is_some() && body.len() > self.options.plain_up_to {
            self.begin_sections();
        }
        match (&mut self.sections, owner) {
            (Some(sections), Some(owner)) if body.len() >= MIN_DEFERRED => {
                let part = sections.add(&format!("{owner}\n"), &body);
                out.lit(" data-b=\"").num(part as u64).lit("\"><summary>").add(summary);
                out.lit("</summary></details>");
            }
            _ => {
                out.lit("><summary>").add(summary).lit("</summary>").add(&body).lit("</details>");
            }
        }
    }

    /// Moves markup that covers these lines to the page. It is drawn when it comes into view if sections are
    /// deferred.
    pub(crate) fn deferred_section(
        &mut self,
        out: &mut Markup,
        markup: &mut Markup,
        lines: (u64, u64),
        rows: usize,
    ) {
        let Some(sections) = &mut self.sections else {
            out.add(markup);
            markup.clear();
            return;
        };
        let part = sections.add("\n", markup);
        markup.clear();
        self.deferred.push(DeferredSection { part, lines });
        out.lit("<div class=\"piece\" data-p=\"")
            .num(part as u64)
            .lit("\" data-rows=\"")
            .num(rows as u64)
            .lit("\"></div>");
    }

    /// Adds the output of a tool, up to the maximum length.
    pub(crate) fn output(&self, out: &mut Markup, text: &str) {
        let text = text.trim_end_matches(['\n', '\r', ' ']).trim_start_matches(['\n', '\r']);
        if text.is_empty() {
            return;
        }
        let (text, left) = text_format::truncate(text, self.options.max_output);
        out.lit("<div class=\"code\"><pre tabindex=\"0\">");
        crate::ansi::terminal(out, text);
        out.lit("</pre></div>");
        omitted_note(out, left);
    }
}

/// Adds a note with the number of bytes left out.
pub(crate) fn omitted_note(out: &mut Markup, bytes: usize) {
    if bytes > 0 {
        out.lit("<p class=\"note\">").text(&humanize::bytes(bytes as u64)).lit(" more omitted</p>");
    }
}
