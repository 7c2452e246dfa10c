"""What is wrong with the files a gateway keeps and reads: who else may read or change them (R-CONF-2)."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from goat_mcp.core.redaction import is_likely_secret
from goat_mcp.gateway.status.finding import Finding

_OTHERS = 0o077
_OTHERS_WRITE = 0o022
_MAX_FILES = 2000


def state_findings(folder: Path) -> Iterator[Finding]:
    """Files of the state directory that others may read: it holds tokens and what tools answered."""
    if os.name != "posix":
        return
    seen = 0
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            seen += 1
            if seen > _MAX_FILES:
                return
            path = Path(parent, name)
            try:
                mode = path.lstat().st_mode
            except OSError:
                continue
            if stat.S_ISREG(mode) and mode & _OTHERS:
                yield Finding(
                    id="state_file_open",
                    about=str(path),
                    detail=f"others may read or write it (mode {mode & 0o777:04o})",
                    fix=f"chmod 600 '{path}'",
                )


def upstream_file_findings(file: Path) -> Iterator[Finding]:
    """A file that others may change decides what runs as you; one they may read should hold no secret."""
    try:
        mode = file.stat().st_mode
        content: Any = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return  # whoever loads it says so
    if os.name == "posix" and mode & _OTHERS_WRITE:
        yield Finding(
            id="config_writable",
            about=str(file),
            detail=f"others may change it (mode {mode & 0o777:04o}), and so which programs run as you",
            fix=f"chmod go-w '{file}'",
        )
    secrets = sorted(_written_secrets(content))
    if secrets and os.name == "posix" and mode & 0o044:
        yield Finding(
            id="secret_readable",
            about=str(file),
            detail=f"others may read it (mode {mode & 0o777:04o}), and it holds what look like secrets: "
            f"{', '.join(secrets)}",
            fix=f"chmod 600 '{file}', or write ${{keyring:SERVICE/USER}} or ${{env:NAME}} instead.",
        )


def _written_secrets(content: Any) -> Iterator[str]:
    """The places of values that are secrets and no references to one."""
    servers: Any = cast("Mapping[str, Any]", content).get("mcpServers") if isinstance(content, dict) else None
    for server, entry in cast("dict[str, Any]", servers).items() if isinstance(servers, dict) else ():
        if not isinstance(entry, dict):
            continue
        for part in ("env", "headers"):
            values: Any = cast("dict[str, Any]", entry).get(part)
            for name, value in cast("dict[str, Any]", values).items() if isinstance(values, dict) else ():
                if isinstance(value, str) and "${" not in value and is_likely_secret(name, value):
                    yield f"{server}.{part}.{name}"
