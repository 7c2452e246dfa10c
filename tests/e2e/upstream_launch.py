"""Our test servers as upstreams, each of the era that it is told: as a child process, or listening."""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from tests.e2e.goat import REPOSITORY
from tests.e2e.processes import end
from tests.quick_start import module_command

ERAS = {"old": "legacy", "new": "2026-07-28"}
UPSTREAMS = ("old_stdio", "old_http", "new_stdio", "new_http")
"""Each era over each transport."""


def child(server: str, *words: str, **members: Any) -> dict[str, Any]:
    """An entry that runs that module of `tests.e2e.servers`; `words` are its era and what else it is told."""
    command, *arguments = module_command(f"tests.e2e.servers.{server}", *words)
    return {"command": command, "args": arguments, "env": {"PYTHONPATH": str(REPOSITORY)}, **members}


@contextmanager
def listening(server: str, *words: str) -> Generator[str]:
    """The URL of such a server."""
    command = module_command(f"tests.e2e.servers.{server}", *words, "--http")
    process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        end(process)
        process.communicate()


@contextmanager
def started(upstream: str, server: str, *words: str, **members: Any) -> Generator[dict[str, Any]]:
    """The entry of one of `UPSTREAMS`."""
    era, transport = upstream.split("_")
    if transport == "stdio":
        yield child(server, ERAS[era], *words, **members)
        return
    with listening(server, ERAS[era], *words) as url:
        yield {"url": url, **members}


@contextmanager
def four(server: str, **members: Any) -> Generator[dict[str, dict[str, Any]]]:
    """The entries of all `UPSTREAMS`, by name."""
    with (
        started("old_http", server, **members) as old,
        started("new_http", server, **members) as new,
        started("old_stdio", server, **members) as old_child,
        started("new_stdio", server, **members) as new_child,
    ):
        yield {"old_stdio": old_child, "old_http": old, "new_stdio": new_child, "new_http": new}
