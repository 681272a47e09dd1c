//! The folder for temporary files, which is in a folder that every user can write to.

use std::path::Path;

/// Creates the folder if it is missing. Returns whether no other user can write to it.
///
/// If another user creates the folder first, that user can replace files in it. A folder that cannot be
/// created at all counts as private: the tools that need it report that.
pub(crate) fn is_private(folder: &Path) -> bool {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    let created = builder.create(folder);
    match fs_err::symlink_metadata(folder) {
        Ok(metadata) => metadata.is_dir() && is_own(&metadata),
        Err(_) => created.is_err(),
    }
}

#[cfg(unix)]
fn is_own(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    let is_writable_by_others = metadata.mode() & 0o022 != 0;
    metadata.uid() == rustix::process::getuid().as_raw() && !is_writable_by_others
}

#[cfg(not(unix))]
fn is_own(_: &std::fs::Metadata) -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_that_others_control_is_not_private() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("a/b");
        assert!(is_private(&own));
        assert_eq!(own.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&own, &link).unwrap();
        assert!(!is_private(&link), "a link");
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(!is_private(&own), "writable by all");
        // Owned by root, unless the test runs as root.
        assert_eq!(is_private(Path::new("/usr")), rustix::process::getuid().is_root());
    }
}
