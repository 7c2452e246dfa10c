"""Record docs/first-run.md again: a first run in a made-up home, from the wheel to an undone change, on a terminal.

`python -m scripts.first_run`; read the diff as a user would. The page has the words and the order of the steps; this
script has the commands. What differs from run to run has one name: times, ids, temporary directories.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from uv import find_uv_bin

from scripts.distributions import build
from scripts.packaging_files import ROOT
from scripts.recorded_run import put_into
from scripts.terminal import run_on_terminal
from tests.packaging.installing import SHORT_PATH, base_python, installing_environment

PAGE = ROOT / "docs" / "first-run.md"
HOME = "/home/ada"
"""What the made-up home is called on the page. The real one has as many letters: lines wrap alike."""
SMALL_SERVER = ROOT / "examples" / "first_run" / "server.py"
SERVERS = {
    "calendar": ("list_events", "add_event"),
    "contacts": ("search_contacts",),
    "files": ("list_folder", "get_file"),
    "issues": ("list_issues", "search_issues", "create_issue"),
    "mail": ("search_mail", "send_mail"),
    "maps": ("get_route",),
    "news": ("list_headlines",),
    "music": ("search_songs", "play_song"),
    "weather": ("get_forecast",),
}
"""Nine that answer; `search` hangs."""


@dataclass(frozen=True)
class Step:
    """A command that a person types, in a folder of the home."""

    command: str
    folder: str = "project"
    answers: tuple[tuple[str, str], ...] = ()


AS_HOST = Step("")
"""Here the host starts what `install` wrote for it."""


def steps(wheel: Path) -> tuple[Step, ...]:
    return (
        Step(f"pipx install ./{wheel.name}", folder="Downloads"),
        Step("goat-mcp demo"),
        Step("goat-mcp install claude-desktop", answers=(("Workspace [", ""),)),
        AS_HOST,
        Step("goat-mcp list"),
        Step("goat-mcp add notes -- python3 ~/servers/server.py notes search_notes add_note"),
        Step("goat-mcp rules allow mcp__notes__add_note"),
        Step("goat-mcp call mcp__notes__add_note text='buy oats'"),
        Step(
            "goat-mcp call Edit file_path=@prices.txt old_string=3.90 new_string=4.20",
            answers=((". Deny", "1"),),
        ),
        Step("goat-mcp undo"),
        Step("cat prices.txt"),
    )


def first_run() -> list[str]:
    """What each step leaves on the terminal, in order."""
    with made_up_home() as home:
        (home / "Downloads").mkdir()
        wheel = build(home / "dist").wheel
        shutil.move(wheel, home / "Downloads")
        shutil.rmtree(home / "dist")
        make_project(home)
        return [settled(shown(step, home), home) for step in steps(wheel)]


@contextmanager
def made_up_home() -> Generator[Path]:
    """A directory whose path is as long as `HOME`."""
    while True:
        home = Path("/tmp") / secrets.token_hex(8)[: len(HOME) - len("/tmp/")]
        try:
            home.mkdir(mode=0o700)
            break
        except FileExistsError:
            continue
    try:
        yield home
    finally:
        shutil.rmtree(home)


def make_project(home: Path) -> None:
    """A project, ten servers in the shape of Claude Desktop, and the programs that a person has."""
    project = home / "project"
    project.mkdir()
    (project / "prices.txt").write_text("goat cheese: 3.90\n")
    (home / "servers").mkdir()
    shutil.copy(SMALL_SERVER, home / "servers")
    server = str(home / "servers" / SMALL_SERVER.name)
    programs = home / ".programs"
    # By its path: a host has another PATH than a terminal, and so another `python3`.
    python = str(programs / "python3")
    entries: dict[str, Any] = {
        name: {"command": python, "args": [server, name, *tools]} for name, tools in SERVERS.items()
    }
    entries["search"] = {"command": python, "args": [server, "--hang"]}
    upstreams = home / ".config" / "goat-mcp" / "upstreams.json"
    upstreams.parent.mkdir(parents=True)
    upstreams.write_text(json.dumps({"mcpServers": entries}, indent=2) + "\n")
    programs.mkdir()
    for name, program in {
        "pipx": Path(sys.executable).with_name("pipx"),
        "uv": find_uv_bin(),
        "python3": base_python(),
    }.items():
        (programs / name).symlink_to(program)


def shown(step: Step, home: Path) -> str:
    if step is AS_HOST:
        return "\n".join(anyio.run(as_host, home))
    environment = {"HOME": str(home), "PATH": f"{home}/.local/bin:{home}/.programs:{SHORT_PATH}"}
    if step.command.startswith("pipx"):
        environment = installing_environment() | environment
    run = run_on_terminal(step.command, environment, home / step.folder, step.answers)
    status = [f"[exit status {run.exit_code}]"] if run.exit_code else []
    return "\n".join([f"$ {step.command}", *([run.text] if run.text else []), *status])


async def as_host(home: Path) -> list[str]:
    """Do what the host does: read its file, start that entry from `/` with next to no environment, and call tools."""
    config = json.loads((home / ".config" / "Claude" / "claude_desktop_config.json").read_text())
    ((name, entry),) = config["mcpServers"].items()
    environment = {"HOME": str(home), "PATH": SHORT_PATH, **entry.get("env", {})}
    server = StdioServerParameters(command=entry["command"], args=entry["args"], env=environment, cwd=os.sep)
    lines = [f"Starting {name} in {os.sep}, with the PATH {SHORT_PATH}"]
    calls: list[tuple[str, dict[str, Any]]] = [
        ("Read", {"file_path": f"{home}/project/prices.txt"}),
        ("Bash", {"command": "pwd; cat prices.txt"}),
    ]
    with (home / ".host.log").open("w") as log:
        async with Client(stdio_client(server, errlog=log)) as client:
            for tool, arguments in calls:
                result: Any = await client.call_tool(tool, arguments)
                text = "\n".join(block.text for block in result.content)
                lines += ["", f"{tool} {json.dumps(arguments)}", *(f"  {line}" for line in text.splitlines())]
                if result.is_error:
                    raise RuntimeError(f"{tool} failed: {text}")
    return lines


_VOLATILE = (
    (r"(?<=goat-mcp-demo-)\w{8}", "a1b2c3d4"),
    (r"\b[0-9a-f]{16}\b", "0123456789abcdef"),
    (r"\b[0-9a-f]\n[0-9a-f]{15}\b", "0\n123456789abcdef"),  # at the edge of the terminal
    (r"\b[a-z2-7]{32}\b", "rdom6cxnuu2zfwckdnxlaa7teodtiine"),
    (r"(?<![\w.])\d+(\.\d+)? (m?s)\b", r"N \2"),
    (r"(?<=Python )3\.\d+\.\d+", "3.11.9"),
)


def settled(text: str, home: Path) -> str:
    """The text with one name for what differs from run to run and from machine to machine."""
    text = text.replace(str(home), HOME)
    for pattern, name in _VOLATILE:
        text = re.sub(pattern, name, text)
    return "\n".join(line.rstrip() for line in text.splitlines())


if __name__ == "__main__":
    put_into(PAGE, first_run())
