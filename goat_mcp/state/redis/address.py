"""Where the shared state is: what `state.url` may say, and how it is shown without its password."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import unquote, urlsplit

from goat_mcp.core.errors import ErrorCode, ToolError

Kind = Literal["single", "cluster", "sentinel"]
_SCHEMES: dict[str, tuple[Kind, bool]] = {
    "redis": ("single", False),
    "rediss": ("single", True),
    "redis+cluster": ("cluster", False),
    "rediss+cluster": ("cluster", True),
    "redis+sentinel": ("sentinel", False),
    "rediss+sentinel": ("sentinel", True),
}
_PORTS: dict[Kind, int] = {"single": 6379, "cluster": 6379, "sentinel": 26379}
_EXAMPLES = (
    "redis://HOST:6379/0, rediss://USER:PASSWORD@HOST, redis+cluster://HOST:6379, redis+sentinel://HOST:26379/NAME"
)


@dataclass(frozen=True)
class RedisAddress:
    """One Redis, one cluster by some of its nodes, or one that sentinels know under a name."""

    kind: Kind
    tls: bool
    hosts: tuple[tuple[str, int], ...]
    user: str = ""
    password: str = field(default="", repr=False)
    database: int = 0
    name: str = ""
    """Of the primary, for sentinels."""

    @property
    def shown(self) -> str:
        """For people: no user and no password."""
        scheme = next(scheme for scheme, kind in _SCHEMES.items() if kind == (self.kind, self.tls))
        hosts = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.hosts)
        return f"{scheme}://{hosts}/{self.name or self.database or ''}".rstrip("/")


def parsed_address(url: str) -> RedisAddress:
    """Raises `ToolError(CONFIG)`, which never shows the URL: a password may be in it."""
    scheme, _, rest = url.strip().partition("://")
    if scheme.lower() not in _SCHEMES:
        schemes = ", ".join(_SCHEMES)
        raise _wrong(f"its scheme is none of {schemes}")
    kind, tls = _SCHEMES[scheme.lower()]
    place, _, path = rest.partition("/")
    if set("?#") & set(rest):
        raise _wrong("it takes no ? and no #; write these characters of a password as %3F and %23")
    credentials, _, hosts = place.rpartition("@")
    user, _, password = credentials.partition(":")
    found = tuple(_host(host, _PORTS[kind]) for host in hosts.split(","))
    if len(found) > 1 and kind == "single":
        raise _wrong("several hosts are for redis+cluster and redis+sentinel")
    if kind == "sentinel" and not path:
        raise _wrong("sentinels are asked for a name: end it with /NAME")
    if kind != "sentinel" and path and not path.isdigit():
        raise _wrong("what follows the host is the number of a database")
    if kind == "cluster" and path not in ("", "0"):
        raise _wrong("a cluster has only the database 0")
    return RedisAddress(
        kind,
        tls,
        found,
        unquote(user),
        unquote(password),
        int(path) if kind == "single" and path else 0,
        unquote(path) if kind == "sentinel" else "",
    )


def _host(text: str, port: int) -> tuple[str, int]:
    try:
        parts = urlsplit(f"//{text}")
        found = parts.hostname, parts.port
    except ValueError:
        raise _wrong("a port is a number up to 65535") from None
    if not found[0]:
        raise _wrong("a host is missing")
    return found[0], found[1] or port


def _wrong(why: str) -> ToolError:
    return ToolError(ErrorCode.CONFIG, f"state.url cannot be used: {why}", f"Write one such as {_EXAMPLES}.")
