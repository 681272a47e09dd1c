//! Links: a path and what it asks for, written so that any text survives.

use std::collections::HashMap;
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
    last_parts(project, 1)
}

/// What projects that stand in one list are called: each by the fewest last parts of its directory that no other ends
/// with.
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
            // A project whose whole path is the end of another's has no longer name.
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

/// The last so many parts of a path, or all of it.
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
    fn projects_of_one_name_are_told_apart() {
        let paths =
            ["/a/warp/cli", "/b/warp/cli", "/b/play/cli", r"D:\warp\cli", "/loom", "loom", "/cli/.trees/2"];
        let names = project_names(paths.into_iter());
        assert_eq!(
            paths.map(|path| names[path]),
            ["a/warp/cli", "b/warp/cli", "play/cli", r"warp\cli", "/loom", "loom", "2"]
        );
    }
}
