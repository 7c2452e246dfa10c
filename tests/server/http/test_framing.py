"""HTTP messages that can be read in two ways, bodies that nobody wants, and what is left of them."""

from __future__ import annotations

import json
import logging
import socket
import time
from collections.abc import Generator
from typing import Any

import pytest

from goat_mcp.server.http import body as http_body
from tests.server.http_thread import OPERATORS, PING, RawServer, raw_server, read_all, status_of

MIB = 1024 * 1024
CONTENT = json.dumps(PING).encode()
LENGTH = f"Content-Length: {len(CONTENT)}".encode()
CHUNKED = b"%x\r\n%s\r\n0\r\n\r\n" % (len(CONTENT), CONTENT)
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[RawServer]:
    with raw_server(tmp_path_factory.mktemp("framing")) as server:
        yield server


@pytest.fixture(autouse=True)
def good_client(server: RawServer) -> Generator[None]:
    yield
    assert server.status(OPERATORS) == 200


def post(server: RawServer, framing: bytes, body: bytes, token: str | None = OPERATORS, version: str = "1.1") -> bytes:
    """On a connection that the client would keep."""
    head = server.head(token, f"POST /mcp HTTP/{version}", closes=False, Mcp_Method="tools/list")
    return head + framing + b"\r\n\r\n" + body


ONE_MEANING = {
    "a length": (LENGTH, CONTENT),
    "chunks": (b"Transfer-Encoding: chunked", CHUNKED),
    "chunks in capitals": (b"TRANSFER-ENCODING: Chunked", CHUNKED),
    "chunks, blanks around": (b"Transfer-Encoding:\t chunked \t", CHUNKED),
    "a length, zeros before": (b"Content-Length: 000%d" % len(CONTENT), CONTENT),
    "a chunk extension": (
        b"Transfer-Encoding: chunked",
        b"%x;a=b\r\n%s\r\n0;c\r\n\r\n" % (len(CONTENT), CONTENT),
    ),
    "trailers": (
        b"Transfer-Encoding: chunked",
        b"%x\r\n%s\r\n0\r\nX-Sum: 1\r\n\r\n" % (len(CONTENT), CONTENT),
    ),
    "small chunks": (
        b"Transfer-Encoding: chunked",
        b"".join(b"1\r\n%c\r\n" % letter for letter in CONTENT) + b"0\r\n\r\n",
    ),
}


@pytest.mark.parametrize(("framing", "body"), ONE_MEANING.values(), ids=ONE_MEANING)
def test_what_has_one_meaning_is_served_and_the_connection_is_kept(
    server: RawServer, framing: bytes, body: bytes
) -> None:
    with server.connect() as connection:
        connection.sendall(post(server, framing, body) + server.post(OPERATORS, PING))
        _, answers = read_all(connection)

    assert answers.count(b"HTTP/1.1 200 OK\r\n") == 2


AMBIGUOUS = {
    "length, then chunks": (LENGTH + b"\r\nTransfer-Encoding: chunked", CHUNKED),
    "chunks, then length": (b"Transfer-Encoding: chunked\r\n" + LENGTH, CHUNKED),
    "chunks and a length of 0": (b"Transfer-Encoding: chunked\r\nContent-Length: 0", CHUNKED),
    "a length of 4 and chunks": (b"Content-Length: 4\r\nTransfer-Encoding: chunked", CHUNKED),
    "chunks in capitals and a length": (b"TRANSFER-ENCODING: CHUNKED\r\n" + LENGTH, CHUNKED),
    "a length, something, chunks": (LENGTH + b"\r\nX-Y: z\r\nTransfer-Encoding: chunked", CHUNKED),
    "two lengths": (LENGTH + b"\r\nContent-Length: 5", CONTENT),
    "two lengths, 0 first": (b"Content-Length: 0\r\n" + LENGTH, CONTENT),
    "two lengths in one": (b"Content-Length: 5, 6", CONTENT),
    "a length with a sign": (b"Content-Length: +5", CONTENT),
    "a length below 0": (b"Content-Length: -1", CONTENT),
    "a length in hexadecimal": (b"Content-Length: 0x10", CONTENT),
    "a length of nothing": (b"Content-Length:", CONTENT),
    "a length with a blank": (b"Content-Length: 1 0", CONTENT),
    "a length with an underscore": (b"Content-Length: 1_0", CONTENT),
    "a length as a fraction": (b"Content-Length: 10.0", CONTENT),
    "a length in other digits": ("Content-Length: \u0661\u0660".encode(), CONTENT),
    "a length of 30 digits": (b"Content-Length: " + b"9" * 30, CONTENT),
    "identity": (b"Transfer-Encoding: identity", CHUNKED),
    "gzip": (b"Transfer-Encoding: gzip", CHUNKED),
    "gzip, chunked": (b"Transfer-Encoding: gzip, chunked", CHUNKED),
    "chunked, identity": (b"Transfer-Encoding: chunked, identity", CHUNKED),
    "chunked twice": (b"Transfer-Encoding: chunked, chunked", CHUNKED),
    "two headers of chunks": (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", CHUNKED),
    "chunks, quoted": (b'Transfer-Encoding: "chunked"', CHUNKED),
    "chunks with a letter more": (b"Transfer-Encoding: xchunked", CHUNKED),
    "chunks with a parameter": (b"Transfer-Encoding: chunked;q=1", CHUNKED),
    "no transfer encoding": (b"Transfer-Encoding:", CHUNKED),
    "a vertical tab": (b"Transfer-Encoding: \x0bchunked", CHUNKED),
    "a NUL": (b"Transfer-Encoding: chunked\x00", CHUNKED),
    "a blank before the colon": (b"Transfer-Encoding : chunked", CHUNKED),
    "a blank before the length's colon": (b"Content-Length : 5", CONTENT),
    "a folded value": (b"Transfer-Encoding:\r\n chunked", CHUNKED),
    "a value folded with a tab": (b"X-Y: z\r\n\tmore\r\n" + LENGTH, CONTENT),
    "a folded header of framing": (b"X-Y: z\r\n Transfer-Encoding: chunked\r\n" + LENGTH, CONTENT),
    "a line end without CR": (b"X-Y: z\nTransfer-Encoding: chunked\r\n" + LENGTH, CONTENT),
    "a line end without LF": (b"X-Y: z\rTransfer-Encoding: chunked\r\n" + LENGTH, CONTENT),
    "a head that ends without CR": (LENGTH + b"\n\n" + CONTENT, b""),
    "a line without a colon": (b"Transfer-Encoding\r\n" + LENGTH, CONTENT),
    "a line without a name": (b": chunked\r\n" + LENGTH, CONTENT),
}
OLD = {
    "1.0 with chunks": ("1.0", b"Transfer-Encoding: chunked", CHUNKED),
    "1.0 with both": ("1.0", LENGTH + b"\r\nTransfer-Encoding: chunked", CHUNKED),
    "0.9": ("0.9", LENGTH, CONTENT),
    "1.2": ("1.2", LENGTH, CONTENT),
    "2.0": ("2.0", LENGTH, CONTENT),
}


@pytest.mark.parametrize("token", [OPERATORS, None], ids=["token", "no token"])
@pytest.mark.parametrize(
    ("version", "framing", "body"),
    [*(("1.1", *form) for form in AMBIGUOUS.values()), *OLD.values()],
    ids=[*AMBIGUOUS, *OLD],
)
def test_f13_24_framing_with_two_meanings_is_refused_and_the_connection_ends(
    server: RawServer, version: str, framing: bytes, body: bytes, token: str | None
) -> None:
    with server.connect() as connection:
        connection.sendall(post(server, framing, body, token, version) + SMUGGLED)
        status, answers = read_all(connection)

    assert status == 400
    assert answers.count(b"HTTP/1.") == 1, "what came behind it was read as another request"


def test_f13_24_framing_is_checked_in_each_request_of_a_connection(server: RawServer) -> None:
    framing, body = AMBIGUOUS["length, then chunks"]
    with server.connect() as connection:
        connection.sendall(post(server, LENGTH, CONTENT) + post(server, framing, body) + SMUGGLED)
        _, answers = read_all(connection)

    assert (answers.count(b"HTTP/1."), answers.count(b"HTTP/1.1 200"), answers.count(b"HTTP/1.1 400")) == (2, 1, 1)


def test_f13_24_framing_is_judged_however_the_head_is_cut(server: RawServer) -> None:
    framing, body = AMBIGUOUS["a folded value"]
    request = post(server, framing, body)
    with server.connect() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(request), 7):
            try:
                connection.send(request[at : at + 7])
            except ConnectionError:
                break
        status, _ = read_all(connection)

    assert status == 400


REFUSED: dict[str, tuple[int, dict[str, str | None]]] = {
    "no token": (401, {"Authorization": None}),
    "another token": (401, {"Authorization": "Bearer " + "x" * 40}),
    "another host": (421, {"Host": "evil.test"}),
    "another origin": (403, {"Origin": "http://evil.test"}),
    "another type": (415, {"Content_Type": "text/plain"}),
    "too large": (413, {}),
}
ENDLESS = {
    "length": (b"Content-Length: 1000000000", b"x" * 65536),
    "chunks": (b"Transfer-Encoding: chunked", b"10000\r\n" + b"x" * 65536 + b"\r\n"),
}


@pytest.mark.parametrize(("framing", "piece"), ENDLESS.values(), ids=ENDLESS)
@pytest.mark.parametrize(("status", "changes"), REFUSED.values(), ids=REFUSED)
def test_f13_25_refused_body_ends_the_connection(
    server: RawServer, status: int, changes: dict[str, str | None], framing: bytes, piece: bytes
) -> None:
    """The client goes on sending, whatever it is answered. What the system buffers counts as sent."""
    head = server.head(OPERATORS, "POST /mcp HTTP/1.1", closes=False, **changes)
    begun_s = time.monotonic()
    with server.connect() as connection:
        connection.sendall(head + framing + b"\r\n\r\n")
        sent = 0
        try:
            while sent < 64 * MIB:
                connection.sendall(piece)
                sent += len(piece)
        except OSError:
            pass
        answered, answer = read_all(connection)

    assert sent < (8 if status == 413 else 1) * MIB + 12 * MIB
    assert time.monotonic() - begun_s < 4
    assert answered == status
    assert b"connection: close" in answer.lower()


@pytest.mark.parametrize(("framing", "piece"), ENDLESS.values(), ids=ENDLESS)
@pytest.mark.parametrize(("status", "changes"), REFUSED.values(), ids=REFUSED)
def test_f13_25_refused_body_that_stops_leaves_no_open_connection(
    server: RawServer, status: int, changes: dict[str, str | None], framing: bytes, piece: bytes
) -> None:
    head = server.head(OPERATORS, "POST /mcp HTTP/1.1", closes=False, **changes)
    with server.connect() as connection:
        connection.sendall(head + framing + b"\r\n\r\n" + (piece * 65 if status == 413 else piece[:100]))
        connection.settimeout(3)

        assert read_all(connection)[0] == status


def test_f13_25_refused_body_of_a_reasonable_size_is_read_for_the_answer_to_arrive(server: RawServer) -> None:
    content = b"[" + b" " * (6 * MIB) + b"]"
    with server.connect() as connection:
        connection.sendall(post(server, b"Content-Length: %d" % len(content), content))

        assert read_all(connection)[0] == 413


def test_f13_25_refused_body_is_not_asked_for(server: RawServer) -> None:
    for token, status in ((None, 401), (OPERATORS, 413)):
        with server.connect() as connection:
            connection.sendall(post(server, b"Expect: 100-continue\r\nContent-Length: 1000000000", b"", token))

            answered, answer = read_all(connection)

        assert (answered, answer.count(b"HTTP/1.")) == (status, 1)


def test_a_body_that_does_not_come_in_time_is_answered_and_the_connection_ends(
    server: RawServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-HTTP-4"""
    monkeypatch.setattr(http_body, "BODY_DEADLINE_S", 0.2)
    with server.connect() as connection:
        connection.sendall(post(server, LENGTH, CONTENT[:10]))

        assert read_all(connection)[0] == 408


MALFORMED = {
    "no size": b"\r\nabc\r\n",
    "a size that is no number": b"zz\r\nabc\r\n",
    "a size with a sign": b"+3\r\nabc\r\n",
    "a size below 0": b"-3\r\nabc\r\n",
    "a size with 0x": b"0x3\r\nabc\r\n",
    "a size of 40 digits": b"1" * 40 + b"\r\nabc\r\n",
    "a blank before the size": b" 3\r\nabc\r\n",
    "more than the size": b"3\r\nabcdef\r\n",
    "less than the size": b"6\r\nabc\r\n0\r\n\r\n",
    "a line end without CR": b"3\nabc\n0\n\n\r\n",
    "no line end behind the chunk": b"3\r\nabc0\r\n\r\n",
    "an extension with a line end": b"3;a\nb\r\nabc\r\n0\r\n\r\n",
    "an extension with half a line end": b"3;a\rb\r\nabc\r\n0\r\n\r\n",
    "an extension with a NUL": b"3;a\0b\r\nabc\r\n0\r\n\r\n",
    "a trailer that is no header": b"0\r\nno colon\r\n\r\n",
    **{
        name: b"%x\r\n%s\r\n0\r\n%s" % (len(CONTENT), CONTENT, trailers + SMUGGLED)
        for name, trailers in {
            "trailers that end without CR": b"X-Sum: 1\n\n",
            "trailers that end with half a line": b"X-Sum: 1\r\n\n",
            "no trailers, ended without CR": b"\n",
            "a line without CR between trailers": b"X-Sum: 1\nX-Y: 2\r\n\r\n",
            "a line without LF in a trailer": b"X-Sum: 1\rX-Y: 2\r\n\r\n",
            "a folded trailer": b"X-Sum: 1\r\n 2\r\n\r\n",
            "a trailer folded with a tab": b"X-Sum: 1\r\n\t2\r\n\r\n",
            "a trailer with a NUL": b"X-Sum: \0\r\n\r\n",
        }.items()
    },
    "a size line without an end": b"1;" + b"a" * 70_000,
    "a good chunk, then a bad one": b"3\r\n[1,\r\nQ\r\n",
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED)
def test_f13_26_malformed_chunk_is_one_line_of_the_log(
    server: RawServer, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), server.connect() as connection:
        connection.sendall(post(server, b"Transfer-Encoding: chunked", b""))
        connection.sendall(body)
        status, answers = read_all(connection)
        assert server.status(OPERATORS) == 200

    assert (status, answers.count(b"HTTP/1.")) == (400, 1)
    assert [record.getMessage() for record in caplog.records] == ["Invalid HTTP request received."]
    assert caplog.records[0].exc_info is None


@pytest.mark.parametrize("closes", [True, False], ids=["closing", "kept"])
def test_f13_26_malformed_chunk_behind_a_request_that_is_being_answered_is_no_traceback(
    server: RawServer, closes: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A stream is being sent, and its client sends on."""
    opened, session_id = server.open_session(OPERATORS)
    session: dict[str, Any] = {"MCP_Protocol_Version": "2025-11-25", "Mcp_Session_Id": session_id}
    with caplog.at_level(logging.WARNING), server.connect() as connection:
        connection.sendall(server.head(OPERATORS, "GET /mcp HTTP/1.1", closes=closes, **session) + b"\r\n")
        answer = connection.recv(65536)
        connection.sendall(b"Q\r\n\r\n" * 5)
        ended = server.exchange(server.head(OPERATORS, "DELETE /mcp HTTP/1.1", **session) + b"\r\n")[0]
        read_all(connection)
        assert server.status(OPERATORS) == 200

    assert (opened, ended, status_of(answer)) == (200, 200, 200)
    assert [record for record in caplog.records if record.exc_info] == []


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_body_that_other_methods_bring_has_to_arrive_as_well(
    server: RawServer, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_body, "BODY_DEADLINE_S", 0.2)
    with server.connect() as connection:
        connection.sendall(server.head(OPERATORS, f"{method} /mcp HTTP/1.1", closes=False) + LENGTH + b"\r\n\r\n")

        assert read_all(connection)[0] == 408


def test_f13_26_malformed_chunk_that_breaks_off_is_no_traceback(
    server: RawServer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for framing, body in ((b"Transfer-Encoding: chunked", b"100\r\nabc"), (LENGTH, CONTENT[:-1])):
            with server.connect() as connection:
                connection.sendall(post(server, framing, body))
                connection.shutdown(socket.SHUT_WR)
                read_all(connection)
        assert server.status(OPERATORS) == 200

    assert [record for record in caplog.records if record.exc_info] == []
