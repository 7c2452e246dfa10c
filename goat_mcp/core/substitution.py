"""Variables in a setting or an upstream entry: `${env:NAME}`, and `${NAME}` as other hosts write it.

`:-default` may follow the name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

# Only names in capitals: `${x}` in a shell command that an entry carries is none of ours.
_VARIABLE = re.compile(r"\$\{(?:(env|keyring|file):([^}]*?)|([A-Z_][A-Z0-9_]*))(?::-([^}]*))?\}")


class Unresolved(ValueError):
    """A variable has no value; the text names it and what to do."""


def substitute(value: Any, environ: Mapping[str, str]) -> Any:
    """`value` with the variables in all its texts replaced. Raises `Unresolved`."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: _value(match, environ), value) if "${" in value else value
    if isinstance(value, dict):
        return {key: substitute(child, environ) for key, child in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [substitute(item, environ) for item in cast("list[Any]", value)]
    return value


def _value(match: re.Match[str], environ: Mapping[str, str]) -> str:
    kind, named, bare, default = match.groups()
    if kind in ("keyring", "file"):
        raise Unresolved(f"{match.group()}: {kind} references are not supported; use ${{env:NAME}}")
    name = named or bare or ""
    if name in environ:
        return environ[name]
    if default is not None:
        return default
    raise Unresolved(
        f"{match.group()}: the environment variable {name!r} is not set; set it or write ${{{name}:-default}}"
    )
