"""Why the system does not run a program beside a manifest, as its first line tells."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

_READ_BYTES = 1024
_END_OF_LINE = b"\n"


def why_not_run(file: Path) -> tuple[str, str] | None:
    """What is wrong with it and what to write; None where nothing can be said. Raises `OSError`."""
    with file.open("rb") as opened:
        start = opened.read(_READ_BYTES)
    first = start.split(_END_OF_LINE, 1)[0]
    if not first.startswith(b"#!"):
        if b"\0" in start or os.name != "posix":
            return None  # a compiled program
        return f"{file.name} does not say what runs it", "write #!/bin/sh, or what it is written in, as its first line"
    if first.endswith(b"\r"):
        what = f"the lines of {file.name} end as on Windows, so the program that its first line names is not found"
        return what, f"save it with LF line ends: sed -i 's/\\r$//' {shlex.quote(str(file))}"
    words = first[2:].decode("utf-8", "replace").split()
    if not words:
        return f"the first line of {file.name} names no program", "write #!/bin/sh"
    if words[0].startswith("/") and not os.access(words[0], os.X_OK):
        return f"the first line of {file.name} names {words[0]:.80}, which cannot be run here", "mend it, or install it"
    return None
