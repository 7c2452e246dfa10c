"""What must be known about one host to read and write its servers, and where its files are in the user's environment.

The hosts themselves are in `table`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from goat_mcp.core.errors import ToolError
from goat_mcp.core.json_values import mapping
from goat_mcp.core.platform import SystemName
from goat_mcp.core.wsl_paths import WslPaths

Format = Literal["json", "jsonc", "toml", "yaml"]


class Key(StrEnum):
    """What becomes of a host's key. What has none of these is reported as unknown."""

    SAME = "same"
    CWD = "cwd"
    URL = "url"
    SSE_URL = "sse_url"
    """An address that is the retired transport's unless `type` says otherwise."""
    HEADERS = "headers"
    ENV = "env"
    ENV_NAMES = "env_names"
    """Names of variables that are handed on."""
    ENV_FILE = "env_file"
    BEARER = "bearer"
    BEARER_VARIABLE = "bearer_variable"
    HEADER_VARIABLES = "header_variables"
    REQUEST_OPTIONS = "request_options"
    """An object of how requests are made, `headers` among them."""
    SECONDS = "seconds"
    MILLISECONDS = "milliseconds"
    ENABLED = "enabled"
    TYPE = "type"
    COMMAND_LINE = "command_line"
    """Program and arguments in one list; older notations have an object of `path`, `args` and `env`."""
    TOOLS_SHOWN = "tools_shown"
    TOOLS_HIDDEN = "tools_hidden"
    APPROVAL = "approval"
    """Who asks before a call is the host's own matter."""
    MEANINGLESS = "meaningless"
    """Says nothing about the server, e.g. where the entry came from."""
    LOGIN = "login"
    START_WAIT = "start_wait"


class Variables(StrEnum):
    """The notations of references in a host's entries."""

    NONE = "none"
    SHELL = "shell"
    """`${X}` and `${X:-default}`."""
    DOLLAR = "dollar"
    """Those, and `$X`."""
    EDITOR = "editor"
    """`${env:X}`, `${userHome}`, `${workspaceFolder}`, `${input:ID}`."""
    BRACES = "braces"
    """`{env:X}` and `{file:PATH}`."""
    COMMANDS = "commands"
    """`$X`, `${X}`, and `$(command)`, which the host runs."""
    SECRETS = "secrets"
    """`${{ secrets.X }}`."""


class WorkspaceSource(StrEnum):
    """Where goat-mcp gets its workspace from if the host's entry names none."""

    NONE = "none"
    """The host sends no roots, and starts its servers in `/`, in the home directory, or nobody knows where."""
    ROOTS = "roots"
    """The host sends the folders that are open in it as roots."""
    START_DIRECTORY = "start_directory"
    """The host starts its servers in the project's directory: where it was started, or what is open in it."""


@dataclass(frozen=True)
class ConfigLocation:
    """A file, by system. Parts in braces are folders of `HostEnvironment`; `{X|fallback}` is a variable's."""

    any: str = ""
    linux: str = ""
    macos: str = ""
    windows: str = ""


def of_application(path: str) -> ConfigLocation:
    """A file where desktop applications of the system keep theirs."""
    return ConfigLocation(linux=f"{{config}}/{path}", macos=f"{{support}}/{path}", windows=f"{{appdata}}/{path}")


MCP_SERVERS = ("mcpServers",)
ON_WINDOWS = "@windows"
"""What the name of a host that runs on the Windows around this WSL ends with."""


@dataclass(frozen=True)
class Host:
    """One row of the table."""

    name: str
    title: str
    format: Format
    root: tuple[str, ...]
    """Where the entries are: the keys from the top of the document."""
    user: ConfigLocation | None = None
    elsewhere: ConfigLocation | None = None
    """Where some versions keep the user's file: that one is taken if it is there and `user` is not."""
    packaged: str = ""
    """On Windows: the pattern of its package's name, if it can be a packaged application. Such a one has an `%APPDATA%`
    of its own, and does not read that of the user."""
    project: str = ""
    """Below a project's directory."""
    keys: Mapping[str, Key] = field(default_factory=dict[str, Key])
    variables: Variables = Variables.NONE
    own_entry: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What our own entry says besides command, args and env."""
    command_key: str = "command"
    command_line: str = ""
    """The key that holds program and arguments in one list, where the host writes them so."""
    env_key: str = "env"
    name_key: str = ""
    """The key in which an entry repeats its name; empty if it does not."""
    is_list: bool = False
    """Whether the entries are a list, in which `name_key` tells them apart."""
    new_file: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What a file that is made has to say besides its servers."""
    per_project: tuple[str, ...] = ()
    """Where the user's file keeps entries of single projects: `*` stands for the project's directory."""
    workspace: WorkspaceSource = WorkspaceSource.NONE
    in_wsl: str = ""
    """What to know about its entry on Windows that starts goat-mcp in WSL."""
    after: str = ""
    """What the user has to do for the host to see a change."""
    paste_into: str = ""
    """The dialog that takes an entry as JSON, of a host that has no file of its own."""
    unseen: str = ""
    """What it keeps where we do not look, and what that decides."""
    distribution: str = ""
    """Of WSL, in which a host on Windows starts us. Empty if the host runs on this very system."""

    @property
    def is_on_windows(self) -> bool:
        """Whether it runs on the Windows around this WSL."""
        return self.name.endswith(ON_WINDOWS)

    @property
    def kind(self) -> str:
        """Its name in the table, wherever it runs."""
        return self.name.removesuffix(ON_WINDOWS)

    def on_windows(self, distribution: str = "") -> Host:
        """The same host, on the Windows around this WSL."""
        name, title = f"{self.kind}{ON_WINDOWS}", f"{self.title.removesuffix(' (Windows)')} (Windows)"
        return replace(self, name=name, title=title, distribution=distribution)


def entry_fields(entry: Any) -> Mapping[str, Any]:
    """The keys of one entry; what a nested `transport` object says is one level up."""
    fields = mapping(entry)
    nested = mapping(fields.get("transport"))
    return {**nested, **{key: value for key, value in fields.items() if key != "transport"}} if nested else fields


_PART = re.compile(r"\{(\w+)(?:\|([^}]*))?\}")


@dataclass(frozen=True)
class HostEnvironment:
    """One user's account on one system. Folders are spelled as this process spells them, variables as they are."""

    platform: SystemName
    home: Path
    environ: Mapping[str, str]
    wsl: WslPaths | None = None
    """In WSL, and of the Windows around it: how a path of Windows is spelled here."""
    around: HostEnvironment | None = None
    """In WSL: the same user's account on Windows, if it was found."""

    def of(self, host: Host) -> HostEnvironment:
        """The account on the system on which the host runs."""
        return self.around if self.around is not None and host.is_on_windows else self

    def path(self, place: ConfigLocation) -> Path | None:
        """The file on this system; None if there is none."""
        by_system = {"linux": place.linux, "macos": place.macos, "windows": place.windows}
        text = by_system[self.platform] or place.any
        return Path(_PART.sub(self._folder, text)) if text else None

    def user_file(self, host: Host) -> Path | None:
        """The file with the servers of a host's user; None if the host has none on its system, or nobody knows."""
        there = self.of(host)
        if host.is_on_windows and there.platform != "windows":
            return None
        user = None if host.user is None else there.path(host.user)
        if user is not None and there.platform == "windows" and host.packaged:
            user = there.packaged_file(host.packaged, user)
        other = None if host.elsewhere is None else there.path(host.elsewhere)
        if user is not None and other is not None and not os.path.lexists(user) and os.path.lexists(other):
            return other
        return user

    def packaged_file(self, package: str, user: Path) -> Path:
        """On Windows: the file below the `%APPDATA%` of a packaged application, if it is installed. Else `user`."""
        appdata = Path(self._folder_named("appdata"))
        local = Path(self._variable("LOCALAPPDATA") or self.home / "AppData" / "Local")
        try:
            packages = sorted((local / "Packages").glob(package))
        except OSError:
            return user
        files = [folder / "LocalCache" / "Roaming" / user.relative_to(appdata) for folder in packages]
        return next((file for file in files if os.path.lexists(file)), files[0] if files else user)

    def _folder(self, part: re.Match[str]) -> str:
        name, fallback = part.groups()
        if fallback is not None:
            return self._variable(name) or str(self.home / fallback)
        return self._folder_named(name)

    def _folder_named(self, name: str) -> str:
        return {
            "home": str(self.home),
            "config": self._variable("XDG_CONFIG_HOME") or str(self.home / ".config"),
            "appdata": self._variable("APPDATA") or str(self.home / "AppData" / "Roaming"),
            "support": str(self.home / "Library" / "Application Support"),
        }[name]

    def _variable(self, name: str) -> str:
        """A folder; empty if it is not set, or names one that is not reached from here."""
        value = self.environ.get(name, "")
        if self.wsl is None or self.platform != "windows":
            return value
        try:
            return self.wsl.linux(value) or ""
        except ToolError:
            return ""
