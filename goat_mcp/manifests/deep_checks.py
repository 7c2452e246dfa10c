"""Problems of declared tools that only `manifest check` looks for: schemas, examples, and entries that cannot be run.

Schemas are checked with the validation library, which takes a tenth of a second to load. Handlers are loaded in
a process of their own as for a call, and programs are looked for. Nothing is called.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

from goat_mcp.core.errors import ToolError
from goat_mcp.manifests.command_runner import start_problem
from goat_mcp.manifests.entry import CommandEntry, HandlersEntry, Language, is_below
from goat_mcp.manifests.handler_worker import START_S
from goat_mcp.manifests.tool_document import ToolDocument
from goat_mcp.manifests.worker_command import INSTALL_NODE, NO_TYPESCRIPT, worker_command, worker_source
from goat_mcp.manifests.yaml_document import ManifestProblem, ValuePath
from goat_mcp.processes.environment import CommandEnvironment
from goat_mcp.processes.process_guard import ProcessGuard
from goat_mcp.processes.program import run_program
from goat_mcp.processes.program_lookup import program_on

_MAX_SHOWN = 200

_FRAMES: Mapping[Language, re.Pattern[str]] = {
    "python": re.compile(r'File "(?P<file>[^"\n]+)", line (?P<line>\d+)'),
    "node": re.compile(r"(?P<file>/[^\n:()]+):(?P<line>\d+)"),
}


def schema_problems(tool: ToolDocument) -> Iterator[ManifestProblem]:
    """Schemas that are none, and examples that their own schema refuses."""
    spec = cast("dict[str, Any]", tool.document.tree["spec"])
    yield from _schema(tool, spec, ("spec",), "config")
    for index, export in enumerate(cast("list[dict[str, Any]]", spec["exports"])):
        base: ValuePath = ("spec", "exports", index)
        problem_found = [problem for key in ("parameters", "output") for problem in _schema(tool, export, base, key)]
        yield from problem_found
        if not problem_found:
            yield from _examples(tool, export, base)


def _schema(tool: ToolDocument, around: Mapping[str, Any], base: ValuePath, key: str) -> Iterator[ManifestProblem]:
    schema: Any = around.get(key)
    if not isinstance(schema, dict):
        return
    broken = [*_meta_schema_problems(tool, schema, base, key), *_pattern_problems(tool, schema, base, key)]
    yield from broken
    if not broken and (why := _reason_unusable(cast("dict[str, Any]", schema), key)):
        yield tool.document.problem((*base, key), f"no call could be checked: {why}", "write it without that")


def _meta_schema_problems(tool: ToolDocument, schema: Any, base: ValuePath, key: str) -> Iterator[ManifestProblem]:
    from jsonschema import Draft202012Validator

    checker: Any = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    for error in checker.iter_errors(schema):
        path = tuple(error.absolute_path)
        where = ".".join(map(str, (key, *path)))
        yield tool.document.problem(
            (*base, key, *path), f"{where} is no JSON Schema: {error.message:.{_MAX_SHOWN}}", "see json-schema.org"
        )


def _pattern_problems(tool: ToolDocument, schema: Any, base: ValuePath, key: str) -> Iterator[ManifestProblem]:
    for path, pattern in _patterns(schema):
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as problem_found:
            what = f"{'.'.join(map(str, (key, *path)))}: {pattern!r:.{_MAX_SHOWN}} is no pattern: {problem_found}"
            yield tool.document.problem((*base, key, *path), what, "fix it; a bracket that is meant is written \\(")


def _reason_unusable(schema: dict[str, Any], key: str) -> str:
    """Why calls would fail at a schema that is one, however good their arguments are."""
    from goat_mcp.catalog.schemas.bounded_schema import BoundedSchema, Uncheckable

    names: Any = schema.get("properties")
    try:
        # A reference is followed where there is a value for it.
        list(BoundedSchema(schema, key).errors(dict.fromkeys(cast("dict[str, Any]", names or {}))))
    except Uncheckable as why:
        return str(why)
    return ""


def _patterns(schema: Any, path: ValuePath = ()) -> Iterator[tuple[ValuePath, str]]:
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


def _examples(tool: ToolDocument, export: Mapping[str, Any], base: ValuePath) -> Iterator[ManifestProblem]:
    from jsonschema import Draft202012Validator

    schema = tool.exports[int(base[-1])].spec.input_schema
    checker: Any = Draft202012Validator(dict(schema))
    for index, example in enumerate(cast("list[dict[str, Any]]", export.get("examples") or [])):
        for error in checker.iter_errors(example.get("input")):
            at: ValuePath = (*base, "examples", index, "input", *error.absolute_path)
            yield tool.document.problem(
                at,
                f"the example is refused by its own parameters: {error.message:.{_MAX_SHOWN}}",
                _quoted(tool, at, error) or "fix the example, or the parameters",
                level="warning",
            )


def _quoted(tool: ToolDocument, at: ValuePath, error: Any) -> str:
    """The remedy where a text was meant, and YAML took it for something else."""
    word, demand = tool.document.literals.get(at), error.validator_value
    if error.validator in ("type", "enum"):
        wanted = "string" if error.validator == "type" else word
        is_text = wanted == demand or (isinstance(demand, list) and wanted in demand)
        return tool.document.quoting_hint(at) if is_text else ""
    return ""


async def program_problems(
    tool: ToolDocument, *, guard: ProcessGuard, environment: CommandEnvironment, compiled: Path
) -> list[ManifestProblem]:
    """`compiled` is where Python keeps what it makes of the files."""
    built = await environment.build()
    if isinstance(tool.entry, CommandEntry):
        return _command(tool, tool.entry, built["PATH"])
    if isinstance(tool.entry, HandlersEntry):
        return await _handlers(tool, tool.entry, guard, built, compiled)
    return []


def _command(tool: ToolDocument, entry: CommandEntry, path: str) -> list[ManifestProblem]:
    name = entry.arguments[0]
    base = ("spec", "entry", "command")
    if "/" not in name:
        if program_on(path, name):
            return []
        return [tool.document.problem(base, f"the program {name!r:.80} is not on the PATH", "install it")]
    file = tool.document.folder / name
    if not file.is_file():
        return [tool.document.problem(base, f"{name} is not there", "create it, or fix the path")]
    found: list[ManifestProblem] = []
    if not os.access(file, os.X_OK):
        found.append(tool.document.problem(base, f"{name} is not executable", f"chmod +x {shlex.quote(str(file))}"))
    try:
        problem_found = start_problem(file)
    except OSError as problem:
        problem_found = f"{name} cannot be read: {problem.strerror}", "fix its rights"
    return [*found, tool.document.problem(base, *problem_found)] if problem_found is not None else found


async def _handlers(
    tool: ToolDocument, entry: HandlersEntry, guard: ProcessGuard, environment: Mapping[str, str], compiled: Path
) -> list[ManifestProblem]:
    try:
        command = worker_command(entry, environment, compiled)
    except ToolError as missing:
        return [tool.document.problem(("spec", "entry"), missing.message, INSTALL_NODE)]
    output = bytearray()
    end = await run_program(
        command,
        data=json.dumps({"config": {}, "source": worker_source(entry, tool.name)}).encode() + b"\n",
        directory=tool.document.folder,
        environment=environment,
        guard=guard,
        on_output=output.extend,
        timeout_s=START_S,
    )
    answer = _answer(output)
    if "ready" in answer:
        return [*_missing(tool, answer["ready"]), *_wrong_signatures(tool, answer.get("wrong_signatures") or {})]
    if end.timed_out:
        return [tool.document.problem(("spec", "entry"), f"{entry.origin} was not loaded within {START_S:g} s", _LATER)]
    if "broken" not in answer:
        said = (end.stderr_tail.splitlines() or ["it said nothing"])[-1]
        return [tool.document.problem(("spec", "entry"), f"{entry.origin} ended while it was loaded: {said}", _LATER)]
    return [_broken(tool, entry, answer["broken"], end.stderr_tail)]


_LATER = "do what takes time, or ends the process, inside the handlers"


def _answer(output: bytearray) -> dict[str, Any]:
    try:
        value: Any = json.loads(output.split(b"\n", 1)[0])
    except ValueError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _missing(tool: ToolDocument, handlers: list[str]) -> list[ManifestProblem]:
    known = ", ".join(handlers) or "none"
    return [
        tool.document.problem(
            ("spec", "exports", index, "name"),
            f"`handlers` has no {export.name!r}; it has {known}",
            "add the function, or fix the name",
        )
        for index, export in enumerate(tool.exports)
        if export.name not in handlers
    ]


def _wrong_signatures(tool: ToolDocument, signatures: Mapping[str, str]) -> list[ManifestProblem]:
    return [
        tool.document.problem(
            ("spec", "exports", index, "name"),
            f"the handler {export.name!r} takes {signatures[export.name]}, and is called with ctx and the input",
            "give it the parameters (ctx, input)",
        )
        for index, export in enumerate(tool.exports)
        if export.name in signatures
    ]


def _broken(tool: ToolDocument, entry: HandlersEntry, error: Mapping[str, Any], complaint: str) -> ManifestProblem:
    """Where the traceback ends in a file of the tool's, that is the place; else the member `entry`."""
    what = f"cannot be loaded: {error.get('name')}: {error.get('message')}"
    name = entry.file.name if entry.file is not None else entry.module
    if error.get("name") == NO_TYPESCRIPT:
        return tool.document.problem(("spec", "entry"), f"{name} {what}", INSTALL_NODE)
    missing = _MISSING_MODULE.match(str(error.get("message")))
    install = f"install {missing['name']} in the manifest's directory (npm install), or fix the name" if missing else ""
    frames = list(_FRAMES[entry.language].finditer(complaint))
    is_python = entry.language == "python"
    # Python names the innermost frame last, Node.js first, by URLs.
    for found in reversed(frames) if is_python else frames:
        file = Path(found["file"] if is_python else unquote(found["file"]))
        if is_below(file, tool.document.folder) and file.is_file():
            return ManifestProblem(file, int(found["line"]), what, install or "fix that file")
    remedy = install or _REMEDIES.get((entry.language, str(error.get("name"))), "fix that file")
    return tool.document.problem(("spec", "entry"), f"{name} {what}", remedy)


_MISSING_MODULE = re.compile(r"Cannot find (?:package|module) '(?P<name>[^'./][^']*)'")
"""One that Node.js looks for in `node_modules`; other names are paths."""
_REMEDIES = {
    ("node", "ReferenceError"): "end it with e.g. export const handlers = { today };",
    ("python", "AttributeError"): "end it with e.g. handlers = {'today': today}",
    ("python", "ModuleNotFoundError"): "install the module for the Python that runs goat-mcp, or fix the name",
    ("python", "TypeError"): "put functions into `handlers`, not what they give back",
}
