"""One check of the client with claude-agent-sdk: agent_sdk.py CHECK CLI_PATH. Fails with an exception."""
import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import time

from claude_agent_sdk import (
    AgentDefinition, AssistantMessage, ClaudeAgentOptions, ClaudeSDKClient, HookMatcher, PermissionResultAllow,
    PermissionResultDeny, ResultMessage, SystemMessage, TextBlock, ToolResultBlock, UserMessage,
    create_sdk_mcp_server, get_session_messages, list_sessions, query, tool,
)
from claude_agent_sdk.types import StreamEvent

CHECK, CLI = sys.argv[1:3]

SERVER = """
import sys
from mcp.server.mcpserver import MCPServer
server = MCPServer("real")

@server.tool()
def add(a: int, b: int) -> int:
    return a + b

@server.resource("note://one")
def one() -> str:
    return "The note"

@server.prompt()
def greet(who: str) -> str:
    return f"Greet {who}"

if sys.argv[1] == "stdio":
    server.run("stdio")
else:
    server.run(sys.argv[1], host="127.0.0.1", port=int(sys.argv[2]))
"""


def options(**values):
    return ClaudeAgentOptions(cli_path=CLI, setting_sources=[], **values)


async def ask(prompt, **values):
    """Sends one prompt. Returns all messages; the last one is a result without an error."""
    messages = [message async for message in query(prompt=prompt, options=options(**values))]
    assert isinstance(messages[-1], ResultMessage) and not messages[-1].is_error, messages[-1]
    return messages


async def turn(client, prompt):
    await client.query(prompt)
    return [message async for message in client.receive_response()]


def blocks(messages, kind, block):
    found = [m for m in messages if isinstance(m, kind) and isinstance(m.content, list)]
    return [b for m in found for b in m.content if isinstance(b, block)]


def texts(messages):
    return [b.text for b in blocks(messages, AssistantMessage, TextBlock)]


def results(messages):
    return [str(b.content) for b in blocks(messages, UserMessage, ToolResultBlock)]


async def check_query():
    assert texts(await ask("Hi")) == ["Hello."]


async def check_streaming_client():
    async with ClaudeSDKClient(options()) as client:
        info = await client.get_server_info()
        assert "commands" in info and info["agents"], info
        assert texts(await turn(client, "First")) == ["One."]
        assert texts(await turn(client, "Second")) == ["Two."]


async def permission(answer):
    asked = []

    async def can_use_tool(name, given, context):
        asked.append((name, given["file_path"]))
        return answer

    async with ClaudeSDKClient(options(can_use_tool=can_use_tool)) as client:
        messages = await turn(client, "Write")
    assert [name for name, _ in asked] == ["Write"], asked
    return messages


async def check_permission_callback_allows():
    await permission(PermissionResultAllow())
    assert open("a.txt").read() == "hello"


async def check_permission_callback_denies():
    messages = await permission(PermissionResultDeny(message="not today"))
    assert "not today" in results(messages)[0] and not os.path.exists("a.txt")


async def check_hook_callback():
    async def refuse(given, tool_use_id, context):
        output = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "refused"}
        return {"hookSpecificOutput": output}

    hooks = {"PreToolUse": [HookMatcher(matcher="Bash", hooks=[refuse])]}
    async with ClaudeSDKClient(options(hooks=hooks, allowed_tools=["Bash"])) as client:
        messages = await turn(client, "Run")
    assert "refused" in results(messages)[0] and not os.path.exists("ran")


async def check_in_process_MCP_tools():
    @tool("add", "Adds two numbers", {"a": float, "b": float})
    async def add(given):
        return {"content": [{"type": "text", "text": str(int(given["a"] + given["b"]))}]}

    calc = create_sdk_mcp_server("calc", tools=[add])
    values = options(mcp_servers={"calc": calc}, allowed_tools=["mcp__calc__add"])
    async with ClaudeSDKClient(values) as client:
        messages = await turn(client, "Add")
    assert "'42'" in results(messages)[0] and texts(messages) == ["42"], messages


async def check_interrupt():
    async with ClaudeSDKClient(options(permission_mode="bypassPermissions")) as client:
        await client.query("Run")
        while not os.path.exists("began"):
            await asyncio.sleep(0.02)
        started = time.monotonic()
        await client.interrupt()
        messages = [message async for message in client.receive_response()]
        assert messages[-1].subtype == "error_during_execution", messages[-1]
        assert time.monotonic() - started < 5
        assert texts(await turn(client, "Again")) == ["After."]


async def check_resume():
    first = await ask("First")
    second = await ask("Second", resume=first[-1].session_id)
    assert second[-1].session_id == first[-1].session_id
    shown = [str(m.message) for m in get_session_messages(first[-1].session_id)]
    assert len(shown) == 4 and "First" in shown[0] and "Two." in shown[3], shown


async def check_fork():
    first = await ask("First")
    second = await ask("Second", resume=first[-1].session_id, fork_session=True)
    assert second[-1].session_id != first[-1].session_id
    assert len(get_session_messages(first[-1].session_id)) == 2
    assert len(get_session_messages(second[-1].session_id)) == 4


async def check_partial_messages():
    messages = await ask("Hi", include_partial_messages=True)
    events = [m.event["type"] for m in messages if isinstance(m, StreamEvent)]
    assert events[0] == "message_start" and events[-1] == "message_stop" and "content_block_delta" in events, events


async def check_structured_output():
    schema = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}
    messages = await ask("Answer", output_format={"type": "json_schema", "schema": schema})
    assert messages[-1].structured_output == {"answer": 42}, messages[-1]


async def check_set_model():
    async with ClaudeSDKClient(options(model="claude-sonnet-4-5")) as client:
        first = await turn(client, "First")
        await client.set_model("claude-haiku-4-5")
        second = await turn(client, "Second")
    models = [[m.model for m in messages if isinstance(m, AssistantMessage)] for messages in (first, second)]
    assert models == [["claude-sonnet-4-5"], ["claude-haiku-4-5"]], models


async def check_set_permission_mode():
    async with ClaudeSDKClient(options()) as client:
        await turn(client, "First")
        await client.set_permission_mode("acceptEdits")
        await turn(client, "Write")
    assert open("a.txt").read() == "hello"


async def check_rewind_files():
    values = options(
        permission_mode="acceptEdits", enable_file_checkpointing=True, extra_args={"replay-user-messages": None}
    )
    async with ClaudeSDKClient(values) as client:
        messages = await turn(client, "Write")
        assert os.path.exists("a.txt")
        prompt = next(m.uuid for m in messages if isinstance(m, UserMessage) and m.content == "Write")
        await client.rewind_files(prompt)
    assert not os.path.exists("a.txt")


async def check_agents():
    agents = {"reviewer": AgentDefinition(description="Reviews", prompt="You review")}
    messages = await ask("Hi", agents=agents)
    init = next(m for m in messages if isinstance(m, SystemMessage) and m.subtype == "init")
    assert "reviewer" in init.data["agents"], init.data["agents"]


async def check_status_of_servers_and_context():
    @tool("add", "Adds", {"a": float})
    async def add(given):
        return {"content": []}

    calc = create_sdk_mcp_server("calc", tools=[add])
    async with ClaudeSDKClient(options(mcp_servers={"calc": calc})) as client:
        await turn(client, "Hi")
        status = await client.get_mcp_status()
        usage = await client.get_context_usage()
    server = status["mcpServers"][0]
    assert (server["name"], server["status"], server["tools"][0]["name"]) == ("calc", "connected", "add"), status
    assert 0 < usage["totalTokens"] < usage["maxTokens"], usage


async def check_list_sessions():
    messages = await ask("Count the words")
    sessions = list_sessions(directory=os.getcwd())
    assert [s.session_id for s in sessions] == [messages[-1].session_id], sessions
    assert sessions[0].first_prompt == "Count the words", sessions


async def check_get_session_messages():
    messages = await ask("Write", permission_mode="acceptEdits")
    shown = get_session_messages(messages[-1].session_id)
    assert [m.type for m in shown] == ["user", "assistant", "user", "assistant"], shown


@contextlib.contextmanager
def server_config(transport):
    """Starts a server of the package `mcp`, if it is not a process of the client."""
    if transport == "stdio":
        yield {"command": sys.executable, "args": ["-c", SERVER, "stdio"]}
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with open("server.log", "w") as log:
        process = subprocess.Popen([sys.executable, "-c", SERVER, transport, str(port)], stderr=log)
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            assert process.poll() is None, open("server.log").read()
            time.sleep(0.05)
        kind, path = ("sse", "sse") if transport == "sse" else ("http", "mcp")
        yield {"type": kind, "url": f"http://127.0.0.1:{port}/{path}"}
    finally:
        process.terminate()
        process.wait()


async def check_server(transport):
    with server_config(transport) as config:
        values = options(mcp_servers={transport: config}, allowed_tools=[f"mcp__{transport}__add"])
        async with ClaudeSDKClient(values) as client:
            messages = await turn(client, "Add")
            greeted = await turn(client, f"/mcp__{transport}__greet Ada")
    added, note = results(messages)
    assert "42" in added and "The note" in note, messages
    shown = [str(m.message) for m in get_session_messages(greeted[-1].session_id)]
    assert texts(greeted) == ["Greeted."] and any("greet" in text for text in shown), shown


if CHECK.startswith("MCP server "):
    asyncio.run(check_server(CHECK.removeprefix("MCP server ")))
else:
    asyncio.run(globals()["check_" + CHECK.replace(" ", "_").replace("-", "_")]())
