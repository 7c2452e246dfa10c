"""Start `servers/guarded.py`, log in there, and read what it saw."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import anyio
import anyio.to_thread
from mcp.shared.auth import AuthorizationCodeResult

from goat_mcp.core.redaction import Redactor
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.state.system_keyring import SystemKeyring
from goat_mcp.upstreams.config.entry import HttpEndpoint, UpstreamConfig
from goat_mcp.upstreams.oauth.login_contract import LoginPrompt
from goat_mcp.upstreams.oauth.logins import Logins
from goat_mcp.upstreams.oauth.upstream_login import UpstreamLogin
from goat_mcp.web.http import HttpClient
from goat_mcp.web.options import HttpOptions
from tests.free_port import free_port
from tests.quick_start import script_command
from tests.upstreams.fleet import SERVERS


class NoKeyring:
    """A machine without one: tokens go to files."""

    priority = 0


class MemoryKeyring:
    """A keyring in memory, as `keyring` backends are."""

    priority = 1

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, user: str) -> str | None:
        return self.kept.get((service, user))

    def set_password(self, service: str, user: str, password: str) -> None:
        self.kept[service, user] = password

    def delete_password(self, service: str, user: str) -> None:
        del self.kept[service, user]


@dataclass
class Guarded:
    """A running server, in a folder of its own."""

    folder: Path
    auth_port: int
    mcp_port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.mcp_port}/mcp"

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.auth_port}/"

    def entry(self, **members: Any) -> dict[str, Any]:
        return {"type": "http", "url": self.url, **members}

    def control(self, **values: Any) -> None:
        (self.folder / "control.json").write_text(json.dumps(values))

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        log = self.folder / "log"
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [line for line in lines if not kinds or line["event"] in kinds]

    def methods(self) -> set[str]:
        return {event["method"] for event in self.events("http")}

    def count(self, kind: str) -> int:
        return len(self.events(kind))


@contextmanager
def guarded_server(folder: Path, *, script: str = "guarded.py", **control: Any) -> Generator[Guarded]:
    ports = free_port(), free_port()
    running = Guarded(folder, *ports)
    running.control(**control)
    arguments = [*map(str, ports), str(folder / "log"), str(folder / "control.json")]
    process = subprocess.Popen(script_command(SERVERS / script, *arguments))
    try:
        for _ in range(1200):
            if all(_listens(port) for port in ports):
                break
            try:
                process.wait(0.05)
                raise AssertionError("the guarded server ended at once")
            except subprocess.TimeoutExpired:
                continue
        yield running
    finally:
        process.send_signal(signal.SIGHUP)  # ends it at once, and passes the launcher of a forked one
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def where_it_ends(url: str) -> str:
    """The address a browser is sent to by a login page that asks nothing."""
    page = urlsplit(url)
    connection = http.client.HTTPConnection(page.netloc, timeout=20)
    connection.request("GET", f"{page.path}?{page.query}")
    location = connection.getresponse().headers["location"]
    connection.close()
    return location


class Agreeable:
    """A person whose browser goes where it is sent and says yes."""

    def __init__(self, redirect_uri: str = "http://127.0.0.1:1/callback") -> None:
        self.redirect_uri = redirect_uri
        self.visited: list[str] = []
        self._result: AuthorizationCodeResult | None = None

    async def visit(self, url: str) -> None:
        self.visited.append(url)
        location = await anyio.to_thread.run_sync(where_it_ends, url)
        self._result = AuthorizationCodeResult(**dict(parse_qsl(urlsplit(location).query)))

    async def came_back(self) -> AuthorizationCodeResult:
        assert self._result is not None
        return self._result


def logins_of(
    folder: Path, *, keyring: Any = None, person: LoginPrompt | None = None, redactor: Redactor | None = None
) -> Logins:
    """The logins of one goat-mcp, whose state is in `folder`."""
    folder.mkdir(exist_ok=True)
    return Logins(
        StateDirectory(folder / "state"),
        HttpClient(HttpOptions()),
        SecretReferences({}, redactor),
        keyring=SystemKeyring(keyring or NoKeyring()),
        person=person,
    )


def login_of(folder: Path, url: str, *, keyring: Any = None, person: LoginPrompt | None = None) -> UpstreamLogin:
    endpoint = HttpEndpoint(url)
    config = UpstreamConfig(name="web", server="web", target=endpoint)
    return logins_of(folder, keyring=keyring, person=person).load(config, endpoint)


def stored_in(folder: Path) -> bytes:
    """All that lies on disk in the state directory."""
    return b"".join(file.read_bytes() for file in (folder / "state").rglob("*") if file.is_file())


async def log_in(folder: Path, server: Guarded, **kwargs: Any) -> None:
    """As `auth login` does."""
    with anyio.fail_after(60):
        await login_of(folder, server.url, keyring=kwargs.pop("keyring", None)).log_in(Agreeable(), **kwargs)
