"""What is wrong with the JSON Schemas and examples of a declared tool, found with the library that checks values.

Loading it takes a tenth of a second: this is for `manifest check`; a start has `parameters`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from goat_mcp.manifests.marked_yaml import Place
from goat_mcp.manifests.problem import ManifestProblem
from goat_mcp.manifests.tool_document import ToolDocument

_MAX_SHOWN = 200


def schema_problems(tool: ToolDocument) -> Iterator[ManifestProblem]:
    """Schemas that are none, and examples that their own schema refuses."""
    spec = cast("dict[str, Any]", tool.document.tree["spec"])
    yield from _schema(tool, spec, ("spec",), "config")
    for index, export in enumerate(cast("list[dict[str, Any]]", spec["exports"])):
        place: Place = ("spec", "exports", index)
        wrong = [problem for key in ("parameters", "output") for problem in _schema(tool, export, place, key)]
        yield from wrong
        if not wrong:
            yield from _examples(tool, export, place)


def _schema(tool: ToolDocument, around: Mapping[str, Any], place: Place, key: str) -> Iterator[ManifestProblem]:
    schema: Any = around.get(key)
    if not isinstance(schema, dict):
        return
    broken = [*_no_schemas(tool, schema, place, key), *_no_patterns(tool, schema, place, key)]
    yield from broken
    if not broken and (why := _why_unusable(cast("dict[str, Any]", schema), key)):
        yield tool.document.problem((*place, key), f"no call could be checked: {why}", "write it without that")


def _no_schemas(tool: ToolDocument, schema: Any, place: Place, key: str) -> Iterator[ManifestProblem]:
    from jsonschema import Draft202012Validator

    checker: Any = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    for error in checker.iter_errors(schema):
        path = tuple(error.absolute_path)
        where = ".".join(map(str, (key, *path)))
        yield tool.document.problem(
            (*place, key, *path), f"{where} is no JSON Schema: {error.message:.{_MAX_SHOWN}}", "see json-schema.org"
        )


def _no_patterns(tool: ToolDocument, schema: Any, place: Place, key: str) -> Iterator[ManifestProblem]:
    for path, pattern in _patterns(schema):
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as wrong:
            what = f"{'.'.join(map(str, (key, *path)))}: {pattern!r:.{_MAX_SHOWN}} is no pattern: {wrong}"
            yield tool.document.problem((*place, key, *path), what, "mend it; a bracket that is meant is written \\(")


def _why_unusable(schema: dict[str, Any], key: str) -> str:
    """Why calls would fail at a schema that is one, however good their arguments are."""
    from goat_mcp.catalog.schemas.bounded_schema import BoundedSchema, Uncheckable

    names: Any = schema.get("properties")
    try:
        # A reference is followed where there is a value for it.
        list(BoundedSchema(schema, key).errors(dict.fromkeys(cast("dict[str, Any]", names or {}))))
    except Uncheckable as why:
        return str(why)
    return ""


def _patterns(schema: Any, path: Place = ()) -> Iterator[tuple[Place, str]]:
    """Those of a schema and of the schemas in it."""
    if isinstance(schema, list):
        for index, child in enumerate(cast("list[Any]", schema)):
            yield from _patterns(child, (*path, index))
    if not isinstance(schema, dict):
        return
    for name, child in cast("dict[str, Any]", schema).items():
        if name == "pattern" and isinstance(child, str):
            yield (*path, name), child
        elif name == "patternProperties" and isinstance(child, dict):
            yield from (((*path, name, key), key) for key in cast("dict[str, Any]", child))
        yield from _patterns(child, (*path, name))


def _examples(tool: ToolDocument, export: Mapping[str, Any], place: Place) -> Iterator[ManifestProblem]:
    from jsonschema import Draft202012Validator

    schema = tool.exports[int(place[-1])].spec.input_schema
    checker: Any = Draft202012Validator(dict(schema))
    for index, example in enumerate(cast("list[dict[str, Any]]", export.get("examples") or [])):
        for error in checker.iter_errors(example.get("input")):
            at: Place = (*place, "examples", index, "input", *error.absolute_path)
            yield tool.document.problem(
                at,
                f"the example is refused by its own parameters: {error.message:.{_MAX_SHOWN}}",
                _quoted(tool, at, error) or "mend the example, or the parameters",
                is_fatal=False,
            )


def _quoted(tool: ToolDocument, at: Place, error: Any) -> str:
    """The remedy where a text was meant, and YAML took it for something else."""
    word, demand = tool.document.words.get(at), error.validator_value
    if error.validator in ("type", "enum"):
        wanted = "string" if error.validator == "type" else word
        is_text = wanted == demand or (isinstance(demand, list) and wanted in demand)
        return tool.document.quoted(at) if is_text else ""
    return ""
