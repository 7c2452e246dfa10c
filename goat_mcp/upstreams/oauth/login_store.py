"""Where logins are kept: their tokens in the system's keyring, else in files of ours, 0600, that `auth list` names.

One file per login holds what may be shown, and the tokens only where there is no keyring. Nothing here waits for
another process: who changes a login holds `lock_file` meanwhile. A login is replaced or forgotten, never emptied.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.file_safety import UnsafeFile, read_secret_file
from goat_mcp.state.private_file import write_private
from goat_mcp.state.system_keyring import KeyringTrouble, SystemKeyring
from goat_mcp.upstreams.oauth.logins import FOLDER, slot_of
from goat_mcp.upstreams.oauth.stored_login import LoginFacts, LoginSecrets, StoredLogin

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

    def lock_file(self, resource: str, principal: str) -> Path:
        """What is locked by whoever changes the logins of this resource."""
        return self.folder / f"{slot_of(resource, principal)}.lock"

    def file_of(self, facts: LoginFacts) -> Path:
        return self.folder / f"{facts.key}.json"

    def all(self) -> list[LoginFacts]:
        """Every login, newest first."""
        return _newest_first(self._facts_in(self.folder.glob("*-*.json")))

    def find(self, resource: str, principal: str, *, client_id: str = "", issuer: str = "") -> LoginFacts | None:
        """The newest login that fits. Without `client_id` only one that was made for us does."""
        for facts in _newest_first(self._facts_in(self.folder.glob(f"{slot_of(resource, principal)}-*.json"))):
            is_client = facts.client_id == client_id if client_id else facts.is_registered
            if is_client and issuer in ("", facts.issuer) and facts.resource == resource:
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
            if not self._keyring.is_there():
                raise KeyringTrouble("is not there")
            self._keyring.set(SERVICE, login.facts.key, secrets)
            facts = login.facts.model_copy(update={"kept_in": "keyring"})
            document: dict[str, Any] = {"facts": facts.model_dump(mode="json")}
        except KeyringTrouble:
            # No keyring, a locked one, or one that takes no text of this length.
            facts = login.facts.model_copy(update={"kept_in": "file"})
            document = {"facts": facts.model_dump(mode="json"), "secrets": login.secrets.model_dump(mode="json")}
        write_private(self.file_of(facts), to_json(document), outlasts_power=True)
        return facts

    def note(self, facts: LoginFacts) -> None:
        """Change what is known of a login, not its tokens."""
        document = self._document(self.file_of(facts))
        write_private(self.file_of(facts), to_json({**document, "facts": facts.model_dump(mode="json")}))

    def forget(self, facts: LoginFacts) -> str:
        """Delete it everywhere; says what could not be deleted."""
        with contextlib.suppress(FileNotFoundError):
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
