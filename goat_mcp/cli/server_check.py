"""Starting one server and listing its tools, to see whether it works: nothing is called."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.cli import exit_codes
from goat_mcp.cli.terminal import say
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.loading import load_settings
from goat_mcp.settings.settings import SettingsOrigin
from goat_mcp.upstreams.reason_pages import remedy_for
from goat_mcp.upstreams.status import ReasonCode, UpstreamStatus

_SHOWN_TOOLS = 8
_WORKS_WITH = frozenset({"", ReasonCode.LIST_TRUNCATED, ReasonCode.QUARANTINED, ReasonCode.LAUNCH_CHANGED})
"""It answers, and a person has something to look at."""


@dataclass(frozen=True)
class ServerCheck:
    """How it went. `tools` are its tools by the names that clients see."""

    name: str
    state: str
    reason_code: str
    detail: str
    remedy: str
    tools: Sequence[str]

    @property
    def is_ok(self) -> bool:
        return self.reason_code in _WORKS_WITH

    @property
    def exit_code(self) -> int:
        if self.is_ok:
            return exit_codes.OK
        return exit_codes.AUTH if self.reason_code == ReasonCode.AUTH_REQUIRED else exit_codes.UNREACHABLE

    def fields(self) -> dict[str, Any]:
        """For `--json`."""
        told = {"reason_code": self.reason_code, "detail": self.detail, "remedy": self.remedy}
        return {"ok": self.is_ok, "state": self.state, **told, "tools": list(self.tools)}

    def say(self) -> None:
        if self.is_ok:
            more = f" and {len(self.tools) - _SHOWN_TOOLS} more" if len(self.tools) > _SHOWN_TOOLS else ""
            listed = f": {', '.join(self.tools[:_SHOWN_TOOLS])}{more}" if self.tools else ""
            say(f"{self.name} works: {_count(len(self.tools))}{listed}")
        if self.reason_code:
            say(f"goat-mcp: {self.name}: {self.reason_code}: {self.detail}", err=True)
            say(self.remedy, err=True)
        if not self.is_ok:
            say(f"The entry stays. Try again: goat-mcp doctor {self.name}; or: goat-mcp remove {self.name}", err=True)


def check_server(name: str, entry: Mapping[str, Any], path: Path, within_s: float) -> ServerCheck:
    """Start the server of this entry alone, as if it stood in `path`. Raises `BrokenSettings`."""
    settings = load_settings({"upstreams": [str(path)], "log_level": "error"})
    content = json.dumps({"mcpServers": {name: {**entry, "start": "lazy"}}}).encode()
    settings.remember(SettingsOrigin(contents={path: content}))
    gateway = Gateway(settings, approval=Approval.DENY)
    status = anyio.run(_status, gateway, name, within_s)
    reason = str(status.reason_code)
    if not reason and not status.version:
        reason = str(ReasonCode.START_TIMEOUT)
    prefixed = [tool.spec.name for tool in gateway.catalog.tools() if _is_of(tool.spec.rule_name, status.server)]
    detail = gateway.redactor.text(status.detail or (f"no answer within {within_s:g} s" if reason else ""))
    return ServerCheck(name, str(status.state), reason, detail, _remedy(reason, name), prefixed)


async def _status(gateway: Gateway, name: str, within_s: float) -> UpstreamStatus:
    async with gateway.running():
        await gateway.upstreams.relist(name, within_s)
        return next(one for one in gateway.upstreams.status() if one.name == name)


def _is_of(rule_name: str, server: str) -> bool:
    return rule_name.startswith(f"mcp__{server}__")


def _remedy(reason: str, name: str) -> str:
    if not reason:
        return ""
    return remedy_for(ReasonCode(reason), name).replace("`", "")


def _count(tools: int) -> str:
    return "1 tool" if tools == 1 else f"{tools} tools"
