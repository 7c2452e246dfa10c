"""Logins to upstreams that the owner begins in the page: the browser is there already."""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING

import anyio

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.upstreams.oauth.logins import Logins

if TYPE_CHECKING:
    from goat_mcp.upstreams.oauth.pending_login import PendingLogin

ADDRESS_WITHIN_S = 10.0


class ServerLogins:
    """Those under way, one for each server."""

    def __init__(self) -> None:
        self._pending: dict[str, PendingLogin] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def begin(self, gateway: Gateway, name: str) -> str:
        """Ask the server where to log in; a new login takes the place of one under way. What to tell the owner.

        Raises `ToolError`.
        """
        config = next((one for one in gateway.upstreams.configs if one.name == name), None)
        s = gateway.services
        logins = Logins(s.state, s.http, s.references, warn=s.telemetry.warning)
        login = None if config is None else logins.of(config)
        if login is None or not login.needs_a_person:
            command = f"goat-mcp auth login {shlex.quote(name)}"
            raise ToolError(
                ErrorCode.AUTH, f"{name:.100} has no login that a person could make here", f"See: {command}"
            )
        if (earlier := self._pending.pop(name, None)) is not None:
            earlier.give_up()
            await earlier.over.wait()
        # For a server with a login for each workspace, that of this gateway's own.
        own_root = next(iter(s.directories.roots_for_upstreams(False)), None)
        pending = self._pending[name] = login.at(lambda: own_root).begin("")
        # It goes on when the browser does not wait for it.
        task = asyncio.create_task(pending.run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with anyio.move_on_after(ADDRESS_WITHIN_S):
            await pending.known.wait()
        if pending.url and not pending.over.is_set():
            return f"{name}: open its login page with the link below. You are brought back to this machine."
        why = gateway.redactor.text(pending.problem) or "it has not said yet where to log in"
        return f"{name}: no login: {why}"

    def address_of(self, name: str) -> str:
        """The login page that is open for it; empty if none is."""
        pending = self._pending.get(name)
        return pending.url if pending is not None and not pending.over.is_set() else ""

    def outcome_of(self, name: str) -> str:
        """How the last login that was begun here has ended, in words; empty if it has not."""
        pending = self._pending.get(name)
        if pending is None or not pending.over.is_set():
            return ""
        return "Logged in. The tokens are kept on this machine." if pending.is_done else pending.problem
