//! Writes the conversation of a session as JSON lines or Markdown, part by part.

use std::io::{self, Write};

use threadline_view::wire::ShowWriter;
use threadline_view::{DetailLevel, MarkdownRenderer, TranscriptPart};

use crate::load::OpenSession;

impl OpenSession {
    /// Writes all lines of the conversation as `export json` does: those of `show --json`, with nothing left
    /// out.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut writer = ShowWriter::default();
        self.parts(|parts| {
            for part in parts.without_findings() {
                writer.write_part(&part, out)?;
            }
            Ok(())
        })
    }

    /// Writes the conversation as Markdown, as `export markdown` does.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub fn write_markdown(&self, level: DetailLevel, out: &mut dyn Write) -> io::Result<()> {
        let mut renderer = None;
        self.parts(|parts| {
            for part in parts.without_findings() {
                let renderer = match &part {
                    TranscriptPart::Header(header) => renderer.insert(MarkdownRenderer::new(header, level)),
                    _ => match &mut renderer {
                        Some(renderer) => renderer,
                        None => continue,
                    },
                };
                renderer.part(&part);
                out.write_all(renderer.take_output().as_bytes())?;
            }
            io::Result::Ok(())
        })?;
        out.write_all(renderer.map(MarkdownRenderer::finish).unwrap_or_default().as_bytes())
    }
}
