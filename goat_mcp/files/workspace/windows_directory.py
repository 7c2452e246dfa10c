"""A `Directory` on Windows, which has no directory descriptors: by path, below directories that are held open.

A directory is held open, and so are those above it, without leave for others to rename or delete it. So each path
means the same for as long as it is used. Nothing that redirects is followed: junctions, symbolic links, mount points
and other reparse points are refused. What is opened has to be what was named, by the path that Windows itself gives.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# The stubs of pywin32 leave many parameters and results without a type.

from __future__ import annotations

import errno
import sys
from pathlib import Path

from goat_mcp.files.workspace.held_directory import Directory

_PREFIX = "\\\\?\\"
"""Before an absolute path: it may be long, and Windows changes nothing in its names."""


class LinkRefused(OSError):
    """Something that leads elsewhere. `strerror` says what it is."""


if sys.platform == "win32":
    import msvcrt
    import os
    import stat
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Any, NoReturn, Self

    import ntsecuritycon
    import pywintypes
    import win32con
    import win32file
    import winerror

    from goat_mcp.state.windows_files import REPARSE_POINT, as_os_error, copy_access, open_shared, replace_file

    _STAYS = win32con.FILE_SHARE_READ | win32con.FILE_SHARE_WRITE
    # One of the rights that count for sharing: a handle that may only read attributes keeps nobody from anything.
    _HOLD = ntsecuritycon.FILE_TRAVERSE | ntsecuritycon.FILE_READ_ATTRIBUTES
    _LIST = _HOLD | ntsecuritycon.FILE_LIST_DIRECTORY
    _AS_IT_IS = win32file.FILE_FLAG_BACKUP_SEMANTICS | win32file.FILE_FLAG_OPEN_REPARSE_POINT
    _DIRECTORY = win32con.FILE_ATTRIBUTE_DIRECTORY
    _KEPT_ATTRIBUTES = win32con.FILE_ATTRIBUTE_HIDDEN | win32con.FILE_ATTRIBUTE_SYSTEM
    _NO_LINKS = (winerror.ERROR_INVALID_FUNCTION, winerror.ERROR_NOT_SUPPORTED, winerror.ERROR_TOO_MANY_LINKS)
    _KINDS = {
        stat.IO_REPARSE_TAG_SYMLINK: "a symbolic link",
        stat.IO_REPARSE_TAG_MOUNT_POINT: "a junction or a mount point",
    }

    class _Held:
        """An open handle of a directory, and those of the directories above. It closes when nobody uses it any more."""

        __slots__ = ("above", "handle", "path")

        def __init__(self, handle: Any, path: str, above: _Held | None) -> None:
            self.handle = handle  # closes itself
            self.path = path
            self.above = above

        @classmethod
        def opened(cls, path: str, access: int, above: _Held | None) -> Self:
            try:
                handle = win32file.CreateFile(path, access, _STAYS, None, win32con.OPEN_EXISTING, _AS_IT_IS, None)
                attributes: int = win32file.GetFileInformationByHandle(int(handle))[0]
            except pywintypes.error as problem:
                raise as_os_error(problem, path) from None
            if attributes & REPARSE_POINT:
                _refuse_link(path.removeprefix(_PREFIX), os.lstat(path).st_reparse_tag)
            if not attributes & _DIRECTORY:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
            real = final_path(int(handle))
            _check_opened(real, path)
            return cls(handle, real, above)

    class WindowsDirectory:
        """See `Directory`."""

        __slots__ = ("_held",)

        def __init__(self, held: _Held) -> None:
            self._held: _Held | None = held

        @classmethod
        def drive(cls, letter: str) -> WindowsDirectory:
            """The root of a local drive: `C`."""
            path = f"{_PREFIX}{letter.upper()}:\\"
            return cls(_Held.opened(path, _HOLD, None))

        def stat(self, name: str) -> os.stat_result:
            path = self._path(name)
            found = os.lstat(path)
            return _as_link(found) if found.st_file_attributes & REPARSE_POINT else found

        def read_link(self, name: str) -> str:
            found = os.lstat(self._path(name))
            if not found.st_file_attributes & REPARSE_POINT:
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), name)
            _refuse_link(name, found.st_reparse_tag)

        def open(self, name: str, flags: int, mode: int = 0o600) -> int:
            """`mode` counts for nothing: a new file has the rights that its directory hands down."""
            path = self._path(name)
            if not flags & os.O_CREAT and stat.S_ISDIR(os.lstat(path).st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
            fd = open_shared(path, flags)
            try:
                _check_opened(final_path(msvcrt.get_osfhandle(fd)), path)
            except BaseException:
                os.close(fd)
                raise
            return fd

        def enter(self, name: str, *, to_list: bool = False) -> WindowsDirectory:
            if name == ".":
                above = self._open_held.above
                path = self._open_held.path
            else:
                above = self._open_held
                path = self._path(name)
            return WindowsDirectory(_Held.opened(path, _LIST if to_list else _HOLD, above))

        def entries(self) -> Iterator[os.DirEntry[str]]:
            with os.scandir(self._open_held.path) as found:
                yield from found

        def spelled(self, name: str) -> str:
            try:
                found = win32file.FindFilesW(self._path(name))
            except pywintypes.error:
                return name
            return found[0][8] if found else name

        def make(self, name: str, mode: int) -> None:
            os.mkdir(self._path(name))  # noqa: PTH102  # a `Path` would change what is in the name

        def remove(self, name: str) -> None:
            path = self._path(name)
            if os.lstat(path).st_file_attributes & win32con.FILE_ATTRIBUTE_READONLY:
                raise PermissionError(errno.EACCES, "has the read-only attribute", name)
            os.unlink(path)  # noqa: PTH108  # as above

        def remove_folder(self, name: str) -> None:
            os.rmdir(self._path(name))  # noqa: PTH106  # as above

        def rename(self, name: str, to: Directory, new_name: str) -> None:
            replace_file(self._path(name), _below(to, new_name))

        def link(self, name: str, to: Directory, new_name: str) -> None:
            try:
                win32file.CreateHardLink(_below(to, new_name), self._path(name))
            except pywintypes.error as problem:
                if problem.winerror in _NO_LINKS:
                    raise OSError(errno.EOPNOTSUPP, problem.strerror, new_name) from None
                raise as_os_error(problem, new_name) from None

        def status(self) -> os.stat_result:
            return os.lstat(self._open_held.path)

        def sync(self) -> None:
            """Nothing to do: a rename is on disk when it returns, and nothing else can be asked for."""

        def known_path(self) -> str | None:
            try:
                return final_path(int(self._open_held.handle)).removeprefix(_PREFIX)
            except OSError:
                return None

        def fileno(self) -> int:
            raise OSError(errno.ENOSYS, "this system has no directory descriptors")

        def duplicate(self) -> WindowsDirectory:
            return WindowsDirectory(self._open_held)

        def close(self) -> None:
            self._held = None

        def __enter__(self) -> Self:
            return self

        def __exit__(
            self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
        ) -> None:
            self.close()

        @property
        def _open_held(self) -> _Held:
            if self._held is None:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
            return self._held

        def _path(self, name: str) -> str:
            held = self._open_held
            if name == ".":
                return held.path
            names = [one for one in name.split("/") if one != "."]
            if "" in names or ".." in names or not names or any(char in name for char in "\\:\0"):
                raise OSError(errno.EINVAL, "is no name in a directory", name)
            name = "\\".join(names)
            return held.path + name if held.path.endswith("\\") else f"{held.path}\\{name}"

    def open_windows_directory(path: Path) -> WindowsDirectory:
        """Open an absolute directory on a local drive, name by name, following no link at all."""
        letter, *names = path.parts
        if len(letter) != len("C:\\"):
            raise OSError(errno.ENODEV, "is not on a local drive", str(path))
        directory = WindowsDirectory.drive(letter[0])
        for name in names:
            with directory:
                below = directory.enter(name)
            directory = below
        return directory

    def final_path(handle: int) -> str:
        """Where an open file is, as it is spelled on disk, with the prefix for long paths. Raises `OSError`."""
        try:
            return win32file.GetFinalPathNameByHandle(handle, 0)
        except pywintypes.error as problem:
            raise as_os_error(problem, "") from None

    def holds_name(folder: str, name: str) -> bool:
        """Whether a directory has an entry with exactly this long name, whatever its case."""
        try:
            with os.scandir(_PREFIX + folder) as entries:
                return any(entry.name.casefold() == name.casefold() for entry in entries)
        except OSError:
            return False

    def give_attributes(directory: Directory, name: str, fd: int) -> None:
        """Who may read and change a file, and whether it is hidden: to the open one that will replace it."""
        source, target = _below(directory, name), final_path(msvcrt.get_osfhandle(fd))
        copy_access(source, target)
        if kept := os.lstat(source).st_file_attributes & _KEPT_ATTRIBUTES:
            win32file.SetFileAttributesW(target, kept)

    def _below(directory: Directory, name: str) -> str:
        assert isinstance(directory, WindowsDirectory)
        return directory._path(name)  # pyright: ignore[reportPrivateUsage]  # another one of the same class

    def _check_opened(real: str, path: str) -> None:
        """A short name, or a link that a file system follows by itself, shows here."""
        if real.casefold().rstrip("\\") != path.casefold().rstrip("\\"):
            raise LinkRefused(errno.EXDEV, f"is really {real.removeprefix(_PREFIX)}", path.removeprefix(_PREFIX))

    def _refuse_link(name: str, tag: int) -> NoReturn:
        kind = _KINDS.get(tag, f"a reparse point with the tag {tag:#x}")
        raise LinkRefused(errno.ELOOP, f"{kind}, which is not followed on Windows", name)

    def _as_link(found: os.stat_result) -> os.stat_result:
        values: list[Any] = [stat.S_IFLNK | stat.S_IMODE(found.st_mode), *found[1:]]
        return os.stat_result(values)

else:

    def open_windows_directory(path: Path) -> Directory:
        raise OSError(errno.ENOSYS, "this system is not Windows", str(path))

    def holds_name(folder: str, name: str) -> bool:
        raise OSError(errno.ENOSYS, "this system is not Windows", folder)

    def give_attributes(directory: Directory, name: str, fd: int) -> None:
        raise OSError(errno.ENOSYS, "this system is not Windows", name)
