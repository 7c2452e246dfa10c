"""The approval queue of a user, for whoever shows it and decides: command line, page, messengers (design D17)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import anyio.to_thread

from goat_mcp.calls.approvals.record import Approval, Kind, Request, Verdict
from goat_mcp.calls.approvals.scopes import ONCE, chosen_verdict
from goat_mcp.calls.approvals.store import ApprovalStore
from goat_mcp.calls.permissions.remembered import RememberedRules
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.database import Warn
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.private_file import no_warning


class ApprovalSource(Protocol):
    """A store of its own that holds what waits, for one kind. A decision about a call needs none."""

    @property
    def kind(self) -> Kind: ...

    def waiting(self) -> Sequence[Request]:
        """What waits now. Blocking."""
        ...

    async def approve(self, approval: Approval, verdict: Verdict) -> str:
        """Do what was approved. Returns what was done, for the person. Raises `ToolError`; then it waits again."""
        ...

    async def deny(self, approval: Approval, verdict: Verdict) -> str: ...


@dataclass(frozen=True)
class Decided:
    """`done` is a sentence for the person: what the decision has brought about. `problem`: what it has not."""

    approval: Approval
    done: str
    problem: str = ""


class ApprovalQueue:
    def __init__(
        self,
        state: StateDirectory,
        store: ApprovalStore,
        sources: Callable[[], Sequence[ApprovalSource]] = tuple,
        warn: Warn = no_warning,
    ) -> None:
        self.store = store
        self._state = state
        self._sources = sources
        self._warn = warn

    async def waiting(self) -> list[Approval]:
        """Oldest first, of all principals: for the owner."""
        return await anyio.to_thread.run_sync(self._look)

    async def approve(
        self, id: str, *, scope: str = ONCE, remember: bool = False, prefix: str = "", by: str
    ) -> Decided:
        """Raises `DecidedBefore`, `ToolError`: NOT_FOUND, INPUT for a scope that is not offered."""
        found = await anyio.to_thread.run_sync(self.store.find, id)
        return await self._decide(found, chosen_verdict(found.request, scope, remember=remember, prefix=prefix), by)

    async def deny(self, id: str, *, by: str, reason: str = "") -> Decided:
        """`reason` is read by the model. Raises `DecidedBefore`, `ToolError(NOT_FOUND)`."""
        found = await anyio.to_thread.run_sync(self.store.find, id)
        return await self._decide(found, Verdict(approved=False, reason=reason), by)

    async def decide(self, request: Request, verdict: Verdict, *, seen_at_s: float, by: str) -> Decided:
        """For commands that show what waits in its own store: decide about what waited there at `seen_at_s`.

        Raises `DecidedBefore` if somebody has decided since.
        """
        found = await anyio.to_thread.run_sync(self.store.open, request, seen_at_s)
        return await self._decide(found, verdict, by)

    async def approve_all(
        self, requests: Sequence[Request], act: Callable[[], None], *, seen_at_s: float, by: str
    ) -> None:
        """As `decide`, of several that `act` carries out together: all of them or none. `act` blocks."""
        decided: list[str] = []

        def decide() -> None:
            for request in requests:
                found = self.store.open(request, seen_at_s)
                decided.append(self.store.decide(found.id, Verdict(approved=True), by).id)
            act()

        try:
            await anyio.to_thread.run_sync(decide)
        except BaseException:
            with anyio.CancelScope(shield=True):
                for id in decided:
                    await anyio.to_thread.run_sync(self.store.reopen, id)
            raise
        for id in decided:
            await anyio.to_thread.run_sync(self.store.finish, id)

    async def _decide(self, found: Approval, verdict: Verdict, by: str) -> Decided:
        source = next((one for one in self._sources() if one.kind is found.request.kind), None)
        if source is not None and not self.store.processes.is_here(found.process):
            machine = found.process.rpartition("@")[2]
            raise ToolError(
                ErrorCode.INPUT,
                f"approval {found.short_id} is about what lies on the machine {machine}",
                "Decide it there: run the command, or open the page, on that machine.",
            )
        decided = await anyio.to_thread.run_sync(self.store.decide, found.id, verdict, by)
        if source is None:
            problem = await anyio.to_thread.run_sync(self._remember, decided, verdict)
            return Decided(decided, _about_call(decided, verdict, problem), problem)
        try:
            done = await (source.approve if verdict.approved else source.deny)(decided, verdict)
        except (ToolError, OSError):
            await anyio.to_thread.run_sync(self.store.reopen, found.id)
            raise
        await anyio.to_thread.run_sync(self.store.finish, found.id)
        return Decided(decided, done)

    def _look(self) -> list[Approval]:
        for source in self._sources():
            seen_at_s = time.time()
            self.store.sync(source.kind, source.waiting(), seen_at_s)
        return self.store.waiting()

    def _remember(self, decided: Approval, verdict: Verdict) -> str:
        """Keep the rules that the person allowed for good. Returns why they are not kept."""
        request = decided.request
        if verdict.approved and verdict.remember and verdict.rules:
            rules = RememberedRules(self._state, request.scope_id, self._warn)
            try:
                rules.add(request.principal, verdict.rules, request.directory)
            except OSError as problem:
                return f"approved once; the rule could not be written down: {problem.strerror}"
        return ""


def _about_call(decided: Approval, verdict: Verdict, problem: str) -> str:
    title = decided.request.title
    if not verdict.approved:
        return f"{title}: denied"
    then = "it runs now" if decided.call_id else "it runs when the client sends the call again"
    return f"{title}: {problem or f'approved ({verdict.scope})'}; {then}"
