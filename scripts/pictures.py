"""Make docs/pictures/*.svg from real runs: `python -m scripts.pictures`; `--check` exits 1 with what differs.

Each picture is a few commands in a throw-away project with one server, on a terminal of 100 columns. Times and places
of the machine are replaced, so that a picture changes only if what a user sees changes.
"""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "pictures"
COLUMNS = 100
TIMEOUT_S = 60.0
PICTURES: Mapping[str, Sequence[str]] = {
    "first-look": (
        "goat-mcp list weather",
        "goat-mcp call mcp__weather__current_weather town=Dunmere",
        "goat-mcp call Read file_path=/etc/passwd",
        "goat-mcp why Bash 'command=git push --force'",
    ),
}
"""Each picture, and the commands that it shows."""
_VOLATILE = ((re.compile(r"\b\d+(\.\d+)? (ms|s)\b"), "0.2 s"),)


def pictures() -> dict[Path, str]:
    """Each file, and what it should hold."""
    return {FOLDER / f"{name}.svg": picture(name, commands) for name, commands in PICTURES.items()}


def picture(name: str, commands: Sequence[str]) -> str:
    """One terminal as SVG, without fonts from elsewhere."""
    out = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory(prefix="goat-mcp-picture-") as folder:
        environment = _project(Path(folder))
        for number, command in enumerate(commands):
            if number:
                out.print()
            out.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
            out.print(Text.from_ansi(_without_places(_printed(command, environment), folder)))
    drawn = out.export_svg(title="goat-mcp", theme=MONOKAI, unique_id=name)
    # The fonts that rich names would be fetched from elsewhere: the reader's own will do.
    return re.sub(r"\s*@font-face \{.*?\}\n", "\n", drawn, flags=re.DOTALL)


def _project(folder: Path) -> dict[str, str]:
    """A home with one server, and the environment for it."""
    project = folder / "project"
    project.mkdir()
    shutil.copy(ROOT / "examples" / "weather_stdio.py", project / "weather.py")
    config = folder / ".config" / "goat-mcp"
    config.mkdir(parents=True)
    entry = {"command": sys.executable, "args": [str(project / "weather.py")]}
    (config / "upstreams.json").write_text(json.dumps({"mcpServers": {"weather": entry}}))
    path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    return {"HOME": str(folder), "PATH": path, "LANG": "C.UTF-8", "TERM": "xterm-256color", "PWD": str(project)}


def _printed(command: str, environment: Mapping[str, str]) -> str:
    """What the command prints on a terminal."""
    program, *words = shlex.split(command)
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    size = {"COLUMNS": str(COLUMNS), "LINES": "40"}
    with subprocess.Popen(
        [str(Path(sys.executable).with_name(program)), *words],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**environment, **size},
        cwd=environment["PWD"],
    ):
        os.close(theirs)
        printed = b""
        while select.select([ours], [], [], TIMEOUT_S)[0]:
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not chunk:
                break
            printed += chunk
    os.close(ours)
    return printed.decode().replace("\r\n", "\n").rstrip("\n")


def _without_places(printed: str, folder: str) -> str:
    for place, name in ((f"{folder}/project", "~/project"), (folder, "~"), (sys.executable, "python")):
        printed = printed.replace(place, name)
    for pattern, text in _VOLATILE:
        printed = pattern.sub(text, printed)
    return printed


def main() -> int:
    made = pictures()
    if "--check" in sys.argv:
        stale = [path.name for path, text in made.items() if not path.exists() or path.read_text() != text]
        for name in stale:
            sys.stderr.write(f"{name} does not show what the commands print now: python -m scripts.pictures\n")
        return 1 if stale else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path, text in made.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
