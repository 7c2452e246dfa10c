"""Secrets that the user stored by name, for `${secret:NAME}`: in the system's keyring, else in a file of ours, 0600.

One file lists all names and says when each was stored; a value is in it only if no keyring took it. Running servers
look at that file to see that something changed.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

from goat_mcp.core.suggestions import did_you_mean
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.file_lock import exclusive
from goat_mcp.state.file_safety import UnsafeFile, read_secret_file
from goat_mcp.state.own_file import how_to_own
from goat_mcp.state.private_file import write_private
from goat_mcp.state.system_keyring import KeyringTrouble, SystemKeyring

SERVICE = "goat-mcp"
"""Under which the keyring has them, with the name as the user."""
MAX_VALUE_CHARS = 64 * 1024
_MAX_BYTES = 8 * 1024 * 1024
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\Z")


class SecretTrouble(Exception):
    """A secret that cannot be read or stored. The text says what to do, and holds no value."""


@dataclass(frozen=True)
class StoredSecret:
    """One of them, without its value. `stored_at_s` is in seconds since 1970."""

    name: str
    kept_in: Literal["keyring", "file"]
    stored_at_s: float


class SecretStore:
    """The secrets of one state directory. All methods block, and raise `SecretTrouble`."""

    def __init__(self, state: StateDirectory, keyring: SystemKeyring | None = None) -> None:
        self._state = state
        self._keyring = keyring or SystemKeyring()

    @property
    def path(self) -> Path:
        """The file with the names. Nothing is there before the first secret."""
        return self._state.stored_secrets

    def names(self) -> list[StoredSecret]:
        """All of them, by name. No value is read from the keyring."""
        return [_described(name, entry) for name, entry in sorted(self._entries().items())]

    def get(self, name: str) -> str:
        """The value."""
        entries = self._entries()
        if (entry := entries.get(name)) is None:
            hint = did_you_mean(name, entries)
            raise SecretTrouble(f"there is no such secret; {hint + ' Or ' if hint else ''}{_how_to_store(name)}")
        if _described(name, entry).kept_in == "file":
            value: Any = entry.get("value")
        else:
            try:
                value = self._keyring.get(SERVICE, name)
            except KeyringTrouble as trouble:
                raise SecretTrouble(f"the keyring {trouble}") from None
        if not isinstance(value, str) or not value:
            raise SecretTrouble(f"its value is gone; {_how_to_store(name)}")
        return value

    def set(self, name: str, value: str) -> StoredSecret:
        """Store it in place of an older value. What is returned says where it is."""
        check_name(name)
        if not value or len(value) > MAX_VALUE_CHARS or "\0" in value:
            what = "is empty" if not value else "holds a NUL" if "\0" in value else f"is over {MAX_VALUE_CHARS} long"
            raise SecretTrouble(f"the value of {name} {what}")
        with self._locked():
            entries = self._entries()
            entry: dict[str, Any] = {"stored_at_s": round(time.time(), 3)}
            # The value first: a name without one would be a lie.
            if self._keyring_took(name, value):
                entry["kept_in"] = "keyring"
            else:
                entry |= {"kept_in": "file", "value": value}
                if entries.get(name, {}).get("kept_in") == "keyring":
                    with suppress(KeyringTrouble):  # it has just refused the new value as well
                        self._keyring.delete(SERVICE, name)
            self._write({**entries, name: entry})
        return _described(name, entry)

    def remove(self, name: str) -> bool:
        """Whether it was there."""
        if not self.path.exists():
            return False
        with self._locked():
            entries = self._entries()
            if (entry := entries.pop(name, None)) is None:
                return False
            if _described(name, entry).kept_in == "keyring":
                try:
                    self._keyring.delete(SERVICE, name)
                except KeyringTrouble as trouble:
                    raise SecretTrouble(f"{name} was not removed: the keyring {trouble}") from None
            self._write(entries)
        return True

    def _keyring_took(self, name: str, value: str) -> bool:
        try:
            if self._keyring.is_there():
                self._keyring.set(SERVICE, name, value)
                return True
        except KeyringTrouble:
            pass  # a locked one, or one that takes no text of this length
        return False

    def _entries(self) -> dict[str, dict[str, Any]]:
        try:
            document: Any = json.loads(read_secret_file(self.path, max_bytes=_MAX_BYTES))
        except FileNotFoundError:
            return {}
        except UnsafeFile as unsafe:
            raise SecretTrouble(f"{self.path} {unsafe}; make it yours alone: {how_to_own()}") from None
        except (ValueError, RecursionError):
            document = None
        found: Any = cast("dict[str, Any]", document).get("secrets") if isinstance(document, dict) else None
        if not isinstance(found, dict) or not all(isinstance(one, dict) for one in cast("Any", found).values()):
            raise SecretTrouble(f"{self.path} is damaged; move it away and store its secrets again")
        return cast("dict[str, dict[str, Any]]", found)

    def _write(self, entries: Mapping[str, Mapping[str, Any]]) -> None:
        data = (json.dumps({"secrets": entries}, indent=1) + "\n").encode("ascii")
        try:
            write_private(self.path, data, outlasts_power=True)
        except OSError as problem:
            raise SecretTrouble(f"{self.path} cannot be written: {problem.strerror or problem}") from None

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Alone among our processes: of two changes at a time none is lost."""
        with ExitStack() as stack:
            try:
                stack.enter_context(exclusive(self._state.folder(self.path.parent.name) / "secrets.lock"))
            except OSError as problem:
                raise SecretTrouble(f"{self.path.parent} cannot be used: {problem.strerror or problem}") from None
            yield


def check_name(name: str) -> None:
    """Raises `SecretTrouble` for what no reference could name."""
    if not _NAME.match(name):
        raise SecretTrouble(
            f"{name[:100]!r} is no name for a secret; use letters, digits and _ . - (at most 100), e.g. GITHUB_TOKEN"
        )


def _described(name: str, entry: Mapping[str, Any]) -> StoredSecret:
    at_s: Any = entry.get("stored_at_s", 0)
    kept_in: Literal["keyring", "file"] = "keyring" if entry.get("kept_in") == "keyring" else "file"
    return StoredSecret(name, kept_in, float(at_s) if isinstance(at_s, int | float) else 0.0)


def _how_to_store(name: str) -> str:
    return f"store it: goat-mcp secret set {name}"
