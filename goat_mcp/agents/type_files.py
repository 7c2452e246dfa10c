"""Agent types from Markdown files with YAML front matter, as Claude Code has them: `.claude/agents/*.md`.

They are read at each call, so that a file that was just written counts. A broken file affects only its own type.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio.to_thread

from goat_mcp.agents.agent_type import ALIASES, BUILT_IN, AgentType
from goat_mcp.calls.permissions.mode import Mode
from goat_mcp.core.errors import ERROR_MESSAGE_LIMIT, ErrorCode, ToolError, cut_middle
from goat_mcp.core.names import TOOL_ALIASES, UPSTREAM_PREFIX
from goat_mcp.files.documents.front_matter import BrokenFrontMatter, Fields, split_front_matter
from goat_mcp.files.workspace import Workspace

FOLDER = ".claude/agents"
MAX_FILE_BYTES = 256 * 1024
MAX_FILES = 500
_SHOWN_BROKEN = 3

MAX_DESCRIPTION_CHARS = 2_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")
_TOOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_ISOLATIONS = ("worktree", "remote")


@dataclass(frozen=True)
class BrokenFile:
    path: str
    name: str
    """The agent that is missing because of it: what its front matter says, else the file's own name. Empty where
    there is one of that name, of a file that goes before it."""
    reason: str

    def __str__(self) -> str:
        return f"agent file {self.path} is broken: {self.reason}"


@dataclass
class KnownTypes:
    """All types there are at one moment, and the files that should have been some."""

    types: dict[str, AgentType] = field(default_factory=dict[str, AgentType])
    broken: list[BrokenFile] = field(default_factory=list[BrokenFile])

    def get(self, name: str) -> AgentType:
        """Raises `ToolError`: CONFIG for one whose file is broken, INPUT with all there are for an unknown one."""
        for file in self.broken:
            # Another type of that name would have other rights than its writer meant.
            if file.name == name:
                raise ToolError(ErrorCode.CONFIG, f"agent type {name}: {file}", "Mend the file and call again.")
        if (found := self.types.get(name) or self.types.get(ALIASES.get(name, ""))) is not None:
            return found
        lines = [f"{type.name} ({type.source}): {_first_words(type.description)}" for type in self.types.values()]
        problems = "".join(f" ({file})" for file in self.broken[:_SHOWN_BROKEN])
        if len(self.broken) > _SHOWN_BROKEN:
            problems += f" (and {len(self.broken) - _SHOWN_BROKEN} more broken files)"
        raise ToolError(
            ErrorCode.INPUT,
            f"subagent_type: there is no {name[:80]!r}; there are {', '.join(self.types)}{problems}",
            "Use one of: " + cut_middle("; ".join(lines), ERROR_MESSAGE_LIMIT),
            facts={"types": list(self.types)},
        )


@dataclass(frozen=True)
class TypeFiles:
    """Finds types: the workspace's before the user's before the built-in ones."""

    workspace: Workspace

    async def read(self) -> KnownTypes:
        return await anyio.to_thread.run_sync(self._read)

    def _read(self) -> KnownTypes:
        known = KnownTypes()
        for source, files in (("project", self._of_project()), ("user", _of_user())):
            for path, content in files:
                with suppress(FileNotFoundError):
                    _add(known, path, content, source)
        for built_in in BUILT_IN:
            named_alike = known.types.setdefault(built_in.name, built_in)
            if named_alike.source == "project":
                known.types[built_in.name] = _no_wider(named_alike, built_in)
        return known

    def _of_project(self) -> Iterator[tuple[Path, partial[bytes]]]:
        with suppress(ToolError):  # no workspace, no such folder
            folder = self.workspace.resolve(f"@{FOLDER}")
            with self.workspace.open_directory(folder) as opened:
                names = sorted(path.name for path in opened.real_path.glob("*.md"))[:MAX_FILES]
            for name in names:
                yield folder.path / name, partial(self._content, f"@{FOLDER}/{name}")

    def _content(self, path: str) -> bytes:
        """Through the workspace, so that a link cannot send a file from outside to a model."""
        try:
            with self.workspace.open_file(self.workspace.resolve(path)) as file:
                return _bounded(file.fd, file.stat.st_size)
        except ToolError as refused:
            raise BrokenType(refused.message) from None


def _no_wider(type: AgentType, built_in: AgentType) -> AgentType:
    """A repository may give a built-in type another prompt, not more tools: `explorer` is known to read only."""
    tools = built_in.tools if type.tools is None else type.tools
    if built_in.tools is not None and tools is not None:
        tools &= built_in.tools
    return replace(type, tools=tools, denied=type.denied | built_in.denied, mode=type.mode or built_in.mode)


def _of_user() -> Iterator[tuple[Path, partial[bytes]]]:
    with suppress(OSError, RuntimeError):  # there may be no home
        for path in sorted((Path.home() / FOLDER).glob("*.md"))[:MAX_FILES]:
            yield path, partial(_user_content, path)


def _user_content(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise BrokenType("it is not a regular file")
            return _bounded(descriptor, found.st_size)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        raise
    except OSError as problem:
        raise BrokenType(f"cannot be read: {problem.strerror}") from None


def _bounded(descriptor: int, size: int) -> bytes:
    if size > MAX_FILE_BYTES:
        raise BrokenType(f"it is larger than {MAX_FILE_BYTES // 1024} KiB")
    return os.read(descriptor, MAX_FILE_BYTES)


def _add(known: KnownTypes, path: Path, content: partial[bytes], source: str) -> None:
    name = path.stem
    try:
        fields, prompt = split_file(content())
        given = fields.get("name")
        name = given if isinstance(given, str) and given else name
        if name in known.types and known.types[name].source == source:
            raise BrokenType(f"there is another agent named {name[:80]}")
        type = agent_type(fields, prompt, source)
    except BrokenType as broken:
        known.broken.append(BrokenFile(str(path), "" if name in known.types else name[:80], str(broken)))
    else:
        known.types.setdefault(type.name, type)


def _first_words(text: str) -> str:
    return text if len(text) <= 100 else text[:99].rsplit(" ", 1)[0] + " ..."


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
