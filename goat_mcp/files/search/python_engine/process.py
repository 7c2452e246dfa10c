"""The engine's process: one request in, ripgrep's `--null` format out, exit codes as ripgrep's.

A pattern that gets stuck in one place ends it; what was found before is kept.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from goat_mcp.files.search.file_types import FILE_TYPES
from goat_mcp.files.search.python_engine.char_class import UnsupportedPattern
from goat_mcp.files.search.python_engine.dialect import compile_pattern
from goat_mcp.files.search.python_engine.scan import Scan
from goat_mcp.files.search.python_engine.walk import Walk, open_file
from goat_mcp.files.search.query import Query

_STUCK_S = 4.0
"""For one block of one file. Then the kernel's timer ends the process: a stuck pattern never returns to Python."""
_FLUSH_S = 0.2
_MATCHED, _NOTHING, _FAILED = 0, 1, 2


def main() -> None:
    """Answer the request in the file that the second argument names, and exit."""
    request = json.loads(Path(sys.argv[2]).read_bytes())
    try:
        with open(1, "wb", buffering=64 * 1024, closefd=False) as out:
            code = _answer(request, out)
    except BrokenPipeError:
        code = _NOTHING
    except UnsupportedPattern as refused:
        sys.stderr.write(str(refused))
        code = _FAILED
    sys.stderr.flush()
    os._exit(code)


def _answer(request: dict[str, Any], out: BinaryIO) -> int:
    query = Query.from_json(request["query"])
    types = None
    if query.file_type is not None:
        types = FILE_TYPES.get(query.file_type)
        if types is None:
            sys.stderr.write(f"unrecognized file type: {query.file_type}")
            return _FAILED
    walk = Walk(query, types, request["real_path"])
    if request["report"] == "files":
        found = False
        for _, _, path in walk.files():
            found = True
            out.write(path.encode("utf-8", "surrogateescape") + b"\0")
        return _exit_code(found, walk.has_errors)
    pattern = compile_pattern(
        query.patterns, literal=query.literal, ignore_case=query.ignore_case, multiline=query.multiline
    )
    return _search(request, walk, Scan(pattern, query, request["report"], out, _wind_timer))


def _search(request: dict[str, Any], walk: Walk, scan: Scan) -> int:
    if not request["is_directory"]:
        with open(0, "rb", closefd=False) as file:
            return _exit_code(scan.file(file, "<stdin>", was_named=True), False)
    named = request["paths"]
    files = _named(named) if named else walk.files()
    found = False
    has_errors = False
    flushed_at_s = time.monotonic()
    for dir_fd, name, path in files:
        try:
            with os.fdopen(open_file(name, dir_fd), "rb") as file:
                found = scan.file(file, path, was_named=bool(named)) or found
        except BrokenPipeError:
            raise
        except OSError:
            has_errors = True
        if scan.report == "lines" or time.monotonic() > flushed_at_s + _FLUSH_S:
            scan.out.flush()
            flushed_at_s = time.monotonic()
    return _exit_code(found, has_errors or walk.has_errors)


def _named(paths: list[str]) -> Iterator[tuple[int | None, str, str]]:
    for path in paths:
        yield None, path, path


def _wind_timer() -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, _STUCK_S)


def _exit_code(found: bool, has_errors: bool) -> int:
    if has_errors:
        return _FAILED
    return _MATCHED if found else _NOTHING
