"""`goat-mcp manifest new`: writes the files of a new tool, and says what to do next."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from goat_mcp.cli.terminal import escaped, say
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.names import NAME_CAP
from goat_mcp.manifests.kinds import API_VERSIONS
from goat_mcp.state.directory import own_manifests_folder
from goat_mcp.state.file_safety import why_folder_unsafe


def make(name: str, language: str, url: str, folder: Path | None, as_json: bool) -> None:
    """Raises `ToolError` where the name is no good or taken, or nothing can be written there."""
    own = _own_folder()
    base = (folder or own).expanduser().absolute()
    _check_name(name, EXPORT)
    _check_url(language, url)
    place = base / name
    _check_free(base, place, name)
    files = scaffold(name, language, url=url, schema=_schema_place(), has_jq=shutil.which("jq") is not None)
    _write(place, files)
    tool = f"{name}__{EXPORT}"
    words = ["goat-mcp", "call"]
    if base != own.absolute():
        words += ["--manifests", str(base)]
    if language == "http":
        words += ["--allowed-tool", tool]
    steps = {
        "call": shlex.join([*words, tool, "city=Paris"]),
        "check": shlex.join(["goat-mcp", "manifest", "check", str(place)]),
    }
    paths = [place / file for file in files]
    if as_json:
        click.echo(json.dumps({"tool": tool, "files": list(map(str, paths)), "next": steps}))
        return
    _say(tool, paths, steps, is_own=base == own.absolute())


def _say(tool: str, paths: list[Path], steps: Mapping[str, str], *, is_own: bool) -> None:
    manifest, *beside = paths
    say(f"Made {tool}:\n  {manifest}   its name, description and parameters")
    for path in beside:
        say(f"  {path}   what it does")
    say(f"Call it:     {escaped(steps['call'])}")
    # A directory that tools may write to counts as it was at the start.
    unless = "" if is_own else ", or at its next start where its tools may write to them"
    say(f"Change it:   edit these files; a running server sees it within two seconds{unless}")
    say(f"Check it:    {escaped(steps['check'])}")


def _own_folder() -> Path:
    return own_manifests_folder()


def _check_name(name: str, export: str) -> None:
    from goat_mcp.manifests.tool_document import resource_name_problem

    if reason := resource_name_problem(name):
        _refuse(f"{name!r:.80} is no usable name: {reason}", f"For example {_usable(name)}.")
    if len(f"{name}__{export}") > NAME_CAP:
        _refuse(f"{name!r:.80} is too long: {name}__{export} may have at most {NAME_CAP} characters", "Shorten it.")


def _usable(name: str) -> str:
    usable = re.sub(r"[^A-Za-z0-9-]+", "-", name).strip("-0123456789")[:40]
    return usable if usable not in ("", name) else f"{usable or 'my'}-tools"


def _check_url(language: str, url: str) -> None:
    from goat_mcp.manifests.entry import url_problem

    if language != "http":
        if url:
            _refuse(f"--url is for --language http, and this is {language}", "Leave it out, or add --language http.")
        return
    if not url:
        _refuse("--language http needs --url", "For example --url http://127.0.0.1:8080/weather.")
    if reason := url_problem(url):
        _refuse(f"--url: {reason[0]}", f"{reason[1].capitalize()}.")


def _check_free(base: Path, place: Path, name: str) -> None:
    if os.path.lexists(place):
        _refuse(f"{place} is there already", f"Edit it, take another name than {name}, or remove it first.")
    if not os.path.isdir(base):  # noqa: PTH112  # `Path.is_dir` raises for what may not be looked at
        return
    from goat_mcp.manifests.folder import ManifestFolders

    if reason := why_folder_unsafe(base, shared_is_safe=True):
        _refuse(f"nothing in {base} would be used: it {reason}", "Fix its rights, or name another with --dir.")
    for document in ManifestFolders([base]).read().tools:
        if document.name == name:
            _refuse(f"{name} is declared in {document.document.file} already", "Take another name, or edit that file.")


def _schema_place() -> str:
    """As editors read it: a path, or where that would end at a space an URI of it. Empty where it is not installed."""
    from goat_mcp.gateway.build.manifests import shipped_folder

    file = shipped_folder() / "schema.json"
    if not file.is_file():
        return ""
    return str(file) if not re.search(r"\s", str(file)) else file.as_uri()


def _write(place: Path, files: Mapping[str, ScaffoldFile]) -> None:
    """All of it or nothing: the directory gets its name when it is whole."""
    partial = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        _make_folder(partial)
        for name, file in files.items():
            (partial / name).write_text(file.text, encoding="utf-8", newline="\n")
            (partial / name).chmod(0o755 if file.is_program else 0o644)
        partial.rename(place)
    except OSError as problem:
        shutil.rmtree(partial, ignore_errors=True)
        _refuse(f"{place} cannot be written: {problem.strerror}", "Name a directory of yours with --dir.")


def _make_folder(folder: Path) -> None:
    """With those above it that are missing. Nobody else may write there, whatever the umask: it would not be used."""
    if not folder.parent.exists():
        _make_folder(folder.parent)
    folder.mkdir()
    folder.chmod(0o755)


def _refuse(message: str, suggestion: str) -> None:
    raise ToolError(ErrorCode.INPUT, message, suggestion)


LANGUAGES = ("python", "shell", "http")
EXPORT = "today"
MANIFEST = "tool.yaml"


@dataclass(frozen=True)
class ScaffoldFile:
    """`text` of one file, and whether it is a program."""

    text: str
    is_program: bool = False


def scaffold(
    name: str, language: str, *, url: str = "", schema: str = "", has_jq: bool = True
) -> Mapping[str, ScaffoldFile]:
    """By file name, the manifest first. `schema` is where an editor finds what may stand in it; empty leaves it out."""
    entry, effect, config = _PARTS[language]
    head = f"# yaml-language-server: $schema={schema}\n" if schema else ""
    files = {
        MANIFEST: ScaffoldFile(
            head
            + _MANIFEST.format(
                version=API_VERSIONS[0],
                name=name,
                entry=entry.format(url=_quoted(url)),
                config=config,
                title=name.replace("-", " ").replace("_", " "),
                effect=effect,
            )
        )
    }
    if language == "python":
        files["handlers.py"] = ScaffoldFile(_HANDLERS)
    elif language == "shell":
        files["tool.sh"] = ScaffoldFile(_WITH_JQ if has_jq else _WITH_PYTHON, is_program=True)
    return files


def _quoted(text: str) -> str:
    return json.dumps(text)


_MANIFEST = """\
apiVersion: {version}
kind: Tool
metadata:
  name: {name}
spec:
{entry}{config}  exports:
    - name: today                       # the tool is called {name}__today
      title: "Today's {title}"
      # What a model reads. Say first what the tool must not be used for.
      description: Example data for a city, computed from its name. Not a real report.
{effect}
      parameters:
        type: object
        properties:
          city: {{type: string, minLength: 1, description: "The city, e.g. Paris"}}
        required: [city]
        additionalProperties: false
      examples:
        - {{description: Ask about one city, input: {{city: Paris}}}}
"""
_OFFLINE = "      sideEffect: none                  # it changes nothing and asks nobody, so it runs unasked"
_NETWORK = "      sideEffect: network               # the input leaves this machine, so a person is asked first"
_CONFIG = """\
  config:                               # what settings may say under tools.NAME
    type: object
    properties:
      unit: {type: string, enum: [C, F]}
"""
_PARTS = {
    "python": (
        "  entry: ./handlers.py                 # its `handlers` has a function for each export\n",
        _OFFLINE,
        _CONFIG,
    ),
    "shell": (
        "  entry:\n    command: [./tool.sh]                # JSON on its standard input, JSON on its output\n",
        _OFFLINE,
        "",
    ),
    "http": (
        "  entry:\n    http:\n      url: {url}\n"
        "      method: POST                      # JSON in the body, JSON in the answer\n",
        _NETWORK,
        "",
    ),
}
_HANDLERS = '''\
"""What runs when one of the tools is called. Changes count from the next call on."""

import zlib


async def today(ctx, input):
    """`input` is what the manifest's parameters let through; what is given back has to be JSON.

    `ctx.workdir` is the workspace's directory, `ctx.config` what the settings say under `tools.NAME`, `ctx.logger` the
    server's log, `ctx.tool_call_id` this call as that log names it.
    """
    city = input["city"]
    unit = ctx.config.get("unit", "C")
    degrees = zlib.crc32(city.encode()) % 30  # computed from the name: replace it by what you want to know
    ctx.logger.info("made up %s degrees for %s", degrees, city)
    if unit == "F":
        degrees = degrees * 9 // 5 + 32
    return {"city": city, "degrees": degrees, "unit": unit, "note": "example data"}


handlers = {"today": today}
'''
_WITH_JQ = """\
#!/bin/sh
# Reads the input as JSON, prints what it gives back as JSON. A text on standard error and an exit code other than 0
# is a failure. GOAT_EXPORT is the export that is called, GOAT_WORKDIR the workspace's directory.
set -eu
city=$(jq -r .city)
# Computed from the name: replace it by what you want to know.
degrees=$(printf %s "$city" | cksum | awk '{print $1 % 30}')
jq -n --arg city "$city" --argjson degrees "$degrees" \\
  '{city: $city, degrees: $degrees, unit: "C", note: "example data"}'
"""
_WITH_PYTHON = """\
#!/bin/sh
# Reads the input as JSON, prints what it gives back as JSON. A text on standard error and an exit code other than 0
# is a failure. GOAT_EXPORT is the export that is called, GOAT_WORKDIR the workspace's directory.
set -eu
city=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["city"])')
# Computed from the name: replace it by what you want to know.
degrees=$(printf %s "$city" | cksum | awk '{print $1 % 30}')
python3 -c 'import json, sys
print(json.dumps({"city": sys.argv[1], "degrees": int(sys.argv[2]), "unit": "C", "note": "example data"}))' \\
  "$city" "$degrees"
"""
