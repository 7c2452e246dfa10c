"""The page in a process of its own, on loopback, until it is stopped: for who runs no `goat-mcp serve --http`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import anyio
from anyio.abc import TaskGroup, TaskStatus

from goat_mcp.gateway.gateway import Gateway
from goat_mcp.processes import ProcessGuard
from goat_mcp.server.http.connections import PrincipalConnections, possible_connections
from goat_mcp.server.http.principal_limits import FairShares
from goat_mcp.server.http.server import Address, bound_socket, guarded_server
from goat_mcp.server.run import stopping_on_signals
from goat_mcp.server.ui.app import ui_app
from goat_mcp.server.ui.parts import UiParts
from goat_mcp.settings.settings import LimitSettings

HOST = "127.0.0.1"


class GatewayWhenNeeded:
    """Makes the gateway and lets it run when a view first needs it, e.g. to try a tool."""

    def __init__(self, make: Callable[[], Gateway], group: TaskGroup) -> None:
        self._make = make
        self._group = group
        self._making = anyio.Lock()
        self._gateway: Gateway | None = None

    async def __call__(self) -> Gateway:
        """Raises `BrokenSettings`."""
        async with self._making:
            if self._gateway is not None:
                return self._gateway
            gateway: Gateway = await self._group.start(self._run)
            self._gateway = gateway
            return gateway

    async def _run(self, *, task_status: TaskStatus[Gateway]) -> None:
        gateway = self._make()
        async with gateway.running():
            task_status.started(gateway)
            await anyio.sleep_forever()


async def serve_standalone(
    parts: UiParts, make_gateway: Callable[[], Gateway], port: int, on_listening: Callable[[UiParts], None]
) -> None:
    """Serve until SIGINT or SIGTERM. `on_listening` gets the parts with the address. Raises `ToolError(CONFIG)`."""
    listener = bound_socket(Address(HOST, port))
    host = f"{HOST}:{listener.getsockname()[1]}"
    limits = LimitSettings()
    with listener:
        async with anyio.create_task_group() as group:
            served = replace(parts, origin=f"http://{host}", gateway=GatewayWhenNeeded(make_gateway, group))
            app = ui_app(
                served,
                frozenset({host}),
                behind_login=lambda behind: PrincipalConnections(behind, needs_token=False),
            )
            shares = FairShares(possible_connections(limits.connections))
            server = guarded_server(app, shares, limits, has_lifespan=False)

            def stop() -> None:
                served.changes.close()
                # It would dump a traceback of each answer that is cut off.
                logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
                server.should_exit = True

            with stopping_on_signals(stop, ProcessGuard()):
                on_listening(served)
                await server.serve(sockets=[listener])
            group.cancel_scope.cancel()
