"""`goat-mcp ui`: opens the page, that of a running server if one serves it."""

from __future__ import annotations

import ipaddress
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from goat_mcp.cli import flags
from goat_mcp.cli.own_state import own_state
from goat_mcp.cli.remote_server import RemoteServer, remote_options
from goat_mcp.cli.running_servers import running
from goat_mcp.cli.terminal import say
from goat_mcp.cli.terminal_user import refuse_if_run_by_a_model
from goat_mcp.core import platform, posix
from goat_mcp.state.directory import StateDirectory

if TYPE_CHECKING:
    from goat_mcp.gateway.gateway import Gateway


@click.command
@click.option("--no-open", is_flag=True, help="Print the link only.")
@click.option("--port", type=click.IntRange(0, 65535), default=None, help="Serve the page there, in this process.")
@remote_options
@flags.as_json
def ui(no_open: bool, port: int | None, server: str, token_file: Path | None, as_json: bool) -> None:
    """Open the page: what waits for you, what runs, what was done.

    If a `goat-mcp serve --http` of yours runs here, its page is opened. Otherwise this command serves the page until
    Ctrl-C, for this machine alone. With --server the page of a goat-mcp elsewhere shows what waits for you there,
    or for everybody if you administrate it. The link opens it once, within a minute; run the command again for another
    one.
    """
    refuse_if_run_by_a_model("open the page")
    if server:
        if port is not None:
            raise click.UsageError("--port is for a page of this machine, --server for one elsewhere")
        _show(RemoteServer(server, token_file).page_link(), opens=not no_open, as_json=as_json)
        return
    state = own_state()
    url = _running_page() if port is None else None
    if url is None:
        _serve(state, port or 0, opens=not no_open, as_json=as_json)
        return
    from goat_mcp.server.ui.login import LoginLinks

    link = LoginLinks(state, url.removesuffix("/ui")).new(_user(opens=not no_open))
    _show(link, opens=not no_open, as_json=as_json)


def _user(*, opens: bool) -> int | None:
    """For whose browser a link is. One that is opened from here stands among the arguments of a program, where other
    users see it; one that is only printed may be meant for a browser elsewhere."""
    return posix.getuid() if opens and platform.HAS_FILE_MODES else None


def _running_page() -> str | None:
    """Where a server of this user has the page: on an address of this machine alone, if there is one."""
    pages = [page for document in running() if (page := str(document.get("page", "")))]
    return min(pages, key=lambda page: not _is_loopback(page), default=None)


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _serve(state: StateDirectory, port: int, *, opens: bool, as_json: bool) -> None:
    import anyio

    from goat_mcp.cli.own_environment import fill_in
    from goat_mcp.cli.page_hosts import PageHosts
    from goat_mcp.cli.serve import become_undumpable
    from goat_mcp.core.redaction import Redactor, secrets_among
    from goat_mcp.gateway.approvals.user_queue import approval_queue
    from goat_mcp.server.ui.parts import UiParts
    from goat_mcp.server.ui.standalone import serve_standalone
    from goat_mcp.state.telemetry import Telemetry

    fill_in(os.environ)
    become_undumpable()
    redactor = Redactor(secrets_among(os.environ))
    telemetry = Telemetry(redactor=redactor)
    parts = UiParts(
        state=state,
        queue=approval_queue(state, redactor=redactor, warn=telemetry.warning),
        origin="",
        gateway=_no_gateway_yet,
        hosts=PageHosts(state),
        redactor=redactor,
        unexpected=telemetry.unexpected,
    )

    def listening(served: UiParts) -> None:
        if not as_json:
            say("The page is served until Ctrl-C.", err=True)
        _show(served.links.new(_user(opens=opens)), opens=opens, as_json=as_json)

    anyio.run(serve_standalone, parts, _gateway, port, listening)


def _gateway() -> Gateway:
    """That of the settings here, for what a view tries or changes. Raises `BrokenSettings`."""
    from goat_mcp.calls.permissions.mode import Approval
    from goat_mcp.gateway.gateway import Gateway
    from goat_mcp.settings.loading import load_settings

    return Gateway(load_settings({}), approval=Approval.ELICIT)


async def _no_gateway_yet() -> Any:
    raise RuntimeError("the page is not served yet")


def _show(link: str, *, opens: bool, as_json: bool) -> None:
    """Print the link, and open it."""
    click.echo(json.dumps({"url": link}) if as_json else link)
    if opens and not _opened(link):
        say("No browser could be opened: open the link above yourself, within a minute.", err=True)


def _opened(link: str) -> bool:
    if platform.SYSTEM == "linux" and not any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))):
        return False  # a browser for terminals would take over this one
    import webbrowser

    # Starts a program with the address as one argument, never a shell.
    return webbrowser.open(link)
