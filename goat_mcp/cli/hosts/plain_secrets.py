"""Secrets that stand in plain text in entries, and the references that take their place when they are stored."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any

from goat_mcp.core.json_values import mapping
from goat_mcp.core.redaction import is_likely_secret

_SCHEME = re.compile(r"(?:Bearer|Basic|Token)\s+", re.I)
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]")
_MAX_NAME_CHARS = 90


@dataclass(frozen=True)
class PlainSecret:
    """One of the values in `env` or `headers` of an entry of ours."""

    server: str
    key: str
    name: str
    value: str = field(repr=False)

    @property
    def where(self) -> str:
        return f"{self.key}.{self.name}"

    @property
    def scheme(self) -> str:
        """What stands before the secret itself, e.g. `Bearer `."""
        found = _SCHEME.match(self.value)
        return found.group() if found and self.key == "headers" else ""

    @property
    def secret(self) -> str:
        return self.value.removeprefix(self.scheme)


def plain_secrets(server: str, entry: Any) -> Iterator[PlainSecret]:
    """Those of one entry. References are none."""
    for key in ("env", "headers"):
        for name, value in mapping(mapping(entry).get(key)).items():
            if isinstance(value, str) and "${" not in value and is_likely_secret(name, value):
                yield PlainSecret(server, key, name, value)


def stored_name(secret: PlainSecret, taken: Collection[str]) -> str:
    """A name for it in the secret store that is not taken."""
    wanted = _NOT_IN_NAMES.sub("_", f"{secret.server}.{secret.name}")[:_MAX_NAME_CHARS].lstrip(".-") or "secret"
    return next(name for name in chain([wanted], (f"{wanted}-{number}" for number in count(2))) if name not in taken)


def with_references(entry: Mapping[str, Any], names: Mapping[PlainSecret, str]) -> dict[str, Any]:
    """The entry with a reference in the place of each of these secrets."""
    changed = dict(entry)
    for secret, name in names.items():
        changed[secret.key] = {
            **mapping(changed[secret.key]),
            secret.name: f"{secret.scheme}${{secret:{name}}}",
        }
    return changed
