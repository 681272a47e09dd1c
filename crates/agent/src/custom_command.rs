//! Slash commands and skills that the user and the project define in Markdown files.

use std::path::{Path, PathBuf};

use crate::definition_file::{read_text, read_text_inside};
use crate::front_matter::FrontMatter;

/// The largest number of commands and skills.
const MAX_COMMANDS: usize = 1000;
/// The maximum depth of nested command folders.
const MAX_DEPTH: usize = 4;

/// A slash command or a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomCommand {
    /// The name without the slash; `folder:name` for a command in a folder.
    pub name: String,
    /// The description, or the first line of the text.
    pub description: String,
    /// The folder of a skill.
    pub skill_dir: Option<PathBuf>,
    /// The model that answers it.
    pub model: Option<String>,
    /// Rules for calls that are allowed while it runs.
    pub allowed_tools: Vec<String>,
    /// Whether the model may use it by itself.
    pub is_for_model: bool,
    body: String,
}

impl CustomCommand {
    /// Reads the commands and skills of the user and of a project. Those of the project come first, and hide
    /// those of the user with the same name. Those of a project that is not trusted allow no calls.
    pub fn read_all(claude_home: &Path, cwd: &Path, is_trusted: bool) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        let read_project = |path: &Path| read_text_inside(path, cwd);
        let sources: [(_, _, ReadText<'_>); 2] =
            [(cwd.join(".claude"), is_trusted, &read_project), (claude_home.to_owned(), true, &read_text)];
        for (folder, is_trusted, read) in sources {
            let mut commands = Vec::new();
            read_skills(&folder.join("skills"), read, &mut commands);
            read_commands(&folder.join("commands"), "", 0, read, &mut commands);
            for mut command in commands {
                if !is_trusted {
                    command.allowed_tools.clear();
                }
                if found.len() < MAX_COMMANDS && found.iter().all(|known| known.name != command.name) {
                    found.push(command);
                }
            }
        }
        found
    }

    /// Returns a command for a prompt of an MCP server.
    pub(crate) fn of_server(name: String, description: String) -> Self {
        Self {
            name,
            description,
            skill_dir: None,
            model: None,
            allowed_tools: Vec::new(),
            is_for_model: false,
            body: String::new(),
        }
    }

    fn parse(name: String, text: &str, skill_dir: Option<PathBuf>) -> Self {
        let (front_matter, body) = FrontMatter::split(text);
        let first_line = body.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
        Self {
            name,
            description: front_matter.text("description").unwrap_or(first_line).to_owned(),
            skill_dir,
            model: front_matter.text("model").filter(|model| *model != "inherit").map(str::to_owned),
            allowed_tools: front_matter.list("allowed-tools"),
            is_for_model: front_matter.text("disable-model-invocation") != Some("true"),
            body: body.to_owned(),
        }
    }

    /// Returns the text for the model.
    pub(crate) fn expand(&self, arguments: &str, session_id: &str) -> String {
        let words = split_words(arguments);
        let (mut text, has_placeholder) = replace_arguments(&self.body, arguments, &words);
        if !has_placeholder && !arguments.is_empty() {
            text.push_str(&format!("\n\nARGUMENTS: {arguments}"));
        }
        let text = text.replace("${CLAUDE_SESSION_ID}", session_id);
        match &self.skill_dir {
            Some(dir) => {
                let dir = dir.to_string_lossy();
                let text = text.replace("${CLAUDE_SKILL_DIR}", &dir);
                format!("Base directory for this skill: {dir}\n\n{text}")
            }
            None => text,
        }
    }
}

/// Reads a file if it may be read.
type ReadText<'a> = &'a dyn Fn(&Path) -> Option<String>;

fn read_skills(folder: &Path, read: ReadText<'_>, found: &mut Vec<CustomCommand>) {
    for path in sorted_entries(folder) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let Some(text) = read(&path.join("SKILL.md")) else { continue };
        found.push(CustomCommand::parse(name.to_owned(), &text, Some(path.clone())));
    }
}

fn read_commands(
    folder: &Path,
    prefix: &str,
    depth: usize,
    read: ReadText<'_>,
    found: &mut Vec<CustomCommand>,
) {
    for path in sorted_entries(folder) {
        let Some(stem) = path.file_stem().and_then(|name| name.to_str()) else { continue };
        if path.is_dir() && !path.is_symlink() && depth < MAX_DEPTH {
            read_commands(&path, &format!("{prefix}{stem}:"), depth + 1, read, found);
        } else if path.extension().is_some_and(|extension| extension == "md")
            && let Some(text) = read(&path)
        {
            found.push(CustomCommand::parse(format!("{prefix}{stem}"), &text, None));
        }
    }
}

fn sorted_entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Splits arguments at white space outside of quotes.
fn split_words(arguments: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for ch in arguments.chars() {
        match quote {
            Some(end) if ch == end => quote = None,
            Some(_) => word.get_or_insert_default().push(ch),
            None if matches!(ch, '"' | '\'') => {
                quote = Some(ch);
                word.get_or_insert_default();
            }
            None if ch.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(ch),
        }
    }
    words.extend(word);
    words
}

/// Replaces `$ARGUMENTS`, `$ARGUMENTS[0]` and `$0`. Returns whether there was one of them.
fn replace_arguments(body: &str, arguments: &str, words: &[String]) -> (String, bool) {
    let mut text = String::with_capacity(body.len());
    let mut has_placeholder = false;
    let mut rest = body;
    while let Some(start) = rest.find('$') {
        text.push_str(&rest[..start]);
        let after = &rest[start + 1..];
        let (value, length) = match after.strip_prefix("ARGUMENTS") {
            Some(more) => match index(more) {
                Some((i, length)) => (word(words, i), "ARGUMENTS".len() + length),
                None => (arguments, "ARGUMENTS".len()),
            },
            None => match digits(after) {
                "" => ("$", 0),
                number => (word(words, number), number.len()),
            },
        };
        has_placeholder |= length > 0;
        text.push_str(value);
        rest = &after[length..];
    }
    text.push_str(rest);
    (text, has_placeholder)
}

/// Parses `[0]`. Returns the number and the length.
fn index(text: &str) -> Option<(&str, usize)> {
    let number = digits(text.strip_prefix('[')?);
    let is_closed = text[1 + number.len()..].starts_with(']');
    (is_closed && !number.is_empty()).then_some((number, number.len() + 2))
}

fn digits(text: &str) -> &str {
    let end = text.find(|ch: char| !ch.is_ascii_digit()).unwrap_or(text.len());
    &text[..end]
}

fn word<'a>(words: &'a [String], number: &str) -> &'a str {
    number.parse().ok().and_then(|i: usize| words.get(i)).map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(body: &str, arguments: &str) -> String {
        CustomCommand::parse("c".to_owned(), body, None).expand(arguments, "s1")
    }

    #[test]
    fn arguments_replace_their_placeholders() {
        let body =
            "---\ndescription: D\n---\nAll $ARGUMENTS, first $0, second $1, $ARGUMENTS[0], $9, $5.00, $x";
        assert_eq!(expand(body, "x \"y z\""), "All x \"y z\", first x, second y z, x, , .00, $x");
        assert_eq!(expand("Plain.\n", "a b"), "Plain.\n\n\nARGUMENTS: a b");
        assert_eq!(expand("Plain.\n", ""), "Plain.\n");
        assert_eq!(expand("${CLAUDE_SESSION_ID}", ""), "s1");
    }

    #[test]
    fn commands_and_skills_are_found_and_the_project_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("project/.claude/commands/a.md", "From the project");
        write("project/.claude/commands/sub/b.md", "---\ndescription: 'B: it'\nmodel: haiku\n---\nB");
        write("project/.claude/skills/knots/SKILL.md", "---\ndisable-model-invocation: true\n---\nTie");
        write("home/commands/a.md", "From the user");
        write("home/commands/u.md", "---\nallowed-tools: Read, Bash(git status:*)\n---\nU");
        let found = CustomCommand::read_all(&dir.path().join("home"), &dir.path().join("project"), true);
        let names: Vec<&str> = found.iter().map(|command| command.name.as_str()).collect();
        assert_eq!(names, ["knots", "a", "sub:b", "u"]);
        assert_eq!(found[1].description, "From the project");
        assert_eq!((found[2].description.as_str(), found[2].model.as_deref()), ("B: it", Some("haiku")));
        assert!(!found[0].is_for_model && found[1].is_for_model);
        assert_eq!(found[3].allowed_tools, ["Read", "Bash(git status:*)"]);
        let text = found[0].expand("", "s");
        assert!(
            text.starts_with("Base directory for this skill: ") && text.ends_with("/knots\n\nTie"),
            "{text}"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_skill_of_a_project_is_not_a_link_out_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let (home, project) = (dir.path().join("home"), dir.path().join("project"));
        std::fs::create_dir_all(project.join(".claude/skills/leak")).unwrap();
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(home.join("secret"), "private").unwrap();
        std::os::unix::fs::symlink(home.join("secret"), project.join(".claude/skills/leak/SKILL.md"))
            .unwrap();
        assert_eq!(CustomCommand::read_all(&home, &project, true), Vec::new());
    }
}
