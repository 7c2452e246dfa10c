"""git as we run it in a repository: nothing that the repository's own settings name is run (R-SHELL-4).

Hooks, filters (also those of LFS, whose files stay pointers then), watchers, and transports of every kind: a blob that
a partial clone lacks is not fetched. What a repository's settings name would run without anybody having allowed it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import anyio
from anyio.abc import ByteReceiveStream

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.processes.stop_signals import unblocked_for_children

GIT_LIMIT_S = 120.0
_SHOWN_CHARS = 300
_GIT = (
    "git",
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "submodule.recurse=false"),
)
_FIXED = {
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
    # Transports run what remote.*.uploadpack, core.sshCommand and credential.helper say. protocol.*.allow of the
    # repository would win over an option; it does not over this.
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
}
_FILTERS = r"^filter\."
_FILTER_OFF = {"clean": "", "smudge": "", "process": "", "required": "false"}
_NO_MATCH = 1


class BuildEnvironment(Protocol):
    """Makes the environment that git runs in."""

    async def build(self) -> dict[str, str]: ...


class RepositoryGit:
    """Each run ends within two minutes, and is killed when it is cancelled."""

    def __init__(self, environment: BuildEnvironment) -> None:
        self._environment = environment

    async def run(self, directory: Path, *arguments: str, why: str) -> str:
        """What git prints, without the last line end. Raises `ToolError` that begins with `why` where it fails."""
        return os.fsdecode(await self.output(directory, *arguments, why=why)).rstrip("\n")

    async def output(self, directory: Path, *arguments: str, why: str) -> bytes:
        """As `run`, byte for byte."""
        environment = {**await self._environment.build(), **_FIXED}
        # Asked for in the same directory each time: what is included may depend on the worktree and on its branch.
        drivers = _drivers(await self._filters(directory, environment, why))
        if drivers:
            environment |= _without(drivers)
            if _drivers(
                {key: value for key, value in (await self._filters(directory, environment, why)).items() if value}
            ):
                raise ToolError(
                    ErrorCode.NOT_CONFIGURED,
                    f"{why}: the repository's settings name filters, which this git cannot be kept from running",
                    "Ask the user to install git 2.31 or later, or leave out isolation.",
                )
        code, output, complaint = await _ended(directory, arguments, environment, why)
        if code != 0:
            raise _failed(arguments, complaint, why)
        return output

    async def _filters(self, directory: Path, environment: Mapping[str, str], why: str) -> dict[str, str]:
        """All `filter.*` settings that hold in a directory, with their last values."""
        arguments = ("config", "-z", "--get-regexp", _FILTERS)
        code, output, complaint = await _ended(directory, arguments, environment, why)
        if code not in (0, _NO_MATCH):
            raise _failed(arguments, complaint, why)
        lines = [line.partition("\n") for line in os.fsdecode(output).split("\0") if line]
        return {key: value for key, _, value in lines}


def _drivers(filters: Mapping[str, str]) -> set[str]:
    """The names of those that run something; a name may hold dots and equal signs."""
    parts = (key.removeprefix("filter.").rpartition(".") for key in filters)
    return {name for name, dot, variable in parts if dot and variable in ("clean", "smudge", "process")}


def _without(drivers: set[str]) -> dict[str, str]:
    """Variables rather than `-c`, which ends a name at its first equal sign."""
    settings = [(f"filter.{name}.{key}", value) for name in sorted(drivers) for key, value in _FILTER_OFF.items()]
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for index, (key, value) in enumerate(settings):
        variables |= {f"GIT_CONFIG_KEY_{index}": key, f"GIT_CONFIG_VALUE_{index}": value}
    return variables


async def _ended(
    directory: Path, arguments: tuple[str, ...], environment: Mapping[str, str], why: str
) -> tuple[int, bytes, bytes]:
    """Its exit code, output and complaint."""
    try:
        with unblocked_for_children():
            process = await anyio.open_process(
                [*_GIT, *arguments],
                stdin=subprocess.DEVNULL,
                cwd=directory,
                env=environment,
                start_new_session=True,
            )
    except FileNotFoundError:
        raise ToolError(
            ErrorCode.NOT_CONFIGURED, "isolation: there is no git on PATH", "Ask the user to install git."
        ) from None
    except OSError as problem:
        raise ToolError(ErrorCode.IO, f"{why}: git cannot be started: {problem.strerror}") from None
    output, complaint = bytearray(), bytearray()
    with anyio.move_on_after(GIT_LIMIT_S):
        async with process, anyio.create_task_group() as group:  # a cancelled one is killed
            group.start_soon(_read, process.stdout, output)
            group.start_soon(_read, process.stderr, complaint)
    code = process.returncode
    if code is None or code < 0:
        raise ToolError(ErrorCode.TIMEOUT, f"{why}: git {arguments[0]} was ended after {GIT_LIMIT_S:g} s")
    return code, bytes(output), bytes(complaint)


def _failed(arguments: tuple[str, ...], complaint: bytes, why: str) -> ToolError:
    said = " ".join(complaint.decode("utf-8", "replace").split())[:_SHOWN_CHARS]
    return ToolError(
        ErrorCode.INPUT,
        f"{why}: git {arguments[0]} failed{': ' + said if said else ''}",
        "Mend this, or leave out isolation.",
    )


async def _read(stream: ByteReceiveStream | None, into: bytearray) -> None:
    if stream is not None:
        async for chunk in stream:
            into += chunk
