"""Which file a program's name means. Only absolute folders of a PATH count: never the directory that we are in."""

from __future__ import annotations

import os
import shutil

from goat_mcp.core import platform
from goat_mcp.processes.windows_environment import variable
from goat_mcp.processes.windows_program import find_program


def program_on(path: str, name: str) -> str | None:
    """The program's file; a name with a folder is that file, if it can be run."""
    if platform.SYSTEM == "windows":
        # `shutil.which` looks in the current directory first.
        return find_program(name, {"PATH": path, "PATHEXT": variable(os.environ, "PATHEXT")}, os.path.isfile)
    folders = [folder for folder in path.split(os.pathsep) if os.path.isabs(folder)]  # noqa: PTH117  # text, no path yet
    return shutil.which(name, path=os.pathsep.join(folders))
