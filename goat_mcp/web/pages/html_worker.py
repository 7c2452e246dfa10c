"""The worker's process: one page in, its Markdown out. It limits itself, so that it ends even if nobody kills it.

In: a line of JSON (`content_type`, `url`), then the body. Out: a line of JSON (`cut`, `is_too_deep`), then the text.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from types import FrameType

from goat_mcp.processes.computing.limits import limit_resources
from goat_mcp.web.pages.charset import decode_page
from goat_mcp.web.pages.visible_markdown import OutOfRoom, VisibleMarkdown

CPU_S = 2.5
"""A page of 5 MB takes about one; a page that takes longer was made to."""
_HARD_CPU_S = 5
_MEMORY_BYTES = 512 * 1024 * 1024


class _OutOfTime(Exception):
    """Raised wherever the page has led to, also out of a pattern that got stuck."""


def main() -> None:
    """Convert the page on standard input, and exit."""
    limit_resources(cpu_s=_HARD_CPU_S, memory_bytes=_MEMORY_BYTES)
    with open(0, "rb", closefd=False) as source:
        request = json.loads(source.readline())
        body = source.read()
    page = VisibleMarkdown(request["url"])
    cut: str | None = None
    _start_timer()
    try:
        page.read(decode_page(body, request["content_type"]))
    except _OutOfTime:
        cut = f"it is too complex: only what could be converted in {CPU_S:g} s is shown"
    except OutOfRoom:
        cut = "its text is too long"
    except MemoryError:
        cut = "it takes too much memory"
    finally:
        _stop_timer()
    text = page.so_far()
    with open(1, "wb", closefd=False) as out:
        out.write(json.dumps({"cut": cut, "is_too_deep": page.is_too_deep}).encode("ascii") + b"\n")
        out.write(text.encode("utf-8", "replace"))
    os._exit(0)  # taking the interpreter down takes longer than many pages


def _start_timer() -> None:
    if sys.platform != "win32":
        signal.signal(signal.SIGPROF, _expire)
        signal.setitimer(signal.ITIMER_PROF, CPU_S)


def _stop_timer() -> None:
    if sys.platform != "win32":
        signal.signal(signal.SIGPROF, signal.SIG_IGN)


def _expire(number: int, frame: FrameType | None) -> None:
    raise _OutOfTime
