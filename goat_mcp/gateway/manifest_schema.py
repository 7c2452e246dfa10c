"""The JSON Schema of manifests, for editors: made from the tables by which they are read, so that it says the same.

It is looser than the reader where a schema cannot say it (files that are to be there, what a schema describes).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from goat_mcp.catalog.filter import ProfileOptions
from goat_mcp.core.errors import ERROR_MESSAGE_LIMIT
from goat_mcp.manifests.agent_document import AGENT_KEYS, PROMPT_KEYS, WITHOUT_EFFECT
from goat_mcp.manifests.entry import ENTRY_KEYS, HTTP_KEYS, METHODS, MODULE_SHAPE
from goat_mcp.manifests.kinds import (
    API_VERSIONS,
    KINDS,
    METADATA_KEYS,
    NAME_SHAPE,
    ROOT_KEYS,
)
from goat_mcp.manifests.references import PACKAGES, REFERENCE_KEYS
from goat_mcp.manifests.tool_document import (
    ACCESS_KEYS,
    ERROR_MESSAGE_LIMITS,
    EXAMPLE_KEYS,
    EXPORT_KEYS,
    EXPORT_SHAPE,
    HINT_KEYS,
    MAX_DESCRIPTION_CHARS,
    MAX_TIMEOUT_MS,
    RESOURCE_SHAPE,
    RISKS,
    SIDE_EFFECTS,
    TOOL_KEYS,
)
from goat_mcp.upstreams.config.entry import SERVER_REQUESTS
from goat_mcp.upstreams.config.entry_parser import KNOWN_KEYS

Schema = Mapping[str, Any]
_TEXT: Schema = {"type": "string"}
_FLAG: Schema = {"type": "boolean"}
_TEXTS: Schema = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}
_NAMES: Schema = {"type": "array", "items": _TEXT}
_TEXT_MAP: Schema = {"type": "object", "additionalProperties": {"type": ["string", "number"]}}
_SECONDS: Schema = {"type": "number", "exclusiveMinimum": 0, "maximum": 86_400}
_TIMEOUT: Schema = {
    "type": "integer",
    "minimum": 1,
    "maximum": MAX_TIMEOUT_MS,
    "description": "How long a call may take, in milliseconds.",
}


def manifest_schema() -> dict[str, Any]:
    """Draft 2020-12, self-contained."""
    profile = ProfileOptions.model_json_schema()
    specs = {
        "Tool": _tool(),
        "Upstream": _upstream(),
        "Toolset": _object(("tools",), {"tools": _tools(least=1)}, required=["tools"]),
        "Profile": profile,
        "Agent": _agent(),
    }
    shared: dict[str, Any] = profile.pop("$defs", {})
    root = _object(
        ROOT_KEYS,
        {
            "apiVersion": {"enum": list(API_VERSIONS)},
            "kind": {"enum": list(KINDS), "description": "What the document declares."},
            "metadata": _metadata(),
            "spec": {"type": "object"},
        },
        required=ROOT_KEYS,
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A manifest of goat-mcp",
        **root,
        "allOf": [_of_kind(kind, specs[kind]) for kind in KINDS],
        "$defs": shared,
    }


def _of_kind(kind: str, spec: Schema) -> Schema:
    properties: dict[str, Any] = {"spec": spec}
    if kind == "Tool":
        properties["metadata"] = {
            "properties": {"name": {"pattern": _pattern(RESOURCE_SHAPE.pattern), "not": {"const": "mcp"}}}
        }
    return {"if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]}, "then": {"properties": properties}}


def _object(keys: Collection[str], properties: Schema, *, required: Collection[str] = ()) -> dict[str, Any]:
    """An object with just these keys. Raises `ValueError` where a key is not described, or one is that is not read."""
    if different := set(keys) ^ properties.keys():
        raise ValueError(f"the schema and the reader differ in {', '.join(sorted(different))}")
    return {
        "type": "object",
        "properties": {key: properties[key] for key in keys},
        **({"required": list(required)} if required else {}),
        "additionalProperties": False,
    }


def _pattern(python: str) -> str:
    """The same shape as editors' regular expressions have it."""
    return f"^(?:{python.removesuffix(chr(92) + 'Z')})$"


def _metadata() -> Schema:
    return _object(
        METADATA_KEYS,
        {
            "name": {
                "type": "string",
                "pattern": _pattern(NAME_SHAPE.pattern),
                "description": "Each kind's own, once.",
            },
            "description": {"description": "For people; no model reads it."},
            "labels": {},
            "annotations": {},
        },
        required=["name"],
    )


def _tool() -> Schema:
    least, most = ERROR_MESSAGE_LIMITS
    return _object(
        TOOL_KEYS,
        {
            "entry": _entry(),
            "exports": {"type": "array", "minItems": 1, "items": _export()},
            "errorMessageLimit": {
                "type": "integer",
                "minimum": least,
                "maximum": most,
                "default": ERROR_MESSAGE_LIMIT,
                "description": "How many characters of an error's message a model is shown.",
            },
            "timeoutMs": _TIMEOUT,
            "config": _described("The JSON Schema of what settings may say under `tools.NAME`."),
        },
        required=["entry", "exports"],
    )


def _entry() -> Schema:
    module = {"type": "string", "pattern": _pattern(MODULE_SHAPE.pattern)}
    parts: dict[str, Any] = {
        "python": {"type": "string", "description": "A Python file beside the manifest, with a map `handlers`."},
        "module": {**module, "description": "An installed Python module with a map `handlers`."},
        "command": {
            **_TEXTS,
            "description": "A program and its arguments; no shell reads it. JSON on its input, JSON on its output. "
            "{export} is the export's name.",
        },
        "http": _object(
            HTTP_KEYS,
            {
                "url": {"type": "string", "pattern": "^https?://", "description": "{export} is the export's name."},
                "method": {"enum": list(METHODS), "default": "POST"},
                "headers": {**_TEXT_MAP, "description": "Values may be references, e.g. ${env:TOKEN}."},
            },
            required=["url"],
        ),
        "env": {**_TEXT_MAP, "description": "Variables of the program; values may be references, e.g. ${env:TOKEN}."},
    }
    whole = _object((*ENTRY_KEYS, "env"), parts)
    one_of_them = {**whole, "oneOf": [{"required": [key]} for key in ENTRY_KEYS]}
    text = {
        "type": "string",
        "description": "A Python, JavaScript or TypeScript file (./tool.py), an installed Python module, or a URL.",
    }
    return {"anyOf": [text, one_of_them], "description": "What runs when the tool is called."}


def _export() -> Schema:
    hint: Schema = {**dict.fromkeys(HINT_KEYS, _FLAG)}
    return _object(
        EXPORT_KEYS,
        {
            "name": {
                "type": "string",
                "pattern": _pattern(EXPORT_SHAPE.pattern),
                "description": "The tool is called RESOURCE__NAME.",
            },
            "title": {"type": "string", "description": "For people."},
            "description": {
                "type": "string",
                "minLength": 1,
                "maxLength": MAX_DESCRIPTION_CHARS,
                "description": "What a model reads: what it must not be used for, what it does and gives back.",
            },
            "parameters": _described("The JSON Schema of the input, an object."),
            "sideEffect": {
                "enum": list(SIDE_EFFECTS),
                "description": "The worst a call can do; it decides who is asked.",
            },
            "risk": {"enum": list(RISKS), "description": "Where it is not what the side effect implies."},
            "hints": _object(HINT_KEYS, hint),
            "examples": {
                "type": "array",
                "minItems": 1,
                "items": _object(
                    EXAMPLE_KEYS, {"description": _TEXT, "input": {"type": "object"}, "output": {}}, required=["input"]
                ),
            },
            "docs": {"type": "string", "description": "A longer text for people, in Markdown; models do not see it."},
            "readOnlyWhen": {
                "type": "object",
                "additionalProperties": _TEXTS,
                "description": "Texts of parameters with which a call changes nothing; * stands for any part of one. "
                "Such calls run unasked, and while the user has asked for a plan only.",
            },
            "output": _described("The JSON Schema of what is given back, an object; it is checked."),
            "timeoutMs": _TIMEOUT,
            "access": _object(
                ACCESS_KEYS,
                {
                    "reads": {**_TEXTS, "description": "Parameters that name files which a call reads."},
                    "writes": {**_TEXTS, "description": "Parameters that name files which a call changes."},
                    "argv": {**_TEXTS, "description": "Parameters that are words of a command which is run."},
                    "stdin": {**_TEXTS, "description": "Parameters that this command reads."},
                    "script": {**_TEXTS, "description": "Parameters that are a script's name and its arguments."},
                    "anotherMachine": {
                        **_TEXTS,
                        "description": "The parameter that is shell text for another machine.",
                    },
                    "category": {"type": "string", "description": "Calls of one category take turns."},
                },
            ),
        },
        required=["name", "description"],
    )


def _described(text: str) -> Schema:
    return {"type": "object", "description": text}


def _upstream() -> Schema:
    keys = {key: _UPSTREAM_KEYS.get(key, {}) for key in sorted(KNOWN_KEYS)}
    inner = _object(sorted(KNOWN_KEYS - {"transport"}), {key: keys[key] for key in keys if key != "transport"})
    transport = {"anyOf": [inner, _TEXT], "description": "The members that say how to reach it; or right in `spec`."}
    return _object(sorted(KNOWN_KEYS), {**keys, "transport": transport})


_UPSTREAM_KEYS: Schema = {
    "command": {"type": "string", "description": "The program to start: a name on the PATH, or an absolute path."},
    "args": _NAMES,
    "env": _TEXT_MAP,
    "cwd": _TEXT,
    "url": {"type": "string", "pattern": "^https?://"},
    "headers": _TEXT_MAP,
    "naming": {"type": "string", "description": "qualified, flat or an alias."},
    "timeout_s": _SECONDS,
    "concurrency": {"type": "integer", "minimum": 1, "maximum": 1000},
    "start": {"enum": ["lazy", "eager"]},
    "trust_annotations": _FLAG,
    "sanitize": _FLAG,
    "disabled": _FLAG,
    "input_check": {"enum": ["off", "strict"]},
    "output_check": {"enum": ["off", "warn", "strict"]},
    "enabled_tools": _NAMES,
    "disabled_tools": _NAMES,
    "pin": {"enum": ["tofu", "strict", "off"]},
    "allow": {"type": "array", "items": {"enum": list(SERVER_REQUESTS)}},
    "scope": {"enum": ["workspace", "session"]},
    "share": {"type": "boolean"},
}
"""What is known of their values; the others are left to the reader."""


def _tools(*, least: int) -> Schema:
    reference = _object(
        REFERENCE_KEYS,
        {"kind": {"const": "Tool"}, "name": _TEXT, "package": {"enum": list(PACKAGES)}},
        required=["name"],
    )
    wrapped = _object(("ref",), {"ref": {"anyOf": [_TEXT, reference]}}, required=["ref"])
    item = {"anyOf": [{"type": "string", "minLength": 1}, reference, wrapped]}
    return {
        "type": "array",
        "minItems": least,
        "items": item,
        "description": "Names of tools and resources, toolset:NAME, or references. One with a package means just it.",
    }


def _agent() -> Schema:
    prompts = {
        "systemPrompt": _TEXT,
        "systemRef": {"type": "string", "description": "A file beside the manifest."},
    }
    return _object(
        AGENT_KEYS,
        {
            "tools": {**_tools(least=0), "description": "What the agent may use; without it, all its starter may."},
            "prompts": _object(PROMPT_KEYS, prompts),
            **{key: {"description": "Has no effect here."} for key in WITHOUT_EFFECT},
        },
    )
