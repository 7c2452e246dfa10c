"""An edit of a settings file: yours, or the project's. Nothing is written that a server could not read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.json_values import mapping
from goat_mcp.gateway.settings_check import settings_problems
from goat_mcp.settings.settings import path_keys
from goat_mcp.settings.yaml_text import REMOVED, edited_yaml, read_yaml
from goat_mcp.state.directory import StateDirectory, config_folder
from goat_mcp.state.file_edit import Change, change_of, text_of, write_change
from goat_mcp.state.trust import FILE_NAME
from goat_mcp.state.trust.project import whole_project
from goat_mcp.state.trust.settings_file import BrokenFile, SettingsFile, find_project_file
from goat_mcp.state.trust.store import TrustStore

_NO_SETTINGS = "# settings of goat-mcp\n"


def settings_path(in_project: bool) -> Path:
    """The file that is edited. It need not be there."""
    return (Path.cwd().resolve() if in_project else config_folder()) / FILE_NAME


@dataclass(frozen=True)
class SettingsEdit:
    """One file, before and after. `trusted`: the hash of what it is to be with all that it names, if the user has
    trusted what that held, so that they trust this, too."""

    change: Change
    in_project: bool
    trusted: str = ""

    @property
    def is_trusted(self) -> bool:
        return bool(self.trusted)

    @property
    def path(self) -> Path:
        return self.change.path

    def write(self) -> None:
        """Raises `ToolError`."""
        write_change(self.change)
        if self.trusted:
            TrustStore(StateDirectory.default()).trust(self.path, self.trusted)


def edited_settings(in_project: bool, edit: Callable[[str], str]) -> SettingsEdit:
    """What `edit` makes of the file's text. Raises `ToolError` if that would be no usable settings file."""
    path = settings_path(in_project)
    before = text_of(path)
    try:
        after = edit(before)
    except ToolError as broken:
        raise ToolError(broken.code, f"{path}: {broken.message}", broken.suggestion) from None
    if before.strip() and not after.strip():
        # Servers refuse an empty file: it may be one that somebody was interrupted in writing.
        after = _NO_SETTINGS
    known = {(one.key, one.what) for one in settings_problems(path, before.encode())}
    new = [one for one in settings_problems(path, after.encode()) if (one.key, one.what) not in known]
    if new:
        raise ToolError(ErrorCode.CONFIG, "\n".join(f"{one.key}: {one.what}" for one in new), "Nothing was written.")
    return SettingsEdit(change_of(path, before, after), in_project, _trusted(path, after) if in_project else "")


def _trusted(path: Path, after: str) -> str:
    """The hash of the project with `after` in its file; empty if the user has not trusted it as it is.

    Of the files that it names, what they hold now counts: a tool may change one as soon as the settings are written.
    Raises `ToolError` for a link: a project could have other files edited.
    """
    try:
        found = find_project_file(path.parent)
    except BrokenFile as broken:
        raise ToolError(ErrorCode.CONFIG, str(broken), "Nothing was changed.") from None
    known = TrustStore(StateDirectory.default()).of(path)
    if found is None or known is None:
        return ""
    try:
        now = whole_project(found, path_keys())
        then = whole_project(SettingsFile(found.path, after.encode()), path_keys())
    except BrokenFile:
        return ""  # a file that it names cannot be read
    same = all(then.contents.get(file, data) == data for file, data in now.contents.items())
    return then.sha256 if same and now.sha256 == known.sha256 else ""


def without_key(text: str, key: str) -> str:
    """The text without a key, and without the levels above it that would be empty."""
    path = key.split(".")
    text = edited_yaml(text, path, REMOVED)
    while (path := path[:-1]) and value_in(read_yaml(text), ".".join(path)) == {}:
        text = edited_yaml(text, path, REMOVED)
    return text


def value_in(tree: Mapping[str, Any], key: str) -> Any:
    """What a tree holds under a key; None if nothing."""
    found: Any = tree
    for name in key.split("."):
        found = mapping(found).get(name)
    return found
