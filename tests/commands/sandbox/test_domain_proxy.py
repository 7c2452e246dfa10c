"""What the proxy of `sandbox_network: domains` lets through and refuses, asked of it by bytes."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from goat_mcp.commands.sandbox import domain_proxy
from goat_mcp.commands.sandbox.confinement import ProxyAccess
from goat_mcp.commands.sandbox.domain_proxy import DomainProxy
from tests.web.http.local_server import page, serving

pytestmark = pytest.mark.anyio
LIMIT_S = 60
HOST = "files.example.org"


async def local_addresses(host: str, port: int) -> Sequence[str]:
    return ("127.0.0.1",)


@asynccontextmanager
async def proxy(
    domains: Sequence[str] = (HOST,), private: Sequence[str] = (HOST,), *, idle_s: float = 300.0
) -> AsyncGenerator[ProxyAccess]:
    one = DomainProxy(domains, private=private, resolve=local_addresses, idle_s=idle_s)
    access = await one.start()
    try:
        yield access
    finally:
        await one.stop()


def credentials(access: ProxyAccess) -> bytes:
    given = urlsplit(access.environment["HTTPS_PROXY"])
    assert given.username is not None and given.password is not None
    pair = base64.b64encode(f"{given.username}:{given.password}".encode())
    return b"Proxy-Authorization: Basic " + pair + b"\r\n"


async def ask(access: ProxyAccess, request: bytes, *, with_password: bool = True) -> bytes:
    """All that the proxy answers to these bytes."""
    async with asyncio.timeout(LIMIT_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", access.port)
        first, _, rest = request.partition(b"\r\n")
        writer.write(first + b"\r\n" + (credentials(access) if with_password else b"") + rest)
        answer = await reader.read()
        writer.close()
        return answer


def connect(host: str, port: int = 443) -> bytes:
    return f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()


async def test_a_tunnel_to_an_allowed_host_carries_bytes_both_ways_until_both_have_ended() -> None:
    received = bytearray()

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(65536):
            received.extend(piece)
            writer.write(piece)
            await writer.drain()
        writer.write(b"end")
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    sent = bytes(range(256)) * 8000

    async with proxy() as access, asyncio.timeout(LIMIT_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", access.port)
        writer.write(connect(HOST, port)[:-2] + credentials(access) + b"\r\n" + sent)
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write_eof()
        answer = await reader.read()
        writer.close()
    server.close()

    assert head == b"HTTP/1.1 200 Connection established\r\n\r\n"
    assert bytes(received) == sent
    assert answer == sent + b"end"


@pytest.mark.parametrize(
    "host",
    [
        *("evil.net", "files.example.org.evil.net", "notfiles.example.org", "example.org", "xn--fles-0pa.example.org"),
        *("127.0.0.1", "[::1]", "169.254.169.254"),
    ],
)
async def test_another_host_is_refused_by_name_with_the_setting_that_would_allow_it(host: str) -> None:
    async with proxy() as access:
        answer = await ask(access, connect(host))

    head, _, body = answer.decode().partition("\r\n\r\n")
    shown = host.strip("[]")
    assert head.splitlines()[0] == f"HTTP/1.1 403 {shown} is not in sandbox_domains"
    assert body == (
        f"goat-mcp: {shown} is not among the hosts that sandboxed commands may reach: {HOST}. "
        f"The user can allow it with the setting sandbox_domains: [{shown!r}].\n"
    )


async def test_an_allowed_name_that_leads_to_a_private_address_is_refused() -> None:
    """R-NET-2: the name is looked up outside, and every address checked."""
    async with serving({"/": page("canary")}) as local, proxy(private=()) as access:
        tunnel = await ask(access, connect(HOST, local.port))
        plain = await ask(access, f"GET http://{HOST}:{local.port}/ HTTP/1.1\r\n\r\n".encode())

    for answer in (tunnel, plain):
        assert answer.startswith(b"HTTP/1.1 403 files.example.org has no public address\r\n")
        assert b"address not public: files.example.org is 127.0.0.1, which is loopback" in answer
    assert local.connections == 0


@pytest.mark.parametrize("number", ["2130706433", "0x7f000001", "0177.0.0.1", "127.1"])
async def test_odd_spellings_of_addresses_are_not_understood(number: str) -> None:
    async with proxy(domains=(HOST, "127.0.0.1"), private=()) as access:
        answer = await ask(access, connect(number))

    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")


async def test_who_does_not_know_the_password_is_told_nothing_else() -> None:
    async with serving({"/": page("canary")}) as local, proxy() as access:
        wrong = b"Proxy-Authorization: Basic " + base64.b64encode(b"goat-mcp:guess") + b"\r\n\r\n"
        answers = [
            await ask(access, connect(HOST, local.port), with_password=False),
            await ask(access, connect("evil.net"), with_password=False),
            await ask(access, connect(HOST, local.port)[:-2] + wrong, with_password=False),
        ]

    assert {answer.partition(b"\r\n")[0] for answer in answers} == {b"HTTP/1.1 407 Proxy Authentication Required"}
    assert local.connections == 0


async def test_a_plain_request_reaches_the_host_of_its_url_whatever_its_headers_say() -> None:
    async with serving({"/a": page("hello")}) as local, proxy() as access:
        request = (
            f"GET http://{HOST}:{local.port}/a?b=c HTTP/1.1\r\nHost: evil.net\r\nAccept: text/plain\r\n"
            "Proxy-Connection: keep-alive\r\nConnection: keep-alive\r\n\r\n"
        )
        answer = await ask(access, request.encode())

    assert answer == page("hello")
    assert local.requests == [
        f"GET /a?b=c HTTP/1.1\r\nHost: {HOST}:{local.port}\r\nAccept: text/plain\r\nConnection: close\r\n\r\n".encode()
    ]


async def test_a_second_request_behind_a_plain_one_is_not_passed_on() -> None:
    async with serving({"/a": page("hello")}) as local, proxy() as access:
        url = f"http://{HOST}:{local.port}/a"
        first = f"POST {url} HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody"
        answer = await ask(access, f"{first}GET {url} HTTP/1.1\r\nHost: evil.net\r\n\r\n".encode())

    assert answer == page("hello")
    assert [request.rpartition(b"\r\n\r\n")[2] for request in local.requests] == [b"body"]


async def test_a_body_in_chunks_arrives_and_ends_with_its_last_chunk() -> None:
    received = bytearray()

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.extend(await reader.readuntil(b"0\r\n\r\n"))
        writer.write(page("done"))
        writer.close()

    server = await asyncio.start_server(receive, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with proxy() as access:
        head = f"POST http://{HOST}:{port}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        answer = await ask(access, f"{head}5;x=y\r\nhello\r\n10\r\n{'x' * 16}\r\n0\r\n\r\nGET /smuggled".encode())
    server.close()

    assert answer == page("done")
    assert received.partition(b"\r\n\r\n")[2] == b"5\r\nhello\r\n10\r\n" + b"x" * 16 + b"\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: files.example.org\r\n\r\n",
        b"GET https://files.example.org/ HTTP/1.1\r\n\r\n",
        b"GET file:///etc/passwd HTTP/1.1\r\n\r\n",
        b"GET http://user:pw@files.example.org/ HTTP/1.1\r\n\r\n",
        b"GET http://files.example.org@evil.net/ HTTP/1.1\r\n\r\n",
        b"GET http://files.example.org\\@evil.net/ HTTP/1.1\r\n\r\n",
        b"CONNECT files.example.org/../evil.net HTTP/1.1\r\n\r\n",
        b"CONNECT files.example.org%00.evil.net:443 HTTP/1.1\r\n\r\n",
        b"CONNECT files.example.org:99999 HTTP/1.1\r\n\r\n",
        b"POST http://files.example.org/ HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST http://files.example.org/ HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
        b"POST http://files.example.org/ HTTP/1.1\r\nContent-Length: +3\r\n\r\n",
        b"POST http://files.example.org/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"GET http://files.example.org/ HTTP/1.1\r\nA : b\r\n\r\n",
        b"GET http://files.example.org/ HTTP/1.1\r\nA: b\r\n folded: c\r\n\r\n",
        b"GET http://files.example.org/ HTTP/1.1\r\nA: b\nHost: evil.net\r\n\r\n",
    ],
)
async def test_what_two_parsers_could_read_differently_is_refused(request_bytes: bytes) -> None:
    async with proxy() as access:
        answer = await ask(access, request_bytes)

    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"goat-mcp: " in answer


async def test_an_endless_head_is_cut_off() -> None:
    async with proxy() as access:
        answer = await ask(access, b"GET http://files.example.org/ HTTP/1.1\r\nA: " + b"x" * 200_000)

    assert answer.startswith(b"HTTP/1.1 431 ") or answer == b""


async def test_a_host_that_nobody_answers_for_is_named() -> None:
    async with serving() as gone:
        port = gone.port
    async with proxy() as access:
        answer = await ask(access, connect(HOST, port))

    assert answer.startswith(b"HTTP/1.1 502 files.example.org cannot be reached\r\n")
    assert f"goat-mcp: {HOST}:{port} cannot be reached: Connection refused\n".encode() in answer


async def test_a_connection_on_which_nothing_moves_is_ended() -> None:
    silent = asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        silent.set()
        writer.close()

    server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    async with proxy(idle_s=0.2) as access:
        answer = await ask(access, connect(HOST, server.sockets[0].getsockname()[1]))
        async with asyncio.timeout(LIMIT_S):
            await silent.wait()
    server.close()

    assert answer == b"HTTP/1.1 200 Connection established\r\n\r\n"


@pytest.mark.parametrize("limit", ["MAX_CONNECTIONS", "MAX_CONNECTIONS_OF_ONE"])
async def test_more_connections_than_it_keeps_are_refused(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(domain_proxy, limit, 2)
    async with proxy() as access:
        held = [await asyncio.open_connection("127.0.0.1", access.port) for _ in range(2)]
        answer = await ask(access, connect(HOST))
        for _, writer in held:
            writer.close()

    assert answer.startswith(b"HTTP/1.1 503 Too many connections\r\n")


async def test_stopping_ends_what_is_under_way_and_the_listening() -> None:
    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    one = DomainProxy((HOST,), private=(HOST,), resolve=local_addresses)
    access = await one.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", access.port)
    writer.write(connect(HOST, server.sockets[0].getsockname()[1])[:-2] + credentials(access) + b"\r\n")
    await reader.readuntil(b"\r\n\r\n")

    async with asyncio.timeout(LIMIT_S):
        await one.stop()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", access.port)
        try:
            rest = await reader.read()
        except ConnectionResetError:
            rest = b""
    server.close()
    writer.close()

    assert rest == b""
