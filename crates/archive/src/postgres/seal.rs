//! Completes files that other programs have appended lines to, such as a `SessionStore` of the Agent SDK.
//!
//! Such a program adds rows to `lines`, and leaves the digest of the file empty. The rows are then read once,
//! and everything else is derived from them.

use sha2::{Digest, Sha256};
use threadline_entry::AgentKind;
use threadline_usage::LogSource;

use crate::digest::hex_digits;
use crate::error::ArchiveError;
use crate::postgres::connection::{DatabaseResult as _, PostgresArchive};
use crate::postgres::file_copier::{Content, FileCopier, HashReader, delete_rows};
use crate::postgres::stored_file::{COLUMNS, StoredFile};

impl PostgresArchive {
    /// Completes all files that have no digest.
    pub(super) fn seal(&self) -> Result<(), ArchiveError> {
        let unsealed = "select id from threadline.files where digest = '' order by id";
        for row in self.run(|client| client.query(unsealed, &[]).action("read"))? {
            self.seal_file(row.get(0))?;
        }
        Ok(())
    }

    fn seal_file(&self, id: i64) -> Result<(), ArchiveError> {
        self.run(|client| {
            let mut transaction = client.transaction().action("write to")?;
            let select =
                format!("select {COLUMNS} from threadline.files where id = $1 and digest = '' for update");
            // Another process may have done it.
            let Some(row) = transaction.query_opt(&select, &[&id]).action("read")? else { return Ok(()) };
            let known = StoredFile::of(&row)?;
            let lines = "select content from threadline.lines where file = $1 order by at";
            let mut content = Vec::new();
            for row in transaction.query(lines, &[&id]).action("read")? {
                content.extend(row.get::<_, &[u8]>(0));
            }
            let delete = "delete from threadline.lines where file = $1";
            transaction.execute(delete, &[&id]).action("write to")?;
            delete_rows(&mut transaction, &[id], false)?;
            let mut file = StoredFile::new(id, known.home, &known.name, known.version, known.level);
            file.modified = known.modified;
            let content = Content::Bytes(content);
            let mut hash = Sha256::new();
            let mut copier = FileCopier::new(&mut transaction, known.home)?;
            let reader = HashReader { reader: content.open()?, hash: &mut hash, progress: None };
            copier.content(&mut file, Vec::new(), &content, log_source(&known.name), reader)?;
            file.digest = hex_digits(hash);
            copier.rows.push(file);
            let ids = copier.finish()?;
            transaction.commit().action("write to")?;
            client.execute("select threadline.mark_shared($1)", &[&ids]).action("write to")?;
            Ok(())
        })
    }
}

/// Returns the source of a log by its name below the home; `None` if it is not a log.
fn log_source(name: &str) -> Option<LogSource> {
    let (folder, rest) = name.strip_prefix("projects/")?.split_once('/')?;
    let log = rest.rsplit('/').next()?.strip_suffix(".jsonl")?;
    let agent = log.strip_prefix("agent-").map(|id| (id.to_owned(), AgentKind::of(id, false)));
    let session = threadline_store::session_of_file(name).map(|id| id.to_string());
    Some(LogSource { path: name.to_owned(), session, folder: Some(folder.to_owned()), agent })
}
