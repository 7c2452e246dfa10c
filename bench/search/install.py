"""Installs the servers' packages into a folder that git ignores. No script of a package runs for it."""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from bench.search.servers import INSTALLED, Server

_UV = INSTALLED / "uv" / "bin" / "uv"
_AT_ONCE = 2
# Scripts of packages would fetch browsers and the like, which no list of tools needs.
_NPM = (
    "--ignore-scripts",
    "--omit=dev",
    "--omit=optional",
    "--no-audit",
    "--no-fund",
    "--no-progress",
    "--loglevel=error",
)


def install(servers: Iterable[Server]) -> None:
    """Whatever is missing. A package that cannot be installed is reported, and its server left out."""
    missing = [server for server in servers if not _is_here(server)]
    if any(server.registry == "pypi" for server in missing) and not _UV.exists():
        venv.create(_UV.parent.parent, with_pip=True)
        _ran([str(_UV.with_name("python")), "-m", "pip", "install", "--quiet", "uv"], "uv")
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(_install, missing))


def _is_here(server: Server) -> bool:
    note = server.folder / "installed"
    return note.exists() and note.read_text() == _wanted(server)


def _wanted(server: Server) -> str:
    return " ".join([server.pinned, *server.also])


def _install(server: Server) -> None:
    if all(_ran(command, server.pinned) for command in _commands(server)):
        (server.folder / "installed").write_text(_wanted(server))


def _commands(server: Server) -> Sequence[Sequence[str]]:
    folder, packages = str(server.folder), (server.pinned, *server.also)
    if server.registry == "npm":
        return [("npm", "install", "--prefix", folder, *_NPM, *packages)]
    python = str(server.folder / "bin" / "python")
    return [
        (str(_UV), "venv", "--quiet", "--clear", "--python", sys.executable, folder),
        (str(_UV), "pip", "install", "--quiet", "--python", python, *packages),
    ]


def _ran(command: Sequence[str], what: str) -> bool:
    print(f"installing {what} ...", file=sys.stderr, flush=True)
    status = subprocess.run(command, check=False, stdout=sys.stderr).returncode
    if status:
        print(f"{what}: cannot be installed (exit status {status})", file=sys.stderr)
    return status == 0
