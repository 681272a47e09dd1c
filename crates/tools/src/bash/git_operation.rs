//! Git and GitHub operations that a command has carried out, as the record of Bash lists them.

use serde::Serialize;

use super::command_words::simple_commands;
use crate::output::PullRequest;

/// The operations of one command line.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct GitOperation<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<Commit<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    push: Option<Push<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<Branch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pr: Option<PrAction<'a>>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Commit<'a> {
    sha: &'a str,
    kind: &'static str,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Push<'a> {
    branch: &'a str,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Branch {
    r#ref: String,
    action: &'static str,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct PrAction<'a> {
    number: u64,
    url: &'a str,
    action: &'static str,
}

impl<'a> GitOperation<'a> {
    /// Finds the operations of a successful command; `None` if there are none.
    pub(super) fn find(line: &str, output: &'a str) -> Option<Self> {
        let mut found = Self::default();
        if !line.contains("git") && !line.contains("gh") {
            return None;
        }
        for words in simple_commands(line) {
            if let Some((name, rest)) = subcommand(&words, "git") {
                found.git(name, rest, output);
            } else if let Some(("pr", rest)) = subcommand(&words, "gh") {
                found.pr = found.pr.or_else(|| pr_action(rest, output));
            }
        }
        (found != Self::default()).then_some(found)
    }

    /// Returns the pull request that was created.
    pub(super) fn created_pull_request(&self) -> Option<PullRequest> {
        let pr = self.pr.as_ref().filter(|pr| pr.action == "created")?;
        let path = pr.url.split_once("://")?.1.split_once('/')?.1;
        let repository = path.split_once("/pull/")?.0;
        Some(PullRequest { number: pr.number, url: pr.url.to_owned(), repository: repository.to_owned() })
    }

    fn git(&mut self, name: &str, rest: &[String], output: &'a str) {
        match name {
            "commit" | "cherry-pick" if self.commit.is_none() => {
                let is_amend = rest.iter().any(|word| word == "--amend");
                let kind = match name {
                    "cherry-pick" => "cherry-picked",
                    _ if is_amend => "amended",
                    _ => "committed",
                };
                self.commit = output.lines().find_map(commit_id).map(|sha| Commit { sha, kind });
            }
            "push" if self.push.is_none() => {
                self.push = output.lines().find_map(pushed_branch).map(|branch| Push { branch });
            }
            "merge" | "rebase" if self.branch.is_none() => {
                let (action, marks): (_, &[&str]) = match name {
                    "merge" => ("merged", &["Fast-forward", "Merge made by"]),
                    _ => ("rebased", &["Successfully rebased"]),
                };
                let is_done = marks.iter().any(|mark| output.contains(mark));
                let r#ref = rest.iter().find(|word| !word.starts_with('-')).cloned();
                self.branch = r#ref.filter(|_| is_done).map(|r#ref| Branch { r#ref, action });
            }
            _ => {}
        }
    }
}

/// Returns the subcommand of a program and the words after it. Options of `git` before it are skipped.
fn subcommand<'a>(words: &'a [String], program: &str) -> Option<(&'a str, &'a [String])> {
    // `echo git commit` counts too, as in the reference.
    let at = words.iter().position(|word| word == program)?;
    let mut rest = &words[at + 1..];
    while let Some(word) = rest.first().filter(|word| word.starts_with('-')) {
        let takes_value = matches!(word.as_str(), "-C" | "-c" | "--git-dir" | "--work-tree");
        rest = rest.get(1 + usize::from(takes_value)..)?;
    }
    rest.split_first().map(|(name, rest)| (name.as_str(), rest))
}

/// Returns the id in a line such as `[main (root-commit) 21b436a] message`.
fn commit_id(line: &str) -> Option<&str> {
    let (head, _) = line.strip_prefix('[')?.split_once(']')?;
    let id = head.rsplit(' ').next()?;
    let is_id = id.len() >= 4 && id.len() < head.len() && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then_some(id)
}

/// Returns the branch in a line such as ` * [new branch]      main -> main`.
fn pushed_branch(line: &str) -> Option<&str> {
    let (source, target) = line.split_once(" -> ")?;
    let source = source.trim_start_matches(['+', '*', '=', ' ']);
    let is_update = source.starts_with("[new branch]") || source.split(' ').next()?.contains("..");
    let branch = target.split(' ').next()?.trim();
    (is_update && !branch.is_empty()).then_some(branch)
}

fn pr_action<'a>(words: &[String], output: &'a str) -> Option<PrAction<'a>> {
    let (name, rest) = words.split_first()?;
    let has = |flag: &str| rest.iter().any(|word| word == flag);
    let action = match name.as_str() {
        "create" => "created",
        "edit" => "edited",
        "merge" if has("--auto") => "auto-merge-enabled",
        "merge" if has("--disable-auto") => "auto-merge-disabled",
        "merge" => "merged",
        "comment" => "commented",
        "close" => "closed",
        "ready" if has("--undo") => "draft",
        "ready" => "ready",
        _ => return None,
    };
    let start = output.find("https://")?;
    let url = output[start..].split_whitespace().find(|word| word.contains("/pull/"))?;
    let url = url.find("https://").map(|at| &url[at..])?;
    let (_, number) = url.split_once("/pull/")?;
    let digits = number.find(|ch: char| !ch.is_ascii_digit()).unwrap_or(number.len());
    let end = url.len() - (number.len() - digits);
    Some(PrAction { number: number[..digits].parse().ok()?, url: &url[..end], action })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(line: &str, output: &str) -> String {
        serde_json::to_string(&GitOperation::find(line, output)).unwrap()
    }

    #[test]
    fn commits_are_found_by_their_output() {
        let committed = |sha: &str, kind: &str| format!(r#"{{"commit":{{"sha":"{sha}","kind":"{kind}"}}}}"#);
        for (line, output, expected) in [
            (
                "git add a && git commit -m 'x y'",
                "[main (root-commit) 21b436a] x y",
                committed("21b436a", "committed"),
            ),
            ("git commit --amend -m x", "[main c5418f2] x\n Date: now", committed("c5418f2", "amended")),
            (
                "git cherry-pick f",
                "Auto-merging f\n[main cd3adf6] two",
                committed("cd3adf6", "cherry-picked"),
            ),
            ("git -C . commit -m x", "[main f6afe5f] x", committed("f6afe5f", "committed")),
            ("git commit -q -m x", "", "null".to_owned()),
            ("git revert HEAD", "[main e0cecc6] Revert", "null".to_owned()),
            ("echo '[main abc1234] x'", "[main abc1234] x", "null".to_owned()),
        ] {
            assert_eq!(find(line, output), expected, "{line}");
        }
    }

    #[test]
    fn pushes_merges_and_rebases_are_found() {
        for (line, output, expected) in [
            (
                "git push -u origin main",
                "To ../r\n * [new branch]      main -> main",
                r#"{"push":{"branch":"main"}}"#,
            ),
            (
                "git push r main:other",
                "To r\n   1234567..89abcde  main -> other",
                r#"{"push":{"branch":"other"}}"#,
            ),
            ("git push --tags", " * [new tag]         v1 -> v1", "null"),
            ("git push r main", "Everything up-to-date", "null"),
            (
                "git merge --no-ff f",
                "Merge made by the 'ort' strategy.",
                r#"{"branch":{"ref":"f","action":"merged"}}"#,
            ),
            ("git merge f", "Already up to date.", "null"),
            (
                "git rebase main",
                "Successfully rebased and updated refs/heads/feat.",
                r#"{"branch":{"ref":"main","action":"rebased"}}"#,
            ),
        ] {
            assert_eq!(find(line, output), expected, "{line}");
        }
    }

    #[test]
    fn pull_requests_are_found_by_their_address() {
        let output = "Creating pull request\nhttps://github.com/o/r/pull/12\n";
        let expected = |action: &str| {
            format!(r#"{{"pr":{{"number":12,"url":"https://github.com/o/r/pull/12","action":"{action}"}}}}"#)
        };
        assert_eq!(find("gh pr create --fill", output), expected("created"));
        assert_eq!(find("gh pr merge 12 --auto", output), expected("auto-merge-enabled"));
        assert_eq!(find("gh pr ready 12 --undo", output), expected("draft"));
        assert_eq!(find("gh pr view 12", output), "null");
        assert_eq!(find("gh pr create", "none"), "null");
        let created = GitOperation::find("gh pr create", output).unwrap().created_pull_request().unwrap();
        assert_eq!((created.number, created.repository.as_str()), (12, "o/r"));
    }
}
