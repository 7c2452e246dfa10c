"""Paths and `file:` addresses of Windows as the distribution of WSL that we run in spells them. Text only.

Source: Microsoft, "Working across Windows and Linux file systems" and "Advanced settings configuration in WSL".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle

_SERVERS = ("wsl.localhost", "wsl$")
"""The names under which Windows shows the files of distributions."""
_DRIVE = re.compile(r"[A-Za-z]:")
_VERBATIM = re.compile(r"[\\/]{2}[?.][\\/](UNC[\\/]|(?=[A-Za-z]:))?", re.I)
_NOT_IN_NAMES = re.compile(r'[<>:"|?*\x00-\x1f]')
_WIDE = frozenset({"users", "windows", "program files", "program files (x86)", "programdata"})
"""Folders of the system's drive that are nobody's project."""


@dataclass(frozen=True)
class WslPaths:
    """`drives` is where the drives of Windows are mounted: `/mnt`, without a slash at the end."""

    distribution: str
    drives: str = "/mnt"

    def linux(self, text: str) -> str | None:
        """`C:\\x` and `\\\\wsl.localhost\\NAME\\x` in our spelling; None for text that is no path of Windows.

        Raises `ToolError` for one that does not lead to a place here: INPUT, PATH_RELATIVE, PATH_OUTSIDE.
        """
        verbatim = _VERBATIM.match(text)
        if verbatim is not None:
            text = ("\\\\" if verbatim[1] else "") + text[verbatim.end() :]
        if _DRIVE.match(text):
            return self._on_drive(text)
        if text.startswith("\\\\") or (verbatim is not None and text.startswith("//")):
            server, _, path = text[2:].replace("\\", "/").partition("/")
            return self._on_server(text, server, path)
        if verbatim is not None or text.startswith("\\"):
            raise _relative(text)
        return None

    def linux_of_uri(self, uri: str) -> str | None:
        """The same for the path of a `file:` address; one of Linux stays as it is. None for another address."""
        try:
            parts = urlsplit(uri)
        except ValueError:  # `file://[`
            return None
        if parts.scheme != "file":
            return None
        path, server = unquote(parts.path), unquote(parts.netloc)
        if server in ("", "localhost") and path.startswith("//"):
            server, _, path = path[2:].partition("/")
        if server not in ("", "localhost"):
            return self._on_server(uri, server, path.removeprefix("/"))
        return self._on_drive(path[1:]) if _DRIVE.match(path[1:]) else path

    def windows(self, path: str) -> str:
        """An absolute path of ours as Windows spells it."""
        drive, _, below = path.removeprefix(self.drives + "/").partition("/")
        if path.startswith(self.drives + "/") and len(drive) == 1:
            return f"{drive.upper()}:\\{below}".replace("/", "\\")
        return f"\\\\{_SERVERS[0]}\\{self.distribution}{path}".replace("/", "\\")

    def is_too_wide(self, path: str) -> bool:
        """Whether a directory is a drive, a folder of the system, or a user's whole profile on Windows."""
        if path != self.drives and not path.startswith(self.drives.rstrip("/") + "/"):
            return False
        drive, *names = path[len(self.drives) :].strip("/").split("/")
        if len(drive) > 1:
            return False
        top = names[0].lower() if names else ""
        return not names or (top in _WIDE and (top != "users" or len(names) <= 2))  # C:\Users\NAME

    def _on_drive(self, text: str) -> str:
        if text[2:3] not in ("\\", "/"):
            raise _relative(text)
        names = text[3:].replace("\\", "/").split("/")
        for name in names:
            if _NOT_IN_NAMES.search(name) or (name not in ("", ".", "..") and name[-1] in ". "):
                raise ToolError(
                    ErrorCode.INPUT,
                    f"Windows has no file of the name {_shown(name)} ({_shown(text)})",
                    "Send the name as a directory listing shows it.",
                )
        return "/".join((self.drives.rstrip("/"), text[0].lower(), *names)).rstrip("/")

    def _on_server(self, text: str, server: str, path: str) -> str:
        distribution, _, below = path.partition("/")
        if server.lower() not in _SERVERS:
            raise ToolError(
                ErrorCode.PATH_OUTSIDE,
                f"{_shown(text)} is on the network, and not mounted here",
                "Mount it in WSL and send the path that it has there, e.g. /mnt/share/x.",
            )
        if distribution.lower() != self.distribution.lower():
            raise ToolError(
                ErrorCode.PATH_OUTSIDE,
                f"{_shown(text)} is in another distribution of WSL; goat-mcp runs in {self.distribution}",
                f"Send a path of {self.distribution}, or start goat-mcp in that distribution.",
            )
        return "/" + below


def _relative(text: str) -> ToolError:
    return ToolError(
        ErrorCode.PATH_RELATIVE, f"not an absolute path: {_shown(text)}", "Name the drive and a backslash: C:\\Users\\x"
    )


def _shown(text: str) -> str:
    return cut_middle(ascii(text), 300)
