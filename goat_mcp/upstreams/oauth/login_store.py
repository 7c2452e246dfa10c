"""Stored logins: their tokens are in the system's keyring, else in files of ours, 0600, that `auth list` names.

One file per login holds what may be shown, and the tokens only if there is no keyring. Nothing here waits for another
process: whoever changes a login holds `lock_file` meanwhile. A login is replaced or forgotten, never emptied.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Any, Literal

import anyio.to_thread
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import from_json, to_json

from goat_mcp.core.errors import ToolError
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.file_lock import LockTimeout, file_lock
from goat_mcp.state.file_safety import UnsafeFile, read_secret_file
from goat_mcp.state.private_file import write_private
from goat_mcp.state.system_keyring import KeyringTrouble, SystemKeyring
from goat_mcp.upstreams.oauth.login_contract import FOLDER, slot_of

GROUP = "logins"
"""What servers that share a state call these files."""
LEEWAY_S = 30.0
"""A token that ends this soon is renewed first: it would end on its way."""


class LoginSecrets(BaseModel):
    """What must be seen by nobody. `generation` tells which state of the login it belongs to."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    generation: int
    access_token: str
    refresh_token: str = ""
    client_secret: str = ""
    registration: dict[str, Any] = {}
    """The record of our registration, which may hold keys of its own."""

    def values(self) -> list[str]:
        """All of it that has to be kept out of texts."""
        more = [str(value) for key, value in self.registration.items() if "token" in key or "secret" in key]
        return [value for value in (self.access_token, self.refresh_token, self.client_secret, *more) if value]


class LoginFacts(BaseModel):
    """A login without its secrets. Times are seconds since 1970."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    resource: str
    issuer: str
    client_id: str
    principal: str
    workspace: str = ""
    """The only directory that it is used in; empty if it is used in all."""
    server: str
    """The upstream's name when it was made."""
    is_registered: bool = False
    """Whether the client id was made for us, and not written by the user."""
    scope: str = ""
    expires_at_s: float | None = None
    obtained_at_s: float = 0.0
    generation: int = 0
    kept_in: Literal["keyring", "file"] = "file"
    auth_server: dict[str, Any] = {}
    """Metadata of the authorization server; empty for one of the oldest kind, which has none."""
    protected_resource: dict[str, Any] = {}
    redirect_uri: str = ""
    can_renew: bool = False
    """Whether it goes on without a person once its token has ended."""
    renewing_since_s: float | None = None
    """Set while new tokens are asked for. It stays where the process ended before it had stored them."""
    refused: str = ""
    """Why the authorization server will not renew this login; empty while it does."""

    @property
    def slot(self) -> str:
        """Names the resource, the principal and the workspace: what is known before anybody has been asked."""
        return slot_of(self.resource, self.principal, self.workspace)

    @property
    def key(self) -> str:
        """Names the login, in file names and in the keyring."""
        whom = hashlib.sha256(f"{self.issuer}\0{self.client_id}".encode("utf-8", "surrogatepass")).hexdigest()
        return f"{self.slot}-{whom[:16]}"

    def is_fresh(self) -> bool:
        """Whether the access token will be good for a while, as far as its server said."""
        if self.expires_at_s is None:
            return True
        leeway_s = min(LEEWAY_S, (self.expires_at_s - self.obtained_at_s) / 10)
        return time.time() < self.expires_at_s - leeway_s

    @property
    def status(self) -> Literal["valid", "expired", "ended"]:
        """`ended`: its authorization server takes it no longer. One that is renewed by itself is not `expired`."""
        if self.refused:
            return "ended"
        return "expired" if self.is_over() and not self.can_renew else "valid"

    def is_over(self) -> bool:
        """Whether the access token has ended."""
        return self.expires_at_s is not None and time.time() >= self.expires_at_s


class StoredLogin(BaseModel):
    """A login, whole."""

    model_config = ConfigDict(frozen=True)

    facts: LoginFacts
    secrets: LoginSecrets


SERVICE = "goat-mcp upstream login"
_MAX_BYTES = 1024 * 1024


class LoginUnreadable(Exception):
    """A login is there and cannot be read. The text says what to do."""


class LoginStore:
    """The logins of one state directory."""

    def __init__(self, state: StateDirectory, keyring: SystemKeyring | None = None) -> None:
        self._state = state
        self._keyring = keyring or SystemKeyring()

    @property
    def folder(self) -> Path:
        return self._state.folder(FOLDER)

    def lock_file(self, resource: str, principal: str, workspace: str = "") -> Path:
        """What is locked by whoever changes the logins of this resource."""
        return self.folder / f"{slot_of(resource, principal, workspace)}.lock"

    @contextlib.asynccontextmanager
    async def alone(
        self, resource: str, principal: str, max_wait_s: float, *, workspace: str = ""
    ) -> AsyncGenerator[None]:
        """Alone among all processes, and all servers that share the state, with the newest logins of this resource.

        Raises `LockTimeout`.
        """
        shared, lock_file = self._state.shared, self.lock_file(resource, principal, workspace)
        async with file_lock(lock_file, max_wait_s), contextlib.AsyncExitStack() as held:
            if shared is not None:
                try:
                    await held.enter_async_context(shared.alone(f"login {lock_file.stem}", max_wait_s))
                    await anyio.to_thread.run_sync(shared.look, self._state.path, GROUP)
                except ToolError as problem:
                    raise LockTimeout(problem.message) from None
            yield

    def file_of(self, facts: LoginFacts) -> Path:
        return self.folder / f"{facts.key}.json"

    def all(self) -> list[LoginFacts]:
        """Every login, newest first."""
        return _newest_first(self._facts_in(self.folder.glob("*-*.json")))

    def find(
        self, resource: str, principal: str, *, client_id: str = "", issuer: str = "", workspace: str = ""
    ) -> LoginFacts | None:
        """The newest login that fits. Without `client_id` only one that was made for us does."""
        files = self.folder.glob(f"{slot_of(resource, principal, workspace)}-*.json")
        for facts in _newest_first(self._facts_in(files)):
            is_client = facts.client_id == client_id if client_id else facts.is_registered
            # Metadata writes an issuer with a slash at its end where people write none.
            is_issuer = not issuer or facts.issuer.rstrip("/") == issuer.rstrip("/")
            if is_client and is_issuer and (facts.resource, facts.workspace) == (resource, workspace):
                return facts
        return None

    def load(self, facts: LoginFacts) -> StoredLogin:
        """The login with its tokens. Raises `LoginUnreadable`."""
        try:
            if facts.kept_in == "file":
                secrets = self._document(self.file_of(facts)).get("secrets")
            else:
                text = self._keyring.get(SERVICE, facts.key)
                secrets = None if text is None else from_json(text)
            return StoredLogin(facts=facts, secrets=LoginSecrets.model_validate(secrets))
        except KeyringTrouble as trouble:
            raise LoginUnreadable(f"the keyring {trouble}") from None
        except (OSError, UnsafeFile) as problem:
            raise LoginUnreadable(f"{self.file_of(facts)} {problem}") from None
        except ValueError:
            raise LoginUnreadable(f"the tokens of this login are gone from the {facts.kept_in}") from None

    def put(self, login: StoredLogin) -> LoginFacts:
        """Keep it in place of an older state of the same login. Tokens first: a fact without them would be a lie."""
        secrets = login.secrets.model_dump_json()
        try:
            if self._state.shared is not None or not self._keyring.is_there():
                raise KeyringTrouble("is not there, or other servers have to get the tokens, too")
            self._keyring.set(SERVICE, login.facts.key, secrets)
            facts = login.facts.model_copy(update={"kept_in": "keyring"})
            document: dict[str, Any] = {"facts": facts.model_dump(mode="json")}
        except KeyringTrouble:
            # No keyring, a locked one, or one that takes no text of this length.
            facts = login.facts.model_copy(update={"kept_in": "file"})
            document = {"facts": facts.model_dump(mode="json"), "secrets": login.secrets.model_dump(mode="json")}
        with self._state.editing(GROUP):
            write_private(self.file_of(facts), to_json(document), outlasts_power=True)
        return facts

    def note(self, facts: LoginFacts) -> None:
        """Change what is known of a login, not its tokens."""
        with self._state.editing(GROUP):
            document = self._document(self.file_of(facts))
            write_private(self.file_of(facts), to_json({**document, "facts": facts.model_dump(mode="json")}))

    def forget(self, facts: LoginFacts) -> str:
        """Delete it everywhere; says what could not be deleted."""
        with self._state.editing(GROUP), contextlib.suppress(FileNotFoundError):
            self.file_of(facts).unlink()
        try:
            # Also where a file holds it: it may have been in the keyring before.
            self._keyring.delete(SERVICE, facts.key)
        except KeyringTrouble as trouble:
            if facts.kept_in == "keyring":
                return f"the keyring {trouble}; delete {SERVICE!r} / {facts.key!r} there yourself"
        return ""

    def _facts_in(self, files: Iterable[Path]) -> list[LoginFacts]:
        found: list[LoginFacts] = []
        for file in files:
            # A damaged one is no login; the next login replaces it.
            with contextlib.suppress(OSError, UnsafeFile, ValidationError, ValueError):
                found.append(LoginFacts.model_validate(self._document(file).get("facts")))
        return found

    def _document(self, file: Path) -> dict[str, Any]:
        document: Any = from_json(read_secret_file(file, max_bytes=_MAX_BYTES))
        if not isinstance(document, dict):
            raise ValueError(f"{file} holds no object")
        return document  # pyright: ignore[reportUnknownVariableType]  # JSON objects have text keys


def _newest_first(logins: list[LoginFacts]) -> list[LoginFacts]:
    return sorted(logins, key=lambda login: login.obtained_at_s, reverse=True)
