"""Asks git what a repository configures, so that a reading git command runs none of it (R-SHELL-4, R-SHELL-4b).

`git_environment` makes the variables. If a listing is cut, times out or fails, the command is refused: unknown
programs cannot be switched off.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.processes.process_guard import ProcessGuard
from goat_mcp.processes.program import run_program
from goat_mcp.processes.program_lookup import program_on

_TIMEOUT_S = 10.0
_MAX_BYTES = 1024 * 1024
_MAX_VARIABLES_BYTES = 512 * 1024
"""Of the variables of one command; Linux allows about 2 MiB beside its arguments."""
_NO_REPOSITORY = "fatal: not a git repository"
_GITMODULES = (":.gitmodules", "HEAD:.gitmodules")
"""Git reads the file in the work tree, and if there is none the one in the index, then the one of HEAD."""
_SHOWN_CHARS = 200


@dataclass(frozen=True)
class GitReads:
    """The script to run instead, and the variables for its commands that read a repository.

    `covers_all`: it has no other commands, so the variables may stand in its environment.
    """

    script: str
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    covers_all: bool = False


class _Unlisted(Exception):
    """Why the configuration of the repository is unknown."""


@dataclass(frozen=True)
class GitHardening:
    """Makes the reading git commands of a script run nothing that their repository names."""

    guard: ProcessGuard

    async def of(self, text: str, directory: Path, environment: Mapping[str, str]) -> GitReads:
        """What to run for a script in a directory. Raises `ToolError(BLOCKED)` if that cannot be ensured."""
        if "git" not in text:
            return GitReads(text)
        from goat_mcp.commands.git_environment import hardened_script, reading_commands, variables
        from goat_mcp.commands.shell.script_parsing import read_script

        script = read_script(text)
        reading = reading_commands(script)
        git = program_on(environment.get("PATH", ""), "git")
        if git is None or not reading:
            return GitReads(text)
        # Without the repository's names, so that its own configuration cannot make a listing fail.
        listing = _Listing(self.guard, git, directory, {**environment, **variables(), "LC_ALL": "C"})
        try:
            keys = await listing.keys()
            given = variables(keys)
            if sum(len(name) + len(value) for name, value in given.items()) > _MAX_VARIABLES_BYTES:
                raise _Unlisted(f"the repository configures too many programs and submodules ({len(keys)} keys)")
            hardened = hardened_script(text, given)
            hardened.encode("utf-8")
        except UnicodeEncodeError:
            raise _refused("the name of a filter, driver or submodule is not UTF-8") from None
        except _Unlisted as problem:
            raise _refused(str(problem)) from None
        return GitReads(hardened, given, covers_all=len(reading) == len(script.commands))


@dataclass(frozen=True)
class _Listing:
    guard: ProcessGuard
    git: str
    directory: Path
    environment: Mapping[str, str]

    async def keys(self) -> list[str]:
        """The keys that the repository sets, in its configuration and in its .gitmodules, wherever git reads that.

        Empty outside of a repository. Raises `_Unlisted`.
        """
        from goat_mcp.commands.git_environment import LIST_KEYS, repository_keys

        config, modules, top = await asyncio.gather(
            self._run(*LIST_KEYS),
            self._run("cat-file", "--batch-check", data="".join(f"{name}\n" for name in _GITMODULES)),
            self._run("rev-parse", "--is-inside-work-tree", "--show-cdup"),
        )
        if any(answer.complaint.startswith(_NO_REPOSITORY) for answer in (modules, top)):
            return []
        try:
            keys = repository_keys(config.output())
        except ValueError as problem:
            raise _Unlisted(str(problem)) from None
        blobs = [line.split()[0] for line in modules.output().splitlines() if line.split()[1:2] == ["blob"]]
        sources = [("--blob", blob) for blob in dict.fromkeys(blobs)]
        if file := self._modules_file(top.output()):
            sources.append(("--file", file))
        for answer in await asyncio.gather(
            *(self._run("config", *source, "--name-only", "--list", "-z") for source in sources)
        ):
            keys.extend(key for key in answer.output().split("\0") if key)
        return keys

    def _modules_file(self, top: str) -> str:
        """The .gitmodules of the work tree; empty if there is none."""
        # The second line is empty in the top folder, and missing if the repository has no work tree.
        _, has_tree, up = top.removesuffix("\n").partition("\n")
        file = self.directory / up / ".gitmodules"
        return str(file) if has_tree and os.path.lexists(file) else ""

    async def _run(self, *arguments: str, data: str = "") -> _Answer:
        output = bytearray()
        answer = _Answer(arguments[0], output)

        def keep(part: bytes) -> None:
            output.extend(part[: _MAX_BYTES + 1 - len(output)])

        try:
            end = await run_program(
                (self.git, *arguments),
                data=data.encode(),
                directory=self.directory,
                environment=self.environment,
                guard=self.guard,
                on_output=keep,
                timeout_s=_TIMEOUT_S,
            )
        except OSError as problem:
            return _Answer(arguments[0], output, problem=f"could not be started: {problem.strerror or problem}")
        if end.timed_out:
            return _Answer(arguments[0], output, problem=f"did not end in {_TIMEOUT_S:g} s")
        if end.exit_code != 0:
            said = " ".join(end.stderr_tail.split())
            problem = f"failed{': ' + said[:_SHOWN_CHARS] if said else ''}"
            return _Answer(arguments[0], output, end.stderr_tail, problem)
        return answer


@dataclass(frozen=True)
class _Answer:
    """The complete output of a listing, or its `problem`."""

    verb: str
    printed: bytearray
    complaint: str = ""
    problem: str = ""

    def output(self) -> str:
        """Raises `_Unlisted` unless it is complete."""
        if self.problem:
            raise _Unlisted(f"git {self.verb} {self.problem}")
        if len(self.printed) > _MAX_BYTES:
            raise _Unlisted(f"git {self.verb} printed more than {_MAX_BYTES // 1024} KiB")
        return self.printed.decode("utf-8", "surrogateescape")


def _refused(reason: str) -> ToolError:
    return ToolError(
        ErrorCode.BLOCKED,
        "nothing was run: git would run programs that the repository configures, and they could not be listed: "
        f"{reason}",
        "Fix the configuration of the repository, call again if git was only slow, or ask the user to run it.",
    )
