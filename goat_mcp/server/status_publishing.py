"""What other programs of the user learn of a serving process, `goat-mcp status` above all. Nothing of it at start."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

import anyio
import anyio.to_thread

from goat_mcp.gateway.gateway import Gateway

FIRST_WRITE_S = 1.0
AFTER_THE_LIST_S = 0.3
"""The client's first list is on its way, and what its first call needs is loaded, before we take time for ourselves."""


async def publish_status(gateway: Gateway) -> None:
    """Until cancelled; nothing is left then."""
    with anyio.move_on_after(FIRST_WRITE_S):
        await gateway.listed.wait()
        await anyio.sleep(AFTER_THE_LIST_S)
    await anyio.to_thread.run_sync(import_module, "goat_mcp.gateway.status.publishing", abandon_on_cancel=True)
    from goat_mcp.gateway.status.log_files import LogWriter
    from goat_mcp.gateway.status.process_files import ProcessFiles
    from goat_mcp.gateway.status.publishing import StatusPublisher

    with suppress(OSError):
        gateway.telemetry.copy_to((await anyio.to_thread.run_sync(LogWriter, gateway.state)).write)
    files = ProcessFiles(gateway.state)
    await StatusPublisher(gateway.status, files, gateway.announcements, gateway.telemetry.warning).run()
