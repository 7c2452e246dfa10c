"""References in a setting or an upstream entry: `${env:NAME}`, `${NAME}` as other hosts write it, and secrets.

Secrets are `${secret:NAME}`, `${file:PATH}` and `${keyring:SERVICE/USER}`; the caller reads them. `:-default` may
follow the name of a variable. A text that looks like a reference and is none is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

from goat_mcp.core.redaction import is_secret_name
from goat_mcp.core.suggestions import nearest

# Only names in capitals: `${x}` in a shell command that an entry carries is none of ours.
_REFERENCE = re.compile(r"\$\{(?:(env|secret|keyring|file):([^}]*?)|([A-Z_][A-Z0-9_]*))(?::-([^}]*))?\}")

_SECRET_KINDS = ("secret", "keyring", "file")
_KINDS = ("env", *_SECRET_KINDS)
# `${x:0:3}` and `${x:-y}` are a shell's.
_LIKE_A_REFERENCE = re.compile(r"\$\{([A-Za-z][A-Za-z0-9_-]*):(?=[A-Za-z_/~.])([^}]*)(\}?)")

SecretReader = Callable[[str, str], str]
"""From kind (`secret`, `file`, `keyring`) and name to the secret. Raises `Unresolved` saying why not."""


class Unresolved(ValueError):
    """A reference has no value; the text names it and what to do."""


def no_secrets(kind: str, name: str) -> str:
    """For where only variables can be meant."""
    raise Unresolved(f"{kind} references are not supported here; use ${{env:NAME}}")


def substitute(
    value: Any,
    environ: Mapping[str, str],
    read_secret: SecretReader = no_secrets,
    *,
    on_variable: Callable[[str, str], None] | None = None,
) -> Any:
    """`value` with the references in all its texts replaced. Raises `Unresolved`.

    `on_variable` gets the name and the value of each variable that was used.
    """

    def found(match: re.Match[str]) -> str:
        kind, named, bare, default = match.groups()
        if default is not None and "${" in default:
            raise Unresolved(f"${{{named or bare}:-...}}: a default holds no other reference; write a text there")
        if kind in _SECRET_KINDS:
            if default is not None:
                raise Unresolved(f"{match.group()}: a secret has no default; leave out :-{default}")
            try:
                return read_secret(kind, named)
            except Unresolved as why:
                raise Unresolved(f"{match.group()}: {why}") from None
        name = named or bare or ""
        if name in environ:
            if on_variable is not None:
                on_variable(name, environ[name])
            return environ[name]
        if default is not None:
            return default
        raise Unresolved(
            f"{match.group()}: the environment variable {name!r} is not set; set it or write ${{{name}:-default}}"
        )

    def replaced(value: Any) -> Any:
        if isinstance(value, str):
            if "${" not in value:
                return value
            _refuse_mistyped(value)
            return _REFERENCE.sub(found, value)
        if isinstance(value, dict):
            return {key: replaced(child) for key, child in cast("dict[str, Any]", value).items()}
        if isinstance(value, list):
            return [replaced(item) for item in cast("list[Any]", value)]
        return value

    return replaced(value)


def _refuse_mistyped(text: str) -> None:
    """Raises `Unresolved` for what is meant as a reference and would reach a server as it stands."""
    for match in _LIKE_A_REFERENCE.finditer(text):
        kind, _, end = match.groups()
        if kind not in _KINDS:
            near = nearest(kind, _KINDS, most=1, cutoff=0.5) or ["env"]
            raise Unresolved(
                f"${{{kind}:...}}: there are no references of this kind, only {', '.join(_KINDS)}; "
                f"write ${{{near[0]}:...}}"
            )
        if not end:
            raise Unresolved(f"${{{kind}:...: a reference that does not end; close it with }}")


def secret_reference_in(value: Any) -> str:
    """The first reference to a secret in the texts of `value`, as it is written; empty if there is none.

    A variable is one by its name: `${env:GITHUB_TOKEN}`.
    """
    for match in _references_in(value):
        kind, named, bare, _ = match.groups()
        if kind in _SECRET_KINDS or is_secret_name(named or bare or ""):
            return match.group()
    return ""


def stored_secrets_in(value: Any) -> set[str]:
    """The names of all `${secret:NAME}` in the texts of `value`."""
    return {match[2] for match in _references_in(value) if match[1] == "secret"}


def _references_in(value: Any) -> Iterator[re.Match[str]]:
    if isinstance(value, str):
        yield from _REFERENCE.finditer(value)
        return
    children: Iterable[Any] = ()
    if isinstance(value, dict):
        children = cast("dict[str, Any]", value).values()
    elif isinstance(value, list):
        children = cast("list[Any]", value)
    for child in children:
        yield from _references_in(child)
