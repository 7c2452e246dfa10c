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

from goat_mcp.catalog.offerings import Kind
from goat_mcp.catalog.schemas.visible_schema import visible_entry
from goat_mcp.core.errors import cut_middle
from goat_mcp.files.documents.visible_text import make_visible
from goat_mcp.upstreams.envelope import passing_meta
from goat_mcp.upstreams.listing.listed_entries import DIFFERS_IN_CASE, LISTED_TWICE, MAX_DESCRIPTION_CHARS
from goat_mcp.upstreams.listing.rejected_entries import RejectedEntry
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
    withheld: tuple[RejectedEntry, ...]
    originals: tuple[Mapping[str, Any], ...]


def usable_items(kind: Kind, listed: Iterable[Any]) -> UsableItems:
    """Check each entry by itself, in order."""
    entries: dict[str, Mapping[str, Any]] = {}
    prompts: dict[str, str] = {}
    originals: list[Mapping[str, Any]] = []
    withheld: list[RejectedEntry] = []

    def withhold(name: str, reason: str, code: ReasonCode = ReasonCode.BROKEN_ENTRY) -> None:
        shown = make_visible(name[:_NAME_CHARS])
        withheld.append(RejectedEntry(shown, make_visible(reason), code, kind=SINGULAR[kind]))

    for raw in listed:
        key = cast("dict[str, Any]", raw).get(KEYS[kind]) if isinstance(raw, dict) else None
        if not isinstance(key, str) or not _is_unicode(key):
            withhold("", f"it is not an object with a {KEYS[kind]}")
            continue
        try:
            entry, hidden = _shown(kind, cast("dict[str, Any]", raw))
        except RecursionError:
            withhold(key, "it is nested too deeply")
            continue
        if problem := _problem(kind, entry):
            withhold(key, problem)
        elif hidden:
            withhold(key, f"its {hidden} holds invisible characters", ReasonCode.HIDDEN_DATA)
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


def _shown(kind: Kind, given: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The entry with texts that people and models read made visible (R-UP-7b), and which of its data hides something.

    What it is known by stays. That of a prompt is not shown, and a resource may be a file of any name.
    """
    key = KEYS[kind]
    entry, hidden, _ = visible_entry(given, schemas=(), data=(key,))
    hides = key if kind == "templates" and key in hidden else ""
    arguments = given.get("arguments")
    if kind == "prompts" and isinstance(arguments, list):
        shown: list[Any] = []
        for argument in cast("list[Any]", arguments):
            if not isinstance(argument, dict):
                shown.append(argument)  # which makes the entry no valid one
                continue
            made = visible_entry(cast("dict[str, Any]", argument), schemas=(), data=("name",))
            shown.append(_cut(made.entry, ("title", "description")))
            hides = hides or ("argument's name" if made.hidden else "")
        entry["arguments"] = shown
    if "_meta" in entry:
        entry["_meta"] = passing_meta(entry["_meta"])
    return _cut(entry, ("title", "description") if key == "name" else ("name", "title", "description")), hides


def _cut(node: dict[str, Any], members: Iterable[str]) -> dict[str, Any]:
    texts = {
        member: cut_middle(node[member], MAX_DESCRIPTION_CHARS)
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
