"""Extensions of installed packages: entry points of the group `goat_mcp.extensions`. Only named ones are loaded.

[project.entry-points."goat_mcp.extensions"]
shout = "my_package.shouting:shout"
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from goat_mcp.calls.extensions.added_tools import ExtensionTools
from goat_mcp.calls.extensions.onion import CallNext, Extension
from goat_mcp.calls.extensions.steps import Step
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.core.spec import ToolSpec

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
        near = difflib.get_close_matches(name, found, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise BrokenExtension(f"{name!r} is not installed{hint}; installed are {', '.join(sorted(found)) or 'none'}")
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
