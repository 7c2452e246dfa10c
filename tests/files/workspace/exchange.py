"""Two names that are exchanged over and over while a test looks: the race between a check and its use."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def swapping(one: Path, other: Path) -> Generator[None]:
    """Exchange two names over and over in a thread, in one step each time where the system can."""
    exchange = exchanger()
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            exchange(one, other)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(10)
    assert not thread.is_alive()


def exchanger() -> Callable[[Path, Path], None]:
    libc = ctypes.CDLL(None)

    def by_three(one: Path, other: Path) -> None:
        aside = one.with_name("aside")
        one.rename(aside)
        other.rename(one)
        aside.rename(other)

    def at_once(one: Path, other: Path) -> None:
        at_cwd, exchange = -100, 2
        if libc.renameat2(at_cwd, os.fsencode(one), at_cwd, os.fsencode(other), exchange) != 0:
            raise OSError("renameat2 failed")

    return at_once if hasattr(libc, "renameat2") else by_three
