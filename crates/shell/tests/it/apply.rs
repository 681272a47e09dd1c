//! Applies effects to files in memory: a model of what a caller does.

use std::collections::BTreeMap;

use threadline_shell::{CommandEffects, OtherChanges, ShellEffect, TextPart};

/// Files by absolute path. `None` if the text is not known.
pub(crate) type Files = BTreeMap<String, Option<String>>;

/// Applies the steps of a command that succeeded. Returns whether all files that are not named otherwise
/// are known.
pub(crate) fn apply(effects: &CommandEffects, files: &mut Files, folders: &[String]) {
    for step in &effects.steps {
        apply_step(&step.effect, files, folders);
    }
    match &effects.other_changes {
        OtherChanges::None => {}
        OtherChanges::Named(names) => {
            for name in names {
                files.insert(name.clone(), None);
            }
        }
        OtherChanges::Any(_) => panic!("any file: {effects:?}"),
    }
}

fn target(to: &str, from: &str, may_be_folder: bool, folders: &[String]) -> String {
    let name = from.rsplit('/').next().unwrap();
    match may_be_folder && folders.iter().any(|folder| folder == to) {
        true => format!("{to}/{name}"),
        false => to.to_owned(),
    }
}

fn apply_step(effect: &ShellEffect, files: &mut Files, folders: &[String]) {
    match effect {
        ShellEffect::Write { path, text } => {
            files.insert(path.clone(), Some(text.clone()));
        }
        ShellEffect::Append { path, text } => {
            let old = files.entry(path.clone()).or_insert_with(|| Some(String::new()));
            if let Some(old) = old {
                old.push_str(text);
            }
        }
        ShellEffect::Compose { path, parts, is_append } => {
            let mut text =
                if *is_append { files.get(path).cloned().unwrap_or_default() } else { Some(String::new()) };
            for part in parts {
                let part = match part {
                    TextPart::Text(text) => Some(text.clone()),
                    TextPart::File(path) => files.get(path).cloned().expect("a file that is read exists"),
                };
                text = text.zip(part).map(|(text, part)| text + &part);
            }
            files.insert(path.clone(), text);
        }
        ShellEffect::Remove { path, is_recursive } => {
            files.remove(path);
            if *is_recursive {
                files.retain(|file, _| !file.starts_with(&format!("{path}/")));
            }
        }
        ShellEffect::Copy { from, to, may_be_folder, is_recursive } => {
            let to = target(to, from, *may_be_folder, folders);
            if let Some(text) = files.get(from).cloned() {
                files.insert(to, text);
            } else if *is_recursive {
                for (path, text) in files.clone() {
                    if let Some(rest) = path.strip_prefix(&format!("{from}/")) {
                        files.insert(format!("{to}/{rest}"), text);
                    }
                }
            }
        }
        ShellEffect::Move { from, to, may_be_folder } => {
            let to = target(to, from, *may_be_folder, folders);
            if let Some(text) = files.remove(from) {
                files.insert(to, text);
            } else {
                for (path, text) in files.clone() {
                    if let Some(rest) = path.strip_prefix(&format!("{from}/")) {
                        files.remove(&path);
                        files.insert(format!("{to}/{rest}"), text);
                    }
                }
            }
        }
        ShellEffect::HardLink { path, from, may_be_folder } => {
            let text = files.get(from).cloned().unwrap();
            files.insert(target(path, from, *may_be_folder, folders), text);
        }
        ShellEffect::Touch { path } => {
            files.entry(path.clone()).or_insert_with(|| Some(String::new()));
        }
        ShellEffect::Truncate { path, length } => {
            let length = usize::try_from(*length).unwrap();
            let text = files.entry(path.clone()).or_insert_with(|| Some(String::new()));
            if let Some(text) = text {
                text.truncate(length);
                text.extend(std::iter::repeat_n('\0', length - text.len()));
            }
        }
        ShellEffect::Substitute { path, script } => {
            let text = files.get(path).cloned().expect("the file exists");
            files.insert(path.clone(), text.and_then(|text| script.apply(&text)));
        }
        ShellEffect::Change { path } => {
            files.insert(path.clone(), None);
        }
        ShellEffect::Link { .. } | ShellEffect::Patch { .. } | ShellEffect::Git { .. } => {
            panic!("not part of the model: {effect:?}");
        }
    }
}
