"""Definitions and launches of upstreams that wait in `goat.lock`: those that changed, and first sights of strict pins.

What changed is a record each; what is new of one upstream is one record together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

import anyio.to_thread

from goat_mcp.calls.approvals.record import Approval, Kind, Request, Verdict
from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle
from goat_mcp.core.rights import LOCAL
from goat_mcp.core.side_effect import Risk
from goat_mcp.upstreams.listing.suspicious_texts import why_suspicious
from goat_mcp.upstreams.pinning import pin_review
from goat_mcp.upstreams.pinning.pin_lock import PinLock, PinnedDefinitions
from goat_mcp.upstreams.pinning.pin_review import LAUNCH, Waiting, agreement, difference

MAX_DIFF_CHARS = 100_000
_NAMED = 5


class DefinitionSource:
    kind = Kind.DEFINITION

    def __init__(self, pins: PinLock, definitions: PinnedDefinitions, shown: Callable[[str], str]) -> None:
        self._pins = pins
        self._definitions = definitions
        self._shown = shown
        self._requests: dict[str, Request] = {}

    def waiting(self) -> Sequence[Request]:
        groups = {subject_of(group): group for group in _groups(pin_review.waiting_in(self._pins.content()))}
        known = self._requests
        self._requests = {
            subject: known.get(subject) or self._request(subject, group) for subject, group in groups.items()
        }
        return list(self._requests.values())

    def requests_for(self, chosen: Sequence[Waiting]) -> Sequence[Request]:
        """What a decision about just these is about: of what is new together, also a part."""
        return [
            self._requests.get(subject_of(group)) or self._request(subject_of(group), group)
            for group in _groups(chosen)
        ]

    def _request(self, subject: str, group: Sequence[Waiting]) -> Request:
        server = group[0].server
        kept = self._definitions.some(server, {one.after for one in group})
        careful = [
            f"{'' if len(group) == 1 else f'{one.target}: '}{'; '.join(why)}"
            for one in group
            if one.after in kept and (why := why_suspicious(kept[one.after], server))
        ]
        return Request(
            kind=Kind.DEFINITION,
            subject=subject,
            title=self._shown(_title(group)),
            principal=LOCAL,
            tool=self._shown(group[0].target) if len(group) == 1 else "",
            diff=cut_middle(self._shown(self._diff(group)), MAX_DIFF_CHARS),
            risk=_highest(one.risk for one in group),
            asked_by="goat.lock",
            pin=group[0].after if len(group) == 1 else "",
            args_sha256=agreement(group),
            facts={
                "server": server,
                "names": [self._shown(one.target) for one in group],
                "careful": [self._shown(each) for each in careful],
            },
        )

    def _diff(self, group: Sequence[Waiting]) -> str:
        parts = ["\n".join(difference(one, self._definitions)) for one in group]
        if len(group) == 1:
            return parts[0]
        return "\n".join(f"{one.target}:\n{part}" for one, part in zip(group, parts, strict=True))

    async def approve(self, approval: Approval, verdict: Verdict) -> str:
        """Pin exactly what was shown. Raises `ToolError(STALE)`."""
        return await anyio.to_thread.run_sync(self._approve, approval.request)

    async def deny(self, approval: Approval, verdict: Verdict) -> str:
        return "stays as it was pinned, and what was not pinned stays hidden; it is asked about again if it changes"

    def _approve(self, request: Request) -> str:
        waiting = pin_review.waiting_in(self._pins.content())
        group = next((group for group in _groups(waiting) if subject_of(group) == request.subject), None)
        if group is None:
            raise changed_meanwhile()
        try:
            pin_review.approve(self._pins, group)
        except pin_review.ChangedMeanwhile:
            raise changed_meanwhile() from None
        return f"pinned as shown: {_named([self._shown(one.target) for one in group])}"


def subject_of(group: Sequence[Waiting]) -> str:
    return f"{group[0].server}:{agreement(group)}"


def changed_meanwhile() -> ToolError:
    return ToolError(
        ErrorCode.STALE, "it has changed again meanwhile; nothing was approved", "Look at it again: goat-mcp approvals"
    )


def _groups(waiting: Iterable[Waiting]) -> list[tuple[Waiting, ...]]:
    everything = list(waiting)
    changed = [(one,) for one in everything if one.before]
    new = [one for one in everything if not one.before]
    return [*changed, *(tuple(group) for _, group in groupby(new, key=lambda one: one.server))]


def _title(group: Sequence[Waiting]) -> str:
    one = group[0]
    if len(group) > 1:
        return f"{one.server} offers {len(group)} definitions that nobody has approved yet"
    if one.kind == LAUNCH:
        return f"{one.server} is launched in another way than before" if one.before else f"{one.server} is new"
    return f"{one.target} has changed" if one.before else f"{one.target} is new"


def _highest(risks: Iterable[str]) -> str:
    known = [Risk[risk.upper()] for risk in risks if risk.upper() in Risk.__members__]
    return max(known).name.lower() if known else ""


def _named(targets: Sequence[str]) -> str:
    rest = len(targets) - _NAMED
    return ", ".join(targets[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
