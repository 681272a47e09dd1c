"""A SessionStore of the Claude Agent SDK that keeps sessions in an archive of threadline.

The database must contain an archive: `threadline archive push --to postgres://...` creates the tables.
Sessions that the SDK writes are then read like all others: `threadline list --from postgres://...`.

    from claude_agent_sdk import ClaudeAgentOptions, query
    from threadline_session_store import PostgresSessionStore

    store = PostgresSessionStore("postgres://ada@db.example/sessions")
    options = ClaudeAgentOptions(session_store=store)

Requires `claude-agent-sdk` and `psycopg` 3. The password is read from the address, from PGPASSWORD or from
~/.pgpass.
"""

from __future__ import annotations

import asyncio
import getpass
import hashlib
import json
import socket
from typing import Any

import psycopg
from claude_agent_sdk import fold_session_summary

_TABLES = ("lines", "messages", "tool_calls", "tool_results", "usage", "entry_ids")


class PostgresSessionStore:
    """Stores every transcript as a file of a home of its own, named like the files of Claude Code.

    `machine` and `user` are what `--machine` and `--user` of threadline select. Each instance uses one
    connection, which is opened again if it was lost.
    """

    def __init__(self, url: str, *, machine: str | None = None, user: str | None = None) -> None:
        self._url = url
        self._machine = machine or socket.gethostname()
        self._user = user or getpass.getuser()
        self._connection: psycopg.AsyncConnection[Any] | None = None
        self._lock = asyncio.Lock()

    async def append(self, key: dict[str, str], entries: list[dict[str, Any]]) -> None:
        """Appends entries in one transaction. An entry whose uuid was appended before is left out."""
        if not entries:
            return
        name = _file_name(key)
        async with self._lock, (await self._connect()).transaction():
            home = await self._home()
            file, at, line = await self._lock_file(home, name, key["session_id"])
            for entry in entries:
                uuid = entry.get("uuid")
                if uuid is not None and not await self._is_new(file, str(uuid)):
                    continue
                content = _line(entry)
                line += 1
                await self._run(
                    "insert into threadline.lines (file, at, line, content) values (%s, %s, %s, %s)",
                    (file, at, line, content),
                )
                at += len(content)
            # Without a digest, threadline reads the file again and derives messages and usage from it.
            await self._run(
                "update threadline.files set size = %s, n_lines = %s, digest = '', modified = "
                "extract(epoch from clock_timestamp()) * 1000 where id = %s",
                (at, line, file),
            )

    async def load(self, key: dict[str, str]) -> list[dict[str, Any]] | None:
        """Returns the entries of a transcript, or None if there is none."""
        async with self._lock:
            await self._connect()
            files = await self._files("name = %s", _file_name(key))
            if not files:
                return None
            rows = await self._run("select content from threadline.lines where file = %s order by at", (files[0][0],))
            return [json.loads(row[0]) for row in await rows.fetchall()]

    async def list_sessions(self, project_key: str) -> list[dict[str, Any]]:
        """Returns the sessions of a project, with the times of their last change."""
        prefix = f"projects/{_plain(project_key)}/"
        async with self._lock:
            await self._connect()
            files = await self._files("starts_with(name, %s)", prefix)
        logs = [(name.removeprefix(prefix), modified) for _, name, modified in files]
        return [
            {"session_id": log.removesuffix(".jsonl"), "mtime": modified} for log, modified in logs if "/" not in log
        ]

    async def list_session_summaries(self, project_key: str) -> list[dict[str, Any]]:
        """Returns the summaries of the sessions of a project, made from their transcripts."""
        summaries = []
        for session in await self.list_sessions(project_key):
            key = {"project_key": project_key, "session_id": session["session_id"]}
            summary = fold_session_summary(None, key, await self.load(key) or [])
            summaries.append({**summary, "mtime": session["mtime"]})
        return summaries

    async def list_subkeys(self, key: dict[str, str]) -> list[str]:
        """Returns the sub-paths of a session, such as those of its sub-agents."""
        prefix = _folder(key)
        async with self._lock:
            await self._connect()
            files = await self._files("starts_with(name, %s)", prefix)
        return sorted(name.removeprefix(prefix).removesuffix(".jsonl") for _, name, _ in files)

    async def delete(self, key: dict[str, str]) -> None:
        """Deletes a transcript, and with a session also all its sub-paths."""
        name = _file_name(key)
        async with self._lock, (await self._connect()).transaction():
            files = await self._files("name = %s", name)
            if "subpath" not in key:
                files += await self._files("starts_with(name, %s)", _folder(key))
            ids = [file for file, _, _ in files]
            for table in _TABLES:
                await self._run(f"delete from threadline.{table} where file = any (%s)", (ids,))
            await self._run("delete from threadline.files where id = any (%s)", (ids,))
            if "subpath" not in key:
                session = (await self._home(), key["session_id"])
                await self._run("delete from threadline.sessions where home = %s and id = %s", session)

    async def close(self) -> None:
        """Closes the connection."""
        if self._connection is not None:
            await self._connection.close()

    async def _connect(self) -> psycopg.AsyncConnection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = await psycopg.AsyncConnection.connect(self._url, autocommit=True)
        return self._connection

    async def _run(self, statement: str, values: tuple[Any, ...]) -> psycopg.AsyncCursor[Any]:
        return await (await self._connect()).execute(statement, values)

    async def _home(self) -> int:
        """Returns the id of the home, which is added if necessary."""
        machine_id, path = f"agent-sdk:{self._machine}", "/agent-sdk"
        folder = hashlib.sha256(f"{machine_id}\n{path}".encode()).hexdigest()[:32]
        rows = await self._run(
            "insert into threadline.homes (folder, machine_id, machine, user_name, path) values (%s, %s, %s, %s, %s) "
            "on conflict (owner, folder) do update set user_name = excluded.user_name returning id",
            (folder, machine_id, self._machine, self._user, path),
        )
        return (await rows.fetchone())[0]

    async def _files(self, condition: str, value: str) -> list[tuple[int, str, int]]:
        rows = await self._run(
            f"select id, name, modified from threadline.files where home = %s and is_current and {condition}",
            (await self._home(), value),
        )
        return await rows.fetchall()

    async def _lock_file(self, home: int, name: str, session: str) -> tuple[int, int, int]:
        """Returns the id of a file, which is added if necessary, with its size and its number of lines."""
        await self._run(
            "insert into threadline.files (home, name, version, session, level, size, digest, modified, tail_at, "
            "n_lines, longest_line, is_log, n_invalid, is_torn, row_sum, tail_sum, checksum) values "
            "(%s, %s, 0, %s, 'full', 0, '', 0, 0, 0, 0, false, 0, false, 0, 0, '') on conflict do nothing",
            (home, name, session),
        )
        rows = await self._run(
            "select id, size, n_lines from threadline.files where home = %s and name = %s and is_current for update",
            (home, name),
        )
        return await rows.fetchone()

    async def _is_new(self, file: int, uuid: str) -> bool:
        rows = await self._run(
            "insert into threadline.entry_ids (file, uuid) values (%s, %s) on conflict do nothing returning 1",
            (file, uuid),
        )
        return await rows.fetchone() is not None


def _line(entry: dict[str, Any]) -> bytes:
    try:
        return json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    except UnicodeEncodeError:
        # A lone surrogate can only be written as an escape.
        return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


def _plain(name: str) -> str:
    """Returns a name that can be a part of a path."""
    if not name or name in (".", "..") or any(ch in "/\\:" or ord(ch) < 32 for ch in name):
        raise ValueError(f"not a plain name: {name!r}")
    return name


def _folder(key: dict[str, str]) -> str:
    return f"projects/{_plain(key['project_key'])}/{_plain(key['session_id'])}/"


def _file_name(key: dict[str, str]) -> str:
    folder = _folder(key)
    if "subpath" not in key:
        return f"{folder.removesuffix('/')}.jsonl"
    return folder + "/".join(_plain(part) for part in key["subpath"].split("/")) + ".jsonl"
