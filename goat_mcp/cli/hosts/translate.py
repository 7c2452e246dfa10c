"""One entry of a host, written as an upstream of ours. What has no counterpart is told, key by key."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from goat_mcp.cli.hosts.entry_keys import Stays, Work, texts_of, write
from goat_mcp.cli.hosts.host import Host, Key
from goat_mcp.cli.hosts.references import KEYRING_SERVICE, Translation, Untranslatable
from goat_mcp.cli.hosts.table import key_of
from goat_mcp.core.redaction import Redactor, is_likely_secret
from goat_mcp.core.substitution import Unresolved, secret_reference_in, substitute
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.upstreams.config.self_launch import is_goat
from goat_mcp.upstreams.config.upstream_files import load_upstream_files

_NOT_IN_USERS = re.compile(r"[^A-Za-z0-9_.-]")


@dataclass(frozen=True)
class Translated:
    """`entry` is what our file says; None where the server has to stay with the host, for the reason `why_not`."""

    name: str
    entry: Mapping[str, Any] | None
    told: Sequence[str] = ()
    why_not: str = ""
    is_goat: bool = False


def translated(
    host: Host,
    name: str,
    given: Any,
    *,
    home: Path,
    environ: Mapping[str, str],
    project: Path | None = None,
    inputs: Sequence[Mapping[str, Any]] = (),
    folder: Path | None = None,
) -> Translated:
    """Translate one entry. `project`: the directory whose servers these are; `folder`: where the host's file is."""
    work = Work(name, Translation(host.variables, home, project, inputs, folder))
    try:
        if not isinstance(given, dict):
            raise Stays("it is not an object")
        values = cast("dict[str, Any]", given)
        _check_is_json(name, values)
        _fill(work, host, values)
        if is_goat(str(work.entry.get("command", "")), texts_of(work.entry.get("args"))):
            return Translated(name, None, why_not="it is goat-mcp itself", is_goat=True)
        _finish(work, project)
        work.told += work.translation.told
        _check(work, environ)
    except (Stays, Untranslatable) as why:
        return Translated(name, None, (), str(why))
    _tell_secrets(work)
    return Translated(name, work.entry, tuple(dict.fromkeys(work.told)))


def _check_is_json(name: str, values: Mapping[str, Any]) -> None:
    """Raises `Stays` for what our file could not hold: TOML has dates, YAML loops, and JSON halves of characters."""
    try:
        json.dumps([name, values], ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        raise Stays("it holds a value that JSON cannot hold") from None


def _fill(work: Work, host: Host, values: Mapping[str, Any]) -> None:
    for key in sorted(values, key=lambda key: key_of(host, key) is Key.ENV):  # after a file's, which it beats
        value, meaning = values[key], key_of(host, key)
        if meaning is None:
            work.told.append(f"{key}: not known here, left out")
        elif value is not None:
            write(work, meaning, key, value)


def _finish(work: Work, project: Path | None) -> None:
    entry = work.entry
    if "command" not in entry and "url" not in entry:
        raise Stays("it has neither a command nor an address; its host knows how to start it")
    kind = entry.pop("type", None)
    if kind == "sse" or (kind is None and entry.pop("_sse", False)):
        raise Stays(
            "it speaks the retired HTTP+SSE transport; if the server has a streamable HTTP address, write that one"
        )
    entry.pop("_sse", None)
    if "url" in entry and "command" in entry:
        raise Stays("it has both a command and an address")
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


def _check(work: Work, environ: Mapping[str, str]) -> None:
    """Raises `Stays` for an entry that our own reader would refuse; tells which references lead nowhere today."""
    for key, value in work.entry.items():
        if key not in ("env", "headers") and (reference := secret_reference_in(value)):
            raise Stays(
                f"{key}: {reference} is a secret and would be seen in lists of processes; "
                f"hand it over in {'headers' if 'url' in work.entry else 'env'}"
            )
    missing: list[str] = []
    resolved = {key: _assumed(key, value, environ, missing) for key, value in work.entry.items()}
    document = json.dumps({"mcpServers": {work.name: resolved}}).encode()
    here = Path("imported.json")
    found = load_upstream_files([here], contents={here: document}, references=SecretReferences({}))
    problem = next((problem for problem in found.problems if problem.reason_code == "config_error"), None)
    if problem is not None:
        raise Stays(problem.message)
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
                raise Stays(str(why)) from None
            missing.append(reference)
            seen[name] = "http://unset.invalid" if key == "url" else "/unset"
        else:
            return json.loads(json.dumps(resolved).replace("${", "$ {"))


def _tell_secrets(work: Work) -> None:
    """Secrets that stand in the file itself are taken over, and the user hears where they could be instead."""
    for name, value in work.env.items():
        if "${" not in value and is_likely_secret(name, value):
            _tell_keyring(work, "env", name)
    for name, value in work.headers.items():
        if "${" not in value and is_likely_secret(name, value):
            _tell_keyring(work, "headers", name)
    redactor = Redactor()
    args = texts_of(work.entry.get("args"))
    for before, arg in zip(("", *args), args, strict=False):
        if redactor.text(arg) != arg or (before.startswith("-") and is_likely_secret(before.lstrip("-"), arg)):
            work.told.append("args: hold a secret that every user of this machine can see; env is the place for it")
            break
    url = str(work.entry.get("url", ""))
    if redactor.text(url) != url:
        work.told.append("url: holds a secret; headers are the place for it")


def _tell_keyring(work: Work, key: str, name: str) -> None:
    user = _NOT_IN_USERS.sub("_", f"{work.name}.{name}")
    work.told.append(
        f"{key}.{name}: a secret in plain text; to keep it in the keyring: keyring set {KEYRING_SERVICE} {user}, "
        f"and write ${{keyring:{KEYRING_SERVICE}/{user}}} in its place"
    )
