"""An answer of a web server, as a stream or whole."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple, Protocol


class WholeResponse(NamedTuple):
    """`body` is decoded and holds at most the bytes that were asked for; `truncated` tells that there was more.

    `headers` have lower-case names; several of one name are joined by commas. `wire_bytes` is what came before
    decoding.
    """

    status: int
    url: str
    headers: Mapping[str, str]
    body: bytes
    truncated: bool
    wire_bytes: int = 0


class HttpResponse(Protocol):
    """An answer whose body is still to be read, once."""

    @property
    def status(self) -> int: ...

    @property
    def url(self) -> str: ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Lower-case names; several headers of one name are joined by commas."""
        ...

    @property
    def wire_bytes(self) -> int:
        """Bytes of the body, before decoding, that became what was read so far."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The decoded body in pieces of at most 64 KB. Raises `ToolError(NETWORK)` where it breaks."""
        ...

    async def read(self, max_bytes: int) -> tuple[bytes, bool]:
        """The body up to `max_bytes`, and whether there was more."""
        ...
