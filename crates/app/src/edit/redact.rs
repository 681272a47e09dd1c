//! Replaces secrets with placeholders, in the log and in all side files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use threadline_edit::{ContentDigest, MaskedSecret, PlanTarget, Redactor, SideFileOp};
use threadline_entry::{Code, Finding, Position};
use threadline_secret::{KnownSecrets, Rules};
use threadline_store::{Operation, SessionFile};

use super::side_files::{has_json_lines, is_file, own_files, read, shared_files};
use super::{EditError, EditSession, EditTarget, NothingToDo, PlannedEdit};
use crate::config::App;
use crate::error::AppError;

/// A secret, and the file that it was found in.
#[derive(Clone, Debug)]
pub struct SecretHit {
    /// The file, which all of its secrets share.
    pub path: Arc<Path>,
    /// The secret, masked.
    pub hit: MaskedSecret,
}

impl SecretHit {
    /// The secret as a finding. It names no line if `log` is another file.
    fn finding_in(&self, log: &Path) -> Finding {
        self.to_finding(self.hit.at.filter(|_| *self.path == *log))
    }

    /// The secret as a finding about its file.
    pub fn finding(&self) -> Finding {
        self.to_finding(self.hit.at)
    }

    fn to_finding(&self, at: Option<Position>) -> Finding {
        let hit = &self.hit;
        let key = if hit.key.is_empty() { String::new() } else { format!(" in `{}`", hit.key) };
        let message = format!("{}: {}{key}, {}", hit.description, hit.masked, hit.placeholder);
        let mut finding = Finding::new(Code::Secret, at.unwrap_or(Position::START), message);
        finding.at = at;
        finding
    }
}

/// A planned redaction.
#[derive(Debug)]
pub struct Redaction<'s> {
    /// The plan.
    pub edit: PlannedEdit<'s>,
    /// The secrets that it replaces.
    pub hits: Vec<SecretHit>,
    /// The same, to find them in other texts.
    pub known: Option<KnownSecrets>,
}

impl EditSession {
    /// Plans the session with placeholders for its secrets. With `report_findings` the plan lists them as
    /// findings.
    ///
    /// In place, the prompt history of the home (`history.jsonl`) is redacted, too.
    ///
    /// # Errors
    ///
    /// [`NothingToDo::NoSecrets`] if there are none, and errors of reading side files.
    pub fn redact(
        &self,
        rules: &Rules,
        target: EditTarget,
        report_findings: bool,
    ) -> Result<Redaction<'_>, EditError> {
        let mut redactor = Redactor::new(rules);
        let mut hits: Vec<SecretHit> = Vec::new();
        let mut add = |path: &Path, found: Vec<MaskedSecret>| {
            let path: Arc<Path> = path.into();
            hits.extend(found.into_iter().map(|hit| SecretHit { path: Arc::clone(&path), hit }));
        };
        add(&self.file.path, redactor.learn(&self.session));
        let own = sorted_own_files(&self.file)?;
        for path in &own {
            add(path, learn(&mut redactor, path)?);
        }
        if hits.is_empty() {
            return Err(NothingToDo::NoSecrets.into());
        }
        redactor.finish_learning();
        let mut draft = self.draft();
        redactor.redact(&mut draft);
        let target = target.plan_target();
        self.copy_side_files(&mut draft, &target)?;
        if let PlanTarget::New(_) = &target {
            for file in draft.side_files_mut() {
                redact_copy(&mut redactor, file)?;
            }
        } else {
            let change = |path: PathBuf, old: &[u8], content| SideFileOp::Change {
                path,
                read: ContentDigest::of(old),
                content,
            };
            for path in own {
                let old = read(&path)?;
                let clean = if has_json_lines(&path) {
                    redactor.redact_log(&old)
                } else {
                    redactor.redact_file(&old)
                };
                if let Some(clean) = clean {
                    draft.add_side_file(change(path, &old, clean));
                }
            }
            // Shared files are cleaned of this session's secrets, and of its own prompts.
            for path in shared_files(&self.file)? {
                let old = read(&path)?;
                if let Some(clean) = redactor.redact_shared(&old, &self.file.id, has_json_lines(&path)) {
                    draft.add_side_file(change(path, &old, clean));
                }
            }
        }
        if report_findings {
            for hit in &hits {
                draft.finding(hit.finding_in(&self.file.path));
            }
        }
        let known = redactor.into_known();
        Ok(Redaction { edit: self.plan(Operation::Redact, draft, target), hits, known })
    }
}

/// The secrets of several sessions.
#[derive(Debug, Default)]
pub struct SecretReport {
    /// The secrets, ordered by session and file.
    pub hits: Vec<SecretHit>,
    /// Files that could not be read.
    pub unread: Vec<AppError>,
}

impl App {
    /// Searches sessions and their side files for secrets, on all cores. Unchanged files are not searched
    /// again.
    pub fn find_secrets(&self, sessions: Vec<SessionFile>, rules: &Rules) -> SecretReport {
        let find = |file: SessionFile| self.find_secrets_of(&file, rules);
        let reports: Vec<SecretReport> = sessions.into_par_iter().map(find).collect();
        let mut all = SecretReport::default();
        for report in reports {
            all.hits.extend(report.hits);
            all.unread.extend(report.unread);
        }
        all
    }

    fn find_secrets_of(&self, file: &SessionFile, rules: &Rules) -> SecretReport {
        let mut report = SecretReport::default();
        let mut redactor = Redactor::new(rules);
        let mut lines = self.config().mask.finder().lines(rules, &file.path);
        let own = sorted_own_files(file).unwrap_or_else(|error| {
            report.unread.push(error);
            Vec::new()
        });
        for path in std::iter::once(file.path.clone()).chain(own) {
            match lines.learn_file(&mut redactor, &path, has_json_lines(&path)) {
                Ok(hits) => {
                    let path: Arc<Path> = path.into();
                    let hits = hits.into_iter().map(|hit| SecretHit { path: Arc::clone(&path), hit });
                    report.hits.extend(hits);
                }
                Err(error) => report.unread.push(AppError::read(&path)(error)),
            }
        }
        lines.save();
        report
    }
}

fn sorted_own_files(file: &SessionFile) -> Result<Vec<PathBuf>, AppError> {
    let mut files = own_files(file)?;
    // The target of a link may belong to something else.
    files.retain(|path| is_file(path));
    files.sort();
    files.dedup();
    Ok(files)
}

/// Lets the redactor learn the secrets of a file.
fn learn(redactor: &mut Redactor<'_>, path: &Path) -> Result<Vec<MaskedSecret>, EditError> {
    let content = read(path)?;
    Ok(if has_json_lines(path) { redactor.learn_log(&content) } else { redactor.learn_file(&content) })
}

/// Replaces the copy of a side file that has secrets with a redacted one.
fn redact_copy(redactor: &mut Redactor<'_>, file: &mut SideFileOp) -> Result<(), EditError> {
    let redacted = match file {
        SideFileOp::CopyLog { from, to } => redactor
            .redact_log(&read(from)?)
            .map(|content| SideFileOp::CreateLog { path: to.clone(), content }),
        SideFileOp::Copy { from, to } => {
            redactor.redact_file(&read(from)?).map(|content| SideFileOp::Create { path: to.clone(), content })
        }
        _ => None,
    };
    if let Some(redacted) = redacted {
        *file = redacted;
    }
    Ok(())
}
