"""Upstreams of running servers that want a login. Who logs in needs a browser, so it is done by a command."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import anyio.to_thread

from goat_mcp.calls.approvals.record import Approval, Kind, Request, Verdict
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.rights import LOCAL
from goat_mcp.gateway.status.process_files import ProcessFiles
from goat_mcp.state.directory import StateDirectory, own_upstreams_file
from goat_mcp.upstreams.oauth.login_store import LoginStore
from goat_mcp.upstreams.status import ReasonCode


class LoginSource:
    kind = Kind.LOGIN

    def __init__(self, state: StateDirectory, shown: Callable[[str], str]) -> None:
        self._state = state
        self._shown = shown

    def waiting(self) -> Sequence[Request]:
        found: dict[str, Request] = {}
        logins = LoginStore(self._state).all()
        for server, upstream in self._logged_out():
            here, since_s = [one for one in logins if one.workspace == _account(server, upstream)], _since_s(upstream)
            if any(one.server == upstream["name"] and one.obtained_at_s >= since_s for one in here):
                continue  # its server has not tried again yet
            request = self._request(server, upstream)
            found.setdefault(request.subject, request)
        return list(found.values())

    async def approve(self, approval: Approval, verdict: Verdict) -> str:
        """Raises `ToolError(AUTH)` with the command, until somebody has logged in."""
        still = await anyio.to_thread.run_sync(self.waiting)
        if any(request.subject == approval.request.subject for request in still):
            facts = approval.request.facts
            raise ToolError(
                ErrorCode.AUTH,
                f"a login to {facts['server']} needs you and a browser; it still waits",
                f"Run this in a terminal: {facts['command']}",
            )
        return f"logged in to {approval.request.facts['server']}"

    async def deny(self, approval: Approval, verdict: Verdict) -> str:
        return f"{approval.request.facts['server']} stays without a login; run this if you want one: " + str(
            approval.request.facts["command"]
        )

    def _logged_out(self) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        for server in ProcessFiles(self._state).running():
            for upstream in server["upstreams"]:
                if upstream["reason_code"] == ReasonCode.AUTH_REQUIRED:
                    yield server, upstream

    def _request(self, server: Mapping[str, Any], upstream: Mapping[str, Any]) -> Request:
        name, target = self._shown(str(upstream["name"])), self._shown(str(upstream.get("target", "")))
        workspace = self._shown(", ".join(server["workspace"]))
        return Request(
            kind=Kind.LOGIN,
            subject=login_subject(str(upstream["name"]), str(upstream.get("since") or "")),
            title=f"{name} wants a login",
            principal=LOCAL,
            workspace=workspace,
            arguments=tuple((label, text) for label, text in (("server", name), ("address", target)) if text),
            why=(self._shown(str(upstream["detail"])),) if upstream["detail"] else (),
            facts={
                "server": name,
                "command": self._shown(_command(upstream, _account(server, upstream))),
                "account": _account(server, upstream),
            },
        )


def login_subject(name: str, since: str = "") -> str:
    """Of one time that it wants one: a denial holds until it wants a login the next time."""
    return f"{name}:{since}"


def _since_s(upstream: Mapping[str, Any]) -> float:
    since = upstream.get("since")
    return datetime.fromisoformat(since).timestamp() if since else 0.0


def _account(server: Mapping[str, Any], upstream: Mapping[str, Any]) -> str:
    """The workspace that its login is for; empty for the login of all."""
    is_own = upstream.get("account") == "workspace" and server["workspace"]
    return os.path.realpath(server["workspace"][0]) if is_own else ""


def _command(upstream: Mapping[str, Any], account: str) -> str:
    words = ["goat-mcp", "auth", "login", str(upstream["name"]), *(["--workspace", account] if account else [])]
    file = str(upstream.get("file") or "")
    if file and file != str(own_upstreams_file()):
        words += ["--upstreams", file]
    return shlex.join(words)
