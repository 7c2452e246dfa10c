"""One entry of a host, written as an upstream of ours. What has no counterpart is told, key by key."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from goat_mcp.core.redaction import Redactor, is_likely_secret
from goat_mcp.core.substitution import Unresolved, secret_reference_in, substitute
from goat_mcp.hosts.env_file import read_env_file
from goat_mcp.hosts.host import Host, Key
from goat_mcp.hosts.references import KEYRING_SERVICE, Translation, Untranslatable
from goat_mcp.hosts.table import key_of
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.upstreams.config import load_upstream_files
from goat_mcp.upstreams.self_launch import is_goat

_HTTP_TYPES = frozenset({"http", "streamable-http", "streamable_http", "streamableHttp", "streamablehttp", "remote"})
_STDIO_TYPES = frozenset({"stdio", "local", "builtin"})
_SHORTEST_WAIT_MS = 1000
_PLAIN_HEADERS = frozenset({"accept", "accept-language", "content-type", "origin", "referer", "user-agent"})
_WAIT_OF_OURS = "goat-mcp lists what it knows at once and waits for a slow server in the background"


@dataclass(frozen=True)
class Translated:
    """`entry` is what our file says; None where the server has to stay with the host, for the reason `why_not`."""

    name: str
    entry: Mapping[str, Any] | None
    told: Sequence[str] = ()
    why_not: str = ""
    is_goat: bool = False


@dataclass
class _Work:
    """The entry as far as it is made."""

    name: str
    translation: Translation
    entry: dict[str, Any] = field(default_factory=dict[str, Any])
    env: dict[str, str] = field(default_factory=dict[str, str])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    told: list[str] = field(default_factory=list[str])


class _Stays(ValueError):
    """The server cannot be taken over; the text says why."""


def translated(
    host: Host,
    name: str,
    given: Any,
    *,
    home: Path,
    environ: Mapping[str, str],
    project: Path | None = None,
    inputs: Sequence[Mapping[str, Any]] = (),
) -> Translated:
    """Translate one entry. `project`: the directory whose servers these are."""
    work = _Work(name, Translation(host.variables, home, project, inputs))
    try:
        if not isinstance(given, dict):
            raise _Stays("it is not an object")
        values = cast("dict[str, Any]", given)
        _fill(work, host, values)
        if is_goat(str(work.entry.get("command", "")), _texts(work.entry.get("args"))):
            return Translated(name, None, why_not="it is goat-mcp itself", is_goat=True)
        _finish(work, project)
        work.told += work.translation.told
        _check(work, environ)
    except (_Stays, Untranslatable) as why:
        return Translated(name, None, (), str(why))
    _tell_secrets(work)
    return Translated(name, work.entry, tuple(dict.fromkeys(work.told)))


def _fill(work: _Work, host: Host, values: Mapping[str, Any]) -> None:
    for key in sorted(values, key=lambda key: key_of(host, key) is Key.ENV):  # after a file's, which it beats
        value, meaning = values[key], key_of(host, key)
        if meaning is None:
            work.told.append(f"{key}: not known here, left out")
        elif value is not None:
            _WRITERS[meaning](work, key, work.translation.tree(value) if meaning in _TRANSLATED else value)


def _finish(work: _Work, project: Path | None) -> None:
    entry = work.entry
    if "command" not in entry and "url" not in entry:
        raise _Stays("it has neither a command nor an address; its host knows how to start it")
    kind = entry.pop("type", None)
    if kind == "sse" or (kind is None and entry.pop("_sse", False)):
        raise _Stays(
            "it speaks the retired HTTP+SSE transport; if the server has a streamable HTTP address, write that one"
        )
    entry.pop("_sse", None)
    if "url" in entry and "command" in entry:
        raise _Stays("it has both a command and an address")
    if "command" in entry:
        if project is not None and not Path(folder := str(entry.get("cwd", "."))).expanduser().is_absolute():
            entry["cwd"] = str(project / folder)
            work.told.append(f"cwd: it starts in {project / folder}, whichever project calls it")
        if work.env:
            entry["env"] = work.env
    elif work.headers:
        entry["headers"] = work.headers
    order = ("command", "args", "env", "cwd", "url", "headers")
    work.entry = {key: entry[key] for key in (*order, *(key for key in entry if key not in order)) if key in entry}


def _check(work: _Work, environ: Mapping[str, str]) -> None:
    """Raises `_Stays` for an entry that our own reader would refuse; tells which references lead nowhere today."""
    for key, value in work.entry.items():
        if key not in ("env", "headers") and (reference := secret_reference_in(value)):
            raise _Stays(
                f"{key}: {reference} is a secret and would be seen in lists of processes; "
                f"hand it over in {'headers' if 'url' in work.entry else 'env'}"
            )
    missing: list[str] = []
    resolved = {key: _assumed(key, value, environ, missing) for key, value in work.entry.items()}
    document = json.dumps({"mcpServers": {work.name or "server": resolved}}).encode()
    here = Path("imported.json")
    found = load_upstream_files([here], contents={here: document}, references=SecretReferences({}))
    problem = next((problem for problem in found.problems if problem.reason_code == "config_error"), None)
    if problem is not None:
        raise _Stays(problem.message)
    work.told += [f"{reference} is not set where goat-mcp is running now" for reference in dict.fromkeys(missing)]


def _assumed(key: str, value: Any, environ: Mapping[str, str], missing: list[str]) -> Any:
    """`value` with its references replaced; what is not there is assumed."""
    seen = dict(environ)
    while True:
        try:
            resolved = substitute(value, seen, lambda kind, name: "x")
        except Unresolved as why:
            reference = str(why).partition("}")[0] + "}"
            name = reference[2:-1].removeprefix("env:")
            if name in seen:
                raise _Stays(str(why)) from None
            missing.append(reference)
            seen[name] = "http://unset.invalid" if key == "url" else "/unset"
        else:
            return json.loads(json.dumps(resolved).replace("${", "$ {"))


def _tell_secrets(work: _Work) -> None:
    """Secrets that stand in the file itself are taken over, and the user hears where they could be instead."""
    for name, value in work.env.items():
        if "${" not in value and is_likely_secret(name, value):
            _tell_keyring(work, "env", name)
    for name, value in work.headers.items():
        if "${" not in value and name.lower() not in _PLAIN_HEADERS:
            _tell_keyring(work, "headers", name)
    redactor = Redactor()
    args = _texts(work.entry.get("args"))
    for before, arg in zip(("", *args), args, strict=False):
        if redactor.text(arg) != arg or (before.startswith("-") and is_likely_secret(before.lstrip("-"), arg)):
            work.told.append("args: hold a secret that every user of this machine can see; env is the place for it")
            break
    url = str(work.entry.get("url", ""))
    if redactor.text(url) != url:
        work.told.append("url: holds a secret; headers are the place for it")


def _tell_keyring(work: _Work, key: str, name: str) -> None:
    user = f"{work.name}.{name}"
    work.told.append(
        f"{key}.{name}: a secret in plain text; to keep it in the keyring: keyring set {KEYRING_SERVICE} '{user}', "
        f"and write ${{keyring:{KEYRING_SERVICE}/{user}}} in its place"
    )


def _texts(value: Any) -> list[str]:
    return [str(item) for item in cast("list[Any]", value)] if isinstance(value, list) else []


# What becomes of each kind of key.


def _same(work: _Work, key: str, value: Any) -> None:
    if key == "disabled" and value is False:
        return
    work.entry[key] = value


def _url(work: _Work, key: str, value: Any) -> None:
    work.entry["url"] = value
    work.entry.pop("_sse", None)


def _sse_url(work: _Work, key: str, value: Any) -> None:
    if "url" in work.entry:
        work.told.append(f"{key}: there is a streamable HTTP address as well; left out")
        return
    work.entry["url"], work.entry["_sse"] = value, True


def _headers(work: _Work, key: str, value: Any) -> None:
    work.headers |= _pairs(key, value)


def _env(work: _Work, key: str, value: Any) -> None:
    work.env |= _pairs(key, value)


def _pairs(key: str, value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise _Stays(f"{key}: is not an object of names and texts")
    pairs: dict[str, str] = {}
    for name, text in cast("dict[str, Any]", value).items():
        if isinstance(text, dict | list):
            raise _Stays(f"{key}.{name}: is not text")
        if text is not None:
            pairs[name] = text if isinstance(text, str) else json.dumps(text)
    return pairs


def _env_names(work: _Work, key: str, value: Any) -> None:
    for item in cast("list[Any]", value) if isinstance(value, list) else []:
        name: Any = cast("dict[str, Any]", item).get("name") if isinstance(item, dict) else item
        if isinstance(name, str):
            work.env.setdefault(name, f"${{env:{name}:-}}")
    work.told.append(f"{key}: a variable that is not set reaches the server as an empty one")


def _env_file(work: _Work, key: str, value: Any) -> None:
    path = Path(str(value)).expanduser()
    if work.translation.project is not None:
        path = work.translation.project / path
    if "${" in str(value) or not path.is_absolute():
        raise _Stays(f"{key}: {value} is not an absolute path")
    try:
        found = read_env_file(path.read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError):
        raise _Stays(f"{key}: {path} cannot be read") from None
    work.env |= {name: text for name, text in found.items() if name not in work.env}
    work.told.append(f"{key}: the values in {path} were copied; what is written there later does not count")


def _bearer_variable(work: _Work, key: str, value: Any) -> None:
    work.headers["Authorization"] = f"Bearer ${{env:{value}}}"


def _header_variables(work: _Work, key: str, value: Any) -> None:
    work.headers |= {name: f"${{env:{variable}}}" for name, variable in _pairs(key, value).items()}


def _seconds(work: _Work, key: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 86_400:
        work.told.append(f"{key}: {json.dumps(value, default=str)} is no number of seconds; the default counts")
        return
    work.entry["timeout_s"] = value


def _milliseconds(work: _Work, key: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < _SHORTEST_WAIT_MS:
        work.told.append(f"{key}: {json.dumps(value, default=str)} ms is no wait; the default counts")
        return
    _seconds(work, key, value / 1000 if value % 1000 else int(value) // 1000)


def _enabled(work: _Work, key: str, value: Any) -> None:
    if value is False:
        work.entry["disabled"] = True


def _type(work: _Work, key: str, value: Any) -> None:
    if value == "sse":
        work.entry["type"] = "sse"
    elif value in _HTTP_TYPES:
        work.entry["type"] = "http"
    elif value not in _STDIO_TYPES:
        raise _Stays(f"{key}: {json.dumps(value, default=str)} is no transport we know")


def _command_line(work: _Work, key: str, value: Any) -> None:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        work.entry["command"] = fields.get("path")
        if fields.get("args"):
            work.entry["args"] = fields["args"]
        if fields.get("env"):
            _env(work, "env", fields["env"])
        return
    if isinstance(value, list):
        words = cast("list[Any]", value)
        work.entry["command"] = words[0] if words else ""
        if words[1:]:
            work.entry["args"] = words[1:]
        return
    work.entry["command"] = value


def _tools_shown(work: _Work, key: str, value: Any) -> None:
    if value == ["*"] or not value:
        return
    names = ", ".join(_texts(value))
    work.told.append(
        f"{key}: the host showed only {names}; here all its tools are shown. Deny the others (catalog.deny)"
    )


def _tools_hidden(work: _Work, key: str, value: Any) -> None:
    from goat_mcp.core.names import InvalidName, clean_server_name

    try:
        server = clean_server_name(work.name)
    except InvalidName:
        server = work.name
    names = [f"mcp__{server}__{tool}" for tool in _texts(value)]
    if names:
        work.told.append(f"{key}: write into goat-mcp.yaml: catalog: {{deny: {json.dumps(names)}}}")


def _approval(work: _Work, key: str, value: Any) -> None:
    if value:
        work.told.append(f"{key}: what runs unasked is said by permissions.allow in goat-mcp.yaml; left out")


def _meaningless(work: _Work, key: str, value: Any) -> None:
    """It does not concern the server."""


def _login(work: _Work, key: str, value: Any) -> None:
    work.told.append(f"{key}: the host's login is the host's; goat-mcp logs in on its own")


def _start_wait(work: _Work, key: str, value: Any) -> None:
    work.told.append(f"{key}: not needed; {_WAIT_OF_OURS}")


_TRANSLATED = frozenset({Key.SAME, Key.URL, Key.SSE_URL, Key.HEADERS, Key.ENV, Key.ENV_FILE, Key.COMMAND_LINE})
_WRITERS: Mapping[Key, Callable[[_Work, str, Any], None]] = {
    Key.SAME: _same,
    Key.URL: _url,
    Key.SSE_URL: _sse_url,
    Key.HEADERS: _headers,
    Key.ENV: _env,
    Key.ENV_NAMES: _env_names,
    Key.ENV_FILE: _env_file,
    Key.BEARER_VARIABLE: _bearer_variable,
    Key.HEADER_VARIABLES: _header_variables,
    Key.SECONDS: _seconds,
    Key.MILLISECONDS: _milliseconds,
    Key.ENABLED: _enabled,
    Key.TYPE: _type,
    Key.COMMAND_LINE: _command_line,
    Key.TOOLS_SHOWN: _tools_shown,
    Key.TOOLS_HIDDEN: _tools_hidden,
    Key.APPROVAL: _approval,
    Key.MEANINGLESS: _meaningless,
    Key.LOGIN: _login,
    Key.START_WAIT: _start_wait,
}
