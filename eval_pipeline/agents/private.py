"""The private attributes of AutoGen 0.7.5 that we cannot do without, each with its reason.

A test names every one that disappears, so that a new version of AutoGen fails there and not in a user's run.
"""

from __future__ import annotations

import asyncio

from autogen_agentchat.teams import SelectorGroupChat


def background_tasks(team: SelectorGroupChat) -> list[asyncio.Task[object]]:
    """The runtime's message handlers still under way. Cancelling them is the only way out of a stuck tool call."""
    return list(team._runtime._background_tasks)  # type: ignore[attr-defined]
