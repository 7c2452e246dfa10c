"""The login of one upstream in this process: the token for its next request, and a new one when that has ended.

Processes share a login through the store. Renewing is for one of them at a time: it takes the lock, reads again,
renews only what nobody has renewed meanwhile, and stores it before it is used (AUT-2). Whoever comes later takes over
what it finds. Nothing is deleted here: a login that is dead is replaced by the next one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from goat_mcp.state.database import Warn
from goat_mcp.state.file_lock import LockTimeout
from goat_mcp.state.private_file import no_warning
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.upstreams.config.oauth_keys import OAuthOptions
from goat_mcp.upstreams.oauth.flow import Flow
from goat_mcp.upstreams.oauth.login_contract import (
    AuthServerDown,
    CredentialsRefused,
    LoginNeeded,
    LoginPrompt,
    LoginRefused,
    RenewalRefused,
)
from goat_mcp.upstreams.oauth.login_store import LoginStore, LoginUnreadable, StoredLogin
from goat_mcp.web.http import HttpClient

LOCK_WAIT_S = 45.0
"""More than a renewal may take."""
RENEWED_AGAIN_AFTER_S = 20.0
"""A token this new that is refused will not be better the next time."""
REFUSED_AGAIN_AFTER_S = 30.0
"""How long a client whose credentials were refused waits before it shows them again."""


class UpstreamLogin:
    """One upstream's login, for requests from any task of one loop. `person` is who can log in while a call waits."""

    def __init__(
        self,
        name: str,
        url: str,
        options: OAuthOptions,
        *,
        store: LoginStore,
        http: HttpClient,
        secrets: SecretReferences,
        principal: str,
        workspace: str = "",
        warn: Warn = no_warning,
        person: LoginPrompt | None = None,
    ) -> None:
        self._name = name
        self._warn = warn
        self._url = url
        self._options = options
        self._store = store
        self._secrets = secrets
        self._principal = principal
        self.workspace = workspace
        self._person = person
        self._flow = Flow(url, options, http, secrets, name=name, principal=principal, workspace=workspace)
        self._current: StoredLogin | None = None
        self._refused, self._refused_until_s = "", 0.0
        self._refused_scopes: tuple[set[str], float] = (set(), 0.0)
        """Scopes that were asked for and not granted, and until when they are not asked for again."""
        self._turn = anyio.Lock()

    async def token(self) -> str | None:
        """The access token to send, renewed if its time is over; None where nobody has logged in.

        Raises `LoginNeeded` and `AuthServerDown`.
        """
        if self._current is None:
            self._current = await self._load()
        login = self._current
        if login is None:
            return None
        if login.facts.is_fresh():
            return login.secrets.access_token
        try:
            return await self.after_refusal(login.secrets.access_token)
        except AuthServerDown:
            if login.facts.is_over():
                raise
            return login.secrets.access_token

    async def after_refusal(self, refused: str | None, challenge: str = "") -> str:
        """Another token than the refused one: taken over, renewed, or by a new login where somebody can make one.

        Raises `LoginNeeded` and `AuthServerDown`.
        """
        async with self._turn:
            held = self._current
            if held is not None and held.secrets.access_token != refused and held.facts.is_fresh():
                return held.secrets.access_token
            try:
                async with self._alone():
                    return await self._renewed(refused, challenge)
            except LockTimeout as why:
                raise AuthServerDown(f"this login cannot be renewed now: {why}") from None
            except LoginNeeded as needed:
                return await self._logged_in(challenge, needed)

    async def with_more_scopes(self, refused: str | None, scopes: str, challenge: str = "") -> str:
        """A token that may do more. Raises `LoginNeeded` where nobody is there to log in, and `AuthServerDown`."""
        async with self._turn:
            login = self._current = await self._load()
            if login is not None and login.secrets.access_token != refused and login.facts.is_fresh():
                return login.secrets.access_token
            if scopes and not self._options.needs_a_person:
                return await self._widened(refused, scopes, challenge)
            why = "its login may not do this"
            if scopes:
                wanted = " ".join(f"--scope {scope}" for scope in scopes.split())
                why = f"it wants the scope {scopes!r}, which its login has not: log in with {wanted}"
            return await self._logged_in(challenge, LoginNeeded(why, scopes))

    async def _widened(self, refused: str | None, scopes: str, challenge: str) -> str:
        """A token with these scopes, too, by a grant that needs no person."""
        try:
            async with self._alone():
                login = self._current = await self._load()
                granted = "" if login is None else login.facts.scope
                if login is not None and login.secrets.access_token != refused and login.facts.is_fresh():
                    return login.secrets.access_token
                wanted = set(scopes.split())
                if wanted <= set(granted.split()):
                    raise LoginNeeded(f"it wants the scope {scopes!r}, and refuses a token that has it")
                not_granted, until_s = self._refused_scopes
                if not wanted <= not_granted or time.monotonic() > until_s:
                    token = await self._by_ourselves(challenge, login, scopes)
                    if self._current is not None and wanted <= set(self._current.facts.scope.split()):
                        return token
                    self._refused_scopes = wanted, time.monotonic() + REFUSED_AGAIN_AFTER_S
                raise LoginNeeded(f"its authorization server does not grant the scope {scopes!r} to this client")
        except LockTimeout as why:
            raise AuthServerDown(f"its token cannot be changed now: {why}") from None

    async def log_in(self, person: LoginPrompt | None, *, challenge: str = "", scopes: str = "") -> StoredLogin:
        """Log in again and keep it. Raises `LoginRefused` and `AuthServerDown`; what was there stays then."""
        previous = await self._load_if_readable()
        login = await self._flow.log_in(person, challenge=challenge, previous=previous, scopes=scopes)
        async with self._alone():
            found = await self._load_if_readable()
            if found is not None:
                # It goes after whatever was renewed while the person was away.
                generation = max(login.facts.generation, found.facts.generation + 1)
                login = _with_generation(login, generation)
            login = await anyio.to_thread.run_sync(self._keep, login)
            await anyio.to_thread.run_sync(self._forget_replaced, login)
        self._current = login
        return login

    async def stored_token(self, scopes: str = "") -> str | None:
        """The access token of a stored login that is good, and has these scopes as far as is known."""
        login = await self._load_if_readable()
        if login is None or login.facts.refused or not login.facts.is_fresh():
            return None
        return login.secrets.access_token if set(scopes.split()) <= set(login.facts.scope.split()) else None

    async def asked_for(self, headers: Mapping[str, str], token: str | None = None) -> tuple[int, str]:
        """See `Flow.asked_for`."""
        return await self._flow.asked_for(headers, token)

    async def last_redirect_port(self) -> int:
        """Where the last login came back to; servers that registered us may take no other port. 0 if there is none."""
        login = await self._load_if_readable()
        return 0 if login is None else (urlsplit(login.facts.redirect_uri).port or 0)

    async def log_out(self) -> tuple[bool, str]:
        """Forget what is stored, here and at its authorization server. Whether it was told, and what was left over."""
        login = await self._load_if_readable()
        was_reported = login is not None and await self._flow.revoke(login)
        left, whose = "", (self._url, self._principal, self.workspace)
        async with self._alone():
            for facts in self._store.all():
                if (facts.resource, facts.principal, facts.workspace) == whose:
                    left = await anyio.to_thread.run_sync(self._store.forget, facts) or left
        self._current = None
        return was_reported, left

    async def _renewed(self, refused: str | None, challenge: str) -> str:
        """Under the lock: what is stored now, renewed if that is the refused one."""
        login = await self._load()
        self._current = login
        if login is None:
            if not self._options.needs_a_person:
                return await self._by_ourselves(challenge, None)
            where = f" for the workspace {self.workspace}" if self.workspace else ""
            raise LoginNeeded(f"it wants a login{where}")
        facts = login.facts
        if login.secrets.access_token != refused and facts.is_fresh():
            return login.secrets.access_token
        if facts.is_fresh() and time.time() - facts.obtained_at_s < RENEWED_AGAIN_AFTER_S:
            raise LoginNeeded("it refuses a token that was just made for it")
        if not self._options.needs_a_person:
            return await self._by_ourselves(challenge, login)
        if facts.refused:
            # Asking again with a token that is dead looks like theft to some servers.
            raise LoginNeeded(f"its login has ended: {facts.refused}")
        if not login.secrets.refresh_token:
            raise LoginNeeded("its login has ended, and came without a way to renew it")
        return await self._renew(login)

    async def _renew(self, login: StoredLogin) -> str:
        facts = login.facts
        began_before_s = facts.renewing_since_s
        renewing = facts.model_copy(update={"renewing_since_s": time.time()})
        await anyio.to_thread.run_sync(self._store.note, renewing)
        try:
            with anyio.CancelScope(shield=True):
                # Once asked for, the new tokens must be stored: the old ones may be worth nothing by then.
                login = self._current = await self._flow.renew(login)
                await anyio.to_thread.run_sync(self._keep_renewed, login)
        except RenewalRefused as refused:
            now = await self._load_if_readable()
            if now is not None and now.facts.generation != facts.generation and now.facts.is_fresh():
                # Somebody without the lock was quicker: theirs is the login now.
                self._current = now
                return now.secrets.access_token
            why = str(refused)
            if began_before_s is not None:
                when = datetime.fromtimestamp(began_before_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
                why += f"; new tokens were asked for at {when} and never stored, so they are lost"
            await anyio.to_thread.run_sync(self._store.note, facts.model_copy(update={"refused": why}))
            raise LoginNeeded(f"its login has ended: {why}") from None
        return login.secrets.access_token

    async def _by_ourselves(self, challenge: str, previous: StoredLogin | None, scopes: str = "") -> str:
        """Under the lock: a new token by a grant that needs no person."""
        if time.monotonic() < self._refused_until_s:
            raise LoginNeeded(self._refused)
        try:
            login = await self._flow.log_in(None, challenge=challenge, previous=previous, scopes=scopes)
        except LoginRefused as refused:
            if isinstance(refused, CredentialsRefused):
                # Some servers lock out a client that fails again and again.
                self._refused, self._refused_until_s = str(refused), time.monotonic() + REFUSED_AGAIN_AFTER_S
            raise LoginNeeded(str(refused)) from None
        self._current = login
        await anyio.to_thread.run_sync(self._keep_renewed, login)
        return login.secrets.access_token

    def _alone(self) -> AbstractAsyncContextManager[None]:
        return self._store.alone(self._url, self._principal, LOCK_WAIT_S, workspace=self.workspace)

    async def _logged_in(self, challenge: str, needed: LoginNeeded) -> str:
        if self._person is None:
            raise needed
        try:
            login = await self.log_in(self._person, challenge=challenge, scopes=needed.scopes)
        except LoginRefused as refused:
            raise LoginNeeded(str(refused), needed.scopes) from None
        return login.secrets.access_token

    async def _load(self) -> StoredLogin | None:
        try:
            return await anyio.to_thread.run_sync(self._stored)
        except LoginUnreadable as why:
            raise LoginNeeded(str(why)) from None

    async def _load_if_readable(self) -> StoredLogin | None:
        try:
            return await anyio.to_thread.run_sync(self._stored)
        except LoginUnreadable:
            return None

    def _stored(self) -> StoredLogin | None:
        facts = self._store.find(
            self._url,
            self._principal,
            client_id=self._options.client_id,
            issuer=self._options.issuer,
            workspace=self.workspace,
        )
        if facts is None:
            return None
        login = self._store.load(facts)
        self._secrets.hide(*login.secrets.values())
        return login

    def _keep(self, login: StoredLogin) -> StoredLogin:
        self._secrets.hide(*login.secrets.values())
        return StoredLogin(facts=self._store.put(login), secrets=login.secrets)

    def _keep_renewed(self, login: StoredLogin) -> None:
        try:
            self._keep(login)
        except OSError as problem:
            # Good for this process at least. The others are told once theirs have ended.
            self._warn("renewed tokens could not be stored", upstream=self._name, problem=str(problem))

    def _forget_replaced(self, login: StoredLogin) -> None:
        """Registrations of ours that this login has replaced."""
        for other in self._store.all():
            if other.slot == login.facts.slot and other.key != login.facts.key and other.is_registered:
                self._store.forget(other)


def _with_generation(login: StoredLogin, generation: int) -> StoredLogin:
    return StoredLogin(
        facts=login.facts.model_copy(update={"generation": generation}),
        secrets=login.secrets.model_copy(update={"generation": generation}),
    )
