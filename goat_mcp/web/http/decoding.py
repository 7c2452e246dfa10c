"""Undo a response's content encoding piece by piece, so that no piece is large whatever it was packed from (R-NET-7).

A 64 KB piece of gzip may hold 64 MB, or thousands of members that hold nothing: the decoders of HTTP libraries undo
that in one go. Only zlib's formats are asked for, and only they are undone.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

ACCEPTED = "gzip, deflate"
MAX_LAYERS = 2
"""Encodings of one body. Some servers pack what is packed already; more than that is an attack."""
MAX_FRUITLESS_BYTES = 1024 * 1024
"""How much more a layer may take in than twice what it gives: padding, file names and empty members do not end."""
_PIECE_BYTES = 64 * 1024
_GZIP_WINDOW = zlib.MAX_WBITS | 16
_BYTES_A_MEMBER_COUNTS_AS = 1024
"""To begin a member takes as long as to unpack about this much."""
_HEADER_BYTES = 2
"""What zlib looks at before it refuses a stream as not its own."""


class NotDecodable(ValueError):
    """The body is not what its headers say; the message says what is wrong."""


class BodyDecoder:
    """Decodes one body. `feed` gives pieces of at most 64 KB as they are asked for.

    A piece is empty if a step of the work gave nothing: between two pieces never lies more than a millisecond or
    so, and whoever has other things to do can do them.
    """

    def __init__(self, content_encoding: str) -> None:
        names = [name.strip().lower() for name in content_encoding.split(",")]
        names = [name for name in names if name not in ("", "identity")]
        if len(names) > MAX_LAYERS:
            raise NotDecodable(f"it is encoded {len(names)} times over")
        # Encodings are listed in the order they were applied (RFC 9110, 8.4).
        self._layers = [_layer(name) for name in reversed(names)]

    @property
    def waiting_bytes(self) -> int:
        """How much of what was fed is still packed."""
        return self._layers[0].waiting_bytes if self._layers else 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        return _through(self._layers, data)

    def end(self) -> None:
        """The body is over. Raises `NotDecodable` if an encoding expected more."""
        if any(layer.is_open for layer in self._layers):
            raise NotDecodable("its compressed data ends too early")


class _Layer:
    """One zlib stream, or several gzip streams one after the other."""

    def __init__(self, name: str, window: int) -> None:
        self._name = name
        self._window = window
        self._inflate = zlib.decompressobj(window)
        self._head = b""
        self._has_begun = False
        self._consumed_bytes = 0
        self._produced_bytes = 0
        self.waiting_bytes = 0

    @property
    def is_open(self) -> bool:
        return (self._has_begun or bool(self._head)) and not self._inflate.eof

    def feed(self, data: bytes) -> Iterator[bytes]:
        if not self._has_begun:
            # Which kind of deflate it is shows in the first bytes, and they may come one by one.
            self._head += data
            if len(self._head) < _HEADER_BYTES:
                return
            data, self._head = self._head, b""
        has_more = False
        while data or has_more:
            if self._inflate.eof:
                if self._window != _GZIP_WINDOW or not data.startswith(b"\x1f\x8b"):
                    self._consume(len(data))
                    return  # what follows the data is padding
                self._consume(_BYTES_A_MEMBER_COUNTS_AS)
                self._inflate = zlib.decompressobj(self._window)
            piece = self._decompress(data)
            self._has_begun = True
            self._produced_bytes += len(piece)
            self.waiting_bytes = len(self._inflate.unconsumed_tail or self._inflate.unused_data)
            self._consume(len(data) - self.waiting_bytes)
            # A bare stream may have been taken in to its end before all of it has come out.
            has_more = len(piece) == _PIECE_BYTES
            yield piece
            if not piece and not self._inflate.eof:
                return  # it wants more
            data = self._inflate.unconsumed_tail or self._inflate.unused_data

    def _consume(self, count: int) -> None:
        self._consumed_bytes += count
        if self._consumed_bytes > MAX_FRUITLESS_BYTES + 2 * self._produced_bytes:
            raise NotDecodable(f"it holds next to nothing ({self._produced_bytes:,} bytes) in a lot of {self._name}")

    def _decompress(self, data: bytes) -> bytes:
        try:
            return self._inflate.decompress(data, _PIECE_BYTES)
        except zlib.error as problem:
            if self._window == zlib.MAX_WBITS and not self._has_begun:
                # "deflate" means zlib's format, but many servers send the bare one.
                self._window = -zlib.MAX_WBITS
                self._inflate = zlib.decompressobj(self._window)
                return self._decompress(data)
            raise NotDecodable(f"it cannot be decoded as {self._name}: {problem}") from None


def _layer(name: str) -> _Layer:
    if name in ("gzip", "x-gzip"):
        return _Layer(name, _GZIP_WINDOW)
    if name == "deflate":
        return _Layer(name, zlib.MAX_WBITS)
    raise NotDecodable(f"it is encoded as {_shown(name)}, which was not asked for")


def _shown(name: str) -> str:
    """An encoding as the server calls it, unless it says more than a name."""
    return name if name.isascii() and name.isalnum() and len(name) <= 20 else "something"


def _through(layers: Sequence[_Layer], data: bytes) -> Iterator[bytes]:
    if not layers:
        for start in range(0, len(data), _PIECE_BYTES):
            yield data[start : start + _PIECE_BYTES]
        return
    for piece in layers[0].feed(data):
        if piece:
            yield from _through(layers[1:], piece)
        else:
            yield piece
