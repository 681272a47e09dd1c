"""Lists and calls everything that `threadline mcp` offers, with the client of the package `mcp`.

usage: mcp_client.py COMMAND… (the command that starts the server on stdio) | mcp_client.py http URL TOKEN

Prints one line per check. The client validates structured content against the output schema of its tool.
"""

import asyncio
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.types import PromptReference, ResourceTemplateReference

TOOLS = ["search_sessions", "list_sessions", "read_session", "session_changes", "find_edits", "usage", "check_session"]


def say(what, passed, detail=""):
    print(f"{'ok  ' if passed else 'FAIL'} {what}{': ' + detail if detail else ''}", flush=True)
    return passed


async def check(session):
    passed = True
    info = await session.initialize()
    passed &= say("initialize", info.server_info.name == "threadline", f"protocol {info.protocol_version}")
    tools = (await session.list_tools()).tools
    passed &= say("tools/list", [tool.name for tool in tools] == TOOLS)
    passed &= say("schemas", all(tool.input_schema and tool.output_schema for tool in tools))

    async def call(name, **arguments):
        result = await session.call_tool(name, arguments)
        text = "".join(block.text for block in result.content if block.type == "text")
        return result, result.structured_content or {}, text

    result, listed, text = await call("list_sessions")
    sessions = listed.get("items", [])
    passed &= say("list_sessions", not result.is_error and len(sessions) > 0, f"{listed.get('total')} sessions")
    largest = max(sessions, key=lambda session: session.get("turns") or 0)["id"]
    word = next(word for word in sessions[0]["title"].split() if word.isalpha())
    result, found, text = await call("search_sessions", query=word)
    items = found.get("items", [])
    passed &= say("search_sessions", not result.is_error and len(items) > 0, f"{found.get('matches')} matches of {word}")
    passed &= say("sources", all("#" in item["source"] and item["source"] in text for item in items))
    result, read, _ = await call("read_session", session=items[0]["source"])
    passed &= say("read_session, an item of the search", not result.is_error and len(read["items"]) == 1)
    for arguments in [{}, {"turns": "1.."}, {"turns": "-1", "detail": "full"}, {"part": "agents"}]:
        result, read, _ = await call("read_session", session=largest, **arguments)
        passed &= say(f"read_session {arguments}", not result.is_error, f"{len(read['items'])} items")
    seen, cursor = [], None
    while True:
        page = {"cursor": cursor} if cursor else {}
        result, read, text = await call("read_session", session=largest, turns="1..", max_tokens=600, **page)
        if result.is_error or len(text) > 600 * 4:
            passed &= say("read_session in pages", False, text[:200])
            break
        seen += [item["source"] for item in read["items"]]
        cursor = read.get("next_cursor")
        if not cursor:
            break
    passed &= say("read_session in pages", len(seen) == len(set(seen)) > 1, f"{len(seen)} items, each once")
    changed = None
    for one in sessions:
        result, data, _ = await call("session_changes", session=one["id"])
        passed &= not result.is_error
        if data.get("items"):
            changed = changed or (one["id"], data["items"][0]["path"])
    passed &= say("session_changes", changed is not None, str(changed and changed[1]))
    if changed:
        result, data, _ = await call("session_changes", session=changed[0], at="end")
        passed &= say("session_changes at the end", not result.is_error, f"{data.get('files')} files")
        result, data, _ = await call("find_edits", file=changed[1])
        passed &= say("find_edits", not result.is_error and data["total"] > 0, f"{data.get('total')} edits")
    for by in ["day", "week", "month", "session", "project", "model", "tool", "branch"]:
        result, data, _ = await call("usage", by=by)
        passed &= say(f"usage by {by}", not result.is_error and data["total"]["calls"] > 0, f"{data['total']['calls']} calls")
    result, data, _ = await call("check_session", session=largest)
    passed &= say("check_session", not result.is_error, f"{data.get('total')} findings")
    result, _, text = await call("read_session", session="no such session anywhere")
    passed &= say("an error is a result", result.is_error and "no session matches" in text)

    resources = (await session.list_resources()).resources
    passed &= say("resources/list", len(resources) == listed["total"], f"{len(resources)} resources")
    templates = (await session.list_resource_templates()).resource_templates
    passed &= say("resources/templates/list", len(templates) == 5)
    read = await session.read_resource(resources[0].uri)
    passed &= say("resources/read", len(read.contents[0].text) > 0)
    reference = ResourceTemplateReference(type="ref/resource", uri=templates[0].uri_template)
    done = await session.complete(reference, {"name": "session", "value": largest[:4]})
    passed &= say("completion of an address", largest in done.completion.values)
    prompts = (await session.list_prompts()).prompts
    passed &= say("prompts/list", [prompt.name for prompt in prompts] == ["decisions", "continue", "recent"])
    for name, arguments in [("decisions", {"topic": word}), ("continue", {"session": largest}), ("recent", {"since": "2020"})]:
        prompt = await session.get_prompt(name, arguments)
        passed &= say(f"prompts/get {name}", len(prompt.messages[0].content.text) > 300)
    done = await session.complete(PromptReference(type="ref/prompt", name="continue"), {"name": "session", "value": ""})
    passed &= say("completion of a prompt", len(done.completion.values) == listed["total"])
    return passed


async def main():
    if sys.argv[1] == "http":
        client = create_mcp_http_client(headers={"Authorization": f"Bearer {sys.argv[3]}"})
        async with client, streamable_http_client(sys.argv[2], http_client=client) as streams:
            async with ClientSession(streams[0], streams[1]) as session:
                return await check(session)
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])
    async with stdio_client(server) as (reader, writer):
        async with ClientSession(reader, writer) as session:
            return await check(session)


sys.exit(0 if asyncio.run(main()) else 1)
