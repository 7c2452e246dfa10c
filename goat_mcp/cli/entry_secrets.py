"""Secrets that stand in a server's entry as they are: noticed, and stored by name if the user wants that."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goat_mcp.cli.terminal import confirmed, escaped, say
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.redaction import is_likely_secret
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.secret_store import SecretStore, SecretTrouble

_OPTIONS = {"env": "--env", "headers": "--header"}
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
_SCHEME = "Bearer "


@dataclass(frozen=True)
class PlainSecret:
    """`key` is env or headers; `name` is what the secret could be called."""

    key: str
    variable: str
    value: str
    name: str

    @property
    def reference(self) -> str:
        return f"{_SCHEME if self.value.startswith(_SCHEME) else ''}${{secret:{self.name}}}"

    def note(self, path: Path) -> str:
        """What is better, in words."""
        return (
            f"{self.variable} looks like a secret, and stands in {path} as it is. Better: goat-mcp secret set "
            f"{self.name}, then add it again with --replace {_OPTIONS[self.key]} {self.variable}='{self.reference}'"
        )


def plain_secrets(server: str, entry: Mapping[str, Any]) -> Iterator[PlainSecret]:
    for key in _OPTIONS:
        for variable, value in entry.get(key, {}).items():
            if "${" not in value and is_likely_secret(variable, value.removeprefix(_SCHEME)):
                name = _NOT_IN_NAMES.sub("-", f"{server}-{variable}".lower()).strip("-")
                yield PlainSecret(key, variable, value, name)


def with_stored_secrets(server: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry with references in place of those secrets that the person at the terminal wants to store."""
    changed = dict(entry)
    for one in plain_secrets(server, entry):
        question = f"{one.variable} looks like a secret. Store it as {one.name}, and write {one.reference} instead?"
        if confirmed(escaped(question)):
            try:
                stored = SecretStore(StateDirectory.default()).set(one.name, one.value.removeprefix(_SCHEME))
            except SecretTrouble as trouble:
                raise ToolError(ErrorCode.CONFIG, str(trouble), "Nothing was changed.") from None
            say(f"Stored {one.name} in {'the keyring' if stored.kept_in == 'keyring' else 'a private file'}.")
            changed[one.key] = {**changed[one.key], one.variable: one.reference}
    return changed
