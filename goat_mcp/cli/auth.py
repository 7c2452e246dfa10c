"""`goat-mcp auth`: log in to upstreams over HTTP, log out, and see what logins there are."""

from __future__ import annotations

import json
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
import click

from goat_mcp.cli import flags
from goat_mcp.cli.terminal import escaped, print_table, say
from goat_mcp.cli.terminal_user import is_run_by_a_model
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.redaction import Redactor
from goat_mcp.core.suggestions import did_you_mean
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

AUTH_FAILED = 3
UNREACHABLE = 4
LOGIN_WAIT_S = 600.0


@click.group()
def auth() -> None:
    """Log in to upstreams that want it, and see where their tokens are kept."""


@auth.command()
@click.argument("server")
@click.option("--no-browser", is_flag=True, help="Print the address only; do not open a browser.")
@click.option("--scope", "scopes", multiple=True, metavar="SCOPE", help="Ask for this scope, too. May be repeated.")
@flags.selection
def login(server: str, no_browser: bool, scopes: tuple[str, ...], **selection: Any) -> None:
    """Log in to the upstream SERVER with a browser, on this machine or on another one.

    A browser is opened only from a terminal. Where the browser is elsewhere, paste the address that it ends at.
    """
    from goat_mcp.upstreams.oauth.login_contract import AuthServerDown, LoginRefused

    redactor = Redactor()
    settings = flags.settings_from(**selection)
    config, endpoint = _entry(server, settings, redactor)
    opens_browser = not no_browser and sys.stdin.isatty() and sys.stderr.isatty() and not is_run_by_a_model()
    try:
        upstream = _login_of(config, endpoint, settings, redactor)
        anyio.run(_log_in, config, endpoint, upstream, redactor, opens_browser, " ".join(scopes))
    except LoginRefused as refused:
        _fail(redactor, f"no login to {config.name}: {refused}", AUTH_FAILED)
    except AuthServerDown as down:
        _fail(redactor, f"no login to {config.name} now: {down}", UNREACHABLE)


@auth.command()
@click.argument("server")
@flags.selection
def logout(server: str, **selection: Any) -> None:
    """Forget the login of the upstream SERVER, here and at its authorization server."""
    redactor = Redactor()
    settings = flags.settings_from(**selection)
    config, endpoint = _entry(server, settings, redactor)
    was_told, left = anyio.run(_login_of(config, endpoint, settings, redactor).log_out)
    revoked = "was notified" if was_told else "could not be notified"
    say(f"Logged out of {_shown(config.name)}; its authorization server {revoked}.")
    if left:
        _fail(redactor, left, AUTH_FAILED)


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
            ]
        )
    print_table(["server", "status", "token until", "scopes", "kept in", "issuer"], rows)
    if not found:
        say("Nobody is logged in anywhere.", err=True)


def _fields(store: Any, one: LoginFacts) -> dict[str, Any]:
    names = ("server", "resource", "issuer", "client_id", "principal", "scope", "status", "expires_at_s")
    facts = {name: getattr(one, name) for name in names}
    # Tokens that lie in a file are worth a name: whoever reads it has them.
    place = "keyring" if one.kept_in == "keyring" else str(store.file_of(one))
    return {**facts, "can_renew": one.can_renew, "why_ended": one.refused, "kept_in": place}


async def _log_in(
    config: UpstreamConfig,
    endpoint: HttpEndpoint,
    upstream: UpstreamLogin,
    redactor: Redactor,
    opens_browser: bool,
    scopes: str,
) -> None:
    from goat_mcp.upstreams.oauth.pending_login import free_port, redirect_listener

    status, challenge = await upstream.asked_for(endpoint.headers)
    if status != 401:
        say(f"{_shown(config.name)} answered HTTP {status} to a request without a login.", err=True)
    if endpoint.oauth is not None and endpoint.oauth.grant == "client_credentials":
        login = await upstream.log_in(None, challenge=challenge, scopes=scopes)
    else:
        configured = endpoint.oauth.redirect_port if endpoint.oauth is not None else 0
        port = free_port(configured, await upstream.last_redirect_port())
        async with redirect_listener(port) as listener:
            person = TerminalLoginPrompt(config.name, listener, opens_browser)
            login = await upstream.log_in(person, challenge=challenge, scopes=scopes)
    status, _ = await upstream.asked_for(endpoint.headers, login.secrets.access_token)
    if status in (401, 403):
        _fail(redactor, f"logged in, but {config.name} refuses the token (HTTP {status})", AUTH_FAILED)
    place = "the keyring" if login.facts.kept_in == "keyring" else "a file that only you can read"
    say(f"Logged in to {_shown(config.name)}. The tokens are kept in {place}; see goat-mcp auth list.")


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
        raise ToolError(ErrorCode.CONFIG, f"{config.name} is no HTTP server: it wants no login", "")
    if not config.target.may_log_in:
        raise ToolError(
            ErrorCode.CONFIG,
            f"{config.name} has an Authorization header in its entry, or oauth: false; no login is used",
            "Remove that first.",
        )
    return config, config.target


def _login_of(config: UpstreamConfig, endpoint: HttpEndpoint, settings: Settings, redactor: Redactor) -> UpstreamLogin:
    from goat_mcp.gateway.build.working_directories import check_state
    from goat_mcp.upstreams.oauth.logins import Logins

    state = StateDirectory.default()
    check_state(state)
    references = SecretReferences(redactor=redactor)
    return Logins(state, HttpClient(settings.web), references.hide).load(config, endpoint)


def _shown(text: str) -> str:
    return escaped(text)


def _fail(redactor: Redactor, message: str, code: int) -> None:
    say(f"goat-mcp: {_shown(redactor.text(message))}", err=True)
    click.get_current_context().exit(code)


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
        say("If your browser is on another machine, paste here the address that it ends at.", err=True)

    async def came_back(self) -> AuthorizationCodeResult:
        from goat_mcp.upstreams.oauth.login_contract import LoginRefused

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
                say("That is not the address: it holds code=... and the state of this login.", err=True)

        # A daemon: nobody can end a thread that waits for somebody to type.
        threading.Thread(target=read_pasted, name="pasted address", daemon=True).start()
        with anyio.move_on_after(LOGIN_WAIT_S):
            return await self.listener.came_back()
        raise LoginRefused(f"nobody logged in within {LOGIN_WAIT_S / 60:.0f} minutes")


def _open(url: str) -> None:
    import webbrowser

    # Starts a program with the address as one argument, never a shell (CVE-2025-6514).
    if not webbrowser.open(url):
        say("No browser could be opened.", err=True)
