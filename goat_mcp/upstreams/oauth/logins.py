"""The logins of upstreams. Their code is loaded once one is stored, or an upstream asks for one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from goat_mcp.state.database import Warn
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.private_file import no_warning
from goat_mcp.upstreams.config.entry import HttpEndpoint, UpstreamConfig
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
    """Makes the login of each upstream. `hide` is told every secret; `person` can log in while a call waits."""

    state: StateDirectory
    http: HttpClient
    hide: Callable[..., None]
    warn: Warn = no_warning
    keyring: SystemKeyring | None = None
    person: LoginPrompt | None = None

    def of(self, config: UpstreamConfig, principal: str = OWNER) -> LazyLogin | None:
        """The upstream's login; None for one that is no HTTP server, or has its credentials in its headers."""
        target = config.target
        if not isinstance(target, HttpEndpoint) or not target.may_log_in:
            return None
        slot = slot_of(target.url, principal)
        has_person = self.person is not None
        return LazyLogin(self.state, slot, lambda: self.load(config, target, principal), target, has_person)

    def load(self, config: UpstreamConfig, target: HttpEndpoint, principal: str = OWNER) -> UpstreamLogin:
        """The login itself, with all its code."""
        from goat_mcp.upstreams.config.oauth_keys import OAuthOptions
        from goat_mcp.upstreams.oauth.login_store import LoginStore
        from goat_mcp.upstreams.oauth.upstream_login import UpstreamLogin

        return UpstreamLogin(
            config.name,
            target.url,
            target.oauth or OAuthOptions(),
            store=LoginStore(self.state, self.keyring),
            http=self.http,
            hide=self.hide,
            principal=principal,
            warn=self.warn,
            person=self.person,
        )


@dataclass(eq=False)
class LazyLogin:
    """One upstream's login, as its requests see it."""

    state: StateDirectory
    slot: str
    load: Callable[[], UpstreamLogin]
    endpoint: HttpEndpoint
    has_person: bool
    """Whether somebody is there already who logs in if `load` needs it."""
    _login: UpstreamLogin | None = None
    _has_looked: bool = False

    def stored(self) -> tuple[tuple[str, int], ...]:
        """What is stored, by name and time: another value means that somebody has logged in, or out."""
        try:
            files = (self.state.path / FOLDER).glob(f"{self.slot}-*.json")
            return tuple(sorted((file.name, file.stat().st_mtime_ns) for file in files))
        except OSError:
            return ()

    async def token(self) -> str | None:
        """See `UpstreamLogin.token`."""
        if self._login is None:
            if self._has_looked or not self.stored():
                self._has_looked = True
                return None
            self._login = self.load()
        return await self._login.token()

    @property
    def needs_a_person(self) -> bool:
        """Whether one of the clients' may log in there. Some have a person already, or a secret for goat-mcp itself."""
        oauth = self.endpoint.oauth
        return not self.has_person and (oauth is None or oauth.grant == "authorization_code")

    def begin(self, scopes: str) -> PendingLogin:
        """A new login, which its task makes. `scopes` are asked for beside the usual ones."""
        from goat_mcp.upstreams.oauth.pending_login import PendingLogin

        return PendingLogin(self._opened, self.stored, self.endpoint, scopes)

    def _opened(self) -> UpstreamLogin:
        if self._login is None:
            self._login = self.load()
        return self._login

    async def after_refusal(self, refused: str | None, challenge: str) -> str:
        """See `UpstreamLogin.after_refusal`."""
        return await self._opened().after_refusal(refused, challenge)

    async def with_more_scopes(self, refused: str | None, scopes: str, challenge: str) -> str:
        """See `UpstreamLogin.with_more_scopes`."""
        return await self._opened().with_more_scopes(refused, scopes, challenge)
