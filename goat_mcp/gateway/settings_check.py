"""Everything that is wrong with one settings file, each with its line: for commands that edit or validate it.

A start stops at the first problem; a person who fixes a file wants to see all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml

from goat_mcp.calls.permissions.mode import Effect
from goat_mcp.calls.permissions.rule import BrokenRule, parse_rule
from goat_mcp.core.errors import ToolError
from goat_mcp.gateway.build.manifests import declared_toolsets
from goat_mcp.gateway.build.manifests import read as read_manifests
from goat_mcp.gateway.build.rule_loading import rules_of
from goat_mcp.gateway.build.tools import DeclaredToolsets, ToolSelection
from goat_mcp.settings.json_spans import object_at, skip_blanks
from goat_mcp.settings.settings import BrokenSettings, Settings, path_keys, problems_in, settings_of
from goat_mcp.state.directory import own_upstreams_file
from goat_mcp.state.trust.project import with_absolute_paths
from goat_mcp.state.trust.settings_file import BrokenFile, SettingsFile, read_users_file
from goat_mcp.upstreams.config.entry import UpstreamConfig
from goat_mcp.upstreams.config.upstream_files import BrokenUpstreamsFile, load_upstream_files
from goat_mcp.upstreams.status import ReasonCode


@dataclass(frozen=True)
class FileProblem:
    """`line` counts from 1; 0 if it is not known. `key` is empty for the file as a whole."""

    file: Path
    line: int
    key: str
    what: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else str(self.file)
        return f"{place}: {self.key}: {self.what}" if self.key else f"{place}: {self.what}"


def problems_of_file(path: Path) -> list[FileProblem]:
    """All problems of a file on disk: of settings, or of servers if its name ends with .json."""
    try:
        data = read_users_file(path).data
    except BrokenFile as broken:
        return [FileProblem(path, 0, "", str(broken).removeprefix(str(path)).lstrip(": "))]
    return _servers_problems(path, data) if path.suffix == ".json" else settings_problems(path, data)


def _servers_problems(path: Path, data: bytes) -> list[FileProblem]:
    try:
        files = load_upstream_files([path], contents={path: data})
    except BrokenUpstreamsFile as broken:
        line = re.match(r"line (\d+), ", broken.what)
        return [FileProblem(path, int(line[1]) if line else 0, "", broken.what)]
    return [
        FileProblem(path, _line_of_server(data, one.name), f"mcpServers.{one.name}", one.message)
        for one in files.problems
        if one.reason_code is not ReasonCode.DISABLED
    ]


def _line_of_server(data: bytes, name: str) -> int:
    text = data.decode("utf-8-sig")
    servers = object_at(text, skip_blanks(text, 0)).last("mcpServers")
    member = object_at(text, servers.value_start).last(name) if servers is not None else None
    return 0 if member is None else text.count("\n", 0, member.start) + 1


def settings_problems(path: Path, data: bytes) -> list[FileProblem]:
    """All problems of a settings file that holds `data`."""
    try:
        given = SettingsFile(path, data).tree
    except BrokenFile as broken:
        line, what = _place_and_text(str(broken).removeprefix(str(path)))
        return [FileProblem(path, line, "", what)]
    tree = with_absolute_paths(given, path.absolute().parent, path_keys())
    lines = Lines(data)
    found = list(problems_in(tree)) or list(_unusable(settings_of(tree, str(path))))
    return [FileProblem(path, lines.of(key), key, what) for key, what in found]


def _place_and_text(said: str) -> tuple[int, str]:
    """`:3:7: not valid YAML` as line and text."""
    line, _, rest = said.removeprefix(":").partition(":")
    if line.isdigit():
        _, _, what = rest.partition(":")
        return int(line), what.strip()
    return 0, said.removeprefix(":").strip()


def _unusable(settings: Settings) -> Iterator[tuple[str, str]]:
    """What is well formed and means nothing: rules, and the choice of tools."""
    listed = settings.permissions
    for effect, texts in ((Effect.ALLOW, listed.allow), (Effect.ASK, listed.ask), (Effect.DENY, listed.deny)):
        for index, text in enumerate(texts):
            try:
                parse_rule(text, may_name_all=effect is not Effect.ALLOW)
            except BrokenRule as broken:
                yield f"permissions.{effect.value}.{index}", str(broken)
    without_rules = settings.model_copy(update={"permissions": type(listed)()})
    yield from _tried("bash", lambda: rules_of(without_rules))
    manifests = read_manifests(settings)
    toolsets: DeclaredToolsets = {} if manifests is None else declared_toolsets(manifests.users)
    resources = () if manifests is None else [tool.name for tool in (*manifests.users.tools, *manifests.shipped.tools)]
    upstreams = _upstreams(settings)

    def only(key: str, entry: str) -> Callable[[], object]:
        catalog = settings.catalog.model_copy(update={"allow": None, "deny": (), key: (entry,)})
        changed = settings.model_copy(update={"catalog": catalog})
        return ToolSelection(changed, upstreams, toolsets, resources).filter

    for key in ("allow", "deny", "toolsets"):
        entries: Sequence[str] = getattr(settings.catalog, key) or ()
        for index, entry in enumerate(entries):
            yield from _tried(f"catalog.{key}.{index}", only(key, entry))
    plain = settings.model_copy(update={"catalog": settings.catalog.model_copy(update={"allow": None, "deny": ()})})
    chosen = ToolSelection(plain, upstreams, toolsets, resources)
    yield from _tried("catalog.presets", chosen.filter)
    yield from _tried("profiles", chosen.profiles)


def _upstreams(settings: Settings) -> Sequence[UpstreamConfig]:
    """Those that are named, as far as they can be read: their tools may have flat names, which selections may use."""
    own = own_upstreams_file()
    files = settings.upstreams or ((own,) if own.is_file() else ())
    try:
        return load_upstream_files(files).configs
    except BrokenUpstreamsFile:
        return ()


def _tried(key: str, use: Callable[[], object]) -> Iterator[tuple[str, str]]:
    try:
        use()
    except BrokenSettings as broken:
        named, _, what = broken.message.partition(": ")
        yield (key, what) if key.startswith(named) else (named if " " not in named else key, what or broken.message)
    except ToolError as broken:
        yield key, broken.message


class Lines:
    """Where the keys of a YAML text stand."""

    def __init__(self, data: bytes) -> None:
        try:
            self._root: Any = cast("Any", yaml).compose(data.decode("utf-8-sig"), yaml.SafeLoader)
        except (ValueError, yaml.YAMLError):
            self._root = None

    def of(self, key: str) -> int:
        """The line of a key, or of an item by its index; that of the nearest level above if it is not there; else 0."""
        node, line = self._root, 0
        names = key.split(".")
        while names and node is not None:
            node, mark = self._below(node, names)
            if mark is None:
                break
            line = mark.line + 1
        return line

    @staticmethod
    def _below(node: Any, names: list[str]) -> tuple[Any, Any]:
        """The node of as many first `names` as make a key, which are taken away, and where that key stands."""
        if isinstance(node, yaml.MappingNode):
            members = {str(name.value): (name, value) for name, value in cast("Any", node).value}
            for count in range(1, len(names) + 1):
                if (found := members.get(".".join(names[:count]))) is not None:
                    del names[:count]
                    return found[1], found[0].start_mark
        if isinstance(node, yaml.SequenceNode) and names[0].isdigit() and int(names[0]) < len(cast("Any", node).value):
            item = cast("Any", node).value[int(names.pop(0))]
            return item, item.start_mark
        return None, None
