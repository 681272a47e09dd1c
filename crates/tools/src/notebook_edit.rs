//! NotebookEdit: replaces, inserts or deletes a cell of a notebook.

use std::io;
use std::path::Path;

use serde::Serialize;

use crate::background::random_text;
use crate::context::ToolContext;
use crate::json::OrderedJson;
use crate::output::{Failure, ToolOutput};
use crate::paths::{errno_text, resolve};
use crate::profile::Profile;
use crate::read::{Notebook, joined};
use crate::schema::{Kind, Parameter, optional, required};
use crate::text_file::{TextFile, write_atomically};
use crate::tool::{InputSchema, Permit, Tool, ToolInput};
use crate::write::check_seen;

/// The NotebookEdit tool.
pub(crate) struct NotebookEdit {
    pub(crate) profile: &'static Profile,
}

const PARAMETERS: &[Parameter] = &[
    required("notebook_path", Kind::Text(0), "Path of the notebook, preferably absolute"),
    optional("cell_id", Kind::Text(0), "The cell to change; a new cell is inserted after it, or at the top"),
    required("new_source", Kind::Text(0), "The new source of the cell"),
    optional("cell_type", Kind::Choice(&["code", "markdown"]), "The type of the cell; needed to insert one"),
    optional(
        "edit_mode",
        Kind::Choice(&["replace", "insert", "delete"]),
        "What to do; `replace` if left out",
    ),
];

#[derive(Serialize)]
struct NotebookEditRecord<'a> {
    new_source: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    old_source: Option<&'a str>,
    cell_type: &'a str,
    language: &'a str,
    edit_mode: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cell_id: Option<&'a str>,
    error: &'a str,
    notebook_path: &'a Path,
    original_file: &'a str,
    updated_file: &'a str,
}

impl Tool for NotebookEdit {
    fn name(&self) -> &str {
        "NotebookEdit"
    }

    fn description(&self) -> String {
        "Changes one cell of a Jupyter notebook that has been read: replaces its source, inserts a new cell after it, \
         or deletes it. Outputs of a changed code cell are removed."
            .to_owned()
    }

    fn schema(&self) -> InputSchema<'_> {
        InputSchema::Parameters(PARAMETERS)
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        false
    }

    fn converts_text(&self) -> bool {
        self.profile.converts_text
    }

    fn check(&self, input: &ToolInput, context: &ToolContext<'_>) -> Option<ToolOutput> {
        self.edit(input, context, true).err().map(|failure| failure.into_output(self.name()))
    }

    fn run(&self, input: &ToolInput, context: &ToolContext<'_>, _: Permit) -> ToolOutput {
        self.edit(input, context, false).unwrap_or_else(|failure| failure.into_output(self.name()))
    }
}

impl NotebookEdit {
    /// Runs a call; with `is_check`, only as far as nothing is changed.
    fn edit(
        &self,
        input: &ToolInput,
        context: &ToolContext<'_>,
        is_check: bool,
    ) -> Result<ToolOutput, Failure> {
        let path = resolve(input.text("notebook_path").unwrap_or_default(), context)?;
        let mode = input.text("edit_mode").unwrap_or("replace");
        let cell_type = input.text("cell_type");
        let refused = |message: &str| Failure::Refused(message.to_owned());
        if path.extension().is_none_or(|extension| extension != "ipynb") {
            return Err(refused(
                "File must be a Jupyter notebook (.ipynb file). For editing other file types, use the FileEdit tool.",
            ));
        }
        if mode == "insert" && cell_type.is_none() {
            return Err(refused("Cell type is required when using edit_mode=insert."));
        }
        if self.profile.notebooks_must_be_read {
            check_seen(&path, context)?;
        }
        let file = TextFile::read(&path, context.limits.edit_bytes).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => refused("Notebook file does not exist."),
            _ => Failure::CheckFailed(errno_text(&error, "open", Some(&path))),
        })?;
        let mut notebook = Notebook::parse(&file.text).map_err(|_| refused("Notebook is not valid JSON."))?;
        let given = input.text("cell_id");
        let index = given.map(|id| find_cell(notebook.cells(), id)).transpose()?;
        if index.is_none() && mode != "insert" {
            return Err(refused("Cell ID must be specified when not inserting a new cell."));
        }
        if is_check {
            return Ok(ToolOutput::not_run("", ""));
        }
        context.observer.before_change(&path);
        let edit = CellEdit {
            mode,
            index,
            source: input.text("new_source").unwrap_or_default(),
            cell_type,
            new_id: self.new_cell_id()?,
        };
        let language = notebook.language().to_owned();
        let has_ids = notebook.has_cell_ids();
        let old_source = edit.apply(&mut notebook, has_ids);
        let updated = notebook.json.to_pretty(b" ");
        write_atomically(&path, &file.encode_new(&updated))?;
        context.files.written(&path, &updated);
        let id = if mode == "insert" { Some(edit.new_id.as_str()) } else { given };
        let id = id.filter(|_| has_ids);
        let shown = id.unwrap_or("undefined");
        let text = match mode {
            "insert" => format!("Inserted cell {shown} with {}", edit.source),
            "delete" => format!("Deleted cell {shown}"),
            _ => format!("Updated cell {shown} with {}", edit.source),
        };
        let record = NotebookEditRecord {
            new_source: edit.source,
            old_source: old_source.as_deref().filter(|_| self.profile.notebooks_must_be_read),
            cell_type: cell_type.unwrap_or("code"),
            language: &language,
            edit_mode: mode,
            cell_id: id,
            error: "",
            notebook_path: &path,
            original_file: &file.text,
            updated_file: &updated,
        };
        let mut output = ToolOutput::success(text, &record);
        output.changed.push(path);
        Ok(output)
    }

    fn new_cell_id(&self) -> Result<String, Failure> {
        let failed = |error: io::Error| Failure::Failed(error.to_string());
        if self.profile.notebooks_must_be_read {
            let mut bytes = [0; 4];
            getrandom::fill(&mut bytes).map_err(|error| failed(io::Error::other(error.to_string())))?;
            return Ok(const_hex::encode(bytes));
        }
        random_text(11).map_err(failed)
    }
}

/// Returns the index of a cell by its id, or by `cell-N` if no cell has that id.
fn find_cell(cells: &[OrderedJson], id: &str) -> Result<usize, Failure> {
    let has_id = |cell: &OrderedJson| cell.get("id").and_then(OrderedJson::as_str) == Some(id);
    if let Some(index) = cells.iter().position(has_id) {
        return Ok(index);
    }
    match id.strip_prefix("cell-").and_then(|index| index.parse::<usize>().ok()) {
        Some(index) if index < cells.len() => Ok(index),
        Some(index) => Err(Failure::Refused(format!("Cell with index {index} does not exist in notebook."))),
        None => Err(Failure::Refused(format!("Cell with ID \"{id}\" not found in notebook."))),
    }
}

/// A change of one cell.
struct CellEdit<'a> {
    mode: &'a str,
    index: Option<usize>,
    source: &'a str,
    cell_type: Option<&'a str>,
    new_id: String,
}

impl CellEdit<'_> {
    /// Changes the notebook and returns the source of the cell that was replaced or deleted.
    fn apply(&self, notebook: &mut Notebook, has_ids: bool) -> Option<String> {
        let Some(OrderedJson::Array(cells)) = notebook.json.get_mut("cells") else { return None };
        match (self.mode, self.index) {
            ("insert", index) => {
                cells.insert(index.map_or(0, |index| index + 1), self.new_cell(has_ids));
                None
            }
            ("delete", Some(index)) => Some(joined(cells.remove(index).get("source"))),
            (_, Some(index)) => {
                let cell = &mut cells[index];
                let old = joined(cell.get("source"));
                cell.set("source", self.source.into());
                if cell.get("cell_type").and_then(OrderedJson::as_str) == Some("code") {
                    cell.set("execution_count", OrderedJson::Null);
                    cell.set("outputs", OrderedJson::Array(Vec::new()));
                }
                if let Some(cell_type) = self.cell_type {
                    cell.set("cell_type", cell_type.into());
                }
                Some(old)
            }
            _ => None,
        }
    }

    fn new_cell(&self, has_ids: bool) -> OrderedJson {
        let cell_type = self.cell_type.unwrap_or("code");
        let mut cell = OrderedJson::object([("cell_type", cell_type.into())]);
        if has_ids {
            cell.set("id", self.new_id.as_str().into());
        }
        cell.set("source", self.source.into());
        cell.set("metadata", OrderedJson::object([]));
        if cell_type == "code" {
            cell.set("execution_count", OrderedJson::Null);
            cell.set("outputs", OrderedJson::Array(Vec::new()));
        }
        cell
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Fixture;

    const NOTEBOOK: &str = "{\n \"cells\": [\n  {\n   \"cell_type\": \"markdown\",\n   \"id\": \"m1\",\n   \"metadata\": {},\n   \
                            \"source\": [\n    \"# Title\"\n   ]\n  },\n  {\n   \"cell_type\": \"code\",\n   \
                            \"execution_count\": 1,\n   \"id\": \"c1\",\n   \"metadata\": {},\n   \"outputs\": [\n    {}\n   \
                            ],\n   \"source\": \"print(1)\"\n  }\n ],\n \"metadata\": {},\n \"nbformat\": 4,\n \
                            \"nbformat_minor\": 5\n}";

    fn with_notebook(text: &str) -> Fixture {
        let fixture = Fixture::new();
        fixture.put("n.ipynb", text);
        fixture.run("Read", r#"{"file_path": "n.ipynb"}"#);
        fixture
    }

    fn edit(fixture: &Fixture, rest: &str) -> String {
        fixture.text("NotebookEdit", &format!(r#"{{"notebook_path": "n.ipynb", {rest}}}"#))
    }

    fn refused(message: &str) -> String {
        format!("ERR <tool_use_error>{message}</tool_use_error>")
    }

    #[test]
    fn a_cell_is_replaced_and_its_outputs_removed() {
        let fixture = with_notebook(NOTEBOOK);
        let input = r#"{"notebook_path": "$CWD/n.ipynb", "cell_id": "c1", "new_source": "print(4)"}"#;
        let output = fixture.run("NotebookEdit", input);
        assert_eq!(output.text(), "Updated cell c1 with print(4)");
        let expected = NOTEBOOK
            .replace("\"execution_count\": 1", "\"execution_count\": null")
            .replace("[\n    {}\n   ]", "[]")
            .replace("print(1)", "print(4)");
        assert_eq!(fixture.content("n.ipynb"), expected);
        let record = fixture.masked(output.record.unwrap().get());
        let start = r#"{"new_source":"print(4)","old_source":"print(1)","cell_type":"code","language":"python","edit_mode":"replace","cell_id":"c1","error":"","notebook_path":"$CWD/n.ipynb","original_file":"#;
        assert!(record.starts_with(start), "{record}");
    }

    #[test]
    fn a_cell_is_inserted_after_another() {
        let fixture = with_notebook(NOTEBOOK);
        let text = edit(
            &fixture,
            r#""cell_id": "m1", "cell_type": "markdown", "edit_mode": "insert", "new_source": "after""#,
        );
        let id = text.strip_prefix("Inserted cell ").unwrap().strip_suffix(" with after").unwrap();
        assert!(id.len() == 8 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
        let cell = format!(
            "  {{\n   \"cell_type\": \"markdown\",\n   \"id\": \"{id}\",\n   \"source\": \"after\",\n   \"metadata\": {{}}\n  }},\n  {{\n   \
             \"cell_type\": \"code\""
        );
        assert_eq!(fixture.content("n.ipynb"), NOTEBOOK.replace("  {\n   \"cell_type\": \"code\"", &cell));
    }

    #[test]
    fn a_cell_is_deleted() {
        let fixture = with_notebook(NOTEBOOK);
        assert_eq!(
            edit(&fixture, r#""cell_id": "m1", "edit_mode": "delete", "new_source": """#),
            "Deleted cell m1"
        );
        assert!(!fixture.content("n.ipynb").contains("Title"));
    }

    #[test]
    fn cells_of_old_notebooks_are_found_by_index() {
        let old = NOTEBOOK
            .replace("   \"id\": \"m1\",\n", "")
            .replace("   \"id\": \"c1\",\n", "")
            .replace("\"nbformat_minor\": 5", "\"nbformat_minor\": 4");
        let fixture = with_notebook(&old);
        assert_eq!(
            edit(&fixture, r#""cell_id": "cell-0", "new_source": "x""#),
            "Updated cell undefined with x"
        );
        assert_eq!(
            edit(&fixture, r#""cell_type": "code", "edit_mode": "insert", "new_source": "top""#),
            "Inserted cell undefined with top"
        );
        assert!(!fixture.content("n.ipynb").contains("\"id\""));
        assert_eq!(
            edit(&fixture, r#""cell_id": "cell-9", "new_source": "x""#),
            refused("Cell with index 9 does not exist in notebook.")
        );
    }

    #[test]
    fn calls_that_make_no_sense_are_refused() {
        let fixture = with_notebook(NOTEBOOK);
        for (rest, message) in [
            (r#""cell_id": "nope", "new_source": "x""#, "Cell with ID \"nope\" not found in notebook."),
            (r#""new_source": "x""#, "Cell ID must be specified when not inserting a new cell."),
            (
                r#""new_source": "x", "edit_mode": "insert""#,
                "Cell type is required when using edit_mode=insert.",
            ),
        ] {
            assert_eq!(edit(&fixture, rest), refused(message));
        }
        assert_eq!(
            fixture.text("NotebookEdit", r#"{"notebook_path": "x.txt", "new_source": "x"}"#),
            refused(
                "File must be a Jupyter notebook (.ipynb file). For editing other file types, use the FileEdit tool."
            )
        );
        fixture.put("unread.ipynb", NOTEBOOK);
        assert_eq!(
            fixture.text(
                "NotebookEdit",
                r#"{"notebook_path": "unread.ipynb", "cell_id": "c1", "new_source": "x"}"#
            ),
            refused("File has not been read yet. Read it first before writing to it.")
        );
        assert!(fixture.observed.paths().is_empty());
    }
}
