//! Permission rules: `Tool` or `Tool(specifier)`.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// What a rule does with the calls that it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleEffect {
    /// They run.
    Allow,
    /// They need an answer.
    Ask,
    /// They do not run.
    Deny,
}

impl RuleEffect {
    /// The name of the list in settings files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// The folders that paths in a rule are relative to.
#[derive(Clone, Copy, Debug)]
pub struct RuleSource<'a> {
    /// The folder for paths that begin with `/`: that of the settings file, or the working folder.
    pub base: &'a Path,
    /// The working folder, for relative paths.
    pub cwd: &'a Path,
    /// The home folder, for paths that begin with `~/`.
    pub home: Option<&'a Path>,
}

/// A parsed rule.
#[derive(Clone, Debug)]
pub struct PermissionRule {
    /// The rule as it was written.
    text: String,
    tool: String,
    specifier: Specifier,
    /// Whether the rule is removed at the end of the turn.
    is_temporary: bool,
}

#[derive(Clone, Debug)]
enum Specifier {
    /// Every call of the tool.
    Any,
    /// A shell command.
    Command(CommandPattern),
    /// A file.
    Path(PathPattern),
    /// The host of an address.
    Domain(String),
    /// Another text that must be equal, such as the type of an agent.
    Text(String),
}

/// A pattern of shell commands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum CommandPattern {
    Exact(String),
    /// The command itself, or followed by a space and anything.
    Prefix(String),
    /// Literal pieces with anything between them. `ends_open`: the pattern ends with ` *`, which also matches
    /// no arguments at all.
    Wildcard {
        pieces: Vec<String>,
        ends_open: bool,
    },
}

/// A pattern of paths in the syntax of `.gitignore`.
#[derive(Clone, Debug)]
struct PathPattern {
    root: PathBuf,
    line: String,
}

/// Tools whose specifiers are paths, and the tool by which rules name them.
const PATH_TOOLS: &[&str] = &["Read", "Edit"];

impl PermissionRule {
    /// Parses a rule. Returns `None` if it cannot match anything, for example because a parenthesis is
    /// missing.
    #[must_use]
    pub fn parse(text: &str, source: RuleSource<'_>) -> Option<Self> {
        let text = text.trim();
        let Some((tool, rest)) = text.split_once('(') else {
            return is_tool_name(text).then(|| Self::new(text, text, Specifier::Any));
        };
        let specifier = rest.strip_suffix(')')?;
        let tool = if tool == "Task" { "Agent" } else { tool };
        if !is_tool_name(tool) {
            return None;
        }
        let specifier = match specifier.trim() {
            "" | "*" => Specifier::Any,
            command if tool == "Bash" => Specifier::Command(CommandPattern::parse(command)),
            path if PATH_TOOLS.contains(&tool) => Specifier::Path(PathPattern::parse(path, source)?),
            domain if tool == "WebFetch" => {
                Specifier::Domain(domain.strip_prefix("domain:")?.trim().to_ascii_lowercase())
            }
            // Paths of these are not looked at; rules for them are `Read(…)` and `Edit(…)`.
            _ if ["Write", "MultiEdit", "NotebookEdit", "Glob", "Grep"].contains(&tool) => return None,
            text => Specifier::Text(text.to_owned()),
        };
        Some(Self::new(text, tool, specifier))
    }

    fn new(text: &str, tool: &str, specifier: Specifier) -> Self {
        Self { text: text.to_owned(), tool: tool.to_owned(), specifier, is_temporary: false }
    }

    /// Returns the rule as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether the rule is for every call of the tool. A rule for an MCP server (`mcp__server`,
    /// `mcp__server__*`) is for each of its tools.
    #[must_use]
    pub fn is_whole_tool(&self, tool: &str) -> bool {
        matches!(self.specifier, Specifier::Any) && self.names(tool)
    }

    fn names(&self, tool: &str) -> bool {
        if self.tool == tool || self.tool == "Task" && tool == "Agent" {
            return true;
        }
        let server = self.tool.strip_suffix("__*").unwrap_or(&self.tool);
        let is_server = server.starts_with("mcp__") && server.matches("__").count() == 1;
        is_server && tool.strip_prefix(server).is_some_and(|rest| rest.starts_with("__"))
    }

    /// Returns whether the rule names this tool and this text, such as the type of an agent.
    #[must_use]
    pub fn matches_text(&self, tool: &str, text: &str) -> bool {
        self.names(tool) && matches!(&self.specifier, Specifier::Text(own) if own == text)
    }

    /// Returns whether the rule names the host of an address.
    #[must_use]
    pub fn matches_host(&self, tool: &str, host: &str) -> bool {
        let Specifier::Domain(domain) = &self.specifier else { return false };
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.names(tool)
            && match domain.strip_prefix("*.") {
                Some(parent) => host.strip_suffix(parent).is_some_and(|rest| rest.ends_with('.')),
                None => *domain == host,
            }
    }

    pub(crate) fn matches_command(&self, command: &str) -> bool {
        self.tool == "Bash"
            && matches!(&self.specifier, Specifier::Command(pattern) if pattern.matches(command))
    }

    /// Whether the rule names one command exactly.
    pub(crate) fn is_exact_command(&self) -> bool {
        matches!(&self.specifier, Specifier::Command(CommandPattern::Exact(_)))
    }
}

fn is_tool_name(text: &str) -> bool {
    let is_name = |ch: char| ch.is_ascii_alphanumeric() || "_-*.".contains(ch);
    !text.is_empty() && text.chars().all(is_name) && (text.starts_with("mcp__") || !text.contains('*'))
}

impl CommandPattern {
    fn parse(text: &str) -> Self {
        if let Some(prefix) = text.strip_suffix(":*") {
            return Self::Prefix(prefix.trim_end().to_owned());
        }
        let mut pieces = vec![String::new()];
        let mut chars = text.chars().peekable();
        while let Some(ch) = chars.next() {
            match ch {
                '\\' if chars.peek().is_some_and(|next| "*\\".contains(*next)) => {
                    let next = chars.next().unwrap_or('\\');
                    pieces.last_mut().expect("there is a piece").push(next);
                }
                '*' => pieces.push(String::new()),
                ch => pieces.last_mut().expect("there is a piece").push(ch),
            }
        }
        if pieces.len() == 1 {
            return Self::Exact(pieces.remove(0));
        }
        let ends_open = pieces.len() == 2 && text.ends_with(" *");
        Self::Wildcard { pieces, ends_open }
    }

    fn matches(&self, command: &str) -> bool {
        match self {
            Self::Exact(text) => command == text,
            Self::Prefix(prefix) => command
                .strip_prefix(prefix.as_str())
                .is_some_and(|rest| prefix.is_empty() || rest.is_empty() || rest.starts_with(' ')),
            Self::Wildcard { pieces, ends_open } => {
                if *ends_open && command == pieces[0].trim_end() {
                    return true;
                }
                matches_pieces(pieces, command)
            }
        }
    }
}

fn matches_pieces(pieces: &[String], text: &str) -> bool {
    let (Some((first, rest)), true) = (pieces.split_first(), pieces.len() > 1) else { return false };
    let Some((last, middle)) = rest.split_last() else { return false };
    let Some(mut text) = text
        .strip_prefix(first.as_str())
        .and_then(|text| (text.len() >= last.len()).then(|| text.strip_suffix(last.as_str())).flatten())
    else {
        return false;
    };
    for piece in middle {
        match text.find(piece.as_str()) {
            Some(at) => text = &text[at + piece.len()..],
            None => return false,
        }
    }
    true
}

impl PathPattern {
    fn parse(text: &str, source: RuleSource<'_>) -> Option<Self> {
        let (root, pattern) = if let Some(rest) = text.strip_prefix("//") {
            (Path::new("/"), format!("/{rest}"))
        } else if text == "~" || text.starts_with("~/") {
            (source.home?, format!("/{}", text[1..].trim_start_matches('/')))
        } else if text.starts_with('/') {
            (source.base, text.to_owned())
        } else {
            let own = text.strip_prefix("./").unwrap_or(text);
            (source.cwd, own.to_owned())
        };
        // A folder and everything below it.
        let pattern = match pattern.strip_suffix("/**") {
            Some("") => "/*",
            Some(folder) => folder,
            None => &pattern,
        };
        // In a rule, `!` is not a negation and `#` is not a comment.
        let pattern =
            if pattern.starts_with(['!', '#']) { format!("\\{pattern}") } else { pattern.to_owned() };
        // A slash in the pattern, also one that was removed above, anchors it at the root.
        let is_anchored = pattern.contains('/') || text.ends_with("/**");
        let anchor = if is_anchored && !pattern.starts_with('/') { "/" } else { "" };
        let line = format!("{anchor}{pattern}");
        GitignoreBuilder::new(root).add_line(None, &line).ok()?;
        Some(Self { root: root.to_owned(), line })
    }
}

/// All path patterns of one tool and one root, as one matcher: each lookup costs the same however many there
/// are.
#[derive(Clone, Debug)]
struct PathMatcher {
    tool: String,
    root: PathBuf,
    matcher: Gitignore,
}

impl PathMatcher {
    fn new(tool: &str, root: &Path, lines: &[&str], effect: RuleEffect) -> Option<Self> {
        let mut builder = GitignoreBuilder::new(root);
        // `.ENV` is the same file as `.env` on some systems.
        builder.case_insensitive(effect != RuleEffect::Allow).ok()?;
        for line in lines {
            builder.add_line(None, line).ok()?;
        }
        Some(Self { tool: tool.to_owned(), root: root.to_owned(), matcher: builder.build().ok()? })
    }
}

/// The rules of a session.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    allow: RuleList,
    ask: RuleList,
    deny: RuleList,
}

/// The rules with one effect.
#[derive(Clone, Debug, Default)]
struct RuleList {
    rules: Vec<PermissionRule>,
    /// The path patterns of the rules, compiled when they are first needed.
    paths: OnceLock<Vec<PathMatcher>>,
}

impl RuleList {
    fn paths(&self, effect: RuleEffect) -> &[PathMatcher] {
        self.paths.get_or_init(|| {
            let mut groups: Vec<(&str, &Path, Vec<&str>)> = Vec::new();
            for rule in &self.rules {
                let Specifier::Path(pattern) = &rule.specifier else { continue };
                match groups.iter_mut().find(|group| group.0 == rule.tool && group.1 == pattern.root) {
                    Some(group) => group.2.push(&pattern.line),
                    None => groups.push((&rule.tool, &pattern.root, vec![&pattern.line])),
                }
            }
            groups
                .iter()
                .filter_map(|(tool, root, lines)| PathMatcher::new(tool, root, lines, effect))
                .collect()
        })
    }
}

impl RuleSet {
    /// Adds a rule. Returns whether it can be used.
    pub fn add(&mut self, text: &str, effect: RuleEffect, source: RuleSource<'_>) -> bool {
        let Some(rule) = PermissionRule::parse(text, source) else { return false };
        let list = self.list_mut(effect);
        list.rules.push(rule);
        list.paths = OnceLock::new();
        true
    }

    /// Removes one rule with this text. Returns whether there was one.
    pub fn remove(&mut self, text: &str, effect: RuleEffect) -> bool {
        let list = self.list_mut(effect);
        let Some(at) = list.rules.iter().position(|rule| rule.text == text.trim()) else { return false };
        list.rules.remove(at);
        list.paths = OnceLock::new();
        true
    }

    /// Adds a rule until [`RuleSet::remove_temporary`]. Returns whether it can be used.
    pub fn add_temporary(&mut self, text: &str, effect: RuleEffect, source: RuleSource<'_>) -> bool {
        let is_added = self.add(text, effect, source);
        if let Some(rule) = self.list_mut(effect).rules.last_mut().filter(|_| is_added) {
            rule.is_temporary = true;
        }
        is_added
    }

    /// Removes the rules that were added with [`RuleSet::add_temporary`].
    pub fn remove_temporary(&mut self) {
        for list in [&mut self.allow, &mut self.ask, &mut self.deny] {
            list.rules.retain(|rule| !rule.is_temporary);
            list.paths = OnceLock::new();
        }
    }

    /// Returns the rules with an effect.
    #[must_use]
    pub fn list(&self, effect: RuleEffect) -> &[PermissionRule] {
        &self.list_of(effect).rules
    }

    /// Returns whether a rule for `Read` or `Edit` names a path, which is compared as it is written.
    pub(crate) fn names_path(&self, effect: RuleEffect, tool: &str, path: &Path) -> bool {
        self.list_of(effect).paths(effect).iter().any(|group| {
            group.tool == tool
                && path != group.root
                && path.starts_with(&group.root)
                && group.matcher.matched_path_or_any_parents(path, true).is_ignore()
        })
    }

    /// Returns whether any rule with an effect names paths.
    pub(crate) fn has_paths(&self, effect: RuleEffect) -> bool {
        !self.list_of(effect).paths(effect).is_empty()
    }

    fn list_of(&self, effect: RuleEffect) -> &RuleList {
        match effect {
            RuleEffect::Allow => &self.allow,
            RuleEffect::Ask => &self.ask,
            RuleEffect::Deny => &self.deny,
        }
    }

    fn list_mut(&mut self, effect: RuleEffect) -> &mut RuleList {
        match effect {
            RuleEffect::Allow => &mut self.allow,
            RuleEffect::Ask => &mut self.ask,
            RuleEffect::Deny => &mut self.deny,
        }
    }

    pub(crate) fn any(&self, effect: RuleEffect, matches: impl Fn(&PermissionRule) -> bool) -> bool {
        self.list(effect).iter().any(matches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> RuleSource<'static> {
        RuleSource { base: Path::new("/base"), cwd: Path::new("/project"), home: Some(Path::new("/home/u")) }
    }

    fn rule(text: &str) -> PermissionRule {
        PermissionRule::parse(text, source()).unwrap()
    }

    #[test]
    fn temporary_rules_are_removed_and_others_stay() {
        let source = RuleSource { base: Path::new("/w"), cwd: Path::new("/w"), home: None };
        let mut rules = RuleSet::default();
        rules.add("Edit(/a/**)", RuleEffect::Allow, source);
        rules.add_temporary("Edit(/b/**)", RuleEffect::Allow, source);
        rules.add("Edit(/c/**)", RuleEffect::Allow, source);
        let allows =
            |rules: &RuleSet, path: &str| rules.names_path(RuleEffect::Allow, "Edit", Path::new(path));
        assert!(allows(&rules, "/w/b/x"));
        rules.remove_temporary();
        assert!(allows(&rules, "/w/a/x") && !allows(&rules, "/w/b/x") && allows(&rules, "/w/c/x"));
    }

    #[test]
    fn a_rule_is_removed_once() {
        let mut rules = RuleSet::default();
        for text in ["Edit(/a/**)", "Edit(/b/**)", "Edit(/a/**)"] {
            rules.add(text, RuleEffect::Allow, source());
        }
        let texts = |rules: &RuleSet| -> Vec<String> {
            rules.list(RuleEffect::Allow).iter().map(|rule| rule.text().to_owned()).collect()
        };
        assert!(rules.names_path(RuleEffect::Allow, "Edit", Path::new("/base/b/x")));
        assert!(!rules.remove("Edit(/a/**)", RuleEffect::Deny));
        assert!(rules.remove("Edit(/a/**)", RuleEffect::Allow));
        assert_eq!(texts(&rules), ["Edit(/b/**)", "Edit(/a/**)"]);
        assert!(rules.remove("Edit(/b/**)", RuleEffect::Allow));
        assert!(!rules.names_path(RuleEffect::Allow, "Edit", Path::new("/base/b/x")));
    }

    #[test]
    fn command_patterns_match_as_documented() {
        let cases: &[(&str, &[&str], &[&str])] = &[
            (
                "Bash(npm run test:*)",
                &["npm run test", "npm run test --watch"],
                &["npm run tests", "npm run"],
            ),
            ("Bash(npm run test*)", &["npm run test", "npm run tests", "npm run test:unit"], &["npm run"]),
            ("Bash(git commit *)", &["git commit", "git commit -m x"], &["git commits", "git"]),
            ("Bash(* --version)", &["node --version"], &["--version", "node --versions"]),
            ("Bash(git * main)", &["git push main", "git a b main"], &["git main", "git push main x"]),
            ("Bash(make)", &["make"], &["make all", "makes"]),
            ("Bash(echo \\*)", &["echo *"], &["echo x"]),
            ("Bash(a*b*c)", &["abc", "a-b-c", "abbcc"], &["acb", "ab"]),
        ];
        for (text, matching, others) in cases {
            let rule = rule(text);
            for command in *matching {
                assert!(rule.matches_command(command), "{text} {command}");
            }
            for command in *others {
                assert!(!rule.matches_command(command), "{text} {command}");
            }
        }
    }

    #[test]
    fn path_patterns_match_as_documented() {
        let cases: &[(&str, &[&str], &[&str])] = &[
            ("Read(.env)", &["/project/.env", "/project/a/.env"], &["/.env", "/base/.env"]),
            (
                "Read(secrets/**)",
                &["/project/secrets", "/project/secrets/a/b"],
                &["/project/a/secrets/x", "/project/secret"],
            ),
            ("Read(//etc/passwd)", &["/etc/passwd"], &["/project/etc/passwd"]),
            ("Read(//**)", &["/etc", "/project/a"], &[]),
            ("Read(~/x/**)", &["/home/u/x/y"], &["/home/u/y", "/project/x"]),
            ("Edit(/src/**)", &["/base/src/a"], &["/project/src/a"]),
            ("Edit(docs/*.md)", &["/project/docs/a.md"], &["/project/docs/b/a.md", "/project/a/docs/a.md"]),
            ("Read(*.key)", &["/project/a.key", "/project/b/a.key"], &["/project/a.keys"]),
            ("Read(!x)", &["/project/!x"], &["/project/x", "/project/y"]),
        ];
        for (text, matching, others) in cases {
            let mut rules = RuleSet::default();
            assert!(rules.add(text, RuleEffect::Allow, source()));
            let tool = if text.starts_with("Read") { "Read" } else { "Edit" };
            for path in *matching {
                assert!(rules.names_path(RuleEffect::Allow, tool, Path::new(path)), "{text} {path}");
            }
            for path in *others {
                assert!(!rules.names_path(RuleEffect::Allow, tool, Path::new(path)), "{text} {path}");
            }
        }
    }

    #[test]
    fn other_rules_match_as_documented() {
        assert!(rule("WebFetch(domain:a.example)").matches_host("WebFetch", "A.example."));
        assert!(!rule("WebFetch(domain:a.example)").matches_host("WebFetch", "b.a.example"));
        assert!(rule("WebFetch(domain:*.a.example)").matches_host("WebFetch", "b.a.example"));
        assert!(!rule("WebFetch(domain:*.a.example)").matches_host("WebFetch", "ba.example"));
        assert!(rule("mcp__s").is_whole_tool("mcp__s__t") && rule("mcp__s__*").is_whole_tool("mcp__s__t"));
        assert!(!rule("mcp__s").is_whole_tool("mcp__st__t") && rule("mcp__s__t").is_whole_tool("mcp__s__t"));
        assert!(rule("Task(x)").matches_text("Agent", "x") && rule("Agent(x)").matches_text("Agent", "x"));
        for text in ["Bash(", "", "Write(x)", "a b", "WebFetch(x)", "Ba*"] {
            assert!(PermissionRule::parse(text, source()).is_none(), "{text}");
        }
        let mut rules = RuleSet::default();
        rules.add("Read(.env)", RuleEffect::Deny, source());
        assert!(rules.names_path(RuleEffect::Deny, "Read", Path::new("/project/.ENV")));
    }
}
