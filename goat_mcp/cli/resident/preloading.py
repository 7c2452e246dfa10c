"""What the resident process imports and builds: all that a server over stdio needs until it has answered its first
calls. A test compares it with what a session imports."""

from __future__ import annotations

from importlib import import_module

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
    "goat_mcp.calls.meta_call",
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


def preload() -> None:
    """Import all of it; no thread is started and nothing of the user's is read."""
    for name in _MODULES:
        import_module(name)
    from goat_mcp.settings.settings import Settings

    Settings.model_rebuild()
