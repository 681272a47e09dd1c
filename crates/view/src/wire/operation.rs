//! JSON of `op`: receipts of applied edits; and of an `edit redact --check` without secrets.

use serde::Serialize;

/// The receipt of an operation.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct ReceiptObject<'a> {
    pub id: &'a str,
    pub operation: &'a str,
    pub state: &'a str,
    pub created_at: &'a str,
    pub source: &'a str,
    pub target: &'a str,
    pub summary: &'a str,
    pub command: &'a [String],
    pub files: Vec<ReceiptFileObject<'a>>,
    /// The files that an undo or a redo skipped.
    pub skipped: Vec<SkippedFileObject>,
}

/// A file of a receipt.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct ReceiptFileObject<'a> {
    pub path: String,
    pub target: Option<String>,
    pub action: &'a str,
    pub backup: Option<String>,
    pub bytes_before: Option<u64>,
    pub bytes_after: Option<u64>,
}

/// A file that an undo or a redo skipped.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct SkippedFileObject {
    pub path: String,
    pub reason: String,
}

/// The result of `edit redact --check` if there are no secrets.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct NoSecretsObject {
    pub sessions: u64,
    pub reason: &'static str,
}
