"""References as hosts write them, made into ours: `${VAR:-x}`, `$VAR`, `${userHome}`, `${input:ID}`, `{env:X}`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from goat_mcp.cli.hosts.host import Variables

KEYRING_SERVICE = "goat-mcp"
_BRACED = re.compile(r"\$\{([^{}]*)\}")
_BRACES = re.compile(r"(?<!\$)\{(env|file):([^{}]+)\}")
_TEMPLATE = re.compile(r"\$\{\{\s*(\w+)\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_DOLLAR = re.compile(r"\$(?:\{([^{}]*)\}|([A-Za-z_][A-Za-z0-9_]*))")
_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?\Z", re.S)
# What our own files would take for a reference although the host passes it on as it is.
_OURS = re.compile(r"\$\{(?:(?:env|keyring|file):[^}]*|[A-Z_][A-Z0-9_]*(?::-[^}]*)?)\}")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")


class Untranslatable(ValueError):
    """A reference that has no counterpart here; the text says which and why."""


@dataclass
class Translation:
    """Translates the texts of one entry. `notes` are what the user should know or do."""

    notation: Variables
    home: Path
    project: Path | None = None
    inputs: Sequence[Mapping[str, Any]] = ()
    folder: Path | None = None
    """Where the host's file is: some hosts' references to files start there."""
    notes: list[str] = field(default_factory=list[str])

    def tree(self, value: Any) -> Any:
        """`value` with the references in all its texts translated. Raises `Untranslatable`."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.tree(item) for item in cast("list[Any]", value)]
        if isinstance(value, dict):
            return {key: self.tree(child) for key, child in cast("dict[str, Any]", value).items()}
        return value

    def text(self, text: str) -> str:
        """Raises `Untranslatable`."""
        if self.notation in (Variables.NONE, Variables.BRACES):
            for match in _OURS.finditer(text):
                self._note(f"{match.group()} was plain text to the host; goat-mcp puts the value in its place")
            if self.notation is Variables.BRACES:
                return _BRACES.sub(lambda match: self._braces(*match.group(0, 1, 2)), text)
            return text
        if self.notation is Variables.COMMANDS and "$(" in text:
            raise Untranslatable("$(...) is a command that the host alone runs; store what it prints in the keyring")
        if self.notation is Variables.SECRETS:
            return _TEMPLATE.sub(lambda match: self._template(*match.group(0, 1, 2)), text)
        if self.notation in (Variables.DOLLAR, Variables.COMMANDS):
            return _DOLLAR.sub(lambda match: self._variable(match.group(), match.group(1) or match.group(2)), text)
        if self.notation is Variables.SHELL:
            return _BRACED.sub(lambda match: self._variable(match.group(), match.group(1)), text)
        return _BRACED.sub(lambda match: self._editors(match.group(), match.group(1)), text)

    def _variable(self, whole: str, inner: str) -> str:
        named = _NAME.match(inner)
        if named is None:
            return whole
        name, default = named.groups()
        return f"${{env:{name}}}" if default is None else f"${{env:{name}:-{default}}}"

    def _braces(self, whole: str, kind: str, name: str) -> str:
        if kind == "env":
            if "${" in (written := self._variable(whole, name)) and ":-" not in written:
                self._note(f"{whole}: a variable that is not set reaches the server as an empty one")
                return f"{written[:-1]}:-}}"
            raise Untranslatable(f"{whole} is no name of a variable that goat-mcp could look up")
        path = Path(name.replace("~", str(self.home), 1) if name.startswith("~/") else name)
        if not path.is_absolute():
            if self.folder is None:
                raise Untranslatable(f"{whole} is a file whose folder is not known")
            path = self.folder / path
        self._note(f"{whole}: the file has to be yours alone (chmod 600)")
        return f"${{file:{path}}}"

    def _template(self, whole: str, kind: str, name: str) -> str:
        if kind != "secrets":
            raise Untranslatable(f"{whole} is known to the host alone")
        self._note(f"{whole}: the host has it from its .env files; set the variable {name}")
        return f"${{env:{name}}}"

    def _editors(self, whole: str, inner: str) -> str:
        kind, _, name = inner.partition(":")
        if kind == "env" and name:
            return whole
        if kind == "file" and name:
            self._note(f"{whole}: the file has to be yours alone (chmod 600)")
            return whole
        if kind == "input" and name:
            return self._input(name)
        if inner == "userHome":
            return str(self.home)
        if inner in ("pathSeparator", "/"):
            return "/" if str(self.home).startswith("/") else "\\"
        if inner in ("workspaceFolder", "workspaceFolderBasename"):
            if self.project is None:
                raise Untranslatable(f"{whole} is a different folder in each window; name one with --project")
            return str(self.project) if inner == "workspaceFolder" else self.project.name
        if kind in ("command", "config", "workspaceFolder"):
            raise Untranslatable(f"{whole} is known to the host alone")
        return self._variable(whole, inner)

    def _input(self, name: str) -> str:
        asked: Mapping[str, Any] = next((found for found in self.inputs if found.get("id") == name), dict[str, Any]())
        default = asked.get("default")
        described = asked.get("description")
        what = f" ({described})" if isinstance(described, str) and described else ""
        if asked and not asked.get("password"):
            variable = _NOT_IN_NAMES.sub("_", name).upper()
            variable = f"_{variable}" if variable[0].isdigit() else variable
            if isinstance(default, str) and "}" not in default:
                self._note(f"${{input:{name}}}{what} is {default!r} unless the variable {variable} is set")
                return f"${{env:{variable}:-{default}}}"
            self._note(f"${{input:{name}}}{what} is asked by the host alone; set the variable {variable}")
            return f"${{env:{variable}}}"
        self._note(
            f"${{input:{name}}}{what} comes from the keyring now; store it: keyring set {KEYRING_SERVICE} {name}"
        )
        return f"${{keyring:{KEYRING_SERVICE}/{name}}}"

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)
