//! Markdown as markup: raw HTML is escaped, links are limited to safe schemes, images are not loaded.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use crate::markup::Markup;

/// Adds untrusted Markdown.
pub(crate) fn markdown(out: &mut Markup, text: &str) {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer =
        MarkdownRenderer { out, columns: Vec::new(), column: 0, in_head: false, links: Vec::new() };
    Parser::new_ext(text, options).for_each(|event| writer.event(event));
}

/// Returns the URL if it is safe to link to: only `http`, `https` and `mailto`, without control characters or
/// spaces.
pub(crate) fn safe_url(url: &str) -> Option<&str> {
    let url = url.trim();
    let begins =
        |scheme: &str| url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    let known = ["https://", "http://", "mailto:"].into_iter().any(begins);
    (known && !url.contains(|ch: char| ch.is_control() || ch.is_whitespace())).then_some(url)
}

/// Adds a link if the URL is safe, else the text followed by the URL.
pub(crate) fn link(out: &mut Markup, url: &str, text: &str) {
    match safe_url(url) {
        Some(url) => {
            out.lit("<a rel=\"noopener noreferrer\" href=\"").text(url).lit("\">").text(text).lit("</a>")
        }
        None if url == text => out.text(text),
        None => out.text(text).lit(" <code>").text(url).lit("</code>"),
    };
}

struct MarkdownRenderer<'m> {
    out: &'m mut Markup,
    columns: Vec<Alignment>,
    column: usize,
    in_head: bool,
    /// One item per open link or image: `None` if an element must be closed, else the URL to show after the
    /// text.
    links: Vec<Option<String>>,
}

impl MarkdownRenderer<'_> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                self.out.text(&text);
            }
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.out.text_element("code", &text);
            }
            Event::FootnoteReference(name) => {
                self.out.lit("[").text(&name).lit("]");
            }
            Event::SoftBreak => {
                self.out.lit("\n");
            }
            Event::HardBreak => {
                self.out.lit("<br>");
            }
            Event::Rule => {
                self.out.lit("<hr>");
            }
            Event::TaskListMarker(done) => {
                self.out.lit(if done {
                    "<span class=\"tick\">☑</span> "
                } else {
                    "<span class=\"tick\">☐</span> "
                });
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        let out = &mut *self.out;
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => out.lit("<p>"),
            // Prompts are the headings of the page, so headings in replies are of lower levels.
            Tag::Heading { level, .. } => out.lit(match level as u8 {
                1 => "<h3>",
                2 => "<h4>",
                3 => "<h5>",
                _ => "<h6>",
            }),
            Tag::BlockQuote(_) => out.lit("<blockquote>"),
            Tag::CodeBlock(kind) => {
                out.lit("<div class=\"code\"");
                if let CodeBlockKind::Fenced(info) = kind {
                    let language = info.split([' ', ',', '{']).next().unwrap_or_default();
                    if !language.is_empty() {
                        out.lit(" data-lang=\"").text(language).lit("\"");
                    }
                }
                out.lit("><pre tabindex=\"0\"><code>")
            }
            Tag::List(Some(1)) => out.lit("<ol>"),
            Tag::List(Some(start)) => out.lit("<ol start=\"").num(start).lit("\">"),
            Tag::List(None) => out.lit("<ul>"),
            Tag::Item => out.lit("<li>"),
            Tag::Table(columns) => {
                self.columns = columns;
                out.lit("<div class=\"table\"><table>")
            }
            Tag::TableHead => {
                (self.in_head, self.column) = (true, 0);
                out.lit("<thead><tr>")
            }
            Tag::TableRow => {
                self.column = 0;
                out.lit("<tr>")
            }
            Tag::TableCell => {
                let column = self.columns.get(self.column).copied().unwrap_or(Alignment::None);
                self.column += 1;
                out.lit(if self.in_head { "<th" } else { "<td" });
                out.lit(match column {
                    Alignment::Right => " class=\"right\">",
                    Alignment::Center => " class=\"middle\">",
                    _ => ">",
                })
            }
            Tag::Emphasis => out.lit("<em>"),
            Tag::Strong => out.lit("<strong>"),
            Tag::Strikethrough => out.lit("<del>"),
            Tag::Link { dest_url, .. } => match safe_url(&dest_url) {
                Some(url) => {
                    self.links.push(None);
                    out.lit("<a rel=\"noopener noreferrer\" href=\"").text(url).lit("\">")
                }
                None => {
                    self.links.push(Some(dest_url.into_string()));
                    out
                }
            },
            // Loading an image would make a request, so its text and URL are shown instead.
            Tag::Image { dest_url, .. } => {
                self.links.push(Some(dest_url.into_string()));
                out.lit("<span class=\"picture\">")
            }
            _ => out,
        };
    }

    fn end(&mut self, tag: TagEnd) {
        let out = &mut *self.out;
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => out.lit("</p>"),
            TagEnd::Heading(level) => out.lit(match level as u8 {
                1 => "</h3>",
                2 => "</h4>",
                3 => "</h5>",
                _ => "</h6>",
            }),
            TagEnd::BlockQuote(_) => out.lit("</blockquote>"),
            TagEnd::CodeBlock => out.lit("</code></pre></div>"),
            TagEnd::List(true) => out.lit("</ol>"),
            TagEnd::List(false) => out.lit("</ul>"),
            TagEnd::Item => out.lit("</li>"),
            TagEnd::Table => out.lit("</tbody></table></div>"),
            TagEnd::TableHead => {
                self.in_head = false;
                out.lit("</tr></thead><tbody>")
            }
            TagEnd::TableRow => out.lit("</tr>"),
            TagEnd::TableCell => out.lit(if self.in_head { "</th>" } else { "</td>" }),
            TagEnd::Emphasis => out.lit("</em>"),
            TagEnd::Strong => out.lit("</strong>"),
            TagEnd::Strikethrough => out.lit("</del>"),
            TagEnd::Link => match self.links.pop().flatten() {
                None => out.lit("</a>"),
                Some(url) if url.is_empty() => out,
                Some(url) => out.lit(" <code>").text(&url).lit("</code>"),
            },
            TagEnd::Image => {
                out.lit("</span>");
                match self.links.pop().flatten() {
                    Some(url) if url.starts_with("data:") => out.lit(" <code>data:…</code>"),
                    Some(url) => {
                        out.lit(" ");
                        link(out, &url, &url);
                        out
                    }
                    None => out,
                }
            }
            _ => out,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str) -> String {
        let mut out = Markup::new();
        markdown(&mut out, text);
        out.into_string()
    }

    #[test]
    fn common_markdown_is_rendered() {
        insta::assert_snapshot!(rendered("# One\n\na **b** `c<d`\n\n3. x\n4. y\n\n```rust ignore\nfn f() {}\n```\n\n| a | b |\n|--|-:|\n| 1 | 2 |\n\n- [x] done"), @r#"
        <h3>One</h3><p>a <strong>b</strong> <code>c&lt;d</code></p><ol start="3"><li>x</li><li>y</li></ol><div class="code" data-lang="rust"><pre tabindex="0"><code>fn f() {}
        </code></pre></div><div class="table"><table><thead><tr><th>a</th><th class="right">b</th></tr></thead><tbody><tr><td>1</td><td class="right">2</td></tr></tbody></table></div><ul><li><span class="tick">☑</span> done</li></ul>
        "#);
    }

    #[test]
    fn links_are_limited_to_safe_schemes() {
        insta::assert_snapshot!(rendered("[a](https://x.org/?q=\"1\") [b](javascript:alert(1)) [c](JaVaScRiPt:x) <http://y.org> [d](data:text/html,x) ![e](https://z.org/p.png) ![f](data:image/svg+xml;base64,AAAA)"), @r#"
        <p><a rel="noopener noreferrer" href="https://x.org/?q=&quot;1&quot;">a</a> b <code>javascript:alert(1)</code> c <code>JaVaScRiPt:x</code> <a rel="noopener noreferrer" href="http://y.org">http://y.org</a> d <code>data:text/html,x</code> <span class="picture">e</span> <a rel="noopener noreferrer" href="https://z.org/p.png">https://z.org/p.png</a> <span class="picture">f</span> <code>data:…</code></p>
        "#);
    }

    #[test]
    fn raw_html_is_text() {
        insta::assert_snapshot!(rendered("<script>alert(1)</script>\n\nand <img src=x onerror=alert(1)> <!-- x -->"), @r"
        <p>&lt;script&gt;alert(1)&lt;/script&gt;
        </p><p>and &lt;img src=x onerror=alert(1)&gt; &lt;!-- x --&gt;</p>
        ");
    }
}
