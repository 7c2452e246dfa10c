"""A host's file as it was before we wrote it, and goat-mcp taken out of it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from goat_mcp.cli.hosts.host import ON_WINDOWS
from goat_mcp.cli.hosts.host_file import HostFile, read_host_file
from goat_mcp.cli.hosts.own_entry import own_names
from goat_mcp.cli.hosts.receipts import FOLDER, Receipt, Receipts, sha256
from goat_mcp.cli.hosts.sources import Source
from goat_mcp.cli.hosts.table import written_host
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.file_edit import Change, replace_bytes


def written_files(state: StateDirectory, host: str = "") -> list[Receipts]:
    """The files that can be put back, in the order of their names: of all hosts, else of the one of this name.

    A name without `@windows` means the host on both systems.
    """
    folder = state.path / FOLDER
    found = [Receipts.stored(state, path) for path in sorted(folder.glob("*.json"))] if folder.is_dir() else []
    kept = [(receipts, receipts.all()) for receipts in found if receipts is not None]
    named = [(receipts, all_of[-1].host) for receipts, all_of in kept if all_of]
    return [receipts for receipts, name in named if host in ("", name, name.removesuffix(ON_WINDOWS))]


@dataclass(frozen=True)
class Ejection:
    """How a host's file is put back. `kept` says, line by line, what was changed since and stays."""

    receipt: Receipt
    change: Change
    kept: Sequence[str] = ()


def plan_eject(receipts: Receipts, *, keep_changes: bool) -> Ejection:
    """The file as it was. Raises `ToolError(STALE)` if it has been changed since, unless changes are kept."""
    last = receipts.all()[-1]
    now = read_host_file(written_host(last.host), last.file, last.root)
    if now.data is not None and sha256(now.data) == last.wrote_sha256:
        return Ejection(last, Change(last.file, now.data, last.before))
    if now.data is None and keep_changes:
        return Ejection(last, Change(last.file, None, last.before))
    kept = ["the file was deleted"] if now.data is None else _changes_since(last, now)
    if not keep_changes:
        differs = "".join(f"\n  {line}" for line in kept) or "\n  only comments, order or spaces"
        raise ToolError(
            ErrorCode.STALE,
            f"{last.file} has been changed since goat-mcp wrote it:{differs}",
            f"Nothing was changed. `goat-mcp eject {last.host} --keep-changes` puts the servers back and "
            f"keeps these changes. What the file held before is in {receipts.path}.",
        )
    return Ejection(last, Change(last.file, now.data, _servers_back(last, now)), kept)


def _before(last: Receipt, now: HostFile) -> HostFile:
    return HostFile(now.host, last.file, last.before, last.root)


def _changes_since(last: Receipt, now: HostFile) -> list[str]:
    """What in the file is neither as it was nor of our doing: servers first, then the other keys at the top."""
    before, entries = _before(last, now), now.entries
    theirs = {name: entry for name, entry in entries.items() if name not in own_names(now.host, entries)}
    lines = _differences("server", before.entries, theirs, removed=last.why == "install")
    root = last.root[0]
    others = ({key: value for key, value in file.tree.items() if key != root} for file in (before, now))
    return [*lines, *_differences("key", *others, removed=True)]


def _differences(what: str, before: Mapping[str, Any], now: Mapping[str, Any], *, removed: bool) -> list[str]:
    """`removed`: whether what is missing was taken out by somebody else, and not moved by us."""
    added = [f"{what} {name} was added" for name in now if name not in before]
    changed = [f"{what} {name} was changed" for name in now if name in before and now[name] != before[name]]
    gone = [f"{what} {name} was removed" for name in before if name not in now] if removed else []
    return [*added, *changed, *gone]


def _servers_back(last: Receipt, now: HostFile) -> bytes:
    """The file as it is now, with the servers that we moved, and with our entry as it was."""
    before, entries = _before(last, now).entries, now.entries
    was_ours = own_names(now.host, before)
    ours = [name for name in own_names(now.host, entries) if before.get(name) != entries[name]]
    moved = [name for name in before if name not in entries] if last.why == "move" else []
    back = [name for name in before if name in moved or (name in was_ours and name in ours)]
    return now.changed(remove=ours, add={name: before[name] for name in back})


def write_uninstall(change: Change, state: StateDirectory, *, is_as_it_was: bool) -> None:
    """Write what `plan_uninstall` found. Raises `ToolError` if the file is another one by now."""
    replace_bytes(change.path, change.after, was=change.before)
    if is_as_it_was:
        Receipts(state, change.path).drop_last()


def plan_uninstall(source: Source, state: StateDirectory) -> tuple[bool, Change]:
    """The host's file without goat-mcp, and whether that is what it was before. Raises `ToolError`."""
    file = source.file
    kept = Receipts(state, file.path).all()
    last = kept[-1] if kept and kept[-1].root == tuple(file.root) else None
    ours: Sequence[str] = own_names(file.host, file.entries)
    if last is not None and file.data is not None and sha256(file.data) == last.wrote_sha256:
        if last.why == "move":
            raise ToolError(
                ErrorCode.INPUT,
                f"the servers of {file.host.title} were moved behind goat-mcp",
                f"`goat-mcp eject {file.host.name}` puts them back.",
            )
        if not own_names(file.host, _before(last, file).entries):
            return True, Change(file.path, file.data, last.before)
    return False, Change(file.path, file.data, file.changed(remove=ours, add={}) if ours else file.data)
