//! Files that the screen writes for the person.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use threadline_store::{FileUpdate, update_file};

/// Returns the file to which a write to `file` goes, with links resolved. The folder must exist.
///
/// # Errors
///
/// If a link leads out of all `roots`, where the person may not expect the file, or to nothing.
pub(super) fn resolve_inside(file: &Path, roots: &[&Path]) -> io::Result<PathBuf> {
    let target = match std::fs::symlink_metadata(file) {
        Ok(_) => file.canonicalize()?,
        Err(_) => {
            let folder = file.parent().unwrap_or(Path::new(".")).canonicalize()?;
            folder.join(file.file_name().unwrap_or_default())
        }
    };
    let is_inside = |root: &&Path| root.canonicalize().is_ok_and(|root| target.starts_with(root));
    if roots.iter().any(is_inside) {
        return Ok(target);
    }
    Err(io::Error::other(format!("a link leads to {}, outside of the project", target.display())))
}

/// Creates a file that only its owner may read. An existing file is an error, and stays.
pub(super) fn create_file(file: &Path, text: &str) -> io::Result<()> {
    let mut new = tempfile::NamedTempFile::new_in(file.parent().unwrap_or(Path::new(".")))?;
    new.write_all(text.as_bytes())?;
    new.persist_noclobber(file).map(drop).map_err(|error| error.error)
}

/// Changes the text of a file at once, so that a crash leaves the old or the new one. `change` gets the text,
/// `None` if there is no file, and returns the new one, `None` to leave it. If another program saves the file
/// meanwhile, `change` is called again with its text.
pub(super) fn update_text(
    file: &Path,
    mut change: impl FnMut(Option<&str>) -> Result<Option<String>, String>,
) -> Result<(), String> {
    let changed = update_file(file, |content| {
        let text = content.map(std::str::from_utf8).transpose();
        let not_utf8 = |_| UpdateError::Change(format!("cannot read {}: it is not UTF-8", file.display()));
        let new = change(text.map_err(not_utf8)?).map_err(UpdateError::Change)?;
        Ok(new.map_or(FileUpdate::Keep, |new| FileUpdate::Write(new.into_bytes())))
    });
    changed.map_err(|error| match error {
        UpdateError::Change(message) => message,
        UpdateError::Io(error) => format!("cannot write {}: {error}", file.display()),
    })
}

/// Why a text could not be changed.
enum UpdateError {
    Change(String),
    Io(io::Error),
}

impl From<io::Error> for UpdateError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_inside_of_the_roots_only() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().canonicalize().unwrap().join(name);
        for folder in ["project/.claude", "project/docs", "outside"] {
            std::fs::create_dir_all(path(folder)).unwrap();
        }
        std::fs::write(path("project/docs/CLAUDE.md"), "").unwrap();
        std::fs::write(path("outside/notes"), "").unwrap();
        std::os::unix::fs::symlink("docs/CLAUDE.md", path("project/CLAUDE.md")).unwrap();
        std::os::unix::fs::symlink(path("outside/notes"), path("project/evil")).unwrap();
        std::os::unix::fs::symlink(path("outside"), path("project/dir")).unwrap();
        std::os::unix::fs::symlink("nowhere", path("project/dangling")).unwrap();
        let project = path("project");
        let resolve = |name: &str| resolve_inside(&project.join(name), &[&project]);
        assert_eq!(resolve("new").unwrap(), path("project/new"));
        assert_eq!(resolve("CLAUDE.md").unwrap(), path("project/docs/CLAUDE.md"));
        for name in ["evil", "dir/new", "dangling"] {
            assert!(resolve(name).is_err(), "{name}");
        }
        assert!(resolve_inside(&path("project/evil"), &[&project, &path("outside")]).is_ok());
    }
}
