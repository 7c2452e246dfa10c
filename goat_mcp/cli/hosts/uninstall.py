"""A host's file as it was before we wrote it, and goat-mcp taken out of it again."""

from __future__ import annotations

from collections.abc import Sequence

from goat_mcp.cli.hosts.host import Host
from goat_mcp.cli.hosts.host_file import HostFile, read_host_file
from goat_mcp.cli.hosts.importing import Change
from goat_mcp.cli.hosts.own_entry import own_names
from goat_mcp.cli.hosts.receipts import FOLDER, Receipt, Receipts, sha256
from goat_mcp.cli.hosts.sources import Source
from goat_mcp.cli.hosts.table import HOSTS
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.directory import StateDirectory


def written_files(state: StateDirectory, host: Host | None = None) -> list[Receipts]:
    """The files that can be put back, in the order of their names."""
    folder = state.path / FOLDER
    found = [Receipts.stored(state, path) for path in sorted(folder.glob("*.json"))] if folder.is_dir() else []
    kept = [(receipts, receipts.all()) for receipts in found if receipts is not None]
    return [receipts for receipts, all_of in kept if all_of and host in (None, HOSTS.get(all_of[-1].host))]


def plan_eject(receipts: Receipts, *, keep_changes: bool) -> tuple[Receipt, Change]:
    """The file as it was. Raises `ToolError(STALE)` where it has been changed since, unless changes are kept."""
    last = receipts.all()[-1]
    now = read_host_file(HOSTS[last.host], last.file, last.root)
    if now.data is not None and sha256(now.data) == last.wrote_sha256:
        return last, Change(last.file, now.data, last.before)
    if not keep_changes:
        raise ToolError(
            ErrorCode.STALE,
            f"{last.file} has been changed since goat-mcp wrote it",
            f"Nothing was changed. `goat-mcp eject {last.host} --keep-changes` puts the servers back and "
            f"keeps the rest as it is now. What the file held before is in {receipts.path}.",
        )
    return last, Change(last.file, now.data, _servers_back(last, now))


def _servers_back(last: Receipt, now: HostFile) -> bytes:
    """The file as it is now, with the servers it had and without us."""
    before = HostFile(now.host, last.file, last.before, last.root).entries
    entries = now.entries
    ours = [name for name in own_names(now.host, entries) if name not in own_names(now.host, before)]
    back = {name: entry for name, entry in before.items() if name not in entries or name in ours}
    return now.changed(remove=ours, add=back)


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
        return True, Change(file.path, file.data, last.before)
    return False, Change(file.path, file.data, file.changed(remove=ours, add={}) if ours else file.data)
