"""A file of the user's own that a command edits: shown as a diff, backed up, and replaced in one step."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from goat_mcp.cli.host_changes import say_diff
from goat_mcp.cli.hosts.host_file import read_bytes, replace_bytes
from goat_mcp.cli.hosts.importing import Change
from goat_mcp.cli.terminal import say
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.file_lock import exclusive

_BACKUP = ".bak"
NOTHING_WRITTEN = "Nothing was written (--dry-run)."


@contextmanager
def edit_alone() -> Generator[None]:
    """Read, change and write files of the user's own while no other command of ours does: of two changes at a time
    none is lost."""
    with ExitStack() as stack:
        with suppress(OSError):  # a state directory that cannot be written; a change of the file is still noticed
            stack.enter_context(exclusive(StateDirectory.default().folder() / "edits.lock"))
        yield


def text_of(path: Path) -> str:
    """What the file holds; empty if there is none. Raises `ToolError`."""
    try:
        return (read_bytes(path) or b"").decode("utf-8")
    except UnicodeDecodeError:
        raise ToolError(ErrorCode.CONFIG, f"{path}: is not UTF-8 text", "Fix the file first.") from None


def change_of(path: Path, was: str, text: str) -> Change:
    """The file with `text` in place of what it `was`. Raises `ToolError(STALE)` if it is something else by now."""
    before = read_bytes(path)
    if (before or b"") != was.encode():
        raise ToolError(ErrorCode.STALE, f"{path} was changed meanwhile", "Nothing was changed. Try again.")
    return Change(path, before, before if before is None and not text else text.encode())


def write_change(change: Change) -> None:
    """Write it, with what was there before beside it. Only the user can read either. Raises `ToolError`."""
    if not change.is_one:
        return
    folder = change.path.parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        why = problem.strerror or problem
        raise ToolError(ErrorCode.IO, f"{folder} cannot be made: {why}", "Nothing was changed.") from None
    if change.before is not None:
        backup = backup_of(change.path)
        replace_bytes(backup, change.before, was=read_bytes(backup), private=True)
    replace_bytes(change.path, change.after, was=change.before, private=True)


def backup_of(path: Path) -> Path:
    """Where the content before the last change is kept."""
    real = path.resolve()
    return real.with_name(real.name + _BACKUP)


def say_change(change: Change, *, dry_run: bool) -> None:
    """The diff, and where it is or would be written."""
    say_diff(change)
    if dry_run:
        say(NOTHING_WRITTEN)
    elif change.before is not None:
        say(f"Written: {change.path} (before: {backup_of(change.path).name})")
    else:
        say(f"Written: {change.path}")
