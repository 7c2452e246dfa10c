"""Extensions of installed packages: entry points of the group `goat_mcp.extensions`. Only named ones are loaded.

[project.entry-points."goat_mcp.extensions"]
shout = "my_package.shouting:shout"

An extension may bring tools. It adds and removes only its own (Goondan, "What Extensions cannot do").
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from goat_mcp.calls.extensions.extension_points import CallNext, Extension, Step
from goat_mcp.catalog.registry import AnyTool, NameTaken, Registry
from goat_mcp.catalog.schemas.parameters import Parameters
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.names import UPSTREAM_PREFIX
from goat_mcp.core.result import ToolResult, text_block
from goat_mcp.core.side_effect import HINTS_OF, RISK_OF, SideEffect
from goat_mcp.core.spec import ToolExample, ToolSpec
from goat_mcp.core.suggestions import did_you_mean
from goat_mcp.core.tool import Access

if TYPE_CHECKING:  # loads the validation library
    from goat_mcp.catalog.schemas.bounded_schema import BoundedSchema

Function = Callable[[ToolContext, Mapping[str, Any]], Awaitable[Any]]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")


class ExtensionTools:
    """The tools of one extension; it is given to its `register` and may be kept.

    Clients are notified of each change (`notifications/tools/list_changed`). Any thread may add and remove tools;
    `step_changed` belongs on the event loop.
    """

    def __init__(self, extension: str, registry: Registry, changed: Callable[[], None]) -> None:
        self._source = f"extension:{extension}"
        self._registry = registry
        self._changed = changed

    def add(
        self,
        name: str,
        description: str,
        function: Function,
        *,
        parameters: Mapping[str, Any] | None = None,
        side_effect: SideEffect = SideEffect.NETWORK,
        docs: str = "",
        examples: Sequence[ToolExample] = (),
    ) -> None:
        """Add `async function(ctx, arguments)` as a tool; it gives back JSON, a text or a `ToolResult`.

        `parameters` is a JSON Schema. Without `side_effect` people are asked as before a request to the network. `docs`
        (Markdown) and `examples` are for people, who read them with `goat-mcp docs`. Raises as `register`.
        """
        schema = dict(parameters or {"type": "object", "properties": {}, "additionalProperties": False})
        self.register(
            FunctionTool(
                ToolSpec(
                    name=name,
                    title=name,
                    description=description,
                    input_schema=schema,
                    side_effect=side_effect,
                    risk=RISK_OF[side_effect],
                    hints=HINTS_OF[side_effect],
                    toolset="manifests",
                    long_doc=docs,
                    examples=tuple(examples),
                ),
                function,
            )
        )

    def register(self, tool: AnyTool) -> None:
        """Add any `core.tool.Tool`. Raises `ValueError` for a bad name, `NameTaken` if there is a tool of it."""
        name = tool.spec.name
        if not _NAME.match(name) or name.startswith(UPSTREAM_PREFIX):
            raise ValueError(f"{name[:80]!r} cannot be a tool's name: letters, digits, - and _, at most 64, no mcp__")
        try:
            self._registry.register(tool, source=self._source)
        except NameTaken:
            owner = self._registry.snapshot.source_of.get(name, self._source)
            raise NameTaken(f"{name} is already registered by {owner}, and an extension replaces nothing") from None

    def remove(self, name: str) -> bool:
        """Take one of its own away. Returns whether there was one."""
        return self._registry.unregister(name, source=self._source)

    def step_changed(self) -> None:
        """What `step` would leave out is something else now: clients are notified to list again."""
        self._changed()


@dataclass(frozen=True)
class FunctionTool:
    """A function of an extension as a `Tool`."""

    spec: ToolSpec
    function: Function

    def validate(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        from goat_mcp.catalog.schemas.bounded_schema import Uncheckable

        try:
            return Parameters(self.spec.input_schema, is_open=True).read(arguments, self._compiled)
        except Uncheckable as why:
            raise ToolError(ErrorCode.CONFIG, f"parameters of {self.spec.name}: {why}", "Tell the user.") from None

    @cached_property
    def _compiled(self) -> BoundedSchema:
        from goat_mcp.catalog.schemas.bounded_schema import BoundedSchema

        return BoundedSchema(dict(self.spec.input_schema), "schema")

    def access(self, input: Mapping[str, Any]) -> Access:
        return Access()

    async def execute(self, input: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        value = await self.function(ctx, input)
        if isinstance(value, ToolResult):
            return value
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return ToolResult(content=(text_block(text),))


Register = Callable[[ExtensionTools], object]
GROUP = "goat_mcp.extensions"
_PARAMETERS = 4


class BrokenExtension(Exception):
    """An extension that is not installed, or cannot be loaded; the text names it and what there is."""


@dataclass(frozen=True)
class InstalledExtension:
    """An extension under the name of its entry point: at least one of a layer around calls (`function`), `register`,
    which is given its tools once, and `step`, which is shown the tools of each step."""

    name: str
    function: Extension | None
    register: Register | None = None
    step: Step | None = None

    async def __call__(
        self, spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext, call_next: CallNext
    ) -> ToolResult:
        assert self.function is not None, "only those that have one are wrapped around calls"
        return await self.function(spec, arguments, ctx, call_next)


def installed_extensions(names: Sequence[str]) -> tuple[InstalledExtension, ...]:
    """The named extensions, loaded, in the order of the names. Raises `BrokenExtension`."""
    if not names:
        return ()
    found: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        others = found.setdefault(point.name, [])
        if point.value not in [other.value for other in others]:
            others.append(point)
    twice = sorted(name for name in set(names) if names.count(name) > 1)
    if twice:
        raise BrokenExtension(f"{', '.join(twice)} is named twice")
    return tuple(_loaded(name, found) for name in names)


def _loaded(name: str, found: Mapping[str, Sequence[EntryPoint]]) -> InstalledExtension:
    if name not in found:
        near = did_you_mean(name, found)
        known = f"installed are {', '.join(sorted(found)) or 'none'}"
        raise BrokenExtension("; ".join(filter(None, (f"{name!r} is not installed", near, known))))
    if len(found[name]) > 1:
        packages = ", ".join(f"{_package(point)} ({point.value})" for point in found[name])
        raise BrokenExtension(f"{name!r} comes from several packages: {packages}; uninstall all but one")
    (point,) = found[name]
    try:
        loaded: Any = point.load()
        has_more = any(callable(getattr(loaded, name, None)) for name in ("register", "step"))
        extension = loaded() if has_more and inspect.isclass(loaded) else loaded
    except (Exception, SystemExit) as problem:
        raise BrokenExtension(
            f"{name!r} ({point.value} of {_package(point)}) cannot be loaded: {type(problem).__name__}: {problem}"
        ) from problem
    register, step = getattr(extension, "register", None), getattr(extension, "step", None)
    function: Any = extension if callable(extension) or not has_more else None
    if function is not None and (fault := _fault(function)):
        raise BrokenExtension(
            f"{name!r} ({point.value} of {_package(point)}) {fault}; "
            "it has to be `async def name(spec, arguments, ctx, call_next) -> ToolResult`, "
            "or an object or class with `register(tools)` or `step(view)`"
        )
    if inspect.iscoroutinefunction(register) or inspect.iscoroutinefunction(step):
        raise BrokenExtension(f"{name!r} ({point.value} of {_package(point)}): `register` and `step` cannot be async")
    return InstalledExtension(
        name, function, register if callable(register) else None, step if callable(step) else None
    )


def _fault(function: Any) -> str:
    if not callable(function) or inspect.isclass(function):
        return f"is a {type(function).__name__}, not a function"
    if not (inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))):  # noqa: B004  # an object with an async __call__ is fine
        return "is not async"
    try:
        inspect.signature(function).bind(*range(_PARAMETERS))
    except TypeError:
        return f"does not take {_PARAMETERS} arguments"
    return ""


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "an unknown package"
