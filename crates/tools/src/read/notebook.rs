//! Notebooks: parsing, and cells as text for the model.

use std::fs::Metadata;
use std::path::Path;

use serde::Serialize;
use serde_json::value::RawValue;

use super::image::ImageBlock;
use super::{ReadRecord, read_bounded, read_failed};
use crate::context::ToolContext;
use crate::file_state::{ContentDigest, FileState, ReadRange, modified_ms};
use crate::json::OrderedJson;
use crate::limits::show_size;
use crate::output::{Failure, ResultContent, ToolOutput, raw};

/// A parsed notebook.
pub(crate) struct Notebook {
    pub(crate) json: OrderedJson,
}

/// A file that is not a notebook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotebookError {
    /// It is not JSON; the message of a JavaScript parser.
    Json(&'static str),
    /// It has no list of cells.
    Cells,
}

impl Notebook {
    pub(crate) fn parse(text: &str) -> Result<Self, NotebookError> {
        let json: OrderedJson = serde_json::from_str(text).map_err(|error| match text.trim() {
            "" => NotebookError::Json("Unexpected EOF"),
            _ if error.is_eof() => NotebookError::Json("Expected '}'"),
            text if text.starts_with('{') => NotebookError::Json("Expected '}'"),
            _ => NotebookError::Json("Unrecognized token"),
        })?;
        let has_cells = json
            .get("cells")
            .and_then(OrderedJson::as_array)
            .is_some_and(|cells| cells.iter().all(|cell| matches!(cell, OrderedJson::Object(_))));
        if has_cells { Ok(Self { json }) } else { Err(NotebookError::Cells) }
    }

    pub(crate) fn language(&self) -> &str {
        let info = self.json.get("metadata").and_then(|metadata| metadata.get("language_info"));
        info.and_then(|info| info.get("name")).and_then(OrderedJson::as_str).unwrap_or("python")
    }

    /// Returns whether cells have ids: from format 4.5 on.
    pub(crate) fn has_cell_ids(&self) -> bool {
        let number = |name: &str| self.json.get(name).and_then(OrderedJson::as_f64).unwrap_or_default();
        (number("nbformat"), number("nbformat_minor")) >= (4.0, 5.0)
    }

    pub(crate) fn cells(&self) -> &[OrderedJson] {
        self.json.get("cells").and_then(OrderedJson::as_array).unwrap_or_default()
    }
}

/// Joins a text that may be a list of lines.
pub(crate) fn joined(value: Option<&OrderedJson>) -> String {
    match value {
        Some(OrderedJson::String(text)) => text.clone(),
        Some(OrderedJson::Array(lines)) => lines.iter().filter_map(OrderedJson::as_str).collect(),
        _ => String::new(),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NotebookRecord<'a> {
    file_path: &'a str,
    cells: &'a [CellRecord],
}

#[derive(Serialize)]
struct CellRecord {
    #[serde(rename = "cellType")]
    cell_type: String,
    source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_count: Option<OrderedJson>,
    cell_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outputs: Vec<CellOutputRecord>,
}

#[derive(Serialize)]
struct CellOutputRecord {
    output_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<CellImageRecord>,
}

#[derive(Serialize)]
struct CellImageRecord {
    image_data: String,
    media_type: &'static str,
}

impl CellRecord {
    fn new(index: usize, cell: &OrderedJson, language: &str, max_output: usize) -> Self {
        let cell_type = cell.get("cell_type").and_then(OrderedJson::as_str).unwrap_or("code").to_owned();
        let is_code = cell_type == "code";
        let id = cell.get("id").and_then(OrderedJson::as_str);
        let outputs = cell.get("outputs").and_then(OrderedJson::as_array).unwrap_or_default();
        let mut outputs: Vec<_> =
            if is_code { outputs.iter().map(CellOutputRecord::new).collect() } else { Vec::new() };
        let length = |output: &CellOutputRecord| {
            output.text.as_ref().map_or(0, String::len)
                + output.image.as_ref().map_or(0, |image| image.image_data.len())
        };
        if outputs.iter().map(length).sum::<usize>() > max_output {
            let text = format!(
                "Outputs are too large to include. Use Bash with: cat <notebook_path> | jq '.cells[{index}].outputs'"
            );
            outputs =
                vec![CellOutputRecord { output_type: "stream".to_owned(), text: Some(text), image: None }];
        }
        Self {
            source: joined(cell.get("source")),
            execution_count: cell
                .get("execution_count")
                .filter(|count| is_code && matches!(count, OrderedJson::Number(_)))
                .cloned(),
            cell_id: id.map_or_else(|| format!("cell-{index}"), str::to_owned),
            language: is_code.then(|| language.to_owned()),
            outputs,
            cell_type,
        }
    }
}

impl CellOutputRecord {
    fn new(output: &OrderedJson) -> Self {
        let output_type =
            output.get("output_type").and_then(OrderedJson::as_str).unwrap_or_default().to_owned();
        let (text, image) = match output_type.as_str() {
            "stream" => (Some(joined(output.get("text"))), None),
            "execute_result" | "display_data" => {
                let data = output.get("data");
                let text = data.and_then(|data| data.get("text/plain"));
                (text.map(|text| joined(Some(text))), data.and_then(image_of))
            }
            "error" => {
                let part = |name: &str| output.get(name).and_then(OrderedJson::as_str).unwrap_or_default();
                let lines = output.get("traceback").and_then(OrderedJson::as_array).unwrap_or_default();
                let lines: Vec<_> = lines.iter().filter_map(OrderedJson::as_str).collect();
                (Some(format!("{}: {}\n{}", part("ename"), part("evalue"), lines.join("\n"))), None)
            }
            _ => (None, None),
        };
        Self { output_type, text, image }
    }
}

fn image_of(data: &OrderedJson) -> Option<CellImageRecord> {
    ["image/png", "image/jpeg"].into_iter().find_map(|media_type| {
        let value = joined(Some(data.get(media_type)?));
        let image_data: String = value.chars().filter(|ch| !ch.is_whitespace()).collect();
        (!image_data.is_empty()).then_some(CellImageRecord { image_data, media_type })
    })
}

#[derive(Serialize)]
struct TextBlock<'a> {
    text: &'a str,
    r#type: &'static str,
}

/// Collects blocks; adjacent texts become one, separated by line feeds.
#[derive(Default)]
struct BlockList {
    blocks: Vec<Box<RawValue>>,
    text: Option<String>,
}

impl BlockList {
    fn push_text(&mut self, text: &str) {
        match &mut self.text {
            Some(before) => {
                before.push('\n');
                before.push_str(text);
            }
            None => self.text = Some(text.to_owned()),
        }
    }

    fn push_image(&mut self, image: &CellImageRecord) {
        self.flush();
        self.blocks.push(raw(&ImageBlock::new(&image.image_data, image.media_type)));
    }

    fn flush(&mut self) {
        if let Some(text) = self.text.take() {
            self.blocks.push(raw(&TextBlock { text: &text, r#type: "text" }));
        }
    }
}

pub(super) fn read(
    given: &str,
    path: &Path,
    metadata: &Metadata,
    range: ReadRange,
    context: &ToolContext<'_>,
) -> Result<ToolOutput, Failure> {
    let limits = context.limits;
    let bytes = read_bounded(path, limits.edit_bytes).map_err(|error| read_failed(&error, path))?;
    let text = String::from_utf8_lossy(&bytes);
    let notebook = Notebook::parse(&text).map_err(|error| match error {
        NotebookError::Json(message) => Failure::Failed(format!(
            "Notebook file is not valid JSON (it may be truncated, corrupted, or still being written): JSON Parse \
             error: {message}"
        )),
        NotebookError::Cells => Failure::Failed(
            "Notebook file is not a valid Jupyter notebook (top-level \"cells\" must be an array of cell objects)."
                .to_owned(),
        ),
    })?;
    let language = notebook.language();
    let cells = notebook.cells().iter().enumerate();
    let cells: Vec<_> = cells
        .map(|(index, cell)| CellRecord::new(index, cell, language, limits.notebook_output_chars))
        .collect();
    let size = serde_json::to_string(&cells).map_or(0, |json| json.len()) as u64;
    if size > limits.read_bytes {
        return Err(too_large(size, limits.read_bytes, given));
    }
    let state = FileState {
        modified_ms: modified_ms(metadata),
        digest: Some(ContentDigest::of(&text)),
        written: None,
        range: Some(range),
    };
    context.files.insert(path, state);
    let mut list = BlockList::default();
    for cell in &cells {
        list.push_text(&cell_text(cell));
        for output in &cell.outputs {
            if let Some(text) = &output.text {
                list.push_text(&format!("\n{text}"));
            }
            if let Some(image) = &output.image {
                list.push_image(image);
            }
        }
    }
    list.flush();
    let record = ReadRecord { r#type: "notebook", file: NotebookRecord { file_path: given, cells: &cells } };
    let mut output = ToolOutput::success("(Read completed with no output)", &record);
    if !list.blocks.is_empty() {
        output.content = ResultContent::Blocks(list.blocks);
    }
    Ok(output)
}

fn cell_text(cell: &CellRecord) -> String {
    let id = &cell.cell_id;
    let kind = match (&*cell.cell_type, cell.language.as_deref()) {
        ("code", Some("python") | None) => String::new(),
        ("code", Some(language)) => format!("<language>{language}</language>"),
        (other, _) => format!("<cell_type>{other}</cell_type>"),
    };
    format!("<cell id=\"{id}\">{kind}{}</cell id=\"{id}\">", cell.source)
}

fn too_large(size: u64, max: u64, given: &str) -> Failure {
    Failure::Failed(format!(
        "Notebook content ({}) exceeds maximum allowed size ({}). Use Bash with jq to read specific portions:\n  \
         cat \"{given}\" | jq '.cells[:20]' # First 20 cells\n  \
         cat \"{given}\" | jq '.cells[100:120]' # Cells 100-120\n  \
         cat \"{given}\" | jq '.cells | length' # Count total cells\n  \
         cat \"{given}\" | jq '.cells[] | select(.cell_type==\"code\") | .source' # All code sources",
        show_size(size),
        show_size(max)
    ))
}
