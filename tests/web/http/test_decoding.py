"""Bodies are unpacked in small steps, and only as long as something comes out. Contract: security.md, R-NET-7."""

from __future__ import annotations

import gzip
import random
import tracemalloc
import zlib
from collections.abc import Callable, Iterable
from functools import cache

import pytest

from goat_mcp.web.http.decoding import BodyDecoder, NotDecodable

EMPTY_MEMBER = gzip.compress(b"", mtime=0)


@cache
def bomb() -> bytes:
    return gzip.compress(b"\0" * 50_000_000)


@pytest.mark.parametrize("encoding", ["gzip", "gzip, gzip"], ids=["once", "twice"])
def test_a_bomb_is_unpacked_piece_by_piece(encoding: str) -> None:
    packed = bomb() if encoding == "gzip" else gzip.compress(bomb())
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

    pieces = decoder.feed(bomb())
    next(pieces)

    assert len(bomb()) * 0.9 < decoder.waiting_bytes < len(bomb())


def pieces_of(body: bytes, size: int = 65_536) -> Iterable[bytes]:
    return (body[start : start + size] for start in range(0, len(body), size))


def unpacked(encoding: str, parts: Iterable[bytes]) -> bytes:
    decoder = BodyDecoder(encoding)
    out = b"".join(piece for part in parts for piece in decoder.feed(part))
    decoder.end()
    return out


def refusal(encoding: str, body: bytes) -> str:
    with pytest.raises(NotDecodable) as refused:
        unpacked(encoding, pieces_of(body))
    return str(refused.value)


def bare(data: bytes) -> bytes:
    squeeze = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return squeeze.compress(data) + squeeze.flush()


def with_name(name: bytes) -> bytes:
    """The head of a gzip member that names a file, without the name's end."""
    return b"\x1f\x8b\x08\x08\0\0\0\0\0\xff" + name


FRUITLESS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "empty members": ("gzip", lambda: EMPTY_MEMBER * 60_000),
    "a thousand empty members": ("gzip", lambda: EMPTY_MEMBER * 1_200),
    "empty members packed twice": ("gzip, gzip", lambda: gzip.compress(EMPTY_MEMBER * 2_000_000)),
    "padding": ("gzip", lambda: gzip.compress(b"hello") + b"\0" * 2_000_000),
    "padding packed twice": ("gzip, gzip", lambda: gzip.compress(gzip.compress(b"hello") + b"\0" * 100_000_000)),
    "a file name without an end": ("gzip", lambda: with_name(b"x" * 2_000_000)),
    "a file name without an end, packed": ("gzip, gzip", lambda: gzip.compress(with_name(b"x" * 100_000_000))),
    "empty blocks": ("deflate", lambda: b"\x78\x9c" + b"\0\0\0\xff\xff" * 400_000),
}


@pytest.mark.parametrize("case", FRUITLESS)
def test_a_body_that_holds_next_to_nothing_is_given_up_early(case: str) -> None:
    encoding, body = FRUITLESS[case]

    assert "holds next to nothing" in refusal(encoding, body())


def test_every_step_that_gives_nothing_is_an_empty_piece_so_that_others_get_their_turn() -> None:
    decoder = BodyDecoder("gzip, gzip")

    pieces = list(decoder.feed(gzip.compress(EMPTY_MEMBER * 800, mtime=0)))

    assert len(pieces) >= 800
    assert set(pieces) == {b""}


def test_many_small_members_with_something_in_them_are_unpacked() -> None:
    members = b"".join(gzip.compress(b"%04d" % number * 250) for number in range(3_000))

    assert len(unpacked("gzip", pieces_of(members))) == 3_000_000


@pytest.mark.parametrize("level", [0, 1, 9])
@pytest.mark.parametrize("encoding", ["gzip", "gzip, gzip", "deflate", "deflate, gzip"])
def test_what_cannot_be_packed_any_smaller_is_no_waste(encoding: str, level: int) -> None:
    data = body = random.Random(7).randbytes(3_000_000)
    for name in encoding.split(", "):
        body = gzip.compress(body, level) if name == "gzip" else zlib.compress(body, level)

    assert unpacked(encoding, pieces_of(body)) == data


@pytest.mark.parametrize("pack", [bare, zlib.compress], ids=["bare", "zlib"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_deflate_of_both_kinds_may_come_byte_by_byte(pack: Callable[[bytes], bytes], size: int) -> None:
    assert unpacked("deflate", pieces_of(pack(b"hello " * 50), size)) == b"hello " * 50


@pytest.mark.parametrize("length", range(65_536 - 5, 65_536 + 300, 5))
def test_the_end_of_bare_deflate_comes_out_wherever_a_piece_ends(length: int) -> None:
    assert unpacked("deflate", [bare(b"a" * length)]) == b"a" * length


def test_a_body_of_one_byte_ends_too_early() -> None:
    assert refusal("deflate", b"\x78") == "its compressed data ends too early"


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "gzip, gzip"])
def test_no_body_at_all_is_an_empty_one(encoding: str) -> None:
    assert unpacked(encoding, []) == b""
