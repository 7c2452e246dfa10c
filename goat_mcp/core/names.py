"""Names of tools: how an upstream's name becomes one that every host accepts.

Source: gateway contract NAM-1 to NAM-5 and section 12; Goat, "Dynamic MCP Tool Registration".
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

SEPARATOR = "__"
UPSTREAM_PREFIX = "mcp__"
TOOLSET_PREFIX = "toolset:"
"""What marks a toolset's name where tools are selected by name."""
RESOURCE_PREFIX = "resource:"
"""What marks a declared resource where all of its exports are meant."""
SHIPPED_PREFIX = "shipped:"
"""What marks a resource, or a tool of one, of the set that ships with us, as against a user's of the same name."""
NOTES_TOOL = "memento__note"
NOTES_FOLDER = ".goa/memory"
"""Where a project's notes are. Source: goa, "memento"."""
OWN_APPS = "ui://goat/"
APPROVALS_APP, CATALOG_APP = f"{OWN_APPS}approvals", f"{OWN_APPS}catalog"
"""Our documents for hosts that render MCP Apps."""
OWN_URIS = ("goat://", OWN_APPS)
"""What the URIs of our own resources begin with, and those of a gateway behind us: no upstream is asked for one
(COL-1)."""
NAME_CAP = 50
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_-]")
_EXPOSED = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_HASH_CHARS = 8

SEARCH_TOOLS, CALL_TOOL, CALL_TOOL_READONLY = "search_tools", "call_tool", "call_tool_readonly"
"""Meta-tools that the catalog and the pipeline treat in a way of their own (DEF-2)."""
DESCRIBE_TOOL, RUN_SCRIPT = "describe_tool", "run_script"

CLAUDE_CODE_ALIASES = {"Task": "Agent", "FileRead": "Read", "FileWrite": "Write", "FileEdit": "Edit"}
GOA_ALIASES = {
    "read": "Read",
    "write": "Write",
    "edit": "Edit",
    "search": "Grep",
    "bash": "Bash",
    "ask_user_question": "AskUserQuestion",
    "ssh_bash": "ssh_bash__exec",
    "bg_exec": "bg_exec__start",
    "memento": "memento__note",
    "goa_command": "goa_command__run",
}
TOOL_ALIASES = {
    **CLAUDE_CODE_ALIASES,
    **GOA_ALIASES,
    "ListMcpResourcesTool": "ListMcpResources",
    "ReadMcpResourceTool": "ReadMcpResource",
    "MultiEdit": "Edit",
    "BashOutput": "TaskOutput",
    "AgentOutputTool": "TaskOutput",
    "KillShell": "TaskStop",
    "KillBash": "TaskStop",
}
"""Names that mean a built-in: in calls, unless another tool has that exact name, in rules and in selections. They are
never listed."""


class InvalidName(ValueError):
    """The text is not a name of the kind asked for."""


@dataclass(frozen=True, slots=True)
class UpstreamName:
    """Server and tool part of `mcp__server__tool`."""

    server: str
    tool: str

    def __str__(self) -> str:
        return f"{UPSTREAM_PREFIX}{self.server}{SEPARATOR}{self.tool}"


def split_name(name: str) -> UpstreamName:
    """Split `mcp__server__tool` at the first two `__`. Raises `InvalidName` on an empty part."""
    prefix, _, rest = name.partition(SEPARATOR)
    server, separator, tool = rest.partition(SEPARATOR)
    if prefix != "mcp" or not separator or not server or not tool:
        raise InvalidName(f"{name!r} is not of the form mcp__server__tool")
    return UpstreamName(server, tool)


def clean_server_name(key: str) -> str:
    """A config key as a server part: no `__`, no `_` at either end, only characters hosts accept.

    Raises `InvalidName` if nothing is left. Deterministic; two keys that come out alike are a config error.
    """
    cleaned = re.sub(r"_{2,}", "_", _NOT_ALLOWED.sub("_", key)).strip("_")
    if not cleaned:
        raise InvalidName(f"{key!r} has no character a server name may have (A-Z a-z 0-9 - and single _)")
    return cleaned


def exposed_name(prefix: str, native: str, *, server: str, cap: int = NAME_CAP) -> str:
    """The name clients see for `native` of `server`: `prefix + native`, cleaned and cut if hosts need it.

    Every name that had to be altered ends in `_` and 8 hex digits of SHA-256(server NUL native), so it
    depends on nothing but the upstream's own config entry and the native name.
    """
    wanted = prefix + native
    if native and len(wanted) <= cap and _EXPOSED.match(wanted):
        return wanted
    cleaned = _NOT_ALLOWED.sub("_", wanted)
    if not cleaned or cleaned[0].isdigit() or cleaned[0] == "-":
        cleaned = "_" + cleaned
    digest = hashlib.sha256(f"{server}\0{native}".encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]
    return f"{cleaned[: cap - _HASH_CHARS - 1]}_{digest}"
