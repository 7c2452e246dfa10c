"""Lists and reads of one upstream's resources: what comes is passed on as it came (REL-1), within bounds and in time.

What is asked of several upstreams at once is `resources.py`'s business; what a model sees of it is the tools'.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import anyio

from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError, cut_middle
from goat_mcp.core.mcp_resources import ServerResources
from goat_mcp.documents.visible_text import make_visible
from goat_mcp.upstreams.entry import UpstreamConfig
from goat_mcp.upstreams.envelope import strip_result
from goat_mcp.upstreams.faults import Fault, FaultKind, LinkFault
from goat_mcp.upstreams.lifeline import Lifeline, once_or_twice
from goat_mcp.upstreams.live_connection import LiveConnection
from goat_mcp.upstreams.paging import Listed
from goat_mcp.upstreams.slots import Slots

SHARE = 4
"""Reads get one in so many of an upstream's places: however slow they are, tool calls have the others."""
MAX_URI_CHARS = 8_000
_METHOD_NOT_FOUND = -32601
_DETAIL_CHARS = 300

T = TypeVar("T")


@dataclass
class _Found:
    """What a list has brought until now, kept where it ends early."""

    resources: Listed = field(default_factory=Listed)
    templates: Listed = field(default_factory=Listed)


class ResourceReads:
    """`slots` are those of the upstream's tool calls, too."""

    def __init__(self, config: UpstreamConfig, lifeline: Lifeline, slots: Slots) -> None:
        self._config = config
        self._lifeline = lifeline
        self._slots = slots
        self._share = Slots(config.name, max(1, config.concurrency // SHARE), "reads of resources")

    async def list(self, max_wait_s: float) -> ServerResources:
        """All pages of resources and of templates. Raises `ToolError` where not one entry came."""
        found = _Found()
        problem = ""

        async def run(connection: LiveConnection) -> None:
            found.resources, found.templates = Listed(), Listed()
            if connection.offers("resources"):
                await self._list(connection, "resources/list", "resources", found.resources)
                await self._list(connection, "resources/templates/list", "resourceTemplates", found.templates)

        try:
            await self._ask(run, max_wait_s, "list its resources")
        except ToolError as failure:
            if not found.resources.entries and not found.templates.entries:
                raise
            problem = failure.message.removeprefix(f"upstream {self._config.name} ")
        resources, no_uri = _usable(found.resources.entries, "uri")
        templates, no_template = _usable(found.templates.entries, "uriTemplate")
        odd = no_uri + no_template
        cut = found.resources.truncated or found.templates.truncated
        problems = [problem, f"its list was cut: {cut}" if cut else "", f"{odd} entries have no URI" if odd else ""]
        return ServerResources(self._config.name, resources, templates, "; ".join(part for part in problems if part))

    async def read(self, uri: str, max_wait_s: float, meta: Mapping[str, Any]) -> Mapping[str, Any]:
        """The upstream's result. Raises `ToolError`, `UpstreamError`."""
        _check_uri(uri)

        async def run(connection: LiveConnection) -> Mapping[str, Any]:
            if not connection.offers("resources"):
                raise ToolError(
                    ErrorCode.NOT_FOUND,
                    f"upstream {self._config.name} offers no resources",
                    "ListMcpResources shows what other servers offer.",
                )
            return await connection.read_resource(uri, meta=meta)

        return self._checked(await self._ask(run, max_wait_s, "send this resource"))

    async def _list(self, connection: LiveConnection, method: str, member: str, listed: Listed) -> None:
        try:
            await connection.list_all(method, member, listed)
        except UpstreamError as refused:
            # Servers without templates, or without a list of what they can read, answer so.
            if refused.code != _METHOD_NOT_FOUND:
                message = make_visible(cut_middle(refused.message, _DETAIL_CHARS))
                raise ToolError(
                    ErrorCode.UPSTREAM,
                    f"upstream {self._config.name} answered {method} with error {refused.code}: {message}",
                ) from None

    async def _ask(self, run: Callable[[LiveConnection], Awaitable[T]], max_wait_s: float, what: str) -> T:
        """Run it in a place of the upstream's, in time; again on a new connection if the first was lost."""
        name = self._config.name
        until_s = anyio.current_time() + max_wait_s

        def left_s() -> float:
            return max(0.0, until_s - anyio.current_time())

        async def run_in_time(connection: LiveConnection) -> T:
            limit_s = min(left_s(), self._config.timeout_s)
            with anyio.move_on_after(limit_s):
                return await run(connection)
            raise ToolError(
                ErrorCode.TIMEOUT, f"upstream {name} did not {what} within {limit_s:.3g} s", "Call again later."
            )

        try:
            self._lifeline.check()
            async with self._share.one(left_s()), self._slots.one(left_s()):
                return await once_or_twice(self._lifeline, run_in_time, left_s, is_read=True)
        except LinkFault as failure:
            raise self._described(failure.fault) from None
        except ToolError as error:
            if error.code is not ErrorCode.UPSTREAM_DOWN:
                raise
            message = error.message.removesuffix("; the call did not run")
            raise ToolError(ErrorCode.UPSTREAM, message, error.suggestion, facts=error.facts) from None

    def _checked(self, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        name = self._config.name
        kind = raw.get("resultType", "complete")
        if kind != "complete":
            raise ToolError(
                ErrorCode.UPSTREAM,
                f"upstream {name} answered with {make_visible(str(kind)[:40])!r}, which goat-mcp does not relay",
                "This resource needs a dialogue with the client; read another one.",
            )
        contents = raw.get("contents")
        if not isinstance(contents, list) or not all(isinstance(one, dict) for one in cast("list[Any]", contents)):
            raise ToolError(ErrorCode.UPSTREAM, f"upstream {name} answered without a list of contents")
        return strip_result(raw)

    def _described(self, fault: Fault) -> ToolError:
        name = self._config.name
        facts = {"upstream": name, "reason": str(fault.kind)}
        detail = cut_middle(fault.detail, _DETAIL_CHARS)
        if fault.kind is FaultKind.AUTH_REQUIRED:
            return ToolError(
                ErrorCode.UPSTREAM,
                f"upstream {name} refused our credentials ({detail})",
                "The operator must put valid credentials into the headers of this upstream.",
                facts=facts,
            )
        if fault.kind is FaultKind.MALFORMED:
            return ToolError(
                ErrorCode.UPSTREAM,
                f"upstream {name} answered, but {detail}",
                "Ask it for less, or use another way to the same data.",
                facts=facts,
            )
        if fault.detail == "HTTP 429":
            return ToolError(
                ErrorCode.RATE, f"upstream {name} limits our rate (HTTP 429)", "Call again later.", facts=facts
            )
        return ToolError(
            ErrorCode.UPSTREAM, f"upstream {name} cannot be reached: {detail}", "Call again later.", facts=facts
        )


def _check_uri(uri: str) -> None:
    """Refuse what an upstream over HTTP, where the URI is a header too, would answer by closing the connection."""
    problem = f"has {len(uri):,} characters, at most {MAX_URI_CHARS:,} are sent" if len(uri) > MAX_URI_CHARS else ""
    try:
        uri.encode()
    except UnicodeEncodeError:
        problem = "has half a surrogate pair in it, which no UTF-8 can carry"
    if problem:
        raise ToolError(ErrorCode.INPUT, f"uri: {problem}", "Take a URI as ListMcpResources shows it.")


def _usable(entries: list[Any], key: str) -> tuple[tuple[Mapping[str, Any], ...], int]:
    """The entries that are objects with a text `key`, each such text once; and how many are none."""
    usable: dict[str, Mapping[str, Any]] = {}
    odd = 0
    for entry in entries:
        text = cast("dict[str, Any]", entry).get(key) if isinstance(entry, dict) else None
        if isinstance(text, str):
            usable.setdefault(text, cast("dict[str, Any]", entry))
        else:
            odd += 1
    return tuple(usable.values()), odd
