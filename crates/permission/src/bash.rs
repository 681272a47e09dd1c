//! The decision about a shell command.

mod git;
mod listing;
mod paths;
mod ps;
mod read_only;
mod refused_file;
mod sed;
mod wrapper;

use std::path::{Path, PathBuf};

use crate::decide::{AskBasis, AskReason, Permissions, Suggestion, sensitive};
use crate::files::{Access, is_environment, resolve_links};
use crate::mode::PermissionMode;
use crate::rule::RuleEffect;
use threadline_shell::command_line::{Part, Script, Word, parse};

use self::listing::{XargsCall, outward_link, outward_match};
use git::{git_query, is_in_bare_repository};
use paths::{PathUse, absolute, path_use, possible_paths};
use wrapper::{Core, core, inner_commands};

/// The decision about a command.
pub(crate) enum BashVerdict {
    Allow,
    Ask(AskReason),
    /// A rule refuses it.
    Deny(DeniedCommand),
}

/// A command that a rule refuses.
pub(crate) struct DeniedCommand {
    /// The part that the rule matched.
    pub(crate) part: String,
    /// The file that the part reads without naming it.
    pub(crate) file: Option<PathBuf>,
}

/// The reason for a command that no rule permits.
const NEEDS_APPROVAL: &str = "This command requires approval";

/// Commands that change files, and that the mode `acceptEdits` permits inside the working folders.
const EDIT_COMMANDS: &[&str] = &["mkdir", "touch", "rm", "rmdir", "mv", "cp", "sed"];

/// Actions of `find` that run commands or change files.
const FIND_ACTIONS: &[&str] =
    &["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"];

pub(crate) fn decide_command(permissions: &Permissions, command: &str, cwd: &Path) -> BashVerdict {
    let home = permissions.workspace.home.as_deref();
    let script = parse(command, home);
    let check = Check { permissions, command, cwd, home };
    if let Some(denied) = check.denied(&script, 0) {
        return BashVerdict::Deny(denied);
    }
    if check.is_asked(&script) {
        return BashVerdict::Ask(AskReason::new(
            "Claude requested permissions to use Bash, but you haven't granted it yet.",
        ));
    }
    if let Some(reason) = script.commands.iter().find_map(|part| check.dangerous_removal(part)) {
        return BashVerdict::Ask(reason);
    }
    if permissions.mode == PermissionMode::BypassPermissions {
        return BashVerdict::Allow;
    }
    let is_exact = |text: &str| {
        permissions.rules.any(RuleEffect::Allow, |rule| rule.is_exact_command() && rule.matches_command(text))
    };
    if permissions.rules.any(RuleEffect::Allow, |rule| rule.is_whole_tool("Bash")) {
        let protected = script.commands.iter().find_map(|part| check.protected_write(part));
        let is_background = script.unclear.as_deref().filter(|reason| reason.contains("background operator"));
        return match (protected, is_background) {
            (Some(reason), _) => BashVerdict::Ask(reason),
            (None, Some(reason)) => BashVerdict::Ask(AskReason::stated(reason)),
            (None, None) => BashVerdict::Allow,
        };
    }
    if is_exact(command.trim()) && script.commands.iter().all(|part| check.protected_write(part).is_none()) {
        return BashVerdict::Allow;
    }
    if let Some(reason) = &script.unclear {
        return BashVerdict::Ask(AskReason::stated(reason.clone()));
    }
    check.parts(&script)
}

/// A command and everything that its parts are judged by.
struct Check<'a> {
    permissions: &'a Permissions,
    command: &'a str,
    cwd: &'a Path,
    home: Option<&'a Path>,
}

/// The verdict about one part.
struct PartVerdict {
    /// Why it needs an answer; an empty message for no particular reason.
    ask: Option<AskReason>,
    is_write: bool,
}

impl Check<'_> {
    /// Returns what a deny rule matched.
    fn denied(&self, script: &Script, depth: usize) -> Option<DeniedCommand> {
        let rules = &self.permissions.rules;
        if rules.list(RuleEffect::Deny).is_empty() {
            return None;
        }
        let is_denied = |text: &str| rules.any(RuleEffect::Deny, |rule| rule.matches_command(text));
        if depth == 0 && is_denied(self.command.trim()) {
            return Some(DeniedCommand { part: self.command.to_owned(), file: None });
        }
        for part in &script.commands {
            let texts = rule_texts(part);
            let inner = inner_commands(&part.words);
            let is_matched = texts.iter().any(|text| is_denied(text))
                || inner.commands.iter().any(|text| is_denied(text))
                || self.has_path(part, RuleEffect::Deny);
            let is_nested = depth < 3
                && inner
                    .scripts
                    .iter()
                    .any(|source| self.denied(&parse(source, self.home), depth + 1).is_some());
            let file = if is_matched || is_nested { None } else { self.refused_file(part) };
            if is_matched || is_nested || file.is_some() {
                let part = if part.is_in_pipeline { &part.text } else { self.command };
                return Some(DeniedCommand { part: part.to_owned(), file });
            }
        }
        None
    }

    fn is_asked(&self, script: &Script) -> bool {
        let rules = &self.permissions.rules;
        if rules.list(RuleEffect::Ask).is_empty() {
            return false;
        }
        let is_asked = |text: &str| rules.any(RuleEffect::Ask, |rule| rule.matches_command(text));
        rules.any(RuleEffect::Ask, |rule| rule.is_whole_tool("Bash"))
            || is_asked(self.command.trim())
            || script.commands.iter().any(|part| {
                rule_texts(part).iter().any(|text| is_asked(text))
                    || inner_commands(&part.words).commands.iter().any(|text| is_asked(text))
            })
    }

    /// Returns whether a path of a part is named by a rule. Reads of the targets of writes count too: a copy
    /// of a file can be read.
    fn has_path(&self, part: &Part, effect: RuleEffect) -> bool {
        if !self.permissions.rules.has_paths(effect) {
            return false;
        }
        let core = core(part);
        let mut uses: Vec<(&Word, Access)> = Vec::new();
        let found = core.name().and_then(|name| path_use(name, core.arguments()));
        if let Some(found) = &found {
            uses.extend(found.paths.iter().map(|word| (word, found.access)));
        }
        // A command that is not known may read any of its arguments.
        let is_known = found.is_some() && core.name() != Some("git");
        let possible = if is_known { Vec::new() } else { possible_paths(core.arguments()) };
        uses.extend(possible.iter().map(|word| (word, Access::Read)));
        uses.extend(part.redirects.iter().map(|redirect| {
            (&redirect.target, if redirect.is_write { Access::Write } else { Access::Read })
        }));
        uses.into_iter().any(|(word, access)| {
            self.targets(word).iter().any(|path| {
                let accesses: &[Access] =
                    if access == Access::Write { &[Access::Write, Access::Read] } else { &[Access::Read] };
                accesses.iter().any(|access| self.permissions.path_rule(effect, *access, path))
            })
        })
    }

    /// Returns a file that a rule refuses, and that a part reads without naming it.
    fn refused_file(&self, part: &Part) -> Option<PathBuf> {
        if !self.permissions.rules.has_paths(RuleEffect::Deny) {
            return None;
        }
        let core = core(part);
        let name = core.name()?;
        if name == "git" {
            return refused_file::tracked_file(self.permissions, core.arguments(), self.cwd);
        }
        let found = path_use(name, core.arguments()).filter(|found| found.reads_folders)?;
        let is_complete = |word: &Word| {
            let text = word.text.as_str();
            ["--hidden", "--no-ignore"].iter().any(|option| text.starts_with(option))
                || text.starts_with('-') && !text.starts_with("--") && text.contains(['u', '.'])
        };
        let skips_ignored = name == "rg" && !core.arguments().iter().any(is_complete);
        let mut folders = found.paths.iter().flat_map(|word| self.targets(word));
        folders.find_map(|folder| {
            refused_file::searched_file(self.permissions, &folder, &found.filters, skips_ignored)
        })
    }

    /// Returns the files that a word may mean.
    fn targets(&self, word: &Word) -> Vec<PathBuf> {
        let Some(path) = absolute(word, self.cwd, self.home) else { return Vec::new() };
        if !word.is_pattern {
            return vec![path];
        }
        paths::expand(&path, false)
    }

    /// Returns why a part must not remove what it names.
    fn dangerous_removal(&self, part: &Part) -> Option<AskReason> {
        let core = core(part);
        let name = core.name().filter(|name| ["rm", "rmdir"].contains(name))?;
        let operands = core.arguments().iter().filter(|word| !word.text.starts_with('-') || word.is_dynamic);
        for word in operands {
            let Some(path) = absolute(word, self.cwd, self.home) else { continue };
            let (folder, is_all) = match path.file_name() {
                Some(last)
                    if word.is_pattern && ["*", ".*", "**", "*.*"].contains(&&*last.to_string_lossy()) =>
                {
                    (path.parent().unwrap_or(&path).to_owned(), true)
                }
                _ => (path.clone(), false),
            };
            let real = resolve_links(&folder);
            let is_home = self.home.is_some_and(|home| real == resolve_links(home));
            let is_critical = is_home || real.components().count() <= if is_all { 1 } else { 2 };
            let is_workspace =
                self.permissions.workspace.roots().any(|root| resolve_links(root).starts_with(&real));
            let what = if is_critical {
                "a critical system directory"
            } else if is_workspace {
                "a workspace directory (the working directory, an additional working directory, or one of their \
                 parent directories)"
            } else {
                continue;
            };
            let shown = path.display();
            let message = format!(
                "Dangerous {name} operation detected: '{shown}'\n\nThis command would remove {what}. This requires \
                 explicit approval and cannot be auto-allowed by permission rules."
            );
            let reason = format!("Dangerous {name} operation on critical path: {shown}");
            let basis = AskBasis::Safety { reason, is_approvable: false };
            return Some(AskReason { basis, ..AskReason::new(message) });
        }
        None
    }

    /// Returns why a part must not write to a protected file.
    fn protected_write(&self, part: &Part) -> Option<AskReason> {
        let core = core(part);
        let found = core.name().and_then(|name| path_use(name, core.arguments()));
        let written =
            found.into_iter().filter(|found| found.access == Access::Write).flat_map(|found| found.paths);
        let redirected = part.redirects.iter().filter(|redirect| redirect.is_write);
        written.chain(redirected.map(|redirect| redirect.target.clone())).find_map(|word| {
            let path = absolute(&word, self.cwd, self.home)?;
            self.permissions.workspace.protection(&path).map(|_| sensitive(&path))
        })
    }

    /// Judges all parts of a command that was understood.
    fn parts(&self, script: &Script) -> BashVerdict {
        let names: Vec<Option<String>> =
            script.commands.iter().map(|part| core(part).name().map(str::to_owned)).collect();
        let is_cd = |name: &Option<String>| matches!(name.as_deref(), Some("cd"));
        let changes = names.iter().filter(|name| is_cd(name)).count();
        if changes > 1 {
            let reason = "Multiple directory changes in one command require approval for clarity";
            return BashVerdict::Ask(AskReason::stated(reason));
        }
        let has_git = names.iter().any(|name| name.as_deref() == Some("git"));
        if has_git && is_in_bare_repository(self.cwd) {
            return BashVerdict::Ask(AskReason::stated(
                "The content of this folder or of one above it is that of a bare git repository, whose configuration \
                 can make git run commands. Approve only if you trust it.",
            ));
        }
        if changes > 0 && has_git {
            return BashVerdict::Ask(AskReason::stated(
                "This command changes directory before running git, which can execute untrusted hooks from the \
                 target directory. Approve only if you trust it.",
            ));
        }
        // After `cd`, a relative path may be in either folder.
        let mut folders = vec![self.cwd.to_owned()];
        for part in &script.commands {
            let core = core(part);
            if core.name() == Some("cd")
                && let Some(target) =
                    path_use("cd", core.arguments()).and_then(|found| found.paths.into_iter().next())
                && let Some(path) = absolute(&target, self.cwd, self.home)
            {
                folders.push(resolve_links(&path));
            }
        }
        let mut verdicts: Vec<PartVerdict> =
            script.commands.iter().map(|part| self.part(part, &folders)).collect();
        for (i, part) in script.commands.iter().enumerate() {
            let before = i.checked_sub(1).map(|i| &script.commands[i]);
            if verdicts[i].ask.is_none() && self.reads_unknown_files(part, before, changes > 0) {
                verdicts[i].ask = Some(AskReason::stated(
                    "xargs reads files whose names are only known when the command runs",
                ));
            }
        }
        let asked: Vec<(&Part, &AskReason)> = script
            .commands
            .iter()
            .zip(&verdicts)
            .filter_map(|(part, verdict)| Some((part, verdict.ask.as_ref()?)))
            .collect();
        let is_change_allowed =
            names.iter().zip(&verdicts).all(|(name, verdict)| !is_cd(name) || verdict.ask.is_none());
        if changes > 0 && is_change_allowed && verdicts.iter().any(|verdict| verdict.is_write) {
            return BashVerdict::Ask(AskReason::stated(
                "Commands that change directories and perform write operations require explicit approval to ensure \
                 paths are evaluated correctly. For security, Claude Code cannot automatically determine the final \
                 working directory when 'cd' is used in compound commands.",
            ));
        }
        let is_single = script.commands.len() == 1;
        match asked.as_slice() {
            [] => BashVerdict::Allow,
            [(part, reason)] if is_single => {
                let mut reason = (*reason).clone();
                if reason.message.is_empty() {
                    reason = AskReason::stated(NEEDS_APPROVAL);
                }
                if !matches!(reason.basis, AskBasis::Safety { .. }) {
                    reason.suggestions.insert(0, rule_suggestion(&[*part]));
                }
                BashVerdict::Ask(reason)
            }
            [(part, reason)] if !reason.message.is_empty() && !part.is_in_pipeline => {
                let mut reason = (*reason).clone();
                reason.suggestions.insert(0, rule_suggestion(&[*part]));
                BashVerdict::Ask(reason)
            }
            asked => {
                let noun = if asked.len() == 1 { "part requires" } else { "parts require" };
                let texts: Vec<&str> = asked.iter().map(|(part, _)| part.text.as_str()).collect();
                let message = format!(
                    "This Bash command contains multiple operations. The following {noun} approval: {}",
                    texts.join(", ")
                );
                let parts: Vec<&Part> = asked.iter().map(|(part, _)| *part).collect();
                BashVerdict::Ask(AskReason {
                    basis: AskBasis::Parts,
                    suggestions: vec![rule_suggestion(&parts)],
                    ..AskReason::new(message)
                })
            }
        }
    }

    /// Whether `xargs` makes a command read files that may be outside of the working folders, or that a rule
    /// refuses.
    fn reads_unknown_files(&self, part: &Part, before: Option<&Part>, changes_folder: bool) -> bool {
        let permissions = self.permissions;
        let core = core(part);
        let words: Vec<&str> = core.arguments().iter().map(|word| word.text.as_str()).collect();
        let is_xargs = core.name() == Some("xargs");
        let Some(call) = XargsCall::parse(&words).filter(|call| is_xargs && call.reads_files()) else {
            return false;
        };
        let is_permitted = core
            .allow_texts(part)
            .iter()
            .any(|text| permissions.rules.any(RuleEffect::Allow, |rule| rule.matches_command(text)));
        if is_permitted {
            return false;
        }
        let is_input_replaced =
            part.has_input_text || part.redirects.iter().any(|redirect| !redirect.is_write);
        let before =
            before.filter(|before| before.is_in_pipeline && part.is_in_pipeline && !is_input_replaced);
        changes_folder
            || permissions.rules.has_paths(RuleEffect::Deny)
            || !before.is_some_and(|before| {
                call.gets_files_of(self::core(before).words, &permissions.workspace, self.cwd)
            })
    }

    fn part(&self, part: &Part, folders: &[PathBuf]) -> PartVerdict {
        let core = core(part);
        let allow =
            |text: &str| self.permissions.rules.any(RuleEffect::Allow, |rule| rule.matches_command(text));
        let is_exact = |text: &str| {
            self.permissions
                .rules
                .any(RuleEffect::Allow, |rule| rule.is_exact_command() && rule.matches_command(text))
        };
        let has_rule = core.allow_texts(part).iter().any(|text| allow(text));
        let mut is_write = false;
        let mut ask = None;
        let found = core.name().and_then(|name| path_use(name, core.arguments()));
        if let (Some(name), Some(found)) = (core.name(), &found) {
            is_write |= found.access == Access::Write && !found.paths.is_empty();
            ask = self.path_reason(name, found, folders, has_rule);
        }
        for redirect in &part.redirects {
            let target = &redirect.target;
            if redirect.is_write && target.text == "/dev/null" {
                continue;
            }
            is_write |= redirect.is_write;
            ask = ask.or_else(|| self.redirect_reason(target, redirect.is_write, folders));
        }
        if ask.is_some() {
            return PartVerdict { ask, is_write };
        }
        let ask = match core.name() {
            // An assignment, or a redirection without a command.
            None => None,
            Some("find") if let Some(action) = find_action(core.arguments()) => {
                (!is_exact(&part.text)).then(|| {
                    AskReason::stated(format!(
                        "find with '{action}' executes commands or modifies files — cannot be auto-allowed by a \
                         Bash(find:*) prefix rule"
                    ))
                })
            }
            Some("jq") if read_only::jq_has_dangerous_flag(core.arguments()) => Some(AskReason::stated(
                "jq command contains dangerous flags that could execute code or read arbitrary files",
            )),
            Some(_) if has_rule => None,
            Some("sed") if !sed::is_safe(core.arguments(), self.permissions.mode) => Some(AskReason::stated(
                "sed command requires approval (contains potentially dangerous operations)",
            )),
            Some(name) => {
                let is_edit = self.permissions.mode == PermissionMode::AcceptEdits
                    && EDIT_COMMANDS.contains(&name)
                    && found.is_some_and(|found| !found.paths.is_empty());
                let is_read_only = core.is_plain && read_only::is_read_only(name, core.arguments());
                (!(core.is_plain && is_edit || is_read_only)).then(|| AskReason::new(""))
            }
        };
        PartVerdict { ask, is_write }
    }

    /// Returns why the paths of a command need an answer.
    fn path_reason(
        &self,
        name: &str,
        found: &PathUse,
        folders: &[PathBuf],
        has_rule: bool,
    ) -> Option<AskReason> {
        if let Some(reason) = &found.unclear {
            return Some(AskReason::stated(reason.clone()));
        }
        let workspace = &self.permissions.workspace;
        for word in &found.paths {
            if let Some(reason) = paths::unclear_path(word, found.access) {
                return Some(AskReason::stated(reason));
            }
            for folder in folders {
                let Some(named) = absolute(word, folder, self.home) else { continue };
                let path = if word.is_pattern { paths::pattern_root(&named) } else { named.clone() };
                let real = resolve_links(&path);
                let is_in_proc = real.starts_with("/proc") && (word.is_pattern || found.reads_folders);
                let contains_proc = found.reads_folders && Path::new("/proc").starts_with(&real);
                if is_environment(&path) || is_in_proc || contains_proc {
                    return Some(AskReason::stated("Accesses /proc/*/environ which may expose secrets"));
                }
                // Links that a pattern matches, or that the command follows, can lead out.
                let outward = if !workspace.contains(&path, found.access) {
                    None
                } else if word.is_pattern {
                    outward_match(workspace, &paths::shell_matches(&named))
                } else if found.follows_links {
                    outward_link(workspace, &path)
                } else {
                    None
                };
                let path = outward.unwrap_or(path);
                let shown = resolve_links(&path);
                let blocked = || {
                    let message = format!(
                        "{name} in '{}' was blocked. For security, Claude Code may only {} the allowed working \
                         directories for this session: {}.",
                        shown.display(),
                        found.verb,
                        workspace.list()
                    );
                    let suggestions = Self::folder_suggestions(&path, found.access, true);
                    AskReason { suggestions, ..AskReason::at(message, &shown) }
                };
                if found.access == Access::Write && workspace.protection(&path).is_some() {
                    return Some(sensitive(&path));
                }
                if !workspace.contains(&path, found.access) {
                    // A rule for the file itself is as good as a working folder.
                    if self.permissions.path_rule(RuleEffect::Allow, found.access, &path) {
                        continue;
                    }
                    return Some(blocked());
                }
                let is_permitted = found.access == Access::Read
                    || has_rule
                    || self.permissions.mode == PermissionMode::AcceptEdits
                    || self.permissions.path_rule(RuleEffect::Allow, Access::Write, &path);
                if !is_permitted {
                    return Some(blocked());
                }
                if self.permissions.path_rule(RuleEffect::Ask, found.access, &path) {
                    return Some(AskReason::at(
                        "Claude requested permissions to use Bash, but you haven't granted it yet.",
                        &path,
                    ));
                }
            }
        }
        None
    }

    fn redirect_reason(&self, target: &Word, is_write: bool, folders: &[PathBuf]) -> Option<AskReason> {
        let workspace = &self.permissions.workspace;
        let access = if is_write { Access::Write } else { Access::Read };
        if let Some(reason) = paths::unclear_path(target, access) {
            return Some(AskReason::stated(reason));
        }
        for folder in folders {
            let path = absolute(target, folder, self.home)?;
            let shown = resolve_links(&path);
            if is_environment(&path) {
                return Some(AskReason::stated("Accesses /proc/*/environ which may expose secrets"));
            }
            let blocked = |what: &str, verb: &str| {
                let message = format!(
                    "{what} '{}' was blocked. For security, Claude Code may only {verb} files in the allowed working \
                     directories for this session: {}.",
                    shown.display(),
                    workspace.list()
                );
                let suggestions = Self::folder_suggestions(&path, access, false);
                AskReason { suggestions, ..AskReason::at(message, &shown) }
            };
            if !is_write {
                let is_readable = workspace.contains(&path, access)
                    || path == Path::new("/dev/null")
                    || self.permissions.path_rule(RuleEffect::Allow, access, &path);
                if !is_readable {
                    return Some(blocked("Input redirection from", "read from"));
                }
                continue;
            }
            if workspace.protection(&path).is_some() {
                return Some(sensitive(&path));
            }
            let is_permitted = workspace.contains(&path, access)
                && self.permissions.mode == PermissionMode::AcceptEdits
                || self.permissions.path_rule(RuleEffect::Allow, access, &path);
            if !is_permitted {
                return Some(blocked("Output redirection to", "write to"));
            }
        }
        None
    }

    fn folder_suggestions(path: &Path, access: Access, may_set_mode: bool) -> Vec<Suggestion> {
        let folder = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
        match access {
            Access::Write => {
                let mode = may_set_mode.then_some(Suggestion::SetMode(PermissionMode::AcceptEdits));
                std::iter::once(Suggestion::AddDirectory(folder.to_owned())).chain(mode).collect()
            }
            Access::Read => {
                vec![Suggestion::rule("Read", Some(format!("/{}/**", folder.display())), true)]
            }
        }
    }
}

/// Returns the rules that would permit parts.
fn rule_suggestion(parts: &[&Part]) -> Suggestion {
    let rules = parts.iter().map(|part| ("Bash".to_owned(), Some(rule_content(part)))).collect();
    Suggestion::AllowRules { rules, is_for_session: false }
}

/// Returns a rule for a command: for all calls of its sub-command, or for this call only.
fn rule_content(part: &Part) -> String {
    let is_subcommand = |text: &str| {
        text.starts_with(|ch: char| ch.is_ascii_lowercase())
            && text.chars().all(|ch| ch.is_ascii_lowercase() || ch.is_ascii_digit() || ch == '-')
    };
    match part.words.as_slice() {
        [name, command, ..] if part.variables.is_empty() && is_subcommand(&command.text) => {
            format!("{} {} *", name.text, command.text)
        }
        _ => part.text.clone(),
    }
}

fn find_action(arguments: &[Word]) -> Option<&str> {
    arguments.iter().map(|word| word.text.as_str()).find(|text| FIND_ACTIONS.contains(text))
}

/// Returns the forms of a part that deny and ask rules are compared with: as it is written, and without
/// quotes, assignments, wrappers and the folder of the program.
fn rule_texts(part: &Part) -> Vec<String> {
    let joined = |words: &[Word]| words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
    let mut texts = vec![part.text.clone(), part.text.split_whitespace().collect::<Vec<_>>().join(" ")];
    texts.push(joined(&part.words));
    let Core { words, .. } = core(part);
    texts.push(joined(words));
    texts.dedup();
    let plain: Vec<String> = texts
        .iter()
        .filter_map(|text| {
            let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
            let base = name.rsplit('/').next().filter(|base| *base != name)?;
            Some(format!("{base} {rest}").trim_end().to_owned())
        })
        .collect();
    texts.extend(plain);
    texts
}
