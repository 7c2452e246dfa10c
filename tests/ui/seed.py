"""What tests and pictures of the page show: requests that wait, and a morning's work with goat-mcp."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from goat_mcp.calls.approvals.record import Choice, Kind, Request, Verdict
from tests.e2e.goat import REPOSITORY
from tests.ui.desk import Desk

WEATHER = REPOSITORY / "examples" / "weather_stdio.py"
SETTINGS = """\
permissions:
  deny: ["Bash(curl *)"]
  ask: ["Bash(git push *)"]
  allow: ["Bash(python3 -m pytest *)"]
"""
_DIFF = """\
--- src/greeting.py
+++ src/greeting.py
@@ -1,2 +1,2 @@
 def greet(name):
-    return f"Hello, {name}!"
+    return f"Good morning, {name.title()}!"
"""


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
    """goat-mcp works for a client: calls of all outcomes are recorded, and two more wait. It runs meanwhile."""
    desk.settings(SETTINGS)
    desk.upstreams(weather={"command": sys.executable, "args": [str(WEATHER)]}, archive={"command": "archive-server"})
    workspace = str(desk.workspace)
    greeting = desk.workspace / "src" / "greeting.py"
    with desk.client() as wire:
        wire.listed_with("mcp__weather__list_towns")
        for tool, arguments in _calls(greeting):
            wire.call(tool, arguments)
        store = desk.approvals
        denied = store.add(asked("Bash: rm -rf build", risk="critical", arguments=(("command", "rm -rf build"),)))
        store.decide(denied.id, Verdict(approved=False, reason="use make clean"), "page")
        store.add(
            asked(
                why=("it writes to a remote repository",),
                asked_by="Bash(git push *)",
                arguments=(("command", "git push origin main"),),
                workspace=workspace,
            )
        )
        store.add(
            asked("Edit src/greeting.py", tool="Edit", risk="medium", diff=_DIFF, workspace=workspace, asked_by="Edit")
        )
        yield


def _calls(greeting: Path) -> list[tuple[str, dict[str, Any]]]:
    old, new = 'f"Hello, {name}!"', 'f"Welcome, {name}!"'
    return [
        ("Read", {"file_path": str(greeting)}),
        ("Edit", {"file_path": str(greeting), "old_string": old, "new_string": new}),
        ("Grep", {"pattern": "noon"}),
        ("Bash", {"command": "ls", "description": "List the project"}),
        ("Bash", {"command": "curl https://example.org", "description": "Fetch a page"}),
        ("Read", {"file_path": str(greeting.with_name("missing.py"))}),
        ("mcp__weather__list_towns", {}),
    ]
