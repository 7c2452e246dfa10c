"""Importing servers of hosts into our upstreams file, and goat-mcp put among the servers of a host.

Everything is planned before anything is written. Our file is written first, so that no server is ever in neither."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from goat_mcp.cli.hosts.host import Host, HostEnvironment
from goat_mcp.cli.hosts.host_file import HostFile, read_host_file
from goat_mcp.cli.hosts.merging import ImportOutcome, MergedServer, Merging
from goat_mcp.cli.hosts.own_entry import (
    NO_OPTIONS,
    OWN_NAME,
    ServeOptions,
    another_goat,
    changed_entry,
    first_of,
    launch_of,
    missing_part,
    other_upstreams,
    own_entry,
    own_launch,
    own_names,
)
from goat_mcp.cli.hosts.plain_secrets import PlainSecret, plain_secrets, stored_name, with_references
from goat_mcp.cli.hosts.receipts import Receipts, Why, receipt
from goat_mcp.cli.hosts.sources import Source
from goat_mcp.cli.hosts.switches import off_switch, projects_without
from goat_mcp.cli.hosts.translate import Translated, plain_text_note, translated
from goat_mcp.cli.hosts.wsl_entry import through_wsl
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.directory import STATE_DIR_VARIABLE, StateDirectory, own_upstreams_file
from goat_mcp.state.file_edit import Change, replace_bytes
from goat_mcp.state.secret_store import SecretStore, SecretTrouble

_OURS = Host("goat-mcp", "goat-mcp", "json", ("mcpServers",))
_HANDED_ON = (STATE_DIR_VARIABLE, "XDG_CONFIG_HOME")
"""Variables that decide where our files are; a host with windows does not have those of the shell."""


@dataclass(frozen=True)
class SourcePlan:
    """One host's file: what happens to each server, and to the file."""

    source: Source
    servers: Sequence[MergedServer]
    change: Change | None = None
    """None if the file is only read."""


@dataclass(frozen=True)
class ImportPlan:
    """`new_secrets` and `old_secrets` stand in plain text in entries that come, and in those that are there already.

    `stored` are those of both that will be stored, each with its name.
    """

    into: Change
    sources: Sequence[SourcePlan]
    new_secrets: Sequence[PlainSecret] = ()
    old_secrets: Sequence[PlainSecret] = ()
    stored: Mapping[PlainSecret, str] = field(default_factory=dict[PlainSecret, str])


def plan_import(
    sources: Sequence[Source],
    into: Path,
    environment: HostEnvironment,
    *,
    move: bool,
    names_of_secrets: Collection[str] | None = None,
) -> ImportPlan:
    """What an import would do. Raises `ToolError` for a file that cannot be read or edited.

    `names_of_secrets` are taken already; if they are given, secrets in plain text are stored and replaced.
    """
    ours = read_host_file(_OURS, into)
    merging = Merging(ours.entries)
    plans: list[SourcePlan] = []
    for source in sources:
        if source.file.path.resolve() == into.resolve():
            raise ToolError(ErrorCode.INPUT, f"{into} is the file to import into", "Name another one.")
        why_off = off_switch(source, environment)
        servers = [
            _merged(merging, source, name, entry, environment, why_off(name, entry))
            for name, entry in source.file.entries.items()
        ]
        change = _moved(source, servers, into, environment) if move else None
        plans.append(SourcePlan(source, servers, change))
    present = {
        server.to: ours.entries[server.to] for plan in plans for server in plan.servers if server.to in ours.entries
    }
    new = [secret for name, entry in merging.new.items() for secret in plain_secrets(name, entry)]
    old = [secret for name, entry in present.items() for secret in plain_secrets(name, entry)]
    stored = {} if names_of_secrets is None else _named([*new, *old], names_of_secrets)
    changed = {
        name: with_references(present[name], _of(stored, name)) for name in {one.server for one in old if stored}
    }
    coming = {name: with_references(entry, _of(stored, name)) for name, entry in merging.new.items()}
    add = {**changed, **coming}
    after = ours.changed(remove=[*changed], add=add) if add else ours.data
    plans = [replace(plan, servers=[_with_stored(server, stored) for server in plan.servers]) for plan in plans]
    return ImportPlan(Change(into, ours.data, after), plans, new, old, stored)


def _named(secrets: Sequence[PlainSecret], taken: Collection[str]) -> dict[PlainSecret, str]:
    names: dict[PlainSecret, str] = {}
    for secret in secrets:
        names[secret] = stored_name(secret, {*taken, *names.values()})
    return names


def _of(stored: Mapping[PlainSecret, str], server: str) -> dict[PlainSecret, str]:
    return {secret: name for secret, name in stored.items() if secret.server == server}


def _with_stored(server: MergedServer, stored: Mapping[PlainSecret, str]) -> MergedServer:
    """A secret that is stored is not in plain text any more."""
    found = _of(stored, server.to)
    outdated = {plain_text_note(secret.where) for secret in found}
    notes = [note for note in server.notes if note not in outdated]
    stored_notes = [f"{secret.where}: stored as the secret {name}" for secret, name in found.items()]
    return replace(server, notes=(*notes, *stored_notes)) if found else server


def _merged(
    merging: Merging, source: Source, name: str, entry: Any, environment: HostEnvironment, why_off: str
) -> MergedServer:
    account = environment.of(source.host)
    windows = account if source.host.is_on_windows else None
    found = translated(
        source.host,
        name,
        entry,
        home=_spelled_home(account),
        environ=environment.environ,
        project=source.project,
        inputs=source.inputs,
        folder=source.file.path.parent,
        windows=windows,
    )
    return merging.add(_as_switched(found, why_off, source), source.host.kind)


def _spelled_home(account: HostEnvironment) -> Path:
    """As the host spells it."""
    if account.wsl is None or account.platform != "windows":
        return account.home
    return Path(account.wsl.windows(account.home.as_posix()))


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


def _moved(source: Source, servers: Sequence[MergedServer], into: Path, environment: HostEnvironment) -> Change:
    """The host's file with goat-mcp in the place of all that was taken over."""
    file = source.file
    gone = [server.name for server in servers if server.outcome in (ImportOutcome.IMPORTED, ImportOutcome.PRESENT)]
    return Change(file.path, file.data, _with_us(file, gone, into, environment) if gone else file.data)


def plan_install(
    source: Source, into: Path, environment: HostEnvironment, options: ServeOptions = NO_OPTIONS
) -> Change:
    """The host's file with goat-mcp beside what it has; an entry of ours gets the options. Raises `ToolError`."""
    file = source.file
    entries = file.entries
    ours = own_names(file.host, entries)
    if not ours:
        return Change(file.path, file.data, _with_us(file, (), into, environment, options))
    first = first_of(ours)
    if other := another_goat(file.host, entries[first]):
        raise ToolError(
            ErrorCode.CONFIG,
            f"{file.host.title} starts {other} ({first}); take that out first: goat-mcp uninstall {file.host.name}",
            "Nothing was changed.",
        )
    changed: dict[str, Any] = {}
    for name in ours:
        # The options are for one entry: several of ours differ on purpose.
        own_options = options if name == first else NO_OPTIONS
        if own_options != NO_OPTIONS or missing_part(file.host, *launch_of(file.host, entries[name])):
            changed[name] = changed_entry(file.host, entries[name], own_options)
    changed = {name: entry for name, entry in changed.items() if entry != entries[name]}
    return Change(file.path, file.data, file.changed(remove=[*changed], add=changed) if changed else file.data)


def _with_us(
    file: HostFile,
    gone: Sequence[str],
    into: Path,
    environment: HostEnvironment,
    options: ServeOptions = NO_OPTIONS,
) -> bytes | None:
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
    free = (name for name in (OWN_NAME, "goat-mcp", "goat-mcp-gateway") if name not in entries or name in gone)
    add = {} if ours else {next(free, "goat-mcp-2"): new_entry(file.host, into, environment, options)}
    return file.changed(remove=gone, add=add)


def new_entry(host: Host, into: Path, environment: HostEnvironment, options: ServeOptions) -> dict[str, Any]:
    """The entry that starts goat-mcp with the upstreams `into`, in the notation of `host`."""
    env = {name: environment.environ[name] for name in _HANDED_ON if environment.environ.get(name)}
    launch = own_launch(None if into.resolve() == own_upstreams_file().resolve() else into.absolute(), options)
    if host.is_on_windows:  # its variables do not reach us
        launch, env = through_wsl(host, *launch, env), {}
    return own_entry(host, launch, env)


def carry_out(plan: ImportPlan, state: StateDirectory) -> None:
    """Write what was planned: secrets first, then our file, then each host's, with a receipt. Raises `ToolError`."""
    if plan.stored:
        _store(plan.stored, SecretStore(state))
    if plan.into.is_one and plan.into.after is not None:
        plan.into.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_bytes(plan.into.path, plan.into.after, was=plan.into.before, private=True)
    for one in plan.sources:
        if one.change is not None:
            write_host(one.source, one.change, state, why="move")


def _store(secrets: Mapping[PlainSecret, str], store: SecretStore) -> None:
    try:
        for secret, name in secrets.items():
            store.set(name, secret.secret)
    except SecretTrouble as trouble:
        raise ToolError(ErrorCode.CONFIG, str(trouble), "No file was changed.") from None


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
