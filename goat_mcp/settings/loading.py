"""Where settings come from: flags beat the environment, which beats files, which beat defaults (design, section 6).

Before they are checked, settings are a tree of dictionaries: values are put in by key, trees over trees. What the
file of a project may say is in `trust`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from goat_mcp.core.spec import DEFAULT_TOOLSETS
from goat_mcp.files.workspace.roots import default_roots
from goat_mcp.settings.settings import (
    ENV_PREFIX,
    SECRET_NAMES,
    SHORT_KEYS,
    URL_KEYS,
    BrokenSettings,
    Settings,
    SettingsOrigin,
    nearest,
    path_keys,
    setting_keys,
    settings_of,
)
from goat_mcp.state.directory import StateDirectory, config_folder, own_manifests_folder, own_upstreams_file
from goat_mcp.state.trust import FILE_NAME, TRUST_FILE_NAME, has_project_file

if TYPE_CHECKING:  # loaded where there is a settings file
    from goat_mcp.state.trust.project import ProjectSay

_NOT_SETTINGS = frozenset(
    {"GOAT_MCP_STATE_DIR", "GOAT_MCP_WINDOWS_HOME", "GOAT_MCP_CALL", "GOAT_MCP_AGENT_DEPTH", "GOAT_MCP_RESIDENT"}
)
"""Where state and the files of Windows' hosts lie, and the marks that commands and agents of a goat-mcp carry: another
one may be among them."""


def load_settings(
    flags: Mapping[str, Any],
    *,
    config_file: Path | None = None,
    overrides: Sequence[str] = (),
    added: Mapping[str, Sequence[str]] | None = None,
    state: StateDirectory | None = None,
) -> Settings:
    """Merge `flags` (a tree of what was given on the command line), `--set` overrides, environment and files.

    `added` goes to the end of lists, by key, whoever set them: what a file denies stays denied where a flag denies
    more. The workspace's own file counts as far as the user trusts it; with a `config_file` only what it denies does.
    `state` is where trust is kept. Raises `BrokenSettings`.
    """
    return _loaded(_Given(flags, config_file, overrides, added or {}, state or StateDirectory.default()))


class _Given(NamedTuple):
    """What is the same each time the settings of one process are loaded."""

    flags: Mapping[str, Any]
    config_file: Path | None
    overrides: Sequence[str]
    added: Mapping[str, Sequence[str]]
    state: StateDirectory


def _loaded(given: _Given, before: SettingsOrigin | None = None, *, keeps_project: bool = False) -> Settings:
    """`before`: where the settings came from that are in force now, if these are to follow them. `keeps_project`: what
    the project said then still counts, whatever is in its file."""
    flags, config_file, overrides, added, state = given
    users_file, users_tree = _users_tree(config_file)
    tree, origin = _with_given(users_tree, flags, overrides)
    folder = _first_directory(tree) if before is None else before.project_folder
    project = None if keeps_project else _project_say(folder, config_file, state, origin)
    if before is not None and project is not None and before.project is not None:
        from goat_mcp.state.trust.project import after_change

        project = after_change(before.project, project)
    elif before is not None:
        project = project or before.project
    if project is not None:
        if project.tree:
            notices = origin.notices
            tree, origin = _with_given(users_tree, flags, overrides, project)
            origin.notices += notices
        origin.project_files = (project.file,)
        origin.contents = project.contents
        if project.notice:
            origin.notices.append(project.notice)
        for key, names in project.denials.items():
            # Whatever stands above it: a denial is never lost.
            append(tree, key, names)
    for key, names in added.items():
        append(tree, key, names)
        origin.sources[key] = "flag"
    if config_file is None and "upstreams" not in tree:
        if os.path.lexists(own_upstreams_file()):
            tree["upstreams"] = [str(_own_upstreams())]
        else:
            origin.default_upstreams = own_upstreams_file()
    if config_file is None and "manifests" not in tree:
        origin.default_manifests = own_manifests_folder()
    named = ["the command line", f"the environment ({ENV_PREFIX}*)", *([users_file] if users_file else [])]
    settings = settings_of(tree, " or ".join([*named, *(str(file) for file in origin.project_files)]))
    origin.users_files = (Path(users_file),) if users_file else ()
    project_file = [] if folder is None else [folder.resolve() / FILE_NAME, state.path / TRUST_FILE_NAME]
    named_file = config_file or config_folder() / FILE_NAME
    origin.watched_files = (named_file, *project_file, *settings.claude_settings)
    origin.project, origin.project_folder = project, folder
    origin.load_again = partial(_loaded, given, origin)
    settings.remember(origin)
    return settings


def _with_given(
    users_tree: Mapping[str, Any],
    flags: Mapping[str, Any],
    overrides: Sequence[str],
    project: ProjectSay | None = None,
) -> tuple[dict[str, Any], SettingsOrigin]:
    """The user's file, a trusted project's over it, and over both what the environment and the command line say."""
    tree = _with_long_forms(users_tree)
    sources = dict.fromkeys(keys_in(tree), "file")
    if project is not None:
        projects_tree = _with_long_forms(project.tree)
        layer(tree, projects_tree)
        # What a project says holds for it and not for another one that a client happens to be in.
        tree.setdefault("workspace", [str(project.file.parent)])
        sources |= dict.fromkeys([*keys_in(projects_tree), "workspace"], "project")
    for variable, text in sorted(os.environ.items()):
        if variable.startswith(ENV_PREFIX) and variable not in _NOT_SETTINGS:
            key = _key_of_variable(variable)
            if not text:
                continue  # as if it were not there: hosts set it also where its field was left empty
            sources |= dict.fromkeys(place(tree, key, text, variable), "environment")
    given = _with_long_forms({key: value for key, value in flags.items() if value not in (None, (), [])})
    merge(tree, given)
    sources |= dict.fromkeys(keys_in(given), "flag")
    for override in overrides:
        key, separator, text = override.partition("=")
        if not separator or not key:
            raise BrokenSettings(f"--set {override!r} is not KEY=VALUE", "Write e.g. --set output.max_chars=20000.")
        sources |= dict.fromkeys(place(tree, key, text, f"--set {key}"), "flag")
    return tree, SettingsOrigin(sources)


def _key_of_variable(variable: str) -> str:
    """`GOAT_MCP_OUTPUT__MAX_CHARS` -> `output.max_chars`. Raises `BrokenSettings` for one that is no setting's."""
    key = variable.removeprefix(ENV_PREFIX).lower().replace("__", ".")
    if key not in setting_keys() and not any(known.startswith(f"{key}.") for known in setting_keys()):
        raise BrokenSettings(f"environment variable {variable}: no such setting{nearest(key)}", f"Unset {variable}.")
    return key


def _users_tree(named: Path | None) -> tuple[str, Mapping[str, Any]]:
    """The user's own file, and what it says; empty where there is none."""
    path = named or config_folder() / FILE_NAME
    # A link that leads nowhere is no missing file: rules may be at its end.
    if named is None and not os.path.lexists(path):
        return "", {}
    from goat_mcp.state.trust.project import with_absolute_paths
    from goat_mcp.state.trust.settings_file import BrokenFile, read_users_file

    try:
        file = read_users_file(path)
        tree = with_absolute_paths(file.tree, path.absolute().parent, path_keys())
    except BrokenFile as broken:
        raise BrokenSettings(str(broken), "Fix the file and start again, or name another one with --config.") from None
    for key, value in _secrets_in(tree):
        if file.why_readable and "${" not in value:
            raise BrokenSettings(
                f"{path} holds {key} and {file.why_readable}",
                f"Take the right to read it from others (chmod 600), or write a reference, e.g. {key}: ${{env:NAME}}.",
            )
    return str(path), tree


def _own_upstreams() -> Path:
    """The user's `upstreams.json`. Raises `BrokenSettings` for one that somebody else could have written."""
    from goat_mcp.state.trust.settings_file import BrokenFile, read_users_file

    path = own_upstreams_file()
    try:
        return read_users_file(path).path
    except BrokenFile as broken:
        raise BrokenSettings(str(broken), f"Fix {path}, or move it away, and start again.") from None


_HAS_LOGIN = re.compile(r"://[^@]*:[^@]+@")
"""Found in a URL with a password."""


def _secrets_in(tree: Mapping[str, Any], above: str = "") -> list[tuple[str, str]]:
    """The secrets that stand in a file themselves, by key."""
    found: list[tuple[str, str]] = []
    for name, value in tree.items():
        key = f"{above}{name}"
        if isinstance(value, dict):
            found += _secrets_in(cast("dict[str, Any]", value), f"{key}.")
        elif isinstance(value, list):
            items = {str(at): item for at, item in enumerate(cast("list[Any]", value))}
            found += _secrets_in({at: item for at, item in items.items() if isinstance(item, dict)}, f"{key}.")
        elif value and (name in SECRET_NAMES or (key in URL_KEYS and _HAS_LOGIN.search(str(value)))):
            found.append((key, str(value)))
    return found


def _project_say(
    folder: Path | None, config_file: Path | None, state: StateDirectory, origin: SettingsOrigin
) -> ProjectSay | None:
    """What the settings file in `folder` may say."""
    if folder is None or not has_project_file(folder):
        return None
    from goat_mcp.state.trust.project import ProjectSay, project_say
    from goat_mcp.state.trust.settings_file import BrokenFile
    from goat_mcp.state.trust.store import TrustStore

    store = TrustStore(state)
    try:
        say = project_say(folder, store, path_keys())
        if say is None or (config_file is not None and config_file.resolve() == say.file):
            return None
        _check_rules(say)
    except BrokenFile as broken:
        raise BrokenSettings(str(broken), "Fix the file, or delete it, and start again.") from None
    origin.notices += store.problems
    if config_file is None:
        return say
    notice = f"{say.file}: only what it denies is in force, because --config names another file"
    return ProjectSay(say.file, denials=say.denials, notice=notice if say.tree or say.notice else "")


def _check_rules(say: ProjectSay) -> None:
    """Raises `BrokenSettings` for a rule of a project's that nobody understands."""
    from goat_mcp.calls.permissions.rule import BrokenRule
    from goat_mcp.calls.permissions.rule_set import RuleSet

    try:
        RuleSet.parse(deny=say.denials.get("permissions.deny", ()))
    except BrokenRule as broken:
        raise BrokenSettings(f"{say.file}: permissions.deny: {broken}", "Fix the rule and start again.") from None


def _first_directory(tree: Mapping[str, Any]) -> Path | None:
    """Where the workspace is, as far as it is known before a client has come."""
    named = as_list(tree.get("workspace")) or default_roots()
    first = named[0] if named else None
    return Path(first).expanduser().absolute() if isinstance(first, str | Path) and str(first) else None


_WITHOUT_A_WORD = {"catalog.toolsets": DEFAULT_TOOLSETS}
"""Lists to which flags add and that are not empty if nobody sets them."""
_ADD_UP = (
    *("permissions.allow", "permissions.ask", "permissions.deny", "catalog.deny", "bash.blocked"),
    *("hooks", "claude_settings", "extensions"),
)
"""Lists in which both the user's and a trusted project's entries count. All else a project's value replaces."""


def keys_in(value: Any, key: str = "") -> list[str]:
    """The keys that `value`, the tree under `key`, has values for. A dictionary below a setting's key is its value."""
    if not isinstance(value, dict) or (key and key in setting_keys()):
        return [key]
    below = cast("dict[Any, Any]", value).items()
    return [found for name, inner in below for found in keys_in(inner, f"{key}.{name}" if key else str(name))]


def place(tree: dict[str, Any], key: str, text: str, origin: str) -> list[str]:
    """Put a value where its key says; it is read as JSON where it parses, else as text. Returns the keys it sets."""
    try:
        value: Any = json.loads(text)
    except ValueError:
        value = text
    if key in SHORT_KEYS and not isinstance(value, dict):
        key = SHORT_KEYS[key]
    *levels, last = key.split(".")
    for level in levels:
        below = tree.setdefault(level, {})
        if not isinstance(below, dict):
            raise BrokenSettings(f"{origin}: {level} is set to {below!r} already and has no levels")
        tree = cast("dict[str, Any]", below)
    tree[last] = value
    return keys_in(value, key)


def _with_long_forms(tree: Mapping[str, Any]) -> dict[str, Any]:
    """A copy with `approval: deny` as `approval: {by: deny}`, so that it can be merged with its other settings."""
    copy = deepcopy(dict(tree))
    for short, key in SHORT_KEYS.items():
        if isinstance(copy.get(short), str):
            copy[short] = {key.removeprefix(f"{short}."): copy[short]}
    return copy


def append(tree: dict[str, Any], key: str, names: Sequence[str]) -> None:
    """Add to a list: to what stands there, or else to what holds without it."""
    part, _, last = key.partition(".")
    below = tree.setdefault(part, {})
    if isinstance(below, dict):  # anything else is reported as a broken setting
        given = cast("dict[str, Any]", below)
        before = as_list(given.get(last, _WITHOUT_A_WORD.get(key)))
        given[last] = [*before, *(name for name in names if name not in before)]


def as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(cast("Sequence[Any]", value)) if isinstance(value, list | tuple) else [value]


def layer(tree: dict[str, Any], over: Mapping[str, Any], above: str = "") -> None:
    """Put a project's settings over the user's. Rules and hooks of both hold: trusting a project lifts no denial."""
    for name, value in over.items():
        key = f"{above}.{name}" if above else name
        below = tree.get(name)
        if isinstance(value, dict) and isinstance(below, dict):
            layer(cast("dict[str, Any]", below), cast("dict[str, Any]", value), key)
        elif key.startswith(_ADD_UP):
            tree[name] = [*as_list(below), *as_list(value)]
        else:
            tree[name] = deepcopy(cast("Any", value))


def merge(tree: dict[str, Any], over: Mapping[str, Any]) -> None:
    for key, value in over.items():
        below = tree.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            merge(cast("dict[str, Any]", below), cast("dict[str, Any]", value))
        else:
            tree[key] = value
