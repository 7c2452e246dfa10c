"""Importing servers of hosts into our upstreams file, and the entry that starts goat-mcp from a host.

Everything is planned before anything is written. Our file is written first, so that no server is ever in neither."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from goat_mcp.cli.hosts.host import Host, HostEnvironment
from goat_mcp.cli.hosts.host_file import HostFile, read_host_file, replace_bytes
from goat_mcp.cli.hosts.merging import ImportOutcome, MergedServer, Merging
from goat_mcp.cli.hosts.receipts import Receipts, Why, receipt
from goat_mcp.cli.hosts.sources import Source
from goat_mcp.cli.hosts.switches import off_switch, projects_without
from goat_mcp.cli.hosts.translate import Translated, translated
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.json_values import items, mapping
from goat_mcp.state.directory import STATE_DIR_VARIABLE, StateDirectory, own_upstreams_file
from goat_mcp.upstreams.config.entry import UPSTREAMS_VARIABLE, is_goat, upstream_files_of

OWN_NAME = "goat"
_UPSTREAMS_FLAG = "--upstreams"
_THROWN_AWAY = "archive-v0"
"""Where uv keeps the environments of `uvx`; it cleans them up."""


def own_launch(upstreams: Path | None) -> tuple[str, list[str]]:
    """Program and arguments. `upstreams`: the file to name, None if it is found without."""
    named = [] if upstreams is None else [_UPSTREAMS_FLAG, str(upstreams)]
    uvx = shutil.which("uvx")
    if _THROWN_AWAY in Path(sys.prefix).parts and uvx:
        return uvx, ["goat-mcp", "serve", *named]
    script = Path(sys.executable).with_name("goat-mcp.exe" if sys.platform == "win32" else "goat-mcp")
    if script.is_file():
        return str(script), ["serve", *named]
    return sys.executable, ["-m", "goat_mcp", "serve", *named]


def own_entry(host: Host, launch: tuple[str, list[str]], env: Mapping[str, str]) -> dict[str, Any]:
    """The entry in the notation of `host`."""
    command, args = launch
    words = {host.command_line: [command, *args]} if host.command_line else {"command": command, "args": args}
    variables = {host.env_key: dict(env)} if env else {}
    return {**host.own_entry, **words, **variables}


def own_names(host: Host, entries: Mapping[str, Any]) -> list[str]:
    """The entries that start goat-mcp already."""
    return [name for name, entry in entries.items() if is_goat(*launch_of(host, entry))]


def launch_of(host: Host, entry: Any) -> tuple[str, list[str]]:
    """Program and arguments of an entry; empty if it has none."""
    fields = mapping(entry)
    command, args = fields.get("command", fields.get("cmd")), fields.get("args")
    if inner := mapping(command):
        command, args = inner.get("path"), inner.get("args")
    words = items(command) or [command, *items(args)]
    texts = [word for word in words if isinstance(word, str)]
    return (texts[0], texts[1:]) if texts else ("", [])


def other_upstreams(host: Host, entry: Any, upstreams: Path) -> str:
    """What this entry of goat-mcp's reads in the place of `upstreams`, in words; empty if it reads that file."""
    _, args = launch_of(host, entry)
    named = list(upstream_files_of(args))
    if isinstance(variable := mapping(mapping(entry).get(host.env_key)).get(UPSTREAMS_VARIABLE), str):
        named.append(variable)
    if not named and any(arg.partition("=")[0] == "--config" for arg in args):
        return "the upstreams that its --config names"
    places = [Path(name).expanduser() for name in named] or [own_upstreams_file()]
    wanted = upstreams.resolve()
    return "" if any(place.resolve() == wanted for place in places) else str(places[0])


_OURS = Host("goat-mcp", "goat-mcp", "json", ("mcpServers",))
_HANDED_ON = (STATE_DIR_VARIABLE, "XDG_CONFIG_HOME")
"""Variables that decide where our files are; a host with windows does not have those of the shell."""


@dataclass(frozen=True)
class Change:
    """One file, before and after. `after` is the same if nothing changes."""

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def is_one(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True)
class SourcePlan:
    """One host's file: what becomes of each server, and of the file."""

    source: Source
    servers: Sequence[MergedServer]
    change: Change | None = None
    """None if the file is only read."""


@dataclass(frozen=True)
class ImportPlan:
    into: Change
    sources: Sequence[SourcePlan]


def plan_import(sources: Sequence[Source], into: Path, machine: HostEnvironment, *, move: bool) -> ImportPlan:
    """What an import would do. Raises `ToolError` for a file that cannot be read or edited."""
    ours = read_host_file(_OURS, into)
    merging = Merging(ours.entries)
    plans: list[SourcePlan] = []
    for source in sources:
        if source.file.path.resolve() == into.resolve():
            raise ToolError(ErrorCode.INPUT, f"{into} is the file to import into", "Name another one.")
        why_off = off_switch(source, machine)
        servers = [
            _merged(merging, source, name, entry, machine, why_off(name, entry))
            for name, entry in source.file.entries.items()
        ]
        change = _moved(source, servers, into, machine) if move else None
        plans.append(SourcePlan(source, servers, change))
    after = ours.changed(remove=(), add=merging.new) if merging.new else ours.data
    return ImportPlan(Change(into, ours.data, after), plans)


def _merged(
    merging: Merging, source: Source, name: str, entry: Any, machine: HostEnvironment, why_off: str
) -> MergedServer:
    found = translated(
        source.host,
        name,
        entry,
        home=machine.home,
        environ=machine.environ,
        project=source.project,
        inputs=source.inputs,
        folder=source.file.path.parent,
    )
    return merging.add(_as_switched(found, why_off, source), source.host.name)


def _as_switched(found: Translated, why_off: str, source: Source) -> Translated:
    """What its host does not start is not started by coming here, and that is reported."""
    if found.entry is None:
        return found
    if not why_off and found.entry.get("disabled") is not True:
        some = ", ".join(projects_without(source, found.name))
        note = f"switched off in {source.host.title} for {some}; goat-mcp starts it for every project"
        return replace(found, notes=(note, *found.notes)) if some else found
    why = why_off or f"it is switched off in {source.host.title}"
    note = f"disabled: true, since {why}; take that out in your file to use it"
    return replace(found, entry={**found.entry, "disabled": True}, notes=(note, *found.notes))


def _moved(source: Source, servers: Sequence[MergedServer], into: Path, machine: HostEnvironment) -> Change:
    """The host's file with goat-mcp in the place of all that was taken over."""
    file = source.file
    gone = [server.name for server in servers if server.outcome in (ImportOutcome.IMPORTED, ImportOutcome.PRESENT)]
    return Change(file.path, file.data, _with_us(file, gone, into, machine) if gone else file.data)


def plan_install(source: Source, into: Path, machine: HostEnvironment) -> Change:
    """The host's file with goat-mcp beside what it has. Raises `ToolError`."""
    return Change(source.file.path, source.file.data, _with_us(source.file, (), into, machine))


def _with_us(file: HostFile, gone: Sequence[str], into: Path, machine: HostEnvironment) -> bytes | None:
    entries = file.entries
    ours = own_names(file.host, entries)
    for name in ours:
        if gone and (other := other_upstreams(file.host, entries[name], into)):
            raise ToolError(
                ErrorCode.CONFIG,
                f"{file.host.title} starts goat-mcp ({name}) with {other}, not with {into}",
                "Nothing was changed. Import into the file that it reads (--into), or take that entry out first.",
            )
    if ours and not gone:
        return file.data
    env = {name: machine.environ[name] for name in _HANDED_ON if machine.environ.get(name)}
    launch = own_launch(None if into.resolve() == own_upstreams_file().resolve() else into.absolute())
    free = (name for name in (OWN_NAME, "goat-mcp", "goat-mcp-gateway") if name not in entries or name in gone)
    add = {} if ours else {next(free, "goat-mcp-2"): own_entry(file.host, launch, env)}
    return file.changed(remove=gone, add=add)


def carry_out(plan: ImportPlan, state: StateDirectory) -> None:
    """Write what was planned: our file first, then each host's, with a receipt. Raises `ToolError`."""
    if plan.into.is_one and plan.into.after is not None:
        plan.into.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_bytes(plan.into.path, plan.into.after, was=plan.into.before, private=True)
    for one in plan.sources:
        if one.change is not None:
            write_host(one.source, one.change, state, why="move")


def write_host(source: Source, change: Change, state: StateDirectory, *, why: Why) -> None:
    """Write a host's file, remembering what it held. Raises `ToolError`."""
    if change.is_one and change.after is not None:
        kept = receipt(source.host.name, change.path, source.file.root, change.before, change.after, why)
        receipts = Receipts(state, change.path)
        earlier = receipts.all()
        receipts.note(kept)
        try:
            replace_bytes(change.path, change.after, was=change.before)
        except BaseException:
            receipts.keep(earlier)
            raise
