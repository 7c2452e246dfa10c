"""One account with a project, the hosts of its user, and goat-mcp: all of it below one folder."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from goat_mcp.calls.approvals.record import Approval
from goat_mcp.calls.approvals.store import ApprovalStore
from goat_mcp.server.ui.login import LoginLinks
from goat_mcp.state.directory import StateDirectory
from tests.e2e.conftest import fill
from tests.e2e.processes import end
from tests.e2e.wire import Wire
from tests.quick_start import goat_command

START_TIMEOUT_S = 60.0
HOSTS = {
    ".config/Claude/claude_desktop_config.json": {},
    ".cursor/mcp.json": {"mcpServers": {"notes": {"command": "notes-server"}, "maps": {"url": "https://example.org"}}},
}


@dataclass
class Desk:
    """`origin` is where the page is, once it is served."""

    home: Path
    origin: str = ""
    logins: dict[str, Any] = field(default_factory=dict[str, Any])
    """What a browser keeps after a login, by the page's origin: one login serves all windows of a page."""
    _links: list[str] = field(default_factory=list[str])

    @property
    def workspace(self) -> Path:
        return self.home / "project"

    @property
    def state(self) -> StateDirectory:
        return StateDirectory(self.home / ".local" / "state" / "goat-mcp")

    @property
    def approvals(self) -> ApprovalStore:
        return ApprovalStore(self.state)

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GOAT_MCP_", "XDG_"))}
        return {
            **kept,
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "GOAT_MCP_STATE_DIR": str(self.state.path),
        }

    def new_link(self) -> str:
        """Opens a session, once."""
        return self._links.pop() if self._links else LoginLinks(self.state, self.origin).new()

    def waiting_one(self) -> Approval:
        """The only record that waits, as soon as there is one."""
        (one,) = self.waiting(1)
        return one

    def waiting(self, count: int) -> list[Approval]:
        """All that waits, as soon as it is so many."""
        ends_at_s = time.monotonic() + START_TIMEOUT_S
        while len(found := self.approvals.waiting()) < count:
            assert time.monotonic() < ends_at_s, f"only {len(found)} wait"
            time.sleep(0.05)
        return found

    def settings(self, text: str) -> None:
        file = self.home / ".config" / "goat-mcp" / "goat-mcp.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def upstreams(self, **servers: Any) -> None:
        file = self.home / ".config" / "goat-mcp" / "upstreams.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"mcpServers": servers}))

    @contextmanager
    def client(self, *options: str) -> Generator[Wire]:
        """A real `goat-mcp serve` over stdio, and a client without forms that has connected to it."""
        command = goat_command("serve", "--workspace", str(self.workspace), *options)
        with Wire(command, self.environment, self.workspace, self.home / "stderr") as wire:
            wire.handshake("editor", "3.1")
            yield wire

    @contextmanager
    def page(self) -> Generator[None]:
        """A real `goat-mcp ui` meanwhile."""
        process = subprocess.Popen(
            goat_command("ui", "--no-open", "--json", "--port", "0"),
            env=self.environment,
            cwd=self.workspace,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=(self.home / "page_stderr").open("ab"),
            text=True,
        )
        try:
            link: str = json.loads(_first_line(process))["url"]
            parts = urlsplit(link)
            self.origin = f"{parts.scheme}://{parts.netloc}"
            self._links.append(link)
            yield
        finally:
            end(process)

    @contextmanager
    def served(self) -> Generator[Desk]:
        """This account, with its page."""
        with self.page():
            yield self


def new_desk(home: Path) -> Desk:
    """An account in which nothing has happened yet."""
    desk = Desk(home)
    fill(desk.workspace)
    desk.state.path.mkdir(parents=True, mode=0o700)
    for name, content in HOSTS.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(json.dumps(content, indent=2) + "\n")
    return desk


def _first_line(process: subprocess.Popen[str]) -> str:
    lines = queue.Queue[str]()
    pipe = process.stdout
    assert pipe is not None
    threading.Thread(target=lambda: lines.put(pipe.readline()), daemon=True).start()
    line = lines.get(timeout=START_TIMEOUT_S)
    assert line, f"goat-mcp ui ended with {process.wait(10)}"
    return line
