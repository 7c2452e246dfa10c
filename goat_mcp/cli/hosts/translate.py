"""One entry of a host, written as an upstream of ours. What has no counterpart is reported, key by key."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from goat_mcp.cli.hosts.entry_keys import EntryDraft, NotImportable, texts_of, write
from goat_mcp.cli.hosts.host import Host, HostEnvironment, Key, entry_fields
from goat_mcp.cli.hosts.interop import start_from_wsl
from goat_mcp.cli.hosts.references import Translation, Untranslatable
from goat_mcp.cli.hosts.table import key_of
from goat_mcp.core.redaction import Redactor, is_likely_secret
from goat_mcp.core.substitution import Unresolved, secret_reference_in, substitute
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.upstreams.config.goat_launch import is_goat
from goat_mcp.upstreams.config.upstream_files import load_upstream_files


@dataclass(frozen=True)
class Translated:
    """`entry` is what our file says; None if the server has to stay with the host, for the reason `why_not`."""

    name: str
    entry: Mapping[str, Any] | None
    notes: Sequence[str] = ()
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
    windows: HostEnvironment | None = None,
) -> Translated:
    """Translate one entry. `project`: the directory whose servers these are; `folder`: where the host's file is;
    `windows`: the account on Windows whose host has the entry, if we are in WSL."""
    draft = EntryDraft(name, Translation(host.variables, home, project, inputs, folder))
    try:
        if not isinstance(given, dict):
            raise NotImportable("it is not an object")
        values = cast("dict[str, Any]", given)
        _check_is_json(name, values)
        _fill(draft, host, entry_fields(values))
        if is_goat(str(draft.entry.get("command", "")), texts_of(draft.entry.get("args"))):
            return Translated(name, None, why_not="it is goat-mcp itself", is_goat=True)
        if windows is not None and windows.wsl is not None:
            start_from_wsl(draft, windows, windows.wsl)
        _finish(draft, project)
        draft.notes += draft.translation.notes
        _check(draft, environ)
    except (NotImportable, Untranslatable) as why:
        return Translated(name, None, (), str(why))
    _note_secrets(draft)
    return Translated(name, draft.entry, tuple(dict.fromkeys(draft.notes)))


def _check_is_json(name: str, values: Mapping[str, Any]) -> None:
    """Raises `NotImportable` for what JSON cannot hold: dates of TOML, loops of YAML, halves of characters."""
    try:
        json.dumps([name, values], ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        raise NotImportable("it holds a value that JSON cannot hold") from None


def _fill(draft: EntryDraft, host: Host, values: Mapping[str, Any]) -> None:
    for key in sorted(values, key=lambda key: key_of(host, key) is Key.ENV):  # after a file's, which it beats
        value, meaning = values[key], key_of(host, key)
        if meaning is None:
            draft.notes.append(f"{key}: not known here, left out")
        elif value is not None:
            write(draft, meaning, key, value)


def _finish(draft: EntryDraft, project: Path | None) -> None:
    entry = draft.entry
    if "command" not in entry and "url" not in entry:
        raise NotImportable("it has neither a command nor an address; its host knows how to start it")
    kind = entry.pop("type", None)
    if kind == "sse" or (kind is None and entry.pop("_sse", False)):
        raise NotImportable(
            "it speaks the retired HTTP+SSE transport; if the server has a streamable HTTP address, write that one"
        )
    entry.pop("_sse", None)
    if "url" in entry and "command" in entry:
        raise NotImportable("it has both a command and an address")
    if "command" in entry:
        if project is not None and not Path(folder := str(entry.get("cwd", "."))).expanduser().is_absolute():
            entry["cwd"] = str(project / folder)
            draft.notes.append(f"cwd: it starts in {project / folder}, whichever project calls it")
        if draft.env:
            entry["env"] = draft.env
    elif draft.headers:
        entry["headers"] = draft.headers
    order = ("command", "args", "env", "cwd", "url", "headers")
    draft.entry = {key: entry[key] for key in (*order, *(key for key in entry if key not in order)) if key in entry}


def _check(draft: EntryDraft, environ: Mapping[str, str]) -> None:
    """Raises `NotImportable` for an entry that our own reader refuses. Reports references that are not set today."""
    for key, value in draft.entry.items():
        if key not in ("env", "headers") and (reference := secret_reference_in(value)):
            raise NotImportable(
                f"{key}: {reference} is a secret and would be seen in lists of processes; "
                f"hand it over in {'headers' if 'url' in draft.entry else 'env'}"
            )
    missing: list[str] = []
    resolved = {key: _assumed(key, value, environ, missing) for key, value in draft.entry.items()}
    document = json.dumps({"mcpServers": {draft.name: resolved}}).encode()
    here = Path("imported.json")
    found = load_upstream_files([here], contents={here: document}, references=SecretReferences({}))
    problem = next((problem for problem in found.problems if problem.reason_code == "config_error"), None)
    if problem is not None:
        raise NotImportable(problem.message)
    draft.notes += [f"{reference} is not set where goat-mcp is running now" for reference in dict.fromkeys(missing)]


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
                raise NotImportable(str(why)) from None
            missing.append(reference)
            seen[name] = "http://unset.invalid" if key == "url" else "/unset"
        else:
            return json.loads(json.dumps(resolved).replace("${", "$ {"))


def plain_text_note(where: str) -> str:
    return f"{where}: a secret in plain text"


def _note_secrets(draft: EntryDraft) -> None:
    """Secrets that stand in the file itself are taken over, and the user hears where they could be instead."""
    for name, value in draft.env.items():
        if "${" not in value and is_likely_secret(name, value):
            draft.notes.append(plain_text_note(f"env.{name}"))
    for name, value in draft.headers.items():
        if "${" not in value and is_likely_secret(name, value):
            draft.notes.append(plain_text_note(f"headers.{name}"))
    redactor = Redactor()
    args = texts_of(draft.entry.get("args"))
    for before, arg in zip(("", *args), args, strict=False):
        if redactor.text(arg) != arg or (before.startswith("-") and is_likely_secret(before.lstrip("-"), arg)):
            draft.notes.append("args: hold a secret that every user of this machine can see; env is the place for it")
            break
    url = str(draft.entry.get("url", ""))
    if redactor.text(url) != url:
        draft.notes.append("url: holds a secret; headers are the place for it")
