"""What a command waits for, shown on a terminal as soon as it takes over a second."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

from goat_mcp.cli.terminal import console, escaped

SHOWN_AFTER_S = 1.0


class Waiting:
    """One line on stderr with a spinner and the seconds; `update` says what is waited for now."""

    def __init__(self, what: str) -> None:
        self.what = what

    def update(self, what: str) -> None:
        self.what = what


@contextmanager
def waiting_for(what: str) -> Generator[Waiting]:
    """Show `what` on stderr if the block takes over a second; nothing if stderr is not a terminal.

    The line goes away with the block, so that stdout is the same with and without it.
    """
    shown = Waiting(what)
    out = console(stderr=True)
    if not sys.stderr.isatty() or not out.is_terminal or out.is_dumb_terminal:
        yield shown
        return
    done = threading.Event()
    thread = threading.Thread(target=_show, args=(shown, done), daemon=True)
    thread.start()
    try:
        yield shown
    finally:
        done.set()
        thread.join()


def _show(shown: Waiting, done: threading.Event) -> None:
    if done.wait(SHOWN_AFTER_S):
        return
    from rich.text import Text

    started_s = time.monotonic() - SHOWN_AFTER_S
    with console(stderr=True).status("") as line:
        while not done.is_set():
            line.update(Text(f"{escaped(shown.what)} ({time.monotonic() - started_s:.0f} s)"))
            done.wait(0.2)
