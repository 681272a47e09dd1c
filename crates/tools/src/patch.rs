//! Line differences as hunks, in the form that Write and Edit record.

use std::rc::Rc;

use serde::Serialize;

/// One contiguous change with its context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Hunk {
    old_start: usize,
    old_lines: usize,
    new_start: usize,
    new_lines: usize,
    lines: Vec<String>,
}

/// Lines of context before and after a change in a record.
const CONTEXT: usize = 3;

/// Lines of context around a change in the result for the model.
const SNIPPET_CONTEXT: usize = 8;

/// The longest edit script that is searched for. Beyond it, everything between the first and the last
/// difference counts as replaced.
const MAX_EDITS: usize = 4_000;

/// Returns the hunks that turn `old` into `new`, with leading tabs shown as two spaces each.
pub(crate) fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    hunks_with(old, new, CONTEXT, &|mark, line| {
        let text = line.trim_start_matches('\t');
        format!("{mark}{}{text}", "  ".repeat(line.len() - text.len()))
    })
}

/// Returns the changed parts of `new` with line numbers and context; empty if nothing was added or kept.
pub(crate) fn changed_snippet(old: &str, new: &str, number: &dyn Fn(usize, &str) -> String) -> String {
    let hunks = hunks_with(old, new, SNIPPET_CONTEXT, &|mark, line| format!("{mark}{line}"));
    let part = |hunk: &Hunk| {
        let lines = hunk.lines.iter().filter(|line| line.starts_with([' ', '+']));
        let numbered = (hunk.new_start..).zip(lines).map(|(at, line)| number(at, &line[1..]));
        numbered.collect::<Vec<_>>().join("\n")
    };
    hunks.iter().map(part).collect::<Vec<_>>().join("\n...\n")
}

/// Formats one line, without its line end, after its mark.
type LineFormat<'a> = &'a dyn Fn(char, &str) -> String;

fn hunks_with(old: &str, new: &str, context: usize, format: LineFormat<'_>) -> Vec<Hunk> {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let runs = diff(&old, &new, MAX_EDITS);
    let mut hunks = Vec::new();
    let mut open: Option<Hunk> = None;
    let (mut old_at, mut new_at) = (0, 0);
    let mut previous_equal = 0;
    for (index, run) in runs.iter().enumerate() {
        if run.change == Change::Equal {
            if let Some(mut hunk) = open.take() {
                let is_last = index + 1 == runs.len();
                let joins = run.count <= 2 * context && !is_last;
                let shown = if joins { run.count } else { run.count.min(context) };
                for line in &old[old_at..old_at + shown] {
                    push_line(&mut hunk.lines, format, ' ', line);
                }
                hunk.old_lines += shown;
                hunk.new_lines += shown;
                if joins {
                    open = Some(hunk);
                } else {
                    hunks.push(hunk);
                }
            }
            old_at += run.count;
            new_at += run.count;
            previous_equal = run.count;
            continue;
        }
        let hunk = open.get_or_insert_with(|| {
            let before = previous_equal.min(context);
            let mut hunk = Hunk {
                old_start: old_at + 1 - before,
                old_lines: before,
                new_start: new_at + 1 - before,
                new_lines: before,
                lines: Vec::new(),
            };
            for line in &old[old_at - before..old_at] {
                push_line(&mut hunk.lines, format, ' ', line);
            }
            hunk
        });
        if run.change == Change::Removed {
            for line in &old[old_at..old_at + run.count] {
                push_line(&mut hunk.lines, format, '-', line);
            }
            hunk.old_lines += run.count;
            old_at += run.count;
        } else {
            for line in &new[new_at..new_at + run.count] {
                push_line(&mut hunk.lines, format, '+', line);
            }
            hunk.new_lines += run.count;
            new_at += run.count;
        }
        previous_equal = 0;
    }
    hunks.extend(open);
    hunks
}

fn push_line(lines: &mut Vec<String>, format: LineFormat<'_>, mark: char, line: &str) {
    lines.push(format(mark, line.strip_suffix('\n').unwrap_or(line)));
    if !line.ends_with('\n') {
        lines.push("\\ No newline at end of file".to_owned());
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Equal,
    Removed,
    Added,
}

/// Consecutive lines with the same change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    change: Change,
    count: usize,
}

/// The end of a path through the edit graph, with the runs that lead to it in reverse.
struct Path {
    /// Lines of the old text that are consumed.
    old: usize,
    last: Option<Rc<PathNode>>,
}

struct PathNode {
    run: Run,
    previous: Option<Rc<Self>>,
}

impl Drop for PathNode {
    /// Drops a long list without recursion.
    fn drop(&mut self) {
        let mut next = self.previous.take();
        while let Some(mut node) = next.and_then(Rc::into_inner) {
            next = node.previous.take();
        }
    }
}

impl Path {
    /// Returns the path extended by one line.
    fn extended(&self, change: Change) -> Self {
        let last = match &self.last {
            Some(node) if node.run.change == change => {
                PathNode { run: Run { change, count: node.run.count + 1 }, previous: node.previous.clone() }
            }
            last => PathNode { run: Run { change, count: 1 }, previous: last.clone() },
        };
        Self { old: self.old + usize::from(change == Change::Removed), last: Some(Rc::new(last)) }
    }

    /// Follows equal lines and returns the number of new lines consumed.
    fn follow(&mut self, old: &[&str], new: &[&str], mut new_at: usize) -> usize {
        let count = old[self.old..].iter().zip(&new[new_at..]).take_while(|(a, b)| a == b).count();
        if count > 0 {
            self.old += count;
            new_at += count;
            let previous = self.last.take();
            self.last = Some(Rc::new(PathNode { run: Run { change: Change::Equal, count }, previous }));
        }
        new_at
    }

    fn runs(&self) -> Vec<Run> {
        let mut runs = Vec::new();
        let mut node = self.last.as_ref();
        while let Some(current) = node {
            runs.push(current.run);
            node = current.previous.as_ref();
        }
        runs.reverse();
        runs
    }
}

/// Returns a shortest edit script as runs, removals before additions.
///
/// Myers' greedy algorithm; where two paths reach equally far, the one that removes a line is continued, as
/// Claude Code does, so that both choose the same script.
fn diff(old: &[&str], new: &[&str], max_edits: usize) -> Vec<Run> {
    let (old_len, new_len) = (old.len() as isize, new.len() as isize);
    let mut start = Path { old: 0, last: None };
    let new_at = start.follow(old, new, 0);
    if start.old == old.len() && new_at == new.len() {
        return ordered(&start.runs());
    }
    let max = (old.len() + new.len()).min(max_edits);
    // Paths by diagonal (old minus new), shifted so that the index is not negative.
    let shift = max as isize + 1;
    let mut paths: Vec<Option<Path>> = std::iter::repeat_with(|| None).take(2 * max + 3).collect();
    paths[shift as usize] = Some(start);
    let (mut lowest, mut highest) = (isize::MIN, isize::MAX);
    for edits in 1..=max as isize {
        let mut diagonal = lowest.max(-edits);
        // The diagonals of one round have the parity of its number.
        if (diagonal - edits) % 2 != 0 {
            diagonal += 1;
        }
        while diagonal <= highest.min(edits) {
            let at = (diagonal + shift) as usize;
            let removing = paths[at - 1].take();
            let adding = paths[at + 1].as_ref();
            let new_at = |path: &Path| path.old as isize - diagonal;
            let can_add =
                adding.is_some_and(|path| (0..=new_len).contains(&new_at(path)) && new_at(path) > 0);
            let can_remove = removing.as_ref().is_some_and(|path| (path.old as isize) < old_len);
            let path = match (&removing, adding) {
                (removing, Some(adding))
                    if can_add && (!can_remove || removing.as_ref().is_some_and(|r| r.old < adding.old)) =>
                {
                    Some(adding.extended(Change::Added))
                }
                (Some(removing), _) if can_remove => Some(removing.extended(Change::Removed)),
                _ => None,
            };
            let Some(mut path) = path else {
                paths[at] = None;
                diagonal += 2;
                continue;
            };
            let position = (path.old as isize - diagonal) as usize;
            let position = path.follow(old, new, position);
            if path.old == old.len() && position == new.len() {
                return ordered(&path.runs());
            }
            if path.old == old.len() {
                highest = highest.min(diagonal - 1);
            }
            if position == new.len() {
                lowest = lowest.max(diagonal + 1);
            }
            paths[at] = Some(path);
            diagonal += 2;
        }
    }
    replace_middle(old, new)
}

/// Returns the script that replaces everything between the common beginning and the common end.
fn replace_middle(old: &[&str], new: &[&str]) -> Vec<Run> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let runs = [
        Run { change: Change::Equal, count: head },
        Run { change: Change::Removed, count: old.len() - head - tail },
        Run { change: Change::Added, count: new.len() - head - tail },
        Run { change: Change::Equal, count: tail },
    ];
    runs.into_iter().filter(|run| run.count > 0).collect()
}

/// Merges the changes between two equal runs into one removal and one addition.
fn ordered(runs: &[Run]) -> Vec<Run> {
    let mut out: Vec<Run> = Vec::new();
    for group in runs.chunk_by(|a, b| (a.change == Change::Equal) == (b.change == Change::Equal)) {
        for change in [Change::Equal, Change::Removed, Change::Added] {
            let count = group.iter().filter(|run| run.change == change).map(|run| run.count).sum();
            if count > 0 {
                out.push(Run { change, count });
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(old: &str, new: &str) -> String {
        let hunk = |hunk: Hunk| {
            let Hunk { old_start, old_lines, new_start, new_lines, lines } = hunk;
            format!("@@ -{old_start},{old_lines} +{new_start},{new_lines}\n{}", lines.join("\n"))
        };
        hunks(old, new).into_iter().map(hunk).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn equal_texts_have_no_hunks() {
        assert_eq!(show("a\nb\n", "a\nb\n"), "");
        assert_eq!(show("", ""), "");
    }

    #[test]
    fn a_created_text_is_added_from_line_one() {
        assert_eq!(show("", "created\n"), "@@ -1,0 +1,1\n+created");
        assert_eq!(show("1\n2\n", ""), "@@ -1,2 +1,0\n-1\n-2");
    }

    #[test]
    fn three_lines_of_context_surround_a_change() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n";
        let new = "1\nX\n3\n4\n5\n6\n7\n8\n9\nY\n11\n12\n13\n14\n15\n16\n";
        let expected =
            "@@ -1,5 +1,5\n 1\n-2\n+X\n 3\n 4\n 5\n@@ -7,7 +7,7\n 7\n 8\n 9\n-10\n+Y\n 11\n 12\n 13";
        assert_eq!(show(old, new), expected);
    }

    #[test]
    fn close_changes_share_a_hunk() {
        let old = "1\nX\n3\n4\n5\n6\n7\n8\n9\nY\n11\n12\n13\n14\n15\n16\n";
        let new = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n16\n";
        let expected = "@@ -1,5 +1,5\n 1\n-X\n+2\n 3\n 4\n 5\n\
                        @@ -7,10 +7,6\n 7\n 8\n 9\n-Y\n+10\n 11\n-12\n-13\n-14\n-15\n 16";
        assert_eq!(show(old, new), expected);
    }

    #[test]
    fn ambiguous_scripts_are_chosen_as_claude_code_does() {
        let expected =
            "@@ -1,7 +1,9\n-a\n b\n+a\n c\n d\n-e\n+x\n+y\n f\n-g\n+e\n+g\n\\ No newline at end of file";
        assert_eq!(show("a\nb\nc\nd\ne\nf\ng\n", "b\na\nc\nd\nx\ny\nf\ne\ng"), expected);
        assert_eq!(show("x\nx\nx\n", "y\nx\n"), "@@ -1,3 +1,2\n+y\n x\n-x\n-x");
        let old = "function f() {\n  return 1;\n}\n\nfunction g() {\n  return 2;\n}\n";
        let new = "function f() {\n  return 1;\n}\n\nfunction h() {\n  return 3;\n}\n\nfunction g() {\n  return 2;\n}\n";
        let expected = "@@ -2,6 +2,10\n   return 1;\n }\n \n+function h() {\n+  return 3;\n+}\n+\n function g() {\n   \
                        return 2;\n }";
        assert_eq!(show(old, new), expected);
    }

    #[test]
    fn a_missing_final_newline_is_marked() {
        let expected = "@@ -1,2 +1,2\n x\n-y\n\\ No newline at end of file\n+z\n\\ No newline at end of file";
        assert_eq!(show("x\ny", "x\nz"), expected);
        assert_eq!(show("x\ny\n", "x\ny"), "@@ -1,2 +1,2\n x\n-y\n+y\n\\ No newline at end of file");
    }

    #[test]
    fn leading_tabs_are_shown_as_two_spaces() {
        assert_eq!(
            show("\tif x:\n\t\ty = 1\n", "\tif x:\n\t\ty = 2\n"),
            "@@ -1,2 +1,2\n   if x:\n-    y = 1\n+    y = 2"
        );
    }

    #[test]
    fn long_scripts_replace_everything_between_the_common_ends() {
        let old = ["a", "b", "c", "d", "e", "z"];
        let new = ["a", "1", "c", "2", "e", "z"];
        let run = |change, count| Run { change, count };
        let (equal, removed, added) = (Change::Equal, Change::Removed, Change::Added);
        let expected = [run(equal, 1), run(removed, 3), run(added, 3), run(equal, 2)];
        assert_eq!(diff(&old, &new, 2), expected);
        assert_eq!(diff(&old, &new, 4).len(), 7);
    }

    #[test]
    fn dropping_a_long_path_does_not_overflow_the_stack() {
        let mut path = Path { old: 0, last: None };
        for n in 0..1_000_000 {
            path = path.extended(if n % 2 == 0 { Change::Added } else { Change::Removed });
        }
        drop(path);
    }
}
