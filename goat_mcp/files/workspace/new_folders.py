"""Folders that are made on the way to a new file, and taken back where it does not come."""

from __future__ import annotations

import os
from contextlib import suppress

from goat_mcp.files.workspace.roots import DIRECTORY_FLAGS, NO_FOLLOW

NEW_FOLDER_MODE = 0o777


def make_folders(parent_fd: int, names: list[str]) -> tuple[int, list[tuple[str, ...]]]:
    """Create missing folders below a pinned one. Returns the last one's descriptor and those this call made."""
    fd = os.dup(parent_fd)
    made: list[tuple[str, ...]] = []
    try:
        for depth, name in enumerate(names, start=1):
            with suppress(FileExistsError):
                os.mkdir(name, NEW_FOLDER_MODE, dir_fd=fd)
                made.append(tuple(names[:depth]))
                sync_directory(fd)
            below = os.open(name, DIRECTORY_FLAGS | NO_FOLLOW, dir_fd=fd)
            os.close(fd)
            fd = below
    except BaseException:
        os.close(fd)
        remove_folders(parent_fd, made)
        raise
    return fd, made


def remove_folders(parent_fd: int, made: list[tuple[str, ...]]) -> None:
    """Take back folders that were made for a file that did not come; none that has got another use."""
    for names in reversed(made):
        with suppress(OSError):
            fd = os.dup(parent_fd)
            try:
                for name in names[:-1]:
                    below = os.open(name, DIRECTORY_FLAGS | NO_FOLLOW, dir_fd=fd)
                    os.close(fd)
                    fd = below
                os.rmdir(names[-1], dir_fd=fd)
            finally:
                os.close(fd)


def sync_directory(parent_fd: int) -> None:
    with suppress(OSError):  # may not be listed, or its file system has no such thing
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent_fd)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
