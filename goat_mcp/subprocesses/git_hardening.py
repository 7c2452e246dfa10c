"""Asks git what a repository configures, so that a reading git command runs none of it (R-SHELL-4).

Which variables that takes is told by `goat_mcp.shell.git_environment`.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from goat_mcp.subprocesses.process_guard import ProcessGuard
from goat_mcp.subprocesses.program import run_program

_TIMEOUT_S = 5.0
_MAX_BYTES = 1024 * 1024


@dataclass(frozen=True)
class GitHardening:
    """Makes the further environment of one command."""

    guard: ProcessGuard

    async def environment(self, text: str, directory: Path, environment: Mapping[str, str]) -> dict[str, str]:
        """What to add to `environment` for this script in this directory; empty unless its git commands only read."""
        if "git" not in text:
            return {}
        from goat_mcp.shell.git_environment import LIST_KEYS, hardened_environment, reads_git, repository_keys
        from goat_mcp.shell.script import read_script

        script = read_script(text)
        git = shutil.which("git", path=environment.get("PATH", ""))
        if git is None or not reads_git(script):
            return {}
        # Without names, so that no listing can fail for the repository's own config.
        bare = {**environment, **hardened_environment(script)}
        keys = repository_keys(await self._output((git, *LIST_KEYS), directory, bare))
        top = (await self._output((git, "rev-parse", "--show-toplevel"), directory, bare)).removesuffix("\n")
        if top and (Path(top) / ".gitmodules").is_file():
            listed = await self._output(
                (git, "config", "--file", ".gitmodules", "--name-only", "--list", "-z"), Path(top), bare
            )
            keys.extend(key for key in listed.split("\0") if key)
        return hardened_environment(script, keys)

    async def _output(self, arguments: Sequence[str], directory: Path, environment: Mapping[str, str]) -> str:
        output = bytearray()

        def keep(part: bytes) -> None:
            output.extend(part[: _MAX_BYTES - len(output)])

        try:
            await run_program(
                arguments,
                data=b"",
                directory=directory,
                environment=environment,
                guard=self.guard,
                on_output=keep,
                timeout_s=_TIMEOUT_S,
            )
        except OSError:
            # No such git, or no such directory: then the command itself will say so.
            return ""
        return output.decode("utf-8", "surrogateescape")
