"""Options of `serve` that `install` writes into a host's entry: each is checked before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from goat_mcp.cli.hosts.own_entry import ServeOptions
from goat_mcp.cli.workspace_choice import checked_workspaces
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.suggestions import did_you_mean


def checked_options(
    workspace: Sequence[str], mode: str | None, preset: Sequence[str], profile: str | None, *, may_ask: bool
) -> ServeOptions:
    """Raises `ToolError` for a value that `serve` would refuse."""
    if mode is not None:
        from goat_mcp.calls.permissions.mode import Mode

        _check("mode", mode, [str(known) for known in Mode])
    if preset or profile is not None:
        from goat_mcp.catalog.presets import own_presets
        from goat_mcp.settings.loading import load_settings

        settings = load_settings({"workspace": workspace} if workspace else {})
        for name in preset:
            _check("preset", name, [*own_presets(), *settings.catalog.presets])
        if profile is not None:
            _check("profile", profile, settings.profiles)
    found = checked_workspaces(workspace, may_ask=may_ask)
    return ServeOptions(found, mode or "", tuple(dict.fromkeys(preset)), profile or "")


def settings_name_workspace() -> bool:
    """Whether the user's goat-mcp.yaml says where to work: then no entry needs to."""
    from goat_mcp.settings.loading import load_settings
    from goat_mcp.settings.settings import BrokenSettings

    try:
        return load_settings({}).source_of("workspace") == "file"
    except BrokenSettings:
        return False  # `serve` and `doctor` say so


def _check(kind: str, given: str, known: Iterable[str]) -> None:
    names = list(known)
    if given in names:
        return
    there = f"There are: {', '.join(names)}." if names else f"Your goat-mcp.yaml declares no {kind}."
    hint = did_you_mean(given, names)
    raise ToolError(
        ErrorCode.INPUT, f"there is no {kind} {given!r}{f'; {hint}' if hint else ''}", f"Nothing was written. {there}"
    )
