"""From the resources, templates and prompts an upstream lists to entries we can pass on; broken ones are withheld.

Runs at a connection, where the SDK is loaded anyway; what is stored on disk went through here. Tools are checked in
`listed_entries`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from mcp_types.methods import validate_server_result
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION
from pydantic import ValidationError

from goat_mcp.core.errors import cut_middle
from goat_mcp.documents.visible_text import make_visible
from goat_mcp.offers import Kind
from goat_mcp.upstreams.envelope import passing_meta
from goat_mcp.upstreams.listing.listed_entries import DIFFERS_IN_CASE, LISTED_TWICE, MAX_DESCRIPTION_CHARS
from goat_mcp.upstreams.listing.withheld import Withheld
from goat_mcp.upstreams.reason_code import ReasonCode

METHODS: Mapping[Kind, tuple[str, str]] = {
    "resources": ("resources/list", "resources"),
    "templates": ("resources/templates/list", "resourceTemplates"),
    "prompts": ("prompts/list", "prompts"),
}
"""By kind: what lists it, and the member of a page that holds it."""
KEYS: Mapping[Kind, str] = {"resources": "uri", "templates": "uriTemplate", "prompts": "name"}
"""By kind: what an entry is known by."""
OWN_URIS = "goat://"
"""What ours begin with, and those of a gateway behind us (COL-1)."""
SINGULAR: Mapping[Kind, Literal["resource", "template", "prompt"]] = {
    "resources": "resource",
    "templates": "template",
    "prompts": "prompt",
}
_REVISIONS = (LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION)
_NAME_CHARS = 200


@dataclass(frozen=True)
class UsableItems:
    """`entries` have each key once, in the upstream's order; `originals` are what it sent of them."""

    entries: tuple[Mapping[str, Any], ...]
    withheld: tuple[Withheld, ...]
    originals: tuple[Mapping[str, Any], ...]


def usable_items(kind: Kind, listed: Iterable[Any]) -> UsableItems:
    """Check each entry by itself, in order."""
    entries: dict[str, Mapping[str, Any]] = {}
    prompts: dict[str, str] = {}
    originals: list[Mapping[str, Any]] = []
    withheld: list[Withheld] = []

    def withhold(name: str, reason: str, code: ReasonCode = ReasonCode.BROKEN_ENTRY) -> None:
        shown = make_visible(name[:_NAME_CHARS])
        withheld.append(Withheld(shown, make_visible(reason), code, kind=SINGULAR[kind]))

    for raw in listed:
        key = cast("dict[str, Any]", raw).get(KEYS[kind]) if isinstance(raw, dict) else None
        if not isinstance(key, str) or not _is_unicode(key):
            withhold("", f"it is not an object with a {KEYS[kind]}")
            continue
        entry = _shown(kind, cast("dict[str, Any]", raw))
        if problem := _problem(kind, entry):
            withhold(key, problem)
        elif kind != "prompts" and key.startswith(OWN_URIS):
            withhold(key, f"{OWN_URIS} is goat-mcp's own; an upstream's is not read by it", ReasonCode.NAME_COLLISION)
        elif key in entries:
            withhold(key, LISTED_TWICE, ReasonCode.LISTED_TWICE)
        elif kind == "prompts" and (first := prompts.setdefault(key.casefold(), key)) != key:
            withhold(key, DIFFERS_IN_CASE.format(first=first[:_NAME_CHARS]), ReasonCode.NAME_COLLISION)
        else:
            entries[key] = entry
            originals.append(cast("dict[str, Any]", raw))
    return UsableItems(tuple(entries.values()), tuple(withheld), tuple(originals))


def _shown(kind: Kind, entry: dict[str, Any]) -> dict[str, Any]:
    """The entry with texts that people and models read made visible (R-UP-7). What it is known by stays."""
    shown = _texts(entry, ("title", "description") if kind == "prompts" else ("name", "title", "description"))
    arguments = entry.get("arguments")
    if kind == "prompts" and isinstance(arguments, list):
        shown["arguments"] = [
            _texts(cast("dict[str, Any]", one), ("title", "description")) if isinstance(one, dict) else one
            for one in cast("list[Any]", arguments)
        ]
    if "_meta" in entry:
        shown["_meta"] = passing_meta(entry["_meta"])
    return shown


def _texts(node: dict[str, Any], members: Iterable[str]) -> dict[str, Any]:
    texts = {
        member: cut_middle(make_visible(node[member]), MAX_DESCRIPTION_CHARS)
        for member in members
        if isinstance(node.get(member), str)
    }
    return {**node, **texts}


def _is_unicode(text: str) -> bool:
    """Half a surrogate pair cannot travel to anybody."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _problem(kind: Kind, entry: Mapping[str, Any]) -> str:
    method, member = METHODS[kind]
    for revision in _REVISIONS:
        answer = {member: [entry], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        try:
            validate_server_result(method, revision, answer)
        except ValidationError as invalid:
            first = invalid.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"] if part not in (member, 0))
            return f"it is not valid: {where}: {first['msg']}"[:300]
        except (RecursionError, UnicodeError):
            return "it cannot be written as JSON"
    return ""
