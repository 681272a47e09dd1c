//! Counts the tool calls of a session.

use std::collections::{BTreeMap, HashSet};

use threadline_session::{EntryIndex, SessionFamily};

/// Returns the number of calls of each tool in a session.
///
/// Calls of all branches and of all sub-agents count, each once: the log of a sub-agent, or a retry, may
/// contain a copy of the calls before it. Calls that a fork inherited count, since its log contains them, and
/// those of tools that the API ran itself.
pub fn count_tools(family: &SessionFamily) -> BTreeMap<String, u64> {
    let mut tools = BTreeMap::new();
    visit_calls(family, |tool| add(&mut tools, tool));
    tools
}

fn add(tools: &mut BTreeMap<String, u64>, tool: &str) {
    match tools.get_mut(tool) {
        Some(count) => *count += 1,
        None => drop(tools.insert(tool.to_owned(), 1)),
    }
}

/// Returns the number of calls of each tool that a scan of model calls does not find: those of replies
/// without figures.
pub(crate) fn count_unbilled_tools(family: &SessionFamily) -> BTreeMap<String, u64> {
    let mut tools = BTreeMap::new();
    let mut seen = HashSet::new();
    for owner in std::iter::once(None).chain(family.agents.indices().map(Some)) {
        let session = family.session(owner);
        for call in session.tool_calls() {
            let has_figures = |idx: EntryIndex| {
                let entry = &session.entries()[idx];
                !entry.is_api_error() && entry.message().is_some_and(|message| message.usage().is_some())
            };
            let reply = &session.replies()[call.reply];
            let is_billed = !reply.is_synthetic() && call.lines.iter().copied().any(has_figures);
            let mut is_new = || call.id.is_empty() || seen.insert((reply.id.as_deref(), &*call.id));
            if !is_billed && is_new() {
                add(&mut tools, &call.name);
            }
        }
    }
    tools
}

/// Returns the number of tool calls of a session: the sum of [`count_tools`].
pub fn count_tool_calls(family: &SessionFamily) -> usize {
    let mut count = 0;
    visit_calls(family, |_| count += 1);
    count
}

/// Calls `visit` with the tool of each call of a session and its sub-agents.
fn visit_calls<'f>(family: &'f SessionFamily, mut visit: impl FnMut(&'f str)) {
    // The calls of one log are distinct.
    if family.agents.is_empty() && family.main.server_calls().is_empty() {
        family.main.tool_calls().iter().for_each(|call| visit(&call.name));
        return;
    }
    let mut seen = HashSet::new();
    for owner in std::iter::once(None).chain(family.agents.indices().map(Some)) {
        let session = family.session(owner);
        let calls = session.tool_calls().iter().map(|call| (&*call.id, &*call.name, call.reply));
        let server_calls = session.server_calls().iter().map(|call| (&*call.id, &*call.name, call.reply));
        for (id, name, reply) in calls.chain(server_calls) {
            // Other programs reuse the ids of calls, but hardly those of replies.
            let reply = session.replies()[reply].id.as_deref();
            if id.is_empty() || seen.insert((reply, id)) {
                visit(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use threadline_testkit::log;

    use super::*;

    #[test]
    fn a_call_counts_once_on_any_branch_and_in_any_log() {
        let main = log(r#"
u1        user   "weave"
a1 <- u1  reply  m1 tool t1 Bash {"command":"make"}
r1 <- a1  result t1 "ok"
u2        user   "again"
a2 <- u2  reply  m2 tool t2 Task {"prompt":"look"}
"#);
        let agent = log(r#"
x1        user   "look"
x2 <- x1  reply  m2 tool t2 Task {"prompt":"look"}
x3 <- x2  reply  m3 tool t1 Bash {"command":"ls"}
x4 <- x3  reply  m4 {"type":"server_tool_use","id":"s1","name":"web_search","input":{}}
"#);
        let family = SessionFamily::from_bytes(&main, [("a".to_owned(), agent)]);
        let tools = count_tools(&family);
        let expected = [("Bash", 2), ("Task", 1), ("web_search", 1)];
        assert_eq!(tools, expected.into_iter().map(|(name, count)| (name.to_owned(), count)).collect());
        assert_eq!(count_tool_calls(&family), 4);
    }
}
