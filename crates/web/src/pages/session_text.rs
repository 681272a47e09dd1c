//! A session as JSON lines or Markdown, generated while it is sent.

use std::io::{self, Write};
use std::sync::mpsc::{self, SyncSender};

use threadline_app::{OpenSession, PageLayout, SessionSelector};
use threadline_view::wire::{ErrorObject, ShowWriter};
use threadline_view::{DetailLevel, MarkdownRenderer, TranscriptHeader, TranscriptPart};

use crate::request::{PageRequest, ResponseFormat};
use crate::response::{BodyChunks, PageError, PageResponse, json_line};
use crate::state::ServerState;

/// Larger sessions, in bytes, are not loaded as a whole. Their text is read turn by turn, without abandoned
/// branches.
pub(crate) const MAX_LOADED_BYTES: u64 = 512 << 20;

/// The level of detail of Markdown: the default of `export markdown`.
const LEVEL: DetailLevel = DetailLevel::Tools;

/// Returns what `export json` and `export markdown` write; with a sub-agent or a branch, its conversation.
pub(crate) fn page(
    state: &ServerState,
    request: &PageRequest,
    selector: &SessionSelector,
) -> Result<PageResponse, PageError> {
    let file = state.app.session(request.path_param(0))?;
    let size = file.logs().found.iter().map(|log| log.size).sum::<u64>();
    let chunks = if *selector == SessionSelector::default() && size <= MAX_LOADED_BYTES {
        whole_session(state.app.load(&file)?, request.format)
    } else {
        conversation(state, request, selector)?
    };
    let kind = match request.format {
        ResponseFormat::Json => "application/x-ndjson",
        _ => "text/markdown; charset=utf-8",
    };
    Ok(PageResponse::Streamed(kind, chunks))
}

/// Writes a session on a thread of its own, which stops if the client does.
fn whole_session(loaded: OpenSession, format: ResponseFormat) -> BodyChunks {
    let (sender, receiver) = mpsc::sync_channel(2);
    std::thread::spawn(move || {
        let mut out = ChunkWriter { sender, buffer: Vec::new() };
        let written = match format {
            ResponseFormat::Json => loaded.write_json(&mut out),
            _ => loaded.write_markdown(LEVEL, &mut out),
        };
        // An error means that the client has closed the connection.
        let _ = written.and_then(|()| {
            for error in &loaded.unread {
                out.write_all(&read_error(&error.to_string(), format))?;
            }
            out.flush()
        });
    });
    BodyChunks(Box::new(move || receiver.recv().ok()))
}

/// Sends what is written in chunks.
struct ChunkWriter {
    sender: SyncSender<Vec<u8>>,
    buffer: Vec<u8>,
}

/// Size in bytes from which a chunk is sent.
const CHUNK_BYTES: usize = 64 << 10;

impl Write for ChunkWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= CHUNK_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let chunk = std::mem::take(&mut self.buffer);
        self.sender.send(chunk).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// Generates one conversation turn by turn.
fn conversation(
    state: &ServerState,
    request: &PageRequest,
    selector: &SessionSelector,
) -> Result<BodyChunks, PageError> {
    let (id, selector, format) = (request.path_param(0).to_owned(), selector.clone(), request.format);
    let layout = state.with_session(&id, |live| Ok(live.page_layout(&selector)?))?;
    let state = state.clone();
    let mut turns = layout.layout.turns.indices();
    let header = header(&layout);
    let mut writer = TextWriter::new(&header, format);
    let mut head = Some(TranscriptPart::Header(Box::new(header)));
    Ok(BodyChunks(Box::new(move || {
        if let Some(head) = head.take() {
            return Some(writer.part(head));
        }
        let Some(turn) = turns.next() else { return writer.finish() };
        let view = state.with_session(&id, |live| Ok(live.turn(&selector, &layout.layout, turn)?));
        Some(match view {
            Ok(view) => writer.part(TranscriptPart::Turn(Box::new(view))),
            // The head was already sent, so only the error can follow.
            Err(error) if format == ResponseFormat::Json => json_line(&error.object()),
            Err(error) => format!("\n\n{}\n\n", error.message).into_bytes(),
        })
    })))
}

fn header(layout: &PageLayout) -> TranscriptHeader {
    TranscriptHeader {
        n_turns: layout.layout.turns.len(),
        n_branches: layout.layout.branches.len(),
        ..layout.layout.header.clone()
    }
}

/// Converts the parts of a conversation to text.
enum TextWriter {
    Json(ShowWriter),
    /// `None` at the end.
    Markdown(Option<MarkdownRenderer>),
}

impl TextWriter {
    fn new(header: &TranscriptHeader, format: ResponseFormat) -> Self {
        match format {
            ResponseFormat::Json => Self::Json(ShowWriter::default()),
            _ => Self::Markdown(Some(MarkdownRenderer::new(header, LEVEL))),
        }
    }

    fn part(&mut self, part: TranscriptPart) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Json(writer) => {
                // Writing into memory does not fail.
                let _ = writer.write_part(&part, &mut out);
            }
            Self::Markdown(renderer) => {
                if let Some(renderer) = renderer {
                    renderer.part(&part);
                    out = renderer.take_output().into_bytes();
                }
            }
        }
        out
    }

    /// Returns the rest of the text, once.
    fn finish(&mut self) -> Option<Vec<u8>> {
        match self {
            Self::Json(_) => None,
            Self::Markdown(renderer) => Some(renderer.take()?.finish().into_bytes()),
        }
    }
}

/// Returns the error of a log that could not be read, as a line after the others.
fn read_error(message: &str, format: ResponseFormat) -> Vec<u8> {
    match format {
        ResponseFormat::Json => json_line(&ErrorObject::new(message, None)),
        _ => format!("\n{message}\n").into_bytes(),
    }
}
