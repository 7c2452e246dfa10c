"""Which directories of manifests the settings choose, and what of the documents in them is settings: profiles and
toolsets. Nothing that reads YAML is loaded where there are none."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from goat_mcp.catalog.filter import ProfileOptions, ProfileTools
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.names import SEPARATOR, TOOL_ALIASES
from goat_mcp.core.problem_words import demand_of
from goat_mcp.core.spec import SHIPPED_TOOLSETS
from goat_mcp.core.suggestions import did_you_mean
from goat_mcp.gateway.build.tools import DeclaredToolsets
from goat_mcp.settings.settings import BrokenSettings, Settings
from goat_mcp.state.directory import StateDirectory

if TYPE_CHECKING:  # most starts have no manifests
    from goat_mcp.manifests.folder import ManifestFolders, ManifestSet
    from goat_mcp.manifests.kinds import ProfileDocument
    from goat_mcp.manifests.yaml_document import ManifestProblem


def _folders(settings: Settings) -> Sequence[Path]:
    """The user's directories, in the order they count."""
    default = settings.default_manifests
    own = (default,) if default is not None and os.path.isdir(default) else ()  # noqa: PTH112  # `Path` raises for what may not be looked at
    return tuple(Path(os.path.abspath(folder.expanduser())) for folder in (*settings.manifests, *own))  # noqa: PTH100  # without `..`, with links


def shipped_folder() -> Path:
    """The set that comes with us: in the package when installed, at the root of a checkout otherwise."""
    package = Path(__file__).resolve().parents[2]
    installed = package / "shipped_manifests"
    return installed if installed.is_dir() else package.parent / "manifests"


def shipped() -> ManifestSet:
    """All of that set. What else lies there, the contracts of the built-in tools among it, is none of it."""
    from goat_mcp.manifests.folder import ManifestFolders

    folders = sorted(file.parent for file in shipped_folder().glob("*/tool.yaml"))
    return ManifestFolders(folders, ships_with_us=True).read()


@dataclass(frozen=True)
class ReadManifests:
    """The user's directories, what they declare now, and of the set that comes with us what may be on."""

    folders: ManifestFolders
    users: ManifestSet
    shipped: ManifestSet


def read(settings: Settings) -> ReadManifests | None:
    """What there is on disk now; None where the settings want none of it."""
    own = _folders(settings)
    if not own and not wants_shipped(settings, {}):
        return None
    from goat_mcp.manifests.folder import ManifestFolders, ManifestSet

    folders = ManifestFolders(own)
    users = folders.read()
    if not wants_shipped(settings, declared_toolsets(users)):
        return ReadManifests(folders, users, ManifestSet())
    return ReadManifests(folders, users, shipped())


def wants_shipped(settings: Settings, toolsets: DeclaredToolsets) -> bool:
    """Whether anything of that set may be on: one of its toolsets is named, or one of the user's own."""
    named = [*settings.catalog.toolsets]
    for profile in settings.profiles.values():
        named += profile.toolsets or ()
    return any(name in SHIPPED_TOOLSETS or name in toolsets for name in named)


def seal(folders: ManifestFolders, settings: Settings, state: StateDirectory, writable: Sequence[Path]) -> None:
    """Have those read from copies that count as they were: trusted with a project, or within reach of tools, which may
    write to `writable`. Raises `BrokenSettings` for one that cannot be copied."""
    from goat_mcp.manifests.sealed_copy import is_within_reach

    for folder in folders.watched:
        is_trusted = any(path.is_relative_to(folder) for path in settings.contents)
        if os.path.isdir(folder) and (is_trusted or is_within_reach(folder, writable)):  # noqa: PTH112  # as above
            folders.replace_with_copy(folder, copy_of(folder, settings, state))


def copy_of(folder: Path, settings: Settings, state: StateDirectory) -> Path:
    """Raises `BrokenSettings`."""
    from goat_mcp.manifests.sealed_copy import Unsealable, sealed_copy

    try:
        return sealed_copy(folder, state, settings.contents)
    except Unsealable as why:
        raise BrokenSettings(f"manifests: {folder}: {why}", "Fix it, or name another directory.") from None


def why_off(name: str) -> ToolError | None:
    """For a tool of the set that comes with us, where that was not read at all: how to turn it on."""
    resource, separator, _ = TOOL_ALIASES.get(name, name).partition(SEPARATOR)
    if not separator or not resource.replace("-", "").replace("_", "").isalnum():
        return None
    if not (shipped_folder() / resource / "tool.yaml").is_file():
        return None
    return ToolError(
        ErrorCode.TOOL_NOT_IN_CATALOG,
        f"{name} is one of the optional tools, which are off",
        "The operator can turn them on with --toolset goa or --toolset base.",
    )


def declared_toolsets(declared: ManifestSet) -> DeclaredToolsets:
    return {document.name: document.tools for document in declared.toolsets}


def with_declared_profiles(settings: Settings, declared: ManifestSet) -> tuple[Settings, Sequence[ManifestProblem]]:
    """The settings with the profiles that manifests declare; one that the settings have themselves stays."""
    problems: list[ManifestProblem] = []
    profiles: dict[str, ProfileOptions] = {}
    for document in declared.profiles:
        if document.name in settings.profiles:
            what = f"the profile {document.name} stands in the settings already"
            problems.append(document.document.problem(("metadata", "name"), what, "rename one of them"))
            continue
        try:
            profiles[document.name] = ProfileOptions.model_validate(dict(document.options))
        except ValidationError as invalid:
            problems += [_problem(document, error) for error in invalid.errors(include_url=False)]
    if not profiles:
        return settings, problems
    whole: Mapping[str, ProfileOptions] = {**settings.profiles, **profiles}
    return settings.model_copy(update={"profiles": whole}), problems


def _problem(document: ProfileDocument, error: Any) -> ManifestProblem:
    place = ("spec", *error["loc"])
    key = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        *above, name = error["loc"]
        known = (ProfileTools if above == ["tools"] else ProfileOptions).model_fields
        return document.document.problem(place, f"spec.{key} is unknown", _near_or_known(str(name), known))
    return document.document.problem(place, f"spec.{key}: {demand_of(error)}", "fix the value")


def unknown_tool_settings(settings: Settings, declared: ManifestSet | None) -> list[dict[str, Any]]:
    """Members of `tools` for a resource that nobody declares: no error, since one settings file serves many lists of
    directories. Those that come with us may be off."""
    if not settings.tools:
        return []
    shipped_names = (file.parent.name for file in shipped_folder().glob("*/tool.yaml"))
    known = sorted({*shipped_names, *(tool.name for tool in (declared.tools if declared is not None else ()))})
    return [
        {
            "name": f"tools.{name}",
            "reason_code": "unknown_tool_settings",
            "detail": f"tools.{name} has no effect: no resource has this name; {_near_or_known(name, known)}",
        }
        for name in settings.tools
        if name not in known
    ]


def _near_or_known(name: str, known: Iterable[str]) -> str:
    names = list(known)
    return did_you_mean(name, names) or f"known are {', '.join(names)}"
