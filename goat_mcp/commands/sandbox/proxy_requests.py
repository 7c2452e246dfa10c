"""What a program asks of our proxy, taken apart strictly: whatever two parsers could read differently is refused.

Pure; who may be asked for, and the bytes that follow, are in `domain_proxy`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass

from goat_mcp.core.errors import ToolError
from goat_mcp.web.http.target import Target, parse_target

_REQUEST_LINE = re.compile(rb"([A-Z]{1,20}) ([!-~]{1,8000}) HTTP/1\.[01]\Z")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00\r\n]*?)[ \t]*\Z")
_LENGTH = re.compile(rb"[0-9]{1,18}\Z")
_OF_THE_CONNECTION = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"proxy-authorization", b"te", b"trailer", b"upgrade", b"host")
)


class BadRequest(ValueError):
    """Not understood, or not to be understood; the message says why."""


@dataclass(frozen=True)
class ProxyRequest:
    """`CONNECT` (`is_tunnel`), or a plain HTTP request with a whole URL. `password` is what came as credentials.

    Of a plain request `head` is what the server gets, for this one target and this one request; `body_bytes` follow,
    or chunks where it is None.
    """

    target: Target
    is_tunnel: bool
    password: str
    head: bytes = b""
    body_bytes: int | None = 0


def read_request(head: bytes) -> ProxyRequest:
    """From the bytes up to the empty line. Raises `BadRequest`."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    line = _REQUEST_LINE.match(first)
    if line is None:
        raise BadRequest("this is no request line of HTTP/1.1")
    method, asked = line[1], line[2].decode("ascii")
    headers: list[tuple[bytes, bytes]] = []
    for text in lines:
        header = _HEADER.match(text)
        if header is None:
            raise BadRequest("a header cannot be read")
        headers.append((header[1], header[2]))
    values = {name.lower(): value for name, value in headers}
    if len([name for name, _ in headers if name.lower() in (b"content-length", b"transfer-encoding")]) > 1:
        raise BadRequest("the length of the body is given twice")
    password = _password(values.get(b"proxy-authorization", b""))
    if method == b"CONNECT":
        return ProxyRequest(_target(f"https://{asked}", "CONNECT wants host:port"), True, password)
    target = _target(asked, "a proxy wants a whole URL")
    if target.scheme != "http":
        raise BadRequest("for https use CONNECT")
    # One request for each connection: what came next could be for anybody.
    kept = [(name, value) for name, value in headers if name.lower() not in _OF_THE_CONNECTION]
    new_lines = [
        b"%s %s HTTP/1.1" % (method, target.path.encode("ascii")),
        b"Host: %s" % target.authority.encode("ascii"),
        *(b"%s: %s" % pair for pair in kept),
        b"Connection: close",
    ]
    return ProxyRequest(target, False, password, b"\r\n".join(new_lines) + b"\r\n\r\n", _body_bytes(values))


def _target(url: str, wanted: str) -> Target:
    try:
        target = parse_target(url)
    except ToolError as problem:
        raise BadRequest(f"{wanted}; {problem.message}") from None
    if url.startswith("https://") and target.path != "/":
        raise BadRequest(wanted)
    return target


def _body_bytes(values: Mapping[bytes, bytes]) -> int | None:
    coding = values.get(b"transfer-encoding")
    if coding is not None:
        if coding.lower() != b"chunked":
            raise BadRequest("a body comes with its length, or in chunks")
        return None
    length = values.get(b"content-length", b"0")
    if not _LENGTH.match(length):
        raise BadRequest("the length of the body is no number")
    return int(length)


def _password(credentials: bytes) -> str:
    kind, _, encoded = credentials.partition(b" ")
    if kind.lower() != b"basic":
        return ""
    try:
        return base64.b64decode(encoded, validate=True).decode("ascii").partition(":")[2]
    except ValueError:
        return ""
