"""What the resident process imports and builds: all that a server over stdio needs until it has answered its first
calls. A test compares it with what a session imports."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module

from click import Context

_MODULES = (
    "anyio._backends._asyncio",
    "concurrent.futures.thread",
    "encodings.ascii",
    "pwd",
    "sqlite3",
    "structlog",
    "tree_sitter_bash",
    "goat_mcp.cli.main",
    "goat_mcp.cli.serve",
    "goat_mcp.server.run",
    # What the first call loads.
    "goat_mcp.calls.batch",
    "goat_mcp.calls.hooks.command",
    "goat_mcp.calls.long_calls",
    "goat_mcp.calls.meta_call",
    "goat_mcp.calls.observability.call_spans",
    "goat_mcp.calls.permissions.command_files",
    "goat_mcp.calls.pipeline",
    "goat_mcp.commands.sandbox.factory",
    "goat_mcp.commands.shell.plain_commands",
    "goat_mcp.commands.shell.read_folders",
    "goat_mcp.commands.shell.script_parsing",
    "goat_mcp.commands.shell.script_files",
    "goat_mcp.commands.shell.written_files",
    "goat_mcp.files.changes.review",
    "goat_mcp.files.changes.staged_files",
    "goat_mcp.files.memory",
    "goat_mcp.gateway.approvals.change_source",
    "goat_mcp.gateway.approvals.of_principal",
    "goat_mcp.gateway.build.builtin_tools",
    "goat_mcp.gateway.build.resources",
    "goat_mcp.gateway.preflight",
    # The status, and servers behind this one.
    "goat_mcp.gateway.status.gateway_status",
    "goat_mcp.gateway.status.log_files",
    "goat_mcp.gateway.status.process_files",
    "goat_mcp.gateway.status.requests",
    "goat_mcp.gateway.status.system_features",
    "goat_mcp.state.resources",
    "goat_mcp.upstreams.calls.subscriptions",
    "goat_mcp.upstreams.config.entry_parser",
    "goat_mcp.upstreams.listing.entry_validation",
    "goat_mcp.upstreams.listing.suspicious_texts",
    "goat_mcp.upstreams.transports.connect",
)


_OF_SIZE: Mapping[int, Callable[[], object]] = {
    16: object,
    32: lambda: int("1234567"),
    **{size: partial(bytes, size - sys.getsizeof(b"")) for size in range(48, 513, 16)},
}
"""Python gives out memory for small objects in blocks of these sizes: what needs one."""
_POOL_BYTES, _FIRST_BLOCK = 1 << 14, 48
_MOST_HOLES = 10_000
_IN_A_ROW = 8
"""Blocks that follow each other from the first one of a pool. Two or three may be holes that were left so."""


def preload() -> list[object]:
    """Import and build all of it; no thread is started and nothing of the user's is read. Whoever forks keeps what is
    returned."""
    for name in _MODULES:
        import_module(name)
    for _ in range(2):
        _rehearse()
    gc.collect()
    return _filled_holes()


def _rehearse() -> None:
    """Call what each session calls and what depends on nothing of it, so that what Python and libraries make of it at
    the first call (bytecode for its types, validators, caches, tables of OpenSSL) is made once, and shared."""
    from mcp.server.request_state import RequestStateSecurity

    from goat_mcp.catalog.builtin_contracts import names_of_ours
    from goat_mcp.cli.serve import serve
    from goat_mcp.settings.settings import Settings

    names_of_ours()
    Settings.model_rebuild()
    Settings.model_validate({})
    serve.make_parser(Context(serve))
    RequestStateSecurity.ephemeral()


def _filled_holes() -> list[object]:
    """Objects in every free block among what is imported. Without them a session puts its own objects there, and for
    each it gets a copy of a page that it could share."""
    found: list[object] = []
    for size, make in _OF_SIZE.items():
        first = last = 0
        for _ in range(_MOST_HOLES):
            one = make()
            found.append(one)
            if id(one) != last + size:
                first = id(one)
            last = id(one)
            if last - first == _IN_A_ROW * size and first % _POOL_BYTES == _FIRST_BLOCK:  # a pool that was empty
                break
    return found
