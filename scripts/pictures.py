"""Make docs/pictures/*.svg from real runs: `python -m scripts.pictures`; `--check` exits 1 with what differs.

Each picture is a few commands in a throw-away project with one server, on a terminal of 100 columns. Times and places
of the machine are replaced, so that a picture changes only if what a user sees changes.
"""

from __future__ import annotations

import io
import itertools
import json
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyte  # pyright: ignore[reportMissingTypeStubs]
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from tests.cli.terminal_session import TerminalSession

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "pictures"
COLUMNS, LINES = 100, 60
TIMEOUT_S = 60.0
PICTURES: Mapping[str, Sequence[str]] = {
    "first-look": (
        "goat-mcp list weather",
        "goat-mcp rules allow mcp__weather",
        "goat-mcp call mcp__weather__current_weather town=Dunmere",
        "goat-mcp call Read file_path=/etc/passwd",
    ),
}
"""Each picture, and the commands that it shows."""
_VOLATILE = ((re.compile(r"\b\d+(\.\d+)? (ms|s)\b"), "0.2 s"),)


def pictures() -> dict[Path, str]:
    """Each file, and what it should hold."""
    return {FOLDER / f"{name}.svg": picture(name, commands) for name, commands in PICTURES.items()}


def picture(name: str, commands: Sequence[str]) -> str:
    """One terminal as SVG, without fonts from elsewhere. Its folder has a short name: long ones would break lines."""
    out = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory(prefix="g", dir="/tmp") as folder:
        environment = _project(Path(folder))
        for number, command in enumerate(commands):
            if number:
                out.print()
            out.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
            out.print(_without_places(_screen(_printed(command, environment)), folder))
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


def _printed(command: str, environment: Mapping[str, str]) -> bytes:
    """What the command writes to a terminal."""
    program, *words = shlex.split(command)
    argv = [str(Path(sys.executable).with_name(program)), *words]
    folder = Path(environment["PWD"])
    with TerminalSession(argv, cwd=folder, variables=environment, columns=COLUMNS, rows=LINES) as session:
        session.end(TIMEOUT_S)
        return session.output


def _screen(printed: bytes) -> list[list[tuple[str, str]]]:
    """What a person sees in the end: the lines, each as texts with their style."""
    screen = pyte.Screen(COLUMNS, LINES)
    pyte.ByteStream(screen).feed(printed)
    lines: list[list[tuple[str, str]]] = []
    for row in range(screen.cursor.y + 1):
        cells = [screen.buffer[row][column] for column in range(COLUMNS)]
        spans = [("".join(cell.data for cell in same), style) for style, same in itertools.groupby(cells, _style)]
        lines.append(spans)
    while lines and not "".join(text for text, _ in lines[-1]).strip():
        lines.pop()
    return lines


def _style(cell: pyte.screens.Char) -> str:
    colour = {"default": "", "brown": "yellow"}.get(cell.fg, cell.fg.replace("bright", "bright_"))
    return " ".join(["bold"] * cell.bold + [colour])


def _without_places(lines: list[list[tuple[str, str]]], folder: str) -> Text:
    shown = Text()
    for line in lines:
        part = Text()
        for text, style in line:
            for place, name in ((f"{folder}/project", "~/project"), (folder, "~"), (sys.executable, "python")):
                text = text.replace(place, name)
            for pattern, fixed in _VOLATILE:
                text = pattern.sub(fixed, text)
            part.append(text, style=style.strip())
        part.rstrip()
        shown.append_text(part).append("\n")
    shown.rstrip()
    return shown


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
