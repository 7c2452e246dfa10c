"""What `goat-mcp doctor` finds (OBS-2): an id for programs, a detail and a remedy for people, and how bad it is.

It reads entries and files, connects to every upstream and lists it; it calls no tool.
"""

from __future__ import annotations

import json
import shlex
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from ipaddress import ip_address
from itertools import islice
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from goat_mcp.commands.sandbox.sandbox import SandboxState, remedy
from goat_mcp.core import platform
from goat_mcp.core.redaction import is_likely_secret
from goat_mcp.gateway.status.system_features import SANDBOX, SystemFeature
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from goat_mcp.upstreams.config.entry import HttpEndpoint, UpstreamConfig
from goat_mcp.upstreams.patience import OF_A_PERSON, TO_THE_END
from goat_mcp.upstreams.pinning.launch_fingerprint import unpinned_launch
from goat_mcp.upstreams.reason_pages import REASON_PAGES, remedy_for
from goat_mcp.upstreams.status import ReasonCode, UpstreamState, UpstreamStatus
from goat_mcp.upstreams.upstreams import Upstreams

OK, USAGE, AUTH, UNREACHABLE, TOOL_ERROR, SCHEMA = 0, 1, 3, 4, 5, 6
ExitCode = Literal[0, 1, 3, 4, 5, 6]
_FIRST = (USAGE, AUTH, UNREACHABLE, TOOL_ERROR, SCHEMA)
_R = ReasonCode
_EXIT: dict[ReasonCode, ExitCode] = {
    _R.CONFIG_ERROR: USAGE,
    _R.SELF_LAUNCH: USAGE,
    _R.AUTH_REQUIRED: AUTH,
    _R.LIST_FAILED: TOOL_ERROR,
    _R.QUARANTINED: TOOL_ERROR,
    _R.BROKEN_ENTRY: SCHEMA,
    _R.BROKEN_SCHEMA: SCHEMA,
    _R.HIDDEN_DATA: SCHEMA,
    _R.SCHEMA_TOO_LARGE: SCHEMA,
    _R.SCHEMA_TOO_DEEP: SCHEMA,
    # Doctor does not wait as long as a start may take, unless it is given the server's name.
    _R.STARTING: 0,
    # These leave everything else in use, or were asked for.
    _R.DISABLED: 0,
    _R.TOOL_DISABLED: 0,
    _R.TASKS_ONLY: 0,
    _R.UNKNOWN_KEY: 0,
    _R.LIST_TRUNCATED: 0,
    _R.NAME_COLLISION: 0,
    _R.LISTED_TWICE: 0,
    _R.GATEWAY_CYCLE: 0,
    _R.LAUNCH_CHANGED: 0,
}
"""Whatever is not here keeps an upstream from being reached."""

_OTHERS = 0o077
_OTHERS_WRITE = 0o022
_OTHERS_ENTER = 0o011
_MAX_FILES = 2000


@dataclass(frozen=True, kw_only=True)
class Finding:
    """`exit_code` is what it alone would make of doctor's exit status; a warning's is 0.

    `is_info`: nothing is wrong, it is so on this system.
    """

    id: str
    detail: str
    fix: str
    about: str = ""
    exit_code: ExitCode = 0
    is_info: bool = False

    @property
    def severity(self) -> Literal["error", "warning", "info"]:
        if self.exit_code:
            return "error"
        return "info" if self.is_info else "warning"

    def wire(self) -> dict[str, Any]:
        fields = asdict(self)
        del fields["is_info"]
        return {**fields, "severity": self.severity}


def exit_status(findings: list[Finding]) -> int:
    """Of several the first that must be fixed: a wrong configuration, then a login, then what cannot be reached."""
    codes = {finding.exit_code for finding in findings}
    return next((code for code in _FIRST if code in codes), OK)


def upstream_findings(status: UpstreamStatus) -> Iterator[Finding]:
    """All findings of its status. What it lists is read, nothing of it is called."""
    name = status.name
    if status.reason_code:
        yield _of(status.reason_code, name, status.detail)
    elif status.state is not UpstreamState.READY:
        yield _of(ReasonCode.STARTING, name, "it did not get ready while doctor waited")
    for rejected in status.rejected:
        if rejected.reason_code is not ReasonCode.GATEWAY_CYCLE:  # reported once, for all of them
            yield _of(rejected.reason_code, name, f"{rejected.kind} {rejected.name or '(no name)'}: {rejected.reason}")
    for noticed in _NOTICED:
        for detail in noticed.details(status):
            yield Finding(id=noticed.id, about=name, detail=detail, fix=noticed.fix)


@dataclass(frozen=True)
class _Noticed:
    """What is known of an upstream that works. `details`: one for each finding."""

    id: str
    details: Callable[[UpstreamStatus], Iterable[str]]
    fix: str


def _counted(count: int, what: str) -> Iterable[str]:
    return (f"{count} {what}",) if count else ()


_NOTICED = (
    _Noticed(
        str(ReasonCode.NAME_COLLISION), lambda status: status.collisions, REASON_PAGES[ReasonCode.NAME_COLLISION].remedy
    ),
    _Noticed(
        "output_schema_unused",
        lambda status: (f"its outputSchema is not used: {each}" for each in status.unchecked_outputs),
        "Report it to whoever makes the server; the tool itself works.",
    ),
    _Noticed(
        "junk_on_stdout",
        lambda status: _counted(status.junk_lines, "lines on its stdout were no messages and were skipped"),
        "Report it to whoever makes the server: what it prints belongs on stderr.",
    ),
    _Noticed(
        "speaks_of_other_tools",
        lambda status: status.mentions,
        "Read that description yourself: one server has no business steering the use of another's tools.",
    ),
    _Noticed(
        "hidden_characters",
        lambda status: _counted(
            status.escaped_tools, "of its tools had invisible characters in their texts; they are shown now"
        ),
        "Read those texts yourself before you trust the server.",
    ),
    _Noticed(
        "hidden_characters_in_results",
        lambda status: _counted(
            status.escaped_results, "of its results had characters that hide or act on a terminal; shown"
        ),
        "Find out what it wanted to hide before you trust the server.",
    ),
)


def _of(code: ReasonCode, name: str, detail: str) -> Finding:
    exit_code = _EXIT.get(code, UNREACHABLE)
    return Finding(id=str(code), about=name, detail=detail, fix=remedy_for(code, name), exit_code=exit_code)


def launch_findings(config: UpstreamConfig) -> Iterator[Finding]:
    """A launch that fetches whatever version is newest: what runs tomorrow is not what was reviewed today (PIN-2)."""
    target = config.target
    if advice := unpinned_launch(config):
        what, _, remedy = advice.partition("; ")
        yield Finding(
            id="unpinned_launch",
            about=config.name,
            detail=f"{what}: what runs is whatever is newest when it starts",
            fix=f"Name the version you have looked at: {remedy}.",
        )
    elif isinstance(target, HttpEndpoint) and target.headers and _is_in_the_clear(target.url):
        yield Finding(
            id="token_in_the_clear",
            about=config.name,
            detail=f"{target.url.partition('?')[0]} gets headers over http, where anybody on the way reads them",
            fix="Write https.",
        )


def _is_in_the_clear(url: str) -> bool:
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        is_here = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        is_here = False
    return parts.scheme == "http" and not is_here


def state_findings(folder: Path) -> Iterator[Finding]:
    """Files of the state directory that others can read: it holds tokens and what tools answered.

    A file in a folder that others cannot enter is closed to them, whatever its own mode is: Python gives what it
    compiles the mode of its source.
    """
    open_files = [] if not platform.HAS_FILE_MODES else list(islice(_reachable_files(folder), _MAX_FILES))
    if open_files:
        shown = ", ".join(f"{path.relative_to(folder)} (mode {mode:04o})" for path, mode in open_files[:5])
        more = f" and {len(open_files) - 5} more" if len(open_files) > 5 else ""
        yield Finding(
            id="state_file_open",
            about=str(folder),
            detail=f"others can read or write files of the state directory: {shown}{more}",
            fix=f"chmod -R go-rwx '{folder}'",
        )


def _reachable_files(folder: Path) -> Iterator[tuple[Path, int]]:
    """Files that somebody else can open, with their modes."""
    try:
        if not folder.lstat().st_mode & _OTHERS_ENTER:
            return
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for path in entries:
        try:
            mode = path.lstat().st_mode
        except OSError:
            continue
        if stat.S_ISDIR(mode):
            yield from _reachable_files(path)
        elif stat.S_ISREG(mode) and mode & _OTHERS:
            yield path, stat.S_IMODE(mode)


def upstream_file_findings(file: Path) -> Iterator[Finding]:
    """A file that others may change decides what runs as you; one they may read should hold no secret."""
    try:
        mode = file.stat().st_mode
        content: Any = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return  # whoever loads it says so
    if platform.HAS_FILE_MODES and mode & _OTHERS_WRITE:
        yield Finding(
            id="config_writable",
            about=str(file),
            detail=f"others may change it (mode {mode & 0o777:04o}), and so which programs run as you",
            fix=f"chmod go-w '{file}'",
        )
    secrets = sorted(_written_secrets(content))
    if secrets and platform.HAS_FILE_MODES and mode & 0o044:
        yield Finding(
            id="secret_readable",
            about=str(file),
            detail=f"others may read it (mode {mode & 0o777:04o}), and it holds what look like secrets: "
            f"{', '.join(secrets)}",
            fix=f"chmod 600 '{file}', or store each with goat-mcp secret set NAME, and write ${{secret:NAME}} instead.",
        )


def _written_secrets(content: Any) -> Iterator[str]:
    """The places of values that are secrets and no references to one."""
    servers: Any = cast("Mapping[str, Any]", content).get("mcpServers") if isinstance(content, dict) else None
    for server, entry in cast("dict[str, Any]", servers).items() if isinstance(servers, dict) else ():
        if not isinstance(entry, dict):
            continue
        for part in ("env", "headers"):
            values: Any = cast("dict[str, Any]", entry).get(part)
            for name, value in cast("dict[str, Any]", values).items() if isinstance(values, dict) else ():
                if isinstance(value, str) and "${" not in value and is_likely_secret(name, value):
                    yield f"{server}.{part}.{name}"


OnExamined = Callable[[UpstreamStatus], None]


async def upstreams_examined(upstreams: Upstreams, only: Collection[str], on_examined: OnExamined) -> list[Finding]:
    """Connect to each, all at once, and list. `only` are names; none means all. `on_examined` is called for each."""

    chosen = [config for config in upstreams.configs if not only or config.name in only]
    names = [config.name for config in chosen]
    # Whoever names a server waits for that one as long as it may take.
    patience = TO_THE_END if only else OF_A_PERSON
    heard: set[str] = set()

    def hear(status: UpstreamStatus, _: float) -> None:
        heard.add(status.name)
        on_examined(status)

    await upstreams.each_listed(hear, patience, names=names, again=True)
    for name in names:
        if name not in heard:
            on_examined(_status_of(upstreams, name))
    # What arrives with the answers, as lines that are no messages, is in the status by now.
    statuses = [one for one in upstreams.status() if not only or one.name in only]
    findings = [finding for status in statuses for finding in upstream_findings(status)]
    for name, detail in await anyio.to_thread.run_sync(upstreams.suspicious, names):
        findings.append(
            Finding(
                id="suspicious_definition",
                about=name,
                detail=detail,
                fix=f"Read it with `goat-mcp lock show {shlex.quote(name)}` before you trust the server.",
            )
        )
    for name, detail in await anyio.to_thread.run_sync(upstreams.unusable_schemas, names):
        findings.append(
            Finding(
                id="input_schema_unused",
                about=name,
                detail=f"calls pass without a check of their arguments: {detail}",
                fix="Report it to whoever makes the server; the tool itself may work.",
            )
        )
    for status in statuses:
        if status.state is UpstreamState.REFUSED:
            on_examined(status)
    return [*findings, *(finding for config in chosen for finding in launch_findings(config))]


async def surroundings_examined(settings: Settings, state: StateDirectory) -> list[Finding]:
    """The files, in a thread: there may be many."""
    return await anyio.to_thread.run_sync(partial(_file_findings, settings, state))


def sandbox_findings(state: SandboxState) -> Iterator[Finding]:
    """`state` after a trial."""
    if state.unsandboxed:
        yield Finding(
            id="no_sandbox",
            detail=f"commands run without a sandbox although the settings want one: {state.reason}",
            fix=f"Either {remedy()}, or set `sandbox: off` if that is what you want.",
            exit_code=1 if state.wanted == "required" else 0,
        )


def system_findings(features: Iterable[SystemFeature]) -> Iterator[Finding]:
    """What this system lacks. A sandbox that the settings want has a finding of its own."""
    for feature in features:
        if feature.is_there is False and feature.name != SANDBOX:
            yield Finding(id="missing_feature", about=feature.name, detail=feature.without, fix="", is_info=True)


def hook_findings(silent: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """`silent` are hooks, by where they are written, and what is wrong with their matchers."""
    for origin, problem in silent:
        yield Finding(id="silent_hook", about=origin, detail=problem, fix="Correct the matcher, or take the hook away.")


_BROKEN = ("broken_manifest", "broken_skill")


def declared_findings(problems: Iterable[Mapping[str, Any]]) -> Iterator[Finding]:
    """`problems` of manifests and skills: `name`, `reason_code`, `detail`."""
    for problem in problems:
        code = problem["reason_code"]
        fix = "Correct the file; `goat-mcp manifest check` looks at manifests alone."
        exit_code = USAGE if code in _BROKEN else 0
        yield Finding(id=code, about=problem["name"], detail=problem["detail"], fix=fix, exit_code=exit_code)


def ignored_keys(upstreams: Upstreams, only: Collection[str]) -> Iterator[Finding]:
    for problem in upstreams.problems:
        if not problem.is_fatal and (not only or problem.name in only):
            yield Finding(
                id=str(problem.reason_code),
                about=problem.name,
                detail=f"{problem.message} ({problem.file})",
                fix="Correct or remove the key.",
            )


def _status_of(upstreams: Upstreams, name: str) -> UpstreamStatus:
    return next(status for status in upstreams.status() if status.name == name and status.server)


def _file_findings(settings: Settings, state: StateDirectory) -> list[Finding]:
    return [
        *state_findings(state.path),
        *(finding for file in settings.upstreams for finding in upstream_file_findings(file.expanduser())),
    ]
