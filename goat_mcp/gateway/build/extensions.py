"""The extensions the settings choose among the installed ones. Nothing that looks for packages is loaded for none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from goat_mcp.catalog.registry import Registry
from goat_mcp.settings.settings import BrokenSettings

if TYPE_CHECKING:  # most starts have none
    from goat_mcp.calls.extensions.installed import InstalledExtension
    from goat_mcp.calls.extensions.steps import Steps


def chosen_extensions(names: Sequence[str]) -> Sequence[InstalledExtension]:
    """In the order of the settings. Raises `BrokenSettings` for one that is not installed or cannot be loaded."""
    if not names:
        return ()
    from goat_mcp.calls.extensions.installed import BrokenExtension, installed_extensions

    try:
        return installed_extensions(names)
    except BrokenExtension as broken:
        raise BrokenSettings(f"extensions: {broken}", "Mend or install it, or take it off the list.") from broken


def chosen_steps(extensions: Sequence[InstalledExtension], on_bug: Callable[[str, Exception], None]) -> Steps | None:
    """None where no extension looks at steps: they then cost nothing."""
    steps = [(extension.name, extension.step) for extension in extensions if extension.step is not None]
    if not steps:
        return None
    from goat_mcp.calls.extensions.steps import Steps

    return Steps(steps, on_bug)


def register_tools(extensions: Sequence[InstalledExtension], registry: Registry, changed: Callable[[], None]) -> None:
    """Let each extension add its tools. Raises `BrokenSettings` naming the one that cannot."""
    for extension in extensions:
        if extension.register is None:
            continue
        from goat_mcp.calls.extensions.installed import ExtensionTools

        try:
            extension.register(ExtensionTools(extension.name, registry, changed))
        except Exception as problem:
            raise BrokenSettings(
                f"extensions: {extension.name!r} cannot register its tools: {type(problem).__name__}: {problem}",
                "Mend it, or take it off the list.",
            ) from problem
