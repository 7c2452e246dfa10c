"""Where the shared state is: what `state.url` may say, and how it is shown without its password."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.secret_references import SecretReferences

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
_FILES = ("ca", "cert", "key")
_OF_SENTINELS = ("sentinel_user", "sentinel_password")
_REFERENCE = re.compile(r"\$\{[^{}]*\}")


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
    sentinel_user: str = ""
    sentinel_password: str = field(default="", repr=False)
    ca: str = ""
    """A file with the certificates to trust in place of the system's."""
    cert: str = ""
    key: str = ""
    """Files with our own certificate and its key, if the servers want one."""

    @property
    def shown(self) -> str:
        """For people: no user and no password."""
        scheme = next(scheme for scheme, kind in _SCHEMES.items() if kind == (self.kind, self.tls))
        hosts = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.hosts)
        path = "/".join(filter(None, (self.name, str(self.database or ""))))
        return f"{scheme}://{hosts}/{path}".rstrip("/")

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.password, self.sentinel_password)))


def resolved_url(setting: str, references: SecretReferences) -> str:
    """`state.url` with its references replaced. One before the `@` is the plain user or password, whatever characters
    are in it. Raises `Unresolved`."""
    if _REFERENCE.fullmatch(setting):
        return references.secret(setting)
    login, at, rest = setting.rpartition("@")
    login = _REFERENCE.sub(lambda match: quote(references.secret(match.group()), safe=""), login)
    return f"{login}{at}{references.resolve(rest)}"


def parsed_address(url: str) -> RedisAddress:
    """Raises `ToolError(CONFIG)`, which never shows the URL: a password may be in it."""
    scheme, _, rest = url.strip().partition("://")
    if scheme.lower() not in _SCHEMES:
        schemes = ", ".join(_SCHEMES)
        raise _wrong(f"its scheme is none of {schemes}")
    kind, tls = _SCHEMES[scheme.lower()]
    rest, _, query = rest.partition("?")
    place, _, path = rest.partition("/")
    if "#" in rest or "@" in path or "@" in query:
        raise _wrong("write the characters / ? # @ of a password as %2F %3F %23 %40")
    credentials, _, hosts = place.rpartition("@")
    user, _, password = credentials.partition(":")
    if credentials and not password:
        raise _wrong("a user has a password: USER:PASSWORD@HOST, or :PASSWORD@HOST")
    found = tuple(_host(host, _PORTS[kind]) for host in hosts.split(","))
    if len(found) > 1 and kind == "single":
        raise _wrong("several hosts are for redis+cluster and redis+sentinel")
    name = ""
    if kind == "sentinel":
        name, _, path = path.partition("/")
        if not name:
            raise _wrong("sentinels are asked for a name: end it with /NAME")
    if path and not (path.isascii() and path.isdigit() and len(path) < 6):
        raise _wrong("what follows the host is the number of a database")
    if kind == "cluster" and path not in ("", "0"):
        raise _wrong("a cluster has only the database 0")
    options = _options(query, tls=tls, kind=kind)
    return RedisAddress(kind, tls, found, unquote(user), unquote(password), int(path or 0), unquote(name), **options)


def _options(query: str, *, tls: bool, kind: Kind) -> dict[str, str]:
    known = (*(_FILES if tls else ()), *(_OF_SENTINELS if kind == "sentinel" else ()))
    options = dict(parse_qsl(query.replace("+", "%2B"), keep_blank_values=True))
    if query and (not options or set(options) - set(known)):
        takes = ", ".join(known) if known else "nothing: ca, cert and key are for rediss"
        raise _wrong(f"behind the ? it takes {takes}; write a ? of a password as %3F")
    if bool(options.get("cert")) != bool(options.get("key")):
        raise _wrong("cert and key are named together")
    return options


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
