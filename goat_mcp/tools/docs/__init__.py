"""A tool's documentation: a short text, a long one, and examples; as a Markdown page and as data.

Source: goa, the `Documentable` interface.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

from goat_mcp.core.names import SEPARATOR
from goat_mcp.core.spec import Schema, ToolExample, ToolSpec

_FOLDER = Path(__file__).parent
OUTPUTS = _FOLDER / "example_outputs.json"
"""What the examples of the built-in tools gave back when they were run."""
_SENTENCE = re.compile(r"(.+?(?<!e\.g)(?<!i\.e)[.!?])(?=\s|\Z)", re.DOTALL)
_HINTS = {
    "readOnlyHint": "only reads",
    "destructiveHint": "may destroy",
    "idempotentHint": "repeating changes nothing more",
    "openWorldHint": "reaches beyond the workspace",
}


@dataclass(frozen=True)
class ToolPage:
    """What there is to say about one tool. `long` is empty if nobody has written one. `off`: why it cannot be called,
    and what turns it on."""

    spec: ToolSpec
    short: str
    long: str
    off: str = ""
    outputs: Sequence[str] = ()
    """What the examples give back, if they do not say it themselves."""

    @property
    def examples(self) -> tuple[ToolExample, ...]:
        if len(self.outputs) != len(self.spec.examples):
            return self.spec.examples
        pairs = zip(self.spec.examples, self.outputs, strict=True)
        return tuple(replace(example, output=example.output or output) for example, output in pairs)

    def data(self) -> dict[str, Any]:
        """The page as one JSON object."""
        spec = self.spec
        return {
            "name": spec.name,
            "title": spec.title,
            "short": self.short,
            "long": self.long,
            "description": spec.description,
            "toolset": spec.toolset,
            "off": self.off,
            "effects": list(spec.effects),
            "sideEffect": spec.side_effect.value,
            "risk": spec.risk.name.lower(),
            "hints": spec.hints.wire(),
            "parameters": spec.input_schema,
            "examples": [_example_data(example) for example in self.examples],
        }

    def markdown(self) -> str:
        """The page; ends with a line end."""
        parts = [f"# {self.spec.name}", self.short]
        if self.off:
            parts.append(f"**Off.** {self.off}")
        parts += [_facts(self.spec), "## Input", _input_table(self.spec.input_schema)]
        if self.long:
            parts += ["## What it does", self.long]
        parts += ["## What a model reads", _quoted(self.spec.description)]
        if self.examples:
            parts += ["## Examples", *(_example(example) for example in self.examples)]
        return "\n\n".join(parts) + "\n"


def document(spec: ToolSpec, off: str = "", outputs: Mapping[str, Sequence[str]] | None = None) -> ToolPage:
    """The documentation of any tool, ours or somebody else's. `outputs` are those of our examples, by tool; the ones
    that were recorded, unless others are given."""
    is_ours = spec.rule_name == spec.name or _is_goas(spec)
    shown = (_recorded_outputs() if outputs is None else outputs).get(spec.name, ()) if is_ours else ()
    return ToolPage(spec, short_doc(spec), spec.long_doc or _our_long_doc(spec), off, shown)


@cache
def _recorded_outputs() -> Mapping[str, Sequence[str]]:
    return json.loads(OUTPUTS.read_text(encoding="utf-8"))


def _is_goas(spec: ToolSpec) -> bool:
    """Whether it is one of goa's names for a tool of ours."""
    return spec.toolset == "goa" and SEPARATOR not in spec.name


def _our_long_doc(spec: ToolSpec) -> str:
    if spec.rule_name == spec.name:
        return long_doc(spec.name)
    if not _is_goas(spec):
        return ""
    of_goa = f"A call of `{spec.name}` is a call of `{spec.rule_name}`, with goa's fields and defaults. Of that tool:"
    return f"{of_goa}\n\n{long_doc(spec.rule_name)}"


def short_doc(spec: ToolSpec) -> str:
    """The first sentence of the description, on one line."""
    first = spec.description.strip().split("\n\n")[0]
    text = " ".join(first.split())
    found = _SENTENCE.match(text)
    return found.group(1) if found else text


def long_doc(name: str) -> str:
    """The hand-written part; empty if there is none."""
    file = _FOLDER / f"{name}.md"
    # A name of an upstream's tool never becomes a path.
    return file.read_text(encoding="utf-8").strip() if re.fullmatch(r"[A-Za-z_]+", name) and file.is_file() else ""


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())


def _facts(spec: ToolSpec) -> str:
    hints = [words for hint, words in _HINTS.items() if spec.hints.wire()[hint]]
    return "\n".join(
        (
            "| effects | toolset | side effect | risk | hints |",
            "| --- | --- | --- | --- | --- |",
            f"| {', '.join(spec.effects)} | {spec.toolset} | {spec.side_effect.value} | {spec.risk.name.lower()} "
            f"| {', '.join(hints) or '-'} |",
        )
    )


def _input_table(schema: Schema) -> str:
    fields: Mapping[str, Schema] = schema.get("properties", {})
    if not fields:
        return "None."
    required = set(schema.get("required", ()))
    rows = ["| field | type | default | meaning |", "| --- | --- | --- | --- |"]
    rows += [_field_row(name, field, is_required=name in required) for name, field in fields.items()]
    return "\n".join(rows)


def _field_row(name: str, field: Schema, *, is_required: bool) -> str:
    default = "required" if is_required else json.dumps(field["default"]) if "default" in field else ""
    cells = (f"`{name}`", type_in_words(field), default, str(field.get("description", "")))
    return f"| {' | '.join(' '.join(cell.split()).replace('|', chr(92) + '|') for cell in cells)} |"


def type_in_words(schema: Schema) -> str:
    """`string`, `integer > 0`, `a, b or c`, `list of object {x, y}`."""
    if "enum" in schema:
        return _either([str(value) for value in schema["enum"]])
    if "anyOf" in schema:
        return _either([type_in_words(arm) for arm in schema["anyOf"]])
    kind: Any = schema.get("type", "any")
    if isinstance(kind, list):
        return _either([str(part) for part in cast("list[Any]", kind)])
    if kind == "array":
        return f"list of {type_in_words(schema.get('items', {}))}{_bounds(schema, 'minItems', 'maxItems')}"
    if kind == "object" and "properties" in schema:
        return "object {" + ", ".join(schema["properties"]) + "}"
    if kind == "string":
        return f"string{_bounds(schema, 'minLength', 'maxLength')}"
    return f"{kind}{_bounds(schema, 'minimum', 'maximum')}{_beyond(schema)}"


def _bounds(schema: Schema, lowest: str, highest: str) -> str:
    if lowest in schema and highest in schema:
        return f", {schema[lowest]} to {schema[highest]}"
    if lowest in schema:
        return f", at least {schema[lowest]}"
    return f", at most {schema[highest]}" if highest in schema else ""


def _beyond(schema: Schema) -> str:
    return f" > {schema['exclusiveMinimum']}" if "exclusiveMinimum" in schema else ""


def _either(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _example_data(example: ToolExample) -> dict[str, Any]:
    return {"description": example.description, "input": dict(example.input), "output": example.output}


def _example(example: ToolExample) -> str:
    shown = json.dumps(dict(example.input), indent=2, ensure_ascii=False)
    output = f"\n\n```text\n{example.output}\n```" if example.output else ""
    return f"{example.description}:\n\n```json\n{shown}\n```{output}"
