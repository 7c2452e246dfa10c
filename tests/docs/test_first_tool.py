"""docs/first-tool.md: its files are written and its commands run, in order, and print what the page shows."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import anyio
import pytest

from goat_mcp.embed import open_tools
from tests.docs.test_documents import ROOT
from tests.free_port import free_port
from tests.quick_start import goat_command, script_command

DOCUMENT = ROOT / "docs" / "first-tool.md"
RUN_TIMEOUT_S = 120
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"(?:#|//) ([\w/]+\.\w+)\n")


class Step(NamedTuple):
    """A file that the page has its reader write, or a command with what it prints."""

    file: str
    command: str
    text: str


def steps() -> Iterator[Step]:
    for language, body in _FENCE.findall(DOCUMENT.read_text()):
        if language == "console":
            for step in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                command, _, printed = step.partition("\n")
                yield Step("", command, printed)
        elif named := _FILE.match(body):
            yield Step(named[1], "", body[named.end() :])


class Ada:
    """Her home, and the port of her server, which on the page is 8075."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.bin = folder / "bin"
        self.manifests = self.home / ".config" / "goat-mcp" / "manifests"
        self.bin.mkdir()
        self.manifests.mkdir(parents=True)
        programs = {
            "python3": [sys.executable],
            "goat-mcp": goat_command(),
            "notes-server": script_command(ROOT / "examples" / "weather_stdio.py"),
        }
        for name, command in programs.items():
            (self.bin / name).write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
            (self.bin / name).chmod(0o755)
        self.port = free_port()
        self.servers: list[subprocess.Popen[bytes]] = []

    def write(self, name: str, text: str) -> None:
        file = (self.manifests if name != "moon_server.py" else self.home) / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)

    def run(self, command: str) -> str:
        environment = {"PATH": f"{self.bin}:{os.defpath}", "HOME": str(self.home)}
        command = command.replace("8075", str(self.port))
        if command.endswith(" &"):
            words = ["sh", "-c", f"exec {command[:-2]}"]
            self.servers.append(subprocess.Popen(words, env=environment, cwd=self.home, stderr=subprocess.DEVNULL))
            self._wait_for_the_server()
            return ""
        done = subprocess.run(
            ["sh", "-c", command],
            env=environment,
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=RUN_TIMEOUT_S,
        )
        return done.stdout.replace(str(self.home), "/home/ada").replace(str(self.port), "8075")

    def _wait_for_the_server(self) -> None:
        for _ in range(RUN_TIMEOUT_S * 10):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
            except ConnectionRefusedError:
                assert self.servers[-1].poll() is None
                time.sleep(0.1)
            else:
                return
        raise TimeoutError("the page's server does not listen")

    def stop(self) -> None:
        for server in self.servers:
            server.kill()
            server.wait()


@pytest.mark.e2e
@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_the_page_goes_as_it_is_written(tmp_path: Path) -> None:
    ada = Ada(tmp_path)
    ran: list[Step] = []

    try:
        for file, command, text in steps():
            if file:
                ada.write(file, text)
                ran.append(Step(file, "", text))
            else:
                ran.append(Step("", command, ada.run(command)))
    finally:
        ada.stop()

    assert ran == list(steps())


@pytest.mark.anyio
async def test_a_running_server_sees_a_changed_handler_and_a_changed_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the page says of servers that run."""
    monkeypatch.setenv("GOAT_MCP_STATE_DIR", str(tmp_path / "state"))
    ada = Ada(tmp_path)
    ada.run("goat-mcp manifest new weather")
    handlers = next(step.text for step in steps() if step.file == "weather/handlers.py")
    (tmp_path / "ws").mkdir()

    async with open_tools({"workspace": [str(tmp_path / "ws")], "manifests": [str(ada.manifests)]}) as tools:
        before = await tools.call("weather__today", {"city": "Oslo"})
        ada.write("weather/handlers.py", handlers)
        after = await tools.call("weather__today", {"city": "Oslo"})
        manifest = ada.manifests / "weather" / "tool.yaml"
        manifest.write_text(manifest.read_text().replace("name: today ", "name: now   "))
        with anyio.fail_after(60):
            while (renamed := await tools.call("weather__now", {"city": "Oslo"})).error_code == (  # noqa: ASYNC110  # nobody outside is told of a reload
                "E_TOOL_NOT_FOUND"
            ):
                await anyio.sleep(0.1)

    assert '"note": "example data"' in before.text
    assert after.text == '{"city": "Oslo", "degrees": 7}'
    assert "has no 'now'" in renamed.text
