"""From a tree to `Settings`, or to a `BrokenSettings` that names each key that is wrong, without showing a secret."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from goat_mcp.core.problem_words import demand_of
from goat_mcp.core.redaction import Redactor
from goat_mcp.settings.settings import SECRET_NAMES, BrokenSettings, Settings, setting_keys

_URL_WITH_SECRET = re.compile(r"://(?:[^/]*@|[^?#]*\?)")


def settings_of(tree: Mapping[str, Any], origin: str) -> Settings:
    """The settings that `tree` holds, and nothing from elsewhere. `origin` names it in errors.

    Raises `BrokenSettings`.
    """
    try:
        return Settings.model_validate(tree)
    except ValidationError as invalid:
        raise _broken(invalid, origin) from None


def _broken(invalid: ValidationError, origin: str) -> BrokenSettings:
    lines: list[str] = []
    for error in invalid.errors(include_url=False):
        key = ".".join(str(part) for part in error["loc"])
        if error["type"] == "extra_forbidden":
            lines.append(f"{key}: no such setting{nearest(key)}")
        else:
            lines.append(f"{key}: {demand_of(error)}; got {_shown(key, error['input'])}")
    return BrokenSettings(f"settings from {origin}:\n" + "\n".join(lines), "Fix these settings and start again.")


def _shown(key: str, value: Any) -> str:
    """A value that is wrong, unless it is or may hold a secret (a key, a URL with a password or a query)."""
    if key.rpartition(".")[2] in SECRET_NAMES or _URL_WITH_SECRET.search(str(value)):
        return f"a {type(value).__name__} that is not shown"
    return f"{Redactor().text(repr(value)):.80}"


def nearest(key: str) -> str:
    import difflib

    near = difflib.get_close_matches(key, setting_keys(), n=1)
    return f"; did you mean {near[0]}?" if near else "; known are " + ", ".join(setting_keys())
