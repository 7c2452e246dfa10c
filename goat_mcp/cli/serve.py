"""`goat-mcp serve`: the MCP server, over stdio or streamable HTTP."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from goat_mcp.cli import flags
from goat_mcp.cli.own_environment import fill_in
from goat_mcp.core import platform
from goat_mcp.server.host_process import HostProcess

if TYPE_CHECKING:
    from goat_mcp.server.ui.hosts import Hosts

_PR_SET_DUMPABLE = 4
_FOR_A_PERSON = """\
goat-mcp waits here for an MCP client, which speaks JSON-RPC. For people:
  goat-mcp install HOST   add goat-mcp to Claude Desktop, Cursor and others
  goat-mcp list           see the tools
  goat-mcp demo           see the main job
Ctrl-C ends it."""


@click.command
@flags.selection
@click.option("--http", metavar="HOST:PORT", help="Serve HTTP there instead of stdio (or unix:PATH).")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="HTTP bearer token; created if the file does not exist.",
)
@click.option("--no-token", is_flag=True, help="HTTP on loopback without a token.")
@click.option(
    "--no-resident",
    is_flag=True,
    help="Serve in this process, not in a fork of the resident one (or GOAT_MCP_RESIDENT=0).",
)
def serve(http: str | None, token_file: Path | None, no_token: bool, no_resident: bool, **selection: Any) -> None:
    """Serve the tools over stdio (what MCP hosts start), or over HTTP.

    The workspace is --workspace, else the client's roots, else the current directory unless that is / or your home.
    Over HTTP all clients share one, and their roots count for upstream servers only.
    Logs go to stderr; stdout carries the protocol only.
    On Linux a start over stdio is a fork of a resident process that has everything imported.
    """
    host = HostProcess.taken_from(os.environ)
    fill_in(os.environ)
    become_undumpable()
    settings = flags.settings_from(**selection, serves=True)

    def check() -> object:
        return flags.settings_from(**selection, serves=True)

    if no_token and token_file is not None:
        raise click.UsageError("--no-token and --token-file contradict each other; give one")
    if http is None and (token_file is not None or no_token):
        raise click.UsageError("--token-file and --no-token belong to --http")
    if platform.HAS_SIGNAL_MASKS:
        signal.signal(signal.SIGINT, _leave)  # while it starts; a running server has a handler of its own
    with suppress(KeyboardInterrupt):  # Ctrl-C is how a person ends it
        if http is None and sys.stdin.isatty():
            _say(_FOR_A_PERSON)
        from goat_mcp.server.run import run_http, run_stdio

        if http is None:
            run_stdio(settings, host=host, check=check)
        else:
            run_http(settings, http, token_file=token_file, no_token=no_token, say=_say, check=check, hosts=_hosts)
    host.say_it_ends_well()


def _hosts() -> Hosts:
    """For the page: loaded when somebody opens it."""
    from goat_mcp.cli.page_hosts import PageHosts
    from goat_mcp.state.directory import StateDirectory

    return PageHosts(StateDirectory.default())


def _leave(number: int, frame: FrameType | None) -> None:
    os._exit(0)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201  # where a person looks for the address


def become_undumpable() -> None:
    """Keep other programs of the same user out of our environment, memory and open files, and write no core dumps
    (R-PROC-7). Without this a command without a sandbox could read our tokens in `/proc/PID/environ`.

    Root still can. What the server starts is not affected: `exec` resets the flag. Linux only, 2 ms.
    """
    if platform.SYSTEM == "linux":
        set_dumpable(False)


def set_dumpable(is_dumpable: bool) -> None:
    """Linux only."""
    try:
        import ctypes
    except ImportError:  # a Python that was built without it
        return
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, int(is_dumpable), 0, 0, 0)
