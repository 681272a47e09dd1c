//! Links: a path and query parameters, percent-encoded.

use std::collections::HashMap;

use percent_encoding::{AsciiSet, PercentEncode, utf8_percent_encode};

use crate::text_format::{URL_TEXT, encode_url};

/// Returns a link to `path` with the query parameters `pairs`. Only the values are encoded.
pub fn href<'p>(path: &str, pairs: impl IntoIterator<Item = (&'p str, &'p str)>) -> String {
    let mut link = path.to_owned();
    for (n, (key, value)) in pairs.into_iter().enumerate() {
        link.push(if n == 0 { '?' } else { '&' });
        link.push_str(key);
        link.push('=');
        link.extend(encode(value));
    }
    link
}

/// Percent-encodes a value in a link. Slashes are kept.
pub(crate) fn encode(value: &str) -> PercentEncode<'_> {
    const ENCODED: &AsciiSet = &URL_TEXT.remove(b'/');
    utf8_percent_encode(value, ENCODED)
}

/// Returns the link to a session.
pub(crate) fn session(id: &str) -> String {
    format!("/s/{}", encode_url(id))
}

/// Returns the short name of a project: the last component of its directory.
pub fn project_name(project: &str) -> &str {
    last_parts(project, 1)
}

/// Returns unique short names for the projects of a list: for each the fewest last components of its
/// directory that no other project ends with.
pub(crate) fn project_names<'p>(projects: impl Iterator<Item = &'p str>) -> HashMap<&'p str, &'p str> {
    let mut named = HashMap::new();
    let mut unnamed: Vec<&str> = projects.collect();
    let mut parts = 1;
    while !unnamed.is_empty() {
        let mut by_name: HashMap<&str, Vec<&str>> = HashMap::new();
        for project in unnamed.drain(..) {
            by_name.entry(last_parts(project, parts)).or_default().push(project);
        }
        for (name, alike) in by_name {
            // A project that is, as a whole, a suffix of another has no longer name.
            if alike.len() == 1 {
                named.insert(alike[0], name);
            } else {
                let (whole, longer): (Vec<_>, Vec<_>) =
                    alike.into_iter().partition(|project| project.len() == name.len());
                named.extend(whole.into_iter().map(|project| (project, name)));
                unnamed.extend(longer);
            }
        }
        parts += 1;
    }
    named
}

/// Returns the last `parts` components of a path, or the whole path if it has fewer.
fn last_parts(path: &str, parts: usize) -> &str {
    let inner = path.trim_end_matches(['/', '\\']);
    let slash = inner.rmatch_indices(['/', '\\']).nth(parts - 1);
    slash.map_or(path, |(at, _)| &inner[at + 1..])
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

    #[test]
    fn projects_with_equal_names_get_longer_names() {
        let paths =
            ["/a/warp/cli", "/b/warp/cli", "/b/play/cli", r"D:\warp\cli", "/loom", "loom", "/cli/.trees/2"];
        let names = project_names(paths.into_iter());
        assert_eq!(
            paths.map(|path| names[path]),
            ["a/warp/cli", "b/warp/cli", "play/cli", r"warp\cli", "/loom", "loom", "2"]
        );
    }
}
