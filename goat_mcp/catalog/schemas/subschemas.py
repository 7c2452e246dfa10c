"""A schema's parts, each as a dialect takes it. Nothing is ever made stricter: what cannot be said is left out (SCH-2).

Leaving something out where a part is negated or counted (`not`, `if`, `oneOf`, `contains`) would forbid more, so there
the keyword itself goes. The root's own combinators are `root`'s business, names of parameters `parameter_names`'.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from goat_mcp.catalog.schemas.dialects import Dialect
from goat_mcp.catalog.schemas.keywords import (
    ANNOTATIONS,
    NAMED,
    ONE,
    SEVERAL,
    TYPES,
    TYPES_OF,
    is_validating,
    is_well_formed,
)
from goat_mcp.catalog.schemas.parameter_names import is_accepted
from goat_mcp.catalog.schemas.references import Local
from goat_mcp.core.errors import cut_middle

MAX_EXPANDED = 10_000
MAX_LEVELS = 100
_MAX_REWRITES = 200
_ABOUT = ("title", "description", "default", "examples", "deprecated", "x-mcp-header")
_ARRAY_BOUNDS = ("minContains", "maxContains")

Object = dict[str, Any]


@dataclass(frozen=True)
class Rewrite:
    """`path` is a JSON pointer into the listed entry; `what` says what is other than the upstream wrote it."""

    path: str
    what: str


@dataclass
class Subschemas:
    """Rewrites the parts of one schema. `local` finds what its references name, as they were written."""

    dialect: Dialect
    local: Local
    rewrites: list[Rewrite] = field(default_factory=list[Rewrite])
    inlines: bool = False
    """References are replaced by what they name, whatever the dialect: the root was moved from under them."""
    has_refused_names: bool = False
    """What was seen has properties with names that model APIs refuse."""
    _count: int = 0

    def rewritten(self, schema: Mapping[str, Any], path: str) -> Object:
        """The schema itself if it needs nothing."""
        new, _ = self._schema(cast("Any", schema), path, 0, ())
        return cast("Object", new) if isinstance(new, dict) else {}

    def _note(self, path: str, what: str) -> None:
        if len(self.rewrites) < _MAX_REWRITES:
            self.rewrites.append(Rewrite(path, what))

    def _schema(self, node: Any, path: str, level: int, trail: tuple[str, ...]) -> tuple[Any, bool]:
        """The part as the dialect takes it, and whether it allows exactly what it did."""
        if isinstance(node, bool):
            if not self.dialect.single_types:
                return node, True
            self._note(path, f"{str(node).lower()} became an empty schema")
            return {}, node
        if not isinstance(node, dict):
            self._note(path, "what is no schema became an empty one")
            return {}, False
        self._count += 1
        if level > MAX_LEVELS or self._count > MAX_EXPANDED:
            self._note(path, "what is nested too deeply, or expands to too much, became an empty schema")
            return {}, False
        given = cast("Object", node)
        dialect = self.dialect
        is_exact = True
        new: Object | None = None
        """None while nothing had to change: most schemas are passed on as they are."""
        for key, value in given.items():
            if not is_well_formed(key, value):
                new = new or dict(given)
                is_exact &= self._repair(new, key, path)
            elif key in ONE or key in SEVERAL or key in NAMED:
                if self._is_refused(key) and key not in ("oneOf", "allOf"):
                    continue  # dropped below, with all it holds
                child, child_is_exact = self._children(key, value, f"{path}/{_escaped(key)}", level, trail)
                if child is not value:
                    new = new or dict(given)
                    new[key] = child
                if not child_is_exact:
                    new = new or dict(given)
                    is_exact = False
                    self._lossy_child(new, key, path)
        if isinstance(given.get("items"), list):
            new = self._tuple(new if new is not None else dict(given), path)
        if dialect.keywords is not None or dialect.dropped or dialect.formats is not None:
            narrowed, narrowed_is_exact = self._in_dialect(new if new is not None else given, path)
            if narrowed is not None:
                new, is_exact = narrowed, is_exact and narrowed_is_exact
        now = new if new is not None else given
        if "$ref" in now or "$dynamicRef" in now:
            pointed, pointed_is_exact = self._reference(now, given, path, level, trail)
            new = pointed if pointed is not now else new
            now, is_exact = pointed, is_exact and pointed_is_exact
        if "type" in now and _is_array(now["type"]) and "items" not in now:
            new = {**now, "items": {}}
            now = new
            self._note(path, "an array got items")
        if dialect.single_types:
            single, single_is_exact = self._single_typed(now, path)
            if single is not now:
                new, is_exact = single, is_exact and single_is_exact
        if new is None:
            return given, is_exact
        if not is_exact and (new.keys() & {"unevaluatedProperties", "unevaluatedItems"}):
            # They forbid what no other keyword spoke of; with one of those gone, that would be more than before.
            new = {key: value for key, value in new.items() if not key.startswith("unevaluated")}
        return new, is_exact

    def _children(self, key: str, value: Any, path: str, level: int, trail: tuple[str, ...]) -> tuple[Any, bool]:
        """What a keyword holds, rewritten; the same object if nothing changed."""
        is_exact = True
        if key in NAMED:
            named = cast("Object", value)
            changed: Object | None = None
            if key == "properties" and not all(map(is_accepted, named)):
                self.has_refused_names = True
            for name, child in named.items():
                new, child_is_exact = self._schema(child, f"{path}/{_escaped(name)}", level + 1, trail)
                is_exact &= child_is_exact
                if new is not child:
                    changed = changed or dict(named)
                    changed[name] = new
            return (changed if changed is not None else value), is_exact
        if isinstance(value, list):
            listed = cast("list[Any]", value)
            pairs = [self._schema(child, f"{path}/{index}", level + 1, trail) for index, child in enumerate(listed)]
            is_exact = all(exact for _, exact in pairs)
            is_same = all(new is child for (new, _), child in zip(pairs, listed, strict=True))
            return (listed if is_same else [new for new, _ in pairs]), is_exact
        if isinstance(value, bool) and key in ("additionalProperties", "unevaluatedProperties", "unevaluatedItems"):
            return value, True
        return self._schema(value, path, level + 1, trail)

    def _lossy_child(self, new: Object, key: str, path: str) -> None:
        """A part of `new[key]` allows more than it did. If that would forbid more on the whole, the keyword goes."""
        if key == "not":
            del new["not"]
            self._note(path, "not was left out")
        elif key == "if":
            for each in ("if", "then", "else"):
                new.pop(each, None)
            self._note(path, "if was left out")
        elif key == "oneOf":
            branches = new.pop("oneOf")
            if "anyOf" not in new:
                new["anyOf"] = branches
            self._note(path, "oneOf became anyOf")
        elif key == "contains" and "maxContains" in new:
            for each in ("contains", *_ARRAY_BOUNDS):
                new.pop(each, None)
            self._note(path, "contains was left out")

    def _repair(self, new: Object, key: str, path: str) -> bool:
        """A keyword whose value is not of its form. Returns whether what it meant is kept."""
        value = new.pop(key)
        if key == "required" and isinstance(value, list):
            new[key] = list(dict.fromkeys(name for name in cast("list[Any]", value) if isinstance(name, str)))
            self._note(path, "required lists each name once")
            return True
        if key in ("exclusiveMinimum", "exclusiveMaximum") and isinstance(value, bool):
            # As it was in drafts 3 and 4.
            bound = "minimum" if key == "exclusiveMinimum" else "maximum"
            if value and is_well_formed(bound, new.get(bound)) and bound in new:
                new[key] = new.pop(bound)
            self._note(path, f"{key} was said as today")
            return True
        if key == "patternProperties":
            new.pop("additionalProperties", None)
        if key == "prefixItems":
            new.pop("items", None)
        if key == "contains":
            for each in _ARRAY_BOUNDS:
                new.pop(each, None)
        if key == "properties" and new.get("additionalProperties") is not None:
            del new["additionalProperties"]
        self._note(path, f"{key} was left out: it is malformed")
        return not is_validating(key)

    def _tuple(self, new: Object, path: str) -> Object:
        """The list of items of older drafts, as today's `prefixItems`."""
        items = new.pop("items", None)
        rest = new.pop("additionalItems", {})
        if isinstance(items, list):
            new["prefixItems"] = items
            new["items"] = rest if is_well_formed("items", rest) else {}
            self._note(path, "a list of items became prefixItems")
        return new

    def _is_refused(self, key: str) -> bool:
        dialect = self.dialect
        return key in dialect.dropped or (dialect.keywords is not None and key not in dialect.keywords)

    def _in_dialect(self, given: Object, path: str) -> tuple[Object | None, bool]:
        """Without what the dialect has no place for; None where it takes all."""
        refused = [key for key in given if self._is_refused(key) and key not in ("$ref", "$dynamicRef")]
        shape = given.get("format")
        formats = self.dialect.formats
        if formats is not None and isinstance(shape, str) and shape not in formats:
            refused.append("format")
        if not refused:
            return None, True
        new = dict(given)
        is_exact = True
        lost: list[str] = []
        for key in refused:
            if key not in new:
                continue
            value = new[key]
            if key == "const":
                del new[key]
                is_exact &= "enum" not in new
                new.setdefault("enum", [value])
            elif key == "oneOf":
                del new[key]
                is_exact = False
                if "anyOf" not in new:
                    new["anyOf"] = value
            elif key == "allOf":
                del new[key]
                for each in cast("list[Any]", value):
                    if isinstance(each, dict):
                        new = _both(new, cast("Object", each))
                is_exact = False
            elif key in ("exclusiveMinimum", "exclusiveMaximum"):
                del new[key]
                new.setdefault("minimum" if key == "exclusiveMinimum" else "maximum", value)
                is_exact = False
            elif key == "format" and isinstance(new.get("description"), str | None):
                del new[key]
                new["description"] = _with(new.get("description"), f"Format: {value}.")
            else:
                del new[key]
                is_exact &= not is_validating(key) or key in ANNOTATIONS
                if key == "prefixItems":
                    new.pop("items", None)
                if key == "patternProperties":
                    new.pop("additionalProperties", None)
                if key == "if":
                    new.pop("then", None)
                    new.pop("else", None)
            lost.append(key)
        self._note(path, f"{', '.join(lost)} said in another way or left out")
        # A branch or part that came up may bring what the dialect has no place for.
        again, again_is_exact = self._in_dialect(new, path) if any(map(self._is_refused, new)) else (None, True)
        return (again if again is not None else new), is_exact and again_is_exact

    def _reference(
        self, now: Object, given: Object, path: str, level: int, trail: tuple[str, ...]
    ) -> tuple[Object, bool]:
        """A reference kept, followed, or left out where it leads nowhere."""
        rest = {key: value for key, value in now.items() if key not in ("$ref", "$dynamicRef")}
        reference = given.get("$ref") or given.get("$dynamicRef")
        target = self.local.target(reference) if isinstance(reference, str) else None
        if not isinstance(target, dict | bool):
            self._note(path, "a reference was left out: what it names is not in this schema")
            return rest, False
        if not (self.inlines or self.dialect.inlines_references):
            return now, True
        name = cast("str", reference)
        if name in trail or level > MAX_LEVELS:
            self._note(path, "a reference back to what holds it was left out")
            kind = cast("Object", target).get("type") if isinstance(target, dict) else None
            return ({"type": kind, **rest} if isinstance(kind, str) and kind in TYPES else rest), False
        followed, is_exact = self._schema(target, path, level + 1, (*trail, name))
        self._note(path, "a reference became what it names")
        if isinstance(followed, bool):
            return (rest if followed else {"not": {}, **rest}), is_exact
        about = {key: value for key, value in rest.items() if key in _ABOUT}
        inner = {key: value for key, value in cast("Object", followed).items() if key not in about}
        constraints = {key: value for key, value in rest.items() if key not in about}
        if not constraints:
            return {**inner, **about}, is_exact
        # Validators of older drafts overlook what stands beside a reference, newer ones hold it as well.
        return {**_both(inner, constraints), **about}, False

    def _single_typed(self, given: Object, path: str) -> tuple[Object, bool]:
        new = given
        is_exact = True
        kinds = given.get("type")
        if isinstance(kinds, list):
            new = self._split(given, cast("list[str]", kinds))
            is_exact = "anyOf" not in given or len(cast("list[str]", kinds)) == 1
            self._note(path, "a list of types became one type each")
        values = new.get("enum")
        if isinstance(values, list) and not (
            values and all(isinstance(value, str) for value in cast("list[Any]", values))
        ):
            new = {key: value for key, value in new.items() if key != "enum"}
            shown = ", ".join(_shown(value) for value in cast("list[Any]", values)[:20])
            if shown:
                new["description"] = _with(new.get("description"), f"One of: {cut_middle(shown, 300)}.")
            is_exact = False
            self._note(path, "an enum of other values than texts was put in words")
        elif isinstance(values, list) and "type" not in new:
            new = {**new, "type": "string"}
        if "anyOf" in new and len(new.keys() - set(_ABOUT)) > 1:
            kept = {"properties", "items", "enum"} & new.keys()
            new = {
                key: value
                for key, value in new.items()
                if (key != "anyOf" if kept else key == "anyOf" or key in _ABOUT)
            }
            is_exact = False
            self._note(path, "anyOf or what stands beside it was left out")
        required = new.get("required")
        if isinstance(required, list):
            named = cast("Object", new.get("properties") or {})
            held = [name for name in cast("list[str]", required) if name in named]
            if len(held) < len(cast("list[str]", required)):
                new = {key: value for key, value in new.items() if key != "required"} | (
                    {"required": held} if held else {}
                )
                is_exact = False
                self._note(path, "required names what is no property")
        return new, is_exact

    def _split(self, given: Object, kinds: Sequence[str]) -> Object:
        """One schema per type, each with what is said of that type."""
        if len(kinds) == 1:
            return {**given, "type": kinds[0]}
        if "anyOf" in given:
            return {key: value for key, value in given.items() if key != "type"}
        about = {key: value for key, value in given.items() if key in _ABOUT}
        rules = {key: value for key, value in given.items() if key not in about and key != "type"}
        branches: list[Object] = []
        for kind in kinds:
            branch: Object = {"type": kind}
            for key, value in rules.items():
                if key == "enum":
                    fitting = [each for each in cast("list[Any]", value) if _is_of(each, kind)]
                    if fitting and kind == "string":
                        branch["enum"] = fitting
                elif kind in TYPES_OF.get(key, {kind}):
                    branch[key] = value
            if kind == "array":
                branch.setdefault("items", {})
            branches.append(branch)
        return {**about, "anyOf": branches}


def _both(first: Object, second: Object) -> Object:
    """What holds if both hold, or more: of two rules that cannot be joined, the first one."""
    united = dict(first)
    for key, value in second.items():
        if key in ("properties", "patternProperties") and isinstance(value, dict) and isinstance(united.get(key), dict):
            united[key] = {**cast("Object", value), **united[key]}
        elif key == "required" and isinstance(value, list) and isinstance(united.get(key), list):
            united[key] = [*united[key], *(name for name in cast("list[Any]", value) if name not in united[key])]
        elif key in ("if", "then", "else"):
            if not united.keys() & {"if", "then", "else"} or (key != "if" and second.get("if") is united.get("if")):
                united[key] = value
        elif key in ("contains", *_ARRAY_BOUNDS):
            if not first.keys() & {"contains", *_ARRAY_BOUNDS}:
                united[key] = value
        elif not key.startswith("unevaluated"):
            united.setdefault(key, value)
    return {key: value for key, value in united.items() if not key.startswith("unevaluated")}


def _is_array(kind: Any) -> bool:
    return kind == "array" or (isinstance(kind, list) and "array" in kind)


def _is_of(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if isinstance(value, str):
        return kind == "string"
    if value is None:
        return kind == "null"
    if isinstance(value, dict):
        return kind == "object"
    if isinstance(value, list):
        return kind == "array"
    return kind in ("number", "integer")


def _with(text: Any, addition: str) -> str:
    return f"{text} {addition}" if isinstance(text, str) and text else addition


def _shown(value: Any) -> str:
    try:
        return cut_middle(json.dumps(value), 60)
    except (RecursionError, TypeError, ValueError):
        return "a value"


def _escaped(token: str) -> str:
    return token.replace("~", "~0").replace("/", "~1")
