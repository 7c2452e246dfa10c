"""Launches that fetch whatever version is newest: what runs tomorrow is not what was looked at today (PIN-2)."""

from __future__ import annotations

import re
from pathlib import PurePath

from goat_mcp.upstreams.config.entry import StdioLaunch

_NODE = frozenset({"npx", "bunx", "pnpx"})
_PYTHON = frozenset({"uvx", "pipx"})
_WORDS = frozenset({"run", "exec", "dlx", "tool", "x"})
_TAKES_A_WORD = frozenset({"--from", "--with", "--python", "-p", "--package", "--index", "--spec", "-w"})
_NODE_VERSION = re.compile(r"^@?[^@]+@v?\d[\w.+-]*$")
_PYTHON_VERSION = re.compile(r"(==|@)v?\d[\w.!+-]*$")


def unpinned_package(launch: StdioLaunch) -> str:
    """The package that is fetched in no certain version; empty if there is none that we can see."""
    program = PurePath(launch.command).name.removesuffix(".cmd").removesuffix(".exe").lower()
    if program in _NODE:
        package, pinned = _package(launch.args, ("--package", "-p")), _NODE_VERSION
    elif program in _PYTHON:
        package, pinned = _package(launch.args, ("--from", "--spec")), _PYTHON_VERSION
    else:
        return ""
    is_local = package.startswith((".", "/", "~")) or "://" in package
    return "" if not package or is_local or pinned.search(package) else package


def _package(args: tuple[str, ...], named_by: tuple[str, ...]) -> str:
    """What such a program fetches: what an option names, else its first word."""
    first = ""
    words = iter(args)
    for word in words:
        option, _, value = word.partition("=")
        if option in named_by:
            return value or next(words, "")
        if option in _TAKES_A_WORD:
            if not value:
                next(words, "")
        elif not word.startswith("-") and word not in _WORDS:
            first = word
            break
    rest = list(words)
    return next((rest[at + 1] for at, word in enumerate(rest[:-1]) if word in named_by and not first), first)
