"""The roots of clients: local folders they work in, asked for once a session and again when they change (WSP-2).

If no workspace was named, those of a client over stdio are it (design D8).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError

from goat_mcp.core import platform
from goat_mcp.core.errors import ToolError
from goat_mcp.files.workspace.windows_paths import parse_windows_path
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.processes.wsl import wsl_paths
from goat_mcp.server.caller_identity import Transport
from goat_mcp.server.client_channel import CalledTool, Context

MAX_SESSIONS = 1000
ROOTS_INPUT = "goat_roots"
ROOTS_TIMEOUT_S = 5.0


class ClientRoots:
    """By session key; the oldest are forgotten."""

    def __init__(self) -> None:
        self._known: dict[str, Sequence[Path]] = {}

    def of(self, session_key: str) -> Sequence[Path] | None:
        """None if they were not asked for."""
        return self._known.get(session_key)

    def keep(self, session_key: str, roots: Sequence[Path]) -> None:
        self._known[session_key] = roots
        if len(self._known) > MAX_SESSIONS:
            self._known.pop(next(iter(self._known)))

    def forget(self, session_key: str) -> None:
        """They have changed."""
        self._known.pop(session_key, None)


def local_folders(answer: Mapping[str, Any]) -> list[Path]:
    """The folders in an answer to `roots/list`. One bad root does not spoil the others."""
    listed: Any = answer.get("roots")
    uris = [
        str(cast("dict[str, Any]", root).get("uri", ""))
        for root in (cast("list[Any]", listed) if isinstance(listed, list) else [])
        if isinstance(root, dict)
    ]
    return [Path(path) for path in map(_path, uris) if path]


def _path(uri: str) -> str:
    """Empty for what is no folder of this computer. In WSL the client may run on Windows."""
    try:
        parts = urlsplit(uri)
        if parts.scheme != "file":
            return ""
        if platform.IN_WSL:
            return wsl_paths().linux_of_uri(uri) or ""
        if platform.SYSTEM == "windows":
            return parse_windows_path(uri).text
    except (ToolError, ValueError):  # of another computer or distribution; `file://[`
        return ""
    return unquote(parts.path) if parts.netloc in ("", "localhost") else ""


class RootsRequest:
    """Asks for the roots before a call, once and after a change; never over HTTP, where each client has its own."""

    def __init__(self, gateway: Gateway, transport: Transport) -> None:
        self._gateway = gateway
        self._transport = transport

    def go_without(self) -> None:
        """This client has no roots."""
        if self._transport == "stdio" and self._gateway.directories.wants_client_roots:
            self._gateway.adopt_client_roots(())

    async def before(self, ctx: Context, params: CalledTool) -> types.InputRequiredResult | None:
        """Ask. Returns a question to send first, if this era has no other way."""
        gateway = self._gateway
        if self._transport != "stdio" or not gateway.directories.wants_client_roots:
            return None
        capabilities = ctx.session.client_capabilities
        if capabilities is None or capabilities.roots is None:
            self.go_without()
            return None
        answer: Any = None
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            answer = (params.input_responses or {}).get(ROOTS_INPUT)
            if answer is None:
                return types.InputRequiredResult(input_requests={ROOTS_INPUT: types.ListRootsRequest()})
        else:
            # A client that refuses, or answers what is no list of roots, has none.
            with anyio.move_on_after(ROOTS_TIMEOUT_S), suppress(MCPError, ValidationError):
                answer = await ctx.session.send_request(types.ListRootsRequest(), _AnyRoots)
        if answer is None and gateway.workspace.roots:
            # It said that they have changed, and not to what.
            gateway.directories.keep_roots()
            return None
        gateway.adopt_client_roots(
            local_folders(answer.model_dump(mode="json")) if isinstance(answer, BaseModel) else []
        )
        return None


def brings_roots(params: Mapping[str, Any]) -> bool:
    """Whether a request answers this question: a round of its call is spent."""
    answers = params.get("inputResponses")
    return isinstance(answers, Mapping) and ROOTS_INPUT in answers


class _AnyRoots(BaseModel):
    """An answer to `roots/list` of which one bad root does not spoil the others."""

    roots: list[dict[str, Any]] = []
