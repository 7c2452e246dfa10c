"""The variables that every program expects, for a server that was started without them.

Desktops and service managers start programs with next to nothing set. What the server starts gets some of its
variables, and should find its user's home and folder for temporary files all the same.
"""

from __future__ import annotations

from collections.abc import MutableMapping

from goat_mcp.core import platform, posix

_WANTED = ("HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "TMPDIR")
_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


def fill_in(environment: MutableMapping[str, str], record: posix.UserRecord | None = None) -> None:
    """Set what is missing or empty; on Windows nothing. `record`: the user's, if not this process's own."""
    if platform.SYSTEM == "windows":
        return
    missing = [name for name in _WANTED if not environment.get(name)]
    values = {"PATH": _PATH}
    if not {"HOME", "USER", "LOGNAME", "SHELL"}.isdisjoint(missing):
        user = record or posix.user_record()
        values |= {"HOME": user.home, "USER": user.name, "LOGNAME": user.name, "SHELL": user.shell}
    if "LANG" in missing:
        values["LANG"] = _language(environment)
    if "TMPDIR" in missing:
        values["TMPDIR"] = posix.users_temporary_folder()
    environment.update({name: value for name in missing if (value := values[name])})


def _language(environment: MutableMapping[str, str]) -> str:
    """One that the system has, since programs complain about others; empty if none is known."""
    if platform.SYSTEM == "macos":
        return "en_US.UTF-8"
    # Python sets this at its start if nothing else is set, to a locale that it has tried.
    tried = environment.get("LC_CTYPE", "")
    return tried if tried in ("C.UTF-8", "C.utf8") else ""
