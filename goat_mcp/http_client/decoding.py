"""Undo a response's content encoding piece by piece, so that no piece is large whatever it was packed from (R-NET-7).

A 64 KB piece of gzip may hold 64 MB: the decoders of HTTP libraries give that in one go. Only zlib's formats are
asked for, and only they are undone.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

ACCEPTED = "gzip, deflate"
MAX_LAYERS = 2
"""Encodings of one body. Some servers pack what is packed already; more than that is an attack."""
_PIECE_BYTES = 64 * 1024
_GZIP_WINDOW = zlib.MAX_WBITS | 16


class NotDecodable(ValueError):
    """The body is not what its headers say; the message says what is wrong."""


class BodyDecoder:
    """Decodes one body. `feed` gives pieces of at most 64 KB as they are asked for."""

    def __init__(self, content_encoding: str) -> None:
        names = [name.strip().lower() for name in content_encoding.split(",")]
        names = [name for name in names if name not in ("", "identity")]
        if len(names) > MAX_LAYERS:
            raise NotDecodable(f"it is encoded {len(names)} times over ({content_encoding[:100]})")
        # Encodings are listed in the order they were applied (RFC 9110, 8.4).
        self._layers = [_layer(name) for name in reversed(names)]

    @property
    def waiting_bytes(self) -> int:
        """How much of what was fed is still packed."""
        return self._layers[0].waiting_bytes if self._layers else 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        return _through(self._layers, data)

    def end(self) -> None:
        """The body is over. Raises `NotDecodable` where an encoding expected more."""
        if any(layer.is_open for layer in self._layers):
            raise NotDecodable("its compressed data ends too early")


class _Layer:
    """One zlib stream, or several gzip streams one after the other."""

    def __init__(self, name: str, window: int) -> None:
        self._name = name
        self._window = window
        self._inflate = zlib.decompressobj(window)
        self._has_begun = False
        self.waiting_bytes = 0

    @property
    def is_open(self) -> bool:
        return self._has_begun and not self._inflate.eof

    def feed(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._inflate.eof:
                if self._window != _GZIP_WINDOW or not data.startswith(b"\x1f\x8b"):
                    return  # what follows the data is padding
                self._inflate = zlib.decompressobj(self._window)
            piece = self._decompress(data)
            data = self._inflate.unconsumed_tail or self._inflate.unused_data
            self.waiting_bytes = len(data)
            self._has_begun = True
            if piece:
                yield piece
            elif not self._inflate.eof:
                return  # it wants more

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
    raise NotDecodable(f"it is encoded as {name[:40]!r}, which was not asked for")


def _through(layers: Sequence[_Layer], data: bytes) -> Iterator[bytes]:
    if not layers:
        for start in range(0, len(data), _PIECE_BYTES):
            yield data[start : start + _PIECE_BYTES]
        return
    for piece in layers[0].feed(data):
        yield from _through(layers[1:], piece)
