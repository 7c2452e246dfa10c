"""Runs scripts by real bash where every program is a shim that logs its words, and tells what ran."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

_BUILTINS = "echo printf true false pwd test cd kill umask"
_SHIM = """#!/bin/sh
printf '%s\\0' "${0##*/}" "$@" "$(printf '\\001')" >> "$LOG"
case "${0##*/}" in false|grep) exit 1;; esac
"""


class RealBash:
    """Programs named in `programs` can be run, nothing else; everything stays in `folder`."""

    def __init__(self, folder: Path, programs: list[str]) -> None:
        self._bin = folder / "bin"
        self._log = folder / "log"
        self._work = folder / "work"
        self._bin.mkdir()
        self._work.mkdir()
        first = self._bin / programs[0]
        first.write_text(_SHIM)
        first.chmod(0o755)
        for name in programs[1:]:
            (self._bin / name).symlink_to(first)

    def ran(self, script: str) -> list[tuple[str, ...]]:
        """The words of every program that ran, in no order that means anything."""
        self._log.unlink(missing_ok=True)
        bash = shutil.which("bash")
        assert bash is not None
        process = subprocess.Popen(
            # As the product does: the whole script to `eval`; builtins are made programs, so that they are logged.
            [
                bash,
                "--noprofile",
                "--norc",
                "-c",
                f'enable -n {_BUILTINS}; ulimit -t 5 -f 1000; eval "$1"',
                "bash",
                script,
            ],
            cwd=self._work,
            env={"PATH": str(self._bin), "HOME": str(self._work), "LOG": str(self._log)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(timeout=20)
        finally:
            # What it left in the background too.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if not self._log.exists():
            return []
        runs = self._log.read_bytes().decode("utf-8", "surrogateescape").split("\0\x01\0")
        return [tuple(run.split("\0")) for run in runs if run]
