//! Lookup of sessions by name or id.

use threadline_store::SessionFile;
use threadline_view::AnchorParts;

use crate::config::App;
use crate::error::AppError;

impl App {
    /// Finds a session by `last`, a path, an id, a unique prefix of an id, a title, or a unique part of one.
    ///
    /// # Errors
    ///
    /// If none matches or several do; [`AppError::hints`] lists the nearest.
    pub fn find(&self, needle: &str) -> Result<SessionFile, AppError> {
        Ok(self.store().find(needle)?)
    }

    /// Finds a session that is to be changed: like [`App::find`], but not by a part of its title.
    ///
    /// # Errors
    ///
    /// Those of [`App::find`].
    pub fn find_to_change(&self, needle: &str) -> Result<SessionFile, AppError> {
        Ok(self.store().find_to_change(needle)?)
    }

    /// Finds a session like [`App::find`], but not by path. For untrusted text, such as that in URLs: it is
    /// never used as a path.
    ///
    /// # Errors
    ///
    /// Those of [`App::find`].
    pub fn find_named(&self, needle: &str) -> Result<SessionFile, AppError> {
        Ok(self.store().find_named(needle)?)
    }

    /// Finds the session with exactly this id; of several files, the newest. For untrusted ids, such as those
    /// in URLs.
    ///
    /// # Errors
    ///
    /// [`AppError::NoSession`].
    pub fn session(&self, id: &str) -> Result<SessionFile, AppError> {
        self.store().session(id).ok_or_else(|| AppError::NoSession { id: id.to_owned() })
    }
}

/// Splits the name of an item, such as `SESSION#m42` or `SESSION#a-AGENT-m42`, into the name of the session
/// and the anchor. A title may contain `#`, so that other texts are not split.
pub fn split_anchor(name: &str) -> (&str, Option<&str>) {
    match name.rsplit_once('#') {
        Some((session, anchor)) if AnchorParts::parse(anchor).is_some() => (session, Some(anchor)),
        _ => (name, None),
    }
}

#[cfg(test)]
mod tests {
    use super::split_anchor;

    #[test]
    fn only_anchors_are_split_from_names() {
        assert_eq!(split_anchor("3f2a#m42"), ("3f2a", Some("m42")));
        assert_eq!(split_anchor("fix #12#m42.2"), ("fix #12", Some("m42.2")));
        assert_eq!(split_anchor("3f2a#a-x1-m4"), ("3f2a", Some("a-x1-m4")));
        for name in ["last", "issue #12", "fix #main", "#m4x"] {
            assert_eq!(split_anchor(name), (name, None));
        }
    }
}
