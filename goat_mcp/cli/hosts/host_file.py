"""A host's file: read once, its entries found, edited in its own format, and never half written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from goat_mcp.cli.hosts.host import Host
from goat_mcp.cli.hosts.toml_text import NotToml, edited_toml, read_toml
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.json_values import items, mapping
from goat_mcp.settings.json_text import NotJson, edited_json, read_json
from goat_mcp.state.file_edit import read_bytes

_MARK = "\ufeff"


@dataclass(frozen=True)
class HostFile:
    """What a host's file holds. `data` is None if there is no file."""

    host: Host
    path: Path
    data: bytes | None
    root: tuple[str, ...]
    """Where the entries in question are."""

    @property
    def text(self) -> str:
        """Without the mark that some editors of Windows put before it. Raises `ToolError(CONFIG)`."""
        try:
            return (self.data or b"").decode("utf-8").removeprefix(_MARK)
        except UnicodeDecodeError:
            raise self._broken("is not UTF-8 text") from None

    @cached_property
    def tree(self) -> dict[str, Any]:
        """All of it. Raises `ToolError(CONFIG)`."""
        if self.data is None:
            return {}
        try:
            if self.host.format == "toml":
                return read_toml(self.text)
            if self.host.format == "yaml":
                return self._yaml()
            return read_json(self.text, with_comments=self.host.format == "jsonc")
        except (NotJson, NotToml) as why:
            raise self._broken(str(why)) from None

    @property
    def entries(self) -> dict[str, Any]:
        """The servers by name. Raises `ToolError(CONFIG)`."""
        found: Any = self.tree
        for key in self.root:
            found = cast("dict[str, Any]", found).get(key) if isinstance(found, dict) else None
        if found is None:
            return {}
        if self.host.is_list:
            return self._named(found)
        if not isinstance(found, dict):
            raise self._broken(f"{'.'.join(self.root)} is not an object of servers")
        return dict(cast("dict[str, Any]", found))

    def _named(self, found: Any) -> dict[str, Any]:
        """The items of a list. What has no name is passed over, e.g. a reference to a server of the host's maker."""
        if not isinstance(found, list):
            raise self._broken(f"{'.'.join(self.root)} is not a list of servers")
        named: dict[str, Any] = {}
        for item in items(found):
            name = mapping(item).get(self.host.name_key)
            if name in named:
                raise self._broken(f"{'.'.join(self.root)} holds two servers that are named {name!r}")
            if isinstance(name, str):
                named[name] = item
        return named

    def changed(self, *, remove: Sequence[str], add: Mapping[str, Any]) -> bytes:
        """What the file holds with some entries out and others in. Raises `ToolError(CONFIG)`."""
        text = self.text
        try:
            if self.host.format == "yaml":
                edited = self._edited_yaml(text, remove, add)
            elif self.host.format == "toml":
                edited = edited_toml(text, self.root[0], remove=remove, add=add)
            else:
                with_comments = self.host.format == "jsonc"
                edited = edited_json(text, self.root, remove=remove, add=add, with_comments=with_comments)
        except (NotJson, NotToml) as why:
            raise self._broken(str(why)) from None
        mark = _MARK if (self.data or b"").startswith(_MARK.encode()) else ""
        return (mark + edited).encode()

    def _edited_yaml(self, text: str, remove: Sequence[str], add: Mapping[str, Any]) -> str:
        from goat_mcp.settings.yaml_text import REMOVED, edited_list, edited_yaml

        key = self.host.name_key
        named = {name: {key: name, **entry} if key else entry for name, entry in add.items()}
        try:
            for name, value in self.host.new_file.items() if not self.tree else ():
                text = edited_yaml(text, [name], value)
            if self.host.is_list:
                gone = [entry for name, entry in self.entries.items() if name in remove]
                return edited_list(text, self.root, add=list(named.values()), remove=gone)
            for name in remove:
                text = edited_yaml(text, [*self.root, name], named.pop(name, REMOVED))
            for name, entry in named.items():
                text = edited_yaml(text, [*self.root, name], entry)
        except ToolError as why:
            raise self._broken(why.message) from None
        return text

    def _yaml(self) -> dict[str, Any]:
        from goat_mcp.settings.yaml_text import read_yaml

        try:
            return read_yaml(self.text)
        except ToolError as why:
            raise self._broken(why.message) from None

    def _broken(self, why: str) -> ToolError:
        return ToolError(
            ErrorCode.CONFIG,
            f"{self.host.title}'s file {self.path}: {why}",
            "Nothing was changed. Fix the file and try again.",
        )


def read_host_file(host: Host, path: Path, root: Sequence[str] = ()) -> HostFile:
    """The file as it is now; one that is not there is empty. Raises `ToolError(IO)`."""
    return HostFile(host, path, read_bytes(path), tuple(root) or host.root)
