"""What tests and pictures of the page show: requests that wait, and a morning's work with goat-mcp."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from goat_mcp.calls.approvals.record import Choice, Kind, Request, Verdict
from tests.e2e.goat import REPOSITORY
from tests.ui.desk import Desk

WEATHER = REPOSITORY / "examples" / "weather_stdio.py"
SETTINGS = """\
approval: {by: elicit}
permissions:
  deny: ["Bash(curl *)"]
  allow: ["Bash(ls)", "Bash(sleep *)", "Edit(/notes.md)", "mcp__weather"]
"""
_NEW_WORDS = ("The weather of one town, now. Example data: it never changes.", "The weather of one town, and who asks.")


def asked(title: str = "Bash: git push origin main", **changes: Any) -> Request:
    """A request as a call makes it."""
    rule = ("Bash(git push origin main)",)
    choices = (
        Choice("once", "Allow once"),
        Choice("session", "Allow for this session", rule),
        Choice("prefix", "Allow commands that begin so", ("Bash(git push *)",), True, "git push *"),
    )
    request = Request(Kind.CALL, title, title, "", tool="Bash", client="editor 3.1", risk="high", choices=choices)
    return replace(request, **{"expires_at_s": time.time() + 3000, **changes})


@contextmanager
def morning(desk: Desk) -> Generator[None]:
    """A server is pinned and changes later; calls end in every way; two wait, one was denied, one runs."""
    weather = desk.home / "weather.py"
    shutil.copy(WEATHER, weather)
    desk.settings(SETTINGS)
    desk.upstreams(weather={"command": sys.executable, "args": [str(weather)]}, archive={"command": "archive-server"})
    with desk.client() as wire:
        wire.listed_with("mcp__weather__list_towns")
        for tool, arguments in _calls(desk):
            wire.call(tool, arguments)
    weather.write_text(weather.read_text().replace(*_NEW_WORDS))
    with desk.client() as wire:
        wire.call("mcp__weather__current_weather", {"town": "Dunmere"})  # its definition is another one now
        denied = wire.start("tools/call", _bash("rm -rf build", "Remove what was built"))
        desk.approvals.decide(desk.waiting_one().id, Verdict(approved=False, reason="use make clean"), "page")
        wire.answer(denied)
        wire.start("tools/call", _bash("git push origin main", "Publish the change"))
        greeting = str(desk.workspace / "src" / "greeting.py")
        wire.call("Read", {"file_path": greeting})
        edit = {"file_path": greeting, "old_string": "Hello, {name}!", "new_string": "Good morning, {name.title()}!"}
        wire.start("tools/call", {"name": "Edit", "arguments": edit})
        wire.start("tools/call", _bash("sleep 300", "Wait for the build"))
        desk.waiting(2)
        yield


def _bash(command: str, description: str) -> dict[str, Any]:
    return {"name": "Bash", "arguments": {"command": command, "description": description}}


def _calls(desk: Desk) -> list[tuple[str, dict[str, Any]]]:
    notes = str(desk.workspace / "notes.md")
    return [
        ("Read", {"file_path": notes}),
        ("Edit", {"file_path": notes, "old_string": "noon", "new_string": "one"}),
        ("Grep", {"pattern": "goat"}),
        ("Bash", {"command": "ls", "description": "List the project"}),
        ("Bash", {"command": "curl https://example.org", "description": "Fetch a page"}),
        ("Read", {"file_path": str(desk.workspace / "missing.md")}),
        ("mcp__weather__current_weather", {"town": "Dunmere"}),
    ]
