"""The PATH of the user's login shell is asked for once in a process, not by each gateway that runs a command.

The shell reads the start files of whoever runs the tests, which takes a tenth of a second and more. A test that has a
home of its own, or names a shell, asks as always.
"""

from __future__ import annotations

import os

from goat_mcp.processes.environment import LoginPath, login_shell

_Key = tuple[str | None, ...]


def ask_once(*, ahead: bool = False) -> None:
    """From now on. Processes that are forked later know what was answered until then; `ahead` of them: now."""
    home = os.environ.get("HOME")
    known: dict[_Key, list[str]] = {}
    ask = LoginPath._ask_shell  # pyright: ignore[reportPrivateUsage]  # what takes long, and no more than that

    def remembered(self: LoginPath) -> list[str]:
        if self._shell is not None or os.environ.get("HOME") != home:  # pyright: ignore[reportPrivateUsage]  # as above
            return ask(self)
        key = (login_shell(), self._own_path, *map(os.environ.get, ("USER", "LOGNAME", "LANG", "TMPDIR")))  # pyright: ignore[reportPrivateUsage]  # as above
        if not known.get(key):
            known[key] = ask(self)
        return known[key]

    LoginPath._ask_shell = remembered  # pyright: ignore[reportPrivateUsage]  # as above
    if ahead:
        remembered(LoginPath())
