"""Files on Windows: opened so that they can be renamed and removed meanwhile, replaced, and owner-only by ACL.

`os.open` shares a file for reading and writing but never for deletion, and follows links.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# The stubs of pywin32 leave many parameters and results without a type.

from __future__ import annotations

import errno
import sys
from pathlib import Path

_IN_USE = (32, 33, 1224)
"""ERROR_SHARING_VIOLATION, ERROR_LOCK_VIOLATION and ERROR_USER_MAPPED_FILE: a program has the file open."""


def is_in_use(problem: OSError) -> bool:
    """Whether Windows refused something because another program has the file open."""
    return getattr(problem, "winerror", None) in _IN_USE


if sys.platform == "win32":
    import msvcrt
    import os
    import time
    from functools import cache
    from typing import TYPE_CHECKING, Any

    import ntsecuritycon
    import pywintypes
    import win32api
    import win32con
    import win32file
    import win32security
    import winerror

    if TYPE_CHECKING:
        import _win32typing

    SHARED = win32con.FILE_SHARE_READ | win32con.FILE_SHARE_WRITE | win32con.FILE_SHARE_DELETE
    REPARSE_POINT = win32con.FILE_ATTRIBUTE_REPARSE_POINT
    REPLACE_WAIT_S = 1.0
    """A virus scanner or an indexer opens a new file for a moment, and nobody can replace it then."""
    _REPLACE_PAUSE_S = 0.01
    _INHERITED_BY_ALL = win32con.OBJECT_INHERIT_ACE | win32con.CONTAINER_INHERIT_ACE
    _CHANGES = (
        ntsecuritycon.FILE_WRITE_DATA
        | ntsecuritycon.FILE_APPEND_DATA
        | ntsecuritycon.FILE_DELETE_CHILD
        | win32con.DELETE
        | win32con.WRITE_DAC
        | win32con.WRITE_OWNER
        | win32con.GENERIC_WRITE
        | win32con.GENERIC_ALL
    )
    _READS = ntsecuritycon.FILE_READ_DATA | win32con.GENERIC_READ | win32con.GENERIC_ALL
    _DENYING = (win32con.ACCESS_DENIED_ACE_TYPE, ntsecuritycon.ACCESS_DENIED_OBJECT_ACE_TYPE)

    def as_os_error(problem: pywintypes.error, path: Path | str) -> OSError:
        """The same in Python's words: with `errno`, and of the class that belongs to it."""
        return OSError(None, problem.strerror, str(path), problem.winerror)

    def open_shared(path: Path | str, flags: int, *, private: bool = False) -> int:
        """As `os.open`, for bytes; others may rename and remove the file meanwhile. A link is refused with ELOOP.

        `private`: a file that is made is the user's alone. Raises `OSError`.
        """
        both = win32con.GENERIC_READ | win32con.GENERIC_WRITE
        access = {os.O_RDONLY: win32con.GENERIC_READ, os.O_WRONLY: win32con.GENERIC_WRITE}.get(
            flags & (os.O_WRONLY | os.O_RDWR), both
        )
        made = {0: win32con.OPEN_EXISTING, os.O_CREAT: win32con.OPEN_ALWAYS}.get(
            flags & (os.O_CREAT | os.O_EXCL), win32con.CREATE_NEW
        )
        rights: Any = _for_the_user_alone(inherited=0) if private else None
        attributes = win32con.FILE_ATTRIBUTE_NORMAL | win32file.FILE_FLAG_OPEN_REPARSE_POINT
        try:
            handle: Any = win32file.CreateFileW(str(path), access, SHARED, rights, made, attributes, None)
            if win32file.GetFileType(int(handle)) != win32con.FILE_TYPE_DISK:
                raise OSError(errno.ENXIO, "a device", str(path))
            if win32file.GetFileInformationByHandle(handle)[0] & REPARSE_POINT:
                raise OSError(errno.ELOOP, "a link or another reparse point", str(path))
        except pywintypes.error as problem:
            raise as_os_error(problem, path) from None
        kept = flags & (os.O_APPEND | os.O_WRONLY | os.O_RDWR)
        return msvcrt.open_osfhandle(handle.Detach(), kept | os.O_BINARY | os.O_NOINHERIT)

    def replace_file(source: Path | str, target: Path | str) -> None:
        """Rename, on disk when it returns. What is in the way goes; if a program has it open, that is waited for.

        Raises `OSError`.
        """
        give_up_s = time.monotonic() + REPLACE_WAIT_S
        while True:
            try:
                how = win32file.MOVEFILE_REPLACE_EXISTING | win32file.MOVEFILE_WRITE_THROUGH
                return win32file.MoveFileExW(str(source), str(target), how)
            except pywintypes.error as problem:
                # access is denied, too, if somebody has it open who lets it be deleted
                if problem.winerror not in (*_IN_USE, winerror.ERROR_ACCESS_DENIED) or time.monotonic() > give_up_s:
                    raise as_os_error(problem, target) from None
            if _is_read_only(target):
                raise PermissionError(errno.EACCES, "has the read-only attribute", str(target))
            time.sleep(_REPLACE_PAUSE_S)

    def _is_read_only(path: Path | str) -> bool:
        try:
            return bool(os.lstat(path).st_file_attributes & win32con.FILE_ATTRIBUTE_READONLY)
        except OSError:
            return False

    def make_private_folder(path: Path) -> None:
        """A new directory that is the user's alone, with what is made in it. Raises `OSError`."""
        try:
            win32file.CreateDirectoryW(str(path), _for_the_user_alone(inherited=_INHERITED_BY_ALL))
        except pywintypes.error as problem:
            raise as_os_error(problem, path) from None

    def copy_access(source: Path | str, target: Path | str) -> None:
        """Give `target` the access list of `source`, so that nobody can read more than before. Raises `OSError`."""
        try:
            found = win32security.GetNamedSecurityInfo(
                str(source), win32security.SE_FILE_OBJECT, win32security.DACL_SECURITY_INFORMATION
            )
            control, _ = found.GetSecurityDescriptorControl()
            what = win32security.DACL_SECURITY_INFORMATION
            if control & win32security.SE_DACL_PROTECTED:
                what |= win32security.PROTECTED_DACL_SECURITY_INFORMATION
            access = found.GetSecurityDescriptorDacl()
            if access is None:  # pyright: ignore[reportUnnecessaryComparison]  # a file system without lists
                return
            win32security.SetNamedSecurityInfo(
                str(target), win32security.SE_FILE_OBJECT, what, None, None, access, None
            )
        except pywintypes.error as problem:
            raise as_os_error(problem, target) from None

    def why_readable_by_others(path: Path) -> str:
        """Who else may read or change a file, by its access list; empty if nobody."""
        return _why_open(path, _READS | _CHANGES)

    def why_replaceable_by_others(folder: Path) -> str:
        """Who else may change what is in a directory, by its access list; empty if nobody."""
        return _why_open(folder, _CHANGES)

    def _why_open(path: Path, rights: int) -> str:
        try:
            what = win32security.DACL_SECURITY_INFORMATION | win32security.OWNER_SECURITY_INFORMATION
            found = win32security.GetNamedSecurityInfo(str(path), win32security.SE_FILE_OBJECT, what)
        except pywintypes.error as problem:
            return f"is not protected from other users (its access list cannot be read: {problem.strerror})"
        access = found.GetSecurityDescriptorDacl()
        if access is None:  # pyright: ignore[reportUnnecessaryComparison]  # the stub forgets files without a list
            return "is not protected from other users (it has no access list)"
        trusted = _trusted()
        if found.GetSecurityDescriptorOwner() not in trusted:
            return f"belongs to another user ({_name(found.GetSecurityDescriptorOwner())})"
        for index in range(access.GetAceCount()):
            (kind, flags), mask, *_, sid = access.GetAce(index)
            if kind in _DENYING or flags & win32con.INHERIT_ONLY_ACE or sid in trusted:
                continue
            if mask & rights:
                return f"is not protected from other users ({_name(sid)} has access)"
        return ""

    def _for_the_user_alone(*, inherited: int) -> _win32typing.PySECURITY_ATTRIBUTES:
        descriptor = win32security.SECURITY_DESCRIPTOR()
        descriptor.SetSecurityDescriptorDacl(1, _access_list(inherited=inherited), 0)
        # without this a directory's inheritable rights would come on top
        descriptor.SetSecurityDescriptorControl(win32security.SE_DACL_PROTECTED, win32security.SE_DACL_PROTECTED)
        attributes = win32security.SECURITY_ATTRIBUTES()
        attributes.SECURITY_DESCRIPTOR = descriptor
        return attributes

    def _access_list(*, inherited: int) -> _win32typing.PyACL:
        access = win32security.ACL()
        for sid in _trusted():
            access.AddAccessAllowedAceEx(win32security.ACL_REVISION, inherited, ntsecuritycon.FILE_ALL_ACCESS, sid)
        return access

    @cache
    def _trusted() -> tuple[_win32typing.PySID, ...]:
        """The user, the system and its administrators, who can read everything anyway."""
        token = win32security.OpenProcessToken(win32api.GetCurrentProcess(), win32con.TOKEN_QUERY)
        user, _ = win32security.GetTokenInformation(token, win32security.TokenUser)
        return (
            user,
            win32security.CreateWellKnownSid(win32security.WinLocalSystemSid),
            win32security.CreateWellKnownSid(win32security.WinBuiltinAdministratorsSid),
        )

    def _name(sid: _win32typing.PySID) -> str:
        try:
            name, domain, _ = win32security.LookupAccountSid(None, sid)
        except pywintypes.error:
            return win32security.ConvertSidToStringSid(sid)
        return f"{domain}\\{name}" if domain else name

else:

    def open_shared(path: Path | str, flags: int, *, private: bool = False) -> int:
        raise _only_there(path)

    def replace_file(source: Path | str, target: Path | str) -> None:
        raise _only_there(source)

    def make_private_folder(path: Path) -> None:
        raise _only_there(path)

    def why_readable_by_others(path: Path) -> str:
        raise _only_there(path)

    def why_replaceable_by_others(folder: Path) -> str:
        raise _only_there(folder)

    def _only_there(path: Path | str) -> OSError:
        return OSError(errno.ENOSYS, "this system is not Windows", str(path))
