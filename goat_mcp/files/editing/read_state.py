"""Whether a client may change a file, given what it has read of it. Recording reads is the tools' business.

Contract: tools.md, "Read state"; R-FILE-8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.workspace import FileVersion
from goat_mcp.state.sessions import FileSeen

ReadBeforeWrite = Literal["strict", "relaxed", "off"]


@dataclass(frozen=True)
class ReadState:
    """One file as this client has last seen it. `path` is the path in the caller's words."""

    mode: ReadBeforeWrite
    path: str
    seen: FileSeen | None

    def is_changed(self, version: FileVersion) -> bool:
        """The client has seen another content. Decided by content; by size and time where nothing was hashed."""
        if self.seen is None:
            return False
        if self.seen.sha256:
            return self.seen.sha256 != version.sha256
        return (self.seen.size, self.seen.mtime_ns) != (version.size, version.mtime_ns)

    def before_editing(self) -> None:
        """Before looking for anything: `strict` wants a read. Raises `ToolError(NOT_READ)`."""
        if self.mode == "strict":
            self._require_read()

    def before_applying(self, version: FileVersion, *, exact_and_unique: bool) -> None:
        """An edit that is not exact and unique needs a read, of this very content. Raises NOT_READ or STALE."""
        if not exact_and_unique:
            self.before_overwriting(version)

    def before_overwriting(self, version: FileVersion) -> None:
        """Content may only go after it has been seen. Raises NOT_READ or STALE."""
        if self.mode != "off" and version.size:
            self._require_read()
            self.require_current(version)

    def require_current(self, version: FileVersion) -> None:
        """Raises `ToolError(STALE)` if the client knows another content only."""
        if self.mode != "off" and self.is_changed(version):
            raise ToolError(
                ErrorCode.STALE,
                f"{self.path} has changed since it was read; nothing was written",
                "Read it again, then repeat the change on its present content.",
            )

    def _require_read(self) -> None:
        if self.seen is None:
            raise ToolError(
                ErrorCode.NOT_READ,
                f"{self.path} has not been read in this session; nothing was written",
                "Read it first (a part is enough), then call again.",
            )
