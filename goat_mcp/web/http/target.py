"""Where a URL leads, taken apart only here: later code gets the parts, not the text (R-NET-4). Proxies' URLs, too."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal, NamedTuple
from urllib.parse import quote, unquote, urljoin

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.web.http.addresses import canonical_ipv4, why_not_public
from goat_mcp.web.http.domains import NotAHost, ascii_host, looks_like_a_number

MAX_URL_CHARS = 8_000
_SHOWN_CHARS = 300
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_AUTHORITY = re.compile(r"//([^/?#]*)")
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f-\xa0\\\u2028\u2029\ud800-\udfff]")
PORTS = {"http": 80, "https": 443}
_IPV6_CHARS = re.compile(r"[0-9A-Fa-f:.]+\Z")
# All that may stand in a path or query, and `%`: what is encoded already stays as it is.
_KEPT = "/?:@!$&'()*+,;=-._~%[]|"


class Target(NamedTuple):
    """One resource. `host` is ASCII, an IPv6 address without brackets; `path` begins with `/` and holds the query."""

    scheme: Literal["http", "https"]
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        return f"{self.scheme}://{self.authority}"

    @property
    def url(self) -> str:
        return f"{self.origin}{self.path}"

    @property
    def shown(self) -> str:
        """For messages: without the query, where keys are kept."""
        return f"{self.origin}{self.path.partition('?')[0]}"[:_SHOWN_CHARS]

    def is_among(self, hosts: Collection[str]) -> bool:
        """Whether one of these `host` or `host:port` entries names this target."""
        return any(self._is(entry) for entry in hosts)

    def _is(self, entry: str) -> bool:
        host, port = _split_port(entry.strip())
        if port is not None and port != str(self.port):
            return False
        return _plain(host) == _plain(self.host)

    def upgraded(self) -> Target:
        """The same over https."""
        return self._replace(scheme="https", port=443 if self.port == PORTS["http"] else self.port)

    def joined(self, location: str) -> Target:
        """Where a `Location` header of this resource leads. Raises `ToolError(ADDRESS)`."""
        try:
            _refuse_characters(location)
            return parse_target(urljoin(self.url, location))
        except ToolError as refused:
            problem = refused.message
        except ValueError:  # brackets that hold no address, say
            problem = "the URL cannot be read"
        raise ToolError(
            ErrorCode.ADDRESS, f"{self.shown} redirects to what is no web page: {problem}", "Fetch something else."
        )


def parse_target(url: str) -> Target:
    """Take a URL apart. Raises `ToolError(ADDRESS)` for whatever two parsers could read differently (R-NET-4).

    An odd spelling of an IPv4 address is refused, and so is an address that is not public if it is written out;
    `allow` it with `Target.is_among` first. Names are checked once they are resolved.
    """
    _refuse_characters(url)
    scheme = _SCHEME.match(url)
    if scheme is None or scheme[1].lower() not in PORTS:
        raise _refusal(url, "only http(s) can be fetched", "Send a whole URL that begins with https://.")
    rest = url[scheme.end() :]
    authority = _AUTHORITY.match(rest)
    if authority is None or not authority[1]:
        raise _refusal(url, "it names no host", "Send a whole URL, e.g. https://example.com/page.")
    if "@" in authority[1]:
        raise _refusal(url, "a URL with a user name or password is refused", "Send it without.")
    if "%" in authority[1]:
        raise _refusal(url, "% in a host is refused", "Write the host in plain characters.")
    lower: Literal["http", "https"] = "https" if scheme[1].lower() == "https" else "http"
    host, port = _split_port(authority[1])
    path, _, _ = rest[authority.end() :].partition("#")
    if not path.startswith("/"):
        path = "/" + path
    return Target(lower, _host(url, host), _port(url, port, lower), quote(path, safe=_KEPT))


def check_host_entry(entry: str) -> str:
    """An entry of a list of hosts as it was given. Raises `ValueError` for what can name none."""
    host, port = _split_port(entry.strip())
    bare = host.removeprefix("[").removesuffix("]")
    is_address = ":" in bare and _IPV6_CHARS.match(bare) and why_not_public(bare) != "no IP address"
    if not is_address:
        try:
            ascii_host(host)
        except NotAHost as problem:
            raise ValueError(f"wants host or host:port, e.g. localhost:8000; {problem}") from None
    if port is not None and _port_number(port) is None:
        raise ValueError(f"wants host or host:port; {port[:20]!r} is no port")
    return entry


def refuse_private_literal(target: Target) -> None:
    """Raises `ToolError(ADDRESS)` where the host is an address, not a name, and not public."""
    if ":" in target.host or looks_like_a_number(target.host):
        kind = why_not_public(target.host)
        if kind is not None:
            raise not_public(target, target.host, kind)


def refuse_plain_http(target: Target) -> None:
    """Raises `ToolError(ADDRESS)` for a target that anybody on the way could read and change."""
    if target.scheme == "http":
        raise ToolError(
            ErrorCode.ADDRESS,
            f"plain http is refused: {target.shown}",
            f"Use {target.upgraded().shown}. The user can allow http with the setting web.allow_hosts: "
            f"[{target.authority!r}].",
        )


def permitted_target(target: Target, allow_hosts: Collection[str]) -> Target:
    """The target as it is to be asked: over https, but for hosts that the user named. What names a private address
    is refused here, names once they are resolved. Raises `ToolError(ADDRESS)`."""
    if target.is_among(allow_hosts):
        return target
    refuse_private_literal(target)
    return target if target.scheme == "https" else target.upgraded()


def not_public(target: Target, address: str, kind: str) -> ToolError:
    """The error of a target that leads to an address which must not be dialled."""
    where = target.host if address == target.host else f"{target.host} is {address}, which is"
    return ToolError(
        ErrorCode.ADDRESS,
        f"address not public: {where}{',' if address == target.host else ''} {kind} ({target.shown})",
        f"Fetch something else. The user can allow it with the setting web.allow_hosts: [{target.authority!r}].",
    )


def _host(url: str, host: str) -> str:
    if host.startswith("[") and host.endswith("]"):
        if not _IPV6_CHARS.match(host[1:-1]) or why_not_public(host[1:-1]) == "no IP address":
            raise _refusal(url, f"{host[:60]} is no IPv6 address", "Fix the URL.")
        return host[1:-1].lower()
    try:
        name = ascii_host(host)
    except NotAHost as problem:
        raise _refusal(url, f"the host is not valid: {problem}", "Fix the URL.") from None
    if looks_like_a_number(name):
        canonical = canonical_ipv4(name)
        if canonical is None:
            raise _refusal(url, f"{name[:60]} is no IPv4 address", "Fix the URL.")
        if canonical != name:
            kind = why_not_public(canonical)
            what = f"address not public: {name} is {canonical}, {kind}" if kind else f"{name} is an odd way to write it"
            raise _refusal(url, what, f"Write {canonical}." if kind is None else "Fetch something else.")
    return name


def _port(url: str, port: str | None, scheme: Literal["http", "https"]) -> int:
    if port is None or port == "":
        return PORTS[scheme]
    number = _port_number(port)
    if number is None:
        raise _refusal(url, f"{port[:20]!r} is no port", "Fix the URL.")
    return number


def _port_number(text: str) -> int | None:
    is_number = text.isascii() and text.isdigit() and len(text) <= 5
    return int(text) if is_number and 0 < int(text) < 65536 else None


def _split_port(authority: str) -> tuple[str, str | None]:
    """Host (an IPv6 address in brackets, or bare in an entry of a list) and port."""
    if authority.startswith("["):
        host, bracket, rest = authority.partition("]")
        return host + bracket, rest[1:] if rest.startswith(":") else (rest or None)
    if authority.count(":") > 1:
        return authority, None
    host, colon, port = authority.partition(":")
    return host, port if colon else None


def _plain(host: str) -> str:
    """A host so that two spellings of one compare equal; what is no host stays as it is."""
    bare = host.removeprefix("[").removesuffix("]").lower()
    if ":" in bare:
        from ipaddress import ip_address

        try:
            return str(ip_address(bare))
        except ValueError:
            return bare
    try:
        return ascii_host(bare)
    except NotAHost:
        return bare


def _refuse_characters(url: str) -> None:
    if len(url) > MAX_URL_CHARS:
        raise _refusal(url, f"a URL has at most {MAX_URL_CHARS} characters", "Send a shorter one.")
    if (bad := _FORBIDDEN.search(url)) is not None:
        raise _refusal(
            url, f"it holds {bad[0]!r}, which no URL may", "Write a space as %20; leave out control characters and \\."
        )


def _refusal(url: str, problem: str, suggestion: str) -> ToolError:
    shown = url.partition("?")[0][:_SHOWN_CHARS]
    if (bad := _FORBIDDEN.search(shown)) is not None:
        shown = f"{shown[: bad.start()]}…"  # what follows is no URL but text, which may be somebody's orders
    return ToolError(ErrorCode.ADDRESS, f"{shown!r} is refused: {problem}", suggestion)


class ProxyAddress(NamedTuple):
    """Where it is, and the name and password it wants, if any."""

    target: Target
    login: tuple[str, str] | None


def parse_proxy(url: str) -> ProxyAddress:
    """Take a proxy's URL apart. Raises `ValueError`, which does not show it: there may be a password in it."""
    scheme, _, rest = url.partition("://")
    credentials, at, authority = rest.rpartition("@")
    user, _, password = credentials.partition(":")
    try:
        target = parse_target(f"{scheme}://{authority}")
    except ToolError:
        raise ValueError("wants http(s)://[USER:PASSWORD@]HOST:PORT") from None
    if target.path != "/":
        raise ValueError("wants http(s)://[USER:PASSWORD@]HOST:PORT, without a path")
    return ProxyAddress(target, (unquote(user), unquote(password)) if at else None)
