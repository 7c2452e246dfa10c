"""The command with which a host can start this very goat-mcp, also tomorrow."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path, PureWindowsPath
from shlex import quote
from urllib.parse import unquote, urlsplit

from goat_mcp.core import platform
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.json_values import mapping

_PACKAGE = "goat-mcp"
_OF_UVX = {"archive-v0", "builds-v0"}
"""Where uv keeps the environments of `uvx` and `uv run --with`; it cleans them up."""


def own_program() -> tuple[str, list[str]]:
    """Program and first arguments, to which those of goat-mcp are added. Raises `ToolError` if none would last."""
    place = Path(sys.prefix)
    is_of_uvx = not _OF_UVX.isdisjoint(place.parts)
    if is_of_uvx and (uvx := _uvx()):
        origin = _installed_from()
        return uvx, [_PACKAGE] if origin == _PACKAGE else ["--from", origin, _PACKAGE]
    if is_of_uvx or _is_of_pipx_run(place):
        raise ToolError(
            ErrorCode.CONFIG,
            f"goat-mcp runs in {place}, which is cleaned up: a host could not start it from there later",
            f"Nothing was written. Install it first: pipx install {quote(_installed_from())}",
        )
    script = Path(sys.executable).with_name("goat-mcp.exe" if platform.SYSTEM == "windows" else _PACKAGE)
    if (linked := _of_homebrew(place)) is not None:
        return str(linked), []
    return (str(script), []) if script.is_file() else (sys.executable, ["-m", "goat_mcp"])


def _of_homebrew(place: Path) -> Path | None:
    """`/opt/homebrew/bin/goat-mcp`: the folder of a version, below `Cellar`, is gone with the next one."""
    if "Cellar" not in place.parts:
        return None
    prefix = Path(*place.parts[: place.parts.index("Cellar")])
    links = (prefix / "bin" / _PACKAGE, prefix / "opt" / _PACKAGE / "bin" / _PACKAGE)
    return next((link for link in links if link.is_file()), None)


def _uvx() -> str | None:
    """uv says where it is to what it starts; `uvx` lies beside it."""
    uv = os.environ.get("UV")
    return (shutil.which("uvx", path=str(Path(uv).parent)) if uv else None) or shutil.which("uvx")


def _is_of_pipx_run(place: Path) -> bool:
    """`pipx run` keeps its environments for two weeks, in a cache; `pipx install` keeps them in `venvs`."""
    caches = ("pipx", ".cache", "Cache")  # the last one on Windows
    return place.parent.name in caches and re.fullmatch(r"[0-9a-f]{15}", place.name) is not None


def _installed_from() -> str:
    """What an installer would have to be given: a file, a folder, an address; the package's name if it has no other."""
    try:
        origin = mapping(json.loads(distribution(_PACKAGE).read_text("direct_url.json") or "{}"))
    except PackageNotFoundError:
        return _PACKAGE
    url, of_repository = str(origin.get("url", "")), mapping(origin.get("vcs_info"))
    if of_repository:
        return f"{of_repository.get('vcs')}+{url}@{of_repository.get('commit_id')}"
    if url.startswith("file:"):
        path = unquote(urlsplit(url).path)
        return str(PureWindowsPath(path[1:])) if platform.SYSTEM == "windows" else path
    return url or _PACKAGE
