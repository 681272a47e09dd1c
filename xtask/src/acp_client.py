"""One check of `threadline chat --acp` with the client of agent-client-protocol: acp_client.py CHECK CLI_PATH."""
import asyncio
import os
import sys

from acp import PROTOCOL_VERSION, spawn_agent_process, text_block
from acp.schema import AllowedOutcome, ClientCapabilities, RequestPermissionResponse

CHECK, CLI = sys.argv[1:3]


class Editor:
    """An editor that notes updates and permits everything that its user would."""

    def __init__(self):
        self.updates, self.questions, self.choice = [], [], "allow"

    async def session_update(self, session_id, update, **_):
        self.updates.append(update)

    async def request_permission(self, session_id, tool_call, options, **_):
        self.questions.append((tool_call, [option.option_id for option in options]))
        return RequestPermissionResponse(outcome=AllowedOutcome(option_id=self.choice, outcome="selected"))

    def of(self, kind):
        return [update for update in self.updates if update.session_update == kind]

    def text(self, kind="agent_message_chunk"):
        return "".join(update.content.text for update in self.of(kind))


async def run(check):
    editor = Editor()
    async with spawn_agent_process(editor, CLI, "chat", "--acp", env=dict(os.environ)) as (agent, process):
        answer = await agent.initialize(protocol_version=PROTOCOL_VERSION, client_capabilities=ClientCapabilities())
        assert answer.protocol_version == 1 and answer.agent_capabilities.load_session, answer
        await check(editor, agent)


async def new(agent):
    return await agent.new_session(cwd=os.getcwd(), mcp_servers=[])


async def ask(agent, session_id, text):
    answer = await agent.prompt(session_id=session_id, prompt=[text_block(text)])
    await asyncio.sleep(0.1)
    return answer.stop_reason


async def check_prompt(editor, agent):
    session = await new(agent)
    assert session.modes.current_mode_id == "default" and len(session.modes.available_modes) == 5, session
    assert await ask(agent, session.session_id, "Hi") == "end_turn"
    assert editor.text() == "Hello." and editor.text("agent_thought_chunk") == "Hm.", editor.updates
    assert editor.of("available_commands_update")


async def check_permission(editor, agent):
    session = await new(agent)
    assert await ask(agent, session.session_id, "Write") == "end_turn"
    call, options = editor.questions[0]
    assert call.title == "Write a.txt" and options == ["allow", "always", "reject"], editor.questions
    started, done = editor.of("tool_call")[0], editor.of("tool_call_update")[-1]
    assert started.kind == "edit" and started.content[0].new_text == "hello", started
    assert started.locations[0].path == os.path.join(os.getcwd(), "a.txt"), started
    assert done.status == "completed" and open("a.txt").read() == "hello", done
    editor.choice = "reject"
    assert await ask(agent, session.session_id, "Again") == "end_turn"
    assert editor.of("tool_call_update")[-1].status == "failed" and not os.path.exists("b.txt")


async def check_modes_and_plan(editor, agent):
    session = await new(agent)
    await agent.set_session_mode(session_id=session.session_id, mode_id="acceptEdits")
    assert await ask(agent, session.session_id, "Go") == "end_turn"
    assert not editor.questions and open("a.txt").read() == "hello"
    entries = [[(entry.content, entry.status) for entry in plan.entries] for plan in editor.of("plan")]
    assert entries == [[("First", "pending")], [("First", "completed")]], entries


async def check_cancel(editor, agent):
    session = await new(agent)
    await agent.set_session_mode(session_id=session.session_id, mode_id="bypassPermissions")
    turn = asyncio.create_task(ask(agent, session.session_id, "Run"))
    while not os.path.exists("began"):
        await asyncio.sleep(0.02)
    await agent.cancel(session_id=session.session_id)
    assert await asyncio.wait_for(turn, 10) == "cancelled"
    assert await ask(agent, session.session_id, "Again") == "end_turn"


async def check_load_list_resume_fork(editor, agent):
    session = await new(agent)
    await ask(agent, session.session_id, "First prompt")
    listed = await agent.list_sessions(cwd=os.getcwd())
    assert [found.session_id for found in listed.sessions] == [session.session_id], listed
    editor.updates.clear()
    await agent.load_session(session_id=session.session_id, cwd=os.getcwd(), mcp_servers=[])
    await asyncio.sleep(0.1)
    assert editor.text("user_message_chunk") == "First prompt" and editor.text() == "One.", editor.updates
    await ask(agent, session.session_id, "Second prompt")
    editor.updates.clear()
    await agent.resume_session(session_id=session.session_id, cwd=os.getcwd(), mcp_servers=[])
    assert not editor.of("user_message_chunk")
    fork = await agent.fork_session(session_id=session.session_id, cwd=os.getcwd(), mcp_servers=[])
    assert fork.session_id != session.session_id
    assert await ask(agent, fork.session_id, "Third prompt") == "end_turn"
    await agent.close_session(session_id=fork.session_id)


asyncio.run(run(globals()["check_" + CHECK.removeprefix("ACP ").replace(", ", "_").replace(" ", "_")]))
