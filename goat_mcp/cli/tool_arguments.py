"""A tool's arguments as they are written on a command line: KEY=VALUE words and one JSON object."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import click


def json_object(text: str) -> dict[str, Any]:
    """What `--input-json` holds."""
    try:
        parsed: Any = json.loads(text)
    except ValueError as problem:
        raise click.UsageError(f"--input-json is not JSON: {problem}") from None
    if not isinstance(parsed, dict):
        raise click.UsageError('--input-json wants an object, e.g. {"pattern": "TODO"}')
    return cast("dict[str, Any]", parsed)


def pairs(words: Sequence[str]) -> dict[str, str]:
    """Words of the form KEY=VALUE."""
    for pair in words:
        if "=" not in pair:
            raise click.UsageError(f"{pair!r} is neither a flag nor KEY=VALUE")
    return dict(pair.split("=", 1) for pair in words)


def typed(texts: Mapping[str, str], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Texts as arguments; where the schema wants no text, a value is read as JSON."""
    fields = schema.get("properties", {})
    return {
        key: text if fields.get(key, {}).get("type") in ("string", None) else _as_json(text)
        for key, text in texts.items()
    }


def _as_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
