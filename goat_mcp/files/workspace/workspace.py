"""The workspace: the directories file tools may touch, and the only door to paths in them.

A path is checked by opening it (`beneath`); text comparison here only words refusals. Blocking, but for `lock`.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from pathlib import Path
from typing import Protocol

from goat_mcp.core import platform, posix
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.workspace import refusals
from goat_mcp.files.workspace.beneath import Beneath, Kernel, Location
from goat_mcp.files.workspace.locks import FileLocks
from goat_mcp.files.workspace.names import comparable
from goat_mcp.files.workspace.opened_file import FileVersion, OpenedDirectory, OpenedFile
from goat_mcp.files.workspace.refusals import near_paths
from goat_mcp.files.workspace.roots import (
    Names,
    Root,
    Roots,
    WorkspacePath,
    absolute,
    collapse,
    is_kernel_path,
    private_folder,
    split_names,
)
from goat_mcp.files.workspace.short_names import refuse_short_names
from goat_mcp.files.workspace.temp_files import TempFiles, remove_if_abandoned
from goat_mcp.files.workspace.windows_directory import holds_name
from goat_mcp.files.workspace.windows_paths import parse_windows_path
from goat_mcp.files.workspace.writing import BeforeChange, Expected, FileWriter, WrittenFile, do_nothing
from goat_mcp.processes.wsl import local_path

PRIMARY_SIGN = "@"
_OPEN_FLAGS = os.O_RDONLY | posix.O_NONBLOCK | posix.O_NOCTTY
_LITERAL_SIGNS = ("~", "$", "file:")


def _nothing_denied(path: str, writes: bool) -> str:
    return ""


def _anything(path: Path) -> bool:
    return True


class Files(Protocol):
    """What a tool does with files that it was asked to change. A `Workspace` does it on disk; others may stand before
    one. Each method means, and raises, what that of `Workspace` does."""

    def stat(self, path: WorkspacePath) -> os.stat_result | None: ...

    def open_file(self, path: WorkspacePath) -> OpenedFile: ...

    def write_file(self, path: WorkspacePath, data: bytes, *, expect: FileVersion | None) -> WrittenFile: ...


class Workspace:
    """Roots, and every way to a file below them.

    Args:
        roots: directories tools may read and write below; the first is the primary one, `@`.
        readable: more directories that may be read, and never written; they need not exist yet.
        private: directories that nobody reads or writes although a root may hold them, but for what is `readable`:
            the server's own state.
        is_open: of what is both, which real paths the present caller may read.
        lock_folder: where locks and notes on unfinished writes lie, 0700; all processes that should
            take turns need the same one. None: one folder per user.
        kernel: which system calls to use; tests hand in an older one.
        why_denied: the rule that forbids to read (or, if the second argument is true, to write) an absolute path;
            empty if none does. It is asked about the path as it came and about that of the file that was opened.
        own_roots: the roots of the present caller, if it has others than `roots`.
    """

    def __init__(
        self,
        *roots: Path,
        readable: tuple[Path, ...] = (),
        private: tuple[Path, ...] = (),
        is_open: Callable[[Path], bool] = _anything,
        lock_folder: Path | None = None,
        kernel: Kernel | None = None,
        why_denied: Callable[[str, bool], str] = _nothing_denied,
        own_roots: Callable[[], Roots | None] | None = None,
    ) -> None:
        self._why_denied = why_denied
        self._readable = readable
        self._private = tuple(path.resolve().parts for path in private)
        self._open_in_private = tuple(path.resolve().parts for path in readable)
        self._is_open = is_open
        folder = private_folder() if lock_folder is None else lock_folder
        self._temps = TempFiles(folder)
        self._locks = FileLocks(folder, self.key)
        self._writer = FileWriter(self._temps)
        self._beneath = Beneath(lambda: self._roots, kernel or Kernel())
        self._own_roots = own_roots
        self._shared_roots = Roots((), ())
        self.adopt_roots(roots)

    @property
    def _roots(self) -> Roots:
        own = self._own_roots() if self._own_roots is not None else None
        return own or self._shared_roots

    @property
    def roots(self) -> tuple[Path, ...]:
        """Writable roots, absolute and real."""
        return self._roots.real

    @property
    def primary(self) -> Path:
        """The first root. Raises `ToolError(NO_WORKSPACE)`."""
        if not self._roots.writable:
            raise refusals.no_workspace()
        return self._roots.writable[0].real

    def adopt_roots(self, roots: Sequence[Path]) -> None:
        """Replace the writable roots. Raises `ToolError` naming one that cannot be opened; the old ones then stay."""
        adopted = Roots(tuple(roots), self._readable)
        if platform.HAS_DIRECTORY_DESCRIPTORS or platform.SYSTEM == "windows":
            for root in adopted.writable:
                try:
                    root.pin()
                except OSError as problem:
                    code = ErrorCode.NOT_A_DIRECTORY if isinstance(problem, NotADirectoryError) else ErrorCode.NOT_FOUND
                    reason = (problem.strerror or str(problem)).lower()
                    raise ToolError(
                        code,
                        f"workspace root {root.real}: {reason}",
                        "Name a directory that exists with --workspace DIR.",
                    ) from None
        self._shared_roots = adopted
        if adopted.writable:
            self._clear_up()

    def resolve(self, asked: str) -> WorkspacePath:
        """The path meant, by its text alone. Raises `ToolError`: INPUT, PATH_RELATIVE, PATH_OUTSIDE, NO_WORKSPACE."""
        self._check_text(asked)
        spelled = f"{self.primary}/{asked[1:]}" if asked.startswith(PRIMARY_SIGN) else local_path(asked)
        names = self._names(spelled, asked)
        if not self._roots.writable and not self._readable:
            raise refusals.no_workspace()
        entered = self._roots.enter(names) or self._roots.enter(collapse(names))
        if entered is None:
            raise self._outside(asked) if self._roots.writable else refusals.no_workspace()
        root, below = entered
        plain = collapse((*root.names, *below))
        if is_kernel_path(plain) or self._roots.enter(plain) is None:
            raise self._outside(asked)
        return WorkspacePath(root.real, "/".join(below))

    def open_file(self, path: WorkspacePath) -> OpenedFile:
        """Open a regular file for reading; use it in a `with`.

        Raises `ToolError`: NOT_FOUND with near names, DIRECTORY, NOT_REGULAR, PATH_OUTSIDE, IO.
        """
        try:
            fd, real = self._beneath.open(self._root(path), path.names, _OPEN_FLAGS)
        except OSError as problem:
            raise self._refusal(problem, path) from None
        try:
            self._check_allowed(path, real)
        except ToolError:
            os.close(fd)
            raise
        found = os.fstat(fd)
        if stat.S_ISREG(found.st_mode):
            return OpenedFile(fd, found, real)
        os.close(fd)
        raise refusals.is_directory(path) if stat.S_ISDIR(found.st_mode) else refusals.not_regular(path)

    def open_directory(self, path: WorkspacePath) -> OpenedDirectory:
        """Open a directory to list it or to go on from it; use it in a `with`.

        Raises `ToolError`: NOT_FOUND with near names, NOT_A_DIRECTORY, PATH_OUTSIDE, IO.
        """
        try:
            directory, real = self._beneath.open_directory(self._root(path), path.names)
        except NotADirectoryError as problem:
            if self._beneath.exists(self._root(path), path.names):
                raise refusals.not_a_directory(path) from None
            raise self._refusal(problem, path) from None
        except OSError as problem:
            raise self._refusal(problem, path) from None
        try:
            self._check_allowed(path, real)
        except ToolError:
            directory.close()
            raise
        return OpenedDirectory(directory, directory.status(), real)

    def stat(self, path: WorkspacePath) -> os.stat_result | None:
        """What is there, links inside followed; None if nothing is. Raises `ToolError(PATH_OUTSIDE)`."""
        try:
            return self._beneath.stat(self._root(path), path.names)
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise refusals.system_error(problem, path, self.roots) from None

    def real_path(self, path: WorkspacePath) -> Path:
        """Where the path really is, or would be if it were created. Raises `ToolError(PATH_OUTSIDE)`."""
        with self._location(path) as location:
            return location.real

    def contains(self, path: Path) -> bool:
        """Whether an absolute real path lies in a root that may be written."""
        root = self._roots.holding(path)
        return root is not None and root.writable and not self.is_private(path)

    def is_private(self, path: Path) -> bool:
        """Whether an absolute real path belongs to the server itself, although it may lie below a root."""
        if not self._is_below_one(path, self._private):
            return False
        return not (self._is_below_one(path, self._open_in_private) and self._is_open(path))

    def _is_below_one(self, path: Path, folders: Sequence[Names]) -> bool:
        root = self._roots.holding(path) if self._roots.some_fold else None
        key = path.parts if root is None else root.key(path.parts)
        return any(key[: len(one)] == (one if root is None else root.key(one)) for one in folders)

    def key(self, real_path: Path) -> str:
        """The same for all spellings of a real path: what is known about a file goes by it."""
        root = self._roots.holding(real_path) if self._roots.some_fold else None
        return comparable(str(real_path)) if root is not None and root.folds else str(real_path)

    def write_file(
        self,
        path: WorkspacePath,
        data: bytes,
        *,
        expect: Expected,
        before: BeforeChange = do_nothing,
        new_mode: int | None = None,
    ) -> WrittenFile:
        """Make `data` the whole content, in one step; missing folders are created. Hold `lock` around it.

        `expect`: a version that must still be there, None for a file that must not exist, or `AnyVersion()`.
        `before` is called when all is ready; `new_mode` is for a file that is created.
        Raises `ToolError`: STALE, HARD_LINKED, PATH_OUTSIDE, DIRECTORY, NOT_REGULAR, IO (e.g. disk full).
        """
        with self._writable_location(path) as location:
            return self._writer.write(location, data, expect, path, before=before, new_mode=new_mode)

    def remove_file(self, path: WorkspacePath, *, expect: FileVersion, before: BeforeChange = do_nothing) -> None:
        """Take a file away. Hold `lock` around it. Raises `ToolError` as `write_file` does, and NOT_FOUND."""
        with self._writable_location(path) as location:
            if location.stat is None:
                raise refusals.not_found(path)
            self._writer.remove(location, expect, path, before=before)

    def check_writable(self, path: WorkspacePath) -> None:
        """Raises `ToolError` for a path that `write_file` would refuse whatever it should write."""
        with self._writable_location(path) as location:
            self._writer.check(location, path)

    def lock(self, real_path: Path) -> AbstractAsyncContextManager[None]:
        """One writer at a time, in this process and among our processes. Raises `ToolError(BUSY)` after 45 s."""
        return self._locks.hold(real_path)

    def _check_allowed(self, path: WorkspacePath, real: Path) -> None:
        """Raise if what was opened must not be read (R-FILE-5)."""
        self._refuse_short_names(real)
        rule = self._why_denied(path.plain, False) or self._why_denied(str(real), False)
        if rule or self.is_private(real):
            raise refusals.denied_by_rule(path, rule) if rule else self._outside(path)

    def _refuse_short_names(self, real: Path) -> None:
        if (root := self._roots.holding(real)) is not None:
            refuse_short_names(real, root.real)

    @contextmanager
    def _writable_location(self, path: WorkspacePath) -> Generator[Location]:
        """The place of a path that may be written, pinned; system errors inside the block become `ToolError`."""
        with self._location(path) as location:
            if not self.contains(location.real):
                raise self._outside(path)
            self._refuse_short_names(location.real)
            if rule := self._why_denied(path.plain, True) or self._why_denied(str(location.real), True):
                raise refusals.denied_by_rule(path, rule)
            try:
                yield location
            except OSError as problem:
                raise refusals.system_error(problem, path, self.roots) from None

    def _location(self, path: WorkspacePath) -> Location:
        try:
            return self._beneath.locate(self._root(path), path.names)
        except OSError as problem:
            raise refusals.system_error(problem, path, self.roots) from None

    def _root(self, path: WorkspacePath) -> Root:
        root = self._roots.of(path)
        if root is None or "\0" in path.relative:
            raise self._outside(path)
        return root

    def _refusal(self, problem: OSError, path: WorkspacePath) -> ToolError:
        if problem.errno not in (errno.ENOENT, errno.ENOTDIR):
            return refusals.system_error(problem, path, self.roots)
        near: list[str] = []
        with suppress(OSError), self._beneath.locate(self._root(path), path.names) as location:
            if location.missing:
                near = near_paths(self._beneath, location)
        return refusals.not_found(path, near)

    def _names(self, spelled: str, asked: str) -> Names:
        """Of an absolute path, counted from the top."""
        if platform.SYSTEM == "windows":
            try:
                return parse_windows_path(spelled, holds_name).all_names
            except ToolError as refused:
                if refused.code is ErrorCode.PATH_RELATIVE:
                    raise self._relative(asked) from None
                raise
        if not spelled.startswith("/"):
            raise self._relative(asked)
        return split_names(spelled)

    def _check_text(self, asked: str) -> None:
        if not asked:
            raise ToolError(ErrorCode.INPUT, "the path is empty", "Send an absolute path.")
        if "\0" in asked:
            raise ToolError(
                ErrorCode.INPUT, f"the path holds a NUL character: {refusals.shown(ascii(asked))}", "Send it without."
            )
        try:
            os.fsencode(asked)
        except UnicodeEncodeError:
            raise ToolError(
                ErrorCode.INPUT, f"the path is not valid text: {refusals.shown(ascii(asked))}", "Send it as UTF-8."
            ) from None

    def _relative(self, asked: str) -> ToolError:
        text = asked.replace("\\", "/") if platform.SYSTEM == "windows" else asked
        names = (*split_names(self.primary.as_posix()), *split_names(text))
        meant = collapse(names)
        if self._roots.enter(meant) is None:
            return self._outside(asked)
        path = str(Path(absolute(meant)))
        hint = " Paths are literal: ~, variables and URLs mean nothing." if asked.startswith(_LITERAL_SIGNS) else ""
        return ToolError(
            ErrorCode.PATH_RELATIVE,
            f"not an absolute path: {refusals.shown(asked)}",
            f"Probably meant: {refusals.shown(path)}.{hint}",
            facts={"absolute_path": path},
        )

    def _outside(self, asked: object) -> ToolError:
        return refusals.outside(asked, self.roots)

    def _clear_up(self) -> None:
        """Remove what killed writers left below these roots, if they noted it."""
        for left in self._temps.noted():
            with suppress(OSError, ToolError):
                folder = self.resolve(str(left.parent))
                with self.open_directory(folder) as opened:
                    remove_if_abandoned(opened.directory, left.name)
