"""What `goat-mcp doctor` finds of the Redis that several servers share. It asks it, and writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import ip_address

from goat_mcp.core.errors import ToolError
from goat_mcp.gateway.status.doctor import UNREACHABLE, USAGE, Finding
from goat_mcp.state.redis.address import RedisAddress
from goat_mcp.state.redis.connection import RedisConnection

OLDEST = (6, 2)
_INFO = "return redis.call('INFO', 'server') .. redis.call('INFO', 'memory')"
_KEEPS_ALL = "noeviction"


async def shared_state_examined(redis: RedisConnection) -> list[Finding]:
    """Whether it answers, and whether it may lose what it has taken."""
    where = redis.address.shown
    clear = list(_in_the_clear(redis.address))
    try:
        info = _fields(await redis.run_script(_INFO, ["doctor"], []))
    except ToolError as problem:
        unreachable = Finding(
            id="state_unreachable",
            about=where,
            detail=problem.message,
            fix="Look at state.url, the network, and that Redis; docs/configuration.md says what its user needs.",
            exit_code=UNREACHABLE,
        )
        return [*clear, unreachable]
    return [*clear, *_of_server(where, info)]


def _of_server(where: str, info: Mapping[str, str]) -> Iterator[Finding]:
    version = info.get("redis_version", "")
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers and numbers < OLDEST:
        yield Finding(
            id="state_too_old",
            about=where,
            detail=f"it is version {version}; goat-mcp uses commands of {'.'.join(map(str, OLDEST))}",
            fix="Use a newer Redis, or any Valkey.",
            exit_code=USAGE,
        )
    policy = info.get("maxmemory_policy", _KEEPS_ALL)
    if policy != _KEEPS_ALL:
        yield Finding(
            id="state_evicted",
            about=where,
            detail=f"it removes what is in use when its memory is full (maxmemory-policy {policy})",
            fix=f"Set maxmemory-policy {_KEEPS_ALL} there, or use a Redis that nobody else fills.",
        )


def _in_the_clear(address: RedisAddress) -> Iterator[Finding]:
    far = [host for host, _ in address.hosts if not _is_here(host)]
    if far and not address.tls:
        yield Finding(
            id="state_in_the_clear",
            about=address.shown,
            detail="what is sent there can be read and changed on the way"
            + (", the password too" if address.password else ""),
            fix="Write rediss:// (TLS), unless the network between is yours alone.",
        )


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _fields(info: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in info.splitlines())
    return {name: value for name, separator, value in pairs if separator}
