"""A plain Python function as a `Tool`: its name, its docstring, and its annotations as the input's schema."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, get_args, get_type_hints

import anyio.to_thread
from pydantic import ConfigDict, Field, PydanticUserError, TypeAdapter, create_model
from pydantic_core import to_jsonable_python

from goat_mcp.core.arguments import ArgumentReader, ToolInput
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult, text_block
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.core.spec import ToolSpec, risk_and_hints
from goat_mcp.core.tool import Access

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class _Input(ToolInput):
    """Values become what the annotations want: a path of text, a date of its ISO form."""

    model_config = ConfigDict(strict=False)


@dataclass(frozen=True)
class AnnotatedFunction:
    """One function. `parameters` are its parameters by the fields of its input; `wants_ctx` names the one for the
    context, if there is one."""

    spec: ToolSpec
    function: Callable[..., Any]
    reader: ArgumentReader[_Input]
    parameters: Mapping[str, str]
    wants_ctx: str = ""

    def validate(self, arguments: Mapping[str, Any]) -> _Input:
        return self.reader.read(arguments)

    def access(self, input: _Input) -> Access:
        return Access()

    async def execute(self, input: _Input, ctx: ToolContext) -> ToolResult:
        """A function that is not async runs in a thread: other calls go on meanwhile."""
        given = {parameter: getattr(input, field) for field, parameter in self.parameters.items()}
        if self.wants_ctx:
            given[self.wants_ctx] = ctx
        if inspect.iscoroutinefunction(self.function):
            value = await self.function(**given)
        else:
            value = await anyio.to_thread.run_sync(partial(self.function, **given), abandon_on_cancel=True)
        if inspect.isawaitable(value):  # an async function in a decorator that is not
            value = await value
        return _as_result(value)


def annotated_function(function: Callable[..., Any], side_effect: SideEffect = SideEffect.NETWORK) -> AnnotatedFunction:
    """The function as a tool. Raises `TypeError`, naming the function, for one that no tool can be made of.

    A parameter annotated as `ToolContext` gets the context of the call and is not in the schema.
    """
    name = getattr(function, "__name__", type(function).__name__)
    description = inspect.getdoc(function)
    if not callable(function) or name == "<lambda>":
        raise TypeError(f"{name} is no named function")
    if not description:
        raise TypeError(f"{name} has no docstring: it is the description a model reads")
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as unknown:
        raise TypeError(f"{name}: an annotation cannot be read: {unknown}") from unknown
    wants_ctx = ""
    fields: dict[str, Any] = {}
    parameters: dict[str, str] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in _NAMED:
            raise TypeError(f"{name}: parameter {parameter.name} cannot be given by name")
        if parameter.name not in hints:
            raise TypeError(f"{name}: parameter {parameter.name} has no annotation")
        if ToolContext in (hints[parameter.name], *get_args(hints[parameter.name])):
            wants_ctx = parameter.name
            continue
        try:
            TypeAdapter(hints[parameter.name]).json_schema()
        except PydanticUserError:
            shown = inspect.formatannotation(hints[parameter.name])
            raise TypeError(f"{name}: parameter {parameter.name} is a {shown}, which JSON cannot hold") from None
        field = f"field_{len(parameters)}"  # a name of the function's own may be one that pydantic needs
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[field] = (Annotated[hints[parameter.name], Field(alias=parameter.name)], default)
        parameters[field] = parameter.name
    reader: ArgumentReader[_Input] = ArgumentReader(create_model("Input", __base__=_Input, **fields))
    risk, hints_shown = risk_and_hints(side_effect)
    spec = ToolSpec(
        name=name,
        title=name,
        description=description,
        input_schema=reader.schema(),
        side_effect=side_effect,
        toolset="manifests",
        risk=risk,
        hints=hints_shown,
    )
    return AnnotatedFunction(spec, function, reader, parameters, wants_ctx)


def _as_result(value: Any) -> ToolResult:
    """A text as it is, anything else as JSON; an object also as structured content."""
    if isinstance(value, ToolResult):
        return value
    plain = value if isinstance(value, str) else to_jsonable_python(value)
    text = plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False, allow_nan=False)
    return ToolResult(content=(text_block(text),), structured=plain if isinstance(plain, dict) else None)
