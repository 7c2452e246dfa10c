"""`goat-mcp list`: the servers as they answer, and the catalog as a client with these flags would see it."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from goat_mcp.cli import flags
from goat_mcp.cli.exit_codes import AUTH, UNREACHABLE
from goat_mcp.cli.listing import QUIET, Listing, Server, View, known_server, listing, opened, waiting_view
from goat_mcp.cli.terminal import console, escaped, print_table, say, wrapped_table
from goat_mcp.core.suggestions import did_you_mean
from goat_mcp.gateway.catalog_tools import CatalogTool, catalog_tools
from goat_mcp.tools.docs import short_doc
from goat_mcp.upstreams.patience import OF_A_PERSON, TO_THE_END

if TYPE_CHECKING:  # rich is loaded for a terminal
    from rich.table import Table

_SERVER_HEADERS = ("server", "state", "tools", "time", "note")
_ROOM_FOR_TEXT = 80
"""With less beside the longest name, descriptions have lines of their own."""


@click.command("list")
@click.argument("word", required=False)
@click.option("--server", metavar="NAME", help="Only this server and its tools; it is waited for until it has started.")
@click.option("--tokens", is_flag=True, help="Show what each definition costs a model, and all of them, in tokens.")
@flags.selection
@flags.as_json
def list_tools(word: str | None, server: str | None, tokens: bool, as_json: bool, **selection: Any) -> int:
    """Show each server as it answers, then all tools by server: what a call can do, and its risk.

    WORD selects tools by name, description or server. Every server is started and asked; one that does not answer
    within some seconds is named, and its tools are those of an earlier run, if there was one.

    If the catalog is too large to be listed to a client whole, `deferred` are those it finds by search.

    Exit status: 0 done; with --server: 3 it wants a login, 4 it could not be reached.
    """
    gateway = opened(flags.settings_from(**selection, defaults=QUIET))
    only = known_server(gateway, server) if server is not None else None
    with waiting_view() if as_json else _server_view() as view:
        patience = OF_A_PERSON if only is None else TO_THE_END
        found = listing(gateway, view, only=only, again=True, patience=patience)
    tools = catalog_tools(found.gateway)
    shown = [tool for tool in tools if (only is None or tool.server == only) and (not word or tool.matches(word))]
    if as_json:
        click.echo(json.dumps(_document(found, shown, tools, word, tokens)))
    else:
        _print_tools(shown, tokens)
        _print_end(found, shown, tools, word, tokens)
    return _exit_status(found.servers) if only is not None else 0


def _document(
    found: Listing, shown: Sequence[CatalogTool], tools: Sequence[CatalogTool], word: str | None, tokens: bool
) -> dict[str, Any]:
    def wires(*, listed: bool) -> list[dict[str, Any]]:
        chosen = [tool for tool in shown if tool.is_listed is listed]
        return [{**tool.wire, "tokens": tool.tokens} if tokens else dict(tool.wire) for tool in chosen]

    document: dict[str, Any] = {"tools": wires(listed=True)}
    if tokens:
        document["tokens"] = sum(tool["tokens"] for tool in document["tools"])
    document |= {
        "deferred": wires(listed=False),
        "problems": found.problems,
        "servers": [server.document() for server in found.servers],
        "about": {
            tool.spec.name: {"server": tool.server, "effects": list(tool.spec.effects), "risk": tool.risk}
            for tool in shown
        },
    }
    return document | ({"matched": len(shown), "of": len(tools)} if word else {})


def _print_tools(shown: Sequence[CatalogTool], tokens: bool) -> None:
    out = console()
    if not out.is_terminal:
        headers = ("tool", "effects", *(("tokens",) if tokens else ()), "risk", "server", "what it does")
        print_table(headers, [_row(tool, tokens, tool.risk, tool.server, short_doc(tool.spec)) for tool in shown])
        return
    longest = max((len(tool.spec.name) for tool in shown), default=0)
    is_wide = out.width - longest >= _ROOM_FOR_TEXT
    for server in dict.fromkeys(tool.server for tool in shown):
        group = [tool for tool in shown if tool.server == server]
        click.secho(f"\n{escaped(server)} ({len(group)} {'tool' if len(group) == 1 else 'tools'})", bold=True)
        if is_wide:
            headers = ("tool", "effects", *(("tokens",) if tokens else ()), "risk", "what it does")
            print_table(headers, [_row(tool, tokens, tool.risk, short_doc(tool.spec)) for tool in group])
        else:
            _print_stacked(group, tokens)


def _row(tool: CatalogTool, tokens: bool, *rest: str) -> list[str]:
    return [tool.spec.name, tool.effects, *([str(tool.tokens)] if tokens else []), *rest]


def _print_stacked(group: Sequence[CatalogTool], tokens: bool) -> None:
    from rich.padding import Padding
    from rich.text import Text

    out = console()
    for tool in group:
        cost = f", {tool.tokens} tokens" if tokens else ""
        about = f"  {tool.effects}; risk {tool.risk}{cost}"
        out.print(Text.assemble((tool.spec.name, "cyan"), about, overflow="fold"))
        if short := short_doc(tool.spec):
            out.print(Padding(Text(escaped(short), style="dim"), (0, 0, 0, 4)))


def _print_end(
    found: Listing, shown: Sequence[CatalogTool], tools: Sequence[CatalogTool], word: str | None, tokens: bool
) -> None:
    listed = [tool for tool in shown if tool.is_listed]
    if tokens:
        click.echo(f"{len(listed)} tools, {sum(tool.tokens for tool in listed):,} tokens")
    if deferred := [tool for tool in shown if not tool.is_listed]:
        saved = sum(tool.tokens for tool in deferred)
        click.echo(f"{len(deferred)} more are found by search_tools and not listed to clients: {saved:,} tokens saved")
    is_terminal = console().is_terminal
    if word:
        near = "" if shown else did_you_mean(word, (tool.spec.name for tool in tools))
        count = f"{len(shown)} of {len(tools)} tools {'matches' if len(shown) == 1 else 'match'} {escaped(word)!r}"
        click.echo(f"{count}; {near}" if near else count, err=not is_terminal)
    if late := [server.name for server in found.servers if server.is_late]:
        say(f"Not ready yet: {', '.join(late)}. A goat-mcp that serves a host goes on starting them.", err=True)
    found.print_problems(without=[server.name for server in found.servers] if is_terminal else ())


def _exit_status(servers: Sequence[Server]) -> int:
    (server,) = servers
    if server.state == "wants a login":
        return AUTH
    return UNREACHABLE if server.is_late or server.state in ("failed", "does not list", "not used") else 0


@contextmanager
def _server_view() -> Generator[View]:
    """A table that fills as the servers answer; on stderr a line for each if stdout is no terminal."""
    out = console()
    if not out.is_terminal or out.is_dumb_terminal:
        yield _ServerLines()
        return
    from rich.live import Live

    table = _ServerTable()
    with Live(console=out, get_renderable=table.rendered, refresh_per_second=5):
        yield table


class _ServerLines:
    def began(self, names: Collection[str]) -> None: ...

    def answered(self, server: Server) -> None:
        click.echo(escaped("\t".join(_server_cells(server)[:4])), err=True)

    def ended(self, servers: Sequence[Server]) -> None:
        for server in servers:
            if server.is_late:
                click.echo(escaped("\t".join(_server_cells(server))), err=True)


class _ServerTable:
    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._pending: list[str] = []
        self._answered: list[Server] = []

    def began(self, names: Collection[str]) -> None:
        self._pending = list(names)

    def answered(self, server: Server) -> None:
        self._pending.remove(server.name)
        self._answered.append(server)

    def ended(self, servers: Sequence[Server]) -> None:
        answered = {server.name for server in self._answered}
        self._answered += [server for server in servers if server.name not in answered]
        self._pending = []

    def rendered(self) -> Table | str:
        elapsed = f"{time.monotonic() - self._began_s:.1f} s"
        rows = [_server_cells(server) for server in self._answered]
        rows += [(name, "starting", "", elapsed, "") for name in self._pending]
        return wrapped_table(_SERVER_HEADERS, rows) if rows else ""


def _server_cells(server: Server) -> tuple[str, ...]:
    took = "" if server.took_s is None else f"{server.took_s:.1f} s"
    return server.name, server.state, str(server.status.tool_count), took, server.note
