//! What is being drawn: where text goes, what was named, and what is put aside for later.

use rustc_hash::{FxHashMap, FxHashSet};

use threadline_view::figure;

use crate::markup::Markup;
use crate::pack::Pack;
use crate::page::Options;
use crate::raw::RawLines;
use crate::words;

/// Folded parts smaller than this are not worth putting aside.
const SMALL: usize = 1 << 10;

/// What is being drawn.
pub(crate) struct Sheet<'a> {
    pub(crate) options: &'a Options,
    pub(crate) cwd: Option<String>,
    /// What is drawn on demand; `None` on a page that has everything in it.
    pub(crate) pack: Option<Pack>,
    /// The lines of the log, which may hold the pictures that are drawn on demand.
    pub(crate) raw: RawLines,
    /// Stretches of the page that are drawn when they come into view.
    pub(crate) pieces: Vec<Piece>,
    /// Each sub-agent with the name of the call that started it.
    pub(crate) agents: Vec<(String, String)>,
    /// The tools that were called, and how often.
    pub(crate) tools: Vec<(String, usize)>,
    tool_numbers: FxHashMap<String, usize>,
    names: FxHashSet<String>,
}

/// A stretch of the page that is drawn when it comes into view.
pub(crate) struct Piece {
    pub(crate) part: usize,
    /// The first and the last line of the session in it.
    pub(crate) lines: (u64, u64),
}

impl<'a> Sheet<'a> {
    pub(crate) fn new(options: &'a Options, cwd: Option<&str>) -> Self {
        Self {
            options,
            cwd: cwd.map(str::to_owned),
            pack: None,
            raw: RawLines::default(),
            pieces: Vec::new(),
            agents: Vec::new(),
            tools: Vec::new(),
            tool_numbers: FxHashMap::default(),
            names: FxHashSet::default(),
        }
    }

    /// Numbers the tools as they are numbered on the whole page.
    pub(crate) fn know_tools(&mut self, tools: &[(String, usize)]) {
        for (name, _) in tools {
            self.tool_numbers.insert(name.clone(), self.tools.len());
            self.tools.push((name.clone(), 0));
        }
    }

    /// The name, the first time it is asked for: two elements never share one.
    pub(crate) fn name(&mut self, name: String) -> Option<String> {
        self.names.insert(name.clone()).then_some(name)
    }

    /// Notes a call of a tool and returns the number that stands for the tool.
    pub(crate) fn tool(&mut self, name: &str) -> usize {
        let number = match self.tool_numbers.get(name) {
            Some(number) => *number,
            None => {
                self.tools.push((name.to_owned(), 0));
                self.tool_numbers.insert(name.to_owned(), self.tools.len() - 1);
                self.tools.len() - 1
            }
        };
        self.tools[number].1 += 1;
        number
    }

    /// Adds a fold: a line that opens to a body, which is put aside where it is large.
    pub(crate) fn fold(&mut self, out: &mut Markup, owner: Option<&str>, summary: &Markup, body: &Markup) {
        out.lit("<details");
        self.rest_of_fold(out, owner, summary, body);
    }

    /// Adds a fold that can be linked to itself.
    pub(crate) fn named_fold(&mut self, out: &mut Markup, name: &str, summary: &Markup, body: &Markup) {
        out.lit("<details");
        if let Some(name) = self.name(name.to_owned()) {
            out.lit(" id=\"").text(&name).lit("\"");
        }
        self.rest_of_fold(out, Some(name), summary, body);
    }

    fn rest_of_fold(&mut self, out: &mut Markup, owner: Option<&str>, summary: &Markup, body: &Markup) {
        match (&mut self.pack, owner) {
            (Some(pack), Some(owner)) if body.len() >= SMALL => {
                let part = pack.add([&format!("{owner}\n"), body.as_str()]);
                out.lit(" data-b=\"").num(part as u64).lit("\"><summary>").add(summary);
                out.lit("</summary></details>");
            }
            _ => {
                out.lit("><summary>").add(summary).lit("</summary>").add(body).lit("</details>");
            }
        }
    }

    /// Adds a stretch of the page that covers these lines, to be drawn when it comes into view.
    pub(crate) fn piece(&mut self, out: &mut Markup, markup: &Markup, lines: (u64, u64), rows: usize) {
        let Some(pack) = &mut self.pack else {
            out.add(markup);
            return;
        };
        let part = pack.add(["\n", markup.as_str()]);
        self.pieces.push(Piece { part, lines });
        out.lit("<div class=\"piece\" data-p=\"")
            .num(part as u64)
            .lit("\" data-rows=\"")
            .num(rows as u64)
            .lit("\"></div>");
    }

    /// Adds text that a tool returned, as far as it may go.
    pub(crate) fn output(&self, out: &mut Markup, text: &str) {
        let text = text.trim_end_matches(['\n', '\r', ' ']).trim_start_matches(['\n', '\r']);
        if text.is_empty() {
            return;
        }
        let (text, left) = words::clip(text, self.options.max_output);
        out.lit("<div class=\"code\"><pre tabindex=\"0\">");
        crate::ansi::terminal(out, text);
        out.lit("</pre></div>");
        left_out(out, left);
    }
}

/// Says how much of a text is not here.
pub(crate) fn left_out(out: &mut Markup, bytes: usize) {
    if bytes > 0 {
        out.lit("<p class=\"note\">")
            .text(&figure::bytes(bytes as u64))
            .lit(" more were left out of this page</p>");
    }
}
