"""`goat-mcp auth`: log in to upstreams over HTTP, log out, and see what logins there are."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import click

from goat_mcp.calls.approvals.record import DecidedBefore
from goat_mcp.cli import flags
from goat_mcp.cli.approve import BY
from goat_mcp.cli.terminal import escaped, print_table, say
from goat_mcp.cli.terminal_user import is_run_by_a_model
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.redaction import Redactor
from goat_mcp.core.suggestions import did_you_mean
from goat_mcp.processes.typed_lines import typed_line
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.upstreams.config.entry import HttpEndpoint, UpstreamConfig
from goat_mcp.upstreams.config.upstream_files import load_upstream_files
from goat_mcp.web.http import HttpClient

if TYPE_CHECKING:  # loaded when a command runs
    from mcp.shared.auth import AuthorizationCodeResult

    from goat_mcp.upstreams.oauth.login_store import LoginFacts
    from goat_mcp.upstreams.oauth.pending_login import RedirectListener
    from goat_mcp.upstreams.oauth.upstream_login import UpstreamLogin

LOGIN_WAIT_S = 600.0


@click.group()
def auth() -> None:
    """Log in to upstreams that want it, and see where their tokens are kept."""


@auth.command()
@click.argument("server")
@click.option("--no-browser", is_flag=True, help="Print the address only; do not open a browser.")
@click.option("--scope", "scopes", multiple=True, metavar="SCOPE", help="Ask for this scope, too. May be repeated.")
@flags.selection
@flags.as_json
def login(server: str, no_browser: bool, scopes: tuple[str, ...], as_json: bool, **selection: Any) -> None:
    """Log in to the upstream SERVER with a browser, on this machine or on another one.

    A browser is opened only from a terminal. If the browser is on another machine, paste the address that it ends at.
    """
    from goat_mcp.gateway.approvals.user_queue import UserQueue
    from goat_mcp.upstreams.oauth.login_contract import AuthServerDown, LoginRefused

    redactor = Redactor()
    settings = flags.settings_from(**selection)
    config, endpoint = _entry(server, settings, redactor)
    upstream = _login_of(config, endpoint, settings, redactor)
    user, asks = UserQueue(StateDirectory.default(), redactor), (config.name, upstream.workspace)
    seen_at_s = time.time()
    asked = [one for one in user.logins.waiting() if (one.facts["server"], one.facts["account"]) == asks]
    opens_browser = not no_browser and sys.stdin.isatty() and sys.stderr.isatty() and not is_run_by_a_model()
    try:
        kept_in = anyio.run(_log_in, config, endpoint, upstream, redactor, opens_browser, " ".join(scopes))
    except LoginRefused as refused:
        raise ToolError(ErrorCode.AUTH, redactor.text(f"no login to {config.name}: {refused}")) from None
    except AuthServerDown as down:
        raise ToolError(ErrorCode.UPSTREAM_DOWN, redactor.text(f"no login to {config.name} now: {down}")) from None
    with suppress(DecidedBefore):  # whatever was said meanwhile: the login is there
        anyio.run(partial(user.queue.approve_all, asked, lambda: None, seen_at_s=seen_at_s, by=BY))
    if as_json:
        click.echo(json.dumps({"server": config.name, "logged_in": True, "kept_in": kept_in}))
        return
    place = "the keyring" if kept_in == "keyring" else "a file that only you can read"
    say(f"Logged in to {config.name}{_where(upstream)}. The tokens are kept in {place}; see goat-mcp auth list.")


@auth.command()
@click.argument("server")
@flags.selection
@flags.as_json
def logout(server: str, as_json: bool, **selection: Any) -> None:
    """Forget the login of the upstream SERVER, here and at its authorization server."""
    redactor = Redactor()
    settings = flags.settings_from(**selection)
    config, endpoint = _entry(server, settings, redactor)
    upstream = _login_of(config, endpoint, settings, redactor)
    was_told, left = anyio.run(upstream.log_out)
    if as_json and not left:
        click.echo(json.dumps({"server": config.name, "logged_in": False, "server_notified": was_told}))
    elif not as_json:
        revoked = "was notified" if was_told else "could not be notified"
        say(f"Logged out of {config.name}{_where(upstream)}; its authorization server {revoked}.")
    if left:
        raise ToolError(ErrorCode.AUTH, redactor.text(left))


@auth.command("list")
@flags.as_json
def list_logins(as_json: bool) -> None:
    """List the logins there are: whose they are, until when, and where their tokens are kept. No token is read."""
    from goat_mcp.upstreams.oauth.login_store import LoginStore

    store = LoginStore(StateDirectory.default())
    found = store.all()
    if as_json:
        click.echo(json.dumps([_fields(store, one) for one in found]))
        return
    rows: list[list[str]] = []
    for one in found:
        fields = _fields(store, one)
        rows.append(
            [
                one.server,
                fields["status"],
                (
                    "-"
                    if one.expires_at_s is None
                    else time.strftime("%Y-%m-%d %H:%M", time.localtime(one.expires_at_s))
                ),
                one.scope,
                fields["kept_in"],
                one.issuer,
                one.workspace or "all",
            ]
        )
    print_table(["server", "status", "token until", "scopes", "kept in", "issuer", "workspace"], rows)
    if not found:
        say("Nobody is logged in anywhere.", err=True)


def _fields(store: Any, one: LoginFacts) -> dict[str, Any]:
    names = ("server", "resource", "issuer", "client_id", "principal", "workspace", "scope", "status")
    facts = {name: getattr(one, name) for name in (*names, "expires_at_s")}
    # Tokens that lie in a file are worth a name: whoever reads it has them.
    place = "keyring" if one.kept_in == "keyring" else str(store.file_of(one))
    return {**facts, "can_renew": one.can_renew, "why_ended": one.refused, "kept_in": place}


def _where(upstream: UpstreamLogin) -> str:
    """For an account that is for one workspace only."""
    return f" for {escaped(upstream.workspace)}" if upstream.workspace else ""


async def _log_in(
    config: UpstreamConfig,
    endpoint: HttpEndpoint,
    upstream: UpstreamLogin,
    redactor: Redactor,
    opens_browser: bool,
    scopes: str,
) -> str:
    """Where the tokens are kept now."""
    from goat_mcp.upstreams.oauth.pending_login import free_port, redirect_listener

    status, challenge = await upstream.asked_for(endpoint.headers)
    if status != 401:
        say(f"{config.name} answered HTTP {status} to a request without a login.", err=True)
    if endpoint.oauth is not None and not endpoint.oauth.needs_a_person:
        login = await upstream.log_in(None, challenge=challenge, scopes=scopes)
    else:
        configured = endpoint.oauth.redirect_port if endpoint.oauth is not None else 0
        port = free_port(configured, await upstream.last_redirect_port())
        async with redirect_listener(port) as listener:
            person = TerminalLoginPrompt(config.name, listener, opens_browser)
            login = await upstream.log_in(person, challenge=challenge, scopes=scopes)
    status, _ = await upstream.asked_for(endpoint.headers, login.secrets.access_token)
    if status in (401, 403):
        raise ToolError(ErrorCode.AUTH, f"logged in, but {config.name} refuses the token (HTTP {status})")
    return login.facts.kept_in


def _entry(server: str, settings: Settings, redactor: Redactor) -> tuple[UpstreamConfig, HttpEndpoint]:
    """The HTTP upstream of that name. Raises `ToolError`."""
    flags.say_notices(settings)
    references = SecretReferences(redactor=redactor)
    files = load_upstream_files(settings.upstreams, contents=settings.contents, references=references)
    config = next((one for one in files.configs if server in (one.name, one.server)), None)
    if config is None:
        why = next((problem.message for problem in files.problems if problem.name == server), "there is none")
        names = [one.name for one in files.configs]
        near = did_you_mean(server, names)
        raise ToolError(
            ErrorCode.CONFIG,
            f"no upstream {server[:100]!r}: {why}",
            (f"D{near[1:]} " if near else "")
            + f"Upstreams there are: {', '.join(names) or 'none'}. Name their file with --upstreams FILE.",
        )
    if not isinstance(config.target, HttpEndpoint):
        raise ToolError(ErrorCode.CONFIG, f"{config.name} is no HTTP server: it needs no login", "")
    if not config.target.may_log_in:
        raise ToolError(
            ErrorCode.CONFIG,
            f"{config.name} has an Authorization header in its entry, or oauth: false; no login is used",
            "Remove that first.",
        )
    return config, config.target


def _login_of(config: UpstreamConfig, endpoint: HttpEndpoint, settings: Settings, redactor: Redactor) -> UpstreamLogin:
    """Raises `ToolError` if it is for one workspace, and there is none."""
    from goat_mcp.files.workspace.roots import default_roots
    from goat_mcp.gateway.build.working_directories import check_state, named_roots
    from goat_mcp.upstreams.oauth.logins import Logins

    state = StateDirectory.default()
    check_state(state)
    references = SecretReferences(redactor=redactor)
    workspace = ""
    if endpoint.has_workspace_logins:
        roots = named_roots(settings.workspace) or default_roots()
        if not roots:
            raise ToolError(
                ErrorCode.CONFIG,
                f"{config.name} has a login for each workspace, and this is none",
                "Name the project's directory with --workspace DIR.",
            )
        workspace = os.path.realpath(roots[0])
    return Logins(state, HttpClient(settings.web), references).load(config, endpoint, workspace=workspace)


@dataclass
class TerminalLoginPrompt:
    """The person at this terminal: logs in with a browser here, or elsewhere and pastes the address it ends at.

    The address is shown on stderr. A browser is only opened if `opens_browser` says so (AUT-3).
    """

    name: str
    listener: RedirectListener
    opens_browser: bool

    @property
    def redirect_uri(self) -> str:
        return self.listener.redirect_uri

    async def visit(self, url: str) -> None:
        self.listener.expect(url)
        say(f"Open this address to log in to {escaped(self.name)}:\n\n  {escaped(url)}\n", err=True)
        if self.opens_browser:
            await anyio.to_thread.run_sync(_open, url, abandon_on_cancel=True)
        say("If your browser is on another machine, paste the address that it ends at here.", err=True)

    async def came_back(self) -> AuthorizationCodeResult:
        from goat_mcp.upstreams.oauth.login_contract import LoginRefused

        pasted = asyncio.create_task(self._read_pasted())
        try:
            with anyio.move_on_after(LOGIN_WAIT_S):
                return await self.listener.came_back()
        finally:
            pasted.cancel()
        raise LoginRefused(f"nobody logged in within {LOGIN_WAIT_S / 60:.0f} minutes")

    async def _read_pasted(self) -> None:
        while data := await typed_line():
            for line in data.decode("utf-8", "replace").splitlines():
                if line.strip() and self.listener.take(line):
                    return
                if line.strip():
                    say("That is not the address: it holds code=... and the state of this login.", err=True)


def _open(url: str) -> None:
    import webbrowser

    # Starts a program with the address as one argument, never a shell (CVE-2025-6514).
    if not webbrowser.open(url):
        say("No browser could be opened.", err=True)
