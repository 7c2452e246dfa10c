"""From a client's arguments to a tool's input: aliases, coerced scalars, all problems in one message.

Hosts and models send `"5"` for 5, `"true"` for true and JSON as text; data (`content`, `command`, ...)
is never converted. Contract: tools.md, "Arguments".
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar, Union, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError

from goat_mcp.core.coercion import Kind, Problem, coerced, has_lone_surrogate, input_error
from goat_mcp.core.problem_words import words_of
from goat_mcp.core.suggestions import did_you_mean, nearest

ABSENT_TEXTS = frozenset({"null", "undefined"})

_SCALAR_KINDS: dict[Any, str] = {str: "text", int: "integer", float: "number", bool: "boolean"}

ModelT = TypeVar("ModelT", bound="ToolInput")


class InputPart(BaseModel):
    """Base of the objects inside an input: one question of several, one member of a team."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @classmethod
    def problems_together(cls, given: Mapping[str, Any]) -> Iterable[Problem]:
        """What is wrong with fields that are fine one by one, or that a field's type does not say.

        Called for every object, also if some of its fields are wrong or missing, so that all problems are reported
        at once; a value may be of any kind. Not a validator of the model: those run only once all fields are right.
        """
        return ()


class ToolInput(InputPart):
    """Base of every built-in input model. Fields named in `text_fields` are data and never converted."""

    model_config = ConfigDict(populate_by_name=False)

    aliases: ClassVar[Mapping[str, str]] = {}
    """Other names of fields (wire name by alias), beside the camelCase form every field has."""
    text_fields: ClassVar[frozenset[str]] = frozenset()
    """Wire names of text fields whose value is data: `"null"` is text there."""

    @classmethod
    def rewrite(cls, arguments: dict[str, Any]) -> Iterable[Problem]:
        """Turn an alias with another meaning (an end line into a limit) into canonical fields, in place.

        Runs after aliases are resolved and before values are converted. Returns what is wrong with the aliases.
        """
        return ()


def objects_of(given: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The items of a list that is a field's value; an empty object for an item that is none."""
    items: Any = given.get(name)
    listed = cast("list[Any]", items) if isinstance(items, list) else []
    return [cast("dict[str, Any]", item) if isinstance(item, dict) else {} for item in listed]


def canonical_arguments(input: object, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """What policy, hooks and the record see of a call: the validated input under its fields' own names, so that an
    alias hides nothing; the arguments themselves if a tool's input is neither a model nor an object."""
    if isinstance(input, ToolInput):
        return input.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return cast("Mapping[str, Any]", input) if isinstance(input, Mapping) else arguments


def copied_json(value: Any) -> Any:
    """The same JSON value in objects and lists of its own: who holds the old ones changes nothing any more."""
    if isinstance(value, str):  # as most are; whether it is a mapping takes longer to tell
        return value
    if isinstance(value, Mapping):
        return {key: copied_json(one) for key, one in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [copied_json(one) for one in cast("Sequence[Any]", value)]
    return value


@dataclass(frozen=True)
class _Field:
    name: str
    kind: Kind
    optional: bool
    is_data: bool


class ArgumentReader(Generic[ModelT]):
    """Reads one tool's arguments; everything that can be known of the model is worked out once."""

    def __init__(self, model: type[ModelT]) -> None:
        self._model = model
        self._fields = {
            wire_name: _Field(wire_name, _kind(info.annotation), not info.is_required(), wire_name in model.text_fields)
            for wire_name, info in ((info.alias or name, info) for name, info in model.model_fields.items())
        }
        self._alias_of = {**_camel_case_aliases(self._fields), **model.aliases}
        self._parts = _parts(model)

    def schema(self) -> dict[str, Any]:
        """The model as a compact flat JSON Schema."""
        return compact_schema(self._model.model_json_schema(by_alias=True))

    def read(self, arguments: Mapping[str, Any]) -> ModelT:
        """The validated input. Raises `ToolError(INPUT)` with a line for each problem."""
        problems: list[Problem] = [
            (name, "holds half a surrogate pair, which is no text")
            for name, value in arguments.items()
            if has_lone_surrogate(value)
        ]
        canonical = self._canonical(arguments, problems)
        problems.extend(self._model.rewrite(canonical))
        ready = {
            name: self._coerced(self._fields[name], value)
            for name, value in canonical.items()
            if name in self._fields and not self._absent(self._fields[name], value)
        }
        try:
            model = self._model.model_validate(ready)
        except ValidationError as invalid:
            problems.extend(self._described(invalid, ready))
            model = None
        problems.extend(_together(self._model, self._parts, ready))
        if model is None or problems:
            raise input_error(tuple(dict.fromkeys(problems)))
        return model

    def _described(self, invalid: ValidationError, ready: Mapping[str, Any]) -> Iterator[Problem]:
        cut: dict[str, Any] = {}
        for error in invalid.errors(include_url=False):
            yield self._describe(error)
            if error["type"] == "too_long" and len(error["loc"]) == 1:
                name = str(error["loc"][0])
                cut[name] = ready[name][: error["ctx"]["max_length"]]  # pyright: ignore[reportTypedDictNotRequiredAccess]
        if cut:  # the items of a list that is too long were not looked at
            try:
                self._model.model_validate({**ready, **cut})
            except ValidationError as items:
                yield from self._described(items, {**ready, **cut})

    def _canonical(self, arguments: Mapping[str, Any], problems: list[Problem]) -> dict[str, Any]:
        canonical: dict[str, Any] = {}
        for given, value in arguments.items():
            name = given if given in self._fields else self._alias_of.get(given, given)
            if name not in self._fields and name not in self._alias_of.values():
                if self._model.model_config.get("extra") == "ignore":
                    continue
                problems.append((given, self._unknown(given)))
            elif name in canonical and canonical[name] != value:
                problems.append((given, f"is another name of {name}, which came with a different value; send one"))
            else:
                canonical[name] = value
        return canonical

    def _unknown(self, given: str) -> str:
        if near := nearest(given, [*self._fields, *self._alias_of], most=1):
            return f"unknown field; did you mean {self._alias_of.get(near[0], near[0])}?"
        return "unknown field; known are " + ", ".join(self._fields)

    def _describe(self, error: Any) -> Problem:
        where = ".".join(str(part) for part in error["loc"])
        if error["type"] == "extra_forbidden":
            return where, self._unknown_below(error["loc"])
        return where, words_of(error)

    def _unknown_below(self, where: Sequence[int | str]) -> str:
        """What to say of an unknown field inside a list or an object."""
        model: type[BaseModel] | None = self._model
        for name in where[:-1]:
            fields = {} if model is None else {info.alias or own: info for own, info in model.model_fields.items()}
            if name in fields:
                model = _inner_model(fields[str(name)].annotation)
        known: list[str] = [] if model is None else [*model.model_json_schema().get("properties", {})]
        return "unknown field; " + (did_you_mean(str(where[-1]), known, most=1) or f"known are {', '.join(known)}")

    def _absent(self, field: _Field, value: Any) -> bool:
        if not field.optional:
            return False
        if value is None:
            return True
        return field.kind not in ("text", "any") and isinstance(value, str) and value.strip() in ABSENT_TEXTS

    def _coerced(self, field: _Field, value: Any) -> Any:
        return value if field.is_data else coerced(field.kind, value)


def _kind(annotation: Any) -> Any:
    """The one kind of value a field wants, read off its type annotation."""
    origin = get_origin(annotation)
    if origin is Union or isinstance(annotation, types.UnionType):
        kinds = {_kind(part) for part in get_args(annotation) if part is not type(None)}
        return kinds.pop() if len(kinds) == 1 else "any"
    if origin is Literal:
        return "choice"
    if origin in (list, tuple):
        return "list"
    if origin is dict or (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return "object"
    return _SCALAR_KINDS.get(cast("Any", annotation), "any")


def _inner_model(annotation: Any) -> type[BaseModel] | None:
    """The model of a list's items, or of an object, somewhere in a type annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := _inner_model(part)) is not None), None)


_Parts = tuple[tuple[str, type[InputPart], Any], ...]
"""The objects inside a model: wire name of the field, their model, and the parts of that."""


def _parts(model: type[BaseModel]) -> _Parts:
    inner = ((info.alias or name, _inner_model(info.annotation)) for name, info in model.model_fields.items())
    return tuple((name, one, _parts(one)) for name, one in inner if one is not None and issubclass(one, InputPart))


def _together(model: type[InputPart], parts: _Parts, given: Mapping[str, Any], above: str = "") -> Iterator[Problem]:
    """`problems_together` of the object and of those inside it."""
    for where, what in model.problems_together(given):
        yield f"{above}{where}".removesuffix("."), what
    for name, inner, below in parts:
        for index, item in enumerate(objects_of(given, name)):
            if item:
                yield from _together(inner, below, item, f"{above}{name}.{index}.")


def _camel_case_aliases(fields: Mapping[str, _Field]) -> dict[str, str]:
    aliases: dict[str, str] = {}
    for name in fields:
        head, *rest = name.split("_")
        if rest and head:
            aliases[head + "".join(part.capitalize() for part in rest)] = name
    return aliases


def compact_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Drop what costs tokens and tells a model nothing: titles, `null` arms, `default: null`; inline `$defs`.

    A tool's schema stays a flat object: no `$ref`, and `anyOf` only below a property that takes several types.
    """
    definitions: Mapping[str, Any] = schema.get("$defs", {})
    return cast("dict[str, Any]", _compact(schema, definitions))


def _compact(node: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_compact(item, definitions) for item in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    given = cast("dict[str, Any]", node)
    if "$ref" in given:
        rest = {key: value for key, value in given.items() if key != "$ref"}
        target = definitions[given["$ref"].rsplit("/", 1)[1]]
        # A class's docstring is for readers of the code; that inner objects are closed, an error says when it matters.
        inner = {key: value for key, value in target.items() if key not in ("description", "additionalProperties")}
        return _compact({**inner, **rest}, definitions)
    kept: dict[str, Any] = {}
    for key, value in given.items():
        if key == "properties":
            kept[key] = {name: _compact(child, definitions) for name, child in value.items()}
        elif key == "anyOf":
            arms = [arm for arm in value if arm != {"type": "null"}]
            if len(arms) == 1:
                kept.update(_compact(arms[0], definitions))
            elif all(set(arm) == {"type"} for arm in arms):
                kept["type"] = [arm["type"] for arm in arms]
            else:
                kept[key] = _compact(arms, definitions)
        elif key == "additionalProperties" and value is True:
            continue  # any object is what `object` says already
        elif key not in ("title", "$defs") and not (key == "default" and value is None):
            kept[key] = _compact(value, definitions)
    return kept
