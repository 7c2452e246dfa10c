"""The person at this terminal, who logs in with a browser: here, or elsewhere and pastes what came of it."""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
import click
from mcp.shared.auth import AuthorizationCodeResult

from goat_mcp.cli.terminal import escaped
from goat_mcp.upstreams.oauth.login_contract import LoginRefused
from goat_mcp.upstreams.oauth.pending_login import RedirectListener

WAIT_S = 600.0


@dataclass
class TerminalLoginPrompt:
    """Told where to go on stderr. A browser is only opened where `opens_browser` says so (AUT-3)."""

    name: str
    listener: RedirectListener
    opens_browser: bool

    @property
    def redirect_uri(self) -> str:
        return self.listener.redirect_uri

    async def visit(self, url: str) -> None:
        self.listener.expect(url)
        click.echo(f"Open this address to log in to {escaped(self.name)}:\n\n  {escaped(url)}\n", err=True)
        if self.opens_browser:
            await anyio.to_thread.run_sync(_open, url, abandon_on_cancel=True)
        click.echo("If your browser is on another machine, paste here the address that it ends at.", err=True)

    async def came_back(self) -> AuthorizationCodeResult:
        loop_token = anyio.lowlevel.current_token()

        def read_pasted() -> None:
            for line in sys.stdin:
                if not line.strip():
                    continue
                try:
                    taken = anyio.from_thread.run_sync(self.listener.take, line, token=loop_token)
                except RuntimeError:  # the command is over
                    return
                if taken:
                    return
                click.echo("That is not the address: it holds code=... and the state of this login.", err=True)

        # A daemon: nobody can end a thread that waits for somebody to type.
        threading.Thread(target=read_pasted, name="pasted address", daemon=True).start()
        with anyio.move_on_after(WAIT_S):
            return await self.listener.came_back()
        raise LoginRefused(f"nobody logged in within {WAIT_S / 60:.0f} minutes")


def _open(url: str) -> None:
    import webbrowser

    # Starts a program with the address as one argument, never a shell (CVE-2025-6514).
    if not webbrowser.open(url):
        click.echo("No browser could be opened.", err=True)
