"""Run a command on a terminal of its own, answer what it asks, and get what a person sees at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyte  # pyright: ignore[reportMissingTypeStubs]

from tests.cli.terminal_session import TerminalSession

COLUMNS = 80
LINES = 500
"""More than a command prints: nothing scrolls away."""


@dataclass(frozen=True)
class Shown:
    text: str
    exit_code: int


def run_on_terminal(
    command: str,
    environment: Mapping[str, str],
    folder: Path,
    answers: Sequence[tuple[str, str]] = (),
    timeout_s: float = 120,
) -> Shown:
    """What a shell command leaves on a terminal of 80 columns, as text.

    `answers` are typed in order, each once the terminal shows the text before it. What is typed is shown too.
    """
    with TerminalSession(
        ["/bin/sh", "-c", command], cwd=folder, variables=environment, columns=COLUMNS, rows=LINES
    ) as session:
        for question, answer in answers:
            session.wait_for(question)
            session.type(f"{answer}\n".encode())
        return Shown(exit_code=session.end(timeout_s), text=_on_screen(session.output))


def _on_screen(output: bytes) -> str:
    """What a terminal shows after it was sent `output`: lines may have been written over."""
    screen = pyte.Screen(COLUMNS, LINES)
    pyte.ByteStream(screen).feed(output)
    return "\n".join(line.rstrip() for line in screen.display).rstrip()
