"""Runs the conformance checks of the Claude Agent SDK: `python test_conformance.py postgres://...`.

The database must contain an archive of threadline. Some sessions are added to it.
"""

import asyncio
import itertools
import sys

from claude_agent_sdk.testing import run_session_store_conformance
from threadline_session_store import PostgresSessionStore


async def main(url: str) -> None:
    numbers = itertools.count()
    stores: list[PostgresSessionStore] = []

    def make_store() -> PostgresSessionStore:
        store = PostgresSessionStore(url, machine=f"conformance-{next(numbers)}", user="conformance")
        stores.append(store)
        return store

    await run_session_store_conformance(make_store)
    key = {"project_key": "proj", "session_id": "once"}
    store = make_store()
    entries = [{"type": "user", "uuid": "1", "text": "\ud800 \0 ü"}, {"type": "title"}]
    await store.append(key, entries)
    await store.append(key, entries)
    assert await store.load(key) == [*entries, entries[1]], "an entry with a uuid is appended once"
    for store in stores:
        await store.close()
    print(f"{len(stores)} stores pass")


asyncio.run(main(sys.argv[1]))
