"""The login of one upstream, offered to clients whose calls need it (AUT-3): each is asked once, all wait for the end.

A login is the operator's, for all clients of this goat-mcp: only the operator's own clients make one. The address goes
to a client by URL elicitation, in the way of its era. To accept means that the page is being opened; the login is over
when the browser is back. Loaded by the first call that needs one.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import anyio

from goat_mcp.core.calling_client import CallingClient, ClientRefused, ClientRequest
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.heartbeat import with_heartbeat
from goat_mcp.core.rights import OWNERS
from goat_mcp.files.documents.visible_text import make_visible
from goat_mcp.state.telemetry import Telemetry
from goat_mcp.upstreams.config.entry import UpstreamConfig
from goat_mcp.upstreams.faults import LoginRequired
from goat_mcp.upstreams.oauth.logins import LazyLogin
from goat_mcp.upstreams.oauth.pending_login import PendingLogin
from goat_mcp.upstreams.status import ReasonCode
from goat_mcp.upstreams.transports.server_requests import ELICITATION, covers, labelled

_URLS_SINCE = "2025-11-25"
_URLS: Mapping[str, Any] = {ELICITATION: {"url": {}}}


@dataclass(eq=False)
class LoginElicitation:
    """Of one upstream, one at a time for each account. `spawn` starts what goes on beside the calls.

    `workspace_of`: what the upstream works in for a client, if that makes a difference.
    """

    config: UpstreamConfig
    login: LazyLogin
    spawn: Callable[[Callable[[], Coroutine[Any, Any, None]]], object]
    telemetry: Telemetry
    workspace_of: Callable[[ToolContext], Awaitable[Path | None]]
    _current: dict[str, ElicitedLogin] = field(default_factory=dict[str, "ElicitedLogin"])
    """By the workspace that the account is for; empty for the one of all."""

    async def ask(self, ctx: ToolContext, wanted: LoginRequired) -> None:
        """Returns once somebody has logged in. Raises `wanted` where this client cannot be asked, or may not be.

        Raises `ToolError(AUTH)` where it was asked and nothing came of it.
        """
        client = ctx.client
        if client is None or not self._may_ask(ctx.principal, client):
            raise wanted
        root = await self.workspace_of(ctx)
        account = self.login.at(lambda: root)
        login = self._current.get(account.workspace)
        if login is not None and login.has_met(wanted):
            return
        if login is None or not login.is_open:
            pending = account.begin(wanted.scopes)
            login = self._current[account.workspace] = ElicitedLogin(self.config.name, pending, account.workspace)
            self.spawn(self._kept(login))
        outcome = await login.outcome_for(ctx, client)
        self.telemetry.debug("login offered", upstream=self.config.name, call_id=ctx.call_id, outcome=str(outcome))
        if outcome is not Outcome.DONE:
            raise self._failure(outcome, login.problem)

    def session_ended(self, session_key: str) -> None:
        """A client is gone: a login that only it knew of is ended."""
        for login in self._current.values():
            login.session_ended(session_key)

    def _may_ask(self, principal: str, client: CallingClient) -> bool:
        if principal not in OWNERS or ELICITATION not in self.config.allow or not self.login.needs_a_person:
            return False
        return client.protocol_version >= _URLS_SINCE and covers(client.capabilities, _URLS)

    def _kept(self, login: ElicitedLogin) -> Callable[[], Coroutine[Any, Any, None]]:
        async def run() -> None:
            try:
                await login.run()
            except Exception as error:
                # The upstream's other calls have nothing to do with it.
                self.telemetry.unexpected("-", f"login to upstream {self.config.name}", error)

        return run

    def _failure(self, outcome: Outcome, problem: str) -> ToolError:
        why = {
            Outcome.DECLINED: "the user declined",
            Outcome.CANCELLED: "the user put aside",
            Outcome.NOT_SHOWN: "the client could not show to the user",
            Outcome.UNFINISHED: "nobody has finished yet",
        }.get(outcome, "")
        command = self.config.login_step
        step = {
            Outcome.UNFINISHED: f"The user can finish it at the page that was shown; then call again. {command}",
            Outcome.NOT_SHOWN: command,
            Outcome.FAILED: command,
        }.get(outcome, f"Ask the user before you call again. {command}")
        said = f", which {why}" if why else f", and it did not work: {problem or 'it broke off'}"
        return ToolError(
            ErrorCode.AUTH,
            f"upstream {self.config.name} wants a login{said}; nothing was run",
            step,
            facts={"upstream": self.config.name, "reason": ReasonCode.AUTH_REQUIRED, "login": str(outcome)},
        )


RESERVE_S = 10.0
"""What is left of the time of a call that waited in vain for a sign of life: for its connection."""
SEND_TIMEOUT_S = 2.0

T = TypeVar("T")


class Outcome(StrEnum):
    """What became of a login, for one call."""

    DONE = "done"
    DECLINED = "declined"
    CANCELLED = "cancelled"
    NOT_SHOWN = "not_shown"
    UNFINISHED = "unfinished"
    FAILED = "failed"


_ANSWERS = {"accept": Outcome.DONE, "decline": Outcome.DECLINED, "cancel": Outcome.CANCELLED}


@dataclass(eq=False)
class _Question:
    """Put to one client. `answer` is None while it is open, and where its call ended before there was one."""

    answered: anyio.Event = field(default_factory=anyio.Event)
    answer: Outcome | None = None


class ElicitedLogin:
    """`run` is its task. It ends early when no call waits for it any more, and no client was left with its page."""

    def __init__(self, upstream: str, pending: PendingLogin, workspace: str = "") -> None:
        """`workspace`: the only one that it is for, if there is one."""
        self._upstream = make_visible(upstream)
        self._where = f" in {make_visible(workspace)}" if workspace else ""
        self._pending = pending
        self._questions: dict[str, _Question] = {}
        """By session."""
        self._shown: list[tuple[CallingClient, str]] = []
        """Whom to tell by which id that it is done: clients of the handshake era."""
        self._waiting = 0
        self._left: set[str] = set()
        """Sessions whose calls have given up waiting while somebody may still be at the page."""
        self._is_closed = False

    @property
    def is_open(self) -> bool:
        """Whether it is of use to one more call."""
        return not self._is_closed and not self._pending.over.is_set()

    def has_met(self, wanted: LoginRequired) -> bool:
        """Whether somebody has logged in since that was wanted: it is worth another try."""
        pending = self._pending
        return pending.is_done and wanted.at_s < pending.over_s and wanted.scopes in ("", pending.scopes)

    @property
    def problem(self) -> str:
        return self._pending.problem

    async def run(self) -> None:
        """Live until it is over, one way or another."""
        await self._pending.run()
        if self._pending.is_done:
            async with anyio.create_task_group() as group:
                for client, name in self._shown:
                    group.start_soon(_announce_done, client, name)

    def session_ended(self, session_key: str) -> None:
        """A client is gone."""
        self._questions.pop(session_key, None)
        self._left.discard(session_key)
        self._end_if_unwanted()

    async def outcome_for(self, ctx: ToolContext, client: CallingClient) -> Outcome:
        """Ask this client, if nobody has, and wait."""
        self._waiting += 1
        try:
            outcome = await (self._of_suspended(ctx, client) if client.is_stateless else self._of_held(ctx, client))
            if outcome is Outcome.UNFINISHED:
                self._left.add(ctx.session_key)
            return outcome
        finally:
            self._waiting -= 1
            self._end_if_unwanted()

    def _end_if_unwanted(self) -> None:
        if not self._waiting and not self._left:
            self._is_closed = True
            self._pending.give_up()

    async def _of_held(self, ctx: ToolContext, client: CallingClient) -> Outcome:
        """For a client whose request is held open while it is asked."""

        async def whole() -> Outcome:
            await self._pending.known.wait()
            answer: Outcome | None = None
            if not self._pending.over.is_set():
                answer = await self._unless_over(lambda: self._answer_of(ctx, client))
            return await self._end() if answer is None or answer is Outcome.DONE else answer

        with anyio.move_on_after(_patience_s(ctx)):
            return await with_heartbeat(whole, ctx, self._what_is_waited_for)
        return Outcome.UNFINISHED

    async def _of_suspended(self, ctx: ToolContext, client: CallingClient) -> Outcome:
        """For a client that is asked by the answer to its request, and comes back with another request."""
        with anyio.move_on_after(_patience_s(ctx)):
            await self._pending.known.wait()
        if not self._pending.known.is_set():
            return Outcome.UNFINISHED
        if self._pending.over.is_set():
            return await self._end()
        # Once it is asked nothing goes on without it, also where somebody else has logged in meanwhile.
        answer = await self._answer_of(ctx, client)
        if answer is not Outcome.DONE:
            return answer
        with anyio.move_on_after(_patience_s(ctx)):
            return await with_heartbeat(self._end, ctx, self._what_is_waited_for)
        return Outcome.UNFINISHED

    @property
    def _what_is_waited_for(self) -> str:
        return f"waiting for the login to {self._upstream}"

    async def _end(self) -> Outcome:
        await self._pending.over.wait()
        return Outcome.DONE if self._pending.is_done else Outcome.FAILED

    async def _answer_of(self, ctx: ToolContext, client: CallingClient) -> Outcome:
        """What this client answers to the question. `DONE` is its consent."""
        key = ctx.session_key
        while (question := self._questions.get(key)) is not None:
            with anyio.move_on_after(_patience_s(ctx) if client.is_stateless else None):
                await self._unless_over(question.answered.wait)
            if question.answer is not None:
                return question.answer
            if self._pending.over.is_set():
                return Outcome.DONE
            if not question.answered.is_set():
                # Parked, and perhaps forgotten: a client of that era may go away without a word.
                break
        return await self._ask(key, client)

    async def _ask(self, key: str, client: CallingClient) -> Outcome:
        question = self._questions[key] = _Question()
        url = self._pending.url
        params = {
            "mode": "url",
            "message": f"log in at {make_visible(urlsplit(url).netloc)}, so that a call can go on. goat-mcp keeps this "
            f"login and uses it for all calls to {self._upstream}{self._where}.",
            "url": url,
        }
        if not client.is_stateless:
            params["elicitationId"] = f"login-{secrets.token_hex(8)}"
            self._shown.append((client, params["elicitationId"]))
        try:
            given = await client.ask({"login": labelled(self._upstream, ClientRequest("elicitation/create", params))})
            answer = question.answer = _ANSWERS.get(str(given["login"].get("action")), Outcome.CANCELLED)
        except ClientRefused:
            answer = question.answer = Outcome.NOT_SHOWN
        finally:
            if question.answer is not Outcome.DONE and self._questions.get(key) is question:
                # Its next call is asked again; other calls that wait for this answer have it.
                del self._questions[key]
            question.answered.set()
        return answer

    async def _unless_over(self, work: Callable[[], Awaitable[T]]) -> T | None:
        """The outcome of `work`; None where the login is over first."""
        outcome: list[T] = []
        async with anyio.create_task_group() as group:

            async def stop() -> None:
                await self._pending.over.wait()
                group.cancel_scope.cancel()

            group.start_soon(stop)
            outcome.append(await work())
            group.cancel_scope.cancel()
        return outcome[0] if outcome else None


def _patience_s(ctx: ToolContext) -> float | None:
    """How long a call waits; None for as long as the login lasts, where its client hears that it is alive."""
    return None if ctx.wants_progress else max(0.0, ctx.wait_left_s() - RESERVE_S)


async def _announce_done(client: CallingClient, name: str) -> None:
    with anyio.move_on_after(SEND_TIMEOUT_S):
        await client.notify("notifications/elicitation/complete", {"elicitationId": name})
