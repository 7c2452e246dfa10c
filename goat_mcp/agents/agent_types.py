"""Kinds of agents: the instructions, the tools, how it runs. There are built-in ones, and those of users in
Markdown files with YAML front matter, as Claude Code has them: `.claude/agents/*.md`.

The files are read at each call, so that one that was just written counts. A broken file affects only its own type.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

import anyio.to_thread
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError

from goat_mcp.calls.permissions.mode import Mode
from goat_mcp.core import posix
from goat_mcp.core.errors import ERROR_MESSAGE_LIMIT, ErrorCode, ToolError, cut_middle
from goat_mcp.core.names import TOOL_ALIASES, UPSTREAM_PREFIX
from goat_mcp.core.problem_words import demand_of
from goat_mcp.files.documents.front_matter import BrokenFrontMatter, Fields, split_front_matter
from goat_mcp.files.workspace import Workspace

READ_ONLY_TOOLS = frozenset(
    {"Read", "Glob", "Grep", "WebFetch", "WebSearch", "ListMcpResources", "ReadMcpResource", "TaskOutput"}
)
DEFAULT_TYPE = "general-purpose"
ALIASES = {"Explore": "explorer", "Plan": "planner"}
"""What Claude Code calls these, unless a file defines a type of that very name."""


@dataclass(frozen=True, kw_only=True)
class AgentType:
    """`prompt` is the system prompt. `tools` None means all its starter has; `denied` wins. Names are rule names, or
    `mcp__SERVER` for all of a server. Empty `model`, `mode`, `effort` and `isolation` say nothing."""

    name: str
    description: str
    prompt: str
    tools: frozenset[str] | None = None
    denied: frozenset[str] = frozenset()
    model: str = ""
    effort: str = ""
    mode: str = ""
    max_turns: int | None = None
    background: bool = False
    isolation: str = ""
    source: str = "built in"


BUILT_IN = (
    AgentType(
        name=DEFAULT_TYPE,
        description="Any task of several steps: it may do whatever its starter may.",
        prompt=(
            "You are an agent that carries out one task on its own. Do all that was asked and nothing else. "
            "Look before you change anything: search widely when you do not know where something is, read a file "
            "before you edit it, prefer changing files to adding new ones. Check your work where it can be checked "
            "(run the tests, read the result), and say so plainly when something did not work."
        ),
    ),
    AgentType(
        name="explorer",
        description="Finds things out and changes nothing: where code is, how it works, what a page says.",
        prompt=(
            "You find things out and change nothing. Search by name and by content, in several wordings and places, "
            "and call independent tools in the same turn. Read only the parts that matter. Report what you found with "
            "absolute paths and line numbers, quote the few lines that prove it, and say what you looked for without "
            "finding it."
        ),
        tools=READ_ONLY_TOOLS,
    ),
    AgentType(
        name="planner",
        description="Works out how to make a change, step by step, and changes nothing.",
        prompt=(
            "You plan a change and do not make it. Read the code it touches until you know how it works now. Then "
            "write a plan that somebody else can follow: the approach and why it beats the alternatives, the steps in "
            "order with the files of each, how to test it, what could go wrong. End with the files that matter most."
        ),
        tools=READ_ONLY_TOOLS,
        mode="plan",
    ),
)

FOLDER = ".claude/agents"
MAX_FILE_BYTES = 256 * 1024
MAX_FILES = 500
_SHOWN_BROKEN = 3
MAX_DESCRIPTION_CHARS = 2_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")
_TOOL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")


class BrokenType(ValueError):
    """An agent file that cannot be used; the text says why, and shows nothing of the file but names."""


def _line(value: Any) -> str:
    """On one line; empty if there is nothing."""
    if value is None:
        return ""
    if not isinstance(value, str | int | float) or (isinstance(value, int) and abs(value) > 10**18):
        raise ValueError("is not text")
    return " ".join(str(value).split())


def _positive(value: Any) -> int | None:
    text = _line(value)
    if text and (not text.isascii() or not text.isdigit() or not 0 < int(text[:9]) < 100_000):
        raise ValueError(f"{text[:40]!r} is no number above 0")
    return int(text) if text else None


def _flag(value: Any) -> bool:
    text = _line(value).lower()
    if text not in ("", "true", "false"):
        raise ValueError(f"{text[:40]!r} is neither true nor false")
    return text == "true"


def _one_of(*choices: str) -> AfterValidator:
    def check(text: str) -> str:
        if text and text not in choices:
            raise ValueError(f"{text[:40]!r} is none of {', '.join(choices)}")
        return text

    return AfterValidator(check)


def _model(value: Any) -> str:
    model = _line(value)
    return "" if model == "inherit" else model


def _name(text: str) -> str:
    if text and not _NAME.match(text):
        raise ValueError(f"{text[:80]!r} is not made of letters, digits, _ and -")
    return text


def _names(value: Any) -> list[str]:
    listed = cast("list[Any]", value) if isinstance(value, list) else _line(value).split(",")
    if not all(isinstance(name, str) for name in listed):
        raise ValueError("is no list of names")
    return [name.strip() for name in listed if name.strip()]


def _tools(value: Any) -> frozenset[str]:
    """The names listed, as rules know them."""
    return frozenset(map(_rule_name, _names(value)))


def _allowed_tools(value: Any) -> frozenset[str] | None:
    """None if all are meant."""
    if not value:
        raise ValueError("is empty: leave the line out for all tools, or name some")
    return None if "*" in _names(value) else _tools(value)


def _rule_name(name: str) -> str:
    if name.startswith(UPSTREAM_PREFIX) and name.endswith("__*"):
        name = name.removesuffix("__*")
    if not _TOOL_NAME.match(name):
        # To drop what stands in brackets would give the agent more than its writer meant.
        raise ValueError(f"{name[:60]!r} is no tool name; patterns are not supported here, name the whole tool")
    return TOOL_ALIASES.get(name, name)


_Line = Annotated[str, BeforeValidator(_line)]


class AgentFile(BaseModel):
    """The front matter of an agent file. Other keys have no effect."""

    name: Annotated[_Line, AfterValidator(_name)] = ""
    description: Annotated[_Line, AfterValidator(lambda text: text[:MAX_DESCRIPTION_CHARS])] = ""
    tools: Annotated[frozenset[str] | None, BeforeValidator(_allowed_tools)] = None
    denied: Annotated[frozenset[str], BeforeValidator(_tools)] = Field(frozenset(), alias="disallowedTools")
    model: Annotated[str, BeforeValidator(_model)] = ""
    effort: Annotated[_Line, _one_of("low", "medium", "high", "xhigh", "max")] = ""
    mode: Annotated[_Line, _one_of(*Mode)] = Field("", alias="permissionMode")
    max_turns: Annotated[int | None, BeforeValidator(_positive)] = Field(None, alias="maxTurns")
    background: Annotated[bool, BeforeValidator(_flag)] = False
    isolation: Annotated[_Line, _one_of("worktree", "remote")] = ""


def split_file(content: bytes) -> tuple[Fields, str]:
    """Front matter and body. Raises `BrokenType`."""
    try:
        return split_front_matter(content)
    except BrokenFrontMatter as broken:
        raise BrokenType(str(broken)) from None


def agent_type(fields: Fields, prompt: str, source: str) -> AgentType:
    """Raises `BrokenType`."""
    try:
        file = AgentFile.model_validate(fields)
    except ValidationError as invalid:
        error = invalid.errors(include_url=False)[0]
        raise BrokenType(f"{error['loc'][0]} {demand_of(error)}") from None
    for key in ("name", "description"):
        if not getattr(file, key):
            raise BrokenType(f"it has no {key}")
    return AgentType(**file.model_dump(), prompt=prompt, source=source)


@dataclass(frozen=True)
class BrokenTypeFile:
    path: str
    name: str
    """The agent that is missing because of it: what its front matter says, else the file's own name. Empty where
    there is one of that name, of a file that goes before it."""
    reason: str

    def __str__(self) -> str:
        return f"agent file {self.path} is broken: {self.reason}"


@dataclass
class AgentTypes:
    """All types there are at one moment, and the files that should have been some."""

    types: dict[str, AgentType] = field(default_factory=dict[str, AgentType])
    broken: list[BrokenTypeFile] = field(default_factory=list[BrokenTypeFile])

    def get(self, name: str) -> AgentType:
        """Raises `ToolError`: CONFIG for one whose file is broken, INPUT with all there are for an unknown one."""
        for file in self.broken:
            # Another type of that name would have other rights than its writer meant.
            if file.name == name:
                raise ToolError(ErrorCode.CONFIG, f"agent type {name}: {file}", "Fix the file and call again.")
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
    """Finds types: the workspace's before the user's, before those that manifests declare, before the built-in ones."""

    workspace: Workspace
    declared: Callable[[], Sequence[AgentType]] = tuple

    async def read(self) -> AgentTypes:
        return await anyio.to_thread.run_sync(self._read)

    def _read(self) -> AgentTypes:
        known = AgentTypes()
        for source, files in (("project", self._project_files()), ("user", _user_files())):
            for path, content in files:
                with suppress(FileNotFoundError):
                    _add(known, path, content, source)
        for declared in self.declared():
            known.types.setdefault(declared.name, declared)
        for built_in in BUILT_IN:
            named_alike = known.types.setdefault(built_in.name, built_in)
            if named_alike.source == "project":
                known.types[built_in.name] = _narrowed(named_alike, built_in)
        return known

    def _project_files(self) -> Iterator[tuple[Path, partial[bytes]]]:
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


def _narrowed(type: AgentType, built_in: AgentType) -> AgentType:
    """A repository may give a built-in type another prompt, not more tools: `explorer` is known to read only."""
    tools = built_in.tools if type.tools is None else type.tools
    if built_in.tools is not None and tools is not None:
        tools &= built_in.tools
    return replace(type, tools=tools, denied=type.denied | built_in.denied, mode=type.mode or built_in.mode)


def _user_files() -> Iterator[tuple[Path, partial[bytes]]]:
    with suppress(OSError, RuntimeError):  # there may be no home
        for path in sorted((Path.home() / FOLDER).glob("*.md"))[:MAX_FILES]:
            yield path, partial(_user_content, path)


def _user_content(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | posix.O_NONBLOCK)
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


def _add(known: AgentTypes, path: Path, content: partial[bytes], source: str) -> None:
    name = path.stem
    try:
        fields, prompt = split_file(content())
        given = fields.get("name")
        name = given if isinstance(given, str) and given else name
        if name in known.types and known.types[name].source == source:
            raise BrokenType(f"there is another agent named {name[:80]}")
        type = agent_type(fields, prompt, source)
    except BrokenType as broken:
        known.broken.append(BrokenTypeFile(str(path), "" if name in known.types else name[:80], str(broken)))
    else:
        known.types.setdefault(type.name, type)


def _first_words(text: str) -> str:
    return text if len(text) <= 100 else text[:99].rsplit(" ", 1)[0] + " ..."
