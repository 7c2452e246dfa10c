"""Agent types from Markdown files with YAML front matter, as Claude Code has them: `.claude/agents/*.md`.

They are read at each call, so that a file that was just written counts. A broken one costs itself only.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import anyio.to_thread

from goat_mcp.agents.agent_type import ALIASES, BUILT_IN, AgentType
from goat_mcp.agents.type_file import BrokenType, agent_type, split_file
from goat_mcp.core.errors import ERROR_MESSAGE_LIMIT, ErrorCode, ToolError, cut_middle
from goat_mcp.files.workspace import Workspace

FOLDER = ".claude/agents"
MAX_FILE_BYTES = 256 * 1024
MAX_FILES = 500
_SHOWN_BROKEN = 3


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
