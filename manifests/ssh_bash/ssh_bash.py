"""`ssh_bash__exec`: a command on a host of the settings, by the system's ssh. Source: goa, `ssh_bash`.

The command travels over the connection's standard input, to a script that runs it and ends it when the connection ends.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from goat_mcp.commands.tasks.task import ShellTask
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult, text_block
from goat_mcp.manifests.command_runner import CommandAnswer, as_json
from goat_mcp.manifests.handler_api import Handler, HandlerContext, Host
from goat_mcp.processes.bash_invocation import find_bash
from goat_mcp.processes.command_start import start_command
from goat_mcp.processes.running_command import EndedBy, RunningCommand, signal_name

DEFAULT_TIMEOUT_S = 60
CONNECT_TIMEOUT_S = 15
MAX_COMMAND_BYTES = 60_000
"""What a pipe holds, so that giving the command to ssh never waits."""
FAILED = 255
"""What ssh itself exits with when it fails."""
_STRICT = (
    *("BatchMode=yes", "StrictHostKeyChecking=yes", f"ConnectTimeout={CONNECT_TIMEOUT_S}", "ConnectionAttempts=1"),
    *("ServerAliveInterval=10", "ServerAliveCountMax=3", "ControlMaster=no", "ControlPath=none", "LogLevel=ERROR"),
    *("ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes", "PermitLocalCommand=no", "RequestTTY=no"),
    *("RemoteCommand=none", "StdinNull=no", "ForkAfterAuthentication=no", "EscapeChar=none", "Tunnel=no"),
)
"""Asks nobody anything, trusts no new host, forwards nothing, and shares its connection with no other ssh."""

# Runs at the other end, in whatever /bin/sh there is; no single quote or backslash in it, so that every login shell
# takes it as it is. A server gives each command a process group of its own, of which this shell is then the leader;
# where one does not, setsid makes one. Whatever comes over stdin after the command, or its end, ends the group: TERM,
# 2 s, KILL. When the command has ended by itself, so do those it left, or the connection would wait for their output.
# Those in sessions of their own are found by a variable in their environment, where there is /proc; out of reach are
# then only those that run as somebody else, or were given another environment (env -i, a service manager).
_REMOTE = (
    "exec 3<&0 </dev/null; read -r n i <&3; c=$(dd bs=1 count=$n <&3 2>/dev/null; echo .); c=${c%.}; "
    's="bash --noprofile --norc"; command -v bash >/dev/null 2>&1 || s=sh; '
    "l=; read -r a a a a l a 2>/dev/null </proc/$$/stat || l=$(ps -o pgid= -p $$ 2>/dev/null); "
    "w=; [ ${l:-0} -eq $$ ] || w=$(command -v setsid); trap : TERM; "
    'z() { for p in $(grep -lsF "GOAT_MCP_SSH=$i" /proc/[0-9]*/environ); do p=${p#/proc/}; kill -$1 ${p%/*}; done; '
    "kill -$1 $g; }; "
    'GOAT_MCP_SSH=$i $w $s -c "$c" 3<&- & m=$!; '
    "if [ ${l:-0} -eq $$ ]; then g=0; elif [ $w ]; then g=-$m; else g=$m; fi; "
    '( trap "" TERM; read -r a <&3; z TERM; sleep 2; z KILL ) >/dev/null 2>&1 & h=$!; '
    "exec 3<&-; while :; do wait $m; k=$?; kill -0 $m 2>/dev/null || break; done; exec 2>/dev/null; "
    "kill -KILL $h; z TERM; "
    '( trap "" TERM; sleep 2; z KILL ) </dev/null >/dev/null & exit $k'
)


@dataclass(frozen=True)
class SshHost:
    """One host of the settings."""

    id: str
    address: str
    user: str = ""
    port: int = 0
    identity_file: str = ""
    known_hosts: str = ""

    def arguments(self) -> list[str]:
        """ssh's, up to the command."""
        options = [part for option in _STRICT for part in ("-o", option)]
        if self.user:
            options += ["-l", self.user]
        if self.port:
            options += ["-p", str(self.port)]
        if self.identity_file:
            options += ["-i", str(Path(self.identity_file).expanduser()), "-o", "IdentitiesOnly=yes"]
        if self.known_hosts:
            options += ["-o", f'UserKnownHostsFile="{Path(self.known_hosts).expanduser()}"']
        return ["-T", "-a", "-x", *options, "--", self.address]


@dataclass
class SshBash:
    host: Host
    _closing: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    async def exec(self, ctx: HandlerContext, input: Mapping[str, Any]) -> ToolResult:
        target = _target(ctx.config, str(input["host"]))
        command = str(input["command"])
        timeout_s = int(input.get("timeout", DEFAULT_TIMEOUT_S))
        answer = CommandAnswer(self.host.spill.create)
        running = await self._start(target, command, answer, ctx)
        try:
            running.end_at(timeout_s)
            if not await running.wait_ended(ctx.call.wait_left_s()):
                return await self._as_task(running, target, command, timeout_s, answer, ctx.call)
        except BaseException:
            # Cancelled, most likely: the ending goes on by itself, the call does not wait for it.
            running.begin_end(EndedBy.STOP)
            raise
        return _ended(running, target, answer, timeout_s)

    async def _start(self, target: SshHost, command: str, answer: CommandAnswer, ctx: HandlerContext) -> RunningCommand:
        data = command.encode()
        if "\0" in command or len(data) > MAX_COMMAND_BYTES:
            what = "holds a NUL character" if "\0" in command else f"is over {MAX_COMMAND_BYTES} bytes long"
            raise ToolError(
                ErrorCode.INPUT, f"command: {what}", "Put what it does into a file on the host and run that."
            )
        path = await self.host.environment.login_path.read()
        bash, ssh = find_bash(path), shutil.which("ssh", path=path)
        if bash is None or ssh is None:
            missing = "bash" if bash is None else "ssh"
            raise ToolError(
                ErrorCode.NOT_CONFIGURED, f"there is no {missing} on PATH", f"Ask the user to install {missing}."
            )
        arguments = [ssh, *target.arguments(), f"exec sh -c '{_REMOTE}'"]
        environment = await self.host.environment.build()
        read_end, write_end = os.pipe()
        try:
            os.write(write_end, b"%d %s\n%s" % (len(data), secrets.token_hex(16).encode(), data))
            running = start_command(
                f"exec -- {shlex.join(arguments)}",
                bash=bash,
                directory=ctx.workdir or Path.home(),
                environment=environment,
                guard=self.host.guard,
                create_file=self.host.spill.create,
                stdin=read_end,
                streams=answer.fresh_streams(),
            )
        except BaseException:
            os.close(write_end)
            raise
        finally:
            os.close(read_end)
        closing = asyncio.create_task(_close_after(running, write_end))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        return running

    async def _as_task(
        self,
        running: RunningCommand,
        target: SshHost,
        command: str,
        timeout_s: int,
        answer: CommandAnswer,
        ctx: ToolContext,
    ) -> ToolResult:
        """The command goes on without the call."""
        file = running.capture.keep_file()
        work = ShellTask(running, f"{target.id}: {command}", timeout_s)
        task = await self.host.tasks.adopt(work, principal=ctx.principal, session_key=ctx.session_key)
        task.mark_read(ctx.session_key, running.capture.total)
        facts = {**_facts(running), "task_id": task.id, "output_file": str(file)}
        notice = (
            f"still running, until {timeout_s} s at most; TaskOutput reads it, TaskStop ends it on {target.id}, too"
        )
        value = {"host": target.id, **answer.value(facts, [notice])}
        return ToolResult(content=(text_block(as_json(value)),), structured=value)


def _target(config: Mapping[str, Any], wanted: str) -> SshHost:
    hosts: Mapping[str, Any] = config.get("hosts") or {}
    if wanted in hosts:
        return SshHost(wanted, **hosts[wanted])
    if not hosts:
        remedy = "Tell the user: hosts are named in the settings, tools.ssh_bash.hosts.ID: {address: ...}."
        raise ToolError(ErrorCode.NOT_CONFIGURED, "the settings name no hosts", remedy)
    known = ", ".join(sorted(hosts))
    raise ToolError(
        ErrorCode.INPUT,
        f"host: no host {wanted!r:.80} in the settings",
        f"Known are {known}.",
        facts={"hosts": [*hosts]},
    )


def _ended(running: RunningCommand, target: SshHost, answer: CommandAnswer, timeout_s: int) -> ToolResult:
    facts = _facts(running)
    code = running.exit_code
    if code == 0 and running.ended_by is None:
        value = {"host": target.id, **answer.value(facts)}
        return ToolResult(content=(text_block(as_json(value)),), structured=value)
    value = {"host": target.id, **answer.value(facts, failed=True)}
    raise _failure(running, target, value, timeout_s)


def _failure(running: RunningCommand, target: SshHost, value: Mapping[str, Any], timeout_s: int) -> ToolError:
    code = running.exit_code
    told = str(value["stderr"]).strip()
    if running.ended_by is EndedBy.TIMEOUT:
        what = f"timed out after {timeout_s} s and was ended on {target.id} with all it started"
        error = ErrorCode.TIMEOUT, what, "Send a longer timeout (at most 300 s)."
    elif running.ended_by is EndedBy.OUTPUT:
        error = ErrorCode.TOO_LARGE, "printed more than 5 GB and was ended", "Filter the output."
    elif running.ended_by is EndedBy.STOP or code is None:
        error = ErrorCode.CANCELLED, "the command was stopped", ""
    elif code == FAILED:
        last = told.splitlines()[-1] if told else "it gave no reason"
        error = ErrorCode.NETWORK, f"ssh to {target.id} failed: {last}", _remedy(told)
    else:
        signalled = signal_name(code)
        error = ErrorCode.EXIT, f"Exit code {code}" + (f" ({signalled})" if signalled else ""), ""
    return ToolError(*error, facts=value, output=as_json(value))


def _remedy(told: str) -> str:
    if "Host key verification failed" in told or "host key is known" in told:
        return "Tell the user: the host's key has to be in the known_hosts file before; nothing here trusts a new one."
    if "Permission denied" in told:
        return "Tell the user: the host took none of the keys; see identity_file, or the ssh agent."
    return "Try again later, or tell the user. A command that itself exits with 255 looks the same."


def _facts(running: RunningCommand) -> dict[str, Any]:
    seconds = running.duration_s
    return {
        "exit_code": running.exit_code,
        "timed_out": running.ended_by is EndedBy.TIMEOUT,
        "duration_ms": None if seconds is None else round(seconds * 1000),
        "output_file": None if running.capture.path is None else str(running.capture.path),
    }


async def _close_after(running: RunningCommand, descriptor: int) -> None:
    """While it is open, the other end knows that somebody still wants the command."""
    try:
        await running.wait_gone(None)
    finally:
        os.close(descriptor)


def build_handlers(host: Host) -> Mapping[str, Handler]:
    return {"exec": SshBash(host).exec}
