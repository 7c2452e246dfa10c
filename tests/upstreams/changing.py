"""An upstream that changes its definitions, over stdio or HTTP, as tests of pinning need it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.upstreams.fleet import SERVERS, server


def tool(name: str, description: str = "as it was", **members: Any) -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": {"type": "object"}, **members}


@dataclass
class Changing:
    """The server's files. `entry` is how a user writes it down."""

    folder: Path
    port: int = 0

    @property
    def file(self) -> Path:
        return self.folder / "definitions.json"

    def offer(
        self,
        *tools: dict[str, Any],
        prompts: Sequence[dict[str, Any]] = (),
        templates: Sequence[dict[str, Any]] = (),
        instructions: str = "",
    ) -> None:
        """What it lists from now on. It says nothing of it."""
        offered: dict[str, Any] = {"tools": [tool("announce"), *tools], "prompts": prompts, "templates": templates}
        offered["instructions"] = instructions
        self.file.write_text(json.dumps(offered))

    def calls(self) -> Sequence[str]:
        log = self.folder / "log"
        return log.read_text().splitlines() if log.exists() else []

    def entry(self, **members: Any) -> dict[str, Any]:
        if self.port:
            return {"type": "http", "url": f"http://127.0.0.1:{self.port}/mcp", **members}
        return server("changing.py", self.file, self.folder / "log", **members)

    @contextmanager
    def listening(self) -> Generator[None]:
        """Over HTTP it must run by itself; over stdio this does nothing."""
        if not self.port:
            yield
            return
        command = [sys.executable, SERVERS / "changing.py", "http", str(self.port), self.file, self.folder / "log"]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            ends_at_s = time.monotonic() + 30
            while time.monotonic() < ends_at_s and process.poll() is None:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                        break
                time.sleep(0.05)
            yield
        finally:
            process.kill()
            process.wait()
