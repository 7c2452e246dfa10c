"""A call's arguments as hooks see them: the path of a file tool is absolute and plain, however the client wrote it.

A hook that compares paths is not got round by `@`, `//` or `..`. Source: Claude Code's hooks reference, "PreToolUse
input".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_PATHS = ("file_path", "notebook_path")


def seen_arguments(arguments: Mapping[str, Any], asked: Sequence[str]) -> Mapping[str, Any]:
    """`asked` are the paths the call names, as the tool understands them."""
    if len(asked) != 1:
        return arguments
    return {name: asked[0] if name in _PATHS else value for name, value in arguments.items()}
