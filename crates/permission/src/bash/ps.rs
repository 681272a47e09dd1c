//! `ps`, which prints the environment of processes, and with it keys, if it is asked to.

/// Flags in a group with a dash.
const FLAGS: &str = "AadFfHLlMNTwyZjcm";
/// Flags in a group without a dash.
const BSD_FLAGS: &str = "auxwfjlrTSvcm";

/// Returns whether no option prints the environment.
///
/// With a dash, `e` selects all processes. Without one it prints the environment, and `ps` reads all its
/// words as if they had no dash if one of them is not valid. So `-e` is known only beside options that are
/// valid.
pub(super) fn prints_no_environment(words: &[&str]) -> bool {
    let has_e =
        words.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('e'));
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let is_known = if let Some(option) = word.strip_prefix("--") {
            is_long_option(option)
        } else {
            let (group, flags) = match word.strip_prefix('-') {
                Some(group) if has_e => (group, "efFlwLHA"),
                Some(group) => (group, FLAGS),
                None if has_e => return false,
                None => (*word, BSD_FLAGS),
            };
            // The last letter of a group can have a value in the next word.
            let (group, value) = match group.chars().last() {
                Some(last @ ('o' | 'p')) => (&group[..group.len() - 1], Some(last)),
                _ => (group, None),
            };
            let is_value = match value {
                None => !group.is_empty(),
                Some('o') => words.next().is_some_and(|format| is_format(format)),
                Some(_) => words.next().is_some_and(|ids| is_id_list(ids)),
            };
            is_value && group.chars().all(|letter| flags.contains(letter))
        };
        if !is_known {
            return false;
        }
    }
    true
}

fn is_long_option(option: &str) -> bool {
    match option.split_once('=') {
        Some(("sort", keys)) => keys.chars().all(|ch| ch.is_ascii_lowercase() || "+-,_%".contains(ch)),
        Some(("pid" | "ppid", ids)) => is_id_list(ids),
        Some(_) => false,
        None => ["forest", "no-headers", "no-heading", "version"].contains(&option),
    }
}

/// Whether a format consists of the names of columns, none of which is the environment.
fn is_format(format: &str) -> bool {
    let is_name = |ch: char| ch.is_ascii_lowercase() || ch.is_ascii_digit() || "%_=:,".contains(ch);
    !format.is_empty() && format.chars().all(is_name) && !format.contains("env")
}

fn is_id_list(ids: &str) -> bool {
    !ids.is_empty() && ids.bytes().all(|byte| byte.is_ascii_digit() || byte == b',')
}
