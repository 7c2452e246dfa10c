"""From what an upstream lists to entries we can pass on: a broken tool is withheld alone, the list stays valid (SCH-3).

Runs at every connection, where the SDK is loaded anyway; what is stored on disk went through here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from mcp_types.methods import validate_server_result
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION
from pydantic import ValidationError

from goat_mcp.catalog.schemas.dialects import DIALECTS, for_handshake
from goat_mcp.catalog.schemas.portable import portable, why_too_large, why_uncallable
from goat_mcp.catalog.schemas.visible_schema import visible_entry
from goat_mcp.core.errors import cut_middle
from goat_mcp.files.documents.visible_text import make_visible
from goat_mcp.upstreams.envelope import passing_meta
from goat_mcp.upstreams.listing.rejected_entries import RejectedEntry
from goat_mcp.upstreams.reason_code import ReasonCode

MAX_DESCRIPTION_CHARS = 4096
MAX_SCHEMA_BYTES = 256 * 1024
MAX_SCHEMA_LEVELS = 128
"""Objects in objects: two for each property of a property, so that schemas are 64 deep at least (R-SCHEMA-3)."""
LISTED_TWICE = "it is listed twice; the first one is used"
DIFFERS_IN_CASE = "its name differs from that of {first} in upper and lower case only; the first one is used"
_SCHEMAS = ("inputSchema", "outputSchema")
_REVISIONS = (LATEST_MODERN_VERSION, LATEST_HANDSHAKE_VERSION)


class _Problem(NamedTuple):
    code: ReasonCode
    text: str


@dataclass(frozen=True)
class UsableEntries:
    entries: tuple[dict[str, Any], ...]
    withheld: tuple[RejectedEntry, ...]
    shortened: int = 0
    """How many descriptions were longer than we pass on."""
    escaped: int = 0
    """How many tools had invisible characters in their name or in a text about them (R-UP-7, R-UP-7b)."""
    without_output: tuple[str, ...] = ()
    """Tools that pass without their `outputSchema`, each with the reason."""
    originals: tuple[dict[str, Any], ...] = ()
    """For each of `entries`, what the upstream sent: that is what is pinned."""


def usable_entries(listed: Iterable[Any]) -> UsableEntries:
    """Check each entry by itself, in order; of two with one name the first that can be used counts.

    Names that differ in case only are one name here: a reader takes one for the other (R-UP-5).
    """
    entries: list[dict[str, Any]] = []
    withheld: list[RejectedEntry] = []
    without_output: list[str] = []
    originals: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    shortened = escaped = 0
    for raw in listed:
        if not isinstance(raw, dict) or not isinstance(cast("dict[str, Any]", raw).get("name"), str):
            withheld.append(RejectedEntry("", "it is not an object with a name"))
            continue
        given = cast("dict[str, Any]", raw)
        name = make_visible(given["name"][:200])
        try:
            # The name is what we call; clients see another one (NAM-4).
            entry, hidden, is_changed = visible_entry(given, schemas=_SCHEMAS, data=("name",))
        except RecursionError:
            withheld.append(RejectedEntry(name, "its entry is nested too deeply", ReasonCode.SCHEMA_TOO_DEEP))
            continue
        is_escaped = is_changed or name != given["name"][:200]
        description = entry.get("description")
        if isinstance(description, str) and len(description) > MAX_DESCRIPTION_CHARS:
            entry["description"] = cut_middle(description, MAX_DESCRIPTION_CHARS)
            shortened += 1
        if "_meta" in entry:
            entry["_meta"] = passing_meta(entry["_meta"])
        problem = _problem(entry, hidden)
        if problem is not None and "outputSchema" in entry:
            # Without its output schema a tool may still be fine; with a broken one no client takes the list.
            without = {key: value for key, value in entry.items() if key != "outputSchema"}
            if _problem(without, hidden) is None:
                without_output.append(f"{name}: {problem.text}")
                entry, problem = without, None
        first = names.get(given["name"].casefold())
        if problem is None and first is not None:
            problem = _taken(given["name"], first)
        if problem is not None:
            withheld.append(RejectedEntry(name, make_visible(problem.text), problem.code))
        else:
            names[given["name"].casefold()] = given["name"]
            entries.append(entry)
            originals.append(given)
            escaped += is_escaped
    return UsableEntries(tuple(entries), tuple(withheld), shortened, escaped, tuple(without_output), tuple(originals))


def _taken(name: str, first: str) -> _Problem:
    if name == first:
        return _Problem(ReasonCode.LISTED_TWICE, LISTED_TWICE)
    return _Problem(ReasonCode.NAME_COLLISION, DIFFERS_IN_CASE.format(first=first[:200]))


def _problem(entry: Mapping[str, Any], hidden: Mapping[str, str]) -> _Problem | None:
    """`hidden` says which schemas have data that hides something, and below which keyword."""
    match entry.get("execution"):
        case {"taskSupport": "required"}:  # ERA-7
            return _Problem(ReasonCode.TASKS_ONLY, "it runs only as a task, which needs an extension on both sides")
        case _:
            pass
    for member in _SCHEMAS:
        if member in entry and member in hidden:
            below = f"what its {member} has below {hidden[member]} holds invisible characters"
            return _Problem(ReasonCode.HIDDEN_DATA, below)
        if member in entry and len(_size(entry[member])) > MAX_SCHEMA_BYTES:
            return _Problem(ReasonCode.SCHEMA_TOO_LARGE, f"its {member} is larger than {MAX_SCHEMA_BYTES} bytes")
        if _is_deeper(entry.get(member), MAX_SCHEMA_LEVELS):
            deep = f"its {member} is nested more than {MAX_SCHEMA_LEVELS} levels deep"
            return _Problem(ReasonCode.SCHEMA_TOO_DEEP, deep)
        if much := why_too_large(entry.get(member)):
            return _Problem(ReasonCode.SCHEMA_TOO_LARGE, f"its {member} {much}")
    shown = dict(entry)
    if isinstance(entry.get("inputSchema"), dict):
        if hopeless := why_uncallable(entry["inputSchema"]):
            return _Problem(ReasonCode.BROKEN_SCHEMA, hopeless)
        # In every dialect it says that it takes an object, whether or not the upstream's says so.
        shown = dict(portable(entry, DIALECTS["mcp"]).entry)
    for revision in _REVISIONS:
        listed = for_handshake(shown) if revision == LATEST_HANDSHAKE_VERSION else shown
        answer = {"tools": [listed], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        try:
            validate_server_result("tools/list", revision, answer)
        except ValidationError as invalid:
            first = invalid.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"] if part not in ("tools", 0))
            code = ReasonCode.BROKEN_SCHEMA if "Schema" in where else ReasonCode.BROKEN_ENTRY
            return _Problem(code, f"it is no valid tool: {where}: {first['msg']}"[:300])
        except RecursionError:
            return _Problem(ReasonCode.SCHEMA_TOO_DEEP, "its schema is nested too deeply")
    return None


def _is_deeper(value: Any, levels: int) -> bool:
    """Whether objects are nested in each other more than `levels` times. A stack of our own: no recursion to exceed."""
    waiting: list[tuple[Any, int]] = [(value, 0)]
    while waiting:
        node, level = waiting.pop()
        if isinstance(node, dict):
            level += 1
            if level > levels:
                return True
            waiting += [(child, level) for child in cast("dict[str, Any]", node).values()]
        elif isinstance(node, list):
            waiting += [(child, level) for child in cast("list[Any]", node)]
    return False


def _size(value: Any) -> str:
    try:
        return json.dumps(value)
    except RecursionError:
        return " " * (MAX_SCHEMA_BYTES + 1)
