"""Who may be offered the login of one upstream, and what a call hears that got none. Loaded by the first in need.

A login is the operator's, for all clients of this goat-mcp: only the operator's own clients make one. Contract: AUT-3.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from goat_mcp.core.client_side import ClientSide
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.rights import OWNERS
from goat_mcp.state.telemetry import Telemetry
from goat_mcp.upstreams.calls.offered_login import OfferedLogin, Outcome
from goat_mcp.upstreams.config.entry import UpstreamConfig
from goat_mcp.upstreams.faults import LoginWanted
from goat_mcp.upstreams.oauth.logins import LoginDoor
from goat_mcp.upstreams.reason_code import ReasonCode
from goat_mcp.upstreams.server_requests.request_handlers import ELICITATION, covers

_URLS_SINCE = "2025-11-25"
_URLS: Mapping[str, Any] = {ELICITATION: {"url": {}}}


class LoginOffers:
    """Of one upstream, one at a time. `spawn` starts what goes on beside the calls."""

    def __init__(
        self,
        config: UpstreamConfig,
        door: LoginDoor,
        spawn: Callable[[Callable[[], Coroutine[Any, Any, None]]], object],
        telemetry: Telemetry,
    ) -> None:
        self._config = config
        self._door = door
        self._spawn = spawn
        self._telemetry = telemetry
        self._offered: OfferedLogin | None = None

    async def offer(self, ctx: ToolContext, wanted: LoginWanted) -> None:
        """Returns once somebody has logged in. Raises `wanted` where this client cannot be asked, or may not be.

        Raises `ToolError(AUTH)` where it was asked and nothing came of it.
        """
        client = ctx.client
        if client is None or not self._may_ask(ctx.principal, client):
            raise wanted
        offered = self._offered
        if offered is not None and offered.has_met(wanted):
            return
        if offered is None or not offered.is_open:
            offered = self._offered = OfferedLogin(self._config.name, self._door.begin(wanted.scopes))
            self._spawn(self._kept(offered))
        outcome = await offered.outcome_for(ctx, client)
        self._telemetry.debug("login offered", upstream=self._config.name, call_id=ctx.call_id, outcome=str(outcome))
        if outcome is not Outcome.DONE:
            raise self._failure(outcome, offered.problem)

    def session_ended(self, session_key: str) -> None:
        """A client is gone: a login that only it knew of is ended."""
        if self._offered is not None:
            self._offered.session_ended(session_key)

    def _may_ask(self, principal: str, client: ClientSide) -> bool:
        if principal not in OWNERS or ELICITATION not in self._config.allow or not self._door.wants_a_person:
            return False
        return client.protocol_version >= _URLS_SINCE and covers(client.capabilities, _URLS)

    def _kept(self, offered: OfferedLogin) -> Callable[[], Coroutine[Any, Any, None]]:
        async def run() -> None:
            try:
                await offered.run()
            except Exception as error:
                # The upstream's other calls have nothing to do with it.
                self._telemetry.unexpected("-", f"login to upstream {self._config.name}", error)

        return run

    def _failure(self, outcome: Outcome, problem: str) -> ToolError:
        why = {
            Outcome.DECLINED: "the user declined",
            Outcome.CANCELLED: "the user put aside",
            Outcome.NOT_SHOWN: "the client could not show to the user",
            Outcome.UNFINISHED: "nobody has finished yet",
        }.get(outcome, "")
        command = self._config.login_step
        step = {
            Outcome.UNFINISHED: f"The user can finish it at the page that was shown; then call again. {command}",
            Outcome.NOT_SHOWN: command,
            Outcome.FAILED: command,
        }.get(outcome, f"Ask the user before you call again. {command}")
        said = f", which {why}" if why else f", and it did not work: {problem or 'it broke off'}"
        return ToolError(
            ErrorCode.AUTH,
            f"upstream {self._config.name} wants a login{said}; nothing was run",
            step,
            facts={"upstream": self._config.name, "reason": ReasonCode.AUTH_REQUIRED, "login": str(outcome)},
        )
