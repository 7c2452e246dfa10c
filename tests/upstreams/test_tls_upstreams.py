"""Upstreams over HTTPS: certificates are checked, against the user's own authority where the user names one."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import trustme
from anyio.abc import ByteReceiveStream, ByteSendStream, SocketStream, TaskStatus
from anyio.streams.tls import TLSListener, TLSStream

from tests.upstreams.fleet import fleet, serving_at
from tests.upstreams.test_http_upstreams import free_port

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@asynccontextmanager
async def encrypted(port: int, authority: trustme.CA) -> AsyncGenerator[int]:
    """The port of a proxy that speaks TLS in front of the plain `port`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)  # pyright: ignore[reportUnknownMemberType]  # PyOpenSSL's

    async def serve(*, task_status: TaskStatus[int]) -> None:
        sockets = await anyio.create_tcp_listener(local_host="127.0.0.1")
        async with TLSListener(sockets, context, standard_compatible=False) as listener:
            task_status.started(sockets.extra(anyio.abc.SocketAttribute.local_port))
            await listener.serve(pass_on)

    async def pass_on(client: TLSStream) -> None:
        async with client, await anyio.connect_tcp("127.0.0.1", port) as server, anyio.create_task_group() as group:
            group.start_soon(_pump, client, server)
            await _pump(server, client)
            group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        yield await group.start(serve)
        group.cancel_scope.cancel()


async def _pump(source: ByteReceiveStream, sink: ByteSendStream | SocketStream) -> None:
    try:
        async for piece in source:
            await sink.send(piece)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass


def entry(port: int) -> dict[str, Any]:
    return {"type": "http", "url": f"https://127.0.0.1:{port}/mcp"}


async def test_an_upstream_with_a_certificate_of_the_users_authority_is_used(
    tmp_path: Path, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    # LIF-5
    plain = free_port()
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    with serving_at(plain, "good.py", "http", plain, tmp_path / "log"):
        async with encrypted(plain, authority) as port, fleet(tmp_path, {"web": entry(port)}) as running:
            answer = await running.call("mcp__web__echo", {"text": "over TLS"})

    assert "over TLS" in answer.text


async def test_a_certificate_nobody_vouches_for_is_refused_and_status_says_so(
    tmp_path: Path, authority: trustme.CA
) -> None:
    # LIF-5, OBS-1
    plain = free_port()
    with serving_at(plain, "good.py", "http", plain, tmp_path / "log"):
        async with encrypted(plain, authority) as port, fleet(tmp_path, {"web": entry(port)}) as running:
            status = running.status("web")

    assert status.reason_code == "unreachable"
    assert "certificate verify failed" in status.detail


@pytest.mark.parametrize(
    ("content", "why"), [(None, "No such file or directory"), ("no certificate", "no certificate or crl found")]
)
async def test_authorities_that_cannot_be_read_are_told_with_their_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None, why: str
) -> None:
    # OBS-1
    file = tmp_path / "authorities.pem"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    async with fleet(tmp_path, {"web": entry(free_port())}) as running:
        status = running.status("web")

    assert status.reason_code == "unreachable"
    assert f"no certificate can be checked: SSL_CERT_FILE={file}: " in status.detail
    assert why in status.detail
