"""From what an upstream lists to entries we can pass on: a broken one is rejected alone, the list stays valid (SCH-3).

Runs at every connection, where the SDK is loaded anyway; what is stored on disk went through here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

from mcp_types.methods import validate_server_result
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION
from pydantic import ValidationError

from goat_mcp.catalog.app_tools import FLAT_URI, OPENAI_URI, UI
from goat_mcp.catalog.offerings import Kind
from goat_mcp.catalog.schemas.dialects import DIALECTS, for_handshake
from goat_mcp.catalog.schemas.portable import portable, why_too_large, why_uncallable
from goat_mcp.catalog.schemas.visible_schema import visible_entry
from goat_mcp.core.errors import cut_middle
from goat_mcp.core.names import OWN_URIS
from goat_mcp.files.documents.visible_text import make_visible
from goat_mcp.upstreams.envelope import passing_meta
from goat_mcp.upstreams.status import ReasonCode, RejectedEntry

MAX_DESCRIPTION_CHARS = 4096
MAX_SCHEMA_BYTES = 256 * 1024
MAX_SCHEMA_LEVELS = 128
"""Objects in objects: two for each property of a property, so that schemas are 64 deep at least (R-SCHEMA-3)."""
LISTED_TWICE = "it is listed twice; the first one is used"
DIFFERS_IN_CASE = "its name differs from that of {first} in upper and lower case only; the first one is used"
_SCHEMAS = ("inputSchema", "outputSchema")
_NOTHING_HIDDEN: Mapping[str, str] = {}
_SUSPECT = re.compile(r"\\[^nt\"\\]|\x7f")
"""In JSON: an escape of anything but a line feed, a tab, a quote or a backslash. All that is not ASCII is escaped."""
_REVISIONS = (LATEST_MODERN_VERSION, LATEST_HANDSHAKE_VERSION)


class _Problem(NamedTuple):
    code: ReasonCode
    text: str


@dataclass(frozen=True)
class ValidEntries:
    entries: tuple[dict[str, Any], ...]
    rejected: tuple[RejectedEntry, ...]
    shortened: int = 0
    """How many descriptions were longer than we pass on."""
    escaped: int = 0
    """How many tools had invisible characters in their name or in a text about them (R-UP-7, R-UP-7b)."""
    without_output: tuple[str, ...] = ()
    """Tools that pass without their `outputSchema`, each with the reason."""
    originals: tuple[dict[str, Any], ...] = ()
    """For each of `entries`, what the upstream sent: that is what is pinned."""


def valid_entries(listed: Iterable[Any]) -> ValidEntries:
    """Check each entry by itself, in order; of two with one name the first that can be used counts.

    Names that differ in case only are one name here: a reader takes one for the other (R-UP-5).
    """
    entries: list[dict[str, Any]] = []
    rejected: list[RejectedEntry] = []
    without_output: list[str] = []
    originals: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    shortened = escaped = 0
    for raw in listed:
        if not isinstance(raw, dict) or not isinstance(cast("dict[str, Any]", raw).get("name"), str):
            rejected.append(RejectedEntry("", "it is not an object with a name"))
            continue
        given = cast("dict[str, Any]", raw)
        name = make_visible(given["name"][:200])
        is_simple = _is_simple(given)
        if is_simple:
            entry, hidden, is_changed = dict(given), _NOTHING_HIDDEN, False
        else:
            try:
                # The name is what we call; clients see another one (NAM-4).
                entry, hidden, is_changed = visible_entry(given, schemas=_SCHEMAS, data=("name",))
            except RecursionError:
                rejected.append(RejectedEntry(name, "its entry is nested too deeply", ReasonCode.SCHEMA_TOO_DEEP))
                continue
        is_escaped = is_changed or name != given["name"][:200]
        description = entry.get("description")
        if isinstance(description, str) and len(description) > MAX_DESCRIPTION_CHARS:
            entry["description"] = cut_middle(description, MAX_DESCRIPTION_CHARS)
            shortened += 1
        if "_meta" in entry:
            entry["_meta"] = _without_our_app(passing_meta(entry["_meta"]))
        problem = _tool_problem(entry, hidden, is_simple=is_simple)
        if problem is not None and "outputSchema" in entry:
            # Without its output schema a tool may still be fine; with a broken one no client takes the list.
            without = {key: value for key, value in entry.items() if key != "outputSchema"}
            if _tool_problem(without, hidden, is_simple=is_simple) is None:
                without_output.append(f"{name}: {problem.text}")
                entry, problem = without, None
        first = names.get(given["name"].casefold())
        if problem is None and first is not None:
            problem = _taken(given["name"], first)
        if problem is not None:
            rejected.append(RejectedEntry(name, make_visible(problem.text), problem.code))
        else:
            names[given["name"].casefold()] = given["name"]
            entries.append(entry)
            originals.append(given)
            escaped += is_escaped
    return ValidEntries(tuple(entries), tuple(rejected), shortened, escaped, tuple(without_output), tuple(originals))


def _taken(name: str, first: str) -> _Problem:
    if name == first:
        return _Problem(ReasonCode.LISTED_TWICE, LISTED_TWICE)
    return _Problem(ReasonCode.NAME_COLLISION, DIFFERS_IN_CASE.format(first=first[:200]))


def _is_simple(given: dict[str, Any]) -> bool:
    """Whether one look at its JSON shows that no text in it hides anything, and that no schema is large or deep.

    Most entries are so. A look at each of their parts takes several times as long.
    """
    text = _size(given)
    return (
        len(text) <= MAX_SCHEMA_BYTES
        and text.count("{") <= MAX_SCHEMA_LEVELS
        and '"$ref"' not in text
        and _SUSPECT.search(text) is None
    )


def _tool_problem(entry: Mapping[str, Any], hidden: Mapping[str, str], *, is_simple: bool) -> _Problem | None:
    """`hidden` says which schemas have data that hides something, and below which keyword."""
    match entry.get("execution"):
        case {"taskSupport": "required"}:  # ERA-7
            return _Problem(ReasonCode.TASKS_ONLY, "it runs only as a task, which needs an extension on both sides")
        case _:
            pass
    for member in () if is_simple else _SCHEMAS:
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


def _without_our_app(meta: dict[str, Any]) -> dict[str, Any]:
    """A host would show what an upstream returns in our own document, as if we said it."""
    ui: Any = meta.get(UI)
    of_ui = cast("dict[str, Any]", ui).get("resourceUri") if isinstance(ui, dict) else None
    named = (of_ui, meta.get(FLAT_URI), meta.get(OPENAI_URI))
    if not any(isinstance(uri, str) and uri.startswith(OWN_URIS) for uri in named):
        return meta
    return {key: value for key, value in meta.items() if key not in (UI, FLAT_URI, OPENAI_URI)}


def _size(value: Any) -> str:
    try:
        return json.dumps(value)
    except RecursionError:
        return " " * (MAX_SCHEMA_BYTES + 1)


METHODS: Mapping[Kind, tuple[str, str]] = {
    "resources": ("resources/list", "resources"),
    "templates": ("resources/templates/list", "resourceTemplates"),
    "prompts": ("prompts/list", "prompts"),
}
"""By kind: what lists it, and the member of a page that holds it."""
KEYS: Mapping[Kind, str] = {"resources": "uri", "templates": "uriTemplate", "prompts": "name"}
"""By kind: what an entry is known by."""
SINGULAR: Mapping[Kind, Literal["resource", "template", "prompt"]] = {
    "resources": "resource",
    "templates": "template",
    "prompts": "prompt",
}
_NAME_CHARS = 200


@dataclass(frozen=True)
class ValidResources:
    """`entries` have each key once, in the upstream's order; `originals` are what it sent of them."""

    entries: tuple[Mapping[str, Any], ...]
    rejected: tuple[RejectedEntry, ...]
    originals: tuple[Mapping[str, Any], ...]


def valid_resources(kind: Kind, listed: Iterable[Any]) -> ValidResources:
    """Check each entry by itself, in order."""
    entries: dict[str, Mapping[str, Any]] = {}
    prompts: dict[str, str] = {}
    originals: list[Mapping[str, Any]] = []
    rejected: list[RejectedEntry] = []

    def reject(name: str, reason: str, code: ReasonCode = ReasonCode.BROKEN_ENTRY) -> None:
        shown = make_visible(name[:_NAME_CHARS])
        rejected.append(RejectedEntry(shown, make_visible(reason), code, kind=SINGULAR[kind]))

    for raw in listed:
        key = cast("dict[str, Any]", raw).get(KEYS[kind]) if isinstance(raw, dict) else None
        if not isinstance(key, str) or not _is_unicode(key):
            reject("", f"it is not an object with a {KEYS[kind]}")
            continue
        try:
            entry, hidden = _shown(kind, cast("dict[str, Any]", raw))
        except RecursionError:
            reject(key, "it is nested too deeply")
            continue
        if problem := _item_problem(kind, entry):
            reject(key, problem)
        elif hidden:
            reject(key, f"its {hidden} holds invisible characters", ReasonCode.HIDDEN_DATA)
        elif kind != "prompts" and key.startswith(OWN_URIS):
            own = next(filter(key.startswith, OWN_URIS))
            reject(key, f"{own} is goat-mcp's own; an upstream's is not read by it", ReasonCode.NAME_COLLISION)
        elif key in entries:
            reject(key, LISTED_TWICE, ReasonCode.LISTED_TWICE)
        elif kind == "prompts" and (first := prompts.setdefault(key.casefold(), key)) != key:
            reject(key, DIFFERS_IN_CASE.format(first=first[:_NAME_CHARS]), ReasonCode.NAME_COLLISION)
        else:
            entries[key] = entry
            originals.append(cast("dict[str, Any]", raw))
    return ValidResources(tuple(entries.values()), tuple(rejected), tuple(originals))


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


def _item_problem(kind: Kind, entry: Mapping[str, Any]) -> str:
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
