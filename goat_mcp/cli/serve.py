"""`goat-mcp serve`: the MCP server, over stdio or streamable HTTP."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from goat_mcp.cli import flags


def serve(
    workspace: flags.Workspace = None,
    config: flags.Config = None,
    upstreams: flags.UpstreamFiles = None,
    http: Annotated[
        str | None,
        typer.Option("--http", metavar="HOST:PORT", help="Serve HTTP there instead of stdio (or unix:PATH)."),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", metavar="FILE", help="HTTP bearer token; created if the file does not exist."),
    ] = None,
    no_token: Annotated[bool, typer.Option("--no-token", help="HTTP on loopback without a token.")] = False,
    mode: flags.Mode = None,
    toolset: flags.Toolset = None,
    set_: flags.Set = None,
) -> None:
    """Serve the tools over stdio (what MCP hosts start), or over HTTP.

    The workspace is --workspace, else the client's roots, else the current directory unless that is / or your home.
    Logs go to stderr; stdout carries the protocol only.
    """
    parent = os.getppid()
    settings = flags.settings_from(
        workspace=workspace, config=config, upstreams=upstreams, mode=mode, toolset=toolset, overrides=set_
    )
    from goat_mcp.server.run import run_http, run_stdio

    if no_token and token_file is not None:
        raise typer.BadParameter("--no-token and --token-file contradict each other; give one")
    if http is None:
        if token_file is not None or no_token:
            raise typer.BadParameter("--token-file and --no-token belong to --http")
        run_stdio(settings, parent=parent)
    else:
        run_http(settings, http, token_file=token_file, no_token=no_token, say=_say)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201  # where a person looks for the address
