"""Serves the socket that a sandbox with a network of its own has made inside (`linux_confined_start`)."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable

from goat_mcp.commands.sandbox.proxy_connection import MAX_HEAD_BYTES

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class InnerServer:
    """Receives a sandbox's listening socket on `channel`, then serves that socket. In `servers` until it is closed."""

    def __init__(self, channel: socket.socket, serve: Serve, servers: set[InnerServer]) -> None:
        self._channel = channel
        self._serve = serve
        self._servers = servers
        self._server: asyncio.Server | None = None
        self._starting: asyncio.Task[None] | None = None
        self._clients: set[asyncio.Task[None]] = set()
        self._is_closed = False
        servers.add(self)

    def wait(self) -> None:
        if not self._is_closed:
            asyncio.get_running_loop().add_reader(self._channel.fileno(), self._receive)

    def close(self) -> None:
        self._is_closed = True
        self._servers.discard(self)
        self._close_channel()
        if self._server is not None:
            self._server.close()
        for client in tuple(self._clients):
            client.cancel()

    def _close_channel(self) -> None:
        if self._channel.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._channel.fileno())
            self._channel.close()

    def _receive(self) -> None:
        if sys.platform != "linux":
            raise OSError("only Linux has a network of its own for a sandbox")
        try:
            _, descriptors, _, _ = socket.recv_fds(self._channel, 1, 1)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            descriptors = []
        self._close_channel()
        for descriptor in descriptors:
            listener = socket.socket(fileno=descriptor)
            if _listens(listener):
                listener.setblocking(False)
                self._starting = asyncio.get_running_loop().create_task(self._start(listener))
            else:
                listener.close()

    async def _start(self, listener: socket.socket) -> None:
        server = await asyncio.start_server(self._accepted, sock=listener, limit=MAX_HEAD_BYTES)
        self._server = server
        if self._is_closed:
            server.close()

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = asyncio.current_task()
        assert client is not None
        self._clients.add(client)
        try:
            await self._serve(reader, writer)
        finally:
            self._clients.discard(client)


def _listens(listener: socket.socket) -> bool:
    if listener.family is not socket.AF_INET or listener.type is not socket.SOCK_STREAM:
        return False
    return bool(listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))
