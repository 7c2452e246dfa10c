"""Where an upstream's login may send us. It names these places itself, so they are not to be trusted (R-UP-9).

The origin the operator wrote may be anywhere. Every other one must be public and https, but that an upstream on this
machine may have its authorization server on this machine, too.
"""

from __future__ import annotations

from collections.abc import Collection

from goat_mcp.core.errors import ToolError
from goat_mcp.upstreams.oauth.login_problems import LoginRefused
from goat_mcp.web.http.addresses import why_not_public
from goat_mcp.web.http.target import Target, parse_target


class Destinations:
    """The places one upstream's login may lead to."""

    def __init__(self, url: str, allow_hosts: Collection[str] = ()) -> None:
        self._upstream = _parsed(url, "its own address")
        self._allow_hosts = allow_hosts

    def refuse_plain_upstream(self) -> None:
        """Raises `LoginRefused` for an upstream that would have its tokens over plain http."""
        upstream = self._upstream
        if upstream.scheme == "http" and not (_is_loopback(upstream) or upstream.is_among(self._allow_hosts)):
            raise LoginRefused(
                f"a token is never sent to {upstream.origin} over plain http; use https, or name "
                f"{upstream.authority} in oauth.allow_hosts of its entry"
            )

    def checked(self, url: str, what: str) -> Target:
        """The place a URL leads to. Raises `LoginRefused` where it may not; `what` says whose URL it is."""
        target = _parsed(url, what)
        if target.origin == self._upstream.origin or target.is_among(self._allow_hosts):
            return target
        if _is_loopback(target) and _is_loopback(self._upstream):
            return target
        if target.scheme == "http":
            raise LoginRefused(
                f"{what} is refused: {target.shown} is plain http; the operator can name {target.authority} in "
                "oauth.allow_hosts of this upstream's entry"
            )
        return target

    def may_be_private(self, target: Target) -> bool:
        """Whether a private address is right for this place, once its name is resolved."""
        is_ours = target.origin == self._upstream.origin or target.is_among(self._allow_hosts)
        return is_ours or (_is_loopback(target) and _is_loopback(self._upstream))


def _parsed(url: str, what: str) -> Target:
    try:
        return parse_target(url)
    except ToolError as refused:
        raise LoginRefused(f"{what} is refused: {refused.message}") from None


def _is_loopback(target: Target) -> bool:
    return target.host == "localhost" or why_not_public(target.host) == "loopback"
