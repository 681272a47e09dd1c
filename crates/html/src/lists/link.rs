//! Links: a path and what it asks for, written so that any text survives.

use std::fmt::Write;

/// A link to `path` that asks for `pairs`.
pub fn href<'p>(path: &str, pairs: impl IntoIterator<Item = (&'p str, &'p str)>) -> String {
    let mut link = path.to_owned();
    for (n, (key, value)) in pairs.into_iter().enumerate() {
        link.push(if n == 0 { '?' } else { '&' });
        link.push_str(key);
        link.push('=');
        encode(value, &mut link);
    }
    link
}

/// Adds text as a part of a link: all but letters, digits and a few marks becomes `%xx`.
pub(crate) fn encode(text: &str, link: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                link.push(char::from(byte));
            }
            _ => {
                let _ = write!(link, "%{byte:02X}");
            }
        }
    }
}

/// The link to a session.
pub(crate) fn session(id: &str) -> String {
    let mut link = "/s/".to_owned();
    // A slash of an id would part the path.
    for part in id.split_inclusive('/') {
        encode(part.trim_end_matches('/'), &mut link);
        link.push_str(if part.ends_with('/') { "%2F" } else { "" });
    }
    link
}

/// What a project is called for short: the last part of its directory.
pub fn project_name(project: &str) -> &str {
    let name = project.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or(project);
    if name.is_empty() { project } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_survives_in_a_link() {
        let link = href("/", [("project", "/home/ada/my loom"), ("tool", "a&b=\"<织>")]);
        assert_eq!(link, "/?project=/home/ada/my%20loom&tool=a%26b%3D%22%3C%E7%BB%87%3E");
        assert_eq!(href("/usage", []), "/usage");
        assert_eq!(session("../x?y#z"), "/s/..%2Fx%3Fy%23z");
    }

    #[test]
    fn projects_have_short_names() {
        assert_eq!(project_name("/home/ada/loom/"), "loom");
        assert_eq!(project_name(r"C:\Users\Ada\loom-site"), "loom-site");
        assert_eq!([project_name("/"), project_name(""), project_name("-home-ada")], ["/", "", "-home-ada"]);
    }
}
