"""One agent file: YAML front matter and a system prompt, as Claude Code has them. Finding them is `type_files`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from goat_mcp.agents.agent_type import AgentType
from goat_mcp.calls.permissions.mode import Mode
from goat_mcp.core.names import TOOL_ALIASES, UPSTREAM_PREFIX
from goat_mcp.files.documents.front_matter import BrokenFrontMatter, Fields, split_front_matter

MAX_DESCRIPTION_CHARS = 2_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")
_TOOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_ISOLATIONS = ("worktree", "remote")


class BrokenType(ValueError):
    """An agent file that cannot be used; the text says why, and shows nothing of the file but names."""


def split_file(content: bytes) -> tuple[Fields, str]:
    """Front matter and body. Raises `BrokenType`."""
    try:
        return split_front_matter(content)
    except BrokenFrontMatter as broken:
        raise BrokenType(str(broken)) from None


def agent_type(fields: Fields, prompt: str, source: str) -> AgentType:
    """Raises `BrokenType`."""
    name = _line(fields, "name", required=True)
    if not _NAME.match(name):
        raise BrokenType(f"its name {name[:80]!r} is not made of letters, digits, _ and -")
    model = _line(fields, "model")
    return AgentType(
        name=name,
        description=_line(fields, "description", required=True)[:MAX_DESCRIPTION_CHARS],
        prompt=prompt,
        tools=_tools(fields, "tools"),
        denied=_tools(fields, "disallowedTools") or frozenset(),
        model="" if model == "inherit" else model,
        effort=_choice(fields, "effort", _EFFORTS),
        mode=_choice(fields, "permissionMode", [mode.value for mode in Mode]),
        max_turns=_positive(fields, "maxTurns"),
        background=_flag(fields, "background"),
        isolation=_choice(fields, "isolation", _ISOLATIONS),
        source=source,
    )


def _line(fields: Fields, key: str, *, required: bool = False) -> str:
    value = fields.get(key)
    if value is None or value == "":
        if required:
            raise BrokenType(f"it has no {key}")
        return ""
    if not isinstance(value, str | int | float) or (isinstance(value, int) and abs(value) > 10**18):
        raise BrokenType(f"{key} is not text")
    return " ".join(str(value).split())


def _choice(fields: Fields, key: str, choices: Sequence[str]) -> str:
    value = _line(fields, key)
    if value and value not in choices:
        raise BrokenType(f"{key} {value[:40]!r} is none of {', '.join(choices)}")
    return value


def _positive(fields: Fields, key: str) -> int | None:
    value = _line(fields, key)
    if not value:
        return None
    if not value.isascii() or not value.isdigit() or not 0 < int(value[:9]) < 100_000:
        raise BrokenType(f"{key} {value[:40]!r} is no number above 0")
    return int(value)


def _flag(fields: Fields, key: str) -> bool:
    value = _line(fields, key).lower()
    if value not in ("", "true", "false"):
        raise BrokenType(f"{key} {value[:40]!r} is neither true nor false")
    return value == "true"


def _tools(fields: Fields, key: str) -> frozenset[str] | None:
    """The names listed, as rules know them; None where all are meant."""
    value = fields.get(key)
    if key == "tools" and key in fields and not value:
        raise BrokenType("tools is empty: leave the line out for all tools, or name some")
    if value is None or value == "":
        return None
    listed = cast("list[Any]", value) if isinstance(value, list) else _line(fields, key).split(",")
    if not all(isinstance(name, str) for name in listed):
        raise BrokenType(f"{key} is no list of names")
    names = [name.strip() for name in listed if name.strip()]
    if key == "tools" and "*" in names:
        return None
    return frozenset(_rule_name(name, key) for name in names)


def _rule_name(name: str, key: str) -> str:
    if name.startswith(UPSTREAM_PREFIX) and name.endswith("__*"):
        name = name.removesuffix("__*")
    if not _TOOL_NAME.match(name):
        # To drop what stands in brackets would give the agent more than its writer meant.
        raise BrokenType(f"{key}: {name[:60]!r} is no tool name; patterns are not supported here, name the whole tool")
    return TOOL_ALIASES.get(name, name)
