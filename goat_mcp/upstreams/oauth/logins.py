"""The logins of upstreams. Their code is loaded once one is stored, or an upstream asks for one."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from goat_mcp.state.database import Warn
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.private_file import no_warning
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.upstreams.config.entry import HttpEndpoint, RootOf, UpstreamConfig
from goat_mcp.upstreams.oauth.login_contract import FOLDER, LoginPrompt, slot_of
from goat_mcp.web.http import HttpClient

if TYPE_CHECKING:  # loaded with the first login
    from goat_mcp.state.system_keyring import SystemKeyring
    from goat_mcp.upstreams.oauth.pending_login import PendingLogin
    from goat_mcp.upstreams.oauth.upstream_login import UpstreamLogin

OWNER = "owner"
"""The principal of logins that `auth login` makes: whoever runs goat-mcp, on behalf of all its clients."""


@dataclass(eq=False)
class Logins:
    """Makes the login of each upstream. `secrets` receives each one; `person` can log in while a call waits."""

    state: StateDirectory
    http: HttpClient
    secrets: SecretReferences
    warn: Warn = no_warning
    keyring: SystemKeyring | None = None
    person: LoginPrompt | None = None

    def of(self, config: UpstreamConfig, principal: str = OWNER) -> LazyLogin | None:
        """The upstream's login; None for one that is no HTTP server, or has its credentials in its headers."""
        target = config.target
        if not isinstance(target, HttpEndpoint) or not target.may_log_in:
            return None
        has_person = self.person is not None
        return LazyLogin(self.state, principal, partial(self.load, config, target, principal), target, has_person)

    def load(
        self, config: UpstreamConfig, target: HttpEndpoint, principal: str = OWNER, workspace: str = ""
    ) -> UpstreamLogin:
        """The login itself, with all its code. `workspace` is the one it is for, if each has its own."""
        from goat_mcp.upstreams.config.oauth_keys import OAuthOptions
        from goat_mcp.upstreams.oauth.login_store import LoginStore
        from goat_mcp.upstreams.oauth.upstream_login import UpstreamLogin

        return UpstreamLogin(
            config.name,
            target.url,
            target.oauth or OAuthOptions(),
            store=LoginStore(self.state, self.keyring),
            http=self.http,
            secrets=self.secrets,
            principal=principal,
            workspace=workspace,
            warn=self.warn,
            person=self.person,
        )


@dataclass(eq=False)
class LazyLogin:
    """One upstream's login, as its requests see it."""

    state: StateDirectory
    principal: str
    load: Callable[[str], UpstreamLogin]
    """From the workspace that it is for, empty if it is for all."""
    endpoint: HttpEndpoint
    has_person: bool
    """Whether somebody is there already who logs in if `load` needs it."""
    root_of: RootOf | None = None
    """Whose login it is now, if each workspace has its own."""
    _login: UpstreamLogin | None = None
    _has_looked: bool = False

    def at(self, root_of: RootOf) -> LazyLogin:
        """The same for what works in that workspace, if each has its own login."""
        return replace(self, root_of=root_of, _login=None) if self.endpoint.has_workspace_logins else self

    def here(self) -> LazyLogin:
        """The same, and the workspace stays the one it is now."""
        if self.root_of is None:
            return self
        root = self.root_of()
        return self.at(lambda: root)

    @property
    def workspace(self) -> str:
        """The one that it is for now; empty if it is for all."""
        root = None if self.root_of is None else self.root_of()
        return "" if root is None else os.path.realpath(root)

    def stored(self) -> tuple[tuple[str, int], ...]:
        """What is stored, by name and time: another value means that somebody has logged in, or out."""
        try:
            slot = slot_of(self.endpoint.url, self.principal, self.workspace)
            files = (self.state.path / FOLDER).glob(f"{slot}-*.json")
            return tuple(sorted((file.name, file.stat().st_mtime_ns) for file in files))
        except OSError:
            return ()

    async def token(self) -> str | None:
        """See `UpstreamLogin.token`."""
        if self._login is None:
            if self._has_looked or not self.stored():
                self._has_looked = True
                return None
            self._login = self.load(self.workspace)
        return await self._login.token()

    @property
    def needs_a_person(self) -> bool:
        """Whether one of the clients' may log in there. Some have a person already, or a secret for goat-mcp itself."""
        oauth = self.endpoint.oauth
        return not self.has_person and (oauth is None or oauth.needs_a_person)

    def begin(self, scopes: str) -> PendingLogin:
        """A new login, which its task makes. `scopes` are asked for beside the usual ones."""
        from goat_mcp.upstreams.oauth.pending_login import PendingLogin

        here = self.here()
        return PendingLogin(here._opened, here.stored, self.endpoint, scopes)

    def _opened(self) -> UpstreamLogin:
        if self._login is None:
            self._login = self.load(self.workspace)
        return self._login

    async def after_refusal(self, refused: str | None, challenge: str) -> str:
        """See `UpstreamLogin.after_refusal`."""
        return await self._opened().after_refusal(refused, challenge)

    async def with_more_scopes(self, refused: str | None, scopes: str, challenge: str) -> str:
        """See `UpstreamLogin.with_more_scopes`."""
        return await self._opened().with_more_scopes(refused, scopes, challenge)
