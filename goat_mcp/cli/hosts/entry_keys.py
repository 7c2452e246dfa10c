"""What becomes of each key of a host's entry: one function for each kind of key that the table knows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from goat_mcp.cli.hosts.host import Key
from goat_mcp.cli.hosts.references import Translation
from goat_mcp.core.errors import ToolError
from goat_mcp.core.json_values import items, mapping
from goat_mcp.processes.wsl import local_path

_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*=\s*(.*)\Z")
_COMMENT = re.compile(r"\s#.*\Z")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


def read_env_file(text: str) -> dict[str, str]:
    """Values by name; what is no such line is passed over, as hosts do."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        match = _LINE.match(line.strip())
        if match is None:
            continue
        name, value = match.groups()
        if len(value) > 1 and value[0] in "\"'`" and (end := value.rfind(value[0])) > 0:
            quote, inner = value[0], value[1:end]
            value = re.sub(r"\\(.)", lambda one: _ESCAPES.get(one[1], one[1]), inner) if quote == '"' else inner
        else:
            value = _COMMENT.sub("", value).strip()
        found[name] = value
    return found


_HTTP_TYPES = frozenset({"http", "streamable-http", "streamable_http", "streamableHttp", "streamablehttp", "remote"})
_STDIO_TYPES = frozenset({"stdio", "local", "builtin"})
_SHORTEST_WAIT_MS = 1000
_TRANSLATED = frozenset(
    {Key.SAME, Key.CWD, Key.URL, Key.SSE_URL, Key.HEADERS, Key.REQUEST_OPTIONS, Key.BEARER, Key.ENV, Key.ENV_FILE}
    | {Key.COMMAND_LINE}
)
"""Keys whose values may hold references."""


@dataclass
class EntryDraft:
    """The entry as far as it is made."""

    name: str
    translation: Translation
    entry: dict[str, Any] = field(default_factory=dict[str, Any])
    env: dict[str, str] = field(default_factory=dict[str, str])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    notes: list[str] = field(default_factory=list[str])


class NotImportable(ValueError):
    """The server cannot be taken over; the text says why."""


def write(draft: EntryDraft, meaning: Key, key: str, value: Any) -> None:
    """Put one key of a host's entry into ours. Raises `NotImportable`, `Untranslatable`."""
    if meaning in _WRITERS:
        _WRITERS[meaning](draft, key, draft.translation.tree(value) if meaning in _TRANSLATED else value)
    elif meaning in _NOTES and (value or meaning is not Key.APPROVAL):
        draft.notes.append(f"{key}: {_NOTES[meaning]}")


def texts_of(value: Any) -> list[str]:
    """The texts of a list; none if it is no list."""
    return [str(item) for item in items(value)]


def _same(draft: EntryDraft, key: str, value: Any) -> None:
    if key == "disabled" and value is False:
        return
    draft.entry[key] = value


def _cwd(draft: EntryDraft, key: str, value: Any) -> None:
    draft.entry["cwd"] = value


def _url(draft: EntryDraft, key: str, value: Any) -> None:
    draft.entry["url"] = value
    draft.entry.pop("_sse", None)


def _sse_url(draft: EntryDraft, key: str, value: Any) -> None:
    if "url" in draft.entry:
        draft.notes.append(f"{key}: there is a streamable HTTP address as well; left out")
        return
    draft.entry["url"], draft.entry["_sse"] = value, True


def _headers(draft: EntryDraft, key: str, value: Any) -> None:
    draft.headers |= _pairs(key, value)


def _env(draft: EntryDraft, key: str, value: Any) -> None:
    draft.env |= _pairs(key, value)


def _pairs(key: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise NotImportable(f"{key}: is not an object of names and texts")
    pairs: dict[str, str] = {}
    for name, text in cast("dict[str, Any]", value).items():
        if isinstance(text, dict | list):
            raise NotImportable(f"{key}.{name}: is not text")
        if text is not None:
            pairs[name] = text if isinstance(text, str) else json.dumps(text)
    return pairs


def _env_names(draft: EntryDraft, key: str, value: Any) -> None:
    for item in items(value):
        name: Any = mapping(item).get("name", item)
        if isinstance(name, str):
            draft.env.setdefault(name, f"${{env:{name}:-}}")
    draft.notes.append(f"{key}: a variable that is not set reaches the server as an empty one")


def _env_file(draft: EntryDraft, key: str, value: Any) -> None:
    try:
        path = Path(local_path(str(value))).expanduser()
    except ToolError as problem:
        raise NotImportable(f"{key}: {problem.message}") from None
    if draft.translation.project is not None:
        path = draft.translation.project / path
    if "${" in str(value) or not path.is_absolute():
        raise NotImportable(f"{key}: {value} is not an absolute path")
    try:
        found = read_env_file(path.read_text("utf-8-sig"))
    except (OSError, ValueError):
        raise NotImportable(f"{key}: {path} cannot be read") from None
    draft.env |= {name: text for name, text in found.items() if name not in draft.env}
    draft.notes.append(f"{key}: the values in {path} were copied; what is written there later does not count")


def _request_options(draft: EntryDraft, key: str, value: Any) -> None:
    for name, option in mapping(value).items():
        if name == "headers":
            _headers(draft, f"{key}.headers", option)
        else:
            draft.notes.append(f"{key}.{name}: not known here, left out")


def _bearer(draft: EntryDraft, key: str, value: Any) -> None:
    draft.headers["Authorization"] = f"Bearer {value}"


def _bearer_variable(draft: EntryDraft, key: str, value: Any) -> None:
    draft.headers["Authorization"] = f"Bearer ${{env:{value}}}"


def _header_variables(draft: EntryDraft, key: str, value: Any) -> None:
    draft.headers |= {name: f"${{env:{variable}}}" for name, variable in _pairs(key, value).items()}


def _seconds(draft: EntryDraft, key: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 86_400:
        draft.notes.append(f"{key}: {json.dumps(value, default=str)} is no number of seconds; the default counts")
        return
    draft.entry["timeout_s"] = value


def _milliseconds(draft: EntryDraft, key: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < _SHORTEST_WAIT_MS:
        draft.notes.append(f"{key}: {json.dumps(value, default=str)} ms is no wait; the default counts")
        return
    _seconds(draft, key, value / 1000 if value % 1000 else int(value) // 1000)


def _enabled(draft: EntryDraft, key: str, value: Any) -> None:
    if value is False:
        draft.entry["disabled"] = True


def _type(draft: EntryDraft, key: str, value: Any) -> None:
    if not isinstance(value, str):
        raise NotImportable(f"{key}: {json.dumps(value, default=str)} is no transport we know")
    if value == "sse":
        draft.entry["type"] = "sse"
    elif value in _HTTP_TYPES:
        draft.entry["type"] = "http"
    elif value not in _STDIO_TYPES:
        raise NotImportable(f"{key}: {json.dumps(value, default=str)} is no transport we know")


def _command_line(draft: EntryDraft, key: str, value: Any) -> None:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        draft.entry["command"] = fields.get("path")
        if fields.get("args"):
            draft.entry["args"] = fields["args"]
        if fields.get("env"):
            _env(draft, "env", fields["env"])
        return
    if isinstance(value, list):
        words = cast("list[Any]", value)
        draft.entry["command"] = words[0] if words else ""
        if words[1:]:
            draft.entry["args"] = words[1:]
        return
    draft.entry["command"] = value


def _tools_shown(draft: EntryDraft, key: str, value: Any) -> None:
    if value != ["*"] and isinstance(value, list):
        draft.entry["enabled_tools"] = _tool_names(key, value)


def _tools_hidden(draft: EntryDraft, key: str, value: Any) -> None:
    if names := _tool_names(key, value):
        draft.entry["disabled_tools"] = names


def _tool_names(key: str, value: Any) -> list[str]:
    """Some hosts allow what reads like a call: `search(text)`. Raises `NotImportable` for a pattern."""
    names = [name.partition("(")[0] for name in texts_of(value)]
    if pattern := next((name for name in names if "*" in name or "?" in name), ""):
        raise NotImportable(f"{key}: {pattern} is a pattern; write the names of the tools there, then import again")
    return names


_NOTES = {
    Key.APPROVAL: "what runs unasked is said by permissions.allow in goat-mcp.yaml; left out",
    Key.LOGIN: "the host's login is the host's; goat-mcp logs in on its own",
    Key.START_WAIT: "not needed; goat-mcp lists what it knows at once and waits for a slow server behind that",
}
"""Keys that are left out with a note."""


_WRITERS: Mapping[Key, Callable[[EntryDraft, str, Any], None]] = {
    Key.SAME: _same,
    Key.CWD: _cwd,
    Key.URL: _url,
    Key.SSE_URL: _sse_url,
    Key.HEADERS: _headers,
    Key.ENV: _env,
    Key.ENV_NAMES: _env_names,
    Key.ENV_FILE: _env_file,
    Key.REQUEST_OPTIONS: _request_options,
    Key.BEARER: _bearer,
    Key.BEARER_VARIABLE: _bearer_variable,
    Key.HEADER_VARIABLES: _header_variables,
    Key.SECONDS: _seconds,
    Key.MILLISECONDS: _milliseconds,
    Key.ENABLED: _enabled,
    Key.TYPE: _type,
    Key.COMMAND_LINE: _command_line,
    Key.TOOLS_SHOWN: _tools_shown,
    Key.TOOLS_HIDDEN: _tools_hidden,
}
