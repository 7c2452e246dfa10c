"""What a host says outside of an entry about whether it starts the server: lists of names, approvals, trusted folders.

Sources: the vendors' pages and programs, as of November 2026. A switch inside an entry (`disabled`, `enabled`) is
translated with it. What a host keeps in a database of its own is not read; `Host.unseen` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from goat_mcp.cli.hosts.host import ConfigLocation, Host, HostEnvironment
from goat_mcp.cli.hosts.host_file import read_host_file
from goat_mcp.cli.hosts.sources import Source
from goat_mcp.core.json_values import items, mapping, mappings

WhyOff = Callable[[str, Any], str]
"""Why the host would not start the server of this name and entry, in words; empty if it would."""

_DENIED = "it is denied in Claude Code (deniedMcpServers)"
_CLAUDE_SETTINGS = ConfigLocation(any="{CLAUDE_CONFIG_DIR|.claude}/settings.json")


def off_switch(source: Source, environment: HostEnvironment) -> WhyOff:
    """Read once what the host says about its servers elsewhere. Raises `ToolError` for a file that cannot be read."""
    reader = _READERS.get(source.host.kind)
    return reader(source, environment.of(source.host)) if reader is not None else lambda name, entry: ""


def projects_without(source: Source, name: str) -> list[str]:
    """The projects for which a server that is started everywhere else is switched off."""
    if source.host.kind != "claude-code" or source.project is not None:
        return []
    projects = _object(source.file.tree, "projects")
    return [folder for folder in projects if name in _names(_object(projects, folder), "disabledMcpServers")]


def _claude_code(source: Source, environment: HostEnvironment) -> WhyOff:
    shared = source.file.path.name == ".mcp.json"
    project = source.file.path.parent if shared and source.project is None else source.project
    user = _tree(source.host, environment.path(_CLAUDE_SETTINGS))
    if project is None:
        return lambda name, entry: _DENIED if _is_denied([user], name, entry) else ""
    projects = _object(_user_tree(source.host, environment), "projects")
    own = _object(projects, str(project))
    committed = _tree(source.host, project / ".claude" / "settings.json")
    local = _tree(source.host, project / ".claude" / "settings.local.json")
    is_trusted = any(
        _object(projects, str(folder)).get("hasTrustDialogAccepted") is True for folder in (project, *project.parents)
    )
    # A repository that was cloned cannot approve its own servers.
    approving = [own, user, *([committed, local] if is_trusted else [])]
    off = _names(own, "disabledMcpServers")
    rejected = _in_any([own, user, committed, local], "disabledMcpjsonServers")
    approved = _in_any(approving, "enabledMcpjsonServers")
    every = any(tree.get("enableAllProjectMcpServers") is True for tree in approving)

    def why(name: str, entry: Any) -> str:
        if name in off:
            return "it is switched off in Claude Code (disabledMcpServers)"
        if _is_denied([user, committed, local], name, entry):
            return _DENIED
        if shared and name in rejected:
            return "it was rejected in Claude Code (disabledMcpjsonServers)"
        if shared and not every and name not in approved:
            return "it was not approved in Claude Code yet"
        return ""

    return why


def _is_denied(trees: Iterable[Mapping[str, Any]], name: str, entry: Any) -> bool:
    """By its name, its whole command line, or its address, where `*` is anything."""
    fields = mapping(entry)
    line = [fields.get("command"), *items(fields.get("args"))]
    for rule in (rule for tree in trees for rule in mappings(tree.get("deniedMcpServers"))):
        address = rule.get("serverUrl")
        if rule.get("serverName") == name or rule.get("serverCommand") == line:
            return True
        if isinstance(address, str) and fnmatchcase(str(fields.get("url", "")), address.replace("[", "[[]")):
            return True
    return False


def _gemini(source: Source, environment: HostEnvironment) -> WhyOff:
    user_file = _user_path(source.host, environment)
    trees = [source.file.tree] if source.project is None else [source.file.tree, _tree(source.host, user_file)]
    lists = [_object(tree, "mcp") for tree in trees]
    # Their older places are read to this day.
    excluded = _lowered(_in_any(lists, "excluded") | _in_any(trees, "excludeMCPServers"))
    allowed = [_lowered(_names(tree, "allowed")) for tree in lists]
    allowed += [_lowered(_names(tree, "allowMCPServers")) for tree in trees]
    states = _tree(source.host, user_file and user_file.with_name("mcp-server-enablement.json"))
    distrust = _gemini_distrust(source, trees[-1], user_file)

    def why(name: str, entry: Any) -> str:
        name = name.lower().strip()
        if name in excluded:
            return "it is excluded in Gemini CLI (mcp.excluded)"
        if any(names and name not in names for names in allowed):
            return "it is not among those that Gemini CLI may start (mcp.allowed)"
        if _object(states, name).get("enabled") is False:
            return "it is switched off in Gemini CLI (gemini mcp disable)"
        return distrust

    return why


def _qwen(source: Source, environment: HostEnvironment) -> WhyOff:
    user = [] if source.project is None else [_user_tree(source.host, environment)]
    lists = [_object(tree, "mcp") for tree in (source.file.tree, *user)]
    excluded = _in_any(lists, "excluded")
    allowed = [names for names in (_names(tree, "allowed") for tree in lists) if names]

    def why(name: str, entry: Any) -> str:
        if _matches_any(name, excluded):
            return "it is excluded in Qwen Code (mcp.excluded)"
        is_allowed = all(_matches_any(name, patterns) for patterns in allowed)
        return "" if is_allowed else "it is not among those that Qwen Code may start (mcp.allowed)"

    return why


def _matches_any(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern.replace("[", "[[]")) for pattern in patterns)


def _gemini_distrust(source: Source, user: Mapping[str, Any], user_file: Path | None) -> str:
    """Why no server of this project is started; empty if they are."""
    is_asked = _object(_object(user, "security"), "folderTrust").get("enabled") is True
    if source.project is None or user_file is None or not is_asked:
        return ""
    folders = _tree(source.host, user_file.with_name("trustedFolders.json"))
    above = (source.project, *source.project.parents)
    trusted = {Path(name) for name, level in folders.items() if level == "TRUST_FOLDER"}
    trusted |= {Path(name).parent for name, level in folders.items() if level == "TRUST_PARENT"}
    is_refused = folders.get(str(source.project)) == "DO_NOT_TRUST"
    return "" if not is_refused and trusted.intersection(above) else "Gemini CLI does not trust the project's folder"


def _codex(source: Source, environment: HostEnvironment) -> WhyOff:
    if source.project is None:
        return lambda name, entry: ""
    above = (source.project, *source.project.parents)
    root = next((folder for folder in above if (folder / ".git").exists()), source.project)
    projects = _object(_user_tree(source.host, environment), "projects")
    levels = [_object(projects, str(folder)).get("trust_level") for folder in (source.project, root)]
    why = "" if next((level for level in levels if level), None) == "trusted" else "Codex does not trust the project"
    return lambda name, entry: why


def _copilot_cli(source: Source, environment: HostEnvironment) -> WhyOff:
    user_file = _user_path(source.host, environment)
    trees = [
        _tree(source.host, user_file.with_name(name))
        for name in ("settings.json", "config.json")
        if user_file is not None
    ]
    off = _in_any(trees, "disabledMcpServers")
    return lambda name, entry: "it is switched off in Copilot CLI (disabledMcpServers)" if name in off else ""


_READERS: Mapping[str, Callable[[Source, HostEnvironment], WhyOff]] = {
    "claude-code": _claude_code,
    "gemini": _gemini,
    "codex": _codex,
    "copilot-cli": _copilot_cli,
    "qwen": _qwen,
}


def _user_path(host: Host, environment: HostEnvironment) -> Path | None:
    return environment.user_file(host)


def _user_tree(host: Host, environment: HostEnvironment) -> Mapping[str, Any]:
    path = _user_path(host, environment)
    return {} if path is None else read_host_file(host, path).tree


def _tree(host: Host, path: Path | None) -> Mapping[str, Any]:
    """A file of settings beside the one with the servers. Raises `ToolError`."""
    found = None if path is None else read_host_file(Host(host.name, host.title, "jsonc", ()), path)
    return {} if found is None or found.data is None else found.tree


def _object(tree: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return mapping(tree.get(key))


def _names(tree: Mapping[str, Any], key: str) -> set[str]:
    return {str(name) for name in items(tree.get(key))}


def _in_any(trees: Iterable[Mapping[str, Any]], key: str) -> set[str]:
    return {name for tree in trees for name in _names(tree, key)}


def _lowered(names: Iterable[str]) -> set[str]:
    return {name.lower().strip() for name in names}
