"""Where references are resolved: variables, stored secrets, private files, the keyring. Secrets are redacted.

The grammar of references is `core.substitution`'s.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from goat_mcp.core.redaction import Redactor, is_likely_secret
from goat_mcp.core.substitution import Unresolved, substitute
from goat_mcp.state.directory import StateDirectory


class SecretReferences:
    """Resolves references at the moment they are needed, and keeps nothing but what must not be shown."""

    def __init__(
        self,
        environ: Mapping[str, str] | None = None,
        redactor: Redactor | None = None,
        state: StateDirectory | None = None,
    ) -> None:
        """`state` is where `goat-mcp secret set` stores them."""
        self.environ = os.environ if environ is None else environ
        self._redactor = redactor or Redactor()
        self._state = state or StateDirectory.default()

    @property
    def stored(self) -> Path:
        """The file that changes with each secret the user stores or removes. It need not be there."""
        return self._state.stored_secrets

    def resolve(self, value: Any) -> Any:
        """`value` with its references replaced. Secrets among them, and variables that hold one, are never shown.

        Raises `Unresolved`.
        """
        return substitute(value, self.environ, self._read_secret, on_variable=self._note_variable)

    def secret(self, setting: str) -> str:
        """A setting that is a secret, or a reference to one, without blanks around it. Raises `Unresolved`."""
        secret = str(self.resolve(setting)).strip()
        self._redactor.add(secret)
        return secret

    def hide(self, *secrets: str) -> None:
        """Have these values redacted, too."""
        self._redactor.add(*secrets)

    def _note_variable(self, name: str, value: str) -> None:
        if is_likely_secret(name, value):
            self._redactor.add(value)

    def _read_secret(self, kind: str, name: str) -> str:
        secret = {"secret": self._from_store, "file": _from_file, "keyring": _from_keyring}[kind](name)
        self._redactor.add(secret)
        return secret

    def _from_store(self, name: str) -> str:
        from goat_mcp.state.secret_store import SecretStore, SecretTrouble

        try:
            return SecretStore(self._state).get(name)
        except SecretTrouble as trouble:
            raise Unresolved(str(trouble)) from None


def _from_file(name: str) -> str:
    from goat_mcp.state.file_safety import UnsafeFile, read_secret_file
    from goat_mcp.state.own_file import how_to_own

    path = Path(name).expanduser()
    if not path.is_absolute():
        raise Unresolved("the path is not absolute; write it from / or ~")
    try:
        secret = read_secret_file(path).rstrip("\r\n")
    except FileNotFoundError:
        raise Unresolved("there is no such file") from None
    except UnsafeFile as why:
        raise Unresolved(f"the file {why}; it must be yours alone: {how_to_own()}, in a folder of yours") from None
    if not secret:
        raise Unresolved("the file is empty")
    return secret


def _from_keyring(name: str) -> str:
    service, separator, user = name.rpartition("/")
    if not separator or not service or not user:
        raise Unresolved("write ${keyring:SERVICE/USER}")
    from goat_mcp.state.system_keyring import KeyringTrouble, SystemKeyring

    try:
        secret = SystemKeyring().get(service, user)
    except KeyringTrouble as trouble:
        raise Unresolved(f"the keyring {trouble}") from None
    if not secret:
        raise Unresolved(f"the keyring has none; store it: keyring set {service} {user}")
    return secret
