"""The environment a command starts with: built from an allow list, never a filtered copy of ours (R-PROC-7)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.processes.login_path import LoginPath

_KEPT = ("HOME", "USER", "LOGNAME", "SHELL", "LANG", "TMPDIR", "SSH_AUTH_SOCK")
_PROXY = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")
_FIXED = {"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "NO_COLOR": "1", "TERM": "dumb"}
_REFUSED = frozenset({"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "IFS"})
_REFUSED_PREFIXES = ("LD_", "DYLD_", "BASH_FUNC_", "GOAT_MCP_")


@dataclass(frozen=True)
class CommandEnvironment:
    """Makes environments. `passed_on` names further variables of ours that commands may see."""

    login_path: LoginPath = field(default_factory=LoginPath)
    passed_on: tuple[str, ...] = ()

    async def build(self, wanted: Mapping[str, str] | None = None) -> dict[str, str]:
        """A command's environment; `wanted` wins over all else. Raises `ToolError(INPUT)` for names it may not set."""
        wanted = wanted or {}
        check_names(wanted)
        built = {
            name: value
            for name, value in os.environ.items()
            if name in _KEPT or name.startswith("LC_") or name.lower() in _PROXY or name in self.passed_on
        }
        return {**built, **_FIXED, "PATH": await self.login_path.read(), **wanted}


def check_names(wanted: Mapping[str, str]) -> None:
    """Refuse what is no variable, and variables that make bash or the loader run what the command does not show."""
    for name, value in wanted.items():
        if not name or not name.isascii() or not name.replace("_", "a").isalnum() or name[0].isdigit():
            raise ToolError(ErrorCode.INPUT, f"env: {name!r} is no variable name", "Use letters, digits and _.")
        if name in _REFUSED or name.startswith(_REFUSED_PREFIXES):
            raise ToolError(
                ErrorCode.INPUT,
                f"env: {name} changes what a command runs and cannot be set here",
                "Write the assignment into the command itself.",
            )
        if "\0" in value:
            raise ToolError(ErrorCode.INPUT, f"env: the value of {name} holds a NUL character", "Remove it.")
