"""`goat-mcp manifest check`: reads manifests more thoroughly than a start does, and says what is wrong."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import anyio
import click

from goat_mcp.cli.exit_codes import OK, USAGE
from goat_mcp.cli.terminal import console, escaped
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.processes.environment import CommandEnvironment
from goat_mcp.processes.process_guard import ProcessGuard
from goat_mcp.settings.loading import load_settings
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from goat_mcp.upstreams.config.upstream_files import DeclaredEntry, load_upstream_files

if TYPE_CHECKING:  # loaded when the command runs
    from goat_mcp.manifests.folder import ManifestSet
    from goat_mcp.manifests.kinds import UpstreamDocument
    from goat_mcp.manifests.tool_document import ToolDocument
    from goat_mcp.manifests.yaml_document import Level, ManifestProblem


def check_places(places: Sequence[Path], config: Path | None, as_json: bool) -> int:
    """The exit status. Raises `ToolError` for settings that are broken, and for a place without manifests."""
    from goat_mcp.gateway.build import manifests as chosen_manifests
    from goat_mcp.manifests.folder import merged
    from goat_mcp.manifests.toolset_checks import waits_for_upstream
    from goat_mcp.manifests.yaml_document import Level

    settings = load_settings({}, config_file=config)
    declared = _read(places) if places else _in_use(settings)
    _, profiles = chosen_manifests.with_declared_profiles(settings, declared)
    upstreams = [problem for one in declared.upstreams for problem in _upstream_problems(one)]
    members = _strange_members(declared, settings)
    found = [*declared.problems, *profiles, *upstreams, *members, *anyio.run(_thorough, declared.tools)]
    # Those that replace what comes with us, or wait for an upstream, are to be known, and may be meant.
    may_be_meant = {problem for problem in members if waits_for_upstream(problem)}
    may_be_meant |= set(merged([replace(declared, problems=()), chosen_manifests.shipped()]).problems)
    problems = sorted(replace(one, level="note") if one in may_be_meant else one for one in {*found, *may_be_meant})
    levels = {level: sum(problem.level == level for problem in problems) for level in get_args(Level)}
    count = {
        "tools": sum(len(tool.exports) for tool in declared.tools),
        "upstreams": len(declared.upstreams),
        "toolsets": len(declared.toolsets),
        "profiles": len(declared.profiles),
        "agents": len(declared.agents),
    }
    if places and not problems and not any(count.values()):
        _refuse(f"{', '.join(map(str, places))}: no manifest is there")
    if as_json:
        counts = {f"{level}s": number for level, number in levels.items()}
        click.echo(json.dumps({"problems": [problem.as_json() for problem in problems], "read": count, **counts}))
    else:
        _print_lines(problems)
        _print_summary(levels, count)
    return USAGE if levels["error"] else OK


def _upstream_problems(upstream: UpstreamDocument) -> list[ManifestProblem]:
    """What the reader of `mcpServers` says of an entry, at the member that it begins with."""
    document = upstream.document
    entry = DeclaredEntry(upstream.name, upstream.entry, document.file)
    found: list[ManifestProblem] = []
    for problem in load_upstream_files([], declared=[entry]).problems:
        key = problem.message.partition(":")[0]
        places = [("spec", "transport", key), ("spec", key), ("spec",)]
        place = next(place for place in places if place in document.lines)
        what, _, remedy = problem.message.partition("; ")
        level: Level = "error" if problem.is_fatal else "warning"
        found.append(document.problem(place, what, remedy or "fix the entry", level=level))
    return found


def _strange_members(declared: ManifestSet, settings: Settings) -> list[ManifestProblem]:
    """What its toolsets and agents name that neither it has, nor what a start would read."""
    from goat_mcp.gateway.build import manifests as chosen_manifests
    from goat_mcp.manifests.toolset_checks import UpstreamNames, unknown_members

    if not declared.toolsets and not declared.agents:
        return []
    in_use = _in_use(settings)
    entries = [
        DeclaredEntry(one.name, one.entry, one.document.file) for one in (*declared.upstreams, *in_use.upstreams)
    ]
    default = settings.default_upstreams
    files = [*settings.upstreams, *([default] if default is not None and default.is_file() else [])]
    names: UpstreamNames | None = None
    try:
        configs = load_upstream_files(files, contents=settings.contents, declared=entries).configs
        are_flat = any(config.naming == "flat" for config in configs)
        names = UpstreamNames([config.server for config in configs], are_flat)
    except ToolError:
        pass  # a start says what is wrong with that file; of its servers nothing can be said here
    whole = replace(declared, tools=(*declared.tools, *in_use.tools))
    return list(unknown_members(whole, names, chosen_manifests.shipped))


def _in_use(settings: Settings) -> ManifestSet:
    """What a start would read."""
    from goat_mcp.gateway.build import manifests as chosen_manifests
    from goat_mcp.manifests.folder import ManifestSet

    read = chosen_manifests.read(settings)
    return read.users if read is not None else ManifestSet()


def _read(places: Sequence[Path]) -> ManifestSet:
    """What is in directories, and of files what is in just them."""
    from goat_mcp.manifests.folder import ManifestFolders, merged

    whole: list[ManifestSet] = []
    folders = [place for place in places if not place.is_file()]
    if folders:
        whole.append(ManifestFolders(folders).read())
    for file in (place for place in places if place.is_file()):
        around = ManifestFolders([file.parent]).read()
        whole.append(_only(around, file))
    return merged(whole)


def _only(around: ManifestSet, file: Path) -> ManifestSet:
    def of(documents: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(one for one in documents if one.document.file == file)

    return replace(
        around,
        tools=of(around.tools),
        upstreams=of(around.upstreams),
        toolsets=of(around.toolsets),
        profiles=of(around.profiles),
        agents=of(around.agents),
        problems=tuple(problem for problem in around.problems if problem.file in (file, file.parent)),
    )


async def _thorough(tools: Sequence[ToolDocument]) -> list[ManifestProblem]:
    from goat_mcp.manifests.deep_checks import program_problems, schema_problems

    guard, environment = ProcessGuard(), CommandEnvironment()
    compiled = StateDirectory.default().folder("compiled_handlers")
    found: list[ManifestProblem] = []
    for tool in tools:
        found += schema_problems(tool)
        found += await program_problems(tool, guard=guard, environment=environment, compiled=compiled)
    return found


def _print_lines(problems: Sequence[ManifestProblem]) -> None:
    for problem in problems:
        if sys.stdout.isatty():
            _print_coloured(problem)
        else:
            click.echo(escaped(problem.as_compiler_line().replace("\n", " ")))


def _print_summary(levels: Mapping[str, int], count: Mapping[str, int]) -> None:
    read = _counted({kind[:-1]: number for kind, number in count.items()})
    if levels["error"] or levels["warning"]:
        click.echo(f"{_counted(levels)}; read: {read or 'nothing that can be used'}", err=True)
    else:
        click.echo(
            f"Nothing is wrong: {read}." if read else "Nothing is declared. Begin with: goat-mcp manifest new weather"
        )


def _counted(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {name}{'s' if number != 1 else ''}" for name, number in numbers.items() if number)


_COLOURS: Mapping[Level, str] = {"error": "bold red", "warning": "yellow", "note": "blue"}


def _print_coloured(problem: ManifestProblem) -> None:
    from rich.text import Text

    place, what = escaped(problem.location), escaped(problem.what.replace("\n", " "))
    line = Text.assemble((place, "cyan"), ": ", (problem.level, _COLOURS[problem.level]), f": {what}")
    line.append(f"; {escaped(problem.remedy)}", "green")
    console().print(line, soft_wrap=True)


def _refuse(message: str) -> None:
    raise ToolError(ErrorCode.NOT_FOUND, message, "Name a directory of manifests, or a file that is one.")
