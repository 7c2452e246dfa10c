"""`goat-mcp manifest new`: writes the files of a new tool, and says what to do next."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:  # loaded when the command runs
    from collections.abc import Mapping

    from goat_mcp.manifests.scaffold import ScaffoldFile


def make(name: str, language: str, url: str, folder: Path | None, as_json: bool) -> None:
    """Raises `ToolError` where the name is no good or taken, or nothing can be written there."""
    from goat_mcp.manifests.scaffold import EXPORT, scaffold

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
    from goat_mcp.cli.terminal import escaped

    manifest, *beside = paths
    click.echo(escaped(f"Made {tool}:\n  {manifest}   its name, description and parameters"))
    for path in beside:
        click.echo(escaped(f"  {path}   what it does"))
    click.echo(f"Call it:     {escaped(steps['call'])}")
    # A directory that tools may write to counts as it was at the start.
    unless = "" if is_own else ", or at its next start where its tools may write to them"
    click.echo(f"Change it:   edit these files; a running server sees it within two seconds{unless}")
    click.echo(f"Check it:    {escaped(steps['check'])}")


def _own_folder() -> Path:
    from goat_mcp.state.directory import own_manifests_folder

    return own_manifests_folder()


def _check_name(name: str, export: str) -> None:
    from goat_mcp.core.names import NAME_CAP
    from goat_mcp.manifests.tool_document import resource_name_problem

    if reason := resource_name_problem(name):
        _refuse(f"{name!r:.80} is no usable name: {reason}", f"For example {_usable(name)}.")
    if len(f"{name}__{export}") > NAME_CAP:
        _refuse(f"{name!r:.80} is too long: {name}__{export} is to have at most {NAME_CAP} characters", "Shorten it.")


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
        _refuse("--language http wants --url", "For example --url http://127.0.0.1:8080/weather.")
    if reason := url_problem(url):
        _refuse(f"--url: {reason[0]}", f"{reason[1].capitalize()}.")


def _check_free(base: Path, place: Path, name: str) -> None:
    if os.path.lexists(place):
        _refuse(f"{place} is there already", f"Edit it, take another name than {name}, or remove it first.")
    if not os.path.isdir(base):  # noqa: PTH112  # `Path.is_dir` raises for what may not be looked at
        return
    from goat_mcp.manifests.folder import ManifestFolders
    from goat_mcp.state.file_safety import why_folder_unsafe

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
    from goat_mcp.core.errors import ErrorCode, ToolError

    raise ToolError(ErrorCode.INPUT, message, suggestion)
