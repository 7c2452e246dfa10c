"""What runs when a declared tool is called: a file or module of handlers, a program, or an HTTP endpoint.

And the files that it names: whether they are still those that a call was judged with.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from goat_mcp.core import posix
from goat_mcp.manifests.fields import Fields
from goat_mcp.state.file_safety import why_writable

Language = Literal["python", "node"]
"""What runs a file of handlers. Node.js also runs TypeScript, from 22.18 on."""
ENTRY_KEYS = ("python", "module", "command", "http")
"""What an entry may be: one of these."""
HTTP_KEYS = ("url", "method", "headers")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
MODULE_SHAPE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*\Z")
_LANGUAGES: Mapping[str, Language] = {
    ".py": "python",
    **dict.fromkeys((".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"), "node"),
}
_RUNS_WITH = {".sh": "bash", ".rb": "ruby", ".go": "go run"}
_WANTED = "a Python or JavaScript file (./tool.py, ./index.js), {command: [...]}, or {http: {url: ...}}"


class _Shape(NamedTuple):
    """What names and values of one kind look like."""

    what: str
    name: re.Pattern[str]
    example: str
    value: re.Pattern[str]
    remedy: str


_VARIABLE = _Shape(
    "variable", re.compile(r"[^=\0]+"), "WEATHER_KEY", re.compile(r"[^\0]*"), "take the NUL character out"
)
_HEADER = _Shape(
    "header",
    re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII),
    "X-Api-Key",
    re.compile(r"[^\r\n\0]*"),
    "write it in one line",
)


@dataclass(frozen=True)
class HandlersEntry:
    """A file, or an installed Python module, with a map `handlers` of async functions."""

    file: Path | None = None
    module: str = ""
    language: Language = "python"

    @property
    def origin(self) -> str:
        """The file or module, for people."""
        return str(self.file or self.module)


@dataclass(frozen=True)
class CommandEntry:
    """A program: the input as JSON on its standard input, the value as JSON on its standard output.

    It runs in the manifest's directory. `{export}` in an argument is the export's name.
    """

    arguments: tuple[str, ...]
    env: Mapping[str, str]


@dataclass(frozen=True)
class HttpEntry:
    """An endpoint: the input as JSON body (or as query, with GET), the value as JSON answer.

    `{export}` in the URL is the export's name. Values of headers may be references, e.g. `${env:TOKEN}`.
    """

    url: str
    method: str
    headers: Mapping[str, str]


Entry = HandlersEntry | CommandEntry | HttpEntry


def read_entry(spec: Fields, folder: Path) -> Entry | None:
    """The member `entry` of a tool; None where it has problems, which are noted."""
    value: Any = spec.tree.get("entry")
    if isinstance(value, str) and value.strip():
        return _from_text(spec, value.strip(), folder)
    if not isinstance(value, dict):
        spec.fail("spec.entry is missing" if value is None else "spec.entry is of no known kind", f"write {_WANTED}")
        return None
    entry = spec.mapping("entry")
    assert entry is not None  # it is a mapping
    entry.only(*ENTRY_KEYS, "env")
    kinds = [key for key in ENTRY_KEYS if key in entry.tree]
    if len(kinds) != 1:
        entry.fail("spec.entry is to be one thing", f"give exactly one of {', '.join(ENTRY_KEYS)}")
        return None
    return {"python": _python, "module": _module, "command": _command, "http": _http}[kinds[0]](entry, folder)


def _from_text(spec: Fields, value: str, folder: Path) -> Entry | None:
    suffix = Path(value).suffix
    if value.startswith(("http://", "https://")):
        return _checked_url(spec, value, "POST", {}, "entry")
    if (language := _LANGUAGES.get(suffix)) is not None:
        return _file(spec, value, folder, "entry", language)
    if suffix in _RUNS_WITH:
        program = ", ".join(_RUNS_WITH[suffix].split())
        spec.fail(
            f"spec.entry: {value} is no Python or JavaScript file",
            f"write entry: {{command: [{program}, {value}]}}",
            "entry",
        )
        return None
    if MODULE_SHAPE.match(value):
        return HandlersEntry(module=value)
    spec.fail(f"spec.entry: {value!r:.80} is of no known kind", f"write {_WANTED}", "entry")
    return None


def _python(entry: Fields, folder: Path) -> Entry | None:
    return _file(entry, entry.text("python"), folder, "python")


def _file(fields: Fields, value: str, folder: Path, key: str, language: Language = "python") -> Entry | None:
    if "\0" in value:
        fields.fail(f"{value!r:.80} holds a NUL character", "take it out", key)
        return None
    file = os.path.normpath(folder / value)
    # A name alone is looked at once: five hundred manifests are read at a start.
    is_plain = os.path.dirname(file) == str(folder) and not os.path.islink(file)  # noqa: PTH114, PTH120  # see above
    if not is_plain and not is_below(Path(file), folder):
        fields.fail(f"{value} lies outside the manifest's directory", "move the file beside the manifest", key)
        return None
    try:
        found = os.stat(file)  # noqa: PTH116  # see above
    except OSError:
        found = None
    if found is None or not stat.S_ISREG(found.st_mode):
        name = os.path.basename(file)  # noqa: PTH119  # it is text here
        fields.fail(f"{value} is not there", f"create {name} beside the manifest, or fix the path", key)
        return None
    if reason := why_writable(found):
        fields.fail(f"{value} {reason}", f"take the right to change it from others: chmod go-w {value}", key)
        return None
    return HandlersEntry(file=Path(file), language=language)


def is_below(file: Path, folder: Path) -> bool:
    """Whether it lies in the directory, links followed, as far as they lead anywhere."""
    return Path(os.path.realpath(file)).is_relative_to(os.path.realpath(folder))


def _module(entry: Fields, folder: Path) -> Entry | None:
    module = entry.matching("module", MODULE_SHAPE, "a module's name, e.g. my_package.tools")
    return HandlersEntry(module=module)


def _command(entry: Fields, folder: Path) -> Entry | None:
    arguments = entry.texts("command")
    if not arguments or not arguments[0].strip():
        entry.fail("spec.entry.command is empty", "write the program and its arguments as a list", "command")
        return None
    if isinstance(entry.tree["command"], str) and " " in arguments[0].strip():
        words = ", ".join(arguments[0].split())
        entry.fail("spec.entry.command is one text", f"no shell reads it: write a list, [{words}]", "command")
        return None
    if any("\0" in argument for argument in arguments):
        entry.fail("spec.entry.command holds a NUL character", "take it out", "command")
        return None
    return CommandEntry(arguments, _texts_by_name(entry, "env", _VARIABLE))


def _http(entry: Fields, folder: Path) -> Entry | None:
    http = entry.mapping("http")
    if http is None:
        return None
    http.only(*HTTP_KEYS)
    method = http.choice("method", METHODS, default="POST") or "POST"
    return _checked_url(http, http.text("url", what="a URL"), method, _texts_by_name(http, "headers", _HEADER), "url")


def _texts_by_name(fields: Fields, key: str, shape: _Shape) -> Mapping[str, str]:
    found = fields.text_map(key)
    for name, value in found.items():
        if not shape.name.fullmatch(name):
            what = f"{fields.name_of(key)}: {name!r:.60} is no name of a {shape.what}"
            fields.fail(what, f"write e.g. {shape.example}", key, name)
        if not shape.value.fullmatch(value):
            what = f"{fields.name_of(key)}.{name:.60} is no value of a {shape.what}: {value!r:.60}"
            fields.fail(what, shape.remedy, key, name)
    return found


def _checked_url(fields: Fields, url: str, method: str, headers: Mapping[str, str], key: str) -> Entry | None:
    if wrong := url_problem(url):
        fields.fail(*wrong, key)
        return None
    return HttpEntry(url, method, headers)


def url_problem(url: str) -> tuple[str, str] | None:
    """Why no calls can be sent there, and what to write instead; None where they can."""
    try:
        parts = urlsplit(url.replace("{export}", "x"))
        is_usable = url.isprintable() and parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        parts, is_usable = None, False
    if parts is None or not is_usable:
        return f"{url!r:.80} is no http or https URL", "write e.g. https://host/path"
    if parts.username or parts.password:
        return "the URL holds a user name or password", "send it as a header: headers: {Authorization: ...}"
    return None


MAX_HASHED_BYTES = 16 * 1024 * 1024
"""An argument may name a file of any size; a longer one is identified by its state only."""
_GONE = "-"
_READ_FLAGS = os.O_RDONLY | posix.O_NONBLOCK


@dataclass(frozen=True)
class HandlerFiles:
    """The files that an entry names. What they import or start is only covered in a sealed copy.

    `sealed_as` returns the name (a content hash) of the copy they are in, or nothing.
    """

    entry: Entry
    folder: Path
    sealed_as: Callable[[], str]

    def state(self, export: str) -> str:
        """Identifies the files of an export until they change or are replaced. Taken twice in each call, so no file is
        read. Only valid in this process."""
        return " ".join(_state(path.replace("{export}", export)) for path in self._named)

    def content(self, export: str) -> str:
        """Identifies the content of the files, also for other processes."""
        return self.sealed_as() or " ".join(_content(path.replace("{export}", export)) for path in self._named)

    @cached_property
    def _named(self) -> tuple[str, ...]:
        if isinstance(self.entry, HandlersEntry) and self.entry.file is not None:
            return (str(self.entry.file),)
        if isinstance(self.entry, CommandEntry):
            # A program by its name alone is found on PATH; of its arguments any may be a script beside the manifest.
            return tuple(os.path.join(self.folder, one) for one in self.entry.arguments if one)  # noqa: PTH118  # a `Path` costs more than the look
        return ()


def _state(path: str) -> str:
    try:
        found = os.stat(path)  # noqa: PTH116  # a `Path` costs more than the look
    except (OSError, ValueError):
        return _GONE
    return _state_of(found) if stat.S_ISREG(found.st_mode) else _GONE


def _state_of(found: os.stat_result) -> str:
    # The time of the last change of any kind: that of the contents can be set at will.
    return f"{found.st_dev}.{found.st_ino}.{found.st_size}.{found.st_mtime_ns}.{found.st_ctime_ns}"


def _content(path: str) -> str:
    try:
        with os.fdopen(os.open(path, _READ_FLAGS), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                return _GONE
            return (
                hashlib.file_digest(file, "sha256").hexdigest()
                if found.st_size <= MAX_HASHED_BYTES
                else _state_of(found)
            )
    except (OSError, ValueError):
        return _GONE
