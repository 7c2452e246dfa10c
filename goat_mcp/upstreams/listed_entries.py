"""From what an upstream lists to entries we can pass on: a broken tool is withheld alone, the list stays valid (SCH-3).

Runs at every connection, where the SDK is loaded anyway; what is stored on disk went through here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from mcp_types.methods import validate_server_result
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION
from pydantic import ValidationError

from goat_mcp.core.errors import cut_middle
from goat_mcp.upstreams.envelope import passing_meta
from goat_mcp.upstreams.withheld import Withheld

MAX_DESCRIPTION_CHARS = 4096
MAX_SCHEMA_BYTES = 256 * 1024
_REVISIONS = (LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION)


@dataclass(frozen=True)
class UsableEntries:
    entries: tuple[dict[str, Any], ...]
    withheld: tuple[Withheld, ...]
    shortened: int = 0
    """How many descriptions were longer than we pass on."""


def usable_entries(listed: Iterable[Any]) -> UsableEntries:
    """Check each entry by itself, in order."""
    entries: list[dict[str, Any]] = []
    withheld: list[Withheld] = []
    shortened = 0
    for raw in listed:
        if not isinstance(raw, dict) or not isinstance(cast("dict[str, Any]", raw).get("name"), str):
            withheld.append(Withheld("", "it is not an object with a name"))
            continue
        entry = dict(cast("dict[str, Any]", raw))
        description = entry.get("description")
        if isinstance(description, str) and len(description) > MAX_DESCRIPTION_CHARS:
            entry["description"] = cut_middle(description, MAX_DESCRIPTION_CHARS)
            shortened += 1
        if "_meta" in entry:
            entry["_meta"] = passing_meta(entry["_meta"])
        problem = _problem(entry)
        if problem and "outputSchema" in entry:
            # Without its output schema a tool may still be fine; with a broken one no client takes the list.
            without = {key: value for key, value in entry.items() if key != "outputSchema"}
            if not _problem(without):
                entry, problem = without, ""
        if problem:
            withheld.append(Withheld(str(entry["name"])[:200], problem))
        else:
            entries.append(entry)
    return UsableEntries(tuple(entries), tuple(withheld), shortened)


def _problem(entry: Mapping[str, Any]) -> str:
    for member in ("inputSchema", "outputSchema"):
        if member in entry and len(_size(entry[member])) > MAX_SCHEMA_BYTES:
            return f"its {member} is larger than {MAX_SCHEMA_BYTES} bytes"
    for revision in _REVISIONS:
        answer = {"tools": [entry], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        try:
            validate_server_result("tools/list", revision, answer)
        except ValidationError as invalid:
            first = invalid.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"] if part not in ("tools", 0))
            return f"it is no valid tool: {where}: {first['msg']}"[:300]
        except RecursionError:
            return "its schema is nested too deeply"
    return ""


def _size(value: Any) -> str:
    try:
        return json.dumps(value)
    except RecursionError:
        return " " * (MAX_SCHEMA_BYTES + 1)
