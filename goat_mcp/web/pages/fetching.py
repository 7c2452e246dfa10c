"""One page over the network: rate limit, https, robots.txt, redirects by hand, and responses that are no page."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, NamedTuple

import anyio.to_thread

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.web.http import HttpClient
from goat_mcp.web.http.target import Target, parse_target, permitted_target
from goat_mcp.web.options import WebOptions
from goat_mcp.web.pages.fetched_page import Page
from goat_mcp.web.pages.robots import MAX_BYTES as MAX_ROBOTS_BYTES
from goat_mcp.web.pages.robots import Robots

if TYPE_CHECKING:  # httpx is loaded with the first request
    from goat_mcp.web.http.exchange import HttpResponse

_WINDOW_S = 60.0
_MAX_HOSTS = 1_000


class HostRateLimiter:
    """At most `per_minute` requests to a host within any minute; 0 means any number. `clock` gives seconds."""

    def __init__(self, per_minute: int, clock: Callable[[], float]) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._taken: dict[str, deque[float]] = {}

    def take(self, host: str) -> None:
        """Count one request. Raises `ToolError(RATE)` where it would be one too many."""
        if not self._per_minute:
            return
        now = self._clock()
        if host not in self._taken and len(self._taken) >= _MAX_HOSTS:
            self._taken = {name: times for name, times in self._taken.items() if times[-1] > now - _WINDOW_S}
        times = self._taken.setdefault(host, deque(maxlen=self._per_minute))
        if len(times) == self._per_minute and times[0] > now - _WINDOW_S:
            left_s = math.ceil(times[0] + _WINDOW_S - now)
            raise ToolError(
                ErrorCode.RATE,
                f"{host} was asked {self._per_minute} times within a minute, which is the limit",
                f"Call again in {left_s} s, or fetch something else.",
                facts={"retry_after_s": left_s},
            )
        times.append(now)


MAX_BODY_BYTES = 5_000_000
MAX_DECLARED_BYTES = 64 * 1024 * 1024
"""A body that says it is longer is not begun."""
MAX_REDIRECTS = 5
ACCEPT = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.5"
_MAX_PACKING = 100
"""How many times longer a body may get by unpacking, where it is cut. Text packs five to thirty times."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_ROBOTS_KEPT_S = 900.0
_MAX_ROBOTS = 500


class CrossHostRedirect(NamedTuple):
    """The page is on another host, which is for a new call to decide on (R-NET-5)."""

    url: str
    status: int
    target_url: str


class _Redirect(NamedTuple):
    target: Target
    status: int


_ANYTHING = Robots("")
_NOTHING = Robots("User-agent: *\nDisallow: /")


class Deadline:
    """The end of a piece of work, by an injected clock that gives seconds."""

    def __init__(self, limit_s: float, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ends_at_s = clock() + limit_s

    @property
    def left_s(self) -> float:
        return max(0.0, self._ends_at_s - self._clock())


class Fetcher:
    """Fetches pages for one gateway. `clock` gives seconds."""

    def __init__(self, http: HttpClient, options: WebOptions, clock: Callable[[], float]) -> None:
        self._http = http
        self._options = options
        self._clock = clock
        self._rate = HostRateLimiter(options.requests_per_minute, clock)
        self._robots: dict[str, tuple[float, Robots]] = {}

    def first_target(self, url: str) -> Target:
        """Where a call for `url` begins: over https, but for hosts the user named. Raises `ToolError(ADDRESS)`."""
        return self._permitted(parse_target(url))

    async def fetch(self, first: Target, deadline: Deadline) -> Page | CrossHostRedirect:
        """The page, following redirects on its host. An error status is a page too. Raises `ToolError`."""
        self._rate.take(first.host)
        target = first
        for _ in range(MAX_REDIRECTS + 1):
            if self._options.robots:
                await self._check_robots(target, deadline)
            found = await self._ask(first, target, deadline)
            if isinstance(found, Page):
                return found
            if found.target.host != target.host:
                return CrossHostRedirect(first.url, found.status, found.target.url)
            target = found.target
        raise ToolError(
            ErrorCode.NETWORK,
            f"{first.shown} redirects more than {MAX_REDIRECTS} times",
            "Fetch another page.",
            facts={"url": first.url, "final_url": target.url},
        )

    async def _ask(self, first: Target, target: Target, deadline: Deadline) -> Page | _Redirect:
        async with self._stream(target, ACCEPT, deadline) as response:
            redirect = self._redirect(target, response)
            if redirect is not None:
                return redirect
            _refuse_long(target, response.headers.get("content-length", ""))
            body, is_cut = await response.read(MAX_BODY_BYTES)
            if is_cut and len(body) > _MAX_PACKING * response.wire_bytes:
                raise _too_large(target, f"{response.wire_bytes} bytes of it unpack to more than {MAX_BODY_BYTES}")
            content_type = response.headers.get("content-type", "")
            return Page(first.url, target.url, response.status, content_type, body, is_cut)

    async def _check_robots(self, target: Target, deadline: Deadline) -> None:
        kept = self._robots.get(target.origin)
        if kept is None or self._clock() - kept[0] >= _ROBOTS_KEPT_S:
            if len(self._robots) >= _MAX_ROBOTS:
                self._robots.clear()
            kept = (self._clock(), await self._fetch_robots(target, deadline))
            self._robots[target.origin] = kept
        if not kept[1].allows(target.path):
            raise ToolError(
                ErrorCode.BLOCKED,
                f"{target.origin}/robots.txt does not allow programs to fetch {target.path.partition('?')[0][:300]}",
                "Fetch something else. The user can have robots.txt ignored with the setting web.robots=false.",
                facts={"url": target.url},
            )

    async def _fetch_robots(self, target: Target, deadline: Deadline) -> Robots:
        place = target._replace(path="/robots.txt")
        for _ in range(MAX_REDIRECTS + 1):
            async with self._stream(place, "text/plain, */*;q=0.5", deadline) as response:
                redirect = self._redirect(place, response)
                if redirect is not None:
                    if redirect.target.host != target.host:
                        return _ANYTHING  # not to be asked without a decision on that host
                    place = redirect.target
                    continue
                if response.status in (401, 403):
                    return _NOTHING
                if response.status >= 500:
                    raise ToolError(
                        ErrorCode.NETWORK,
                        f"{place.shown} answers HTTP {response.status}, so what may be fetched there is not known",
                        "Try again later. The user can have robots.txt ignored with the setting web.robots=false.",
                        facts={"url": target.url, "status": response.status},
                    )
                if response.status >= 300:
                    return _ANYTHING
                body, _ = await response.read(MAX_ROBOTS_BYTES)
                # One of 500 KB takes a quarter of a second to read.
                return await anyio.to_thread.run_sync(Robots, body.decode("utf-8", "replace"))
        return _ANYTHING

    def _stream(self, target: Target, accept: str, deadline: Deadline) -> AbstractAsyncContextManager[HttpResponse]:
        return self._http.stream(
            "GET",
            target.url,
            headers={"accept": accept},
            allow_hosts=self._options.allow_hosts,
            timeout_s=deadline.left_s,
        )

    def _redirect(self, target: Target, response: HttpResponse) -> _Redirect | None:
        location = response.headers.get("location", "")
        if response.status not in _REDIRECTS or not location:
            return None
        return _Redirect(self._permitted(target.joined(location)), response.status)

    def _permitted(self, target: Target) -> Target:
        return permitted_target(target, self._options.allow_hosts)


def _refuse_long(target: Target, declared: str) -> None:
    if declared.isascii() and declared.isdigit() and int(declared[:20]) > MAX_DECLARED_BYTES:
        raise _too_large(target, f"it is {int(declared[:20]):,} bytes long")


def _too_large(target: Target, problem: str) -> ToolError:
    return ToolError(
        ErrorCode.TOO_LARGE,
        f"{target.shown} is too large: {problem}",
        "Fetch a smaller part of it, or have Bash download it to a file.",
        facts={"url": target.url},
    )
