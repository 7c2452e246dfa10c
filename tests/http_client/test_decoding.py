"""Unpacking takes little memory, however much was packed (R-NET-7)."""

from __future__ import annotations

import gzip
import tracemalloc

import pytest

from goat_mcp.http_client.decoding import BodyDecoder

BOMB = gzip.compress(b"\0" * 50_000_000)


@pytest.mark.parametrize(
    ("encoding", "packed"), [("gzip", BOMB), ("gzip, gzip", gzip.compress(BOMB))], ids=["once", "twice"]
)
def test_a_bomb_is_unpacked_piece_by_piece(encoding: str, packed: bytes) -> None:
    decoder = BodyDecoder(encoding)
    tracemalloc.start()
    try:
        total = sum(len(piece) for piece in decoder.feed(packed))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    decoder.end()

    assert total == 50_000_000
    assert peak < 1_000_000


def test_what_waits_to_be_unpacked_is_told() -> None:
    decoder = BodyDecoder("gzip")

    pieces = decoder.feed(BOMB)
    next(pieces)

    assert len(BOMB) * 0.9 < decoder.waiting_bytes < len(BOMB)
