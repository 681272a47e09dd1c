//! JSON of `export` and `resume --print`.

use std::collections::BTreeMap;

use serde::Serialize;

/// A session that was exported to a file.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct ExportObject<'a> {
    pub session: &'a str,
    pub format: &'a str,
    pub path: String,
    pub size_bytes: u64,
    pub replaced: Option<ReplacedObject>,
}

/// The replacements in a masked export.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct ReplacedObject {
    pub secrets: BTreeMap<String, u64>,
    pub paths: u64,
    pub names: u64,
}

/// The pages of all sessions in a folder.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct ExportAllObject {
    pub path: String,
    pub sessions: u64,
    pub written: u64,
}

/// The command that resumes a session.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct ResumeObject<'a> {
    pub session: &'a str,
    pub cwd: Option<&'a str>,
    pub command: &'a str,
}
