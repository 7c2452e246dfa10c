"""`kind: Tool`: a resource and the functions it exports. Source: Goondan, "The Tool resource schema"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from goat_mcp.catalog.builtin_contracts import builtin_names
from goat_mcp.core.errors import ERROR_MESSAGE_LIMIT
from goat_mcp.core.names import NAME_CAP, SEPARATOR
from goat_mcp.core.side_effect import HINTS_OF, RISK_OF, Hints, Risk, SideEffect
from goat_mcp.core.spec import ToolExample, Toolset, ToolSpec
from goat_mcp.manifests.entry import Entry, read_entry
from goat_mcp.manifests.fields import Fields
from goat_mcp.manifests.parameters import EMPTY, read_schema
from goat_mcp.manifests.yaml_document import YamlDocument

MAX_TIMEOUT_MS = 45_000
"""No call waits longer: hosts give up at 60 s (contract: tools.md, "Time")."""
MAX_DESCRIPTION_CHARS = 1_200
ERROR_MESSAGE_LIMITS = (100, 10_000)
USERS_TOOLSET: Toolset = "manifests"
RESOURCE_SHAPE = re.compile(r"[A-Za-z](?:[A-Za-z0-9-]|_(?!_))*(?<!_)\Z")
EXPORT_SHAPE = re.compile(r"[A-Za-z](?:[A-Za-z0-9-]|_(?!_))*\Z")
_NAME_WANTED = "letters, digits, - and single _, beginning with a letter"
_UPSTREAMS_PREFIX = "mcp"
_WHY_NOT_MCP = "mcp begins the names of upstream tools"
SIDE_EFFECTS = tuple(effect.value for effect in SideEffect)
RISKS = tuple(risk.name.lower() for risk in Risk)
TOOL_KEYS = ("entry", "exports", "errorMessageLimit", "timeoutMs", "config")
EXPORT_KEYS = (
    *("name", "title", "description", "parameters", "sideEffect", "risk", "hints", "examples", "docs"),
    *("output", "timeoutMs", "access", "readOnlyWhen"),
)
_SHIPPED_EXPORT_KEYS = (*EXPORT_KEYS, "judgedAs")
"""What only those that ship with us may say: by which built-in tool's rules they are judged."""
_NAMING_PARAMETERS = {
    "reads": "reads",
    "writes": "writes",
    "argv": "argv",
    "stdin": "stdin",
    "script": "script",
    "another_machine": "anotherMachine",
    "note": "note",
    "own_command": "ownCommand",
}
"""Members of `access` that hold names of parameters, by the field they go to."""
_MAY_ONLY_READ = (SideEffect.MUTATING, SideEffect.BLOCKING)
HINT_KEYS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_SHIPPED_ACCESS_KEYS = (*_NAMING_PARAMETERS.values(), "category")
ACCESS_KEYS = tuple(key for key in _SHIPPED_ACCESS_KEYS if key not in ("note", "ownCommand"))
EXAMPLE_KEYS = ("description", "input", "output")


@dataclass(frozen=True)
class AccessFields:
    """Which parameters name files that a call reads or writes, and the category it takes turns in.

    And what of it is a command: the parameters that make its words (`argv`) and its `stdin`, those that make a script's
    name and its arguments (`script`), or the one that holds shell text for `another_machine`. `note` are those that
    say what is done with which memory: action, name, scope and the project's directory. `own_command` is the one that
    holds a command of this server's own.
    """

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    category: str = ""
    argv: tuple[str, ...] = ()
    stdin: tuple[str, ...] = ()
    script: tuple[str, ...] = ()
    another_machine: tuple[str, ...] = ()
    note: tuple[str, ...] = ()
    own_command: tuple[str, ...] = ()


@dataclass(frozen=True)
class Export:
    """One function of a resource. `read_only_when` says by parameter with which texts a call only reads."""

    name: str
    spec: ToolSpec
    timeout_ms: int
    access: AccessFields
    output: Mapping[str, Any] | None = None
    read_only_when: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])


@dataclass(frozen=True)
class ToolDocument:
    """One resource. `config` is the JSON Schema of what a user may set under `tools.NAME`."""

    name: str
    document: YamlDocument
    entry: Entry
    exports: tuple[Export, ...]
    error_message_limit: int = ERROR_MESSAGE_LIMIT
    config: Mapping[str, Any] | None = None


def resource_name_problem(name: str) -> str:
    """Why a resource cannot be called so; empty where it can."""
    if not RESOURCE_SHAPE.fullmatch(name):
        return f"wanted are {_NAME_WANTED}"
    return _WHY_NOT_MCP if name == _UPSTREAMS_PREFIX else ""


def read_tool(document: YamlDocument, metadata: Fields, spec: Fields, *, ships_with_us: bool) -> ToolDocument | None:
    """The resource; None where it has problems, which are noted."""
    name = metadata.matching("name", RESOURCE_SHAPE, _NAME_WANTED)
    if name == _UPSTREAMS_PREFIX:
        metadata.fail(f"metadata.name: {_WHY_NOT_MCP}", "choose another name", "name")
    spec.only(*TOOL_KEYS, *(("toolset",) if ships_with_us else ()))
    toolset: Toolset = spec.tree.get("toolset", USERS_TOOLSET) if ships_with_us else USERS_TOOLSET
    entry = read_entry(spec, document.folder)
    least, most = ERROR_MESSAGE_LIMITS
    limit = spec.integer("errorMessageLimit", ERROR_MESSAGE_LIMIT, least=least, most=most, is_clamped=True)
    timeout_ms = spec.integer("timeoutMs", MAX_TIMEOUT_MS, least=1, most=MAX_TIMEOUT_MS)
    config = read_schema(spec, "config")
    exports: list[Export] = []
    for fields in spec.each("exports"):
        fields.only(*(_SHIPPED_EXPORT_KEYS if ships_with_us else EXPORT_KEYS))
        export = _export(fields, name, toolset, timeout_ms, ships_with_us=ships_with_us)
        if any(other.name == export.name for other in exports):
            fields.fail(f"the export {export.name!r} is declared twice", "rename one of them", "name")
        exports.append(export)
    if entry is None or any(problem.is_fatal for problem in spec.problems):
        return None
    return ToolDocument(name, document, entry, tuple(exports), limit, config)


def _export(fields: Fields, resource: str, toolset: Toolset, timeout_ms: int, *, ships_with_us: bool) -> Export:
    name = fields.matching("name", EXPORT_SHAPE, _NAME_WANTED)
    full_name = f"{resource}{SEPARATOR}{name}"
    if len(full_name) > NAME_CAP:
        fields.fail(f"{full_name} has {len(full_name)} characters", f"hosts take {NAME_CAP}: shorten a part", "name")
    description = fields.text("description", what="what it does and gives back, in a sentence or two")
    if len(description) > MAX_DESCRIPTION_CHARS:
        remedy = f"hosts cut it: keep it to {MAX_DESCRIPTION_CHARS}"
        fields.fail(f"the description has {len(description)} characters", remedy, "description", level="warning")
    effect = SideEffect(_side_effect(fields))
    risk = fields.choice("risk", RISKS)
    schema = read_schema(fields, "parameters")
    output = read_schema(fields, "output")
    return Export(
        name,
        ToolSpec(
            name=full_name,
            title=fields.text("title", default="") or f"{resource}: {name}".replace("_", " "),
            description=description.strip(),
            input_schema=schema if schema is not None else dict(EMPTY),
            output_schema=output,
            side_effect=effect,
            toolset=toolset,
            risk=Risk[risk.upper()] if risk else RISK_OF[effect],
            hints=_hints(fields, effect),
            examples=_examples(fields),
            long_doc=fields.text("docs", default="").strip(),
            canonical_name=fields.choice("judgedAs", builtin_names()) or "",
        ),
        fields.integer("timeoutMs", timeout_ms, least=1, most=MAX_TIMEOUT_MS),
        _access(fields, schema, ships_with_us=ships_with_us),
        output,
        _read_only_when(fields, schema, effect),
    )


def _side_effect(fields: Fields) -> str:
    if fields.tree.get("sideEffect") is None:
        remedy = f"write one of {', '.join(SIDE_EFFECTS)}; until then it counts as network"
        state, below = ("has no value", ("sideEffect",)) if "sideEffect" in fields.tree else ("is missing", ())
        fields.fail(f"sideEffect {state}, so people are asked before each call", remedy, *below, level="warning")
    return fields.choice("sideEffect", SIDE_EFFECTS) or SideEffect.NETWORK.value


def _hints(fields: Fields, effect: SideEffect) -> Hints:
    """Those that the side effect implies, where the export does not state its own (design D13)."""
    implied = HINTS_OF[effect]
    given = fields.mapping("hints")
    if given is None:
        return implied
    given.only(*HINT_KEYS)
    stated = {key: given.flag(key) for key in HINT_KEYS}
    wire = implied.wire()
    return Hints(*(wire[key] if (value := stated[key]) is None else value for key in HINT_KEYS))


def _read_only_when(
    fields: Fields, schema: Mapping[str, Any] | None, effect: SideEffect
) -> Mapping[str, tuple[str, ...]]:
    given = fields.mapping("readOnlyWhen")
    if given is None:
        return {}
    if effect not in _MAY_ONLY_READ:
        remedy = f"it is for {' and '.join(one.value for one in _MAY_ONLY_READ)}"
        fields.fail(f"readOnlyWhen says nothing of the side effect {effect.value}", remedy, "readOnlyWhen")
    found = {name: given.texts(name) for name in given.tree}
    properties = (schema or {}).get("properties", {})
    for name, texts in found.items():
        if name not in properties:
            given.fail(f"readOnlyWhen names {name!r:.60}, which is no parameter", "name a parameter", name)
        if not all(texts) or not texts:
            given.fail(f"readOnlyWhen.{name:.60} has an empty text", "write texts, * for any part of one", name)
    return found


def _examples(fields: Fields) -> tuple[ToolExample, ...]:
    if "examples" not in fields.tree:
        return ()
    found: list[ToolExample] = []
    for example in fields.each("examples"):
        example.only(*EXAMPLE_KEYS)
        given = example.mapping("input", required=True)
        output: Any = example.tree.get("output", "")
        found.append(
            ToolExample(
                example.text("description", default=""),
                given.tree if given is not None else {},
                output if isinstance(output, str) else _as_json(output),
            )
        )
    return tuple(found)


def _as_json(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)


def _access(fields: Fields, schema: Mapping[str, Any] | None, *, ships_with_us: bool) -> AccessFields:
    given = fields.mapping("access")
    if given is None:
        return AccessFields()
    given.only(*(_SHIPPED_ACCESS_KEYS if ships_with_us else ACCESS_KEYS))
    found = {member: given.texts(key) for member, key in _NAMING_PARAMETERS.items()}
    properties = (schema or {}).get("properties", {})
    for member, key in _NAMING_PARAMETERS.items():
        for name in found[member]:
            if name not in properties:
                given.fail(f"access.{key} names {name!r:.60}, which is no parameter", "name a parameter", key)
    return AccessFields(category=given.text("category", default=""), **found)
